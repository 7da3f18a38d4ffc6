//! The access point of this host, as far as the host can tell. Its peers claim the same one.

use crate::link::interface::Interface;
use crate::link::wifi::Radio;
use lasthop_peers::group::{Label, Labels};

/// Whether the interface has no access point now: it is down, has no address, or its radio is not associated.
pub(crate) fn is_away(interface: &Interface, radio: &Radio) -> bool {
    let has_address = interface.broadcast.is_some() || interface.has_ipv6_link_local;
    !interface.up || !has_address || *radio == Radio::Alone
}

/// The labels of the interface's access point: the configured name, else the BSSID, else the next hops of the default
/// routes. `None`: it [is away](is_away), and its next place is unknown.
pub(crate) fn group(interface: &Interface, radio: &Radio, name: Option<&str>) -> Option<Labels> {
    if let Some(name) = name {
        return Some(Label::Name(name.to_owned()).into());
    }
    (!is_away(interface, radio)).then(|| match radio {
        Radio::Associated(link) => Label::Bssid(link.bssid.bytes()).into(),
        Radio::None | Radio::Alone => Labels::of_gateways(interface.gateways),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_status::WifiLink;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn a_name_goes_before_the_access_point_that_before_the_gateway_and_without_any_it_is_the_link() {
        let shown = |interface: &Interface, radio: &Radio, name| {
            group(interface, radio, name).map(|labels| labels.shown().clone())
        };
        let wired = |interface: &Interface, name| shown(interface, &Radio::None, name);
        let gateway = IpAddr::from([10, 77, 0, 254]);
        let interface = Interface {
            name: "wlan0".to_owned(),
            index: 3,
            up: true,
            broadcast: Some(Ipv4Addr::new(10, 77, 0, 255)),
            tunnels: Vec::new(),
            has_ipv6_link_local: false,
            own_addresses: Vec::new(),
            gateways: [Some(gateway), None],
        };
        assert_eq!(wired(&interface, Some("office")), Some(Label::Name("office".to_owned())));
        assert_eq!(wired(&interface, None), Some(Label::Gateway(gateway)));
        assert_eq!(wired(&Interface { gateways: [None; 2], ..interface.clone() }, None), Some(Label::Link));
        let associated = Radio::Associated(WifiLink::of([2, 0, 0, 0, 0, 1].into()));
        assert_eq!(shown(&interface, &associated, None), Some(Label::Bssid([2, 0, 0, 0, 0, 1])));
        assert_eq!(shown(&interface, &associated, Some("office")), Some(Label::Name("office".to_owned())));
        assert!(!is_away(&interface, &associated));
        assert!(is_away(&interface, &Radio::Alone));
        assert_eq!(shown(&interface, &Radio::Alone, None), None);
        for away in [Interface { up: false, ..interface.clone() }, Interface { broadcast: None, ..interface }] {
            assert!(is_away(&away, &associated));
            assert_eq!(wired(&away, None), None);
            assert!(wired(&away, Some("office")).is_some());
        }
    }
}
