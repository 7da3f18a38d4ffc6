//! Hosts that go from one access point to another: in which cells their data was delivered, and for how long they were silent.
//!
//! Both are seen at the samples: what was delivered since the sample before belongs to the cell that the host is in at that time. A
//! host is silent until the first sample before which its connections have delivered anything since the association. So both are
//! exact but for one interval of samples.

use lasthop_network::Roam;
use lasthop_scenario::{RoamResult, Scenario};
use lasthop_units::{Bytes, Time};

/// What the samples of roaming hosts say.
#[derive(Clone, Debug)]
pub(crate) struct RoamMeter<'a> {
    roams: &'a [Roam],
    /// By roam: the first sample with data behind the association.
    heard: Vec<Option<Time>>,
    hosts: Vec<Host>,
    /// By host: its first cell.
    first: Vec<u16>,
}

#[derive(Clone, Debug)]
struct Host {
    /// The places of its roams, and how many of these are over.
    roams: Vec<usize>,
    over: usize,
    /// What was delivered in each cell after the warm-up.
    by_cell: Vec<Bytes>,
}

impl<'a> RoamMeter<'a> {
    /// Of this scenario; `None` if nobody roams.
    pub(crate) fn new(scenario: &'a Scenario) -> Option<Self> {
        let cells = scenario.network().cells.as_ref().filter(|cells| !cells.roams.is_empty())?;
        let host = |number| Host {
            roams: (0..cells.roams.len()).filter(|roam| cells.roams[*roam].host == number).collect(),
            over: 0,
            by_cell: vec![Bytes::ZERO; cells.access_points],
        };
        Some(Self {
            roams: &cells.roams,
            heard: vec![None; cells.roams.len()],
            hosts: (0..cells.of_host.len()).map(host).collect(),
            first: cells.of_host.clone(),
        })
    }

    /// So much has been delivered by a connection of this host between two samples. `is_warm`: it counts.
    pub(crate) fn on_sample(&mut self, (before, at): (Time, Time), host: u16, delivered: Bytes, is_warm: bool) {
        let Host { roams, over, by_cell } = &mut self.hosts[usize::from(host)];
        while roams.get(*over).is_some_and(|&next| self.roams[next].associated() < at) {
            *over += 1;
        }
        if delivered == Bytes::ZERO {
            return;
        }
        let last = over.checked_sub(1).map(|last| roams[last]);
        let cell = usize::from(last.map_or(self.first[usize::from(host)], |last| self.roams[last].to));
        if is_warm {
            by_cell[cell] += delivered;
        }
        if let Some(last) = last.filter(|last| self.roams[*last].associated() <= before) {
            self.heard[last].get_or_insert(at);
        }
    }

    /// A host's goodput in each cell, of its whole goodput in Mb/s.
    pub(crate) fn goodputs(&self, host: usize, mbps: f64) -> Vec<f64> {
        let by_cell = &self.hosts[host].by_cell;
        let total: u64 = by_cell.iter().map(|bytes| bytes.get()).sum();
        by_cell.iter().map(|bytes| mbps * bytes.get() as f64 / total.max(1) as f64).collect()
    }

    /// Each roam within the run.
    pub(crate) fn results(&self, scenario: &Scenario) -> Vec<RoamResult> {
        let mut cells = self.first.clone();
        let moved = scenario.layout().map_or(&[][..], |layout| &layout.moved);
        let roams = self.roams.iter().zip(&self.heard).zip(moved);
        let result = |((roam, heard), place): ((&Roam, &Option<Time>), &lasthop_scenario::Place)| RoamResult {
            host: roam.host as u16,
            at_s: roam.at.as_secs_f64(),
            outage_ms: roam.outage.as_millis_f64(),
            from: std::mem::replace(&mut cells[roam.host], roam.to),
            to: roam.to,
            at_m: place.at_m,
            silent_ms: heard.map(|heard| (heard - roam.at).as_millis_f64()),
        };
        roams.map(result).filter(|roam| roam.at_s < scenario.duration.as_secs_f64()).collect()
    }
}
