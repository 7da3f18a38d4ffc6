//! `lasthop trace from`: a scenario out of what agents have recorded (docs/guide/trace.md).

mod radio;
mod recorded;

use crate::built_in::Found;
use crate::{say, tell};
use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use lasthop_laws::LawName;
use lasthop_policy::PolicyName;
use lasthop_scenario::{MAX_HOSTS, Scenario};
use radio::Radio;
use recorded::{Flow, Record, Way, start_together};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A connection that carried less is left out.
const LEAST_BYTES: u64 = 64 << 10;
/// The shortest record that makes a scenario.
const LEAST_S: f64 = 5.0;
/// A busy peer that comes or goes for less is not there.
const LEAST_PEER_S: f64 = 2.0;
/// The time over which the rate of an unknown access is the mean.
const RATE_WINDOW_S: f64 = 5.0;
/// A change of that rate by less is none.
const SAME_RATE: f64 = 0.05;
/// Where the direction with less had more than this part of the other, both count.
const BOTH_WAYS: f64 = 0.1;
/// Data in an IP packet of 1500 bytes, with timestamps.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
/// The gap between two writes of an application that sends at its own rate.
const GAP_MS: f64 = 20.0;

#[derive(Args)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Subcommand)]
enum TraceCommand {
    /// Make a scenario of what agents behind one access point have recorded
    From(FromArguments),
}

#[derive(Args)]
struct FromArguments {
    /// The records (`lasthop agent --record FILE`), one for each host
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Take the table [access] of this scenario, instead of what the records tell of the access point
    #[arg(long, value_name = "SCENARIO")]
    like: Option<PathBuf>,
    /// Write the scenario into this file, which must be new or empty, instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// `lasthop trace`.
pub(crate) fn run(arguments: &TraceArguments) -> Result<ExitCode> {
    let TraceCommand::From(arguments) = &arguments.command;
    let records = arguments.records.iter().map(|path| Record::open(path)).collect::<Result<Vec<_>>>()?;
    let access = arguments.like.as_deref().map(access_of).transpose()?;
    let text = scenario_of(records, access)?;
    // What is written must run.
    let scenario = Scenario::from_toml("the scenario of the records", &text, &[])?;
    lasthop_sim::check(&scenario)?;
    match &arguments.out {
        None => say(&text)?,
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            lasthop_files::write(path, None, text.as_bytes()).with_context(cannot)?;
            let (hosts, seconds) = (scenario.expanded_hosts().len(), scenario.duration.as_secs_f64());
            tell(format_args!("{}: {hosts} hosts, {seconds} s; its comments say what is assumed", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The table `[access]` of a scenario, as text.
fn access_of(typed: &Path) -> Result<String> {
    let scenario = Found::scenario(typed)?.load(&[])?;
    let written = scenario.to_toml();
    let begin = written.find("[access]").with_context(|| format!("{} has no [access]", typed.display()))?;
    let length = written[begin + 1..].find("\n[").map_or(written.len() - begin, |length| length + 2);
    Ok(format!("# As in {}.\n{}", typed.display(), &written[begin..begin + length]))
}

fn scenario_of(mut records: Vec<Record>, like: Option<String>) -> Result<String> {
    for at in 1..records.len() {
        let name = &records[at].name;
        if records[..at].iter().any(|before| before.name == *name) {
            records[at].name = format!("{}-{at}", name.chars().take(26).collect::<String>());
        }
    }
    let aligned = start_together(&mut records);
    let end_s = records.iter().filter_map(Record::last_growth_s).fold(0.0, f64::max);
    ensure!(end_s >= LEAST_S, "the connections of these records carried data for {end_s:.1} s: {LEAST_S} s are needed");
    let radio = Radio::of(&records);
    let mut text = head(&records, end_s, aligned);
    match (&like, &radio) {
        (Some(access), _) => text.push_str(access),
        (None, Some(radio)) => text.push_str(&radio.access()),
        (None, None) => text.push_str(&unknown_access(&records, end_s)),
    }
    text.push('\n');
    let mut hosts = 0;
    for record in &records {
        text.push_str(&host(record, end_s)?);
        hosts += 1;
    }
    let peers = peers(&records, end_s);
    ensure!(hosts + peers.len() <= MAX_HOSTS, "{} hosts and {} peers are more than {MAX_HOSTS}", hosts, peers.len());
    for (number, spells) in peers.iter().enumerate() {
        text.push_str(&peer(number + 1, spells, &records[0]));
    }
    match (&like, &radio) {
        (_, Some(radio)) => text.push_str(&radio.changes(&records, end_s)),
        (None, None) => text.push_str(&rate_changes(&records, end_s)),
        (Some(_), None) => {}
    }
    Ok(text)
}

fn head(records: &[Record], end_s: f64, aligned: bool) -> String {
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    let mut text = String::new();
    let _ = writeln!(text, "# Made by `lasthop trace from` of {}.", list(&names));
    text.push_str(
        "# Assumed of all, for an agent's record does not tell it: the access point's queue; what strangers without an agent\n\
         # send; hosts with the Linux of today; policies with their defaults; senders at the servers as at the hosts.\n",
    );
    if !aligned {
        text.push_str("# These records have no common clock: each begins at 0.\n");
    }
    let title = format!(
        "{} recorded for {:.0} s",
        if names.len() == 1 { names[0].to_owned() } else { format!("{} hosts", names.len()) },
        end_s
    );
    let warmup_s = (end_s / 4.0).min(10.0);
    let _ = writeln!(text, "name = \"{title}\"\nduration_s = {end_s:.1}\nwarmup_s = {warmup_s:.1}\n");
    text
}

/// A wired link that is as fast as what was carried.
fn unknown_access(records: &[Record], end_s: f64) -> String {
    let rates = rates(records, end_s);
    let rate = rates.first().map_or(1.0, |(_, rate)| *rate);
    let fastest = rates.iter().map(|(_, rate)| *rate).fold(0.001, f64::max);
    let excess =
        records.iter().flat_map(|record| record.flows.values()).map(Flow::highest_excess_us).max().unwrap_or(0);
    let packets = (excess as f64 * fastest / 12_000.0).round().clamp(10.0, 10_000.0);
    let carried = |way: Way| -> f64 {
        records.iter().flat_map(|record| record.flows.values()).map(|flow| flow.carried(way, end_s)).sum()
    };
    let (less, more) = (carried(Way::Up).min(carried(Way::Down)), carried(Way::Up).max(carried(Way::Down)));
    let both = if less > BOTH_WAYS * more {
        "# Both directions carried much, and one of these links is too fast: `--like` an access point would be nearer.\n"
    } else {
        ""
    };
    format!(
        "# Nothing is known of a radio: a link each way at the rate of all these connections together, in the direction that had\n\
         # more, over windows of {RATE_WINDOW_S} s. It is too slow where nothing but the applications held them back. The queue: what the\n\
         # highest round trip of all, {:.0} ms above the lowest, holds at the highest rate.\n{both}\
         [access]\nkind = \"wired\"\nrate_mbps = {rate}\nqueue_packets = {packets}\n",
        excess as f64 / 1e3,
    )
}

/// The rate of all connections together in each window, in Mb/s of IP packets; those that hardly differ are one.
fn rates(records: &[Record], end_s: f64) -> Vec<(f64, f64)> {
    let windows = (end_s / RATE_WINDOW_S).floor().max(1.0) as usize;
    let mut rates: Vec<(f64, f64)> = Vec::new();
    for window in 0..windows {
        let from = window as f64 * RATE_WINDOW_S;
        let until = if window + 1 == windows { end_s } else { from + RATE_WINDOW_S };
        let carried = |way: Way| -> f64 {
            let flows = records.iter().flat_map(|record| record.flows.values());
            flows.map(|flow| flow.carried(way, until) - flow.carried(way, from)).sum()
        };
        let bytes = carried(Way::Up).max(carried(Way::Down));
        let rate = (bytes * 8.0 / 1e6 / (until - from) / PAYLOAD_SHARE).max(0.001);
        if rates.last().is_none_or(|(_, before)| (rate / before - 1.0).abs() > SAME_RATE) {
            rates.push((from, (rate * 1e3).round() / 1e3));
        }
    }
    rates
}

fn rate_changes(records: &[Record], end_s: f64) -> String {
    let change = |(at, rate): &(f64, f64)| format!("[[changes]]\nof = \"access\"\nat_s = {at}\nrate_mbps = {rate}\n\n");
    rates(records, end_s).iter().skip(1).map(change).collect()
}

fn host(record: &Record, end_s: f64) -> Result<String> {
    let mut text = String::from("[[hosts]]\n");
    let _ = writeln!(text, "name = \"{}\"\nera = \"modern\"", record.name);
    text.push_str(&policy(record));
    let flows: Vec<&Flow> = record.flows.values().filter(|flow| flow.bytes() >= LEAST_BYTES).collect();
    let Some(largest) = flows.iter().max_by_key(|flow| flow.bytes()) else {
        bail!("{}: no connection carried {} KiB: there is nothing to replay", record.name, LEAST_BYTES >> 10);
    };
    let rtt_ms = largest.min_rtt_us.map_or(20.0, |us| us as f64 / 1e3);
    let others: Vec<f64> = flows.iter().filter_map(|flow| flow.min_rtt_us).map(|us| us as f64 / 1e3).collect();
    let (least, most) = others.iter().fold((f64::MAX, 0.0_f64), |(least, most), &ms| (least.min(ms), most.max(ms)));
    let from = match largest.min_rtt_us {
        Some(_) => format!("the lowest round trip of its largest connection; all have {least:.1} to {most:.1} ms"),
        None => "assumed: no round trip was recorded".to_owned(),
    };
    let _ = writeln!(text, "path_rtt_ms = {rtt_ms:.3}    # {from}");
    let (law, why) = law(&record.name_of_law());
    let _ = writeln!(text, "congestion_control = \"{law}\"{why}");
    let small: Vec<u64> = record.flows.values().map(Flow::bytes).filter(|bytes| *bytes < LEAST_BYTES).collect();
    if !small.is_empty() {
        let (count, kib) = (small.len(), small.iter().sum::<u64>() >> 10);
        let _ =
            writeln!(text, "# Left out: {count} connections of less than {} KiB, {kib} KiB in all.", LEAST_BYTES >> 10);
    }
    if let Some(repeated) = record.repeated_share() {
        let _ =
            writeln!(text, "# Its radio repeated {:.0} % of its frames, after collisions and noise.", 100.0 * repeated);
    }
    for flow in flows {
        text.push_str(&self::flow(flow, end_s));
    }
    text.push('\n');
    Ok(text)
}

/// What the agent did.
fn policy(record: &Record) -> String {
    let Some(ready) = &record.ready else {
        return "policy = \"none\"    # assumed: the record does not begin with the agent's start\n".to_owned();
    };
    match ready.policy {
        PolicyName::External => {
            "policy = \"none\"    # its agent asked a program, which a record does not have\n".to_owned()
        }
        policy => format!("policy = \"{policy}\"\nagent = \"{}\"\n", ready.mode),
    }
}

/// A law of the simulator for a name in the kernel.
fn law(kernel: &str) -> (String, String) {
    match kernel {
        "reno" => ("newreno".to_owned(), String::new()),
        // The agent's own: the kernel's CUBIC, bounded.
        name if name.starts_with("lasthop") => ("cubic".to_owned(), String::new()),
        name if name.parse::<LawName>().is_ok() => (name.to_owned(), String::new()),
        other => ("cubic".to_owned(), format!("    # it had \"{other}\", which simulated hosts do not have")),
    }
}

fn flow(flow: &Flow, end_s: f64) -> String {
    let direction = match flow.way() {
        Way::Up => "up",
        Way::Down => "down",
    };
    let mut text = format!("[[hosts.flows]]    # {:.1} MB\n", flow.bytes() as f64 / 1e6);
    let _ = writeln!(text, "direction = \"{direction}\"\nstart_s = {:.1}", flow.first_s());
    let stop = flow.stopped_s(end_s);
    let own_pace = if let Some(rate_mbps) = flow.own_rate_mbps() {
        let bytes = (rate_mbps * GAP_MS * 1e3 / 8.0).round().clamp(1.0, 1e6);
        Some(format!(
            "kind = \"interactive\"    # nothing waited to be sent: its application sent {rate_mbps:.2} Mb/s\n\
             message_bytes = {bytes}\ngap_ms = {GAP_MS}\n",
        ))
    } else {
        let spells = flow.spells_s();
        spells.map(|(on_s, off_s)| format!("kind = \"on-off\"    # it paused\non_s = {on_s:.1}\noff_s = {off_s:.1}\n"))
    };
    match (own_pace, stop) {
        (Some(pace), stop) => {
            text.push_str(&pace);
            stop.into_iter().for_each(|stop| text.push_str(&format!("stop_s = {stop:.1}\n")));
        }
        // It ends with what it had to carry, at about the same time if it is as fast.
        (None, Some(stop)) => {
            let _ = writeln!(text, "transfer_kib = {}    # it ended at {stop:.1} s", flow.bytes() >> 10);
        }
        (None, None) => {}
    }
    text
}

/// When each further host was busy that has no record: its spells.
fn peers(records: &[Record], end_s: f64) -> Vec<Vec<(f64, f64)>> {
    let Some(first) = records.iter().max_by_key(|record| record.ticks.len()) else { return Vec::new() };
    let beyond = |terminals: u32| (terminals as usize).saturating_sub(records.len());
    let most = first.ticks.iter().map(|tick| beyond(tick.terminals)).max().unwrap_or(0);
    let spells = |rank: usize| {
        let mut spells: Vec<(f64, f64)> = Vec::new();
        for tick in
            first.ticks.iter().filter(|tick| beyond(tick.terminals) >= rank && (0.0..end_s).contains(&tick.at_s))
        {
            match spells.last_mut() {
                Some((_, until)) if tick.at_s - *until <= LEAST_PEER_S => *until = tick.at_s,
                _ => spells.push((tick.at_s, tick.at_s)),
            }
        }
        spells.retain(|(from, until)| until - from >= LEAST_PEER_S);
        spells
    };
    (1..=most).map(spells).filter(|spells| !spells.is_empty()).collect()
}

fn peer(number: usize, spells: &[(f64, f64)], like: &Record) -> String {
    let mut text = format!(
        "[[hosts]]\nname = \"peer-{number}\"    # a host with an agent and without a record: assumed to upload, as near as others\n\
         era = \"modern\"\n{}",
        policy(like)
    );
    for (from, until) in spells {
        let _ = writeln!(text, "[[hosts.flows]]\nstart_s = {from:.1}\nstop_s = {until:.1}");
    }
    text.push('\n');
    text
}

fn list(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        names => names.join(", "),
    }
}
