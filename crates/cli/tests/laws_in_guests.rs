//! Our laws on kernel hosts in virtual time: what they are for, seen on the kernel's own TCP.

use crate::common::{can_emulate, in_virtual_time, lasthop, result};
use lasthop_scenario::RunResult;
use std::fs;

/// Utsumi's dumbbell, 10 Mb/s, 40 ms and a queue of 50 packets, with these two congestion controls.
fn dumbbell(controls: [&str; 2], loss: &str, duration_s: u32) -> RunResult {
    let controls = [0, 1].map(|host| format!("hosts.{host}.congestion_control={}", controls[host]));
    let (loss, duration) = (format!("links.2.loss={loss}"), format!("duration_s={duration_s}"));
    let mut arguments = vec!["run", "scenarios/utsumi-dumbbell-kernel.toml", "--json", "--set", "warmup_s=3"];
    for set in [&controls[0], &controls[1], &loss, &duration] {
        arguments.extend(["--set", set]);
    }
    in_virtual_time(&arguments)
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn every_law_carries_20_s_over_1_percent_of_random_loss() {
    if !can_emulate() {
        return;
    }
    let laws = ["newreno", "hd", "chd", "cdg", "cdg-linux", "ucc", "copa", "ledbat++"];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("laws.toml");
    let mut text = "duration_s = 20\nwarmup_s = 2\n[access]\nkind = \"wired\"\nrate_mbps = 100\n[path]\nrtt_ms = 40\n\
                    rate_mbps = 60\nqueue_packets = 300\nloss = 0.01\n"
        .to_owned();
    for law in laws {
        text += &format!("[[hosts]]\ncongestion_control = \"{law}\"\n[[hosts.flows]]\n");
    }
    fs::write(&file, text).expect("a file");
    let result = in_virtual_time(&["run", &file.display().to_string(), "--json"]);
    for (flow, law) in result.flows.iter().zip(laws) {
        assert_eq!(flow.congestion_control.as_deref(), Some(law), "results tell no private name");
        assert!(flow.goodput_mbps > 1.0 && flow.retransmits > 20, "{flow:?}");
    }
    let of = |law: &str| {
        result.flows.iter().find(|flow| flow.congestion_control.as_deref() == Some(law)).expect(law).goodput_mbps
    };
    // These tolerate losses without a queue; one run of 20 s says no more.
    for law in ["chd", "cdg", "ucc", "copa"] {
        assert!(of(law) > 1.2 * of("newreno"), "{law}: {} Mb/s, newreno: {}", of(law), of("newreno"));
    }
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn ucc_gets_half_as_much_again_as_reno_at_1_and_2_percent_of_loss() {
    if !can_emulate() {
        return;
    }
    for loss in ["0.01", "0.02"] {
        let goodput = |law| dumbbell([law, law], loss, 15).aggregate_goodput_mbps;
        let (ucc, reno) = (goodput("ucc"), goodput("newreno"));
        println!("loss {loss}: ucc {ucc} Mb/s, reno {reno} Mb/s, {:.2}", ucc / reno);
        assert!(ucc >= 1.5 * reno, "loss {loss}: ucc {ucc} Mb/s, reno {reno} Mb/s");
    }
}

#[test]
#[ignore = "long: make test-virtual-time"]
fn ucc_shares_fairly_with_reno_where_nothing_is_lost_at_random() {
    if !can_emulate() {
        return;
    }
    let result = dumbbell(["ucc", "newreno"], "0", 40);
    println!("{:?}", result.flows.iter().map(|flow| flow.goodput_mbps).collect::<Vec<_>>());
    assert!(result.jain_index.is_some_and(|jain| jain >= 0.9), "{:?}", result.jain_index);
    assert!(result.aggregate_goodput_mbps > 8.0, "{}", result.aggregate_goodput_mbps);
}

#[test]
fn a_law_of_ones_own_runs_on_the_kernel_and_keeps_its_window_where_cubic_halves() {
    if !can_emulate() {
        return;
    }
    let times = ["--set", "duration_s=12", "--set", "warmup_s=3"];
    let run = ["run", "scenarios/own-law/lossy.toml", "--json", "--set", "path.loss=0.01"];
    let result = in_virtual_time(&[&run[..], &times].concat());
    let [westwood, cubic] = &result.flows[..] else { panic!("{:?}", result.flows) };
    assert_eq!(westwood.congestion_control.as_deref(), Some("./westwood.h"), "results tell no private name");
    println!("{} and {} Mb/s", westwood.goodput_mbps, cubic.goodput_mbps);
    assert!(westwood.goodput_mbps > 1.3 * cubic.goodput_mbps, "{westwood:?}, {cubic:?}");
}

/// Copa, three downloads: the same header in both habitats sets window and pace.
#[test]
#[ignore = "long: make test-virtual-time"]
fn a_law_that_sets_its_pace_does_on_the_kernel_what_it_does_simulated() {
    if !can_emulate() {
        return;
    }
    let run = ["run", "scenarios/own-law/paced.toml", "--json", "--set", "duration_s=12", "--set", "warmup_s=4"];
    let simulated = result(&lasthop(&run).output().expect("the command starts"));
    let kernel = in_virtual_time(&run);
    let figures = |result: &RunResult| (result.aggregate_goodput_mbps, result.rtt_ms.expect("it was measured").mean);
    let (ours, theirs) = (figures(&simulated), figures(&kernel));
    println!("simulated {ours:?}, kernel {theirs:?} Mb/s and ms");
    let apart = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs();
    assert!(apart(ours.0, theirs.0) < 0.05 && apart(ours.1, theirs.1) < 0.05, "{ours:?} {theirs:?}");
    assert!(ours.1 < 1.5 * 40.0 && kernel.jain_index.is_some_and(|jain| jain > 0.95), "{ours:?} {kernel:?}");
}
