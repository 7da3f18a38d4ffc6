//! The keys themselves, table by table.

use super::{Key, Kind, Preset};
use lasthop_policy::PolicyName;

/// Above the first heading.
pub(super) const TOP: &[Key] = &[
    key(
        "name",
        Kind::Text,
        Preset::Derived("the file's name"),
        "What the scenario shows, in one line: the title of the report.",
    ),
    key(
        "duration_s",
        above(0.0, 86_400.0),
        Preset::Number(60.0),
        "Length of the run in seconds, the warm-up included.",
    ),
    key(
        "warmup_s",
        number(0.0, 86_400.0),
        Preset::Number(10.0),
        "The first seconds, left out of every figure of the result; must be shorter than `duration_s`.",
    ),
    key("seed", integer(0, i64::MAX), Preset::Integer(1), "Every random draw of the run follows from it."),
    key("sample_ms", number(1.0, 60_000.0), Preset::Number(50.0), "How often the series are sampled, in milliseconds."),
];

/// `[access]`.
pub(super) const ACCESS: &[Key] = &[
    key(
        "kind",
        Kind::Choice(&["wifi", "wired"]),
        Preset::Text("wifi"),
        "The shared last hop: an 802.11 access point with its stations, or one shared link each way. The keys marked *wifi* below are not looked at with \"wired\".",
    ),
    key(
        "standard",
        Kind::Choice(&["802.11b", "802.11g", "802.11bg"]),
        Preset::Text("802.11g"),
        "*wifi* The timing of the medium; \"802.11bg\" is 802.11g beside 802.11b: ERP protection (CTS-to-self) and the long slot.",
    ),
    key(
        "rate_mbps",
        number(0.001, 100_000.0),
        Preset::Derived("54; 11 with \"802.11b\"; 100 with \"wired\""),
        "*wifi:* the PHY rate of data frames in Mb/s (the highest, with rate control), one that the standard has; *wired:* the link's rate.",
    ),
    key(
        "rate_control",
        Kind::Choice(&["fixed", "arf", "aarf", "minstrel"]),
        Preset::Text("fixed"),
        "*wifi* Who chooses the PHY rate: nobody, a station that falls back after failures (ARF, AARF), or one that counts which rates get through (Minstrel).",
    ),
    key(
        "rate_set",
        Kind::Choice(&["ofdm", "all"]),
        Preset::Text("ofdm"),
        "*wifi* The rates that rate control may use: \"ofdm\" 6 to 54 Mb/s, or \"all\", from 1 Mb/s on.",
    ),
    key(
        "queue_packets",
        integer(1, 100_000),
        Preset::Integer(100),
        "The access point's downlink queue in packets; *wired:* that of the link down; upwards the hosts take turns from their own.",
    ),
    key("queue", Kind::Choice(QUEUES), Preset::Text("fifo"), QUEUE_MEANING),
    key(
        "frame_error_rate",
        number(0.0, 1.0),
        Preset::Number(0.0),
        "*wifi* Probability that a data frame is lost to noise, each transmission for itself.",
    ),
    key(
        "retry_limit",
        integer(0, 255),
        Preset::Integer(7),
        "*wifi* How many times a frame is sent at most (dot11ShortRetryLimit); 0 is without end.",
    ),
    key("preamble", Kind::Choice(&["long", "short"]), Preset::Text("long"), "*wifi* Preamble of the 802.11b rates."),
    key(
        "protection_rate_mbps",
        number(0.001, 100_000.0),
        Preset::Number(2.0),
        "*wifi* Rate of the CTS-to-self of \"802.11bg\" in Mb/s: 1, 2, 5.5 or 11.",
    ),
    key(
        "broadcast_rate_mbps",
        number(0.001, 100_000.0),
        Preset::Absent,
        "*wifi* Rate of frames to all stations in Mb/s, such as beacons of the agents; without it the lowest basic rate: 6 with \"802.11g\" over \"ofdm\", else 1.",
    ),
    key(
        "before_acknowledgement",
        Kind::Choice(&["busy", "idle"]),
        Preset::Text("busy"),
        "*wifi* How a station senses the medium in the SIFS before its own acknowledgement: an answer that it queues then draws a backoff (\"busy\"), or goes a DIFS after the acknowledgement without one (\"idle\", as in ns-3). It matters with `turnaround_us` below 10 only.",
    ),
    key(
        "after_collision",
        Kind::Choice(&["eifs", "difs"]),
        Preset::Text("eifs"),
        "*wifi* How long bystanders wait after a collision: EIFS, or DIFS as in ns-3.",
    ),
    key("delay_ms", number(0.0, 60_000.0), Preset::Number(0.0), "*wired* Delay of the link in milliseconds, each way."),
];

/// `[path]`.
pub(super) const PATH: &[Key] = &[
    key(
        "rtt_ms",
        number(0.0, 60_000.0),
        Preset::Number(20.0),
        "Delay between the access point and the servers in milliseconds, there and back; half each way.",
    ),
    key("rate_mbps", number(0.001, 100_000.0), Preset::Number(1_000.0), "Rate of that path in Mb/s, each way."),
    key(
        "loss",
        number(0.0, 1.0),
        Preset::Number(0.0),
        "Probability that a packet from a host to a server is lost at random on the path.",
    ),
    key(
        "queue_packets",
        integer(1, 1_000_000),
        Preset::Integer(1_000),
        "The queue at each end of the path in packets, drop-tail.",
    ),
];

/// `[[links]]`.
pub(super) const LINK: &[Key] = &[
    key(
        "between",
        Kind::Ends,
        Preset::Required,
        "The two nodes that it joins, such as `[\"N1\", \"R\"]`; a node is there as soon as a link names it. *Forth* is from the first to the second, *back* from the second to the first.",
    ),
    key(
        "count",
        integer(1, 250),
        Preset::Integer(1),
        "How many links are alike: `#` in a name is the number of the link within its block, from 1, so that `count = 3` with `[\"A#\", \"R\"]` joins A1, A2 and A3 with R.",
    ),
    key("rate_mbps", number(0.001, 100_000.0), Preset::Number(100.0), "Its rate forth in Mb/s."),
    key("delay_ms", number(0.0, 60_000.0), Preset::Number(0.0), "Its delay forth in milliseconds."),
    key("queue_packets", integer(1, 1_000_000), Preset::Integer(100), "The queue in front of it, forth, in packets."),
    key("queue", Kind::Choice(QUEUES), Preset::Text("fifo"), QUEUE_MEANING),
    key(
        "loss",
        number(0.0, 1.0),
        Preset::Number(0.0),
        "Probability that a packet is lost at random, forth, each packet for itself.",
    ),
    key(
        "loss_at",
        Kind::Choice(&["before", "after"]),
        Preset::Text("after"),
        "Where that loss is: before the queue, so that a lost packet takes neither room nor time, or after it, as an error of transmission.",
    ),
    key("back_rate_mbps", number(0.001, 100_000.0), AS_FORTH, "Its rate back in Mb/s."),
    key("back_delay_ms", number(0.0, 60_000.0), AS_FORTH, "Its delay back in milliseconds."),
    key("back_queue_packets", integer(1, 1_000_000), AS_FORTH, "The queue in front of it, back, in packets."),
    key("back_queue", Kind::Choice(QUEUES), AS_FORTH, "The discipline of that queue."),
    key("back_loss", number(0.0, 1.0), Preset::Number(0.0), "Probability that a packet is lost at random, back."),
    key("back_loss_at", Kind::Choice(&["before", "after"]), AS_FORTH, "Where that loss is."),
];

/// `[[changes]]`.
pub(super) const CHANGE: &[Key] = &[
    key("at_s", number(0.0, 86_400.0), Preset::Required, "When, in seconds from the start of the run."),
    key(
        "of",
        Kind::Choice(&["link", "path", "access", "hosts"]),
        Preset::Derived("`\"link\"` with `between`, `\"hosts\"` with `hosts`, else `\"path\"`"),
        "What changes: a link of `[[links]]`; or without links the path, the wired access, or stations of the Wi-Fi.",
    ),
    key(
        "between",
        Kind::Ends,
        Preset::Absent,
        "*link* The nodes that the link joins, `#` replaced by the number; must be given. *Forth* is from the first named here to the second.",
    ),
    key(
        "hosts",
        Kind::Integers { from: 0, to: 249, columns: 1 },
        Preset::Absent,
        "*hosts* The numbers of the hosts; without it, all.",
    ),
    key(
        "rate_mbps",
        number(0.001, 100_000.0),
        Preset::Absent,
        "*link* The rate forth in Mb/s. *path, access* That of both ways. *hosts* The stations' PHY rate, both ways: the highest, with rate control, which begins anew.",
    ),
    key("back_rate_mbps", number(0.001, 100_000.0), Preset::Absent, "*link* The rate back in Mb/s."),
    key(
        "delay_ms",
        number(0.0, 60_000.0),
        Preset::Absent,
        "*link* The delay forth in milliseconds. *access* That of both ways.",
    ),
    key("back_delay_ms", number(0.0, 60_000.0), Preset::Absent, "*link* The delay back in milliseconds."),
    key(
        "rtt_ms",
        number(0.0, 60_000.0),
        Preset::Absent,
        "*path* The delay there and back in milliseconds, but of hosts with a `path_rtt_ms` of their own.",
    ),
    key(
        "loss",
        number(0.0, 1.0),
        Preset::Absent,
        "*link* The probability that a packet is lost at random, forth. *path* From a host to a server.",
    ),
    key("back_loss", number(0.0, 1.0), Preset::Absent, "*link* The same back."),
    key(
        "frame_error_rate",
        number(0.0, 1.0),
        Preset::Absent,
        "*hosts* The probability that a data frame from the station or to it is lost to noise.",
    ),
];

/// The names in the host block that are the host's own; the rest of [`Section::Host`] belongs to the policy.
pub const HOST_OWN: &[&str] = &[
    "count",
    "era",
    "node",
    "path_rtt_ms",
    "path_rtt_change_s",
    "turnaround_us",
    "queue_packets",
    "send_buffer_kib",
    "rate_mbps",
    "frame_error_rate",
    "congestion_control",
    "agent",
];

/// `[[hosts]]`.
pub(super) const HOST: &[Key] = &[
    key(
        "count",
        integer(1, 250),
        Preset::Integer(1),
        "How many hosts are of this kind. All blocks together make at most 250 hosts.",
    ),
    key(
        "era",
        Kind::Choice(&["2012", "modern"]),
        Preset::Text("2012"),
        "The stack's defaults: \"2012\" has no TCP small queues, no pacing, no RACK, and big device queues, as the phones of the papers; \"modern\" is Linux today.",
    ),
    key(
        "node",
        Kind::Node,
        Preset::Absent,
        "*links* The node that the hosts of this block sit on; must be given there. `#` is the number of the host within the block, from 1.",
    ),
    key(
        "path_rtt_ms",
        Kind::Range { to: 60_000.0 },
        Preset::Absent,
        "The host's own round trip between the access point and its servers in milliseconds, instead of `path.rtt_ms`; of a range `[from, to]` each host draws its own.",
    ),
    key(
        "path_rtt_change_s",
        number(0.001, 86_400.0),
        Preset::Absent,
        "How often each host draws that anew, in seconds; without it, once for the whole run.",
    ),
    key(
        "turnaround_us",
        Kind::Range { to: 1_000_000.0 },
        Preset::ByEra { y2012: &Preset::Range(200.0, 1_000.0), modern: &Preset::Range(50.0, 500.0) },
        "*wifi* From the MAC's reception of a packet to the host's answer at its MAC, in microseconds; of a range `[from, to]` each packet draws its own, and packets keep their order. Kernel hosts: what this machine takes by itself is part of it ([turnaround](../models/medium.md#turnaround)).",
    ),
    key(
        "queue_packets",
        integer(1, 100_000),
        Preset::Integer(1_000),
        "The host's own transmit queue in packets. *links:* not looked at, for the queue of the link is the host's.",
    ),
    key(
        "send_buffer_kib",
        integer(8, 1_048_576),
        Preset::ByEra { y2012: &Preset::Integer(1_024), modern: &Preset::Integer(4_096) },
        "The send buffer of each connection in KiB: the upper end of the kernel's autotuning.",
    ),
    key(
        "rate_mbps",
        number(0.001, 100_000.0),
        Preset::Absent,
        "*wifi* PHY rate of this host's data frames in Mb/s, both ways, where it differs from `access.rate_mbps`: a station far from the access point. With \"802.11bg\" a host at 1, 2, 5.5 or 11 is an 802.11b station.",
    ),
    key(
        "frame_error_rate",
        number(0.0, 1.0),
        Preset::Absent,
        "*wifi* Probability that a data frame from this host or to it is lost to noise, where it differs from `access.frame_error_rate`.",
    ),
    key(
        "congestion_control",
        Kind::Name,
        Preset::Text("cubic"),
        "The TCP congestion control, a law of lasthop: \"newreno\", \"cubic\", or one of those that [the scenario file](scenario.md) names. Kernel hosts also: any other that the kernel offers (`sysctl net.ipv4.tcp_available_congestion_control`).",
    ),
    key(
        "agent",
        Kind::Choice(&["off", "observe", "advise", "control"]),
        Preset::Derived("`\"control\"`; `\"off\"` with policy \"none\""),
        "What the host's agent does: nothing runs at all, it only looks and sends nothing, it also decides but changes nothing, or it controls.",
    ),
    key(
        "policy",
        Kind::Choice(PolicyName::NAMES),
        Preset::Text("none"),
        "The [policy](#policies): what bounds the windows.",
    ),
    key(
        "bound_segments",
        integer(1, 1_000_000),
        Preset::Absent,
        "*fixed* The upper limit of the whole host in segments, split over its busy connections; must be given there.",
    ),
    key(
        "bound_pacing_mbps",
        number(0.032, 1e5),
        Preset::Absent,
        "*fixed* Beside that, the upper limit of the whole host's pacing rate in Mb/s of payload, split over its busy connections, of which each gets 0.032 at least. With it a connection is paced, whatever its stack and its law.",
    ),
    key(
        "minimum_segments",
        integer(1, 65_535),
        Preset::Integer(1),
        "The lower limit of each connection's window in segments, and the floor under every upper limit.",
    ),
    key(
        "enable_ratio",
        number(1.0, 1e6),
        Preset::Number(6.0),
        "*formula, table, cooperative* Control of a connection is enabled when its RTT exceeds this multiple of its lowest.",
    ),
    key(
        "enable_excess_ms",
        number(0.0, 60_000.0),
        Preset::Absent,
        "*formula, table, cooperative* Instead of that: when its RTT exceeds its lowest by more than this, in milliseconds.",
    ),
    key(
        "cut_ratio",
        number(1.0, 1e6),
        Preset::Number(5.0),
        "*formula* While control is enabled, a ratio above this cuts the window to the minimum.",
    ),
    key(
        "release_ratio",
        number(1.0, 1e6),
        Preset::Absent,
        "*formula, table, cooperative* Control is disabled again when the ratio falls below this, up to `enable_ratio`, and the excess is not above `enable_excess_ms`; without it control lasts until the connection ends.",
    ),
    key(
        "exponent",
        number(-2.0, 0.0),
        Preset::Derived("`-0.15` with *formula* and *count*, else `0`"),
        "How the bandwidth falls with the number of terminals.",
    ),
    key(
        "bandwidth_max_mbps",
        number(1e-3, 1e5),
        Preset::Derived("`20` with *table* and *cooperative*, else `19`"),
        "The goodput that one terminal reaches alone, in Mb/s.",
    ),
    key(
        "rtt",
        Kind::Choice(&["current", "minimum"]),
        Preset::Text("current"),
        "*formula, table, cooperative* Which RTT the share is computed from.",
    ),
    key(
        "segment_bytes",
        integer(64, 65_535),
        Preset::Integer(1_500),
        "What counts as one segment, in bytes of IP packet.",
    ),
    key(
        "maximum_terminals",
        integer(1, 1_024),
        Preset::Integer(64),
        "A share is never computed for more terminals than this, whatever the beacons say (*keceli:* for more flows, unless the host itself has more).",
    ),
    key(
        "count_segments",
        Kind::Integers { from: 1, to: 1_000_000, columns: 1 },
        Preset::Absent,
        "*count* The window of a terminal for 1, 2, 3, ... terminals; the last for all above. Without it, what [hayakawa] eq. 2 has for `count_rtt_ms`.",
    ),
    key(
        "count_rtt_ms",
        number(0.001, 60_000.0),
        Preset::Number(256.0),
        "*count* The RTT for which the windows are computed, in milliseconds.",
    ),
    key(
        "adjust_s",
        number(0.5, 3_600.0),
        Preset::Number(10.0),
        "*count* How often the number of terminals is looked at, in seconds.",
    ),
    key(
        "window_table",
        Kind::Choice(&["old", "table-1", "loose"]),
        Preset::Derived("`\"old\"`; `\"loose\"` with *cooperative-loose*"),
        "*table, cooperative* The table of windows: [shimada] Table 3 before its change, Table 1, or Table 3 after it.",
    ),
    key(
        "window_rows",
        Kind::Integers { from: 0, to: 1_000_000, columns: 3 },
        Preset::Absent,
        "*table, cooperative* A table of one's own instead: rows of `[from, max, min]`, from 0 upwards; in milliseconds of RTT above the lowest, or what `table_index` says, and segments.",
    ),
    key(
        "table_index",
        Kind::Choice(&["excess", "rtt", "ratio"]),
        Preset::Text("excess"),
        "*table, cooperative* What the table is looked up with: RTT − lowest RTT in milliseconds, RTT in milliseconds, or RTT / lowest RTT.",
    ),
    key(
        "cap",
        Kind::Choice(&["min", "table"]),
        Preset::Text("min"),
        "*table, cooperative* The upper limit: the smaller of share and table, or the table alone.",
    ),
    key(
        "lower_limit",
        Kind::Flag,
        Preset::Flag(true),
        "*table, cooperative* Whether the lower limits of the table hold; else `minimum_segments`.",
    ),
    key(
        "peer_latch",
        Kind::Choice(&["while-reported", "connection"]),
        Preset::Text("while-reported"),
        "*cooperative* How long control lasts that a peer's report has begun: as long as a peer reports it, or until the connection ends.",
    ),
    key(
        "access_queue_packets",
        integer(1, 100_000),
        Preset::Integer(100),
        "*keceli* The length of the access point's downlink queue in packets, as the policy believes it to be.",
    ),
    key("segments_per_ack", integer(1, 64), Preset::Integer(2), "*keceli* Segments that one acknowledgement is for."),
];

/// `[hosts.tcp]`: one for each field of [`lasthop_tcp::Config`] but the send buffer, which is a key of the host.
pub(super) const TCP: &[Key] = &[
    key(
        "mss_bytes",
        integer(64, 65_495),
        Preset::Integer(1_460),
        "Data in a full segment without options; timestamps take 12 bytes of it.",
    ),
    key(
        "initial_window_segments",
        integer(1, 1_000),
        Preset::Integer(10),
        "The window after the handshake: 10 with RFC 6928, 2 to 4 with RFC 5681.",
    ),
    key("sack", Kind::Flag, Preset::Flag(true), "Selective acknowledgements (RFC 2018, with D-SACK of RFC 2883)."),
    key("timestamps", Kind::Flag, Preset::Flag(true), "Timestamps in every segment (RFC 7323 §3)."),
    key(
        "timestamp_granularity_ms",
        number(0.001, 1_000.0),
        by_era(&Preset::Number(10.0), &Preset::Number(1.0)),
        "The tick of their clock in milliseconds; RFC 7323 §5.4 has 1 to 1000, Linux since 6.7 also 0.001.",
    ),
    key("window_scaling", Kind::Flag, Preset::Flag(true), "Windows above 65535 bytes (RFC 7323 §2)."),
    key(
        "recovery",
        Kind::Choice(&["prr", "prr-rfc9937", "prr-crb", "rate-halving", "rfc6675", "newreno"]),
        by_era(&Preset::Text("prr"), &Preset::Text("prr-rfc9937")),
        "How much is sent while losses are mended: PRR of RFC 6937 with its slow-start bound, of RFC 9937, or with the conservative bound; Linux's before 3.2; the window at once (RFC 6675); or without SACK (RFC 6582).",
    ),
    key(
        "rescue",
        Kind::Flag,
        by_era(&Preset::Flag(true), &Preset::Flag(false)),
        "Send again what is not known to be lost when there is nothing else to send (RFC 6675 §4, rules 3 and 4).",
    ),
    key(
        "fack",
        Kind::Flag,
        by_era(&Preset::Flag(true), &Preset::Flag(false)),
        "All that lies three segments below the highest selectively acknowledged byte is lost, until reordering is seen: Linux before 4.14.",
    ),
    key(
        "limited_transmit",
        Kind::Flag,
        Preset::Flag(true),
        "Send new data on the first two duplicate ACKs (RFC 3042).",
    ),
    key(
        "f_rto",
        Kind::Flag,
        Preset::Flag(true),
        "Recognise a needless timeout by what is acknowledged after it (RFC 5682).",
    ),
    key(
        "undo",
        Kind::Flag,
        Preset::Flag(true),
        "Take a needless reduction back: by timestamps (RFC 3522, RFC 4015) and by D-SACK (RFC 3708).",
    ),
    key(
        "rack_tlp",
        Kind::Flag,
        by_era(&Preset::Flag(false), &Preset::Flag(true)),
        "Find losses by time and probe for lost tails (RFC 8985).",
    ),
    key("pacing", Kind::Flag, Preset::Flag(false), "Spread segments over the round trip."),
    key(
        "tsq",
        Kind::Choice(&["off", "limit", "rate"]),
        by_era(&Preset::Text("off"), &Preset::Text("rate")),
        "TCP small queues: how much may wait in the host's own queue: what the window allows, `tsq_limit_kib`, or up to that what the connection sends in a moment.",
    ),
    key("tsq_limit_kib", integer(1, 1_048_576), Preset::Integer(4_096), "*tsq* Never more than this, in KiB."),
    key(
        "tsq_pacing_shift",
        integer(0, 20),
        Preset::Integer(10),
        "*tsq \"rate\"* That moment: 2^-N seconds, so 10 is 1 ms; some Wi-Fi drivers have 7 or 8.",
    ),
    key(
        "delayed_ack_segments",
        integer(1, 64),
        Preset::Integer(2),
        "How many full segments are acknowledged together; with 1 there are no delayed ACKs.",
    ),
    key(
        "delayed_ack_min_ms",
        number(1.0, 500.0),
        Preset::Number(40.0),
        "Shortest time that an ACK waits for a second segment, in milliseconds.",
    ),
    key("delayed_ack_max_ms", number(1.0, 500.0), Preset::Number(200.0), "Longest such time in milliseconds."),
    key(
        "quick_ack_segments",
        integer(0, 1_000_000),
        Preset::Integer(16),
        "How many segments at the start of a connection are acknowledged at once.",
    ),
    key(
        "sack_compression",
        Kind::Flag,
        by_era(&Preset::Flag(false), &Preset::Flag(true)),
        "After three duplicates, at most one ACK for out-of-order segments in 1 ms or 5 % of the round trip: Linux since 4.18.",
    ),
    key(
        "rto_estimator",
        Kind::Choice(&["rfc6298", "linux"]),
        Preset::Text("linux"),
        "How round trips become a retransmission timeout: as RFC 6298 has it, or Linux, where the floor is under the variance.",
    ),
    key("rto_min_ms", number(1.0, 3_600_000.0), Preset::Number(200.0), "The floor of that timeout in milliseconds."),
    key("rto_max_ms", number(1.0, 3_600_000.0), Preset::Number(120_000.0), "Its ceiling in milliseconds."),
    key(
        "rto_initial_ms",
        number(1.0, 3_600_000.0),
        Preset::Number(1_000.0),
        "The timeout before the first round trip is measured, in milliseconds.",
    ),
    key(
        "min_rtt_window_s",
        number(0.001, 86_400.0),
        Preset::Number(300.0),
        "How long a lowest round trip counts, in seconds.",
    ),
    key(
        "nagle",
        Kind::Flag,
        Preset::Flag(true),
        "A small segment waits while another is on its way (RFC 896, in Minshall's form).",
    ),
    key(
        "receive_buffer_kib",
        integer(1, 1_048_560),
        Preset::Integer(3_072),
        "The largest window that the receiver advertises, in KiB.",
    ),
    key(
        "send_buffer_overhead_bytes",
        integer(0, 65_536),
        by_era(&Preset::Integer(441), &Preset::Integer(36)),
        "What a full segment takes in the send buffer beyond its data: the 1024 KiB of 2012 hold 555 segments.",
    ),
    key(
        "write_hysteresis",
        Kind::Flag,
        Preset::Flag(true),
        "A writer that has filled the send buffer goes on when a third of it is free, as in Linux; else as soon as there is room.",
    ),
    key(
        "slow_start",
        Kind::Choice(&["standard", "hystart", "hystart++"]),
        Preset::Text("hystart"),
        "How slow start ends, other than by a loss: not at all, by Linux's HyStart, or by RFC 9406.",
    ),
    key(
        "slow_start_after_idle",
        Kind::Flag,
        Preset::Flag(true),
        "Reduce a window that has not been used for longer than a retransmission timeout (RFC 5681 §4.1).",
    ),
    key(
        "last_link",
        Kind::Flag,
        Preset::Flag(true),
        "Hear what clients say of their last links, and answer that it is heard: only where `congestion_control = \"lastlink\"`.",
    ),
];

/// `[hosts.last_link]`.
pub(super) const LAST_LINK: &[Key] = &[
    key(
        "report",
        Kind::Flag,
        Preset::Flag(false),
        "Tell the servers what this host's own link is like: with each SYN, and again when it has changed. Only the law \"lastlink\" at a server listens.",
    ),
    key(
        "knowledge",
        Kind::Choice(&["both", "bandwidth", "error-rate", "measured"]),
        Preset::Text("both"),
        "What the host knows and says: bandwidth and error rate, or one of them (the other is unknown). \"measured\": what its agent measures, kernel hosts only; then the keys below but `validity_s` are not looked at.",
    ),
    key(
        "bandwidth_mbps",
        number(0.001, 4_294_967.0),
        Preset::Absent,
        "The bandwidth that it says, in Mb/s of IP packets, whatever is true; without it, what is true.",
    ),
    key(
        "packet_error_rate",
        number(0.0, 1.0),
        Preset::Absent,
        "The packet error rate that it says, whatever is true; without it, what is true.",
    ),
    key(
        "bandwidth_factor",
        above(0.0, 1_000.0),
        Preset::Number(1.0),
        "A bias: it says this multiple of the bandwidth.",
    ),
    key(
        "error_factor",
        number(0.0, 1e6),
        Preset::Number(1.0),
        "A bias: it says this multiple of the error rate, but at most 1.",
    ),
    key(
        "delay_s",
        number(0.0, 86_400.0),
        Preset::Number(0.0),
        "It says what was true this number of seconds ago, or at the beginning.",
    ),
    key(
        "validity_s",
        integer(1, 32_768),
        Preset::Integer(32),
        "For how many seconds a report holds; it is renewed when half of that is over. Kernel hosts: 8 or more, rounded down to a power of two.",
    ),
];

/// `[[hosts.flows]]`.
pub(super) const FLOW: &[Key] = &[
    key(
        "direction",
        Kind::Choice(&["up", "down"]),
        Preset::Text("up"),
        "Who sends the data: the host (\"up\") or its server (\"down\").",
    ),
    key(
        "kind",
        Kind::Choice(&["bulk", "on-off", "interactive", "transfers", "saturated"]),
        Preset::Text("bulk"),
        "What the application sends: as much as goes; as much as goes, by turns with nothing; small messages as of a person who types; transfers, each over a new connection; or UDP that keeps its sender's queue full. Kernel hosts run \"bulk\" only.",
    ),
    key(
        "to",
        Kind::Node,
        Preset::Absent,
        "*links* The node of the server at the other end; must be given there. `#` is the number of the host within the block, from 1.",
    ),
    key(
        "count",
        integer(1, 1_000),
        Preset::Integer(1),
        "How many connections like this each host of the block has. All hosts together make at most 2000.",
    ),
    key(
        "start_s",
        Kind::Range { to: 86_400.0 },
        Preset::Number(0.0),
        "When the connection opens, in seconds; of a range `[from, to]` each connection draws its own moment.",
    ),
    key(
        "stop_s",
        Kind::Range { to: 86_400.0 },
        Preset::Absent,
        "When the application writes for the last time, in seconds: a moment, or a range as of `start_s`, behind it. What is written by then is still sent.",
    ),
    key(
        "transfer_kib",
        integer(1, 1 << 30),
        Preset::Absent,
        "*bulk* After how many KiB the connection closes; without it, never. *transfers* The size of each transfer in KiB; must be given there.",
    ),
    key(
        "on_s",
        number(1e-6, 86_400.0),
        Preset::Number(1.0),
        "*on-off* Mean length of a while with something to send, in seconds; exponential.",
    ),
    key(
        "off_s",
        number(0.0, 86_400.0),
        Preset::Number(1.0),
        "*on-off, transfers* Mean length of a while without, in seconds; exponential.",
    ),
    key(
        "message_bytes",
        integer(1, 1_000_000),
        Preset::Integer(100),
        "*interactive* Bytes that the application writes at once.",
    ),
    key(
        "gap_ms",
        number(1e-3, 86_400_000.0),
        Preset::Number(1_000.0),
        "*interactive* Mean time from one message to the next in milliseconds; exponential.",
    ),
    key(
        "packet_bytes",
        integer(28, 2_296),
        Preset::Integer(1_500),
        "*saturated* Size of each IP packet in bytes, its 28 bytes of headers included; 2296 is what an 802.11 frame can carry.",
    ),
];

/// The disciplines of a queue.
const QUEUES: &[&str] = &["fifo", "fq_codel"];
const QUEUE_MEANING: &str = "The discipline of that queue: drop-tail, or FQ-CoDel with the parameters of RFC 8290.";
const AS_FORTH: Preset = Preset::Derived("as forth");

const fn key(name: &'static str, kind: Kind, default: Preset, meaning: &'static str) -> Key {
    Key { name, kind, default, meaning }
}

const fn number(from: f64, to: f64) -> Kind {
    Kind::Number { from, to, above: false }
}

const fn above(from: f64, to: f64) -> Kind {
    Kind::Number { from, to, above: true }
}

const fn integer(from: i64, to: i64) -> Kind {
    Kind::Integer { from, to }
}

const fn by_era(y2012: &'static Preset, modern: &'static Preset) -> Preset {
    Preset::ByEra { y2012, modern }
}
