//! A station or the access point as a sender in an access category: its queue, and the receiver of its next
//! transmission.

use super::direction::{DOWN, Direction, Link, UP};
use super::edca::Category;
use crate::packet::Destination;
use crate::queue::Queue;
use lasthop_units::{Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    /// The station, or the access point after them.
    pub(super) node: usize,
    pub(super) category: Category,
    /// The longest that it sends after it has won the medium; zero: one PPDU.
    pub(super) txop: Span,
    pub(super) queue: Queue<P>,
    /// Transmissions in a row without a response.
    pub(super) failures: u8,
    /// The next receiver, if already determined: for a repeat, or a Block Ack Request.
    pub(super) next: Option<Link>,
    /// The access point: stations with frames to be repeated.
    unfinished: Vec<usize>,
    /// Whether to report its departures from the queue.
    pub(super) reports: bool,
}

impl<P> Sender<P> {
    /// A sender with nothing to send.
    pub(super) const fn new(node: usize, category: Category, txop: Span, queue: Queue<P>) -> Self {
        Self { node, category, txop, queue, failures: 0, next: None, unfinished: Vec::new(), reports: false }
    }

    /// Whether it has nothing to send.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.next.is_none()
    }

    /// The receiver of this sender's next transmission; `None` for a broadcast. For the access point, the receiver of
    /// its oldest packet, queued or to be repeated.
    #[inline]
    pub(super) fn next_link(&mut self, now: Time, directions: &[[Direction<P>; 2]]) -> Option<Link> {
        let category = self.category;
        if self.node < directions.len() {
            return Some(Link { station: self.node, way: UP, category });
        }
        if self.next.is_some() {
            return self.next;
        }
        let down = |station| Some(Link { station, way: DOWN, category });
        let place = |&station: &usize| {
            (directions[station][DOWN].ends.at(category).and_then(|ends| ends.originator.place()), station)
        };
        let oldest = self.unfinished.iter().map(place).min();
        if let Some((_, station)) = oldest.filter(|_| !self.queue.is_ready()) {
            return down(station);
        }
        let (place, head) = self.queue.head(now);
        match (oldest, head.to) {
            (Some((oldest, station)), _) if oldest < Some(place) => down(station),
            (_, Destination::Node(station)) => down(station.index()),
            (_, Destination::Broadcast) => None,
        }
    }

    /// A transmission on this link is over. `is_repeated`: the next transmission has the same receiver.
    /// `is_unfinished`: frames must be repeated there.
    #[inline]
    pub(super) fn settle(&mut self, link: Link, is_repeated: bool, is_unfinished: bool) {
        self.next = is_repeated.then_some(link);
        if link.way == DOWN {
            self.unfinished.retain(|&station| station != link.station);
            if is_unfinished {
                self.unfinished.push(link.station);
            }
        }
    }
}
