//! Node numbers: first the hosts, from 0. After them comes the server behind the access point, or the nodes joined by
//! links.

use crate::config::{Config, LinksConfig, Topology};
use crate::packet::NodeId;

impl Config {
    /// The number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.hosts.len()
            + match &self.topology {
                Topology::AccessPoint { .. } => 1,
                Topology::Links(links) => links.nodes,
            }
    }

    /// The node with this number among those that are not hosts. 0 is the server behind the access point; with links,
    /// `number` counts as in [`LinksConfig`].
    ///
    /// # Panics
    /// If there are 65536 nodes or more before it.
    pub fn beside_hosts(&self, number: usize) -> NodeId {
        NodeId(u16::try_from(self.hosts.len() + number).expect("far less nodes than 65536"))
    }
}

impl LinksConfig {
    /// The position of a node among those joined by links: a host has the one it is attached to.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn seat(&self, node: NodeId) -> usize {
        let hosts = self.attached.len();
        node.index().checked_sub(hosts).unwrap_or_else(|| self.attached[node.index()])
    }
}
