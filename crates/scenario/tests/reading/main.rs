//! What a scenario file means.
// The ready scenarios are files.

use lasthop_keys::{Kind, Preset, Section};
use lasthop_laws::SlowStart;
use lasthop_network::{
    AccessConfig, AckFilter, Change, Changed, ChannelWidth, DirectionChange, DirectionConfig, GuardInterval, HostPath,
    Impairments, LinksConfig, LossAt, Modulation, NodeId, PathConfig, QueueConfig, RateControl, Standard, Topology,
    Way, WifiConfig,
};
use lasthop_policy::{PolicyName, PolicySettings};
use lasthop_scenario::{AgentMode, Direction, Era, FlowSpec, Override, QuicLaw, Scenario, Vary};
use lasthop_traffic::{
    Bulk, Constant, Interactive, Ladder, OnOff, Pace, Ping, Quic, Saturated, Sizes, Transfers, Video,
};
use lasthop_units::{Bytes, Probability, Rate, Span, Time};

mod last_link;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).expect("an override")).collect();
    Scenario::from_toml("test.toml", text, &overrides).expect("a scenario")
}

fn section(heading: &str) -> &'static Section {
    let (_, section) = Scenario::section().walk().into_iter().find(|(other, _)| other == heading).expect("a heading");
    section
}

const TWO_KINDS: &str = "\
name = \"two kinds\"
[access]
standard = \"802.11bg\"
rate_control = \"arf\"
[path]
rtt_ms = 256
loss = 0.01
[[hosts]]
count = 2
policy = \"fixed\"
bound_segments = 48
[[hosts.flows]]
count = 2
start_s = [0.0, 2.0]
[[hosts]]
era = \"modern\"
rate_mbps = 11
congestion_control = \"newreno\"
[[hosts.flows]]
direction = \"down\"
start_s = 3
";

fn access_and_path(scenario: &Scenario) -> (&AccessConfig, &PathConfig) {
    let Topology::AccessPoint { access, path } = &scenario.network().topology else { panic!("links") };
    (access, path)
}

#[test]
fn the_shortest_scenario_is_one_upload_over_80211g() {
    let scenario = read("[[hosts]]\n", &[]);
    assert_eq!((scenario.name.as_str(), scenario.seed), ("test", 1));
    assert_eq!((scenario.duration, scenario.warmup), (Span::from_secs(60), Span::from_secs(10)));
    assert_eq!(scenario.sample, Span::from_millis(50));
    let [host] = scenario.expanded_hosts().try_into().expect("one host");
    assert_eq!((host.kind.era, host.kind.network.queue_packets), (Era::Y2012, 1_000));
    assert_eq!(host.kind.tcp.send_buffer, Bytes::new(1_048_576));
    assert_eq!((host.kind.agent, &host.kind.policy), (AgentMode::Off, &PolicySettings::default()));
    assert_eq!((host.flows.len(), host.flows[0].direction, host.flows[0].start), (1, Direction::Up, Time::ZERO));
    let AccessConfig::Wifi(wifi) = access_and_path(&scenario).0 else { panic!("wifi") };
    assert_eq!((wifi.standard, wifi.rate_control), (Standard::G, RateControl::Fixed));
    assert_eq!((wifi.access_point_queue, wifi.retry_limit), (QueueConfig::fifo(100), 7));
}

fn wifi(overrides: &[&str]) -> (WifiConfig, serde_json::Value) {
    let scenario = read("[[hosts]]\n", overrides);
    let AccessConfig::Wifi(wifi) = access_and_path(&scenario).0 else { panic!("wifi") };
    (wifi.clone(), scenario.to_json()["access"].clone())
}

#[test]
fn a_standard_of_aggregates_brings_its_usual_channel() {
    for (word, standard, rate_mbps) in
        [("802.11n", Standard::N, 65.0), ("802.11ac", Standard::Ac, 390.0), ("802.11ax", Standard::Ax, 600.441176)]
    {
        let (read, json) = wifi(&[&format!("access.standard={word}")]);
        assert_eq!(read, WifiConfig::new(standard));
        assert_eq!(json["rate_mbps"], rate_mbps);
    }
    let (of_g, json) = wifi(&[]);
    assert_eq!((of_g, json.get("mcs")), (WifiConfig::new(Standard::G), None));
}

#[test]
fn keys_of_aggregates_are_read_in_their_units() {
    let (wifi, json) = wifi(&[
        "access.standard=802.11ac",
        "access.channel_width_mhz=20",
        "access.spatial_streams=2",
        "access.guard_interval_us=0.4",
        "access.aggregate_frames=32",
        "access.max_ppdu_us=4000",
        "access.rts_threshold_bytes=3000",
        "access.rts_on_retry=true",
        "access.start_spacing_us=8",
        "access.amsdu_bytes=7935",
        "access.access_point_cw_max=1023",
        "access.access_point_txop_us=2000",
        "access.response_error_rate=0.125",
    ]);
    // MCS 9 is not allowed over 20 MHz with two streams: 2 · 52 · 8 · 3/4 bits in 3.6 us.
    let (width, guard_interval) = (ChannelWidth::Mhz20, GuardInterval::Ns400);
    assert_eq!(wifi.modulation, Modulation { mcs: 8, spatial_streams: 2, width, guard_interval });
    assert_eq!(json["rate_mbps"], 173.333333);
    assert_eq!((wifi.aggregate_frames, wifi.max_ppdu), (32, Span::from_micros(4000)));
    assert_eq!((wifi.rts_threshold, wifi.access_point_window), (Some(Bytes::new(3000)), 1023));
    assert_eq!((wifi.rts_on_retry, wifi.start_spacing), (true, Span::from_micros(8)));
    assert_eq!(wifi.amsdu_bytes, Bytes::new(7935));
    assert_eq!(wifi.access_point_txop, Span::from_micros(2000));
    assert_eq!(wifi.response_error_rate.get(), 0.125);
}

#[test]
fn a_far_station_has_an_mcs_or_a_rate_by_the_standard() {
    let text = "[[hosts]]\nmcs = 2\nrate_mbps = 6\n[[hosts]]\n[[changes]]\nat_s = 3\nhosts = [1]\nmcs = 0\n";
    let far = |scenario: &Scenario| {
        let hosts = &scenario.network().hosts;
        hosts.iter().map(|host| (host.mcs, host.rate.map(Rate::as_mbps))).collect::<Vec<_>>()
    };
    let scenario = read(text, &["access.standard=802.11ax"]);
    assert_eq!(far(&scenario), [(Some(2), None), (None, None)]);
    let moved =
        Changed::Station { host: 1, rate: None, mcs: Some(0), frame_error_rate: None, snr_db: None, held: None };
    assert_eq!(scenario.network().changes[0].what, moved);
    let before = text.split("[[changes]]").next().unwrap();
    assert_eq!(far(&read(before, &[])), [(None, Some(6.0)), (None, None)]);
}

#[test]
fn blocks_expand_to_hosts_and_connections_with_numbers_in_their_order() {
    let scenario = read(TWO_KINDS, &[]);
    let hosts = scenario.expanded_hosts();
    let numbers: Vec<_> = hosts.iter().map(|host| (host.index, host.block, host.flows.len())).collect();
    assert_eq!(numbers, [(0, 0, 2), (1, 0, 2), (2, 1, 1)]);
    let flows: Vec<_> = hosts.iter().flat_map(|host| &host.flows).map(|flow| (flow.id, flow.host)).collect();
    assert_eq!(flows, [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]);
    assert_eq!(hosts[0].kind.policy.policy, PolicyName::Fixed);
    assert_eq!((hosts[0].kind.policy.bound_segments, hosts[0].kind.agent), (Some(48), AgentMode::Control));
    assert_eq!(hosts[2].kind.tcp.send_buffer, Bytes::from_kib(4_096));
    assert_eq!((hosts[2].kind.kernel_congestion_control(), hosts[2].flows[0].direction), ("reno", Direction::Down));
    assert_eq!(hosts[2].flows[0].start, Time::ZERO + Span::from_secs(3));
}

#[test]
fn a_kernels_own_control_can_be_named_where_a_law_has_its_name() {
    let scenario = read(TWO_KINDS, &["hosts.0.congestion_control=kernel-cdg", "hosts.1.congestion_control=cdg"]);
    let kinds = scenario.hosts.iter().map(|block| &block.kind);
    let names: Vec<_> = kinds.map(|kind| (kind.kernel_congestion_control(), kind.law.is_some())).collect();
    assert_eq!(names, [("cdg", false), ("cdg", true)]);
}

#[test]
fn the_network_has_a_node_for_each_host_and_the_path_in_units() {
    let scenario = read(TWO_KINDS, &[]);
    let network = scenario.network();
    let (_, path) = access_and_path(&scenario);
    assert_eq!(network.hosts.len(), 3);
    assert_eq!((network.hosts[0].rate, network.hosts[2].rate), (None, Some(Rate::from_mbps(11.0))));
    assert_eq!((path.rtt, path.rate), (Span::from_millis(256), Rate::from_mbps(1000.0)));
    assert_eq!((path.loss.get(), path.queue_packets), (0.01, 1000));
    let wired =
        read("[[hosts]]\nrate_mbps = 54\n", &["access.kind=wired", "access.delay_ms=2", "access.queue_packets=50"]);
    let AccessConfig::Wired(access) = access_and_path(&wired).0 else { panic!("wired") };
    assert_eq!((access.rate, access.delay), (Rate::from_mbps(100.0), Span::from_millis(2)));
    assert_eq!(access.queue, QueueConfig::fifo(50));
    assert_eq!(wired.network().hosts[0].rate, None);
}

#[test]
fn every_word_for_rate_control_is_one_of_the_networks() {
    use RateControl::{Aarf, Arf, Fixed, Minstrel};
    for (word, rate_control) in [("fixed", Fixed), ("arf", Arf), ("aarf", Aarf), ("minstrel", Minstrel)] {
        let scenario = read("[[hosts]]\n", &[&format!("access.rate_control={word}")]);
        let (AccessConfig::Wifi(wifi), _) = access_and_path(&scenario) else { panic!("wifi") };
        assert_eq!(wifi.rate_control, rate_control);
    }
}

#[test]
fn the_access_point_may_queue_by_fq_codel() {
    let queue = |overrides: &[&str]| match access_and_path(&read("[[hosts]]\n", overrides)).0 {
        AccessConfig::Wifi(wifi) => wifi.access_point_queue,
        AccessConfig::Wired(wired) => wired.queue,
    };
    assert_eq!(queue(&["access.queue_packets=1000"]), QueueConfig::fifo(1_000));
    let fair = ["access.queue=fq_codel", "access.queue_packets=1000"];
    assert_eq!(queue(&fair), QueueConfig::fq_codel(1_000));
    assert_eq!(queue(&[fair[0], fair[1], "access.kind=wired"]), QueueConfig::fq_codel(1_000));
}

#[test]
fn starts_are_drawn_from_the_range_by_seed_and_host() {
    let starts = |overrides: &[&str]| -> Vec<Time> {
        let hosts = read(TWO_KINDS, overrides).expanded_hosts();
        hosts.iter().flat_map(|host| &host.flows).map(|flow| flow.start).collect()
    };
    let first = starts(&[]);
    assert!(first[..4].iter().all(|start| *start < Time::ZERO + Span::from_secs(2)), "{first:?}");
    assert!(first[0] != first[1] && first[1] != first[2], "{first:?}");
    assert_eq!(first, starts(&[]));
    assert_ne!(first, starts(&["seed=2"]));
    // One host more at the end of the first block moves no other's start.
    assert_eq!(first[..4], starts(&["hosts.0.count=3"])[..4]);
}

#[test]
fn every_kind_of_traffic_has_its_own_numbers_in_units() {
    let kind = |lines: &[&str]| {
        let overrides: Vec<String> = lines.iter().map(|line| format!("hosts.0.flows.0.{line}")).collect();
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        read("[[hosts]]\n", &overrides).expanded_hosts()[0].flows[0].kind.clone()
    };
    assert_eq!(kind(&[]), Bulk { transfer: None }.into());
    assert_eq!(kind(&["transfer_kib=64"]), Bulk { transfer: Some(Bytes::new(65_536)) }.into());
    assert_eq!(kind(&["kind=on-off", "on_s=0.5", "off_s=0"]), OnOff::new(Span::from_millis(500), Span::ZERO).into());
    // One small message a second: what a person at a terminal sends.
    assert_eq!(kind(&["kind=interactive"]), Interactive { message: Bytes::new(100), gap: Span::from_secs(1) }.into());
    assert_eq!(
        kind(&["kind=transfers", "transfer_kib=1024"]),
        Transfers {
            sizes: Sizes::Lognormal { median: Bytes::new(1_048_576), sigma: 0.0 },
            pace: Pace::After(Span::from_secs(1)),
            request: None,
        }
        .into()
    );
    // The timer slack of Linux is 50 us. 200 bytes at 80 kb/s: 50 in a second.
    for (given, jitter_us) in [(None, 50), (Some("jitter_us=0"), 0)] {
        let with = |name| kind(&[Some(name), given].into_iter().flatten().collect::<Vec<_>>());
        let (gap, jitter) = (Span::from_millis(20), Span::from_micros(jitter_us));
        assert_eq!(with("kind=constant"), Constant::new(Bytes::new(200), gap, jitter).into());
        assert_eq!(with("kind=ping"), Ping(Constant::new(Bytes::new(84), Span::from_millis(200), jitter)).into());
    }
    assert_eq!(
        kind(&["kind=video", "ladder_kbps=[300, 900]", "buffer_s=16"]),
        Video::new(
            Ladder::new(&[300, 900]).expect("a ladder"),
            Span::from_secs(4),
            Span::from_secs(16),
            Bytes::new(400),
        )
        .into()
    );
    assert_eq!(kind(&["kind=quic"]), Quic { law: QuicLaw::Cubic, transfer: None, off: Span::from_secs(1) }.into());
    assert_eq!(
        kind(&["kind=quic", "congestion_control=newreno", "transfer_kib=1", "off_s=2"]),
        Quic { law: QuicLaw::NewReno, transfer: Some(Bytes::new(1_024)), off: Span::from_secs(2) }.into()
    );
    assert_eq!(kind(&["kind=saturated"]), Saturated { packet: Bytes::new(1_500) }.into());
    let key = section("[[hosts.flows]]").key("kind").expect("flows have a kind");
    let Kind::Choice(words) = &key.kind else { panic!("the kind is a choice") };
    for word in words {
        assert_eq!(kind(&[&format!("kind={word}"), "transfer_kib=1"]).as_str(), *word);
    }
}

#[test]
fn a_flow_stops_at_a_moment_of_its_own_stream() {
    let flows = |overrides: &[&str]| read(TWO_KINDS, overrides).expanded_hosts()[0].flows.clone();
    let stop = "hosts.0.flows.0.stop_s=[20, 30]";
    let with = flows(&[stop]);
    let range = Time::ZERO + Span::from_secs(20)..Time::ZERO + Span::from_secs(30);
    assert!(with.iter().all(|flow| flow.stop.is_some_and(|stop| range.contains(&stop))), "{with:?}");
    assert_ne!(with[0].stop, with[1].stop);
    assert_eq!(with, flows(&[stop]));
    // That a flow stops moves no start.
    let starts = |flows: &[FlowSpec]| flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_eq!(starts(&with), starts(&flows(&[])));
    assert!(flows(&[]).iter().all(|flow| flow.stop.is_none()));
}

#[test]
fn the_server_behind_the_path_is_the_node_after_the_hosts() {
    let hosts = read(TWO_KINDS, &[]).expanded_hosts();
    assert!(hosts.iter().flat_map(|host| &host.flows).all(|flow| flow.server == NodeId(3)));
}

const DUMBBELL: &str = "\
[[links]]
count = 2
between = [\"N#\", \"R\"]
[[links]]
between = [\"R\", \"N3\"]
rate_mbps = 10
delay_ms = 20
queue_packets = 50
loss = 0.01
loss_at = \"before\"
back_delay_ms = 5
back_queue = \"fq_codel\"
[[hosts]]
count = 2
node = \"N#\"
queue_packets = 40
[[hosts.flows]]
to = \"N3\"
[[hosts]]
node = \"N3\"
[[hosts.flows]]
to = \"R\"
[[hosts.flows]]
direction = \"down\"
to = \"N2\"
";

fn links(scenario: &Scenario) -> &LinksConfig {
    let Topology::Links(links) = &scenario.network().topology else { panic!("links") };
    links
}

#[test]
fn links_join_nodes_in_the_order_in_which_they_are_named() {
    let scenario = read(DUMBBELL, &[]);
    assert_eq!(scenario.node_names(), ["N1", "R", "N2", "N3"]);
    let links = links(&scenario);
    assert_eq!((links.nodes, links.attached.as_slice()), (4, [0, 2, 3].as_slice()));
    let ends: Vec<_> = links.links.iter().map(|link| link.ends).collect();
    assert_eq!(ends, [(0, 1), (2, 1), (1, 3)]);
    let plain = DirectionConfig {
        rate: Rate::from_mbps(100.0),
        delay: Span::ZERO,
        queue: QueueConfig::fifo(100),
        loss: Probability::ZERO,
        loss_at: LossAt::AfterQueue,
        impairments: Impairments::NONE,
    };
    assert_eq!((links.links[0].forth, links.links[1].back), (plain, plain));
    let forth = DirectionConfig {
        rate: Rate::from_mbps(10.0),
        delay: Span::from_millis(20),
        queue: QueueConfig::fifo(50),
        loss: Probability::new(0.01).expect("a probability"),
        loss_at: LossAt::BeforeQueue,
        impairments: Impairments::NONE,
    };
    assert_eq!(links.links[2].forth, forth);
    // Back is as forth but for what says otherwise, and for the loss.
    let back = DirectionConfig {
        delay: Span::from_millis(5),
        queue: QueueConfig::fq_codel(50),
        loss: Probability::ZERO,
        ..forth
    };
    assert_eq!(links.links[2].back, back);
}

#[test]
fn paths_and_links_are_impaired_as_the_keys_say() {
    let share = |share| Probability::new(share).expect("a probability");
    let up = Impairments {
        loss_burst: Some(3.0),
        jitter: Span::from_millis(2),
        jitter_reorders: true,
        reorder: share(0.01),
        duplicate: share(0.02),
        bleaches_ecn: true,
    };
    let keys = ["loss_burst_packets=3", "jitter_ms=2", "jitter_reorders=true", "reorder=0.01", "duplicate=0.02"];
    let keys: Vec<_> = keys.into_iter().chain(["bleach_ecn=true"]).collect();
    let back = Impairments { reorder: share(0.03), duplicate: Probability::ZERO, ..up };
    let of = |part: &str| keys.iter().chain(&["back_reorder=0.03"]).map(|key| format!("{part}.{key}")).collect();
    let (links, path): (Vec<String>, Vec<String>) = (of("links.1"), of("path"));
    let scenario = read(DUMBBELL, &links.iter().map(String::as_str).collect::<Vec<_>>());
    let Topology::Links(links) = &scenario.network().topology else { unreachable!() };
    assert_eq!((links.links[2].forth.impairments, links.links[2].back.impairments), (up, back));
    assert_eq!(links.links[1].forth.impairments, Impairments::NONE);
    let own = ["path.back_loss=0.1", "hosts.0.path_jitter_ms=7"];
    let scenario = read("[[hosts]]\n", &path.iter().map(String::as_str).chain(own).collect::<Vec<_>>());
    let (_, path) = access_and_path(&scenario);
    assert_eq!((path.impairments, path.back_loss), ([up, back], share(0.1)));
    assert_eq!(scenario.network().hosts[0].path_jitter, Some(Span::from_millis(7)));
}

#[test]
fn none_takes_back_an_optional_word_of_the_file_and_each_way_of_a_link_has_its_own() {
    let filtered = "[access]\nack_filter = \"conservative\"\npreset = \"ac-vendor\"\n[[hosts]]\npolicy = \"lasthop\"\n\
                    leave_out = \"edge\"\nscaled = \"gain\"\nscale = 2\npreset = \"ax\"\n";
    let keys = ["access.ack_filter", "access.preset", "hosts.0.leave_out", "hosts.0.scaled", "hosts.0.preset"];
    let without = read("[access]\n[[hosts]]\npolicy = \"lasthop\"\n", &[]);
    let scenario = read(filtered, &keys.map(|key| format!("{key}=none")).each_ref().map(String::as_str));
    assert_eq!((scenario.network(), &scenario.hosts), (without.network(), &without.hosts));
    for key in keys {
        let (all, one) = (read(filtered, &[]), read(filtered, &[&format!("{key}=none")]));
        assert!(one.network() != all.network() || one.hosts != all.hosts, "{key}");
    }

    let text = "[[links]]\nbetween = [\"A\", \"B\"]\nack_filter = \"conservative\"\n[[hosts]]\nnode = \"A\"\nflows = [{ to = \"B\" }]\n";
    let filters = |scenario: &Scenario| {
        let link = &links(scenario).links[0];
        [link.forth.queue.ack_filter, link.back.queue.ack_filter]
    };
    let conservative = Some(AckFilter::Conservative);
    assert_eq!(filters(&read(text, &[])), [conservative; 2]);
    assert_eq!(filters(&read(text, &["links.0.ack_filter=none"])), [None; 2]);
    let forth = read(text, &["links.0.back_ack_filter=none"]);
    assert_eq!(filters(&forth), [conservative, None]);
    assert_eq!(filters(&Scenario::from_json(&forth.to_json()).expect("a scenario")), [conservative, None]);
}

#[test]
fn a_server_may_sit_on_any_node() {
    let scenario = read(DUMBBELL, &[]);
    let servers: Vec<NodeId> =
        scenario.expanded_hosts().iter().flat_map(|host| &host.flows).map(|flow| flow.server).collect();
    // Node k of the links is node 3 + k, after the three hosts: N3, N3, R, N2.
    assert_eq!(servers, [NodeId(6), NodeId(6), NodeId(4), NodeId(5)]);
    assert_eq!(scenario.network().hosts.iter().map(|host| host.queue_packets).collect::<Vec<_>>(), [40, 40, 1_000]);
}

#[test]
fn pairs_are_numbered_within_their_blocks() {
    let pairs = "\
[[links]]
count = 3
between = [\"a#\", \"L\"]
[[links]]
between = [\"L\", \"R\"]
[[links]]
count = 3
between = [\"R\", \"b#\"]
[[hosts]]
count = 3
node = \"a#\"
[[hosts.flows]]
to = \"b#\"
";
    let scenario = read(pairs, &[]);
    let name = |node: usize| scenario.node_names()[node].as_str();
    let ways: Vec<_> = scenario
        .expanded_hosts()
        .iter()
        .zip(&links(&scenario).attached)
        .map(|(host, node)| (name(*node), name(host.flows[0].server.index() - 3)))
        .collect();
    assert_eq!(ways, [("a1", "b1"), ("a2", "b2"), ("a3", "b3")]);
}

#[test]
fn keys_of_links_can_be_overridden_and_varied() {
    let scenario = read(
        DUMBBELL,
        &["links.1.loss=0.05", "links.*.rate_mbps=7", "links.0.back_rate_mbps=1", "hosts.1.flows.*.to=N1"],
    );
    let links = links(&scenario);
    assert_eq!((links.links[2].forth.loss.get(), links.links[2].forth.rate), (0.05, Rate::from_mbps(7.0)));
    assert_eq!((links.links[1].forth.rate, links.links[1].back.rate), (Rate::from_mbps(7.0), Rate::from_mbps(1.0)));
    assert!(scenario.expanded_hosts()[2].flows.iter().all(|flow| flow.server == NodeId(3)));
    let losses = Vary::cases(&[Vary::parse("links.1.loss=0,0.01").expect("a vary")]);
    for (case, loss) in losses.iter().zip([0.0, 0.01]) {
        let scenario = Scenario::from_toml("x.toml", DUMBBELL, &case.overrides).expect("a scenario");
        let Topology::Links(links) = &scenario.network().topology else { panic!("links") };
        assert_eq!(links.links[2].forth.loss.get(), loss);
    }
}

#[test]
fn the_whole_scenario_of_links_comes_back_from_json_and_from_toml() {
    let scenario = read(DUMBBELL, &["seed=9"]);
    let json = scenario.to_json();
    assert_eq!((&json["links"][1]["back_rate_mbps"], &json["links"][1]["loss"]), (&10.0.into(), &0.01.into()));
    assert!(json.get("access").is_none() && json.get("path").is_none());
    for again in [Scenario::from_json(&json).expect("from JSON"), read(&scenario.to_toml(), &[])] {
        assert_eq!(again.to_json(), json);
        assert_eq!(again.expanded_hosts(), scenario.expanded_hosts());
        assert_eq!(again.network(), scenario.network());
    }
}

#[test]
fn a_host_may_have_a_path_of_its_own() {
    let path = |overrides: &[&str]| {
        let network = read("[[hosts]]\n", overrides).network().clone();
        network.hosts[0].path
    };
    let ms = Span::from_millis;
    assert_eq!(path(&[]), None);
    let steady = HostPath { rtt: (ms(40), ms(40)), change_every: Span::ZERO };
    assert_eq!(path(&["hosts.0.path_rtt_ms=40"]), Some(steady));
    let drawn_once = HostPath { rtt: (ms(4), ms(256)), change_every: Span::ZERO };
    assert_eq!(path(&["hosts.0.path_rtt_ms=[4, 256]"]), Some(drawn_once));
    let fluctuating = HostPath { change_every: ms(500), ..drawn_once };
    assert_eq!(path(&["hosts.0.path_rtt_ms=[4, 256]", "hosts.0.path_rtt_change_s=0.5"]), Some(fluctuating));
}

#[test]
fn a_host_has_the_stack_of_its_era() {
    for (era, stack) in [("2012", lasthop_tcp::Config::linux_2012()), ("modern", lasthop_tcp::Config::linux_modern())] {
        let kind = read("[[hosts]]\n", &[&format!("hosts.0.era={era}")]).hosts[0].kind.clone();
        assert_eq!((&kind.tcp, &kind.changed_switches[..]), (&stack, &[][..]));
        assert_eq!(kind.era.stack(), stack);
    }
    let small = read("[[hosts]]\n", &["hosts.0.send_buffer_kib=64"]).hosts[0].kind.clone();
    assert_eq!((small.tcp.send_buffer, small.changed_switches), (Bytes::from_kib(64), vec![]));
}

#[test]
fn every_switch_of_a_stack_can_be_set_by_itself() {
    for key in &section("[hosts.tcp]").keys {
        let word = |key: &str| Some(if key == "era" { "modern" } else { "cubic" });
        let default = key.default.value(&word).unwrap_or_else(|| panic!("{} has a default", key.name));
        let others: Vec<String> = match &key.kind {
            Kind::Flag => vec![(!default.as_bool().expect("a flag")).to_string()],
            Kind::Choice(words) => {
                words.iter().filter(|word| default.as_str() != Some(word)).map(|word| (*word).to_owned()).collect()
            }
            Kind::Integer { .. } => vec![(default.as_integer().expect("a number") + 1).to_string()],
            Kind::Number { .. } => vec![(default.as_float().expect("a number") * 1.5).to_string()],
            other => panic!("{}: {other:?}", key.name),
        };
        for value in others {
            let set = format!("hosts.*.tcp.{}={value}", key.name);
            let kind = read("[[hosts]]\nera = \"modern\"\n", &[&set]).hosts[0].kind.clone();
            assert_eq!(kind.changed_switches, [key.name], "{set}");
            assert_ne!(kind.tcp, lasthop_tcp::Config::linux_modern(), "{set}");
        }
    }
}

#[test]
fn the_switches_of_a_stack_have_units() {
    let text = "\
[[hosts]]
[hosts.tcp]
mss_bytes = 1012
rto_min_ms = 230
delayed_ack_segments = 1
receive_buffer_kib = 256
recovery = \"rfc6675\"
tsq = \"limit\"
tsq_limit_kib = 128
[[hosts.flows]]
direction = \"down\"
[[hosts]]
[hosts.tcp]
sack = false
";
    let scenario = read(text, &["hosts.1.tcp.sack=true", "hosts.1.tcp.slow_start=hystart++"]);
    let (one, other) = (&scenario.hosts[0].kind, &scenario.hosts[1].kind);
    let expected = lasthop_tcp::Config {
        mss: Bytes::new(1_012),
        rto_min: Span::from_millis(230),
        delayed_ack: lasthop_tcp::DelayedAck::OFF,
        receive_buffer: Bytes::new(262_144),
        recovery: lasthop_tcp::Recovery::Rfc6675,
        tsq: Some(lasthop_tcp::Tsq { limit: Bytes::new(131_072), pacing_shift: None }),
        ..lasthop_tcp::Config::linux_2012()
    };
    assert_eq!(one.tcp, expected);
    let changed =
        ["mss_bytes", "recovery", "tsq", "tsq_limit_kib", "delayed_ack_segments", "rto_min_ms", "receive_buffer_kib"];
    assert_eq!(one.changed_switches, changed);
    assert_eq!(scenario.hosts[0].flows[0].direction, Direction::Down);
    let expected = lasthop_tcp::Config { slow_start: SlowStart::HyStartPlusPlus, ..lasthop_tcp::Config::linux_2012() };
    assert_eq!((&other.tcp, &other.changed_switches[..]), (&expected, &["slow_start"][..]));
}

#[test]
fn slow_start_has_a_word_for_each_that_there_is() {
    let key = section("[hosts.tcp]").key("slow_start").expect("a switch");
    assert!(matches!(&key.kind, Kind::Choice(words) if words.len() == SlowStart::ALL.len()));
}

#[test]
fn overrides_reach_one_block_or_all_and_make_what_is_missing() {
    let scenario = read(TWO_KINDS, &["hosts.*.queue_packets=7", "hosts.1.era=2012", "path.rtt_ms=4", "sample_ms=100"]);
    assert_eq!(scenario.hosts.iter().map(|host| host.kind.network.queue_packets).collect::<Vec<_>>(), [7, 7]);
    assert_eq!(scenario.hosts[1].kind.era, Era::Y2012);
    assert_eq!(scenario.hosts[1].kind.tcp.send_buffer, Bytes::from_kib(1_024));
    assert_eq!(access_and_path(&scenario).1.rtt, Span::from_millis(4));
    let made = read("[[hosts]]\n", &["hosts.0.flows.0.direction=down", "access.queue_packets=9"]);
    assert_eq!(made.hosts[0].flows[0].direction, Direction::Down);
}

#[test]
fn an_override_that_a_case_does_not_need_is_fine() {
    for policy in ["none", "fixed", "formula"] {
        let scenario = read("[[hosts]]\n", &["hosts.0.bound_segments=48", &format!("hosts.0.policy={policy}")]);
        assert_eq!(scenario.hosts[0].kind.policy.policy.as_str(), policy);
    }
}

#[test]
fn a_case_of_varied_keys_loads() {
    let varied = [Vary::parse("hosts.0.policy=none,formula"), Vary::parse("hosts.0.count=1,4")]
        .map(|vary| vary.expect("a vary"));
    let counts: Vec<usize> = Vary::cases(&varied)
        .iter()
        .map(|case| {
            Scenario::from_toml("x.toml", "[[hosts]]\n", &case.overrides).expect("a scenario").expanded_hosts().len()
        })
        .collect();
    assert_eq!(counts, [1, 4, 1, 4]);
}

#[test]
fn the_whole_scenario_comes_back_from_json_and_from_toml() {
    let scenario = read(TWO_KINDS, &["seed=9"]);
    let json = scenario.to_json();
    assert_eq!(json["hosts"][0]["bound_segments"], 48);
    assert_eq!(json["hosts"][1]["flows"][0]["start_s"], 3.0);
    assert_eq!(json["access"]["queue_packets"], 100);
    for again in [Scenario::from_json(&json).expect("from JSON"), read(&scenario.to_toml(), &[])] {
        assert_eq!(again.to_json(), json);
        assert_eq!(again.expanded_hosts(), scenario.expanded_hosts());
        assert_eq!(again.network(), scenario.network());
    }
}

#[test]
fn every_default_is_accepted_by_its_own_key() {
    for (_, section) in Scenario::section().walk() {
        for key in &section.keys {
            assert!(!key.meaning.is_empty() && !key.kind.accepted().is_empty(), "{}", key.name);
            let absent = matches!(key.default, Preset::Absent | Preset::Derived(..) | Preset::Required);
            let word = |_: &str| match &key.default {
                Preset::ByWord(_, presets) => presets.first().map(|(word, _)| *word),
                _ => None,
            };
            assert_eq!(key.default.value(&word).is_none(), absent, "{}", key.name);
            // The defaults, of every word, are completed without being checked: they are in the form that is read.
            for value in values(&key.default) {
                assert_eq!(key.kind.check(value.clone()).as_ref(), Ok(value), "{}", key.name);
            }
        }
    }
    for standard in words("[access]", "standard") {
        for era in words("[[hosts]]", "era") {
            read("[[hosts]]\n", &[&format!("access.standard={standard}"), &format!("hosts.0.era={era}")]);
        }
    }
    let scenario = read("[[hosts]]\n", &[]);
    read(&scenario.to_toml(), &[]);
}

/// Every value that a default can be.
fn values(preset: &Preset) -> Vec<&toml::Value> {
    match preset {
        Preset::Value(value) => vec![value],
        Preset::ByWord(_, presets) => presets.iter().flat_map(|(_, preset)| values(preset)).collect(),
        Preset::Derived(..) | Preset::Absent | Preset::Required => Vec::new(),
    }
}

fn words(heading: &str, key: &str) -> Vec<&'static str> {
    let Kind::Choice(words) = &section(heading).key(key).expect("a key").kind else { panic!("{key} is no choice") };
    words.clone()
}

#[test]
fn an_empty_list_of_flows_is_a_host_that_sends_nothing() {
    let text = "[[hosts]]\nname = \"laptop\"\nflows = []\n[[hosts]]\n";
    let scenario = Scenario::from_toml("quiet.toml", text, &[]).expect("a scenario");
    let counts: Vec<usize> = scenario.expanded_hosts().iter().map(|host| host.flows.len()).collect();
    assert_eq!(counts, [0, 1]);
    let again = Scenario::from_json(&scenario.to_json()).expect("what was written");
    assert_eq!(again.to_json(), scenario.to_json());
}

#[test]
fn every_ready_scenario_can_be_read_and_says_what_it_shows() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let scenario = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert!(text.starts_with("# ") && text.contains("\n# What to look for: "), "{}", path.display());
            assert!(scenario.warmup < scenario.duration, "{}", path.display());
            let fixed = text.contains("\nbound_segments = ").then_some("fixed");
            for policy in ["none", "formula"].into_iter().chain(fixed) {
                let policy = Override::parse(&format!("hosts.*.policy={policy}")).expect("an override");
                Scenario::load(&path, &[policy]).unwrap_or_else(|error| panic!("{error}"));
            }
            count += 1;
        }
    }
    assert!(count >= 14, "only {count} scenarios in {folder}");
}

#[test]
fn a_law_is_told_what_its_own_table_says() {
    let host = |lines: &str| {
        let scenario = Scenario::from_toml("laws.toml", &format!("[[hosts]]\n{lines}"), &[]).expect("a scenario");
        scenario.hosts[0].kind.clone()
    };
    let told = |lines: &str, name: &str| {
        let law = host(lines).law.expect("one of ours");
        law.parameters.get(law.name, name)
    };
    assert_eq!(told("congestion_control = \"hd\"", "max_probability"), Some(0.05));
    assert_eq!(told("congestion_control = \"hd\"\n[hosts.hd]\nmax_probability = 0.2", "max_probability"), Some(0.2));
    assert_eq!(told("[hosts.hd]\nmax_probability = 0.2", "max_probability"), None, "the host has cubic");
    assert_eq!(host("congestion_control = \"illinois\"").law, None);
}

#[test]
fn changes_are_of_links_forth_and_back_as_the_change_names_them() {
    let changes = "\
[[changes]]
at_s = 20
between = [\"R\", \"N2\"]
rate_mbps = 2
back_loss = 0.1
[[changes]]
at_s = 10.5
between = [\"N1\", \"R\"]
back_delay_ms = 7
";
    let scenario = read(&DUMBBELL.replacen("[[hosts]]", &format!("{changes}[[hosts]]"), 1), &["changes.1.loss=0.25"]);
    let number = |name: &str| scenario.node_names().iter().position(|node| node == name).unwrap();
    let of = |one: &str, other: &str| {
        let ends = (number(one), number(other));
        links(&scenario).links.iter().position(|link| link.ends == ends || (link.ends.1, link.ends.0) == ends).unwrap()
    };
    let forwards = |one: &str, other: &str| links(&scenario).links[of(one, other)].ends.0 == number(one);
    let way = |forth: bool| if forth { Way::Forth } else { Way::Back };
    let expected = |at: f64, link, way, to| Change {
        at: Time::ZERO + Span::from_secs_f64(at),
        what: Changed::Link { link, way, to },
    };
    let nothing = DirectionChange::default();
    let probability = |value: f64| Some(Probability::new(value).unwrap());
    let (r_n2, n1_r) = (of("R", "N2"), of("N1", "R"));
    assert_eq!(
        scenario.network().changes,
        [
            expected(
                20.0,
                r_n2,
                way(forwards("R", "N2")),
                DirectionChange { rate: Some(Rate::from_mbps(2.0)), ..nothing }
            ),
            expected(20.0, r_n2, way(!forwards("R", "N2")), DirectionChange { loss: probability(0.1), ..nothing }),
            expected(10.5, n1_r, way(forwards("N1", "R")), DirectionChange { loss: probability(0.25), ..nothing }),
            expected(
                10.5,
                n1_r,
                way(!forwards("N1", "R")),
                DirectionChange { delay: Some(Span::from_millis(7)), ..nothing }
            ),
        ]
    );
    assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap().network(), scenario.network());
}

#[test]
fn changes_are_of_the_path_of_stations_and_of_a_wired_access() {
    let text = "\
[[changes]]
at_s = 1
rtt_ms = 80
loss = 0.5
[[changes]]
at_s = 2
hosts = [2, 0]
rate_mbps = 6
[[changes]]
at_s = 3
of = \"hosts\"
frame_error_rate = 0.25
[[changes]]
at_s = 4
of = \"access\"
rate_mbps = 8
[[hosts]]
count = 2
[[hosts]]
frame_error_rate = 0.125
";
    let what = |scenario: &Scenario| scenario.network().changes.iter().map(|change| change.what).collect::<Vec<_>>();
    let half = Some(Probability::new(0.5).unwrap());
    let path =
        Changed::Path { rtt: Some(Span::from_millis(80)), rate: None, loss: half, held: None, opportunities: None };
    let slower = |host| Changed::Station {
        host,
        rate: Some(Rate::from_mbps(6.0)),
        mcs: None,
        frame_error_rate: None,
        snr_db: None,
        held: None,
    };
    let quarter = Some(Probability::new(0.25).unwrap());
    let noisy =
        |host| Changed::Station { host, rate: None, mcs: None, frame_error_rate: quarter, snr_db: None, held: None };
    let scenario = read(text, &[]);
    assert_eq!(what(&scenario), [path, slower(2), slower(0), noisy(0), noisy(1), noisy(2)]);
    let own: Vec<_> = scenario.network().hosts.iter().map(|host| host.frame_error_rate.map(Probability::get)).collect();
    assert_eq!(own, [None, None, Some(0.125)]);
    // What is about stations is not looked at with a wired access, and the other way round.
    let wired = read(text, &["access.kind=wired"]);
    assert_eq!(
        what(&wired),
        [path, Changed::Wired { rate: Some(Rate::from_mbps(8.0)), delay: None, held: None, opportunities: None }]
    );
    assert_eq!(wired.network().hosts[2].frame_error_rate, None);
    assert_eq!(what(&read("[[hosts]]\n", &["changes.0.at_s=3", "changes.0.loss=0.5"])).len(), 1);
}
