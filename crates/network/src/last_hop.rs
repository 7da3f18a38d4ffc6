//! What a host's own link towards it is like: what its owner could know at best, without looking at any packet.
//!
//! | network | bandwidth | loss |
//! | --- | --- | --- |
//! | links | the rate of the last link on the way from the server to the host, in that direction | its random loss |
//! | wired access | the access's rate | 0 |
//! | Wi-Fi | what one station alone gets of full packets | what is lost after the last retry |
//!
//! On Wi-Fi, of packets of L = 1500 bytes that wait at the access point while nobody else has anything to send, p being the frame
//! error rate, r that of responses and m the retry limit:
//!
//! ```text
//! q         = 1 - p                                          that a transmission is received; (1 - r) (1 - p) with RTS
//! f         = 1 - (1 - r) q                                  that it has no response
//! T_i       = DIFS + slot · CW_i / 2 + data + (1 - p) (SIFS + ACK + r (EIFS - DIFS)) + p ACKTimeout
//!                                                            transmission i = 0, 1, ..
//! T_i       = DIFS + slot · CW_i / 2 + RTS + SIFS + CTS + r (EIFS - DIFS) + (1 - r) (SIFS + data + .. as above)      with RTS
//! CW_i      = min(2^i (CWmin + 1) - 1, CWmax)
//! loss      = (1 - q)^m                                      0 without end of retries
//! bandwidth = 8 L (1 - loss) / sum over i < m of f^i T_i
//! ```
//!
//! which at 54 Mb/s without errors is 30.5 Mb/s, and 24.9 Mb/s with RTS. In 802.11n and later an A-MPDU of K packets takes the place of
//! the frame: as many as the limits and the access point's queue allow. p^K takes the place of p in T_i and in f; what is received
//! is each packet's share, which can miss a transmission that others get through. Windows that wait for repeats are left out. Of
//! acknowledgements that go up meanwhile, and of other stations, it knows nothing, as their owner does not.
//!
//! References: G. Bianchi: Performance analysis of the IEEE 802.11 distributed coordination function, IEEE JSAC 18(3), 2000,
//! with one station.

use crate::config::{AccessConfig, Config, Topology};
use crate::packet::NodeId;
use crate::wifi::alone;
use lasthop_units::{Probability, Rate};

/// A host's own link, in the direction to the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LastHop {
    /// In bytes of IP packets; [`Rate::ZERO`] where nothing comes through at all.
    pub bandwidth: Rate,
    /// The probability that a packet is lost at random.
    pub loss: Probability,
}

impl Config {
    /// The last hop of this host's packets from `server`, as the network is without any of the changes. [`Config::at`] has it
    /// as it is at some time.
    ///
    /// # Panics
    /// If there is no such host or no such node, or, with links, both sit on one node.
    pub fn last_hop(&self, host: NodeId, server: NodeId) -> LastHop {
        match &self.topology {
            Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => {
                let (bandwidth, loss) = alone(wifi, &self.hosts[host.index()]);
                LastHop { bandwidth, loss }
            }
            Topology::AccessPoint { access: AccessConfig::Wired(wired), .. } => {
                LastHop { bandwidth: wired.rate, loss: Probability::ZERO }
            }
            Topology::Links(links) => {
                let direction = links.routes().last(links.seat(server), links.seat(host));
                let link = &links.links[direction / 2];
                let direction = if direction.is_multiple_of(2) { link.forth } else { link.back };
                LastHop { bandwidth: direction.rate, loss: direction.loss }
            }
        }
    }
}
