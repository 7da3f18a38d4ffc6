//! Which peers are believed, and for how long.

use super::*;
use proptest::prelude::*;

const BUSY: Report = Report { busy_flows: 1, ..Report::IDLE };

const BASE: Span = crate::beacon::INTERVAL;

/// A report from an address of its own.
fn hear(table: &mut PeerTable, now: Time, id: PeerId, interval: Span, report: Report) -> Result<(), Reject> {
    table.on_report(now, address(id.0), id, interval, report)
}

fn address(host: u64) -> IpAddr {
    std::net::Ipv6Addr::from(u128::from(host)).into()
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

#[test]
fn all_causes_are_in_the_list_of_them() {
    for (place, cause) in Reject::ALL.into_iter().enumerate() {
        assert_eq!(cause as usize, place, "{cause}");
    }
    assert_eq!(Reject::ALL.last(), Some(&Reject::Address), "the last one");
}

#[test]
fn the_number_of_terminals_counts_this_host_and_busy_peers() {
    let mut table = PeerTable::new(Limits::default());
    assert_eq!(table.neighbourhood(at(0)).terminals(), 1);
    hear(&mut table, at(0), PeerId(1), BASE, BUSY).expect("heard");
    hear(&mut table, at(0), PeerId(2), BASE, Report { busy_flows: 0, ..BUSY }).expect("heard");
    hear(&mut table, at(100), PeerId(1), BASE, BUSY).expect("heard");
    let neighbourhood = table.neighbourhood(at(100));
    assert_eq!(neighbourhood.terminals(), 2);
    assert_eq!(neighbourhood.peers().len(), 2);
    assert_eq!(table.heard(), 3);
}

#[test]
fn a_peer_is_forgotten_two_seconds_after_it_was_heard_last() {
    let mut table = PeerTable::new(Limits::default());
    hear(&mut table, at(1000), PeerId(1), BASE, BUSY).expect("heard");
    assert_eq!(table.neighbourhood(at(2999)).terminals(), 2);
    assert_eq!(table.neighbourhood(at(3000)).terminals(), 1);
}

#[test]
fn a_peer_that_speaks_seldom_is_waited_for_as_many_intervals_and_a_minute_at_most() {
    let mut table = PeerTable::new(Limits::default());
    hear(&mut table, at(0), PeerId(1), Span::from_millis(300), BUSY).expect("heard"); // 2 s
    hear(&mut table, at(0), PeerId(2), Span::from_millis(900), BUSY).expect("heard"); // 6 s
    hear(&mut table, at(0), PeerId(3), Span::from_secs(15), BUSY).expect("heard"); // 100 s
    hear(&mut table, at(0), PeerId(4), Span::MAX, BUSY).expect("heard");
    let mut terminals = |milliseconds| table.neighbourhood(at(milliseconds)).terminals();
    assert_eq!((terminals(1999), terminals(2000)), (5, 4));
    assert_eq!((terminals(5999), terminals(6000)), (4, 3));
    assert_eq!((terminals(59_999), terminals(60_000)), (3, 1));
}

#[test]
fn a_peer_that_speaks_more_often_again_is_forgotten_sooner_again() {
    let mut table = PeerTable::new(Limits::default());
    hear(&mut table, at(0), PeerId(1), Span::from_secs(15), BUSY).expect("heard");
    hear(&mut table, at(100), PeerId(1), BASE, BUSY).expect("heard");
    assert_eq!(table.neighbourhood(at(2099)).peers().len(), 1);
    assert_eq!(table.neighbourhood(at(2100)).peers().len(), 0);
}

#[test]
fn the_hosts_that_share_the_air_are_those_heard_and_those_that_must_be_there() {
    // 100 hosts send every 8 s for two minutes; `heard_of_64` in 64 of their beacons get through.
    let estimate = |heard_of_64: u64| {
        let mut table = PeerTable::new(Limits::default());
        let (mut random, mut now) = (1_u64, Time::ZERO);
        table.crowd(now);
        for beacon in 0..1500_u64 {
            now += Span::from_millis(80);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if random >> 58 < heard_of_64 {
                hear(&mut table, now, PeerId(beacon % 100), Span::from_secs(8), BUSY).expect("heard");
            }
        }
        (table.crowd(now).hosts, table.peers.len())
    };
    assert_eq!(estimate(64), (100, 100));
    // 7.5 beacons of each fall into the time that is remembered. With one in four heard, 1 - 0.75^7.5 = 88 of 100 hosts
    // are known; with one in sixteen, 1 - 0.9375^7.5 = 38. The tolerances, a tenth and a fifth, are two standard
    // deviations or more.
    let (hosts, known) = estimate(16);
    assert!((90..=110).contains(&hosts) && (80..=95).contains(&known), "{hosts}, of which {known} are known");
    let (hosts, known) = estimate(4);
    assert!((75..=125).contains(&hosts) && (28..=48).contains(&known), "{hosts}, of which {known} are known");
    let mut nobody = PeerTable::new(Limits::default());
    assert_eq!((nobody.crowd(at(0)).hosts, nobody.crowd(at(60_000)).hosts), (0, 0));
}

#[test]
fn a_crowd_that_speaks_less_often_than_it_first_said_is_not_taken_for_a_larger_one() {
    // Fifty hosts send every 4 s, and announce 0.3 s the first time. Nothing gets lost.
    let mut table = PeerTable::new(Limits::default());
    let mut most = 0;
    for beacon in 0..150 {
        let (now, interval) = (at(80 * beacon), if beacon < 50 { BASE } else { Span::from_secs(4) });
        hear(&mut table, now, PeerId(beacon % 50), interval, BUSY).expect("heard");
        most = most.max(if beacon >= 75 { table.crowd(now).hosts } else { 0 });
    }
    assert!((50..=55).contains(&most), "{most}");
}

#[test]
fn senders_are_told_from_idle_hosts_where_these_are_heard_and_else_idle_ones_count_as_senders() {
    // Thirty busy hosts send every 0.8 s and seventy idle ones every 8 s; `heard_of_16` in sixteen beacons are heard.
    let crowd = |heard_of_16: u64| {
        let mut table = PeerTable::new(Limits::default());
        let mut random = 1_u64;
        table.crowd(at(0));
        for step in 0..1500_u64 {
            let now = at(80 * step);
            for id in (0..100).filter(|id| if *id < 30 { step % 10 == id % 10 } else { step % 100 == *id }) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if random >> 60 < heard_of_16 {
                    let (interval, report) = if id < 30 { (800, BUSY) } else { (8000, Report::IDLE) };
                    hear(&mut table, now, PeerId(id), Span::from_millis(interval), report).expect("heard");
                }
            }
        }
        table.crowd(at(120_000))
    };
    assert_eq!(crowd(16), Crowd { hosts: 100, senders: 30 });
    let Crowd { hosts, senders } = crowd(15);
    assert!((28..=33).contains(&senders) && (95..=105).contains(&hosts), "{senders} of {hosts}");
    let Crowd { hosts, senders } = crowd(1);
    assert!((60..=hosts).contains(&senders) && (75..=125).contains(&hosts), "{senders} of {hosts}");
}

#[test]
fn a_host_that_is_gone_is_no_longer_reckoned_with_after_a_minute() {
    let mut table = PeerTable::new(Limits::default());
    hear(&mut table, at(0), PeerId(1), BASE, BUSY).expect("heard");
    assert!(table.crowd(at(59_999)).hosts >= 1);
    assert_eq!(table.crowd(at(60_000)).hosts, 0);
}

#[test]
fn idle_peers_make_room_for_a_busy_one_and_busy_ones_do_not() {
    let limits = Limits { identities: 3, ..Limits::default() };
    let mut table = PeerTable::new(limits);
    let idle = Report { busy_flows: 0, ..BUSY };
    for (id, report) in [(1, BUSY), (2, idle), (3, idle)] {
        hear(&mut table, at(id), PeerId(id), Span::from_secs(15), report).expect("there is room");
    }
    assert_eq!(hear(&mut table, at(4), PeerId(9), BASE, idle), Err(Reject::Identities));
    assert_eq!(hear(&mut table, at(4), PeerId(4), BASE, BUSY), Ok(()));
    assert_eq!(hear(&mut table, at(4), PeerId(5), BASE, BUSY), Ok(()));
    assert_eq!(hear(&mut table, at(4), PeerId(6), BASE, BUSY), Err(Reject::Identities));
    let known: Vec<_> = table.neighbourhood(at(4)).peers().iter().map(|peer| peer.id.0).collect();
    assert_eq!(known, [1, 4, 5]);
    table.forget_all();
    assert_eq!((table.neighbourhood(at(4)), table.heard()), (Neighbourhood::alone(), 5));
}

#[test]
fn whoever_invents_identities_fills_the_table_and_no_more() {
    let mut table = PeerTable::new(Limits::default());
    for id in 0..256 {
        hear(&mut table, at(0), PeerId(id), BASE, BUSY).expect("there is room");
    }
    assert_eq!(hear(&mut table, at(1), PeerId(999), BASE, BUSY), Err(Reject::Identities));
    hear(&mut table, at(1), PeerId(5), BASE, BUSY).expect("one that is known is still heard");
    assert_eq!(table.neighbourhood(at(1)).peers().len(), 256);
    hear(&mut table, at(2001), PeerId(999), BASE, BUSY).expect("the others have aged out");
    assert_eq!(table.rejections().of(Reject::Identities), 1);
}

#[test]
fn one_peer_is_heard_twenty_times_a_second() {
    let mut table = PeerTable::new(Limits::default());
    let heard = (0..100).filter(|_| hear(&mut table, at(0), PeerId(1), BASE, BUSY).is_ok()).count();
    assert_eq!(heard, 20);
    // 20 per second: one every 50 ms.
    assert_eq!(hear(&mut table, at(49), PeerId(1), BASE, BUSY), Err(Reject::PeerRate));
    assert_eq!(hear(&mut table, at(50), PeerId(1), BASE, BUSY), Ok(()));
    assert_eq!(table.rejections().of(Reject::PeerRate), 81);
    assert_eq!(hear(&mut table, at(50), PeerId(2), BASE, BUSY), Ok(()));
}

#[test]
fn all_together_are_looked_at_two_thousand_times_a_second() {
    let mut table = PeerTable::new(Limits::default());
    let looked_at = (0..5000).filter(|_| table.on_datagram(at(0)).is_ok()).count();
    assert_eq!(looked_at, 2000);
    assert_eq!(table.rejections().of(Reject::TotalRate), 3000);
    assert_eq!(table.rejections().total(), 3000);
    // One more every 0.5 ms.
    assert!(table.on_datagram(Time::from_nanos(499_999)).is_err());
    assert!(table.on_datagram(Time::from_nanos(500_000)).is_ok());
    assert!(table.on_datagram(Time::from_nanos(999_999)).is_err());
    assert!(table.on_datagram(at(1)).is_ok());
}

#[test]
fn a_flood_that_lasts_is_looked_at_two_thousand_times_a_second_and_leaves_room_when_it_ends() {
    let mut table = PeerTable::new(Limits::default());
    // 30,000 a second for 3 s: the 2000 of the beginning, and 2000 · 89,999 · 33,333 ns = 5999.9.
    let arrivals = (0..90_000).map(|number| Time::from_nanos(number * 33_333));
    let looked_at = arrivals.filter(|now| table.on_datagram(*now).is_ok()).count();
    assert_eq!(looked_at, 7999);
    assert_eq!(table.rejections().of(Reject::TotalRate), 90_000 - 7999);
    // An honest peer's next beacon is looked at.
    assert!(table.on_datagram(at(3300)).is_ok());
    assert_eq!(hear(&mut table, at(3300), PeerId(1), BASE, BUSY), Ok(()));
}

#[test]
fn a_clock_that_stands_still_or_falls_back_gives_no_tokens() {
    let mut bucket = Bucket::full(1, at(1000));
    assert!(bucket.take(at(1000)));
    assert!(!bucket.take(at(0)));
    assert!(!bucket.take(at(1999)));
    assert!(bucket.take(at(2000)));
}

proptest! {
    #[test]
    fn the_table_never_holds_more_than_its_limit_and_accounts_for_everything(
        reports in proptest::collection::vec((0..400_u64, 0..100_u64), 0..600),
    ) {
        let limits = Limits { identities: 50, ..Limits::default() };
        let mut table = PeerTable::new(limits);
        let mut now = Time::ZERO;
        for (id, pause_ms) in &reports {
            now += Span::from_millis(*pause_ms);
            let _ = hear(&mut table, now, PeerId(*id), BASE, BUSY);
            prop_assert!(table.peers.len() <= 50);
        }
        prop_assert_eq!(table.heard() + table.rejections().total(), reports.len() as u64);
        for peer in table.neighbourhood(now).peers() {
            prop_assert!(now.saturating_since(peer.heard_at) < limits.age_out);
        }
    }
}

/// A report from this address, as identity `id`.
fn from(table: &mut PeerTable, now: Time, from: [u8; 4], id: u64) -> Result<(), Reject> {
    table.on_report(now, from.into(), PeerId(id), BASE, BUSY)
}

#[test]
fn an_address_speaks_for_one_identity_and_may_take_another_every_two_seconds() {
    let mut table = PeerTable::new(Limits::default());
    // A thousand identities a second for 10 s: one every 2 s is heard.
    for millisecond in 0..10_000 {
        let _counted = from(&mut table, at(millisecond), [10, 0, 0, 9], 1000 + millisecond);
        assert_eq!(table.neighbourhood(at(millisecond)).terminals(), 2);
    }
    assert_eq!((table.heard(), table.rejections().of(Reject::Identities)), (5, 9995));
    // A restarted host takes its own place.
    assert_eq!(from(&mut table, at(11_000), [10, 0, 0, 1], 1), Ok(()));
    assert_eq!(from(&mut table, at(13_000), [10, 0, 0, 1], 2), Ok(()));
    assert_eq!(table.neighbourhood(at(13_000)).peers().iter().filter(|peer| peer.id.0 < 1000).count(), 1);
}

#[test]
fn nobody_speaks_as_a_peer_from_another_address_while_that_is_heard() {
    let mut table = PeerTable::new(Limits::default());
    assert_eq!(from(&mut table, at(0), [10, 0, 0, 1], 1), Ok(()));
    assert_eq!(from(&mut table, at(1999), [10, 0, 0, 9], 1), Err(Reject::Address));
    assert_eq!(table.rejections().of(Reject::Address), 1);
    // The host has another address now, and has not been heard for 2 s.
    assert_eq!(from(&mut table, at(2000), [10, 0, 0, 2], 1), Ok(()));
    assert_eq!(from(&mut table, at(2001), [10, 0, 0, 1], 1), Err(Reject::Address));
    assert_eq!(from(&mut table, at(2001), [10, 0, 0, 1], 2), Ok(()));
}

#[test]
fn a_host_that_speaks_over_ipv4_and_ipv6_is_one_peer_and_so_it_is_when_it_has_been_restarted() {
    let mut table = PeerTable::new(Limits::default());
    let mut speaks = |milliseconds, id| {
        let (four, six) = (IpAddr::from([10, 0, 0, 1]), "fe80::1".parse().expect("an address"));
        let both = [four, six].map(|address| table.on_report(at(milliseconds), address, PeerId(id), BASE, BUSY));
        (both, table.neighbourhood(at(milliseconds)).terminals())
    };
    assert_eq!(speaks(0, 1), ([Ok(()), Ok(())], 2));
    assert_eq!(speaks(300, 1), ([Ok(()), Ok(())], 2));
    assert_eq!(speaks(2500, 2), ([Ok(()), Ok(())], 2));
}

#[test]
fn an_address_of_the_other_family_does_not_join_in_later() {
    // The victim is known by one address family; the attacker has an unforged address of the other.
    let (four, six) = (IpAddr::from([10, 0, 0, 1]), "fe80::9".parse().expect("an address"));
    for (victim, attacker) in [(four, six), (six, four)] {
        let mut table = PeerTable::new(Limits::default());
        let idle = Report { busy_flows: 0, ..BUSY };
        assert_eq!(table.on_report(at(0), victim, PeerId(1), BASE, BUSY), Ok(()));
        assert_eq!(table.on_report(at(900), victim, PeerId(1), BASE, BUSY), Ok(()));
        for millisecond in 1000..3000 {
            assert_eq!(table.on_report(at(millisecond), attacker, PeerId(1), BASE, idle), Err(Reject::Address));
            if millisecond % 300 == 0 {
                assert_eq!(table.on_report(at(millisecond), victim, PeerId(1), BASE, BUSY), Ok(()));
            }
            assert_eq!(table.neighbourhood(at(millisecond)).terminals(), 2);
        }
    }
}

#[test]
fn a_host_that_comes_back_after_a_silence_may_show_both_addresses_again() {
    let mut table = PeerTable::new(Limits::default());
    let (four, six) = (IpAddr::from([10, 0, 0, 1]), "fe80::1".parse().expect("an address"));
    assert_eq!(table.on_report(at(0), four, PeerId(1), BASE, BUSY), Ok(()));
    assert_eq!(table.on_report(at(1500), six, PeerId(1), BASE, BUSY), Err(Reject::Address));
    assert_eq!(table.on_report(at(3000), four, PeerId(1), BASE, BUSY), Ok(()));
    assert_eq!(table.on_report(at(3001), six, PeerId(1), BASE, BUSY), Ok(()));
    assert_eq!(table.on_report(at(9000), six, PeerId(1), BASE, BUSY), Ok(()));
}

#[test]
fn who_speaks_as_a_peer_over_the_other_family_does_not_use_up_its_rate() {
    let mut table = PeerTable::new(Limits::default());
    let (victim, attacker) = (IpAddr::from([10, 0, 0, 1]), "fe80::9".parse().expect("an address"));
    assert_eq!(table.on_report(at(0), victim, PeerId(1), BASE, BUSY), Ok(()));
    // The attacker was quick enough to be taken for the peer's other address.
    let mut attacks = |now| (0..100).filter(|_| table.on_report(now, attacker, PeerId(1), BASE, BUSY).is_ok()).count();
    assert_eq!(attacks(at(100)), 20);
    assert_eq!(attacks(at(300)), 4);
    assert_eq!(table.on_report(at(300), victim, PeerId(1), BASE, BUSY), Ok(()));
}

#[test]
fn an_address_does_not_hop_between_identities_that_were_met_long_ago() {
    let mut table = PeerTable::new(Limits::default());
    for id in 1..=3 {
        assert_eq!(from(&mut table, at(0), [10, 0, 0, id], id.into()), Ok(()));
    }
    // All three have aged out, so another address may take one of their identities every 2 s.
    let hopper = "fe80::9".parse().expect("an address");
    let heard: Vec<u64> =
        (2000..8000).filter(|now| table.on_report(at(*now), hopper, PeerId(1 + now % 3), BASE, BUSY).is_ok()).collect();
    let taken = heard.windows(2).filter(|pair| pair[0] % 3 != pair[1] % 3).count();
    assert!((1..=2).contains(&taken), "{taken} times");
}

#[test]
fn two_hundred_hosts_that_come_at_once_are_all_heard_at_once() {
    let mut table = PeerTable::new(Limits::default());
    for host in 0..200 {
        assert!(table.on_datagram(at(0)).is_ok());
        assert_eq!(from(&mut table, at(0), [10, 0, 1, host], host.into()), Ok(()));
    }
    assert_eq!((table.neighbourhood(at(0)).terminals(), table.rejections().total()), (201, 0));
}

#[test]
fn with_a_group_key_addresses_do_not_matter() {
    let mut table = PeerTable::new(Limits { authenticated: true, ..Limits::default() });
    for id in 0..100 {
        assert_eq!(from(&mut table, at(0), [10, 0, 0, 9], id), Ok(()));
    }
    assert_eq!(from(&mut table, at(0), [10, 0, 0, 8], 5), Ok(()));
    assert_eq!(table.neighbourhood(at(0)).terminals(), 101);
    assert!(table.neighbourhood(at(0)).is_authenticated());
}
