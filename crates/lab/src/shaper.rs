//! A modern stack on a TUN device: back-pressure from the station's queue to its TCP.
//!
//! For networks that send packet by packet; aggregates need the [valves](crate::valve).
//!
//! A modern Wi-Fi driver takes only a few frames at a time, so packets wait in the queueing discipline. There TCP small
//! queues count them and limit a sender to a few milliseconds of data (`era = "modern"`). A TUN device has no such
//! back-pressure: it takes every packet at once and forgets its socket. This module therefore puts a token bucket
//! before the device. Its thread sets the bucket's rate to the station's actual service rate:
//!
//! ```text
//! every TICK, for each station:  rate = served rate + (TARGET - backlog) * MTU / HORIZON
//!                                rate = 2 * rate                          if the station ran dry
//! ```
//!
//! The rate stays between LOWEST and twice the access rate, or on links twice the rate of the node's fastest link. The
//! station's queue in the model then holds about TARGET frames, as a driver would. The other packets wait in the
//! kernel.
//!
//! *What it leaves out*: a real driver's limit is exact; this one lags by a few ticks.

use crate::error::{Doing, Result};
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::tun::{INTERFACE, MTU};
use lasthop_units::{Bytes, Rate, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const TICK: Span = Span::from_millis(10);
const HORIZON: Span = Span::from_millis(50);
/// The target length of the station's queue in the model, in frames.
const TARGET: f64 = 4.0;
const LOWEST_MBPS: f64 = 0.5;
/// The bucket: two frames may leave at once.
const BURST: Bytes = Bytes::new(2 * (MTU as u64 + 14));
/// The capacity of the queueing discipline. TCP small queues stay far below it.
const LIMIT: Bytes = Bytes::new(1000 * (MTU as u64 + 14));
/// The smallest relative rate change that justifies a request to the kernel.
const DEAD_BAND: f64 = 0.05;

/// The state of one station's queue. The medium's loop writes it and the shaper reads it.
#[derive(Debug, Default)]
pub(crate) struct Station {
    queues_in_model: bool,
    backlog_packets: AtomicU64,
    served_packets: AtomicU64,
    queued_bytes: AtomicU64,
    passed_bytes: AtomicU64,
    permitted_bytes: AtomicU64,
}

impl Station {
    /// A station with its queue in the model, or else in its device.
    pub(crate) fn new(queues_in_model: bool) -> Self {
        Self { queues_in_model, ..Self::default() }
    }

    /// Whether the station's packets wait in the model.
    pub(crate) fn queues_in_model(&self) -> bool {
        self.queues_in_model
    }

    /// Called by the traffic: what small queues permit its senders to have queued.
    pub(crate) fn permit(&self, bytes: Bytes) {
        self.permitted_bytes.store(bytes.get(), Ordering::Relaxed);
    }

    /// What small queues permit, in bytes.
    pub(crate) fn permitted(&self) -> u64 {
        self.permitted_bytes.load(Ordering::Relaxed)
    }

    /// Called by the loop: the bytes waiting, and those taken from the device since the start.
    pub(crate) fn report_bytes(&self, queued: u64, passed: u64) {
        self.queued_bytes.store(queued, Ordering::Relaxed);
        self.passed_bytes.store(passed, Ordering::Relaxed);
    }

    /// The bytes waiting, and those taken from the device.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.queued_bytes.load(Ordering::Relaxed), self.passed_bytes.load(Ordering::Relaxed))
    }

    /// Called by the loop: the packets waiting, and the packets served since the start.
    pub(crate) fn report(&self, backlog: u64, served: u64) {
        self.backlog_packets.store(backlog, Ordering::Relaxed);
        self.served_packets.store(served, Ordering::Relaxed);
    }
}

/// One station's token bucket.
struct Bucket<'a> {
    station: &'a Station,
    netlink: Netlink,
    interface_index: u32,
    served_before: u64,
    served_mbps: f64,
    set_mbps: f64,
    highest_mbps: f64,
}

/// The token buckets of all stations of `era = "modern"`.
pub(crate) struct Shaper<'a> {
    buckets: Vec<Bucket<'a>>,
}

impl<'a> Shaper<'a> {
    /// Puts a token bucket before each device. Its initial rate is twice the network's maximum, which is no limit.
    ///
    /// # Errors
    /// If the kernel has no tbf.
    pub(crate) fn new(stations: impl IntoIterator<Item = (&'a Namespace, &'a Station, Rate)>) -> Result<Self> {
        let bucket = |(namespace, station, rate): (&'a Namespace, &'a Station, Rate)| {
            let highest_mbps = 2.0 * rate.as_mbps();
            let (mut netlink, interface_index) = namespace.run(|| {
                let index = nix::net::if_::if_nametoindex(INTERFACE).doing("a host has lost its TUN device")?;
                Ok((Netlink::open()?, index))
            })?;
            netlink.shape(interface_index, Rate::from_mbps(highest_mbps), BURST, LIMIT)?;
            let (served_before, served_mbps, set_mbps) = (0, 0.0, highest_mbps);
            Ok(Bucket { station, netlink, interface_index, served_before, served_mbps, set_mbps, highest_mbps })
        };
        Ok(Self { buckets: stations.into_iter().map(bucket).collect::<Result<_>>()? })
    }

    /// Adjusts the rates until `stop` is set.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(std::time::Duration::from_nanos(TICK.as_nanos()));
            for bucket in &mut self.buckets {
                bucket.follow()?;
            }
        }
        Ok(())
    }
}

impl Bucket<'_> {
    fn follow(&mut self) -> Result<()> {
        const FRAME_MBIT: f64 = MTU as f64 * 8.0 / 1e6;
        /// Weight of one tick's service in its moving average.
        const WEIGHT: f64 = 0.2;

        let served = self.station.served_packets.load(Ordering::Relaxed);
        let backlog = self.station.backlog_packets.load(Ordering::Relaxed) as f64;
        let served_now = (served - self.served_before) as f64 * FRAME_MBIT / TICK.as_secs_f64();
        self.served_before = served;
        self.served_mbps += WEIGHT * (served_now - self.served_mbps);
        let follow = self.served_mbps + (TARGET - backlog) * FRAME_MBIT / HORIZON.as_secs_f64();
        let rate = if backlog == 0.0 { follow.max(2.0 * self.set_mbps) } else { follow };
        let rate = rate.clamp(LOWEST_MBPS, self.highest_mbps);
        if (rate - self.set_mbps).abs() > DEAD_BAND * self.set_mbps {
            self.netlink.shape(self.interface_index, Rate::from_mbps(rate), BURST, LIMIT)?;
            self.set_mbps = rate;
        }
        Ok(())
    }
}
