//! The frame exchange, when each node hears for itself: points 3 to 5 of [`super`].

use super::{Due, Kind, Part, PerNode, Signal};
use crate::packet::{Outcome, Packet};
use crate::random::happens;
use crate::statistics::{AirTime, Statistics};
use crate::watch::AirFate;
use crate::wifi::air_use::AirUse;
use crate::wifi::direction::Link;
use crate::wifi::medium::{Medium, Transmission, go_on};
use lasthop_units::{Bytes, Span, Time};

impl PerNode {
    pub(in crate::wifi) fn air_use(&self) -> AirUse {
        self.air.all(&self.access)
    }

    pub(in crate::wifi) fn air(&self, now: Time) -> AirTime {
        self.air.until(now, &self.access)
    }

    pub(in crate::wifi::medium) fn report(&self, now: Time, statistics: &mut Statistics) {
        statistics.collisions = self.collisions();
        statistics.cells = self.air.report(now, &self.access);
    }

    pub(in crate::wifi) fn collisions(&self) -> u64 {
        self.air.collisions()
    }

    pub(in crate::wifi::medium) fn reset_statistics(&mut self, now: Time) {
        self.air.reset(now);
    }
}

impl<P: Clone> Medium<P> {
    pub(in crate::wifi::medium) fn next_by_node(&self) -> Time {
        self.per_node.as_ref().map_or(Time::MAX, |per_node| per_node.next())
    }

    /// The sender has something to send from now on.
    pub(in crate::wifi::medium) fn contend_by_node(&mut self, now: Time, sender: usize) {
        let node = self.senders[sender].node;
        let per_node = by_node(&mut self.per_node);
        per_node.air.book(now, node, &per_node.access);
        let responds = matches!(per_node.nodes[node].part, Part::Responding(_));
        per_node.access.on_frame(now, sender, responds && self.rules.idle_before_acknowledgement);
    }

    /// The sender's last exchange is over.
    pub(in crate::wifi::medium) fn finish_by_node(&mut self, sender: usize) {
        let goes_on = self.can_send(sender);
        let access = &mut by_node(&mut self.per_node).access;
        access.on_done(sender);
        if !goes_on {
            access.on_empty(sender);
        }
    }

    /// Processes the next event.
    pub(in crate::wifi::medium) fn step_by_node(
        &mut self,
        now: Time,
        arrived: &mut Vec<Packet<P>>,
        outcome: &mut Outcome<'_, P>,
    ) {
        match by_node(&mut self.per_node).due(now) {
            Due::Timers => self.on_due(now),
            Due::Sent(place) => self.on_sent(now, place, arrived, outcome),
            Due::Response(node, frame) => by_node(&mut self.per_node).respond(now, node, frame, &self.times),
            Due::Frame(frame, is_new) => self.send(now, frame, is_new),
            Due::Timeout(node) => self.on_timeout(now, node, outcome),
        }
        if self.holds.any() {
            self.heed_holds(now);
        }
        by_node(&mut self.per_node).access.find_next();
    }

    /// Timers of a node have expired: the highest category's sends, the others double their windows.
    fn on_due(&mut self, now: Time) {
        let first = by_node(&mut self.per_node).take_due(now, |sender| self.senders[sender].category);
        let frame = self.next_transmission(now, first, now);
        self.send(now, frame, true);
    }

    /// Puts a frame on the air. `is_new`: it begins an exchange.
    fn send(&mut self, now: Time, frame: Transmission, is_new: bool) {
        let to = frame.link.map(|link| self.receiver_of(link));
        by_node(&mut self.per_node).send(now, frame, to, &self.times, is_new);
    }

    /// A transmission is over.
    fn on_sent(&mut self, now: Time, place: usize, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let per_node = by_node(&mut self.per_node);
        let (signal, eifs) = per_node.take_off(now, place, &self.times, self.rules);
        let frame = signal.frame;
        match (signal.kind, frame.link) {
            (Kind::Response, Some(link)) => self.on_response_sent(now, &signal, link, eifs, outcome),
            (Kind::Frame, Some(link)) => {
                let disturbed = std::mem::take(&mut per_node.disturbed[place]);
                let is_answered = self.on_frame_sent(now, (&signal, &disturbed), link, eifs, arrived, outcome);
                let timeout = frame.unanswered(self.times.mode(frame.mode)).timeout;
                let per_node = by_node(&mut self.per_node);
                if !is_answered {
                    per_node.close(now, &signal, !signal.is_lost);
                }
                per_node.wait(frame.node, now + timeout);
            }
            (_, None) => self.on_broadcast_sent(now, &signal, eifs, outcome),
        }
    }

    /// A frame to one receiver is over. Returns whether it is answered.
    fn on_frame_sent(
        &mut self,
        now: Time,
        (signal, disturbed): (&Signal, &[(Time, Time)]),
        link: Link,
        eifs: Span,
        arrived: &mut Vec<Packet<P>>,
        outcome: &mut Outcome<'_, P>,
    ) -> bool {
        let frame = signal.frame;
        let to = self.receiver_of(link);
        if signal.is_lost {
            self.directions[link.station][link.way].counts.collided += u64::from(frame.content.frames > 0);
            self.tell_aired(now, &frame, AirFate::Collided);
            return false;
        }
        let is_received = if frame.is_rts {
            let loss = self.noises[link.station].control(frame.mode).rts;
            let is_received = !happens(loss, &mut self.error_streams[frame.node]);
            let is_free = by_node(&mut self.per_node).nodes[to].reserved_until <= now;
            if !is_received || !is_free {
                self.tell_aired(now, &frame, AirFate::Error);
            }
            if is_received && !is_free {
                return false;
            }
            is_received
        } else {
            let mode = *self.times.mode(frame.mode);
            let (mut offset, mut first) = (0, 0);
            let is_disturbed = |bytes: u64| {
                let at = |offset| signal.mpdus_from + mode.rate.transmission_time(Bytes::new(offset));
                first = offset;
                offset = mode.next_start(first, first + bytes);
                disturbed.iter().any(|&(from, until)| from < at(first + bytes) && at(first) < until)
            };
            let is_received = self.receive(&frame, link, now, is_disturbed, &mut go_on(now, link, arrived, outcome));
            self.tell_aired(
                now,
                &frame,
                match (is_received, disturbed) {
                    (true, _) => AirFate::Received,
                    (false, []) => AirFate::Error,
                    (false, _) => AirFate::Collided,
                },
            );
            if is_received {
                self.watch_deadline(now, link);
            }
            is_received
        };
        let sifs = self.times.cell.sifs;
        let per_node = by_node(&mut self.per_node);
        if !is_received {
            per_node.fall_silent(now, to, eifs);
            return false;
        }
        per_node.answer(now, to, frame, sifs)
    }

    fn on_response_sent(&mut self, now: Time, signal: &Signal, link: Link, eifs: Span, outcome: &mut Outcome<'_, P>) {
        let frame = signal.frame;
        let (space, sifs) = (self.times.cell.space, self.times.cell.sifs);
        let losses = self.noises[link.station].control(frame.mode);
        let loss = if frame.is_answered_by_block_ack() { losses.block_ack } else { losses.acknowledgement };
        let is_received = !signal.is_lost && !happens(loss, &mut self.error_streams[signal.node]);
        by_node(&mut self.per_node).listen(now, signal.node, space);
        if !is_received {
            if frame.is_rts {
                self.tell_aired(now, &frame, AirFate::Error);
            }
            by_node(&mut self.per_node).close(now, signal, !signal.is_lost);
            self.fail(now, &frame, outcome);
            by_node(&mut self.per_node).listen(now, frame.node, eifs);
        } else if frame.is_rts {
            let start = now + sifs;
            let end = start + frame.duration;
            self.to_all += frame.content.share_to_all(end - frame.end);
            let per_node = by_node(&mut self.per_node);
            per_node.access.stop(frame.node, now);
            per_node.go_on(start, Transmission { is_rts: false, end, ..frame }, false);
        } else {
            by_node(&mut self.per_node).close(now, signal, false);
            self.to_all += frame.content.share_to_all(now - frame.end);
            self.settle(now, &frame, link, true, outcome);
            if frame.txop_end > now
                && let Some(next) = self.next_in_txop(now, frame)
            {
                let per_node = by_node(&mut self.per_node);
                per_node.access.on_answered(frame.sender);
                per_node.go_on(now + sifs, next, true);
            } else {
                self.finish(frame.sender);
                by_node(&mut self.per_node).listen(now, frame.node, space);
            }
        }
    }

    fn on_broadcast_sent(&mut self, now: Time, signal: &Signal, eifs: Span, outcome: &mut Outcome<'_, P>) {
        let frame = signal.frame;
        let decoded = std::mem::take(&mut by_node(&mut self.per_node).decoded);
        let is_of_cell = |&node: &usize| self.access_points.get(node) == Some(&frame.node) && !self.is_away(node);
        // Where all have roamed away nobody misses it.
        let is_heard = decoded.iter().any(is_of_cell) || !(0..self.directions.len()).any(|node| is_of_cell(&node));
        if !is_heard {
            by_node(&mut self.per_node).count_collision(signal);
        }
        by_node(&mut self.per_node).close(now, signal, false);
        self.tell_aired(now, &frame, if is_heard { AirFate::Received } else { AirFate::Collided });
        let mut missed = Vec::new();
        self.deliver_broadcast(now, &frame, |station| decoded.contains(&station), |one| missed.push(one), outcome);
        let per_node = by_node(&mut self.per_node);
        missed.into_iter().for_each(|station| per_node.fall_silent(now, station, eifs));
        per_node.listen(now, frame.node, self.times.cell.space);
        per_node.decoded = decoded;
    }

    /// No response has begun: the exchange has failed.
    fn on_timeout(&mut self, now: Time, node: usize, outcome: &mut Outcome<'_, P>) {
        let per_node = by_node(&mut self.per_node);
        per_node.air.book(now, node, &per_node.access);
        let frame = per_node.nodes[node].frame.expect("who waits has begun an exchange");
        self.fail(now, &frame, outcome);
        by_node(&mut self.per_node).listen(now, node, self.times.cell.space);
    }
}

/// The nodes of a medium that has them.
pub(in crate::wifi::medium) fn by_node(per_node: &mut Option<Box<PerNode>>) -> &mut PerNode {
    per_node.as_mut().expect("a medium by node has its nodes")
}
