//! Bulk data or transfers over QUIC.

use super::{Desk, DocumentError, Kind, Part, TrafficKeys};
use crate::keys::KIND;
use lasthop_keys::{by_word, choice, keys, words};
use lasthop_units::{Bytes, Span, Time};

words! {
    /// A congestion control of QUIC connections: two of quinn, and the laws but those that hear of last links.
    pub enum QuicLaw {
        /// RFC 9438, quinn's own.
        Cubic = "cubic",
        /// RFC 9002, appendix B, quinn's own.
        NewReno = "newreno",
        /// The law of this name, as the next ones.
        CubicRfc9438 = "cubic-rfc9438",
        /// HD.
        Hd = "hd",
        /// CHD.
        Chd = "chd",
        /// CDG.
        Cdg = "cdg",
        /// CDG of Linux.
        CdgLinux = "cdg-linux",
        /// UCC.
        Ucc = "ucc",
        /// TCP Vegas.
        Vegas = "vegas",
        /// Westwood+.
        Westwood = "westwood",
        /// LEDBAT++.
        LedbatPlusPlus = "ledbat++",
        /// BBR, version 1.
        Bbr = "bbr",
        /// BBR, version 3.
        Bbr3 = "bbr3",
        /// Copa.
        Copa = "copa",
        /// DCTCP.
        Dctcp = "dctcp",
        /// Prague.
        Prague = "prague",
        /// The law of the host, with its parameters.
        Host = "host",
    }
}

keys! {
    /// Its own keys.
    pub(crate) struct QuicKeys {
        /// The congestion control of the connection's sender: quinn's CUBIC or its NewReno, one of our laws, or
        /// with "host" that of the host, with its parameters, such as a law of your own.
        congestion_control: Option<QuicLaw> = choice(QuicLaw::WORDS), by_word(KIND, [("quic", "cubic")]);
    }
}

/// QUIC: bulk data over one connection, or transfers in sequence, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quic {
    /// The congestion control of the sender.
    pub law: QuicLaw,
    /// Size of each transfer, at least 1 KiB; `None`: bulk data, unlimited.
    pub transfer: Option<Bytes>,
    /// Mean pause between the end of one transfer and the start of the next.
    pub off: Span,
}

impl Quic {
    pub(super) const KEYS: &[&str] = &["transfer_kib", "off_s"];

    pub(super) fn read(keys: &TrafficKeys, _: &Part<'_>) -> Result<Self, DocumentError> {
        let law = keys.own.quic.congestion_control.expect("its kind has a default");
        Ok(Self { law, transfer: keys.transfer_kib, off: keys.off_s })
    }
}

impl Kind for Quic {
    fn begin(&mut self, _due: Time, now: Time, desk: &mut Desk) {
        match self.transfer {
            Some(size) => desk.transfer(now, size),
            None => {
                desk.open();
                desk.write_on();
            }
        }
    }

    /// A transfer in progress is finished.
    fn stop(&mut self, desk: &mut Desk) {
        if self.is_endless() {
            desk.pause();
            desk.close();
        }
    }

    fn on_read(&mut self, now: Time, desk: &mut Desk) {
        desk.begin_after(now, self.off);
    }

    fn on_failed(&mut self, now: Time, desk: &mut Desk) {
        if !self.is_endless() {
            desk.begin_after(now, self.off);
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_endless()
    }

    fn is_greedy(&self) -> bool {
        self.is_endless()
    }

    fn is_endless(&self) -> bool {
        self.transfer.is_none()
    }

    fn quic_law(&self) -> Option<QuicLaw> {
        Some(self.law)
    }
}
