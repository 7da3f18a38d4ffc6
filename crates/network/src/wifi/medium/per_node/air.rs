//! Use of the air time where several may be on the air: of each cell, and of all together.
//!
//! While one of its transmissions is lost at its receiver to others, it is a collision. An exchange without a response for
//! noise counts as a success at first, and is booked as an error at its end.

use super::timers::Timers;
use super::{Reached, Signal};
use crate::config::{Cells, HearingLevel};
use crate::statistics::CellStatistics;
use crate::wifi::air_use::{AirMeter, AirUse};
use lasthop_units::{Span, Time};

#[derive(Clone, Debug)]
pub(super) struct Air {
    stations: usize,
    /// By node: its cell.
    cells: Vec<usize>,
    /// By cell, then all together.
    meters: Vec<Meter>,
    /// By cell: other cells' transmissions that its access point senses, and for how long it did.
    foreign: Vec<Foreign>,
}

#[derive(Clone, Debug)]
struct Meter {
    meter: AirMeter,
    /// Exchanges that go on, and transmissions that are lost or to all.
    open: usize,
    lost: usize,
    to_all: usize,
    collisions: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Foreign {
    count: u16,
    since: Time,
    time: Span,
}

impl Air {
    pub(super) fn new(cells: &Cells) -> Self {
        let meter = Meter { meter: AirMeter::new(Time::ZERO), open: 0, lost: 0, to_all: 0, collisions: 0 };
        Self {
            stations: cells.of_host.len(),
            cells: cells.cell_of_nodes().collect(),
            meters: vec![meter; cells.access_points + 1],
            foreign: vec![Foreign::default(); cells.access_points],
        }
    }

    /// A transmission begins.
    pub(super) fn begin(&mut self, now: Time, signal: &Signal, access: &Timers) {
        self.change(now, signal, access, |meter| {
            meter.open += usize::from(signal.is_new);
            meter.to_all += usize::from(signal.to.is_none());
        });
    }

    /// It is lost at its receiver.
    pub(super) fn lose(&mut self, now: Time, signal: &Signal, access: &Timers) {
        self.change(now, signal, access, |meter| meter.lost += 1);
    }

    /// It has ended. The exchange goes on until [`close`](Self::close).
    pub(super) fn end(&mut self, now: Time, signal: &Signal, access: &Timers) {
        self.change(now, signal, access, |meter| {
            meter.lost -= usize::from(signal.is_lost);
            meter.to_all -= usize::from(signal.to.is_none());
        });
    }

    /// The exchange is over. `error`: so much of it was in vain, for noise.
    pub(super) fn close(&mut self, now: Time, signal: &Signal, access: &Timers, error: Option<Span>) {
        self.change(now, signal, access, |meter| {
            meter.open -= 1;
            error.into_iter().for_each(|error| meter.meter.turn_into_error(error));
        });
    }

    /// A collision at a receiver.
    pub(super) fn collide(&mut self, signal: &Signal) {
        for of in [self.cells[signal.node], self.foreign.len()] {
            self.meters[of].collisions += 1;
        }
    }

    /// Whom this node reaches begins to sense a transmission from there, or has sensed it.
    pub(super) fn sense(&mut self, now: Time, from: usize, reached: &[Reached], begins: bool) {
        let Self { stations, cells, foreign, .. } = self;
        // The access points stand behind the stations.
        let access_points = reached.iter().rev().take_while(|reached| reached.node as usize >= *stations);
        for at in access_points.filter(|reached| reached.level >= HearingLevel::Senses) {
            let cell = cells[at.node as usize];
            if cell == cells[from] {
                continue;
            }
            let foreign = &mut foreign[cell];
            if foreign.count > 0 {
                foreign.time += now - foreign.since;
            }
            foreign.since = now;
            foreign.count = if begins { foreign.count + 1 } else { foreign.count - 1 };
        }
    }

    /// What all together do.
    pub(super) fn all(&self, access: &Timers) -> AirUse {
        self.air_use(self.foreign.len(), access)
    }

    /// Collisions of all cells.
    pub(super) fn collisions(&self) -> u64 {
        self.meters[self.foreign.len()].collisions
    }

    /// Use of the air by all together.
    pub(super) fn until(&self, now: Time, access: &Timers) -> crate::AirTime {
        self.meters[self.foreign.len()].meter.until(now, self.all(access))
    }

    pub(super) fn report(&self, now: Time, access: &Timers) -> Vec<CellStatistics> {
        let cell = |(cell, foreign): (usize, &Foreign)| CellStatistics {
            air: self.meters[cell].meter.until(now, self.air_use(cell, access)),
            neighbours: foreign.time + if foreign.count > 0 { now.saturating_since(foreign.since) } else { Span::ZERO },
            collisions: self.meters[cell].collisions,
        };
        self.foreign.iter().enumerate().map(cell).collect()
    }

    pub(super) fn reset(&mut self, now: Time) {
        for meter in &mut self.meters {
            meter.meter = AirMeter::new(now);
            meter.collisions = 0;
        }
        for foreign in &mut self.foreign {
            (foreign.since, foreign.time) = (now, Span::ZERO);
        }
    }

    /// The station, which has no frames on the air and does not contend, is of this cell from now on.
    pub(super) fn move_station(&mut self, station: usize, cell: u16) {
        self.cells[station] = cell.into();
    }

    /// A sender of this node has frames from now on, or no more.
    pub(super) fn book(&mut self, now: Time, node: usize, access: &Timers) {
        for of in [self.cells[node], self.foreign.len()] {
            let air_use = self.air_use(of, access);
            self.meters[of].meter.book(now, air_use);
        }
    }

    fn change(&mut self, now: Time, signal: &Signal, access: &Timers, change: impl Fn(&mut Meter)) {
        self.book(now, signal.node, access);
        for of in [self.cells[signal.frame.node], self.foreign.len()] {
            change(&mut self.meters[of]);
        }
    }

    fn air_use(&self, of: usize, access: &Timers) -> AirUse {
        let Meter { open, lost, to_all, .. } = self.meters[of];
        if lost > 0 {
            AirUse::Collision
        } else if open > 0 && open == to_all {
            AirUse::Broadcast
        } else if open > 0 {
            AirUse::Success
        } else if access.waits(of) {
            AirUse::Contention
        } else {
            AirUse::Idle
        }
    }
}
