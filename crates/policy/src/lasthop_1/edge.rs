//! A medium that collapses: where its edge is, and how near to it the common rate r stays.
//!
//! With rate fallback (`arf`) collisions lower the PHY rate, low rates fill the air, and full air makes collisions. Below an edge
//! the medium passes on all that it gets without a queue; beyond it, a fifth or a twentieth, and it comes back only far below.
//! Nothing announces the edge, and a few percent decide between minutes and seconds. So it is looked for once, and remembered:
//!
//! ```text
//!  no edge known ──────┐ a queue: the edge is where r was 0.5 s ago, and from then on 1.5 s
//!  r rises by 12 %     v
//!                    Queue: r falls to 0.4 (where the collapse is not deep to 0.8, then by 0.5),
//!                    │     then by 0.7 a tick, until the queue shrinks
//!                    ^     │
//!            a queue │     v the queue has gone
//!                    r comes back by 35 % a tick to 0.93 of the edge, rises by 0.1 %, and faster beyond the edge
//! ```
//!
//! *What it leaves out*: how long r has been safe at a rate. A host that hears of half of all that the medium collapses takes
//! the edge to be at the rate of the moment, not where they have found it.

/// r rises by this part per tick while no edge is known.
const SEARCH: f64 = 0.12;
/// The edge is the least r of so many ticks when a queue is seen, for that comes with a delay; of so many while none is known: with all of
/// them r, which rises by [`SEARCH`], would be taken back by a third, and creep for minutes.
pub(super) const DELAY_TICKS: usize = 4;
const SEARCH_DELAY_TICKS: usize = 2;
/// At the first sign of a queue r falls to this part; a medium that has just begun to collapse comes back from there.
const BRAKE: f64 = 0.4;
/// Where the medium passes on more than the first part of the edge even when it has collapsed, r falls to the second first, which costs less, and
/// by the third at the next tick at which the queue does not shrink.
const GENTLE: (f64, f64, f64) = (0.1, 0.8, 0.5);
/// And by this part at each tick at which the queue is not below this part of what it was the tick before: windows end its growth
/// also where the medium has collapsed, ...
const BRAKE_ON: f64 = 0.7;
const SHRINKS: f64 = 0.95;
/// ... until it has gone below this part of q*.
const GONE: f64 = 0.5;
/// r comes back by this part per tick, so that rate control has frames enough to come up by, ...
const RETURN: f64 = 0.35;
/// ... to this part of the edge.
const BACK: f64 = 0.93;
/// From there it rises by this part per tick; beyond the edge, which was elsewhere then, by this part of what it is beyond more.
const CREEP: (f64, f64) = (0.001, 0.1);
/// Where r is at least the first part of the edge, and the mean of all within so many times that either way, the edge follows by the square root:
/// hosts that have found it at different rates would stay at these. But no further than so many times from where a queue showed it: one who
/// always says too little would draw it to nothing.
const AGREE: (f64, f64) = (0.85, 1.5);
/// A queue on the way back: the edge is nearer than it was thought to be, by this.
const NEARER: f64 = 0.95;
/// A queue that stays below so many q* is one as any medium has: after so many of them in a row it is taken for an ordinary one.
const MILD: (f64, u32) = (2.0, 4);

/// What is known of the edge.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    /// The common rate at which the medium begins to collapse, in bytes of payload per second; infinite: not known yet.
    rate: f64,
    /// The same as a queue, or others, showed it: the hosts' agreement moves it from there by [`AGREE`].1 at most.
    shown: f64,
    queue: Option<Queue>,
    /// Queues in a row after which nothing collapsed.
    mild: u32,
}

/// A queue that stands.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// At the tick before, in s.
    before: f64,
    /// The most, in q*.
    most: f64,
    /// r has not fallen further than [`GENTLE`] asks for first.
    gentle: bool,
}

impl Edge {
    /// There is one, nobody knows where.
    pub(super) fn somewhere() -> Self {
        Self { rate: f64::INFINITY, shown: f64::INFINITY, queue: None, mild: 0 }
    }

    /// It is near `rate`, as others know.
    pub(super) fn at(rate: f64) -> Self {
        Self { rate, shown: rate, ..Self::somewhere() }
    }

    /// It has been passed at `rate`: a queue stands.
    pub(super) fn passed(rate: f64) -> Self {
        Self {
            rate,
            queue: Some(Queue { before: f64::INFINITY, most: f64::INFINITY, gentle: false }),
            ..Self::at(rate)
        }
    }

    /// Where a queue, or others, showed it.
    #[cfg(test)]
    pub(super) fn shown(&self) -> f64 {
        self.shown
    }

    /// The edge is the least r of so many ticks before a queue that is seen now.
    pub(super) fn delay_ticks(&self) -> usize {
        if self.rate.is_finite() { DELAY_TICKS } else { SEARCH_DELAY_TICKS }
    }

    /// A host's share has become `by` times as large.
    pub(super) fn scale(&mut self, by: f64) {
        self.rate *= by;
        self.shown *= by;
    }

    /// r, which was `own`, has become `agreed`, the mean of the hosts: where they take the edge to be is in these. There is nothing to learn while
    /// this host brakes or comes back, and little where others do, as far away as the mean is then.
    pub(super) fn agree(&mut self, own: f64, agreed: f64) {
        let by = agreed / own;
        let is_near = by < AGREE.1 && by * AGREE.1 > 1.0;
        if self.queue.is_none() && self.rate.is_finite() && own > AGREE.0 * self.rate && is_near {
            self.rate = (self.rate * by.sqrt()).clamp(self.shown / AGREE.1, self.shown * AGREE.1);
        }
    }

    /// What r, now `rate`, is to be multiplied by; `None`: the medium does not collapse. `onset` is the least r of the last
    /// [`Edge::delay_ticks`]; the queue `excess` and q*, `target`, are in s; `congested` is what a host gets of the medium when it has collapsed, 0:
    /// not known. Rates in bytes of payload per second.
    pub(super) fn next(&mut self, rate: f64, onset: f64, excess: f64, target: f64, congested: f64) -> Option<f64> {
        if let Some(queue) = &mut self.queue {
            let shrinks = excess < SHRINKS * queue.before;
            let gentle = queue.gentle;
            *queue = Queue { before: excess, most: queue.most.max(excess / target), gentle: gentle && shrinks };
            if excess > GONE * target {
                return Some(match (shrinks, gentle) {
                    (true, _) => 1.0,
                    (false, true) => GENTLE.2,
                    (false, false) => BRAKE_ON,
                });
            }
            self.mild = if queue.most < MILD.0 { self.mild + 1 } else { 0 };
            self.queue = None;
            if self.mild >= MILD.1 {
                return None;
            }
        } else if excess > target {
            let on_the_way_back = self.rate.is_finite() && onset < BACK * self.rate;
            self.rate = if on_the_way_back { NEARER * self.rate } else { onset };
            self.shown = self.rate;
            let gentle = congested > GENTLE.0 * self.rate;
            self.queue = Some(Queue { before: excess, most: excess / target, gentle });
            return Some(if gentle { GENTLE.1 } else { BRAKE });
        }
        if self.rate.is_infinite() {
            return Some(1.0 + SEARCH);
        }
        if rate < BACK * self.rate {
            return Some((BACK * self.rate / rate).min(1.0 + RETURN));
        }
        let beyond = (rate / self.rate - 1.0).max(0.0);
        Some(1.0 + (CREEP.0 + CREEP.1 * beyond).min(SEARCH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: f64 = 0.010;

    /// An edge that has been found at 100, and the queue stands.
    fn found() -> Edge {
        let mut edge = Edge::somewhere();
        assert_eq!(edge.next(50.0, 40.0, 0.001, TARGET, 0.0), Some(1.0 + SEARCH));
        assert_eq!(edge.next(120.0, 100.0, 0.011, TARGET, 0.0), Some(BRAKE));
        edge
    }

    #[test]
    fn at_the_first_sign_of_a_queue_it_brakes_and_until_that_shrinks_it_brakes_on() {
        let mut edge = found();
        assert_eq!(edge.next(48.0, 48.0, 0.050, TARGET, 0.0), Some(BRAKE_ON));
        assert_eq!(edge.next(34.0, 34.0, 0.049, TARGET, 0.0), Some(BRAKE_ON));
        assert_eq!(edge.next(34.0, 34.0, 0.030, TARGET, 0.0), Some(1.0));
        assert_eq!(edge.next(34.0, 34.0, 0.006, TARGET, 0.0), Some(1.0));
        assert_eq!(edge.next(34.0, 34.0, 0.004, TARGET, 0.0), Some(1.0 + RETURN));
    }

    #[test]
    fn it_comes_back_to_a_little_below_the_edge_and_creeps_towards_it_and_runs_beyond_it() {
        let mut edge = found();
        let mut rate = 40.0;
        let mut ticks = 0;
        while rate < 92.9 {
            rate *= edge.next(rate, rate, 0.001, TARGET, 0.0).expect("it collapses");
            ticks += 1;
        }
        // 40 · 1.35³ is 98 already.
        assert_eq!((ticks, rate.round()), (3, 93.0));
        for _ in 0..60 {
            rate *= edge.next(rate, rate, 0.001, TARGET, 0.0).expect("it collapses");
        }
        // 93 · 1.001^60 is 98.7: half a minute later it is still below.
        assert!((98.0..99.0).contains(&rate), "{rate}");
        // At 1.5 times the edge 0.1 · 0.5 more.
        assert_eq!(edge.next(150.0, 150.0, 0.001, TARGET, 0.0), Some(1.0 + CREEP.0 + 0.05));
    }

    #[test]
    fn hosts_that_have_found_it_at_different_rates_come_nearer_to_each_other() {
        let mut hosts = [85.0, 100.0, 118.0].map(|edge| (edge, Edge::at(edge)));
        for _ in 0..8 {
            let agreed = hosts.iter().map(|(rate, _)| rate).sum::<f64>() / 3.0;
            for (rate, edge) in &mut hosts {
                edge.agree(*rate, agreed);
                *rate = agreed * edge.next(agreed, agreed, 0.001, TARGET, 0.0).expect("it collapses");
            }
        }
        let edges = hosts.map(|(_, edge)| edge.rate);
        assert!((1.1..1.25).contains(&(edges[2] / edges[0])), "{edges:?}");
    }

    #[test]
    fn one_who_always_says_too_little_or_too_much_moves_the_edge_by_half_at_most() {
        for (says, becomes) in [(0.9, 100.0 / 1.5), (1.1, 150.0)] {
            let mut edge = Edge::at(100.0);
            for _ in 0..1000 {
                edge.agree(edge.rate, says * edge.rate);
            }
            assert!((edge.rate / becomes - 1.0).abs() < 1e-9, "{says}: {}", edge.rate);
        }
    }

    #[test]
    fn nothing_is_learned_of_the_edge_while_a_host_brakes_or_comes_back() {
        // What the host's own r was, what the mean of all is, and what becomes of the edge.
        for (own, agreed, becomes) in
            [(100.0, 81.0, 90.0), (100.0, 121.0, 110.0), (100.0, 60.0, 100.0), (80.0, 90.0, 100.0)]
        {
            let mut edge = Edge::at(100.0);
            edge.agree(own, agreed);
            assert!((edge.rate - becomes).abs() < 1e-9, "{own}, {agreed}: {}", edge.rate);
        }
        let mut braking = Edge::passed(100.0);
        braking.agree(100.0, 81.0);
        let mut unknown = Edge::somewhere();
        unknown.agree(100.0, 81.0);
        assert_eq!((braking.rate, unknown.rate), (100.0, f64::INFINITY));
    }

    #[test]
    fn a_queue_on_the_way_back_brings_the_edge_nearer_and_one_at_the_edge_makes_it_the_edge() {
        let mut edge = found();
        edge.next(48.0, 48.0, 0.004, TARGET, 0.0);
        assert_eq!(edge.next(90.0, 60.0, 0.011, TARGET, 0.0), Some(BRAKE));
        assert_eq!(edge.rate, 95.0);
        edge.next(36.0, 36.0, 0.004, TARGET, 0.0);
        assert_eq!(edge.next(91.0, 90.0, 0.011, TARGET, 0.0), Some(BRAKE));
        assert_eq!(edge.rate, 90.0);
    }

    #[test]
    fn where_a_collapse_is_not_deep_it_brakes_a_little_first_and_harder_if_the_queue_does_not_shrink() {
        let brakes = |congested: f64, queues: [f64; 4]| {
            let mut edge = Edge::at(100.0);
            queues.map(|excess| edge.next(100.0, 100.0, excess, TARGET, congested).expect("it collapses"))
        };
        let (a_little, harder, on) = (GENTLE.1, GENTLE.2, BRAKE_ON);
        assert_eq!(brakes(20.0, [0.011, 0.030, 0.030, 0.030]), [a_little, harder, on, on]);
        assert_eq!(brakes(20.0, [0.011, 0.010, 0.009, 0.009]), [a_little, 1.0, 1.0, harder]);
        // To a twentieth, or nobody knows how deep.
        assert_eq!(brakes(5.0, [0.011, 0.030, 0.030, 0.010]), [BRAKE, on, on, 1.0]);
        assert_eq!(brakes(0.0, [0.011, 0.030, 0.030, 0.010]), [BRAKE, on, on, 1.0]);
    }

    #[test]
    fn after_four_queues_that_hardly_grew_the_medium_is_an_ordinary_one_but_not_with_a_real_one_between() {
        let mut edge = found();
        let mut queue = |most: f64| {
            edge.next(100.0, 100.0, 0.011, TARGET, 0.0);
            edge.next(40.0, 40.0, most, TARGET, 0.0);
            edge.next(40.0, 40.0, 0.001, TARGET, 0.0)
        };
        for most in [0.012, 0.015, 0.012, 0.030, 0.012, 0.012, 0.012] {
            assert!(queue(most).is_some());
        }
        assert_eq!(queue(0.012), None);
    }
}
