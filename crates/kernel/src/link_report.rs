//! The client's side of the last link. Each TCP connection opened over one interface reports the claimed state of that
//! interface's link to its server, in a TCP option. A server that does not know the option sees an ordinary connection.
//!
//! ```text
//! Reporter::load()   programs attached; SYNs carry the option, with "unknown"
//!          set()     new SYNs carry the claim; connections whose server answered send it on their next segments
//!          drop      detached; claims already sent expire by themselves
//! ```
//!
//! A claim expires, so a process that hangs does not go on claiming. The process must call [`Reporter::set`] again in
//! time. Setting the same claim again only prolongs it, and sends nothing but renewals.
//!
//! It covers only sockets of the network namespace of loading, opened from here, with packets that leave by the
//! interface. Connections older than the load are left alone, as the SYN negotiates the option. The option and
//! middleboxes: `docs/models/link-report.md`; the programs: `bpf/link_report.bpf.c`.

use crate::cgroups::open_cgroup;
use crate::error::Error;
use crate::kernel::{check_interface, monotonic_ns};
use crate::layout::{Claimed, Claims, ReportCounts, ReportSettings};
use crate::log;
use crate::namespace::Namespace;
use crate::object;
use crate::probe::{self, Feature};
use lasthop_laws::ReportCounters;
use lasthop_units::Span;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use zerocopy::IntoBytes as _;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/link_report.bpf.o"));

/// The kernel features that a reporter needs. Only loading shows whether TCP options can be written (Linux 5.10).
const NEEDED: [Feature; 4] = [Feature::Privilege, Feature::KernelBtf, Feature::Cgroup2, Feature::SocketOperations];

/// `LH_ERROR_UNKNOWN`.
const ERROR_UNKNOWN: u32 = u32::MAX;
/// In its last second a claim is sent as unknown. A claim prolonged in time never gets there.
const LAST_US: u64 = 2_000_000;

/// The connections that report.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface whose link is reported, in the network namespace of the thread that calls [`Reporter::load`].
    pub interface_index: u32,
    /// The cgroup (version 2) whose sockets report.
    pub cgroup: PathBuf,
    /// How long SYNs to a destination omit the option, once two SYNs with it were lost and one without it was not.
    pub remember: Span,
}

impl Options {
    /// All connections over this interface; destinations are remembered for ten minutes.
    ///
    /// # Errors
    /// If no cgroup2 is mounted.
    pub fn new(interface_index: u32) -> Result<Self, Error> {
        let cgroup = probe::cgroup2_root()
            .ok_or_else(|| Error::Reporting { reason: format!("missing {}", Feature::Cgroup2.lack()) })?;
        Ok(Self { interface_index, cgroup, remember: Span::from_secs(600) })
    }
}

/// A claim about the last link. The default claims nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The bandwidth towards the client, of IP packets. 0 means unknown.
    pub bandwidth_kbps: Option<u32>,
    /// The share of packets that the link loses for good, in millionths; at most 1,000,000.
    pub error_ppm: Option<u32>,
    /// Validity from now, in seconds; sent as the next lower power of two. Below two seconds nothing is claimed.
    pub validity_s: u32,
}

/// Reports until it is dropped. Nothing is left behind when its process is killed.
#[derive(Debug)]
pub struct Reporter {
    claims: Claims,
    _link: Link,
    // Last: the link refers to it.
    object: Object,
}

/// Whether this kernel accepts the programs of a [`Reporter`]: loads them, attaches nothing, and unloads them.
///
/// # Errors
/// The reason against it.
pub fn check() -> Result<(), Error> {
    check_features()?;
    load(&ReportSettings::default()).map(drop)
}

fn check_features() -> Result<(), Error> {
    let missing = probe::missing(&NEEDED);
    if missing.is_empty() {
        return Ok(());
    }
    let reason = missing.iter().map(|feature| feature.lack()).collect::<Vec<_>>().join("; ");
    Err(Error::Reporting { reason: format!("missing {reason}") })
}

fn load(settings: &ReportSettings) -> Result<Object, Error> {
    log::start();
    configure(settings).and_then(OpenObject::load).map_err(Error::load)
}

impl Reporter {
    /// Loads and attaches the programs. Nothing is claimed yet.
    ///
    /// # Errors
    /// If this kernel or this user lacks a feature, the interface is missing or the loopback one, the cgroup does not
    /// exist, or the kernel refuses.
    pub fn load(options: &Options) -> Result<Self, Error> {
        check_features()?;
        let namespace = Namespace::current().map_err(Error::exchange_io("looking at our network namespace"))?;
        check_interface(options.interface_index)?;
        let cgroup = open_cgroup(&options.cgroup)?;
        let settings = ReportSettings {
            netns_inum: namespace.inum(),
            interface_index: options.interface_index,
            remember_us: options.remember.as_nanos() / 1000,
        };
        let object = load(&settings)?;
        let link = object::program(&object, "report").attach_cgroup(cgroup.as_raw_fd());
        let link = link.map_err(Error::attach_to_cgroup)?;
        Ok(Self { claims: Claims { generation: 1, ..Claims::default() }, _link: link, object })
    }

    /// Makes another claim from now on, or prolongs the same.
    ///
    /// # Errors
    /// If the kernel refuses; then the former claim holds.
    pub fn set(&mut self, claim: Claim) -> Result<(), Error> {
        let now_us = monotonic_ns() / 1000;
        let claimed = Claimed {
            expires_us: now_us + u64::from(claim.validity_s) * 1_000_000,
            bandwidth_kbps: claim.bandwidth_kbps.unwrap_or(0),
            error_ppm: claim.error_ppm.unwrap_or(ERROR_UNKNOWN),
        };
        let mut claims = self.claims;
        let before = claims.claims[(claims.generation & 1) as usize];
        let same = (claimed.bandwidth_kbps, claimed.error_ppm) == (before.bandwidth_kbps, before.error_ppm)
            && before.expires_us > now_us + LAST_US;
        let next = if same { claims.generation } else { claims.generation.checked_add(1).unwrap_or(2) };
        claims.claims[(next & 1) as usize] = claimed;
        let map = object::map(&self.object, ".data.claims");
        // First write the claim that nobody reads yet, then the number that selects it.
        object::write(&map, &claims).map_err(Error::exchange("setting what is claimed of the last link"))?;
        claims.generation = next;
        object::write(&map, &claims).map_err(Error::exchange("setting what is claimed of the last link"))?;
        self.claims = claims;
        Ok(())
    }

    /// Totals since loading.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn counters(&self) -> Result<ReportCounters, Error> {
        let counts: ReportCounts = object::read(&object::map(&self.object, ".bss.counters"))
            .map_err(Error::exchange("reading the counters of the reporter"))?;
        Ok(ReportCounters {
            offered: counts.offered,
            answered: counts.answered,
            unanswered: counts.unanswered,
            mangled: counts.mangled,
            asked_again: counts.asked_again,
            sent: counts.sent,
            no_room: counts.no_room,
            sent_again: counts.sent_again,
            avoided: counts.avoided,
            failed: counts.failed,
        })
    }
}

fn configure(settings: &ReportSettings) -> libbpf_rs::Result<OpenObject> {
    let mut object = ObjectBuilder::default().name("lasthop_report")?.open_memory(OBJECT)?;
    for mut map in object.maps_mut() {
        if map.name() == ".rodata.settings" {
            map.set_initial_value(settings.as_bytes())?;
        }
    }
    Ok(object)
}
