//! Makes room where more connections need a bound of their own than the kernel's map holds.

use lasthop_laws::bound::Bound;
use lasthop_policy::FlowId;
use lasthop_units::Span;
use std::collections::HashMap;

/// Shortens `bounds` to `most` entries. The connections that are idle for longest lose theirs, those that have closed
/// first of all. `open`: the open connections, and for how long each is idle. Returns those of them that lost theirs.
pub(crate) fn make_room(
    bounds: &mut Vec<(FlowId, Option<Bound>)>,
    most: usize,
    open: impl Iterator<Item = (FlowId, Span)>,
) -> Vec<FlowId> {
    if bounds.len() <= most {
        return Vec::new();
    }
    let idle: HashMap<FlowId, Span> = open.collect();
    bounds.sort_by_key(|(id, _)| (idle.get(id).copied().unwrap_or(Span::MAX), *id));
    bounds.split_off(most).into_iter().filter(|(id, _)| idle.contains_key(id)).map(|(id, _)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_gone_and_then_those_idle_for_longest_lose_their_place() {
        let idle = [(1, 0), (2, 9), (3, 3), (5, 0)].map(|(id, seconds)| (FlowId(id), Span::from_secs(seconds)));
        let bounds = [1, 2, 3, 4, 5].map(|id| (FlowId(id), Some(Bound::at_most(8))));
        let with_room_for = |most| {
            let mut bounds = bounds.to_vec();
            let lost = make_room(&mut bounds, most, idle.into_iter());
            (bounds.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), lost.iter().map(|id| id.0).collect::<Vec<_>>())
        };
        assert_eq!(with_room_for(5), (vec![1, 2, 3, 4, 5], vec![]));
        assert_eq!(with_room_for(4), (vec![1, 5, 3, 2], vec![])); // 4 has closed
        assert_eq!(with_room_for(3), (vec![1, 5, 3], vec![2]));
        assert_eq!(with_room_for(1), (vec![1], vec![5, 3, 2]));
    }
}
