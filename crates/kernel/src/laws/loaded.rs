//! A law in the kernel, loaded by us or found pinned: its queries and changes.

use super::fields::{Field, decode};
use super::last_link::{Attached, Clients, Heard, Heuristics, LastLink};
use super::{Error, VERSION};
use crate::error::Error as KernelError;
use crate::kernel::Cookie;
use crate::layout::{self, About, Flow, FlowRecord, LawCounts};
use crate::log;
use crate::object::{self, Variant};
use crate::probe;
use crate::sample::span;
use lasthop_connection::{CongestionState, TcpState};
use lasthop_laws::{LawName, Parameters, finite_ssthresh};
use lasthop_units::Time;
use libbpf_rs::btf::Btf;
use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use zerocopy::IntoBytes as _;

/// The name of a registered law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// [`LawName::kernel_name`].
    Own,
    /// A unique one: the beginning of the law's, and some letters.
    Private,
    /// This one; at most 15 letters.
    Given(String),
}

/// The law to load, with its parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// The law.
    pub law: LawName,
    /// The name to register.
    pub name: Name,
    /// Its parameters.
    pub parameters: Parameters,
    /// Imitates a kernel before 6.10, which passes neither the ACK nor its flags to a congestion control. For tests.
    pub derive_flags: bool,
    /// Imitates a kernel that skips every second call that it may skip. For tests.
    pub skip: bool,
}

impl Options {
    /// The law under its own name.
    pub const fn new(law: LawName, parameters: Parameters) -> Self {
        Self { law, name: Name::Own, parameters, derive_flags: false, skip: false }
    }
}

/// Totals since loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sockets that got the law.
    pub begun: u64,
    /// Losses reported to the law, one for each recovery.
    pub losses: u64,
    /// Of those, the ones that left the window unchanged.
    pub tolerated: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions for ECN or a full local queue: halved, whatever the law.
    pub notified: u64,
    /// Reductions by the law itself, without a loss.
    pub back_offs: u64,
    /// Needless reductions.
    pub undone: u64,
    /// Events that the kernel did not report, corrected at the next ACK.
    pub repaired: u64,
    /// Events without memory for the law's state: NewReno decided.
    pub storage_missing: u64,
}

/// A socket that has a law, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SocketState {
    /// The kernel's number for the socket (`SO_COOKIE`).
    pub cookie: Cookie,
    /// Time of the reading, on the clock of the laws: CLOCK_MONOTONIC, as in the first time namespace.
    pub at: Time,
    /// The inode number of its network namespace, `/proc/PID/ns/net`.
    pub netns: u32,
    /// Own address and port.
    pub local: SocketAddr,
    /// Peer address and port.
    pub remote: SocketAddr,
    /// Its state, as far as the record of a law has it (see [`lasthop_connection`]).
    pub tcp: TcpState,
    /// As in [`Counters`], of this socket.
    pub losses: u32,
    /// As in [`Counters`], of this socket.
    pub tolerated: u32,
    /// As in [`Counters`], of this socket.
    pub timeouts: u32,
    /// As in [`Counters`], of this socket.
    pub back_offs: u32,
    /// As in [`Counters`], of this socket.
    pub undone: u32,
    /// The law's private state, in the order of its C struct.
    pub fields: Vec<Field>,
}

/// The attachment of the walk over the sockets.
#[derive(Debug)]
pub(crate) enum Walk {
    Link(Link),
    Pinned(PathBuf),
}

/// A law in the kernel: loaded by this process, or pinned.
#[derive(Debug)]
pub struct Handles {
    pub(crate) law: LawName,
    pub(crate) name: String,
    pub(crate) parameters: MapHandle,
    pub(crate) counters: MapHandle,
    pub(crate) walk: Walk,
    /// For a law that receives reports.
    pub(crate) last_link: Option<Box<LastLink>>,
}

impl Handles {
    /// The law.
    pub fn law(&self) -> LawName {
        self.law
    }

    /// The name by which sockets choose it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        let values = object::read(&self.parameters).map_err(KernelError::exchange("reading a law's parameters"))?;
        Ok(Parameters::from_values(values))
    }

    /// Totals since loading.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn counters(&self) -> Result<Counters, Error> {
        let counts: LawCounts =
            object::read(&self.counters).map_err(KernelError::exchange("reading a law's counters"))?;
        Ok(Counters {
            begun: counts.begun,
            losses: counts.losses,
            tolerated: counts.tolerated,
            timeouts: counts.timeouts,
            notified: counts.notified,
            back_offs: counts.back_offs,
            undone: counts.undone,
            repaired: counts.repaired,
            storage_missing: counts.storage_missing,
        })
    }

    /// The totals of clients' reports.
    ///
    /// # Errors
    /// If the law receives no reports ([`LawName::hears_reports`]), or the kernel does not answer.
    pub fn heard(&self) -> Result<Heard, Error> {
        self.last_link()?.heard()
    }

    /// The permissions of clients, in the kernel's lookup order. A client without an entry is permitted everything.
    ///
    /// # Errors
    /// If the law receives no reports, or the kernel does not answer.
    pub fn permits(&self) -> Result<Vec<(Clients, Heuristics)>, Error> {
        self.last_link()?.permits()
    }

    pub(crate) fn last_link(&self) -> Result<&LastLink, Error> {
        self.last_link.as_deref().ok_or(Error::HearsNothing { law: self.law })
    }

    pub(crate) fn set_parameters(&self, parameters: &Parameters) -> Result<(), Error> {
        Ok(object::write(&self.parameters, parameters.values())
            .map_err(KernelError::exchange("setting a law's parameters"))?)
    }

    /// The sockets of processes that have it now, in all network namespaces, by their cookies.
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk them.
    pub fn sockets(&self) -> Result<Vec<SocketState>, Error> {
        let bytes = match &self.walk {
            Walk::Link(link) => object::read_all(link),
            Walk::Pinned(path) => std::fs::read(path),
        };
        let bytes = bytes.map_err(KernelError::exchange_io("walking the sockets of a law"))?;
        let btf = Btf::from_raw(self.law.as_str(), object_of(self.law));
        let btf = btf.ok().flatten().expect("our own object has BTF");
        let ours = |record: &(FlowRecord, &[u8])| layout::unpadded_name(&record.0.control) == self.name;
        let records = bytes.chunks_exact(size_of::<FlowRecord>() + size_of::<Flow>()).filter_map(|bytes| {
            let (record, flow) = bytes.split_at(size_of::<FlowRecord>());
            Some((layout::first(record)?, flow))
        });
        let states = records.filter(ours).filter_map(|(record, flow)| socket_state(self.law, &btf, record, flow));
        // A socket may be in several files.
        let states: BTreeMap<_, _> = states.map(|state| (state.cookie, state)).collect();
        Ok(states.into_values().collect())
    }
}

/// Parts of a law that is loaded, or about to be.
fn object_of(law: LawName) -> &'static [u8] {
    super::object(law).expect("load() refuses what has no object")
}

fn socket_state(law: LawName, btf: &Btf<'_>, record: FlowRecord, flow: &[u8]) -> Option<SocketState> {
    let counts: Flow = layout::first(flow)?;
    Some(SocketState {
        cookie: record.cookie,
        at: Time::from_nanos(record.now_us.saturating_mul(1000)),
        netns: record.netns_inum,
        local: record.ends.local(),
        remote: record.ends.remote(),
        tcp: TcpState {
            state: CongestionState::from_linux(record.ca_state as u8),
            cwnd_segments: record.cwnd_segments,
            ssthresh_segments: finite_ssthresh(record.ssthresh_segments),
            srtt: span(record.srtt_us),
            min_rtt: span(record.min_rtt_us),
            in_flight_segments: record.in_flight_segments,
            sent_segments: record.segments_sent.into(),
            retransmits: record.retransmits.into(),
            ..TcpState::default()
        },
        losses: counts.losses,
        tolerated: counts.tolerated,
        timeouts: counts.timeouts,
        back_offs: counts.back_offs,
        undone: counts.undone,
        fields: decode(btf, law, counts.law.as_bytes()),
    })
}

/// A law loaded by this process, and registered until this is dropped.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) handles: Handles,
    pub(crate) registration: Link,
    /// For a law that receives reports.
    pub(crate) attached: Option<Attached>,
    // Last: everything above refers to it.
    pub(crate) object: Object,
}

impl Loaded {
    /// Loads a law and registers it with the kernel.
    ///
    /// # Errors
    /// If this kernel or this user cannot, the name is taken, or the kernel refuses.
    pub fn load(options: &Options) -> Result<Self, Error> {
        super::check()?;
        if super::object(options.law).is_none() {
            return Err(Error::NotForTheKernel { law: options.law });
        }
        match &options.name {
            Name::Own => {
                Self::load_as(options, options.law.kernel_name())?.ok_or_else(|| taken(options.law.kernel_name()))
            }
            Name::Given(name) => Self::load_as(options, name)?.ok_or_else(|| taken(name)),
            Name::Private => {
                for _ in 0..64 {
                    if let Some(loaded) = Self::load_as(options, &private_name(options.law))? {
                        return Ok(loaded);
                    }
                }
                Err(taken(options.law.kernel_name()))
            }
        }
    }

    /// `None`: the name is taken.
    fn load_as(options: &Options, name: &str) -> Result<Option<Self>, Error> {
        if probe::registered_controls().iter().any(|taken| taken == name) {
            return Ok(None);
        }
        log::start();
        let kernel = Btf::from_vmlinux().map_err(KernelError::exchange("reading the kernel's BTF"))?;
        let mut object =
            configure(options, name, Variant::of(&kernel)).and_then(OpenObject::load).map_err(KernelError::load)?;
        let handle = |name: &str| {
            MapHandle::try_from(&object::map(&object, name)).map_err(KernelError::exchange("looking at a law's maps"))
        };
        let (parameters, counters) = (handle(".data.parameters")?, handle(".bss.counters")?);
        let walk = object::program(&object, "show_flows").attach().map_err(KernelError::attach("iter/task_file"))?;
        // before anybody can choose the law, so that no listener is missed
        let (last_link, attached) = LastLink::attach(options.law, &object)?.unzip();
        let registered = object
            .maps_mut()
            .find(|map| map.name() == "law")
            .expect("the map of the congestion control")
            .attach_struct_ops();
        let registration = match registered {
            Ok(link) => link,
            // the name was taken meanwhile
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(KernelError::attach("the list of congestion controls")(error).into()),
        };
        let (name, walk) = (name.to_owned(), Walk::Link(walk));
        let last_link = last_link.map(Box::new);
        let handles = Handles { law: options.law, name, parameters, counters, walk, last_link };
        Ok(Some(Self { handles, registration, attached, object }))
    }

    /// Changes its parameters.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_parameters(&self, parameters: &Parameters) -> Result<(), Error> {
        self.handles.set_parameters(parameters)
    }

    /// Permits connections these heuristics from their next report on.
    ///
    /// # Errors
    /// If the law receives no reports, or the kernel refuses.
    pub fn permit(&self, clients: &Clients, heuristics: Heuristics) -> Result<(), Error> {
        self.handles.last_link()?.permit(clients, heuristics)
    }

    /// Enables reports on listening sockets that listened before the law was loaded, or before they got it. Covers the
    /// calling thread's network namespace. Later listeners with the law need no help.
    ///
    /// # Errors
    /// If the law receives no reports, or the kernel cannot be asked to walk its sockets.
    pub fn prepare_listeners(&self) -> Result<(), Error> {
        self.handles.last_link()?.prepare_listeners()
    }
}

impl Deref for Loaded {
    type Target = Handles;

    fn deref(&self) -> &Handles {
        &self.handles
    }
}

fn taken(name: &str) -> Error {
    Error::NameTaken { name: name.to_owned(), place: PathBuf::from("this process") }
}

/// At most ten letters of the law's name, and four random ones.
fn private_name(law: LawName) -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // the only source of randomness in the standard library
    let mut number = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let mut name: String = law.kernel_name().chars().take(10).collect();
    name.push('_');
    for _ in 0..4 {
        name.push(char::from(b"abcdefghijklmnopqrstuvwxyz012345"[(number % 32) as usize]));
        number /= 32;
    }
    name
}

fn configure(options: &Options, name: &str, variant: Variant) -> libbpf_rs::Result<OpenObject> {
    let padded = layout::padded_name(name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is longer than 15 letters")))?;
    let mut object = ObjectBuilder::default().name("lasthop_law")?.open_memory(object_of(options.law))?;
    let mut old_cong_control = 0;
    for mut program in object.progs_mut() {
        if program.name() == "law_cong_control_old" {
            old_cong_control = object::unloaded(&mut program);
        }
    }
    for mut map in object.maps_mut() {
        match &*map.name().to_string_lossy() {
            ".rodata.about" => {
                let about = map.initial_value().and_then(layout::first).filter(About::fits);
                let about = about.filter(|about| about.law == options.law.number());
                let mut about = about.ok_or_else(|| object::unexpected("law_intf.h and layout.rs differ"))?;
                about.name = padded;
                about.version = version();
                about.derive_flags = options.derive_flags.into();
                about.skip = options.skip.into();
                map.set_initial_value(about.as_bytes())?;
            }
            ".data.parameters" => map.set_initial_value(options.parameters.values().as_bytes())?,
            "law" => {
                object::fill_in_control(&mut map, padded, variant, old_cong_control)?;
            }
            _ => {}
        }
    }
    Ok(object)
}

/// [`VERSION`], zero-padded.
fn version() -> [c_char; layout::LH_VERSION_LENGTH as usize] {
    let mut padded = [0u8; layout::LH_VERSION_LENGTH as usize];
    padded[..VERSION.len()].copy_from_slice(VERSION.as_bytes());
    zerocopy::transmute!(padded)
}
