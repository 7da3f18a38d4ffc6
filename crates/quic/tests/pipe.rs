//! Two ends over a link each way: a rate, a delay, and a queue.

use lasthop_laws::LawName;
use lasthop_quic::{Config, End, Law};
use lasthop_units::{Bytes, Ecn, Rate, Span, Time};
use std::collections::BTreeMap;

const CONFIG: Config = Config {
    law: Law::Cubic,
    ecn: false,
    datagram_bytes: 1_452,
    receive_buffer: Bytes::from_kib(3_072),
    send_buffer: Bytes::from_kib(4_096),
};
const HEADERS: u64 = 28;

/// What happens at one moment: a datagram leaves its host's queue, or arrives.
enum Happens {
    Departs(usize),
    Arrives(usize, bytes::Bytes, Ecn),
}

struct Pipe {
    ends: [End; 2],
    now: Time,
    rate: Rate,
    delay: Span,
    queue: usize,
    /// Of every so many datagrams of the client, one is lost.
    loses_one_of: Option<usize>,
    busy_until: [Time; 2],
    queued: [usize; 2],
    events: BTreeMap<(Time, usize), Happens>,
    /// Each datagram: when, from which end, its size.
    sent: Vec<(Time, usize, usize)>,
}

impl Pipe {
    fn new(config: Config, seed: u8) -> Self {
        Self {
            ends: [End::connect(Time::ZERO, &config, [seed; 32]), End::listen(&config, [seed + 1; 32])],
            now: Time::ZERO,
            rate: Rate::from_mbps(20.0),
            delay: Span::from_millis(10),
            queue: 60,
            loses_one_of: None,
            busy_until: [Time::ZERO; 2],
            queued: [0; 2],
            events: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    fn flush(&mut self, side: usize) {
        while let Some((payload, ecn)) = self.ends[side].poll_transmit(self.now) {
            self.sent.push((self.now, side, payload.len()));
            let number = self.sent.len();
            let is_lost = side == 0 && self.loses_one_of.is_some_and(|of| number.is_multiple_of(of));
            if is_lost || self.queued[side] >= self.queue {
                self.ends[side].on_departed();
                continue;
            }
            self.queued[side] += 1;
            let begin = self.busy_until[side].max(self.now);
            let end = begin + self.rate.transmission_time(Bytes::new(payload.len() as u64 + HEADERS));
            self.busy_until[side] = end;
            self.events.insert((end, 2 * number), Happens::Departs(side));
            self.events.insert((end + self.delay, 2 * number + 1), Happens::Arrives(1 - side, payload, ecn));
        }
    }

    fn run(&mut self, until: Time) {
        self.flush(0);
        self.flush(1);
        loop {
            let event = self.events.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
            let timers = [0, 1].map(|side| self.ends[side].next_timeout());
            self.now = event.min(timers[0]).min(timers[1]);
            if self.now > until {
                self.now = until;
                return;
            }
            if event == self.now {
                match self.events.pop_first().expect("it is there").1 {
                    Happens::Departs(side) => {
                        self.queued[side] -= 1;
                        self.ends[side].on_departed();
                        self.flush(side);
                    }
                    Happens::Arrives(side, payload, ecn) => {
                        self.ends[side].on_datagram(self.now, payload, ecn);
                        self.flush(side);
                    }
                }
            } else {
                let side = usize::from(timers[1] == self.now);
                self.ends[side].on_timeout(self.now);
                self.flush(side);
            }
        }
    }
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

/// 20 Mb/s are a datagram of 1480 bytes in 0.59 ms. BBR sends at up to 1.25 of the rate: one in 0.47 ms. What was late makes up for half of
/// one at most. quinn's CUBIC lets ten go at once.
#[test]
fn a_law_that_paces_sends_one_datagram_after_the_other() {
    let shortest = |law: Law| {
        let mut pipe = Pipe::new(Config { law, ..CONFIG }, 3);
        pipe.ends[0].write_endless();
        pipe.run(at(4.0));
        let sent = pipe.sent.iter().filter(|(when, side, size)| *when > at(2.0) && *side == 0 && *size > 1_000);
        let times: Vec<Time> = sent.map(|(when, ..)| *when).collect();
        assert!(times.len() > 2_500, "{law:?}: {}", times.len());
        times.windows(2).map(|pair| pair[1].saturating_since(pair[0])).min().expect("some")
    };
    let bbr = Law::ours(LawName::Bbr).expect("QUIC can have it");
    assert!(shortest(bbr) > Span::from_micros(230), "{:?}", shortest(bbr));
    assert_eq!(shortest(Law::Cubic), Span::ZERO);
}

/// Neither the window nor the pace of a law holds back what QUIC must send: a lost tail is sent again by a probe, and the stream ends.
#[test]
fn a_law_that_paces_recovers_what_is_lost_to_the_last_datagram() {
    for of in [2, 3, 10] {
        let law = Law::ours(LawName::Bbr).expect("QUIC can have it");
        let mut pipe = Pipe::new(Config { law, ..CONFIG }, 4);
        pipe.loses_one_of = Some(of);
        pipe.ends[0].write(100_000);
        pipe.ends[0].close();
        pipe.run(at(60.0));
        assert_eq!(pipe.ends[1].received_bytes(), 100_000, "one of {of}");
        assert!(pipe.ends[0].is_closed(), "one of {of}");
    }
}

#[test]
fn an_upload_fills_the_link_and_stops() {
    let mut pipe = Pipe::new(CONFIG, 1);
    pipe.ends[0].write_endless();
    pipe.run(at(10.0));
    // 20 Mb/s carry 25 MB, of which 1452 - 32 of 1480 bytes are data.
    let received = pipe.ends[1].received_bytes() as f64;
    assert!((0.9..0.97).contains(&(received / 25e6)), "{received}");
    let info = pipe.ends[0].info().expect("it is connected");
    assert_eq!(info.datagram_bytes, 1_452);
    assert!(info.in_flight <= info.cwnd && info.acked.get() as f64 > received, "{info:?}");
    pipe.ends[0].stop_writing();
    pipe.ends[0].close();
    pipe.flush(0);
    pipe.run(at(12.0));
    assert!(pipe.ends.iter().all(End::is_closed) && !pipe.ends.iter().any(End::has_failed));
    let rest = pipe.ends[1].received_bytes() as f64 - received;
    assert!(rest < 0.5e6, "{rest}");
}

#[test]
fn the_same_seed_sends_the_same_datagrams() {
    let sent = |seed| {
        let mut pipe = Pipe::new(CONFIG, seed);
        pipe.loses_one_of = Some(97);
        pipe.ends[0].write_endless();
        pipe.run(at(3.0));
        pipe.sent
    };
    let first = sent(1);
    assert!(first.len() > 3_000, "{}", first.len());
    assert!(first == sent(1) && first != sent(3));
}

#[test]
fn a_server_sends_as_well_and_the_handshake_takes_a_round_trip() {
    let mut pipe = Pipe::new(Config { law: Law::NewReno, ..CONFIG }, 1);
    pipe.ends[1].write(1_000_000);
    pipe.ends[1].close();
    pipe.run(at(0.03));
    // The client's Initial fills a datagram, and so does the server's flight of 90 + 2400 bytes: three datagrams.
    let sizes: Vec<_> = pipe.sent.iter().take(4).map(|(_, side, size)| (*side, *size)).collect();
    assert_eq!(&sizes[..3], [(0, 1_200), (1, 1_200), (1, 1_200)]);
    assert!(pipe.ends[0].is_established());
    pipe.run(at(3.0));
    assert_eq!(pipe.ends[0].received_bytes(), 1_000_000);
    assert!(pipe.ends.iter().all(End::is_closed));
}

#[test]
fn losses_are_counted_and_repaired() {
    for law in [Law::Cubic, Law::NewReno] {
        let mut pipe = Pipe::new(Config { law, ..CONFIG }, 1);
        pipe.loses_one_of = Some(50);
        pipe.ends[0].write(2_000_000);
        pipe.ends[0].close();
        pipe.run(at(20.0));
        assert_eq!(pipe.ends[1].received_bytes(), 2_000_000);
        let lost = pipe.ends[0].info().expect("it was connected").lost_packets;
        assert!((10..200).contains(&lost), "{law:?}: {lost}");
    }
}

#[test]
fn a_connection_gives_up_when_nothing_comes() {
    let mut pipe = Pipe::new(CONFIG, 1);
    pipe.ends[0].write_endless();
    pipe.loses_one_of = Some(1);
    pipe.run(at(29.0));
    assert!(!pipe.ends[0].is_closed());
    pipe.run(at(200.0));
    assert!(pipe.ends[0].is_closed() && pipe.ends[0].has_failed());
    assert_eq!(pipe.ends[1].info(), None);
}
