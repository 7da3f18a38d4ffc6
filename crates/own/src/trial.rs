//! A law's trial, with its default parameters and with each at its lowest and its highest value: its first events, and two connections.
//!
//! The first events are those in which a mistake shows at once: nothing is measured yet, nothing has changed since the last event, the
//! round trip is the least one, the window is the smallest. The connections are the simulator's TCP over small bottlenecks, and go through
//! all that [`connection`] lists; that takes the law out of slow start.
//!
//! *What it leaves out*: several parameters off their defaults at once, and values between; other rates, and another round trip.

use crate::Error;
use lasthop_laws::own::caught;
use lasthop_laws::{
    Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Sample, Sent, SlowStart, Start, Steering, Undone,
    Window,
};
use lasthop_tcp::{Config, EcnMode, Endpoint, Segment};
use lasthop_units::{Bytes, Ecn, Span, Time};
use std::collections::VecDeque;
use std::path::Path;

/// A long flight, which any law has to reduce or to tolerate.
const FLIGHT: u32 = 1000;
/// From one event to the next: the same instant, and steps below and above a round trip.
const STEPS_US: [u64; 4] = [0, 1, 10_000, 10_000_000];
/// No sample, then the least round trip, longer ones, and the least again.
const ROUND_TRIPS_US: [u32; 5] = [0, 1_000, 1_001, 100_000, 1_000];
const SEGMENT_BYTES: u32 = 1448;

/// The rates of the bottlenecks, in bits a second. With 40 ms they hold 33 full packets and their queues 30, and a tenth of that.
const RATES: [u64; 2] = [10_000_000, 1_000_000];
const ONE_WAY: Span = Span::from_millis(20);
const QUEUE: Span = Span::from_millis(36);
/// More than path and queue hold, so that a window without end does not take all day.
const BUFFER: Bytes = Bytes::from_kib(256);

/// Tries a law.
///
/// # Errors
/// If it divides by zero, or leaves a window or an ssthresh that TCP cannot have; `header` is for the message.
pub(crate) fn survives(name: LawName, header: &Path) -> Result<(), Error> {
    let refused = |problem: String| Error::Law { header: header.to_owned(), problem };
    for (with, parameters) in trials(name) {
        let choice = Choice { parameters, ..name.into() };
        let connections = || RATES.into_iter().try_for_each(|bits_per_s| connection(choice, bits_per_s));
        let tried = caught(|| first_events(choice).and_then(|()| connections()));
        let survived = tried.map_err(|divided| Error::DividedByZero { divided, with: with.clone() })?;
        survived.map_err(|problem| refused(problem + &with))?;
    }
    Ok(())
}

/// The default parameters, then each at the ends of its range, with words for a message.
fn trials(name: LawName) -> Vec<(String, Parameters)> {
    let mut trials = vec![(String::new(), Parameters::of(name))];
    for parameter in name.parameters() {
        for end in [parameter.from, parameter.to] {
            let mut parameters = Parameters::of(name);
            parameters.set(name, parameter.name, end).expect("an end of its range");
            trials.push((format!(", with {} = {end}", parameter.name), parameters));
        }
    }
    trials
}

/// Two ends of TCP, and what is between them.
struct Connection {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    there: VecDeque<(Time, Segment)>,
    back: VecDeque<(Time, Segment)>,
    /// When the bottleneck has sent what it has.
    is_free_at: Time,
    bits_per_s: u64,
    random: u64,
}

/// What the path does to packets of data, besides what its queue has no room for.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    /// One in 1000 is lost: the queue is full again before the next.
    Losses,
    /// Likewise, and marked are one in 20 and all that find a queue, if they may be.
    Marks,
    /// Nothing leaves the queue, and all is kept.
    Stall,
    /// All are lost.
    Outage,
}

/// A connection through slow start, a full queue and losses, a timeout that was needless, one that was not, marks, an application that has
/// little to send, one that has nothing, and one that has more again.
fn connection(choice: Choice, bits_per_s: u64) -> Result<(), String> {
    let (tsq, receive_buffer, send_buffer) = (None, BUFFER, BUFFER);
    let config = Config { ecn: EcnMode::On, tsq, receive_buffer, send_buffer, ..Config::linux_modern() };
    let mut trial = Connection {
        now: Time::ZERO,
        client: Endpoint::connect(Time::ZERO, &config, choice),
        server: Endpoint::listen(&config, choice),
        there: VecDeque::new(),
        back: VecDeque::new(),
        is_free_at: Time::ZERO,
        bits_per_s,
        random: 1,
    };
    trial.client.write_endless();
    for (trouble, ms) in [
        (Trouble::Losses, 3_000),
        (Trouble::Stall, 800),
        (Trouble::Losses, 2_000),
        (Trouble::Outage, 1_500),
        (Trouble::Losses, 1_500),
        (Trouble::Marks, 2_000),
    ] {
        trial.run(trouble, ms)?;
    }
    trial.client.stop_writing();
    trial.run(Trouble::Losses, 1_500)?;
    for _ in 0..20 {
        trial.client.write(4_000);
        trial.run(Trouble::Losses, 50)?;
    }
    trial.run(Trouble::Losses, 3_000)?;
    trial.client.write_endless();
    trial.run(Trouble::Losses, 2_000)
}

impl Connection {
    fn run(&mut self, trouble: Trouble, ms: u64) -> Result<(), String> {
        let end = self.now + Span::from_millis(ms);
        if trouble == Trouble::Stall {
            self.there.iter_mut().for_each(|(at, _)| *at += Span::from_millis(ms));
            self.is_free_at = end.max(self.is_free_at);
        }
        loop {
            while let Some(segment) = self.client.poll_transmit(self.now) {
                self.carry(trouble, segment);
            }
            while let Some(segment) = self.server.poll_transmit(self.now) {
                self.back.push_back((self.now + ONE_WAY, segment));
            }
            if self.now == end {
                return Ok(());
            }
            let arrival = |way: &VecDeque<(Time, Segment)>| way.front().map_or(Time::MAX, |(at, _)| *at);
            let timeout = self.client.next_timeout().min(self.server.next_timeout());
            self.now = arrival(&self.there).min(arrival(&self.back)).min(timeout).min(end).max(self.now);
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
            while let Some(segment) = arrived(&mut self.there, self.now) {
                self.server.on_segment(self.now, &segment);
            }
            while let Some(segment) = arrived(&mut self.back, self.now) {
                self.client.on_segment(self.now, &segment);
            }
            let tcp = self.client.info().tcp;
            let (cwnd, ssthresh) = (tcp.cwnd_segments, tcp.ssthresh_segments.unwrap_or(INFINITE_SSTHRESH));
            if cwnd == 0 || ssthresh < 2 {
                return Err(format!(
                    "it leads to a window of {cwnd} and an ssthresh of {ssthresh}; the least are 1 and 2"
                ));
            }
        }
    }

    /// Takes a packet to the other end, perhaps.
    fn carry(&mut self, trouble: Trouble, mut segment: Segment) {
        let waits = self.is_free_at.saturating_since(self.now);
        let is_full = waits > QUEUE && trouble != Trouble::Stall;
        if trouble == Trouble::Outage || is_full || self.one_in(1000) {
            return;
        }
        if trouble == Trouble::Marks && segment.ecn.may_be_marked() && (self.one_in(20) || !waits.is_zero()) {
            segment.ecn = Ecn::Ce;
        }
        let takes = Span::from_nanos(segment.ip_bytes().bits() * 1_000_000_000 / self.bits_per_s);
        self.is_free_at = self.is_free_at.max(self.now) + takes;
        self.there.push_back((self.is_free_at + ONE_WAY, segment));
    }

    /// The constants of PCG's generator.
    fn one_in(&mut self, many: u64) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33).is_multiple_of(many)
    }
}

/// The next packet that has come through.
fn arrived(way: &mut VecDeque<(Time, Segment)>, now: Time) -> Option<Segment> {
    way.front().filter(|(at, _)| *at <= now)?;
    way.pop_front().map(|(_, segment)| segment)
}

/// Runs each event without measurements, then with them, and with small and large windows.
fn first_events(choice: Choice) -> Result<(), String> {
    for slow_start in SlowStart::ALL {
        let start = || Law::new(choice, Start { slow_start, ..Start::default() });
        let mut law = start();
        for cwnd_segments in [1, 2, FLIGHT] {
            each_event(&mut law, cwnd_segments, &Acked::default())?;
        }
        let (mut law, mut now_us, mut snd_una) = (start(), 0, 0);
        for cwnd_segments in [2, FLIGHT, 1] {
            for (step_us, rtt_us) in STEPS_US.into_iter().flat_map(|step| ROUND_TRIPS_US.map(|rtt| (step, rtt))) {
                for acked_segments in [0, 1, cwnd_segments] {
                    now_us += step_us;
                    snd_una += acked_segments * SEGMENT_BYTES;
                    let acked = Acked {
                        now_us,
                        acked_segments,
                        in_flight_segments: cwnd_segments - acked_segments.min(cwnd_segments),
                        rtt_us,
                        srtt_us: rtt_us,
                        min_rtt_us: rtt_us.min(ROUND_TRIPS_US[1]),
                        snd_una,
                        snd_nxt: snd_una,
                        ..Acked::default()
                    };
                    each_event(&mut law, cwnd_segments, &acked)?;
                }
            }
        }
    }
    Ok(())
}

/// Every event once, of a sender with this window, at the time and with the round trips of this ACK.
fn each_event(law: &mut Law, cwnd_segments: u32, acked: &Acked) -> Result<(), String> {
    let Acked { now_us, srtt_us, min_rtt_us, snd_una, snd_nxt, .. } = *acked;
    let mut window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    if law.steers() {
        return each_event_of_steering(law, cwnd_segments, acked);
    }
    let grows = Acked::MAY_GROW | Acked::CWND_LIMITED;
    for flags in [0, Acked::ADVANCED, grows, Acked::HAS_TIMESTAMP, Acked::IN_REDUCTION] {
        law.on_acked(&Acked { acked_segments: acked.acked_segments.max(1), flags, ..*acked }, &mut window);
        within("acked", &window, 1)?;
        law.on_acked(&Acked { flags, ..*acked }, &mut window);
        within("acked", &window, 1)?;
    }
    let lost =
        Lost { now_us, in_flight_segments: cwnd_segments, srtt_us, min_rtt_us, snd_una, snd_nxt, ..Lost::default() };
    let reductions = [("lost", Law::on_lost as fn(&mut _, &_, &mut _)), ("notified", Law::on_notified)];
    for (event, reduce) in reductions.into_iter().chain([("timed_out", Law::on_timed_out as _)]) {
        let before = window.cwnd_segments;
        reduce(law, &lost, &mut window);
        within(event, &window, 2)?;
        if window.cwnd_segments != before {
            return Err(format!(
                "its {event}() changes the window, which nothing heeds in the kernel: it sets ssthresh (law.h)"
            ));
        }
    }
    law.on_undone(&Undone { now_us }, &mut window);
    law.on_sent(&Sent { now_us, snd_nxt, ..Sent::default() });
    Ok(())
}

/// The same for a law that sets its window and pace.
fn each_event_of_steering(law: &mut Law, cwnd_segments: u32, acked: &Acked) -> Result<(), String> {
    let Acked { now_us, rtt_us, srtt_us, min_rtt_us, snd_una, snd_nxt, acked_segments, .. } = *acked;
    let mut window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    let mut steering = Steering { cwnd_segments, ssthresh_segments: INFINITE_SSTHRESH, ..Steering::default() };
    let all_delivered_segments = snd_una / SEGMENT_BYTES;
    for (state, interval_us) in (0..5).flat_map(|state| [(state, 0), (state, rtt_us)]) {
        let sample = Sample {
            now_us,
            delivered_us: now_us,
            departs_us: now_us,
            interval_us,
            sampled_segments: acked_segments,
            prior_delivered_segments: all_delivered_segments.saturating_sub(cwnd_segments),
            prior_in_flight_segments: cwnd_segments,
            acked_segments,
            lost_segments: state,
            in_flight_segments: cwnd_segments - acked_segments.min(cwnd_segments),
            all_delivered_segments,
            rtt_us,
            srtt_us,
            min_rtt_us,
            snd_una,
            snd_nxt,
            segment_bytes: SEGMENT_BYTES,
            state,
            ..Sample::default()
        };
        for (event, answer) in [("sampled", Law::on_sampled as fn(&mut _, &_, &mut _)), ("resumed", Law::on_resumed)] {
            answer(law, &sample, &mut steering);
            window = Window { cwnd_segments: steering.cwnd_segments, ..window };
            within(event, &Window { ssthresh_segments: steering.ssthresh_segments, ..window }, 2)?;
        }
    }
    let lost =
        Lost { now_us, in_flight_segments: cwnd_segments, srtt_us, min_rtt_us, snd_una, snd_nxt, ..Lost::default() };
    law.on_lost(&lost, &mut window);
    law.on_timed_out(&lost, &mut window);
    law.on_undone(&Undone { now_us }, &mut window);
    Ok(())
}

fn within(event: &str, window: &Window, least_ssthresh: u32) -> Result<(), String> {
    let Window { cwnd_segments, ssthresh_segments, .. } = *window;
    if cwnd_segments == 0 {
        return Err(format!("its {event}() leaves a window of 0 segments; the least is 1"));
    }
    if ssthresh_segments < least_ssthresh {
        return Err(format!(
            "its {event}() leaves an ssthresh of {ssthresh_segments}; the least is LH_MIN_SSTHRESH, 2"
        ));
    }
    Ok(())
}
