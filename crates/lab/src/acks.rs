//! Reads the ACK of an IP packet, for queues with an ACK filter.

use lasthop_network::TcpAck;
use std::sync::Arc;

const TCP: u8 = 6;
const FIN_SYN_RST_PSH: u8 = 0x0f;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// The ACK of an IPv4 or IPv6 packet; `None` if it is none of TCP, has a SYN, or is malformed.
pub(crate) fn read(packet: &Arc<[u8]>) -> Option<TcpAck> {
    let (protocol, at) = match packet.first()? >> 4 {
        4 => (*packet.get(9)?, usize::from(packet[0] & 0xf) * 4),
        6 => (*packet.get(6)?, 40),
        _ => return None,
    };
    let tcp = packet.get(at..).filter(|tcp| protocol == TCP && tcp.len() >= 20)?;
    let (header, flags) = (usize::from(tcp[12] >> 4) * 4, tcp[13]);
    let mut options = tcp.get(20..header)?;
    if flags & (ACK | SYN) != ACK {
        return None;
    }
    let is_pure = flags & (FIN_SYN_RST_PSH | URG) == 0 && tcp[12] & 0xe == 0 && tcp.len() == header;
    let ecn = (flags & ECE != 0, flags & CWR != 0);
    let mut ack = TcpAck { ack: word(tcp, 8)?, is_pure, ecn, ..TcpAck::default() };
    while let Some((&kind, rest)) = options.split_first() {
        if kind == 0 {
            break;
        }
        if kind == 1 {
            options = rest;
            continue;
        }
        let length = usize::from(*rest.first()?);
        let option = options.get(2..length)?;
        options = options.get(length..)?;
        match (kind, option.len()) {
            (8, 8) => ack.timestamps = (word(option, 0)?, word(option, 4)?),
            (5, bytes) if bytes % 8 == 0 && bytes <= 32 => {
                for (number, block) in option.chunks_exact(8).enumerate() {
                    ack.sack[number] = (word(block, 0)?, word(block, 4)?);
                }
            }
            _ => ack.is_pure = false,
        }
    }
    Some(ack)
}

/// The big-endian number at this place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of TCP with these flags, options and payload, in IPv4.
    fn packet(flags: u8, options: &[u8], payload: usize) -> Arc<[u8]> {
        let mut packet = vec![0; 40];
        (packet[0], packet[9]) = (0x45, TCP);
        packet[28..32].copy_from_slice(&7_u32.to_be_bytes());
        (packet[32], packet[33]) = ((5 + options.len() as u8 / 4) << 4, flags);
        packet.extend_from_slice(options);
        packet.resize(packet.len() + payload, 0);
        packet.into()
    }

    #[test]
    fn an_ack_is_read_with_its_timestamps_and_sack_blocks() {
        let options = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 1, 1, 5, 10, 0, 0, 0, 20, 0, 0, 0, 30];
        let mut sack = [(0, 0); 4];
        sack[0] = (20, 30);
        let expected = TcpAck { ack: 7, is_pure: true, timestamps: (5, 6), sack, ecn: (true, false) };
        assert_eq!(read(&packet(ACK | ECE, &options, 0)), Some(expected));
    }

    #[test]
    fn what_says_more_is_not_pure_and_a_syn_is_no_ack() {
        let pure = |flags, options: &[u8], payload| read(&packet(flags, options, payload)).map(|ack| ack.is_pure);
        assert_eq!(pure(ACK, &[], 0), Some(true));
        assert_eq!(pure(ACK, &[], 1), Some(false));
        assert_eq!(pure(ACK | 0x01, &[], 0), Some(false));
        assert_eq!(pure(ACK, &[253, 4, 0, 0], 0), Some(false), "an option that nobody knows here");
        assert_eq!(pure(ACK | SYN, &[], 0), None);
        assert_eq!(pure(0, &[], 0), None);
        assert_eq!(pure(ACK, &[8, 0, 0, 0], 0), None, "an option without a length");
        let udp: Vec<u8> =
            packet(ACK, &[], 0).iter().enumerate().map(|(at, byte)| if at == 9 { 17 } else { *byte }).collect();
        assert_eq!(read(&udp.into()), None);
    }
}
