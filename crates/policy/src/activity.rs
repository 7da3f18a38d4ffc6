//! Decides which connections are *busy*: sending now, and so entitled to a part of the host's share. And which are
//! *receiving*: the other side is.
//!
//! A connection is busy if it has something to send (unsent bytes, or segments in flight) **and** made progress
//! recently. Progress is newly acknowledged bytes, a first sight, or a moment without anything to send. Recently means
//! within one second or two smoothed RTTs, whichever is longer. The RTT counts because behind a congested access point
//! RTTs of ten seconds occur, and a connection that waits for such an ACK is still sending.
//!
//! A receiver cannot see what the other side has to send. A connection is receiving if at least two full segments
//! arrived within one tick, no longer ago than one second or two RTTs, whichever is longer. Two segments a tick are 46
//! kb/s.
//!
//! *What it leaves out*: how much is sent. A connection with one keystroke in flight at the tick is busy.

use lasthop_connection::TcpState;
use lasthop_units::{Bytes, Span, Time};

/// The progress of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    progress: Option<(Time, Bytes)>,
}

impl Activity {
    /// A connection without progress stays busy for at least this long.
    pub const PATIENCE: Span = Span::from_secs(1);

    /// Takes its state at a tick. Returns whether the connection is busy.
    pub fn on_sample(&mut self, now: Time, tcp: &TcpState) -> bool {
        let since = match self.progress {
            Some((since, acked)) if acked == tcp.acked && tcp.has_data() => since,
            _ => {
                self.progress = Some((now, tcp.acked));
                now
            }
        };
        tcp.has_data() && now.saturating_since(since) <= two(tcp.srtt).max(Self::PATIENCE)
    }
}

/// What arrives on one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reception {
    /// `None` before the first sample: what had arrived by then may have arrived long ago.
    received: Option<Bytes>,
    /// The last tick by which much had arrived.
    progress: Option<Time>,
}

impl Reception {
    /// Full segments that must arrive between two ticks.
    pub const SEGMENTS: u64 = 2;
    /// Twice the RTTs of ten seconds that occur. Longer ones contain the sender's own pauses.
    const LONGEST_PATIENCE: Span = Span::from_secs(20);
    /// The full segment of a connection that does not tell its own: RFC 9293 §3.7.1's default.
    const DEFAULT_MSS_BYTES: u32 = 536;

    /// Takes its state at a tick. Returns whether the connection is receiving.
    pub fn on_sample(&mut self, now: Time, tcp: &TcpState) -> bool {
        let mss_bytes = if tcp.mss_bytes == 0 { Self::DEFAULT_MSS_BYTES } else { tcp.mss_bytes };
        let before = self.received.replace(tcp.received).unwrap_or(tcp.received);
        let arrived = tcp.received.get().saturating_sub(before.get());
        if arrived >= Self::SEGMENTS * u64::from(mss_bytes) {
            self.progress = Some(now);
        }
        let patience = two(tcp.receive_rtt).clamp(Activity::PATIENCE, Self::LONGEST_PATIENCE);
        self.progress.is_some_and(|at| now.saturating_since(at) <= patience)
    }
}

fn two(rtt: Option<Span>) -> Span {
    Span::from_nanos(rtt.unwrap_or(Span::ZERO).as_nanos().saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
    }

    #[test]
    fn a_connection_is_receiving_for_a_second_or_two_rtts_after_two_full_segments_in_a_tick() {
        let mut reception = Reception::default();
        let mut receiving = |milliseconds, received, rtt_ms| {
            let (received, receive_rtt) = (Bytes::new(received), Some(Span::from_millis(rtt_ms)));
            reception.on_sample(
                at(milliseconds),
                &TcpState { received, mss_bytes: 1448, receive_rtt, ..TcpState::default() },
            )
        };
        assert!(!receiving(0, 1 << 20, 20)); // some time, long ago perhaps
        let received = 1 << 20;
        assert!(!receiving(250, received + 2895, 20)); // a byte short
        assert!(receiving(500, received + 2895 + 2896, 20));
        assert!(receiving(1500, received + 6000, 20));
        assert!(!receiving(1501, received + 6000, 20));
        assert!(receiving(2000, received + 9000, 3000));
        assert!(receiving(8000, received + 9000, 3000));
        assert!(!receiving(8001, received + 9000, 3000));
        assert!(receiving(9000, received + 12_000, 60_000));
        assert!(!receiving(29_001, received + 12_000, 60_000)); // not a minute's RTTs
    }

    fn tcp(acked: u64, in_flight_segments: u32, srtt: Span) -> TcpState {
        TcpState { acked: Bytes::new(acked), in_flight_segments, srtt: Some(srtt), ..TcpState::default() }
    }

    #[test]
    fn a_connection_with_nothing_to_send_is_idle() {
        let mut activity = Activity::default();
        assert!(activity.on_sample(at(0), &tcp(1000, 1, Span::from_millis(5))));
        assert!(!activity.on_sample(at(500), &tcp(2000, 0, Span::from_millis(5))));
        let writes = TcpState { unsent: Bytes::new(1), ..tcp(2000, 0, Span::from_millis(5)) };
        assert!(activity.on_sample(at(1000), &writes));
    }

    #[test]
    fn a_stalled_connection_is_idle_after_a_second() {
        let mut activity = Activity::default();
        let rtt = Span::from_millis(5);
        assert!(activity.on_sample(at(0), &tcp(1000, 9, rtt)));
        assert!(activity.on_sample(at(1000), &tcp(1000, 9, rtt)));
        assert!(!activity.on_sample(at(1001), &tcp(1000, 9, rtt)));
        assert!(activity.on_sample(at(1500), &tcp(1001, 9, rtt)));
    }

    #[test]
    fn one_that_sends_again_after_a_pause_is_busy_before_its_first_ack() {
        let mut activity = Activity::default();
        let rtt = Span::from_secs(3);
        assert!(activity.on_sample(at(0), &tcp(1000, 9, rtt)));
        assert!(!activity.on_sample(at(500), &tcp(9000, 0, rtt)));
        assert!(!activity.on_sample(at(20_000), &tcp(9000, 0, rtt)));
        assert!(activity.on_sample(at(20_500), &tcp(9000, 9, rtt)));
        // Two RTTs after it last had nothing to send, it is no longer busy.
        assert!(activity.on_sample(at(26_000), &tcp(9000, 9, rtt)));
        assert!(!activity.on_sample(at(26_001), &tcp(9000, 9, rtt)));
    }

    #[test]
    fn one_that_waits_for_an_ack_of_twelve_seconds_is_not_stalled() {
        let mut activity = Activity::default();
        let rtt = Span::from_secs(12);
        assert!(activity.on_sample(at(0), &tcp(1000, 9, rtt)));
        assert!(activity.on_sample(at(24_000), &tcp(1000, 9, rtt)));
        assert!(!activity.on_sample(at(24_001), &tcp(1000, 9, rtt)));
    }
}
