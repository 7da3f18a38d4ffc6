//! Rules by cgroup and by user: `[[rules]]` of the configuration.
//!
//! The kernel's programs tell for each connection the first rule that fits it ([`lasthop_kernel::Rule`]), and leave alone
//! those of `govern = false`. The governor splits `most_mbps` over the rest ([`Limit`]).

use crate::config::{Config, RuleConfig};
use crate::error::{Doing, Error, Result};
use lasthop_kernel::{Kernel, SocketSample, TooManyCgroups};
use lasthop_policy::PolicyName;
use lasthop_policy::governor::Limit;
use lasthop_status::Mode;
use lasthop_status::RuleStatus;
use lasthop_units::Rate;
use nix::unistd::User;
use std::fmt;

/// The rules as the kernel's programs need them.
///
/// # Errors
/// If there is no such user: the key, and what is accepted.
pub(crate) fn in_the_kernel(config: &Config) -> Result<Vec<lasthop_kernel::Rule>> {
    let rule = |(index, rule): (usize, &RuleConfig)| {
        let uid = rule.user.as_ref().map(|user| uid(index, user)).transpose()?;
        Ok(lasthop_kernel::Rule { cgroup: rule.cgroup.as_ref().map(Into::into), uid, leave: !rule.govern })
    };
    config.rules.iter().enumerate().map(rule).collect()
}

fn uid(index: usize, user: &str) -> Result<u32> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    let found = User::from_name(user).doing(format_args!("cannot look for the user {user}"))?;
    found.map(|user| user.uid.as_raw()).ok_or_else(|| {
        let accepted = "accepted: a name that `getent passwd` lists, or a user's number";
        Error::Refused(format!("rules[{index}].user: there is no user \"{user}\" on this machine; {accepted}"))
    })
}

/// What the connection's rule allows it, whatever the policy decides.
pub(crate) fn limit(rules: &[RuleConfig], socket: &SocketSample) -> Option<Limit> {
    let rule = socket.rule?;
    Some(Limit { rule, rate: Rate::from_mbps(rules.get(rule)?.most_mbps?) })
}

/// The number of the rule, if that leaves the connection alone.
pub(crate) fn left_by(rules: &[RuleConfig], socket: &SocketSample) -> Option<u32> {
    let rule = socket.rule?;
    (!rules.get(rule)?.govern).then_some(number(rule))
}

/// The number of a rule, from 1.
pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// Each rule, with the connections of which it is the first that fits.
pub(crate) fn status(config: &Config, sockets: &[SocketSample], too_many: &[TooManyCgroups]) -> Vec<RuleStatus> {
    let status = |(index, rule): (usize, &RuleConfig)| {
        let rule = match too_many.iter().find(|left| left.rule == index) {
            Some(left) => format!("{rule} (not now: {})", no_room(left.cgroups)),
            None => words(config, rule),
        };
        RuleStatus { number: number(index), rule, connections: 0 }
    };
    let mut all: Vec<_> = config.rules.iter().enumerate().map(status).collect();
    for rule in sockets.iter().filter_map(|socket| socket.rule) {
        if let Some(status) = all.get_mut(rule) {
            status.connections += 1;
        }
    }
    all
}

/// What the rule says, and whether this configuration lets it limit.
fn words(config: &Config, rule: &RuleConfig) -> String {
    let limits = config.mode == Mode::Control && config.policy.policy != PolicyName::None;
    match rule.most_mbps {
        Some(_) if !limits => format!("{rule} (not now: that takes mode control and a policy)"),
        _ => rule.to_string(),
    }
}

/// Why a rule that so many cgroups match does not hold.
pub(crate) fn no_room(cgroups: usize) -> String {
    format!("{cgroups} cgroups match, and all rules have room for {}", Kernel::CGROUPS_MOST)
}

/// Whether each rule can work on this machine now, in a line each: for `lasthop doctor`.
pub fn describe_rules(config: &Config) -> Vec<String> {
    let describe = |(index, rule): (usize, &RuleConfig)| {
        let mut found = Vec::new();
        if let Some(cgroup) = &rule.cgroup {
            found.push(match lasthop_kernel::cgroups_like(cgroup.as_ref()) {
                _ if !lasthop_kernel::tells_cgroups() => {
                    "this kernel does not tell the cgroups of sockets (Linux 5.16)".to_owned()
                }
                0 => "no such cgroup now".to_owned(),
                1 => "1 cgroup now".to_owned(),
                count if count > Kernel::CGROUPS_MOST => format!("it cannot hold now: {}", no_room(count)),
                count => format!("{count} cgroups now"),
            });
        }
        if let Some(user) = &rule.user {
            found.push(match uid(index, user) {
                Ok(uid) => format!("user number {uid}"),
                Err(error) => error.in_a_line().to_string(),
            });
        }
        format!("rule {}: {} ({})", number(index), words(config, rule), found.join("; "))
    };
    config.rules.iter().enumerate().map(describe).collect()
}

impl fmt::Display for RuleConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cgroup, user, govern, most_mbps } = self;
        let whose = [("cgroup", cgroup), ("user", user)].map(|(what, of)| of.as_ref().map(|of| format!("{what} {of}")));
        let whose: Vec<_> = whose.into_iter().flatten().collect();
        write!(f, "{}: ", whose.join(", "))?;
        match most_mbps {
            _ if !govern => f.write_str("left alone"),
            Some(most) => write!(f, "{most} Mb/s at most together"),
            None => f.write_str("as all others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_a_number_and_an_unknown_one_is_named_with_its_key() {
        assert_eq!((uid(0, "root").expect("it is there"), uid(0, "1234").expect("a number")), (0, 1234));
        let said = uid(2, "nobody-of-this-name").expect_err("unknown").in_a_line().to_string();
        assert!(said.starts_with("rules[2].user: there is no user \"nobody-of-this-name\""), "{said}");
        assert!(said.contains("; accepted: "), "{said}");
    }

    #[test]
    fn what_a_rule_does_not_do_now_is_said_with_the_cause_by_doctor_and_status() {
        let rule = |most_mbps: Option<f64>| RuleConfig {
            cgroup: None,
            user: Some("0".to_owned()),
            govern: most_mbps.is_some(),
            most_mbps,
        };
        let mut config = Config { mode: Mode::Control, rules: vec![rule(Some(2.0)), rule(None)], ..Config::default() };
        config.policy.policy = PolicyName::Lasthop;
        let too_many = [TooManyCgroups { rule: 1, cgroups: 3000 }];
        let said = |config: &Config| status(config, &[], &too_many).into_iter().map(|status| status.rule);
        let limit = "user 0: 2 Mb/s at most together";
        let left = "user 0: left alone (not now: 3000 cgroups match, and all rules have room for 2048)";
        assert_eq!(said(&config).collect::<Vec<_>>(), [limit, left]);
        assert_eq!(describe_rules(&config)[0], format!("rule 1: {limit} (user number 0)"));
        config.mode = Mode::Advise;
        let limit = format!("{limit} (not now: that takes mode control and a policy)");
        assert_eq!(said(&config).next(), Some(limit.clone()));
        assert_eq!(describe_rules(&config)[0], format!("rule 1: {limit} (user number 0)"));
    }
}
