//! The sockets as they were told last. One that is not told again has not changed but grown idle.

use crate::kernel::Cookie;
use crate::sample::SocketSample;
use lasthop_units::Span;
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Those that are awake.
    pub(crate) sockets: Arc<Vec<SocketSample>>,
    /// Where each of them is; [`ASLEEP`]: it is only counted.
    places: FxHashMap<Cookie, usize>,
}

const ASLEEP: usize = usize::MAX;

impl Memory {
    pub(crate) fn asleep(&self) -> usize {
        self.places.len() - self.sockets.len()
    }

    pub(crate) fn clear(&mut self) {
        Arc::make_mut(&mut self.sockets).clear();
        self.places.clear();
    }

    pub(crate) fn put(&mut self, sample: SocketSample, asleep: bool) {
        let place = self.places.get(&sample.cookie).copied();
        let sockets = Arc::make_mut(&mut self.sockets);
        match place.and_then(|place| sockets.get_mut(place)) {
            Some(socket) if !asleep => *socket = sample,
            Some(_) => self.put_to_sleep(sample.cookie),
            None if asleep => drop(self.places.insert(sample.cookie, ASLEEP)),
            None => {
                self.places.insert(sample.cookie, sockets.len());
                sockets.push(sample);
            }
        }
    }

    /// It has closed.
    pub(crate) fn remove(&mut self, cookie: Cookie) {
        if self.places.contains_key(&cookie) {
            self.put_to_sleep(cookie);
            self.places.remove(&cookie);
        }
    }

    fn put_to_sleep(&mut self, cookie: Cookie) {
        let Some(place) = self.places.insert(cookie, ASLEEP).filter(|place| *place != ASLEEP) else { return };
        let sockets = Arc::make_mut(&mut self.sockets);
        sockets.swap_remove(place);
        if let Some(moved) = sockets.get(place) {
            self.places.insert(moved.cookie, place);
        }
    }

    /// Time goes by. Those that are idle for longer than `asleep` fall asleep, if that is not zero.
    pub(crate) fn age(&mut self, by: Span, asleep: Span) {
        let mut tired = Vec::new();
        for socket in Arc::make_mut(&mut self.sockets) {
            socket.idle = (socket.idle + by).min(IDLE_MOST);
            if socket.idle > asleep && asleep > Span::ZERO {
                tired.push(socket.cookie);
            }
        }
        tired.into_iter().for_each(|cookie| self.put_to_sleep(cookie));
    }
}

/// As in the programs' records.
const IDLE_MOST: Span = Span::from_micros(u32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Record;
    use crate::sample::Reader;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    fn sample(cookie: Cookie, idle_s: u32) -> SocketSample {
        let record = Record { cookie, idle_us: idle_s * 1_000_000, ..Record::new_zeroed() };
        Reader::default().read(record.as_bytes()).expect("a whole record").0
    }

    #[test]
    fn a_socket_is_there_once_ages_falls_asleep_wakes_and_goes() {
        let mut memory = Memory::default();
        let told = |memory: &Memory| -> Vec<_> {
            memory.sockets.iter().map(|socket| (socket.cookie, socket.idle.as_secs_f64())).collect()
        };
        for (cookie, idle) in [(1, 20), (2, 5), (3, 7), (1, 20), (3, 8)] {
            memory.put(sample(cookie, idle), false);
        }
        memory.put(sample(4, 40), true);
        assert_eq!((told(&memory), memory.asleep()), (vec![(1, 20.0), (2, 5.0), (3, 8.0)], 1));
        memory.age(Span::from_secs(11), Span::from_secs(30));
        assert_eq!((told(&memory), memory.asleep()), (vec![(3, 19.0), (2, 16.0)], 2));
        memory.put(sample(3, 40), true);
        memory.put(sample(4, 0), false);
        assert_eq!((told(&memory), memory.asleep()), (vec![(2, 16.0), (4, 0.0)], 2));
        [1, 2, 9].into_iter().for_each(|cookie| memory.remove(cookie));
        assert_eq!((told(&memory), memory.asleep()), (vec![(4, 0.0)], 1));
        memory.age(Span::from_secs(10_000), Span::ZERO);
        assert_eq!((told(&memory), memory.asleep()), (vec![(4, 4294.967295)], 1));
    }
}
