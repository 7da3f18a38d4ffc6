//! Days of the decision loop in minutes: scripted connections and peers, and a clock that leaps from tick to tick.
//! `scripts/soak --compressed` runs it and judges what it writes.

use crate::agent::Agent;
use crate::config::Config;
use crate::error::Result;
use crate::link::interface::Interface;
use crate::tcp::host_tcp::{HostTcp, Loaded, SocketSample, StateChange};
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::bound::Bound;
use lasthop_peers::{PeerId, Report};
use lasthop_status::Mode;
use lasthop_units::{Bytes, Span, Time};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Connections that stay, and those that are opened each second.
const LASTING: u64 = 20;
const OPENED: u64 = 200;
/// Peers at once; one of them goes every half a minute and another comes.
const PEERS: u64 = 10;
const PEER_STAYS: u64 = 10 * 30;
/// Between two rows of the table.
const ROW: Span = Span::from_secs(600);

/// A host whose connections come and go. For a quarter of each hour the access point is full.
struct Scripted {
    tick: u64,
    /// Those with a bound at the last tick.
    bounded: BTreeSet<u64>,
}

impl Scripted {
    fn is_full(&self) -> bool {
        self.tick % 7200 < 1800
    }

    /// `age`: in ticks.
    fn socket(&self, cookie: u64, age: u64, sends: bool) -> SocketSample {
        let srtt = Span::from_millis(if self.is_full() { 300 } else { 22 + self.tick % 5 });
        let local = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 10_000 + (cookie % 50_000) as u16));
        SocketSample {
            cookie,
            tcp: TcpState {
                cwnd_segments: 100,
                srtt: Some(srtt),
                min_rtt: Some(Span::from_millis(20)),
                newest_rtt: Some(srtt),
                in_flight_segments: if sends { 60 } else { 0 },
                unsent: Bytes::new(if sends { 100_000 } else { 0 }),
                sent_segments: age * 60,
                mss_bytes: 1448,
                acked: Bytes::new(if sends { age * 80_000 } else { 500 }),
                received: Bytes::new(age * 100),
                ..TcpState::default()
            },
            local,
            remote: SocketAddr::from((Ipv4Addr::new(198, 51, 100, (cookie % 200) as u8), 443)),
            interface_index: 1,
            in_container: false,
            congestion_control: "lasthop".into(),
            controlled: true,
            left: None,
            retransmitted: Bytes::ZERO,
            delivery_rate: None,
            received_segments: age,
            out_of_order_segments: 0,
            idle: Span::ZERO,
            bound: None,
            bound_until: None,
            rule: None,
        }
    }
}

impl HostTcp for Scripted {
    fn congestion_control(&self) -> Option<&str> {
        Some("lasthop")
    }

    fn adopt(&mut self) -> Result<u64> {
        Ok(0)
    }

    /// Short connections live for one to four ticks.
    fn sample(&mut self) -> Result<Arc<Vec<SocketSample>>> {
        self.tick += 1;
        let lasting = (1..=LASTING).map(|cookie| self.socket(cookie, self.tick, cookie <= 3));
        let opened = OPENED / 2;
        let short = (0..4).flat_map(|age| {
            let born = self.tick.saturating_sub(age);
            let first = LASTING + 1 + born * opened;
            (first..first + opened).filter(move |cookie| cookie % 4 >= age).map(move |cookie| (cookie, age))
        });
        Ok(lasting.chain(short.map(|(cookie, age)| self.socket(cookie, age + 1, false))).collect::<Vec<_>>().into())
    }

    fn asleep(&self) -> u64 {
        500
    }

    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64> {
        each(StateChange {
            at: Time::ZERO,
            cookie: 1,
            from: CongestionState::Open,
            to: CongestionState::Recovery,
            cwnd_segments: 100,
            ssthresh_segments: None,
        });
        Ok(0)
    }

    /// Whoever had a bound is renewed or told that it has none.
    fn set_bounds(&mut self, _: Option<Bound>, flows: &[(u64, Option<Bound>)], _: Span) -> Result<()> {
        let listed: BTreeSet<u64> = flows.iter().map(|(cookie, _)| *cookie).collect();
        assert!(self.bounded.is_subset(&listed), "tick {}: a bound was not renewed", self.tick);
        self.bounded = flows.iter().filter(|(_, bound)| bound.is_some()).map(|(cookie, _)| *cookie).collect();
        Ok(())
    }

    fn release(&mut self) -> Result<u64> {
        Ok(0)
    }
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
#[ignore = "takes minutes: scripts/soak --compressed runs it"]
fn a_day_of_connections_and_peers_that_come_and_go() {
    let hours: u64 = std::env::var("LASTHOP_SOAK_HOURS").map_or(24, |hours| hours.parse().expect("hours"));
    let path = std::env::var_os("LASTHOP_SOAK_CSV").expect("the file of the table");
    let mut table = File::create(path).expect("written");
    writeln!(table, "hours,resident_kib,descriptors,ticks").expect("written");
    let mut config = Config { interface: Some("lo".to_owned()), mode: Mode::Control, ..Config::default() };
    (config.beacon.ipv4, config.beacon.ipv6) = (false, false);
    let mut loader = |_: &Config, _: &Interface, mode: Mode| {
        let tcp = Box::new(Scripted { tick: 0, bounded: BTreeSet::new() });
        Ok(Loaded { tcp, mode, reporter: None })
    };
    let mut agent = Agent::start(&config, None, &mut loader).expect("it starts");
    let begun = crate::clock::monotonic();
    let (mut now, tick) = (begun, config.tick());
    let mut row_at = begun;
    let mut ticks = 0u64;
    while now < begun + Span::from_secs(3600 * hours) {
        let interval = Span::from_secs(1);
        for place in (0..PEERS).filter(|_| ticks.is_multiple_of(2)) {
            // An identity and an address for each stay.
            let stay = (ticks + place * PEER_STAYS / PEERS) / PEER_STAYS * PEERS + place;
            let report = Report { busy_flows: 1, srtt: Some(Span::from_millis(30)), ..Report::default() };
            let from = IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + stay as u32));
            agent.hearing.on_report(now, from, PeerId(1 + stay), interval, report);
        }
        agent.on_tick(now, Span::ZERO);
        agent.poll_beacon(now);
        if ticks % 4 == 3 {
            agent.refresh(now);
        }
        if ticks % 7200 == 7199 {
            agent.on_resumed(now, Span::from_secs(600));
        }
        if ticks % 1200 == 1199 {
            let mut new = config.clone();
            new.policy.minimum_segments = 1 + (ticks / 1200 % 2) as u32;
            agent.on_reload(now, &|| Ok(new.clone()));
        }
        if now >= row_at {
            row_at += ROW;
            let hours = (now - begun).as_secs_f64() / 3600.0;
            let descriptors = fs::read_dir("/proc/self/fd").expect("Linux tells").count();
            writeln!(table, "{hours:.3},{},{descriptors},{ticks}", resident_kib()).expect("written");
        }
        ticks += 1;
        now += tick;
    }
    let totals = agent.stop().expect("it stops");
    assert_eq!(totals.ticks, ticks);
    assert!(totals.flows_enabled >= hours && totals.bounds_changed >= 2 * hours, "{totals}");
    assert_eq!(totals.resumed, hours);
    println!("{totals}");
}
