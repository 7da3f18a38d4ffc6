//! A scenario at each documented limit is read in proportion to its length, and beyond it refused before it is read.
#![allow(missing_docs)]

use lasthop_scenario::{MAX_HOST_BLOCKS, Scenario, ineffective_keys};
use std::fs;

/// The processor's time that this thread has used, in nanoseconds (proc_pid_schedstat(5)): waits for a busy machine are
/// not in it.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The mean of as many reads as take a tenth of a second: the kernel counts at its ticks, some milliseconds apart.
fn cost(text: &str) -> f64 {
    let begun = cpu_ns();
    for reads in 1.. {
        let scenario = Scenario::from_toml("many.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let _told = ineffective_keys([&scenario]);
        let taken = cpu_ns() - begun;
        if taken >= 100_000_000 {
            return taken as f64 / f64::from(reads);
        }
    }
    unreachable!("time goes on")
}

/// `[[links]]` between two nodes, with so many blocks of changes.
fn changes(count: usize) -> String {
    let change = |number: usize| {
        format!("[[changes]]\nat_s = {}\nof = \"path\"\nrate_mbps = {}\n", number / 1000, 1 + number % 9)
    };
    let changes: String = (0..count).map(change).collect();
    format!("duration_s = 60\n[[hosts]]\n{changes}")
}

/// Blocks of hosts of which one has any, each with a key that nothing looks at.
fn hosts(count: usize) -> String {
    let block = "[[hosts]]\ncount = 0\npolicy = \"none\"\nenable_ratio = 3.0\n";
    format!("duration_s = 60\n[[hosts]]\n{}", block.repeat(count - 1))
}

#[test]
fn ten_times_as_many_blocks_cost_ten_times_as_much() {
    for (made, most) in [(changes as fn(usize) -> String, 20_000), (hosts, MAX_HOST_BLOCKS)] {
        let ratio = cost(&made(most)) / cost(&made(most / 10));
        // 100 where each block looks at all others; 10 in proportion, and twice that for caches that are too small.
        assert!(ratio < 25.0, "{most} blocks cost {ratio:.1} times as much as a tenth of them");
    }
}

#[test]
fn more_blocks_than_the_most_are_refused_with_that_number() {
    for (text, said) in [
        (changes(25_000), "many.toml:3: changes: there are 25000, which is too many; accepted: at most 20000 blocks"),
        (hosts(40_000), "many.toml:2: hosts: there are 40000, which is too many; accepted: at most 1000 blocks"),
    ] {
        let error = Scenario::from_toml("many.toml", &text, &[]).expect_err("too many").to_string();
        assert_eq!(error, said);
    }
}
