//! From the keys of `[hosts.tcp]` to the switches of a stack.

use crate::ScenarioError;
use crate::keys::{Era, HostKeys, ScenarioKeys, SmallQueues, TcpKeys};
use lasthop_keys::{Document, Keys as _, Path, key};
use lasthop_tcp::{Config, DelayedAck, Switch, Tsq};
use toml::Value;

impl Era {
    /// The stack of this era, with nothing changed.
    pub fn stack(self) -> Config {
        match self {
            Self::Y2012 => Config::linux_2012(),
            Self::Modern => Config::linux_modern(),
        }
    }
}

/// The stack of a host block.
pub(crate) fn stack(document: &Document, host: &HostKeys, here: &Path) -> Result<Config, ScenarioError> {
    let tcp = &host.tcp;
    // Every field is listed, without defaults: a switch without a key must not compile.
    let config = Config {
        mss: tcp.mss_bytes,
        initial_window_segments: tcp.initial_window_segments,
        sack: tcp.sack,
        timestamps: tcp.timestamps,
        timestamp_granularity: tcp.timestamp_granularity_ms,
        window_scaling: tcp.window_scaling,
        recovery: tcp.recovery,
        rescue: tcp.rescue,
        fack: tcp.fack,
        limited_transmit: tcp.limited_transmit,
        f_rto: tcp.f_rto,
        undo: tcp.undo,
        rack_tlp: tcp.rack_tlp,
        pacing: tcp.pacing,
        tsq: match tcp.tsq {
            SmallQueues::Off => None,
            SmallQueues::Limit => Some(Tsq { limit: tcp.tsq_limit_kib, pacing_shift: None }),
            SmallQueues::Rate => Some(Tsq { limit: tcp.tsq_limit_kib, pacing_shift: Some(tcp.tsq_pacing_shift) }),
        },
        delayed_ack: DelayedAck {
            segments: tcp.delayed_ack_segments,
            timer_min: tcp.delayed_ack_min_ms,
            timer_max: tcp.delayed_ack_max_ms,
            quick_segments: tcp.quick_ack_segments,
        },
        sack_compression: tcp.sack_compression,
        rto_estimator: tcp.rto_estimator,
        rto_min: tcp.rto_min_ms,
        rto_max: tcp.rto_max_ms,
        rto_initial: tcp.rto_initial_ms,
        min_rtt_window: tcp.min_rtt_window_s,
        nagle: tcp.nagle,
        receive_buffer: tcp.receive_buffer_kib,
        send_buffer: host.send_buffer_kib,
        send_buffer_overhead: tcp.send_buffer_overhead_bytes,
        write_hysteresis: tcp.write_hysteresis,
        ecn: tcp.ecn,
        slow_start: tcp.slow_start,
        slow_start_after_idle: tcp.slow_start_after_idle,
        last_link: tcp.last_link,
    };
    match config.validate() {
        Ok(()) => Ok(config),
        Err(error) => {
            Err(document.error(&key_of(error.switch, here), format!("{} cannot be here", error.value), error.accepted))
        }
    }
}

/// The switches of `[hosts.tcp]` in this host block that differ from its era's.
pub(crate) fn changed_switches(document: &Document, block: usize) -> Vec<&'static str> {
    let host = &document.table[key!(ScenarioKeys, hosts)][block];
    let word = |key: &str| host.get(key).and_then(Value::as_str);
    let tcp = &host[key!(HostKeys, tcp)];
    let keys = TcpKeys::section().keys.iter();
    keys.filter(|key| tcp.get(key.name) != key.default.value(&word).as_ref()).map(|key| key.name).collect()
}

/// The key of a switch: its table, and its name there.
fn key_of(switch: Switch, host: &Path) -> Path {
    let key = match switch {
        Switch::SendBuffer => return host.key(key!(HostKeys, send_buffer_kib)),
        Switch::Mss => key!(TcpKeys, mss_bytes),
        Switch::InitialWindowSegments => key!(TcpKeys, initial_window_segments),
        Switch::TimestampGranularity => key!(TcpKeys, timestamp_granularity_ms),
        Switch::RtoMin => key!(TcpKeys, rto_min_ms),
        Switch::RtoMax => key!(TcpKeys, rto_max_ms),
        Switch::RtoInitial => key!(TcpKeys, rto_initial_ms),
        Switch::MinRttWindow => key!(TcpKeys, min_rtt_window_s),
        Switch::DelayedAckSegments => key!(TcpKeys, delayed_ack_segments),
        Switch::DelayedAckTimerMin => key!(TcpKeys, delayed_ack_min_ms),
        Switch::DelayedAckTimerMax => key!(TcpKeys, delayed_ack_max_ms),
        Switch::ReceiveBuffer => key!(TcpKeys, receive_buffer_kib),
        Switch::SendBufferOverhead => key!(TcpKeys, send_buffer_overhead_bytes),
        Switch::TsqLimit => key!(TcpKeys, tsq_limit_kib),
        Switch::TsqPacingShift => key!(TcpKeys, tsq_pacing_shift),
    };
    host.key(key!(HostKeys, tcp)).key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator as _;

    #[test]
    fn each_switch_that_can_be_wrong_has_a_key() {
        for switch in Switch::iter() {
            let path = key_of(switch, &Path::default()).to_string();
            let known = match path.strip_prefix("tcp.") {
                Some(key) => TcpKeys::section().key(key),
                None => HostKeys::section().key(&path),
            };
            assert!(known.is_some(), "{switch}: {path}");
        }
    }
}
