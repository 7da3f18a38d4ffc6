//! From the checked keys of `[hosts.tcp]` to the switches of a stack.

use crate::document::Document;
use crate::error::ScenarioError;
use crate::key_path::Path;
use crate::keys::Section;
use crate::scenario::{Era, float, integer, size, text};
use lasthop_laws::SlowStart;
use lasthop_tcp::{Config, ConfigError, DelayedAck, Tsq};
use lasthop_units::{Bytes, Span};
use toml::Table;

impl Era {
    /// The stack of this era, with nothing changed.
    pub fn stack(self) -> Config {
        match self {
            Self::Y2012 => Config::linux_2012(),
            Self::Modern => Config::linux_modern(),
        }
    }
}

/// The stack of a checked `[[hosts]]` block.
pub(crate) fn stack(document: &Document, host: &Table, here: &Path) -> Result<Config, ScenarioError> {
    let table = host["tcp"].as_table().expect("a checked host has a table tcp");
    let flag = |key: &str| table[key].as_bool().expect("a checked switch is true or false");
    let number = |key: &str| u32::try_from(integer(table, key)).expect("a checked number of segments is small");
    let bytes = |key: &str| Bytes::new(size(table, key) as u64);
    let milliseconds = |key: &str| Span::from_secs_f64(float(table, key) / 1e3);
    // Every field stands here, none comes from a default: a switch that has no key must not compile.
    let config = Config {
        mss: bytes("mss_bytes"),
        initial_window_segments: number("initial_window_segments"),
        sack: flag("sack"),
        timestamps: flag("timestamps"),
        timestamp_granularity: milliseconds("timestamp_granularity_ms"),
        window_scaling: flag("window_scaling"),
        recovery: known(text(table, "recovery")),
        rescue: flag("rescue"),
        fack: flag("fack"),
        limited_transmit: flag("limited_transmit"),
        f_rto: flag("f_rto"),
        undo: flag("undo"),
        rack_tlp: flag("rack_tlp"),
        pacing: flag("pacing"),
        tsq: tsq(table),
        delayed_ack: DelayedAck {
            segments: number("delayed_ack_segments"),
            timer_min: milliseconds("delayed_ack_min_ms"),
            timer_max: milliseconds("delayed_ack_max_ms"),
            quick_segments: number("quick_ack_segments"),
        },
        sack_compression: flag("sack_compression"),
        rto_estimator: known(text(table, "rto_estimator")),
        rto_min: milliseconds("rto_min_ms"),
        rto_max: milliseconds("rto_max_ms"),
        rto_initial: milliseconds("rto_initial_ms"),
        min_rtt_window: Span::from_secs_f64(float(table, "min_rtt_window_s")),
        nagle: flag("nagle"),
        receive_buffer: Bytes::from_kib(size(table, "receive_buffer_kib") as u64),
        send_buffer: Bytes::from_kib(size(host, "send_buffer_kib") as u64),
        send_buffer_overhead: bytes("send_buffer_overhead_bytes"),
        write_hysteresis: flag("write_hysteresis"),
        slow_start: match text(table, "slow_start") {
            "standard" => SlowStart::Standard,
            "hystart" => SlowStart::HyStart,
            _ => SlowStart::HyStartPlusPlus,
        },
        slow_start_after_idle: flag("slow_start_after_idle"),
        last_link: flag("last_link"),
    };
    match config.validate() {
        Ok(()) => Ok(config),
        Err(error) => {
            let key = match key_of(&error) {
                "send_buffer_kib" => here.key("send_buffer_kib"),
                key => here.key("tcp").key(key),
            };
            Err(document.error(&key, format!("{} cannot be here", error.value), error.accepted))
        }
    }
}

/// The switches of a checked host's `[hosts.tcp]` that are not as its era has them.
pub(crate) fn changed_switches(host: &Table) -> Vec<&'static str> {
    let table = host["tcp"].as_table().expect("a checked host has a table tcp");
    let changed = |key: &&crate::keys::Key| table.get(key.name) != key.default.value(text(host, "era")).as_ref();
    Section::Tcp.keys().iter().filter(changed).map(|key| key.name).collect()
}

fn tsq(table: &Table) -> Option<Tsq> {
    let limit = Bytes::from_kib(size(table, "tsq_limit_kib") as u64);
    let shift = || u8::try_from(integer(table, "tsq_pacing_shift")).expect("a checked shift is at most 20");
    match text(table, "tsq") {
        "off" => None,
        "limit" => Some(Tsq { limit, pacing_shift: None }),
        _ => Some(Tsq { limit, pacing_shift: Some(shift()) }),
    }
}

/// What a checked word names.
fn known<T: std::str::FromStr<Err: std::fmt::Display>>(word: &str) -> T {
    word.parse().unwrap_or_else(|error| panic!("the words of the format are those of the stack: {error}"))
}

/// The key of the field that the stack complains about.
fn key_of(error: &ConfigError) -> &'static str {
    match error.key {
        "mss" => "mss_bytes",
        "timestamp_granularity" => "timestamp_granularity_ms",
        "rto_min" => "rto_min_ms",
        "rto_max" => "rto_max_ms",
        "rto_initial" => "rto_initial_ms",
        "min_rtt_window" => "min_rtt_window_s",
        "delayed_ack.segments" => "delayed_ack_segments",
        "delayed_ack.timer_min" => "delayed_ack_min_ms",
        "delayed_ack.timer_max" => "delayed_ack_max_ms",
        "receive_buffer" => "receive_buffer_kib",
        "send_buffer" => "send_buffer_kib",
        "send_buffer_overhead" => "send_buffer_overhead_bytes",
        "tsq.limit" => "tsq_limit_kib",
        "tsq.pacing_shift" => "tsq_pacing_shift",
        same => same,
    }
}
