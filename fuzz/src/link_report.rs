//! What a client, or a middlebox, can put into the TCP option of the link report: any octets at all, and octets that were a
//! report before some of them were changed. Of what is read, that it can be told again; and what a law makes of it.

use arbitrary::Arbitrary;
use lasthop_laws::LinkReport;
use lasthop_laws::option::{self, Flags, OCTETS, Unread};
use lasthop_laws::{Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Reported, Start, Window};
use lasthop_units::{Probability, Rate, Span};

#[derive(Arbitrary, Debug)]
pub(crate) enum Event<'a> {
    /// These octets are an option.
    Octets(&'a [u8]),
    /// A report, with some of its octets changed, and cut or prolonged to so many.
    Report {
        kbps: Option<u32>,
        ppm: Option<u32>,
        seconds: u16,
        flags: (bool, bool),
        changes: Vec<(u8, u8)>,
        length: u8,
    },
    /// Data are acknowledged.
    Acked { segments: u16, rtt_us: u32, wait_ms: u16 },
    /// A loss, or a timeout.
    Lost { sent: u32, retransmits: u32, timeout: bool },
}

/// A connection of a server that has the law.
struct Connection {
    law: Law,
    window: Window,
    now_us: u64,
    una: u32,
    sent: u32,
}

impl Connection {
    fn hear(&mut self, report: LinkReport) {
        let before = self.window;
        let event = Reported {
            now_us: self.now_us,
            segment_bytes: 1448,
            rtt_us: 100_000,
            segments_sent: self.sent,
            permitted: Reported::PERMIT_ALL,
            ..report.into()
        };
        self.law.on_reported(&event, &mut self.window);
        if self.sent > 0 {
            assert_eq!(self.window, before, "only at the beginning a report changes the window");
        }
        // the default of initial_max_segments
        assert!((2..=60).contains(&self.window.cwnd_segments) || self.window == before, "{:?}", self.window);
    }

    fn acked(&mut self, segments: u16, rtt_us: u32, wait_ms: u16) {
        let acked_segments = u32::from(segments).clamp(1, self.window.cwnd_segments.max(1));
        self.now_us += u64::from(wait_ms) * 1000;
        self.una = self.una.wrapping_add(acked_segments * 1448);
        self.sent = self.sent.saturating_add(acked_segments);
        let event = Acked {
            now_us: self.now_us,
            acked_segments,
            rtt_us,
            srtt_us: rtt_us,
            min_rtt_us: rtt_us,
            snd_una: self.una,
            snd_nxt: self.una.wrapping_add(self.window.cwnd_segments.wrapping_mul(1448)),
            flags: Acked::MAY_GROW | Acked::CWND_LIMITED | Acked::ADVANCED,
            ..Acked::default()
        };
        let before = self.window.cwnd_segments;
        self.law.on_acked(&event, &mut self.window);
        // slow start, or the initial window that waited for an RTT
        let most = before.saturating_add(acked_segments).max(60);
        assert!(self.window.cwnd_segments <= most, "{before} to {} by {acked_segments}", self.window.cwnd_segments);
    }

    fn lost(&mut self, sent: u32, retransmits: u32, timeout: bool) {
        let event = Lost {
            now_us: self.now_us,
            in_flight_segments: self.window.cwnd_segments,
            segments_sent: sent,
            retransmits,
            lost_segments: 1,
            ..Lost::default()
        };
        let before = self.window.cwnd_segments;
        if timeout {
            self.law.on_timed_out(&event, &mut self.window);
            self.window.cwnd_segments = 1;
        } else {
            self.law.on_lost(&event, &mut self.window);
            self.window.cwnd_segments = self.window.ssthresh_segments;
        }
        assert!(self.window.ssthresh_segments <= before.max(2), "a loss raises no window: {:?}", self.window);
    }
}

/// What is read of an option; that it says the same when it is told again.
fn read(octets: &[u8]) -> Option<LinkReport> {
    match option::parse(octets) {
        Ok((report, _)) => {
            assert!(octets.len() >= OCTETS && octets[..4] == [253, octets[1], 0x6c, 0x68] && octets[4] >> 4 == 1);
            assert_eq!(option::parse(&option::encode(&report, Flags::default())).map(|(again, _)| again), Ok(report));
            Some(report)
        }
        Err(Unread::NotOurs) => {
            assert!(octets.len() < 4 || octets[0] != 253 || octets[2..4] != [0x6c, 0x68]);
            None
        }
        Err(Unread::OtherVersion) => {
            assert!(octets[4] >> 4 != 1);
            None
        }
        Err(Unread::Malformed) => None,
    }
}

/// One run: these things happen one after the other. It panics where something does not hold.
pub(crate) fn run(events: Vec<Event<'_>>) {
    let mut connection = Connection {
        law: Law::new(Choice::from(LawName::Lastlink), Start::default()),
        window: Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH },
        now_us: 1,
        una: 0,
        sent: 0,
    };
    for event in events {
        match event {
            Event::Octets(octets) => {
                read(octets).into_iter().for_each(|report| connection.hear(report));
            }
            Event::Report { kbps, ppm, seconds, flags: (answer, resend), changes, length } => {
                let report = LinkReport {
                    bandwidth: kbps.map(|kbps| Rate::from_bps(u64::from(kbps) * 1000)),
                    error_rate: ppm.map(|ppm| Probability::new(f64::from(ppm % 1_000_001) / 1e6).expect("at most 1")),
                    validity: Span::from_secs(seconds.into()),
                };
                let mut octets = option::encode(&report, Flags { answer, resend }).to_vec();
                assert!(option::parse(&octets).is_ok());
                for (at, to) in changes {
                    if let Some(octet) = octets.get_mut(usize::from(at)) {
                        *octet = to;
                    }
                }
                octets.resize(usize::from(length % 41), 1);
                read(&octets).into_iter().for_each(|report| connection.hear(report));
            }
            Event::Acked { segments, rtt_us, wait_ms } => connection.acked(segments, rtt_us, wait_ms),
            Event::Lost { sent, retransmits, timeout } => connection.lost(sent, retransmits, timeout),
        }
    }
}
