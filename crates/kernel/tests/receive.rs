//! What a host is sent is bounded by the windows that it advertises, while the lease runs, and no promise is taken back.
#![allow(missing_docs, unsafe_code)]

mod support;

use lasthop_kernel::{Kernel, Mode, Options};
use lasthop_laws::Bound;
use lasthop_units::Span;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::middlebox::{Fate, Path, RST, Way};
use support::{A4, A6, B4, B6, Flow, Net, eventually, load, run, set_control, throughout};

const LONG: Span = Span::from_secs(600);
/// Payload of a full segment: 1500 bytes less the headers, with timestamps.
const SEGMENT: [u64; 2] = [1448, 1428];

fn receive(bytes: u64) -> Option<Bound> {
    Some(Bound { max_receive_bytes: bytes, ..Bound::default() })
}

fn load_on(path: &Path, mode: Mode) -> Kernel {
    path.a.run(|| {
        let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
        Kernel::load(&Options::new(index, mode).expect("cgroup2")).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// A path of 10 ms; `a` is told to scale its windows by `scale`.
fn path(scale: u8) -> Path {
    let path = Path::new(Duration::from_millis(5), |_, _| Fate::Forward);
    path.a.run(|| match scale {
        0 => run("sysctl -qw net.ipv4.tcp_window_scaling=0"),
        scale => {
            let bytes = 1u64 << (15 + scale);
            let words = ["net.ipv4.tcp_rmem=4096 131072".to_owned(), bytes.to_string()].join(" ");
            let done = Command::new("sysctl").args(["-qw", &words]).status().expect("sysctl");
            assert!(done.success());
        }
    });
    path
}

/// What `a` has advertised since the path last forgot: acknowledgement and window in bytes of each segment, in order.
fn advertised(path: &Path, scale: u8) -> Vec<(u32, u32)> {
    let seen = path.seen.lock().expect("no panic");
    let from_a = seen.iter().filter(|(way, _)| *way == Way::ToServer).map(|(_, segment)| segment);
    from_a
        .filter(|segment| !segment.is_syn() && segment.flags() & RST == 0)
        .map(|segment| {
            assert!(segment.is_whole(), "{segment:?}");
            (segment.acknowledges(), u32::from(segment.window()) << scale)
        })
        .collect()
}

/// The latest window that `a` has advertised; 0: none yet.
fn window(path: &Path, scale: u8) -> u64 {
    advertised(path, scale).last().map_or(0, |(_, window)| u64::from(*window))
}

#[track_caller]
fn assert_no_edge_moves_back(path: &Path, scale: u8) {
    let mut greatest = None;
    for (ack, window) in advertised(path, scale) {
        let edge = ack.wrapping_add(window);
        let before = *greatest.get_or_insert(edge);
        assert!(edge.wrapping_sub(before) as i32 >= 0, "an edge went from {before} back to {edge}");
        greatest = Some(edge);
    }
}

/// The window in which a limit is told: in units of the field, rounded up.
fn told(bytes: u64, scale: u8) -> u64 {
    bytes.next_multiple_of(1 << scale)
}

#[track_caller]
fn assert_a_limit_holds(scale: u8, address: &str, mode: Mode) {
    let path = path(scale);
    let segment = SEGMENT[usize::from(address == A6)];
    let mut kernel = load_on(&path, mode);
    kernel.bound_received().expect("Linux 6.6");
    let flow = Flow::start(&path.b, &path.a, address);
    let cookie = support::cookie(&flow.receiver);
    let open = if scale == 0 { 40_000 } else { 100_000 };
    eventually("an open window", || window(&path, scale) > open);
    let scales = path
        .seen
        .lock()
        .expect("no panic")
        .iter()
        .find_map(|(way, segment)| (*way == Way::ToServer && segment.is_syn()).then(|| segment.window_scale()));
    assert_eq!(scales, Some((scale > 0).then_some(scale)));

    // The last one is less than anybody may be limited to.
    for limit in [20 * segment, 2 * segment, 10 * segment, 1] {
        let least = told(limit.max(2 * segment), scale);
        kernel.set_bounds(None, &[(cookie, receive(limit))], LONG).expect("bounds");
        eventually("the window of a limit", || window(&path, scale) == least);
        let (from, before) = (advertised(&path, scale).len(), flow.received());
        // Windows are advertised on data, too.
        throughout(Duration::from_millis(100), || (&*flow.receiver).write_all(&[0; 500]).expect("room"));
        eventually("a bounded flow goes on", || flow.received() > before + 100_000);
        let windows: Vec<_> = advertised(&path, scale)[from..].iter().map(|(_, window)| u64::from(*window)).collect();
        assert!(windows.iter().all(|window| *window == least), "{least}: {windows:?}");
    }
    kernel.set_bounds(None, &[(cookie, None)], LONG).expect("bounds");
    eventually("an open window again", || window(&path, scale) > open);
    assert_no_edge_moves_back(&path, scale);
}

#[test]
fn a_limit_holds_at_any_scale_and_no_edge_moves_back() {
    needs_root!();
    assert_a_limit_holds(0, A4, Mode::Control);
    assert_a_limit_holds(10, A4, Mode::Control);
    assert_a_limit_holds(7, A6, Mode::Control);
}

#[test]
fn a_limit_holds_beside_a_clamp() {
    needs_root!();
    assert_a_limit_holds(7, A4, Mode::Clamp);
}

#[test]
fn only_controlled_sockets_are_limited_and_only_while_the_lease_runs() {
    needs_root!();
    let path = path(7);
    let early = Flow::start(&path.b, &path.a, A4);
    eventually("an open window", || window(&path, 7) > 100_000);
    let mut kernel = load_on(&path, Mode::Control);
    kernel.bound_received().expect("Linux 6.6");
    kernel.set_bounds(receive(30_000), &[], LONG).expect("bounds");
    throughout(Duration::from_millis(300), || assert!(window(&path, 7) > told(30_000, 7), "nobody has taken it over"));
    assert_eq!(kernel.adopt().expect("a walk").adopted, 1);
    eventually("an adopted socket is limited", || window(&path, 7) == told(30_000, 7));
    set_control(&*early.receiver, "reno");
    eventually("not with a control of its own", || window(&path, 7) > 100_000);
    set_control(&*early.receiver, kernel.name());
    eventually("limited again", || window(&path, 7) == told(30_000, 7));
    kernel.set_bounds(receive(30_000), &[], Span::from_millis(50)).expect("bounds");
    eventually("an open window after the lease", || window(&path, 7) > 100_000);
    kernel.set_bounds(receive(30_000), &[], LONG).expect("bounds");
    eventually("a new lease", || window(&path, 7) == told(30_000, 7));
    kernel.release().expect("released");
    eventually("an open window after release", || window(&path, 7) > 100_000);
    assert_no_edge_moves_back(&path, 7);
}

#[test]
fn aggregates_of_an_ethernet_link_are_limited() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    kernel.bound_received().expect("Linux 6.6");
    kernel.set_bounds(receive(60_000), &[], LONG).expect("bounds");
    for address in [A4, A6] {
        let flow = Flow::start(&net.b, &net.a, address);
        // Large aggregates of data, with windows on them.
        let back = Flow::start(&net.a, &net.b, if address == A4 { B4 } else { B6 });
        let before = flow.received();
        eventually("much is received", || flow.received() > before + 100_000_000 && back.received() > 100_000_000);
        throughout(Duration::from_millis(100), || {
            let unacked = flow.info().tcpi_unacked;
            assert!(unacked <= 60_000 / 1428 + 2, "{unacked} in flight");
        });
    }
}

#[test]
fn a_killed_loader_leaves_no_limit() {
    needs_root!();
    let path = path(7);
    let index = path.a.interface("a0").to_string();
    let mut child = path.a.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "a_loader_to_be_killed", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_INTERFACE", index).stdout(Stdio::piped()).spawn().expect("another process")
    });
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let loaded = output.lines().any(|line| line.expect("text") == "loaded");
    let flow = Flow::start(&path.b, &path.a, A4);
    eventually("limited", || flow.received() > 100_000 && window(&path, 7) == told(30_000, 7));
    child.kill().expect("it runs");
    child.wait().expect("it is gone");
    assert!(loaded);
    eventually("an open window", || window(&path, 7) > 100_000);
    assert_no_edge_moves_back(&path, 7);
}

#[test]
#[ignore = "the other process of the test above"]
fn a_loader_to_be_killed() {
    let index = std::env::var("LASTHOP_TEST_INTERFACE").expect("from the test").parse().expect("a number");
    let options = Options::new(index, Mode::Control).expect("cgroup2");
    let mut kernel = Kernel::load(&options).unwrap_or_else(|error| panic!("{error}"));
    kernel.bound_received().expect("Linux 6.6");
    kernel.set_bounds(receive(30_000), &[], LONG).expect("bounds");
    println!("\nloaded");
    std::thread::sleep(Duration::from_secs(120));
}

/// Signs what this socket exchanges with `peer`: TCP_MD5SIG of tcp(7), `struct tcp_md5sig`.
fn sign(socket: &impl AsRawFd, peer: &str) {
    const TCP_MD5SIG: i32 = 14;
    let peer: Ipv4Addr = peer.parse().expect("an address");
    let mut signature = [0_u8; 128 + 8 + 80];
    signature[..2].copy_from_slice(&(nix::libc::AF_INET as u16).to_ne_bytes());
    signature[4..8].copy_from_slice(&peer.octets());
    signature[130..132].copy_from_slice(&3_u16.to_ne_bytes());
    signature[136..139].copy_from_slice(b"key");
    let (at, length) = (signature.as_ptr().cast(), signature.len() as u32);
    // SAFETY: the option's value is these bytes, which live during the call.
    let done = unsafe { nix::libc::setsockopt(socket.as_raw_fd(), nix::libc::IPPROTO_TCP, TCP_MD5SIG, at, length) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// A signature covers the window, so each lowered one was a segment that the other side dropped.
#[test]
fn a_signed_connection_is_not_held_back_and_goes_on() {
    needs_root!();
    let net = Net::direct();
    let mut kernel = load(&net);
    kernel.bound_received().expect("Linux 6.6");
    let mut flow = Flow::between(&net.b, &net.a, A4, |socket| sign(socket, A4), |listener| sign(listener, B4));
    kernel.adopt().expect("a walk");
    kernel.set_bounds(None, &[(support::cookie(&flow.receiver), receive(4 * SEGMENT[0]))], LONG).expect("bounds");
    flow.send();
    eventually("data come", || flow.received() > 2_000_000);
    assert!(flow.info().tcpi_snd_wnd > 8 * SEGMENT[0] as u32, "{} bytes", flow.info().tcpi_snd_wnd);
}
