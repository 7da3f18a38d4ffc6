//! The frame exchange, when each node hears for itself: points 3 to 5 of [`super`].

use super::{Kind, Part, PerNode, Signal};
use crate::packet::{Outcome, Packet};
use crate::random::happens;
use crate::statistics::{AirTime, Statistics};
use crate::watch::AirFate;
use crate::wifi::air_use::AirUse;
use crate::wifi::direction::Link;
use crate::wifi::medium::{Medium, Transmission, go_on};
use lasthop_units::{Bytes, Span, Time};
use std::cmp::Reverse;

impl PerNode {
    pub(in crate::wifi::medium) fn air_use(&self) -> AirUse {
        self.air.all(&self.access)
    }

    pub(in crate::wifi::medium) fn air(&self, now: Time) -> AirTime {
        self.air.until(now, &self.access)
    }

    pub(in crate::wifi::medium) fn report(&self, now: Time, statistics: &mut Statistics) {
        statistics.collisions = self.air.collisions();
        statistics.cells = self.air.report(now, &self.access);
    }

    pub(in crate::wifi::medium) fn reset_statistics(&mut self, now: Time) {
        self.air.reset(now);
    }

    /// What was lost at its receiver counts as a collision, unless one that overlapped it does.
    fn count_collision(&mut self, signal: &Signal) {
        let Some(to) = signal.to else { return self.air.collide(signal) };
        let node = &mut self.nodes[to];
        let is_new = signal.start >= node.collided_until;
        node.collided_until = node.collided_until.max(signal.end);
        if is_new {
            self.air.collide(signal);
        }
    }

    /// The exchange around this transmission is over. `error`: in vain, for noise or a reservation.
    fn close(&mut self, now: Time, signal: &Signal, is_error: bool) {
        let length = signal.end - signal.start;
        self.air.close(now, signal, &self.access, is_error.then_some(length));
    }

    /// The node's exchange goes on after SIFS, with a frame that is new on the air or not.
    fn go_on(&mut self, at: Time, frame: Transmission, is_new: bool) {
        self.nodes[frame.node].frame = Some(frame);
        self.set(frame.node, Part::Continuing { is_new }, at);
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
        let per_node = by_node(&mut self.per_node);
        let node = per_node.schedule.first();
        if per_node.schedule.first_at() > now {
            self.on_due(now);
        } else {
            match per_node.nodes[node].part {
                Part::Sending(place) => self.on_sent(now, place, arrived, outcome),
                Part::Responding(frame) => self.respond(now, node, frame),
                Part::Continuing { is_new } => {
                    let frame = per_node.nodes[node].frame.expect("an exchange goes on");
                    self.send(now, frame, is_new);
                }
                Part::Waiting => self.on_timeout(now, node, outcome),
                Part::Listening => unreachable!("who listens waits for nothing"),
            }
        }
        if self.holds.any() {
            self.heed_holds(now);
        }
        by_node(&mut self.per_node).access.find_next();
    }

    /// Timers of a node have expired: the highest category's sends, the others double their windows.
    fn on_due(&mut self, now: Time) {
        let per_node = by_node(&mut self.per_node);
        let mut due = std::mem::take(&mut per_node.due);
        let node = per_node.access.take_due(now, &mut due);
        per_node.access.stop(node, now);
        let category = |&sender: &usize| (self.senders[sender].category, Reverse(sender));
        let first = due.iter().copied().max_by_key(category).expect("one is due");
        due.drain(..).filter(|&sender| sender != first).for_each(|sender| per_node.access.on_failure(sender));
        per_node.due = due;
        let frame = self.next_transmission(now, first, now);
        self.send(now, frame, true);
    }

    /// Puts a frame on the air. `is_new`: it begins an exchange.
    fn send(&mut self, now: Time, frame: Transmission, is_new: bool) {
        let mode = self.times.mode(frame.mode);
        let reserved = match frame.link {
            None => Span::ZERO,
            // Until the data would be sensed: SIFS, CTS, SIFS, aRxPHYStartDelay and two slots.
            Some(_) if frame.is_rts => mode.cts + mode.rts_unanswered.timeout + self.times.cell.slot,
            Some(_) => frame.response(mode),
        };
        let to = frame.link.map(|link| self.receiver_of(link));
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
        let per_node = by_node(&mut self.per_node);
        per_node.nodes[frame.node].frame = Some(frame);
        per_node.start(now, signal);
    }

    /// Puts the response to this frame on the air.
    fn respond(&mut self, now: Time, node: usize, frame: Transmission) {
        let mode = self.times.mode(frame.mode);
        let end = frame.end + frame.response(mode);
        let reserved = match frame.is_rts {
            true => self.times.cell.sifs + frame.duration + Transmission { is_rts: false, ..frame }.response(mode),
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
        by_node(&mut self.per_node).start(now, signal);
    }

    /// A transmission is over.
    fn on_sent(&mut self, now: Time, place: usize, arrived: &mut Vec<Packet<P>>, outcome: &mut Outcome<'_, P>) {
        let per_node = by_node(&mut self.per_node);
        let frame = per_node.on_air[place].expect("what ends is on the air").frame;
        let eifs = frame.unanswered(self.times.mode(frame.mode)).eifs;
        let bystanders = if self.rules.difs_after_collision { self.times.cell.space } else { eifs };
        let signal = per_node.end(now, place, bystanders);
        if signal.is_lost {
            per_node.count_collision(&signal);
        }
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
                per_node.set(frame.node, Part::Waiting, now + timeout);
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
        let is_free = matches!(per_node.nodes[to].part, Part::Listening);
        if is_free {
            per_node.access.stop(to, now);
            per_node.set(to, Part::Responding(frame), now + sifs);
        }
        is_free
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
