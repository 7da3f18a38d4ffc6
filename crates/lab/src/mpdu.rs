//! What the medium reads of MPDUs: their headers, and the Block Ack agreements that their senders make.

use lasthop_kernel::hwsim::Address;
use std::collections::HashMap;

/// What the header of an MPDU says (802.11-2020 §9.2.4.1, §9.2.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) transmitter: Option<Address>,
    pub(crate) is_beacon: bool,
    /// With content: no null frame.
    pub(crate) is_data: bool,
    pub(crate) user_priority: Option<u8>,
    pub(crate) sequence: u16,
    /// Of the header, where it is of data and the MPDU has so many.
    pub(crate) bytes: usize,
}

impl Header {
    pub(crate) fn of(mpdu: &[u8]) -> Self {
        const MANAGEMENT: u8 = 0;
        const DATA: u8 = 2;
        const BEACON: u8 = 8;
        const QOS: u8 = 8;
        const NULL: u8 = 4;
        /// Voice: what Linux sends management in.
        const VOICE: u8 = 7;
        let [control, flags] = [mpdu[0], mpdu[1]];
        let (kind, subtype) = (control >> 2 & 3, control >> 4);
        // To DS and from DS: a fourth address.
        let qos_at = if flags & 3 == 3 { 30 } else { 24 };
        let user_priority = match kind {
            MANAGEMENT => Some(VOICE),
            DATA if subtype & QOS != 0 => mpdu.get(qos_at).map(|qos| qos & 7),
            _ => None,
        };
        Self {
            transmitter: mpdu.get(10..16).map(|bytes| Address(bytes.try_into().expect("six bytes"))),
            is_beacon: kind == MANAGEMENT && subtype == BEACON,
            is_data: kind == DATA && subtype & NULL == 0,
            user_priority,
            bytes: (qos_at + if subtype & QOS != 0 { 2 } else { 0 }).min(mpdu.len()),
            // Behind four bits of the fragment's number.
            sequence: mpdu.get(22..24).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]) >> 4),
        }
    }
}

/// Block Ack agreements, as their action frames say (802.11-2020 §9.6.4): how many frames a receiver takes together, by transmitter,
/// receiver and TID. Both are addresses of radios: there is a bound.
#[derive(Debug, Default)]
pub(crate) struct Agreements(HashMap<(Address, Address, u8), u16>);

impl Agreements {
    /// Takes note of what a frame says of agreements, which are those of an association. Encrypted ones cannot be read.
    /// `is_to_radio`: whether its receiver's address is another radio's.
    pub(crate) fn heed(&mut self, mpdu: &[u8], is_to_radio: bool) {
        /// Association and reassociation, requests and responses; disassociation, deauthentication.
        const ASSOCIATION: [u8; 6] = [0x00, 0x10, 0x20, 0x30, 0xa0, 0xc0];
        const ACTION: u8 = 0xd0;
        const PROTECTED: u8 = 0x40;
        const BLOCK_ACK: u8 = 3;
        const RESPONSE: u8 = 1;
        const END: u8 = 2;
        /// Of a response without a number.
        const USUAL: u16 = 64;
        if mpdu.len() < 24 {
            return;
        }
        let address = |at: usize| Address(mpdu[at..at + 6].try_into().expect("six bytes"));
        let (to, from) = (address(4), address(10));
        if ASSOCIATION.contains(&mpdu[0]) {
            self.forget(from, Some(to).filter(|to| !to.is_group()));
        }
        let is_readable = mpdu.len() >= 28 && mpdu[0] == ACTION && mpdu[1] & PROTECTED == 0;
        if !is_readable || mpdu[24] != BLOCK_ACK || !is_to_radio {
            return;
        }
        let word = |at: usize| mpdu.get(at..at + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        match mpdu[25] {
            // Dialog token, status, parameters: from who will receive.
            RESPONSE if word(27) == Some(0) => {
                if let Some(parameters) = word(29) {
                    let frames = Some(parameters >> 6).filter(|&frames| frames > 0).unwrap_or(USUAL);
                    self.0.insert((to, from, (parameters >> 2 & 15) as u8), frames);
                }
            }
            END => {
                let parameters = word(26).unwrap_or_default();
                let is_of_sender = parameters & 1 << 11 != 0;
                let (transmitter, receiver) = if is_of_sender { (from, to) } else { (to, from) };
                self.0.remove(&(transmitter, receiver, (parameters >> 12) as u8));
            }
            _ => {}
        }
    }

    /// Between these two there are no agreements any more; `None`: between the first and all others.
    pub(crate) fn forget(&mut self, one: Address, other: Option<Address>) {
        let is_other = |address| other.is_none_or(|other| other == address);
        self.0.retain(|&(transmitter, receiver, _), _| {
            !(transmitter == one && is_other(receiver) || receiver == one && is_other(transmitter))
        });
    }

    /// The most frames together; 0: there is no agreement.
    pub(crate) fn most(&self, transmitter: Address, receiver: Address, tid: u8) -> u16 {
        self.0.get(&(transmitter, receiver, tid)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_in_which_category_its_frame_contends() {
        let header = |control: u8, flags: u8, qos_at: usize, tid: u8| {
            let mut mpdu = vec![0; 40];
            (mpdu[0], mpdu[1], mpdu[qos_at]) = (control, flags, tid);
            mpdu[10..16].copy_from_slice(&[2, 0, 0, 0, 1, 0]);
            Header::of(&mpdu)
        };
        // Beacon, QoS data to DS, QoS data over four addresses, null data, PS-Poll (802.11-2020 table 9-1).
        assert!(header(0x80, 0, 24, 0).is_beacon);
        assert!(header(0x88, 1, 24, 0).is_data && header(0x08, 1, 24, 0).is_data);
        assert!(!header(0x80, 0, 24, 0).is_data && !header(0x48, 1, 24, 6).is_data);
        assert_eq!(header(0x80, 0, 24, 0).user_priority, Some(7));
        assert_eq!(header(0x88, 1, 24, 0x65).user_priority, Some(5));
        // The 24th byte is the number's higher half.
        let mut mpdu = [0x88; 40];
        (mpdu[22], mpdu[23]) = (0x35, 0xab);
        assert_eq!(Header::of(&mpdu).sequence, 0xab3);
        assert_eq!(header(0x88, 3, 30, 6).user_priority, Some(6));
        assert_eq!(header(0x48, 1, 24, 6).user_priority, None);
        assert_eq!(header(0xa4, 0, 24, 6).user_priority, None);
        assert_eq!(header(0x88, 1, 24, 0).transmitter, Some(Address::of_radio(1).of_interface()));
        // A control frame with one address.
        assert_eq!(Header::of(&[0xd4; 10]).transmitter, None);
    }

    #[test]
    fn agreements_are_read_from_their_action_frames() {
        let [sender, receiver] = [Address([2, 0, 0, 0, 1, 0]), Address([2, 0, 0, 0, 0, 0])];
        let action = |to: Address, from: Address, body: &[u8]| {
            [&[0xd0, 0, 0, 0][..], &to.0, &from.0, &receiver.0, &[0, 0], body].concat()
        };
        let mut agreements = Agreements::default();
        // Immediate Block Ack of TID 5 with 64 frames: A-MSDU, policy, TID, buffer (802.11-2020 figure 9-141).
        let parameters = (1_u16 | 1 << 1 | 5 << 2 | 64 << 6).to_le_bytes();
        let response = |status: u8| [&[3, 1, 7, status, 0][..], &parameters, &[0, 0]].concat();
        agreements.heed(&action(sender, receiver, &response(37)), true);
        assert_eq!(agreements.most(sender, receiver, 5), 0, "refused");
        agreements.heed(&action(sender, receiver, &response(0)), false);
        assert_eq!(agreements.most(sender, receiver, 5), 0, "of no radio");
        agreements.heed(&action(sender, receiver, &response(0)), true);
        assert_eq!(agreements.most(sender, receiver, 5), 64);
        assert_eq!((agreements.most(receiver, sender, 5), agreements.most(sender, receiver, 0)), (0, 0));
        // DELBA of who receives is about the other's frames.
        let end = |is_of_sender: u16| [&[3, 2][..], &(is_of_sender << 11 | 5 << 12).to_le_bytes(), &[1, 0]].concat();
        agreements.heed(&action(sender, receiver, &end(1)), true);
        assert_eq!(agreements.most(sender, receiver, 5), 64, "it is about the other direction");
        agreements.heed(&action(sender, receiver, &end(0)), true);
        assert_eq!(agreements.most(sender, receiver, 5), 0);
        agreements.heed(&[0xd0; 10], true);
    }

    #[test]
    fn agreements_end_with_their_association() {
        let addresses = [0, 1, 2].map(|number| Address([2, 0, 0, 0, number, 0]));
        let [access_point, station, other] = addresses;
        // Association and reassociation, disassociation and deauthentication; to one, and to all.
        for (kind, from, to, others) in [
            (0x00, station, access_point, 64),
            (0x30, access_point, station, 64),
            (0xa0, station, access_point, 64),
            (0xc0, access_point, station, 64),
            (0xc0, access_point, Address([0xff; 6]), 0),
        ] {
            let mut agreements = Agreements::default();
            for pair in [(access_point, station), (station, access_point), (access_point, other)] {
                agreements.0.insert((pair.0, pair.1, 0), 64);
            }
            agreements.heed(&[&[kind, 0, 0, 0][..], &to.0, &from.0, &access_point.0, &[0; 4]].concat(), true);
            let both = [(access_point, station), (station, access_point)].map(|(a, b)| agreements.most(a, b, 0));
            assert_eq!((both, agreements.most(access_point, other, 0)), ([0, 0], others), "{kind:#x} to {to}");
        }
    }
}
