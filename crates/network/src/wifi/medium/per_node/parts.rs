//! The parts that nodes take in exchanges, whatever is sent: points 2 to 5 of [`super`].

use super::{Kind, Part, PerNode, Signal, Transmission};
use crate::config::WifiRules;
use crate::wifi::airtime::AirTimes;
use lasthop_units::{Bytes, Span, Time};
use std::cmp::Reverse;

/// What happens next.
#[derive(Clone, Copy, Debug)]
pub(in crate::wifi) enum Due {
    /// Timers of a node have expired: [`PerNode::take_due`].
    Timers,
    /// The transmission at this place is over: [`PerNode::take_off`].
    Sent(usize),
    /// A node responds to this transmission.
    Response(usize, Transmission),
    /// A node sends this one, which is new on the air or not.
    Frame(Transmission, bool),
    /// No response to a node's frame has begun.
    Timeout(usize),
}

impl PerNode {
    /// What is due at `now`.
    pub(in crate::wifi) fn due(&self, now: Time) -> Due {
        let node = self.schedule.first();
        if self.schedule.first_at() > now {
            return Due::Timers;
        }
        match self.nodes[node].part {
            Part::Sending(place) => Due::Sent(place),
            Part::Responding(frame) => Due::Response(node, frame),
            Part::Continuing { is_new } => Due::Frame(self.nodes[node].frame.expect("an exchange goes on"), is_new),
            Part::Waiting => Due::Timeout(node),
            Part::Listening => unreachable!("who listens waits for nothing"),
        }
    }

    /// The sender whose timer has expired. Of several of one node it is the one of the highest category; the others double
    /// their windows.
    pub(in crate::wifi) fn take_due<K: Ord>(&mut self, now: Time, category: impl Fn(usize) -> K) -> usize {
        let mut due = std::mem::take(&mut self.due);
        let node = self.access.take_due(now, &mut due);
        self.access.stop(node, now);
        let category = |&sender: &usize| (category(sender), Reverse(sender));
        let first = due.iter().copied().max_by_key(category).expect("one is due");
        due.drain(..).filter(|&sender| sender != first).for_each(|sender| self.access.on_failure(sender));
        self.due = due;
        first
    }

    /// Puts a frame on the air. `to`: its receiver. `is_new`: it begins an exchange.
    pub(in crate::wifi) fn send(
        &mut self,
        now: Time,
        frame: Transmission,
        to: Option<usize>,
        times: &AirTimes,
        is_new: bool,
    ) {
        self.send_frame(now, frame, (to, to.is_some()), times, is_new);
    }

    /// The same of a frame that wants a response or none, whether its receiver hears it or not.
    pub(in crate::wifi) fn send_frame(
        &mut self,
        now: Time,
        frame: Transmission,
        (to, is_answered): (Option<usize>, bool),
        times: &AirTimes,
        is_new: bool,
    ) {
        let mode = times.mode(frame.mode);
        let reserved = match is_answered {
            false => Span::ZERO,
            // Until the data would be sensed: SIFS, CTS, SIFS, aRxPHYStartDelay and two slots.
            true if frame.is_rts => mode.cts + mode.rts_unanswered.timeout + times.cell.slot,
            true => frame.response(mode),
        };
        let signal = Signal {
            node: frame.node,
            to,
            kind: Kind::Frame,
            is_new,
            start: now,
            end: frame.end,
            reserves_until: frame.end + reserved,
            is_lost: false,
            mpdus_from: if frame.is_answered_by_block_ack() {
                frame.end - mode.rate.transmission_time(Bytes::new(frame.content.bytes))
            } else {
                frame.end
            },
            frame,
        };
        self.nodes[frame.node].frame = Some(frame);
        self.start(now, signal);
    }

    /// Puts the response to this frame on the air.
    pub(in crate::wifi) fn respond(&mut self, now: Time, node: usize, frame: Transmission, times: &AirTimes) {
        let mode = times.mode(frame.mode);
        let end = frame.end + frame.response(mode);
        let reserved = match frame.is_rts {
            true => times.cell.sifs + frame.duration + Transmission { is_rts: false, ..frame }.response(mode),
            false => Span::ZERO,
        };
        let signal = Signal {
            node,
            to: Some(frame.node),
            kind: Kind::Response,
            is_new: false,
            start: now,
            end,
            reserves_until: end + reserved,
            is_lost: false,
            mpdus_from: end,
            frame,
        };
        self.start(now, signal);
    }

    /// The transmission at this place is over. Returns it, and EIFS after it.
    pub(in crate::wifi) fn take_off(
        &mut self,
        now: Time,
        place: usize,
        times: &AirTimes,
        rules: WifiRules,
    ) -> (Signal, Span) {
        let frame = self.on_air[place].expect("what ends is on the air").frame;
        let eifs = frame.unanswered(times.mode(frame.mode)).eifs;
        let signal = self.end(now, place, if rules.difs_after_collision { times.cell.space } else { eifs });
        if signal.is_lost {
            self.count_collision(&signal);
        }
        (signal, eifs)
    }

    /// When others disturb the A-MPDU that was at this place, at its receiver.
    pub(in crate::wifi) fn take_disturbed(&mut self, place: usize) -> Vec<(Time, Time)> {
        std::mem::take(&mut self.disturbed[place])
    }

    /// The node has received this frame, and answers it after SIFS, unless it has another part. Returns whether it does.
    pub(in crate::wifi) fn answer(&mut self, now: Time, node: usize, frame: Transmission, sifs: Span) -> bool {
        let is_free = matches!(self.nodes[node].part, Part::Listening);
        if is_free {
            self.access.stop(node, now);
            self.set(node, Part::Responding(frame), now + sifs);
        }
        is_free
    }

    /// The node waits for a response until then.
    pub(in crate::wifi) fn wait(&mut self, node: usize, until: Time) {
        self.set(node, Part::Waiting, until);
    }

    /// The node's exchange goes on after SIFS, with a frame that is new on the air or not.
    pub(in crate::wifi) fn go_on(&mut self, at: Time, frame: Transmission, is_new: bool) {
        self.nodes[frame.node].frame = Some(frame);
        self.set(frame.node, Part::Continuing { is_new }, at);
    }

    /// The exchange around this transmission is over. `is_error`: in vain, for noise or a reservation.
    pub(in crate::wifi) fn close(&mut self, now: Time, signal: &Signal, is_error: bool) {
        let length = signal.end - signal.start;
        self.air.close(now, signal, &self.access, is_error.then_some(length));
    }

    /// What was lost at its receiver counts as a collision, unless one that overlapped it does.
    pub(in crate::wifi) fn count_collision(&mut self, signal: &Signal) {
        let Some(to) = signal.to else { return self.air.collide(signal) };
        let node = &mut self.nodes[to];
        let is_new = signal.start >= node.collided_until;
        node.collided_until = node.collided_until.max(signal.end);
        if is_new {
            self.air.collide(signal);
        }
    }

    /// Whether a node is reserved for others.
    pub(in crate::wifi) fn is_reserved(&self, now: Time, node: usize) -> bool {
        self.nodes[node].reserved_until > now
    }

    /// Who has received the last transmission that was to all. The list is lent: give it back.
    pub(in crate::wifi) const fn decoded(&mut self) -> &mut Vec<usize> {
        &mut self.decoded
    }

    /// The exchange that the node has begun.
    pub(in crate::wifi) fn exchange(&self, node: usize) -> Transmission {
        self.nodes[node].frame.expect("who waits has begun an exchange")
    }
}
