//! `lasthop laws show`: the sockets that have a law, in words and as JSON.

use crate::say;
use anyhow::Result;
use kernel::laws::{Error, Law, Pinned, Pins, SocketState, Value};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

pub(super) fn show(law: Option<Law>, as_json: bool) -> Result<()> {
    let pins = Pins::find();
    let mut found: Vec<(Law, Pinned)> = Vec::new();
    match law {
        Some(law) => found.push((law, pins.get(law)?)),
        None => {
            for law in Law::ALL {
                match pins.get(law) {
                    Ok(pinned) => found.push((law, pinned)),
                    Err(Error::NotLoaded { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    let names = Namespaces::find();
    let mut sockets: Vec<(Law, SocketState)> = Vec::new();
    for (law, pinned) in &found {
        sockets.extend(pinned.sockets()?.into_iter().map(|socket| (*law, socket)));
    }
    sockets.sort_by_key(|(law, socket)| (*law, socket.netns, socket.local, socket.remote));
    if as_json {
        let sockets: Vec<_> = sockets.iter().map(|(law, socket)| socket_json(*law, socket, &names)).collect();
        return say(&serde_json::to_string_pretty(&json!({ "sockets": sockets }))?);
    }
    if sockets.is_empty() {
        let what = if found.is_empty() { "no law is loaded" } else { "no socket of any network namespace has it" };
        return say(what);
    }
    let mut text = String::new();
    for (law, socket) in &sockets {
        write_socket(&mut text, *law, socket, &names)?;
    }
    say(&text)
}

fn value_json(value: &Value) -> serde_json::Value {
    // every field of a law has 64 bits at most
    let number = |number: &i128| {
        i64::try_from(*number)
            .map_or_else(|_| json!(u64::try_from(*number).unwrap_or_default()), |number| json!(number))
    };
    match value {
        Value::Number(value) => number(value),
        Value::Numbers(values) => values.iter().map(number).collect(),
    }
}

fn socket_json(law: Law, socket: &SocketState, names: &Namespaces) -> serde_json::Value {
    let state: serde_json::Map<_, _> =
        socket.fields.iter().map(|field| (field.name.clone(), value_json(&field.value))).collect();
    let micros = |span: units::Span| span.as_nanos() / 1000;
    json!({
        "law": law.as_str(),
        "network_namespace": socket.netns,
        "network_namespace_name": names.name(socket.netns),
        "cookie": socket.cookie,
        "local": socket.local.to_string(),
        "remote": socket.remote.to_string(),
        "cwnd_segments": socket.cwnd_segments,
        "ssthresh_segments": socket.ssthresh_segments,
        "in_flight_segments": socket.in_flight_segments,
        "srtt_us": socket.srtt.map(micros),
        "min_rtt_us": socket.min_rtt.map(micros),
        "congestion_state": format!("{:?}", socket.state),
        "losses": socket.losses,
        "tolerated": socket.tolerated,
        "timeouts": socket.timeouts,
        "back_offs": socket.back_offs,
        "undone": socket.undone,
        "state": state,
    })
}

fn write_socket(text: &mut String, law: Law, socket: &SocketState, names: &Namespaces) -> Result<()> {
    let place = match names.name(socket.netns) {
        Some(name) => format!("{name} ({})", socket.netns),
        None => socket.netns.to_string(),
    };
    writeln!(
        text,
        "{law}  {} -> {}  network namespace {place}, cookie {}",
        socket.local, socket.remote, socket.cookie
    )?;
    let ssthresh = socket.ssthresh_segments.map_or("none yet".into(), |segments| segments.to_string());
    let ms = |span: Option<units::Span>| {
        span.map_or("none yet".into(), |span| format!("{:.1} ms", span.as_nanos() as f64 / 1e6))
    };
    let SocketState { cwnd_segments, in_flight_segments, state, srtt, min_rtt, .. } = socket;
    writeln!(
        text,
        "  cwnd {cwnd_segments}, ssthresh {ssthresh}, in flight {in_flight_segments}, {state:?}, round trip {} (lowest {})",
        ms(*srtt),
        ms(*min_rtt)
    )?;
    let SocketState { losses, tolerated, timeouts, back_offs, undone, .. } = socket;
    writeln!(
        text,
        "  losses {losses} ({tolerated} tolerated), timeouts {timeouts}, back-offs {back_offs}, undone {undone}"
    )?;
    let fields = socket.fields.iter().map(|field| match &field.value {
        Value::Number(number) => format!("{} {number}", field.name),
        Value::Numbers(numbers) => format!("{} {numbers:?}", field.name),
    });
    writeln!(text, "  {}", fields.collect::<Vec<_>>().join(", "))?;
    Ok(())
}

/// The network namespaces that have a name, by number.
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
