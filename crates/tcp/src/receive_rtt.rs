//! The RTT as a receiver of data measures it, without sending any: Linux's `rcv_rtt_est`.
//!
//! 1. A sample is the time since the ACK that a full data segment echoes, in ticks of the timestamps' clock. An echo is
//!    used once, and a sample of no tick is none.
//! 2. A lower sample is taken at once, a higher one by 1/8: `tcp_rcv_rtt_update()` since Linux 6.16, and in earlier
//!    series since 2025. Before, all were smoothed.
//!
//! The echoed ACK is the one that let the segment go only while the sender has more to send than it may. The sample of
//! a sender that waits for its application contains that wait.
//!
//! *What it leaves out*: the estimate without timestamps (the time that a window takes), and that a slow reader's
//! samples are not used.

use lasthop_units::Span;

#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveRtt {
    last_echo: u32,
    /// Nanoseconds; 0: no sample yet.
    estimate_ns: u64,
}

impl ReceiveRtt {
    /// A full data segment with this echo arrived at `ticks` of this end's clock, whose ticks last `granularity`.
    pub(crate) fn on_full_segment(&mut self, ticks: u32, echo: u32, granularity: Span) {
        if echo == 0 || echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let since = ticks.wrapping_sub(echo) as i32;
        if since <= 0 {
            return;
        }
        let sample_ns = (granularity * since as u64).as_nanos();
        self.estimate_ns = if self.estimate_ns == 0 || sample_ns < self.estimate_ns {
            sample_ns
        } else {
            self.estimate_ns - self.estimate_ns / 8 + sample_ns / 8
        };
    }

    pub(crate) fn get(&self) -> Option<Span> {
        (self.estimate_ns > 0).then(|| Span::from_nanos(self.estimate_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    #[test]
    fn a_lower_sample_is_taken_at_once_and_a_higher_one_by_an_eighth() {
        let mut rtt = ReceiveRtt::default();
        assert_eq!(rtt.get(), None);
        for (ticks, echo, microseconds) in [
            (140, 100, 40_000),
            (161, 121, 40_000),
            (210, 130, 45_000), // 40 + 80 / 8 - 40 / 8
            (220, 200, 20_000),
            (400, 200, 20_000), // the same echo again
            (400, 400, 20_000), // no tick
        ] {
            rtt.on_full_segment(ticks, echo, MS);
            assert_eq!(rtt.get(), Some(Span::from_micros(microseconds)), "{ticks} {echo}");
        }
    }

    #[test]
    fn an_echo_of_before_the_clock_wrapped_counts() {
        let mut rtt = ReceiveRtt::default();
        rtt.on_full_segment(9, u32::MAX, MS);
        assert_eq!(rtt.get(), Some(MS * 10));
    }
}
