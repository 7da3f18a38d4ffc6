//! A transmission as 802.11 frames behind radiotap headers.

use lasthop_network::{
    AirFate, AirFrame, AirKind, Aired, ChannelWidth, Destination, GuardInterval, Modulation, NodeId, Packet, Standard,
};

/// An address of 802.11.
type Mac = [u8; 6];

const EVERYBODY: Mac = [0xff; 6];
/// Logical link control and SNAP, with the type of IPv4.
const LLC_SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
const RETRY: u8 = 8;
const TO_DS: u8 = 1;
const FROM_DS: u8 = 2;

/// What became of a transmission, in words; empty if it was received.
pub(crate) fn comment<P>(aired: &Aired<P>) -> String {
    let fate = match aired.fate {
        AirFate::Received => return String::new(),
        AirFate::Collided => "collision: it overlapped another transmission",
        AirFate::Error if matches!(aired.kind, AirKind::Rts(_)) => "error: no CTS",
        AirFate::Error => "error: no frame of this transmission was received",
        AirFate::Unfinished => "on the air at the end of the run",
    };
    match aired.kind {
        AirKind::Rts(frames) => format!("{fate}; for {frames} frames"),
        _ => fate.to_owned(),
    }
}

/// An MPDU: its packet (the first one of an A-MSDU), its size, and its first bytes.
pub(crate) type Mpdu<'a, P> = (Option<&'a AirFrame<P>>, u64, Vec<u8>);

/// The MPDUs of a transmission.
pub(crate) fn frames<'a, P>(
    aired: &'a Aired<P>,
    reference: u32,
    ip: &mut dyn FnMut(&Packet<P>) -> Vec<u8>,
) -> Vec<Mpdu<'a, P>> {
    let station = aired.station.map_or(EVERYBODY, mac);
    let access_point = access_point(aired.access_point);
    let (receiver, transmitter) = if aired.is_up { (access_point, station) } else { (station, access_point) };
    let control = |head: [u8; 2], rest: &[u8]| {
        let mut bytes = radiotap(aired, None);
        // Frame control and a duration of 0.
        bytes.extend([head[0], head[1], 0, 0]);
        bytes.extend(receiver.iter().chain(&transmitter).chain(rest));
        vec![(None, bytes.len() as u64, bytes)]
    };
    match aired.kind {
        AirKind::Rts(_) => return control([0xb4, 0], &[]),
        // Of a compressed Block Ack.
        AirKind::BlockAckRequest => return control([0x84, 0], &[4, 0, 0, 0]),
        AirKind::Data => {}
    }
    let mut mpdus = Vec::new();
    let mut number = 0;
    while number < aired.frames.len() {
        let joined = aired.frames[number + 1..].iter().take_while(|frame| frame.joins).count();
        let msdus = &aired.frames[number..=number + joined];
        number += msdus.len();
        let is_last = number == aired.frames.len();
        let ampdu = aired.modulation.map(|_| (reference, is_last));
        let mut bytes = radiotap(aired, ampdu);
        let has_qos = aired.modulation.is_some() && aired.station.is_some();
        let first = &msdus[0];
        let way = if aired.is_up { TO_DS } else { FROM_DS };
        bytes.extend([if has_qos { 0x88 } else { 8 }, way | if first.is_retry { RETRY } else { 0 }, 0, 0]);
        let third = if aired.is_up { goal(&first.packet) } else { mac(first.packet.from) };
        bytes.extend(receiver.iter().chain(&transmitter).chain(&third));
        bytes.extend((first.sequence << 4).to_le_bytes());
        let is_amsdu = msdus.len() > 1;
        if has_qos {
            // The traffic identifier is the class selector of the DSCP.
            bytes.extend([first.packet.dscp >> 3 | if is_amsdu { 0x80 } else { 0 }, 0]);
        }
        let (header, packet) = (bytes.len() as u64, &first.packet);
        let msdu = |packet: &Packet<P>| LLC_SNAP.len() as u64 + packet.size.get();
        let size = if is_amsdu {
            // Of what is joined the first packet is shown: the others begin behind all of it.
            bytes.extend(goal(packet).iter().chain(&mac(packet.from)).chain(&(msdu(packet) as u16).to_be_bytes()));
            msdus.iter().fold(0, |size: u64, one| size.next_multiple_of(4) + 14 + msdu(&one.packet))
        } else {
            msdu(packet)
        };
        let size = header + size;
        bytes.extend(LLC_SNAP);
        bytes.extend(ip(packet));
        mpdus.push((Some(first), size, bytes));
    }
    mpdus
}

/// Of an access point, by its number.
fn access_point(number: usize) -> Mac {
    let [high, low] = (number as u16).to_be_bytes();
    [2, 0, 0, u8::from(number > 0), high, low]
}

fn mac(node: NodeId) -> Mac {
    let [high, low] = (node.0.wrapping_add(1)).to_be_bytes();
    [2, 0, 0, 0, high, low]
}

fn goal<P>(packet: &Packet<P>) -> Mac {
    match packet.to {
        Destination::Node(node) => mac(node),
        Destination::Broadcast => EVERYBODY,
    }
}

/// A radiotap header: the start, the rate or the modulation, the A-MPDU's reference and whether this is its last MPDU.
fn radiotap<P>(aired: &Aired<P>, ampdu: Option<(u32, bool)>) -> Vec<u8> {
    const TSFT: u32 = 0;
    const FLAGS: u32 = 1;
    const RATE: u32 = 2;
    const MCS: u32 = 19;
    const AMPDU: u32 = 20;
    const VHT: u32 = 21;
    const HE: u32 = 23;
    let mut out = vec![0; 8];
    let mut present = 1 << TSFT | 1 << FLAGS;
    out.extend((aired.started.as_nanos() / 1000).to_le_bytes());
    // No frame check sequence.
    out.push(0);
    let is_sent_with_it = aired.kind == AirKind::Data;
    let modulation = aired.modulation.filter(|_| is_sent_with_it);
    if modulation.is_none() && is_sent_with_it {
        present |= 1 << RATE;
        // In units of 500 kb/s.
        out.push((aired.rate.as_bps() / 500_000) as u8);
    }
    if let Some((Standard::N, modulation)) = modulation {
        present |= 1 << MCS;
        let wide = u8::from(modulation.width == ChannelWidth::Mhz40);
        let short = if modulation.guard_interval == GuardInterval::Ns400 { 4 } else { 0 };
        let known = 1 | 2 | 4;
        out.extend([known, wide | short, modulation.mcs + 8 * (modulation.spatial_streams - 1)]);
    }
    if let Some((reference, is_last)) = ampdu {
        present |= 1 << AMPDU;
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(reference.to_le_bytes());
        // The last MPDU is known.
        out.extend((4 | if is_last { 8_u16 } else { 0 }).to_le_bytes());
        out.extend([0; 2]);
    }
    match modulation {
        Some((Standard::Ac, modulation)) => {
            present |= 1 << VHT;
            out.resize(out.len().next_multiple_of(2), 0);
            vht(&mut out, modulation);
        }
        Some((Standard::Ax, modulation)) => {
            present |= 1 << HE;
            out.resize(out.len().next_multiple_of(2), 0);
            he(&mut out, modulation);
        }
        _ => {}
    }
    let length = (out.len() as u16).to_le_bytes();
    out[2..4].copy_from_slice(&length);
    out[4..8].copy_from_slice(&u32::to_le_bytes(present));
    out
}

fn vht(out: &mut Vec<u8>, modulation: Modulation) {
    // Guard interval and bandwidth are known.
    out.extend(0x44_u16.to_le_bytes());
    out.push(if modulation.guard_interval == GuardInterval::Ns400 { 4 } else { 0 });
    out.push(match modulation.width {
        ChannelWidth::Mhz20 => 0,
        ChannelWidth::Mhz40 => 1,
        ChannelWidth::Mhz80 => 4,
        ChannelWidth::Mhz160 => 11,
    });
    out.extend([modulation.mcs << 4 | modulation.spatial_streams, 0, 0, 0]);
    // Coding, group, partial AID.
    out.extend([0; 4]);
}

fn he(out: &mut Vec<u8>, modulation: Modulation) {
    let guard_interval = match modulation.guard_interval {
        GuardInterval::Ns400 | GuardInterval::Ns800 => 0,
        GuardInterval::Ns1600 => 1,
        GuardInterval::Ns3200 => 2,
    };
    let words = [
        // A PPDU to one receiver; MCS and bandwidth are known.
        0x4020,
        // The guard interval is known.
        2,
        u16::from(modulation.mcs) << 8,
        0,
        modulation.width as u16 | guard_interval << 4,
        u16::from(modulation.spatial_streams),
    ];
    words.into_iter().for_each(|word: u16| out.extend(word.to_le_bytes()));
}
