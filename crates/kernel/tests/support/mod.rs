//! Two hosts in anonymous network namespaces of their own, with a link or a router between them, and TCP flows on it.
//! A namespace lives as long as a thread or a file holds it, so nothing is left behind even when a test is killed.
#![allow(dead_code, unreachable_pub, unsafe_code, missing_docs)] // each test uses its part of it

pub mod middlebox;

use libbpf_rs::{AsRawLibbpf as _, MapCore as _};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long something that must happen may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether to go on: says why not, and fails where skipping is forbidden.
pub fn may_run() -> bool {
    let root = nix::unistd::geteuid().is_root();
    let required = std::env::var_os("LASTHOP_REQUIRE_ROOT_TESTS").is_some_and(|value| value == "1");
    assert!(root || !required, "this test needs root, and LASTHOP_REQUIRE_ROOT_TESTS=1 forbids skipping it");
    if !root {
        println!("skipped: network namespaces and BPF programs need root");
    }
    root
}

/// Returns from the test where it cannot run.
#[macro_export]
macro_rules! needs_root {
    () => {
        if !support::may_run() {
            return;
        }
    };
}

/// One host: a network namespace.
pub struct Host {
    namespace: File,
}

impl Host {
    fn new() -> Self {
        let namespace = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
            run("ip link set lo up");
            File::open("/proc/thread-self/ns/net").expect("our own namespace")
        });
        Self { namespace: namespace.join().expect("a host") }
    }

    /// Does `work` on a thread in this host and waits for it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                setns(&self.namespace, CloneFlags::CLONE_NEWNET).expect("entering a host");
                work()
            });
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts `work` on a thread in this host.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let namespace = self.namespace.try_clone().expect("another handle");
        thread::spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).expect("entering a host");
            work()
        })
    }

    /// The number of an interface of this host.
    pub fn interface(&self, name: &str) -> u32 {
        self.run(|| nix::net::if_::if_nametoindex(name).expect("the interface exists"))
    }

    /// The name of the host's default congestion control.
    pub fn default_control(&self) -> String {
        self.run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
            getsockopt(&listener, sockopt::TcpCongestion).expect("its control").to_string_lossy().into_owned()
        })
    }
}

/// Runs a command line on the calling thread's host.
pub fn run(line: &str) {
    let words: Vec<_> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Joins two hosts by a veth pair.
fn join(left: &Host, left_name: &str, right: &Host, right_name: &str) {
    let namespace = right.namespace.try_clone().expect("another handle");
    let right_path = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd());
    left.run(|| {
        run(&format!("ip link add {left_name} type veth peer name {right_name}"));
        run(&format!("ip link set {right_name} netns {right_path}"));
        run(&format!("ip link set {left_name} up"));
    });
    right.run(|| run(&format!("ip link set {right_name} up")));
}

/// Two hosts, `a` with 10.77.0.1 and fd77::1, `b` with 10.78.0.1 and fd78::1, and what is between them.
pub struct Net {
    pub a: Host,
    pub b: Host,
    router: Option<Host>,
}

impl Net {
    /// A direct link of a0 and b0.
    pub fn direct() -> Self {
        let net = Self { a: Host::new(), b: Host::new(), router: None };
        join(&net.a, "a0", &net.b, "b0");
        net.address();
        net
    }

    /// A router with a slow, short queue towards `b`: whoever sends more loses packets.
    pub fn bottleneck(rate_mbit: u32, queue_bytes: u32) -> Self {
        let net = Self { a: Host::new(), b: Host::new(), router: Some(Host::new()) };
        let router = net.router.as_ref().expect("just made");
        join(&net.a, "a0", router, "ra");
        join(router, "rb", &net.b, "b0");
        net.address();
        router.run(|| {
            for line in [
                "ip addr add 10.77.0.2/24 dev ra",
                "ip addr add 10.78.0.2/24 dev rb",
                "ip addr add fd77::2/64 dev ra nodad",
                "ip addr add fd78::2/64 dev rb nodad",
                "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
            ] {
                run(line);
            }
            run(&format!("tc qdisc add dev rb root tbf rate {rate_mbit}mbit burst 4k limit {queue_bytes}"));
        });
        net
    }

    /// Has the router of a bottleneck lose this share of the packets towards `b`, each by itself.
    pub fn lose_percent(&self, percent: u32) {
        self.router.as_ref().expect("this net has one").run(|| {
            run("nft add table ip lossy");
            run("nft add chain ip lossy forward {type filter hook forward priority 0;}");
            run(&format!("nft add rule ip lossy forward oifname rb numgen random mod 100 lt {percent} drop"));
        });
    }

    /// The router of a bottleneck.
    pub fn router(&self) -> Option<&Host> {
        self.router.as_ref()
    }

    fn address(&self) {
        let (a, b) = if self.router.is_some() { ("10.77.0.2", "10.78.0.2") } else { ("a0", "b0") };
        let via = |next: &str, six: &str, device: &str| match next {
            _ if self.router.is_some() => (format!("via {next}"), format!("via {six}")),
            _ => (format!("dev {device}"), format!("dev {device}")),
        };
        self.a.run(|| {
            let (four, six) = via(a, "fd77::2", "a0");
            for line in ["ip addr add 10.77.0.1/24 dev a0", "ip addr add fd77::1/64 dev a0 nodad"] {
                run(line);
            }
            run(&format!("ip route add 10.78.0.0/24 {four}"));
            run(&format!("ip route add fd78::/64 {six}"));
        });
        self.b.run(|| {
            let (four, six) = via(b, "fd78::2", "b0");
            for line in ["ip addr add 10.78.0.1/24 dev b0", "ip addr add fd78::1/64 dev b0 nodad"] {
                run(line);
            }
            run(&format!("ip route add 10.77.0.0/24 {four}"));
            run(&format!("ip route add fd77::/64 {six}"));
        });
    }
}

/// A connection between the two hosts, data going from the side that `Flow::start` names first. Ends when dropped.
pub struct Flow {
    pub sender: Arc<TcpStream>,
    pub receiver: Arc<TcpStream>,
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// socket(7): SO_MAX_PACING_RATE without a limit.
pub const NO_PACE: u32 = u32::MAX;

pub const A4: &str = "10.77.0.1";
pub const A6: &str = "fd77::1";
pub const B4: &str = "10.78.0.1";
pub const B6: &str = "fd78::1";

impl Flow {
    /// A connection opened from `from` to `to`, which has `address`; nothing is sent.
    pub fn idle(from: &Host, to: &Host, address: &str) -> Self {
        Self::idle_with(from, to, address, |_| {})
    }

    /// The same, with the connecting socket prepared by `prepare` before it connects.
    pub fn idle_with(
        from: &Host,
        to: &Host,
        address: &str,
        prepare: impl Fn(&std::os::fd::OwnedFd) + Send + Sync,
    ) -> Self {
        Self::between(from, to, address, prepare, |_| {})
    }

    /// The same, with the listening socket prepared too.
    pub fn between(
        from: &Host,
        to: &Host,
        address: &str,
        prepare: impl Fn(&std::os::fd::OwnedFd) + Send + Sync,
        prepare_listener: impl Fn(&TcpListener),
    ) -> Self {
        let ip: IpAddr = address.parse().expect("an address");
        let listener = to.run(|| TcpListener::bind((ip, 0)).expect("a listener"));
        prepare_listener(&listener);
        let target = listener.local_addr().expect("bound");
        let sender = from.run(|| connect(target, &prepare));
        let (receiver, _) = listener.accept().expect("the connection just opened");
        Self {
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
            received: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        }
    }

    /// A connection over which the opening side sends as fast as it can.
    pub fn start(from: &Host, to: &Host, address: &str) -> Self {
        let mut flow = Self::idle(from, to, address);
        flow.send();
        flow
    }

    /// Starts sending as fast as TCP takes it.
    pub fn send(&mut self) {
        let timeout = Some(Duration::from_millis(50));
        self.sender.set_write_timeout(timeout).expect("a timeout");
        self.receiver.set_read_timeout(timeout).expect("a timeout");
        let (sender, stop) = (Arc::clone(&self.sender), Arc::clone(&self.stop));
        self.threads.push(thread::spawn(move || {
            let data = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                match (&*sender).write(&data) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                    _ => {}
                }
            }
        }));
        let (receiver, stop, received) =
            (Arc::clone(&self.receiver), Arc::clone(&self.stop), Arc::clone(&self.received));
        self.threads.push(thread::spawn(move || {
            let mut data = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                match (&*receiver).read(&mut data) {
                    Ok(0) => break,
                    Ok(count) => _ = received.fetch_add(count as u64, Ordering::Relaxed),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        }));
    }

    /// Bytes that the receiving application has read so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The sending socket's number.
    pub fn cookie(&self) -> u64 {
        cookie(&self.sender)
    }

    /// The sending socket's congestion control.
    pub fn control(&self) -> String {
        control(&self.sender)
    }

    /// Limits its pacing rate as an application does, in bytes per second; [`NO_PACE`]: no limit.
    pub fn set_max_pacing_rate(&self, rate: u32) {
        set_u32(&*self.sender, nix::libc::SOL_SOCKET, nix::libc::SO_MAX_PACING_RATE, rate)
            .expect("every socket has it");
    }

    /// What an application would be told if it asked for that limit.
    pub fn max_pacing_rate(&self) -> u32 {
        get_u32(&*self.sender, nix::libc::SOL_SOCKET, nix::libc::SO_MAX_PACING_RATE).expect("every socket has it")
    }

    /// The sending socket's `TCP_INFO`.
    pub fn info(&self) -> nix::libc::tcp_info {
        tcp_info(&self.sender)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn connect(target: SocketAddr, prepare: impl Fn(&std::os::fd::OwnedFd)) -> TcpStream {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};
    let family = if target.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    prepare(&socket);
    connect(socket.as_raw_fd(), &SockaddrStorage::from(target)).unwrap_or_else(|error| panic!("{target}: {error}"));
    TcpStream::from(socket)
}

/// A socket's number.
pub fn cookie(socket: &TcpStream) -> u64 {
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as nix::libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which has as many.
    let result = unsafe {
        nix::libc::getsockopt(
            socket.as_raw_fd(),
            nix::libc::SOL_SOCKET,
            nix::libc::SO_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    assert_eq!(result, 0, "SO_COOKIE");
    cookie
}

/// Sets an option that is a number.
pub fn set_u32(socket: &impl std::os::fd::AsFd, level: i32, option: i32, value: u32) -> nix::Result<()> {
    // SAFETY: the kernel reads four bytes of `value`, which has as many.
    let result = unsafe {
        nix::libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<u32>() as nix::libc::socklen_t,
        )
    };
    nix::errno::Errno::result(result).map(drop)
}

/// An option that is a number.
pub fn get_u32(socket: &impl std::os::fd::AsFd, level: i32, option: i32) -> nix::Result<u32> {
    let (mut value, mut length) = (0u32, size_of::<u32>() as nix::libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many.
    let result = unsafe {
        let value = (&raw mut value).cast();
        nix::libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value, &raw mut length)
    };
    nix::errno::Errno::result(result).map(|_| value)
}

/// A socket's congestion control.
pub fn control(socket: &impl std::os::fd::AsFd) -> String {
    getsockopt(socket, sockopt::TcpCongestion).expect("TCP_CONGESTION").to_string_lossy().into_owned()
}

/// Gives a socket a congestion control.
pub fn set_control(socket: &impl std::os::fd::AsFd, name: &str) {
    setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// What the kernel itself says of a socket.
pub fn tcp_info(socket: &TcpStream) -> nix::libc::tcp_info {
    lasthop_kernel::tcp_info(socket).expect("TCP_INFO").0
}

/// Waits until `happened`; fails with `what` when it does not in [`PATIENCE`].
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "{what} has not happened");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Calls `look` every few milliseconds for `span`.
pub fn throughout(span: Duration, mut look: impl FnMut()) {
    let start = Instant::now();
    while start.elapsed() < span {
        look();
        thread::sleep(Duration::from_millis(2));
    }
}

/// The programs, loaded for `a0` of host `a` as most tests want them.
pub fn load(net: &Net) -> lasthop_kernel::Kernel {
    load_with(net, lasthop_kernel::Mode::Control, |_| {})
}

/// The same in the best mode that this kernel has.
pub fn load_best(net: &Net) -> lasthop_kernel::Kernel {
    load_with(net, modes().next().expect("one"), |_| {})
}

/// The same in another mode, with options changed by `change`.
pub fn load_with(
    net: &Net,
    mode: lasthop_kernel::Mode,
    change: impl FnOnce(&mut lasthop_kernel::Options) + Send,
) -> lasthop_kernel::Kernel {
    net.a.run(|| {
        let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
        let mut options = lasthop_kernel::Options::new(index, mode).expect("cgroup2");
        change(&mut options);
        lasthop_kernel::Kernel::load(&options).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The modes that bound, of which kernels before 6.4 have the second only.
pub fn modes() -> impl Iterator<Item = lasthop_kernel::Mode> {
    use lasthop_kernel::Mode::{Clamp, Control};
    let kernel = libbpf_rs::btf::Btf::from_vmlinux().expect("the kernel's types");
    let has_links = kernel.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("bpf_struct_ops_link").is_some();
    [Control, Clamp].into_iter().filter(move |mode| *mode == Clamp || has_links)
}

/// Whether this is Linux MAJOR.MINOR or later.
pub fn is_since(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc");
    let mut parts = release.split(['.', '-', '\n']).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(major), Some(minor))
}

/// Whether `tcp_congestion_ops` has `cwnd_event_tx_start` (seen in Linux 7.2).
fn kernel_tells_starts() -> bool {
    let kernel = libbpf_rs::btf::Btf::from_vmlinux().expect("the kernel's types");
    let ops = kernel.type_by_name::<libbpf_rs::btf::types::Struct<'_>>("tcp_congestion_ops").expect("its type");
    ops.iter().any(|member| member.name == Some(std::ffi::OsStr::new("cwnd_event_tx_start")))
}

/// A congestion control of a test that writes what it sees to the ring `calls`; registered until it is dropped. It counts
/// in its `.bss`, first what found no room.
pub struct Recorder {
    object: libbpf_rs::Object,
    pub name: String,
    _link: libbpf_rs::Link,
}

impl Recorder {
    /// Registers the control in the map `ops`, which is called `placeholder` so far, as `name`.
    pub fn start(mut object: libbpf_rs::OpenObject, ops: &str, placeholder: &str, name: String) -> Self {
        let unused = match kernel_tells_starts() {
            true => "_cwnd_event",
            false => "_cwnd_event_tx_start",
        };
        let mut programs = object.progs_mut();
        let unused =
            programs.find(|program| program.name().to_string_lossy().ends_with(unused)).expect("both are there");
        // before loading, libbpf keeps a pointer to its own `bpf_program` in place of the function
        let unused = (unused.as_libbpf_object().as_ptr() as usize).to_ne_bytes();
        drop(programs);
        let mut maps = object.maps_mut();
        let mut map = maps.find(|map| map.name() == ops).expect("the map of the control");
        let value = map.initial_value_mut().expect("a struct_ops map has one");
        let at = value.windows(placeholder.len()).position(|bytes| bytes == placeholder.as_bytes()).expect("its name");
        value[at..at + 16].fill(0);
        assert!(name.len() < 16, "{name}");
        value[at..at + name.len()].copy_from_slice(name.as_bytes());
        let place = value.chunks_exact_mut(size_of::<usize>()).find(|place| **place == unused).expect("its place");
        place.fill(0);
        drop(maps);

        let mut object = object.load().unwrap_or_else(|error| panic!("the kernel refuses the recorder: {error}"));
        let link = object.maps_mut().find(|map| map.name() == ops).expect("the map").attach_struct_ops();
        let _link = link.unwrap_or_else(|error| panic!("registering {name}: {error}"));
        Self { object, name, _link }
    }

    /// All that is written while `work` runs; `None` if some found no room in the ring, for nobody emptied it in time.
    pub fn record<T>(&self, read: impl Fn(&[u8]) -> T, work: impl FnOnce() + Send) -> Option<Vec<T>> {
        let calls = std::cell::RefCell::new(Vec::new());
        let map = self.object.maps().find(|map| map.name() == "calls").expect("the ring");
        let mut builder = libbpf_rs::RingBufferBuilder::new();
        let take = |bytes: &[u8]| {
            calls.borrow_mut().push(read(bytes));
            0
        };
        builder.add(&map, take).expect("the ring");
        let ring = builder.build().expect("the ring");
        thread::scope(|scope| {
            let worker = scope.spawn(work);
            while !worker.is_finished() {
                // not poll(), which the end of a child process interrupts; the ring has room for seconds
                ring.consume().expect("the ring");
                thread::sleep(Duration::from_millis(10));
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        ring.consume().expect("the ring");
        drop(ring);
        (self.counter(0) == 0).then(|| calls.into_inner())
    }

    /// One of its counters.
    pub fn counter(&self, number: usize) -> u64 {
        let bss = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss")).expect("counters");
        let value = bss.lookup(&0u32.to_ne_bytes(), libbpf_rs::MapFlags::ANY).expect("readable").expect("present");
        u64::from_ne_bytes(value[8 * number..][..8].try_into().expect("eight bytes"))
    }
}

/// Compiles `tests/bpf/NAME.bpf.c` and opens it.
pub fn test_object(name: &str) -> libbpf_rs::OpenObject {
    test_object_with(name, &[])
}

/// The same with more arguments for the compiler.
pub fn test_object_with(name: &str, arguments: &[&str]) -> libbpf_rs::OpenObject {
    let crate_dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    // two tests of one process may compile the same file at once
    static COMPILED: AtomicU32 = AtomicU32::new(0);
    let number = COMPILED.fetch_add(1, Ordering::Relaxed);
    let object = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}.{number}.o", std::process::id()));
    let own = format!("-I{}", crate_dir.join("src/bpf").display());
    let laws = concat!("-I", env!("LASTHOP_LAWS_INCLUDE"));
    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    if let Some(clang) = std::env::var_os("CLANG") {
        builder.clang(clang);
    }
    builder
        .source(crate_dir.join("tests/bpf").join(format!("{name}.bpf.c")))
        .obj(&object)
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", &own, laws].iter().chain(arguments))
        .build()
        .unwrap_or_else(|error| panic!("{name} did not compile; clang 14 or newer is needed: {error:#}"));
    let opened =
        libbpf_rs::ObjectBuilder::default().open_file(&object).unwrap_or_else(|error| panic!("{name}: {error}"));
    std::fs::remove_file(&object).expect("a file just made");
    opened
}

/// A bound with the given limits.
pub fn bound(min_segments: u32, max_segments: u32) -> Option<lasthop_laws::Bound> {
    Some(lasthop_laws::Bound { min_segments, max_segments, ..lasthop_laws::Bound::default() })
}

/// A bound of the pacing rate alone.
pub fn pace(mbps: f64) -> Option<lasthop_laws::Bound> {
    Some(lasthop_laws::Bound {
        max_pacing_rate: lasthop_units::Rate::from_mbps(mbps),
        ..lasthop_laws::Bound::default()
    })
}
