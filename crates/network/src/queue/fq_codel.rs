//! FQ-CoDel: a queue for each flow, served in turn, each under CoDel.
//!
//! 1. A packet joins the queue that its flow hashes to, of `flows` queues. A queue that was in neither list joins the
//!    new ones, with a quantum of credits.
//! 2. More packets than the limit: from the head of the queue with the most bytes half of its bytes are dropped, `drop_batch`
//!    packets at most.
//! 3. The next packet is taken from the first of the new queues, or if there are none from the first of the old ones. One
//!    without credits gets a quantum and goes to the end of the old ones instead; then the next is asked.
//! 4. The queue gives its head after CoDel's drops (`codel`), which costs it as many credits as the frame has bytes.
//! 5. A queue that has nothing to give goes to the end of the old ones if it was new, and out of the lists if it was old.
//!
//! ```text
//!    [in no list] -- packet --> [new] -- no credits, or empty --> [old] -- empty --> [in no list]
//!                                                                  |  ^
//!                                                                  +--+ no credits: a quantum, to the end
//! ```
//!
//! What is modelled: the discipline right above the transmitter, which asks it for the next packet when it begins to send
//! that one. There is no device queue below (real devices hold some frames, which wait there in order). The one packet being
//! sent is out of CoDel's hands but counts in length and limit, as it does in a `fifo`.
//!
//! Leaves out: ECN, `ce_threshold`, the memory limit in bytes, filters. CoDel looks at the bytes of its own queue, as RFC 8289 and
//! mac80211 have it, not at those of all together (`sch_fq_codel`).
//!
//! References: RFC 8290 §4.1 (enqueueing), §4.2 (dequeueing), §5.2 (parameters); RFC 8289 §5; T. Høiland-Jørgensen et al.: Ending the
//! anomaly: achieving low latency and airtime fairness in WiFi, USENIX ATC 2017 (above Wi-Fi devices).

use super::codel::{Codel, Setpoint};
use super::packet_queue::{PacketQueue, frame_bytes};
use crate::packet::Packet;
use crate::random::Streams;
use crate::statistics::{Cause, LengthOverTime};
use rand::Rng;
use std::collections::VecDeque;
use units::{Bytes, Span, Time};

/// FQ-CoDel's parameters; the defaults are those of RFC 8290 §5.2.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FqCodelConfig {
    /// The standing delay that CoDel accepts. Default 5 ms.
    pub target: Span,
    /// For how long it accepts a longer one: a round trip of the slower connections. More than zero. Default 100 ms.
    pub interval: Span,
    /// How many bytes a queue may send when it is its turn, at least 1. Default 1514, a full frame.
    pub quantum: Bytes,
    /// How many queues the flows are hashed to, 1 to 65536. Default 1024.
    pub flows: u32,
    /// How many packets at most are dropped at once when the limit is reached, at least 1. Default 64.
    pub drop_batch: u32,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            quantum: Bytes::new(1514),
            flows: 1024,
            drop_batch: 64,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FqCodel<P> {
    config: FqCodelConfig,
    /// Mixed into the hash, so that which flows share a queue is this run's luck.
    salt: u64,
    limit: usize,
    flows: Vec<Flow<P>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    /// Packets in all flows.
    waiting: usize,
    in_service: InService<P>,
    lengths: LengthOverTime,
    drops: [u64; Cause::ALL.len()],
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: PacketQueue<P>,
    credits: i64,
    listed: bool,
    codel: Codel,
}

/// The packet that the transmitter is at.
#[derive(Clone, Debug)]
enum InService<P> {
    None,
    /// Chosen: it is sent, again and again if need be.
    Head(Packet<P>),
    /// Handed on, and the transmitter is not done yet.
    Taken,
}

impl<P> FqCodel<P> {
    /// An empty queue; `name` is that of its random stream, drawn from once.
    pub(crate) fn new(config: FqCodelConfig, limit: usize, streams: Streams, name: &str) -> Self {
        let flow = |_| Flow { queue: PacketQueue::new(), credits: 0, listed: false, codel: Codel::default() };
        Self {
            config,
            salt: streams.stream(name).next_u64(),
            limit,
            flows: (0..config.flows).map(flow).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            waiting: 0,
            in_service: InService::None,
            lengths: LengthOverTime::new(),
            drops: [0; Cause::ALL.len()],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting + usize::from(!matches!(self.in_service, InService::None))
    }

    /// How many packets fit in without one being lost for it.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// Queues the packet; past the limit the fattest flow pays. The packet comes back if it was itself among the dropped.
    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let index = self.hash(packet.flow);
        let flow = &mut self.flows[index];
        flow.queue.push(now, packet);
        self.waiting += 1;
        if !flow.listed {
            flow.listed = true;
            flow.credits = credits(self.config.quantum.get());
            self.new_flows.push_back(index);
        }
        let refused = if self.len() > self.limit { self.drop_from_the_fattest(index) } else { None };
        self.lengths.change(now, self.len());
        refused.map_or(Ok(()), Err)
    }

    /// The packet being sent. If there is none, the next one is chosen now, and others are dropped on the way to it.
    pub(crate) fn head(&mut self, now: Time) -> &Packet<P> {
        if matches!(self.in_service, InService::None) {
            let before = self.len();
            self.in_service = InService::Head(self.dequeue(now));
            if self.len() != before {
                self.lengths.change(now, self.len());
            }
        }
        match &self.in_service {
            InService::Head(packet) => packet,
            _ => unreachable!("the head is taken only once"),
        }
    }

    /// The head, which counts until [`release`](Self::release).
    pub(crate) fn take_head(&mut self) -> Packet<P> {
        match std::mem::replace(&mut self.in_service, InService::Taken) {
            InService::Head(packet) => packet,
            _ => unreachable!("a transmitter takes the head that it has sent"),
        }
    }

    /// The transmitter is done with the head that it took.
    pub(crate) fn release(&mut self, now: Time) {
        assert!(matches!(self.in_service, InService::Taken), "only a head that was taken is released");
        self.in_service = InService::None;
        self.lengths.change(now, self.len());
    }

    pub(crate) fn count_drops(&mut self, cause: Cause, count: u64) {
        self.drops[cause as usize] += count;
    }

    pub(crate) fn drops(&self, cause: Cause) -> u64 {
        self.drops[cause as usize]
    }

    pub(crate) fn lengths(&self) -> &LengthOverTime {
        &self.lengths
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.drops = [0; Cause::ALL.len()];
        self.lengths.reset(now);
    }

    /// Which queue the flow belongs to: the finalizer of SplitMix64 over flow and salt, scaled to the number of queues.
    fn hash(&self, flow: u32) -> usize {
        let mut hash = self.salt ^ u64::from(flow);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (((hash >> 32) * u64::from(self.config.flows)) >> 32) as usize
    }

    fn dequeue(&mut self, now: Time) -> Packet<P> {
        let setpoint = Setpoint { target: self.config.target, interval: self.config.interval };
        let before = self.waiting;
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front().expect("a transmitter asks only a queue that is not empty");
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += credits(self.config.quantum.get());
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let waiting = &mut self.waiting;
            if let Some(packet) = flow.codel.dequeue(now, setpoint, &mut flow.queue, |_| *waiting -= 1) {
                self.drops[Cause::CoDel as usize] += (before - self.waiting) as u64;
                self.waiting -= 1;
                flow.credits -= credits(frame_bytes(&packet));
                return packet;
            }
            list.pop_front();
            if is_new {
                self.old_flows.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    /// Drops from the flow with the most bytes; of two, from the one with the lower index. Gives the packet back that has just
    /// joined the queue `joined`, if that is the one. The last packet of a queue goes only if it is alone there: so the queues
    /// together are never emptied, and whoever is about to send will find a packet.
    fn drop_from_the_fattest(&mut self, joined: usize) -> Option<Packet<P>> {
        let listed = self.new_flows.iter().chain(&self.old_flows).copied();
        let fattest = listed.max_by_key(|&index| (self.flows[index].queue.bytes(), std::cmp::Reverse(index)));
        let fattest = fattest.expect("a packet has just joined");
        let flow = &mut self.flows[fattest];
        let half = flow.queue.bytes() / 2;
        let mut dropped = 0;
        let mut refused = None;
        while dropped == 0 || (dropped < self.config.drop_batch && flow.queue.bytes() > half && flow.queue.len() > 1) {
            let (_, packet) = flow.queue.pop().expect("the fattest flow has a packet");
            refused = (fattest == joined && flow.queue.is_empty()).then_some(packet);
            dropped += 1;
        }
        flow.codel.on_overflow(dropped);
        self.waiting -= dropped as usize;
        self.drops[Cause::QueueFull as usize] += u64::from(dropped);
        refused
    }
}

fn credits(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("a quantum and a packet are far below 2^63 bytes")
}
