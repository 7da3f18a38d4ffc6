//! A congestion control, and what it is told, counted.

use crate::Law;
use crate::law::Lawful;
use crate::steered::{Gate, Steered};
use lasthop_laws::Choice;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// What a connection does not tell itself, in bytes of UDP payload, and the pace.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acked: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    /// In packets: [`crate::Info::delivered_ce`].
    pub(crate) marked: AtomicU64,
    pub(crate) gate: Gate,
}

/// Makes controllers that count.
#[derive(Debug)]
pub(crate) struct Factory {
    pub(crate) law: Law,
    pub(crate) seed: u32,
    pub(crate) counts: Arc<Counts>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let law = match self.law {
            Law::Cubic => Arc::new(CubicConfig::default()).build(now, mtu),
            Law::NewReno => Arc::new(NewRenoConfig::default()).build(now, mtu),
            Law::Ours(law) if law.name.steers() => {
                Box::new(Steered::new(Choice { seed: self.seed, ..law }, now, mtu, self.counts.clone()))
            }
            Law::Ours(law) => Box::new(Lawful::new(Choice { seed: self.seed, ..law }, now, mtu, self.counts.clone())),
        };
        Box::new(Counted { law, counts: self.counts.clone() })
    }
}

struct Counted {
    law: Box<dyn Controller>,
    counts: Arc<Counts>,
}

impl Controller for Counted {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.counts.in_flight.fetch_add(bytes, Relaxed);
        self.law.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.counts.acked.fetch_add(bytes, Relaxed);
        self.law.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_acked: Option<u64>) {
        self.counts.in_flight.store(in_flight, Relaxed);
        self.law.on_end_acks(now, in_flight, app_limited, largest_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.law.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.law.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.law.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.law.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { law: self.law.clone_box(), counts: self.counts.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.law.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
