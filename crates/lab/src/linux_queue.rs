//! The downlink queue of a wired access point as Linux's own: a queueing discipline of this kernel, in front of a device that sends at
//! the access's rate.
//!
//! ```text
//!   TCP :server - TUN --[ path, in the model ]-- TUN - router: tbf at the rate, and in it codel, pie, ... - TUN -- TUN - TCP :host
//! ```
//!
//! - The router is a namespace with one TUN device, in which packets come and by which they go on: routed, so that they pass its queue.
//! - A token bucket (tc-tbf(8)) looks at the next packet when the last one has gone, and sends it size / rate later, as the model's
//!   transmitter does. After idle time its first packet goes at once. CAKE has a shaper of its own.
//! - The delay of the access is before the queue instead of behind it, which shifts all by the same time.
//! - What the device sees are IP packets, without the 14 bytes of a frame that the model's disciplines count: quanta and
//!   limits in bytes are less by that.
//! - Length and drops are what the kernel says of the queue, whenever a packet has joined or left; marks are seen in the packets.
//!
//! *Leaves out*: `[[changes]]`, ACK filters, CAKE's limit in packets (Linux has one in memory). Broadcasts pass by.

use crate::addresses::AddressPlan;
use crate::error::{Doing, Error, Result};
use crate::hosts::router_device;
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::tun::{INTERFACE, MTU, Tun};
use lasthop_network::{
    AccessConfig, CakeConfig, CodelConfig, Discipline, FqCodelConfig, LengthOverTime, QueueConfig, QueueId,
    QueueStatistics, Topology, WiredAccessConfig,
};
use lasthop_scenario::Scenario;
use lasthop_units::{Bytes, Ecn, Rate, Span, Time};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcOption};
use nix::net::if_::if_nametoindex;

/// A frame has this much more than its IP packet.
const HEADER_BYTES: u64 = 14;
/// Timers may be late by this, and the token bucket sends no less.
const LATE: Span = Span::from_micros(200);
/// A token bucket's rate is a number of bytes a second of 32 bits.
const MOST_MBPS: u64 = u32::MAX as u64 * 8 / 1_000_000;
/// Of more packets RED's thresholds are too large for its arithmetic in 32 bits (red_check_params() of linux/include/net/red.h).
const MOST_OF_RED: usize = 5592;

/// Whether the downlink queue of this scenario can be Linux's own.
///
/// # Errors
/// The first key that stands against it, with its place and what is accepted.
pub fn check_linux_queue(scenario: &Scenario) -> Result<()> {
    check_keys(scenario).map_err(|error| error.located(scenario))
}

fn check_keys(scenario: &Scenario) -> Result<()> {
    let json = scenario.to_json();
    let refuse = |key: &str, value: &str, accepted: &str| {
        let reason = format!("--queue linux cannot have {value} (accepted: {accepted}); --queue model can");
        Err(Error::Scenario { key: key.to_owned(), reason })
    };
    if json["changes"].as_array().is_some_and(|changes| !changes.is_empty()) {
        return refuse("changes", "[[changes]]", "none");
    }
    let Some(access) = wired(scenario) else {
        let value =
            if json["access"]["kind"].is_null() { "links".to_owned() } else { json["access"]["kind"].to_string() };
        return refuse("access.kind", &value, "\"wired\"");
    };
    let is_cake = matches!(access.queue.discipline, Discipline::Cake(_));
    // Linux has CAKE's alone, and counts what that drops among the queue's drops.
    if access.queue.ack_filter.is_some() {
        return refuse("access.ack_filter", "it", "none");
    }
    let QueueConfig { packets, discipline, .. } = access.queue;
    if is_cake && packets != discipline.usual_packets() {
        let usual = discipline.usual_packets().to_string();
        return refuse("access.queue_packets", "a limit of CAKE in packets", &usual);
    }
    if !is_cake && access.rate.as_bps() > MOST_MBPS * 1_000_000 {
        let mbps = access.rate.as_bps() / 1_000_000;
        return refuse("access.rate_mbps", &mbps.to_string(), &format!("at most {MOST_MBPS}, or CAKE"));
    }
    if discipline == Discipline::Red && packets > MOST_OF_RED {
        return refuse("access.queue_packets", &packets.to_string(), &format!("with RED at most {MOST_OF_RED}"));
    }
    Ok(())
}

/// The wired access, if the scenario has one.
fn wired(scenario: &Scenario) -> Option<&WiredAccessConfig> {
    match &scenario.network().topology {
        Topology::AccessPoint { access: AccessConfig::Wired(wired), .. } => Some(wired),
        Topology::AccessPoint { .. } | Topology::Links(_) => None,
    }
}

/// The router with the queue. All of it goes with this.
pub(crate) struct LinuxQueue {
    _router: Namespace,
    device: Tun,
    netlink: Netlink,
    index: u32,
    rate: Rate,
    lengths: LengthOverTime,
    packets: usize,
    /// Whether packets have joined or left since the last look.
    moved: bool,
    /// Of packets that have left, less those that came with it.
    marks: i64,
    sent: u64,
    drops: u64,
    drops_before: u64,
    since: Time,
}

/// What it has counted since the warm-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinuxQueueReport {
    pub(crate) queue: QueueStatistics,
    pub(crate) drops: u64,
    /// The share of the time in 0..=1 in which it sent.
    pub(crate) utilization: f64,
}

impl LinuxQueue {
    /// The queue of a scenario that [`check_linux_queue`] has accepted.
    ///
    /// # Errors
    /// The kernel does not have the discipline.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self> {
        let access = wired(scenario).expect("it was checked");
        let router = Namespace::new()?;
        let device = router.run(router_device)?;
        let (netlink, index) = router.run(|| {
            let index = if_nametoindex(INTERFACE).doing("a TUN device has no index")?;
            let netlink = Netlink::open()?;
            let (kind, options) = discipline(&access.queue);
            match access.queue.discipline {
                Discipline::Cake(_) => netlink.queue_by(index, kind, options)?,
                _ => {
                    let late = u128::from(access.rate.as_bps()) * u128::from(LATE.as_nanos()) / 8_000_000_000;
                    let burst = Bytes::new(MTU as u64 + late as u64);
                    netlink.send_at(index, access.rate, burst, kind, options)?;
                }
            }
            Ok((netlink, index))
        })?;
        Ok(Self {
            _router: router,
            device,
            netlink,
            index,
            rate: access.rate,
            lengths: LengthOverTime::new(),
            packets: 0,
            moved: false,
            marks: 0,
            sent: 0,
            drops: 0,
            drops_before: 0,
            since: Time::ZERO,
        })
    }

    /// The device where packets leave.
    pub(crate) fn device(&self) -> &Tun {
        &self.device
    }

    /// Whether a packet to a host passes the queue.
    pub(crate) fn takes(plan: &AddressPlan, packet: &[u8]) -> bool {
        matches!(plan.destination(packet), Some(lasthop_network::Destination::Node(_)))
    }

    /// A packet comes. Returns `false` if the kernel rejects it.
    pub(crate) fn join(&mut self, packet: &[u8]) -> Result<bool> {
        self.moved = true;
        self.marks -= i64::from(is_marked(packet));
        self.device.write(packet).doing("cannot write to the TUN device of a queue")
    }

    /// The packet that has left first; `None`: no more has.
    pub(crate) fn leave(&mut self, buffer: &mut [u8; MTU]) -> Result<Option<usize>> {
        let length = self.device.read(buffer).doing("cannot read from the TUN device of a queue")?;
        if let Some(length) = length {
            self.moved = true;
            self.marks += i64::from(is_marked(&buffer[..length]));
            self.sent += length as u64;
        }
        Ok(length)
    }

    /// Looks at the queue, if packets have joined or left.
    pub(crate) fn look(&mut self, now: Time) -> Result<()> {
        if std::mem::take(&mut self.moved) {
            (self.packets, self.drops) = self.netlink.queued(self.index)?;
            self.lengths.change(now, self.packets);
        }
        Ok(())
    }

    /// Its packets at the last look.
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Counts from now on.
    pub(crate) fn reset(&mut self, now: Time) {
        self.lengths.reset(now);
        (self.drops_before, self.marks, self.sent, self.since) = (self.drops, 0, 0, now);
    }

    pub(crate) fn report(&self, now: Time) -> LinuxQueueReport {
        let elapsed = now.saturating_since(self.since).max(Span::from_nanos(1));
        let sending = self.rate.transmission_time(Bytes::new(self.sent));
        let marks = u64::try_from(self.marks).unwrap_or_default();
        LinuxQueueReport {
            queue: QueueStatistics { marks, ..self.lengths.statistics(QueueId::AccessPoint, now) },
            drops: self.drops - self.drops_before,
            // The first packet may have been on its way before.
            utilization: (sending.as_secs_f64() / elapsed.as_secs_f64()).min(1.0),
        }
    }
}

/// Whether a packet of IPv4 has a mark of ECN.
fn is_marked(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4 && Ecn::of_bits(packet[1]) == Ecn::Ce
}

/// The kernel's name of a discipline, and its options (linux/pkt_sched.h). What is left out is the kernel's default.
fn discipline(queue: &QueueConfig) -> (&'static str, TcAttribute) {
    const TCA_OPTIONS: u16 = 2;
    const CAKE_DIFFSERV_BESTEFFORT: u32 = 3;
    let packets = u32::try_from(queue.packets).unwrap_or(u32::MAX);
    let yes = 1;
    let (kind, options) = match queue.discipline {
        Discipline::Codel(CodelConfig { ce_threshold }) => {
            // TCA_CODEL_LIMIT, _ECN, _CE_THRESHOLD
            ("codel", vec![Some(word(2, packets)), Some(word(4, yes)), time(5, ce_threshold)])
        }
        Discipline::FqCodel(FqCodelConfig { target, interval, quantum, flows, drop_batch, ce_threshold }) => {
            let quantum = quantum.get().saturating_sub(HEADER_BYTES).max(1) as u32;
            // TCA_FQ_CODEL_LIMIT, _ECN, _FLOWS, _QUANTUM, _DROP_BATCH_SIZE
            let words = [word(2, packets), word(4, yes), word(5, flows), word(6, quantum), word(8, drop_batch)];
            // TCA_FQ_CODEL_TARGET, _INTERVAL, _CE_THRESHOLD
            let times = [time(1, Some(target)), time(3, Some(interval)), time(7, ce_threshold)];
            ("fq_codel", words.map(Some).into_iter().chain(times).collect())
        }
        // TCA_PIE_LIMIT, _ECN
        Discipline::Pie => ("pie", vec![Some(word(2, packets)), Some(word(6, yes))]),
        // TCA_FQ_PIE_LIMIT, _ECN
        Discipline::FqPie => ("fq_pie", vec![Some(word(1, packets)), Some(word(10, yes))]),
        Discipline::Red => ("red", red(packets).map(Some).into()),
        Discipline::Cake(CakeConfig { bandwidth }) => {
            // TCA_CAKE_BASE_RATE64, in bytes a second; _DIFFSERV_MODE
            let rate = bandwidth.map(|rate| option(2, (rate.as_bps() / 8).to_ne_bytes().to_vec()));
            ("cake", vec![rate, Some(word(3, CAKE_DIFFSERV_BESTEFFORT))])
        }
        // TCA_DUALPI2_LIMIT
        Discipline::DualPi2 => ("dualpi2", vec![Some(word(1, packets))]),
        Discipline::Fifo => {
            // struct tc_fifo_qopt, not nested.
            return ("pfifo", TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, packets.to_ne_bytes().to_vec())));
        }
        Discipline::Mac80211(_) => unreachable!("a wire cannot have it"),
    };
    (kind, TcAttribute::Options(options.into_iter().flatten().collect()))
}

/// What `tc qdisc add ... red limit L avpkt 1000 ecn` makes of this limit in full packets (iproute2, tc/q_red.c, tc/tc_red.c).
fn red(packets: u32) -> [TcOption; 3] {
    const AVERAGE_PACKET_BYTES: f64 = 1000.0;
    /// What `tc` takes for the time of such a packet: at 10 Mb/s, in microseconds.
    const SMALL_US: f64 = 800.0;
    const MAX_P: f64 = 0.02;
    const TC_RED_ECN: u8 = 1;
    let limit = packets.saturating_mul(MTU as u32);
    let max = limit / 4;
    let min = max / 3;
    let burst = ((2.0 * f64::from(min) + f64::from(max)) / (3.0 * AVERAGE_PACKET_BYTES)).floor();
    let behind = burst + 1.0 - f64::from(min) / AVERAGE_PACKET_BYTES;
    let weight = |log: u8| 0.5_f64.powi(log.into());
    let reaches = |log: &u8| behind <= (1.0 - (1.0 - weight(*log)).powi(burst as i32)) / weight(*log);
    let weight_log = (1..32).find(reaches).unwrap_or(1);
    // p / (max - min) as a power of 2; the kernel takes the exact one below.
    let p_log = (0..32).find(|log| MAX_P / f64::from(max - min) * 2_f64.powi(i32::from(*log)) > 1.0).unwrap_or(31_u8);
    // By how many halves the average falls in an idle time, in cells of 2^cell_log microseconds.
    let halves_us = -(1.0 - weight(weight_log)).ln() / SMALL_US;
    let cell_log = (0..32).find(|log| 31.0 / halves_us / 2_f64.powi(i32::from(*log)) < 512.0).unwrap_or(31_u8);
    let cell = |number: u16| (f64::from(number) * 2_f64.powi(cell_log.into()) * halves_us).min(31.0) as u8;
    let damping = (0..255).map(cell).chain([31]).collect();
    let mut parameters: Vec<u8> = [limit, min, max].into_iter().flat_map(u32::to_ne_bytes).collect();
    parameters.extend([weight_log, p_log, cell_log, TC_RED_ECN]);
    // TCA_RED_PARMS, _STAB, _MAX_P
    [option(1, parameters), option(2, damping), word(3, (MAX_P * 2_f64.powi(32)) as u32)]
}

fn option(kind: u16, value: Vec<u8>) -> TcOption {
    TcOption::Other(DefaultNla::new(kind, value))
}

fn word(kind: u16, value: u32) -> TcOption {
    option(kind, value.to_ne_bytes().to_vec())
}

/// In microseconds.
fn time(kind: u16, value: Option<Span>) -> Option<TcOption> {
    value.map(|span| word(kind, u32::try_from(span.as_micros()).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Nla as _;

    #[test]
    fn what_linux_cannot_have_is_refused_by_its_key() {
        let check = |text: &str| {
            let scenario = Scenario::from_toml("x.toml", &format!("{text}[[hosts]]\n"), &[]).expect("a scenario");
            check_linux_queue(&scenario).map_err(|error| error.to_string())
        };
        assert_eq!(check("[access]\nkind = \"wired\"\nqueue = \"pie\"\n"), Ok(()));
        assert_eq!(check("[access]\nkind = \"wired\"\nqueue = \"cake\"\n"), Ok(()));
        for (text, said) in [
            ("[access]\nqueue = \"pie\"\n", "access.kind: --queue linux cannot have \"wifi\" (accepted: \"wired\")"),
            (
                "[access]\nkind = \"wired\"\nqueue = \"cake\"\nack_filter = \"aggressive\"\n",
                "access.ack_filter: --queue linux cannot have it (accepted: none)",
            ),
            (
                "[access]\nkind = \"wired\"\nqueue = \"cake\"\nqueue_packets = 50\n",
                "access.queue_packets: --queue linux cannot have a limit of CAKE in packets (accepted: 10240)",
            ),
            (
                "[access]\nkind = \"wired\"\nqueue = \"red\"\nqueue_packets = 5593\n",
                "access.queue_packets: --queue linux cannot have 5593 (accepted: with RED at most 5592)",
            ),
            (
                "[access]\nkind = \"wired\"\nrate_mbps = 40000\n",
                "access.rate_mbps: --queue linux cannot have 40000 (accepted: at most 34359, or CAKE)",
            ),
            ("[access]\nkind = \"wired\"\n[[changes]]\nat_s = 1\nrate_mbps = 5\n", "changes: --queue linux cannot"),
        ] {
            let message = check(text).expect_err(said);
            assert!(message.contains(said) && message.ends_with("--queue model can"), "{message}");
        }
    }

    #[test]
    fn red_gets_what_tc_computes() {
        // Full packets of 1500 bytes: limit 150,000, max a quarter, min a third of that; burst (2 × 12,500 + 37,500) / 3000 = 20. With
        // w = 1/64 a burst of 20 brings the average up to 64 (1 - (63/64)^20) = 17.3 of 20 + 1 - 12.5 = 8.5 packets; with 1/2 to 2.
        let [parameters, damping, max_p] = red(100);
        let TcOption::Other(parameters) = parameters else { panic!("raw bytes") };
        let mut bytes = vec![0; parameters.value_len()];
        parameters.emit_value(&mut bytes);
        let words: Vec<u32> =
            bytes[..12].chunks(4).map(|word| u32::from_ne_bytes(word.try_into().expect("4 bytes"))).collect();
        assert_eq!(words, [150_000, 12_500, 37_500]);
        // 0.5 ^ 4: 16 (1 - (15/16)^20) = 11.6; 0.5 ^ 3: 8 (1 - (7/8)^20) = 7.4.
        assert_eq!((bytes[12], bytes[15]), (4, 1));
        assert_eq!((damping.value_len(), max_p.value_len()), (256, 4));
    }
}
