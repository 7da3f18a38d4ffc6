//! Keys of Wi-Fi: what goes with a standard, and what it has no use for.

use super::{AccessKeys, AccessKind, HostKeys, ScenarioKeys, microseconds, whole, word};
use lasthop_keys::{Preset, Problem, Takes, by_word, integer, key, number};
use lasthop_network::{Band, ChannelWidth, GuardInterval, Modulation, Standard, WifiConfig};
use lasthop_units::Span;
use toml::{Table, Value};

pub(super) const STANDARDS: [(&str, Standard); 6] = [
    ("802.11b", Standard::B),
    ("802.11g", Standard::G),
    ("802.11bg", Standard::Bg),
    ("802.11n", Standard::N),
    ("802.11ac", Standard::Ac),
    ("802.11ax", Standard::Ax),
];
/// Those with a frame in a transmission, and those with A-MPDUs.
pub(super) const EARLIER: [&str; 3] = ["802.11b", "802.11g", "802.11bg"];
pub(super) const LATER: [&str; 3] = ["802.11n", "802.11ac", "802.11ax"];

pub(super) fn width() -> Takes<ChannelWidth> {
    integer(20, 160).and_then(|mhz: u32| {
        ChannelWidth::from_mhz(mhz)
            .ok_or_else(|| Problem::new(format!("{mhz} MHz is no width of a channel"), "20, 40, 80, 160"))
    })
}

pub(super) fn band() -> Takes<Band> {
    number(2.4, 5.0).and_then(|ghz| {
        let band = [Band::Ghz2_4, Band::Ghz5].into_iter().find(|band| band.ghz() == ghz);
        band.ok_or_else(|| Problem::new(format!("{ghz} GHz is no band here"), "2.4, 5"))
    })
}

pub(super) fn guard_interval() -> Takes<GuardInterval> {
    microseconds(0.4, 3.2).and_then(|span| {
        let problem = || format!("{} us is no guard interval", in_us(span));
        GuardInterval::from_span(span).ok_or_else(|| Problem::new(problem(), "0.4, 0.8, 1.6, 3.2"))
    })
}

/// What 802.11n, 802.11ac and 802.11ax usually have, as the network says; nothing with the others.
pub(super) fn later_standards<T: Into<Preset>>(usual: fn(WifiConfig) -> T) -> Preset {
    let preset = |(word, standard): (&'static str, Standard)| (word, usual(WifiConfig::new(standard)));
    let [.., n, ac, ax] = STANDARDS.map(preset);
    by_word(key!(AccessKeys, standard), [n, ac, ax])
}

pub(super) fn in_us(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// The channel that goes with the standard and the band.
pub(super) fn usual_width(access: &Table) -> Option<Value> {
    let standard = standard(access).filter(|standard| standard.aggregates())?;
    let usual = if is_at_2_4_ghz(access) { ChannelWidth::Mhz20 } else { Modulation::new(standard).width };
    Some(Value::Integer(usual.mhz().into()))
}

/// Whether an access of 802.11n or later is at 2.4 GHz.
fn is_at_2_4_ghz(access: &Table) -> bool {
    access.get(key!(AccessKeys, band_ghz)).and_then(Value::as_float) == Some(Band::Ghz2_4.ghz())
}

/// The highest MCS of a standard of A-MPDUs over the channel with the streams.
pub(super) fn highest_mcs(access: &Table) -> Option<Value> {
    let standard = standard(access)?;
    let width = ChannelWidth::from_mhz(whole(access, key!(AccessKeys, channel_width_mhz))?)?;
    let streams = whole(access, key!(AccessKeys, spatial_streams))?;
    Modulation::mcss(standard, width, streams).last().map(|mcs| Value::Integer(mcs.into()))
}

/// The PHY or link rate that goes with the kind of access.
pub(super) fn access_rate(access: &Table) -> Option<Value> {
    let rate = match (word(access, key!(AccessKeys, kind))?, word(access, key!(AccessKeys, standard))?) {
        ("wired", _) => 100.0,
        (_, "802.11b") => 11.0,
        // Without a rate where the keys make no modulation: the mistake is told of them.
        (_, standard) if LATER.contains(&standard) => rate_of_mcs(access).unwrap_or(54.0),
        _ => 54.0,
    };
    Some(Value::Float(rate))
}

fn rate_of_mcs(access: &Table) -> Option<f64> {
    let guard_interval = Span::from_secs_f64(access.get(key!(AccessKeys, guard_interval_us))?.as_float()? / 1e6);
    let modulation = Modulation {
        mcs: whole(access, key!(AccessKeys, mcs))?,
        spatial_streams: whole(access, key!(AccessKeys, spatial_streams))?,
        width: ChannelWidth::from_mhz(whole(access, key!(AccessKeys, channel_width_mhz))?)?,
        guard_interval: GuardInterval::from_span(guard_interval)?,
    };
    Some(modulation.rate(standard(access)?).as_mbps())
}

/// The standard of a Wi-Fi access whose rate is that of its MCS.
fn standard_with_mcs(access: &Table) -> Option<&str> {
    let is_wifi = word(access, key!(AccessKeys, kind)) == Some(AccessKind::Wifi.as_str());
    word(access, key!(AccessKeys, standard)).filter(|standard| is_wifi && LATER.contains(standard))
}

/// The MCS says it in 802.11n and later.
pub(super) fn rate_in_vain(access: &Table, _file: &Table) -> Option<String> {
    let standard = standard_with_mcs(access)?;
    let is_another = access.get(key!(AccessKeys, rate_mbps)) != access_rate(access).as_ref();
    is_another.then(|| format!("standard is \"{standard}\", and its rate is that of mcs"))
}

/// Only 2.4 GHz has rates of 802.11b.
pub(super) fn dsss_in_vain(access: &Table, _file: &Table) -> Option<String> {
    let standard = word(access, key!(AccessKeys, standard)).filter(|standard| LATER.contains(standard))?;
    (!is_at_2_4_ghz(access)).then(|| format!("standard is \"{standard}\", and the channel is at 5 GHz"))
}

/// The same, and only beside stations of 802.11b is anything protected at such a rate.
pub(super) fn protection_in_vain(access: &Table, file: &Table) -> Option<String> {
    match word(access, key!(AccessKeys, standard))? {
        alone @ ("802.11b" | "802.11g") => Some(format!("standard is \"{alone}\"")),
        _ => dsss_in_vain(access, file),
    }
}

/// A standard that the host's is not one of.
fn standard_of_host_is_none_of(standards: [&str; 3], host: &Table, file: &Table) -> Option<String> {
    let own = word(host, key!(HostKeys, standard)).map(|own| (key!(HostKeys, standard), own));
    let access = || Some(("access.standard", word(file.get("access")?.as_table()?, key!(AccessKeys, standard))?));
    let (key, standard) = own.or_else(access)?;
    let accepted = standards.map(|standard| format!("\"{standard}\"")).join(", ");
    (!standards.contains(&standard)).then(|| format!("{key} is \"{standard}\", and it is for {accepted}"))
}

pub(super) fn rate_of_host_in_vain(host: &Table, file: &Table) -> Option<String> {
    standard_of_host_is_none_of(EARLIER, host, file)
}

pub(super) fn mcs_of_host_in_vain(host: &Table, file: &Table) -> Option<String> {
    standard_of_host_is_none_of(LATER, host, file)
}

fn standard(access: &Table) -> Option<Standard> {
    let word = word(access, key!(AccessKeys, standard))?;
    STANDARDS.into_iter().find(|(standard, _)| *standard == word).map(|(_, standard)| standard)
}

/// Takes the rate out of a whole scenario where the MCS says it: read again with another MCS or another standard, it would be wrong.
pub(crate) fn leave_out_rate_of_mcs(scenario: &mut Table) {
    if let Some(Value::Table(access)) = scenario.get_mut(key!(ScenarioKeys, access))
        && standard_with_mcs(access).is_some()
    {
        access.remove(key!(AccessKeys, rate_mbps));
    }
}
