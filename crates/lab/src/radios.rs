//! Hosts whose last hop is Linux's own Wi-Fi: mac80211 with simulated radios (mac80211_hwsim), in an emulated machine.
//!
//! ```text
//!   host 0: TCP - mac80211 - radio 1 --+
//!   host 1: TCP - mac80211 - radio 2 --+-- medium -- radio 0 - mac80211 - access point - TUN --[ path ]-- TUN - TCP :server
//!   ...                                |   (model)                        (routes)             (model)
//! ```
//!
//! - Queues, rate control, small queues and TCP are the kernel's. Association is hostapd's and wpa_supplicant's, in the open.
//! - The medium is [`crate::medium()`], a thread of the run; the path with its delays, rates and losses is the model's network without Wi-Fi.
//! - 802.11g has no QoS: it contends by DCF, as the model's. 802.11n has no aggregates: all of it is voice, which mac80211 never aggregates,
//!   by DSCP 46 from stations, and down by a map of all DSCPs to user priority 6.
//! - mac80211 looks at its queues whenever a receiver's frames are done ([`crate::wakers`]).
//! - Nobody asks for addresses (ARP), and there is no IPv6: the air has the scenario's packets and beacons of once a second.
//!
//! *What it leaves out*: airtime fairness, for hwsim tells no airtimes; aggregates; several cells; changes of the scenario.

use crate::addresses::AddressPlan;
use crate::clock::{Clock, Schedule};
use crate::error::{Doing, Error, Result};
use crate::hosts::{DeviceDrops, Hosts, stack_of};
use crate::medium::{LinkCount, MediumReport, OfRun, check_medium, medium_of_run};
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::process::Process;
use crate::tun::INTERFACE;
use crate::wakers::Wakers;
use lasthop_network::{AccessConfig, HostConfig, QueueConfig, Standard, Topology, WiredAccessConfig};
use lasthop_scenario::{AccessResult, HostSpec, Scenario, StationResult};
use lasthop_units::{Rate, Span, Time};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The programs that such a run needs, each with the Debian package that brings it.
pub const RADIO_PROGRAMS: [(&str, &str); 3] =
    [("hostapd", "hostapd"), ("wpa_supplicant", "wpasupplicant"), ("iw", "iw")];
/// The most hosts: each is a radio with a supplicant.
pub const MOST_RADIO_HOSTS: usize = 30;
/// The access point's device.
pub(crate) const OF_ACCESS_POINT: &str = "wlan0";
const NETWORK: &str = "lasthop";
const FREQUENCY_MHZ: u32 = 2437;
/// Within which an access point begins, and a station is associated.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Where programs write their configuration and what they say.
const FOLDER: &str = "/tmp";
/// A wire that takes no time: between the access point and the path nobody waits.
const WIRE_MBPS: f64 = 100_000.0;
const WIRE_PACKETS: usize = 10_000;

/// Keys whose values may be any: those of the medium, of `[access]`.
const FREE_OF_ACCESS: [&str; 3] = ["after_collision", "frame_error_rate", "response_error_rate"];
/// Keys of `[[hosts]]` that say something about the last hop.
const OF_LAST_HOP: [&str; 10] =
    ["cell", "channel_width_mhz", "era", "mcs", "node", "rate_mbps", "roam", "spatial_streams", "standard", "x_m"];
/// Of `[hosts.tcp]`.
const OF_TCP: [&str; 3] = ["tsq", "tsq_limit_kib", "tsq_pacing_shift"];
/// Parts of a scenario that are for several cells, or change it.
const NOT_HAD: [&str; 4] = ["cells", "changes", "hearing", "links"];

/// Whether mac80211 can carry the last hop of this scenario.
///
/// # Errors
/// The first key that it cannot have, with its place and what is accepted.
pub fn check_radios(scenario: &Scenario) -> Result<()> {
    check_keys(scenario).map_err(|error| error.located(scenario))
}

fn check_keys(scenario: &Scenario) -> Result<()> {
    let refuse = |key: String, value: &Value, accepted: &str| {
        let value = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
        let reason = format!("--wifi mac80211 cannot have {value} (accepted: {accepted}); --wifi model can");
        Err(Error::Scenario { key, reason })
    };
    let json = scenario.to_json();
    for part in NOT_HAD {
        if json[part].as_array().is_some_and(|part| !part.is_empty()) {
            let reason = format!("--wifi mac80211 cannot have [[{part}]] (accepted: none); --wifi model can");
            return Err(Error::Scenario { key: part.to_owned(), reason });
        }
    }
    let standard = &json["access"]["standard"];
    let (usual, is_n) = match standard.as_str() {
        Some("802.11n") => (USUAL_N, true),
        Some("802.11g") | None => (USUAL_G, false),
        Some(_) => return refuse("access.standard".to_owned(), standard, "\"802.11g\", \"802.11n\""),
    };
    check_medium(scenario)?;
    let usual = Scenario::from_toml("mac80211", usual, &[]).expect("a scenario").to_json();
    let accepted = |key: &str, usual: &Value| match usual {
        Value::Null => format!("no {key}"),
        usual => usual.to_string(),
    };
    let none = Map::new();
    let (access, usual_access) = (&json["access"], &usual["access"]);
    let keys = [access, usual_access].map(|of| of.as_object().unwrap_or(&none).keys());
    for key in keys.into_iter().flatten().filter(|key| !FREE_OF_ACCESS.contains(&key.as_str())) {
        if access[key] != usual_access[key] {
            return refuse(format!("access.{key}"), &access[key], &accepted(key, &usual_access[key]));
        }
    }
    let usual = &usual["hosts"][0];
    for (block, host) in json["hosts"].as_array().into_iter().flatten().enumerate() {
        for (part, keys) in [("", &OF_LAST_HOP[..]), ("tcp.", &OF_TCP)] {
            let [host, usual] = [host, usual].map(|of| if part.is_empty() { of } else { &of["tcp"] });
            if let Some(key) = keys.iter().find(|key| host[**key] != usual[**key]) {
                return refuse(format!("hosts[{block}].{part}{key}"), &host[*key], &accepted(key, &usual[*key]));
            }
        }
        if host["tcp"]["delayed_ack_segments"].as_u64() > Some(2) {
            let key = format!("hosts[{block}].tcp.delayed_ack_segments");
            return refuse(key, &host["tcp"]["delayed_ack_segments"], "1, 2");
        }
        for (number, flow) in host["flows"].as_array().into_iter().flatten().enumerate() {
            if is_n && flow["dscp"] != usual["flows"][0]["dscp"] {
                let accepted = "46, voice, which is never aggregated";
                return refuse(format!("hosts[{block}].flows[{number}].dscp"), &flow["dscp"], accepted);
            }
        }
    }
    let hosts = scenario.expanded_hosts().len();
    if hosts > MOST_RADIO_HOSTS {
        return refuse(
            "hosts".to_owned(),
            &Value::from(format!("{hosts} hosts")),
            &format!("{MOST_RADIO_HOSTS} at most"),
        );
    }
    Ok(())
}

/// What mac80211 has, in the words of a scenario.
const USUAL_G: &str = "[access]\nstandard = \"802.11g\"\nrate_control = \"minstrel\"\nqueue = \"mac80211\"\nairtime_fairness = false\n\
                       [[hosts]]\nera = \"modern\"\n[hosts.tcp]\ntsq_pacing_shift = 7\n[[hosts.flows]]\n";
const USUAL_N: &str = "[access]\nstandard = \"802.11n\"\nband_ghz = 2.4\naggregate_frames = 1\nrate_control = \"minstrel_ht\"\n\
                       queue = \"mac80211\"\nairtime_fairness = false\n[[hosts]]\nera = \"modern\"\n[hosts.tcp]\ntsq_pacing_shift = 7\n\
                       [[hosts.flows]]\ndscp = 46\n";

/// What of the scenario has no effect over radios, for the reader of the result.
pub(crate) fn notes(hosts: &[HostSpec], medium: &MediumReport) -> Vec<String> {
    let mut notes = Vec::new();
    if hosts.iter().any(|host| host.kind.network.turnaround.1 > Span::ZERO) {
        notes.push("hosts.turnaround_us has no effect: hosts take the time that their kernel takes".to_owned());
    }
    let usual = Scenario::from_toml("mac80211", USUAL_G, &[]).expect("a scenario").hosts[0].kind.network.queue_packets;
    if hosts.iter().any(|host| host.kind.network.queue_packets != usual) {
        notes.push("hosts.queue_packets has no effect: mac80211 has its own queues".to_owned());
    }
    let dropped: u64 = medium.channels.iter().map(|channel| channel.dropped).sum();
    if dropped > 0 {
        notes.push(format!(
            "{dropped} frames were dropped below mac80211's queues: where 200 wait, mac80211_hwsim forgets the oldest"
        ));
    }
    notes
}

/// The path of the scenario without its Wi-Fi, for packets between access point and servers.
pub(crate) fn wires(scenario: &Scenario) -> lasthop_network::Config {
    let mut config = scenario.network().clone();
    if let Topology::AccessPoint { access, .. } = &mut config.topology {
        let (rate, queue) = (Rate::from_mbps(WIRE_MBPS), QueueConfig::fifo(WIRE_PACKETS));
        *access = AccessConfig::Wired(WiredAccessConfig { rate, delay: Span::ZERO, queue });
    }
    for host in &mut config.hosts {
        let HostConfig { path, path_jitter, is_idle, .. } = *host;
        *host = HostConfig { path, path_jitter, is_idle, ..HostConfig::new(WIRE_PACKETS) };
    }
    config
}

/// Takes the radio of this number out of the calling process's namespace into this one, where its device gets a name.
pub(crate) fn take_radio(number: usize, namespace: &Namespace, name: &str) -> Result<()> {
    let devices = format!("/sys/class/ieee80211/phy{number}/device/net");
    let device = fs::read_dir(&devices).doing(format_args!("cannot read {devices}"))?.next();
    let device = device.ok_or_else(|| Error::Machine(format!("the radio {number} has no device")))?;
    let device = device.doing(format_args!("cannot read {devices}"))?.file_name();
    let path = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    said(None, "iw", &[&format!("phy#{number}"), "set", "netns", "name", &path])?;
    namespace.run(|| {
        let index = if_nametoindex(device.as_os_str()).doing("a radio has lost its device")?;
        Netlink::open()?.rename(index, name)
    })
}

/// An access point with its stations, and the medium between them. All of it ends with this.
pub(crate) struct Cell {
    of_run: Arc<OfRun>,
    stop: Arc<AtomicBool>,
    medium: Option<JoinHandle<Result<MediumReport>>>,
    programs: Vec<Process>,
}

impl Cell {
    /// Associates the hosts with the access point, and makes both ready for IP. `None` if `stop` ended that.
    ///
    /// # Errors
    /// A program does not start, or a station is not associated within a minute.
    pub(crate) fn begin(
        scenario: &Scenario,
        specs: &[HostSpec],
        hosts: &Hosts,
        access_point: &Namespace,
        ended: &AtomicBool,
    ) -> Result<Option<Self>> {
        let (of_run, stop) = (Arc::new(OfRun::default()), Arc::new(AtomicBool::new(false)));
        let (began, begins) = mpsc::channel();
        let medium = {
            let (scenario, of_run, stop) = (scenario.clone(), Arc::clone(&of_run), Arc::clone(&stop));
            thread::spawn(move || medium_of_run(&scenario, &of_run, &stop, move |_| began.send(()).unwrap_or_default()))
        };
        let mut cell = Self { of_run, stop, medium: Some(medium), programs: Vec::new() };
        if begins.recv().is_err() {
            let ended = cell.report().err();
            return Err(ended.unwrap_or_else(|| Error::Machine("the medium of the radios has not begun".to_owned())));
        }
        let is_n = check_medium(scenario)?.standard == Standard::N;
        let log = cell.start("hostapd", &[], &access_point_conf(is_n), "ap", access_point)?;
        let is_up = || Ok(fs::read_to_string(&log).unwrap_or_default().contains("AP-ENABLED"));
        if !wait_until("an access point", &log, ended, is_up)? {
            return Ok(None);
        }
        let mut logs = Vec::with_capacity(specs.len());
        for (number, host) in hosts.hosts().iter().enumerate() {
            // Before the association, so that no station falls asleep meanwhile.
            said(Some(host), "iw", &["dev", INTERFACE, "set", "power_save", "off"])?;
            let arguments = ["-i", INTERFACE, "-c"];
            logs.push(cell.start("wpa_supplicant", &arguments, &station_conf(), &format!("host-{number}"), host)?);
        }
        let authorized = || {
            let known = said(Some(access_point), "iw", &["dev", OF_ACCESS_POINT, "station", "dump"])?;
            let is_one = |line: &str| line.split_once("authorized:").is_some_and(|(_, is)| is.trim() == "yes");
            Ok(known.lines().filter(|line| is_one(line)).count() == specs.len())
        };
        if !wait_until("the association of all stations", &log, ended, authorized)? {
            return Ok(None);
        }
        let router = access_point.run(|| hardware_address(OF_ACCESS_POINT))?;
        let mut stations = Vec::with_capacity(specs.len());
        for ((spec, host), log) in specs.iter().zip(hosts.hosts()).zip(&logs) {
            let connected = || Ok(said(Some(host), "iw", &["dev", INTERFACE, "link"])?.starts_with("Connected"));
            if !wait_until("the association of a station", log, ended, connected)? {
                return Ok(None);
            }
            host.run(|| {
                let index = if_nametoindex(INTERFACE).doing("a radio has no device")?;
                let mut netlink = Netlink::open()?;
                netlink.add_address(index, AddressPlan::host(spec.index).into(), AddressPlan::HOST_PREFIX)?;
                netlink.add_neighbour(index, AddressPlan::ACCESS_POINT, router)?;
                netlink.add_route_by(AddressPlan::ACCESS_POINT, stack_of(&spec.kind).route_metrics())
            })?;
            stations.push((spec.index, host.run(|| hardware_address(INTERFACE))?));
        }
        access_point.run(|| {
            let index = if_nametoindex(OF_ACCESS_POINT).doing("a radio has no device")?;
            let mut netlink = Netlink::open()?;
            netlink.add_address(index, AddressPlan::ACCESS_POINT.into(), AddressPlan::HOST_PREFIX)?;
            stations
                .iter()
                .try_for_each(|&(host, station)| netlink.add_neighbour(index, AddressPlan::host(host), station))
        })?;
        let addressed = specs.iter().zip(hosts.hosts()).map(|(spec, host)| (host, AddressPlan::host(spec.index)));
        let _ = cell.of_run.wakers.set(Wakers::new(access_point, &addressed.collect::<Vec<_>>())?);
        Ok(Some(cell))
    }

    /// What is counted is from the end of the warm-up to the end of this run.
    pub(crate) fn count(&self, clock: Clock, schedule: Schedule) {
        let _ = self.of_run.window.set((clock, Time::ZERO + schedule.warmup, Time::ZERO + schedule.end));
    }

    /// Ends the medium, and says what it has counted.
    pub(crate) fn report(&mut self) -> Result<MediumReport> {
        self.stop.store(true, Ordering::Relaxed);
        let medium = self.medium.take().expect("it is asked once");
        medium.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a program with a configuration. Returns the file that gets what it says.
    fn start(&mut self, program: &str, words: &[&str], conf: &str, name: &str, inside: &Namespace) -> Result<PathBuf> {
        let [conf_path, log] = ["conf", "log"].map(|ending| PathBuf::from(format!("{FOLDER}/{name}.{ending}")));
        fs::write(&conf_path, conf)
            .doing(format_args!("cannot write {}, the configuration of {program}", conf_path.display()))?;
        let cannot = || format!("cannot write {}, what {program} says", log.display());
        let file = File::create(&log).doing(cannot())?;
        let mut command = Command::new(program);
        command.args(words).arg(&conf_path).stdin(Stdio::null());
        command.stdout(file.try_clone().doing(cannot())?).stderr(file);
        self.programs.push(Process::spawn(command, inside, &[]).doing(format_args!("cannot start {program}"))?);
        Ok(log)
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.medium.take().map(JoinHandle::join);
    }
}

/// As scripts/test-mac80211 has found: 802.11g without QoS, and 802.11n with all of it voice.
fn access_point_conf(is_n: bool) -> String {
    let of_n =
        "ieee80211n=1\nwmm_enabled=1\nqos_map_set=255,255,255,255,255,255,255,255,255,255,255,255,0,63,255,255\n";
    let of_standard = if is_n { of_n } else { "ieee80211n=0\nwmm_enabled=0\n" };
    format!(
        "interface={OF_ACCESS_POINT}\ndriver=nl80211\nssid={NETWORK}\nhw_mode=g\nchannel=6\nbeacon_int=1000\n\
         supported_rates=60 90 120 180 240 360 480 540\nbasic_rates=60 120 240\n{of_standard}"
    )
}

/// One stream of 802.11n.
fn station_conf() -> String {
    format!(
        "network={{\nssid=\"{NETWORK}\"\nkey_mgmt=NONE\nscan_freq={FREQUENCY_MHZ}\nht_mcs=\"0xff 00 00 00 00 00 00 00 00 00\"\n}}\n"
    )
}

/// Whether it has become so, or `ended` was set before. `log`: what the program says that is to do it.
fn wait_until(what: &str, log: &Path, ended: &AtomicBool, is_so: impl Fn() -> Result<bool>) -> Result<bool> {
    let since = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        if is_so()? {
            return Ok(true);
        }
        if since.elapsed() > READY_WITHIN {
            let said = fs::read_to_string(log).unwrap_or_default();
            let last = said.lines().next_back().unwrap_or("nothing");
            return Err(Error::Child(format!("{what} did not come about in {} s: {last}", READY_WITHIN.as_secs())));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(false)
}

/// What a program says in a namespace, or in this one.
fn said(inside: Option<&Namespace>, program: &str, words: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = match inside {
        Some(inside) => Process::spawn(command, inside, &[]),
        None => Process::spawn_here(command),
    };
    let mut process = process.doing(format_args!("cannot start {program}"))?;
    let (mut said, mut errors) = (String::new(), String::new());
    let reads = process.0.stdout.take().map_or(Ok(0), |mut from| from.read_to_string(&mut said));
    reads.doing(format_args!("cannot read what {program} says"))?;
    let reads = process.0.stderr.take().map_or(Ok(0), |mut from| from.read_to_string(&mut errors));
    reads.doing(format_args!("cannot read what {program} says"))?;
    let status = process.0.wait().doing(format_args!("cannot wait for {program}"))?;
    if status.success() {
        return Ok(said);
    }
    Err(Error::Child(format!("{program} {} failed: {}", words.join(" "), errors.trim())))
}

/// The hardware address of a device of the calling thread's namespace.
fn hardware_address(name: &str) -> Result<[u8; 6]> {
    let all = getifaddrs().doing("cannot read hardware addresses")?;
    let own = all.filter(|one| one.interface_name == name).find_map(|one| one.address?.as_link_addr()?.addr());
    own.ok_or_else(|| Error::Machine(format!("the device {name} has no hardware address")))
}

/// What mac80211's queues have dropped and marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Queued {
    pub(crate) drops: u64,
    pub(crate) marks: u64,
}

/// That of the access point, and that of the hosts together, since the association.
pub(crate) fn queued(access_point: &Namespace, hosts: &[Namespace]) -> Result<[Queued; 2]> {
    let of = |namespace, device| {
        let text = said(Some(namespace), "iw", &["dev", device, "station", "dump", "-v"])?;
        read(&text).ok_or_else(|| Error::Child("iw says nothing of mac80211's queues: a newer one does".to_owned()))
    };
    let mut of_hosts = Queued::default();
    for host in hosts {
        let Queued { drops, marks } = of(host, INTERFACE)?;
        of_hosts = Queued { drops: of_hosts.drops + drops, marks: of_hosts.marks + marks };
    }
    Ok([of(access_point, OF_ACCESS_POINT)?, of_hosts])
}

/// Reads the tables of TXQs of `iw station dump -v`: a line of heads, and one for each TID. `None`: there is none.
fn read(text: &str) -> Option<Queued> {
    let mut columns = None;
    let mut queued = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.contains(&"overlmt") {
            columns = Some(["drops", "overlmt", "marks"].map(|head| words.iter().position(|word| *word == head)));
            queued = queued.or(Some(Queued::default()));
            continue;
        }
        let Some([drops, over, marks]) = columns else { continue };
        let number = |at: Option<usize>| at.and_then(|at| words.get(at)?.parse::<u64>().ok());
        match (number(drops), number(over), number(marks)) {
            (Some(drops), Some(over), Some(marks)) => {
                queued = queued
                    .map(|so_far: Queued| Queued { drops: so_far.drops + drops + over, marks: so_far.marks + marks });
            }
            _ => columns = None,
        }
    }
    queued
}

/// The last hop of a result: what the medium and mac80211 have counted. What only the model knows is absent.
pub(crate) fn access(medium: &MediumReport, drops: DeviceDrops, path_drops: u64) -> AccessResult {
    let sum = |of: fn(&crate::ChannelReport) -> u64| medium.channels.iter().map(of).sum::<u64>();
    let air = own_channel(medium).map(|channel| channel.air);
    let shares = air.map(|air| {
        [
            ("idle", air.idle),
            ("contention", air.contention),
            ("success", air.success),
            ("broadcast", air.broadcast),
            ("collision", air.collision),
            ("error", air.error),
        ]
    });
    let station = |(host, [up, down]): (u16, &[LinkCount; 2])| StationResult {
        host,
        up_phy_rate_mbps: up.phy_rate_mbps(),
        down_phy_rate_mbps: down.phy_rate_mbps(),
        up_retries: up.retries(),
        down_retries: down.retries(),
        up_aggregate_frames: None,
        down_aggregate_frames: None,
        up_air_share: None,
        down_air_share: None,
    };
    AccessResult {
        downlink_drops: drops.down.drops,
        downlink_marks: drops.down.marks,
        uplink_drops: drops.queued,
        retry_drops: sum(|channel| channel.lost),
        path_drops,
        collisions: sum(|channel| channel.collisions),
        retries: medium.links.iter().flatten().map(LinkCount::retries).sum(),
        air_shares: shares.into_iter().flatten().map(|(name, share)| (name.to_owned(), share)).collect(),
        stations: (0..).zip(&medium.links).map(station).collect(),
        ..AccessResult::default()
    }
}

/// The share of the time in which somebody sent.
pub(crate) fn busy(medium: &MediumReport) -> f64 {
    let busy = |channel: &crate::ChannelReport| 1.0 - channel.air.idle - channel.air.contention;
    own_channel(medium).map_or(0.0, busy)
}

/// The access point's.
fn own_channel(medium: &MediumReport) -> Option<&crate::ChannelReport> {
    medium.channels.iter().find(|channel| channel.frequency_mhz == FREQUENCY_MHZ)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<()> {
        check_keys(&Scenario::from_toml("cell.toml", text, &[]).expect("a scenario"))
    }

    #[test]
    fn what_mac80211_has_is_accepted() {
        check(USUAL_G).expect("802.11g");
        check(USUAL_N).expect("802.11n");
        let free = "frame_error_rate = 0.1\nresponse_error_rate = 0.01\n[[hosts]]\ncount = 30\nname = \"a\"\nturnaround_us = [50, 150]\n\
                    queue_packets = 200\npath_rtt_ms = [10, 90]\ncongestion_control = \"reno\"\n";
        check(&USUAL_G.replacen("[[hosts]]\n", free, 1)).expect("what is of hosts and of the medium");
        check(&USUAL_N.replacen("[[hosts]]\n", "[path]\nloss = 0.1\n[[hosts]]\nsnr_db = 12\n", 1)).expect("an SNR");
    }

    #[test]
    fn what_mac80211_cannot_have_is_refused_by_its_key_with_what_it_has() {
        for (usual, from, to, key, accepted) in [
            (USUAL_G, "802.11g\"", "802.11b\"\nrate_mbps = 11", "access.standard", "\"802.11g\", \"802.11n\""),
            (USUAL_G, "\"mac80211\"\nairtime_fairness = false", "\"fifo\"", "access.queue", "\"mac80211\""),
            (USUAL_G, "fairness = false", "fairness = true", "access.airtime_fairness", "false"),
            (USUAL_G, "= \"minstrel\"", "= \"fixed\"", "access.rate_control", "\"minstrel\""),
            (
                USUAL_G,
                "queue =",
                "rts_threshold_bytes = 500\nqueue =",
                "access.rts_threshold_bytes",
                "no rts_threshold_bytes",
            ),
            (USUAL_G, "\"modern\"", "\"2012\"", "hosts[0].era", "\"modern\""),
            (USUAL_G, "shift = 7", "shift = 10", "hosts[0].tcp.tsq_pacing_shift", "7"),
            (USUAL_G, "[[hosts]]", "[[changes]]\nat_s = 3\nrate_mbps = 6\n[[hosts]]", "changes", "none"),
            (
                USUAL_G,
                "802.11g\"\nrate_control = \"minstrel\"",
                "802.11ax\"",
                "access.standard",
                "\"802.11g\", \"802.11n\"",
            ),
            (USUAL_G, "[[hosts]]", "[[hosts]]\ncount = 31", "hosts", "30 at most"),
            (USUAL_N, "frames = 1", "frames = 64", "access.aggregate_frames", "1"),
            (USUAL_N, "2.4", "5", "access.band_ghz", "2.4"),
            (USUAL_N, "dscp = 46", "dscp = 0", "hosts[0].flows[0].dscp", "46"),
            (USUAL_N, "[[hosts]]", "[[hosts]]\nmcs = 3", "hosts[0].mcs", "no mcs"),
        ] {
            assert!(usual.contains(from), "{from}");
            let message = check(&usual.replacen(from, to, 1)).expect_err(key).to_string();
            assert!(message.starts_with(&format!("{key}: --wifi mac80211 cannot have ")), "{message}");
            assert!(message.contains(&format!("(accepted: {accepted}")), "{message}");
        }
        // What no medium between radios has.
        let message = check("[access]\nkind = \"wired\"\nrate_mbps = 10\n[[hosts]]\n").expect_err("a wire").to_string();
        assert!(message.starts_with("access.kind: ") && message.contains("wifi"), "{message}");
    }

    #[test]
    fn the_drops_and_marks_of_all_queues_are_counted() {
        // As iw 5.19 writes them, of two TIDs.
        let text = "Station 02:00:00:00:01:00 (on wlan0)\n\ttx retries:\t12\n\tMSDU:\n\t\tTID\trx\ttx\ttx retries\ttx failed\n\
                    \t\t0\t1\t2\t3\t4\n\tTXQs:\n\t\tTID\tqsz-byt\tqsz-pkt\tflows\tdrops\tmarks\toverlmt\thashcol\ttx-bytes\ttx-packets\n\
                    \t\t0\t0\t0\t9\t5\t2\t1\t0\t100\t10\n\t\t6\t0\t0\t9\t7\t3\t0\t0\t100\t10\nStation 02:00:00:00:02:00\n\t6\t6\n";
        assert_eq!(read(text), Some(Queued { drops: 13, marks: 5 }));
        assert_eq!(read("Station 02:00:00:00:01:00 (on wlan0)\n\ttx retries:\t12\n"), None);
    }

    #[test]
    fn a_result_has_what_the_medium_and_the_queues_have_counted() {
        let air =
            crate::AirShares { idle: 0.25, contention: 0.25, success: 0.5, broadcast: 0.0, collision: 0.0, error: 0.0 };
        let channel = crate::ChannelReport {
            frequency_mhz: FREQUENCY_MHZ,
            frames: 10,
            tries: 12,
            collisions: 2,
            collided: 4,
            errors: 1,
            acknowledged: 6,
            lost: 1,
            dropped: 3,
            air,
        };
        let medium = MediumReport {
            duration_s: 1.0,
            radios: 2,
            channels: vec![channel],
            refused: 0,
            unread: 0,
            strangers: 0,
            foreign_rates: 0,
            lateness_us: lasthop_scenario::Lateness { p50: 0.0, p99: 0.0, max: 0.0 },
            late: false,
            links: vec![[LinkCount::of(4, 7), LinkCount::of(3, 5)]],
        };
        let drops = DeviceDrops { queued: 7, unread: 0, down: Queued { drops: 8, marks: 9 } };
        let access = access(&medium, drops, 4);
        assert_eq!((access.retries, access.collisions, access.retry_drops, access.path_drops), (5, 2, 1, 4));
        assert_eq!((access.uplink_drops, access.downlink_drops, access.downlink_marks), (7, 8, 9));
        assert_eq!((access.to_all_share, access.broadcast_losses, access.downlink_queue_mean), (None, None, None));
        assert_eq!((busy(&medium), access.air_shares["success"]), (0.5, 0.5));
    }

    #[test]
    fn the_path_stays_and_the_wifi_goes() {
        let text = USUAL_N.replacen(
            "[[hosts]]\n",
            "[path]\nrtt_ms = 70\nloss = 0.1\n[[hosts]]\nsnr_db = 12\npath_rtt_ms = [5, 10]\n",
            1,
        );
        let scenario = Scenario::from_toml("cell.toml", &text, &[]).expect("a scenario");
        let wires = wires(&scenario);
        let network = lasthop_network::Network::<()>::new(&wires, 1).expect("a network");
        assert!(network.queues().iter().any(|place| matches!(place, lasthop_network::QueueId::PathUp)));
        assert!(wires.hosts[0].path.is_some() && wires.hosts[0].snr_db.is_none());
        let (Topology::AccessPoint { path: one, .. }, Topology::AccessPoint { path: other, .. }) =
            (&wires.topology, &scenario.network().topology)
        else {
            panic!("both have an access point");
        };
        assert_eq!(one, other);
    }
}
