//! FQ-PIE: a queue for each flow, served in turn, each under PIE.
//!
//! Queues, turns and lists are those of FQ-CoDel (`flow_queues`), with Linux's 1024 queues and quanta of 1514 bytes. A packet is
//! dropped before its flow's queue as `pie` has it; one that finds the limit of all queues together reached is lost. So unlike with
//! FQ-CoDel, nobody's packets make room for others.
//!
//! *Leaves out*: the limit of 32 MiB.
//!
//! Reference: Linux 6.12, net/sched/sch_fq_pie.c.

use super::ack_filter::Filter;
use super::flow_queues::{FlowQueues, Turns};
use super::packet_queue::MAX_FRAME_BYTES;
use super::pie::Control;
use super::{Desk, Scheduler, Served, Setup};
use crate::packet::{Destination, Packet};
use crate::statistics::Cause;
use lasthop_units::{Bytes, Time};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

const TURNS: Turns = Turns { quantum: Bytes::new(MAX_FRAME_BYTES), flows: 1024, drop_batch: 1 };

pub(crate) type FqPie<P> = Served<P, Queues<P>>;

#[derive(Clone, Debug)]
pub(crate) struct Queues<P> {
    queues: FlowQueues<P, Control>,
    stream: ChaCha8Rng,
}

impl<P> FqPie<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        let mut stream = setup.streams.stream(setup.name);
        Self::of(Queues { queues: FlowQueues::new(TURNS, (), stream.next_u64()), stream }, setup)
    }
}

impl<P> Scheduler<P> for Queues<P> {
    fn inside(&self) -> usize {
        self.queues.waiting()
    }

    fn accept(
        &mut self,
        now: Time,
        mut packet: Packet<P>,
        has_room: bool,
        desk: &mut Desk<P>,
    ) -> Result<(), Packet<P>> {
        let (control, backlog) = self.queues.management_of(&packet);
        control.update(now, backlog);
        if !has_room {
            control.on_dropped();
            return desk.refuse(now, packet);
        }
        if control.drops_early(backlog, &mut self.stream) && !control.marks(&mut packet, desk) {
            control.on_dropped();
            return desk.turn_away(now, Cause::Early, packet);
        }
        self.queues.push(now, packet);
        Ok(())
    }

    fn next(
        &mut self,
        now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        self.queues.next(now, to, fits, desk)
    }

    fn thin(&mut self, new: &Packet<P>, filter: &Filter<P>) -> Option<Packet<P>> {
        self.queues.thin(new, filter)
    }

    fn remove_to(&mut self, _now: Time, to: Destination, _desk: &mut Desk<P>) -> Vec<Packet<P>> {
        self.queues.remove_to(to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Queue as _;
    use super::*;
    use crate::random::Streams;

    #[test]
    fn one_flows_backlog_costs_no_other_flow_a_packet() {
        // Flow 0 sends two packets in the time of one, flow 1 a packet each 10 ms; the queue gives one each millisecond.
        let setup = Setup { limit: 10_240, streams: Streams::new(1), name: "queue" };
        let mut queue: FqPie<u32> = FqPie::new(setup);
        let mut refused = [0; 2];
        let mut sojourns = Vec::new();
        for millis in 0..20_000_u32 {
            let now = Time::ZERO + lasthop_units::Span::from_millis(millis.into());
            for _ in 0..2 {
                refused[0] += u32::from(queue.push(now, Packet::full(millis)).is_err());
            }
            if millis % 10 == 0 {
                refused[1] += u32::from(queue.push(now, Packet { flow: 1, ..Packet::full(millis) }).is_err());
            }
            let packet = queue.pop(now);
            if packet.flow == 1 {
                sojourns.push(millis - packet.payload);
            }
        }
        // Of 40,000 packets 18,000 find room on the wire; what the controller needs to learn that stays in the queue.
        assert!(refused[0] > 18_000 && refused[1] == 0, "{refused:?}");
        assert!(sojourns.len() > 1990 && sojourns.iter().all(|&millis| millis <= 1), "{sojourns:?}");
    }
}
