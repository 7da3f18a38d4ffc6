//! Which access point this host is behind, as far as it can tell: its peers are those that say the same.

use crate::interface::Interface;
use control::group::Label;

/// The label of the interface's access point: the configured name, else what the interface shows. `None`: the interface is down
/// or has no address yet, which says nothing about where it will be.
pub(crate) fn group(interface: &Interface, name: Option<&str>) -> Option<Label> {
    match name {
        Some(name) => Some(Label::Name(name.to_owned())),
        None if !interface.up || !(interface.broadcast.is_some() || interface.has_ipv6_link_local) => None,
        None => Some(interface.gateway.map_or(Label::Link, Label::Gateway)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn a_name_goes_before_the_gateway_and_without_either_it_is_the_link() {
        let gateway = IpAddr::from([10, 77, 0, 254]);
        let interface = Interface {
            name: "wlan0".to_owned(),
            index: 3,
            up: true,
            broadcast: Some(Ipv4Addr::new(10, 77, 0, 255)),
            has_ipv6_link_local: false,
            gateway: Some(gateway),
        };
        assert_eq!(group(&interface, Some("office")), Some(Label::Name("office".to_owned())));
        assert_eq!(group(&interface, None), Some(Label::Gateway(gateway)));
        assert_eq!(group(&Interface { gateway: None, ..interface.clone() }, None), Some(Label::Link));
        for away in [Interface { up: false, ..interface.clone() }, Interface { broadcast: None, ..interface }] {
            assert_eq!(group(&away, None), None);
            assert!(group(&away, Some("office")).is_some());
        }
    }
}
