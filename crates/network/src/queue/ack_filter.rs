//! The ACK filter of CAKE: a pure ACK leaves the queue where a newer one of its flow makes it needless.
//!
//! When a packet with an ACK joins a queue, the oldest pure ACK of the same flow and direction goes that
//! 1. does not acknowledge beyond the new one, and has no newer timestamps;
//! 2. acknowledges less than the new one, or selectively less: all that it has in SACK blocks, the new one has;
//! 3. has no D-SACK, SYN, FIN, PSH or option but SACK and timestamps, and the ECN flags of the next one like it.
//!
//! "conservative" leaves one more such ACK in the queue, so that three in a row are two afterwards; "aggressive" leaves none if the
//! new one is right behind.
//!
//! Reference: Linux 6.12, net/sched/sch_cake.c (`cake_ack_filter`, `cake_tcph_may_drop`, `cake_tcph_sack_compare`).

use crate::packet::Packet;

/// How many needless ACKs go.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AckFilter {
    /// One stays for each that goes.
    Conservative,
    /// All.
    Aggressive,
}

impl AckFilter {
    /// Each with its name in files: CAKE's `ack-filter` and `ack-filter-aggressive`.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("conservative", Self::Conservative), ("aggressive", Self::Aggressive)];
}

/// What the filter looks at in a segment of TCP that acknowledges. Numbers are those of the wire, and wrap.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TcpAck {
    /// The cumulative ACK.
    pub ack: u32,
    /// Whether it may go: it has no data, no SYN, FIN, PSH, RST or URG, and no options but timestamps and SACK.
    pub is_pure: bool,
    /// TSval and TSecr; zero without.
    pub timestamps: (u32, u32),
    /// SACK blocks, from their first byte to the one behind their last; zero behind the last block.
    pub sack: [(u32, u32); 4],
    /// The flags ECE and CWR.
    pub ecn: (bool, bool),
}

/// Reads the ACK of a payload; `None` if it is none, or has a SYN.
pub type ReadAck<P> = fn(&P) -> Option<TcpAck>;

/// A filter that can read the packets.
#[derive(Debug)]
pub(crate) struct Filter<P> {
    pub(crate) filter: AckFilter,
    pub(crate) read: ReadAck<P>,
}

impl<P> Copy for Filter<P> {}

impl<P> Clone for Filter<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Filter<P> {
    /// The place of the packet that goes, of those in a queue in order, where `new` is to join at its end.
    pub(super) fn needless<'a>(&self, queue: impl Iterator<Item = &'a Packet<P>>, new: &Packet<P>) -> Option<usize>
    where
        P: 'a,
    {
        let by = (self.read)(&new.payload)?;
        let (mut eligible, mut length): (Option<(usize, TcpAck)>, _) = (None, 0);
        for (place, packet) in queue.enumerate() {
            length = place + 1;
            if (packet.flow, packet.from, packet.to) != (new.flow, new.from, new.to) {
                continue;
            }
            let Some(ack) = (self.read)(&packet.payload) else { continue };
            // A change of the flags would be lost with the first one.
            eligible = eligible.filter(|(_, first)| first.ecn == ack.ecn);
            if !ack.is_made_needless(&by) {
                continue;
            }
            match eligible {
                Some((first, _)) => return Some(first),
                None => eligible = Some((place, ack)),
            }
        }
        let (place, ack) = eligible?;
        (self.filter == AckFilter::Aggressive && place + 1 == length && ack.ecn == by.ecn).then_some(place)
    }
}

impl TcpAck {
    fn is_made_needless(&self, by: &Self) -> bool {
        self.is_pure
            && !is_after(self.ack, by.ack)
            && !is_after(self.timestamps.0, by.timestamps.0)
            && !is_after(self.timestamps.1, by.timestamps.1)
            && self.sacks_no_more(by).is_some_and(|less| less || self.ack != by.ack)
    }

    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> {
        self.sack.into_iter().take_while(|(start, end)| start != end)
    }

    /// Whether `other` has all SACK blocks of this one, and then whether it has more bytes. `None` if it has not, or if a block
    /// here is a D-SACK.
    fn sacks_no_more(&self, other: &Self) -> Option<bool> {
        let is_within = |one: (u32, u32), block: (u32, u32)| !is_after(block.0, one.0) && !is_after(one.1, block.1);
        for block in self.blocks() {
            if is_after(self.ack, block.0) || !other.blocks().any(|wider| is_within(block, wider)) {
                return None;
            }
        }
        let bytes = |ack: &Self| ack.blocks().map(|(start, end)| u64::from(end.wrapping_sub(start))).sum::<u64>();
        Some(bytes(other) > bytes(self))
    }
}

/// Sequence numbers and timestamps wrap.
fn is_after(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ack: u32) -> TcpAck {
        TcpAck { ack, is_pure: true, ..TcpAck::default() }
    }

    fn sack(number: u32, blocks: &[(u32, u32)]) -> TcpAck {
        let mut sack = [(0, 0); 4];
        sack[..blocks.len()].copy_from_slice(blocks);
        TcpAck { sack, ..ack(number) }
    }

    /// Which of these goes when the last one joins the others.
    fn goes(filter: AckFilter, acks: &[TcpAck]) -> Option<usize> {
        let packets: Vec<_> = acks.iter().map(|ack| Packet::full(*ack)).collect();
        let (new, queue) = packets.split_last().unwrap();
        Filter { filter, read: |ack: &TcpAck| Some(*ack) }.needless(queue.iter(), new)
    }

    use AckFilter::{Aggressive, Conservative};

    #[test]
    fn of_three_in_a_row_the_first_goes_and_of_two_only_with_the_aggressive_one() {
        assert_eq!(goes(Conservative, &[ack(1000), ack(2000), ack(3000)]), Some(0));
        assert_eq!(goes(Conservative, &[ack(1000), ack(2000)]), None);
        assert_eq!(goes(Aggressive, &[ack(1000), ack(2000)]), Some(0));
        assert_eq!(goes(Aggressive, &[ack(1000), ack(2000), ack(3000)]), Some(0));
        // Numbers wrap.
        assert_eq!(goes(Aggressive, &[ack(u32::MAX - 9), ack(10)]), Some(0));
    }

    #[test]
    fn a_duplicate_ack_stays_and_so_does_what_tells_more() {
        assert_eq!(goes(Aggressive, &[ack(1000), ack(1000)]), None, "fast retransmit counts them");
        assert_eq!(goes(Aggressive, &[ack(2000), ack(1000)]), None);
        assert_eq!(goes(Aggressive, &[TcpAck { is_pure: false, ..ack(1000) }, ack(2000)]), None);
        let at = |tick, number| TcpAck { timestamps: (tick, 1), ..ack(number) };
        assert_eq!(goes(Aggressive, &[at(7, 1000), at(6, 2000)]), None);
        assert_eq!(goes(Aggressive, &[at(7, 1000), at(7, 2000)]), Some(0));
    }

    #[test]
    fn sack_blocks_are_kept_unless_the_new_one_has_them_and_more() {
        // The same ACK, a block that grows.
        assert_eq!(goes(Aggressive, &[sack(10, &[(20, 30)]), sack(10, &[(20, 40)])]), Some(0));
        assert_eq!(goes(Aggressive, &[sack(10, &[(20, 30)]), sack(10, &[(20, 30)])]), None);
        assert_eq!(goes(Aggressive, &[sack(10, &[(20, 30)]), sack(10, &[(40, 60)])]), None);
        assert_eq!(goes(Aggressive, &[sack(10, &[(20, 30)]), sack(10, &[(40, 60), (20, 30)])]), Some(0));
        assert_eq!(goes(Aggressive, &[sack(10, &[(20, 30)]), ack(15)]), None, "the new one has no blocks");
        assert_eq!(goes(Aggressive, &[sack(10, &[(5, 8)]), sack(20, &[(5, 8)])]), None, "a D-SACK");
    }

    #[test]
    fn a_change_of_ecn_flags_is_kept() {
        let echo = |number| TcpAck { ecn: (true, false), ..ack(number) };
        assert_eq!(goes(Aggressive, &[ack(1000), echo(2000)]), None);
        assert_eq!(goes(Conservative, &[ack(1000), echo(2000), echo(3000)]), None);
        assert_eq!(goes(Conservative, &[ack(1000), echo(2000), echo(3000), echo(4000)]), Some(1));
        assert_eq!(goes(Aggressive, &[echo(1000), echo(2000)]), Some(0));
    }

    #[test]
    fn other_flows_and_the_other_direction_are_none_of_its_business() {
        let packet = |flow, number| Packet { flow, ..Packet::full(ack(number)) };
        let filter = Filter { filter: Aggressive, read: |ack: &TcpAck| Some(*ack) };
        let queue = [packet(1, 1000), packet(2, 1000)];
        assert_eq!(filter.needless(queue.iter(), &packet(1, 2000)), None, "another packet is between");
        assert_eq!(filter.needless(queue.iter(), &packet(2, 2000)), Some(1));
        let back = Packet { from: crate::packet::NodeId(7), ..packet(2, 2000) };
        assert_eq!(filter.needless(queue.iter(), &back), None);
    }
}
