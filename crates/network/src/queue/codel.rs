//! CoDel: when to drop the head of a queue so that its standing delay stays near a target.
//!
//! A packet's sojourn is the time from its arrival to its departure from the queue. Everything happens at departures:
//! 1. Sojourns of at least TARGET for a whole INTERVAL, with more than one packet's worth waiting: drop the head, take the next.
//! 2. From then on the next drop is INTERVAL / sqrt(count) after the last, where count counts the drops (the control law).
//! 3. A sojourn under TARGET, or nothing much left waiting, ends it. If it begins again within 16 INTERVALs, count goes on
//!    with the drops that the last time needed beyond its start; else it begins at 1.
//!
//! ```text
//!            sojourn < TARGET, or at most MAXPACKET bytes wait
//!          +----------------------------------------------------+
//!          v                                                    |
//!   [under control] -- TARGET exceeded for an INTERVAL: drop --> [dropping] --+
//!                                                                   ^         | drop_next reached: drop, count + 1,
//!                                                                   +---------+ drop_next += INTERVAL / sqrt(count)
//! ```
//!
//! The square root is exact (the integer part of the quotient in nanoseconds); Linux approximates it by one Newton step per
//! drop with 16 bits.
//!
//! Leaves out: ECN. What would be marked is dropped.
//!
//! Reference: RFC 8289 §5 (the pseudocode, here by its names), §4.4 (TARGET), §4.3 (INTERVAL).

use super::packet_queue::PacketQueue;
use crate::packet::Packet;
use units::{Span, Time};

/// MAXPACKET: the RFC's own is 512 bytes "or the interface's MTU"; ours is Ethernet's, as in Linux.
const MAX_PACKET_BYTES: u64 = 1514;
/// How many INTERVALs after the last drop its rate is still a good start (RFC 8289 §5.5).
const MEMORY_INTERVALS: u64 = 16;

/// TARGET and INTERVAL.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setpoint {
    pub(crate) target: Span,
    pub(crate) interval: Span,
}

/// What CoDel remembers of one queue.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Codel {
    dropping: bool,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping began.
    last_count: u32,
    /// When sojourns will have been above TARGET for an INTERVAL; `None` while they are not.
    first_above: Option<Time>,
    drop_next: Time,
}

impl Codel {
    /// The next packet to send, after what is to be dropped before it. `None` only if the queue is empty.
    pub(crate) fn dequeue<P>(
        &mut self,
        now: Time,
        setpoint: Setpoint,
        queue: &mut PacketQueue<P>,
        mut drop: impl FnMut(Packet<P>),
    ) -> Option<Packet<P>> {
        let Some((mut packet, mut ok_to_drop)) = self.dodequeue(now, setpoint, queue) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                drop(packet);
                self.count = self.count.saturating_add(1);
                (packet, ok_to_drop) = self.dodequeue(now, setpoint, queue).expect(NEVER_THE_LAST);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, setpoint.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            drop(packet);
            (packet, _) = self.dodequeue(now, setpoint, queue).expect(NEVER_THE_LAST);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now.saturating_since(self.drop_next) < setpoint.interval * MEMORY_INTERVALS;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, setpoint.interval, self.count);
            self.last_count = self.count;
        }
        Some(packet)
    }

    /// So many packets were lost for want of room: a reason to drop more often from now on, as in Linux.
    pub(crate) fn on_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The head, and whether it may be dropped.
    fn dodequeue<P>(&mut self, now: Time, setpoint: Setpoint, queue: &mut PacketQueue<P>) -> Option<(Packet<P>, bool)> {
        let Some((arrival, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.saturating_since(arrival) < setpoint.target || queue.bytes() <= MAX_PACKET_BYTES {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + setpoint.interval);
        Some((packet, now >= first_above))
    }
}

const NEVER_THE_LAST: &str = "CoDel drops a packet only while more than MAXPACKET bytes wait behind it";

/// t + INTERVAL / sqrt(count) (RFC 8289 §5.6), rounded down to the nanosecond: floor(I / sqrt(c)) = isqrt(floor(I^2 / c)).
fn control_law(t: Time, interval: Span, count: u32) -> Time {
    let interval = u128::from(interval.as_nanos());
    let root = (interval * interval / u128::from(count)).isqrt();
    t + Span::from_nanos(u64::try_from(root).expect("the quotient is at most the interval"))
}
