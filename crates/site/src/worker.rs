//! What the worker calls, and what it gives. Everything else of the module is safe: who calls writes into memory that Rust has lent.

use crate::{Answer, Request, Worker};
use std::sync::{Mutex, PoisonError};

/// The request that is written or read.
static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());

// SAFETY: worker.js gives functions of these types. They read what is lent, and keep nothing.
#[allow(unsafe_code)]
#[link(wasm_import_module = "worker")]
unsafe extern "C" {
    /// Takes a JSON text of so many bytes.
    safe fn say(text: *const u8, bytes: usize);
    /// Milliseconds since some moment.
    safe fn now_ms() -> f64;
}

/// The browser's worker.
struct Browser;

impl Worker for Browser {
    fn say(&self, answer: &Answer<'_>) {
        let text = serde_json::to_string(answer).expect("an answer is text and numbers");
        say(text.as_ptr(), text.len());
    }

    fn now_ms(&self) -> f64 {
        now_ms()
    }
}

/// Where to write a request of so many bytes.
// SAFETY: no other function has this name.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    *request = vec![0; bytes];
    request.as_mut_ptr()
}

/// Answers the request.
// SAFETY: no other function has this name.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() {
    std::panic::set_hook(Box::new(|panic| Browser.say(&Answer::Broken { text: &panic.to_string() })));
    let request = std::mem::take(&mut *REQUEST.lock().unwrap_or_else(PoisonError::into_inner));
    match serde_json::from_slice::<Request>(&request) {
        Ok(request) => request.answer(&Browser),
        Err(error) => Browser.say(&Answer::Mistake { text: &format!("the request: {error}") }),
    }
}
