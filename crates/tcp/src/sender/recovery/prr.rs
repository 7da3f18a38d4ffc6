//! How much may be sent during a reduction: proportional rate reduction and its relatives.
//!
//! ```text
//! RFC 6937 §3   pipe > ssthresh:  sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//!               else SSRB:        sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, DeliveredData) + 1)
//!                    CRB:         sndcnt = min(ssthresh - pipe, prr_delivered - prr_out)
//! RFC 9937      the first branch the same, but RecoverFS without segments SACKed before the ACK that began it;
//!               else:             sndcnt = max(prr_delivered - prr_out, DeliveredData)
//!                                 + 1 if SafeACK: snd_una advanced and the ACK showed no further loss
//!                                 at most ssthresh - pipe
//!               the window is pipe + sndcnt, and ssthresh at the end
//! all           at least 1 before the first transmission: the fast retransmission
//! ```

use crate::config::Recovery;

#[derive(Clone, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS.
    pub(crate) flight_at_entry: u32,
    pub(crate) delivered: u32,
    pub(crate) out: u32,
    /// Rate halving: sends on each second ACK.
    odd_ack: bool,
}

/// The input of a reduction from one ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// DeliveredData.
    pub(crate) delivered: u32,
    /// Segments in flight after the ACK.
    pub(crate) pipe: u32,
    /// snd_una advanced and nothing was newly marked lost.
    pub(crate) safe_ack: bool,
}

impl Prr {
    /// A reduction begins with `flight_at_entry` segments in flight.
    pub(crate) fn begin(flight_at_entry: u32) -> Self {
        Self { flight_at_entry, ..Self::default() }
    }

    /// The window after an ACK; at least 1, so that with an empty pipe one segment is sent whatever the rule says.
    pub(crate) fn on_ack(&mut self, recovery: Recovery, ack: Delivery, cwnd: u32, ssthresh: u32) -> u32 {
        if recovery == Recovery::RateHalving {
            return self.halve(ack, cwnd, ssthresh);
        }
        self.delivered += ack.delivered;
        let owed = self.delivered.saturating_sub(self.out);
        let send = if ack.pipe > ssthresh {
            let share =
                (u64::from(self.delivered) * u64::from(ssthresh)).div_ceil(u64::from(self.flight_at_entry.max(1)));
            u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            let limit = match recovery {
                Recovery::PrrCrb => owed,
                Recovery::PrrRfc9937 => owed.max(ack.delivered) + u32::from(ack.safe_ack),
                _ => owed.max(ack.delivered) + 1,
            };
            limit.min(ssthresh - ack.pipe)
        };
        (ack.pipe + send.max(u32::from(self.out == 0))).max(1)
    }

    /// Linux before 3.2: each second ACK reduces the window by one segment, down to ssthresh. It is never above pipe +
    /// 1.
    fn halve(&mut self, ack: Delivery, cwnd: u32, ssthresh: u32) -> u32 {
        let step = u32::from(self.odd_ack && cwnd > ssthresh);
        self.odd_ack = !self.odd_ack;
        (cwnd - step).min(ack.pipe + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn send(prr: &mut Prr, recovery: Recovery, delivered: u32, pipe: u32, safe_ack: bool, ssthresh: u32) -> u32 {
        let window = prr.on_ack(recovery, Delivery { delivered, pipe, safe_ack }, 20, ssthresh);
        let send = window - pipe;
        prr.out += send;
        send
    }

    /// RFC 6937 §3.1, first figure: ACKs 4 to 19, each with a SACK for one segment. FlightSize is 22 with the two of
    /// limited transmit, and ssthresh 11 as in the figure's RFC 6675 row.
    #[test]
    fn one_loss_in_twenty_sends_for_every_other_ack() {
        for recovery in [Recovery::Prr, Recovery::PrrCrb] {
            let (mut prr, mut pipe, mut sent) = (Prr::begin(22), 18, Vec::new());
            for ack in 3..=19 {
                let count = send(&mut prr, recovery, 1, pipe, false, 11);
                sent.extend(vec![ack; count as usize]);
                pipe = pipe + count - 1;
            }
            // "sent:  N N R   N   N   N   N   N   N     N N" from ACK 3 on
            assert_eq!(sent, [3, 5, 7, 9, 11, 13, 15, 18, 19], "{recovery:?}");
        }
    }

    /// RFC 6937 §3.1, last figures: the first 15 of 20 are lost; the ACKs of 17, 18 and 19 arrive during recovery.
    #[test]
    fn fifteen_losses_send_one_or_two_for_each_ack() {
        let row = |recovery| {
            let (mut prr, mut pipe) = (Prr::begin(22), 4);
            (17..=19)
                .map(|_| {
                    let count = send(&mut prr, recovery, 1, pipe, false, 11);
                    let shown = (pipe, count);
                    pipe = pipe + count - 1;
                    shown
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(row(Recovery::PrrCrb), [(4, 1), (4, 1), (4, 1)]);
        assert_eq!(row(Recovery::Prr), [(4, 2), (5, 2), (6, 2)]);
        // RFC 9937: no ACK advanced snd_una, so none is safe; the bound is that of RFC 6937's conservative form.
        assert_eq!(row(Recovery::PrrRfc9937), [(4, 1), (4, 1), (4, 1)]);
    }

    #[test]
    fn a_safe_ack_may_send_one_more() {
        let mut prr = Prr::begin(20);
        assert_eq!(send(&mut prr, Recovery::PrrRfc9937, 1, 4, true, 10), 2);
        assert_eq!(send(&mut prr, Recovery::PrrRfc9937, 3, 2, true, 10), 4);
        assert_eq!(send(&mut prr, Recovery::PrrRfc9937, 1, 9, true, 10), 1); // at most ssthresh - pipe
    }

    #[test]
    fn the_fast_retransmission_may_always_go() {
        // pipe = ssthresh: the bound allows nothing.
        assert_eq!(send(&mut Prr::begin(20), Recovery::Prr, 1, 10, false, 10), 1);
        assert_eq!(send(&mut Prr::begin(20), Recovery::PrrRfc9937, 0, 19, false, 10), 1);
    }

    /// RFC 6937 §3.1, second rows: rate halving.
    #[test]
    fn rate_halving_sends_for_every_second_ack() {
        let (mut prr, mut cwnd, mut pipe, mut sent) = (Prr::begin(20), 20, 18, Vec::new());
        for ack in 3..=19 {
            cwnd = prr.on_ack(Recovery::RateHalving, Delivery { delivered: 1, pipe, safe_ack: false }, cwnd, 10);
            let count = cwnd.saturating_sub(pipe);
            sent.extend(vec![ack; count as usize]);
            pipe = pipe + count - 1;
        }
        assert_eq!(sent, [3, 5, 7, 9, 11, 13, 15, 17, 19]);
        assert_eq!(cwnd, 11);
        // 15 losses: "cwnd: 20 20 5 5 5, pipe: 19 19 4 4 4, sent: N N R R R"
        let (mut prr, mut cwnd) = (Prr::begin(20), 20);
        for _ in 17..=19 {
            cwnd = prr.on_ack(Recovery::RateHalving, Delivery { delivered: 1, pipe: 4, safe_ack: false }, cwnd, 10);
            assert_eq!(cwnd, 5);
        }
    }

    proptest! {
        /// RFC 6937 §4: with few losses the window ends at ssthresh, and never above it.
        #[test]
        fn a_reduction_ends_at_ssthresh(flight in 4..500_u32, share in 0.3..0.9_f64, losses in 1..4_u32) {
            let ssthresh = ((f64::from(flight) * share) as u32).max(2);
            prop_assume!(flight - losses > ssthresh + 2);
            for recovery in [Recovery::Prr, Recovery::PrrRfc9937, Recovery::PrrCrb] {
                let mut prr = Prr::begin(flight);
                let mut pipe = flight - losses;
                for _ in 0..flight - losses {
                    pipe -= 1;
                    pipe += send(&mut prr, recovery, 1, pipe, false, ssthresh);
                    prop_assert!(pipe <= flight);
                }
                prop_assert!(pipe <= ssthresh && pipe + losses + 1 >= ssthresh, "{recovery:?}: {pipe}, {ssthresh}");
            }
        }

        /// RFC 6937 appendix A: after the first segment, the conservative bound never sends more than was delivered.
        #[test]
        fn the_conservative_bound_conserves_packets(
            flight in 2..200_u32, ssthresh in 2..200_u32,
            acks in prop::collection::vec((0..5_u32, 0..200_u32), 1..60),
        ) {
            let mut prr = Prr::begin(flight);
            for (delivered, pipe) in acks {
                if (1..=ssthresh).contains(&pipe) {
                    send(&mut prr, Recovery::PrrCrb, delivered, pipe, false, ssthresh);
                    prop_assert!(prr.out <= prr.delivered.max(1));
                }
            }
        }
    }
}
