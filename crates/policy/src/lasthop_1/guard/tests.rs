//! What is compared, tick by tick.

use super::*;

const AIM: f64 = 0.010;

fn signals(at_s: f64, excess: f64, delivered: f64) -> Signals {
    Signals { now: Time::ZERO + Span::from_secs_f64(at_s), ..Signals::alone(0.1, excess, delivered) }
}

/// Congested at 1 MB/s from the beginning: when the trial begins, and at which rate.
fn trial(guard: &mut Guard) -> (f64, f64) {
    (0..)
        .map(|tick| f64::from(tick) / 2.0)
        .find_map(|at_s| {
            let now = signals(at_s, 0.2, 1e6);
            guard.look(&now, at_s, AIM);
            match guard.without_control(&now, false, AIM) {
                Entry::Trial(rate) => Some((at_s, rate)),
                Entry::Join(..) => panic!("nobody else is there"),
                Entry::Wait => None,
            }
        })
        .expect("a trial begins")
}

#[test]
fn a_trial_begins_after_a_first_look_with_a_part_of_what_this_host_got() {
    // However little the others get: 0.2 s of queue, so the most that a trial asks for.
    let (at_s, rate) = trial(&mut Guard::default());
    assert_eq!((at_s, rate), (10.0, 0.75 * 1e6));
    let calm = Guard::default().without_control(&signals(100.0, 0.005, 1e6), false, AIM);
    assert!(matches!(calm, Entry::Wait));
}

#[test]
fn what_was_free_is_told_to_a_trial_only_right_after_and_with_the_most_hosts_that_were_heard() {
    let mut guard = Guard::default();
    for tick in 0..20 {
        let terminals = [6, 9, 7, 5][tick % 4];
        let now = Signals { terminals, ..signals(tick as f64 / 2.0, 0.2, 1e6) };
        guard.look(&now, 9.0, AIM);
        guard.without_control(&now, false, AIM);
    }
    let mut free_after = |at_s| {
        let now = signals(at_s, 0.2, 1e6);
        guard.begin(&now, 5e5);
        guard.trial(&now).expect("it has been free").free
    };
    assert_eq!((free_after(10.0), free_after(13.0)), (Some((1e6, 9.0)), None));
}

#[test]
fn a_queue_that_does_not_drain_ends_the_trial_and_the_next_comes_later_each_time() {
    let mut guard = Guard::default();
    let (mut at_s, _) = trial(&mut guard);
    for hold_s in [30.0, 60.0, 120.0, 240.0, 240.0] {
        let begun_s = at_s;
        while guard.under_control(&signals(at_s, 0.2, 5e5), 5e5, true, AIM) == Exit::No {
            at_s += 0.5;
        }
        assert!(at_s - begun_s < 12.0, "the trial took {}", at_s - begun_s);
        let free_s = at_s;
        while matches!(guard.without_control(&signals(at_s, 0.2, 1e6), false, AIM), Entry::Wait) {
            at_s += 0.5;
        }
        assert_eq!(at_s - free_s, hold_s);
    }
}

#[test]
fn a_trial_in_vain_is_followed_by_ten_times_what_it_has_cost() {
    let free_s = |delivered: f64| {
        let mut guard = Guard::default();
        let (begun_s, _) = trial(&mut guard);
        let at_s = |tick: u32| begun_s + f64::from(tick) / 2.0;
        let end = (0..100)
            .find(|tick| guard.under_control(&signals(at_s(*tick), 0.2, delivered), 7.5e5, true, AIM) == Exit::Harm)
            .expect("it is in vain");
        let next = (end..1000)
            .find(|tick| matches!(guard.without_control(&signals(at_s(*tick), 0.2, 1e6), false, AIM), Entry::Trial(_)));
        (at_s(end) - begun_s, at_s(next.expect("another one follows")) - at_s(end))
    };
    // 10 ticks at three quarters of what was free cost 1.25 s: the least is longer; at two tenths they cost 4 s, at nothing 5 s.
    assert_eq!((free_s(7.5e5), free_s(2e5), free_s(0.0)), ((4.5, 30.0), (4.5, 40.0), (4.5, 50.0)));
}

#[test]
fn what_control_costs_all_in_the_mean_counts_from_its_trial_on_until_it_has_been_worth_it() {
    // This host gets a part of what it got while free, so do all in the mean. The queue has gone after 5 s; the others find it harmful later.
    let after = |own: fn(u32) -> f64, all: f64, terminals: u32, vote_tick: u32| {
        let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
        let of_ten = |tick: u32, delivered, mean_delivered| Signals {
            hosts: 10,
            terminals,
            controlling: 9.0,
            harmed: if tick < vote_tick { 0.0 } else { 9.0 },
            told_free: (9e6, 9.0),
            mean_delivered,
            ..signals(60.0 + f64::from(tick) / 2.0, 0.2, delivered)
        };
        assert!(matches!(guard.without_control(&of_ten(0, 1e6, 1e6), false, AIM), Entry::Trial(_)));
        let end = (1..200)
            .find(|tick| {
                let now = of_ten(*tick, 1e6 * own(*tick), 1e6 * all);
                guard.under_control(&now, 7.5e5, *tick <= 10, AIM) == Exit::Harm
            })
            .expect("most find it harmful");
        guard.free_until.saturating_since(of_ten(end, 0.0, 0.0).now).as_secs_f64().round()
    };
    // 10 s at a fifth cost 8 s, whoever it is; half of a share where twenty are what ten were costs nothing.
    let costs = [after(|_| 0.2, 1.0, 10, 20), after(|_| 1.0, 0.2, 10, 20), after(|_| 1.0, 0.5, 20, 20)];
    assert_eq!(costs, [80.0, 80.0, 30.0]);
    // Who gets twice his share every other tick has lost none.
    assert_eq!(after(|tick| 2.0 * f64::from(tick % 2), 1.0, 10, 20), 30.0);
    // What has lasted a minute is looked at anew for the usual time, whatever it has cost.
    let mut guard = Guard { own_free: 1e6, control_s: 70.0, lost_s: (30.0, 30.0), ..Guard::default() };
    guard.under_control(&signals(60.0, 0.005, 1e6), 1e6, false, AIM);
    assert_eq!(guard.lost_s, (0.0, 0.0));
}

#[test]
fn a_trial_begins_to_count_when_what_was_on_its_way_before_has_arrived_but_no_later_than_after_fifteen_seconds() {
    let takes_s = |in_flight: f64, left: f64| {
        let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
        guard.without_control(&Signals { in_flight, ..signals(60.0, 0.2, 1e6) }, false, AIM);
        let during = |tick: u32| {
            let acked = 2.5e5 * f64::from(tick) / 2.0;
            let in_flight = (in_flight - acked).max(1e4).min(left);
            Signals { acked, in_flight, ..signals(60.0 + f64::from(tick) / 2.0, 0.2, 2.5e5) }
        };
        let end = (1..100).find(|tick| guard.under_control(&during(*tick), 7.5e5, true, AIM) == Exit::Harm);
        f64::from(end.expect("it is in vain")) / 2.0
    };
    // 4 s + 0.3 s + 0.3 s of RTT; 1 MB at 250 kB/s takes 4 s, less the tick at which the last of it arrives; 5 MB take 20 s.
    assert_eq!((takes_s(0.0, 5e6), takes_s(1e6, 5e6), takes_s(5e6, 5e6)), (5.0, 8.5, 20.0));
    // What a connection that has ended had on its way is not waited for.
    assert_eq!(takes_s(5e6, 1e4), 5.5);
}

#[test]
fn what_control_was_worth_for_a_minute_is_only_looked_at_anew() {
    let mut guard = Guard { own_free: 1e6, lately: 1e6, own_lately: 1e6, ..Guard::default() };
    guard.without_control(&signals(60.0, 0.2, 1e6), false, AIM);
    let mut control = |from: u32, delivered: f64| {
        let second = |tick: u32| 60.0 + f64::from(tick) / 2.0;
        let end = (from..from + 1000).find(|tick| {
            guard.under_control(&signals(second(*tick), 0.005, delivered), delivered, false, AIM) == Exit::Harm
        })?;
        let next = (end..end + 1000).find(|tick| {
            let now = signals(second(*tick), 0.2, delivered);
            matches!(guard.without_control(&now, false, AIM), Entry::Trial(_))
        })?;
        Some((second(end), second(next) - second(end), next))
    };
    assert_eq!(control(1, 0.95e6), None);
    // Half of it is left, no queue, and a host that is alone: harm after 12 s / 1.8.
    let (_, free_s, again) = control(1001, 0.5e6).expect("it does harm");
    assert_eq!(free_s, LOOK_AGAIN_S);
    // Control that does harm before it was worth anything is given up for longer.
    assert_eq!(control(again, 0.2e6).map(|(_, free_s, _)| free_s), Some(HOLD_S.0));
}

#[test]
fn the_longer_the_queue_the_deeper_the_trial() {
    let rate = |hosts, excess| {
        let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
        match guard.without_control(&Signals { hosts, ..signals(60.0, excess, 1e6) }, false, AIM) {
            Entry::Trial(rate) => rate,
            _ => panic!("a trial begins"),
        }
    };
    // A queue of 1.5 s goes in 3 s at half the rate, one of 10 s begins at the least.
    assert_eq!((rate(2, 0.3), rate(2, 1.5), rate(2, 10.0)), (7.5e5, 5e5, 3e5));
    // Who hears nobody is not the one who can make it go.
    assert_eq!((rate(1, 0.3), rate(1, 1.5), rate(1, 10.0)), (7.5e5, 5e5, 5e5));
}

#[test]
fn a_trial_that_brings_nothing_goes_on_with_less_and_what_does_not_get_through_sooner() {
    let after = |delivered: fn(f64) -> f64| {
        let mut guard = Guard { own_free: 1e6, has_looked: true, ..Guard::default() };
        guard.without_control(&signals(60.0, 0.2, 1e6), false, AIM);
        let begun = guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate;
        for tick in 0..12 {
            let rate = guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate;
            let now = Signals { hosts: 10, ..signals(60.0 + f64::from(tick) / 2.0, 0.2, delivered(rate)) };
            assert_eq!(guard.under_control(&now, rate, true, AIM), Exit::No);
        }
        guard.trial(&signals(0.0, 0.0, 0.0)).expect("it has been free").rate / begun
    };
    // 12 ticks, of which two are later than 5 s; and 0.93^12.
    assert!((after(|rate| rate) - 0.98_f64.powi(2)).abs() < 1e-9);
    assert!((after(|rate| rate / 2.0) - 0.93_f64.powi(12)).abs() < 1e-9);
}

#[test]
fn what_is_left_is_measured_by_the_mean_of_what_all_got_newcomers_included() {
    let ends_s = |lately: f64, told_free, terminals| {
        let mut guard = Guard { own_free: 2e6, own_lately: 2e6, lately, ..Guard::default() };
        (1..60).map(f64::from).find(|tick| {
            let now = Signals { told_free, terminals, ..signals(60.0 + tick / 2.0, 0.03, lately) };
            guard.under_control(&now, lately, false, AIM) == Exit::Harm
        })
    };
    // 2 MB/s here, 0.5 and 0.5 of the two others: the mean is 1, and 0.79 of it is harm after 6 s and half a trial, 0.81 is not.
    assert_eq!(ends_s(0.79e6, (1e6, 2.0), 3), Some(13.0));
    assert_eq!(ends_s(0.81e6, (1e6, 2.0), 3), None);
    // A fourth, who has never been free, takes his part.
    assert_eq!(ends_s(0.65e6, (1e6, 2.0), 4), None);
}

#[test]
fn a_host_that_is_alone_waits_the_less_the_less_it_gets() {
    let ends_s = |delivered: f64| {
        let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e6, ..Guard::default() };
        (1..60).map(f64::from).map(|tick| tick / 2.0).find(|at_s| {
            guard.under_control(&signals(60.0 + at_s, 0.03, delivered), delivered, false, AIM) == Exit::Harm
        })
    };
    // 0.89 of what it got free is a little too little for 6 s; a fifth counts fourfold, and half a trial (2.2 s) is the least.
    assert_eq!((ends_s(0.91e6), ends_s(0.89e6), ends_s(0.2e6)), (None, Some(6.0), Some(2.5)));
}

#[test]
fn what_a_host_got_on_its_way_up_is_not_what_it_got_while_congested() {
    let free = |queue: f64| {
        let mut guard = Guard::default();
        for tick in 0..20 {
            let at_s = f64::from(tick) / 2.0;
            let now = signals(at_s, if tick == 0 { 0.2 } else { queue }, 1e6);
            guard.look(&now, at_s, AIM);
            guard.without_control(&now, false, AIM);
        }
        assert!(matches!(guard.without_control(&signals(10.0, 0.2, 1e6), false, AIM), Entry::Trial(_)));
        guard.trial(&signals(10.0, 0.2, 1e6)).expect("it has been free").free
    };
    assert_eq!((free(0.005), free(0.2)), (None, Some((1e6, 1.0))));
}

#[test]
fn besieged_a_host_keeps_three_tenths_of_what_was_free_and_less_where_more_have_come() {
    let guard = Guard { own_free: 1e6, free_hosts: 3.0, ..Guard::default() };
    let besieged = |told_free, terminals| {
        let now = Signals { told_free, terminals, ..signals(60.0, 0.3, 1e6) };
        guard.trial(&now).expect("it has been free").besieged
    };
    assert_eq!((besieged((2e6, 2.0), 3), besieged((2e6, 2.0), 6), besieged((2e6, 2.0), 2)), (3e5, 1.5e5, 3e5));
    // The mean of all, where that is less than what this host got; never more than its own part.
    assert_eq!((besieged((5e5, 1.0), 3), besieged((9e9, 2.0), 3)), (2.25e5, 3e5));
}

#[test]
fn after_a_trial_no_peer_can_make_a_host_send_more_than_its_part() {
    let guard = Guard { own_free: 1e6, ..Guard::default() };
    let least = |told_free| {
        let now = Signals { told_free, ..signals(60.0, 0.0, 1e6) };
        guard.trial(&now).expect("it has been free").least
    };
    // 1 MB/s here: three quarters of that alone and whatever one says, of the mean where others got less.
    assert_eq!((least((0.0, 0.0)), least((4e9, 1.0)), least((1e6, 2.0))), (7.5e5, 7.5e5, 5e5));
}

#[test]
fn who_controls_nothing_yet_takes_the_rate_of_the_others_but_no_less_than_half_of_what_it_gets() {
    let joins_at = |rate: f64, delivered| {
        let now = Signals { controlling: 1.0, known: (rate, 1.0), ..signals(60.0, 0.001, delivered) };
        match Guard::default().without_control(&now, false, AIM) {
            Entry::Join(rate, false) => rate,
            _ => panic!("somebody controls, and no queue stands"),
        }
    };
    assert_eq!((joins_at(1.0, 1e6), joins_at(8e5, 1e6), joins_at(2e5, 0.0)), (5e5, 8e5, 2e5));
}

#[test]
fn who_comes_into_a_queue_takes_the_rate_of_the_others_and_who_has_helped_to_fill_it_begins_a_trial() {
    let enters = |is_new: bool, theirs: f64| {
        let now = Signals { controlling: 1.0, known: (theirs, 1.0), ..signals(60.0, 0.2, 1e3) };
        let mut guard = Guard { own_free: 2e5, has_looked: true, ..Guard::default() };
        match guard.without_control(&now, is_new, AIM) {
            Entry::Join(rate, drains) => (rate, drains),
            Entry::Trial(rate) => (rate, true),
            Entry::Wait => panic!("somebody controls"),
        }
    };
    assert_eq!((enters(true, 8e5), enters(false, 8e5)), ((8e5, false), (1.5e5, true)));
    // But no less than a tenth of what it knows to be free.
    assert_eq!(enters(true, 1.0), (2e4, false));
}

#[test]
fn beside_hosts_that_hold_back_nothing_is_learned_of_what_is_free() {
    let mut guard = Guard::default();
    for tick in 0..40 {
        let at_s = f64::from(tick) / 2.0;
        let beside = Signals { controlling: 2.0, released: 9.0, ..signals(at_s, 0.2, 1e6) };
        guard.look(&beside, at_s, AIM);
        guard.without_control(&beside, false, AIM);
    }
    assert_eq!(guard.own_free(), 0.0);
}

#[test]
fn who_waits_in_a_timeout_counts_what_it_gets_as_nothing_and_not_only_what_it_gets_between() {
    let mut guard = Guard::default();
    for tick in 0..60 {
        let at_s = f64::from(tick) / 2.0;
        let delivered = if tick % 4 == 0 { 1e6 } else { 0.0 };
        guard.look(&signals(at_s, 0.2, delivered), at_s, AIM);
    }
    assert!((2e5..3e5).contains(&guard.own_free()), "{}", guard.own_free());
}

#[test]
fn while_it_comes_back_from_a_trial_goodput_is_no_harm_yet() {
    let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e5, control_s: 20.0, ..Guard::default() };
    for tick in 0..40 {
        // The mean of 4 s lags behind what there is.
        let two = Signals { hosts: 2, terminals: 2, told_free: (1e6, 1.0), ..signals(60.0, 0.005, 8.5e5) };
        let now = Signals { now: two.now + Span::from_secs_f64(f64::from(tick) / 2.0), ..two };
        assert_eq!(guard.under_control(&now, 1e6, false, AIM), Exit::No);
        assert!(!guard.harmed);
    }
}

#[test]
fn control_that_is_worth_it_stays_and_a_minority_does_not_end_it() {
    let mut guard = Guard::default();
    let (begun_s, _) = trial(&mut guard);
    for tick in 0..400 {
        let at_s = begun_s + f64::from(tick) / 2.0;
        let of_ten = Signals { controlling: 9.0, harmed: 6.0, told_free: (9e6, 9.0), ..signals(at_s, 0.01, 0.95e6) };
        assert_eq!(guard.under_control(&of_ten, 1e6, false, AIM), Exit::No, "at {at_s} s");
        assert!(!guard.harmed);
    }
    let at_s = begun_s + 200.0;
    let most = Signals { controlling: 9.0, harmed: 7.0, ..signals(at_s, 0.01, 0.95e6) };
    assert_eq!(guard.under_control(&most, 1e6, false, AIM), Exit::Harm);
}

#[test]
fn a_minority_takes_its_vote_back_soon_after_control_has_become_worth_it() {
    let mut guard = Guard { own_free: 1e6, own_lately: 1e6, lately: 1e6, ..Guard::default() };
    let of_ten = |at_s, mean_delivered| Signals {
        controlling: 9.0,
        terminals: 10,
        hosts: 10,
        told_free: (9e6, 9.0),
        mean_delivered,
        ..signals(at_s, 0.03, 1e6)
    };
    let mut harmed_at = |seconds: std::ops::Range<u32>, mean_delivered| {
        seconds
            .map(f64::from)
            .map(|at_s| {
                assert_eq!(guard.under_control(&of_ten(at_s, mean_delivered), 1e6, false, AIM), Exit::No);
                guard.harmed
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(harmed_at(0..600, 5e5).last(), Some(&true));
    // Half a second each: 12 s go down to 6 in twelve ticks.
    assert_eq!(harmed_at(600..620, 9e5).iter().filter(|harmed| **harmed).count(), 11);
}

#[test]
fn a_host_that_starves_gives_up_alone_however_many_say_that_all_is_well() {
    let mut guard = Guard::default();
    let (begun_s, _) = trial(&mut guard);
    let liars =
        |at_s| Signals { controlling: 255.0, mean_delivered: 1e6, known: (255.0, 255.0), ..signals(at_s, 0.0, 5e4) };
    let ends_s = (0..200)
        .map(|tick| begun_s + f64::from(tick) / 2.0)
        .find(|at_s| guard.under_control(&liars(*at_s), 1e4, false, AIM) == Exit::Harm);
    let ends_s = ends_s.expect("it gives up");
    assert!(ends_s - begun_s < 40.0, "{}", ends_s - begun_s);
    // And is not talked into it again before its time.
    for tick in 0..59 {
        let entry = guard.without_control(&liars(ends_s + f64::from(tick) / 2.0), false, AIM);
        assert!(matches!(entry, Entry::Wait), "after {} s", f64::from(tick) / 2.0);
    }
}

#[test]
fn where_nothing_waits_to_be_sent_control_ends() {
    let mut guard = Guard::default();
    let (begun_s, _) = trial(&mut guard);
    let idle = |at_s| Signals { backlogged: false, wants: false, ..signals(at_s, 0.0, 1e3) };
    let ends_s = (0..100)
        .map(|tick| begun_s + f64::from(tick) / 2.0)
        .find(|at_s| guard.under_control(&idle(*at_s), 1e6, false, AIM) == Exit::Calm);
    assert_eq!(ends_s, Some(begun_s + 10.0));
}
