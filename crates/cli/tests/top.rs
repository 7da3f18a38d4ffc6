//! `lasthop top` on a terminal of its own.
#![allow(missing_docs)]

use crate::common::lasthop;
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A record of one tick, without connections.
const RECORD: &str = r#"{"event":"ready","t_ns":0,"interface":"wlan0","congestion_control":"lasthop","mode":"control","policy":"lasthop","group":"gateway 10.0.0.1","version":"0.1.0"}
{"event":"tick","t_ns":500000000,"late_ns":0,"terminals":4,"flows":[],"beacons":{"sent":1,"unsent":0,"heard":3,"rejected":0},"policy_state":{"common_rate_mbps":1.0,"delivered_mbps":null,"excess_us":21000,"free":false,"harmed":false}}
"#;

struct Top {
    child: Child,
    keys: File,
    shown: Receiver<String>,
}

impl Top {
    /// On a terminal of this many columns and rows, once it has drawn.
    fn on(columns: u16, rows: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        std::fs::write(&record, RECORD).expect("written");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).expect("a terminal");
        let mut command = lasthop(&["top", "--replay", record.to_str().expect("text")]);
        let end = || terminal.slave.try_clone().expect("a descriptor");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
        // This process keeps no end of the child's: when that ends, so does the output.
        drop((command, terminal.slave));
        let keys = File::from(terminal.master);
        let mut output = keys.try_clone().expect("a descriptor");
        let (drawn, has_drawn) = channel();
        let (send, shown) = channel();
        thread::spawn(move || {
            let (mut text, mut buffer) = (Vec::new(), [0; 65_536]);
            // Of a terminal without another end a read fails.
            while let Ok(1..) = output.read(&mut buffer).inspect(|&read| text.extend_from_slice(&buffer[..read])) {
                if text.windows(5).any(|part| part == b"wlan0") {
                    let _ = drawn.send(());
                }
            }
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        });
        let _ = has_drawn.recv();
        Self { child, keys, shown }
    }

    /// How it ended, and whether the terminal is as before: the other screen left, after it was entered.
    fn ended(mut self) -> (ExitStatus, bool) {
        let status = self.child.wait().expect("it ran");
        let shown = self.shown.recv().expect("all that was shown");
        let at = |what: &str| shown.rfind(what);
        (status, at("\u{1b}[?1049h").is_some() && at("\u{1b}[?1049l") > at("\u{1b}[?1049h"))
    }
}

/// It allocated for all of it: 20,000 by 20,000 ended the process, and left the screen.
#[test]
fn a_terminal_of_any_size_is_drawn_on_and_given_back() {
    for (columns, rows) in [(80, 24), (20_000, 20_000)] {
        let mut top = Top::on(columns, rows);
        top.keys.write_all(b"q").expect("a key");
        let (status, is_given_back) = top.ended();
        assert!(status.success() && is_given_back, "{columns} by {rows}: {status}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let top = Top::on(80, 24);
    kill(Pid::from_raw(top.child.id() as i32), Signal::SIGTERM).expect("it runs");
    let (_, is_given_back) = top.ended();
    assert!(is_given_back);
}
