//! Our laws in the kernel: they carry data, are asked at each loss, live with skipped programs, and go away in order.
#![allow(missing_docs)]

mod support;

use lasthop_kernel::laws::{Counters, Loaded, Name, Options, Value};
use lasthop_laws::{LawName, Parameters};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};
use support::{B4, Flow, Net, eventually, run, set_control, set_u32, throughout};

fn flow(net: &Net, name: &str) -> Flow {
    let flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, name));
    assert_eq!(flow.control(), name);
    flow
}

#[test]
fn every_law_has_the_same_name_everywhere() {
    for law in LawName::for_the_kernel() {
        assert_eq!(law.kernel_name(), format!("lh_{}", law.identifier()));
    }
}

#[test]
fn every_law_fills_a_bottleneck_and_is_asked_about_its_losses() {
    needs_root!();
    for law in LawName::for_the_kernel() {
        // what an older kernel lacks is made up for by the stack around the laws, the same for all
        let variants: &[_] =
            if law == LawName::Ucc { &[(false, false), (true, false), (false, true)] } else { &[(false, false)] };
        for &(derive_flags, skip) in variants {
            let net = Net::bottleneck(20, 100_000);
            let options = Options { name: Name::Private, derive_flags, skip, ..Options::new(law, Parameters::of(law)) };
            let loaded = Loaded::load(&options).unwrap_or_else(|error| panic!("{law}: {error}"));
            let mut flow = flow(&net, loaded.name());
            flow.send();
            throughout(Duration::from_secs(1), || {});
            // a busy machine disturbs some seconds
            let mut mbps = 0.0;
            for _ in 0..3 {
                let before = flow.received();
                throughout(Duration::from_secs(4), || {
                    let window = flow.info().tcpi_snd_cwnd;
                    assert!((1..10_000).contains(&window), "{law}: {window}");
                });
                mbps = (flow.received() - before) as f64 * 8e-6 / 4.0;
                if mbps > 14.0 {
                    break;
                }
            }
            let (counters, sockets) = (loaded.counters().expect("counters"), loaded.sockets().expect("a walk"));
            println!("{law}, derive {derive_flags}, skip {skip}: {mbps:.1} Mb/s, {counters:?}, {sockets:?}");
            assert!(mbps > 14.0, "{law}: {mbps}");
            assert_eq!(sockets.len(), 1);
            assert_eq!(sockets[0].cookie, flow.cookie());
            assert!(!sockets[0].fields.is_empty());
            assert_eq!(counters.storage_missing, 0);
            // some kernels skip calls by themselves
            assert!(counters.repaired > 0 || !skip, "{counters:?}");
        }
    }
}

/// UCC that never halves: every loss is tolerated, but one without a sample since the loss before.
fn tolerant() -> Loaded {
    let mut parameters = Parameters::of(LawName::Ucc);
    parameters.set(LawName::Ucc, "alpha", 1.0).expect("a parameter of UCC");
    let options = Options { name: Name::Private, ..Options::new(LawName::Ucc, parameters) };
    Loaded::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn counters(loaded: &Loaded) -> Counters {
    loaded.counters().expect("counters")
}

/// TCP_CA_Open and the others.
const OPEN: u8 = 0;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

#[test]
fn a_tolerated_loss_leaves_the_window_as_it_was() {
    needs_root!();
    let net = Net::bottleneck(20, 60_000);
    net.lose_percent(2);
    // a sender that the machine lets wait for longer than a timeout must not restart from a small window (RFC 5681 §4.1)
    net.a.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0").expect("set for this host"));
    let loaded = tolerant();
    // a fixed window far below what the bottleneck holds, so that no loss but the random ones happens
    let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| {
        set_control(socket, loaded.name());
        set_u32(socket, nix::libc::SOL_SOCKET, nix::libc::SO_SNDBUF, 40_000).expect("a send buffer");
    });
    flow.send();
    let (mut before, mut fallen, mut looked) = (0, 0_u64, 0);
    throughout(Duration::from_secs(8), || {
        // The kernel reads the window before it takes the lock and the state after it: one look may mix two moments, and
        // show the window of a recovery, smaller or larger, with the state after it.
        let looks = [(); 3].map(|()| flow.info());
        let window = looks[0].tcpi_snd_cwnd;
        let is_settled = looks.iter().all(|info| info.tcpi_ca_state == OPEN && info.tcpi_snd_cwnd == window);
        if is_settled && counters(&loaded).timeouts == 0 {
            if window < before {
                println!("from {before} to {window} segments");
                fallen += 1;
            }
            before = window;
            looked += 1;
        }
    });
    let counters = counters(&loaded);
    println!("{counters:?}, window {before}, looked at {looked} times");
    assert!(looked > 20 && counters.losses > 20, "there must be something to look at");
    let halved = counters.losses - counters.tolerated;
    assert!(halved * 10 <= counters.losses, "{counters:?}");
    // A call that the kernel has skipped is made good, and counted, at the next ACK; until then its own window shows.
    let excused = halved + counters.repaired + counters.timeouts;
    assert!(fallen <= excused, "the window in Open fell {fallen} times, {counters:?}");
}

#[test]
fn a_timeout_in_the_midst_of_a_tolerated_loss_halves() {
    needs_root!();
    let net = Net::bottleneck(20, 100_000);
    net.lose_percent(3);
    let router = net.router().expect("this net has one");
    let loaded = tolerant();
    let (mut in_recovery, mut called) = (0, 0);
    for _ in 0..12 {
        let mut flow = flow(&net, loaded.name());
        flow.send();
        eventually("a recovery with some window", || {
            let info = flow.info();
            info.tcpi_ca_state == RECOVERY && info.tcpi_snd_ssthresh >= 8 && info.tcpi_snd_ssthresh < 10_000
        });
        router.run(|| run("nft insert rule ip lossy forward oifname rb drop"));
        let timeouts = counters(&loaded).timeouts;
        let mut last = flow.info();
        eventually("a timeout", || {
            let info = flow.info();
            let over = info.tcpi_ca_state == LOSS;
            last = if over { last } else { info };
            over
        });
        let after = flow.info();
        // something acknowledged in between may have ended the recovery, and begun another window
        if last.tcpi_ca_state == RECOVERY && last.tcpi_bytes_acked == after.tcpi_bytes_acked {
            in_recovery += 1;
            let (before, after) = (last.tcpi_snd_ssthresh, after.tcpi_snd_ssthresh);
            // The kernel seldom skips a call; that is made good at the next ACK, and none comes here.
            if counters(&loaded).timeouts > timeouts {
                called += 1;
                assert!(after <= before / 2 + 1, "ssthresh {before}, then {after}");
            }
        }
        drop(flow);
        router.run(|| {
            run("nft flush chain ip lossy forward");
            run("nft add rule ip lossy forward oifname rb numgen random mod 100 lt 3 drop");
        });
    }
    println!("{in_recovery} timeouts in the midst of a recovery, {:?}", counters(&loaded));
    assert!(in_recovery > 0, "there must be something to look at");
    assert!(called * 3 >= in_recovery * 2, "the law was called at {called} of {in_recovery}");
}

#[test]
fn a_needless_timeout_is_undone() {
    needs_root!();
    let net = Net::bottleneck(20, 2_000_000);
    let router = net.router().expect("this net has one");
    let loaded = tolerant();
    let mut flow = Flow::idle_with(&net.a, &net.b, B4, |socket| {
        set_control(socket, loaded.name());
        set_u32(socket, nix::libc::SOL_SOCKET, nix::libc::SO_SNDBUF, 60_000).expect("a send buffer");
    });
    flow.send();
    throughout(Duration::from_millis(700), || {});
    let before = flow.info().tcpi_snd_cwnd;
    // nothing is lost, but it waits longer than the timer
    for rate in ["8kbit", "20mbit"] {
        router.run(|| run(&format!("tc qdisc change dev rb root tbf rate {rate} burst 4k limit 2000000")));
        throughout(Duration::from_millis(1500), || {});
    }
    let (after, counters) = (flow.info().tcpi_snd_cwnd, counters(&loaded));
    println!("window {before}, then {after}; {counters:?}");
    assert!(counters.timeouts > 0 && counters.undone > 0, "{counters:?}");
    assert!(after >= before, "the window is back: {before}, then {after}");
}

#[test]
fn a_loss_that_a_probe_repairs_is_a_loss_and_no_notice() {
    needs_root!();
    let net = Net::bottleneck(50, 200_000);
    net.lose_percent(20);
    let loaded = tolerant();
    let flow = flow(&net, loaded.name());
    for _ in 0..300 {
        // too short for duplicate ACKs: what is lost at the end only a probe or a timeout can tell
        (&*flow.sender).write_all(&[0; 1000]).expect("sent");
        (&*flow.receiver).read_exact(&mut [0; 1000]).expect("received");
    }
    let counters = counters(&loaded);
    println!("{counters:?}");
    assert_eq!((counters.begun, counters.notified), (1, 0), "there was no ECN and no full local queue");
    assert!(counters.losses > 3, "{counters:?}");
    assert!(counters.tolerated * 10 >= counters.losses * 8, "{counters:?}");
}

#[test]
fn a_full_local_queue_halves_whatever_the_law() {
    needs_root!();
    let net = Net::direct();
    net.a.run(|| {
        run("ip link set a0 gso_max_segs 1");
        run("tc qdisc add dev a0 root tbf rate 50mbit burst 2k limit 3200");
    });
    let loaded = tolerant();
    let mut flow = flow(&net, loaded.name());
    flow.send();
    throughout(Duration::from_secs(4), || {});
    let (counters, info) = (counters(&loaded), flow.info());
    println!("{counters:?}, window {}, ssthresh {}", info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh);
    assert!(counters.notified > 3, "{counters:?}");
    assert!(info.tcpi_snd_ssthresh < 100, "the queue holds two segments: {}", info.tcpi_snd_ssthresh);
}

#[test]
fn parameters_are_changed_while_a_connection_goes_on() {
    needs_root!();
    let net = Net::bottleneck(20, 60_000);
    let loaded = tolerant();
    let mut flow = flow(&net, loaded.name());
    flow.send();
    eventually("tolerated losses", || counters(&loaded).tolerated > 0);
    let mut parameters = loaded.parameters().expect("parameters");
    // a loss halves if any sample found a queue
    parameters.set(LawName::Ucc, "alpha", 0.0).expect("a parameter of UCC");
    loaded.set_parameters(&parameters).expect("set");
    let tolerated = counters(&loaded).tolerated;
    eventually("halved losses", || counters(&loaded).losses > counters(&loaded).tolerated + 3);
    assert!(counters(&loaded).tolerated <= tolerated + 2, "{:?}", counters(&loaded));
    let sockets = loaded.sockets().expect("a walk");
    let field = |name: &str| sockets[0].fields.iter().find(|field| field.name == name).expect(name).value.clone();
    assert!(matches!(field("halved"), Value::Number(count) if count > 0));
}

/// Else the curve would go on while nothing is sent, and the window jump to where it got afterwards.
#[test]
fn a_pause_is_none_of_cubics_time() {
    needs_root!();
    let net = Net::bottleneck(20, 60_000);
    // the window and the epoch of before hold after the pause, too
    net.a.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0").expect("set for this host"));
    let mut parameters = Parameters::of(LawName::Lastlink);
    parameters.set(LawName::Lastlink, "cubic", 1.0).expect("a parameter of lastlink");
    let options = Options { name: Name::Private, ..Options::new(LawName::Lastlink, parameters) };
    let loaded = Loaded::load(&options).unwrap_or_else(|error| panic!("{error}"));
    let flow = flow(&net, loaded.name());
    let field = |name: &str| {
        let sockets = loaded.sockets().expect("a walk");
        match sockets[0].fields.iter().find(|field| field.name == name).expect(name).value {
            Value::Number(number) => number as u64,
            Value::Numbers(_) => panic!("{name} is one number"),
        }
    };
    let mut sent = 0;
    let mut transfer = |bytes: usize| {
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| (&*flow.sender).write_all(&vec![0; bytes]).expect("sent"));
            (&*flow.receiver).read_exact(&mut vec![0; bytes]).expect("received");
        });
        sent += bytes as u64;
        eventually("an acknowledgement of everything", || flow.info().tcpi_bytes_acked >= sent);
        began
    };
    let mut began = Instant::now();
    eventually("an epoch, after a loss", || {
        began = transfer(1_000_000);
        field("cubic.epoch_start") != 0
    });
    let (epoch, acked) = (field("cubic.epoch_start"), Instant::now());
    throughout(Duration::from_millis(1500), || {});
    let pause = Instant::now() - acked;
    transfer(1);
    let (shift, hz) = (field("cubic.epoch_start").wrapping_sub(epoch), field("cubic.hz"));
    // one jiffy for the rounding at each end
    let jiffies = |span: Duration| span.as_micros() as u64 * hz / 1_000_000;
    let accepted = jiffies(pause) - 2..=jiffies(began.elapsed()) + 2;
    assert!(accepted.contains(&shift), "{shift} of {accepted:?} jiffies");
}
