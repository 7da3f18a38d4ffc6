//! Our laws in the kernel: they carry data, are asked at each loss, live with skipped programs, and go away in order.
#![allow(missing_docs)]

mod support;

use control::law::{LawName, Parameters};
use kernel::laws::{Law, Loaded, Name, Options};
use std::time::Duration;
use support::{B4, Flow, Net, set_control, throughout};

fn defaults(law: Law) -> [u32; 16] {
    *Parameters::of(law.as_str().parse::<LawName>().expect("a law of ours")).values()
}

fn flow(net: &Net, name: &str) -> Flow {
    let flow = Flow::idle_with(&net.a, &net.b, B4, |socket| set_control(socket, name));
    assert_eq!(flow.control(), name);
    flow
}

#[test]
fn every_law_has_the_same_name_everywhere() {
    for law in Law::ALL {
        assert_eq!(law.as_str().parse::<LawName>().map(|name| name.as_str()), Ok(law.as_str()));
        assert_eq!(law.kernel_name(), format!("lh_{}", law.as_str().replace('-', "_")));
        assert_eq!(Law::of(law.as_str()), Some(law));
    }
}

#[test]
fn every_law_fills_a_bottleneck_and_is_asked_about_its_losses() {
    needs_root!();
    for law in Law::ALL {
        for (derive_flags, skip) in [(false, false), (true, false), (false, true)] {
            let net = Net::bottleneck(20, 100_000);
            let options = Options { name: Name::Private, derive_flags, skip, ..Options::new(law, defaults(law)) };
            let loaded = Loaded::load(&options).unwrap_or_else(|error| panic!("{law}: {error}"));
            let mut flow = flow(&net, loaded.name());
            flow.send();
            throughout(Duration::from_secs(1), || {});
            let before = flow.received();
            throughout(Duration::from_secs(4), || {
                let window = flow.info().snd_cwnd();
                assert!((1..10_000).contains(&window), "{law}: {window}");
            });
            let mbps = (flow.received() - before) as f64 * 8e-6 / 4.0;
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
