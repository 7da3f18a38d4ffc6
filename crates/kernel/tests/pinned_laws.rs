//! Pinned laws: loaded by one process and found by another, and what goes wrong on the way. Each test has a BPF file system
//! and names in the kernel of its own, so it meets nothing that this machine has loaded, and nothing is left even when it is
//! killed: the mount namespace ends with its thread.
#![allow(missing_docs)]

mod support;

use lasthop_kernel::laws::{Clients, Error, Found, Heard, Heuristics, Pins, Prefix, VERSION};
use lasthop_laws::{LawName, Parameters};
use libbpf_rs::{MapCore, MapHandle, MapType};
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{B4, Flow, Net, eventually, set_control};

const LAW: LawName = LawName::Hd;

fn defaults() -> Parameters {
    defaults_of(LAW)
}

fn defaults_of(law: LawName) -> Parameters {
    Parameters::of(law)
}

/// Three letters that neither another run of these tests has nor another test beside this one: they are the thread's.
fn prefix() -> String {
    let mut number = nix::unistd::gettid().as_raw().unsigned_abs();
    let mut letter = || {
        let letter = char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(number % 36) as usize]);
        number /= 36;
        letter
    };
    [letter(), letter(), letter()].iter().collect()
}

/// Does `work` on a thread with a BPF file system of its own.
fn with_pins(work: impl FnOnce(&Pins) + Send) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).expect("a mount namespace");
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("mounts of our own");
            mount(Some("bpf"), "/mnt", Some("bpf"), MsFlags::empty(), none).expect("a BPF file system");
            work(&Pins::at(PathBuf::from("/mnt/lasthop"), &prefix()));
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn registered() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    names.split_whitespace().map(str::to_owned).collect()
}

fn is_registered(pins: &Pins) -> bool {
    registered().contains(&name(pins))
}

fn name(_: &Pins) -> String {
    format!("{}{}", prefix(), LAW.kernel_name())
}

fn message(result: Result<impl Sized, Error>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_pinned_law_is_there_until_it_is_unloaded() {
    needs_root!();
    with_pins(|pins| {
        assert!(matches!(pins.look(LAW), Ok(Found::Absent)));
        let mut parameters = defaults();
        parameters.set(LAW, "queue_min_ms", 7.0).expect("a parameter of hd");
        drop(pins.load(LAW, parameters).expect("loaded"));
        assert!(is_registered(pins), "whoever loaded it is done");
        let found = pins.get(LAW).expect("it is there");
        assert_eq!(found.name(), name(pins));
        assert_eq!(found.parameters().expect("parameters"), parameters);
        parameters.set(LAW, "queue_threshold_ms", 9.0).expect("a parameter of hd");
        pins.change(LAW, |_| parameters).expect("changed");
        assert_eq!(pins.get(LAW).expect("it is there").parameters().expect("parameters"), parameters);
        assert_eq!(pins.unload(LAW, false).expect("unloaded").sockets, Some(0));
        assert!(!is_registered(pins));
        assert!(!pins.folder().exists(), "the last law takes the folder with it");
        assert!(message(pins.unload(LAW, false)).contains("hd is not loaded"));
        assert!(message(pins.get(LAW)).contains("hd is not loaded"));
        assert!(message(pins.change(LAW, |values| values)).contains("hd is not loaded"));
    });
}

#[test]
fn two_who_change_parameters_at_once_both_have_their_way() {
    needs_root!();
    with_pins(|pins| {
        pins.load(LAW, Parameters::default()).expect("loaded");
        std::thread::scope(|scope| {
            for parameter in 0..4 {
                scope.spawn(move || {
                    for _ in 0..20 {
                        let one_more = |parameters: Parameters| {
                            let mut values = *parameters.values();
                            values[parameter] += 1;
                            // others would have the time to come between
                            std::thread::sleep(Duration::from_millis(2));
                            Parameters::from_values(values)
                        };
                        pins.change(LAW, one_more).expect("changed");
                    }
                });
            }
        });
        let values = pins.get(LAW).expect("it is there").parameters().expect("parameters");
        assert_eq!(values.values()[..4], [20; 4]);
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn loading_twice_is_refused_and_changes_nothing() {
    needs_root!();
    with_pins(|pins| {
        let mut parameters = defaults();
        pins.load(LAW, parameters).expect("loaded");
        parameters.set(LAW, "queue_min_ms", 6.0).expect("a parameter of hd");
        assert!(message(pins.load(LAW, parameters)).contains("hd is loaded already, as lh_hd"));
        assert_eq!(pins.get(LAW).expect("it is there").parameters().expect("parameters"), defaults());
        let other = Pins::at(pins.folder().join("elsewhere"), &prefix());
        let taken = message(other.load(LAW, parameters));
        assert!(taken.contains(&name(pins)) && taken.contains("not pinned in /mnt/lasthop/elsewhere"), "{taken}");
        assert!(!other.folder().exists(), "nothing half done");
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn loaders_of_different_laws_wait_for_each_other() {
    needs_root!();
    with_pins(|pins| {
        // each of them may be the one that removes the folder, while the other waits for it
        std::thread::scope(|scope| {
            for law in [LawName::Hd, LawName::Ucc] {
                scope.spawn(move || {
                    for _ in 0..5 {
                        pins.load(law, defaults_of(law)).expect("loaded");
                        pins.unload(law, false).expect("unloaded");
                    }
                });
            }
        });
        assert!(!pins.folder().exists());
    });
}

#[test]
fn sockets_go_on_with_a_law_that_is_unloaded() {
    needs_root!();
    with_pins(|pins| {
        let net = Net::bottleneck(20, 60_000);
        pins.load(LAW, defaults()).expect("loaded");
        let name = name(pins);
        let mut flows = [0, 1].map(|_| Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, &name)));
        flows.iter_mut().for_each(Flow::send);
        let sockets = pins.get(LAW).expect("it is there").sockets().expect("a walk");
        let mut cookies: Vec<_> = sockets.iter().map(|socket| socket.cookie).collect();
        cookies.sort_unstable();
        let mut expected = flows.each_ref().map(Flow::cookie);
        expected.sort_unstable();
        assert_eq!(cookies, expected);
        assert_eq!(pins.unload(LAW, false).expect("unloaded").sockets, Some(2));
        assert!(!is_registered(pins));
        let before = flows.each_ref().map(Flow::received);
        eventually("the sockets go on", || {
            flows.iter().zip(before).all(|(flow, before)| flow.control() == name && flow.received() > before + 500_000)
        });
        // the same name again, beside the old programs
        pins.load(LAW, defaults()).expect("loaded again");
        assert_eq!(pins.get(LAW).expect("it is there").sockets().expect("a walk"), []);
        assert_eq!(pins.unload(LAW, false).expect("unloaded").sockets, Some(0));
    });
}

#[test]
fn a_socket_that_gets_another_control_no_longer_counts() {
    needs_root!();
    with_pins(|pins| {
        let net = Net::direct();
        let pinned = pins.load(LAW, defaults()).expect("loaded");
        let flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, pinned.name()));
        assert_eq!(pinned.sockets().expect("a walk").len(), 1);
        set_control(&*flow.sender, "reno");
        assert_eq!(pinned.sockets().expect("a walk"), []);
        set_control(&*flow.sender, pinned.name());
        assert_eq!(pinned.sockets().expect("a walk").len(), 1);
        drop(flow);
        eventually("a closed socket is forgotten", || pinned.sockets().expect("a walk").is_empty());
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn a_default_of_a_namespace_is_not_unloaded_behind_its_back() {
    needs_root!();
    with_pins(|pins| {
        let net = Net::direct();
        pins.load(LAW, defaults()).expect("loaded");
        let set = |name: &str| net.a.run(|| fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name));
        // a process that stays in the namespace, by which it is found
        let mut inhabitant = net.a.run(|| Command::new("sleep").arg("600").spawn().expect("sleep"));
        set(&name(pins)).expect("any program may choose it");
        let flow = Flow::idle(&net.a, &net.b, B4);
        assert_eq!(flow.control(), name(pins));
        let refused = message(pins.unload(LAW, false));
        let place = format!("/proc/{}/ns/net", inhabitant.id());
        for words in [&name(pins), "default congestion control", &place, "--force"] {
            assert!(refused.contains(words), "no {words:?} in {refused}");
        }
        assert!(is_registered(pins));
        assert_eq!(pins.unload(LAW, true).expect("all the same").sockets, Some(1));
        set("reno").expect("another default");
        drop(flow);
        inhabitant.kill().expect("it is ours");
        inhabitant.wait().expect("it ends");
    });
}

#[test]
fn a_folder_that_somebody_else_made_or_can_write_in_is_refused_and_left_alone() {
    needs_root!();
    with_pins(|pins| {
        let folder = pins.folder();
        // Every user can make it, where the BPF file system is mounted as the kernel does by default: mode 1777.
        fs::create_dir(folder).expect("made");
        for (owner, mode) in [(65534, 0o700), (0, 0o777), (0, 0o730)] {
            std::os::unix::fs::chown(folder, Some(owner), Some(owner)).expect("root may");
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("root may");
            for refused in [
                message(pins.load(LAW, defaults())),
                message(pins.unload(LAW, false)),
                message(pins.look(LAW)),
                message(pins.change(LAW, |parameters| parameters)),
            ] {
                let expected = format!(
                    "/mnt/lasthop must be a folder of root's that nobody else can write in, and it has mode {mode:o}"
                );
                assert!(refused.starts_with(&expected), "{refused}");
                assert!(refused.contains(&format!("belongs to user {owner}")), "{refused}");
            }
            assert!(!is_registered(pins) && fs::read_dir(folder).expect("there").next().is_none());
        }
        // Without the sticky bit whoever can write beside it can rename it.
        std::os::unix::fs::chown(folder, Some(0), Some(0)).expect("root may");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("root may");
        fs::set_permissions("/mnt", fs::Permissions::from_mode(0o777)).expect("root may");
        let refused = message(pins.load(LAW, defaults()));
        assert!(refused.starts_with("/mnt must be a folder of root's"), "{refused}");
        fs::set_permissions("/mnt", fs::Permissions::from_mode(0o1777)).expect("root may");
        pins.load(LAW, defaults()).expect("loaded");
        assert_eq!(
            fs::metadata(folder).expect("there").permissions().mode() & 0o7777,
            0o700,
            "nobody else can open it"
        );
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn a_lock_that_is_not_let_go_ends_in_a_message_that_names_its_holder() {
    needs_root!();
    with_pins(|pins| {
        pins.load(LAW, defaults()).expect("loaded");
        let folder = fs::File::open(pins.folder()).expect("there");
        let held = Flock::lock(folder, FlockArg::LockExclusive).expect("free");
        let refused = message(pins.unload(LAW, false));
        assert!(refused.starts_with(&format!("process {} has locked /mnt/lasthop", std::process::id())), "{refused}");
        assert!(is_registered(pins));
        drop(held);
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn a_law_of_another_version_can_be_taken_away_and_not_talked_to() {
    needs_root!();
    with_pins(|pins| {
        pins.load(LAW, defaults()).expect("loaded");
        // as another version would have told
        let about = pins.folder().join("hd/about");
        let mut bytes = read(&about);
        let at = bytes.windows(VERSION.len()).position(|bytes| bytes == VERSION.as_bytes()).expect("our version");
        bytes[at..at + 5].copy_from_slice(b"0.0.9");
        replace(&about, &bytes);
        assert!(matches!(pins.look(LAW), Ok(Found::OtherVersion(version)) if version.starts_with("0.0.9")));
        for refused in [message(pins.get(LAW)), message(pins.load(LAW, defaults()))] {
            assert!(
                refused.contains("another version of lasthop (0.0.9") && refused.contains("unload hd"),
                "{refused}"
            );
        }
        assert_eq!(pins.unload(LAW, false).expect("unloaded").sockets, None);
        assert!(!is_registered(pins));
    });
}

fn read(path: &Path) -> Vec<u8> {
    let map = MapHandle::from_pinned_path(path).expect("a pinned map");
    map.lookup(&0u32.to_ne_bytes(), libbpf_rs::MapFlags::ANY).expect("readable").expect("one value")
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).expect("a pinned map");
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let mut map = MapHandle::create(MapType::Array, Some("about"), 4, bytes.len() as u32, 1, &options).expect("a map");
    map.update(&0u32.to_ne_bytes(), bytes, libbpf_rs::MapFlags::ANY).expect("written");
    map.pin(path).expect("pinned");
}

#[test]
fn the_law_that_hears_reports_is_pinned_with_what_is_permitted() {
    needs_root!();
    with_pins(|pins| {
        let law = LawName::Lastlink;
        let everybody = Clients { prefix: Prefix::ALL, port: None };
        assert!(message(pins.permit(law, &everybody, Heuristics::NONE)).contains("lastlink is not loaded"));
        pins.load(law, defaults_of(law)).expect("loaded");
        assert_eq!(pins.get(law).expect("it is there").heard().expect("counters"), Heard::default());
        pins.prepare_listeners(law).expect("a walk");
        let some = Clients { prefix: "192.0.2.0/24".parse().expect("a prefix"), port: Some(443) };
        pins.permit(law, &everybody, Heuristics::NONE).expect("permitted");
        pins.permit(law, &some, Heuristics::ALL).expect("permitted");
        let permits = || pins.get(law).expect("it is there").permits().expect("a map");
        assert_eq!(permits(), [(some, Heuristics::ALL), (everybody, Heuristics::NONE)]);
        pins.withdraw(law, &some).expect("withdrawn");
        assert_eq!(permits(), [(everybody, Heuristics::NONE)]);
        let none = message(pins.withdraw(law, &some));
        assert!(none.contains("no entry for 192.0.2.0/24, port 443"), "{none}");
        for port in 1..1024 {
            pins.permit(law, &Clients { port: Some(port), ..some }, Heuristics::ALL).expect("permitted");
        }
        let full = message(pins.permit(law, &Clients { port: Some(1024), ..some }, Heuristics::ALL));
        assert!(full.contains("1024 entries"), "{full}");
        pins.unload(law, false).expect("unloaded");
        assert!(!pins.folder().exists(), "nothing is left");
        let deaf = message(pins.permit(LAW, &everybody, Heuristics::NONE));
        assert!(deaf.contains("hd is not loaded"), "{deaf}");
        pins.load(LAW, defaults()).expect("loaded");
        let deaf = message(pins.permit(LAW, &everybody, Heuristics::NONE));
        assert!(deaf.contains("hd does not use what clients report"), "{deaf}");
        pins.unload(LAW, false).expect("unloaded");
    });
}

#[test]
fn what_a_killed_loader_left_is_removed_by_the_next() {
    needs_root!();
    with_pins(|pins| {
        // killed before the name was registered, and in the midst of unloading
        for half_done in ["loading-hd", "unloading-hd"] {
            pins.load(LAW, defaults()).expect("loaded");
            let half_done = pins.folder().join(half_done);
            fs::rename(pins.folder().join("hd"), &half_done).expect("renamed");
            fs::remove_file(half_done.join("counters")).expect("removed");
            assert_eq!(pins.leftovers(), std::slice::from_ref(&half_done));
            assert!(matches!(pins.look(LAW), Ok(Found::Absent)));
            assert!(message(pins.unload(LAW, false)).contains("not loaded"));
            assert!(!is_registered(pins) && pins.leftovers().is_empty());
        }
    });
}

/// A loader in a process of its own, for the next test to kill at whatever it is doing.
#[test]
#[ignore = "only a part of other tests, which start it"]
fn a_loader_to_be_killed() {
    let Ok(prefix) = std::env::var("LASTHOP_TEST_PREFIX") else { return };
    println!("\nloading");
    let pins = Pins::at(PathBuf::from("/mnt/lasthop"), &prefix);
    pins.load(LAW, defaults()).expect("loaded");
    println!("loaded");
    pins.unload(LAW, false).expect("unloaded");
}

#[test]
fn a_loader_may_be_killed_at_any_moment() {
    needs_root!();
    with_pins(|pins| {
        let mut left_something = 0;
        for round in 0..40 {
            let mut command = Command::new(std::env::current_exe().expect("our own file"));
            command.args(["--exact", "a_loader_to_be_killed", "--ignored", "--nocapture"]);
            let mut child =
                command.env("LASTHOP_TEST_PREFIX", prefix()).stdout(Stdio::piped()).spawn().expect("another process");
            let output = BufReader::new(child.stdout.take().expect("piped"));
            let mut lines = output.lines().map_while(Result::ok);
            assert!(lines.any(|line| line == "loading"));
            if round % 2 == 1 {
                lines.any(|line| line == "loaded");
            }
            std::thread::sleep(Duration::from_micros(round / 2 * 2500));
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
            left_something +=
                usize::from(pins.folder().exists() && fs::read_dir(pins.folder()).expect("ours").count() > 0);
            // whatever it left, the next one loads and unloads
            match pins.load(LAW, defaults()) {
                Ok(_) | Err(Error::AlreadyLoaded { .. }) => {}
                Err(error) => panic!("after round {round}: {error}"),
            }
            assert!(is_registered(pins));
            pins.unload(LAW, false).expect("unloaded");
            assert!(!is_registered(pins));
            assert!(!pins.folder().exists());
        }
        println!("{left_something} of 40 left something");
        assert!(left_something > 0, "there must be something to clean up");
    });
}
