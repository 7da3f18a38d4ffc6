//! The access categories of a node, and their TXOPs: points 8 and 9 of [`super`].

use super::{Medium, Phase, Transmission, access_point_name, best_effort};
use crate::queue::{AnyQueue, Queue as _};
use crate::schedule::Schedule;
use crate::statistics::{LengthOverTime, Way};
use crate::wifi::edca::{Category, Parameters, USUAL_AIFSN};
use crate::wifi::rate_control::Decision;
use crate::wifi::sender::Sender;
use lasthop_units::Time;
use std::cmp::Reverse;

/// A node with senders in several categories.
#[derive(Clone, Debug)]
pub(super) struct Marked {
    /// By place of the category, without best effort.
    pub(super) senders: [Option<usize>; 4],
    /// Of all its queues together.
    pub(super) lengths: LengthOverTime,
}

impl<P: Clone> Medium<P> {
    /// The category of packets from this station or to it, or of all (the access point's number). 802.11b and 802.11g
    /// have no categories: best effort stands for all.
    #[inline]
    pub(super) fn category_of(&self, station: usize, dscp: u8) -> Category {
        if dscp == 0 || !self.has_categories {
            return Category::BestEffort;
        }
        match self.controllers.stations.get(station) {
            Some(own) if !own.standard.aggregates() => Category::BestEffort,
            _ => Category::of_dscp(dscp),
        }
    }

    /// The node's sender in this category, if it has one.
    #[inline]
    pub(super) fn known_sender(&self, node: usize, category: Category) -> Option<usize> {
        match (category, &self.marked[node]) {
            (Category::BestEffort, _) => Some(node),
            (_, Some(marked)) => marked.senders[category.place()],
            (_, None) => None,
        }
    }

    /// The node's sender in this category, from now on.
    #[inline(never)]
    pub(super) fn sender_in(&mut self, now: Time, node: usize, category: Category) -> usize {
        if let Some(sender) = self.known_sender(node, category) {
            return sender;
        }
        if !self.has_marked() {
            // The receivers' deadlines are now those of all categories.
            self.deadlines = Schedule::new(Category::BY_PLACE.len() * 2 * self.directions.len());
            for link in (0..self.directions.len()).flat_map(|station| Way::BOTH.map(|way| best_effort(station, way))) {
                self.watch_deadline(now, link);
            }
        }
        let is_access_point = node >= self.directions.len();
        let Parameters { window, aifsn, txop } = category.parameters(is_access_point);
        let numbers = &self.controllers.numbers;
        let at = match node.checked_sub(self.directions.len()) {
            Some(number) => access_point_name(number),
            None => numbers[node].to_string(),
        };
        let name = format!("{at}/{}", category.name());
        let stream = self.streams.stream(&format!("wifi/backoff/{name}"));
        let mut queue = AnyQueue::new(self.queues[node], self.streams, &format!("wifi/fq-codel/{name}"));
        queue.number_stations(numbers);
        self.read_acks.into_iter().for_each(|read| queue.read_acks(read));
        let more_slots = aifsn as i8 - USUAL_AIFSN as i8;
        let sender = match &mut self.per_node {
            None => self.contention.add(window, more_slots, stream, node),
            Some(per_node) => per_node.access.add(window, more_slots, stream, node),
        };
        let reports = self.senders[node].reports;
        self.senders.push(Sender::new(node, category, txop, queue));
        self.senders[sender].reports = reports;
        self.watch_sender(sender);
        let lengths = || self.senders[node].queue.desk().counted.lengths.clone();
        let marked =
            self.marked[node].get_or_insert_with(|| Box::new(Marked { senders: [None; 4], lengths: lengths() }));
        marked.senders[category.place()] = Some(sender);
        sender
    }

    /// The node's senders.
    pub(super) fn senders_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let others = self.marked[node].iter().flat_map(|marked| marked.senders.iter().flatten().copied());
        [node].into_iter().chain(others)
    }

    /// Whether any node has sent in another category than best effort.
    #[inline]
    pub(super) fn has_marked(&self) -> bool {
        self.senders.len() > self.marked.len()
    }

    /// A queue of the node may have changed.
    #[inline]
    pub(super) fn measure(&mut self, now: Time, node: usize) {
        if self.has_marked() {
            self.measure_together(now, node);
        }
    }

    #[inline(never)]
    fn measure_together(&mut self, now: Time, node: usize) {
        if self.marked[node].is_some() {
            let length = self.queue_len(node);
            self.marked[node].iter_mut().for_each(|marked| marked.lengths.change(now, length));
        }
    }

    /// Whether the node sends in another category.
    #[inline]
    pub(super) fn is_sending(&self, node: usize) -> bool {
        self.has_marked() && self.sends_in_another(node)
    }

    #[inline(never)]
    fn sends_in_another(&self, node: usize) -> bool {
        let Phase::Frames(_) = self.phase else { return false };
        self.marked[node].is_some() && self.on_air.iter().any(|frame| frame.node == node)
    }

    /// Inter-frame spaces end at `ready`, except for all senders of these nodes.
    #[inline(never)]
    pub(super) fn resume_senders(&mut self, ready: Time, except: &[(usize, Time)]) {
        let senders = |&(node, ready)| self.senders_of(node).map(move |sender| (sender, ready));
        let except: Vec<_> = except.iter().flat_map(senders).collect();
        self.contention.resume(ready, &except);
    }

    /// Of each node's senders only the first one sends, and of those that begin together the highest category's.
    #[inline(never)]
    pub(super) fn collide_inside(&mut self, sending: &mut Vec<(usize, Time)>) {
        let Self { senders, contention, .. } = self;
        sending.sort_unstable_by_key(|&(sender, start)| {
            let Sender { node, category, .. } = senders[sender];
            (node, start, Reverse(category))
        });
        let mut last = None;
        sending.retain(|&(sender, _)| {
            let is_first = last.replace(senders[sender].node) != Some(senders[sender].node);
            if !is_first {
                contention.on_failure(sender);
            }
            is_first
        });
    }

    /// The next transmission of the frame's TXOP, if one fits in.
    #[inline(never)]
    pub(super) fn next_in_txop(&mut self, now: Time, frame: Transmission) -> Option<Transmission> {
        let start = now + self.times.cell.sifs;
        let Transmission { sender, node, .. } = frame;
        let time = frame.txop_end.saturating_since(start);
        if self.holds.any() {
            self.put_aside(now, sender);
        }
        if time.is_zero() || !self.can_send(sender) {
            return None;
        }
        let link = self.next_link(now, sender)?;
        let is_request = self.directions[link.station][link.way].ends.at_mut(link.category).originator.is_request_due();
        let (Decision { mode, .. }, content) = self.fill(now, sender, link, Some(time), false);
        let times = self.times.mode(mode);
        let duration = if is_request { times.request } else { times.ppdu(content.bytes) };
        if (content.frames == 0 && !is_request) || duration + times.block_ack > time {
            return None;
        }
        let end = start + duration;
        self.to_all += content.share_to_all(end - start);
        self.measure(now, node);
        Some(Transmission { mode, link: Some(link), content, duration, is_rts: false, end, ..frame })
    }
}
