//! When a connection comes under control and when it leaves it: for `formula`, `table` and `cooperative`.
//!
//! ```text
//!                own RTT risen                           peer's report, own RTT risen later
//!  not controlled ────────────> by its own RTT <──────────────────────────┐
//!     ^  ^  │                        │                                     │
//!     │  │  └── a peer reports it ───┼──────────────────────> by a peer's report
//!     │  └── ratio < release_ratio ──┘                               │
//!     └───────── no peer reports it any more (peer_latch = "while-reported")
//! ```

use super::{
    Decision, Enabled, FlowDecision, FlowId, FlowObservation, Observation, PeerLatch, PolicySettings, Reason, Trigger,
};
use lasthop_laws::bound::Bound;
use lasthop_peers::Report;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// The threshold above which an RTT has risen substantially (shimada §2.3, step 1; hayakawa: a ratio above 6.0).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// A threshold of RTT / lowest RTT.
    Ratio(f64),
    /// A threshold of RTT − lowest RTT.
    Excess(Span),
}

/// An RTT, and the lowest one of the same connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rise {
    /// Smoothed RTT at the tick.
    pub(super) srtt: Span,
    /// The lowest RTT of the connection.
    pub(super) lowest_rtt: Span,
    /// `srtt` / `lowest_rtt`.
    pub(super) ratio: f64,
}

/// The state of this host's connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Latches(BTreeMap<FlowId, Latch>);

/// The state of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Latch {
    lowest_rtt: Option<Span>,
    /// How it came under control; `None`: not under control.
    enabled: Option<Enabled>,
}

impl Start {
    /// Whether `rise` is above the threshold.
    pub(super) fn is_met_by(self, rise: Rise) -> bool {
        match self {
            Self::Ratio(ratio) => rise.ratio > ratio,
            Self::Excess(excess) => rise.excess() > excess,
        }
    }

    /// Whether a peer reports an RTT above the threshold, or that such an RTT started its control.
    pub fn is_reported_by(self, report: &Report) -> bool {
        let risen = || Some(self.is_met_by(Rise::new(report.srtt?, report.min_rtt?)?));
        report.busy_flows > 0 && (report.congested || risen().unwrap_or(false))
    }
}

impl Rise {
    fn new(srtt: Span, lowest_rtt: Span) -> Option<Self> {
        Some(Self { srtt, lowest_rtt, ratio: srtt.over(lowest_rtt)? })
    }

    /// RTT − lowest RTT.
    pub(super) fn excess(self) -> Span {
        self.srtt.saturating_sub(self.lowest_rtt)
    }
}

impl Latches {
    /// One tick: decides which connections are under control, and asks `limit` for their limits. If `cooperative`, the
    /// risen RTT of any connection of this host or of a peer starts the control of all.
    pub(super) fn on_tick(
        &mut self,
        observation: &Observation<'_>,
        settings: &PolicySettings,
        cooperative: bool,
        limit: impl Fn(Rise) -> (Bound, Reason),
    ) -> Decision {
        let Observation { now, flows, peers } = *observation;
        let mut known = std::mem::take(&mut self.0);
        // Has the RTT of any terminal risen (shimada's S2)? First this host's connections, then the peers' reports.
        let mut seen = Vec::with_capacity(flows.len());
        for flow in flows {
            let mut latch = known.remove(&flow.id).unwrap_or_default();
            let rise = latch.observe(flow);
            let own = rise.is_some_and(|rise| latch.follow_own_rtt(now, rise, settings));
            seen.push((flow.id, latch, rise, own));
        }
        let others = cooperative
            && (seen.iter().any(|(.., own)| *own)
                || peers.peers().iter().any(|peer| settings.start().is_reported_by(&peer.report)));
        let mut decisions = Vec::with_capacity(flows.len());
        for (id, mut latch, rise, own) in seen {
            let limits = rise.ok_or(Reason::NoRtt).and_then(|rise| {
                latch.decide(now, rise, own, others, settings)?;
                Ok(limit(rise))
            });
            decisions.push(FlowDecision::new(id, latch.enabled, limits));
            self.0.insert(id, latch);
        }
        Decision { flows: decisions, new_flows: None } // "When the system starts, the proposed control ... is disabled"
    }
}

impl Latch {
    /// Takes the RTT of the connection; `None` before it is known.
    fn observe(&mut self, flow: &FlowObservation) -> Option<Rise> {
        // Kernels forget their lowest RTT after some minutes; in the papers it holds for the connection.
        self.lowest_rtt = [self.lowest_rtt, flow.tcp.min_rtt, flow.tcp.srtt].into_iter().flatten().min();
        Rise::new(flow.tcp.srtt?, self.lowest_rtt?)
    }

    /// Whether the connection is under control by its own RTT, given `rise`.
    fn follow_own_rtt(&mut self, now: Time, rise: Rise, settings: &PolicySettings) -> bool {
        let own = matches!(self.enabled, Some(Enabled { by: Trigger::OwnRtt, .. }));
        if !own && settings.start().is_met_by(rise) {
            let at = self.enabled.map_or(now, |enabled| enabled.at);
            self.enabled = Some(Enabled { at, by: Trigger::OwnRtt });
            return true;
        }
        own && !released(rise, settings)
    }

    /// Whether the connection is under control, by its own RTT or by others'; `Err`: why it is not. `own`: the result
    /// of [`Self::follow_own_rtt`].
    fn decide(
        &mut self,
        now: Time,
        rise: Rise,
        own: bool,
        others: bool,
        settings: &PolicySettings,
    ) -> Result<(), Reason> {
        let ratio = rise.ratio;
        if own {
            return Ok(());
        }
        match self.enabled {
            None if others => self.enabled = Some(Enabled { at: now, by: Trigger::Peer }),
            None => return Err(Reason::NotCongested { ratio, excess: rise.excess(), start: settings.start() }),
            Some(Enabled { at, .. }) if others => self.enabled = Some(Enabled { at, by: Trigger::Peer }),
            Some(Enabled { by: Trigger::Peer, .. }) if settings.peer_latch == PeerLatch::Connection => {
                if released(rise, settings) {
                    return Err(self.release(ratio, settings));
                }
            }
            Some(Enabled { by: Trigger::Peer, .. }) => {
                self.enabled = None;
                return Err(Reason::PeersCalm { ratio });
            }
            Some(_) => return Err(self.release(ratio, settings)),
        }
        Ok(())
    }

    fn release(&mut self, ratio: f64, settings: &PolicySettings) -> Reason {
        self.enabled = None;
        Reason::Released { ratio, release_ratio: settings.release_ratio.unwrap_or_default() }
    }
}

/// Never while the RTT would restart control at the next tick: an excess in ms may be above the threshold at a ratio
/// below the release.
fn released(rise: Rise, settings: &PolicySettings) -> bool {
    let low = settings.release_ratio.is_some_and(|release_ratio| rise.ratio < release_ratio);
    low && !settings.start().is_met_by(rise)
}
