//! The next link of a packet.
//!
//! From each node to each goal: of the links that lead one link closer, the first in the configuration. Distances count
//! links and come from one breadth-first search per goal. So all paths are shortest and free of loops, and the order of
//! the links breaks ties. The path back may differ.
//!
//! Leaves out: weights, changes in time, multipath.

use std::collections::VecDeque;

/// For each node and goal, the direction (link 2k forth, 2k + 1 back) to take.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    /// By node, then by goal.
    next: Vec<u32>,
    /// By direction: the node where it ends.
    ends: Vec<usize>,
}

/// The goal is unreachable or already reached.
const NONE: u32 = u32::MAX;

impl Routes {
    /// The routes of `nodes` nodes over links with these ends.
    pub(crate) fn new(nodes: usize, links: &[(usize, usize)]) -> Self {
        // By node: its links in their order, as the direction away from it and the node there.
        let mut away = vec![Vec::new(); nodes];
        for (link, ends) in links.iter().enumerate() {
            away[ends.0].push((2 * link as u32, ends.1));
            away[ends.1].push((2 * link as u32 + 1, ends.0));
        }
        let mut next = vec![NONE; nodes * nodes];
        let mut distances = vec![None; nodes];
        let mut reached = VecDeque::new();
        for goal in 0..nodes {
            distances.fill(None);
            distances[goal] = Some(0_usize);
            reached.push_back(goal);
            while let Some(node) = reached.pop_front() {
                let further = distances[node].map(|distance| distance + 1);
                for &(_, neighbour) in &away[node] {
                    if distances[neighbour].is_none() {
                        distances[neighbour] = further;
                        reached.push_back(neighbour);
                    }
                }
            }
            for node in (0..nodes).filter(|&node| node != goal) {
                let Some(distance) = distances[node] else { continue };
                let closer = away[node].iter().find(|(_, neighbour)| distances[*neighbour] == Some(distance - 1));
                next[node * nodes + goal] = closer.expect("somebody reached it").0;
            }
        }
        let ends = links.iter().flat_map(|&(one, other)| [other, one]).collect();
        Self { nodes, next, ends }
    }

    /// The outgoing direction from `node` to `goal`, which are different and connected.
    pub(crate) fn next(&self, node: usize, goal: usize) -> usize {
        self.next[node * self.nodes + goal] as usize
    }

    /// The direction by which `goal` is reached from `node`; they are different and connected.
    pub(crate) fn last(&self, node: usize, goal: usize) -> usize {
        let mut direction = self.next(node, goal);
        while self.ends[direction] != goal {
            direction = self.next(self.ends[direction], goal);
        }
        direction
    }

    /// The first node that node 0 cannot reach.
    pub(crate) fn unreachable(&self) -> Option<usize> {
        (1..self.nodes).find(|&goal| self.next[goal] == NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes on the path.
    fn way(routes: &Routes, ends: &[(usize, usize)], from: usize, to: usize) -> Vec<usize> {
        let mut way = vec![from];
        while way[way.len() - 1] != to {
            let direction = routes.next(way[way.len() - 1], to);
            let (one, other) = ends[direction / 2];
            way.push(if direction.is_multiple_of(2) { other } else { one });
        }
        way
    }

    #[test]
    fn the_fewest_links_win() {
        // A ring of five: 0 to 2 over 1, 0 to 3 over 4.
        let ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)];
        let routes = Routes::new(5, &ends);
        assert_eq!(way(&routes, &ends, 0, 2), [0, 1, 2]);
        assert_eq!(way(&routes, &ends, 0, 3), [0, 4, 3]);
        assert_eq!(way(&routes, &ends, 3, 0), [3, 4, 0]);
        assert_eq!(routes.unreachable(), None);
    }

    #[test]
    fn of_equals_the_link_that_stands_first_wins() {
        // A ring of four, and the first link once more: both ways from 0 to 2 have two links.
        let ends = [(0, 3), (0, 1), (1, 2), (2, 3), (0, 3)];
        let routes = Routes::new(4, &ends);
        assert_eq!(way(&routes, &ends, 0, 2), [0, 3, 2], "0-3 stands before 0-1");
        assert_eq!(way(&routes, &ends, 2, 0), [2, 1, 0], "1-2 stands before 2-3");
        assert_eq!(routes.next(0, 3), 0, "the first of two links between the same nodes");
        assert_eq!(routes.next(3, 0), 1, "the same link, back");
    }

    #[test]
    fn a_node_without_a_way_is_named() {
        assert_eq!(Routes::new(5, &[(0, 1), (2, 3), (1, 4)]).unreachable(), Some(2));
    }
}
