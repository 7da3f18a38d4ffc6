//! Today's stack on a TUN device: back-pressure from the station's queue to its TCP.
//!
//! A Wi-Fi driver of today takes a few frames at a time, so that packets wait in the queueing discipline, where TCP small
//! queues can count them and keep a sender from piling up more than a few milliseconds' worth (`era = "modern"`). A TUN
//! device gives no such signal: it takes every packet at once and forgets whose it was. So a token bucket stands before
//! the device, and this thread keeps its rate at what the medium really serves the station:
//!
//! ```text
//! every TICK, for each station:  rate = served rate + (TARGET - backlog) * MTU / HORIZON
//!                                rate = 2 * rate                          if the station ran dry
//! ```
//!
//! clamped between LOWEST and twice the rate of the access, or on links of the fastest link at the node. The model's queue for the station then holds about TARGET frames, as a driver would, and
//! the rest waits where the kernel sees it. What this leaves out: a real driver's limit is exact, this one follows with
//! a lag of a few ticks.

use crate::error::{Doing, Result};
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::tun::{INTERFACE, MTU};
use lasthop_units::{Bytes, Rate, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const TICK: Span = Span::from_millis(10);
const HORIZON: Span = Span::from_millis(50);
/// Frames that the station's queue in the model should hold.
const TARGET: f64 = 4.0;
const LOWEST_MBPS: f64 = 0.5;
/// The bucket: two frames may go at once.
const BURST: Bytes = Bytes::new(2 * (MTU as u64 + 14));
/// What the queueing discipline holds; TCP small queues stay far below.
const LIMIT: Bytes = Bytes::new(1000 * (MTU as u64 + 14));
/// A change of the rate below this share is not worth a request to the kernel.
const DEAD_BAND: f64 = 0.05;

/// What the medium tells of one station's queue; written by the medium's loop, read by the shaper.
#[derive(Debug, Default)]
pub(crate) struct Station {
    queues_in_model: bool,
    backlog_packets: AtomicU64,
    served_packets: AtomicU64,
}

impl Station {
    /// A station whose queue is in the model, or in its device.
    pub(crate) fn new(queues_in_model: bool) -> Self {
        Self { queues_in_model, ..Self::default() }
    }

    /// Whether the station's packets wait in the model.
    pub(crate) fn queues_in_model(&self) -> bool {
        self.queues_in_model
    }

    /// The loop's report: how many packets wait, and how many have gone since the start.
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
    /// Puts a token bucket before each device, open up to twice the rate at which the network could take its packets at best,
    /// which is no limit.
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

    /// Follows the medium until `stop` is set.
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
