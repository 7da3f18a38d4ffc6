//! `lasthop exec`, end to end. Needs root; in real time.

use crate::common::{can_run, lasthop, result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two laptops that send nothing while the tests run, and a camera that uploads.
const SCENARIO: &str = r#"
name = "Two quiet laptops beside a camera"
duration_s = 600
warmup_s = 0.5
[access]
kind = "wifi"
standard = "802.11n"
[path]
rtt_ms = 20
[[hosts]]
name = "laptop"
count = 2
flows = []
[[hosts]]
name = "camera"
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("quiet.toml"), SCENARIO).expect("a file");
        Self(folder)
    }

    fn exec(&self, options: &[&str], command: &[&str]) -> Command {
        let scenario = self.0.path().join("quiet.toml").display().to_string();
        lasthop(&[&["exec", &scenario], options, &["--"], command].concat())
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        self.exec(options, command).output().expect("the command starts")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until this holds: the kernel removes what a killed process had a moment after it.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a process with this word in its command line runs.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    processes
        .map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default())
        .any(|line| text(&line).split('\0').any(|argument| argument == word) && !text(&line).contains("exec"))
}

#[test]
fn the_command_has_its_own_streams_its_exit_code_and_a_server() {
    if !can_run() {
        return;
    }
    let script = r#"
import os, socket
for name, family in [("server", socket.AF_INET), ("server-8", socket.AF_INET6)]:
    with socket.create_connection(socket.getaddrinfo(name, 80, family)[0][4][:2], timeout=30) as peer:
        print(family.name, peer.recv(100).decode())
# an answer from another address does not come through a connected socket
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.connect((os.environ["LASTHOP_SERVER6"], 80))
datagrams.settimeout(30)
datagrams.send(b"ping")
print(datagrams.recv(100).decode())
print(os.environ["LASTHOP_HOST"], os.environ["LASTHOP_SERVER"], os.environ["LASTHOP_SERVER6"])
raise SystemExit(7)
"#;
    let server = r#"python3 -c '
import socket, threading
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.bind(("::", 80))
def answer():
    while True: datagrams.sendto(b"pong", datagrams.recvfrom(100)[1])
threading.Thread(target=answer, daemon=True).start()
with socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    while True:
        server.accept()[0].sendall(b"hello")'"#;
    let folder = Folder::new();
    let output = folder.run(&["--host", "laptop-2", "--server", server], &["python3", "-c", script]);
    let expected = "AF_INET hello\nAF_INET6 hello\npong\nlaptop-2 10.79.0.1 fd79::1\n";
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), (expected, Some(7)), "{output:?}");
    assert!(text(&output.stderr).contains("aggregate goodput"), "{output:?}");
}

#[test]
fn with_json_the_result_is_alone_on_standard_output() {
    if !can_run() {
        return;
    }
    let output = Folder::new().run(&["--json"], &["sh", "-c", "echo hello; sleep 1"]);
    let result = result(&output);
    assert!(result.scenario["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2), "{output:?}");
    assert!((1.4..10.0).contains(&result.duration_s), "the run is as long as the command: {}", result.duration_s);
    assert!(text(&output.stderr).contains("hello"));
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    for (options, command, words) in [
        (
            &["--host", "labtop-2"][..],
            "true",
            &["--host labtop-2", "did you mean laptop-2", "laptop-1, laptop-2, camera"][..],
        ),
        (&[], "/nonexistent", &["cannot run /nonexistent on laptop-1: there is no such program"]),
        (&["--host", "camera"], "nosuch-program", &["cannot run nosuch-program on camera: there is no such program"]),
        (&["--server", "exit 3"], "true", &["exit 3", "ended before it listened"]),
        (&["--netns", "a/b"], "true", &["--netns", "a/b"]),
    ] {
        let output = folder.run(options, &[command]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn a_killed_run_leaves_nothing_but_a_name_which_the_next_one_takes_away() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    let name = format!("lasthop-test-{}", std::process::id());
    let path = Path::new("/run/netns").join(&name);
    // A number of seconds that no other process has.
    let seconds = format!("3{}", std::process::id());
    let mut lab = folder.exec(&["--netns", &name], &["sleep", &seconds]).spawn().expect("the command starts");
    until("the command begins", || runs(&seconds) && path.exists());

    // Two at once do not meet: the other one neither has the first one's name nor takes it away.
    let other = folder.run(&[], &["true"]);
    assert_eq!(other.status.code(), Some(0), "{other:?}");
    assert!(path.exists());
    let taken = folder.run(&["--netns", &name], &["true"]);
    assert!(taken.status.code() == Some(2) && text(&taken.stderr).contains("is there already"), "{taken:?}");

    lab.kill().expect("it runs");
    lab.wait().expect("it has ended");
    until("the command dies with the laboratory", || !runs(&seconds));
    // Only a start takes it away, this one's or that of another test.
    assert_eq!(folder.run(&[], &["true"]).status.code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn a_signal_reaches_the_command_and_is_in_the_exit_code() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    for (number, signal) in [Signal::SIGTERM, Signal::SIGINT].into_iter().enumerate() {
        let seconds = format!("4{number}{}", std::process::id());
        let lab = folder.exec(&[], &["sleep", &seconds]).spawn().expect("the command starts");
        until("the command begins", || runs(&seconds));
        kill(Pid::from_raw(lab.id() as i32), signal).expect("it runs");
        let output = lab.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{output:?}");
        assert!(text(&output.stderr).contains("aggregate goodput"), "the run has a report all the same: {output:?}");
    }
}

#[test]
fn a_signal_reaches_the_command_once_whoever_else_gets_it() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    // Counts signals until a second after the first one.
    let count = r#"
import os, signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: got.append(time.monotonic()))
open(sys.argv[1], "w").close()
while not got or time.monotonic() < got[0] + 1:
    time.sleep(0.01)
print(len(got))
"#;
    let own = |pid: Pid| vec![pid];
    let group = |pid: Pid| vec![Pid::from_raw(-pid.as_raw())];
    // As timeout(1) does.
    let both = |pid: Pid| vec![pid, Pid::from_raw(-pid.as_raw())];
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        for (number, whom) in [&own as &dyn Fn(Pid) -> Vec<Pid>, &group, &both].into_iter().enumerate() {
            let ready = folder.0.path().join(format!("{signal}{number}"));
            let mut command = folder.exec(&[], &["python3", "-c", count, ready.to_str().expect("a path")]);
            let lab = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let lab = lab.expect("the command starts");
            until("the command begins", || ready.exists());
            for pid in whom(Pid::from_raw(lab.id() as i32)) {
                kill(pid, signal).expect("it runs");
            }
            let output = lab.wait_with_output().expect("it ends");
            assert_eq!(text(&output.stdout).trim(), "1", "{signal}, case {number}: {output:?}");
        }
    }
}

/// Python that uploads to the server for so many seconds, over TCP or UDP.
fn upload(kind: &str, seconds: u32) -> String {
    format!(
        r#"
import os, socket, time
sender = socket.socket(socket.AF_INET, socket.{kind})
sender.connect((os.environ["LASTHOP_SERVER"], 5000))
end = time.monotonic() + {seconds}
block = bytes(1400 if "{kind}" == "SOCK_DGRAM" else 65536)
while time.monotonic() < end:
    try:
        sender.send(block)
    except ConnectionRefusedError:
        pass
"#
    )
}

#[test]
fn a_guest_of_today_fills_aggregates_as_the_scenarios_own_flows_do() {
    if !can_run() {
        return;
    }
    let sink = r#"python3 -c '
import socket, threading
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 5000))
def discard(receive):
    while receive(1 << 20): pass
threading.Thread(target=discard, args=(datagrams.recv,), daemon=True).start()
with socket.create_server(("", 5000)) as server:
    while True:
        discard(server.accept()[0].recv)'"#;
    let folder = Folder::new();
    let modern = ["--set", "hosts.0.era=modern", "--set", "hosts.0.tcp.tsq_pacing_shift=7"];
    let options = [&["--host", "laptop-1", "--server", sink, "--json"][..], &modern].concat();
    for kind in ["SOCK_STREAM", "SOCK_DGRAM"] {
        let output = folder.run(&options, &["python3", "-c", &upload(kind, 4)]);
        let station = &result(&output).access.stations[0];
        // with two packets of TCP at a time they are of two to four frames
        assert!(station.up_aggregate_frames.is_some_and(|frames| frames > 8.0), "{kind}: {station:?}");
    }
}

#[test]
fn a_shell_that_had_the_terminal_gives_it_back() {
    if !can_run() {
        return;
    }
    // A shell with jobs of its own, in a terminal that the reader behind it needs again.
    let script = r#"
import os, pty, sys
command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execvp("sh", ["sh", "-c", '"$@" && read line && echo "read $line"', "sh", *command])
os.write(terminal, b"")
said = b""
while b"the shell ran" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"exit\n")
while b"aggregate goodput" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"again\n")
try:
    while chunk := os.read(terminal, 4096):
        said += chunk
except OSError:
    pass
print(said.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;
    let folder = Folder::new();
    let shell =
        folder.exec(&[], &["bash", "--norc", "-i", "-c", "set -m; sh -c true; echo the shell ran; bash --norc -i"]);
    let mut python = Command::new("timeout");
    python.args(["60", "python3", "-c", script]).arg(shell.get_program()).args(shell.get_args());
    let output = python.output().expect("python3");
    assert!(text(&output.stdout).contains("read again"), "{output:?}");
}

#[test]
fn a_capture_of_kernel_hosts_has_what_the_result_counts() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    let file = folder.0.path().join("run.pcapng").display().to_string();
    let scenario = folder.0.path().join("quiet.toml").display().to_string();
    let settings = ["warmup_s=0", "duration_s=4", "access.queue_packets=10", "access.frame_error_rate=0.1"];
    let mut run = lasthop(&["run", &scenario, "--hosts", "kernel", "--json", "--pcap", &file, "--snaplen", "96"]);
    settings.iter().for_each(|setting| _ = run.args(["--set", setting]));
    // three that upload, so that they collide
    run.args(["--set", "hosts.1.count=3"]);
    let result = result(&run.output().expect("the command starts"));
    // Reads the blocks of a pcapng file: an interface's name, a packet's time, its bytes and its comment.
    let script = r#"
import collections, struct, sys
file = open(sys.argv[1], "rb").read()
at, names, counts, collided = 0, [], collections.Counter(), set()
def option(at, end, code):
    while at < end:
        kind, length = struct.unpack_from("<HH", file, at)
        if kind == code:
            return file[at + 4 : at + 4 + length].decode()
        at += 4 + (length + 3 & ~3)
    return ""
while at < len(file):
    kind, length = struct.unpack_from("<II", file, at)
    assert struct.unpack_from("<I", file, at + length - 4)[0] == length
    if kind == 1:
        names.append(option(at + 16, at + length - 4, 2))
    if kind == 6:
        number, high, low, kept, size = struct.unpack_from("<5I", file, at + 8)
        packet, said = file[at + 28 : at + 28 + kept], option(at + 28 + (kept + 3 & ~3), at + length - 4, 1)
        assert kept <= 96, kept
        name = names[number]
        if name == "air":
            radio = struct.unpack_from("<H", packet, 2)[0]
            counts["retries"] += packet[radio] & 0x0C == 8 and packet[radio + 1] & 8 > 0
            if said.startswith("collision"):
                collided.add((high, low))
        elif name == "lost":
            counts["drops"] += said.startswith("lost: queue full at access_point")
            counts["given up"] += said.startswith(("lost: retry limit", "lost: too late"))
        else:
            counts[name] += packet[0] == 0x45
    at += length
print(counts["retries"], len(collided), counts["drops"], counts["given up"])
print(*(counts[name] for name in ["camera-1", "laptop-1"]))
"#;
    let output = Command::new("python3").args(["-c", script, &file]).output().expect("python3");
    let said = text(&output.stdout);
    let access = &result.access;
    let counted = [access.retries, access.collisions, access.downlink_drops, access.retry_drops];
    let expected = counted.map(|count| count.to_string()).join(" ");
    let (counts, packets) = said.split_once('\n').expect("two lines");
    assert_eq!(counts, expected, "{output:?}");
    assert!(access.retries > 0 && access.collisions > 0 && access.downlink_drops > 0, "{access:?}");
    let of_camera: Option<u64> = packets.split(' ').next().and_then(|count| count.parse().ok());
    let sent = result.flows[0].goodput_mbps * 1e6 / 8.0 * result.duration_s / 1448.0;
    assert!(of_camera.is_some_and(|count| count as f64 >= sent) && packets.trim().ends_with(" 0"), "{packets} {sent}");
}

#[test]
fn programs_on_several_hosts_run_at_once_and_the_first_that_fails_says_the_exit_code() {
    if !can_run() {
        return;
    }
    let folder = Folder::new();
    let says = "echo $LASTHOP_HOST | tee /dev/stderr; exit $0";
    let commands = [
        "sh", "-c", says, "0", "--on", "laptop-2", "--", "sh", "-c", says, "7", "--on", "camera", "--", "sleep", "0.3",
    ];
    let output = folder.run(&["--on", "laptop-1"], &commands);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        (lines.as_slice(), output.status.code()),
        (&["laptop-1 | laptop-1", "laptop-2 | laptop-2"][..], Some(7)),
        "{output:?}"
    );
    assert!(
        errors.contains("laptop-2 | laptop-2\n") && errors.contains("note: sh on laptop-2 ended with 7"),
        "{errors}"
    );
    let seconds = format!("5{}", std::process::id());
    let lab = folder.exec(&[], &["sleep", &seconds, "--on", "camera", "--", "sleep", &seconds]).spawn();
    let lab = lab.expect("the command starts");
    until("the commands begin", || runs(&seconds));
    kill(Pid::from_raw(lab.id() as i32), Signal::SIGTERM).expect("it runs");
    let output = lab.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(128 + Signal::SIGTERM as i32), "{output:?}");
    until("both have ended", || !runs(&seconds));
}
