//! State of a wireless interface's link: access point, signal, rate, retries. From nl80211, the kernel's interface to
//! Wi-Fi over generic netlink (linux/nl80211.h).
//!
//! Read only; what is set of a radio is in [`super::wiphy`]. A wired interface, or a kernel without Wi-Fi, gives no link.

use crate::error::{Doing, Result};
use crate::link::interface::Interface;
use lasthop_kernel::netlink::Netlink;
use lasthop_lastlink::Modulation;
use lasthop_status::{Bssid, WifiLink};
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NetlinkDeserializable, NetlinkSerializable};
use netlink_packet_generic::GenlMessage;
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_sys::protocols::NETLINK_GENERIC;
use nix::errno::Errno;
use std::fmt;
use std::io;
use tracing::warn;
use wl_nl80211::{
    Nl80211Attr, Nl80211Command, Nl80211InterfaceType, Nl80211Message, Nl80211RateInfo, Nl80211StationBssParam,
    Nl80211StationInfo,
};

/// The role of an interface in Wi-Fi.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Radio {
    /// None: it is wired, or not a station.
    #[default]
    None,
    /// A station without an access point now.
    Alone,
    /// A station of this access point.
    Associated(WifiLink),
}

/// Reads the managed interface's radio.
#[derive(Default)]
pub(crate) struct Wifi {
    /// The one that was read last; 0: none yet.
    interface_index: u32,
    nl80211: Option<Nl80211>,
    radio: Radio,
}

/// A connection to nl80211, in the network namespace where it was opened.
pub(super) struct Nl80211 {
    pub(super) netlink: Netlink,
    pub(super) family: u16,
}

/// The interface's present link; `None`: not wireless, or not associated.
///
/// # Errors
/// If the kernel does not answer.
pub fn wifi_link(interface: &Interface) -> Result<Option<WifiLink>> {
    let radio = match Nl80211::open()? {
        Some(mut nl80211) => nl80211.radio(interface.index)?,
        None => Radio::None,
    };
    Ok(match radio {
        Radio::Associated(link) => Some(link),
        Radio::None | Radio::Alone => None,
    })
}

impl Wifi {
    /// Reads the radio again. For each new interface it looks for nl80211 anew, whose module may be as new. If that cannot be
    /// asked, the interface counts as wired, with one warning.
    ///
    /// # Errors
    /// If the kernel does not answer; the previous state is kept.
    pub(crate) fn refresh(&mut self, interface_index: u32) -> Result<()> {
        if self.interface_index != interface_index {
            self.interface_index = interface_index;
            self.nl80211 = Nl80211::open().unwrap_or_else(|error| {
                warn!("nothing is known of Wi-Fi: {}", error.in_a_line());
                None
            });
        }
        let radio = self.nl80211.as_mut().map(|nl80211| nl80211.radio(interface_index));
        self.radio = radio.transpose()?.unwrap_or_default();
        Ok(())
    }

    /// The state at the last reading.
    pub(crate) const fn radio(&self) -> &Radio {
        &self.radio
    }

    /// The link, if there is one.
    pub(crate) const fn link(&self) -> Option<&WifiLink> {
        match &self.radio {
            Radio::Associated(link) => Some(link),
            Radio::None | Radio::Alone => None,
        }
    }
}

impl Nl80211 {
    /// `None`: this kernel has no Wi-Fi.
    pub(super) fn open() -> Result<Option<Self>> {
        let netlink = Netlink::open(NETLINK_GENERIC).doing("cannot open generic netlink")?;
        let mut nl80211 = Self { netlink, family: 0 };
        let ask = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![GenlCtrlAttrs::FamilyName("nl80211".to_owned())] };
        let answers = nl80211.ask(GenlMessage::from_payload(ask), NLM_F_ACK).doing("cannot look for nl80211")?;
        let id = answers.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(id) => Some(*id),
            _ => None,
        });
        Ok(id.map(|family| Self { family, ..nl80211 }))
    }

    /// The Wi-Fi role of the interface with this index.
    fn radio(&mut self, interface_index: u32) -> Result<Radio> {
        let interface = self.about(Nl80211Command::GetInterface, interface_index, NLM_F_ACK)?;
        if !interface.iter().any(is_station) {
            return Ok(Radio::None);
        }
        let stations = self.about(Nl80211Command::GetStation, interface_index, NLM_F_DUMP)?;
        Ok(link(&interface, &stations).map_or(Radio::Alone, Radio::Associated))
    }

    fn about(&mut self, cmd: Nl80211Command, interface_index: u32, flags: u16) -> Result<Vec<Nl80211Message>> {
        let attributes = vec![Nl80211Attr::IfIndex(interface_index)];
        let mut message = GenlMessage::from_payload(Nl80211Message { cmd, attributes });
        message.set_resolved_family_id(self.family);
        let answers = self.ask(message, flags).doing(format_args!("nl80211 does not answer to {cmd:?}"))?;
        Ok(answers.into_iter().map(|answer| answer.payload).collect())
    }

    /// Sends a request and reads its answers; none if the object is absent.
    pub(super) fn ask<F>(&mut self, request: GenlMessage<F>, flags: u16) -> io::Result<Vec<GenlMessage<F>>>
    where
        F: fmt::Debug,
        GenlMessage<F>: NetlinkSerializable + NetlinkDeserializable,
    {
        self.netlink.ask(request, flags).or_else(nothing_if_absent)
    }
}

/// No answer, if the refusal says that there is no such object, or that it is not wireless.
fn nothing_if_absent<T>(refusal: io::Error) -> io::Result<Vec<T>> {
    match refusal.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP) => Ok(Vec::new()),
        _ => Err(refusal),
    }
}

fn is_station(interface: &Nl80211Message) -> bool {
    interface.attributes.contains(&Nl80211Attr::IfType(Nl80211InterfaceType::Station))
}

/// Combines the two answers. A station interface has one station: its access point.
fn link(interface: &[Nl80211Message], stations: &[Nl80211Message]) -> Option<WifiLink> {
    let station = stations.first()?;
    let bssid = station.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::Mac(bytes) => Some(Bssid::from(*bytes)),
        _ => None,
    })?;
    let mut link = WifiLink::of(bssid);
    for attribute in interface.iter().flat_map(|message| &message.attributes) {
        match attribute {
            Nl80211Attr::SsidRaw(name) => link.ssid = Some(String::from_utf8_lossy(name).into_owned()),
            Nl80211Attr::WiphyFreq(frequency_mhz) => link.frequency_mhz = Some(*frequency_mhz),
            _ => {}
        }
    }
    let facts = station.attributes.iter().filter_map(|attribute| match attribute {
        Nl80211Attr::StationInfo(facts) => Some(facts),
        _ => None,
    });
    for fact in facts.flatten() {
        match fact {
            Nl80211StationInfo::SignalAvg(dbm) => link.signal_dbm = Some(*dbm),
            // A driver without an average has at least the last value.
            Nl80211StationInfo::Signal(dbm) => link.signal_dbm = link.signal_dbm.or(Some(*dbm)),
            Nl80211StationInfo::TxBitrate(rate) => {
                link.tx_bitrate_mbps = bitrate_mbps(rate);
                link.tx_modulation = link.tx_bitrate_mbps.map(|mbps| modulation(rate, mbps));
            }
            Nl80211StationInfo::RxBitrate(rate) => {
                link.rx_bitrate_mbps = bitrate_mbps(rate);
                link.rx_modulation = link.rx_bitrate_mbps.map(|mbps| modulation(rate, mbps));
            }
            Nl80211StationInfo::ExpectedThroughput(kbps) => {
                link.expected_throughput_mbps = Some(f64::from(*kbps) / 1000.0);
            }
            Nl80211StationInfo::BssParam(parameters) => {
                link.cts_protection = Some(parameters.contains(&Nl80211StationBssParam::CtsProtection));
                link.short_slots = Some(parameters.contains(&Nl80211StationBssParam::ShortSlotTime));
            }
            Nl80211StationInfo::TxPackets(count) => link.tx_packets = Some(*count),
            Nl80211StationInfo::TxRetries(count) => link.tx_retries = Some(*count),
            Nl80211StationInfo::TxFailed(count) => link.tx_failed = Some(*count),
            Nl80211StationInfo::RxPackets(count) => link.rx_packets = Some(*count),
            Nl80211StationInfo::RxMpdus(count) => link.rx_mpdus = Some(*count),
            Nl80211StationInfo::FcsErrorCount(count) => link.rx_fcs_errors = Some(*count),
            _ => {}
        }
    }
    Some(link)
}

/// The kernel's unit is 100 kb/s. The 16-bit field is for old programs and ends at 6.5 Gb/s.
fn bitrate_mbps(rate: &[Nl80211RateInfo]) -> Option<f64> {
    let wide = rate.iter().find_map(|part| match part {
        Nl80211RateInfo::Bitrate32(tenths) => Some(*tenths),
        _ => None,
    });
    let narrow = rate.iter().find_map(|part| match part {
        Nl80211RateInfo::Bitrate(tenths) => Some(u32::from(*tenths)),
        _ => None,
    });
    wide.or(narrow).map(|tenths| f64::from(tenths) / 10.0)
}

/// A rate with an MCS is 802.11n or later. Below that, 802.11b's rates are its own.
fn modulation(rate: &[Nl80211RateInfo], mbps: f64) -> Modulation {
    let has_mcs = rate.iter().any(|part| {
        matches!(
            part,
            Nl80211RateInfo::Mcs(_)
                | Nl80211RateInfo::VhtMcs(_)
                | Nl80211RateInfo::HeMcs(_)
                | Nl80211RateInfo::EhtMcs(_)
                | Nl80211RateInfo::S1gMcs(_)
        )
    });
    if has_mcs {
        Modulation::Aggregated
    } else if [1.0, 2.0, 5.5, 11.0].contains(&mbps) {
        Modulation::Dsss
    } else {
        Modulation::Ofdm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_kernel::netlink::read;
    use lasthop_lastlink::{Bss, PhyRate};
    use lasthop_units::Rate;

    const SEQUENCE: u32 = 0x5bd0_d09c;

    /// The answers in datagrams as the kernel sends them, in hex.
    fn answers(datagrams: &[&str]) -> (Vec<Nl80211Message>, bool) {
        answers_to(SEQUENCE, datagrams)
    }

    fn answers_to(sequence: u32, datagrams: &[&str]) -> (Vec<Nl80211Message>, bool) {
        let mut answers = Vec::new();
        let mut last = false;
        for datagram in datagrams {
            assert!(!last, "nothing comes after the end");
            let bytes: Vec<u8> = datagram
                .split_whitespace()
                .map(|byte| u8::from_str_radix(byte, 16).expect("two digits in hex"))
                .collect();
            last = read(&bytes, sequence, &mut answers).expect("messages");
        }
        (answers.into_iter().map(|answer: GenlMessage<Nl80211Message>| answer.payload).collect(), last)
    }

    /// NL80211_CMD_NEW_INTERFACE of an associated station: header, generic header, attributes; then the
    /// acknowledgement.
    const INTERFACE: &[&str] = &[
        "60 00 00 00 1c 00 00 00 9c d0 d0 5b 00 00 00 00  07 01 00 00 \
         08 00 03 00 03 00 00 00  0b 00 04 00 77 6c 70 32 73 30 00 00 \
         08 00 01 00 00 00 00 00  08 00 05 00 02 00 00 00 \
         0a 00 06 00 a4 2b 8c 01 02 03 00 00  08 00 26 00 85 09 00 00 \
         0a 00 34 00 6f 66 66 69 63 65 00 00  08 00 2e 00 07 00 00 00",
        "24 00 00 00 02 00 00 00 9c d0 d0 5b 00 00 00 00  00 00 00 00  1c 00 00 00 1c 00 05 00 9c d0 d0 5b 00 00 00 00",
    ];

    /// NL80211_CMD_NEW_STATION as Linux 4.18 sends it (header and order as `iw --debug dev wlan0 station dump` shows
    /// them, shortened to some attributes), then NLMSG_DONE.
    const STATION: &[&str] = &[
        "98 00 00 00 1c 00 02 00 9c d0 d0 5b 00 00 00 00  13 01 00 00 \
         08 00 03 00 03 00 00 00  0a 00 06 00 a4 2b 8c 0a 0b 0c 00 00  08 00 2e 00 07 00 00 00 \
         68 00 15 00 \
         08 00 10 00 9c 00 00 00  08 00 01 00 14 00 00 00 \
         08 00 02 00 34 12 00 00  08 00 03 00 78 56 00 00 \
         05 00 07 00 c4 00 00 00  05 00 0d 00 c2 00 00 00 \
         1c 00 08 00  08 00 05 00 14 05 00 00  06 00 01 00 14 05 00 00  05 00 02 00 07 00 00 00 \
         08 00 0a 00 e8 03 00 00  08 00 0b 00 2a 00 00 00  08 00 0c 00 03 00 00 00",
        "14 00 00 00 03 00 02 00 9c d0 d0 5b 00 00 00 00 00 00 00 00",
    ];

    #[test]
    fn a_recorded_station_is_its_access_point() {
        let ((interface, all), (stations, end)) = (answers(INTERFACE), answers(STATION));
        assert!(all && end && interface.iter().any(is_station));
        let link = link(&interface, &stations).expect("associated");
        assert_eq!(
            link,
            WifiLink {
                bssid: Bssid::from([0xa4, 0x2b, 0x8c, 0x0a, 0x0b, 0x0c]),
                ssid: Some("office".to_owned()),
                frequency_mhz: Some(2437),
                signal_dbm: Some(-62), // the average, 0xc2, and not the last, 0xc4
                tx_bitrate_mbps: Some(130.0),
                tx_modulation: Some(Modulation::Aggregated),
                tx_packets: Some(1000),
                tx_retries: Some(42),
                tx_failed: Some(3),
                ..WifiLink::of(link.bssid)
            }
        );
        assert_eq!(
            link.to_string(),
            "access point a4:2b:8c:0a:0b:0c (\"office\"), 2437 MHz, -62 dBm, sends at 130 Mb/s, 42 retries in 1000 frames, 3 given up"
        );
    }

    /// A station's attributes beside the address, from a driver that counts received frames:
    /// NL80211_STA_INFO_RX_PACKETS, RX_BITRATE (VHT, two streams, 80 MHz), TX_BITRATE (24 Mb/s, as after a roam),
    /// BSS_PARAM, EXPECTED_THROUGHPUT, RX_DROP_MISC, RX_MPDUS, FCS_ERROR_COUNT.
    const RECEIVING: &str = "b8 00 00 00 1c 00 02 00 9c d0 d0 5b 00 00 00 00  13 01 00 00 \
         08 00 03 00 03 00 00 00  0a 00 06 00 a4 2b 8c 0a 0b 0c 00 00  08 00 2e 00 07 00 00 00 \
         88 00 15 00 \
         08 00 09 00 10 27 00 00 \
         28 00 0e 00  08 00 05 00 da 21 00 00  06 00 01 00 da 21 00 00  05 00 06 00 09 00 00 00  05 00 07 00 02 00 00 00  04 00 08 00 \
         14 00 08 00  08 00 05 00 f0 00 00 00  06 00 01 00 f0 00 00 00 \
         1c 00 0f 00  04 00 01 00  05 00 04 00 01 00 00 00  06 00 05 00 64 00 00 00  04 00 02 00 \
         08 00 1b 00 e0 2e 00 00  0c 00 1c 00 05 00 00 00 00 00 00 00 \
         08 00 24 00 20 4e 00 00  08 00 25 00 64 00 00 00";

    #[test]
    fn a_driver_that_tells_what_it_receives_is_heard() {
        let (stations, _) = answers(&[RECEIVING]);
        let link = link(&[], &stations).expect("associated");
        assert_eq!(
            link,
            WifiLink {
                rx_packets: Some(10_000),
                rx_bitrate_mbps: Some(866.6),
                rx_modulation: Some(Modulation::Aggregated),
                tx_bitrate_mbps: Some(24.0),
                tx_modulation: Some(Modulation::Ofdm),
                cts_protection: Some(true),
                short_slots: Some(false),
                expected_throughput_mbps: Some(12.0),
                rx_mpdus: Some(20_000),
                rx_fcs_errors: Some(100),
                ..WifiLink::of(link.bssid)
            }
        );
        let phy = |mbps, modulation| Some(PhyRate { rate: Rate::from_mbps(mbps), modulation });
        assert_eq!(
            link.radio(),
            lasthop_lastlink::Radio {
                receive_rate: phy(866.6, Modulation::Aggregated),
                transmit_rate: phy(24.0, Modulation::Ofdm),
                expected: Some(Rate::from_mbps(12.0)),
                bss: Bss { long_slots: true, protection: true },
                received: Some(10_000),
                heard: Some(20_000),
                fcs_errors: Some(100),
                ..lasthop_lastlink::Radio::default()
            }
        );
        let dsss = [Nl80211RateInfo::Bitrate(55)];
        assert_eq!(bitrate_mbps(&dsss).map(|mbps| modulation(&dsss, mbps)), Some(Modulation::Dsss));
    }

    #[test]
    fn what_mac80211_says_of_a_station_that_has_roamed_is_its_link() {
        let told: Vec<&str> =
            include_str!("../../tests/hwsim.txt").lines().filter(|line| !line.starts_with('#')).collect();
        let [(interface, _), (stations, _)] =
            [(0x0e, told[0]), (0x6b07_41eb, told[1])].map(|(sequence, datagram)| answers_to(sequence, &[datagram]));
        assert!(interface.iter().any(is_station));
        let link = link(&interface, &stations).expect("associated");
        // What `iw dev wlan0 station dump` made of the same message. The kernel tells no SSID where wpa_supplicant
        // associates.
        assert_eq!(
            link,
            WifiLink {
                frequency_mhz: Some(2437),
                signal_dbm: Some(-50),
                tx_bitrate_mbps: Some(48.0),
                tx_modulation: Some(Modulation::Ofdm),
                rx_bitrate_mbps: Some(48.0),
                rx_modulation: Some(Modulation::Ofdm),
                expected_throughput_mbps: Some(13.687), // iw divides the kernel's kb/s by 1024: 13.366
                cts_protection: Some(false),
                short_slots: Some(true),
                tx_packets: Some(847),
                tx_retries: Some(652),
                tx_failed: Some(0),
                rx_packets: Some(580),
                ..WifiLink::of(Bssid::from([2, 0, 0, 0, 1, 0]))
            }
        );
    }

    #[test]
    fn whoever_is_not_associated_has_no_link() {
        let (interface, _) = answers(INTERFACE);
        assert_eq!(link(&interface, &[]), None);
        let (nothing, end) = answers(&STATION[1..]);
        assert!(nothing.is_empty() && end);
    }

    #[test]
    fn an_interface_that_is_not_wireless_is_no_error_and_a_lack_of_rights_is_one() {
        let answers = |errno: Errno| nothing_if_absent::<u8>(io::Error::from_raw_os_error(errno as i32));
        assert!(answers(Errno::ENODEV).is_ok_and(|none| none.is_empty()));
        assert_eq!(answers(Errno::EPERM).expect_err("an error").raw_os_error(), Some(Errno::EPERM as i32));
    }

    #[test]
    fn this_kernel_can_be_asked() {
        // With Wi-Fi or without: loopback is not wireless.
        if let Some(mut nl80211) = Nl80211::open().expect("generic netlink") {
            assert_eq!(nl80211.radio(1).expect("an answer"), Radio::None);
        }
    }

    #[test]
    fn a_bssid_is_read_as_it_is_written() {
        let bssid = Bssid::from([0, 1, 2, 0xaa, 0xbb, 0xff]);
        assert_eq!(bssid.to_string(), "00:01:02:aa:bb:ff");
        assert_eq!(Bssid::try_from(bssid.to_string()), Ok(bssid));
        assert!(Bssid::try_from("00:01:02".to_owned()).is_err());
    }
}
