//! `laws/include/cubic.h` against the kernel's own CUBIC, call by call.
//!
//! A congestion control of the test's own (`bpf/record_cubic.bpf.c`) calls the kernel's CUBIC and records, for every call
//! that the stack makes, the arguments, the window and CUBIC's private state before and after. Real connections run with
//! it: over a short and a long queue, paced, over a full local queue, through outages and pauses. Afterwards
//!
//! 1. the same calls are made natively. The state is carried from a connection's first call to its last and never
//!    corrected; after every call all 20 numbers must be the kernel's. Where the jiffy changed within a call, the kernel may have
//!    used the one here and the other there: such a call is counted, and its numbers are taken over;
//! 2. the same ACKs are given to [`Law`], which knows no jiffies but those it computes from the time of the ACK, and the
//!    windows are compared.
#![allow(missing_docs)]

mod support;

use lasthop_laws::cubic::{Cubic, HyStart};
use lasthop_laws::{Acked, Law, LawName, Lost, Sent, SlowStart, Start, Undone, Window};
use lasthop_units::Time;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;
use support::{B4, Flow, Host, Net, Recorder, run, set_control, set_u32, test_object};

/// `struct moment` of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    jiffies: u32,
    cwnd: u32,
    cwnd_count: u32,
    ssthresh: u32,
    cubic: [u32; 16],
}

/// `struct call` of the recorder.
#[derive(Clone, Copy, Debug)]
struct Call {
    socket: u64,
    now_us: u64,
    pacing_rate: u64,
    kind: u32,
    argument: u32,
    result: u32,
    cwnd_limited: bool,
    paced: bool,
    gso_max_size: u32,
    snd_una: u32,
    snd_nxt: u32,
    lsndtime: u32,
    before: Moment,
    after: Moment,
}

const INIT: u32 = 0;
const SSTHRESH: u32 = 1;
const CONG_AVOID: u32 = 2;
const SET_STATE: u32 = 3;
const CWND_EVENT: u32 = 4;
const PKTS_ACKED: u32 = 5;
const UNDO_CWND: u32 = 6;

/// TCP_CA_Loss
const LOSS: u32 = 4;

impl Call {
    fn from_bytes(bytes: &[u8]) -> Self {
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect();
        assert_eq!(words.len(), 56, "struct call of the recorder");
        let long = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight bytes"));
        let moment = |at: usize| Moment {
            jiffies: words[at],
            cwnd: words[at + 1],
            cwnd_count: words[at + 2],
            ssthresh: words[at + 3],
            cubic: words[at + 4..at + 20].try_into().expect("16 words"),
        };
        Self {
            socket: long(0),
            now_us: long(1),
            pacing_rate: long(2),
            kind: words[6],
            argument: words[7],
            result: words[8],
            cwnd_limited: words[9] != 0,
            paced: words[10] != 0,
            gso_max_size: words[11],
            snd_una: words[12],
            snd_nxt: words[13],
            lsndtime: words[14],
            before: moment(16),
            after: moment(36),
        }
    }

    /// hystart_ack_delay()
    fn cushion_us(&self) -> u32 {
        match self.pacing_rate {
            0 => 0,
            rate => (u64::from(self.gso_max_size) * 4 * 1_000_000 / rate).min(1000) as u32,
        }
    }

    fn acked(&self) -> Acked {
        Acked {
            now_us: self.now_us,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            flags: if self.paced { Acked::PACED } else { 0 },
            ..Acked::default()
        }
    }
}

impl Moment {
    fn window(&self) -> Window {
        Window { cwnd_segments: self.cwnd, cwnd_count: self.cwnd_count, ssthresh_segments: self.ssthresh }
    }
}

/// CUBIC's state in the order of the recorder.
fn numbers(cubic: &Cubic) -> [u32; 16] {
    let hystart = *{ *cubic }.hystart();
    [
        cubic.cnt,
        cubic.last_max_cwnd,
        cubic.last_cwnd,
        cubic.last_time,
        cubic.origin_point,
        cubic.k,
        cubic.slow_start.delay_min_us,
        cubic.epoch_start,
        cubic.ack_cnt,
        cubic.tcp_cwnd,
        hystart.sample_count.into(),
        hystart.found.into(),
        hystart.round_start_us,
        hystart.end_seq,
        hystart.last_ack_us,
        hystart.curr_rtt_us,
    ]
}

/// Gives a state these numbers.
fn take_over(cubic: &mut Cubic, numbers: [u32; 16]) {
    let small = |number: u32| u16::try_from(number).expect("a count of HyStart's");
    cubic.cnt = numbers[0];
    cubic.last_max_cwnd = numbers[1];
    cubic.last_cwnd = numbers[2];
    cubic.last_time = numbers[3];
    cubic.origin_point = numbers[4];
    cubic.k = numbers[5];
    cubic.slow_start.delay_min_us = numbers[6];
    cubic.epoch_start = numbers[7];
    cubic.ack_cnt = numbers[8];
    cubic.tcp_cwnd = numbers[9];
    *cubic.hystart() = HyStart {
        sample_count: small(numbers[10]),
        found: small(numbers[11]),
        round_start_us: numbers[12],
        end_seq: numbers[13],
        last_ack_us: numbers[14],
        curr_rtt_us: numbers[15],
    };
}

/// The recorder; several of these tests may run on one machine.
fn recorder(round: u32) -> Recorder {
    Recorder::start(test_object("record_cubic"), "record", "lh_record", format!("lh_r{round}_{}", std::process::id()))
}

/// A flow under the recorder, nothing sent.
fn flow(net: &Net, control: &str, pacing_rate: Option<u32>) -> Flow {
    let flow = Flow::idle_with(&net.a, &net.b, B4, |socket| {
        set_control(socket, control);
        if let Some(rate) = pacing_rate {
            set_u32(socket, nix::libc::SOL_SOCKET, nix::libc::SO_MAX_PACING_RATE, rate).expect("a pacing rate");
        }
    });
    assert_eq!(flow.control(), control);
    flow
}

fn transfer(flow: &Flow, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| (&*flow.sender).write_all(&vec![0; bytes]).expect("sent"));
        (&*flow.receiver).read_exact(&mut vec![0; bytes]).expect("received");
    });
}

/// Connections of every kind that CUBIC meets, all at once.
fn traffic(control: &str) {
    std::thread::scope(|scope| {
        let endless = |net: Net, pacing_rate: Option<u32>, seconds: u64| {
            scope.spawn(move || {
                let mut flow = flow(&net, control, pacing_rate);
                flow.send();
                std::thread::sleep(Duration::from_secs(seconds));
            });
        };
        endless(Net::bottleneck(20, 40_000), None, 12); // windows of 20 segments: Reno's region, many losses
        endless(Net::bottleneck(10, 600_000), None, 14); // RTT up to 0.5 s: the cubic region
        endless(Net::bottleneck(30, 60_000), Some(5_000_000), 12); // paced
        endless(Net::bottleneck(100, 2_000_000), None, 10); // windows of 1,400 segments
        let direct = Net::direct();
        direct.a.run(|| {
            run("ip link set a0 gso_max_segs 1");
            run("tc qdisc add dev a0 root tbf rate 50mbit burst 2k limit 60000");
        });
        endless(direct, None, 8); // a full local queue: CWR
        scope.spawn(move || {
            let net = Net::bottleneck(20, 100_000);
            let flow = flow(&net, control, None);
            for _ in 0..3 {
                transfer(&flow, 3_000_000);
                std::thread::sleep(Duration::from_millis(600)); // the epoch is shifted
                transfer(&flow, 1_000_000);
                outage(&net, &flow); // a timeout
            }
        });
    });
}

/// Sends into a link that is down, until the retransmission timer has fired, then mends it.
fn outage(net: &Net, flow: &Flow) {
    let router: &Host = net.router().expect("this net has one");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            router.run(|| run("tc qdisc replace dev rb root tbf rate 8kbit burst 100 limit 1"));
            std::thread::sleep(Duration::from_millis(900));
            router.run(|| run("tc qdisc replace dev rb root tbf rate 20mbit burst 4k limit 100000"));
        });
        transfer(flow, 2_000_000);
    });
}

/// Jiffies per second, from the times of the calls.
fn hz(calls: &[Call]) -> u32 {
    let (first, last) = (calls.first().expect("calls"), calls.last().expect("calls"));
    let measured =
        f64::from(last.before.jiffies.wrapping_sub(first.before.jiffies)) / ((last.now_us - first.now_us) as f64 / 1e6);
    let known = [100, 250, 300, 1000].into_iter().find(|hz| (measured / f64::from(*hz) - 1.0).abs() < 0.05);
    known.unwrap_or_else(|| panic!("no kernel has {measured:.1} jiffies per second"))
}

/// Makes one call natively; `jiffies` is when.
fn replay(cubic: &mut Cubic, window: &mut Window, call: &Call, jiffies: u32, hz: u32) -> u32 {
    match call.kind {
        INIT => *cubic = Cubic::begin(SlowStart::HyStart, call.now_us, call.snd_nxt, hz),
        SSTHRESH => {
            let mut reduced = *window;
            cubic.reduce(&mut reduced);
            return reduced.ssthresh_segments;
        }
        CONG_AVOID if call.cwnd_limited => {
            let acked = Acked { acked_segments: call.argument, ..call.acked() };
            cubic.grow(&acked, jiffies, window);
        }
        SET_STATE if call.argument == LOSS => cubic.reset(call.now_us, call.snd_nxt),
        CWND_EVENT if call.argument == 0 => cubic.resume(jiffies, jiffies.wrapping_sub(call.lsndtime)),
        PKTS_ACKED if call.argument.cast_signed() >= 0 => {
            let acked = Acked { rtt_us: call.argument.max(1), ..call.acked() };
            cubic.sample(&acked, jiffies, call.cushion_us(), window);
        }
        UNDO_CWND => return call.result, // the stack's, not CUBIC's
        _ => {}
    }
    0
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    calls: usize,
    connections: usize,
    growths: usize,
    reductions: usize,
    fast_convergence: usize,
    timeouts: usize,
    idle: usize,
    hystart: usize,
    cubic_region: usize,
    reno_region: usize,
    paced: usize,
    /// calls during which the jiffy changed
    astride: usize,
    /// those of them that match neither: the kernel used both
    mixed: usize,
    largest_window: u32,
}

/// Rounds of traffic at most; one does on a machine that is not busy.
const ROUNDS: u32 = 5;

impl Tally {
    /// Whether there was something to compare, of everything that CUBIC does.
    fn is_enough(&self) -> bool {
        self.growths > 10_000
            && self.paced > 1000
            && self.cubic_region > 1000
            && self.reno_region > 1000
            && self.reductions > 20
            && self.fast_convergence > 3
            && self.timeouts > 0
            && self.idle > 0
            && self.hystart > 2
            && self.largest_window > 500
    }
}

/// Part 1 of the file's comment.
fn compare_call_by_call(calls: &[Call], hz: u32) -> Tally {
    let mut tally = Tally::default();
    let mut connections: BTreeMap<u64, Cubic> = BTreeMap::new();
    for (number, call) in calls.iter().enumerate() {
        tally.calls += 1;
        tally.connections += usize::from(call.kind == INIT);
        if call.before.cubic == [0; 16] {
            // the SYN-ACK's RTT comes before init(), when the private state of a new socket is all zero
            let mut zero = Cubic::begin(SlowStart::HyStart, 0, 0, hz);
            zero.hystart().curr_rtt_us = 0;
            connections.insert(call.socket, zero);
        }
        let cubic = connections.get_mut(&call.socket).expect("a connection begins with zeroes");
        if call.kind != INIT {
            assert_eq!(numbers(cubic), call.before.cubic, "before call {number}: {call:?}");
        }
        // a call that saw two jiffies may have used either
        let jiffies = call.before.jiffies..=call.after.jiffies;
        tally.astride += usize::from(call.before.jiffies != call.after.jiffies);
        let outcome = |jiffies| {
            let (mut cubic, mut window) = (*cubic, call.before.window());
            let result = replay(&mut cubic, &mut window, call, jiffies, hz);
            (cubic, window, result)
        };
        let theirs = (call.after.cubic, call.after.window(), call.result);
        let ours = jiffies.map(outcome).find(|(cubic, window, result)| (numbers(cubic), *window, *result) == theirs);
        let (after, window) = match ours {
            Some((after, window, _)) => (after, window),
            None if call.before.jiffies != call.after.jiffies => {
                tally.mixed += 1;
                let mut theirs = *cubic;
                take_over(&mut theirs, call.after.cubic);
                (theirs, call.after.window())
            }
            None => {
                let (cubic, window, result) = outcome(call.before.jiffies);
                let ours = (numbers(&cubic), window, result);
                panic!("call {number} of {}:\n{call:?}\nours   {ours:?}\ntheirs {theirs:?}", calls.len());
            }
        };
        *cubic = after;

        tally.largest_window = tally.largest_window.max(window.cwnd_segments);
        match call.kind {
            CONG_AVOID if call.cwnd_limited => {
                tally.growths += 1;
                tally.paced += usize::from(call.paced);
                if cubic.epoch_start != 0 && window.cwnd_segments >= window.ssthresh_segments {
                    let reno = cubic.tcp_cwnd > cubic.last_cwnd;
                    tally.reno_region += usize::from(reno);
                    tally.cubic_region += usize::from(!reno);
                }
            }
            SSTHRESH => {
                tally.reductions += 1;
                tally.fast_convergence += usize::from(cubic.last_max_cwnd != window.cwnd_segments);
            }
            SET_STATE if call.argument == LOSS => tally.timeouts += 1,
            CWND_EVENT if call.argument == 0 && cubic.epoch_start != 0 => tally.idle += 1,
            PKTS_ACKED if call.before.cubic[11] == 0 && cubic.hystart().found != 0 => tally.hystart += 1,
            _ => {}
        }
    }
    tally
}

/// What the windows of [`Law`] were against the kernel's, over all ACKs that let them grow.
#[derive(Clone, Copy, Debug, Default)]
struct Agreement {
    acks: usize,
    /// The window is the kernel's.
    identical: usize,
    /// It grew as the kernel's did, by this ACK.
    grew_alike: usize,
    /// The window is at most three segments from the kernel's.
    near: usize,
    largest_difference_segments: u32,
}

/// Part 2 of the file's comment. The law's window goes its own way from ACK to ACK; where the stack has changed the kernel's
/// (a reduction, a recovery, idleness), it is changed to the same.
fn compare_law(calls: &[Call]) -> Agreement {
    let mut agreement = Agreement::default();
    let mut connections: BTreeMap<u64, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        connections.entry(call.socket).or_default().push(call);
    }
    for calls in connections.values() {
        let mut law = Law::new(LawName::Cubic, Start { slow_start: SlowStart::HyStart, ..Start::default() });
        let mut window = calls[0].before.window();
        let mut theirs = window;
        let mut position = 0;
        let first_seq = calls[0].snd_nxt; // a law's sequence numbers begin at 0
        while let Some(call) = calls.get(position) {
            position += 1;
            let now_us = call.now_us;
            if call.before.window() != theirs {
                window = call.before.window();
            }
            theirs = call.after.window();
            let (snd_una, snd_nxt) = (call.snd_una.wrapping_sub(first_seq), call.snd_nxt.wrapping_sub(first_seq));
            let lost = Lost { now_us, snd_una, snd_nxt, ..Lost::default() };
            match call.kind {
                INIT => {
                    law = Law::new(
                        LawName::Cubic,
                        Start {
                            now: Time::from_nanos(now_us * 1000),
                            slow_start: SlowStart::HyStart,
                            ..Start::default()
                        },
                    );
                    window = theirs;
                }
                SSTHRESH => law.on_lost(&lost, &mut window.clone()),
                SET_STATE if call.argument == LOSS => law.on_timed_out(&lost, &mut window.clone()),
                UNDO_CWND => law.on_undone(&Undone { now_us }, &mut window.clone()),
                CWND_EVENT if call.argument == 0 => {
                    let idle_us = u64::from(call.before.jiffies.wrapping_sub(call.lsndtime)) * 4000; // of 1/250 s
                    law.on_sent(&Sent { now_us, idle_us, in_flight_before_segments: 0, snd_nxt });
                }
                PKTS_ACKED | CONG_AVOID => {
                    let mut acked = Acked { snd_una, snd_nxt, ..call.acked() };
                    if call.kind == PKTS_ACKED && call.argument.cast_signed() >= 0 {
                        acked.rtt_us = call.argument.max(1);
                    }
                    // one ACK makes two calls of the kernel's, and one of ours
                    let growth = match calls.get(position) {
                        _ if call.kind == CONG_AVOID => Some(call),
                        Some(next) if next.kind == CONG_AVOID && next.before.window() == theirs => {
                            position += 1;
                            theirs = next.after.window();
                            Some(next)
                        }
                        _ => None,
                    };
                    if let Some(growth) = growth {
                        acked.acked_segments = growth.argument;
                        acked.flags |= Acked::MAY_GROW;
                        acked.flags |= if growth.cwnd_limited { Acked::CWND_LIMITED } else { 0 };
                    }
                    let (our_old, their_old) = (window.cwnd_segments, call.before.cwnd);
                    law.on_acked(&acked, &mut window);
                    if growth.is_some_and(|growth| growth.cwnd_limited) {
                        agreement.acks += 1;
                        let difference = window.cwnd_segments.abs_diff(theirs.cwnd_segments);
                        agreement.identical += usize::from(difference == 0);
                        agreement.near += usize::from(difference <= 3);
                        let (ours, theirs) = (window.cwnd_segments - our_old, theirs.cwnd_segments - their_old);
                        agreement.grew_alike += usize::from(ours == theirs);
                        agreement.largest_difference_segments = agreement.largest_difference_segments.max(difference);
                    }
                }
                _ => {}
            }
        }
    }
    agreement
}

#[test]
fn every_call_of_the_kernels_cubic_ends_with_the_same_numbers() {
    needs_root!();
    let (mut calls, mut tally, mut hz_of_this_kernel) = (Vec::new(), Tally::default(), 0);
    for round in 1..=ROUNDS {
        let recorder = recorder(round);
        if let Some(more) = recorder.record(Call::from_bytes, || traffic(&recorder.name)) {
            calls.extend(more);
            hz_of_this_kernel = hz(&calls);
            tally = compare_call_by_call(&calls, hz_of_this_kernel);
            println!("all identical, at {hz_of_this_kernel} Hz: {tally:#?}, {} results repaired", recorder.counter(1));
        }
        if tally.is_enough() {
            break;
        }
        eprintln!("one more round after {round}: this machine was too busy for all that CUBIC does");
    }
    assert!(tally.is_enough(), "there must be something to compare, of everything that CUBIC does: {tally:#?}");
    // That a jiffy changes between two of a call's looks at the clock is rarer than that it does so before the first or after the last.
    assert!(tally.mixed <= 3 + tally.astride / 4, "{tally:#?}");

    // Law's jiffies are a 250th of a second too, but begin at other moments than the kernel's, so that the curve may be
    // looked at one jiffy earlier or later; and its HyStart has a cushion of 1 ms, where the kernel's is less while the first
    // RTTs of an idle path make the pacing rate more than 2.1 Gb/s, so that slow start may end an ACK or two earlier. A
    // segment that comes with another ACK makes two ACKs that do not grow alike, and until the next reduction the windows
    // differ by it; on a busy machine, where ACKs that have waited come as one, by as many segments as that one has.
    if hz_of_this_kernel != 250 {
        println!("windows of Law are not compared: this kernel has {hz_of_this_kernel} jiffies per second, not 250");
        return;
    }
    let agreement = compare_law(&calls);
    let share = |count: usize| count as f64 / agreement.acks as f64;
    println!("{agreement:#?}: {:.4} and {:.4}", share(agreement.identical), share(agreement.grew_alike));
    assert!(share(agreement.grew_alike) > 0.95);
    assert!(share(agreement.near) > 0.99);
}
