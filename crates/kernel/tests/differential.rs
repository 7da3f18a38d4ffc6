//! With no bound, our control does what the kernel's cubic does.
//!
//! Two transfers are never the same to the segment in real time, so what is compared are ratios over interleaved rounds:
//! goodput, mean window, and how often each state was entered. Five rounds do on a quiet machine. On a busy one a pause may
//! fall on one of the two: there more rounds are added, until it no longer weighs.
#![allow(missing_docs)]

mod support;

use lasthop_connection::CongestionState;
use lasthop_kernel::{Kernel, Mode};
use std::time::{Duration, Instant};
use support::{B4, Flow, Net, eventually, load_with, run, set_control, throughout};

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    seconds: f64,
    bytes: f64,
    windows: f64,
    samples: f64,
    retransmits: f64,
    recoveries: f64,
    reductions: f64,
}

impl Totals {
    fn mean_window(&self) -> f64 {
        self.windows / self.samples
    }

    fn per_second(&self, count: f64) -> f64 {
        count / self.seconds
    }
}

/// What is to be alike: its name, the figure, and how many times one may be the other.
type Figure = (&'static str, fn(&Totals) -> f64, f64);

const BYTES: Figure = ("bytes per second", |totals| totals.per_second(totals.bytes), 1.1);
/// Rounds of a comparison: at least, and at most.
const ROUNDS: (u32, u32) = (5, 25);

/// One transfer, the first half second left out.
fn measure(net: &Net, kernel: &mut Kernel, cubic: bool, totals: &mut Totals) {
    // The machine's own default may be either.
    let mut flow =
        Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, if cubic { "cubic" } else { "reno" }));
    assert_eq!(flow.control(), if cubic { "cubic" } else { kernel.name() });
    flow.send();
    throughout(Duration::from_millis(500), || {});
    kernel.poll_state_changes(|_| {}).expect("the ring");
    let (begun, bytes, retransmits) = (Instant::now(), flow.received(), flow.info().tcpi_total_retrans);
    throughout(Duration::from_millis(1500), || {
        totals.windows += f64::from(flow.info().tcpi_snd_cwnd);
        totals.samples += 1.0;
    });
    totals.seconds += begun.elapsed().as_secs_f64();
    totals.bytes += (flow.received() - bytes) as f64;
    totals.retransmits += f64::from(flow.info().tcpi_total_retrans - retransmits);
    let cookie = flow.cookie();
    kernel
        .poll_state_changes(|change| {
            if change.cookie == cookie {
                totals.recoveries += f64::from(u8::from(change.to == CongestionState::Recovery));
                totals.reductions += f64::from(u8::from(change.to == CongestionState::Cwr));
            }
        })
        .expect("the ring");
}

/// The kernel's cubic and ours in interleaved rounds, until every figure is alike and `enough` of cubic's is there.
fn compare(net: &Net, derive_flags: bool, figures: &[Figure], enough: fn(&Totals) -> bool) {
    let mut kernel = load_with(net, Mode::Control, |options| {
        options.take_chosen = true;
        options.leave = vec!["cubic".into()];
        options.derive_flags = derive_flags;
    });
    let (mut theirs, mut ours) = (Totals::default(), Totals::default());
    let mut differs = String::new();
    for round in 1..=ROUNDS.1 {
        measure(net, &mut kernel, true, &mut theirs);
        measure(net, &mut kernel, false, &mut ours);
        if round < ROUNDS.0 {
            continue;
        }
        println!("{round} rounds, {} repaired", kernel.counters().repaired);
        println!("cubic   {theirs:?}, mean window {:.1}", theirs.mean_window());
        println!("lasthop {ours:?}, mean window {:.1}", ours.mean_window());
        let differing = figures.iter().find_map(|(what, of, most)| {
            let ratio = of(&ours) / of(&theirs);
            let alike = (1.0 / most..=*most).contains(&ratio);
            (!alike).then(|| format!("{what}: {} is {ratio:.2} of {}", of(&ours), of(&theirs)))
        });
        differs = match differing {
            Some(differing) => differing,
            None if !enough(&theirs) => "there is too little to compare".to_owned(),
            None => return,
        };
        eprintln!("one more round after {round}: {differs}");
    }
    panic!("after {} rounds {differs}", ROUNDS.1);
}

#[test]
fn losses_in_the_network_cost_the_same_as_in_the_kernels_cubic() {
    needs_root!();
    for derive_flags in [false, true] {
        let net = Net::bottleneck(20, 40_000);
        let figures: [Figure; 4] = [
            BYTES,
            ("mean window", Totals::mean_window, 1.2),
            ("recoveries per second", |totals| totals.per_second(totals.recoveries), 1.5),
            ("retransmits per second", |totals| totals.per_second(totals.retransmits), 1.6),
        ];
        compare(&net, derive_flags, &figures, |cubic| cubic.recoveries > 10.0);
    }
}

#[test]
fn a_full_local_queue_costs_the_same_as_in_the_kernels_cubic() {
    needs_root!();
    let net = Net::direct();
    // drops at the sender itself put TCP into CWR; single segments, else part of a large one goes through unnoticed
    net.a.run(|| {
        run("ip link set a0 gso_max_segs 1");
        run("tc qdisc add dev a0 root tbf rate 50mbit burst 2k limit 3200");
    });
    let figures: [Figure; 3] = [
        BYTES,
        ("mean window", Totals::mean_window, 1.25),
        ("reductions per second", |totals| totals.per_second(totals.reductions), 1.6),
    ];
    compare(&net, false, &figures, |cubic| cubic.reductions > 10.0);
}

#[test]
fn idleness_shrinks_the_window_as_in_the_kernels_cubic() {
    needs_root!();
    let net = Net::bottleneck(50, 200_000);
    let kernel = load_with(&net, Mode::Control, |options| {
        options.leave = vec!["cubic".into()];
        options.take_chosen = true;
    });
    for (own, control) in [("cubic", "cubic"), ("reno", kernel.name())] {
        let flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, own));
        use std::io::{Read, Write};
        assert_eq!(flow.control(), control);
        let transfer = |count: usize| {
            std::thread::scope(|scope| {
                scope.spawn(|| (&*flow.sender).write_all(&vec![0; count]).expect("sent"));
                (&*flow.receiver).read_exact(&mut vec![0; count]).expect("received");
            });
        };
        eventually("a window past 40, and no recovery", || {
            transfer(2_000_000);
            flow.info().tcpi_snd_cwnd > 40 && flow.info().tcpi_ca_state == 0
        });
        let grown = flow.info();
        // the window is halved once per retransmission timeout of idleness (200 ms and a round trip): from 640 to 10 in six
        std::thread::sleep(Duration::from_micros(u64::from(grown.tcpi_rto) * 8));
        transfer(1);
        eventually("acknowledged", || {
            flow.info().tcpi_notsent_bytes == 0 && flow.info().tcpi_snd_cwnd < grown.tcpi_snd_cwnd
        });
        let after = flow.info();
        assert_eq!(after.tcpi_snd_cwnd, 10, "{control}: the initial window again");
        let kept = grown.tcpi_snd_cwnd / 2 + grown.tcpi_snd_cwnd / 4;
        assert!(after.tcpi_snd_ssthresh >= kept, "{control}: {} of {}", after.tcpi_snd_ssthresh, grown.tcpi_snd_cwnd);
    }
}
