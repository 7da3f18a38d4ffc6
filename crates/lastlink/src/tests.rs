use super::*;
use lasthop_connection::TcpState;
use proptest::prelude::*;

const VALIDITY: Span = Span::from_secs(32);
const MEASURE: Settings = Settings {
    bandwidth: None,
    error_rate: None,
    measure: true,
    trust_link_speed: false,
    validity: VALIDITY,
    longest_gap: Span::from_secs(10),
};

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

fn ofdm(rate: f64) -> PhyRate {
    PhyRate { rate: mbps(rate), modulation: Modulation::Ofdm }
}

fn ppm(said: &Said) -> Option<u64> {
    said.report.error_rate.map(|share| (share.get() * 1e6).round() as u64)
}

/// A host under observation, with its counters so far.
#[derive(Clone, Debug)]
struct Host {
    estimator: Estimator,
    now: Time,
    medium: Medium,
    counters: Counters,
    flow: FlowSight,
}

/// What happens in one step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    received: u64,
    damaged: u64,
    segments: u64,
    out_of_order: u64,
    sent_segments: u64,
    retransmits: u64,
    queue: bool,
}

impl Host {
    fn new(settings: Settings, medium: Medium) -> Self {
        let counters = Counters { after: at(0), before: at(0), received: Bytes::ZERO, received_packets: 0, damaged: 0 };
        let rtt = Some(Span::from_millis(20));
        let tcp = TcpState { receive_rtt: rtt, srtt: rtt, min_rtt: rtt, ..TcpState::default() };
        let flow = FlowSight { id: 1, tcp, ..FlowSight::default() };
        let mut host = Self { estimator: Estimator::new(settings), now: at(0), medium, counters, flow };
        assert_eq!(host.look().map(|said| said.bandwidth), settings.bandwidth.map(|_| Some(Source::Configuration)));
        host
    }

    fn look(&mut self) -> Option<Said> {
        let Self { estimator, now, medium, counters, flow } = self;
        estimator.on_sight(&Sight { now: *now, medium: *medium, counters: Some(*counters), flows: &[*flow] })
    }

    fn step(&mut self, milliseconds: u64, step: Step) -> Option<Said> {
        self.now += Span::from_millis(milliseconds);
        self.counters.after = self.now;
        self.counters.before = self.now;
        self.counters.received += Bytes::new(step.received);
        self.counters.received_packets += step.received / 1500;
        self.counters.damaged += step.damaged;
        self.flow.tcp.received += Bytes::new(step.received);
        self.flow.received_segments += step.segments;
        self.flow.out_of_order_segments += step.out_of_order;
        self.flow.tcp.sent_segments += step.sent_segments;
        self.flow.tcp.retransmits += step.retransmits;
        let rtt = Some(Span::from_millis(if step.queue { 40 } else { 20 }));
        (self.flow.tcp.receive_rtt, self.flow.tcp.srtt) = (rtt, rtt);
        self.look()
    }

    /// The radio's counters change, and two seconds pass.
    fn hear(&mut self, change: impl Fn(&mut Radio)) -> Option<Said> {
        let Medium::Wifi(radio) = &mut self.medium else { panic!("a radio") };
        radio.received = radio.received.map(|packets| packets + 1000);
        change(radio);
        self.step(2000, Step::default())
    }
}

fn wifi(rate: f64) -> Medium {
    Medium::Wifi(Radio {
        receive_rate: Some(ofdm(rate)),
        transmit_rate: Some(ofdm(rate)),
        received: Some(0),
        ..Radio::default()
    })
}

#[test]
fn what_is_configured_is_said_at_once_and_does_not_expire() {
    let settings = Settings { bandwidth: Some(mbps(7.0)), error_rate: Probability::new(0.005).ok(), ..MEASURE };
    let mut estimator = Estimator::new(settings);
    let said = estimator.on_sight(&Sight::at(at(0))).expect("news");
    assert_eq!(said.to_string(), "7 Mb/s (configuration), 0.500 % of packets lost (configuration)");
    assert_eq!(said.report.validity, VALIDITY);
    assert_eq!(estimator.on_sight(&Sight::at(at(3_600_000))), None);
    assert_eq!(estimator.on_link_lost(), Some(Said::NOTHING));
    assert_eq!(estimator.on_link_lost(), None);
    assert_eq!(estimator.on_sight(&Sight::at(at(3_600_001))), Some(said));
}

#[test]
fn without_measuring_only_what_is_configured_is_said() {
    let mut host = Host::new(Settings { measure: false, trust_link_speed: true, ..MEASURE }, wifi(54.0));
    for _ in 0..10 {
        assert_eq!(host.hear(|_| {}), None);
    }
}

#[test]
fn a_radio_is_believed_after_three_looks_with_data() {
    let mut host = Host::new(MEASURE, wifi(54.0));
    // Fewer than eight packets: the rate may be that of a management frame.
    for _ in 0..5 {
        assert_eq!(host.hear(|radio| radio.received = radio.received.map(|packets| packets - 993)), None);
    }
    assert_eq!((host.hear(|_| {}), host.hear(|_| {})), (None, None));
    let said = host.hear(|_| {}).expect("news");
    // 24,000 bits in 968.5 + 45.97 µs (airtime.rs)
    let rate = said.report.bandwidth.expect("known").as_mbps();
    assert!((rate - 24_000.0 / 1014.47).abs() < 1e-3, "{rate}");
    assert_eq!((said.bandwidth, said.error_rate), (Some(Source::Radio), None));
}

#[test]
fn a_single_slow_frame_changes_nothing_and_a_radio_that_slows_down_is_followed_within_seconds() {
    let mut host = Host::new(MEASURE, wifi(54.0));
    for _ in 0..8 {
        host.hear(|_| {});
    }
    assert_eq!(host.hear(|radio| radio.receive_rate = Some(ofdm(6.0))), None);
    // The lower quartile of eight is the second lowest, so a lower rate counts once it was seen twice.
    let said = host.hear(|_| {}).expect("news");
    let slow = said.report.bandwidth.expect("known");
    assert!(slow < mbps(6.0), "{slow}");
    // It rises when only one of the eight is still a lower rate.
    for look in 1..=7 {
        let news = host.hear(|radio| radio.receive_rate = Some(ofdm(54.0)));
        assert_eq!(news.is_some(), look == 7, "{look}");
    }
}

#[test]
fn a_radio_that_carries_more_than_thought_is_believed_up_to_its_rate() {
    let mut host = Host::new(MEASURE, wifi(54.0));
    for _ in 0..3 {
        host.hear(|_| {});
    }
    // 3.75 MB in a second are 30 Mb/s. Seen once it may be an error; seen twice it counts.
    let fast = Step { received: 3_750_000, ..Step::default() };
    assert_eq!(host.step(1000, fast), None);
    let said = host.step(1000, fast).expect("news");
    assert_eq!((said.report.bandwidth, said.bandwidth), (Some(mbps(30.0)), Some(Source::Traffic)));
    let absurd = Step { received: 37_500_000, ..Step::default() };
    host.step(1000, absurd);
    let said = host.step(1000, absurd).expect("news");
    assert_eq!(said.report.bandwidth, Some(mbps(54.0)));
}

#[test]
fn a_radio_that_does_not_say_how_it_hears_is_taken_to_hear_as_it_is_heard() {
    let radio =
        Radio { transmit_rate: Some(ofdm(54.0)), expected: Some(mbps(11.0)), received: Some(0), ..Radio::default() };
    let mut host = Host::new(MEASURE, Medium::Wifi(radio));
    assert_eq!((host.hear(|_| {}), host.hear(|_| {})), (None, None));
    assert_eq!(host.hear(|_| {}).expect("news").report.bandwidth, Some(mbps(11.0)));
}

#[test]
fn frames_that_were_given_up_are_losses_with_a_margin_and_what_was_heard_is_their_limit() {
    let radio = Radio { sent: Some(0), failed: Some(0), retries: Some(0), ..Radio::default() };
    let mut host = Host::new(MEASURE, Medium::Wifi(radio));
    assert_eq!(host.hear(|radio| (radio.sent, radio.failed) = (Some(400), Some(2))), None);
    // 5 of 1000, the lower end: see evidence.rs.
    let said = host.hear(|radio| (radio.sent, radio.failed) = (Some(1000), Some(5))).expect("news");
    assert_eq!((ppm(&said), said.error_rate), (Some(2435), Some(Source::Radio)));
    // None of 10,000 frames heard was damaged: at most 2.706 / 10,002.7.
    host.hear(|radio| (radio.heard, radio.fcs_errors) = (Some(0), Some(0)));
    let said = host.hear(|radio| radio.heard = Some(10_000)).expect("news");
    assert_eq!(ppm(&said), Some(270));
}

#[test]
fn retries_alone_say_how_often_seven_attempts_fail() {
    let radio = Radio { sent: Some(0), retries: Some(0), ..Radio::default() };
    let mut host = Host::new(MEASURE, Medium::Wifi(radio));
    // As many retries as packets: half of the attempts fail. 10,000 / 2^7 = 78 are given up: the lower end of 78 in
    // 10,000.
    let said = host.hear(|radio| (radio.sent, radio.retries) = (Some(10_000), Some(10_000))).expect("news");
    let (n, p, z) = (10_000.0, 0.0078, 1.645_f64);
    let lower = (p + z * z / (2.0 * n) - z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt()) / (1.0 + z * z / n);
    assert_eq!(ppm(&said), Some((lower * 1e6).floor() as u64));
}

#[test]
fn a_wired_speed_is_believed_once_half_of_it_was_seen_twice() {
    let mut host = Host::new(MEASURE, Medium::Wired { speed: Some(mbps(100.0)) });
    let half = Step { received: 6_250_000, ..Step::default() };
    assert_eq!(host.step(1000, half).and_then(|said| said.bandwidth), None);
    let said = host.step(1000, half).expect("news");
    // 100 · 1500 / 1538
    assert_eq!((said.report.bandwidth, said.bandwidth), (Some(Rate::from_bps(97_529_258)), Some(Source::Interface)));
    // No more data arrives; 32 s later the bandwidth is no longer known.
    assert_eq!(host.step(31_000, Step::default()).and_then(|said| said.bandwidth), None);
    let trusting = Settings { trust_link_speed: true, ..MEASURE };
    let said = Estimator::new(trusting).on_sight(&Sight { medium: host.medium, ..Sight::at(at(0)) }).expect("news");
    assert_eq!(said.report.bandwidth, Some(Rate::from_bps(97_529_258)));
}

#[test]
fn damaged_frames_of_a_wired_interface_are_its_losses() {
    let mut host = Host::new(MEASURE, Medium::Wired { speed: None });
    let said = host.step(1000, Step { received: 995 * 1500, damaged: 5, ..Step::default() }).expect("news");
    assert_eq!((ppm(&said), said.error_rate), (Some(2435), Some(Source::Interface)));
    assert_eq!(said.bandwidth, None);
}

#[test]
fn a_receive_rate_is_a_bandwidth_only_where_a_queue_stood() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    // 375 kB/s are 3 Mb/s. While the RTT does not rise, the application wants no more.
    let film = Step { received: 375_000, ..Step::default() };
    for _ in 0..60 {
        assert_eq!(host.step(1000, film), None);
    }
    let full = Step { received: 1_250_000, queue: true, ..Step::default() };
    for _ in 0..4 {
        assert_eq!(host.step(1000, full), None);
    }
    let said = host.step(1000, full).expect("news");
    assert_eq!((said.report.bandwidth, said.bandwidth), (Some(mbps(10.0)), Some(Source::Traffic)));
    // The report holds the senders to this rate, so no queue stands any more. The estimate must not keep itself alive.
    let held = Step { received: 1_250_000, ..Step::default() };
    let retracted = (1..60).find(|_| host.step(1000, held) == Some(Said::NOTHING));
    assert_eq!(retracted, Some(33));
}

#[test]
fn bursts_are_no_full_path() {
    let full = Step { received: 1_250_000, queue: true, ..Step::default() };
    // As above, with one change each: a second in three without a queue; a queue of 19 ms; a pause of 11 ms at each
    // look.
    let mut host = Host::new(MEASURE, Medium::Unknown);
    for second in 0..60 {
        assert_eq!(host.step(1000, Step { queue: second % 3 != 0, ..full }), None);
    }
    let cases: [fn(&mut FlowSight); 2] = [
        |flow| flow.tcp.receive_rtt = flow.tcp.receive_rtt.map(|rtt| rtt.saturating_sub(Span::from_millis(1))),
        |flow| flow.idle = Span::from_millis(11),
    ];
    for change in cases {
        let mut host = Host::new(MEASURE, Medium::Unknown);
        let told = |host: &mut Host, change: fn(&mut FlowSight)| {
            let looked = (0..60).filter_map(|_| {
                host.now += Span::from_secs(1);
                (host.counters.after, host.counters.before) = (host.now, host.now);
                host.counters.received += Bytes::new(full.received);
                host.flow.tcp.received += Bytes::new(full.received);
                host.flow.tcp.receive_rtt = Some(Span::from_millis(40));
                change(&mut host.flow);
                host.look()
            });
            looked.count()
        };
        assert_eq!(told(&mut host, change), 0);
        assert_eq!(told(&mut host, |flow| flow.idle = Span::from_millis(10)), 1);
    }
}

#[test]
fn a_slow_path_is_full_although_its_packets_are_far_apart() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    host.flow.idle = Span::from_millis(200);
    // 100 kb/s: a packet every 120 ms.
    let told = (0..5).filter_map(|_| host.step(1000, Step { received: 12_500, queue: true, ..Step::default() }));
    assert_eq!(told.map(|said| said.report.bandwidth).collect::<Vec<_>>(), [Some(mbps(0.1))]);
}

#[test]
fn what_came_before_an_interval_is_not_of_it_and_a_long_gap_ends_one() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    let full = Step { received: 1_250_000, queue: true, ..Step::default() };
    // Each look is 11 s after the last: too old to count.
    for _ in 0..20 {
        assert_eq!(host.step(11_000, full), None);
    }
    // With a longer gap configured, it counts.
    let mut host = Host::new(Settings { longest_gap: Span::from_secs(20), ..MEASURE }, Medium::Unknown);
    let told = (0..5).filter_map(|_| host.step(11_000, full)).count();
    assert_eq!((told, host.estimator.seen_full.highest_but_one(host.now, VALIDITY, |rate| rate).is_some()), (1, true));
    // Data that arrived on the connections before the first reading of the counters fill no interval.
    let mut host = Host::new(MEASURE, Medium::Unknown);
    host.estimator.interval = None;
    host.step(500, full);
    assert_eq!(host.estimator.interval.map(|interval| interval.queued), Some(Bytes::ZERO));
}

#[test]
fn rates_are_taken_over_a_second_whatever_the_tick() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    let burst = |received| Step { received, queue: true, ..Step::default() };
    // 1 MB in 100 ms, and nothing for 900 ms: 8 Mb/s.
    for _ in 0..5 {
        host.step(100, burst(1_000_000));
        for _ in 0..9 {
            host.step(100, burst(0));
        }
    }
    assert_eq!(host.estimator.said().report.bandwidth, Some(mbps(8.0)));
}

#[test]
fn a_look_that_took_long_makes_a_rate_smaller_and_never_larger() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    for second in 1..=3_u64 {
        host.now = at(1000 * second);
        // Read at some time within 250 ms: 1 MB in at most 1.25 s. (The first look took no time.)
        host.counters.after = host.now;
        host.counters.before = host.now + Span::from_millis(if second == 1 { 250 } else { 0 });
        host.counters.received += Bytes::new(1_000_000);
        host.flow.tcp.received += Bytes::new(1_000_000);
        host.flow.tcp.receive_rtt = Some(Span::from_millis(30));
        host.look();
    }
    // The first interval ends at 1.25 s at the latest: 6.4 Mb/s. The second begins at 1 s at the earliest. It is surely
    // a second long only at 3 s: 2 MB in 2 s.
    assert_eq!(host.estimator.seen.highest_but_one(host.now, VALIDITY, |rate| rate), Some(mbps(6.4)));
    assert_eq!(host.estimator.seen.lower_quartile(host.now, VALIDITY, |rate| rate), None); // there are two
}

#[test]
fn losses_of_senders_count_where_receivers_have_seen_as_many_and_no_queue_stood() {
    let both = Step { segments: 500, sent_segments: 1000, retransmits: 5, out_of_order: 400, ..Step::default() };
    let mut host = Host::new(MEASURE, Medium::Unknown);
    let said = host.step(1000, both).expect("news");
    assert_eq!((ppm(&said), said.error_rate), (Some(2435), Some(Source::Connections)));
    // No segment arrived out of order. Of 500 at most 2.706 / 502.7 were lost, which is above the estimate; of 5000 fewer.
    let mut host = Host::new(MEASURE, Medium::Unknown);
    let said = host.step(1000, Step { segments: 5000, out_of_order: 0, ..both }).expect("news");
    assert_eq!(ppm(&said), Some(540));
    // One direction alone is no evidence, nor are losses beside a standing queue.
    for step in [Step { segments: 0, ..both }, Step { sent_segments: 0, ..both }, Step { queue: true, ..both }] {
        assert_eq!(Host::new(MEASURE, Medium::Unknown).step(1000, step).and_then(|said| said.error_rate), None);
    }
}

#[test]
fn noise_is_no_news_and_another_place_is() {
    let said = |bandwidth, error_rate| Said {
        report: LinkReport {
            bandwidth: Some(mbps(bandwidth)),
            error_rate: Probability::new(error_rate).ok(),
            validity: VALIDITY,
        },
        bandwidth: Some(Source::Radio),
        error_rate: Some(Source::Radio),
    };
    let before = said(20.0, 0.004);
    for (bandwidth, error_rate, news) in [
        (22.0, 0.005, false),
        (22.1, 0.004, true),
        (18.2, 0.0033, false),
        (18.1, 0.004, true),
        (20.0, 0.005_01, true),
        (20.0, 0.003_1, true),
    ] {
        assert_eq!(said(bandwidth, error_rate).is_news_after(&before), news, "{bandwidth} {error_rate}");
    }
    // From 1 ppm to 100 ppm all count as none.
    assert!(!said(20.0, 100e-6).is_news_after(&said(20.0, 1e-6)));
    assert!(Said::NOTHING.is_news_after(&before) && !Said::NOTHING.is_news_after(&Said::NOTHING));

    let mut host = Host::new(MEASURE, wifi(54.0));
    while host.hear(|_| {}).is_none() {}
    host.estimator.forget();
    assert_eq!(host.hear(|_| {}), Some(Said::NOTHING));
}

#[test]
fn counters_that_begin_anew_are_no_traffic() {
    let mut host = Host::new(MEASURE, Medium::Unknown);
    let full = Step { received: 1_250_000, queue: true, ..Step::default() };
    for _ in 0..5 {
        host.step(1000, full);
    }
    host.counters.received = Bytes::ZERO;
    assert_eq!(host.step(1000, full), None);
    assert_eq!(host.step(1000, full), None);
    assert_eq!(host.estimator.said().report.bandwidth, Some(mbps(10.0)));
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Step(u64, Step),
    Radio { rate: f64, packets: u32, failed: u32, heard: u32, errors: u32 },
    Change(Medium),
    Forget,
    Lose,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let step = (0..5000_u64, 0..10_000_000_u64, 0..50_u64, 0..3000_u64, 0..50_u64, any::<bool>()).prop_map(
        |(milliseconds, received, damaged, segments, lost, queue)| {
            let step = Step {
                received,
                damaged,
                segments,
                out_of_order: lost,
                sent_segments: segments,
                retransmits: lost,
                queue,
            };
            Operation::Step(milliseconds, step)
        },
    );
    let radio = (6.0..54.0, 0..5000_u32, 0..50_u32, 0..5000_u32, 0..50_u32)
        .prop_map(|(rate, packets, failed, heard, errors)| Operation::Radio { rate, packets, failed, heard, errors });
    let medium = prop_oneof![
        Just(Medium::Unknown),
        (1.0..1000.0).prop_map(|speed| Medium::Wired { speed: Some(mbps(speed)) }),
        Just(wifi(54.0)),
    ];
    let operation = prop_oneof![
        8 => step,
        8 => radio,
        1 => medium.prop_map(Operation::Change),
        1 => Just(Operation::Forget),
        1 => Just(Operation::Lose),
    ];
    prop::collection::vec(operation, 1..80)
}

proptest! {
    #[test]
    fn nothing_is_said_above_what_a_source_allows_and_everything_ends(
        operations in operations(),
        fixed in prop::option::of(1.0..100.0_f64),
    ) {
        let settings = Settings { bandwidth: fixed.map(mbps), ..MEASURE };
        let mut host = Host::new(settings, wifi(54.0));
        // The highest rate and share observed since the last reset. Data between two looks count for both.
        let (mut fastest, mut lossiest) = (Rate::ZERO, 0.0_f64);
        let mut interval = 0;
        for operation in operations {
            let before = *host.estimator.said();
            let news = match operation {
                Operation::Step(milliseconds, step) => {
                    interval += step.received;
                    // An interval is a second or longer: at most as if all data since the last look arrived within one.
                    fastest = fastest.max(Rate::over(Bytes::new(interval), Span::from_secs(1)));
                    if milliseconds >= 1000 {
                        interval = step.received;
                    }
                    lossiest = 1.0;
                    host.step(milliseconds, step)
                }
                Operation::Radio { rate, packets, failed, heard, errors } => {
                    lossiest = lossiest.max(f64::from(failed) / f64::from(packets.max(1)));
                    fastest = fastest.max(airtime::carries(ofdm(rate), ofdm(rate), Bss::default()));
                    if let Medium::Wifi(radio) = &mut host.medium {
                        let more = |count: Option<u32>, more| Some(count.unwrap_or(0) + more);
                        radio.receive_rate = Some(ofdm(rate));
                        radio.transmit_rate = radio.receive_rate;
                        (radio.sent, radio.failed) = (more(radio.sent, packets), more(radio.failed, failed));
                        (radio.heard, radio.fcs_errors) = (more(radio.heard, heard), more(radio.fcs_errors, errors));
                        radio.received = more(radio.received, packets);
                    }
                    host.step(2000, Step::default())
                }
                Operation::Change(medium) => {
                    host.medium = medium;
                    host.step(0, Step::default())
                }
                Operation::Forget => {
                    host.estimator.forget();
                    (fastest, lossiest, interval) = (Rate::ZERO, 0.0, 0);
                    host.step(0, Step::default())
                }
                Operation::Lose => {
                    let news = host.estimator.on_link_lost();
                    prop_assert!(host.estimator.said().is_nothing());
                    (fastest, lossiest, interval) = (Rate::ZERO, 0.0, 0);
                    news
                }
            };
            let said = *host.estimator.said();
            prop_assert_eq!(news.is_some(), said != before);
            if let Some(rate) = said.report.bandwidth {
                match (settings.bandwidth, host.medium) {
                    (Some(fixed), _) => prop_assert_eq!(rate, fixed),
                    // Hysteresis keeps the last report until it is a tenth off.
                    (None, Medium::Wifi(_) | Medium::Unknown) => prop_assert!(rate.as_mbps() <= fastest.as_mbps() * 1.1 + 1e-3, "{rate} {fastest}"),
                    (None, Medium::Wired { speed }) => {
                        prop_assert!(rate.as_mbps() <= speed.expect("given").as_mbps() * ETHERNET_EFFICIENCY * 1.1);
                    }
                }
            }
            if let Some(share) = said.report.error_rate {
                prop_assert!(share.get() <= lossiest.min(1.0) * 1.25 + NEGLIGIBLE_ERROR_RATE, "{share:?} {lossiest}");
            }
        }
        // No observation for longer than an estimate holds.
        host.step(VALIDITY.as_millis() + 1, Step::default());
        prop_assert_eq!(host.estimator.said().report.bandwidth, settings.bandwidth);
        prop_assert_eq!(host.estimator.said().report.error_rate, None);
    }
}
