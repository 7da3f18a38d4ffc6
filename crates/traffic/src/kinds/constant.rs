//! Datagrams at a constant rate.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys, measured_packet};
use crate::keys::KIND;
use lasthop_keys::{by_word, keys, mbps};
use lasthop_units::{Bytes, Rate, Span, Time};

keys! {
    /// Its own keys.
    pub(crate) struct ConstantKeys {
        /// Rate of these packets in Mb/s: 0.08 is a call, 50 packets of 200 bytes in a second.
        rate_mbps: Option<Rate> = mbps(0.001, 10_000.0), by_word(KIND, [("constant", 0.08)]);
    }
}

/// UDP at a constant rate, like a call or a camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    packet: Bytes,
    gap: Span,
    jitter: Span,
    /// The time of the next one without jitter.
    due: Time,
}

impl Constant {
    pub(super) const KEYS: &[&str] = &["jitter_us", "packet_bytes"];

    pub(super) fn read(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
        const GIVEN: &str = "its kind has a default";
        let packet = measured_packet(keys, part)?;
        let gap = keys.own.constant.rate_mbps.expect(GIVEN).transmission_time(packet);
        Ok(Self::new(packet, gap, keys.jitter_us))
    }

    /// IP packets of this size, of at least [`LEAST_PACKET`](super::LEAST_PACKET), this far apart, above 0, each but the first up
    /// to `jitter` before its time.
    pub fn new(packet: Bytes, gap: Span, jitter: Span) -> Self {
        Self { packet, gap, jitter, due: Time::ZERO }
    }
}

impl Kind for Constant {
    fn begin(&mut self, due: Time, now: Time, desk: &mut Desk) {
        self.due = due;
        self.wake(due, now, desk);
    }

    /// The next one leaves at most the jitter before its time, and not before this one.
    fn wake(&mut self, due: Time, _now: Time, desk: &mut Desk) {
        desk.send(self.packet);
        self.due += self.gap;
        let early = desk.uniform(self.jitter);
        desk.wake_at(due + self.due.saturating_since(due).saturating_sub(early));
    }

    fn packet(&self) -> Option<Bytes> {
        Some(self.packet)
    }

    fn gap(&self) -> Option<Span> {
        Some(self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Application};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    /// When a flow of constant rate sends its first 1000 datagrams.
    fn moments(gap_us: u64, jitter_us: u64) -> Vec<f64> {
        let (gap, jitter) = (Span::from_micros(gap_us), Span::from_micros(jitter_us));
        let (packet, start) = (Bytes::new(200), Time::ZERO + Span::from_secs(1));
        let kind = Constant::new(packet, gap, jitter).into();
        let mut application = Application::new(kind, start, None, ChaCha8Rng::seed_from_u64(1));
        let mut actions = Vec::new();
        (0..1000)
            .map(|number| {
                let now = application.next_at();
                application.act(now, &mut actions);
                assert_eq!(std::mem::take(&mut actions), [Action::Send { number, packet }]);
                (now - start).as_nanos() as f64 / 1e3
            })
            .collect()
    }

    #[test]
    fn datagrams_of_a_constant_rate_leave_within_the_jitter_before_their_time_and_the_rate_stays() {
        let plain = moments(200, 0);
        assert!(plain.iter().enumerate().all(|(number, at)| *at == 200.0 * number as f64));
        let early: Vec<f64> = moments(200, 50).iter().zip(&plain).map(|(at, due)| due - at).collect();
        assert_eq!(early[0], 0.0);
        assert!(early.iter().all(|early| (0.0..=50.0).contains(early)));
        // Uniform: mean 25 us, a standard deviation of the mean of 50 / sqrt(12 * 1000) = 0.46; five of these.
        let mean = early.iter().sum::<f64>() / 1000.0;
        assert!((mean - 25.0).abs() < 2.3, "{mean}");
        // A jitter above the gap keeps the order.
        let close = moments(20, 50);
        assert!(close.is_sorted() && (close[999] - 20.0 * 999.0).abs() <= 50.0);
    }
}
