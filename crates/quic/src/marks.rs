//! The ECN field of datagrams, and what acknowledgements tell of marks.
//!
//! quinn sends ECT(0), validates the path (RFC 9000 §13.4.2), counts what arrives, and tells a congestion control that there was a mark. A
//! law also asks how many: this reads it from the acknowledgement, which in [packets without encryption](crate::plain) stands plainly.

use lasthop_units::Ecn;
use quinn_proto::coding::Codec;
use quinn_proto::{EcnCodepoint, VarInt};

/// The field of a datagram that quinn sends. It knows ECT(0) alone: to connections of L4S, both ends of which have the same law, ECT(1)
/// stands for it (RFC 9331 §4.1).
pub(crate) const fn sent(codepoint: Option<EcnCodepoint>, is_l4s: bool) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) if is_l4s => Ecn::Ect1,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) => Ecn::Ect0,
    }
}

/// The field of a datagram that has arrived, as quinn has it.
pub(crate) const fn arrived(field: Ecn) -> Option<EcnCodepoint> {
    match field {
        Ecn::NotEct => None,
        Ecn::Ect0 | Ecn::Ect1 => Some(EcnCodepoint::Ect0),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// How many packets came marked to the other end, if this datagram is of one packet with a short header that acknowledges and tells so:
/// RFC 9000 §17.3.1 and §19.3. `id_bytes` is the length of its connection ID.
pub(crate) fn told(datagram: &[u8], id_bytes: usize) -> Option<u64> {
    const LONG_HEADER: u8 = 0x80;
    const PACKET_NUMBER_BYTES: u8 = 3;
    const PADDING: u64 = 0x00;
    const PING: u64 = 0x01;
    const ACK_WITH_COUNTS: u64 = 0x03;
    const HANDSHAKE_DONE: u64 = 0x1e;
    let first = *datagram.first().filter(|first| **first & LONG_HEADER == 0)?;
    let mut frames = datagram.get(1 + id_bytes + usize::from(first & PACKET_NUMBER_BYTES) + 1..)?;
    let mut next = || VarInt::decode(&mut frames).ok().map(VarInt::into_inner);
    // quinn writes an acknowledgement before all frames but these.
    let frame = loop {
        match next()? {
            PADDING | PING | HANDSHAKE_DONE => {}
            frame => break frame,
        }
    };
    if frame != ACK_WITH_COUNTS {
        return None;
    }
    let [_largest, _delay, more_ranges, _range] = [next()?, next()?, next()?, next()?];
    for _ in 0..more_ranges {
        let [_gap, _length] = [next()?, next()?];
    }
    let [_ect0, _ect1, ce] = [next()?, next()?, next()?];
    Some(ce)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet number of two bytes, a PING; the largest acknowledged is 1000, after 8 units, with one more range; 500 were ECT(0), 3 CE.
    #[test]
    fn an_acknowledgement_says_how_many_were_marked() {
        let mut datagram = vec![0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0x12, 0x34];
        datagram.extend([0x01, 0x03, 0x43, 0xe8, 8, 1, 5, 0, 2, 0x41, 0xf4, 0, 3]);
        datagram.extend([0; 16]);
        assert_eq!(told(&datagram, 8), Some(3));
        assert_eq!(told(&datagram[..20], 8), None);
        datagram[12] = 0x02;
        assert_eq!(told(&datagram, 8), None);
        datagram[0] = 0xc1;
        assert_eq!(told(&datagram, 8), None);
        assert_eq!(told(&[], 8), None);
    }

    #[test]
    fn connections_of_l4s_call_themselves_so() {
        let sends = Some(EcnCodepoint::Ect0);
        assert_eq!((sent(sends, false), sent(sends, true), sent(None, true)), (Ecn::Ect0, Ecn::Ect1, Ecn::NotEct));
        assert_eq!([Ecn::Ect1, Ecn::Ect0, Ecn::NotEct].map(arrived), [sends, sends, None]);
    }
}
