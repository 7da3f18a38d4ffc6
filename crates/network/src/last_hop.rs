//! The true state of a host's own link towards it: the best that its owner can know without observing packets.
//!
//! | network | bandwidth | loss |
//! | --- | --- | --- |
//! | links | the rate of the last link on the way from the server to the host, in that direction | its random loss |
//! | wired access | the access's rate | 0 |
//! | Wi-Fi | one station's throughput alone, with full packets | loss after the last retry |
//!
//! On Wi-Fi, packets of L = 1500 bytes wait at the access point while nobody else has anything to send. p is the frame
//! error rate, r that of responses, m the retry limit:
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
//! At 54 Mb/s without errors this is 30.5 Mb/s, and 24.9 Mb/s with RTS. In 802.11n and later an A-MPDU of K packets
//! replaces the frame, with K from the limits and the access point's queue. p^K replaces p in T_i and in f. The packets
//! received are each packet's own share, as a packet can miss a transmission that others survive. Windows that wait for
//! repeats are left out, and RTS before them. So are acknowledgements in the other direction, and other stations.
//!
//! References: G. Bianchi: Performance analysis of the IEEE 802.11 distributed coordination function, IEEE JSAC 18(3),
//! 2000, with one station.

use crate::config::{AccessConfig, Config, Topology};
use crate::packet::NodeId;
use crate::wifi::alone;
use lasthop_units::{Probability, Rate};

/// A host's own link, in the direction to the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LastHop {
    /// In bytes of IP packets; [`Rate::ZERO`] if nothing gets through.
    pub bandwidth: Rate,
    /// The probability that a packet is lost at random.
    pub loss: Probability,
}

impl Config {
    /// The last hop of this host's packets from `server`, before any change of the network. [`Config::at`] gives the
    /// network at a later time.
    ///
    /// # Panics
    /// If there is no such host or no such node, or, with links, both sit on one node.
    pub fn last_hop(&self, host: NodeId, server: NodeId) -> LastHop {
        match &self.topology {
            Topology::AccessPoint { access: AccessConfig::Wifi(wifi), .. } => {
                let (bandwidth, loss) = alone(wifi, &self.hosts, host.index());
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
