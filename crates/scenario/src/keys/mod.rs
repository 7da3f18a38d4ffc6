//! Every key of a scenario file: the declaration from which the reader, the overrides of the command line, the messages about
//! mistakes, the tables of `docs/guide/scenario*.md` and the JSON Schema come.

mod cells;
mod laws;
mod presets;
mod wifi;
mod wires;
mod words;

pub(crate) use cells::{CellKeys, HearingKeys, RoamKeys};
pub(crate) use laws::place_header;
pub use laws::{LawMaker, make_own_laws_with};
pub(crate) use presets::PresetName;
pub(crate) use wifi::leave_out_rate_of_mcs;

pub use words::{AgentMode, Direction, Era, Knowledge};

use crate::scenario::MAX_HOST_BLOCKS;
use crate::trace::{FASTEST_MBPS, check_rate_mbps};
use lasthop_keys::Preset::{Absent, Required};
use lasthop_keys::{
    OTHERWISE, Of, Presence, Preset, Problem, Section, Takes, When, above, by_word, bytes, choice, choice_or_none,
    derived, ends, flag, integer, integers, key, keys, kib, mbps, milliseconds, name, node, number, probability, range,
    seconds, text, words,
};
use lasthop_laws::{LawName, SlowStart};
use lasthop_network::{
    AckFilter, Band, ChannelWidth, DeviceLimit, Discipline, GuardInterval, LossAt, Modulation, RateControl, RateSet,
    Standard, WifiConfig,
};
use lasthop_policy::{LawConstant, LawPart, PolicyName, PolicySettings, Rts};
use lasthop_tcp::{EcnMode, Recovery, RtoEstimator};
use lasthop_traffic::TrafficKind;
use lasthop_units::{Bytes, Probability, Rate, Span};
use laws::{ChosenLaw, law_in_vain};
use toml::{Table, Value};
use wifi::{
    EARLIER, LATER, STANDARDS, access_rate, band, dsss_in_vain, guard_interval, highest_mcs, in_us, later_standards,
    mcs_of_host_in_vain, protection_in_vain, rate_in_vain, rate_of_host_in_vain, usual_width, width,
};

keys! {
    /// Above the first heading.
    pub(crate) struct ScenarioKeys {
        /// What the scenario shows, in one line: the title of the report.
        name: String = text(200), derived("the file's name", |_| None);
        /// Length of the run in seconds, the warm-up included.
        duration_s: f64 = above(0.0, 86_400.0), 60.0;
        /// The first seconds, left out of every figure of the result; must be shorter than `duration_s`.
        warmup_s: f64 = number(0.0, 86_400.0), 10.0;
        /// Every random draw of the run follows from it.
        seed: u64 = integer(0, i64::MAX), 1;
        /// How often the series are sampled, in milliseconds.
        sample_ms: Span = milliseconds(1.0, 60_000.0), 50.0;
        tables {
            /// The shared last hop.
            access: Option<AccessKeys>, Presence::Unless("links");
            /// What lies behind it.
            path: Option<PathKeys>, Presence::Unless("links");
            /// Access points beside each other, with their stations ([cells](../models/cells.md)).
            cells: Vec<CellKeys>, Presence::IfGiven;
            /// Who hears whom, where not all hear all.
            hearing: Vec<HearingKeys>, Presence::IfGiven;
            /// Links between nodes, instead of access and path.
            links: Vec<LinkKeys>, Presence::IfGiven;
            /// What is different from some moment on.
            changes: Vec<ChangeKeys>, Presence::IfGiven;
            /// The kinds of hosts.
            hosts: Vec<HostKeys>, Presence::Required;
        }
        adjust limit_blocks;
    }

    /// `[access]`.
    pub(crate) struct AccessKeys {
        /// A usual kind of access point: gives the keys below that are not given their values ([presets](scenario-network.md#presets)).
        preset: Option<PresetName> = choice_or_none(PresetName::WORDS), Absent;
        /// The shared last hop: an 802.11 access point with its stations, or one shared link each way. The keys marked *wifi* below
        /// are not looked at with "wired".
        kind: AccessKind = choice(AccessKind::WORDS), "wifi";
        /// *wifi* The standard of the access point, and of hosts without one of their own; "802.11bg" is 802.11g beside 802.11b: ERP
        /// protection (CTS-to-self) and the long slot. "802.11n", "802.11ac" and "802.11ax" send
        /// [A-MPDUs](../models/aggregation.md): the keys marked *n, ac, ax* are theirs.
        standard: Standard = choice(&STANDARDS), "802.11g", when wifi();
        /// *n, ac, ax* The channel's band in GHz: 5, or 2.4 with "802.11n" and "802.11ax", where hosts may be
        /// [of 802.11b and 802.11g](../models/generations.md). Without it, 5; the other standards are at 2.4.
        band_ghz: Option<Band> = band(), Absent, when later();
        /// *n, ac, ax* Width of the channel in MHz: 20 or 40 with "802.11n" and at 2.4 GHz, else 20, 40, 80 or 160.
        channel_width_mhz: Option<ChannelWidth> =
            width(), derived("20 with \"802.11n\" and at 2.4 GHz, else 80", usual_width), when later();
        /// *n, ac, ax* How many streams each transmission has.
        spatial_streams: Option<u8> =
            integer::<u8>(1, Modulation::MOST_STREAMS.into()),
            later_standards(|usual| i64::from(usual.modulation.spatial_streams)),
            when later();
        /// *n, ac, ax* Modulation and coding of each stream (the highest, with rate control): up to 7, 9 or 11. "802.11ac" has no 9 over 20 MHz but with three streams;
        /// with three none of 6 over 80 MHz, none of 9 over 160 MHz.
        mcs: Option<u8> = integer::<u8>(0, 11), derived("the highest", highest_mcs), when later();
        /// *n, ac, ax* Guard interval in microseconds: 0.4 or 0.8; with "802.11ax" 0.8, 1.6 or 3.2.
        guard_interval_us: Option<GuardInterval> =
            guard_interval(), later_standards(|usual| in_us(usual.modulation.guard_interval.span())), when later();
        /// *n, ac, ax* How many packets a transmission carries at most; 256 with "802.11ax" only. Up to 64 there make the window of Block
        /// Ack 64, as of a client that negotiates no more.
        aggregate_frames: Option<u16> =
            integer::<u16>(1, WifiConfig::new(Standard::Ax).aggregate_frames.into()),
            later_standards(|usual| i64::from(usual.aggregate_frames)),
            when later();
        /// *n, ac, ax* How long a transmission of several packets takes at most, in microseconds; a packet that takes longer goes
        /// alone. Linux drivers have some 4000.
        max_ppdu_us: Option<Span> =
            microseconds(in_us(WifiConfig::LEAST_MAX_PPDU), in_us(WifiConfig::MAX_PPDU)),
            later_standards(|usual| in_us(usual.max_ppdu)),
            when later();
        /// *n, ac, ax* Packets to one receiver become one, acknowledged and lost together (A-MSDU), up to this many bytes: at most
        /// 4065 with "802.11n". Without it, or with 0, none.
        amsdu_bytes: Option<Bytes> = bytes(0, Standard::LARGEST_AMSDU.get() as i64), Absent, when later();
        /// *n, ac, ax* How long it takes at least from the start of a packet in a transmission to that of the next, in microseconds:
        /// what receivers ask for. Drivers of Linux ask for 8 (ath9k, ath10k), 16 (brcmfmac) or 0; without it, 0.
        start_spacing_us: Option<Span> = microseconds(0.0, in_us(WifiConfig::MAX_START_SPACING)), Absent, when later();
        /// *wifi* An RTS and a CTS precede transmissions of more bytes than this, headers included; without it, none. Not with
        /// "802.11bg".
        rts_threshold_bytes: Option<Bytes> = bytes(0, Standard::LARGEST_AMPDU.get() as i64), Absent, when wifi();
        /// *wifi* An RTS and a CTS precede a transmission that repeats one without response, of whatever size, as minstrel_ht and
        /// many firmwares have it; without it, they do not. Not with "802.11bg".
        rts_on_retry: Option<bool> = flag(), Absent, when wifi();
        /// *wifi* The access point's CWmax: one less than a power of 2. Without it, 1023. With "802.11n" and later 63, as hostapd
        /// sets it for best effort; stations have 1023.
        access_point_cw_max: Option<u32> =
            integer::<u32>(15, 1_023), later_standards(|usual| i64::from(usual.access_point_window)), when wifi();
        /// *n, ac, ax* How long the access point may send after it has won the medium in best effort, in microseconds: exchanges
        /// follow each other while they fit. Without it, or with 0, one exchange, as hostapd sets it. OpenWrt has 2000.
        access_point_txop_us: Option<Span> = microseconds(0.0, in_us(WifiConfig::MAX_TXOP)), Absent, when later();
        /// *wifi:* the PHY rate of data frames in Mb/s (the highest, with rate control), one that the standard has; with "802.11n" and
        /// later the MCS says it; *wired:* the link's rate.
        rate_mbps: Rate =
            mbps(0.001, 100_000.0),
            derived("54; 11 with \"802.11b\"; the MCS's with \"802.11n\" and later; 100 with \"wired\"", access_rate),
            when vec![When::Not(rate_in_vain)];
        /// *wifi* [Who chooses the PHY rate](#rate-controls), up to `rate_mbps`; with "802.11n" and later up to `mcs`, `spatial_streams`
        /// and `channel_width_mhz` ([rates](../models/rates.md)).
        rate_control: RateControl = choice(RateControl::WORDS), "fixed", when wifi();
        /// *wifi* The rates that rate control may use: "ofdm" 6 to 54 Mb/s, or "all", from 1 Mb/s on.
        rate_set: RateSet = choice(&[("ofdm", RateSet::Ofdm), ("all", RateSet::All)]), "ofdm", when earlier();
        /// The access point's downlink queue in packets; *wired:* that of the link down; upwards the hosts take turns from their
        /// own.
        queue_packets: usize = integer(1, 100_000), derived("as usual with its [discipline](#disciplines-of-queues)", usual_queue_packets);
        /// The [discipline](#disciplines-of-queues) of that queue.
        queue: Discipline = choice(Discipline::WORDS), "fifo";
        /// An [ACK filter](../models/queues.md#ack-filter) in that queue, as CAKE's: pure ACKs that newer ones make needless leave it.
        ack_filter: Option<AckFilter> = choice_or_none(AckFilter::WORDS), Absent;
        /// *codel, fq_codel* Packets that have waited longer than this, in milliseconds, are [marked](../models/ecn.md), if they can be: a
        /// threshold for DCTCP. Without it, CoDel alone marks.
        ce_threshold_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent, when is("queue", ["codel", "fq_codel"]);
        /// *mac80211* Whether all stations get the same airtime; else they take turns.
        airtime_fairness: Option<bool> = flag(), by_word(key!(AccessKeys, queue), [("mac80211", true)]), when is("queue", ["mac80211"]);
        /// *mac80211* What limits the device's queue: "airtime", 5 to 12 ms for each station (AQL), or two "aggregates", as in ath9k.
        device_queue: Option<DeviceLimit> =
            choice(&DEVICE_QUEUES), by_word(key!(AccessKeys, queue), [("mac80211", "airtime")]), when is("queue", ["mac80211"]);
        /// *wifi* Probability that a data frame is lost to noise, each transmission for itself; of an A-MPDU each frame for itself.
        /// Hosts with `snr_db` have other errors.
        frame_error_rate: Probability = probability(), 0.0, when wifi();
        /// *wifi* Probability that a response (ACK, Block Ack, CTS) is lost to noise; without it, none is. Hosts with `snr_db` have
        /// other errors.
        response_error_rate: Option<Probability> = probability(), Absent, when wifi();
        /// *wifi* How many times a frame is sent at most (dot11ShortRetryLimit); 0: no limit. Drivers that have minstrel_ht repeat
        /// by software, up to 30 times (ath9k).
        retry_limit: u8 = integer(0, 255), retry_limit(), when wifi();
        /// *wifi* Preamble of the 802.11b rates.
        preamble: bool =
            choice(&[("long", false), ("short", true)]), "long", when [wifi(), vec![When::Not(dsss_in_vain)]].concat();
        /// *wifi* Rate of what protects from stations of 802.11b, in Mb/s: 1, 2, 5.5 or 11. With "802.11bg", and
        /// [beside newer ones](../models/generations.md) at 2.4 GHz.
        protection_rate_mbps: Rate =
            mbps(0.001, 100_000.0), 2.0, when [wifi(), vec![When::Not(protection_in_vain)]].concat();
        /// *wifi* Rate of frames to all stations in Mb/s, such as beacons of the agents; without it the lowest basic rate: 6 with
        /// "802.11g" over "ofdm" and with "802.11n" and later without stations of 802.11b, else 1.
        broadcast_rate_mbps: Option<Rate> = mbps(0.001, 100_000.0), Absent, when wifi();
        /// *wifi* How a station senses the medium in the SIFS before its own acknowledgement: an answer that it queues then draws a
        /// backoff ("busy"), or goes a DIFS after the acknowledgement without one ("idle", as in ns-3). It matters with
        /// `turnaround_us` below 10 only.
        before_acknowledgement: bool = choice(&[("busy", false), ("idle", true)]), "busy", when wifi();
        /// *wifi* How long bystanders wait after a collision: EIFS, or DIFS as in ns-3.
        after_collision: bool = choice(&[("eifs", false), ("difs", true)]), "eifs", when wifi();
        /// *wired* Delay of the link in milliseconds, each way.
        delay_ms: Span = milliseconds(0.0, 60_000.0), 0.0, when is("kind", ["wired"]);
        /// *wifi* By how many dB a frame must exceed all others together, at its receiver, to be received nevertheless (capture).
        /// Without it, 10. With [cells or levels of hearing](#cells) only.
        capture_db: Option<f64> = above(0.0, 60.0), Absent, when [wifi(), vec![When::Not(cells::alone_in_vain)]].concat();
        /// *wifi* The power of all transmitters in dBm, which with the places says who hears whom. Without it, 20.
        tx_power_dbm: Option<f64> = number(-20.0, 40.0), Absent, when [wifi(), vec![When::Not(cells::place_in_vain)]].concat();
        /// *wifi* The power in dBm from which a transmission is sensed. Without it, -82.
        sense_dbm: Option<f64> = number(-110.0, -20.0), Absent, when [wifi(), vec![When::Not(cells::place_in_vain)]].concat();
        /// *wifi* The power in dBm from which it is also received, with its duration field; not below `sense_dbm`. Without it, as
        /// that.
        hear_dbm: Option<f64> = number(-110.0, -20.0), Absent, when [wifi(), vec![When::Not(cells::place_in_vain)]].concat();
        /// *ax* Spatial reuse: the power in dBm from which transmissions of other cells are sensed, -82 to -62 (OBSS_PD). It bounds
        /// `tx_power_dbm`, which is then the highest permitted if it is not given. Without it, as `sense_dbm`.
        obss_pd_dbm: Option<f64> =
            number(-82.0, -62.0), Absent, when [wifi(), is("standard", ["802.11ax"]), vec![When::Not(cells::place_in_vain)]].concat();
        adjust |section| {
            section.presets = presets::of("access");
            section.preset_pairs = vec![(key!(AccessKeys, queue_packets), key!(AccessKeys, queue))];
        };
    }

    /// `[path]`.
    pub(crate) struct PathKeys {
        /// Delay between the access point and the servers in milliseconds, there and back; half each way.
        rtt_ms: Span = milliseconds(0.0, 60_000.0), 20.0;
        /// Rate of that path in Mb/s, each way.
        rate_mbps: Rate = mbps(0.001, 100_000.0), 1_000.0;
        /// Probability that a packet from a host to a server is lost at random on the path.
        loss: Probability = probability(), 0.0;
        /// The queue at each end of the path in packets, drop-tail.
        queue_packets: usize = integer(1, 1_000_000), 1_000;
        /// The same as `loss` from a server to a host; without it, none is lost.
        back_loss: Option<Probability> = probability(), Absent;
        /// How many packets from a host to a server are lost in a row, on average: losses come [in bursts](#paths-as-they-are). Without
        /// it, each packet is lost for itself.
        loss_burst_packets: Option<f64> = number(1.0, 1e6), Absent, when vec![When::Not(wires::burst_in_vain)];
        /// The same from a server to a host.
        back_loss_burst_packets: Option<f64> =
            number(1.0, 1e6), derived(AS_FORTH, |path| path.get("loss_burst_packets").cloned()),
            when vec![When::Not(wires::back_burst_in_vain)];
        /// [Jitter](#paths-as-they-are) from a host to a server: the standard deviation of the delay, in milliseconds. Without it, none.
        jitter_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// The same from a server to a host.
        back_jitter_ms: Option<Span> =
            milliseconds(0.0, 60_000.0), derived(AS_FORTH, |path| path.get("jitter_ms").cloned());
        /// Whether a packet with a shorter delay overtakes those before it. Without it, packets of a host keep their order.
        jitter_reorders: Option<bool> = flag(), Absent, when vec![When::Not(wires::jitter_reorders_in_vain)];
        /// The share of packets, from a host to a server, that do not wait for the delay, and so [overtake](#paths-as-they-are) others.
        reorder: Option<Probability> = probability(), Absent, when vec![When::Not(wires::reorder_in_vain)];
        /// The same from a server to a host.
        back_reorder: Option<Probability> = probability(), Absent, when vec![When::Not(wires::back_reorder_in_vain)];
        /// The share of packets, from a host to a server, that [come twice](#paths-as-they-are).
        duplicate: Option<Probability> = probability(), Absent;
        /// The same from a server to a host.
        back_duplicate: Option<Probability> = probability(), Absent;
        /// Whether it clears the ECN field of all packets, each way, so that [no mark](../models/ecn.md) comes through. Without it, no.
        bleach_ecn: Option<bool> = flag(), Absent;
    }

    /// `[[links]]`.
    pub(crate) struct LinkKeys {
        /// The two nodes that it joins, such as `["N1", "R"]`; a node is there as soon as a link names it. *Forth* is from the
        /// first to the second, *back* from the second to the first.
        between: [String; 2] = ends(), Required;
        /// How many links are alike: `#` in a name is the number of the link within its block, from 1, so that `count = 3` with
        /// `["A#", "R"]` joins A1, A2 and A3 with R.
        count: usize = integer(1, 250), 1;
        /// Its rate forth in Mb/s.
        rate_mbps: Rate = mbps(0.001, 100_000.0), 100.0;
        /// Its delay forth in milliseconds.
        delay_ms: Span = milliseconds(0.0, 60_000.0), 0.0;
        /// The queue in front of it, forth, in packets.
        queue_packets: usize = integer(1, 1_000_000), 100;
        /// The [discipline](#disciplines-of-queues) of that queue.
        queue: Discipline = choice(&disciplines_of_links()), "fifo";
        /// An [ACK filter](../models/queues.md#ack-filter) in that queue: pure ACKs that newer ones make needless leave it.
        ack_filter: Option<AckFilter> = choice_or_none(AckFilter::WORDS), Absent;
        /// *codel, fq_codel* Packets that have waited longer than this, in milliseconds, are [marked](../models/ecn.md), if they can be,
        /// in either queue. Without it, CoDel alone marks.
        ce_threshold_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// Probability that a packet is lost at random, forth, each packet for itself.
        loss: Probability = probability(), 0.0;
        /// Where that loss is: before the queue, so that a lost packet takes neither room nor time, or after it, as an error of
        /// transmission.
        loss_at: LossAt = choice(&LOST), "after";
        /// Its rate back in Mb/s.
        back_rate_mbps: Rate = mbps(0.001, 100_000.0), derived(AS_FORTH, |link| link.get("rate_mbps").cloned());
        /// Its delay back in milliseconds.
        back_delay_ms: Span = milliseconds(0.0, 60_000.0), derived(AS_FORTH, |link| link.get("delay_ms").cloned());
        /// The queue in front of it, back, in packets.
        back_queue_packets: usize = integer(1, 1_000_000), derived(AS_FORTH, |link| link.get("queue_packets").cloned());
        /// The discipline of that queue.
        back_queue: Discipline = choice(&disciplines_of_links()), derived(AS_FORTH, |link| link.get("queue").cloned());
        /// An ACK filter in that queue.
        back_ack_filter: Option<AckFilter> =
            choice_or_none(AckFilter::WORDS), derived(AS_FORTH, |link| link.get("ack_filter").cloned());
        /// Probability that a packet is lost at random, back.
        back_loss: Probability = probability(), 0.0;
        /// Where that loss is.
        back_loss_at: LossAt = choice(&LOST), derived(AS_FORTH, |link| link.get("loss_at").cloned());
        /// How many packets are lost in a row, on average, forth: losses come [in bursts](#paths-as-they-are). Without it, each packet
        /// is lost for itself.
        loss_burst_packets: Option<f64> = number(1.0, 1e6), Absent, when vec![When::Not(wires::burst_in_vain)];
        /// The same back.
        back_loss_burst_packets: Option<f64> =
            number(1.0, 1e6), derived(AS_FORTH, |link| link.get("loss_burst_packets").cloned()),
            when vec![When::Not(wires::back_burst_in_vain)];
        /// [Jitter](#paths-as-they-are) forth: the standard deviation of the delay, in milliseconds. Without it, none.
        jitter_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// Jitter back in milliseconds.
        back_jitter_ms: Option<Span> =
            milliseconds(0.0, 60_000.0), derived(AS_FORTH, |link| link.get("jitter_ms").cloned());
        /// Whether a packet with a shorter delay overtakes those before it, both ways. Without it, packets keep their order.
        jitter_reorders: Option<bool> = flag(), Absent, when vec![When::Not(wires::jitter_reorders_in_vain)];
        /// The share of packets that do not wait for the delay, and so [overtake](#paths-as-they-are) others, forth.
        reorder: Option<Probability> = probability(), Absent, when vec![When::Not(wires::reorder_in_vain)];
        /// The same back.
        back_reorder: Option<Probability> = probability(), Absent, when vec![When::Not(wires::back_reorder_in_vain)];
        /// The share of packets that [come twice](#paths-as-they-are), forth.
        duplicate: Option<Probability> = probability(), Absent;
        /// The same back.
        back_duplicate: Option<Probability> = probability(), Absent;
        /// Whether it clears the ECN field of all packets, both ways, so that [no mark](../models/ecn.md) comes through. Without it,
        /// no.
        bleach_ecn: Option<bool> = flag(), Absent;
    }

    /// `[[changes]]`.
    #[derive(Clone)]
    pub(crate) struct ChangeKeys {
        /// When, in seconds from the start of the run; of a trace its beginning.
        at_s: Span =
            seconds(0.0, 86_400.0), derived("must be given; 0 with `trace` or `opportunities_ms`", begin_of_trace), when vec![When::Not(changes_in_vain)];
        /// The path, from this file, of a [file with the changes](trace.md), in place of keys below `hosts`: CSV, or mahimahi's
        /// format.
        trace: Option<String> = text(4_096), Absent, when vec![When::Not(changes_in_vain)];
        /// The digest of a long trace: the scenario in a result has it. With it, a file that has changed since is refused.
        trace_digest: Option<String> = text(64), Absent, when vec![When::Given("trace")];
        /// *link, path, access* Instead of a rate, [opportunities](trace.md#opportunities) in milliseconds from `at_s` on, as in
        /// mahimahi's format, parted by spaces; `200*10` is ten at 200. It begins anew behind the last one, unless `...` follows.
        opportunities_ms: Option<String> = text(400_000), Absent;
        /// What changes: a link of `[[links]]`; or without links the path, the wired access, or stations of the Wi-Fi.
        of: Part = choice(Part::WORDS), derived("`\"link\"` with `between`, `\"hosts\"` with `hosts`, else `\"path\"`", part);
        /// *link* The nodes that the link joins, `#` replaced by the number; must be given. *Forth* is from the first named here to
        /// the second.
        between: Option<[String; 2]> = ends(), Absent;
        /// *hosts* The numbers of the hosts; without it, all.
        hosts: Option<Vec<usize>> = integers::<usize>(0, 249), Absent;
        /// *link* The rate forth in Mb/s. *path, access* That of both ways. *hosts* The stations' PHY rate, both ways: the highest,
        /// with rate control, which begins anew. 0 breaks a link or a station's: all is lost until another rate is given.
        /// [Held](scenario-changes.md#broken-or-held), nothing is lost.
        rate_mbps: Option<Rate> = rate_or_break(), Absent;
        /// *link* The rate back in Mb/s.
        back_rate_mbps: Option<Rate> = rate_or_break(), Absent;
        /// *link* The delay forth in milliseconds. *access* That of both ways.
        delay_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// *link* The delay back in milliseconds.
        back_delay_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// *path* The delay there and back in milliseconds, but of hosts with a `path_rtt_ms` of their own.
        rtt_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// *link* The probability that a packet is lost at random, forth. *path* From a host to a server.
        loss: Option<Probability> = probability(), Absent;
        /// *link* The same back.
        back_loss: Option<Probability> = probability(), Absent;
        /// [Held](scenario-changes.md#broken-or-held) until it is `false`: nothing is sent, and what comes waits in the queues. *link*
        /// Forth. *path, access, hosts* Both ways.
        held: Option<bool> = flag(), Absent;
        /// *link* The same back.
        back_held: Option<bool> = flag(), Absent;
        /// *hosts* The stations' MCS, both ways; with "802.11n" and later. The highest, with rate control, which begins anew.
        mcs: Option<u8> = integer::<u8>(0, 11), Absent;
        /// *hosts* The probability that a data frame from the station or to it is lost to noise. Not of hosts with `snr_db`.
        frame_error_rate: Option<Probability> = probability(), Absent;
        /// *hosts* The stations' SNR in dB, both ways: they walk. Of hosts with `snr_db` only.
        snr_db: Option<f64> = number(-10.0, 60.0), Absent;
    }

    /// `[[hosts]]`.
    pub(crate) struct HostKeys {
        /// A usual kind of host: gives the keys below that are not given their values ([presets](scenario-network.md#presets)).
        preset: Option<PresetName> = choice_or_none(PresetName::WORDS), Absent;
        /// What tables call them: "laptop" is laptop, or laptop-1, laptop-2 and so on if `count` is above 1. Different from other
        /// blocks' names; without it, hosts have numbers.
        name: Option<String> = host_name(), Absent;
        /// How many hosts are of this kind; 0 leaves the block out. All blocks together make 1 to 250 hosts.
        count: usize = integer(0, 250), 1;
        /// The stack's defaults: "2012" has no TCP small queues, no pacing, no RACK, and big device queues, as the phones of the
        /// papers; "modern" is Linux today.
        era: Era = choice(Era::WORDS), "2012";
        /// *wifi* Which access point they belong to: the name of one of `[[cells]]`; must be given if there are several.
        cell: Option<String> = node(), Absent, when station();
        /// *wifi* Where they are, in metres, if the access points have places.
        x_m: Option<f64> = number(-10_000.0, 10_000.0), Absent, when station();
        /// *wifi* The same, across; without it, 0.
        y_m: Option<f64> = number(-10_000.0, 10_000.0), Absent, when [station(), vec![When::Given("x_m")]].concat();
        /// *links* The node that the hosts of this block sit on; must be given there. `#` is the number of the host within the
        /// block, from 1.
        node: Option<String> = node(), Absent;
        /// The host's own round trip between the access point and its servers in milliseconds, instead of `path.rtt_ms`; of a range
        /// `[from, to]` each host draws its own.
        path_rtt_ms: Option<(Span, Span)> = spans(60_000.0, 1e3), Absent;
        /// How often each host draws that anew, in seconds; without it, once for the whole run.
        path_rtt_change_s: Option<Span> = seconds(0.001, 86_400.0), Absent, when vec![When::Given("path_rtt_ms")];
        /// The host's own [jitter](scenario-network.md#paths-as-they-are) on the path in milliseconds, instead of `path.jitter_ms`.
        path_jitter_ms: Option<Span> = milliseconds(0.0, 60_000.0), Absent;
        /// *wifi* From the MAC's reception of a packet to the host's answer at its MAC, in microseconds; of a range `[from, to]`
        /// each packet draws its own, and packets keep their order. Kernel hosts: what this machine takes by itself is part of it
        /// ([turnaround](../models/medium.md#turnaround)).
        turnaround_us: (Span, Span) = spans(1_000_000.0, 1e6), by_era((200.0, 1_000.0), (50.0, 500.0)), when station();
        /// The host's own transmit queue in packets. *links:* not looked at, for the queue of the link is the host's.
        queue_packets: usize = integer(1, 100_000), 1_000, when vec![When::No("links")];
        /// The send buffer of each connection in KiB: the upper end of the kernel's autotuning.
        send_buffer_kib: Bytes = kib(8, 1_048_576), by_era(1_024, 4_096);
        /// *wifi* Its standard, if [older than the access point's](../models/generations.md): at 5 GHz "802.11n" or "802.11ac", at
        /// 2.4 GHz "802.11b", "802.11g" or "802.11n". Of "802.11bg" `rate_mbps` says it.
        standard: Option<Standard> = choice(&STANDARDS), Absent, when station();
        /// *wifi* PHY rate of this host's data frames in Mb/s, both ways, where it differs from `access.rate_mbps`: a station far
        /// from the access point. With "802.11bg" a host at 1, 2, 5.5 or 11 is an 802.11b station. Not of hosts of "802.11n" and
        /// later; older ones beside them have 54, or 11 with "802.11b".
        rate_mbps: Option<Rate> =
            mbps(0.001, 100_000.0), Absent, when [station(), vec![When::Not(rate_of_host_in_vain)]].concat();
        /// *wifi* Width of this host's frames in MHz, both ways, where it differs from `access.channel_width_mhz`; the widest, with
        /// rate control. Of hosts of "802.11n" and later; without it, the widest that both have.
        channel_width_mhz: Option<ChannelWidth> = width(), Absent, when later_station();
        /// *wifi* How many streams this host's frames have, both ways, where it is fewer than `access.spatial_streams`; the most,
        /// with rate control. Of hosts of "802.11n" and later.
        spatial_streams: Option<u8> = integer::<u8>(1, Modulation::MOST_STREAMS.into()), Absent, when later_station();
        /// *wifi* MCS of this host's data frames, both ways, where it differs from `access.mcs`; the highest, with rate control. Of
        /// hosts of "802.11n" and later; without it, the highest of both.
        mcs: Option<u8> = integer::<u8>(0, 11), Absent, when later_station();
        /// *wifi* Probability that a data frame from this host or to it is lost to noise, where it differs from
        /// `access.frame_error_rate`.
        frame_error_rate: Option<Probability> = probability(), Absent, when station();
        /// *wifi* Signal-to-noise ratio of this host, both ways, in dB: of one stream over 20 MHz. Its frames get lost as their MCS,
        /// streams and width say ([rates](../models/rates.md)), instead of `frame_error_rate`, which it cannot have as well, and of
        /// `access.response_error_rate`. With "802.11n" and later; not of hosts of "802.11b".
        snr_db: Option<f64> = number(-10.0, 60.0), Absent, when station_of(LATER);
        /// The TCP congestion control, a law of lasthop: "newreno", "cubic", or one of those that [the scenario file](scenario.md)
        /// names. Kernel hosts also: any other that the kernel offers (`sysctl net.ipv4.tcp_available_congestion_control`), and as
        /// "kernel-cdg" one whose name a law of lasthop has too. Or [a law of your own](own-law.md): the path of its header, such
        /// as "./mine.h", from this file.
        congestion_control: String = name(), "cubic", when vec![When::Not(law_in_vain)];
        /// The digest of that header: the scenario in a result has it. With it, a header that has changed since is refused.
        law_digest: Option<String> = text(64), Absent;
        /// What the host's agent does: nothing runs at all, it only looks and sends nothing, it also decides but changes nothing,
        /// or it controls.
        agent: AgentMode = choice(AgentMode::WORDS), derived("`\"control\"`; `\"off\"` with policy \"none\"", agent);
        /// *wifi* "auto": its agent has RTS precede this host's aggregates while several hosts send, as an agent with
        /// [`radio.rts`](agent-configuration.md#rts-where-aggregates-collide) does; without it, "off". The access point keeps
        /// `access.rts_threshold_bytes`. Simulated hosts only.
        rts: Option<Rts> =
            choice(Rts::WORDS), Absent, when [later_station(), is(key!(HostKeys, agent), [AgentMode::Control.as_str()])].concat();
        /// *lasthop* A part of the policy's law that is left out, to see [what it is worth](../models/policy-lasthop-parts.md).
        /// Simulated hosts only: agents have no such key.
        leave_out: Option<LawPart> =
            choice_or_none(LawPart::WORDS), Absent, when is(key!(PolicySettings, policy), [PolicyName::Lasthop.as_str()]);
        /// *lasthop* A number of the policy's law that is times `scale`, to see [what it is worth](../models/policy-lasthop-parts.md).
        /// Simulated hosts only.
        scaled: Option<LawConstant> =
            choice_or_none(LawConstant::WORDS), Absent, when is(key!(PolicySettings, policy), [PolicyName::Lasthop.as_str()]);
        /// *lasthop* The factor of `scaled`; without it, 1.
        scale: Option<f64> = number(0.1, 10.0), Absent, when vec![When::Given(key!(HostKeys, scaled))];
        tables {
            /// The stack at both ends of its connections.
            tcp: TcpKeys, Presence::Always;
            /// What it knows and says of its own link.
            last_link: Option<LastLinkKeys>, Presence::IfGiven;
            /// What it sends.
            flows: Vec<FlowKeys>, Presence::Always;
            /// When it goes to another access point ([roaming](../models/cells.md#roaming)).
            roam: Vec<RoamKeys>, Presence::IfGiven;
        }
        with {
            /// What its agent decides by.
            policy: PolicySettings;
            /// The law that its congestion control is.
            law: ChosenLaw;
        }
        adjust |host| {
            host.key_mut(key!(PolicySettings, policy)).when = with_agent();
            for key in [key!(HostKeys, leave_out), key!(HostKeys, scaled), key!(HostKeys, scale)] {
                host.key_mut(key).may_wait = true;
            }
            host.presets = presets::of("hosts");
        };
    }

    /// `[hosts.tcp]`: one for each field of [`lasthop_tcp::Config`] but the send buffer, which is a key of the host.
    pub(crate) struct TcpKeys {
        /// Data in a full segment without options; timestamps take 12 bytes of it.
        mss_bytes: Bytes = bytes(64, 65_495), 1_460;
        /// The window after the handshake: 10 with RFC 6928, 2 to 4 with RFC 5681.
        initial_window_segments: u32 = integer(1, 1_000), 10;
        /// Selective acknowledgements (RFC 2018, with D-SACK of RFC 2883).
        sack: bool = flag(), true;
        /// Timestamps in every segment (RFC 7323 §3).
        timestamps: bool = flag(), true;
        /// The tick of their clock in milliseconds; RFC 7323 §5.4 has 1 to 1000, Linux since 6.7 also 0.001.
        timestamp_granularity_ms: Span =
            milliseconds(0.001, 1_000.0), by_era(10.0, 1.0), when is("timestamps", ["true"]);
        /// Windows above 65535 bytes (RFC 7323 §2).
        window_scaling: bool = flag(), true;
        /// How much is sent while losses are mended: PRR of RFC 6937 with its slow-start bound, of RFC 9937, or with the
        /// conservative bound; Linux's before 3.2; the window at once (RFC 6675); or without SACK (RFC 6582).
        recovery: Recovery = choice(&Recovery::ALL.map(|one| (one.as_str(), one))), by_era("prr", "prr-rfc9937");
        /// Send again what is not known to be lost when there is nothing else to send (RFC 6675 §4, rules 3 and 4).
        rescue: bool = flag(), by_era(true, false);
        /// All that lies three segments below the highest selectively acknowledged byte is lost, until reordering is seen: Linux
        /// before 4.14.
        fack: bool = flag(), by_era(true, false);
        /// Send new data on the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool = flag(), true;
        /// Recognise a needless timeout by what is acknowledged after it (RFC 5682).
        f_rto: bool = flag(), true;
        /// Take a needless reduction back: by timestamps (RFC 3522, RFC 4015) and by D-SACK (RFC 3708).
        undo: bool = flag(), true;
        /// Find losses by time and probe for lost tails (RFC 8985).
        rack_tlp: bool = flag(), by_era(false, true);
        /// Spread segments over the round trip.
        pacing: bool = flag(), false;
        /// TCP small queues: how much may wait in the host's own queue: what the window allows, `tsq_limit_kib`, or up to that two
        /// packets of what the connection sends in a moment.
        tsq: SmallQueues = choice(SmallQueues::WORDS), by_era("off", "rate");
        /// *tsq* Never more than this, in KiB.
        tsq_limit_kib: Bytes = kib(1, 1_048_576), 4_096, when is("tsq", ["limit", "rate"]);
        /// *tsq "rate"* That moment: 2^-N seconds, so 10 is 1 ms; some Wi-Fi drivers have 7 or 8.
        tsq_pacing_shift: u8 = integer(0, 20), 10, when is("tsq", ["rate"]);
        /// How many full segments are acknowledged together. 1 has no delayed ACKs. Above 2 is GRO: it joins up to so many segments of
        /// a burst, which then have one ACK; what comes alone is acknowledged as with 2.
        delayed_ack_segments: u32 = integer(1, 64), 2;
        /// Shortest time that an ACK waits for a second segment, in milliseconds.
        delayed_ack_min_ms: Span = milliseconds(1.0, 500.0), 40.0;
        /// Longest such time in milliseconds.
        delayed_ack_max_ms: Span = milliseconds(1.0, 500.0), 200.0;
        /// How many segments at the start of a connection are acknowledged at once.
        quick_ack_segments: u32 = integer(0, 1_000_000), 16;
        /// After three duplicates, at most one ACK for out-of-order segments in 1 ms or 5 % of the round trip: Linux since 4.18.
        sack_compression: bool = flag(), by_era(false, true);
        /// How round trips become a retransmission timeout: as RFC 6298 has it, or Linux, where the floor is under the variance.
        rto_estimator: RtoEstimator = choice(&RtoEstimator::ALL.map(|one| (one.as_str(), one))), "linux";
        /// The floor of that timeout in milliseconds.
        rto_min_ms: Span = milliseconds(1.0, 3_600_000.0), 200.0;
        /// Its ceiling in milliseconds.
        rto_max_ms: Span = milliseconds(1.0, 3_600_000.0), 120_000.0;
        /// The timeout before the first round trip is measured, in milliseconds.
        rto_initial_ms: Span = milliseconds(1.0, 3_600_000.0), 1_000.0;
        /// How long a lowest round trip counts, in seconds.
        min_rtt_window_s: Span = seconds(0.001, 86_400.0), 300.0;
        /// A small segment waits while another is on its way (RFC 896, in Minshall's form).
        nagle: bool = flag(), true;
        /// The largest window that the receiver advertises, in KiB.
        receive_buffer_kib: Bytes = kib(1, 1_048_560), 3_072;
        /// What a full segment takes in the send buffer beyond its data: the 1024 KiB of 2012 hold 555 segments.
        send_buffer_overhead_bytes: Bytes = bytes(0, 65_536), by_era(441, 36);
        /// A writer that has filled the send buffer goes on when a third of it is free, as in Linux; else as soon as there is room.
        write_hysteresis: bool = flag(), true;
        /// [Explicit congestion notification](../models/ecn.md): its connections ask for it, and servers agree. Queues then mark their
        /// packets where they would drop them. "on", RFC 3168: a mark is told until the sender has heard it; "accurate", RFC 9768: marks
        /// are counted.
        ecn: EcnMode = choice(EcnMode::WORDS), "off";
        /// How slow start ends, other than by a loss: not at all, by Linux's HyStart, or by RFC 9406. In Linux only CUBIC has
        /// HyStart.
        slow_start: SlowStart = choice(&SLOW_STARTS),
            by_word(key!(HostKeys, congestion_control), [("cubic", "hystart"), (OTHERWISE, "standard")]);
        /// Reduce a window that has not been used for longer than a retransmission timeout (RFC 5681 §4.1).
        slow_start_after_idle: bool = flag(), true;
        /// Hear what clients say of their last links, and answer that it is heard: only where `congestion_control = "lastlink"`.
        last_link: bool = flag(), true, when has_law(LawName::Lastlink);
    }

    /// `[hosts.last_link]`.
    pub(crate) struct LastLinkKeys {
        /// Report this host's link to its servers: with each SYN, and again when it has changed. Only servers with the law
        /// "lastlink" listen.
        report: bool = flag(), false;
        /// What the host knows and says: bandwidth and error rate, or one of them (the other is unknown). "measured": what its
        /// agent measures, kernel hosts only; then the keys below but `validity_s` are not looked at.
        knowledge: Knowledge = choice(Knowledge::WORDS), "both", when is("report", ["true"]);
        /// The bandwidth that it reports, in Mb/s of IP packets; without it, the true one.
        bandwidth_mbps: Option<Rate> = mbps(0.001, 4_294_967.0), Absent, when reported(["both", "bandwidth"]);
        /// The packet error rate that it reports; without it, the true one.
        packet_error_rate: Option<Probability> = probability(), Absent, when reported(["both", "error-rate"]);
        /// A bias: it says this multiple of the bandwidth.
        bandwidth_factor: f64 = above(0.0, 1_000.0), 1.0, when reported(["both", "bandwidth"]);
        /// A bias: it says this multiple of the error rate, but at most 1.
        error_factor: f64 = number(0.0, 1e6), 1.0, when reported(["both", "error-rate"]);
        /// It says what was true this number of seconds ago, or at the beginning.
        delay_s: Span = seconds(0.0, 86_400.0), 0.0, when reported(["both", "bandwidth", "error-rate"]);
        /// For how many seconds a report holds; it is renewed when half of that is over. Kernel hosts: 8 or more, rounded down to a
        /// power of two.
        validity_s: u64 = integer(1, 32_768), 32, when is("report", ["true"]);
    }

    /// `[[hosts.flows]]`.
    pub(crate) struct FlowKeys {
        /// Who sends the data: the host ("up") or its server ("down").
        direction: Direction = choice(Direction::WORDS), "up";
        /// *links* The node of the server at the other end; must be given there. `#` is the number of the host within the block,
        /// from 1.
        to: Option<String> = node(), Absent;
        /// How many connections like this each host of the block has. All hosts together make at most 2000.
        count: usize = integer(1, 1_000), 1;
        /// When the connection opens, in seconds; of a range `[from, to]` each connection draws its own moment.
        start_s: (Span, Span) = spans(86_400.0, 1.0), 0.0;
        /// When the application writes for the last time, in seconds: a moment, or a range as of `start_s`, behind it. What is
        /// written by then is still sent.
        stop_s: Option<(Span, Span)> = spans(86_400.0, 1.0), Absent;
        /// *n, ac, ax* DSCP of its packets, both ways: it says the [access category](../models/aggregation.md#access-categories). 46 (EF)
        /// is voice, 34 (AF41) video, 8 (CS1) background; without it 0, best effort. Hosts of "802.11b" and "802.11g" have best effort
        /// alone.
        dscp: Option<u8> = integer::<u8>(0, 63), Absent, when station_of(LATER);
        with {
            /// What the application sends.
            traffic: TrafficKind;
        }
    }
}

words! {
    /// What the hosts share.
    pub(crate) enum AccessKind {
        Wifi = "wifi",
        Wired = "wired",
    }

    /// What a block of `[[changes]]` is about.
    pub(crate) enum Part {
        Link = "link",
        Path = "path",
        Access = "access",
        Hosts = "hosts",
    }

    /// TCP small queues.
    pub(crate) enum SmallQueues {
        Off = "off",
        Limit = "limit",
        Rate = "rate",
    }
}

const DEVICE_QUEUES: [(&str, DeviceLimit); 2] =
    [("airtime", DeviceLimit::Airtime), ("aggregates", DeviceLimit::Aggregates)];
const LOST: [(&str, LossAt); 2] = [("before", LossAt::BeforeQueue), ("after", LossAt::AfterQueue)];
const AS_FORTH: &str = "as forth";
const SLOW_STARTS: [(&str, SlowStart); 3] =
    [("standard", SlowStart::Standard), ("hystart", SlowStart::HyStart), ("hystart++", SlowStart::HyStartPlusPlus)];

/// A number, or a range of numbers, of which so many are a second.
fn spans(to: f64, per_second: f64) -> Takes<(Span, Span)> {
    range(to).map(move |(from, to)| (Span::from_secs_f64(from / per_second), Span::from_secs_f64(to / per_second)))
}

fn by_era<T: Into<Preset>>(y2012: T, modern: T) -> Preset {
    by_word(key!(HostKeys, era), [("2012", y2012), ("modern", modern)])
}

fn microseconds(from: f64, to: f64) -> Takes<Span> {
    number(from, to).map(|micros| Span::from_secs_f64(micros / 1e6))
}

fn host_name() -> Takes<String> {
    text(30).and_then(|name: String| {
        let is_legal = name.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_".contains(&letter));
        if is_legal {
            Ok(name)
        } else {
            Err(Problem::new("cannot be a host's name", "up to 30 letters, digits, - and _"))
        }
    })
}

/// The limit that goes with the rate control.
fn retry_limit() -> Preset {
    let usual = |(word, control): &(&'static str, RateControl)| (*word, i64::from(control.usual_retry_limit()).into());
    Preset::ByWord(key!(AccessKeys, rate_control), RateControl::WORDS.iter().map(usual).collect())
}

/// The limit that goes with the discipline of the queue.
fn usual_queue_packets(access: &Table) -> Option<Value> {
    let given = Discipline::WORDS.iter().find(|(known, _)| word(access, key!(AccessKeys, queue)) == Some(known));
    let discipline = given.map_or(Discipline::default(), |(_, discipline)| *discipline);
    Some(Value::Integer(discipline.usual_packets() as i64))
}

/// Those that a wired link may have.
fn disciplines_of_links() -> Vec<(&'static str, Discipline)> {
    Discipline::WORDS.iter().copied().filter(|(_, discipline)| !discipline.is_of_wifi()).collect()
}

/// A block of hosts has a hundred keys, and most may be left out of a run by `count = 0`.
fn limit_blocks(scenario: &mut Section) {
    let hosts = scenario.children.iter_mut().filter(|child| child.name == key!(ScenarioKeys, hosts));
    hosts.for_each(|child| child.most = MAX_HOST_BLOCKS);
}

/// The same with the `agent` of each host that its policy determines.
pub(crate) fn leave_out_agents(scenario: &mut Table) {
    let hosts = scenario.get_mut(key!(ScenarioKeys, hosts)).and_then(Value::as_array_mut);
    for host in hosts.into_iter().flatten().filter_map(Value::as_table_mut) {
        if host.get(key!(HostKeys, agent)) == agent(host).as_ref() {
            host.remove(key!(HostKeys, agent));
        }
    }
}

/// What a block of changes is about, by its other keys.
fn part(change: &Table) -> Option<Value> {
    let of = match [key!(ChangeKeys, between), key!(ChangeKeys, hosts)].map(|key| change.contains_key(key)) {
        [true, _] => "link",
        [false, true] => "hosts",
        [false, false] => "path",
    };
    Some(of.into())
}

/// A trace begins with the run, if nothing else is given.
fn begin_of_trace(change: &Table) -> Option<Value> {
    let keys = [key!(ChangeKeys, trace), key!(ChangeKeys, opportunities_ms)];
    keys.iter().any(|key| change.contains_key(*key)).then_some(Value::Float(0.0))
}

/// A rate of a change.
fn rate_or_break() -> Takes<Rate> {
    number(0.0, FASTEST_MBPS).and_then(|rate| check_rate_mbps(rate).map(|()| Rate::from_mbps(rate)))
}

fn agent(host: &Table) -> Option<Value> {
    let mode = if word(host, key!(PolicySettings, policy))? == "none" { AgentMode::Off } else { AgentMode::Control };
    Some(mode.as_str().into())
}

impl ChangeKeys {
    /// Sets the key of a trace's column to a checked number.
    ///
    /// # Panics
    /// If it is no key of a column.
    pub(crate) fn set(&mut self, column: &str, number: f64) {
        let rate = || Some(Rate::from_mbps(number));
        let span = || Some(Span::from_secs_f64(number / 1e3));
        let probability = || Some(Probability::new(number).expect("a checked probability is from 0 to 1"));
        let flag = Some(number != 0.0);
        match column {
            "at_s" => self.at_s = Span::from_secs_f64(number),
            "rate_mbps" => self.rate_mbps = rate(),
            "back_rate_mbps" => self.back_rate_mbps = rate(),
            "delay_ms" => self.delay_ms = span(),
            "back_delay_ms" => self.back_delay_ms = span(),
            "rtt_ms" => self.rtt_ms = span(),
            "loss" => self.loss = probability(),
            "back_loss" => self.back_loss = probability(),
            "held" => self.held = flag,
            "back_held" => self.back_held = flag,
            "mcs" => self.mcs = Some(number as u8),
            "frame_error_rate" => self.frame_error_rate = probability(),
            "snr_db" => self.snr_db = Some(number),
            other => panic!("{other} is no column of a trace"),
        }
    }
}

/// What is about stations is not looked at with a wired access, nor the other way round.
fn changes_in_vain(change: &Table, file: &Table) -> Option<String> {
    let of = word(change, key!(ChangeKeys, of))?;
    let access = word(file.get(key!(ScenarioKeys, access))?.as_table()?, key!(AccessKeys, kind))?;
    let vain = matches!((of, access), ("hosts", "wired") | ("access", "wifi"));
    vain.then(|| format!("it changes \"{of}\", and access.kind is \"{access}\""))
}

fn whole<T: TryFrom<i64>>(table: &Table, key: &str) -> Option<T> {
    T::try_from(table.get(key)?.as_integer()?).ok()
}

fn word<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

/// Another key of the same table is one of these words.
fn is<const N: usize>(key: &'static str, words: [&'static str; N]) -> Vec<When> {
    vec![When::Is(Of::Same, key, words.into())]
}

fn wifi() -> Vec<When> {
    vec![When::Is(Of::Top("access"), "kind", vec!["wifi"])]
}

/// Wi-Fi of 802.11b and 802.11g.
fn earlier() -> Vec<When> {
    [wifi(), is(key!(AccessKeys, standard), EARLIER)].concat()
}

/// Wi-Fi of 802.11n and later.
fn later() -> Vec<When> {
    [wifi(), is(key!(AccessKeys, standard), LATER)].concat()
}

fn station() -> Vec<When> {
    [vec![When::No("links")], wifi()].concat()
}

/// A station of Wi-Fi of one of these standards.
fn station_of(standards: [&'static str; 3]) -> Vec<When> {
    [station(), vec![When::Is(Of::Top("access"), key!(AccessKeys, standard), standards.into())]].concat()
}

/// A station of Wi-Fi that is itself of 802.11n or later.
fn later_station() -> Vec<When> {
    [station(), vec![When::Not(mcs_of_host_in_vain)]].concat()
}

/// The host's agent decides.
fn with_agent() -> Vec<When> {
    vec![When::IsNot(Of::Same, key!(HostKeys, agent), vec!["off", "observe"])]
}

/// The host around the table has this law.
fn has_law(law: LawName) -> Vec<When> {
    vec![When::Is(Of::Around, "congestion_control", vec![law.as_str()])]
}

/// The host reports, and knows one of these.
fn reported<const N: usize>(knowledge: [&'static str; N]) -> Vec<When> {
    [is("report", ["true"]), is("knowledge", knowledge)].concat()
}
