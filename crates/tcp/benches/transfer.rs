//! The cost of a segment: two endpoints, and a path of constant delay.
//!
//! `cargo bench -p lasthop-tcp --bench transfer [-- SECONDS [CASE]]` prints the wall-clock time for one data segment of
//! each case. It contains its sender, its receiver, its share of an ACK, and the loop here (a queue for each direction,
//! the timers' minimum). With 0 seconds each case runs once, for a profiler that counts instructions.

use lasthop_laws::LawName;
use lasthop_tcp::{Config, DelayedAck, Endpoint, Recovery, Segment};
use lasthop_units::{Bytes, Span, Time};
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

/// A bottleneck: a rate, a queue, a delay each way, and every n-th packet lost.
#[derive(Clone, Copy)]
struct Path {
    mbps: u64,
    queue_packets: u64,
    one_way: Span,
    lose_every: u64,
}

struct Case {
    name: &'static str,
    config: Config,
    path: Path,
}

/// Runs one upload for `simulated`; returns data segments, packets and the sender's state at the end.
fn upload(case: &Case, simulated: Span) -> (u64, u64, lasthop_tcp::Info) {
    let mut now = Time::ZERO;
    let mut client = Endpoint::connect(now, &case.config, LawName::Cubic);
    let mut server = Endpoint::listen(&case.config, LawName::Cubic);
    client.write_endless();
    let (mut forth, mut back) = (VecDeque::<(Time, Segment)>::new(), VecDeque::<(Time, Segment)>::new());
    let (mut link_free, mut packets, mut lost) = (Time::ZERO, 0_u64, 0_u64);
    let transmission = |segment: &Segment| Span::from_nanos(segment.ip_bytes().bits() * 1000 / case.path.mbps);
    let end = now + simulated;
    while now < end {
        while let Some(segment) = client.poll_transmit(now) {
            packets += 1;
            let length = transmission(&segment);
            let backlog = link_free.saturating_since(now);
            lost += 1;
            let overflow = backlog.as_nanos() > length.as_nanos() * case.path.queue_packets;
            if overflow || (case.path.lose_every > 0 && lost.is_multiple_of(case.path.lose_every)) {
                continue;
            }
            link_free = link_free.max(now) + length;
            forth.push_back((link_free + case.path.one_way, segment));
        }
        while let Some(segment) = server.poll_transmit(now) {
            packets += 1;
            back.push_back((now + case.path.one_way, segment));
        }
        now = forth.front().map_or(Time::MAX, |(at, _)| *at);
        now = now.min(back.front().map_or(Time::MAX, |(at, _)| *at));
        now = now.min(client.next_timeout()).min(server.next_timeout());
        while forth.front().is_some_and(|(at, _)| *at <= now) {
            let (_, segment) = forth.pop_front().expect("it was just looked at");
            server.on_segment(now, &segment);
        }
        while back.front().is_some_and(|(at, _)| *at <= now) {
            let (_, segment) = back.pop_front().expect("it was just looked at");
            client.on_segment(now, &segment);
        }
        if client.next_timeout() <= now {
            client.on_timeout(now);
        }
        if server.next_timeout() <= now {
            server.on_timeout(now);
        }
    }
    let info = client.info();
    (info.tcp.sent_segments, packets, info)
}

fn cases() -> Vec<Case> {
    let path = Path { mbps: 100, queue_packets: 10_000, one_way: Span::from_millis(20), lose_every: 0 };
    let y2012 = Config::linux_2012();
    let modern = Config { tsq: None, ..Config::linux_modern() };
    let case = |name, config: &Config, path| Case { name, config: config.clone(), path };
    vec![
        case("2012, no loss", &y2012, path),
        case("2012, no loss, no delayed ACKs", &Config { delayed_ack: DelayedAck::OFF, ..y2012.clone() }, path),
        case("2012, queue overflows", &y2012, Path { queue_packets: 100, ..path }),
        case("2012, 1 % lost", &y2012, Path { lose_every: 101, ..path }),
        case(
            "2012, 5 % lost, RFC 6675",
            &Config { recovery: Recovery::Rfc6675, ..y2012.clone() },
            Path { lose_every: 21, ..path },
        ),
        case("2012, 1 % lost, no SACK", &Config { sack: false, ..y2012 }, Path { lose_every: 101, ..path }),
        case("modern, no loss", &modern, path),
        case("modern, no loss, paced", &Config { pacing: true, ..modern.clone() }, path),
        case("modern, queue overflows", &modern, Path { queue_packets: 100, ..path }),
        case("modern, 1 % lost", &modern, Path { lose_every: 101, ..path }),
        case(
            "modern, 5 % lost, window of 2000",
            &Config { receive_buffer: Bytes::from_kib(8192), send_buffer: Bytes::from_kib(8192), ..modern },
            Path { lose_every: 21, mbps: 1000, ..path },
        ),
    ]
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let wall_s: f64 = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.5);
    let wanted = arguments.next().unwrap_or_default();
    println!(
        "{:34} {:>10} {:>12} {:>9} {:>8} {:>8}",
        "one upload", "ns/segment", "segments/s", "segments", "goodput", "retrans"
    );
    for case in cases().into_iter().filter(|case| case.name.contains(&wanted)) {
        // Many short runs, of which the fastest was not disturbed. Each is long enough for losses.
        let simulated = Span::from_secs(if case.path.lose_every > 0 { 60 } else { 6 });
        let (mut best, start, mut shown) = (f64::MAX, Instant::now(), None);
        while shown.is_none() || start.elapsed().as_secs_f64() < wall_s {
            let start = Instant::now();
            let (segments, _, info) = black_box(upload(&case, simulated));
            best = best.min(start.elapsed().as_secs_f64() / segments as f64);
            let goodput = info.tcp.acked.get() as f64 * 8.0 / 1e6 / simulated.as_secs_f64();
            shown = Some((segments, goodput, 100.0 * info.tcp.retransmits as f64 / segments as f64));
        }
        let (segments, goodput, retransmits) = shown.expect("there is time for one run");
        let name = case.name;
        println!(
            "{name:34} {:>10.1} {:>12.0} {segments:>9} {goodput:>8.2} {retransmits:>7.2}%",
            best * 1e9,
            1.0 / best
        );
    }
}
