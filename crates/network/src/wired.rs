//! The wired last hop: hosts share one link to an access router, and one link back.
//!
//! Algorithm: upwards, one `server` of the access rate serves the hosts' own queues round robin, one packet each.
//! Downwards, one drop-tail queue feeds a [`Link`] of the same rate. A broadcast goes up like any packet and comes back
//! down once, for all hosts except its sender.
//!
//! Leaves out: Ethernet framing and per-port links; give the rate of IP bytes.

use crate::change::DirectionChange;
use crate::config::{DirectionConfig, HostConfig, LossAt, WiredAccessConfig};
use crate::impairments::Impairments;
use crate::link::{BusyTime, Link, Step};
use crate::packet::{Delivery, Destination, NodeId, Outcome, Packet};
use crate::queue::{AnyQueue, Queue, QueueConfig, ReadAck};
use crate::random::Streams;
use crate::server::{NewPace, Server};
use crate::statistics::QueueId;
use crate::watch::{Log, Tap};
use lasthop_units::{Probability, Rate, Span, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(crate) struct WiredAccess<P> {
    hosts: Vec<AnyQueue<P>>,
    /// By host: whether to report its departures.
    reports: Vec<bool>,
    delay: Span,
    /// Hosts with packets, in round-robin order, without the one in service.
    turns: VecDeque<usize>,
    server: Server,
    /// Whose packet the server sends, while it does.
    served: usize,
    underway: VecDeque<(Time, Packet<P>)>,
    busy: BusyTime,
    down: Link<P>,
}

impl<P: Clone> WiredAccess<P> {
    /// An idle access. It may [change](WiredAccess::change) only with `changes`.
    pub(crate) fn new(config: &WiredAccessConfig, changes: bool, hosts: &[HostConfig], streams: Streams) -> Self {
        let WiredAccessConfig { rate, delay, queue } = *config;
        let (loss, loss_at, impairments) = (Probability::ZERO, LossAt::AfterQueue, Impairments::NONE);
        let down = DirectionConfig { rate, delay, queue, loss, loss_at, impairments };
        let host = |host: &HostConfig| AnyQueue::new(QueueConfig::fifo(host.queue_packets), streams, "");
        Self {
            hosts: hosts.iter().map(host).collect(),
            reports: vec![false; hosts.len()],
            delay,
            turns: VecDeque::with_capacity(hosts.len()),
            server: Server::new(rate),
            served: 0,
            underway: VecDeque::new(),
            busy: BusyTime::default(),
            down: Link::new(&down, changes, streams, "wired/down"),
        }
    }

    /// Changes both directions; see [`Link::change`].
    pub(crate) fn change(&mut self, now: Time, to: DirectionChange, pace: NewPace) {
        let DirectionChange { delay, held, .. } = to;
        self.server.change(now, pace.clone());
        self.busy.pause(now, held.filter(|_| self.server.has_packet()));
        self.delay = delay.unwrap_or(self.delay);
        self.serve(now);
        self.down.change(now, to, pace);
    }

    /// Tells all losses from now on.
    pub(crate) fn watch(&mut self, log: &Log<P>) {
        for (host, queue) in self.hosts.iter_mut().enumerate() {
            queue.desk_mut().tap = Tap::new(log, QueueId::Host(NodeId(host as u16)));
        }
        self.down.watch(log, QueueId::AccessPoint);
    }

    /// Knows ACKs by this function from now on.
    pub(crate) fn read_acks(&mut self, read: ReadAck<P>) {
        self.down.read_acks(read);
    }

    /// The queue downwards and its transmitter are elsewhere: from now on packets pass these in no time.
    pub(crate) fn pass_down(&mut self) {
        const RATE: Rate = Rate::from_bps(100_000_000_000);
        const PACKETS: usize = 10_000;
        let (rate, delay, queue) = (RATE, self.delay, QueueConfig::fifo(PACKETS));
        let (loss, loss_at, impairments) = (Probability::ZERO, LossAt::AfterQueue, Impairments::NONE);
        let down = DirectionConfig { rate, delay, queue, loss, loss_at, impairments };
        // Nothing is drawn: it loses none.
        self.down = Link::new(&down, false, Streams::new(0), "wired/down");
    }

    pub(crate) fn offer_up(&mut self, now: Time, host: usize, packet: Packet<P>) -> Result<(), Packet<P>> {
        let was_empty = self.hosts[host].is_empty();
        self.hosts[host].push(now, packet)?;
        if was_empty {
            self.turns.push_back(host);
            self.serve(now);
        }
        Ok(())
    }

    pub(crate) fn offer_down(&mut self, now: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        self.down.offer(now, packet).map(drop)
    }

    /// Books the down link's transmissions up to now.
    pub(crate) fn book_down(&mut self, now: Time) {
        self.down.book(now);
    }

    pub(crate) fn next_event(&self) -> Time {
        self.next_up().min(self.down.next_event())
    }

    /// Processes the next event, due at `now`. Returns the packet that has arrived at the access router.
    pub(crate) fn step(&mut self, now: Time, outcome: &mut Outcome<'_, P>) -> Option<Packet<P>> {
        if self.next_up() == now {
            return self.step_up(now, outcome);
        }
        if let Step::Arrived(packet) = self.down.step(now) {
            match packet.to {
                Destination::Node(to) => outcome.deliveries.push(Delivery { at: now, to, packet }),
                Destination::Broadcast => {
                    let receivers = (0..self.hosts.len()).map(|host| NodeId(host as u16));
                    let receivers = receivers.filter(|&to| to != packet.from);
                    outcome.deliveries.extend(receivers.map(|to| Delivery { at: now, to, packet: packet.clone() }));
                }
            }
        }
        None
    }

    pub(crate) fn host_queue(&self, host: usize) -> &AnyQueue<P> {
        &self.hosts[host]
    }

    pub(crate) fn down(&self) -> &Link<P> {
        &self.down
    }

    pub(crate) fn packets_inside(&self) -> usize {
        let queued: usize = self.hosts.iter().map(Queue::len).sum();
        queued + self.underway.len() + self.down.packets_inside()
    }

    pub(crate) fn report_departures(&mut self, host: usize) {
        self.reports[host] = true;
    }

    /// The busy time of the busier direction.
    pub(crate) fn busy_time(&self, now: Time) -> Span {
        self.busy.until(now).max(self.down.busy_time(now))
    }

    pub(crate) fn reset_statistics(&mut self, now: Time) {
        self.hosts.iter_mut().for_each(|queue| queue.reset_statistics(now));
        self.busy.reset(now);
        self.down.reset_statistics(now);
    }

    fn next_up(&self) -> Time {
        let arrival = self.underway.front().map_or(Time::MAX, |(at, _)| *at);
        self.server.done_at().unwrap_or(Time::MAX).min(arrival)
    }

    fn step_up(&mut self, now: Time, outcome: &mut Outcome<'_, P>) -> Option<Packet<P>> {
        if self.underway.front().is_some_and(|(at, _)| *at == now) {
            return self.underway.pop_front().map(|(_, packet)| packet);
        }
        self.server.finish();
        self.busy.stop(now);
        let host = self.served;
        let packet = self.hosts[host].pop(now);
        if self.reports[host] {
            outcome.departed.push(packet.departure());
        }
        // With a decreased delay it would overtake.
        let before = self.underway.back().map_or(Time::ZERO, |(at, _)| *at);
        self.underway.push_back((before.max(now + self.delay), packet));
        if !self.hosts[host].is_empty() {
            self.turns.push_back(host);
        }
        self.serve(now);
        None
    }

    fn serve(&mut self, now: Time) {
        if self.server.is_free()
            && let Some(host) = self.turns.pop_front()
        {
            self.busy.start(now);
            self.served = host;
            self.server.start(now, self.hosts[host].head(now).1.size);
        }
    }
}
