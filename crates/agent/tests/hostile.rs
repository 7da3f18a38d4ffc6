//! Strangers who lie, on a kernel: what they can do at worst is what docs/models/beacon-threat-model.md says. Needs root.
#![allow(missing_docs)]

use crate::common::process::{AgentProcess, ONE_AT_A_TIME, Upload, serve, upload};
use crate::common::stranger::{ADDRESSES, Nag, shout, worst};
use crate::common::{Host, root, two_hosts};
use lasthop_agent::Mode;
use lasthop_peers::beacon::{Beacon, GroupKey};
use lasthop_peers::group::{GroupId, Label};
use lasthop_policy::PolicyName;
use lasthop_status::record::{Tick, Totals};

/// No limit is to be below this, whoever says what.
const FLOOR_SEGMENTS: u32 = 5;
/// Those that listen most to what peers say.
const LISTENERS: [PolicyName; 2] = [PolicyName::Cooperative, PolicyName::Lasthop];

/// On a cable without delay any queue multiplies the RTT; here only what a peer says is to put a connection under control.
fn settings(policy: PolicyName, beacon: &str) -> String {
    format!(
        "[policy]\npolicy = \"{policy}\"\nminimum_segments = {FLOOR_SEGMENTS}\nenable_ratio = 1000000.0\n\
         [beacon]\nipv6 = false\n{beacon}"
    )
}

/// A host with an upload and an agent, and the one that it uploads to, where the stranger sits.
fn host_and_stranger(policy: PolicyName, beacon: &str) -> (Host, Host, Upload, AgentProcess) {
    eprintln!("with the policy {policy}");
    let (a, b) = two_hosts();
    serve(&b);
    let connection = upload(&a, "10.77.0.2:5001");
    let agent = AgentProcess::start(&a, Mode::Control, &settings(policy, beacon));
    agent.wait_for_tick("the upload", |tick| tick.flows.iter().any(|flow| flow.busy) && tick.beacons.sent > 0);
    (a, b, connection, agent)
}

/// Every limit that was set so far respects the floor, and the connection has gone on.
fn assert_nobody_was_pushed_below_the_floor(agent: &AgentProcess) {
    let ticks = agent.ticks();
    let bounds = || ticks.iter().flat_map(|tick| &tick.flows).filter_map(|flow| flow.bound);
    assert!(bounds().all(|bound| bound.max_segments == 0 || bound.max_segments >= FLOOR_SEGMENTS));
    let before = acked(ticks.last().expect("it ticks"));
    agent.wait_for_tick("the connection to go on", |tick| acked(tick) > before);
}

fn acked(tick: &Tick) -> u64 {
    tick.flows.iter().map(|flow| flow.acked_bytes).sum()
}

/// The causes that were counted.
fn causes(totals: &Totals) -> Vec<&str> {
    totals.rejected_by_cause.keys().map(String::as_str).collect()
}

#[test]
fn ten_thousand_strangers_who_say_the_worst_get_a_host_the_share_of_a_crowd_and_no_memory() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    for (policy, thousands) in LISTENERS.into_iter().zip([10, 3, 3]) {
        let (_a, b, _connection, agent) = host_and_stranger(policy, "");
        shout(&b, ADDRESSES, (0..1000).map(|sender| worst(sender).encode(None)).collect());
        // A stranger's word puts it under control: that of 64 terminals at most, which the floor is above.
        let tick = agent.wait_for_tick("control", |tick| tick.flows.iter().any(|flow| flow.enabled));
        assert!(tick.terminals <= 257, "{}", tick.terminals);
        let tick = agent.wait_for_tick("the table to be full", |tick| tick.terminals > 200);
        let mut resident_kib = vec![agent.rss_kib()];
        for thousand in 1..thousands {
            shout(&b, ADDRESSES, (0..1000).map(|sender| worst(1000 * thousand + sender).encode(None)).collect());
            resident_kib.push(agent.rss_kib());
        }
        let later =
            agent.wait_for_tick("more to be rejected", |later| later.beacons.rejected > tick.beacons.rejected + 1000);
        assert!(later.terminals <= 257, "{}", later.terminals);
        // A thousand identities of 100 bytes each would be 100 KiB more each time. What takes its memory once, such as the walk over
        // open sockets every 10 s, may do so meanwhile.
        let grown = resident_kib.windows(2).filter(|kib| kib[1] > kib[0] + 50).count();
        assert!(grown <= 1, "{resident_kib:?} KiB");
        assert_nobody_was_pushed_below_the_floor(&agent);
        let totals = agent.stop();
        assert!(totals.rejected_by_cause["identities"] > 1000, "{totals}");
        assert!(
            causes(&totals).iter().all(|cause| ["identities", "peer-rate", "total-rate"].contains(cause)),
            "{totals}"
        );
    }
}

#[test]
fn a_thousand_names_from_one_address_count_as_one_stranger() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let (_a, b, _connection, agent) = host_and_stranger(PolicyName::Lasthop, "");
    for thousand in 0..3 {
        shout(&b, 1, (0..1000).map(|sender| worst(1000 * thousand + sender).encode(None)).collect());
    }
    agent.wait_for_tick("most of them to be rejected", |tick| tick.beacons.rejected > 2000);
    assert!(agent.ticks().iter().all(|tick| tick.terminals <= 2));
    assert_nobody_was_pushed_below_the_floor(&agent);
    let totals = agent.stop();
    assert!(causes(&totals).iter().all(|cause| ["identities", "total-rate"].contains(cause)), "{totals}");
}

#[test]
fn a_stranger_s_word_ends_with_his_beacons_and_does_nothing_where_only_one_s_own_rtt_counts() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    for policy in LISTENERS {
        let (_a, b, _connection, agent) = host_and_stranger(policy, "");
        let nag = Nag::start(&b, 10);
        agent.wait_for_tick("control", |tick| tick.flows.iter().any(|flow| flow.enabled && flow.bound.is_some()));
        drop(nag);
        let free =
            |tick: &Tick| !tick.flows.is_empty() && tick.flows.iter().all(|flow| !flow.enabled && flow.bound.is_none());
        // `lasthop` goes on by what it sees itself. It was held to a twentieth of what it had got, in a window of some 9 segments.
        let goes_up = |tick: &Tick| {
            let mut bounds = tick.flows.iter().filter_map(|flow| flow.bound);
            policy == PolicyName::Lasthop && bounds.any(|bound| bound.max_segments > 4 * FLOOR_SEGMENTS)
        };
        agent.wait_for_tick("control to end", |tick| tick.terminals == 1 && (free(tick) || goes_up(tick)));
        assert_nobody_was_pushed_below_the_floor(&agent);
        agent.stop();
    }

    let (_a, b, _connection, agent) = host_and_stranger(PolicyName::Table, "");
    let _nag = Nag::start(&b, 10);
    let tick = agent.wait_for_tick("the strangers", |tick| tick.terminals == 11);
    assert!(tick.flows.iter().all(|flow| !flow.enabled), "{tick:?}");
    agent.stop();
}

#[test]
fn garbage_and_other_groups_are_counted_by_their_cause() {
    if !root() {
        return;
    }
    const POLICY: PolicyName = PolicyName::Cooperative;
    let _alone = ONE_AT_A_TIME.lock();
    let (_a, b, _connection, agent) = host_and_stranger(POLICY, "group = \"office\"\n");
    let office = Label::Name("office".to_owned()).id();
    let good = Beacon { group: office, ..worst(1) }.encode(None);
    let with = |at: usize, to: u8| {
        let mut datagram = good.clone();
        datagram[at] = to;
        datagram
    };
    let wrong = [
        (
            "length",
            vec![good[..43].to_vec(), good[..4].to_vec(), Vec::new(), [good.clone(), vec![0]].concat(), with(5, 0)],
        ),
        ("magic", vec![with(0, b'l'), vec![0; 44], b"GET / HTTP/1.1".to_vec()]),
        ("version", vec![with(4, 1), with(4, 2), with(4, 4)]),
        ("no-key", vec![worst(2).encode(Some(&GroupKey::new(b"a key of theirs, theirs").expect("long enough")))]),
        ("group", vec![worst(3).encode(None), Beacon { group: GroupId(office.0 ^ 1), ..worst(4) }.encode(None)]),
    ];
    let mut sent = 0;
    for (_, datagrams) in &wrong {
        shout(&b, 1, datagrams.iter().cycle().take(20).cloned().collect());
        sent += 20;
        agent.wait_for_tick("all to be rejected", |tick| tick.beacons.rejected == sent);
    }
    assert!(agent.ticks().iter().all(|tick| tick.terminals == 1 && tick.flows.iter().all(|flow| !flow.enabled)));
    let totals = agent.stop();
    assert_eq!(totals.rejected_by_cause, wrong.iter().map(|(cause, _)| ((*cause).to_owned(), 20)).collect());
    assert_eq!(totals.beacons.heard, 0);
}

#[test]
fn with_a_key_nothing_forged_changed_old_or_recorded_is_believed() {
    if !root() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("group.key");
    crate::common::write_key(&file, "the secret of our group\n");
    let key = GroupKey::new(b"the secret of our group").expect("long enough");
    let wall_ns = || {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_REALTIME).expect("Linux has this clock");
        now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
    };
    for policy in LISTENERS {
        let (_a, b, _connection, agent) =
            host_and_stranger(policy, &format!("group_key_file = \"{}\"\n", file.display()));
        let honest = Beacon { timestamp_ns: wall_ns(), ..worst(1) };
        let old = Beacon { timestamp_ns: wall_ns() - 60_000_000_000, ..worst(2) };
        let mut changed = honest.encode(Some(&key));
        changed[7] ^= 1;
        let forged = GroupKey::new(b"the secret of their group").expect("long enough");
        let mut sent = 0;
        for (datagram, times) in
            [(honest.encode(None), 20), (honest.encode(Some(&forged)), 20), (changed, 20), (old.encode(Some(&key)), 20)]
        {
            shout(&b, 1, vec![datagram; times]);
            sent += times as u64;
            let tick = agent.wait_for_tick("all to be rejected", |tick| tick.beacons.rejected == sent);
            assert_eq!((tick.beacons.heard, tick.terminals), (0, 1));
        }
        // What a member of the group has said is believed once.
        let recorded = Beacon { timestamp_ns: wall_ns(), ..honest }.encode(Some(&key));
        shout(&b, 1, vec![recorded; 21]);
        let tick = agent.wait_for_tick("the recording to be rejected", |tick| tick.beacons.rejected == sent + 20);
        assert_eq!((tick.beacons.heard, tick.terminals), (1, 2));
        agent.wait_for_tick("control", |tick| tick.flows.iter().any(|flow| flow.enabled));
        assert_nobody_was_pushed_below_the_floor(&agent);
        let totals = agent.stop();
        let expected = [("replay", 20), ("stale", 20), ("tag", 40), ("unauthenticated", 20)];
        assert_eq!(totals.rejected_by_cause, expected.map(|(cause, count)| (cause.to_owned(), count)).into());
    }
}
