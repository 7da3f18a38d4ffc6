//! What an agent follows: its interface, the access point behind it, the machine's sleep, and its configuration.

use super::{Agent, policy, wanted_mode};
use crate::error::{Error, Result};
use crate::event_loop::Read;
use crate::hear::group::group;
use crate::hear::hearing::Hearing;
use crate::link::interface::Interface;
use crate::link::last_link::LastLink;
use crate::reload::{self, Changes};
use crate::tcp::host_tcp::Loaded;
use crate::tcp::{kernel_tcp, rules};
use lasthop_policy::RtsRule;
use lasthop_status::Mode;
use lasthop_status::record::{Event, Joined, LinkReported, ProgramTotals, ReportCause};
use lasthop_units::{About, Span, Time};
use tracing::{info, warn};

impl Agent<'_> {
    /// Checks whether the interface is still the same, and reads its addresses.
    pub(crate) fn refresh(&mut self, now: Time) {
        let found = Interface::of(&self.config);
        self.hearing.refresh(now, found.as_ref());
        let Some(found) = found else {
            if let Some(more) = self.interface_log.may_say(now) {
                match &self.config.interface {
                    Some(name) => warn!("interface {name} is gone: waiting for it{more}"),
                    None => warn!("there is no default route any more: waiting for one{more}"),
                }
            }
            self.interface.up = false;
            // Its sockets have no interface, or another one, and its beacons are heard no more.
            if self.config.interface.is_some() && self.tcp.is_some() {
                self.unload();
            }
            self.look_at_link(now, false);
            return;
        };
        let replaced = found.index != self.interface.index || found.tunnels != self.interface.tunnels;
        self.interface = found;
        self.follow_group(now);
        if replaced || self.tcp.is_none() {
            self.reload(now);
        } else if let Err(error) = self.follow(now)
            && let Some(more) = self.trouble_log.may_say(now)
        {
            warn!("the programs do not follow the addresses of {}: {}{more}", self.interface.name, error.in_a_line());
        }
        self.look_at_link(now, true);
    }

    /// Reads the state of the interface's link, if the interface exists.
    pub(super) fn look_at_link(&mut self, now: Time, is_there: bool) {
        let Self { interface, wifi, hearing, last_link, .. } = self;
        let interface = is_there.then_some(&*interface);
        let look = |last_link: &mut LastLink| last_link.on_refresh(now, interface, wifi.radio(), hearing.label());
        let reported = last_link.as_mut().and_then(look);
        self.record_report(reported);
    }

    /// Determines the access point.
    pub(super) fn follow_group(&mut self, now: Time) {
        if let Err(error) = self.wifi.refresh(self.interface.index)
            && let Some(more) = self.trouble_log.may_say(now)
        {
            warn!("what the interface says of its access point is old: {}{more}", error.in_a_line());
        }
        let Some(labels) = group(&self.interface, self.wifi.radio(), self.config.beacon.group.as_deref()) else {
            return;
        };
        let moved = self.hearing.labels().is_some();
        if let Some(before) = self.hearing.labels()
            && before.are_of_the_same_place(&labels)
        {
            if *before != labels {
                self.hearing.call(labels);
            }
            return;
        }
        let label = labels.shown().clone();
        self.hearing.join(now, labels);
        if moved {
            // RTTs and peers belong to the old place. The connections stay.
            info!("behind another access point now: {label}");
            self.totals.roamed += 1;
            self.governor.on_moved(now);
            self.begin_policy_anew();
            self.record(&Event::Joined(Joined { t_ns: now.as_nanos(), group: label.to_string() }));
            self.look_at_link(now, true);
            self.forget_link(now, ReportCause::Roamed);
        } else {
            info!("behind the access point \"{label}\"");
        }
    }

    /// The machine was suspended and may have moved.
    pub(crate) fn on_resumed(&mut self, now: Time, suspended: Span) {
        info!("the machine was suspended for {}: peers and decisions begin anew", About(suspended));
        self.totals.resumed += 1;
        self.hearing.begin_anew(now);
        self.begin_policy_anew();
        self.refresh(now);
        self.forget_link(now, ReportCause::Resumed);
    }

    /// Forgets what the policy remembers. A program is started again.
    pub(super) fn begin_policy_anew(&mut self) {
        self.seen = None;
        self.rts_rule = RtsRule::default();
        let totals = self.asked.take().map_or_else(ProgramTotals::default, |asked| asked.totals());
        let (policy, asked) = policy(&self.config, self.mode, totals);
        self.governor.restart(policy, self.mode == Mode::Control);
        self.asked = asked;
    }

    /// Forgets what it saw of the last link: it may belong to another place.
    pub(super) fn forget_link(&mut self, now: Time, cause: ReportCause) {
        let reported = self.last_link.as_mut().and_then(|last_link| last_link.on_moved(now, cause));
        self.record_report(reported);
    }

    pub(super) fn record_report(&mut self, reported: Option<LinkReported>) {
        if let Some(reported) = reported {
            self.record(&Event::LastLink(reported));
        }
    }

    /// Loads the TCP programs for the interface in its present state.
    pub(super) fn reload(&mut self, now: Time) {
        match self.load() {
            Ok(()) => self.say_ready(),
            Err(error) => {
                if let Some(more) = self.interface_log.may_say(now) {
                    warn!(
                        "cannot work on interface {}, trying again: {}{more}",
                        self.interface.name,
                        error.in_a_line()
                    );
                }
            }
        }
    }

    /// Undoes the changes to TCP.
    pub(super) fn unload(&mut self) {
        self.rts.give_back();
        self.tcp = None;
        if let Some(last_link) = &mut self.last_link {
            last_link.detach();
        }
        self.governor.forget_flows();
        self.seen = None;
    }

    /// Undoes the changes to TCP, then loads the programs again. `None` if that fails.
    pub(super) fn load(&mut self) -> Result<()> {
        self.unload(); // on the old interface, before loading on the new one
        let wanted = self.wanted_mode();
        let Loaded { tcp, mode, reporter } = (self.loader)(&self.config, &self.interface, wanted)?;
        self.tcp = Some(tcp);
        if let Some(last_link) = &mut self.last_link {
            last_link.attach(reporter);
        }
        self.mode = mode;
        self.begin_policy_anew();
        let adopted = self.adopt();
        if adopted.is_err() {
            self.tcp = None;
        }
        adopted
    }

    /// Applies the configuration that `read` gives, as far as a running agent can, and logs the result. An invalid
    /// configuration is logged and changes nothing.
    pub(crate) fn on_reload(&mut self, now: Time, read: &Read<'_>) -> String {
        match self.take_over(now, read) {
            Ok(()) => self.in_a_line(),
            Err(error) => {
                warn!(
                    "the configuration was read again and is not accepted, so nothing changes: {}",
                    error.in_a_line()
                );
                format!("{}; the configuration was not accepted: {}", self.in_a_line(), error.in_a_line())
            }
        }
    }

    pub(super) fn take_over(&mut self, now: Time, read: &Read<'_>) -> Result<()> {
        let new = read().map_err(Error::Reload)?;
        new.validate()?;
        kernel_tcp::check_cgroups(&new)?;
        rules::in_the_kernel(&new)?;
        self.leave_trial(now);
        let changes = Changes::between(&self.config, &new);
        let hearing = changes.touch(&["beacon"]).then(|| Hearing::new(&new.beacon)).transpose()?;
        let new = reload::in_force(&self.config, &new);
        let reloads = wanted_mode(&self.config) != wanted_mode(&new)
            || changes.touch(&["cgroup", "excluded_cgroups", "leave", "take_chosen", "rules"]);
        let old = std::mem::replace(&mut self.config, new);
        let found = Interface::of(&self.config);
        if reloads && found.as_ref().is_none_or(|found| found.index != self.interface.index) {
            self.unload(); // `refresh` loads the programs once there is an interface
        } else if reloads && let Err(error) = self.load() {
            self.config = old;
            self.reload(now);
            return Err(error);
        }
        // Nothing can fail from here on.
        self.rts.try_again();
        if let Some(mut hearing) = hearing {
            hearing.count_on(&self.hearing);
            self.hearing = hearing;
        }
        let list = |keys: &[String]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        info!(
            "the configuration was read again. Keys that hold now: {}; that need a restart: {}",
            list(&changes.live),
            list(&changes.at_restart)
        );
        if let Some(last_link) = &mut self.last_link {
            last_link.follow(&self.config);
        }
        self.hearing.be_silent(self.config.mode == Mode::Observe);
        self.hearing.refresh(now, found.as_ref());
        self.follow_group(now);
        if reloads {
            if self.tcp.is_some() {
                self.say_ready();
            }
        } else if changes.touch(&["policy", "beacon", "tick_ms"]) {
            self.begin_policy_anew();
            self.say_ready();
        }
        Ok(())
    }
}
