//! The laws: worked numbers from their sources, properties, and theory.
#![allow(missing_docs)]

mod bbr;
mod bbr3;
mod cdg;
mod chd;
mod cubic;
mod cubic_rfc9438;
mod dctcp;
mod delay;
mod delay_based;
mod hd;
mod hystart;
mod hystart_plus_plus;
mod lastlink;
mod newreno;
mod path;
mod prague;
mod properties;
mod response;
mod ucc;

use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, Sent, SlowStart, Start, Undone, Window};

/// A law with a window and a clock: as much of a stack as the laws' arithmetic needs. It has no recovery: after a loss the
/// window is ssthresh at once.
#[derive(Clone, Debug)]
struct Sender {
    law: Law,
    window: Window,
    now_us: u64,
    srtt_us: u32,
    min_rtt_us: u32,
    flags: u32,
}

const GROWS: u32 = Acked::MAY_GROW | Acked::CWND_LIMITED | Acked::ADVANCED;

/// Those that heed no delay but at the end of slow start.
const LOSS_BASED: [LawName; 4] = [LawName::NewReno, LawName::Cubic, LawName::CubicRfc9438, LawName::Lastlink];

/// Those with a shadow window, which at a loss takes the place of a smaller window.
const SHADOWED: [LawName; 1] = [LawName::Chd];

/// Those whose ACKs set a window that they compute from delays or from what was delivered; delay_based.rs has their numbers.
const ESTIMATING: [LawName; 3] = [LawName::Vegas, LawName::Westwood, LawName::LedbatPlusPlus];

impl Sender {
    fn new(name: LawName, slow_start: SlowStart, cwnd_segments: u32) -> Self {
        Self {
            law: Law::new(name, Start { slow_start, ..Start::default() }),
            window: Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH },
            now_us: 0,
            srtt_us: 100_000,
            min_rtt_us: 100_000,
            flags: GROWS,
        }
    }

    /// In congestion avoidance after a loss at a window of `w_max`.
    fn after_loss_at(name: LawName, w_max: u32) -> Self {
        let mut sender = Self::new(name, SlowStart::Standard, w_max);
        sender.lose();
        sender
    }

    fn cwnd(&self) -> u32 {
        self.window.cwnd_segments
    }

    fn event(&self, acked_segments: u32) -> Acked {
        Acked {
            now_us: self.now_us,
            acked_segments,
            in_flight_segments: self.cwnd().saturating_sub(acked_segments),
            srtt_us: self.srtt_us,
            min_rtt_us: self.min_rtt_us,
            flags: self.flags,
            ..Acked::default()
        }
    }

    /// An ACK of `segments` without an RTT sample.
    fn ack(&mut self, segments: u32) -> u32 {
        let event = self.event(segments);
        self.law.on_acked(&event, &mut self.window);
        self.cwnd()
    }

    /// One ACK of one segment for each of `segments`.
    fn acks(&mut self, segments: u32) -> u32 {
        for _ in 0..segments {
            self.ack(1);
        }
        self.cwnd()
    }

    /// ACKs of single segments until the window is `cwnd`; how many it took.
    fn acks_until(&mut self, cwnd: u32) -> u32 {
        (1..1_000_000).find(|_| self.ack(1) >= cwnd).expect("the window grows")
    }

    /// ACKs of single segments, one window of them each `rtt_us`, for `us`.
    fn run(&mut self, us: u64, rtt_us: u32) -> u32 {
        let end_us = self.now_us + us;
        self.srtt_us = rtt_us;
        while self.now_us < end_us {
            self.now_us += u64::from((rtt_us / self.cwnd()).max(1));
            let event = Acked { rtt_us, ..self.event(1) };
            self.law.on_acked(&event, &mut self.window);
        }
        self.cwnd()
    }

    fn wait(&mut self, us: u64) -> &mut Self {
        self.now_us += us;
        self
    }

    fn lost(&self) -> Lost {
        Lost {
            now_us: self.now_us,
            in_flight_segments: self.cwnd(),
            srtt_us: self.srtt_us,
            min_rtt_us: self.min_rtt_us,
            ..Lost::default()
        }
    }

    /// A loss with the whole window in flight, and the recovery from it in no time.
    fn lose(&mut self) -> u32 {
        let lost = self.lost();
        self.law.on_lost(&lost, &mut self.window);
        self.window.cwnd_segments = self.window.ssthresh_segments;
        self.window.cwnd_count = 0;
        self.cwnd()
    }

    fn time_out(&mut self) {
        let lost = self.lost();
        self.law.on_timed_out(&lost, &mut self.window);
        self.window.cwnd_segments = 1;
        self.window.cwnd_count = 0;
    }

    /// The last reduction was needless; `before` is what the window was.
    fn undo(&mut self, before: Window) {
        self.window = Window { cwnd_segments: self.cwnd().max(before.cwnd_segments), ..before };
        self.law.on_undone(&Undone { now_us: self.now_us }, &mut self.window);
    }

    fn send_after(&mut self, idle_us: u64) {
        self.now_us += idle_us;
        let sent = Sent { now_us: self.now_us, idle_us, in_flight_before_segments: 0, snd_nxt: 0 };
        self.law.on_sent(&sent);
    }
}
