//! What passes between the kernel's simulated radios (mac80211_hwsim) and a program that is the medium between them.
//!
//! 1. The program registers (`HWSIM_CMD_REGISTER`). From then on no frame reaches another radio by itself.
//! 2. For each frame that a radio's driver sends, the kernel sends `HWSIM_CMD_FRAME`: the MPDU without FCS, the rates at which to
//!    try it, the channel, and a cookie.
//! 3. For each radio that receives it, the program sends `HWSIM_CMD_FRAME` back.
//! 4. When the sender is done, the program sends `HWSIM_CMD_TX_INFO_FRAME`: the tries made, and whether it was acknowledged.
//!    Of two hundred frames of a radio that wait for this the kernel drops the oldest, down to 99.
//! 5. When the socket closes, all radios on one channel hear each other again.
//!
//! A radio has two addresses: 02:00:00:00:NN:00 is its interface's, and the same with 42 names it here.
//!
//! Leaves out: the rate of 802.11n and later at which a frame is received (the kernel takes an index of a rate of 802.11g or
//! 802.11a only), peer measurements, virtio.
//!
//! References: Linux, drivers/net/wireless/virtual/mac80211_hwsim.h and .c, read for the facts, not copied; linux/netlink.h,
//! linux/genetlink.h.

use crate::netlink::Netlink;
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_packet_generic::GenlMessage;
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_sys::protocols::NETLINK_GENERIC;
use nix::errno::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use zerocopy::byteorder::native_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most entries of a series of rates (`IEEE80211_TX_MAX_RATES`).
pub const MOST_RATES: usize = 4;

/// The kernel's frame is cut at a page; with attributes around it.
const MOST_BYTES: usize = 8192;
/// A hundred frames of some hundred radios.
const WAITING_BYTES: u32 = 1 << 24;

const NLMSG_ERROR: u16 = 2;
const VERSION: u8 = 1;
/// The high bits of an attribute's kind are flags.
const KIND: u16 = 0x3fff;

mod command {
    pub(super) const REGISTER: u8 = 1;
    pub(super) const FRAME: u8 = 2;
    pub(super) const TX_INFO_FRAME: u8 = 3;
    pub(super) const ADD_MAC_ADDR: u8 = 7;
    pub(super) const DEL_MAC_ADDR: u8 = 8;
}

mod attribute {
    pub(super) const ADDR_RECEIVER: u16 = 1;
    pub(super) const ADDR_TRANSMITTER: u16 = 2;
    pub(super) const FRAME: u16 = 3;
    pub(super) const FLAGS: u16 = 4;
    pub(super) const RX_RATE: u16 = 5;
    pub(super) const SIGNAL: u16 = 6;
    pub(super) const TX_INFO: u16 = 7;
    pub(super) const COOKIE: u16 = 8;
    pub(super) const FREQ: u16 = 19;
    pub(super) const TX_INFO_FLAGS: u16 = 21;
}

/// Flags of a frame (`enum hwsim_tx_control_flags`).
const NO_ACK: u32 = 1 << 1;
const STAT_ACK: u32 = 1 << 2;

/// Flags of a rate (`enum hwsim_tx_rate_flags`).
pub mod rate_flag {
    /// RTS and CTS precede it.
    pub const RTS_CTS: u16 = 1 << 0;
    /// The index is an MCS of 802.11n.
    pub const MCS: u16 = 1 << 3;
    /// Over 40 MHz.
    pub const MHZ_40: u16 = 1 << 5;
    /// Guard interval of 0.4 us.
    pub const SHORT_GI: u16 = 1 << 7;
    /// The index is an MCS of 802.11ac in its four low bits, and the streams less one above.
    pub const VHT_MCS: u16 = 1 << 8;
    /// Over 80 MHz.
    pub const MHZ_80: u16 = 1 << 9;
    /// Over 160 MHz.
    pub const MHZ_160: u16 = 1 << 10;
}

/// A MAC address.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Address(pub [u8; 6]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Address {
    /// The name of a radio that the module made when it was loaded.
    pub const fn of_radio(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        Self([0x42, 0, 0, high, low, 0])
    }

    /// The address of the interface of a radio with this name.
    pub const fn of_interface(self) -> Self {
        let mut bytes = self.0;
        bytes[0] &= !0x40;
        Self(bytes)
    }

    /// Whether it is a group's.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

/// How often a rate is tried (`struct hwsim_tx_rate`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TxRate {
    /// The index of a rate of the band, or an MCS; negative: no more rates.
    pub index: i8,
    /// How often.
    pub count: u8,
}

impl TxRate {
    /// Behind the last rate.
    pub const NONE: Self = Self { index: -1, count: 0 };
}

/// `struct hwsim_tx_rate_flag`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TxRateFlags {
    index: i8,
    flags: U16,
}

/// `struct nlmsghdr` and `struct genlmsghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    length: U32,
    kind: U16,
    flags: U16,
    sequence: U32,
    port: U32,
    command: u8,
    version: u8,
    reserved: U16,
}

const HEADER: usize = size_of::<Header>();

/// `struct nlattr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AttributeHeader {
    length: U16,
    kind: U16,
}

/// What the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// A radio sends a frame.
    Sent(Sent<'a>),
    /// A radio has an interface with this address from now on.
    Has {
        /// Its name.
        radio: Address,
        /// The address.
        address: Address,
    },
    /// It has no more.
    HasNot {
        /// Its name.
        radio: Address,
        /// The address.
        address: Address,
    },
    /// The kernel refuses a message, by this number, or acknowledges it, by 0.
    Answer(i32),
    /// Something else.
    Other,
}

/// A frame of a radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<'a> {
    /// The radio's name.
    pub radio: Address,
    /// The MPDU without FCS: 10 bytes at least, which is to its receiver's address.
    pub mpdu: &'a [u8],
    flags: u32,
    /// The rates at which to try it, in order.
    pub rates: [TxRate; MOST_RATES],
    /// Flags of each rate: [`rate_flag`].
    pub rate_flags: [u16; MOST_RATES],
    cookie: u64,
    /// The channel's frequency in MHz.
    pub frequency_mhz: u32,
}

/// What the kernel knows a frame by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    radio: Address,
    flags: u32,
    cookie: u64,
}

impl Sent<'_> {
    /// Whether its receiver is not to acknowledge it.
    pub const fn wants_no_acknowledgement(&self) -> bool {
        self.flags & NO_ACK != 0
    }

    /// Its receiver's address.
    pub fn receiver(&self) -> Address {
        Address(self.mpdu[4..10].try_into().expect("six bytes"))
    }

    /// By which [`Outbox::done`] is to name it.
    pub const fn ticket(&self) -> Ticket {
        Ticket { radio: self.radio, flags: self.flags, cookie: self.cookie }
    }
}

/// The messages of a datagram. `family`: [`Hwsim::family`].
///
/// # Errors
/// One is cut off, or lacks an attribute.
pub fn messages(datagram: &[u8], family: u16) -> impl Iterator<Item = io::Result<Message<'_>>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = Header::read_from_prefix(rest).map(|(header, _)| header.length.get() as usize);
        let message = length.ok().filter(|length| *length >= HEADER).and_then(|length| rest.get(..length));
        let Some(message) = message else {
            rest = &[];
            return Some(Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink message is cut off")));
        };
        rest = rest.get(message.len().next_multiple_of(4)..).unwrap_or_default();
        let read = read(message, family);
        Some(
            read.ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a message of mac80211_hwsim lacks something")
            }),
        )
    })
}

fn read(message: &[u8], family: u16) -> Option<Message<'_>> {
    let (header, rest) = Header::read_from_prefix(message).ok()?;
    if header.kind == NLMSG_ERROR {
        // Behind struct nlmsghdr.
        return Some(Message::Answer(-I32::read_from_bytes(message.get(16..20)?).ok()?.get()));
    }
    if header.kind != family {
        return Some(Message::Other);
    }
    let (mut radio, mut address, mut mpdu, mut flags) = (None, None, None, None);
    let (mut rates, mut rate_flags, mut cookie, mut frequency) = (None, [0; MOST_RATES], None, None);
    for (kind, value) in attributes(rest) {
        match kind {
            attribute::ADDR_TRANSMITTER => radio = Address::read_from_bytes(value).ok(),
            attribute::ADDR_RECEIVER => address = Address::read_from_bytes(value).ok(),
            attribute::FRAME => mpdu = Some(value),
            attribute::FLAGS => flags = U32::read_from_bytes(value).ok(),
            attribute::TX_INFO => rates = <[TxRate; MOST_RATES]>::read_from_bytes(value).ok(),
            attribute::TX_INFO_FLAGS => {
                let read = <[TxRateFlags; MOST_RATES]>::read_from_bytes(value).ok()?;
                rate_flags = read.map(|rate| rate.flags.get());
            }
            attribute::COOKIE => cookie = U64::read_from_bytes(value).ok(),
            attribute::FREQ => frequency = U32::read_from_bytes(value).ok(),
            _ => {}
        }
    }
    Some(match header.command {
        command::FRAME => Message::Sent(Sent {
            radio: radio?,
            mpdu: mpdu.filter(|mpdu| mpdu.len() >= 10)?,
            flags: flags?.get(),
            rates: rates?,
            rate_flags,
            cookie: cookie?.get(),
            frequency_mhz: frequency?.get(),
        }),
        command::ADD_MAC_ADDR => Message::Has { radio: radio?, address: address? },
        command::DEL_MAC_ADDR => Message::HasNot { radio: radio?, address: address? },
        _ => Message::Other,
    })
}

/// The attributes until the first that is cut off.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (header, _) = AttributeHeader::read_from_prefix(rest).ok()?;
        let length = usize::from(header.length.get());
        let value = rest.get(size_of::<AttributeHeader>()..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((header.kind.get() & KIND, value))
    })
}

/// Messages to the kernel, sent together.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    family: u16,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Without messages. `family`: [`Hwsim::family`].
    pub const fn new(family: u16) -> Self {
        Self { family, bytes: Vec::new() }
    }

    /// The messages as they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A radio receives an MPDU. `is_repeated`: with the Retry bit. `rate_index`: of the band's rates of 802.11g or 802.11a.
    pub fn received(
        &mut self,
        radio: Address,
        mpdu: &[u8],
        is_repeated: bool,
        rate_index: u32,
        signal_dbm: i32,
        frequency_mhz: u32,
    ) {
        self.message(command::FRAME, NLM_F_REQUEST, |bytes| {
            add(bytes, attribute::ADDR_RECEIVER, &radio.0);
            let start = bytes.len() + size_of::<AttributeHeader>();
            add(bytes, attribute::FRAME, mpdu);
            if is_repeated {
                // Frame control, second byte (802.11-2020 §9.2.4.1.1).
                bytes[start + 1] |= 0x08;
            }
            add(bytes, attribute::RX_RATE, &rate_index.to_ne_bytes());
            add(bytes, attribute::SIGNAL, &signal_dbm.to_ne_bytes());
            add(bytes, attribute::FREQ, &frequency_mhz.to_ne_bytes());
        });
    }

    /// A radio is done with its frame, after these tries.
    pub fn done(&mut self, frame: Ticket, is_acknowledged: bool, made: [TxRate; MOST_RATES], signal_dbm: i32) {
        let flags = frame.flags | if is_acknowledged { STAT_ACK } else { 0 };
        self.message(command::TX_INFO_FRAME, NLM_F_REQUEST, |bytes| {
            add(bytes, attribute::ADDR_TRANSMITTER, &frame.radio.0);
            add(bytes, attribute::FLAGS, &flags.to_ne_bytes());
            add(bytes, attribute::COOKIE, &frame.cookie.to_ne_bytes());
            add(bytes, attribute::TX_INFO, made.as_bytes());
            add(bytes, attribute::SIGNAL, &signal_dbm.to_ne_bytes());
        });
    }

    fn message(&mut self, command: u8, flags: u16, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        let header = Header {
            length: U32::ZERO,
            kind: self.family.into(),
            flags: flags.into(),
            sequence: U32::ZERO,
            port: U32::ZERO,
            command,
            version: VERSION,
            reserved: U16::ZERO,
        };
        self.bytes.extend_from_slice(header.as_bytes());
        fill(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }
}

/// Adds an attribute, padded to four bytes.
fn add(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = size_of::<AttributeHeader>() + value.len();
    let header = AttributeHeader { length: (length as u16).into(), kind: kind.into() };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Why this process cannot be the medium.
#[derive(Debug, thiserror::Error)]
pub enum HwsimError {
    /// There are no simulated radios.
    #[error("this kernel has no simulated radios: load them with 'modprobe mac80211_hwsim radios=3'")]
    NoModule,
    /// The caller may not.
    #[error("to be the medium needs root (CAP_NET_ADMIN)")]
    NotPermitted,
    /// Another program is the medium in this network namespace.
    #[error(
        "another program is the medium of these radios already (wmediumd, or another 'lasthop medium'): end it first"
    )]
    Taken,
    /// A radio has several channels at once.
    #[error(
        "a simulated radio has several channels at once, which the kernel refuses a medium: load the module with 'channels=1'"
    )]
    SeveralChannels,
    /// The operating system refuses.
    #[error("{doing}")]
    System {
        /// What.
        doing: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// This process as the medium of the radios that were made in its network namespace, until this is dropped.
#[derive(Debug)]
pub struct Hwsim {
    netlink: Netlink,
    family: u16,
    /// Datagrams that came before the kernel had acknowledged the registration.
    early: VecDeque<Vec<u8>>,
}

impl Hwsim {
    /// Becomes the medium.
    ///
    /// # Errors
    /// See [`HwsimError`]. Nothing is changed then.
    pub fn register() -> Result<Self, HwsimError> {
        let system = |doing| move |source| HwsimError::System { doing, source };
        let mut netlink = Netlink::open(NETLINK_GENERIC).map_err(system("cannot open generic netlink"))?;
        let name = GenlCtrlAttrs::FamilyName("MAC80211_HWSIM".to_owned());
        let ask = GenlMessage::from_payload(GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] });
        let answers =
            netlink.ask(ask, NLM_F_ACK).map_err(|source| match source.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ENOENT) => HwsimError::NoModule,
                _ => HwsimError::System { doing: "cannot look for mac80211_hwsim", source },
            })?;
        let family = answers.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(id) => Some(*id),
            _ => None,
        });
        let family = family.ok_or(HwsimError::NoModule)?;
        netlink.expect_many(WAITING_BYTES).map_err(system("cannot make room for frames"))?;
        let mut hwsim = Self { netlink, family, early: VecDeque::new() };
        let mut request = Outbox::new(family);
        request.message(command::REGISTER, NLM_F_REQUEST | NLM_F_ACK, |_| {});
        hwsim.netlink.send(request.as_bytes()).map_err(system("cannot ask to be the medium"))?;
        let mut datagram = Vec::new();
        // The kernel answers within the call to send. Frames may come before the answer.
        while hwsim.netlink.receive(&mut datagram, MOST_BYTES).map_err(system("cannot become the medium"))? {
            let answer = messages(&datagram, family).find_map(|message| match message {
                Ok(Message::Answer(number)) => Some(number),
                _ => None,
            });
            match answer.map(|number| (number, Errno::from_raw(number))) {
                None => hwsim.early.push_back(std::mem::take(&mut datagram)),
                Some((0, _)) => return Ok(hwsim),
                Some((_, Errno::EPERM)) => return Err(HwsimError::NotPermitted),
                Some((_, Errno::EBUSY)) => return Err(HwsimError::Taken),
                Some((_, Errno::EOPNOTSUPP)) => return Err(HwsimError::SeveralChannels),
                Some((_, errno)) => return Err(system("cannot become the medium")(errno.into())),
            }
        }
        Err(system("cannot become the medium")(io::Error::other("the kernel did not answer")))
    }

    /// The number of the kernel's family of messages.
    pub const fn family(&self) -> u16 {
        self.family
    }

    /// Reads the oldest datagram in place of what is in the buffer. `false`: none waits.
    ///
    /// # Errors
    /// As [`Netlink::receive`].
    pub fn receive(&mut self, datagram: &mut Vec<u8>) -> io::Result<bool> {
        match self.early.pop_front() {
            Some(early) => {
                *datagram = early;
                Ok(true)
            }
            None => self.netlink.receive(datagram, MOST_BYTES),
        }
    }

    /// Sends the messages, and empties the outbox.
    ///
    /// # Errors
    /// As [`Netlink::send`].
    pub fn send(&mut self, outbox: &mut Outbox) -> io::Result<()> {
        if outbox.bytes.is_empty() {
            return Ok(());
        }
        let sent = self.netlink.send(&outbox.bytes);
        outbox.bytes.clear();
        sent
    }
}

impl AsFd for Hwsim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: u16 = 0x21;

    /// A message of the kernel with these attributes, each padded.
    fn from_kernel(kind: u16, command: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![command, 1, 0, 0];
        for (kind, value) in attributes {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    fn sent() -> Vec<u8> {
        // A null data frame of 24 bytes. Rates: index 11 twice, index 0 four times; an MCS with a short guard interval, and none.
        let mut mpdu = [0; 24];
        (mpdu[0], mpdu[1]) = (0x48, 0x01);
        mpdu[4..10].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
        from_kernel(
            FAMILY,
            2,
            &[
                (2, &[0x42, 0, 0, 0, 1, 0]),
                (3, &mpdu),
                (4, &1_u32.to_ne_bytes()),
                (19, &2437_u32.to_ne_bytes()),
                (7, &[11, 2, 0, 4, 0xff, 0, 0xff, 0]),
                (21, &[&[11][..], &0x88_u16.to_ne_bytes(), &[0, 0, 0, 0xff, 0, 0, 0xff, 0, 0]].concat()),
                (8, &7_u64.to_ne_bytes()),
            ],
        )
    }

    #[test]
    fn a_frame_of_the_kernel_is_read_by_its_attributes() {
        let bytes = sent();
        let read: Vec<_> = messages(&bytes, FAMILY).collect::<io::Result<_>>().expect("a whole message");
        let [Message::Sent(sent)] = read[..] else { panic!("{read:?}") };
        assert_eq!((sent.radio, sent.receiver()), (Address::of_radio(1), Address::of_radio(0).of_interface()));
        assert_eq!((sent.frequency_mhz, sent.mpdu.len(), sent.wants_no_acknowledgement()), (2437, 24, false));
        assert_eq!(sent.rates[..2], [TxRate { index: 11, count: 2 }, TxRate { index: 0, count: 4 }]);
        assert_eq!(sent.rates[2..], [TxRate::NONE; 2]);
        assert_eq!(sent.rate_flags, [rate_flag::MCS | rate_flag::SHORT_GI, 0, 0, 0]);
    }

    #[test]
    fn several_messages_of_a_datagram_are_read_and_what_is_cut_off_is_an_error() {
        let address = [2, 0, 0, 0, 9, 0];
        let mut bytes = from_kernel(FAMILY, 7, &[(2, &[0x42, 0, 0, 0, 1, 0]), (1, &address)]);
        bytes.extend(sent());
        bytes.extend(from_kernel(0x10, 1, &[]));
        let read: Vec<_> = messages(&bytes, FAMILY).collect::<io::Result<_>>().expect("whole messages");
        assert_eq!(read[0], Message::Has { radio: Address::of_radio(1), address: Address(address) });
        assert!(matches!(read[1..], [Message::Sent(_), Message::Other]), "{read:?}");
        for length in 1..sent().len() {
            assert!(messages(&sent()[..length], FAMILY).any(|message| message.is_err()), "{length} bytes");
        }
        // No cookie.
        let without = from_kernel(FAMILY, 2, &[(2, &[0x42, 0, 0, 0, 1, 0]), (3, &[0; 24])]);
        assert!(messages(&without, FAMILY).any(|message| message.is_err()));
    }

    #[test]
    fn answers_have_the_kernels_number() {
        // NLMSG_ERROR, behind its header -EBUSY (16), or 0, and the header of the request.
        for number in [16_i32, 0] {
            let mut bytes = [36_u32.to_ne_bytes(), [2, 0, 0, 0], [0; 4], [0; 4]].concat();
            bytes.extend((-number).to_ne_bytes());
            bytes.extend([0; 16]);
            let read: Vec<_> = messages(&bytes, FAMILY).collect::<io::Result<_>>().expect("a whole message");
            assert_eq!(read, [Message::Answer(number)]);
        }
    }

    #[test]
    fn what_goes_to_the_kernel_has_the_bytes_that_the_header_asks_for() {
        let mut outbox = Outbox::new(FAMILY);
        let mut mpdu = [0xaa; 25];
        mpdu[1] = 0x01;
        outbox.received(Address::of_radio(0), &mpdu, true, 11, -50, 2437);
        // 20 of headers; 6 + 4 padded to 12, 25 + 4 padded to 32, three times 8.
        let received = 20 + 12 + 32 + 24;
        let bytes = outbox.as_bytes().to_vec();
        assert_eq!(bytes.len(), received);
        assert_eq!(bytes[..4], (received as u32).to_ne_bytes());
        assert_eq!(bytes[4..8], [FAMILY.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
        assert_eq!(bytes[16..20], [2, 1, 0, 0]);
        assert_eq!(
            bytes[20..32],
            [&10_u16.to_ne_bytes()[..], &1_u16.to_ne_bytes(), &[0x42, 0, 0, 0, 0, 0, 0, 0]].concat()
        );
        // The Retry bit beside To DS.
        assert_eq!((bytes[36], bytes[37], bytes[38]), (0xaa, 0x09, 0xaa));
        assert_eq!(bytes[64..72], [&8_u16.to_ne_bytes()[..], &5_u16.to_ne_bytes(), &11_u32.to_ne_bytes()].concat());
        assert_eq!(bytes[72..80], [&8_u16.to_ne_bytes()[..], &6_u16.to_ne_bytes(), &(-50_i32).to_ne_bytes()].concat());

        let frame = sent();
        let Some(Ok(Message::Sent(sent))) = messages(&frame, FAMILY).next() else { panic!("a frame") };
        let made = [TxRate { index: 11, count: 2 }, TxRate { index: 0, count: 1 }, TxRate::NONE, TxRate::NONE];
        outbox.done(sent.ticket(), true, made, -50);
        let done = &outbox.as_bytes()[received..];
        // 20; 12 of the address, 8 of flags, 12 of the cookie, 12 of rates, 8 of the signal.
        assert_eq!(done.len(), 20 + 12 + 8 + 12 + 12 + 8);
        assert_eq!(done[16..20], [3, 1, 0, 0]);
        assert_eq!(done[22..30], [&2_u16.to_ne_bytes()[..], &[0x42, 0, 0, 0, 1, 0]].concat());
        // The request for a status, and that it was acknowledged.
        assert_eq!(done[36..40], 5_u32.to_ne_bytes());
        assert_eq!(done[44..52], 7_u64.to_ne_bytes());
        assert_eq!(done[56..64], [11, 2, 0, 1, 0xff, 0, 0xff, 0]);
    }
}
