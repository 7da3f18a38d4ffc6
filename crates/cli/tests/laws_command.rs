//! `lasthop laws` as a user meets it. Each test has a BPF file system and a network of its own, in namespaces that end with
//! its thread: what it loads is gone then, whatever happened. The names in the kernel are the real ones, so these tests
//! are skipped on a machine on which a law is loaded, and run one at a time.

use crate::common::{can_run, skip};
use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn in_namespaces(work: impl FnOnce() + Send) {
    if !can_run() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !loaded().is_empty() {
        return skip(&format!("{} loaded on this machine; 'lasthop laws unload' for this test", loaded().join(", ")));
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let flags = CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET;
            unshare(flags).expect("namespaces");
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("mounts of our own");
            let status = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip");
            assert!(status.success());
            mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), none).expect("a BPF file system");
            work();
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    // the mount namespace, and with it the pins, goes a moment after its thread
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !loaded().is_empty() {
        assert!(std::time::Instant::now() < deadline, "left behind: {:?}", loaded());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The laws in the kernel under their own names; those of other tests have other ones.
fn loaded() -> Vec<String> {
    let own = ["lh_hd", "lh_chd", "lh_cdg", "lh_cdg_linux", "lh_ucc", "lh_lastlink"];
    registered().into_iter().filter(|name| own.contains(&name.as_str())).collect()
}

fn registered() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    names.split_whitespace().map(str::to_owned).collect()
}

fn laws(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop")).arg("laws").args(arguments).output().expect("the command starts")
}

/// What a command that succeeds prints.
fn done(arguments: &[&str]) -> String {
    let output = laws(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments)).expect("one JSON document")
}

/// Exit code 2, nothing on standard output, and every one of `words` on standard error.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

fn listed(law: &str) -> Value {
    let list = json(&["list", "--json"]);
    list["laws"].as_array().expect("a list").iter().find(|listed| listed["law"] == law).expect("every law").clone()
}

fn parameter(law: &str, name: &str) -> Value {
    let listed = listed(law);
    let parameters = listed["parameters"].as_array().expect("a list");
    parameters.iter().find(|parameter| parameter["name"] == name).expect(name)["value"].clone()
}

/// A connection over loopback with a law, nothing sent.
fn connection(control: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let name = std::ffi::OsString::from(control);
    nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::TcpCongestion, &name).expect("any program may");
    (client, listener.accept().expect("just opened").0)
}

#[test]
fn a_law_is_loaded_listed_changed_shown_and_unloaded() {
    in_namespaces(|| {
        assert!(done(&["list"]).contains("ucc: not loaded"));
        assert_eq!(
            done(&["load", "hd", "ucc", "--set", "ucc.alpha=0.95"]),
            "hd is loaded as lh_hd\nucc is loaded as lh_ucc\n"
        );
        assert!(["lh_hd", "lh_ucc"].iter().all(|name| registered().contains(&(*name).to_owned())));
        assert_eq!((parameter("ucc", "alpha"), listed("ucc")["loaded"].clone()), (0.95.into(), true.into()));
        assert_eq!(listed("cdg-linux")["loaded"], false);
        let text = done(&["list"]);
        for words in ["ucc: loaded as lh_ucc, version 0.", "alpha", "0 to 1, default 0.99 (ratio)", "tolerated 0"] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        assert_eq!(done(&["set", "ucc.alpha=0.9", "hd.queue_min_ms=3"]), "ucc.alpha = 0.9\nhd.queue_min_ms = 3\n");
        assert_eq!((parameter("ucc", "alpha"), parameter("hd", "queue_min_ms")), (0.9.into(), 3.0.into()));

        let (client, _server) = connection("lh_ucc");
        assert_eq!(listed("ucc")["sockets"], 1);
        let shown = json(&["show", "--json"]);
        let socket = &shown["sockets"][0];
        assert_eq!(socket["law"], "ucc");
        assert_eq!(socket["local"], client.local_addr().expect("connected").to_string());
        assert_eq!(socket["network_namespace_name"], "this one");
        assert!(socket["state"]["samples"].is_u64() && socket["cwnd_segments"] == 10, "{socket}");
        let text = done(&["show", "ucc"]);
        assert!(text.contains("this one") && text.contains("cwnd 10, ssthresh none yet"), "{text}");
        assert_eq!(done(&["show", "hd"]), "no socket of any network namespace has it\n");

        assert_eq!(
            done(&["unload", "ucc"]),
            "ucc is unloaded; 1 socket goes on with it until it ends or gets another\n"
        );
        assert_eq!(done(&["unload"]), "hd is unloaded; no socket has it\n");
        assert_eq!(done(&["unload"]), "no law is loaded\n");
        assert!(!Path::new("/sys/fs/bpf/lasthop").exists());
        drop(client);
    });
}

#[test]
fn all_laws_are_loaded_and_unloaded_together() {
    in_namespaces(|| {
        let said = done(&["load"]);
        assert_eq!(said.lines().count(), 8, "{said}");
        for law in ["hd", "chd", "cdg", "cdg-linux", "ucc", "ledbat++", "copa", "bbr3"] {
            let identifier = law.replace("++", "_pp").replace('-', "_");
            assert!(said.contains(&format!("{law} is loaded as lh_{identifier}")), "{said}");
        }
        assert_eq!(listed("lastlink")["loaded"], false, "what answers strangers is loaded by its name only");
        let route = ["route", "add", "local", "127.7.0.0/16", "dev", "lo", "table", "local", "congctl", "lh_chd"];
        assert!(Command::new("ip").args(route).status().expect("ip").success());
        let listener = TcpListener::bind("127.7.0.1:0").expect("a listener");
        let routed = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
        assert_eq!(control(&routed), "lh_chd");
        drop((routed, listener));
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "lh_cdg_linux").expect("not restricted");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        assert_eq!(control(&listener), "lh_cdg_linux");
        drop(listener);
        refused_by_default();
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("another");
        assert_eq!(done(&["unload"]), "cdg-linux is unloaded; no socket has it\n");
    });
}

fn control(socket: &impl std::os::fd::AsFd) -> String {
    let control = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::TcpCongestion);
    control.expect("TCP_CONGESTION").to_string_lossy().into_owned()
}

/// The others are unloaded, the default is not.
fn refused_by_default() {
    let output = laws(&["unload"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("cannot unload cdg-linux: lh_cdg_linux is the default congestion control of this network"),
        "{said}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 7);
    assert_eq!(listed("cdg-linux")["loaded"], true);
}

#[test]
fn lastlink_prepares_listeners_and_permits_by_client_and_port() {
    in_namespaces(|| {
        refused(&laws(&["permit", "none"]), &["lastlink is not loaded"]);
        done(&["load", "lastlink"]);
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "lh_lastlink").expect("not restricted");
        let by_default = TcpListener::bind("127.0.0.1:0").expect("a listener");
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("another");
        assert_eq!(
            (control(&by_default).as_str(), &listed("lastlink")["heard"]["listeners"]),
            ("lh_lastlink", &1.into())
        );
        // one that gets the law while it listens is found when the law is loaded once more
        let later = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let name = std::ffi::OsString::from("lh_lastlink");
        nix::sys::socket::setsockopt(&later, nix::sys::socket::sockopt::TcpCongestion, &name).expect("any program may");
        assert!(done(&["load", "lastlink"]).contains("it stays as it is"));
        assert_eq!(listed("lastlink")["heard"]["listeners"], 2);

        assert_eq!(done(&["permit", "none"]), "all clients, any port: none\n");
        let some = ["--from", "192.0.2.77/24", "--port", "443"];
        assert_eq!(
            done(&[&["permit", "max_cwnd,errors"], &some[..]].concat()),
            "192.0.2.0/24, port 443: max_cwnd,errors\n"
        );
        let text = done(&["list"]);
        for words in [
            "heard: listeners 2",
            "permitted: 192.0.2.0/24, port 443: max_cwnd,errors",
            "permitted: all clients, any port: none",
            "permitted: all others: all",
        ] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        let permits = &listed("lastlink")["permits"];
        assert_eq!(permits[0]["clients"], "192.0.2.0/24");
        assert_eq!((&permits[0]["port"], &permits[0]["heuristics"][1]), (&443.into(), &"errors".into()));

        refused(&laws(&["permit", "cwnd"]), &["\"cwnd\"", "max_cwnd, initial_window, errors", "all, or none"]);
        refused(&laws(&["permit", "all", "--from", "192.0.2.0/33"]), &["192.0.2.0/33", "ADDRESS/BITS"]);
        refused(&laws(&["permit", "all", "--port", "0"]), &["\"0\" is no port", "1 to 65535"]);
        refused(&laws(&["permit"]), &["HEURISTICS"]);
        refused(&laws(&["permit", "all,none"]), &["\"all\" stands alone"]);
        refused(&laws(&["permit", "--clear", "--port", "80"]), &["--clear", "--port"]);
        refused(&laws(&["permit", "--remove", "--port", "80"]), &["no entry for all clients, port 80"]);
        assert_eq!(done(&[&["permit", "--remove"], &some[..]].concat()), "192.0.2.0/24, port 443: removed\n");
        assert_eq!(listed("lastlink")["permits"].as_array().map(Vec::len), Some(1));
        // IPv4 by another name, and a blank after the comma
        let mapped = ["max_cwnd, errors", "--from", "::ffff:192.0.2.10"];
        assert_eq!(done(&[&["permit"], &mapped[..]].concat()), "192.0.2.10/32, any port: max_cwnd,errors\n");
        assert_eq!(done(&["permit", "--clear"]), "2 entries removed; all clients: all\n");
        assert_eq!(listed("lastlink")["permits"].as_array().map(Vec::len), Some(0));
        assert_eq!(done(&["permit", "--clear"]), "0 entries removed; all clients: all\n");
        done(&["unload"]);
        assert!(!Path::new("/sys/fs/bpf/lasthop").exists());
    });
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    in_namespaces(|| {
        refused(&laws(&["load", "illinois"]), &["no law is called \"illinois\"", "hd, chd, cdg, cdg-linux, ucc"]);
        refused(&laws(&["load", "bbr"]), &["\"bbr\" is a law of simulated hosts, and not loaded", "hd, chd, cdg"]);
        refused(&laws(&["load", "ucc", "--set", "ucc.alpha=2"]), &["ucc.alpha = 2", "a number from 0 to 1"]);
        for value in ["5%", "high"] {
            let setting = format!("lastlink.error_max={value}");
            refused(
                &laws(&["set", &setting]),
                &[&format!("lastlink.error_max = {value}: accepted is a number from 0 to 1")],
            );
        }
        refused(&laws(&["load", "ucc", "--set", "ucc.beta=2"]), &["ucc has no parameter \"beta\"", "alpha"]);
        refused(&laws(&["load", "ucc", "--set", "hd.queue_min_ms=2"]), &["hd is not among the laws to load"]);
        refused(&laws(&["set", "ucc.alpha"]), &["LAW.NAME=VALUE"]);
        refused(&laws(&["set", "ucc.alpha=0.9"]), &["ucc is not loaded"]);
        refused(&laws(&["show", "ucc"]), &["ucc is not loaded"]);
        refused(&laws(&["unload", "ucc"]), &["ucc is not loaded"]);
        assert_eq!(loaded(), [""; 0]);

        done(&["load", "ucc"]);
        assert_eq!(done(&["load", "ucc"]), "ucc is loaded already, as lh_ucc; it stays as it is\n");
        refused(&laws(&["load", "ucc", "--set", "ucc.alpha=0.5"]), &["ucc is loaded already", "lasthop laws set"]);
        refused(&laws(&["set", "ucc.alpha=0.5", "hd.queue_min_ms=1"]), &["hd is not loaded"]);
        assert_eq!(parameter("ucc", "alpha"), 0.99);
        // loaded by somebody whose pins cannot be seen from here
        fs::rename("/sys/fs/bpf/lasthop", "/sys/fs/bpf/elsewhere").expect("renamed");
        refused(&laws(&["load", "ucc"]), &["cannot load ucc", "lh_ucc already", "not pinned in /sys/fs/bpf/lasthop"]);
        assert!(!Path::new("/sys/fs/bpf/lasthop").exists());
        fs::rename("/sys/fs/bpf/elsewhere", "/sys/fs/bpf/lasthop").expect("renamed");
        done(&["unload", "ucc"]);
    });
}

#[test]
fn what_is_hidden_here_is_said_to_be_there() {
    in_namespaces(|| {
        done(&["load", "lastlink"]);
        fs::rename("/sys/fs/bpf/lasthop", "/sys/fs/bpf/elsewhere").expect("its pins cannot be seen from here");
        let held = ["lh_lastlink", "not pinned in /sys/fs/bpf/lasthop", "another mount namespace", "nsenter --net="];
        for arguments in [
            &["permit", "none"][..],
            &["permit", "--clear"],
            &["set", "lastlink.ignored_max=1"],
            &["show"],
            &["show", "lastlink"],
            &["unload", "lastlink"],
            &["unload"],
            &["load", "lastlink"],
        ] {
            refused(&laws(arguments), &held);
        }
        let text = done(&["list"]);
        assert!(held.iter().all(|words| text.contains(words)) && text.contains("hd: not loaded\n"), "{text}");
        let list = listed("lastlink");
        assert_eq!((&list["loaded"], &list["elsewhere"]), (&true.into(), &true.into()));
        assert!(list["parameters"][0]["value"].is_null(), "nobody can say what it is told: {list}");
        assert_eq!(listed("hd")["elsewhere"], false);
        fs::rename("/sys/fs/bpf/elsewhere", "/sys/fs/bpf/lasthop").expect("renamed");
        assert_eq!(listed("lastlink")["elsewhere"], false);
        done(&["unload", "lastlink"]);

        for file_system in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
            while nix::mount::umount2(file_system, nix::mount::MntFlags::MNT_DETACH).is_ok() {}
        }
        refused(&laws(&["load", "lastlink"]), &["a mounted cgroup2 file system", "nsenter --net="]);
        let doctor = Command::new(env!("CARGO_BIN_EXE_lasthop")).arg("doctor").output().expect("it starts");
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert!(said.contains("missing  a mounted cgroup2") && said.contains("nsenter --net="), "{said}");
    });
}

#[test]
fn what_a_client_says_is_shown_in_words() {
    in_namespaces(|| {
        done(&["load", "lastlink"]);
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "lh_lastlink").expect("not restricted");
        let ip = |arguments: &str| {
            let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip");
            assert!(status.success(), "ip {arguments}");
        };
        ip("link add s0 type veth peer name c0");
        ip("addr add 10.0.0.1/24 dev s0");
        ip("link set s0 up");
        let listener = TcpListener::bind("10.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("bound");
        let (say_where, client_is) = std::sync::mpsc::channel();
        let (moved, has_moved) = std::sync::mpsc::channel::<()>();
        let (shown, was_shown) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let client = scope.spawn(move || {
                unshare(CloneFlags::CLONE_NEWNET).expect("a network of its own");
                say_where.send(nix::unistd::gettid()).expect("somebody listens");
                has_moved.recv().expect("the interface is here");
                ip("addr add 10.0.0.2/24 dev c0");
                ip("link set c0 up");
                let index = nix::net::if_::if_nametoindex("c0").expect("c0");
                let options = lasthop_kernel::link_report::Options::new(index).expect("cgroup2");
                let mut reporter = lasthop_kernel::link_report::Reporter::load(&options).expect("loaded");
                let claim = lasthop_kernel::link_report::Claim {
                    bandwidth_kbps: Some(8000),
                    error_ppm: Some(32_000),
                    validity_s: 600,
                };
                reporter.set(claim).expect("set");
                let mut connection = TcpStream::connect(address).expect("a connection");
                let mut byte = [0];
                connection.read_exact(&mut byte).expect("an answer");
                // until it was shown
                let _ = was_shown.recv();
            });
            let thread = client_is.recv().expect("it has begun");
            ip(&format!("link set c0 netns /proc/self/task/{thread}/ns/net")
                .replace("self", &nix::unistd::getpid().to_string()));
            moved.send(()).expect("it waits");
            let mut server = accept_unless(&listener, || client.is_finished());
            server.write_all(b"!").expect("sent");
            let text = done(&["show", "lastlink"]);
            let socket = text.split("lastlink  ").find(|socket| socket.contains(" -> 10.0.0.2:")).expect("it is shown");
            for words in [
                "client says 8 Mb/s, 3.2 % of packets lost, for another ",
                "; may use: all\n",
                "Cwnd_max 10 segments, began with 10 segments; ",
                "PER 3.2 %, of which 2 % count; losses ignored 0, heeded 0\n",
                "newreno.slow_start.kind",
            ] {
                assert!(socket.contains(words), "no {words:?} in {socket}");
            }
            assert!(!socket.contains("cubic.cnt"), "it is not built on CUBIC: {socket}");
            let shown_as_json = json(&["show", "lastlink", "--json"]);
            let sockets = shown_as_json["sockets"].as_array().expect("a list");
            let is_it =
                |socket: &&Value| socket["remote"].as_str().is_some_and(|remote| remote.starts_with("10.0.0.2:"));
            let socket = sockets.iter().find(is_it).expect("it is shown");
            let said = &socket["last_link"];
            assert_eq!((&said["bandwidth_mbps"], &said["packet_error_rate"]), (&8.0.into(), &0.032.into()));
            // 2^9 s of the 600 s are told
            assert!(said["valid_for_s"].as_f64().is_some_and(|left| left > 300.0 && left <= 512.0), "{said}");
            assert_eq!((&said["initial_segments"], &said["permitted"][2]), (&10.into(), &"errors".into()));
            assert!(socket["state"]["cubic.cnt"].is_u64(), "as JSON it is all there");
            // the answer, once more perhaps on a busy machine
            let sent = (&socket["segments_sent"], &said["counted_segments"]);
            assert!(sent.0 == sent.1 && sent.0.as_u64().is_some_and(|sent| sent >= 1), "{sent:?}");
            let listening = sockets.iter().find(|socket| socket["local"] == address.to_string() && !is_it(socket));
            assert!(listening.is_none_or(|socket| socket["last_link"].is_null()), "{listening:?}");
            drop(shown);
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").expect("another");
    });
}

/// The next connection; whoever is to make it may fail.
fn accept_unless(listener: &TcpListener, has_failed: impl Fn() -> bool) -> TcpStream {
    listener.set_nonblocking(true).expect("not to wait for ever");
    loop {
        match listener.accept() {
            Ok((connection, _)) => return connection,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !has_failed() => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(error) => panic!("nobody connects: {error}"),
        }
    }
}

#[test]
fn a_missing_bpf_file_system_is_mounted() {
    in_namespaces(|| {
        while umount("/sys/fs/bpf").is_ok() {}
        assert!(done(&["list"]).contains("ucc: not loaded"));
        assert_eq!(done(&["unload"]), "no law is loaded\n");
        done(&["load", "ucc"]);
        assert!(fs::metadata("/sys/fs/bpf/lasthop/ucc/link").is_ok());
        let mode = |path: &str| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("/sys/fs/bpf"), mode("/sys/fs/bpf/lasthop")), (0o700, 0o700), "nobody else's to use");
        done(&["unload", "ucc"]);
    });
}

#[test]
fn a_folder_that_a_user_has_made_first_is_refused_and_named() {
    in_namespaces(|| {
        fs::create_dir("/sys/fs/bpf/lasthop").expect("made");
        std::os::unix::fs::chown("/sys/fs/bpf/lasthop", Some(65534), Some(65534)).expect("root may");
        for arguments in [&["load", "ucc"][..], &["unload", "ucc"], &["list"], &["set", "ucc.alpha=0.9"]] {
            refused(
                &laws(arguments),
                &["/sys/fs/bpf/lasthop must be a folder of root's", "mode 755", "user 65534", "rm -r"],
            );
        }
        assert!(loaded().is_empty());
        fs::remove_dir("/sys/fs/bpf/lasthop").expect("still empty");
    });
}

#[test]
fn a_kernel_without_struct_ops_is_told_so() {
    in_namespaces(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let types = folder.path().join("vmlinux");
        // BTF with no types at all: magic, version, flags, header's length; no types; one empty string
        let mut btf = vec![0x9f, 0xeb, 1, 0];
        for word in [24_u32, 0, 0, 0, 1] {
            btf.extend(word.to_ne_bytes());
        }
        btf.push(0);
        fs::write(&types, btf).expect("a file");
        let none = None::<&str>;
        mount(Some(&types), "/sys/kernel/btf/vmlinux", none, MsFlags::MS_BIND, none).expect("in its place");
        for arguments in [&["load", "ucc"][..], &["list"], &["unload"], &["show"]] {
            refused(
                &laws(arguments),
                &["laws cannot be loaded here", "congestion control by BPF struct_ops (Linux 5.6;"],
            );
        }
    });
}

#[test]
fn users_without_rights_are_told_so() {
    in_namespaces(|| {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let program = folder.path().join("lasthop");
        fs::copy(env!("CARGO_BIN_EXE_lasthop"), &program).expect("a copy that nobody can read");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
        for arguments in [&["load", "ucc"][..], &["list"]] {
            let output = Command::new(&program).arg("laws").args(arguments).uid(65534).gid(65534).output();
            refused(&output.expect("it starts"), &["laws cannot be loaded here", "root"]);
        }
    });
}

#[test]
fn a_command_that_was_killed_is_tidied_up_after() {
    in_namespaces(|| {
        done(&["load", "ucc"]);
        fs::rename("/sys/fs/bpf/lasthop/ucc", "/sys/fs/bpf/lasthop/loading-ucc").expect("as if killed before the end");
        let text = done(&["list"]);
        assert!(text.contains("ucc: not loaded\n") && text.contains("loading-ucc: half done"), "{text}");
        assert_eq!(done(&["load", "ucc"]), "ucc is loaded as lh_ucc\n");
        assert!(!done(&["list"]).contains("half done"));
        done(&["unload"]);
    });
}
