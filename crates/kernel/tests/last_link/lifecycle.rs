//! The programs come and go: nothing is left of them, and what cannot be is refused.

use super::*;

#[test]
fn the_programs_can_be_tried_and_nobody_reports_afterwards() {
    needs_root!();
    lasthop_kernel::link_report::check().unwrap_or_else(|error| panic!("{error}"));
    let net = Net::direct();
    let law = law();
    let listener = listener(&net.b, B4, law.name());
    let to = listener.local_addr().expect("bound");
    let _client = net.a.run(|| TcpStream::connect(to).expect("a connection"));
    let _server = listener.accept().expect("the connection just opened");
    assert_eq!((heard(&law).listeners, heard(&law).at_accept), (1, 0));
}

/// A process that reports and hears, for the next test to kill.
#[test]
#[ignore = "only a part of another test, which starts it"]
fn a_process_to_be_killed() {
    if std::env::var_os("LASTHOP_TEST_KILL").is_none() {
        return;
    }
    let index = nix::net::if_::if_nametoindex("a0").expect("a0 exists");
    let mut reporter = Reporter::load(&ReporterOptions::new(index).expect("cgroup2")).expect("loaded");
    reporter.set(CLAIM).expect("set");
    let law = law();
    println!("\nlaw {}", law.name());
    std::thread::sleep(support::PATIENCE);
}

#[test]
fn nothing_is_left_of_those_who_are_killed() {
    needs_root!();
    drop(law()); // says why, where none can be loaded
    let path = Path::clear();
    let mut child = path.a.run(|| {
        let mut command = Command::new(std::env::current_exe().expect("our own file"));
        command.args(["--exact", "lifecycle::a_process_to_be_killed", "--ignored", "--nocapture"]);
        command.env("LASTHOP_TEST_KILL", "1").stdout(Stdio::piped()).spawn().expect("another process")
    });
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut lines = lines.filter_map(|line| line.strip_prefix("law ").map(str::to_owned));
    let name = lines.next().expect("it loads");
    let listener = listener(&path.b, B4, &name);
    let connection = Connection::open(&path.a, &listener);
    connection.converse(1000);
    assert_eq!((path.reports(Way::ToServer).len(), path.reports(Way::ToClient).len()), (1, 1));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let registered = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("/proc");
    eventually("the law is gone", || !registered().contains(&name));
    // the links of the programs go a moment after the process
    eventually("its programs are gone", || {
        path.forget();
        Connection::open(&path.a, &listener).converse(1000);
        path.reports(Way::ToServer).is_empty() && path.reports(Way::ToClient).is_empty()
    });
    connection.converse(100_000);
}

#[test]
fn what_cannot_be_reported_on_is_refused_by_name() {
    needs_root!();
    let path = Path::clear();
    let refused = |index| path.a.run(|| Reporter::load(&ReporterOptions::new(index).expect("cgroup2")));
    let message = refused(99_999).expect_err("there is none").to_string();
    assert!(message.contains("interface 99999") && message.contains("there is none"), "{message}");
    let message = refused(path.a.interface("lo")).expect_err("it is loopback").to_string();
    assert!(message.contains("loopback"), "{message}");
    let message = path.a.run(|| {
        let options = ReporterOptions {
            cgroup: "/nowhere".into(),
            ..ReporterOptions::new(path.a.interface("a0")).expect("cgroup2")
        };
        Reporter::load(&options).expect_err("no such cgroup").to_string()
    });
    assert!(message.contains("/nowhere"), "{message}");
}
