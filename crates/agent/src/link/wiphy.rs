//! A radio's RTS threshold, by nl80211 (linux/nl80211.h): read and set. A radio is called a wiphy there; several interfaces may
//! share one, and with it the threshold.
//!
//! Its messages have three attributes and a flag, and of the answers, which describe all that a radio can do, only these
//! are looked at.

use crate::error::{Doing as _, Result};
use crate::link::wifi::Nl80211;
use lasthop_units::Bytes;
use netlink_packet_core::{
    DecodeError, Emitable, ErrorContext as _, NLM_F_ACK, NLM_F_DUMP, Nla, NlasIterator, ParseableParametrized,
    emit_u32, parse_string, parse_u32,
};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};

const NL80211_CMD_GET_WIPHY: u8 = 1;
const NL80211_CMD_SET_WIPHY: u8 = 2;
const NL80211_CMD_GET_INTERFACE: u8 = 5;
const NL80211_ATTR_WIPHY: u16 = 1;
const NL80211_ATTR_WIPHY_NAME: u16 = 2;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_WIPHY_RTS_THRESHOLD: u16 = 64;
const NL80211_ATTR_SPLIT_WIPHY_DUMP: u16 = 174;

/// No frame has RTS.
const OFF: u32 = u32::MAX;

/// A radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wiphy {
    /// Its number, which no other radio of this machine gets before it is booted again.
    pub(super) index: u32,
    /// Such as "phy0".
    pub(super) name: String,
    /// Longer frames have RTS; `None`: no frame has.
    pub(super) rts_threshold: Option<Bytes>,
}

/// Radios of this network namespace.
pub(super) trait Radios {
    /// That of an interface; `None`: it is not wireless, or absent.
    fn of_interface(&mut self, interface_index: u32) -> Result<Option<Wiphy>>;
    /// The one with this number; `None`: it is not here.
    fn look(&mut self, wiphy: u32) -> Result<Option<Wiphy>>;
    /// Sets its threshold. Takes CAP_NET_ADMIN.
    fn set_rts_threshold(&mut self, wiphy: u32, threshold: Option<Bytes>) -> Result<()>;
}

impl Radios for Nl80211 {
    fn of_interface(&mut self, interface_index: u32) -> Result<Option<Wiphy>> {
        let answers = self.about_wiphy(&Message::interface_of(interface_index), NLM_F_ACK)?;
        match answers.iter().find_map(|answer| answer.u32(NL80211_ATTR_WIPHY)) {
            Some(wiphy) => self.look(wiphy),
            None => Ok(None),
        }
    }

    fn look(&mut self, wiphy: u32) -> Result<Option<Wiphy>> {
        Ok(read(wiphy, &self.about_wiphy(&Message::look(wiphy), NLM_F_DUMP)?))
    }

    fn set_rts_threshold(&mut self, wiphy: u32, threshold: Option<Bytes>) -> Result<()> {
        let request = self.addressed(Message::set(wiphy, threshold));
        self.netlink.ask(request, NLM_F_ACK).doing("nl80211 does not set the RTS threshold")?;
        Ok(())
    }
}

impl Nl80211 {
    fn about_wiphy(&mut self, message: &Message, flags: u16) -> Result<Vec<Message>> {
        let answers = self.ask(self.addressed(message.clone()), flags).doing("nl80211 does not tell of the radio")?;
        Ok(answers.into_iter().map(|answer| answer.payload).collect())
    }
}

/// A request, or a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    command: u8,
    attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Attribute {
    Flag(u16),
    U32(u16, u32),
    Name(String),
}

impl Message {
    fn interface_of(interface_index: u32) -> Self {
        let attributes = vec![Attribute::U32(NL80211_ATTR_IFINDEX, interface_index)];
        Self { command: NL80211_CMD_GET_INTERFACE, attributes }
    }

    /// In parts: one message has no room for what later radios can do.
    fn look(wiphy: u32) -> Self {
        let attributes =
            vec![Attribute::U32(NL80211_ATTR_WIPHY, wiphy), Attribute::Flag(NL80211_ATTR_SPLIT_WIPHY_DUMP)];
        Self { command: NL80211_CMD_GET_WIPHY, attributes }
    }

    fn set(wiphy: u32, threshold: Option<Bytes>) -> Self {
        let bytes = threshold.map_or(OFF, |threshold| u32::try_from(threshold.get()).unwrap_or(OFF));
        let threshold = Attribute::U32(NL80211_ATTR_WIPHY_RTS_THRESHOLD, bytes);
        Self { command: NL80211_CMD_SET_WIPHY, attributes: vec![Attribute::U32(NL80211_ATTR_WIPHY, wiphy), threshold] }
    }

    fn u32(&self, of: u16) -> Option<u32> {
        self.attributes.iter().find_map(|attribute| match attribute {
            Attribute::U32(kind, value) if *kind == of => Some(*value),
            _ => None,
        })
    }

    fn name(&self) -> Option<&str> {
        self.attributes.iter().find_map(|attribute| match attribute {
            Attribute::Name(name) => Some(&**name),
            _ => None,
        })
    }
}

/// The radio with this number in what the kernel tells; `None`: it is not among them, or has no threshold.
fn read(wiphy: u32, answers: &[Message]) -> Option<Wiphy> {
    let parts = || answers.iter().filter(|part| part.u32(NL80211_ATTR_WIPHY) == Some(wiphy));
    let bytes = parts().find_map(|part| part.u32(NL80211_ATTR_WIPHY_RTS_THRESHOLD))?;
    let name = parts().find_map(Message::name).map_or_else(|| format!("#{wiphy}"), str::to_owned);
    Some(Wiphy { index: wiphy, name, rts_threshold: (bytes != OFF).then(|| Bytes::new(bytes.into())) })
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        match self {
            Self::Flag(_) => 0,
            Self::U32(..) => 4,
            Self::Name(name) => name.len() + 1,
        }
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Flag(kind) | Self::U32(kind, _) => *kind,
            Self::Name(_) => NL80211_ATTR_WIPHY_NAME,
        }
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        match self {
            Self::Flag(_) => {}
            Self::U32(_, value) => emit_u32(buffer, *value).expect("there is room for four bytes"),
            Self::Name(name) => buffer[..name.len()].copy_from_slice(name.as_bytes()),
        }
    }
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        "nl80211"
    }

    fn version(&self) -> u8 {
        1
    }

    fn command(&self) -> u8 {
        self.command
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(buffer: &[u8], header: GenlHeader) -> std::result::Result<Self, DecodeError> {
        let mut attributes = Vec::new();
        for attribute in NlasIterator::new(buffer) {
            let attribute = attribute.context("an attribute is cut off")?;
            match attribute.kind() {
                kind @ (NL80211_ATTR_WIPHY | NL80211_ATTR_IFINDEX | NL80211_ATTR_WIPHY_RTS_THRESHOLD) => {
                    let value = parse_u32(attribute.value()).context("a number of a radio")?;
                    attributes.push(Attribute::U32(kind, value));
                }
                NL80211_ATTR_WIPHY_NAME => {
                    attributes.push(Attribute::Name(parse_string(attribute.value()).context("a radio's name")?));
                }
                _ => {}
            }
        }
        Ok(Self { command: header.cmd, attributes })
    }
}

impl Nl80211 {
    fn addressed(&self, message: Message) -> GenlMessage<Message> {
        let mut message = GenlMessage::from_payload(message);
        message.set_resolved_family_id(self.family);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_kernel::netlink;

    /// What follows the header of netlink: header of generic netlink, then attributes.
    fn bytes(message: Message) -> Vec<u8> {
        let message = GenlMessage::from_payload(message);
        let mut bytes = vec![0; Emitable::buffer_len(&message)];
        message.emit(&mut bytes);
        bytes
    }

    #[test]
    fn requests_are_the_bytes_that_nl80211_takes() {
        // command, version 1, 2 reserved bytes; then length, kind, value of each attribute, least byte first.
        assert_eq!(bytes(Message::interface_of(3)), [5, 1, 0, 0, 8, 0, 3, 0, 3, 0, 0, 0]);
        assert_eq!(bytes(Message::look(7)), [1, 1, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0, 4, 0, 174, 0]);
        // 3000 = 0x0bb8
        let set = |threshold: Option<u64>| bytes(Message::set(7, threshold.map(Bytes::new)));
        assert_eq!(set(Some(3000)), [2, 1, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0, 8, 0, 64, 0, 0xb8, 0x0b, 0, 0]);
        assert_eq!(set(None), [2, 1, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0, 8, 0, 64, 0, 0xff, 0xff, 0xff, 0xff]);
    }

    /// Two messages of a dump (NL80211_CMD_NEW_WIPHY, NLM_F_MULTI): the radio 7, "phy7", with generation, retry limits and
    /// thresholds; then a part with the number and the name alone. `threshold`: four bytes.
    fn dump(threshold: [u8; 4]) -> Vec<u8> {
        let header = |length: u8| [length, 0, 0, 0, 0x1c, 0, 2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0];
        let named = [8, 0, 1, 0, 7, 0, 0, 0, 9, 0, 2, 0, b'p', b'h', b'y', b'7', 0, 0, 0, 0, 8, 0, 46, 0, 1, 0, 0, 0];
        let retries =
            [5, 0, 61, 0, 7, 0, 0, 0, 5, 0, 62, 0, 4, 0, 0, 0, 8, 0, 63, 0, 0xff, 0xff, 0xff, 0xff, 8, 0, 64, 0];
        let mut bytes = header(20 + 28 + 32).to_vec();
        bytes.extend(named.iter().chain(&retries).chain(&threshold));
        bytes.extend(header(20 + 28).iter().chain(&named));
        bytes
    }

    #[test]
    fn a_radio_is_read_from_the_parts_of_its_description() {
        let wiphy = |number, threshold| {
            let mut answers: Vec<GenlMessage<Message>> = Vec::new();
            assert!(!netlink::read(&dump(threshold), 9, &mut answers).expect("messages"));
            let answers: Vec<Message> = answers.into_iter().map(|answer| answer.payload).collect();
            assert_eq!(answers.len(), 2);
            read(number, &answers)
        };
        let phy7 = Wiphy { index: 7, name: "phy7".to_owned(), rts_threshold: None };
        assert_eq!(wiphy(7, [0xff; 4]), Some(phy7.clone()));
        let two_thousand = Some(Bytes::new(2347)); // 0x092b
        assert_eq!(wiphy(7, [0x2b, 0x09, 0, 0]), Some(Wiphy { rts_threshold: two_thousand, ..phy7 }));
        assert_eq!(wiphy(8, [0xff; 4]), None);
    }

    #[test]
    fn this_kernel_has_no_radio_behind_loopback() {
        if let Some(mut nl80211) = Nl80211::open().expect("generic netlink") {
            assert_eq!(nl80211.of_interface(1).expect("an answer"), None);
            assert_eq!(nl80211.look(u32::MAX >> 1).expect("an answer"), None);
        }
    }
}
