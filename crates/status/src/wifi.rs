//! The state of a wireless interface's link, as the agent has read it.

use lasthop_lastlink::{Bss, Modulation, PhyRate};
use lasthop_units::Rate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The BSSID of an access point's radio.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bssid([u8; 6]);

/// The link of an associated wireless interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WifiLink {
    /// The access point.
    pub bssid: Bssid,
    /// The network's name; bytes that are no UTF-8 are replaced.
    pub ssid: Option<String>,
    /// The channel's frequency, in MHz.
    pub frequency_mhz: Option<u32>,
    /// Average signal of the access point, in dBm.
    pub signal_dbm: Option<i8>,
    /// PHY rate of the last data frame to the access point, in Mb/s.
    pub tx_bitrate_mbps: Option<f64>,
    /// The modulation of that frame.
    pub tx_modulation: Option<Modulation>,
    /// PHY rate of the last data frame from the access point, in Mb/s.
    pub rx_bitrate_mbps: Option<f64>,
    /// The modulation of that frame.
    pub rx_modulation: Option<Modulation>,
    /// The driver's expected throughput to the access point, in Mb/s.
    pub expected_throughput_mbps: Option<f64>,
    /// Whether frames need protection from 802.11b stations.
    pub cts_protection: Option<bool>,
    /// Whether slots are 9 µs long instead of 20.
    pub short_slots: Option<bool>,
    /// Data frames sent to the access point, since the association.
    pub tx_packets: Option<u32>,
    /// Transmissions that were repeated, since the association.
    pub tx_retries: Option<u32>,
    /// Frames given up, since the association.
    pub tx_failed: Option<u32>,
    /// Data frames received from the access point, since the association.
    pub rx_packets: Option<u32>,
    /// MPDUs received from it, since the association.
    pub rx_mpdus: Option<u32>,
    /// MPDUs received from it with a wrong checksum, since the association.
    pub rx_fcs_errors: Option<u32>,
}

impl Bssid {
    /// Its six bytes.
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for Bssid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Bssid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 6]> for Bssid {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl From<Bssid> for String {
    fn from(bssid: Bssid) -> Self {
        bssid.to_string()
    }
}

impl TryFrom<String> for Bssid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes: Result<Vec<u8>, _> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        let bssid = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        bssid.map(Self).ok_or_else(|| format!("{text:?} is no BSSID: six bytes in hex, with colons between them"))
    }
}

impl fmt::Display for WifiLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "access point {}", self.bssid)?;
        if let Some(ssid) = &self.ssid {
            write!(f, " ({ssid:?})")?;
        }
        if let Some(frequency_mhz) = self.frequency_mhz {
            write!(f, ", {frequency_mhz} MHz")?;
        }
        if let Some(signal_dbm) = self.signal_dbm {
            write!(f, ", {signal_dbm} dBm")?;
        }
        match (self.tx_bitrate_mbps, self.rx_bitrate_mbps) {
            (Some(sends), Some(receives)) => write!(f, ", sends at {sends} Mb/s, receives at {receives} Mb/s")?,
            (Some(sends), None) => write!(f, ", sends at {sends} Mb/s")?,
            (None, Some(receives)) => write!(f, ", receives at {receives} Mb/s")?,
            (None, None) => {}
        }
        if let (Some(retries), Some(packets)) = (self.tx_retries, self.tx_packets) {
            write!(f, ", {retries} retries in {packets} frames")?;
        }
        if let Some(failed) = self.tx_failed {
            write!(f, ", {failed} given up")?;
        }
        Ok(())
    }
}

impl WifiLink {
    /// A link of which only the access point is known.
    pub fn of(bssid: Bssid) -> Self {
        Self { bssid, ..Self::default() }
    }

    /// The input of the estimators.
    pub fn radio(&self) -> lasthop_lastlink::Radio {
        let phy = |mbps: Option<f64>, modulation: Option<Modulation>| {
            Some(PhyRate { rate: Rate::from_mbps(mbps?), modulation: modulation? })
        };
        lasthop_lastlink::Radio {
            receive_rate: phy(self.rx_bitrate_mbps, self.rx_modulation),
            transmit_rate: phy(self.tx_bitrate_mbps, self.tx_modulation),
            expected: self.expected_throughput_mbps.map(Rate::from_mbps),
            bss: Bss { long_slots: self.short_slots == Some(false), protection: self.cts_protection == Some(true) },
            received: self.rx_packets,
            sent: self.tx_packets,
            retries: self.tx_retries,
            failed: self.tx_failed,
            heard: self.rx_mpdus,
            fcs_errors: self.rx_fcs_errors,
        }
    }
}
