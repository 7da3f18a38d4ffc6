//! Last in, first out; tail drop.

use super::{Desk, Scheduler, Served, Setup};
use crate::packet::{Destination, Packet};
use lasthop_units::{Bytes, Time};

pub(crate) type Lifo<P> = Served<P, Stack<P>>;

#[derive(Clone, Debug)]
pub(crate) struct Stack<P>(Vec<Packet<P>>);

impl<P> Lifo<P> {
    pub(super) fn new(setup: Setup<'_>) -> Self {
        Self::of(Stack(Vec::new()), setup)
    }
}

impl<P> Scheduler<P> for Stack<P> {
    fn inside(&self) -> usize {
        self.0.len()
    }

    fn accept(&mut self, now: Time, packet: Packet<P>, has_room: bool, desk: &mut Desk<P>) -> Result<(), Packet<P>> {
        if !has_room {
            return desk.refuse(now, packet);
        }
        self.0.push(packet);
        Ok(())
    }

    fn next(
        &mut self,
        _now: Time,
        to: Option<Destination>,
        fits: &dyn Fn(Bytes) -> bool,
        _desk: &mut Desk<P>,
    ) -> Option<Packet<P>> {
        let last = self.0.iter().rposition(|packet| to.is_none_or(|to| packet.to == to))?;
        if fits(self.0[last].size) { Some(self.0.remove(last)) } else { None }
    }
}
