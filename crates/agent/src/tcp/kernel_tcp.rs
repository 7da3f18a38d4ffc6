//! The TCP of this machine's kernel: the programs of [`kernel`], in the best mode possible here.

use crate::clock;
use crate::config::Config;
use crate::error::{Doing, Error, Result};
use crate::link::interface::Interface;
use crate::only_one::{OnlyOne, Task};
use crate::tcp::host_tcp::{Claim, HostTcp, LinkReporter, Loaded, ReportCounters, SocketSample, StateChange};
use crate::tcp::rules;
use crate::tell::log_limit::LogLimit;
use lasthop_kernel::link_report::Reporter;
use lasthop_kernel::{Containers, Kernel, Options, TooManyCgroups, link_report};
use lasthop_laws::bound::Bound;
use lasthop_status::Mode;
use lasthop_units::Span;
use nix::errno::Errno;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Connections without a segment for so long, and without anything to send, are only counted. No policy takes one for
/// busy or receiving: its patience ends after 20 s. The bound of new connections is theirs.
pub(crate) const ASLEEP: Span = Span::from_secs(30);

struct KernelTcp {
    kernel: Kernel,
    /// What becomes of connections with the host's default congestion control of when the programs were loaded.
    default_control: Option<String>,
    asleep: u64,
    /// Open sockets that the kernel refused to change, at the last walk.
    refused: u64,
    /// Open sockets cannot be bounded in mode clamp: it was said.
    leaves_open_ones: bool,
    /// Refused pacing limits at the last warning.
    unpaced: u64,
    /// What is received cannot be bounded, and that is not tried (again).
    receives_unbounded: bool,
    /// Why, if it was not said yet.
    unsaid_lack: Option<String>,
    /// Configured cgroups that were absent at the last check.
    missing: Vec<PathBuf>,
    /// Those already warned of.
    warned: BTreeSet<PathBuf>,
    /// Rules without room for their cgroups at the last check.
    too_many: Vec<TooManyCgroups>,
    /// What was found of containers at the last check; `None`: the configuration does not ask for them.
    containers: Option<Containers>,
    containers_log: LogLimit,
    /// Held while this agent controls the interface.
    _only_one: Option<OnlyOne>,
}

/// Loads the programs for `interface`. If the kernel cannot run the configured mode, one warning names the missing
/// features and the mode used.
pub(crate) fn load(config: &Config, interface: &Interface, wanted: Mode) -> Result<Loaded> {
    use lasthop_kernel::Error::{Attach, Load, TooManyPrograms, Unsupported};

    check_cgroups(config)?;
    let rules = rules::in_the_kernel(config)?;
    let lock = |task| config.lock.then(|| OnlyOne::take(task, interface)).transpose();
    let only_one = if wanted == Mode::Control { lock(Task::Control)? } else { None };
    let only_reporter = if config.last_link.report { lock(Task::Report)? } else { None };
    warn_of_unknown_controls(&config.leave);
    let mut reason = None;
    let mut modes = modes_for(wanted).iter().copied();
    let (mode, kernel) = loop {
        let Some(mode) = modes.next() else {
            let reason = reason.unwrap_or_default();
            return Err(Error::Refused(format!("this kernel does not let us see its sockets: {reason}")));
        };
        match options(config, interface, mode, &rules).and_then(|options| Kernel::load(&options)) {
            Ok(kernel) => break (mode, kernel),
            Err(error @ TooManyPrograms) => {
                reason.get_or_insert_with(|| error.to_string());
            }
            // A lesser mode may still work. The full probe takes most of a second, so it runs only now.
            Err(error @ (Load { .. } | Attach { .. } | Unsupported { .. })) => {
                reason.get_or_insert_with(|| {
                    what_is_missing(mode).unwrap_or_else(|| Error::from(error).in_a_line().to_string())
                });
            }
            Err(error) => return Err(error).doing(loading(interface)),
        }
    };
    if let Some(reason) = reason {
        let instead = match mode {
            lasthop_kernel::Mode::Clamp => {
                "windows and pacing rates are bounded from above only, and sockets keep their own congestion control"
            }
            _ => "nothing is applied: what would be is only said and recorded",
        };
        warn!("the kernel cannot do all that mode {wanted} needs, so {instead}. What is missing: {reason}");
    }
    let default_control = if mode == lasthop_kernel::Mode::Control { describe_default_control(config) } else { None };
    if let Some(what) = &default_control {
        info!("{what}");
    }
    // Asked now, so that no tick, and no advice, counts downloads as limited that are not.
    let lack = Kernel::lack_for_received();
    let mut tcp = KernelTcp {
        kernel,
        default_control,
        asleep: 0,
        refused: 0,
        leaves_open_ones: false,
        unpaced: 0,
        receives_unbounded: lack.is_some(),
        unsaid_lack: lack,
        missing: Vec::new(),
        warned: BTreeSet::new(),
        too_many: Vec::new(),
        containers: (config.containers && mode != lasthop_kernel::Mode::Clamp).then(Containers::default),
        containers_log: LogLimit::new(4, Span::from_secs(60)),
        _only_one: only_one,
    };
    if config.containers && tcp.containers.is_none() {
        warn!(
            "`containers` has no effect: without a congestion control of ours, connections of containers are not governed"
        );
    }
    tcp.refresh()?;
    Ok(Loaded {
        tcp: Box::new(tcp),
        mode: what_remains(wanted, mode),
        reporter: config.last_link.report.then(|| reporter(config, interface, only_reporter)).flatten(),
    })
}

/// Loads the reporter of the last link; `None`, with a warning, if this kernel cannot report.
fn reporter(config: &Config, interface: &Interface, only_one: Option<OnlyOne>) -> Option<Box<dyn LinkReporter>> {
    let load = || {
        let found = link_report::Options::new(interface.index)?;
        Reporter::load(&link_report::Options { cgroup: config.cgroup.clone().unwrap_or(found.cgroup.clone()), ..found })
    };
    match load() {
        Ok(reporter) => Some(Box::new(KernelReporter { reporter, _only_one: only_one })),
        Err(error) => {
            let error = Error::from(error).in_a_line().to_string();
            warn!("servers are told nothing of the last link, everything else goes on: {error}");
            None
        }
    }
}

struct KernelReporter {
    reporter: Reporter,
    /// Held while this agent reports the interface's link.
    _only_one: Option<OnlyOne>,
}

impl LinkReporter for KernelReporter {
    fn set(&mut self, claim: Claim) -> Result<()> {
        Ok(self.reporter.set(claim)?)
    }

    fn counters(&self) -> Result<ReportCounters> {
        Ok(self.reporter.counters()?)
    }
}

/// Names the key of an invalid cgroup. An excluded cgroup may be absent: a service makes its own when it starts.
pub(crate) fn check_cgroups(config: &Config) -> Result<()> {
    let excluded = config.excluded_cgroups.iter().map(|path| ("excluded_cgroups", path));
    // Where cgroup2 is hidden (`ip netns exec`), nothing is controlled, with a warning.
    let only = config.cgroup.iter().filter(|_| lasthop_kernel::sees_cgroups()).map(|path| ("cgroup", path));
    for (key, path) in only.chain(excluded) {
        let cannot = || format!("`{key}`: {} is no cgroup (version 2) that can be used", path.display());
        match statfs(path) {
            Err(Errno::ENOENT) if key == "excluded_cgroups" => {}
            found if found.doing(cannot())?.filesystem_type() != CGROUP2_SUPER_MAGIC => {
                return Err(Error::Refused(format!("{}: it is on another file system", cannot())));
            }
            _ => {}
        }
    }
    Ok(())
}

fn warn_that_receives_are_unbounded(cause: &str) {
    warn!("what is received is not bounded, whatever the policy limits; what is sent is: {cause}");
}

fn warn_of_unknown_controls(names: &[String]) {
    let Ok(offered) = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control") else { return };
    for name in names.iter().filter(|name| !offered.split_whitespace().any(|offered| offered == name.as_str())) {
        warn!("`leave` names {name}, which this kernel does not offer now; it offers {}", offered.trim());
    }
}

/// What mode control does to connections with this host's default congestion control of now, where the kernel can do all of that mode;
/// `None`: the kernel does not say which congestion control that is.
pub fn describe_default_control(config: &Config) -> Option<String> {
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(what_becomes_of(default.trim(), &config.leave))
}

fn what_becomes_of(default: &str, leave: &[String]) -> String {
    if leave.iter().any(|name| name == default) {
        return format!(
            "`leave` names this host's default congestion control, {default}: its connections are left alone"
        );
    }
    let spare = match default {
        "cubic" => String::new(),
        _ => format!("; `leave = [\"{default}\"]` leaves them alone"),
    };
    format!(
        "connections with this host's default congestion control, {default}, get CUBIC with bounded windows instead{spare}"
    )
}

/// The features that `mode` misses; `None` if none is missing and the kernel still refuses.
fn what_is_missing(mode: lasthop_kernel::Mode) -> Option<String> {
    let support = lasthop_kernel::probe();
    let missing: Vec<&str> = support.missing_for(mode).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// The kernel's modes that serve the agent's mode, best first.
const fn modes_for(wanted: Mode) -> &'static [lasthop_kernel::Mode] {
    match wanted {
        Mode::Control => &[lasthop_kernel::Mode::Control, lasthop_kernel::Mode::Clamp, lasthop_kernel::Mode::Observe],
        Mode::Observe | Mode::Advise => &[lasthop_kernel::Mode::Observe],
    }
}

/// The agent's mode for the kernel mode that was loaded.
const fn what_remains(wanted: Mode, loaded: lasthop_kernel::Mode) -> Mode {
    match (wanted, loaded) {
        (Mode::Control, lasthop_kernel::Mode::Observe | lasthop_kernel::Mode::Nothing) => Mode::Advise,
        _ => wanted,
    }
}

fn loading(interface: &Interface) -> String {
    format!("cannot load the programs for interface {} into the kernel", interface.name)
}

fn options(
    config: &Config,
    interface: &Interface,
    mode: lasthop_kernel::Mode,
    rules: &[lasthop_kernel::Rule],
) -> Result<Options, lasthop_kernel::Error> {
    Ok(Options {
        tunnels: interface.tunnels.clone(),
        containers: config.containers,
        rules: rules.to_vec(),
        only_cgroup: config.cgroup.clone(),
        excluded_cgroups: config.excluded_cgroups.clone(),
        leave: config.leave.clone(),
        take_chosen: config.take_chosen,
        asleep: ASLEEP,
        ..Options::new(interface.index, mode)?
    })
}

impl KernelTcp {
    /// Looks for containers, and says what has changed. Failing that, our own connections are governed even so.
    fn follow_containers(&mut self) -> bool {
        let Some(before) = self.containers else { return false };
        let now = clock::monotonic();
        let found = match self.kernel.follow_containers() {
            Ok(found) => found,
            Err(error) => {
                if let Some(more) = self.containers_log.may_say(now) {
                    warn!("connections of new containers are not governed: {}{more}", Error::from(error).in_a_line());
                }
                return false;
            }
        };
        let escapes = |found: &Containers| (found.closed, found.hidden > 0);
        let differs = found.governed != before.governed || escapes(&found) != escapes(&before);
        self.containers = Some(found);
        if differs && let Some(more) = self.containers_log.may_say(now) {
            let governed = found.governed;
            if escapes(&found) == (0, false) {
                info!("containers: connections of {governed} network namespaces are governed{more}");
            } else {
                warn!(
                    "containers: connections of {governed} network namespaces are governed; {} cannot be entered (CAP_SYS_ADMIN), \
                     and those of {} processes are not seen (CAP_SYS_PTRACE): what these send may escape{more}",
                    found.closed, found.hidden
                );
            }
        }
        found.changed
    }
}

impl HostTcp for KernelTcp {
    fn congestion_control(&self) -> Option<&str> {
        Some(self.kernel.name()).filter(|name| !name.is_empty())
    }

    fn default_control(&self) -> Option<&str> {
        self.default_control.as_deref()
    }

    fn adopt(&mut self) -> Result<u64> {
        let lasthop_kernel::Adopted { adopted, left, restored, failed, .. } = self.kernel.adopt()?;
        let refused = std::mem::replace(&mut self.refused, failed);
        if adopted + restored > 0 || failed != refused {
            info!(
                "open sockets: {adopted} taken over, {left} left alone, {restored} given back, {failed} refused by \
                 the kernel"
            );
        }
        if failed > 0 && !self.leaves_open_ones && self.kernel.mode() == lasthop_kernel::Mode::Clamp {
            self.leaves_open_ones = true;
            warn!(
                "connections that were open before the agent are not bounded: without a congestion control of ours, \
                 Linux does that from 6.12 on"
            );
        }
        Ok(adopted)
    }

    fn refresh(&mut self) -> Result<bool> {
        let lasthop_kernel::Cgroups { changed, missing, too_many } = self.kernel.follow_cgroups()?;
        for path in missing.iter().filter(|path| !self.missing.contains(path)) {
            if self.warned.insert(path.clone()) {
                warn!("there is no cgroup {} now: it is looked for every 2 s", path.display());
            }
        }
        for path in self.missing.iter().filter(|path| !missing.contains(path)) {
            info!("the cgroup {} is there now", path.display());
        }
        self.missing = missing;
        let has = |rules: &[TooManyCgroups], rule| rules.iter().any(|other| other.rule == rule);
        for TooManyCgroups { rule, cgroups } in too_many.iter().filter(|new| !has(&self.too_many, new.rule)) {
            warn!("rule {} holds for no connection: {}", rules::number(*rule), rules::no_room(*cgroups));
        }
        for TooManyCgroups { rule, .. } in self.too_many.iter().filter(|old| !has(&too_many, old.rule)) {
            info!("rule {} holds again: there is room for its cgroups", rules::number(*rule));
        }
        self.too_many = too_many;
        Ok(self.follow_containers() || changed)
    }

    fn too_many_cgroups(&self) -> &[TooManyCgroups] {
        &self.too_many
    }

    fn containers(&self) -> Option<Containers> {
        self.containers
    }

    fn sample(&mut self) -> Result<Arc<Vec<SocketSample>>> {
        let lasthop_kernel::Observed { sockets, asleep } = self.kernel.observe()?;
        self.asleep = asleep;
        Ok(sockets)
    }

    fn asleep(&self) -> u64 {
        self.asleep
    }

    fn bounds_received(&self) -> bool {
        !self.receives_unbounded
    }

    fn will_bound_received(&mut self) {
        if let Some(lack) = self.unsaid_lack.take() {
            warn_that_receives_are_unbounded(&lack);
        }
    }

    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64> {
        Ok(self.kernel.poll_state_changes(each)?)
    }

    fn set_bounds(&mut self, new_flows: Option<Bound>, flows: &[(u64, Option<Bound>)], lease: Span) -> Result<()> {
        self.kernel.set_bounds(new_flows, flows, lease)?;
        let unpaced = self.kernel.counters().unpaced;
        if unpaced > 0 && self.unpaced == 0 {
            warn!(
                "the kernel refuses to limit the pacing rate of sockets (SO_MAX_PACING_RATE): only their windows are bounded"
            );
        }
        self.unpaced = unpaced;
        let receives = |bound: Option<Bound>| bound.is_some_and(|bound| bound.max_receive_bytes > 0);
        let any = receives(new_flows) || flows.iter().any(|(_, bound)| receives(*bound));
        if any
            && !self.receives_unbounded
            && let Err(error) = self.kernel.bound_received()
        {
            self.receives_unbounded = true;
            warn_that_receives_are_unbounded(&Error::from(error).in_a_line().to_string());
        }
        Ok(())
    }

    fn release(&mut self) -> Result<u64> {
        let lasthop_kernel::Released { restored, failed } = self.kernel.release()?;
        if failed > 0 {
            warn!("{failed} sockets would not take their own congestion control back: they run plain CUBIC");
        }
        Ok(restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_falls_back_to_a_clamp_and_then_to_advice() {
        assert_eq!(modes_for(Mode::Control)[0], lasthop_kernel::Mode::Control);
        let remaining: Vec<_> =
            modes_for(Mode::Control).iter().map(|mode| what_remains(Mode::Control, *mode)).collect();
        assert_eq!(remaining, [Mode::Control, Mode::Control, Mode::Advise]);
    }

    #[test]
    fn the_default_and_what_takes_its_place_are_said() {
        let bbr = "connections with this host's default congestion control, bbr, get CUBIC with bounded windows instead; \
                   `leave = [\"bbr\"]` leaves them alone";
        assert_eq!(what_becomes_of("bbr", &["reno".to_owned()]), bbr);
        let left = "`leave` names this host's default congestion control, bbr: its connections are left alone";
        assert_eq!(what_becomes_of("bbr", &["bbr".to_owned()]), left);
        let cubic =
            "connections with this host's default congestion control, cubic, get CUBIC with bounded windows instead";
        assert_eq!(what_becomes_of("cubic", &[]), cubic);
    }

    #[test]
    fn a_cgroup_that_is_none_is_named_with_its_key_and_why() {
        let said = |config: &Config| check_cgroups(config).expect_err("it is none").in_a_line().to_string();
        let config = Config { cgroup: Some("/sys/fs/cgroup/no-such.slice".into()), ..Config::default() };
        let expected = "`cgroup`: /sys/fs/cgroup/no-such.slice is no cgroup (version 2) that can be used: ENOENT: No such file or directory";
        assert_eq!(said(&config), expected);
        let config = Config { excluded_cgroups: vec!["/proc".into()], ..Config::default() };
        let expected =
            "`excluded_cgroups`: /proc is no cgroup (version 2) that can be used: it is on another file system";
        assert_eq!(said(&config), expected);
        // A stopped service has no cgroup. Its sockets are left alone once it runs.
        let later = vec!["/sys/fs/cgroup/no-such.service".into()];
        assert!(check_cgroups(&Config { excluded_cgroups: later, ..Config::default() }).is_ok());
        assert!(check_cgroups(&Config::default()).is_ok());
    }

    #[test]
    fn nothing_that_could_change_a_socket_is_loaded_to_observe_or_advise() {
        for wanted in [Mode::Observe, Mode::Advise] {
            assert_eq!(modes_for(wanted), [lasthop_kernel::Mode::Observe]);
            assert_eq!(what_remains(wanted, lasthop_kernel::Mode::Observe), wanted);
        }
    }
}
