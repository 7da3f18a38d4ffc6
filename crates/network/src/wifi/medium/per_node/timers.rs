//! The timers of senders whose nodes sense the medium each for itself: points 1 to 4 of `backoff`, without a common count.
//!
//! A node counts while it is silent: it senses nothing, has no part in an exchange, and its inter-frame space is over.

use crate::config::Cells;
use crate::wifi::backoff::{later, slots_before};
use crate::wifi::constants::ContentionWindow;
use lasthop_units::{Span, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub(in crate::wifi) struct Timers {
    slot: Span,
    timers: Vec<Timer>,
    streams: Vec<ChaCha8Rng>,
    /// By node: the numbers of its timers, which are those of its senders, but for the first: that has the node's number.
    more: Vec<Vec<usize>>,
    /// By node.
    silences: Vec<Silence>,
    backlogged: Vec<usize>,
    /// By node: its cell. By cell, and then of all: the nodes with a sender that has a frame.
    cells: Vec<usize>,
    waiting: Vec<usize>,
    /// The start of the next transmission.
    next: Time,
}

#[derive(Clone, Debug)]
struct Timer {
    node: usize,
    limits: ContentionWindow,
    /// Its AIFSN, less the common one, in slots.
    more_slots: i8,
    /// CW.
    window: u32,
    /// The slots left at `ready`.
    slots: u32,
    /// The end of its inter-frame space.
    ready: Time,
    /// When it expires, if the node stays silent.
    end: Time,
    has_frame: bool,
    /// Its frame is sent at the end of the inter-frame space, if the node stays silent.
    without_backoff: bool,
    /// When it sends; [`Time::MAX`] if nothing is due.
    due: Time,
}

impl Timer {
    /// It goes on when the common inter-frame space is over.
    #[inline(always)]
    fn resume(&mut self, ready: Time, slot: Span) {
        self.ready = if self.more_slots == 0 { ready } else { later(ready, self.more_slots, slot) };
        self.end = self.ready + slot * u64::from(self.slots);
        self.due = if self.has_frame { self.end } else { Time::MAX };
    }
}

/// What a node knows of the medium.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// Silent; it counts as busy until then by reservation.
    Counting { reserved_until: Time },
    /// Busy; sensed from then on.
    Frozen { sensed: Time },
}

impl Timers {
    /// Timers of nodes that have been silent for long, one each; of stations with AIFSNs that differ.
    pub(super) fn new(
        slot: Span,
        cells: &Cells,
        contenders: Vec<(ContentionWindow, ChaCha8Rng)>,
        mut more_slots: Vec<i8>,
    ) -> Self {
        let nodes = contenders.len();
        more_slots.resize(nodes, 0);
        let (limits, streams): (Vec<_>, Vec<_>) = contenders.into_iter().unzip();
        let timer = |(node, (limits, more_slots)): (usize, (ContentionWindow, i8))| Timer {
            node,
            limits,
            more_slots,
            window: limits.min,
            slots: 0,
            ready: Time::ZERO,
            end: Time::ZERO,
            has_frame: false,
            without_backoff: false,
            due: Time::MAX,
        };
        Self {
            slot,
            timers: limits.into_iter().zip(more_slots).enumerate().map(timer).collect(),
            streams,
            more: vec![Vec::new(); nodes],
            silences: vec![Silence::Counting { reserved_until: Time::ZERO }; nodes],
            backlogged: vec![0; nodes],
            cells: cells.cell_of_nodes().collect(),
            waiting: vec![0; cells.access_points + 1],
            next: Time::MAX,
        }
    }

    /// Adds a timer to a node. Returns its number.
    pub(in crate::wifi) fn add(
        &mut self,
        limits: ContentionWindow,
        more_slots: i8,
        stream: ChaCha8Rng,
        node: usize,
    ) -> usize {
        let like = &self.timers[node];
        let ready = later(like.ready, more_slots - like.more_slots, self.slot);
        let new = Timer {
            limits,
            more_slots,
            window: limits.min,
            slots: 0,
            ready,
            end: ready,
            has_frame: false,
            without_backoff: false,
            due: Time::MAX,
            node,
        };
        self.timers.push(new);
        self.streams.push(stream);
        self.more[node].push(self.timers.len() - 1);
        self.timers.len() - 1
    }

    /// The start of the next transmission.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Whether any node of the cell has a frame, or of all (the number behind the cells').
    pub(super) fn waits(&self, of: usize) -> bool {
        self.waiting[of] > 0
    }

    /// The station, which does not contend, is of this cell from now on.
    pub(super) fn move_station(&mut self, station: usize, cell: u16) {
        debug_assert_eq!(self.backlogged[station], 0, "a station that is away does not contend");
        self.cells[station] = cell.into();
    }

    /// The first node with a sender that is due at `now`, and these senders.
    pub(super) fn take_due(&mut self, now: Time, due: &mut Vec<usize>) -> usize {
        let first = self.timers.iter().find(|timer| timer.due == now).expect("a sender is due");
        let node = first.node;
        let all = [node].into_iter().chain(self.more[node].iter().copied());
        due.extend(all.filter(|&sender| self.timers[sender].due == now));
        for &sender in due.iter() {
            let timer = &mut self.timers[sender];
            (timer.slots, timer.due) = (0, Time::MAX);
        }
        node
    }

    /// The sender has frames from now on. `rejoins`: its node is to acknowledge, and may see the medium as idle.
    pub(in crate::wifi) fn on_frame(&mut self, now: Time, sender: usize, rejoins: bool) {
        let timer = &mut self.timers[sender];
        let node = timer.node;
        timer.has_frame = true;
        let has_ended = timer.slots == 0;
        self.backlogged[node] += 1;
        if self.backlogged[node] == 1 {
            [self.cells[node], self.waiting.len() - 1].into_iter().for_each(|of| self.waiting[of] += 1);
        }
        match self.silences[node] {
            Silence::Counting { reserved_until } => {
                if timer.end > now && has_ended {
                    if now < reserved_until {
                        self.draw(sender);
                        let timer = &mut self.timers[sender];
                        timer.end = timer.ready + self.slot * u64::from(timer.slots);
                    } else {
                        timer.without_backoff = true;
                    }
                }
                let timer = &mut self.timers[sender];
                timer.due = timer.end.max(now);
                self.next = self.next.min(timer.due);
            }
            // Too late to sense the transmission: one more frame that collides.
            Silence::Frozen { sensed } if has_ended && timer.end < sensed && now < sensed => {
                timer.due = timer.end.max(now);
                self.next = self.next.min(timer.due);
            }
            Silence::Frozen { .. } if has_ended && rejoins => timer.without_backoff = true,
            Silence::Frozen { .. } if has_ended => self.draw(sender),
            Silence::Frozen { .. } => {}
        }
    }

    /// The sender, which has sent, has no more frames.
    pub(in crate::wifi) fn on_empty(&mut self, sender: usize) {
        let timer = &mut self.timers[sender];
        timer.has_frame = false;
        let node = timer.node;
        self.backlogged[node] -= 1;
        if self.backlogged[node] == 0 {
            [self.cells[node], self.waiting.len() - 1].into_iter().for_each(|of| self.waiting[of] -= 1);
        }
    }

    /// Whether the sender contends.
    pub(in crate::wifi) fn has_frame(&self, sender: usize) -> bool {
        self.timers[sender].has_frame
    }

    /// The sender, which has no part in an exchange, may not send its frames any more. Its timer stays as without frames.
    pub(in crate::wifi) fn withdraw(&mut self, sender: usize) {
        self.on_empty(sender);
        let timer = &mut self.timers[sender];
        (timer.without_backoff, timer.due) = (false, Time::MAX);
        self.find_next();
    }

    /// The node, so far silent, senses a transmission from `sensed` on. Who begins before that sends nevertheless.
    #[inline(always)]
    pub(super) fn freeze(&mut self, node: usize, sensed: Time) {
        if let Silence::Frozen { .. } = self.silences[node] {
            return;
        }
        self.silences[node] = Silence::Frozen { sensed };
        self.freeze_timer(node, sensed);
        if self.timers.len() > self.silences.len() {
            for place in 0..self.more[node].len() {
                self.freeze_timer(self.more[node][place], sensed);
            }
        }
    }

    #[inline(always)]
    fn freeze_timer(&mut self, sender: usize, sensed: Time) {
        let timer = &mut self.timers[sender];
        if timer.end < sensed {
            timer.slots = 0;
            return;
        }
        timer.due = Time::MAX;
        if timer.ready < sensed {
            timer.slots -= slots_before(sensed, timer.ready, self.slot) as u32;
        } else if timer.without_backoff {
            self.draw(sender);
        }
        self.timers[sender].without_backoff = false;
    }

    /// The node sends, or takes part in an exchange: none of its timers goes on.
    pub(in crate::wifi) fn stop(&mut self, node: usize, now: Time) {
        self.freeze(node, now + Span::from_nanos(1));
        self.silences[node] = Silence::Frozen { sensed: now };
        self.timers[node].due = Time::MAX;
        for &sender in &self.more[node] {
            self.timers[sender].due = Time::MAX;
        }
    }

    /// The node is silent again. Its common inter-frame space ends at `ready`; the medium is reserved until then, or not.
    #[inline(always)]
    pub(super) fn resume(&mut self, node: usize, ready: Time, reserved_until: Time) {
        self.silences[node] = Silence::Counting { reserved_until };
        self.timers[node].resume(ready, self.slot);
        if self.timers.len() > self.silences.len() {
            for &sender in &self.more[node] {
                self.timers[sender].resume(ready, self.slot);
            }
        }
    }

    /// Finds the next transmission again; call it after each event.
    pub(in crate::wifi) fn find_next(&mut self) {
        self.next = self.timers.iter().map(|timer| timer.due).min().unwrap_or(Time::MAX);
    }

    /// As in `backoff`.
    pub(in crate::wifi) fn on_done(&mut self, sender: usize) {
        self.on_answered(sender);
        self.draw(sender);
    }

    /// As in `backoff`.
    pub(in crate::wifi) fn on_answered(&mut self, sender: usize) {
        let timer = &mut self.timers[sender];
        timer.window = timer.limits.min;
    }

    /// As in `backoff`.
    pub(in crate::wifi) fn on_failure(&mut self, sender: usize) {
        let timer = &mut self.timers[sender];
        timer.window = (2 * timer.window + 1).min(timer.limits.max);
        self.draw(sender);
    }

    #[inline(never)]
    fn draw(&mut self, sender: usize) {
        let timer = &mut self.timers[sender];
        timer.slots = self.streams[sender].next_u32() & timer.window;
    }
}
