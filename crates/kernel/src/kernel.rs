//! The loaded programs: their control and their data.

use crate::cgroups::{self, CgroupId, Cgroups, Meaning, Rule, bits_of, open_cgroup};
use crate::clamp;
use crate::containers::{self, Containers};
use crate::error::Error;
use crate::layout::{self, Cgroup, Control, Counts, Destination, FarEnd, Settings};
use crate::memory::Memory;
use crate::mode::Mode;
use crate::namespace::Namespace;
use crate::object::{self, CONTROL_OPS, Variant};
use crate::probe::{self, Feature};
use crate::sample::{self, Reader, SocketSample, StateChange};
use lasthop_laws::bound::Bound;
use lasthop_units::{Span, Time};
use libbpf_rs::{ErrorKind, Link, Map, MapCore, MapFlags, Object, RingBufferBuilder};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use zerocopy::IntoBytes as _;

/// A socket's number; see [`SocketSample::cookie`].
pub type Cookie = u64;

/// The mode, and the sockets that it applies to.
#[derive(Clone, Debug)]
pub struct Options {
    /// The managed interface, in the network namespace of the thread that calls [`Kernel::load`].
    pub interface_index: u32,
    /// Tunnels through it, such as a VPN's interface: their sockets are managed as well; at most [`Kernel::TUNNELS_MOST`].
    pub tunnels: Vec<u32>,
    /// Manage also the sockets of other network namespaces whose packets come out in ours through a veth pair, and leave by the
    /// interface. [`Kernel::follow_containers`] looks for them. Not in [`Mode::Clamp`].
    pub containers: bool,
    /// The cgroup (version 2) whose new sockets are observed; the root covers all.
    pub cgroup: PathBuf,
    /// Only sockets of this cgroup and its descendants are controlled; `None`: all. The path is followed, like those of
    /// `excluded_cgroups`.
    pub only_cgroup: Option<PathBuf>,
    /// Cgroups whose sockets are left alone, with their descendants; at most 256. [`Kernel::follow_cgroups`] looks
    /// again for missing ones.
    pub excluded_cgroups: Vec<PathBuf>,
    /// Congestion controls that are not replaced; at most 64.
    pub leave: Vec<String>,
    /// Replace also what an application has chosen for its socket, or for the listener that it comes from. CUBIC, the
    /// namespace's default and what the route names are always replaced.
    pub take_chosen: bool,
    /// A socket's rule is the first that fits it; at most [`Kernel::RULES_MOST`].
    pub rules: Vec<Rule>,
    /// The mode.
    pub mode: Mode,
    /// [`Kernel::observe`] only counts sockets that have nothing to send and have neither sent nor
    /// received for longer than this, in whole milliseconds; [`Span::ZERO`]: it tells all.
    pub asleep: Span,
    /// Imitates a kernel before 6.10, which passes neither the ACK nor its flags to a congestion control. For tests.
    pub derive_flags: bool,
}

impl Options {
    /// The best mode that this kernel allows, for all sockets of the interface.
    ///
    /// # Errors
    /// If no cgroup2 is mounted and the mode needs one.
    pub fn new(interface_index: u32, mode: Mode) -> Result<Self, Error> {
        let cgroup = match probe::cgroup2_root() {
            Some(root) => root,
            None if matches!(mode, Mode::Control | Mode::Clamp) => {
                return Err(Error::Unsupported { mode, reason: format!("missing {}", Feature::Cgroup2.lack()) });
            }
            None => PathBuf::new(),
        };
        Ok(Self {
            interface_index,
            tunnels: Vec::new(),
            containers: false,
            cgroup,
            only_cgroup: None,
            excluded_cgroups: Vec::new(),
            leave: Vec::new(),
            take_chosen: false,
            rules: Vec::new(),
            mode,
            asleep: Span::ZERO,
            derive_flags: false,
        })
    }
}

/// The result of [`Kernel::adopt`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Sockets newly controlled.
    pub adopted: u64,
    /// Sockets that were controlled already.
    pub already: u64,
    /// Sockets left with their control: it is on the `leave` list, another agent's, or the application's choice.
    pub left: u64,
    /// Sockets given back after leaving the managed interface.
    pub restored: u64,
    /// Sockets that the kernel refused to change.
    pub failed: u64,
}

/// The result of [`Kernel::release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Sockets restored to their former congestion control.
    pub restored: u64,
    /// Sockets that could not be restored; they run plain CUBIC until they close.
    pub failed: u64,
}

/// Totals since loading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// New connections adopted when this host opened them.
    pub adopted_at_connect: u64,
    /// New connections adopted when this host accepted them.
    pub adopted_at_accept: u64,
    /// New connections that the kernel refused to change.
    pub refused: u64,
    /// Window reductions whose start the kernel did not report, corrected at the next ACK.
    pub repaired: u64,
    /// Established connections adopted.
    pub adopted_alive: u64,
    /// Connections given back.
    pub restored: u64,
    /// Changes of the congestion state seen.
    pub state_changes: u64,
    /// Of those, the ones lost to a full ring.
    pub state_changes_lost: u64,
    /// Refusals of the kernel to set or lift a pacing limit, in [`Mode::Clamp`].
    pub unpaced: u64,
}

/// The result of [`Kernel::observe`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The sockets that are awake, each once.
    pub sockets: Arc<Vec<SocketSample>>,
    /// How many more are asleep: [`Options::asleep`].
    pub asleep: u64,
}

/// The loaded programs. Dropping it is [`Kernel::release`] with errors ignored.
pub struct Kernel {
    name: String,
    mode: Mode,
    /// The managed interface, and its tunnels.
    interfaces: Vec<u32>,
    namespace: Namespace,
    /// Whether sockets of other namespaces are ours, too.
    has_containers: bool,
    /// Those, and what the programs were told of them.
    outside: containers::Found,
    links: Links,
    bounds: Bounds,
    only_cgroup: Option<PathBuf>,
    excluded_cgroups: Vec<PathBuf>,
    rules: Vec<Rule>,
    /// What the programs were told of cgroups.
    cgroups: BTreeMap<CgroupId, Meaning>,
    told_lost: u64,
    /// The changes of state that were counted when the ring was last read.
    told_changes: u64,
    last_counts: Counts,
    memory: Memory,
    asleep: Span,
    /// When [`Kernel::observe`] was called last.
    observed_ns: u64,
    /// The counts before its walk.
    observed: Counts,
    /// How many sockets it left marked.
    marked: u64,
    /// When a walk must look at all sockets.
    all_at_ns: u64,
    // Last: everything above refers to it.
    object: Object,
}

/// The attachments, in the order in which they are detached. `None`: not used in this mode, or detached.
#[derive(Default)]
struct Links {
    new_sockets: Option<Link>,
    new_clamps: Option<clamp::Attachment>,
    guard: Option<clamp::Guard>,
    sample: Option<Link>,
    look_at_all: Option<Link>,
    look_at_marked: Option<Link>,
    unmark_told: Option<Link>,
    /// What tells that a socket changes.
    changes: Vec<Link>,
    adopt: Option<Link>,
    release: Option<Link>,
    state_changes: Option<Link>,
    leaving_packets: Vec<Link>,
    #[expect(dead_code, reason = "it unregisters as it is dropped")]
    control: Option<Link>,
}

/// What the programs were told.
#[derive(Default)]
struct Bounds {
    control: Control,
    own: FxHashMap<Cookie, Own>,
    /// Counts the calls of [`Kernel::set_bounds`].
    call: u64,
}

/// A flow with an entry of its own.
struct Own {
    /// `None`: the kernel did not take it, and what it has is unknown.
    bound: Option<Bound>,
    /// The latest call that listed it.
    call: u64,
}

/// After so long a walk looks at all connections: for those whose route has changed while they were at rest, and for what
/// an interrupt at the wrong moment may have hidden.
const ALL_AGAIN: Span = Span::from_secs(30);
/// The walk of marked sockets begins anew after each 32 KiB of records, and then skips those already told. With more of
/// them than this, the walk of all connections is the cheaper one.
const MARKED_MOST: u64 = 50_000;

impl Kernel {
    /// The most flows with a bound of their own.
    pub const BOUNDS_MOST: usize = layout::LH_BOUNDS_MAX as usize;
    /// The most [`Options::rules`].
    pub const RULES_MOST: usize = layout::LH_RULES_MAX as usize;
    /// The greatest number of tunnels.
    pub const TUNNELS_MOST: usize = layout::LH_TUNNELS_MAX as usize;
    /// The most cgroups that all options together name, those of patterns included.
    pub const CGROUPS_MOST: usize = layout::CGROUPS_MAX;

    /// Loads and attaches the programs of the mode. New connections are adopted from then on.
    ///
    /// # Errors
    /// If the mode is impossible here, the interface is missing or the loopback one, `cgroup` does not exist, there are
    /// too many excluded cgroups, or the kernel refuses.
    pub fn load(options: &Options) -> Result<Self, Error> {
        let kernel = probe::require(options.mode)?;
        let namespace = Namespace::current().map_err(Error::exchange_io("looking at our network namespace"))?;
        check_interface(options.interface_index)?;
        options.tunnels.iter().try_for_each(|tunnel| check_interface(*tunnel))?;
        let mut tunnels = [0; Self::TUNNELS_MOST];
        let Some(told) = tunnels.get_mut(..options.tunnels.len()) else {
            return Err(Error::TooMuch { what: "tunnels", reason: format!("at most {}", Self::TUNNELS_MOST) });
        };
        told.copy_from_slice(&options.tunnels);
        let leave = leave_keys(&options.leave)?;
        if options.excluded_cgroups.len() > layout::EXCLUDED_CGROUPS_MAX {
            let reason = format!("at most {}", layout::EXCLUDED_CGROUPS_MAX);
            return Err(Error::TooMuch { what: "excluded cgroups", reason });
        }
        let settings = Settings {
            netns_inum: namespace.inum(),
            containers: u32::from(options.containers && options.mode != Mode::Clamp),
            interface_index: options.interface_index,
            tunnels,
            clamp: u32::from(options.mode == Mode::Clamp),
            derive_flags: u32::from(options.derive_flags),
            take_chosen: u32::from(options.take_chosen),
            rules: bits_of(&options.rules, |_| true)?,
            rules_of_any_cgroup: bits_of(&options.rules, |rule| rule.cgroup.is_none())?,
            rules_of_any_user: bits_of(&options.rules, |rule| rule.uid.is_none())?,
            rules_leave: bits_of(&options.rules, |rule| rule.leave)?,
            ..Settings::default()
        };
        let variant = Variant::of(&kernel);
        drop(kernel);
        if matches!(options.mode, Mode::Control | Mode::Clamp) {
            let asks = options.only_cgroup.is_some()
                || !options.excluded_cgroups.is_empty()
                || options.rules.iter().any(|rule| rule.cgroup.is_some());
            if asks && !variant.cgroups_told {
                let reason = "missing the cgroups of sockets (Linux 5.16), which limiting control to cgroups needs";
                return Err(Error::Unsupported { mode: options.mode, reason: reason.into() });
            }
            let cgroup = open_cgroup(&options.cgroup)?;
            clamp::remove_orphans(&cgroup, &namespace);
        }
        let (object, name, control) = match options.mode {
            Mode::Control => register(variant, settings)?,
            Mode::Clamp => (object::load(Mode::Clamp, variant, &clamp::owned(settings))?, String::new(), None),
            mode => (object::load(mode, variant, &settings)?, String::new(), None),
        };
        let links = Links { control, ..Links::default() };
        let bounds = Bounds { control: Control { generation: 1, ..Control::default() }, ..Bounds::default() };
        let mut loaded = Self {
            name,
            mode: options.mode,
            interfaces: [&[options.interface_index], &options.tunnels[..]].concat(),
            namespace,
            has_containers: settings.containers == 1,
            outside: containers::Found::default(),
            links,
            bounds,
            only_cgroup: options.only_cgroup.clone(),
            excluded_cgroups: options.excluded_cgroups.clone(),
            rules: options.rules.clone(),
            cgroups: BTreeMap::new(),
            told_lost: 0,
            told_changes: 0,
            last_counts: Counts::default(),
            memory: Memory::default(),
            asleep: options.asleep,
            observed_ns: 0,
            observed: Counts::default(),
            marked: 0,
            all_at_ns: 0,
            object,
        };
        for key in &leave {
            let map = object::map(&loaded.object, "leave");
            map.update(key, &[1], MapFlags::ANY).map_err(Error::exchange("filling a list of exceptions"))?;
        }
        for uid in options.rules.iter().filter_map(|rule| rule.uid) {
            let rules = bits_of(&options.rules, |rule| rule.uid == Some(uid))?;
            let map = object::map(&loaded.object, "users");
            let told = map.update(&uid.to_ne_bytes(), &rules.to_ne_bytes(), MapFlags::ANY);
            told.map_err(Error::exchange("telling the programs which users matter"))?;
        }
        loaded.follow_cgroups()?;
        loaded.attach(options, variant)?;
        Ok(loaded)
    }

    fn attach(&mut self, options: &Options, variant: Variant) -> Result<(), Error> {
        let iterator = |name| object::program(&self.object, name).attach().map_err(Error::attach("iter/tcp"));
        self.links.sample = Some(iterator("sample")?);
        self.links.look_at_all = Some(iterator("look_at_all")?);
        if variant.marks {
            for (name, hook) in [
                ("on_connection", "tp_btf/inet_sock_set_state"),
                ("on_segment", "tp_btf/tcp_probe"),
                ("on_retransmission", "tp_btf/tcp_retransmit_skb"),
            ] {
                let attached = object::program(&self.object, name).attach();
                self.links.changes.push(attached.map_err(Error::attach(hook))?);
            }
            let map = object::map(&self.object, object::MARKED);
            let walk = |name| object::program(&self.object, name).attach_iter(map.as_fd());
            let hook = "iter/bpf_sk_storage_map";
            self.links.look_at_marked = Some(walk("look_at_marked").map_err(Error::attach(hook))?);
            self.links.unmark_told = Some(walk("unmark_told").map_err(Error::attach(hook))?);
        }
        if variant.state_changes {
            let program = object::program(&self.object, "on_state_change");
            self.links.state_changes = Some(program.attach().map_err(Error::attach("tp_btf/tcp_cong_state_set"))?);
        }
        let (new, existing, back) = match self.mode {
            Mode::Control => ("adopt_new", "adopt_existing", "release_existing"),
            Mode::Clamp => ("clamp_new", "clamp_existing", "unclamp_existing"),
            Mode::Observe | Mode::Nothing => return Ok(()),
        };
        self.links.adopt = Some(iterator(existing)?);
        self.links.release = Some(iterator(back)?);
        let cgroup = open_cgroup(&options.cgroup)?;
        let program = object::program(&self.object, new);
        if self.mode == Mode::Clamp {
            let failed = |what| move |source| Error::Attach { what, source };
            let attached = clamp::Attachment::new(cgroup, program.as_fd()).map_err(|source| {
                let full = source.raw_os_error() == Some(nix::libc::E2BIG);
                if full { Error::TooManyPrograms } else { failed("sockops of a cgroup")(source) }
            })?;
            let release = self.links.release.as_ref().expect("just attached");
            let guard = attached.guard(release.as_fd());
            self.links.new_clamps = Some(attached);
            self.links.guard = Some(guard.map_err(failed("a process that lifts the clamps if this one is killed"))?);
        } else {
            let link = program.attach_cgroup(cgroup.as_raw_fd()).map_err(Error::attach_to_cgroup)?;
            self.links.new_sockets = Some(link);
        }
        Ok(())
    }

    /// The registered name of our control: "lasthop", "lasthop.2" and so on. Empty except in [`Mode::Control`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The mode that was loaded.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Adopts the existing sockets of the managed interface, and gives back those that have left it. Does nothing in
    /// [`Mode::Observe`].
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk its sockets.
    pub fn adopt(&mut self) -> Result<Adopted, Error> {
        let done = self.walk(|links| links.adopt.as_ref())?;
        if done.walk_adopted + done.walk_restored > 0 {
            self.all_at_ns = 0;
        }
        Ok(Adopted {
            adopted: done.walk_adopted,
            already: done.walk_already,
            left: done.walk_left,
            restored: done.walk_restored,
            failed: done.walk_failed,
        })
    }

    /// Resolves the paths of `only_cgroup`, `excluded_cgroups` and `rules` again: a restarted service has a new cgroup.
    /// If `only_cgroup` has none, no socket is controlled. A rule that more cgroups match than there is room for beside
    /// those before it holds for none ([`Cgroups::too_many`]); the others hold.
    ///
    /// # Errors
    /// If the programs' settings cannot be written.
    pub fn follow_cgroups(&mut self) -> Result<Cgroups, Error> {
        let cgroups::Found { cgroups: found, missing, too_many } =
            cgroups::find(self.only_cgroup.as_deref(), &self.excluded_cgroups, &self.rules);
        let changed = found != self.cgroups;
        let telling = || Error::exchange("telling the programs which cgroups matter");
        let map = object::map(&self.object, "cgroups");
        for id in self.cgroups.keys().filter(|id| !found.contains_key(id)) {
            match map.delete(&id.to_ne_bytes()) {
                // An earlier call deleted it, and failed after that.
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(telling()(error)),
                _ => {}
            }
        }
        for (id, is) in found.iter().filter(|(id, is)| self.cgroups.get(id) != Some(is)) {
            let told = Cgroup { is: is.is, rules: is.rules };
            map.update(&id.to_ne_bytes(), told.as_bytes(), MapFlags::ANY).map_err(telling())?;
        }
        let within = if self.only_cgroup.is_some() { layout::LH_CGROUP_WITHIN } else { 0 };
        let asked = found.values().fold(within, |all, cgroup| all | cgroup.is);
        if asked != self.bounds.control.cgroups {
            self.bounds.control.cgroups = asked;
            object::write(&object::map(&self.object, ".data.control"), &self.bounds.control).map_err(telling())?;
        }
        self.cgroups = found;
        if changed {
            self.all_at_ns = 0;
        }
        Ok(Cgroups { changed, missing, too_many })
    }

    /// Looks again for the network namespaces whose packets come out in ours, and for the routes from here. Does nothing without
    /// [`Options::containers`]. It reads `/proc/PID/ns/net` of every process, and enters what it finds: those of other users
    /// take CAP_SYS_PTRACE and CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// If rtnetlink does not answer, there is no room for what was found, or the programs cannot be told. Then they go on
    /// with what they were told before.
    pub fn follow_containers(&mut self) -> Result<Containers, Error> {
        if !self.has_containers {
            return Ok(Containers::default());
        }
        let looked = self.namespace.within(|| containers::find(&self.namespace, &self.interfaces));
        let mut found = looked.map_err(Error::exchange_io("looking at our network namespace"))??;
        let (ends, routes) = (object::map(&self.object, "far_ends"), object::map(&self.object, "routes"));
        let key = |end: &[u32; 2]| FarEnd::of(*end).as_bytes().to_vec();
        let changed = containers::tell(&ends, &mut self.outside.far_ends, &found.far_ends, key, |()| vec![1])?;
        let key = |to: &(u32, Ipv6Addr)| Destination::of(*to).as_bytes().to_vec();
        let value = |interface: u32| interface.to_ne_bytes().to_vec();
        found.told.changed = containers::tell(&routes, &mut self.outside.routes, &found.routes, key, value)? || changed;
        if found.told.changed {
            self.all_at_ns = 0;
        }
        let told = found.told;
        self.outside = found;
        Ok(told)
    }

    /// All TCP sockets of our namespace on the managed interface, except listening and closing ones; and of containers.
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk its sockets.
    pub fn sample(&mut self) -> Result<Vec<SocketSample>, Error> {
        let Some(link) = &self.links.sample else { return Ok(Vec::new()) };
        let mut samples = Vec::new();
        let walked =
            containers::everywhere(&self.namespace, &self.outside, || read(link, |sample, _| samples.push(sample)));
        walked.map_err(Error::exchange_io("walking the sockets"))?;
        Ok(samples)
    }

    /// The same, cheaper: without the sockets that are asleep ([`Options::asleep`]) and without bounds. It looks at the
    /// sockets that have changed since the last call, and remembers the others; every 30 s, and after [`Kernel::adopt`]
    /// has changed one, it looks at all. So a connection may be missing until its handshake is complete, and a change of its
    /// route while it is at rest is missed until then. If it begins to send after a rest, and this loader does not
    /// control it, that is told after the first acknowledgement or retransmission.
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk its sockets.
    pub fn observe(&mut self) -> Result<Observed, Error> {
        let now_ns = monotonic_ns();
        self.memory.age(Span::from_nanos(now_ns - self.observed_ns), self.asleep);
        self.observed_ns = now_ns;
        self.bounds.control.walk_us = now_ns / 1000;
        let told = object::write(&object::map(&self.object, ".data.control"), &self.bounds.control);
        told.map_err(Error::exchange("telling the programs of a walk"))?;
        let counts = self.counts()?;
        self.forget_gone(&counts)?;
        let marked = self.marked + (counts.marks - self.observed.marks);
        let is_lost = counts.gone_lost != self.observed.gone_lost;
        let all = is_lost || now_ns >= self.all_at_ns || marked > MARKED_MOST || self.links.look_at_marked.is_none();
        if all {
            self.memory.clear();
            self.all_at_ns = now_ns.saturating_add(ALL_AGAIN.as_nanos());
        }
        let Links { look_at_all, look_at_marked, unmark_told, .. } = &self.links;
        let (memory, asleep) = (&mut self.memory, self.asleep);
        let mut read = |link| {
            read(link, |sample, under_way| {
                let is_asleep = asleep > Span::ZERO && !under_way && sample.idle > asleep;
                memory.put(sample, is_asleep);
            })
        };
        let done = match (look_at_all, look_at_marked) {
            (Some(link), _) if all => containers::everywhere(&self.namespace, &self.outside, || read(link)),
            (_, Some(link)) => read(link),
            _ => Ok(()),
        };
        let done = done.and_then(|()| unmark_told.as_ref().map_or(Ok(()), |link| object::read_all(link).map(drop)));
        if done.is_err() {
            self.all_at_ns = 0;
        }
        done.map_err(Error::exchange_io("walking the sockets"))?;
        let after = self.counts()?;
        self.marked = after.still_marked - counts.still_marked;
        self.observed = Counts { marks: after.marks, ..counts };
        Ok(Observed { sockets: Arc::clone(&self.memory.sockets), asleep: self.memory.asleep() as u64 })
    }

    /// Forgets the sockets that have closed, or left the interface, since the last call of [`Kernel::observe`].
    fn forget_gone(&mut self, counts: &Counts) -> Result<(), Error> {
        if counts.gone == self.observed.gone {
            return Ok(());
        }
        let memory = &mut self.memory;
        let forget = |bytes: &[u8]| {
            if let Some(cookie) = layout::first(bytes) {
                memory.remove(cookie);
            }
        };
        consume(&object::map(&self.object, "gone"), forget).map_err(Error::exchange("reading which sockets are gone"))
    }

    /// Hands every change of state since the previous call to `f`, oldest first. Returns how many more were lost for
    /// lack of room.
    ///
    /// # Errors
    /// If the ring cannot be read.
    pub fn poll_state_changes(&mut self, mut f: impl FnMut(StateChange)) -> Result<u64, Error> {
        let counts = self.counts()?;
        if counts.state_changes == self.told_changes {
            return Ok(0);
        }
        self.told_changes = counts.state_changes;
        let take = |bytes: &[u8]| {
            if let Some(change) = sample::state_change(bytes) {
                f(change);
            }
        };
        let ring = object::map(&self.object, "state_changes");
        consume(&ring, take).map_err(Error::exchange("reading the ring of state changes"))?;
        let lost = self.counts()?.state_changes_lost;
        Ok(lost - std::mem::replace(&mut self.told_lost, lost))
    }

    /// Bounds the windows and the pacing rates for the duration `lease` from now, on `CLOCK_MONOTONIC`. In
    /// [`Mode::Clamp`] a lower bound has no effect, and a pacing rate is at most 34 Gb/s. A connection's first ten
    /// segments are not paced. What is received is bounded from the call of [`Kernel::bound_received`] on.
    ///
    /// `flows` lists the flows with an entry of their own: `None` exempts a flow from the default. All others, and those
    /// opened before the next call, get `new_flows`. A flow that is no longer listed loses its entry. Only entries that
    /// differ from those of the last call are written; the lease is one for all. Does nothing in [`Mode::Observe`].
    ///
    /// # Errors
    /// If more than [`Kernel::BOUNDS_MOST`] flows have a bound of their own: the first get theirs, and the default is
    /// set. If the kernel refuses: then nothing is renewed, and all lapse with their lease.
    pub fn set_bounds(
        &mut self,
        new_flows: Option<Bound>,
        flows: &[(Cookie, Option<Bound>)],
        lease: Span,
    ) -> Result<(), Error> {
        if !matches!(self.mode, Mode::Control | Mode::Clamp) {
            return Ok(());
        }
        let now = Time::from_nanos(monotonic_ns());
        let limit = |bound: Option<Bound>| bound.unwrap_or_default().leased(now, lease);
        let refused = self.write_flows(flows)?;

        let control = &mut self.bounds.control;
        let next = control.generation.checked_add(1).unwrap_or(2);
        control.defaults[(next & 1) as usize] = limit(new_flows);
        let map = object::map(&self.object, ".data.control");
        // First write the default that nobody reads yet, then the number that selects it.
        object::write(&map, control).map_err(Error::exchange("setting the default bound"))?;
        control.generation = next;
        object::write(&map, control).map_err(Error::exchange("setting the default bound"))?;
        if refused > 0 {
            let reason = format!("{refused} flows beyond the {} that can have a bound of their own", Self::BOUNDS_MOST);
            return Err(Error::TooMuch { what: "bounds", reason });
        }
        Ok(())
    }

    /// Has [`Bound::max_receive_bytes`] limit the windows that the sockets advertise, from the second segment on that a
    /// socket sends from now. Until this is called nothing is done to packets, and they cost nothing more. A further
    /// call does nothing, like any in [`Mode::Observe`].
    ///
    /// # Errors
    /// If the kernel has no [`Feature::LeavingPackets`], or refuses to attach the program.
    pub fn bound_received(&mut self) -> Result<(), Error> {
        let bounding = matches!(self.mode, Mode::Control | Mode::Clamp);
        if !bounding || !self.links.leaving_packets.is_empty() {
            return Ok(());
        }
        if let Some(reason) = Self::lack_for_received() {
            return Err(Error::Unsupported { mode: self.mode, reason });
        }
        let program = object::program(&self.object, object::BOUND_RECEIVED);
        let attach = || self.interfaces.iter().map(|index| object::attach_leaving(&program, *index)).collect();
        let attached: libbpf_rs::Result<_> =
            self.namespace.within(attach).map_err(Error::exchange_io("attaching to the interface"))?;
        self.links.leaving_packets = attached.map_err(Error::attach("tcx/egress of the interface"))?;
        Ok(())
    }

    /// What this kernel misses for [`Self::bound_received`]; `None`: nothing.
    pub fn lack_for_received() -> Option<String> {
        let missing = probe::missing(&[Feature::LeavingPackets]);
        missing.first().map(|feature| format!("missing {}", feature.lack()))
    }

    /// Makes the kernel's entries those of `flows`. Returns how many more there are than fit.
    fn write_flows(&mut self, flows: &[(Cookie, Option<Bound>)]) -> Result<usize, Error> {
        let map = object::map(&self.object, "bounds");
        let Bounds { own, call, .. } = &mut self.bounds;
        *call += 1;
        let mut listed = 0;
        let mut changed = Vec::new();
        let mut new = Vec::new();
        for &(cookie, bound) in flows {
            let bound = bound.unwrap_or_default();
            match own.get_mut(&cookie) {
                Some(entry) => {
                    listed += usize::from(entry.call != *call);
                    entry.call = *call;
                    if entry.bound.replace(bound) != Some(bound) {
                        changed.push((cookie, bound));
                    }
                }
                None => new.push((cookie, bound)),
            }
        }
        // First, to make room.
        if listed < own.len() {
            let gone: Vec<Cookie> = own.iter().filter(|(_, entry)| entry.call != *call).map(|(id, _)| *id).collect();
            for cookie in gone {
                match map.delete(&cookie.to_ne_bytes()) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        forget(own, &changed);
                        return Err(Error::exchange("removing the bounds of flows")(error));
                    }
                    _ => own.remove(&cookie),
                };
            }
        }
        let refused = new.len().saturating_sub(Self::BOUNDS_MOST - own.len());
        new.truncate(new.len() - refused);
        own.extend(new.iter().map(|&(cookie, bound)| (cookie, Own { bound: Some(bound), call: *call })));
        changed.extend(new);
        if changed.is_empty() {
            return Ok(refused);
        }
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (cookie, bound) in &changed {
            keys.extend_from_slice(&cookie.to_ne_bytes());
            values.extend_from_slice(bound.leased(Time::ZERO, Span::ZERO).as_bytes());
        }
        let count = u32::try_from(changed.len()).unwrap_or(u32::MAX);
        if let Err(error) = map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY) {
            forget(own, &changed);
            return Err(Error::exchange("setting the bounds of the flows")(error));
        }
        Ok(refused)
    }

    /// Gives every socket its own congestion control back and unloads everything. A second call does nothing.
    ///
    /// # Errors
    /// If the kernel cannot be asked to walk its sockets. Everything is unloaded even so. The sockets run plain CUBIC;
    /// in [`Mode::Clamp`] a process of its own takes the clamps away.
    pub fn release(&mut self) -> Result<Released, Error> {
        // First stop adopting, or a new socket could slip in behind the walk.
        self.links.new_sockets = None;
        self.links.new_clamps = None;
        let done = self.walk(|links| links.release.as_ref());
        // Unregisters last: until here sockets could return to a registered control.
        let Links { guard, .. } = std::mem::take(&mut self.links);
        if let (Err(_), Some(guard)) = (&done, guard) {
            guard.clean_up();
        }
        let done = done?;
        Ok(Released { restored: done.walk_restored, failed: done.walk_failed })
    }

    /// Totals since loading; the last known ones if the kernel does not answer.
    pub fn counters(&self) -> Counters {
        let counts = self.counts().unwrap_or(self.last_counts);
        Counters {
            adopted_at_connect: counts.adopted_at_connect,
            adopted_at_accept: counts.adopted_at_accept,
            refused: counts.refused,
            repaired: counts.repaired,
            adopted_alive: counts.walk_adopted,
            restored: counts.walk_restored,
            state_changes: counts.state_changes,
            state_changes_lost: counts.state_changes_lost,
            unpaced: counts.unpaced,
        }
    }

    fn counts(&self) -> Result<Counts, Error> {
        object::read(&object::map(&self.object, ".bss.counters")).map_err(Error::exchange("reading the counters"))
    }

    /// Runs an iterator without output, and returns its counts.
    fn walk(&mut self, which: impl Fn(&Links) -> Option<&Link>) -> Result<Counts, Error> {
        let before = self.counts()?;
        let Some(link) = which(&self.links) else { return Ok(Counts::default()) };
        let walked = containers::everywhere(&self.namespace, &self.outside, || object::read_all(link).map(drop));
        walked.map_err(Error::exchange_io("walking the sockets"))?;
        let after = self.counts()?;
        self.last_counts = after;
        Ok(Counts {
            walk_adopted: after.walk_adopted - before.walk_adopted,
            walk_already: after.walk_already - before.walk_already,
            walk_left: after.walk_left - before.walk_left,
            walk_restored: after.walk_restored - before.walk_restored,
            walk_failed: after.walk_failed - before.walk_failed,
            ..after
        })
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // No error can be reported here; the sockets fail open.
        let _ = self.release();
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// Hands over the sockets that an iterator tells, and whether something is in flight or waits to be sent.
fn read(link: &Link, mut each: impl FnMut(SocketSample, bool)) -> std::io::Result<()> {
    let mut reader = Reader::default();
    object::read_each(link, Reader::BYTES, |bytes| {
        if let Some((sample, under_way)) = reader.read(bytes) {
            each(sample, under_way);
        }
    })
}

/// Hands over what is in a ring.
fn consume(ring: &Map<'_>, mut each: impl FnMut(&[u8])) -> libbpf_rs::Result<()> {
    let mut builder = RingBufferBuilder::new();
    builder.add(ring, move |bytes: &[u8]| {
        each(bytes);
        0
    })?;
    builder.build()?.consume()
}

/// The kernel has not taken these entries: the next call writes them again.
fn forget(own: &mut FxHashMap<Cookie, Own>, entries: &[(Cookie, Bound)]) {
    for (cookie, _) in entries {
        if let Some(entry) = own.get_mut(cookie) {
            entry.bound = None;
        }
    }
}

/// Loads the control under the first free name and registers it.
fn register(variant: Variant, settings: Settings) -> Result<(Object, String, Option<Link>), Error> {
    for number in 1..=64 {
        let name = if number == 1 { "lasthop".to_owned() } else { format!("lasthop.{number}") };
        if probe::registered_controls().contains(&name) {
            continue;
        }
        let padded = layout::padded_name(&name).expect("lasthop.64 has 10 letters");
        let object = object::load(Mode::Control, variant, &Settings { name: padded, ..settings })?;
        let mut object = object;
        let attached = object
            .maps_mut()
            .find(|map| map.name() == CONTROL_OPS)
            .expect("the map of our congestion control")
            .attach_struct_ops();
        match attached {
            Ok(link) => return Ok((object, name, Some(link))),
            // the name was taken meanwhile
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::attach("the list of congestion controls")(error)),
        }
    }
    Err(Error::NoName)
}

pub(crate) fn check_interface(index: u32) -> Result<(), Error> {
    let refuse = |reason: &str| Err(Error::Interface { index, reason: reason.into() });
    let interfaces = nix::net::if_::if_nameindex()
        .map_err(|error| Error::exchange_io("listing the network interfaces")(error.into()))?;
    let Some(interface) = interfaces.iter().find(|interface| interface.index() == index) else {
        return refuse("there is none of that index in this network namespace");
    };
    match interface.name().to_bytes() {
        b"lo" => refuse("it is the loopback interface"),
        _ => Ok(()),
    }
}

fn leave_keys(names: &[String]) -> Result<Vec<Vec<u8>>, Error> {
    if names.len() > layout::LH_LEAVE_MAX as usize {
        return Err(Error::TooMuch {
            what: "leave",
            reason: format!("at most {} names", layout::LH_LEAVE_MAX as usize),
        });
    }
    let key = |name: &String| {
        let padded = layout::padded_name(name).map(|padded| padded.as_bytes().to_vec());
        padded.ok_or_else(|| Error::TooMuch { what: "leave", reason: format!("{name:?} is longer than 15 letters") })
    };
    names.iter().map(key).collect()
}

pub(crate) fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    let (seconds, nanos) = (now.tv_sec().unsigned_abs(), now.tv_nsec().unsigned_abs());
    seconds * 1_000_000_000 + nanos
}
