//! The law against a bottleneck in fluid, and tick by tick.

use super::*;

/// Hosts that are all the same behind one bottleneck, in fluid: what each of them sees.
struct Bottleneck {
    hosts: f64,
    /// What it passes on, bytes per second, and what is left of that if it collapses: with a queue of `collapse_s`, and until it
    /// is offered less than that.
    capacity: f64,
    collapsed: f64,
    collapse_s: f64,
    has_collapsed: bool,
    base: f64,
    queue_s: f64,
}

impl Bottleneck {
    fn new(hosts: f64, base_ms: f64) -> Self {
        Self {
            hosts,
            capacity: 2.85e6,
            collapsed: 2.85e6,
            collapse_s: f64::INFINITY,
            has_collapsed: false,
            base: base_ms / 1e3,
            queue_s: 0.0,
        }
    }

    fn signals(&self, delivered: f64) -> Signals {
        let hosts = self.hosts as u32;
        let told_free = (0.0, self.hosts - 1.0);
        Signals { terminals: hosts, hosts, told_free, ..Signals::alone(self.base, self.queue_s, delivered) }
    }

    /// Half a second; what one host got.
    fn advance(&mut self, law: &CommonRate, shape: Shape) -> f64 {
        let capacity = if self.has_collapsed { self.collapsed } else { self.capacity };
        let ideal = law.rate * (self.base + shape.room) / 1448.0;
        let window = if shape.sparse { even(ideal).max(shape.least.into()) } else { ideal };
        let paced = law.rate * law.pace(1.0) * self.hosts;
        let flight = window * 1448.0 * self.hosts;
        let most = (flight / capacity - self.base).max(0.0);
        let offered = if shape.sparse { paced } else { (flight / self.base).min(paced) };
        let filled = self.queue_s + 0.5 * (offered / capacity - 1.0);
        self.queue_s = filled.clamp(0.0, most);
        self.has_collapsed = self.queue_s > self.collapse_s || self.has_collapsed && offered > self.collapsed;
        offered.min(capacity) / self.hosts
    }
}

/// r over the fair share, and the queue in s, at each tick.
fn run(bottleneck: &mut Bottleneck, begin: f64, ticks: u32) -> Vec<(f64, f64, f64)> {
    let fair = bottleneck.capacity / bottleneck.hosts;
    let mut law = CommonRate::join(begin * fair, false, &bottleneck.signals(fair));
    go_on(bottleneck, &mut law, ticks)
}

fn go_on(bottleneck: &mut Bottleneck, law: &mut CommonRate, ticks: u32) -> Vec<(f64, f64, f64)> {
    let fair = bottleneck.capacity / bottleneck.hosts;
    let mut got = law.rate.min(fair);
    let step = |_| {
        let signals = bottleneck.signals(got);
        law.on_tick(&signals, None);
        got = bottleneck.advance(law, law.shape(&signals));
        (law.rate / fair, bottleneck.queue_s, got / fair)
    };
    (0..ticks).map(step).collect()
}

#[test]
fn from_far_too_much_and_far_too_little_it_comes_to_the_fair_share() {
    for hosts in [1.0, 3.0, 10.0, 20.0, 25.0, 50.0] {
        for base_ms in [4.0, 20.0, 100.0, 256.0] {
            for begin in [0.2, 1.0, 4.0] {
                let path = run(&mut Bottleneck::new(hosts, base_ms), begin, 120);
                let goodput = path[60..].iter().map(|(_, _, got)| got).sum::<f64>() / 60.0;
                let queue = path[60..].iter().map(|(_, queue, _)| queue).sum::<f64>() / 60.0;
                let case = format!("{hosts} hosts, {base_ms} ms, from {begin}: {goodput:.3}, {:.1} ms", queue * 1e3);
                assert!(goodput > 0.95, "{case}");
                assert!(queue < 0.020 + 0.15 * base_ms / 1e3, "{case}");
            }
        }
    }
}

#[test]
fn paced_hosts_come_to_rest_at_a_fifth_of_the_queue_that_there_may_be() {
    // The limit of the RTT is 1.3 B + 20 ms; of what that leaves for the queue a fifth is 4.2 ms at 4 ms, 5.2 ms at 20 ms.
    for (base_ms, fifth) in [(4.0, 0.0042), (20.0, 0.0052)] {
        let path = run(&mut Bottleneck::new(50.0, base_ms), 1.0, 240);
        let queue = path[120..].iter().map(|(_, queue, _)| queue).sum::<f64>() / 120.0;
        assert!((0.8 * fifth..1.1 * fifth).contains(&queue), "{base_ms} ms: {:.2} ms", queue * 1e3);
    }
}

/// Whether, at this tick, the one hears the other: two of three beacons get lost, by lot (splitmix64).
fn hears(tick: u64, listener: usize, speaker: usize) -> bool {
    let lot = ((tick * 64 + listener as u64) * 64 + speaker as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (lot ^ (lot >> 27)).is_multiple_of(3)
}

#[test]
fn hosts_agree_though_two_of_three_beacons_get_lost_and_one_of_them_is_heard_by_nobody() {
    let bottleneck = Bottleneck::new(10.0, 100.0);
    let signals = bottleneck.signals(2.85e5);
    let begin = |host: u32| CommonRate::join(5e4 * f64::from(1 + host * host), false, &signals);
    let mut laws: Vec<_> = (0..10).map(begin).collect();
    let spread = |laws: &[CommonRate]| {
        let rates = || laws.iter().map(|law| law.rate);
        rates().fold(0.0, f64::max) / rates().fold(f64::INFINITY, f64::min)
    };
    assert_eq!(spread(&laws), 82.0);
    let mut spreads = Vec::new();
    for tick in 0..120 {
        let rates: Vec<_> = laws.iter().map(|law| law.rate).collect();
        for (listener, law) in laws.iter_mut().enumerate() {
            let heard = (0..9).filter(|speaker| *speaker != listener && hears(tick, listener, *speaker));
            let heard = heard.fold((0.0, 0.0), |(sum, count), speaker| (sum + rates[speaker], count + 1.0));
            // Nor do they see the same queue: from 8 to 12 ms, each the same all the time, 10 ms in the mean.
            let excess = 0.008 + 0.004 * listener as f64 / 9.0;
            law.on_tick(&Signals { heard, excess, ..signals }, None);
        }
        spreads.push(spread(&laws));
    }
    // What they see moves them apart by (0.1 + 0.012) / (0.1 + 0.008), 3.7 %, a tick: alone, a factor of 80 in these 60 s.
    let settled = &spreads[10..];
    assert!(settled.iter().all(|spread| *spread < 1.2), "{spreads:.2?}");
    let mean = settled.iter().sum::<f64>() / settled.len() as f64;
    assert!(mean < 1.08, "{mean}");
    // The mean of all was 1.475 MB/s at first, and the queue of all is the one aimed at.
    for law in laws {
        assert!((1e6..2e6).contains(&law.rate), "{}", law.rate);
    }
}

#[test]
fn on_a_medium_that_collapses_it_finds_the_edge_and_stays_just_below() {
    // What rate fallback leaves with a queue, and no queue says so before: a law that asks for one gets no more.
    for (hosts, base_ms, left) in [(3.0, 4.0, 0.2), (10.0, 4.0, 0.05), (10.0, 100.0, 0.2), (50.0, 100.0, 0.2)] {
        let collapsed = 2.85e6 * left;
        let (queue_s, has_collapsed) = (0.3, true);
        let bottleneck = Bottleneck::new(hosts, base_ms);
        let mut fold = Bottleneck { collapsed, collapse_s: 0.002, queue_s, has_collapsed, ..bottleneck };
        let free = collapsed / hosts;
        let mut law = CommonRate::trial(0.5 * free, &fold.signals(free));
        let first = Signals { excess: queue_s, ..fold.signals(free) };
        law.on_tick(&first, Some(Trial { rate: 0.5 * free, free: Some((free, hosts)), least: 0.0, besieged: 0.0 }));
        let path = go_on(&mut fold, &mut law, 600);
        let goodput = path[100..].iter().map(|(_, _, got)| got).sum::<f64>() / 500.0;
        let queued = path[100..].iter().filter(|(_, queue, _)| *queue > 0.02).count();
        assert!(goodput > 0.65, "{hosts} hosts, {base_ms} ms: {goodput:.3}");
        assert!(queued < 80, "{hosts} hosts, {base_ms} ms: a queue at {queued} of 500 ticks");
    }
}

#[test]
fn a_medium_that_gives_more_without_a_queue_than_with_the_first_one_is_known_to_collapse_before_it_does_again() {
    // How many there are, what they got while free over what they may get, and how many there were: of 26 sixteen have gone since.
    for (hosts, part, before, collapses) in [
        (10.0, 0.21, 10.0, true),
        (10.0, 0.21, 7.0, true),
        (10.0, 0.38, 26.0, false),
        (10.0, 0.98, 10.0, false),
        (2.0, 0.85, 2.0, true),
        (2.0, 0.95, 2.0, false),
        (2.0, 0.85, 3.0, false),
        (3.0, 0.85, 3.0, false),
    ] {
        let bottleneck = Bottleneck::new(hosts, 100.0);
        let fair = bottleneck.capacity / hosts;
        let free = part * fair;
        let trial = Some(Trial { rate: free / 2.0, free: Some((free, before)), least: 0.0, besieged: 0.0 });
        let mut law = CommonRate::trial(free / 2.0, &bottleneck.signals(free));
        for _ in 0..5 {
            law.on_tick(&Signals { excess: 0.5, ..bottleneck.signals(free) }, trial);
        }
        let mut got = free / 2.0;
        while got < 0.999 * fair && !law.is_careful() {
            law.on_tick(&Signals { excess: 0.001, ..bottleneck.signals(got) }, trial);
            got = law.rate.min(fair);
        }
        assert_eq!(law.is_careful(), collapses, "{hosts} hosts, {part} with a queue, of {before}");
    }
}

#[test]
fn where_some_have_gone_since_control_began_more_for_each_is_no_sign_of_a_collapse() {
    // Three were heard while the queue stood, and six when it had gone. Three of these go, and each of the others gets twice as much.
    for (came_to, collapses) in [(3, true), (6, false)] {
        let bottleneck = Bottleneck::new(3.0, 100.0);
        let free = 4.7e5;
        let mut law = CommonRate::trial(free / 2.0, &bottleneck.signals(free));
        let trial = Some(Trial { rate: free / 2.0, free: Some((free, 3.0)), least: 0.0, besieged: 0.0 });
        for _ in 0..5 {
            let signals = Signals { terminals: came_to, excess: 0.5, ..bottleneck.signals(free) };
            law.on_tick(&signals, trial);
        }
        for _ in 0..20 {
            let got = law.rate.min(bottleneck.capacity / 3.0);
            law.on_tick(&Signals { excess: 0.001, ..bottleneck.signals(got) }, trial);
        }
        assert_eq!(law.is_careful(), collapses, "{came_to}");
    }
}

#[test]
fn what_does_not_get_through_is_not_asked_for_any_longer_where_a_queue_stands() {
    // The queue in q*, and what gets through of r: 0.7 and 0.9.
    for (queue, used, falls) in [(1.9, 0.7, false), (2.1, 0.7, true), (2.1, 0.9, false)] {
        let fair = 5e5;
        let signals = Signals { terminals: 5, ..Signals::alone(0.004, 0.0, used * fair) };
        let mut law = CommonRate::join(fair, false, &signals);
        let excess = queue * law.shape(&signals).target;
        law.on_tick(&Signals { excess, ..signals }, None);
        let expected = if falls { used..used + 1e-9 } else { 0.98..1.0 };
        assert!(expected.contains(&(law.rate / fair)), "{queue} q*, {used}: {}", law.rate / fair);
    }
}

#[test]
fn how_deep_a_collapse_is_is_judged_for_as_many_as_there_are_now() {
    // What a host got while the medium had collapsed, over where the edge is now; how many there are, and were then.
    for (part, hosts, before, brake) in
        [(0.2, 10, 10.0, 0.8), (0.2, 10, 3.0, 0.4), (0.05, 10, 10.0, 0.4), (0.05, 10, 30.0, 0.8)]
    {
        let fair = 1e5;
        let signals = Signals { terminals: hosts, excess: 0.3, ..Signals::alone(0.1, 0.3, fair) };
        let mut law = CommonRate::join(fair, false, &signals);
        (law.edge, law.congested) = (Some(Edge::at(fair)), (part * fair, before));
        law.on_tick(&signals, None);
        assert!((law.rate / fair - brake).abs() < 1e-9, "{part} of {before} for {hosts}: {}", law.rate / fair);
    }
}

#[test]
fn a_medium_whose_capacity_falls_for_good_is_not_taken_for_one_that_collapses() {
    // One of five hosts goes to 6 Mb/s: 23 Mb/s become less than half, and the queue is there before the law has answered.
    for base_ms in [4.0, 100.0, 256.0] {
        let mut bottleneck = Bottleneck::new(5.0, base_ms);
        let mut law = CommonRate::join(5.7e5, false, &bottleneck.signals(5.7e5));
        go_on(&mut bottleneck, &mut law, 120);
        bottleneck.capacity *= 0.4;
        bottleneck.collapsed = bottleneck.capacity;
        let path = go_on(&mut bottleneck, &mut law, 60);
        go_on(&mut bottleneck, &mut law, 540);
        assert!(!law.is_careful(), "{base_ms} ms");
        for (tick, (rate, queue, _)) in path.iter().enumerate().skip(8) {
            assert!(
                (0.8..1.25).contains(rate) && *queue < 0.025 + 0.15 * base_ms / 1e3,
                "{base_ms} ms, {tick}: {rate} {queue}"
            );
        }
    }
}

#[test]
fn less_with_a_queue_again_and_again_is_a_collapse_but_not_where_less_is_all_there_is() {
    // Queues of three seconds, too short each for a collapse; what is delivered between them.
    let becomes_careful = |between: f64| {
        let signals = Bottleneck::new(5.0, 100.0).signals(1e6);
        let mut law = CommonRate::join(1e6, false, &signals);
        let target = law.shape(&signals).target;
        let tick = |law: &mut CommonRate, queue: f64, mean_delivered| {
            law.rate = 1e6;
            law.on_tick(&Signals { excess: queue * target, mean_delivered, ..signals }, None);
        };
        (0..40).for_each(|_| tick(&mut law, 1.0, 1e6));
        (0..20).find(|_| {
            (0..6).for_each(|_| tick(&mut law, 3.0, 5e5));
            (0..20).for_each(|_| tick(&mut law, 0.8, between));
            law.is_careful()
        })
    };
    assert_eq!(becomes_careful(1e6), Some(2));
    assert_eq!(becomes_careful(5e5), None);
}

#[test]
fn what_may_collapse_is_paced_at_r_only_where_windows_would_let_through_far_more() {
    let paced = |rate_mbps: f64, base: f64| {
        let rate = rate_mbps * 1e6 / 8.0;
        let signals = Signals::alone(base, 0.0, rate);
        let mut law = CommonRate { edge: Some(Edge::at(rate)), ..CommonRate::join(rate, false, &signals) };
        law.on_tick(&signals, None);
        law
    };
    let pace = |rate_mbps: f64, base: f64| paced(rate_mbps, base).pace(1.0);
    // Two segments on a path of 4 ms are 5.8 Mb/s, on 100 ms 0.23; on 256 ms 0.05 Mb/s has four, which are 0.18.
    assert_eq!((pace(4.0, 0.004), pace(2.5, 0.004)), (3.0, 1.0));
    assert_eq!((pace(4.0, 0.1), pace(0.2, 0.1), pace(0.1, 0.1), pace(0.05, 0.256)), (3.0, 3.0, 1.0, 1.0));
    // And in a host whose path is shorter by far, but only where the medium may collapse.
    let mut law = paced(4.0, 0.1);
    assert_eq!((law.pace(1.9), law.pace(2.1), law.pace(f64::INFINITY)), (3.0, 1.0, 1.0));
    law.edge = None;
    law.on_tick(&Signals::alone(0.1, 0.0, 5e5), None);
    assert_eq!(law.pace(9.0), SLACK);
}

#[test]
fn while_the_edge_is_looked_for_it_is_one_tick_back_and_later_the_least_of_four() {
    let edge_after = |known: Option<f64>| {
        let signals = Signals::alone(0.1, 0.0, 1e6);
        let edge = known.map_or_else(Edge::somewhere, Edge::at);
        let mut law = CommonRate { edge: Some(edge), ..CommonRate::join(1e6, false, &signals) };
        let mut rates = vec![];
        for tick in 0..6 {
            rates.push(law.rate);
            let excess = if tick < 5 { 0.0 } else { 0.05 };
            law.on_tick(&Signals { excess, ..signals }, None);
        }
        let rate = law.edge.as_ref().map(|edge| edge.shown()).expect("it is known");
        rates.iter().position(|earlier| (earlier / rate - 1.0).abs() < 1e-9)
    };
    assert_eq!((edge_after(None), edge_after(Some(1e6))), (Some(4), Some(2)));
}

#[test]
fn what_had_fallen_before_the_medium_was_known_to_collapse_does_not_count_when_it_is_taken_for_an_ordinary_one_again() {
    let signals = Bottleneck::new(5.0, 100.0).signals(1e6);
    let mut law = CommonRate::join(1e6, false, &signals);
    let target = law.shape(&signals).target;
    let tick = |law: &mut CommonRate, queue: f64, mean_delivered| {
        law.on_tick(&Signals { excess: queue * target, mean_delivered, ..signals }, None);
    };
    (0..40).for_each(|_| tick(&mut law, 1.0, 1e6));
    while !law.is_careful() {
        tick(&mut law, 3.0, 5e5);
    }
    (0..20).for_each(|_| tick(&mut law, 3.0, 3e5));
    (0..200).for_each(|count| tick(&mut law, if count % 10 == 0 { 1.2 } else { 0.1 }, 1e6));
    assert!(!law.is_careful() && law.fallen_ticks == 0.0, "{} {:?}", law.fallen_ticks, law.edge);
}

#[test]
fn a_medium_that_was_wrongly_taken_for_one_that_collapses_costs_little_and_is_taken_for_an_ordinary_one_again() {
    for base_ms in [4.0, 100.0] {
        let mut bottleneck = Bottleneck::new(10.0, base_ms);
        let fair = bottleneck.capacity / 10.0;
        let mut law = CommonRate::join(fair, false, &bottleneck.signals(fair));
        law.edge = Some(Edge::somewhere());
        let path = go_on(&mut bottleneck, &mut law, 600);
        let goodput = path.iter().map(|(_, _, got)| got).sum::<f64>() / 600.0;
        assert!(!law.is_careful() && goodput > 0.9, "{base_ms} ms: {goodput:.3}, {:?}", law.edge);
    }
}

#[test]
fn who_comes_to_hosts_whose_medium_collapses_is_as_careful_and_one_who_says_so_among_three_makes_nobody_careful() {
    let signals = Bottleneck::new(4.0, 100.0).signals(7e5);
    for (careful, others, adopts) in [(1.0, 3.0, false), (2.0, 3.0, true), (1.0, 1.0, true), (0.0, 0.0, false)] {
        let mut law = CommonRate::join(7e5, false, &signals);
        law.on_tick(&Signals { careful, controlling: others, ..signals }, None);
        assert_eq!(law.is_careful(), adopts, "{careful} of {others}");
    }
    // It begins where they are, not below: no queue has been seen.
    let mut law = CommonRate::join(7e5, false, &signals);
    let all = Signals { careful: 3.0, controlling: 3.0, ..signals };
    law.on_tick(&all, None);
    assert!((0.99..1.01).contains(&(law.rate / 7e5)), "{}", law.rate);
    // After four queues that hardly grew it is not talked into it again.
    for queue in [2.0, 0.1].repeat(4) {
        let excess = queue * law.shape(&signals).target * 0.9;
        law.on_tick(&Signals { excess, ..all }, None);
    }
    assert!(!law.is_careful());
}

#[test]
fn a_few_packets_at_a_low_rate_are_no_queue() {
    let signals = Bottleneck::new(10.0, 4.0).signals(5e3);
    let aim = |rate: f64| CommonRate::join(rate, false, &signals).shape(&signals).target;
    // 4 segments of 1448 bytes at 10 · 10 kB/s are 58 ms; at 10 · 285 kB/s they are 2 ms.
    assert!((0.057..0.059).contains(&aim(1e4)), "{}", aim(1e4));
    assert_eq!(aim(2.85e5), PACE_TARGET.0 + PACE_TARGET.1 * 0.004);
    assert_eq!(aim(1.0), PACKETS.1);
}

/// q* in ms and the least window, of a host that has a part of r of its own and gets another.
fn shape_of(rate_mbps: f64, gets: f64, base_ms: f64) -> (f64, u32) {
    let rate = rate_mbps * 1e6 / 8.0;
    let signals = Signals { terminals: 20, ..Signals::alone(base_ms / 1e3, 0.005, gets * rate) };
    let Shape { target, least, .. } = CommonRate::join(rate, false, &signals).shape(&signals);
    ((target * 1e4).round() / 10.0, least)
}

#[test]
fn where_two_segments_each_are_a_queue_that_may_be_they_clock_themselves() {
    // At 1.1 Mb/s two segments take 21.1 ms, 17.1 more than the path of 4 ms, and 20 + 1.2 ms may be.
    assert_eq!(shape_of(1.1, 1.0, 4.0), (11.9, LEAST_CLOCKED));
    // At 2.2 Mb/s they are 6.5 ms, little more than what is aimed at anyway; at 0.5 Mb/s 42 ms, more than may be.
    assert_eq!(shape_of(2.2, 1.0, 4.0), (4.2, LEAST_SEGMENTS));
    assert_eq!(shape_of(0.5, 1.0, 4.0).1, LEAST_SEGMENTS);
    // Four on 20 ms: 42.1 − 20.
    assert_eq!(shape_of(1.1, 1.0, 20.0), (15.5, 4));
}

#[test]
fn who_does_not_get_its_share_with_as_small_a_window_as_the_others_has_a_larger_one() {
    assert_eq!(shape_of(1.1, 0.65, 4.0), (11.9, LEAST_SEGMENTS));
}

#[test]
fn on_a_short_path_that_may_collapse_windows_are_bare_and_where_it_has_collapsed_they_are_not() {
    let shape = |rate_mbps: f64| {
        let rate = rate_mbps * 1e6 / 8.0;
        let signals = Signals::alone(0.004, 0.001, rate);
        let law = CommonRate { edge: Some(Edge::somewhere()), ..CommonRate::join(rate, false, &signals) };
        let Shape { sparse, room, least, .. } = law.shape(&signals);
        (sparse, room, least)
    };
    assert_eq!(shape(2.0), (true, 0.0, LEAST_CLOCKED));
    // Nine segments a second; and 2.4 segments in 4 ms, for which the window decides.
    assert_eq!(shape(0.105), (true, 2.0 * 0.0042, LEAST_SEGMENTS));
    assert_eq!(shape(7.0), (false, 0.0, LEAST_SEGMENTS));
}

#[test]
fn who_comes_to_a_trial_without_a_rate_of_its_own_keeps_what_it_came_with_until_the_queue_has_gone() {
    let queue = |excess: f64| Signals { heard: (9e5, 9.0), terminals: 10, ..Signals::alone(0.02, excess, 1e3) };
    let mut law = CommonRate::join(2.5e4, true, &queue(0.5));
    for _ in 0..10 {
        law.on_tick(&queue(0.5), None);
        assert_eq!(law.rate, 2.5e4);
    }
    for _ in 0..2 {
        law.on_tick(&queue(0.0), None);
        assert_eq!(law.rate, 2.5e4);
    }
    law.on_tick(&queue(0.0), None);
    assert!(law.rate > 0.9e5, "{}", law.rate);
}

#[test]
fn a_queue_that_others_keep_on_purpose_need_not_go() {
    // 19 others with 1.1 Mb/s each keep up to 17.1 ms on 4 ms, with a tenth of that next to nothing.
    let beside = |excess, rate_mbps: f64| Signals {
        known: (19.0 * rate_mbps * 1e6 / 8.0, 19.0),
        terminals: 20,
        ..Signals::alone(0.004, excess, 1e4)
    };
    let drains = |excess, rate_mbps| {
        let mut law = CommonRate::join(3e4, true, &beside(excess, rate_mbps));
        (0..5).for_each(|_| law.on_tick(&beside(excess, rate_mbps), None));
        law.is_draining()
    };
    assert_eq!([drains(0.015, 1.1), drains(0.019, 1.1), drains(0.015, 0.11)], [false, true, true]);
}

#[test]
fn four_segments_are_no_queue_where_the_window_decides_either() {
    // 1 Mb/s alone on 256 ms: 22 segments in flight, and four more are 48 ms where a tenth of the path would be 26.
    let signals = Bottleneck::new(1.0, 256.0).signals(1.2e5);
    let shape = CommonRate::join(1.2e5, false, &signals).shape(&signals);
    assert!(!shape.sparse);
    assert!((shape.target - 4.0 * 1448.0 / 1.2e5).abs() < 1e-9, "{}", shape.target);
}

#[test]
fn a_trial_that_went_deep_for_a_long_queue_does_not_begin_again_from_there() {
    let signals = |excess| Signals { excess, ..Bottleneck::new(1.0, 20.0).signals(1.2e5) };
    let trial = Some(Trial { rate: 6e3, free: None, least: 9e4, besieged: 0.0 });
    let mut law = CommonRate::trial(6e3, &signals(6.0));
    law.on_tick(&signals(3.0), trial);
    law.on_tick(&signals(0.001), trial);
    assert_eq!(law.rate, 6e3, "the queue may come back");
    law.on_tick(&signals(0.001), trial);
    assert!(!law.is_draining());
    assert!((law.rate - 9e4).abs() < 1e-6, "{}", law.rate);
}

#[test]
fn in_a_queue_that_stays_r_keeps_a_part_of_what_was_free_and_windows_that_let_it_through() {
    // Hosts without the agent fill 0.3 s, and what gets through is in proportion to the window.
    let signals = |delivered| Signals { excess: 0.3, ..Bottleneck::new(4.0, 100.0).signals(delivered) };
    let after = |besieged, ticks| {
        let trial = Some(Trial { rate: 6e5, free: None, least: 0.0, besieged });
        let mut law = CommonRate::join(7e5, false, &signals(7e5));
        for _ in 0..ticks {
            let room = law.shape(&signals(0.0)).room + if law.shape(&signals(0.0)).draining { 0.3 } else { 0.0 };
            law.on_tick(&signals(law.rate * ((0.1 + room) / 0.4).min(1.0)), trial);
        }
        law
    };
    assert!(after(0.0, 20).rate < 2e5, "{}", after(0.0, 20).rate);
    let mut law = after(3e5, 20);
    let shape = law.shape(&signals(3e5));
    assert_eq!((law.rate, law.pace, shape.draining, law.is_draining()), (3e5, 1.0, true, false));
    assert_eq!(shape.least, DRAINING_SEGMENTS);
    assert!(!law.is_careful(), "the medium has not collapsed");
    // Control ends in this time; if somebody's lies keep it from that the host is to see that it starves.
    assert!(after(3e5, 60).rate < 1e5, "{}", after(3e5, 60).rate);
    // Until it goes.
    law.on_tick(&Signals { excess: 0.001, ..signals(3e5) }, None);
    assert!(!law.shape(&signals(3e5)).draining && law.rate >= 3e5);
}

#[test]
fn clocked_windows_are_the_same_for_hosts_whose_lowest_rtts_differ_a_little() {
    // 2.5 Mb/s over 4.4 ms and an aim of 4.2 are 1.9 segments, over 5.4 ms 2.1: four.
    let shape = |base_ms| {
        let signals = Bottleneck::new(5.0, base_ms).signals(3.2e5);
        CommonRate::join(3.2e5, false, &signals).shape(&signals)
    };
    let (short, long) = (shape(4.4), shape(5.4));
    assert!(clocked(3.2e5, &Bottleneck::new(5.0, 5.4).signals(3.2e5)).is_some());
    assert_eq!((short.least, long.least), (LEAST_SEGMENTS, 4));
}

#[test]
fn whoever_leaves_frees_his_share_at_once_and_whoever_comes_costs_nothing_before_a_queue_says_so() {
    let signals = Signals { excess: 0.004, ..Bottleneck::new(4.0, 100.0).signals(7e5) };
    let mut law = CommonRate::join(7e5, false, &signals);
    law.on_tick(&Signals { terminals: 2, ..signals }, None);
    assert!(law.rate > 1.9 * 7e5, "{}", law.rate);
    let before = law.rate;
    law.on_tick(&Signals { terminals: 4, ..signals }, None);
    assert!(law.rate >= before, "{}", law.rate);
}

#[test]
fn windows_are_held_up_to_the_rate_but_not_to_what_does_not_get_through() {
    let signals = Bottleneck::new(4.0, 100.0).signals(7e5);
    let law = CommonRate::join(7e5, false, &signals);
    assert_eq!(law.floor(&signals), 7e5);
    // A newcomer triples at each tick; and however large r is, all together ask for little more than all get.
    assert_eq!(law.floor(&Signals { delivered_now: 1e4, ..signals }), 3e4);
    assert_eq!(law.floor(&Signals { mean_delivered: 4e5, ..signals }), 5e5);
    assert_eq!(CommonRate::join(7e5, true, &signals).floor(&signals), 0.0);
}

#[test]
fn no_word_and_no_queue_brings_it_below_the_least_rate() {
    let signals = Signals { excess: 9.0, ..Bottleneck::new(4.0, 100.0).signals(0.0) };
    let mut law = CommonRate::join(7e5, false, &signals);
    for _ in 0..50 {
        law.on_tick(&Signals { heard: (0.0, 255.0), ..signals }, None);
    }
    assert_eq!(law.rate, LEAST_PER_SECOND * 1448.0);
    assert!(law.shape(&signals).sparse);
}
