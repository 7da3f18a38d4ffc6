//! The load of a trial: uploads to a server of the user's, and short connections to it.
//!
//! A connection begins with one byte: `u`, and what follows is thrown away; or `g`, and [`ANSWER_BYTES`] come back. Nothing else is
//! said, and nothing kept.

use anyhow::{Context, Result};
use lasthop_trial::{Plan, Probe, Standing};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where a server listens: IPv6 and IPv4.
pub(super) const LISTEN: SocketAddr = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 29_471, 0, 0));
/// The answer to a short connection: a small page.
const ANSWER_BYTES: usize = 30_000;
/// The most connections at a time; more are closed at once.
const CONNECTIONS_MOST: usize = 1024;
/// A connection on which nothing moves for so long is given up, and a short one counts as having taken so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two short connections, and before an upload begins again.
const PAUSE: Duration = Duration::from_secs(1);

/// `lasthop trial serve`: never returns but for an error.
pub(super) fn serve(listen: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    let listens = listener.local_addr().unwrap_or(listen);
    crate::tell(format_args!("takes uploads of trials at {listens}, from anybody, until it is stopped"));
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(100)); // no descriptors left
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let of_thread = Arc::clone(&open);
        let spawned = thread::Builder::new().spawn(move || {
            let _ = answer(stream);
            of_thread.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 16];
    stream.read_exact(&mut buffer[..1])?;
    match buffer[0] {
        b'g' => stream.write_all(&buffer[..ANSWER_BYTES]),
        b'u' => {
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        }
        _ => Ok(()),
    }
}

/// An upload, until it is dropped.
pub(crate) struct Upload {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Upload {
    /// Begins.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) fn start(server: SocketAddr) -> Result<Self> {
        fetch(server).with_context(|| format!("--load: no `lasthop trial serve` answers at {server}"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&stop);
        let thread = thread::spawn(move || upload(server, &of_thread));
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Uploads until `stop` is set; begins again when a connection ends.
pub(super) fn upload(server: SocketAddr, stop: &AtomicBool) {
    let mut is_told = false;
    while !stop.load(Ordering::Relaxed) {
        if let Err(error) = upload_once(server, stop)
            && !std::mem::replace(&mut is_told, true)
        {
            crate::tell(format_args!("note: cannot upload to {server}, trying again: {error}"));
        }
        if !stop.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
    }
}

fn upload_once(server: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    // Short, so that `stop` is seen.
    stream.set_write_timeout(Some(PAUSE))?;
    stream.write_all(b"u")?;
    let data = vec![0; 1 << 16];
    let mut moved = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match stream.write(&data) {
            Ok(_) => moved = Instant::now(),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                if moved.elapsed() > PATIENCE {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// This host's load.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    /// The present block, in its part that counts.
    block: Arc<Mutex<Option<u16>>>,
    probes: JoinHandle<Vec<Probe>>,
    _upload: Upload,
}

impl Load {
    /// Begins to upload, and to fetch.
    ///
    /// # Errors
    /// The server does not answer.
    pub(super) fn start(server: SocketAddr) -> Result<Self> {
        let upload = Upload::start(server)?;
        let (stop, block) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (of_thread, of_block) = (Arc::clone(&stop), Arc::clone(&block));
        let probes = thread::spawn(move || probe(server, &of_thread, &of_block));
        Ok(Self { stop, block, probes, _upload: upload })
    }

    /// The trial is there now.
    pub(super) fn is_at(&self, plan: &Plan, standing: &Standing) {
        let since = plan.block().as_secs_f64() - standing.left_s;
        let counts = since >= plan.left_out().as_secs_f64();
        *self.block.lock().expect("no thread panics with it") =
            standing.block.filter(|_| counts).map(|block| block - 1);
    }

    /// Ends it; the short connections that count.
    pub(super) fn finish(self) -> Vec<Probe> {
        self.stop.store(true, Ordering::Relaxed);
        self.probes.join().unwrap_or_default()
    }
}

fn probe(server: SocketAddr, stop: &AtomicBool, at: &Mutex<Option<u16>>) -> Vec<Probe> {
    let mut probes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let block = *at.lock().expect("no thread panics with it");
        let begun = Instant::now();
        let took = fetch(server).map_or(PATIENCE, |()| begun.elapsed());
        if let Some(block) = block {
            probes.push(Probe { block, completion_ms: took.as_secs_f64() * 1000.0 });
        }
        thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
    }
    probes
}

/// A short connection.
fn fetch(server: SocketAddr) -> io::Result<()> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"g")?;
    let (mut buffer, mut got) = ([0; 4096], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 if got == ANSWER_BYTES => return Ok(()),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ if begun.elapsed() > PATIENCE => return Err(ErrorKind::TimedOut.into()),
            read => got += read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_connection_gets_its_answer_beside_an_upload_and_counts_for_its_block() {
        let server = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        thread::spawn(move || serve(server));
        let load = loop {
            if let Ok(load) = Load::start(server) {
                break load;
            }
        };
        let plan = Plan { id: 1, seed: 1, pairs: 2, block_s: 10 };
        let at = |block, left_s| Standing { block: Some(block), left_s, ..Standing::default() };
        load.is_at(&plan, &at(1, 4.0));
        assert_eq!(*load.block.lock().expect("fine"), None);
        load.is_at(&plan, &at(2, 3.0));
        assert_eq!(*load.block.lock().expect("fine"), Some(1));
        thread::sleep(PAUSE * 3);
        let probes = load.finish();
        assert!(
            !probes.is_empty() && probes.iter().all(|probe| probe.block == 1 && probe.completion_ms > 0.0),
            "{probes:?}"
        );
        assert!(fetch("127.0.0.1:1".parse().expect("an address")).is_err());
    }
}
