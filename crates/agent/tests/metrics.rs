//! An agent that tells a monitoring system what it does, and strangers that want something else of it.
#![allow(missing_docs)]

mod common;

use common::process::{self, AgentProcess, ONE_AT_A_TIME, serve, upload};
use common::{Host, Running, SharedFake, fake, root, sample, two_hosts, wait_for};
use lasthop_agent::{Config, Mode};
use lasthop_peers::Reject;
use lasthop_status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Not a test: what `AgentProcess` runs.
#[test]
#[ignore = "run by the other tests"]
fn agent_process() {
    process::run();
}

const OPENMETRICS: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";

/// A port of 127.0.0.1 that nobody else has.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

/// Without beacons: the tests run side by side on the same loopback interface.
fn config(policy: &str) -> Config {
    let mut config = common::config("lo", policy);
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    config
}

fn start(address: SocketAddr, fake: SharedFake) -> Running {
    let mut config = config("fixed");
    config.policy.bound_pacing_mbps = Some(2.0);
    config.metrics.listen = Some(address);
    let agent = Running::start(config, fake);
    agent.wait_for_tick("a tick", |_| true);
    agent
}

/// The head and the body of the answer to these bytes.
fn ask(address: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    stream.write_all(request).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    (head.to_owned(), body.to_owned())
}

fn scrape(address: SocketAddr) -> String {
    let (head, body) = ask(address, format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{OPENMETRICS}\r\n").as_bytes());
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;"),
        "{head}"
    );
    body
}

/// The samples of a page of OpenMetrics, by name and labels. Panics where the page departs from the grammar of
/// OpenMetrics 1.0 (section "ABNF"), or from what it says of names, units, suffixes and buckets.
fn parse(page: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        name.starts_with(|c: char| legal(c) && !c.is_ascii_digit()) && name.chars().all(legal)
    };
    let body = page.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    for line in body.lines() {
        if let Some(descriptor) = line.strip_prefix("# ") {
            let [what, name, rest] = descriptor.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            assert!(is_name(name), "{line}");
            if name != family {
                assert!(families.insert(name.to_owned()), "{name} is there twice");
                (family, kind) = (name.to_owned(), String::new());
            }
            match what {
                "HELP" => assert!(rest.len() > 5 && !rest.ends_with('.'), "{line}"),
                "TYPE" => {
                    assert!(["counter", "gauge", "histogram", "info"].contains(&rest), "{line}");
                    kind = rest.to_owned();
                }
                "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let (name, labels) = series
            .split_once('{')
            .map_or((series, ""), |(name, rest)| (name, rest.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))));
        let suffix = name.strip_prefix(&*family).unwrap_or_else(|| panic!("{line} stands below {family}"));
        let suffixes: &[&str] = match &*kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            _ => &["_bucket", "_count", "_sum"],
        };
        assert!(suffixes.contains(&suffix), "{line} of a {kind}");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once('=').unwrap_or_else(|| panic!("{line}"));
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            assert!(is_name(name) && value.is_some_and(|value| !value.contains(['"', '\\'])), "{line}");
        }
        let number: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(kind != "counter" || number >= 0.0, "{line}");
        assert!(samples.insert(series.to_owned(), number).is_none(), "{series} is there twice");
    }
    let buckets: Vec<_> = samples.iter().filter(|(name, _)| name.contains("_bucket{le=")).collect();
    let ends_at = |name: &str| {
        let end = name.split('"').nth(1).expect("a label");
        if end == "+Inf" { f64::INFINITY } else { end.parse().expect("a number") }
    };
    let mut by_end: Vec<(f64, f64)> = buckets.iter().map(|(name, count)| (ends_at(name), **count)).collect();
    by_end.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(by_end.is_sorted_by(|a, b| a.1 <= b.1), "{by_end:?}");
    assert_eq!(by_end.last(), Some(&(f64::INFINITY, samples["lasthop_rtt_excess_seconds_count"])));
    samples
}

/// The numbers of the status are those of the metrics.
fn assert_equal(samples: &BTreeMap<String, f64>, status: &Status) {
    let rate = |mbps: Option<f64>| mbps.map(|mbps| mbps * 125_000.0);
    let window = |index: usize| status.window_segments.map(|limits| f64::from(limits[index]));
    let expected = [
        ("lasthop_loaded", Some(f64::from(status.loaded))),
        ("lasthop_controlled", Some(f64::from(status.control_since_s.is_some()))),
        ("lasthop_peers", Some(f64::from(status.peers))),
        ("lasthop_terminals", Some(f64::from(status.terminals))),
        ("lasthop_connections{state=\"busy\"}", Some(f64::from(status.busy))),
        ("lasthop_connections{state=\"idle\"}", Some(f64::from(status.connections - status.busy))),
        ("lasthop_bounded_connections", Some(f64::from(status.bounded))),
        ("lasthop_common_rate_bytes_per_second", rate(status.common_rate_mbps)),
        ("lasthop_delivered_bytes_per_second", rate(status.gain.delivered_mbps)),
        ("lasthop_free_bytes_per_second", rate(status.gain.free_mbps)),
        ("lasthop_gain_ratio", status.gain.gain_ratio),
        ("lasthop_group_delivered_bytes_per_second", rate(status.gain.group_delivered_mbps)),
        ("lasthop_group_free_bytes_per_second", rate(status.gain.group_free_mbps)),
        ("lasthop_group_gain_ratio", status.gain.group_gain_ratio),
        ("lasthop_round_trip_seconds", status.gain.round_trip_ms.map(|ms| ms / 1e3)),
        ("lasthop_free_round_trip_seconds", status.gain.free_round_trip_ms.map(|ms| ms / 1e3)),
        ("lasthop_harmed{cause=\"queue\"}", Some(f64::from(status.harmed_by.as_deref() == Some("queue")))),
        ("lasthop_least_window_limit_segments", window(0)),
        ("lasthop_largest_window_limit_segments", window(1)),
        ("lasthop_least_pacing_limit_bytes_per_second", rate(status.pacing_mbps.map(|limits| limits[0]))),
        ("lasthop_largest_pacing_limit_bytes_per_second", rate(status.pacing_mbps.map(|limits| limits[1]))),
    ];
    for (name, value) in expected {
        assert_eq!(samples.get(name).copied(), value, "{name}");
    }
    let [mode, policy] = [status.mode.as_str(), status.policy.as_str()];
    let of_agent =
        format!("lasthop_agent_info{{interface=\"{}\",mode=\"{mode}\",policy=\"{policy}\"}}", status.interface);
    assert_eq!(samples.get(&of_agent), Some(&1.0));
    assert_eq!(samples.get(&format!("lasthop_build_info{{version=\"{}\"}}", status.version)), Some(&1.0));
}

#[test]
fn the_page_follows_openmetrics_and_says_what_the_status_says() {
    let address = free_address();
    let fake = fake(vec![sample(7, 130, 100), sample(8, 100, 100)]);
    let agent = start(address, fake.clone());
    agent.wait_for_tick("bounds", |tick| tick.flows.iter().all(|flow| flow.bound.is_some()));
    let samples = wait_for("the bounds in the metrics", || {
        Some(parse(&scrape(address))).filter(|samples| samples["lasthop_bounded_connections"] == 2.0)
    });
    let status = agent.status();
    assert_equal(&samples, &status);
    assert_eq!((status.busy, status.pacing_mbps), (2, Some([1.0, 1.0])));
    // One of the two round trips is 30 ms above its lowest, the other at it.
    let count = samples["lasthop_rtt_excess_seconds_count"];
    assert_eq!(samples["lasthop_rtt_excess_seconds_bucket{le=\"0.02\"}"], count / 2.0);
    assert_eq!(samples["lasthop_rtt_excess_seconds_bucket{le=\"0.05\"}"], count);
    assert!((samples["lasthop_rtt_excess_seconds_sum"] - 0.03 * count / 2.0).abs() < 1e-6);
    // The fake acknowledges a byte of each connection at each look.
    wait_for("a later tick", || {
        let later = parse(&scrape(address));
        let ticks = later["lasthop_ticks_total"] - samples["lasthop_ticks_total"];
        let acked = later["lasthop_acked_bytes_total"] - samples["lasthop_acked_bytes_total"];
        assert_eq!(acked, 2.0 * ticks);
        (ticks >= 3.0).then_some(())
    });
    // A connection begins to count when it is seen, whatever it carried before.
    let before = parse(&scrape(address))["lasthop_acked_bytes_total"];
    let mut old = sample(9, 100, 100);
    old.tcp.acked = lasthop_units::Bytes::new(1 << 40);
    fake.lock().expect("no panic").samples.push(old);
    wait_for("the third connection", || {
        let later = parse(&scrape(address));
        assert!(later["lasthop_acked_bytes_total"] - before < 1e6);
        (later["lasthop_connections{state=\"busy\"}"] == 3.0).then_some(())
    });
    // While the kernel does not answer, ticks fail, and nothing is told of what is not known.
    fake.lock().expect("no panic").fails = true;
    let failing = wait_for("failed ticks", || {
        Some(parse(&scrape(address))).filter(|samples| samples["lasthop_failed_ticks_total"] >= 2.0)
    });
    assert_eq!(failing["lasthop_bounded_connections"], 0.0);
    assert!(!failing.contains_key("lasthop_least_window_limit_segments"));
    agent.stop().0.expect("a clean stop");
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}

#[test]
fn what_a_sleeper_carries_at_its_waking_counts() {
    let address = free_address();
    let mut idle = sample(7, 100, 100);
    idle.idle = lasthop_units::Span::from_secs(29);
    let fake = fake(vec![idle.clone()]);
    let agent = start(address, fake.clone());
    let connections = |state: &str, count: f64| {
        wait_for("the connections", || {
            let samples = parse(&scrape(address));
            (samples[&format!("lasthop_connections{{state=\"{state}\"}}")] == count).then_some(samples)
        })
    };
    wait_for("a tick", || (parse(&scrape(address))["lasthop_ticks_total"] >= 2.0).then_some(()));
    {
        let mut fake = fake.lock().expect("no panic");
        (fake.samples, fake.asleep) = (Vec::new(), 1);
    }
    let asleep = connections("busy", 0.0);
    {
        let mut fake = fake.lock().expect("no panic");
        idle.tcp.acked += lasthop_units::Bytes::new(1_000_000);
        idle.idle = lasthop_units::Span::ZERO;
        (fake.samples, fake.asleep) = (vec![idle], 0);
    }
    let awake = connections("busy", 1.0);
    let carried = awake["lasthop_acked_bytes_total"] - asleep["lasthop_acked_bytes_total"];
    assert!((999_000.0..1_001_000.0).contains(&carried), "{carried}");
    agent.stop().0.expect("a clean stop");
}

#[test]
fn only_get_of_metrics_is_answered_and_in_the_format_that_is_asked_for() {
    let address = free_address();
    let agent = start(address, fake(Vec::new()));
    let head = |request: &str| ask(address, request.as_bytes()).0.lines().next().unwrap_or_default().to_owned();
    assert_eq!(head("GET /metrics HTTP/1.0\n\n"), "HTTP/1.1 200 OK");
    assert_eq!(head("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK");
    assert_eq!(head("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    assert_eq!(head("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    assert_eq!(head("HEAD /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
    let (posted, _) = ask(address, b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    assert!(
        posted.starts_with("HTTP/1.1 405 Method Not Allowed\r\n") && posted.contains("\r\nAllow: GET\r\n"),
        "{posted}"
    );
    for nonsense in ["GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics SPDY/3\r\n\r\n", "\u{0}\u{1}é\r\n\r\n"] {
        assert_eq!(head(nonsense), "HTTP/1.1 400 Bad Request", "{nonsense:?}");
    }
    // A line that never ends is refused after 8 KiB.
    let mut long = b"GET /".to_vec();
    long.resize(8 << 10, b'a');
    assert!(ask(address, &long).0.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
    let (head, body) = ask(address, b"GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
    assert!(
        body.contains("# TYPE lasthop_ticks_total counter\nlasthop_ticks_total ") && !body.contains("# EOF"),
        "{body}"
    );
    agent.stop().0.expect("a clean stop");
}

#[test]
fn slow_and_many_clients_are_served_or_closed_and_delay_no_tick() {
    let address = free_address();
    let agent = start(address, fake(vec![sample(7, 100, 100)]));
    let descriptors = || {
        let names = fs::read_dir("/proc/self/fd").expect("Linux").flatten();
        names
            .filter_map(|name| fs::read_link(name.path()).ok())
            .filter(|to| to.to_string_lossy().starts_with("socket:"))
            .count()
    };
    let before = descriptors();
    // Some say nothing, or half a request, or do not read the answer.
    let open = || TcpStream::connect(address).expect("the kernel's queue has room");
    let mut silent: Vec<_> = (0..20).map(|_| open()).collect();
    let mut half: Vec<_> = (0..20).map(|_| open()).collect();
    half.iter_mut().for_each(|stream| stream.write_all(b"GET /metr").expect("sent"));
    let mut deaf: Vec<_> = (0..20).map(|_| open()).collect();
    deaf.iter_mut().for_each(|stream| stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent"));
    let asked = Instant::now();
    let samples = parse(&scrape(address));
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    assert_eq!(samples["lasthop_connections{state=\"busy\"}"], 1.0);
    // Those that said nothing are closed; those that were asked nothing more of get their answer.
    for stream in silent.iter_mut().chain(&mut half) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
    let answered = deaf.iter_mut().filter_map(|stream| {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).is_ok_and(|_| answer.starts_with("HTTP/1.1 200 OK")).then_some(())
    });
    assert_eq!(answered.count(), 20);
    // A hundred at once, and some that go away within their request.
    let scrapes: Vec<_> = (0..100)
        .map(|index| {
            std::thread::spawn(move || {
                if index % 4 == 0 {
                    let stream = TcpStream::connect(address).expect("it listens");
                    let _ = stream.shutdown(Shutdown::Both);
                    return 0;
                }
                parse(&scrape(address)).len()
            })
        })
        .collect();
    let served = scrapes.into_iter().map(|scrape| scrape.join().expect("served")).filter(|len| *len > 20);
    assert_eq!(served.count(), 75);
    drop((silent, half, deaf));
    wait_for("a tick", || {
        (parse(&scrape(address))["lasthop_ticks_total"] > samples["lasthop_ticks_total"]).then_some(())
    });
    // The last scrape may still be closing.
    assert!(descriptors() <= before + 2, "{before} before, {} after", descriptors());
    let (totals, events) = agent.stop();
    let totals = totals.expect("a clean stop");
    // 50 ms a tick: whoever waited for a client would have missed more.
    assert!(totals.late_ticks * 10 <= totals.ticks, "{totals:?}");
    assert!(events.len() as u64 > totals.ticks);
}

/// 161 clients that say nothing kept everybody else waiting: 32 at a time, for five seconds each.
#[test]
fn one_more_client_takes_the_place_of_the_one_that_has_been_there_longest() {
    let address = free_address();
    let agent = start(address, fake(Vec::new()));
    let mut silent: Vec<_> = (0..200).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    assert!(scrape(address).contains("lasthop_ticks_total"));
    let mut is_open = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).expect("a socket");
        stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open: Vec<bool> = silent.iter_mut().map(&mut is_open).collect();
    // The first ones had to go, and most of the others are still waited for.
    assert!(!open[0] && open.iter().filter(|open| **open).count() > 100, "{open:?}");
    agent.stop().0.expect("a clean stop");
}

#[test]
fn a_port_that_is_taken_and_a_file_that_cannot_be_written_stop_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut config = config("fixed");
    config.metrics.listen = Some(taken.local_addr().expect("an address"));
    config.metrics.textfile = Some("/nonexistent/lasthop.prom".into());
    let agent = Running::start(config, fake(vec![sample(7, 100, 100)]));
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    agent.stop().0.expect("a clean stop");
}

#[test]
fn the_file_is_whole_readable_by_others_and_gone_with_the_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lasthop.prom");
    // What a killed agent left.
    let old = "# HELP lasthop_agent_info Of a killed agent";
    fs::write(&file, old).expect("written");
    let mut config = config("fixed");
    config.metrics.textfile = Some(file.clone());
    let agent = Running::start(config, fake(vec![sample(7, 100, 100)]));
    let text = wait_for("a file", || fs::read_to_string(&file).ok().filter(|text| text != old));
    assert!(text.ends_with('\n') && text.contains("# TYPE lasthop_ticks_total counter\n"), "{text}");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o644);
    let names = |folder: &Path| {
        fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    assert_eq!(names(folder.path()), ["lasthop.prom"]);
    let modified = || fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("it is there");
    let first = modified();
    wait_for("the next file", || (modified() > first).then_some(()));
    agent.stop().0.expect("a clean stop");
    assert_eq!(names(folder.path()).len(), 0);
}

#[test]
fn a_file_of_something_else_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.prom");
    fs::write(&file, "mine 1\n").expect("written");
    let mut config = config("fixed");
    config.metrics.textfile = Some(file.clone());
    assert!(lasthop_agent::can_start(&config).expect_err("it is somebody's").to_string().contains("mine.prom"));
    let agent = Running::start(config, fake(vec![sample(7, 100, 100)]));
    agent.wait_for_tick("a bound", |tick| tick.flows[0].bound.is_some());
    agent.stop().0.expect("a clean stop");
    assert_eq!(fs::read_to_string(&file).expect("there"), "mine 1\n");
}

#[test]
fn a_file_has_its_lock_in_the_folder_of_root_unless_the_configuration_says_otherwise() {
    if !root() {
        return;
    }
    for lock in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lasthop.prom");
        let mut config = config("fixed");
        (config.lock, config.metrics.textfile) = (lock, Some(file.clone()));
        let agent = Running::start(config, fake(vec![sample(7, 100, 100)]));
        wait_for("a file", || file.exists().then_some(()));
        let of_folder = folder.path().file_name().expect("it has one").to_string_lossy().replace('-', "--");
        let locks = fs::read_dir("/run/lasthop").into_iter().flatten().flatten();
        let has_lock = locks.map(|lock| lock.file_name()).any(|name| name.to_string_lossy().contains(&of_folder));
        assert_eq!(has_lock, lock);
        agent.stop().0.expect("a clean stop");
    }
}

#[test]
fn wrong_addresses_and_names_are_refused_and_name_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("agent.toml");
    for (line, key) in [
        ("listen = \"127.0.0.1\"", "metrics.listen"),
        ("listen = \"127.0.0.1:0\"", "metrics.listen"),
        ("listen = \"localhost:29470\"", "metrics.listen"),
        ("listen = 29470", "metrics.listen"),
        ("textfile = \"/var/lib/x/lasthop.txt\"", "metrics.textfile"),
        ("port = 29470", "metrics.port"),
    ] {
        fs::write(&path, format!("[metrics]\n{line}\n")).expect("written");
        let error = Config::load(Some(&path), &[]).expect_err(line).to_string();
        assert!(error.contains("agent.toml:2") && error.contains(key) && error.contains("accepted: "), "{error}");
    }
    fs::write(&path, "[metrics]\nlisten = \"[::1]:29470\"\n").expect("written");
    assert_eq!(Config::load(Some(&path), &[]).expect("valid").metrics.listen, "[::1]:29470".parse().ok());
}

/// What the agent of this host serves at its loopback address.
fn scrape_on(host: &Host) -> String {
    host.run(|| scrape("127.0.0.1:29470".parse().expect("an address")))
}

#[test]
fn on_the_kernel_it_is_served_by_a_thread_without_rights_as_the_guide_and_the_dashboard_have_it() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (a, b) = two_hosts();
    serve(&b);
    let _open = upload(&a, "10.77.0.2:5001");
    let metrics = "[metrics]\nlisten = \"0.0.0.0:29470\"\n";
    let policy = "[policy]\npolicy = \"fixed\"\nbound_segments = 16\n";
    let agent = AgentProcess::start(&a, Mode::Control, &format!("{metrics}{policy}"));
    let _peer = AgentProcess::start(&b, Mode::Advise, "");
    let page = wait_for("a bounded upload and a peer", || {
        let page = scrape_on(&a);
        let samples = parse(&page);
        let is = |name: &str, value: f64| samples.get(name) == Some(&value);
        let done = is("lasthop_bounded_connections", 1.0) && is("lasthop_peers", 1.0);
        (done && samples["lasthop_acked_bytes_total"] > 1e6).then_some(page)
    });
    let samples = parse(&page);
    assert_eq!(samples["lasthop_largest_window_limit_segments"], 16.0);
    assert!(samples["lasthop_beacons_total{result=\"heard\"}"] >= 1.0);
    assert!(
        samples["lasthop_process_resident_memory_bytes"] > 1e6 && samples["lasthop_process_cpu_seconds_total"] > 0.0
    );
    let started = samples["lasthop_process_start_time_seconds"];
    assert!(started > 1.7e9 && samples["lasthop_last_tick_timestamp_seconds"] >= started);
    assert!(
        agent.log().contains("metrics are served without a password to all who reach 0.0.0.0:29470"),
        "{}",
        agent.log()
    );
    let of_thread = fs::read_dir(format!("/proc/{}/task", agent.process.id())).expect("it runs").flatten();
    let statuses = of_thread.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let rights = statuses.filter(|status| status.starts_with("Name:\tlasthop-metrics\n")).map(|status| {
        status
            .lines()
            .filter(|line| line.starts_with("Cap") && !line.starts_with("CapBnd"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let rights: Vec<_> = rights.collect();
    assert_eq!(rights.len(), 1);
    assert!(rights[0].iter().all(|line| line.ends_with("\t0000000000000000")), "{rights:?}");

    hold_the_guide(&page);
    for name in ["dashboard.json", "alerts.yml"] {
        let text = fs::read_to_string(in_repository(&format!("packaging/grafana/{name}"))).expect("readable");
        let named: BTreeSet<_> = words(&text).into_iter().filter(|word| word.starts_with("lasthop_")).collect();
        assert!(named.len() > 5, "{name}: {named:?}");
        let unknown: Vec<_> = named.iter().filter(|word| !is_served(&page, word)).collect();
        assert!(unknown.is_empty(), "packaging/grafana/{name} names {unknown:?}, which no agent serves");
    }
    agent.stop();
    assert!(a.run(|| TcpStream::connect("127.0.0.1:29470").is_err()));
}

/// Runs a program of the repository's folder packaging/grafana; what it said.
fn in_grafana(program: &str, arguments: &[&str]) -> std::io::Result<std::process::Output> {
    std::process::Command::new(program).args(arguments).current_dir(in_repository("packaging/grafana")).output()
}

#[test]
fn the_dashboard_is_what_its_list_makes_and_each_alert_is_raised_by_its_cause_alone() {
    let generated = in_grafana("python3", &["generate", "--check"]).expect("python3 is there");
    assert!(generated.status.success(), "{generated:?}");
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
        match in_grafana("promtool", &arguments) {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "skipped: promtool (Debian: prometheus) {arguments:?}: {error}");
            }
        }
    }
    let [rules, cases] = ["alerts.yml", "alerts.test.yml"]
        .map(|name| fs::read_to_string(in_repository(&format!("packaging/grafana/{name}"))).expect("readable"));
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 10, "{alerts:?}");
    let untried: Vec<_> = alerts.iter().filter(|alert| !cases.contains(&format!("alertname=\"{alert}\""))).collect();
    assert!(untried.is_empty(), "{untried:?}");
}

#[test]
fn every_cause_of_a_rejection_that_is_a_fault_raises_the_alert_and_no_other_does() {
    let rules = fs::read_to_string(in_repository("packaging/grafana/alerts.yml")).expect("readable");
    let others = rules.split("lasthop_rejected_beacons_total{cause!~\"").nth(1).and_then(|rest| rest.split('"').next());
    let others: BTreeSet<_> = others.expect("the alert LasthopPeersRejected").split('|').collect();
    let ordinary: BTreeSet<_> =
        Reject::ALL.iter().filter(|cause| !cause.is_fault()).map(|cause| cause.as_str()).collect();
    assert_eq!(others, ordinary);
    let labels: BTreeSet<_> = Reject::ALL.map(Reject::as_str).into();
    assert_eq!(labels.len(), Reject::ALL.len());
    let page = fs::read_to_string(in_repository("docs/models/beacon.md")).expect("readable");
    let table = page.split("| cause | when |").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a table");
    let told: BTreeSet<_> = table.lines().filter_map(|line| line.split('|').nth(1)).collect();
    let told: BTreeSet<_> = told.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(told, labels, "the table of docs/models/beacon.md");
}

fn in_repository(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// The maximal runs of characters of names.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

fn is_served(page: &str, series: &str) -> bool {
    families(page).iter().any(|(name, kind, _)| match &**kind {
        "counter" => series == format!("{name}_total"),
        "info" => series == format!("{name}_info"),
        "histogram" => ["", "_bucket", "_count", "_sum"].iter().any(|suffix| series == format!("{name}{suffix}")),
        _ => series == name,
    })
}

/// Name, type and meaning of each metric of a page.
fn families(page: &str) -> Vec<(String, String, String)> {
    let of = |what: &str, name: &str| {
        let begin = format!("# {what} {name} ");
        page.lines().find_map(|line| line.strip_prefix(&*begin)).expect("each has one").to_owned()
    };
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    names.map(|name| (name.to_owned(), of("TYPE", name), of("HELP", name))).collect()
}

/// The table of docs/guide/agent-metrics.md; LASTHOP_UPDATE_GUIDE=1 writes it.
fn hold_the_guide(page: &str) {
    let mut table = "| metric | type | what it is |\n| --- | --- | --- |\n".to_owned();
    for (name, kind, help) in families(page) {
        let suffix = match &*kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let series = page.lines().filter(|line| line.starts_with(&format!("{name}{suffix}{{")));
        let labels: BTreeSet<&str> = series
            .flat_map(|line| line.split(['{', '}']).nth(1).unwrap_or_default().split(','))
            .filter_map(|label| Some(label.split_once('=')?.0))
            .collect();
        let labels = Vec::from_iter(labels).join(", ");
        let labels = if labels.is_empty() { labels } else { format!(" by {labels}") };
        table += &format!("| `{name}{suffix}`{labels} | {kind} | {help}. |\n");
    }
    let path = in_repository("docs/guide/agent-metrics.md");
    let text = fs::read_to_string(&path).expect("the page");
    let (before, rest) = text.split_once("<!-- metrics -->\n").expect("a mark");
    let (found, after) = rest.split_once("<!-- end of metrics -->\n").expect("a mark");
    if std::env::var_os("LASTHOP_UPDATE_GUIDE").is_some() {
        let text = format!("{before}<!-- metrics -->\n{table}<!-- end of metrics -->\n{after}");
        fs::write(&path, text).expect("written");
    } else {
        assert_eq!(found, table, "LASTHOP_UPDATE_GUIDE=1 writes the table of docs/guide/agent-metrics.md");
    }
}
