//! `lasthop laws show`: the sockets that have a law, as text and as JSON.

use crate::say;
use anyhow::Result;
use lasthop_connection::TcpState;
use lasthop_kernel::laws::{Error, Handles, Heuristics, Pins, SocketState, Value};
use lasthop_laws::{Applied, LawName, Parameters, is_of_the_other_base};
use lasthop_units::{Probability, Rate, Span};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

pub(super) fn show(law: Option<LawName>, as_json: bool) -> Result<()> {
    let pins = Pins::find();
    let mut found: Vec<(LawName, Handles)> = Vec::new();
    match law {
        Some(law) => found.push((law, pins.get(law)?)),
        None => {
            for law in LawName::for_the_kernel() {
                match pins.get(law) {
                    Ok(pinned) => found.push((law, pinned)),
                    Err(Error::NotLoaded { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    let names = Namespaces::find();
    let mut sockets: Vec<Shown> = Vec::new();
    for (law, pinned) in &found {
        let parameters = pinned.parameters()?;
        sockets.extend(pinned.sockets()?.into_iter().map(|socket| Shown::of(*law, &parameters, socket, &names)));
    }
    sockets.sort_by_key(|Shown { law, socket, .. }| (*law, socket.netns, socket.local, socket.remote));
    if as_json {
        let sockets: Vec<_> = sockets.iter().map(Shown::as_json).collect();
        return say(&serde_json::to_string_pretty(&json!({ "sockets": sockets }))?);
    }
    if sockets.is_empty() {
        let what = if found.is_empty() { "no law is loaded" } else { "no socket of any network namespace has it" };
        return say(what);
    }
    let mut text = String::new();
    for socket in &sockets {
        socket.write(&mut text)?;
    }
    say(&text)
}

/// A socket, with all that is shown of it.
struct Shown {
    law: LawName,
    socket: SocketState,
    /// The name of its network namespace.
    namespace: Option<String>,
    /// For a law that hears clients' reports.
    last_link: Option<Heard>,
}

impl Shown {
    fn of(law: LawName, parameters: &Parameters, socket: SocketState, names: &Namespaces) -> Self {
        let namespace = names.name(socket.netns).map(str::to_owned);
        let last_link = law.hears_reports().then(|| Heard::of(&socket, parameters));
        Self { law, socket, namespace, last_link }
    }

    fn as_json(&self) -> serde_json::Value {
        let Self { law, socket, namespace, last_link } = self;
        let state: serde_json::Map<_, _> =
            socket.fields.iter().map(|field| (field.name.clone(), value_json(&field.value))).collect();
        let mut told = json!({
            "law": law.as_str(),
            "network_namespace": socket.netns,
            "network_namespace_name": namespace,
            "cookie": socket.cookie,
            "local": socket.local.to_string(),
            "remote": socket.remote.to_string(),
            "cwnd_segments": socket.tcp.cwnd_segments,
            "ssthresh_segments": socket.tcp.ssthresh_segments,
            "in_flight_segments": socket.tcp.in_flight_segments,
            "srtt_us": socket.tcp.srtt.map(Span::as_micros),
            "min_rtt_us": socket.tcp.min_rtt.map(Span::as_micros),
            "congestion_state": format!("{:?}", socket.tcp.state),
            "segments_sent": socket.tcp.sent_segments,
            "retransmits": socket.tcp.retransmits,
            "losses": socket.losses,
            "tolerated": socket.tolerated,
            "timeouts": socket.timeouts,
            "back_offs": socket.back_offs,
            "undone": socket.undone,
            "state": state,
        });
        if let Some(heard) = last_link {
            told["last_link"] = heard.as_json();
        }
        told
    }

    fn write(&self, text: &mut String) -> Result<()> {
        let Self { law, socket, namespace, last_link } = self;
        let place = match namespace {
            Some(name) => format!("{name} ({})", socket.netns),
            None => socket.netns.to_string(),
        };
        writeln!(
            text,
            "{law}  {} -> {}  network namespace {place}, cookie {}",
            socket.local, socket.remote, socket.cookie
        )?;
        if let Some(heard) = last_link {
            for line in heard.lines() {
                writeln!(text, "  {line}")?;
            }
        }
        let ssthresh = socket.tcp.ssthresh_segments.map_or("none yet".into(), |segments| segments.to_string());
        let ms = |span: Option<Span>| {
            let digits = if span.is_some_and(|span| span < Span::from_millis(1)) { 3 } else { 1 };
            span.map_or("none yet".into(), |span| format!("{:.digits$} ms", span.as_millis_f64()))
        };
        let TcpState { cwnd_segments, in_flight_segments, state, srtt, min_rtt, .. } = socket.tcp;
        writeln!(
            text,
            "  cwnd {cwnd_segments}, ssthresh {ssthresh}, in flight {in_flight_segments}, {state:?}, round trip {} (lowest {})",
            ms(srtt),
            ms(min_rtt)
        )?;
        let SocketState { losses, tolerated, timeouts, back_offs, undone, .. } = socket;
        writeln!(
            text,
            "  losses {losses} ({tolerated} tolerated), timeouts {timeouts}, back-offs {back_offs}, undone {undone}"
        )?;
        let on_cubic = number(socket, "on_cubic").is_some_and(|on| on > 0);
        let idle = |name: &str| last_link.is_some() && is_of_the_other_base(name, on_cubic);
        let fields = socket.fields.iter().filter(|field| !idle(&field.name)).map(|field| match &field.value {
            Value::Number(number) => format!("{} {number}", field.name),
            Value::Numbers(numbers) => format!("{} {numbers:?}", field.name),
        });
        writeln!(text, "  {}", fields.collect::<Vec<_>>().join(", "))?;
        Ok(())
    }
}

fn value_json(value: &Value) -> serde_json::Value {
    // no field of a law has more than 64 bits
    let number = |number: &i128| {
        i64::try_from(*number)
            .map_or_else(|_| json!(u64::try_from(*number).unwrap_or_default()), |number| json!(number))
    };
    match value {
        Value::Number(value) => number(value),
        Value::Numbers(values) => values.iter().map(number).collect(),
    }
}

fn number(socket: &SocketState, name: &str) -> Option<u64> {
    match socket.fields.iter().find(|field| field.name == name)?.value {
        Value::Number(number) => u64::try_from(number).ok(),
        Value::Numbers(_) => None,
    }
}

/// The reports that the law lastlink has heard on a connection, in units.
struct Heard {
    /// `None`: no report.
    applied: Option<Applied>,
    /// How long the report is still valid; `None`: expired.
    valid_for: Option<Span>,
    /// The limit of PER (the parameter `error_max`); `None`: no limit.
    error_max: Option<f64>,
    segments_sent: u32,
    retransmits: u32,
}

impl Heard {
    fn of(socket: &SocketState, parameters: &Parameters) -> Self {
        let applied = Applied::from_state(|name| number(socket, name));
        let left = applied.map(|applied| applied.expires.saturating_since(socket.at));
        let error_max = parameters.get(LawName::Lastlink, "error_max");
        Self {
            applied,
            valid_for: left.filter(|left| !left.is_zero()),
            error_max: error_max.filter(|&most| most > 0.0),
            segments_sent: socket.tcp.sent_segments as u32, // the kernel counts 32 bits
            retransmits: socket.tcp.retransmits as u32,
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let Some(applied) = &self.applied else { return serde_json::Value::Null };
        let count = applied.loss_count(self.segments_sent, self.retransmits);
        json!({
            "bandwidth_mbps": applied.bandwidth.map(Rate::as_mbps),
            "packet_error_rate": applied.error_rate.map(Probability::get),
            "valid_for_s": self.valid_for.map(Span::as_secs_f64),
            "permitted": Heuristics::from_bits(applied.permitted).names().collect::<Vec<_>>(),
            "cwnd_max_segments": applied.cwnd_max_segments,
            "initial_segments": applied.initial_segments,
            "achieved_mbps": applied.achieved.map(Rate::as_mbps),
            "loss_ratio": count.ratio(),
            "counted_retransmits": count.retransmits,
            "counted_segments": count.segments_sent,
            "ignored_losses": applied.ignored_losses,
            "heeded_losses": {
                "excess": applied.heeded.excess,
                "in_turn": applied.heeded.in_turn,
                "queue": applied.heeded.queue,
                "without_report": applied.heeded.without_report,
            },
        })
    }

    /// The client's report; its effect on the law; the outcomes of losses.
    fn lines(&self) -> Vec<String> {
        let Some(applied) = &self.applied else { return vec!["the client has said nothing of its link".to_owned()] };
        vec![self.claim(applied), windows(applied), self.losses(applied)]
    }

    fn claim(&self, applied: &Applied) -> String {
        let bandwidth = applied.bandwidth.map(|rate| format!("{} Mb/s", rounded(rate.as_mbps())));
        let errors = applied.error_rate.map(|share| format!("{} of packets lost", percent(share.get())));
        let said: Vec<String> = bandwidth.into_iter().chain(errors).collect();
        let permitted = Heuristics::from_bits(applied.permitted);
        match (said.is_empty(), self.valid_for) {
            (true, _) => "client says that it does not know its link (any more)".to_owned(),
            (false, Some(left)) => {
                let left = left.as_secs_f64().ceil();
                format!("client says {}, for another {left} s; may use: {permitted}", said.join(", "))
            }
            (false, None) => format!("client said {}: expired, not used", said.join(", ")),
        }
    }

    fn losses(&self, applied: &Applied) -> String {
        let count = applied.loss_count(self.segments_sent, self.retransmits);
        let lost = match count.ratio() {
            Some(ratio) => format!("{} ({} of {})", percent(ratio), count.retransmits, count.segments_sent),
            None => "none yet".to_owned(),
        };
        let errors = match (applied.error_rate.map(Probability::get), self.error_max) {
            (None, _) => "unknown".to_owned(),
            (Some(share), Some(most)) if share > most => {
                format!("{}, of which {} count", percent(share), percent(most))
            }
            (Some(share), _) => percent(share),
        };
        let heeded = applied.heeded;
        let causes = [
            (heeded.excess, "PLR above PER"),
            (heeded.in_turn, "in turn"),
            (heeded.queue, "a queue"),
            (heeded.without_report, "no report"),
        ];
        let causes: Vec<String> =
            causes.iter().filter(|(count, _)| *count > 0).map(|(count, cause)| format!("{cause} {count}")).collect();
        let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
        format!(
            "PLR {lost}, PER {errors}; losses ignored {}, heeded {}{causes}",
            applied.ignored_losses,
            applied.heeded_losses()
        )
    }
}

fn windows(applied: &Applied) -> String {
    let segments = |count: u32| format!("{count} segments");
    format!(
        "Cwnd_max {}, began with {}; highest rate of a round trip {}",
        applied.cwnd_max_segments.map_or("none".to_owned(), segments),
        applied.initial_segments.map_or("the kernel's window".to_owned(), segments),
        applied.achieved.map_or("none yet".to_owned(), |rate| format!("{} Mb/s", rounded(rate.as_mbps())))
    )
}

/// Rounded to three digits.
fn rounded(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(2.0 - number.log10().floor());
    (number * unit).round() / unit
}

fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// The names of network namespaces, by number.
struct Namespaces(BTreeMap<u64, String>);

impl Namespaces {
    fn find() -> Self {
        let named = fs::read_dir("/run/netns").into_iter().flatten().filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.ino(), entry.file_name().to_string_lossy().into_owned()))
        });
        let mut names: BTreeMap<u64, String> = named.collect();
        if let Ok(own) = fs::metadata("/proc/thread-self/ns/net") {
            names.insert(own.ino(), "this one".into());
        }
        Self(names)
    }

    fn name(&self, number: u32) -> Option<&str> {
        self.0.get(&u64::from(number)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::Heeded;
    use lasthop_units::Time;

    /// 5.5 Mb/s and 0.1 %; of 1451 segments that count, 9 were retransmitted.
    fn heard() -> Heard {
        let applied = Applied {
            bandwidth: Some(Rate::from_mbps(5.5)),
            error_rate: Probability::new(0.001).ok(),
            expires: Time::ZERO,
            permitted: 7,
            cwnd_max_segments: Some(47),
            initial_segments: Some(44),
            achieved: Some(Rate::from_bps(5_261_000)),
            past_segments: 549,
            past_retransmits: 3,
            ignored_losses: 38,
            heeded: Heeded { excess: 3, in_turn: 2, ..Heeded::default() },
        };
        Heard {
            applied: Some(applied),
            valid_for: Some(Span::from_millis(13_200)),
            error_max: Some(0.02),
            segments_sent: 2000,
            retransmits: 12,
        }
    }

    fn with(change: impl FnOnce(&mut Applied)) -> Heard {
        let mut heard = heard();
        change(heard.applied.as_mut().expect("it has heard"));
        heard
    }

    #[test]
    fn what_is_heard_and_done_is_told_in_words_and_units() {
        assert_eq!(
            heard().lines(),
            [
                "client says 5.5 Mb/s, 0.1 % of packets lost, for another 14 s; may use: all",
                "Cwnd_max 47 segments, began with 44 segments; highest rate of a round trip 5.26 Mb/s",
                // 9/1451
                "PLR 0.62 % (9 of 1451), PER 0.1 %; losses ignored 38, heeded 5 (PLR above PER 3, in turn 2)",
            ]
        );
        let json = heard().as_json();
        assert_eq!((&json["bandwidth_mbps"], &json["heeded_losses"]["in_turn"]), (&5.5.into(), &2.into()));
        assert_eq!((&json["counted_retransmits"], &json["valid_for_s"]), (&9.into(), &13.2.into()));
    }

    #[test]
    fn what_is_not_known_or_does_not_count_is_said_so() {
        let first = |heard: &Heard| heard.lines().remove(0);
        assert_eq!(first(&Heard { applied: None, ..heard() }), "the client has said nothing of its link");
        assert_eq!(Heard { applied: None, ..heard() }.as_json(), serde_json::Value::Null);
        assert_eq!(
            first(&Heard { valid_for: None, ..heard() }),
            "client said 5.5 Mb/s, 0.1 % of packets lost: expired, not used"
        );
        let retracted = with(|applied| (applied.bandwidth, applied.error_rate) = (None, None));
        assert_eq!(first(&retracted), "client says that it does not know its link (any more)");
        assert!(retracted.lines()[2].contains("PER unknown;"), "{:?}", retracted.lines());
        let half = with(|applied| (applied.bandwidth, applied.permitted) = (None, 5));
        assert_eq!(first(&half), "client says 0.1 % of packets lost, for another 14 s; may use: max_cwnd,errors");
        let liar = with(|applied| applied.error_rate = Probability::new(0.5).ok());
        assert!(liar.lines()[2].contains("PER 50 %, of which 2 % count;"), "{:?}", liar.lines());
        let new = with(|applied| {
            (applied.cwnd_max_segments, applied.initial_segments, applied.achieved) = (None, None, None);
        });
        assert_eq!(
            new.lines()[1],
            "Cwnd_max none, began with the kernel's window; highest rate of a round trip none yet"
        );
        let silent = Heard { segments_sent: 549, retransmits: 3, ..heard() };
        assert!(silent.lines()[2].starts_with("PLR none yet, PER 0.1 %;"), "{:?}", silent.lines());
    }
}
