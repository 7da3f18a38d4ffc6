//! The switches of `[hosts.tcp]` available in a kernel, and how to set them.
//!
//! - Sysctls of the namespace: `sack`, `timestamps`, `window_scaling`, `f_rto`, `slow_start_after_idle`, `ecn`.
//! - Metrics of the route: `mss_bytes` (advmss), `initial_window_segments` (initcwnd), `rto_min_ms` (rto_min),
//!   `delayed_ack_segments = 1` (quickack).
//! - Settings of the device: `delayed_ack_segments` above 2 ([`gro`](crate::gro)).
//! - Options of the sockets: `pacing` (SO_MAX_PACING_RATE), `nagle` (TCP_NODELAY), `receive_buffer_kib` (SO_RCVBUF,
//!   TCP_WINDOW_CLAMP).
//! - The back-pressure of the host's queue: `tsq_pacing_shift` ([`valve`](crate::valve)).
//!
//! Both ends of a connection have a namespace with these settings. A switch with its era's value is not touched: the
//! kernel's defaults stand for the era's. A value that every modern kernel has anyway is accepted.

use crate::error::{Doing, Error, Result};
use crate::gro::Gro;
use lasthop_connection::TcpState;
use lasthop_scenario::{Era, HostKind};
use lasthop_tcp::{EcnMode, Tsq};
use lasthop_units::Bytes;
use netlink_packet_route::route::RouteMetric;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SetStruct, TcpNoDelay};
use std::fs;
use std::os::fd::OwnedFd;

/// The switches that differ from the era's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stack {
    sack: Option<bool>,
    timestamps: Option<bool>,
    window_scaling: Option<bool>,
    f_rto: Option<bool>,
    slow_start_after_idle: Option<bool>,
    ecn: Option<EcnMode>,
    mss: Option<u32>,
    initial_window_segments: Option<u32>,
    rto_min_ms: Option<u32>,
    quick_acks: bool,
    /// The most segments that are acknowledged together, above two.
    joined_segments: Option<u32>,
    /// The switches that only a socket has.
    pub(crate) sockets: SocketOptions,
}

/// The switches set at each socket, or for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketOptions {
    paced: bool,
    no_delay: bool,
    receive_buffer: Option<Bytes>,
    /// If it is not the kernel's.
    tsq_pacing_shift: Option<u8>,
}

/// A switch, or a value of it, that kernels do not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The key of `[hosts.tcp]`.
    pub(crate) switch: &'static str,
    /// The value that kernel hosts accept.
    pub(crate) accepted: &'static str,
}

/// The data that wake the receiver of a flow over aggregates.
const LUMP_BYTES: u64 = 256 * 1024;

/// Below the kernel's TCP_MIN_MSS (net/tcp.h) headers dominate. The upper end fits into a device's packets.
const MSS: std::ops::RangeInclusive<u64> = 88..=1460;

impl Stack {
    /// The stack of a host of this kind, and of its servers.
    ///
    /// # Errors
    /// The first switch, or value of a switch, that kernels do not support.
    pub(crate) fn of(kind: &HostKind) -> Result<Self, Refused> {
        let (tcp, today) = (&kind.tcp, Era::Modern.stack());
        let mut stack = Self::default();
        for &switch in &kind.changed_switches {
            let accept = |holds: bool, accepted: &'static str| {
                if holds { Ok(()) } else { Err(Refused { switch, accepted }) }
            };
            match switch {
                "sack" => stack.sack = Some(tcp.sack),
                "timestamps" => stack.timestamps = Some(tcp.timestamps),
                "window_scaling" => stack.window_scaling = Some(tcp.window_scaling),
                "f_rto" => stack.f_rto = Some(tcp.f_rto),
                "slow_start_after_idle" => stack.slow_start_after_idle = Some(tcp.slow_start_after_idle),
                "ecn" => stack.ecn = Some(tcp.ecn),
                "mss_bytes" => {
                    accept(MSS.contains(&tcp.mss.get()), "88 to 1460")?;
                    stack.mss = Some(tcp.mss.get() as u32);
                }
                "initial_window_segments" => stack.initial_window_segments = Some(tcp.initial_window_segments),
                "rto_min_ms" => {
                    let ms = u32::try_from(tcp.rto_min.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
                    accept((1..=120_000).contains(&ms), "1 to 120000")?;
                    stack.rto_min_ms = Some(ms);
                }
                "delayed_ack_segments" => {
                    stack.quick_acks = tcp.delayed_ack.segments == 1;
                    stack.joined_segments = Some(tcp.delayed_ack.segments).filter(|&segments| segments > 2);
                }
                "pacing" => stack.sockets.paced = tcp.pacing,
                "tsq_pacing_shift" => stack.sockets.tsq_pacing_shift = tcp.tsq.and_then(|tsq| tsq.pacing_shift),
                "nagle" => stack.sockets.no_delay = !tcp.nagle,
                "receive_buffer_kib" => stack.sockets.receive_buffer = Some(tcp.receive_buffer),
                // The behaviour of every modern kernel, in either era.
                "timestamp_granularity_ms" => accept(tcp.timestamp_granularity == today.timestamp_granularity, "1")?,
                "recovery" => accept(tcp.recovery == today.recovery, "\"prr-rfc9937\"")?,
                "rescue" => accept(tcp.rescue == today.rescue, "false")?,
                "fack" => accept(tcp.fack == today.fack, "false")?,
                "sack_compression" => accept(tcp.sack_compression == today.sack_compression, "true")?,
                // In the kernel, only CUBIC has HyStart, and one namespace cannot turn it off.
                "slow_start" => {
                    let standard = tcp.slow_start == lasthop_laws::SlowStart::Standard;
                    let cubic = kind.kernel_congestion_control() == "cubic";
                    accept(standard && !cubic, "\"hystart\" with cubic, \"standard\" with all others")?;
                }
                _ => accept(false, "what its era has")?,
            }
        }
        Ok(stack)
    }

    /// Sets the switches of the calling thread's namespace.
    pub(crate) fn set_sysctls(&self) -> Result<()> {
        let flags = [
            ("ipv4/tcp_sack", self.sack, "1"),
            ("ipv4/tcp_timestamps", self.timestamps, "1"),
            ("ipv4/tcp_window_scaling", self.window_scaling, "1"),
            ("ipv4/tcp_frto", self.f_rto, "2"),
            ("ipv4/tcp_slow_start_after_idle", self.slow_start_after_idle, "1"),
        ];
        for (key, flag, on) in flags {
            if let Some(flag) = flag {
                sysctl(key, if flag { on } else { "0" })?;
            }
        }
        match self.ecn {
            // The kernel's default is 2: agree, and do not ask.
            Some(EcnMode::On) => sysctl("ipv4/tcp_ecn", "1")?,
            Some(EcnMode::Accurate) => sysctl("ipv4/tcp_ecn", "3").map_err(|_| {
                Error::Machine(
                    "this kernel takes no net.ipv4.tcp_ecn = 3 for ecn = \"accurate\" (Linux 6.18 does not); it has \"on\"".to_owned(),
                )
            })?,
            Some(EcnMode::Off) | None => {}
        }
        Ok(())
    }

    /// The metrics of the default route, the only one.
    pub(crate) fn route_metrics(&self) -> Vec<RouteMetric> {
        /// `1 << RTAX_RTO_MIN` (linux/rtnetlink.h): the kernel uses an rto_min only if it is locked.
        const LOCK_RTO_MIN: u32 = 1 << 13;

        let rto_min = self.rto_min_ms.map(|ms| [RouteMetric::Lock(LOCK_RTO_MIN), RouteMetric::RtoMin(ms)]);
        let others = [
            self.mss.map(RouteMetric::Advmss),
            self.initial_window_segments.map(RouteMetric::InitCwnd),
            self.quick_acks.then_some(RouteMetric::QuickAck(1)),
        ];
        rto_min.into_iter().flatten().chain(others.into_iter().flatten()).collect()
    }

    /// How the kernel joins segments before TCP gets them, if it does.
    pub(crate) fn gro(&self) -> Option<Gro> {
        let segments = self.joined_segments?;
        Some(Gro::new(segments, self.mss.unwrap_or(*MSS.end() as u32), self.timestamps.unwrap_or(true)))
    }
}

impl SocketOptions {
    /// Sets the options of a new socket.
    pub(crate) fn on_new(self, socket: &OwnedFd) -> Result<()> {
        if self.paced {
            setsockopt(socket, MaxPacingRate, &(u64::MAX >> 1)).doing("cannot turn pacing on (SO_MAX_PACING_RATE)")?;
        }
        if self.no_delay {
            setsockopt(socket, TcpNoDelay, &true).doing("cannot turn Nagle's algorithm off (TCP_NODELAY)")?;
        }
        if let Some(window) = self.receive_buffer {
            // Much more memory than the window needs, so that TCP_WINDOW_CLAMP alone is the limit. The kernel stops
            // tuning a buffer with a set size. It doubles the value given (socket(7)).
            let memory = usize::try_from(window.get()).unwrap_or(usize::MAX).saturating_mul(4).clamp(1 << 16, 1 << 30);
            setsockopt(socket, RcvBufForce, &memory).doing("cannot set a receive buffer (SO_RCVBUFFORCE)")?;
            clamp_window(socket, window).doing("cannot limit a receive window (TCP_WINDOW_CLAMP)")?;
        }
        Ok(())
    }

    /// Whether a switch needs a call for each socket.
    pub(crate) fn are_set_at_sockets(self) -> bool {
        Self { tsq_pacing_shift: None, ..self } != Self::default()
    }

    /// How much a sender may have below its socket.
    pub(crate) fn small_queue(self, tcp: &TcpState) -> Bytes {
        let small_queues = Tsq { pacing_shift: self.tsq_pacing_shift.or(Tsq::LINUX.pacing_shift), ..Tsq::LINUX };
        small_queues.permitted(tcp.pacing_rate, tcp.mss_bytes, tcp.cwnd_segments, tcp.min_rtt)
    }

    /// Wakes this socket's reader for 256 KiB at a time (SO_RCVLOWAT, socket(7)), or a quarter of its window. A wake
    /// for each segment would take longer than the segment. Until then the kernel acknowledges every second segment
    /// whether or not the data were read; above it, only as the window that it offers grows (`__tcp_ack_snd_check`).
    pub(crate) fn wake_for_lumps(self, socket: &OwnedFd) -> Result<()> {
        let lump = self.receive_buffer.map_or(LUMP_BYTES, |window| LUMP_BYTES.min(window.get() / 4));
        setsockopt(socket, LowWater, &(lump as i32)).doing("cannot set SO_RCVLOWAT of a socket")
    }

    /// Sets again an option that the kernel changes when the first segments arrive. It then learns their memory use and
    /// recomputes the window limit from the buffer size.
    pub(crate) fn on_first_data(self, socket: &OwnedFd) {
        if let Some(window) = self.receive_buffer {
            // A connection that has just been reset takes no option. Its end is reported elsewhere.
            let _ = clamp_window(socket, window);
        }
    }
}

/// Sets a key under /proc/sys/net in the calling thread's namespace.
pub(crate) fn sysctl(key: &str, value: &str) -> Result<()> {
    fs::write(format!("/proc/sys/net/{key}"), value).doing(format_args!("cannot set net/{key} to {value}"))
}

/// In bytes per second. Any limit turns the kernel's own pacing on (socket(7), tcp_output.c).
#[derive(Clone, Copy, Debug)]
struct MaxPacingRate;

nix::setsockopt_impl!(MaxPacingRate, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64, SetStruct<'_, u64>);

/// In bytes.
#[derive(Clone, Copy, Debug)]
struct LowWater;

nix::setsockopt_impl!(LowWater, libc::SOL_SOCKET, libc::SO_RCVLOWAT, i32, SetStruct<'_, i32>);

/// In bytes.
#[derive(Clone, Copy, Debug)]
struct WindowClamp;

nix::setsockopt_impl!(WindowClamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, i32, SetStruct<'_, i32>);

fn clamp_window(socket: &OwnedFd, window: Bytes) -> nix::Result<()> {
    setsockopt(socket, WindowClamp, &i32::try_from(window.get()).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::{Override, Scenario};
    use lasthop_units::{Rate, Span};

    fn stack(settings: &[&str]) -> Result<Stack, Refused> {
        let overrides: Vec<Override> =
            settings.iter().map(|setting| Override::parse(&format!("hosts.0.{setting}")).expect("a setting")).collect();
        let scenario = Scenario::from_toml("x.toml", "[[hosts]]\n", &overrides).expect("a scenario");
        Stack::of(&scenario.hosts[0].kind)
    }

    fn metrics(settings: &[&str]) -> Vec<RouteMetric> {
        stack(settings).expect("a kernel has these").route_metrics()
    }

    #[test]
    fn a_stack_of_its_era_changes_nothing() {
        for era in ["era=2012", "era=modern"] {
            assert_eq!(stack(&[era]), Ok(Stack::default()));
        }
        assert_eq!(metrics(&[]), []);
    }

    #[test]
    fn a_route_says_what_its_connections_are() {
        let settings =
            ["tcp.mss_bytes=1012", "tcp.initial_window_segments=4", "tcp.delayed_ack_segments=1", "tcp.rto_min_ms=230"];
        let expected = [
            RouteMetric::Lock(8192),
            RouteMetric::RtoMin(230),
            RouteMetric::Advmss(1012),
            RouteMetric::InitCwnd(4),
            RouteMetric::QuickAck(1),
        ];
        assert_eq!(metrics(&settings), expected);
    }

    #[test]
    fn what_a_kernel_of_today_does_anyway_may_be_said() {
        let today = [
            "tcp.timestamp_granularity_ms=1",
            "tcp.recovery=prr-rfc9937",
            "tcp.rescue=false",
            "tcp.fack=false",
            "tcp.sack_compression=true",
        ];
        assert_eq!(stack(&today), Ok(Stack::default()));
        assert_eq!(stack(&["congestion_control=newreno", "tcp.slow_start=standard"]), Ok(Stack::default()));
    }

    #[test]
    fn more_segments_for_an_acknowledgement_are_joined_by_the_kernel() {
        let gro = |settings: &[&str]| stack(settings).expect("a kernel has these").gro();
        assert_eq!((gro(&[]), gro(&["tcp.delayed_ack_segments=1"])), (None, None));
        assert_eq!(gro(&["tcp.delayed_ack_segments=16"]), Some(Gro::new(16, 1460, true)));
        let settings = ["tcp.delayed_ack_segments=3", "tcp.mss_bytes=1000", "tcp.timestamps=false"];
        assert_eq!(gro(&settings), Some(Gro::new(3, 1000, false)));
    }

    #[test]
    fn a_small_queue_holds_what_the_pacing_rate_sends_in_its_time() {
        let permitted = |settings: &[&str], pacing_rate| {
            let min_rtt = Some(Span::from_millis(100));
            let tcp = TcpState { pacing_rate, mss_bytes: 1448, cwnd_segments: 1000, min_rtt, ..TcpState::default() };
            stack(settings).expect("a stack").sockets.small_queue(&tcp)
        };
        // 8 MiB/s: 8192 bytes in 2^-10 s are five segments of 1448, and 65,536 in 2^-7 s, of which a packet has at most 45.
        let rate = Some(Rate::from_bps(8 * (8 << 20)));
        assert_eq!(permitted(&["era=modern"], rate), Bytes::new(2 * 5 * 1448));
        assert_eq!(permitted(&["era=modern", "tcp.tsq_pacing_shift=7"], rate), Bytes::new(2 * 45 * 1448));
        assert_eq!(permitted(&["era=modern"], Some(Rate::from_bps(8000))), Bytes::new(2 * 2 * 1448));
        // Before the first round trip there is no rate.
        assert_eq!(permitted(&["era=modern"], None), Bytes::from_kib(4096));
    }

    #[test]
    fn what_no_kernel_has_is_refused_by_its_key() {
        let refused = |settings: &[&str]| stack(settings).expect_err("refused");
        for (setting, switch, accepted) in [
            ("tcp.recovery=rfc6675", "recovery", "\"prr-rfc9937\""),
            ("tcp.rto_estimator=rfc6298", "rto_estimator", "what its era has"),
            ("tcp.timestamp_granularity_ms=20", "timestamp_granularity_ms", "1"),
            ("tcp.mss_bytes=9000", "mss_bytes", "88 to 1460"),
            ("tcp.limited_transmit=false", "limited_transmit", "what its era has"),
            ("tcp.slow_start=standard", "slow_start", "\"hystart\" with cubic, \"standard\" with all others"),
        ] {
            assert_eq!(refused(&[setting]), Refused { switch, accepted }, "{setting}");
        }
        assert_eq!(refused(&["era=modern", "tcp.fack=true"]).switch, "fack");
        assert_eq!(refused(&["era=modern", "tcp.rack_tlp=false"]).switch, "rack_tlp");
        assert_eq!(refused(&["congestion_control=reno", "tcp.slow_start=hystart++"]).switch, "slow_start");
    }
}
