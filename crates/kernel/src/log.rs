//! libbpf's messages: kept, not printed. Errors quote the last lines.

use libbpf_rs::PrintLevel;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Lines kept: the verifier puts the reason last.
const KEPT: usize = 40;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Routes libbpf's output here and clears the kept lines. libbpf has one output per process.
pub(crate) fn start() {
    libbpf_rs::set_print(Some((PrintLevel::Info, keep)));
    lines().clear();
}

/// The last lines since [`start`], oldest first.
pub(crate) fn tail() -> String {
    lines().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn lines() -> std::sync::MutexGuard<'static, VecDeque<String>> {
    // A panic with the lock held leaves a list of lines intact.
    LINES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn keep(_level: PrintLevel, message: String) {
    let mut lines = lines();
    for line in message.lines().filter(|line| !line.trim().is_empty()) {
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        start();
        keep(PrintLevel::Warn, (0..100).map(|line| format!("line {line}\n\n")).collect());
        let kept = tail();
        assert_eq!(kept.lines().count(), KEPT);
        assert!(kept.starts_with("line 60\n") && kept.ends_with("line 99"), "{kept}");
    }
}
