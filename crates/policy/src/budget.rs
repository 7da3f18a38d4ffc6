//! Splits a budget of the whole host over its connections: segments and possibly a pacing rate over the busy ones,
//! what is received over those that receive. For `fixed` and `count`.
//!
//! An idle connection gets the limit of a busy one. It sends nothing now, and if it starts again before the next tick
//! it is already limited.

use super::{Decision, Enabled, FlowDecision, FlowId, FlowMap, FlowObservation, Observation, Reason, Trigger};
use lasthop_laws::bound::{Bound, LEAST_PACING_RATE};
use lasthop_units::{Rate, Time};

/// Since when each connection is under control.
#[derive(Clone, Debug, Default)]
pub(super) struct Since {
    /// With the latest tick that had the connection.
    flows: FlowMap<(Time, u64)>,
    ticks: u64,
}

impl Since {
    /// Adds the new connections of this tick, and forgets closed ones.
    pub(super) fn meet(&mut self, observation: &Observation<'_>) {
        self.ticks += 1;
        for flow in observation.flows {
            self.flows.entry(flow.id).or_insert((observation.now, 0)).1 = self.ticks;
        }
        if self.flows.len() > observation.flows.len() {
            self.flows.retain(|_, (_, seen)| *seen == self.ticks);
        }
    }

    /// How a known connection came under control.
    pub(super) fn enabled(&self, id: FlowId) -> Option<Enabled> {
        self.flows.get(&id).map(|(at, _)| Enabled { at: *at, by: Trigger::Always })
    }
}

/// The upper limits of the whole host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) segments: u32,
    /// [`Rate::ZERO`]: no limit.
    pub(super) pacing_rate: Rate,
    /// Of the advertised windows; 0: no limit.
    pub(super) receive_segments: u32,
}

/// The full segment of a connection that does not tell its own, and of those to come: of an Ethernet frame, with
/// timestamps.
const USUAL_MSS_BYTES: u32 = 1448;

/// Splits the budget over the host's busy connections and over those that receive, rounded down, never below
/// `minimum_segments`, [`LEAST_PACING_RATE`], and two segments received each.
pub(super) fn split(
    observation: &Observation<'_>,
    since: &Since,
    budget: Budget,
    minimum_segments: u32,
    reason: impl Fn(u32) -> Reason,
) -> Decision {
    let each = |busy_flows: u32, receiving_flows: u32, mss_bytes: u32| Bound {
        min_segments: minimum_segments,
        max_segments: (budget.segments / busy_flows.max(1)).max(minimum_segments),
        max_pacing_rate: match budget.pacing_rate {
            Rate::ZERO => Rate::ZERO,
            rate => Rate::from_bps(rate.as_bps() / u64::from(busy_flows.max(1))).max(LEAST_PACING_RATE),
        },
        max_receive_bytes: match budget.receive_segments {
            0 => 0,
            segments => u64::from((segments / receiving_flows.max(1)).max(2)) * u64::from(mss_bytes),
        },
        paced: false,
        at_once: false,
    };
    let (busy_flows, receiving_flows) = (observation.busy_flows().max(1), observation.receiving_flows());
    let mss_bytes = |flow: &FlowObservation| if flow.tcp.mss_bytes == 0 { USUAL_MSS_BYTES } else { flow.tcp.mss_bytes };
    let bounded = |flow: &FlowObservation| FlowDecision {
        id: flow.id,
        bound: Some(each(busy_flows, receiving_flows, mss_bytes(flow))),
        enabled: since.enabled(flow.id),
        reason: reason(busy_flows),
    };
    Decision {
        flows: observation.flows.iter().map(bounded).collect(),
        new_flows: Some(each(
            observation.busy_flows().saturating_add(1),
            receiving_flows.saturating_add(1),
            USUAL_MSS_BYTES,
        )),
    }
}
