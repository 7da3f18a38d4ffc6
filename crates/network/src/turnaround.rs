//! A host's delay between its MAC and its TCP.
//!
//! A frame's payload passes interrupt moderation, a bus, a driver and the softirq before TCP sees it. The answer passes
//! most of these again. The sum of both ways is one delay here, in front of the host. It is drawn uniformly for each
//! packet, and packets of one host keep their order. A host without a turnaround gets its packets at the end of the
//! frame.
//!
//! Why it matters: an answer that reaches its MAC within the inter-frame space is sent without backoff (802.11-2020
//! §10.3.4.2). A later one contends as usual (docs/results/validation.md).
//!
//! Leaves out: batched delivery, as by interrupt moderation and GRO.

use crate::config::HostConfig;
use crate::packet::Delivery;
use crate::random::{Streams, numbers};
use crate::schedule::Schedule;
use lasthop_units::{Span, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// The hosts behind one access.
#[derive(Clone, Debug)]
pub(crate) struct Turnarounds<P> {
    hosts: Vec<Host<P>>,
    /// Each host's next delivery to TCP.
    due: Schedule,
    inside: usize,
    /// The real turnaround of the hosts, to be deducted.
    taken: Span,
}

#[derive(Clone, Debug)]
struct Host<P> {
    shortest: Span,
    longest: Span,
    stream: ChaCha8Rng,
    /// Received by the MAC, with delivery to TCP at `at`.
    underway: VecDeque<Delivery<P>>,
}

impl<P> Turnarounds<P> {
    /// The turnarounds of these hosts; `None` if no host has one.
    pub(crate) fn new(hosts: &[HostConfig], streams: Streams) -> Option<Box<Self>> {
        if hosts.iter().all(|host| host.turnaround.1 == Span::ZERO) {
            return None;
        }
        let host = |(number, host): (u16, &HostConfig)| Host {
            shortest: host.turnaround.0,
            longest: host.turnaround.1,
            stream: streams.stream(&format!("host/turnaround/{number}")),
            underway: VecDeque::new(),
        };
        let due = Schedule::new(hosts.len());
        let hosts = numbers(hosts.iter().map(|host| host.is_idle)).into_iter().zip(hosts).map(host).collect();
        Some(Box::new(Self { hosts, due, inside: 0, taken: Span::ZERO }))
    }

    /// Deducts this real turnaround of the hosts from now on.
    pub(crate) fn hosts_take(&mut self, time: Span) {
        self.taken = time;
    }

    /// The next delivery to a host's TCP; [`Time::MAX`] if there is none.
    pub(crate) fn next_event(&self) -> Time {
        self.due.first_at()
    }

    /// Accepts a packet from a MAC. Returns it if its host takes no time.
    pub(crate) fn take(&mut self, mut delivery: Delivery<P>) -> Option<Delivery<P>> {
        let index = delivery.to.index();
        let host = &mut self.hosts[index];
        if host.longest == Span::ZERO {
            return Some(delivery);
        }
        let before = host.underway.back().map_or(Time::ZERO, |before| before.at);
        delivery.at = before.max(delivery.at + host.draw().saturating_sub(self.taken));
        if host.underway.is_empty() {
            self.due.set(index, delivery.at);
        }
        host.underway.push_back(delivery);
        self.inside += 1;
        None
    }

    /// Delivers the next due packet.
    pub(crate) fn step(&mut self) -> Delivery<P> {
        let index = self.due.first();
        let host = &mut self.hosts[index];
        let delivery = host.underway.pop_front().expect("a host that is due has a packet");
        self.due.set(index, host.underway.front().map_or(Time::MAX, |next| next.at));
        self.inside -= 1;
        delivery
    }

    pub(crate) fn packets_inside(&self) -> usize {
        self.inside
    }
}

impl<P> Host<P> {
    fn draw(&mut self) -> Span {
        let width = (self.longest - self.shortest).as_nanos();
        if width == 0 {
            return self.shortest;
        }
        // Uniform in 0..=width: the high half of a product, off by less than 2^-32.
        let part = (u128::from(self.stream.next_u64()) * (u128::from(width) + 1)) >> 64;
        self.shortest + Span::from_nanos(part as u64)
    }
}
