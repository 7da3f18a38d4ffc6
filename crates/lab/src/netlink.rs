//! The rtnetlink requests that configure a TUN device's address, route and queue.

use crate::error::{Doing, Result};
use lasthop_units::{Bytes, Rate};
use netlink_packet_core::{
    DefaultNla, Emitable as _, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{
    TcAttribute, TcFilterU32Option, TcHandle, TcMessage, TcOption, TcStats2, TcU32Key, TcU32Selector,
    TcU32SelectorFlags,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// The handle of the discipline with the lanes; a lane's own has the next ones.
const LANES: u16 = 2;
/// A refusal, with what it refuses.
const MOST_OF_ANSWER: usize = 8192;

/// Which packets go into a lane: those of a protocol whose words are as here.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// ETH_P_IP or ETH_P_IPV6.
    pub(crate) protocol: u16,
    /// Words of the IP header: the byte where each begins, and its value under a mask.
    pub(crate) words: Vec<(i32, u32, u32)>,
    /// 0: in none.
    pub(crate) lane: u16,
}

/// An rtnetlink connection to the namespace that opened it.
pub(crate) struct Netlink(lasthop_kernel::netlink::Netlink);

impl Netlink {
    pub(crate) fn open() -> Result<Self> {
        lasthop_kernel::netlink::Netlink::open(NETLINK_ROUTE).map(Self).doing("cannot open rtnetlink")
    }

    /// Brings the link up with a transmit queue of `queue_packets`.
    pub(crate) fn bring_up(&mut self, interface_index: u32, queue_packets: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface_index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.push(LinkAttribute::TxQueueLen(queue_packets));
        self.request(RouteNetlinkMessage::SetLink(message), 0).doing("cannot bring a TUN device up")
    }

    /// Limits the packets that TCP hands to the link to this many segments.
    pub(crate) fn limit_gso(&mut self, interface_index: u32, segments: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface_index;
        message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        self.request(RouteNetlinkMessage::SetLink(message), 0).doing("cannot set gso_max_segs of a TUN device")
    }

    /// Limits the packets that the kernel makes of segments from the link (GRO) to less than this size.
    pub(crate) fn limit_gro(&mut self, interface_index: u32, below_bytes: u32) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface_index;
        message.attributes.push(LinkAttribute::GroIpv4MaxSize(below_bytes));
        self.request(RouteNetlinkMessage::SetLink(message), 0).doing("cannot set gro_ipv4_max_size of a TUN device")
    }

    /// Brings the namespace's loopback device up.
    pub(crate) fn bring_loopback_up(&mut self) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = 1; // LOOPBACK_IFINDEX (net/net_namespace.h)
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0).doing("cannot bring a loopback device up")
    }

    /// Gives the link an address, with its prefix's broadcast address.
    pub(crate) fn add_address(&mut self, interface_index: u32, address: IpAddr, prefix_length: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.index = interface_index;
        message.header.prefix_len = prefix_length;
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        if let (IpAddr::V4(address), 0..31) = (address, prefix_length) {
            let broadcast = Ipv4Addr::from_bits(address.to_bits() | (u32::MAX >> prefix_length));
            message.attributes.push(AddressAttribute::Broadcast(broadcast));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing(format_args!("cannot give a TUN device the address {address}/{prefix_length}"))
    }

    /// Gives the link, which is down, another name.
    pub(crate) fn rename(&mut self, interface_index: u32, name: &str) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface_index;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.request(RouteNetlinkMessage::SetLink(message), 0).doing("cannot rename a radio's device")
    }

    /// Says for ever which station of the link has this address, so that nobody asks.
    pub(crate) fn add_neighbour(&mut self, interface_index: u32, address: Ipv4Addr, station: [u8; 6]) -> Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = interface_index;
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(address)));
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(station.to_vec()));
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing(format_args!("cannot say which station has {address}"))
    }

    /// Adds a default route of IPv4 by way of a router on the link, with these `metrics` for its connections.
    pub(crate) fn add_route_by(&mut self, router: Ipv4Addr, metrics: Vec<RouteMetric>) -> Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(router)));
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing("cannot add a default route by way of an access point")
    }

    /// Adds a default route of this family through the link, with these `metrics` for its connections.
    pub(crate) fn add_default_route(
        &mut self,
        interface_index: u32,
        family: AddressFamily,
        metrics: Vec<RouteMetric>,
    ) -> Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(interface_index));
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing("cannot add a default route through a TUN device")
    }

    /// Gives the link a FIFO queueing discipline. The system's default might be fq, which paces every connection.
    pub(crate) fn queue_plainly(&mut self, interface_index: u32) -> Result<()> {
        let place = (TcHandle::ROOT, TcHandle { major: 1, minor: 0 });
        let message = traffic_control(interface_index, place, "pfifo", Vec::new());
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing("cannot set the queueing discipline of a TUN device")
    }

    /// Gives the link lanes, numbered from 1, each with a queueing discipline of its own to come ([`shape`](Self::shape)). A
    /// packet goes into the lane of the first rule that it matches. All others go before those in lanes, at once (tc-htb(8)).
    pub(crate) fn divide(&mut self, interface_index: u32, lanes: u16, rules: &[Rule]) -> Result<()> {
        const DOING: &str = "cannot set the lanes of a TUN device (the kernel needs CONFIG_NET_SCH_HTB)";
        const RULES: &str = "cannot set the filters of a TUN device (the kernel needs CONFIG_NET_CLS_U32)";

        let (root, create) = (TcHandle { major: LANES, minor: 0 }, NLM_F_CREATE | NLM_F_REPLACE);
        let message = traffic_control(interface_index, (TcHandle::ROOT, root), "htb", hierarchy());
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), create).doing(DOING)?;
        for lane in 1..=lanes {
            let class = TcHandle { major: LANES, minor: lane };
            let message = traffic_control(interface_index, (root, class), "htb", unlimited_class());
            self.request(RouteNetlinkMessage::NewTrafficClass(message), NLM_F_CREATE).doing(DOING)?;
        }
        for (priority, rule) in (1..).zip(rules) {
            let mut message = traffic_control(interface_index, (root, TcHandle::UNSPEC), "u32", rule.options());
            message.header.info = priority << 16 | u32::from(rule.protocol.to_be());
            self.request(RouteNetlinkMessage::NewTrafficFilter(message), NLM_F_CREATE).doing(RULES)?;
        }
        Ok(())
    }

    /// Puts a token bucket into a lane, or changes the existing one (tc-tbf(8)). It has rate `rate`, a bucket of
    /// `burst` and a queue of `limit`.
    pub(crate) fn shape(&mut self, interface: u32, lane: u16, rate: Rate, burst: Bytes, limit: Bytes) -> Result<()> {
        let place = (TcHandle { major: LANES, minor: lane }, TcHandle { major: LANES + lane, minor: 0 });
        let message = traffic_control(interface, place, "tbf", token_bucket(rate, burst, limit));
        // Replaces the previous discipline. A token bucket with the same handle is changed and keeps its queue.
        self.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_REPLACE)
            .doing("cannot set a token bucket of a TUN device (the kernel needs CONFIG_NET_SCH_TBF)")
    }

    /// Gives the link a queueing discipline with these options.
    pub(crate) fn queue_by(&self, interface_index: u32, kind: &str, options: TcAttribute) -> Result<()> {
        self.discipline(interface_index, (TcHandle::ROOT, TcHandle { major: LANES, minor: 0 }), kind, options)
    }

    /// The same behind a token bucket (tc-tbf(8)) of this rate and burst, which sends one packet after the other.
    pub(crate) fn send_at(
        &self,
        interface_index: u32,
        rate: Rate,
        burst: Bytes,
        kind: &str,
        options: TcAttribute,
    ) -> Result<()> {
        let [bucket, inside] = [LANES, LANES + 1].map(|major| TcHandle { major, minor: 0 });
        // Its own queue is replaced at once.
        let of_bucket = TcAttribute::Options(token_bucket(rate, burst, burst));
        self.discipline(interface_index, (TcHandle::ROOT, bucket), "tbf", of_bucket)?;
        self.discipline(interface_index, (TcHandle { major: LANES, minor: 1 }, inside), kind, options)
    }

    fn discipline(
        &self,
        interface_index: u32,
        place: (TcHandle, TcHandle),
        kind: &str,
        options: TcAttribute,
    ) -> Result<()> {
        let mut message = traffic_control(interface_index, place, kind, Vec::new());
        let (is_nested, length) = (matches!(options, TcAttribute::Options(_)), options.buffer_len());
        message.attributes.push(options);
        let mut message = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        message.header.sequence_number = 1;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        // fq_pie refuses options that do not say that they are nested: NLA_F_NESTED of their type, which netlink_packet_route leaves out.
        // They are the last attribute.
        let of_type = bytes.len() - length.next_multiple_of(4) + 2;
        let flagged = u16::from_ne_bytes([bytes[of_type], bytes[of_type + 1]]) | u16::from(is_nested) << 15;
        bytes[of_type..of_type + 2].copy_from_slice(&flagged.to_ne_bytes());
        let ask = || -> io::Result<()> {
            let mut netlink = lasthop_kernel::netlink::Netlink::open(NETLINK_ROUTE)?;
            let (mut datagram, mut answers) = (Vec::new(), Vec::<RouteNetlinkMessage>::new());
            netlink.send(&bytes)?;
            netlink.receive(&mut datagram, MOST_OF_ANSWER)?;
            lasthop_kernel::netlink::read(&datagram, 1, &mut answers).map(drop)
        };
        let asked = ask();
        let lacks_it = matches!(&asked, Err(error) if error.kind() == io::ErrorKind::NotFound);
        let why = if lacks_it {
            " (this kernel lacks it; one of `lasthop kernels fetch` that was kept before it could be asked for is to be fetched again)"
        } else {
            ""
        };
        asked.doing(format_args!("cannot give a TUN device the queueing discipline {kind}{why}"))
    }

    /// The packets that wait in the link's queue, and those that it has dropped since it was made, inside or at its tail.
    pub(crate) fn queued(&mut self, interface_index: u32) -> Result<(usize, u64)> {
        const DOING: &str = "cannot ask for the queue of a TUN device";
        let all = self.0.ask(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), NLM_F_DUMP).doing(DOING)?;
        let of_root = all.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(message)
                if message.header.index == interface_index as i32 && message.header.parent == TcHandle::ROOT =>
            {
                let stats = message.attributes.into_iter().find_map(|attribute| match attribute {
                    TcAttribute::Stats2(stats) => Some(stats),
                    _ => None,
                })?;
                stats.into_iter().find_map(|one| match one {
                    TcStats2::Queue(queue) => Some((queue.qlen as usize, queue.drops.into())),
                    _ => None,
                })
            }
            _ => None,
        });
        of_root.ok_or_else(|| io::Error::other("it has none")).doing(DOING)
    }

    fn request(&mut self, payload: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.0.ask(payload, NLM_F_ACK | flags).map(drop)
    }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Of a thing of this kind with a place: its parent, and its own handle.
fn traffic_control(
    interface_index: u32,
    (parent, handle): (TcHandle, TcHandle),
    kind: &str,
    options: Vec<TcOption>,
) -> TcMessage {
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(interface_index).expect("the kernel's indices are positive ints");
    (message.header.parent, message.header.handle) = (parent, handle);
    message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    if !options.is_empty() {
        message.attributes.push(TcAttribute::Options(options));
    }
    message
}

impl Rule {
    fn options(&self) -> Vec<TcOption> {
        let key = |&(at, mask, value): &(i32, u32, u32)| {
            let mut key = TcU32Key::default();
            (key.off, key.mask, key.val) = (at, mask, value);
            key
        };
        let mut selector = TcU32Selector::default();
        selector.flags = TcU32SelectorFlags::Terminal;
        selector.nkeys = self.words.len() as u8;
        selector.keys = self.words.iter().map(key).collect();
        let class = TcHandle { major: LANES, minor: self.lane };
        [TcFilterU32Option::ClassId(class), TcFilterU32Option::Selector(selector)].map(TcOption::U32).into()
    }
}

/// `struct tc_htb_glob` (linux/pkt_sched.h). What no filter puts into a class goes before those in classes.
fn hierarchy() -> Vec<TcOption> {
    const TCA_HTB_INIT: u16 = 2;
    const VERSION: u32 = 3;

    // version, rate2quantum, default class, debug, direct packets
    let options = [VERSION, 10, 0, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
    vec![TcOption::Other(DefaultNla::new(TCA_HTB_INIT, options))]
}

/// `struct tc_htb_opt` (linux/pkt_sched.h): a class whose own rate limits nothing.
fn unlimited_class() -> Vec<TcOption> {
    const TCA_HTB_PARMS: u16 = 1;
    /// In units of 64 ns.
    const A_SECOND: u32 = 15_625_000;
    /// As a packet of TCP; without it the kernel computes one and complains.
    const QUANTUM: u32 = 3000;

    let mut options = Vec::with_capacity(44);
    options.extend(rate_spec(u32::MAX));
    options.extend(rate_spec(u32::MAX));
    // buffers, quantum, level, priority
    options.extend([A_SECOND, A_SECOND, QUANTUM, 0, 0].into_iter().flat_map(u32::to_ne_bytes));
    vec![TcOption::Other(DefaultNla::new(TCA_HTB_PARMS, options))]
}

/// `struct tc_ratespec`: cell_log, linklayer, overhead, cell_align, mpu, rate. With a link layer, the kernel computes
/// transmission times itself and needs no rate table.
fn rate_spec(bytes_per_second: u32) -> [u8; 12] {
    const TC_LINKLAYER_ETHERNET: u8 = 1;

    let mut spec = [0; 12];
    spec[1] = TC_LINKLAYER_ETHERNET;
    spec[8..].copy_from_slice(&bytes_per_second.to_ne_bytes());
    spec
}

/// `struct tc_tbf_qopt` and the burst in bytes (linux/pkt_sched.h).
fn token_bucket(rate: Rate, burst: Bytes, limit: Bytes) -> Vec<TcOption> {
    const TCA_TBF_PARMS: u16 = 1;
    const TCA_TBF_BURST: u16 = 6;

    let mut options = Vec::with_capacity(36);
    options.extend(rate_spec(u32::try_from(rate.as_bps() / 8).unwrap_or(u32::MAX)));
    options.extend(rate_spec(0)); // no peak rate
    options.extend(u32::try_from(limit.get()).unwrap_or(u32::MAX).to_ne_bytes());
    options.extend([0; 4]); // buffer, in ticks: given in bytes below
    options.extend([0; 4]); // mtu of the peak rate
    let burst = u32::try_from(burst.get()).unwrap_or(u32::MAX).to_ne_bytes().to_vec();
    vec![
        TcOption::Other(DefaultNla::new(TCA_TBF_PARMS, options)),
        TcOption::Other(DefaultNla::new(TCA_TBF_BURST, burst)),
    ]
}
