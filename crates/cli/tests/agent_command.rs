//! `lasthop agent` as a service and a user start it: which configuration it reads, what it tells the service manager and whoever
//! asks, and what SIGHUP does. Needs root: in mount and network namespaces of its own, which go with the test.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        crate::common::skip("namespaces need root");
    }
    root
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(120) {
        if let Some(found) = found() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("waited two minutes for {what}");
}

/// A machine of its own as far as an agent sees: an empty /etc and /run, and an interface `last`. It lives as long as a process that
/// only sleeps.
struct Machine {
    holder: Child,
    folder: tempfile::TempDir,
}

/// With the cgroups that this machine has.
const AS_HERE: &str = "true";
/// As `ip netns exec` leaves it: with another /sys, which hides what is mounted below.
const AS_IP_NETNS_EXEC: &str = "umount -l /sys && mount -t sysfs sysfs /sys";

impl Machine {
    fn new(further: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        let script = format!(
            "mount -t tmpfs tmpfs /etc && mount -t tmpfs tmpfs /run && mkdir /etc/lasthop && {further} &&
             ip link set lo up && ip link add last type veth peer name far && ip address add 10.77.0.1/24 dev last &&
             ip link set last up && ip link set far up && touch {} && exec sleep 1000",
            ready.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--propagation", "private", "sh", "-c", &script]);
        let mut holder = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("util-linux is there");
        wait_for("the namespaces", || {
            assert!(holder.try_wait().expect("it is ours").is_none(), "the namespaces could not be made");
            ready.exists().then_some(())
        });
        Self { holder, folder }
    }

    /// `path` as the agents of this machine have it.
    fn path(&self, path: &str) -> PathBuf {
        format!("/proc/{}/root{path}", self.holder.id()).into()
    }

    /// As a daemon: without a terminal.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.args(["nsenter", "--target", &self.holder.id().to_string(), "--mount", "--net"]);
        command.arg(env!("CARGO_BIN_EXE_lasthop")).args(arguments).env_remove("NOTIFY_SOCKET").env_remove("RUST_LOG");
        command
    }

    fn lasthop(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command starts")
    }

    fn configure(&self, text: &str) {
        fs::write(self.path("/etc/lasthop/agent.toml"), text).expect("written");
    }

    fn agent(&self, arguments: &[&str], notify: Option<&str>) -> Agent<'_> {
        let log = self.folder.path().join("log");
        let mut command = self.command(&[&["agent"], arguments].concat());
        if let Some(notify) = notify {
            command.env("NOTIFY_SOCKET", notify);
        }
        let stderr = fs::File::create(&log).expect("a file");
        let process = command.stdout(Stdio::null()).stderr(stderr).spawn().expect("the command starts");
        Agent { machine: self, process, log }
    }

    /// What `lasthop agent status --json` says of the one agent, once there is one.
    fn status(&self) -> serde_json::Value {
        wait_for("a status", || {
            let output = self.lasthop(&["agent", "status", "--json"]);
            (output.status.code() == Some(0)).then(|| serde_json::from_slice(&output.stdout).expect("one line of JSON"))
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

struct Agent<'a> {
    machine: &'a Machine,
    process: Child,
    log: PathBuf,
}

impl Agent<'_> {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it is there")
    }

    fn says(&self, words: &str) {
        wait_for(words, || self.log().contains(words).then_some(()));
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).expect("the agent runs");
    }

    fn wait(&mut self) -> Option<i32> {
        wait_for("the agent to end", || self.process.try_wait().expect("it is ours")).code()
    }

    fn sockets(&self) -> usize {
        let files = fs::read_dir(self.machine.path("/run/lasthop")).expect("the agent has made it").flatten();
        files.filter(|file| file.path().extension().is_some_and(|ending| ending == "sock")).count()
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        eprint!("{}", self.log());
    }
}

#[test]
fn the_standard_configuration_is_read_told_reloaded_and_asked_for() {
    if !root() {
        return;
    }
    let machine = Machine::new(AS_HERE);
    machine.configure("interface = \"last\"\n");
    let path = machine.folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let told = || {
        let mut buffer = [0; 1024];
        let length = manager.recv(&mut buffer).expect("the agent tells the service manager");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut agent = machine.agent(&[], Some(&path.display().to_string()));
    assert_eq!(told(), "READY=1\nSTATUS=mode advise, policy lasthop, on last");
    agent.says("the configuration is /etc/lasthop/agent.toml");
    agent.says("--mode control, or mode = \"control\" in /etc/lasthop/agent.toml");

    let output = machine.lasthop(&["agent", "status"]);
    let said = String::from_utf8(output.stdout).expect("text");
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 6), "{said}");
    assert!(said.starts_with("last: mode advise, policy lasthop, behind "), "{said}");
    assert!(said.contains("\n  gain     not known in mode advise"), "{said}");

    machine.configure("interface = \"last\"\nmode = \"observe\"\nrecord = \"/run/record\"\n");
    agent.signal(Signal::SIGHUP);
    assert!(told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(told(), "READY=1\nSTATUS=mode observe, policy lasthop, on last");
    agent.says("Keys that hold now: mode; that need a restart: record");
    assert_eq!(machine.status()["mode"], "observe");

    machine.configure("mode = \"contrl\"\n");
    agent.signal(Signal::SIGHUP);
    assert!(told().starts_with("RELOADING=1"));
    let refused = told();
    assert!(refused.starts_with("READY=1\nSTATUS=mode observe, ") && refused.contains(": mode: "), "{refused}");
    agent.says("so nothing changes: /etc/lasthop/agent.toml:1: mode: \"contrl\" is not one of the words; did you mean \"control\"?");
    assert_eq!(machine.status()["mode"], "observe");

    agent.signal(Signal::SIGTERM);
    assert_eq!(told(), "STOPPING=1");
    assert_eq!((agent.wait(), agent.sockets()), (Some(0), 0));
}

#[test]
fn without_a_configuration_it_advises_and_a_hangup_stops_it_with_one_it_reloads() {
    if !root() {
        return;
    }
    let machine = Machine::new(AS_HERE);
    let mut agent = machine.agent(&["--interface", "last"], None);
    assert_eq!(machine.status()["mode"], "advise");
    agent.says("no configuration: /etc/lasthop/agent.toml does not exist");
    agent.says("--mode control, or mode = \"control\" in /etc/lasthop/agent.toml");
    agent.signal(Signal::SIGHUP);
    assert_eq!((agent.wait(), agent.sockets()), (Some(0), 0));
    drop(agent);

    machine.configure("mode = \"observe\"\n");
    let mut agent = machine.agent(&["--no-config", "--interface", "last"], None);
    assert_eq!(machine.status()["mode"], "advise");
    agent.says("no configuration is read (--no-config)");
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait(), Some(0));
    drop(agent);

    let mut agent = machine.agent(&["--interface", "last"], None);
    assert_eq!(machine.status()["mode"], "observe");
    machine.configure("mode = \"advise\"\n");
    agent.signal(Signal::SIGHUP);
    wait_for("the new mode", || (machine.status()["mode"] == "advise").then_some(()));
    // Killed, it leaves its socket, which nobody takes for an agent and the next one takes the place of.
    agent.signal(Signal::SIGKILL);
    agent.wait();
    assert_eq!(agent.sockets(), 1);
    let output = machine.lasthop(&["agent", "status"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no agent runs on this machine"));
    drop(agent);
    let mut agent = machine.agent(&["--interface", "last"], None);
    assert_eq!(machine.status()["pid"], agent.process.id());
    assert_eq!(agent.sockets(), 1);
    // As timeout(1) signals it, to itself and to its group.
    agent.signal(Signal::SIGTERM);
    agent.signal(Signal::SIGTERM);
    assert_eq!((agent.wait(), agent.sockets()), (Some(0), 0));
}

/// CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_PERFMON 38, CAP_BPF 39.
const OF_AN_AGENT: &str = "000000c000003000";
const NONE: &str = "0000000000000000";

/// These lines of /proc/PID/status for each thread, with its name before them.
fn rights(pid: u32) -> Vec<Vec<String>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let of_thread = |status: String| {
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).expect(key).trim().to_owned();
        ["Name:", "CapPrm:", "CapEff:", "CapInh:", "CapAmb:", "NoNewPrivs:"].map(value).to_vec()
    };
    let mut rights: Vec<_> =
        threads.map(|thread| of_thread(fs::read_to_string(thread.path().join("status")).expect("it runs"))).collect();
    rights.sort();
    rights
}

fn assert_least_rights(pid: u32) {
    let of_loop = ["lasthop", OF_AN_AGENT, OF_AN_AGENT, NONE, NONE, "1"].map(str::to_owned).to_vec();
    let others = ["lasthop-log", "lasthop-record", "lasthop-signals"];
    let of_others = others.map(|name| [name, NONE, NONE, NONE, NONE, "1"].map(str::to_owned).to_vec());
    assert_eq!(rights(pid), [vec![of_loop], of_others.to_vec()].concat());
}

#[test]
fn a_started_agent_keeps_four_capabilities_as_root_and_as_the_user_of_a_service() {
    if !root() {
        return;
    }
    let machine = Machine::new(AS_HERE);
    machine.configure("interface = \"last\"\nmode = \"control\"\nrecord = \"/run/record\"\n");
    let mut agent = machine.agent(&[], None);
    assert_eq!(machine.status()["mode"], "control");
    assert_least_rights(agent.process.id());
    agent.signal(Signal::SIGTERM);
    assert_eq!((agent.wait(), agent.sockets()), (Some(0), 0));
    drop(agent);

    // As packaging/lasthop-agent.service starts it.
    let [run, record] = ["/run/lasthop", "/run/record"].map(|path| machine.path(path));
    for path in [&run, &record] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("root may");
    }
    let log = machine.folder.path().join("log");
    let mut command = Command::new("nsenter");
    command.args(["--target", &machine.holder.id().to_string(), "--mount", "--net"]);
    let kept = "-all,+bpf,+perfmon,+net_admin,+net_raw";
    command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    command.args([format!("--inh-caps={kept}"), format!("--ambient-caps={kept}"), format!("--bounding-set={kept}")]);
    command.args([env!("CARGO_BIN_EXE_lasthop"), "agent"]).env_remove("NOTIFY_SOCKET").env_remove("RUST_LOG");
    let stderr = fs::File::create(&log).expect("a file");
    let process = command.stdin(Stdio::null()).stderr(stderr).spawn().expect("util-linux is there");
    let mut agent = Agent { machine: &machine, process, log };
    assert_eq!(machine.status()["mode"], "control");
    assert_least_rights(agent.process.id());
    agent.signal(Signal::SIGTERM);
    assert_eq!((agent.wait(), agent.sockets()), (Some(0), 0));
}

#[test]
fn an_agent_of_roots_goes_on_in_the_folder_that_the_packaged_service_has_left() {
    if !root() {
        return;
    }
    let machine = Machine::new(AS_HERE);
    let [users, run] = ["/etc/passwd", "/run/lasthop"].map(|path| machine.path(path));
    fs::write(users, "root:x:0:0::/:/bin/sh\nlasthop:x:65533:65533::/:/bin/false\n").expect("written");
    fs::create_dir(&run).expect("a folder");
    std::os::unix::fs::chown(&run, Some(65533), Some(65533)).expect("root may");
    let control = "interface = \"last\"\nmode = \"control\"\n";
    machine.configure(control);
    let mut agent = machine.agent(&[], None);
    assert_eq!(machine.status()["mode"], "control");
    // Which takes the lock anew.
    machine.configure(&format!("{control}leave = [\"bbr\"]\n"));
    agent.signal(Signal::SIGHUP);
    agent.says("Keys that hold now: leave");
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait(), Some(0));
    let left: Vec<_> = fs::read_dir(&run).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_packaged_service_is_exposed_by_less_than_two_of_ten() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/lasthop-agent.service");
    let analyzed = Command::new("systemd-analyze").args(["security", "--offline=true", "--no-pager", unit]).output();
    let Ok(analyzed) = analyzed else { return crate::common::skip("there is no systemd-analyze") };
    let said = String::from_utf8_lossy(&analyzed.stdout).into_owned();
    // "→ Overall exposure level for lasthop-agent.service: 1.7 OK", of 10
    let exposure = said.lines().find_map(|line| line.split_once("Overall exposure level for lasthop-agent.service: "));
    let (_, exposure) = exposure.unwrap_or_else(|| panic!("{said}"));
    let exposure: f64 = exposure.split_whitespace().next().expect("a number").parse().expect("a number");
    assert!(exposure < 2.0, "{said}");
}

#[test]
fn where_cgroup2_is_hidden_it_advises_instead_of_controlling_and_says_why() {
    if !root() {
        return;
    }
    let machine = Machine::new(AS_IP_NETNS_EXEC);
    machine.configure("cgroup = \"/sys/fs/cgroup/user.slice\"\n");
    let mut agent = machine.agent(&["--interface", "last", "--mode", "control"], None);
    assert_eq!(machine.status()["mode"], "advise");
    agent.says("the kernel cannot do all that mode control needs");
    agent.says("cgroup2");
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.wait(), Some(0));
}
