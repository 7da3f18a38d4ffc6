//! With no bound, our control does what the kernel's cubic does.
//!
//! Two transfers are never the same to the segment in real time, so what is compared are ratios over interleaved rounds:
//! goodput, mean window, and how often each state was entered.
#![allow(missing_docs)]

mod support;

use kernel::{CongestionState, Kernel, Mode};
use std::time::Duration;
use support::{B4, Flow, Net, eventually, load_with, run, set_control, throughout};

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
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
}

/// One transfer, the first half second left out.
fn measure(net: &Net, kernel: &mut Kernel, cubic: bool, totals: &mut Totals) {
    let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| {
        if cubic {
            set_control(socket, "cubic");
        }
    });
    assert_eq!(flow.control(), if cubic { "cubic" } else { kernel.name() });
    flow.send();
    throughout(Duration::from_millis(500), || {});
    kernel.poll_state_changes(|_| {}).expect("the ring");
    let (bytes, retransmits) = (flow.received(), flow.info().total_retrans());
    throughout(Duration::from_millis(1500), || {
        totals.windows += f64::from(flow.info().snd_cwnd());
        totals.samples += 1.0;
    });
    totals.bytes += (flow.received() - bytes) as f64;
    totals.retransmits += f64::from(flow.info().total_retrans() - retransmits);
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

/// The kernel's cubic and ours, five interleaved rounds.
fn compare(net: &Net, derive_flags: bool) -> (Totals, Totals) {
    let mut kernel = load_with(net, Mode::Control, |options| {
        options.leave = vec!["cubic".into()];
        options.derive_flags = derive_flags;
    });
    let (mut theirs, mut ours) = (Totals::default(), Totals::default());
    for _ in 0..5 {
        measure(net, &mut kernel, true, &mut theirs);
        measure(net, &mut kernel, false, &mut ours);
    }
    println!("{} repaired", kernel.counters().repaired);
    println!("cubic   {theirs:?}, mean window {:.1}", theirs.mean_window());
    println!("lasthop {ours:?}, mean window {:.1}", ours.mean_window());
    (theirs, ours)
}

fn assert_alike(what: &str, ours: f64, theirs: f64, most: f64) {
    let ratio = ours / theirs;
    assert!((1.0 / most..=most).contains(&ratio), "{what}: {ours} is {ratio:.2} of {theirs}");
}

#[test]
fn losses_in_the_network_cost_the_same_as_in_the_kernels_cubic() {
    needs_root!();
    for derive_flags in [false, true] {
        let net = Net::bottleneck(20, 40_000);
        let (theirs, ours) = compare(&net, derive_flags);
        assert!(theirs.recoveries > 10.0, "there must be something to compare");
        assert_alike("bytes", ours.bytes, theirs.bytes, 1.1);
        assert_alike("mean window", ours.mean_window(), theirs.mean_window(), 1.2);
        assert_alike("recoveries", ours.recoveries, theirs.recoveries, 1.5);
        assert_alike("retransmits", ours.retransmits, theirs.retransmits, 1.6);
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
    let (theirs, ours) = compare(&net, false);
    assert!(theirs.reductions > 10.0, "there must be something to compare");
    assert_alike("bytes", ours.bytes, theirs.bytes, 1.1);
    assert_alike("mean window", ours.mean_window(), theirs.mean_window(), 1.25);
    assert_alike("reductions", ours.reductions, theirs.reductions, 1.6);
}

#[test]
fn idleness_shrinks_the_window_as_in_the_kernels_cubic() {
    needs_root!();
    let net = Net::bottleneck(50, 200_000);
    let kernel = load_with(&net, Mode::Control, |options| options.leave = vec!["cubic".into()]);
    let cubic = |socket: &std::os::fd::OwnedFd| set_control(socket, "cubic");
    for (flow, control) in
        [(Flow::idle_with(&net.a, &net.b, B4, cubic), "cubic"), (Flow::idle(&net.a, &net.b, B4), kernel.name())]
    {
        use std::io::{Read, Write};
        assert_eq!(flow.control(), control);
        let transfer = |count: usize| {
            std::thread::scope(|scope| {
                scope.spawn(|| (&*flow.sender).write_all(&vec![0; count]).expect("sent"));
                (&*flow.receiver).read_exact(&mut vec![0; count]).expect("received");
            });
        };
        transfer(2_000_000);
        let grown = flow.info();
        assert!(grown.snd_cwnd() > 40, "{control}: {}", grown.snd_cwnd());
        // many retransmission timeouts long (200 ms and a round trip each)
        std::thread::sleep(Duration::from_millis(3000));
        transfer(1);
        eventually("acknowledged", || flow.info().notsent_bytes() == 0 && flow.info().snd_cwnd() < grown.snd_cwnd());
        let after = flow.info();
        assert_eq!(after.snd_cwnd(), 10, "{control}: the initial window again");
        let kept = grown.snd_cwnd() / 2 + grown.snd_cwnd() / 4;
        assert!(after.snd_ssthresh() >= kept, "{control}: {} of {}", after.snd_ssthresh(), grown.snd_cwnd());
    }
}
