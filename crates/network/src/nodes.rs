//! Which node of the network is which: the hosts are numbered first, from 0; after them comes the server behind the access point, or
//! come the nodes that links join.

use crate::config::{Config, LinksConfig, Topology};
use crate::packet::NodeId;

impl Config {
    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.hosts.len()
            + match &self.topology {
                Topology::AccessPoint { .. } => 1,
                Topology::Links(links) => links.nodes,
            }
    }

    /// The node that has this number among those that are no hosts: 0 is the server behind the access point, and with links `number` is
    /// counted as in [`LinksConfig`].
    ///
    /// # Panics
    /// If there are 65536 nodes or more before it.
    pub fn beside_hosts(&self, number: usize) -> NodeId {
        NodeId(u16::try_from(self.hosts.len() + number).expect("far less nodes than 65536"))
    }
}

impl LinksConfig {
    /// Where a node is among those that links join: a host sits on one of them, and every other node is one.
    ///
    /// # Panics
    /// If it is a host that there is not.
    pub fn seat(&self, node: NodeId) -> usize {
        let hosts = self.attached.len();
        node.index().checked_sub(hosts).unwrap_or_else(|| self.attached[node.index()])
    }
}
