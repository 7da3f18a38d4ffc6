//! The laws on real connections: everything that the kernel's law was told is told to the native one, which must come to the
//! same windows, call by call. Its state goes from a connection's first call to its last and is never corrected.
#![allow(missing_docs)]

mod support;

use lasthop_laws::{Acked, Choice, Law, LawName, Lost, Parameters, Start, Undone, Window};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::time::Duration;
use support::{B4, Flow, Net, Recorder, run, set_control, test_object_with, throughout};

const INIT: u32 = 0;
const ACKED: u32 = 1;
const LOST: u32 = 2;
const TIMED_OUT: u32 = 3;
const UNDONE: u32 = 4;

/// `struct recorded_call` of `bpf/record_law.bpf.c`.
#[derive(Clone, Debug)]
struct Call {
    socket: u64,
    call: u32,
    before: Window,
    after: Window,
    event: [u32; 14],
}

impl Call {
    fn from_bytes(bytes: &[u8]) -> Self {
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect();
        assert_eq!(words.len(), 24, "struct recorded_call");
        let window = |at: usize| Window {
            cwnd_segments: words[at],
            cwnd_count: words[at + 1],
            ssthresh_segments: words[at + 2],
        };
        Self {
            socket: u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes")),
            call: words[2],
            before: window(3),
            after: window(6),
            event: words[10..].try_into().expect("14 words"),
        }
    }

    fn now_us(&self) -> u64 {
        u64::from(self.event[1]) << 32 | u64::from(self.event[0])
    }

    fn start(&self) -> (Start, u32) {
        let start = Start {
            now: Time::from_nanos(self.now_us() * 1000),
            timestamp_tick: Span::from_micros(self.event[5].into()),
            ..Start::default()
        };
        (start, self.event[4])
    }

    /// A native law's sequence numbers begin at 0, this connection's at `first`.
    fn acked(&self, first: u32) -> Acked {
        let [
            _,
            _,
            acked_segments,
            in_flight_segments,
            rtt_us,
            srtt_us,
            min_rtt_us,
            snd_una,
            snd_nxt,
            tsval,
            tsecr,
            flags,
            marked_segments,
            _,
        ] = self.event;
        Acked {
            now_us: self.now_us(),
            acked_segments,
            in_flight_segments,
            rtt_us,
            srtt_us,
            min_rtt_us,
            snd_una: snd_una.wrapping_sub(first),
            snd_nxt: snd_nxt.wrapping_sub(first),
            tsval,
            tsecr,
            flags,
            marked_segments,
            reserved: 0,
        }
    }

    fn lost(&self, first: u32) -> Lost {
        let [_, _, in_flight_segments, srtt_us, min_rtt_us, snd_una, snd_nxt, flags, ..] = self.event;
        let (snd_una, snd_nxt) = (snd_una.wrapping_sub(first), snd_nxt.wrapping_sub(first));
        Lost {
            now_us: self.now_us(),
            in_flight_segments,
            srtt_us,
            min_rtt_us,
            snd_una,
            snd_nxt,
            flags,
            ..Lost::default()
        }
    }
}

/// Connections that meet everything: a full queue, random losses, a pause, and an outage with a timeout that may be needless.
fn traffic(control: &str) {
    std::thread::scope(|scope| {
        for (rate, queue, lost_percent) in [(20, 60_000, 0), (10, 60_000, 1), (50, 200_000, 2)] {
            scope.spawn(move || {
                let net = Net::bottleneck(rate, queue);
                if lost_percent > 0 {
                    net.lose_percent(lost_percent);
                }
                let flow = || Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, control));
                let (mut first, mut second) = (flow(), flow());
                first.send();
                throughout(Duration::from_secs(4), || {});
                second.send();
                throughout(Duration::from_secs(3), || {});
                let router = net.router().expect("this net has one");
                for rate_kbit in [8, rate * 1000] {
                    router.run(|| {
                        run(&format!("tc qdisc change dev rb root tbf rate {rate_kbit}kbit burst 4k limit {queue}"));
                    });
                    throughout(Duration::from_millis(1200), || {});
                }
                throughout(Duration::from_secs(2), || {});
            });
        }
    });
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    connections: usize,
    acks: usize,
    grown: usize,
    back_offs: usize,
    losses: usize,
    tolerated: usize,
    timeouts: usize,
    undone: usize,
}

fn replay(name: LawName, calls: &[Call]) -> Tally {
    let mut tally = Tally::default();
    let mut connections: BTreeMap<u64, (Law, u32)> = BTreeMap::new();
    for (number, call) in calls.iter().enumerate() {
        if call.call == INIT {
            let (start, seed) = call.start();
            let choice = Choice { name, parameters: Parameters::of(name), seed };
            connections.insert(call.socket, (Law::new(choice, start), call.event[2]));
            tally.connections += 1;
            continue;
        }
        let (law, first) = connections.get_mut(&call.socket).expect("a connection begins with its law's init");
        let mut window = call.before;
        match call.call {
            ACKED => law.on_acked(&call.acked(*first), &mut window),
            LOST => law.on_lost(&call.lost(*first), &mut window),
            TIMED_OUT => law.on_timed_out(&call.lost(*first), &mut window),
            UNDONE => law.on_undone(&Undone { now_us: call.now_us() }, &mut window),
            other => panic!("there is no call {other}"),
        }
        assert_eq!(window, call.after, "{name}, call {number} of {}: {call:?}", calls.len());
        let (before, after) = (call.before.cwnd_segments, call.after.cwnd_segments);
        match call.call {
            ACKED => {
                tally.acks += 1;
                tally.grown += usize::from(after > before);
                tally.back_offs += usize::from(after < before);
            }
            LOST => {
                tally.losses += 1;
                tally.tolerated += usize::from(call.after.ssthresh_segments >= before);
            }
            TIMED_OUT => tally.timeouts += 1,
            _ => tally.undone += 1,
        }
    }
    tally
}

#[test]
fn what_the_kernel_told_a_law_makes_the_same_windows_natively() {
    needs_root!();
    for (name, number) in [(LawName::Ucc, "LH_UCC"), (LawName::Cdg, "LH_CDG"), (LawName::Chd, "LH_CHD")] {
        let mut object = test_object_with("record_law", &[&format!("-DLH_LAW={number}")]);
        for mut map in object.maps_mut() {
            if map.name() == ".data.parameters" {
                let values: Vec<u8> =
                    Parameters::of(name).values().iter().flat_map(|value| value.to_ne_bytes()).collect();
                map.set_initial_value(&values).expect("as many as there are");
            }
        }
        let short = name.as_str();
        let recorder =
            Recorder::start(object, "law", "lh_law", format!("lh_r{short}_{}", std::process::id() % 100_000));
        let calls = recorder.record(Call::from_bytes, || traffic(&recorder.name)).expect("room in the ring");
        let tally = replay(name, &calls);
        println!("{name}: all identical, {tally:?}");
        // there must be something to compare
        assert!(tally.connections == 6 && tally.acks > 5000 && tally.grown > 200, "{tally:?}");
        assert!(tally.losses > 20 && tally.timeouts > 0, "{tally:?}");
        assert!(tally.tolerated > 0 && tally.tolerated < tally.losses, "{tally:?}");
        assert!(name == LawName::Ucc || tally.back_offs > 0, "{tally:?}");
    }
}
