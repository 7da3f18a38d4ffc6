//! The laws of `laws/include` in BPF: the verifier takes them, and they do there what they do natively.
#![allow(missing_docs)]

mod support;

use lasthop_laws::own::STATE_BYTES;
use lasthop_laws::{
    Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Parameters, Reported, Sample, Sent, SlowStart, Start,
    Steering, Undone, Window,
};
use lasthop_units::Span;
use libbpf_rs::{ProgramInput, ProgramMut};
use std::collections::BTreeSet;
use support::test_object;

/// `struct step` of `bpf/run_law.bpf.c`: kind, window, event, steering, parameters, law.
struct Step([u8; STEP_BYTES]);

const STEP_BYTES: usize = PARAMETERS_AT + 80 + 8 + STATE_BYTES;
const STEERING_AT: usize = 16 + size_of::<Sample>();
const PARAMETERS_AT: usize = STEERING_AT + 24;

const INIT: u32 = 0;
const ACKED: u32 = 1;
const LOST: u32 = 2;
const TIMED_OUT: u32 = 3;
const SENT: u32 = 4;
const UNDONE: u32 = 5;
const NOTIFIED: u32 = 6;
const REPORTED: u32 = 7;
const SAMPLED: u32 = 8;
const RESUMED: u32 = 9;

impl Step {
    /// Sets all but the law.
    fn set(&mut self, kind: u32, window: Window, event: &[u32]) {
        let window = [window.cwnd_segments, window.cwnd_count, window.ssthresh_segments];
        let words = [kind].into_iter().chain(window).chain(event.iter().copied());
        for (bytes, word) in self.0.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
    }

    fn tell(&mut self, parameters: Parameters) {
        for (bytes, value) in self.0[PARAMETERS_AT..].chunks_exact_mut(4).zip(parameters.values()) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
    }

    fn window(&self) -> Window {
        let word = |at: usize| u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"));
        Window { cwnd_segments: word(4), cwnd_count: word(8), ssthresh_segments: word(12) }
    }

    fn run(&mut self, program: &ProgramMut<'_>) -> Window {
        let input = ProgramInput { context_in: Some(&mut self.0), ..ProgramInput::default() };
        program.test_run(input).expect("a run");
        self.window()
    }
}

fn halves(value: u64) -> [u32; 2] {
    let bytes = value.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

/// Marsaglia's xorshift64: the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn word(&mut self, limit: u64) -> u32 {
        u32::try_from(self.below(limit)).expect("a limit of 32 bits")
    }
}

/// One connection, natively and in BPF.
struct Both<'p, 'o> {
    program: &'p ProgramMut<'o>,
    step: Step,
    law: Law,
    window: Window,
    pace: u64,
    now_us: u64,
}

impl<'p, 'o> Both<'p, 'o> {
    fn new(program: &'p ProgramMut<'o>, choice: Choice, slow_start: SlowStart, tick_ms: u32) -> Self {
        let window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
        let timestamp_tick = Span::from_millis(tick_ms.into());
        let law = Law::new(choice, Start { slow_start, timestamp_tick, ..Start::default() });
        let mut both = Self { program, step: Step([0; STEP_BYTES]), law, window, pace: 0, now_us: 0 };
        both.step.tell(choice.parameters);
        both.in_bpf(INIT, &[0, slow_start as u32, choice.seed, 1000 * tick_ms]);
        both
    }

    /// The window after an event whose members are the time and `words`.
    fn in_bpf(&mut self, kind: u32, words: &[u32]) -> Window {
        let event = [&halves(self.now_us), words].concat();
        self.step.set(kind, self.window, &event);
        self.step.run(self.program)
    }

    fn acked(&mut self, event: Acked) {
        let event = Acked { now_us: self.now_us, ..event };
        let words = [
            event.acked_segments,
            event.in_flight_segments,
            event.rtt_us,
            event.srtt_us,
            event.min_rtt_us,
            event.snd_una,
            event.snd_nxt,
            event.tsval,
            event.tsecr,
            event.flags,
            event.marked_segments,
            event.reserved,
        ];
        let theirs = self.in_bpf(ACKED, &words);
        self.law.on_acked(&event, &mut self.window);
        assert_eq!(theirs, self.window, "{:?}, {event:?}", self.law);
    }

    fn reduced(&mut self, kind: u32, event: Lost) {
        let event = Lost { now_us: self.now_us, ..event };
        let words = [
            event.in_flight_segments,
            event.srtt_us,
            event.min_rtt_us,
            event.snd_una,
            event.snd_nxt,
            event.flags,
            event.segments_sent,
            event.retransmits,
            event.lost_segments,
            0,
        ];
        let theirs = self.in_bpf(kind, &words);
        match kind {
            LOST => self.law.on_lost(&event, &mut self.window),
            NOTIFIED => self.law.on_notified(&event, &mut self.window),
            _ => self.law.on_timed_out(&event, &mut self.window),
        }
        assert_eq!(theirs, self.window, "{:?}, {event:?}", self.law);
        self.window.cwnd_segments = if kind == TIMED_OUT { 1 } else { self.window.ssthresh_segments };
        self.window.cwnd_count = 0;
    }

    /// A law that steers keeps its window.
    fn told_of_a_loss(&mut self, kind: u32, event: Lost) {
        let kept = self.window;
        self.reduced(kind, event);
        self.window = Window { cwnd_segments: if kind == TIMED_OUT { 1 } else { kept.cwnd_segments }, ..kept };
    }

    fn reported(&mut self, event: Reported) {
        let event = Reported { now_us: self.now_us, ..event };
        let words = [
            event.bandwidth_kbps,
            event.error_ppm,
            event.valid_s,
            event.segment_bytes,
            event.rtt_us,
            event.segments_sent,
            event.permitted,
            0,
        ];
        let theirs = self.in_bpf(REPORTED, &words);
        self.law.on_reported(&event, &mut self.window);
        assert_eq!(theirs, self.window, "{:?}, {event:?}", self.law);
    }

    /// An ACK, or the end of a pause, of a law that steers.
    fn steered(&mut self, kind: u32, sample: Sample) {
        let Sample { delivered_us, departs_us, .. } = sample;
        let words = [
            sample.interval_us,
            sample.sampled_segments,
            sample.prior_delivered_segments,
            sample.prior_in_flight_segments,
            sample.acked_segments,
            sample.lost_segments,
            sample.in_flight_segments,
            sample.all_delivered_segments,
            sample.all_lost_segments,
            sample.rtt_us,
            sample.srtt_us,
            sample.min_rtt_us,
            sample.snd_una,
            sample.snd_nxt,
            sample.segment_bytes,
            sample.state,
            sample.app_limited,
            sample.all_marked_segments,
        ];
        let (cwnd_segments, ssthresh_segments) = (self.window.cwnd_segments, self.window.ssthresh_segments);
        let mut steering = Steering { pace: self.pace, cwnd_segments, ssthresh_segments, ..Steering::default() };
        let before = [halves(self.pace).as_slice(), &[cwnd_segments, ssthresh_segments, 0, 0]].concat();
        for (bytes, word) in self.step.0[STEERING_AT..].chunks_exact_mut(4).zip(before) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        self.in_bpf(kind, &[halves(delivered_us).as_slice(), &halves(departs_us), &words].concat());
        match kind {
            SAMPLED => self.law.on_sampled(&sample, &mut steering),
            _ => self.law.on_resumed(&sample, &mut steering),
        }
        let word = |at: usize| {
            u32::from_ne_bytes(self.step.0[STEERING_AT + at..STEERING_AT + at + 4].try_into().expect("four bytes"))
        };
        let theirs = (u64::from(word(4)) << 32 | u64::from(word(0)), word(8), word(12), word(16));
        let ours = (steering.pace, steering.cwnd_segments, steering.ssthresh_segments, steering.app_limited);
        assert_eq!(theirs, ours, "{:?}, {sample:?}", self.law);
        self.pace = steering.pace;
        self.window.cwnd_segments = steering.cwnd_segments;
        self.window.ssthresh_segments = steering.ssthresh_segments;
    }

    fn sent(&mut self, idle_us: u64) {
        let [low, high] = halves(idle_us);
        self.in_bpf(SENT, &[low, high, 0, 0]);
        self.law.on_sent(&Sent { now_us: self.now_us, idle_us, ..Sent::default() });
    }

    fn undone(&mut self, before: Window) {
        self.window = Window { cwnd_segments: self.window.cwnd_segments.max(before.cwnd_segments), ..before };
        let theirs = self.in_bpf(UNDONE, &[]);
        self.law.on_undone(&Undone { now_us: self.now_us }, &mut self.window);
        assert_eq!(theirs, self.window, "{:?}", self.law);
    }
}

/// The same of a law that steers. Its paces stand for windows.
fn compare_steered(both: &mut Both<'_, '_>, numbers: &mut Numbers) -> BTreeSet<u32> {
    let (mut delivered, mut lost, mut paces) = (0_u32, 0_u32, BTreeSet::new());
    for _ in 0..3000 {
        both.now_us += if numbers.below(50) == 0 { numbers.below(5_000_000) } else { numbers.below(3_000) };
        let cwnd = both.window.cwnd_segments;
        let acked_segments = (1 + numbers.word(3)).min(cwnd);
        let lost_segments = if numbers.below(10) == 0 { numbers.word(cwnd.into()) / 4 } else { 0 };
        (delivered, lost) = (delivered + acked_segments, lost + lost_segments);
        let sample = Sample {
            now_us: both.now_us,
            delivered_us: both.now_us,
            departs_us: both.now_us + numbers.below(2) * numbers.below(3_000),
            interval_us: if numbers.below(20) == 0 { 0 } else { 20_000 + numbers.word(30_000) },
            sampled_segments: numbers.word(100),
            prior_delivered_segments: delivered.saturating_sub(cwnd),
            prior_in_flight_segments: cwnd,
            acked_segments,
            lost_segments,
            in_flight_segments: cwnd - acked_segments,
            all_delivered_segments: delivered,
            all_lost_segments: lost,
            rtt_us: if numbers.below(10) == 0 { 0 } else { 20_000 + numbers.word(30_000) },
            srtt_us: 40_000,
            min_rtt_us: 20_000,
            snd_una: delivered.wrapping_mul(1000),
            snd_nxt: delivered.wrapping_add(cwnd).wrapping_mul(1000),
            segment_bytes: 1000,
            state: if numbers.below(20) == 0 { numbers.word(5) } else { 0 },
            app_limited: numbers.word(20) / 19,
            all_marked_segments: delivered / 3,
        };
        let event = Lost { in_flight_segments: cwnd, ..Lost::default() };
        match numbers.below(400) {
            0 => both.steered(RESUMED, sample),
            1 => both.told_of_a_loss(LOST, event),
            2 => both.told_of_a_loss(TIMED_OUT, event),
            3 => both.undone(both.window),
            _ => both.steered(SAMPLED, sample),
        }
        paces.insert((both.pace >> 8) as u32);
    }
    paces
}

/// A connection of 3,000 events. Returns the windows it had.
fn compare(both: &mut Both<'_, '_>, numbers: &mut Numbers) -> BTreeSet<u32> {
    let (mut snd_una, mut before, mut windows) = (0_u32, both.window, BTreeSet::new());
    for _ in 0..3000 {
        both.now_us += if numbers.below(50) == 0 { numbers.below(5_000_000) } else { numbers.below(3_000) };
        let cwnd = both.window.cwnd_segments;
        let snd_nxt = snd_una.wrapping_add(cwnd * 1000);
        let what = numbers.below(400);
        match what {
            0..5 => {
                before = both.window;
                let event = Lost {
                    in_flight_segments: cwnd + numbers.word(3),
                    srtt_us: 30_000 + numbers.word(40_000),
                    min_rtt_us: 20_000,
                    snd_una,
                    snd_nxt,
                    segments_sent: snd_una / 1000,
                    retransmits: snd_una / 100_000 + numbers.word(30),
                    lost_segments: numbers.word(3),
                    ..Lost::default()
                };
                both.reduced([LOST, LOST, LOST, TIMED_OUT, NOTIFIED][what as usize], event);
            }
            5 => both.sent(numbers.below(both.now_us + 1)),
            6 => both.undone(before),
            7 => both.reported(Reported {
                bandwidth_kbps: numbers.word(50_000),
                error_ppm: numbers.word(20_000),
                valid_s: numbers.word(60),
                segment_bytes: 1000,
                rtt_us: numbers.word(2) * 40_000,
                segments_sent: numbers.word(2),
                permitted: numbers.word(8),
                ..Reported::default()
            }),
            _ => {
                let acked_segments = (1 + numbers.word(3)).min(cwnd);
                let rtt_us = match numbers.below(100) {
                    0..10 => 0,
                    10 => 1 + numbers.word(4_000_000),
                    _ => 20_000 + numbers.word(30_000),
                };
                let grows = Acked::MAY_GROW | Acked::CWND_LIMITED | Acked::ADVANCED | Acked::HAS_TIMESTAMP;
                let flags = if numbers.below(20) == 0 { numbers.word(128) } else { grows };
                snd_una = snd_una.wrapping_add(acked_segments * 1000);
                let srtt_us = 40_000;
                let tsval = (both.now_us / 1000) as u32;
                let tsecr = tsval.wrapping_sub(rtt_us / 1000);
                let event = Acked {
                    acked_segments,
                    rtt_us,
                    srtt_us,
                    snd_una,
                    snd_nxt,
                    tsval,
                    tsecr,
                    flags,
                    ..Acked::default()
                };
                both.acked(event);
            }
        }
        windows.insert(both.window.cwnd_segments);
    }
    windows
}

#[test]
fn the_laws_do_in_bpf_what_they_do_natively() {
    needs_root!();
    let object = test_object("run_law").load();
    let object = object.unwrap_or_else(|error| panic!("the verifier refuses a law: {error}"));
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for program in object.progs_mut() {
        let program_name = program.name().to_string_lossy().into_owned();
        let is_run_here = |law: &LawName| program_name == format!("run_{}", law.identifier());
        let law = LawName::ALL.into_iter().find(is_run_here).expect("a program for each law");
        for slow_start in SlowStart::ALL {
            let mut windows = BTreeSet::new();
            for _ in 0..10 {
                let choice = Choice { seed: numbers.word(u32::MAX.into()), ..Choice::from(law) };
                let mut both = Both::new(&program, choice, slow_start, 1);
                let compared = if law.steers() { compare_steered } else { compare };
                windows.append(&mut compared(&mut both, &mut numbers));
            }
            assert!(windows.len() > 30, "there must be something to compare: {law}, {slow_start:?}: {windows:?}");
        }
    }
}

/// Parameters at random: each at its lowest, its highest or its default.
fn corner(law: LawName, numbers: &mut Numbers) -> Parameters {
    let mut parameters = Parameters::of(law);
    for parameter in law.parameters() {
        let value = [parameter.from, parameter.to, parameter.default][numbers.below(3) as usize];
        parameters.set(law, parameter.name, value).expect("the ends of its range are accepted");
    }
    parameters
}

#[test]
fn at_the_corners_of_their_parameters_the_laws_do_in_bpf_what_they_do_natively() {
    needs_root!();
    let object = test_object("run_law").load();
    let object = object.unwrap_or_else(|error| panic!("the verifier refuses a law: {error}"));
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for law in LawName::ALL.into_iter().filter(|law| !law.parameters().is_empty()) {
        let program_name = format!("run_{}", law.identifier());
        let program =
            object.progs_mut().find(|program| *program.name() == *program_name).expect("a program for each law");
        for _ in 0..60 {
            let choice =
                Choice { name: law, parameters: corner(law, &mut numbers), seed: numbers.word(u32::MAX.into()) };
            let tick_ms = [1, 10, 100][numbers.below(3) as usize];
            compare(&mut Both::new(&program, choice, SlowStart::Standard, tick_ms), &mut numbers);
        }
    }
}
