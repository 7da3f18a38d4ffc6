//! One label, one colour and one marker for each item of figures and tables.
//!
//! The categorical colours come from M. Okabe and K. Ito, *Color Universal Design*, 2008. They remain distinct with
//! every common form of colour blindness. If all connections are of one kind, many hosts take steps of viridis, which
//! also rises in lightness.

pub(crate) use lasthop_laws::Marker;

use lasthop_laws::LawName;
use lasthop_scenario::{CaseResult, Comparison, FlowResult, RunResult};

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// The label and colour of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) label: String,
    pub(crate) colour: Colour,
}

impl Colour {
    pub(crate) fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Text and axes. The page has its own variants of these six for a dark background.
pub(crate) const INK: Colour = Colour(0x1F, 0x29, 0x33);
/// Labels of axes.
pub(crate) const MUTED: Colour = Colour(0x5B, 0x67, 0x75);
/// Lines of the grid.
pub(crate) const GRID: Colour = Colour(0xE2, 0xE6, 0xEB);
/// The background.
pub(crate) const PAPER: Colour = Colour(0xFF, 0xFF, 0xFE);
/// The warm-up.
pub(crate) const SHADE: Colour = Colour(0xED, 0xF0, 0xF4);
/// Limits, dashed.
pub(crate) const LIMIT: Colour = Colour(0x11, 0x18, 0x28);

const GREY: Colour = Colour(0x8A, 0x93, 0xA0);
const BLUE: Colour = Colour(0x00, 0x72, 0xB2);
const GREEN: Colour = Colour(0x00, 0x9E, 0x73);
const VERMILLION: Colour = Colour(0xD5, 0x5E, 0x00);
const PURPLE: Colour = Colour(0xCC, 0x79, 0xA7);
const ORANGE: Colour = Colour(0xE6, 0x9F, 0x00);
const SKY: Colour = Colour(0x56, 0xB4, 0xE9);
/// This and the next two are from P. Tol's muted scheme. They extend the seven above.
const WINE: Colour = Colour(0x88, 0x22, 0x55);
const OLIVE: Colour = Colour(0x99, 0x99, 0x33);
const ROSE: Colour = Colour(0xCC, 0x66, 0x77);
/// This and the next, from the same scheme, are the two directions. Nothing else uses them.
const INDIGO: Colour = Colour(0x33, 0x22, 0x88);
const TEAL: Colour = Colour(0x44, 0xAA, 0x99);
/// Colours of items without their own, in this order.
const CATEGORIES: [Colour; 10] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, GREY, WINE, OLIVE, ROSE];
/// Up to this number, each host has a category. More hosts take steps of a scale.
const MOST_HOST_CATEGORIES: usize = 7;

/// The markers of lines, one for each of the first seven of [`CATEGORIES`]. Then they repeat.
const MARKERS: [Marker; 7] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down, Marker::Ring, Marker::Frame];

/// Theory and published points, each with its dashes. Nothing else uses these colours.
pub(crate) const REFERENCES: [(Colour, &str); 4] = [
    (Colour(0x11, 0x18, 0x27), "10 7"),
    (Colour(0x4B, 0x55, 0x63), "3 6"),
    (Colour(0x4B, 0x55, 0x64), "16 6 3 6"),
    (Colour(0x6B, 0x72, 0x80), "22 8"),
];

/// Policies, directions, and congestion controls other than ours, under their names in studies: the same in every
/// figure.
const NAMED: [(&[&str], Colour, Marker); 12] = [
    (&["bbr"], WINE, Marker::Square),
    (&["none", "no policy"], GREY, Marker::Circle),
    (&["fixed", "fixed bound", "best bound", "best fixed bound"], GREEN, Marker::Square),
    (&["formula"], BLUE, Marker::Diamond),
    (&["lasthop"], VERMILLION, Marker::Circle),
    (&["table"], SKY, Marker::Square),
    (&["cooperative"], PURPLE, Marker::Triangle),
    (&["cooperative-loose"], WINE, Marker::Down),
    (&["count"], ORANGE, Marker::Diamond),
    (&["keceli"], OLIVE, Marker::Down),
    (&["upload", "up"], INDIGO, Marker::Triangle),
    (&["download", "down"], TEAL, Marker::Down),
];

/// The colour and marker of this name in every figure.
fn named(name: &str) -> Option<(Colour, Marker)> {
    let name = name.to_lowercase();
    let other = NAMED.iter().find(|(names, ..)| names.contains(&name.as_str()));
    law(&name).or(other.map(|(_, colour, marker)| (*colour, *marker)))
}

/// The colour and marker of a law, by its name or lower-case label; "reno" is the kernel's name of NewReno.
fn law(name: &str) -> Option<(Colour, Marker)> {
    let name = if name == "reno" { "newreno" } else { name };
    let law = LawName::ALL.into_iter().find(|law| law.as_str() == name || law.label().to_lowercase() == name)?;
    let (colour, marker) = law.look();
    let colour = match colour {
        lasthop_laws::Colour::Blue => BLUE,
        lasthop_laws::Colour::Vermillion => VERMILLION,
        lasthop_laws::Colour::Green => GREEN,
        lasthop_laws::Colour::Purple => PURPLE,
        lasthop_laws::Colour::Orange => ORANGE,
        lasthop_laws::Colour::Sky => SKY,
        lasthop_laws::Colour::Grey => GREY,
        lasthop_laws::Colour::Wine => WINE,
        lasthop_laws::Colour::Olive => OLIVE,
        lasthop_laws::Colour::Rose => ROSE,
        lasthop_laws::Colour::Free => return None,
    };
    Some((colour, marker))
}

/// The marker of the item with this index.
pub(crate) fn marker(index: usize) -> Marker {
    MARKERS[index % MARKERS.len()]
}

/// The categories not taken.
fn free_categories(taken: &[Colour]) -> impl Iterator<Item = Colour> + use<> {
    let taken = taken.to_vec();
    CATEGORIES.into_iter().filter(move |colour| !taken.contains(colour))
}

/// The styles of a study's lines. Known names have their fixed style, and the others take the free colours in order.
/// Only beyond the number of colours do colours repeat, with other markers.
pub(crate) fn lines(labels: &[&str]) -> Vec<(Look, Marker)> {
    let taken: Vec<(Colour, Marker)> = labels.iter().filter_map(|label| named(label)).collect();
    let colours: Vec<Colour> = taken.iter().map(|(colour, _)| *colour).collect();
    let pair = |index: usize| {
        let round = index / CATEGORIES.len();
        (CATEGORIES[index % CATEGORIES.len()], MARKERS[(index + 3 * round) % MARKERS.len()])
    };
    let first = (0..CATEGORIES.len()).map(pair).filter(|(colour, _)| !colours.contains(colour));
    let again = (CATEGORIES.len()..).map(pair).filter(|pair| !taken.contains(pair));
    let mut free = first.chain(again);
    let looks = labels.iter().map(|label| {
        let (colour, marker) = named(label).or_else(|| free.next()).expect("there is always a next one");
        (Look { label: (*label).to_owned(), colour }, marker)
    });
    looks.collect()
}

/// The style of a study's reference, by its index among all references.
pub(crate) fn reference(index: usize, label: &str) -> Look {
    Look { label: label.to_owned(), colour: REFERENCES[index % REFERENCES.len()].0 }
}

/// viridis from 0.2 to 0.85: both ends are visible on white and on black.
const RAMP: [Colour; 5] = [
    Colour(0x41, 0x44, 0x87),
    Colour(0x2A, 0x78, 0x8E),
    Colour(0x22, 0xA8, 0x84),
    Colour(0x5E, 0xC9, 0x62),
    Colour(0xA5, 0xDB, 0x36),
];

/// The congestion-avoidance states, by the kernel's numbers.
pub(crate) const STATES: [(&str, Colour); 5] = [
    ("0 Open", Colour(0xD5, 0xE3, 0xEE)),
    ("1 Disorder", SKY),
    ("2 CWR", GREEN),
    ("3 Recovery", ORANGE),
    ("4 Loss", VERMILLION),
];

/// For a state number unknown to the kernel.
pub(crate) const UNKNOWN_STATE: Colour = GREY;

/// The label and colour of a policy, by its name in the scenario. Policies without a colour of their own share one that
/// no other policy has.
pub(crate) fn policy(name: &str) -> Look {
    let label = match name {
        "none" => "no policy",
        "fixed" => "fixed bound",
        other => other,
    };
    Look { label: label.to_owned(), colour: named(name).map_or(ROSE, |(colour, _)| colour) }
}

/// The label and colour of a direction.
pub(crate) fn direction(name: &str) -> Look {
    Look { label: name.to_owned(), colour: named(name).map_or(GREY, |(colour, _)| colour) }
}

/// Every policy of a connection in these cases.
pub(crate) fn policies(comparison: &Comparison) -> Vec<&str> {
    distinct(flows(comparison).map(|flow| flow.policy.as_str()))
}

fn flows(comparison: &Comparison) -> impl Iterator<Item = &FlowResult> {
    comparison.cases.iter().flat_map(|case| &case.runs).flat_map(|run| &run.flows)
}

fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What cases may differ in: a name of a connection that has one, and its colour if that has one.
type By = fn(&FlowResult) -> Option<(&str, Option<Colour>)>;

/// The styles of a comparison's cases. If they differ in policy, a case with one policy for all hosts has that policy's
/// colour, which several cases may share. Otherwise, if they differ in congestion control, it is that of the control.
/// The other cases take the free colours. If they differ in neither, each case has its own colour.
pub(crate) fn cases(comparison: &Comparison) -> Vec<Look> {
    let by: [By; 2] = [
        |flow| Some((&flow.policy, Some(policy(&flow.policy).colour))),
        |flow| {
            let control = flow.congestion_control.as_deref()?;
            Some((control, named(control).map(|(colour, _)| colour)))
        },
    ];
    let by = by.into_iter().find(|by| distinct(flows(comparison).filter_map(by).map(|(name, _)| name)).len() > 1);
    let taken: Vec<Colour> = by.map_or(Vec::new(), |by| flows(comparison).filter_map(|flow| by(flow)?.1).collect());
    let mut free = free_categories(&taken);
    let look = |(index, case): (usize, &CaseResult)| {
        let colour = by
            .and_then(|by| only(case.runs.first()?, by))
            .or_else(|| free.next())
            .unwrap_or_else(|| step(index as f64 / comparison.cases.len() as f64));
        Look { label: case.label.clone(), colour }
    };
    comparison.cases.iter().enumerate().map(look).collect()
}

/// The colour that all connections of a run have.
fn only(run: &RunResult, by: By) -> Option<Colour> {
    let mut named = run.flows.iter().filter_map(by);
    let (name, colour) = named.next()?;
    colour.filter(|_| named.all(|(other, _)| other == name))
}

/// The dashes of the lines of cases, by their index: they keep cases of one colour apart.
pub(crate) fn dashes(looks: &[Look]) -> Vec<usize> {
    let before = |index: usize| looks[..index].iter().filter(|look| look.colour == looks[index].colour).count();
    (0..looks.len()).map(before).collect()
}

/// A host's name, or else its number.
pub(crate) fn host_name(run: &RunResult, host: u16) -> String {
    run.host_name(host).unwrap_or_else(|| format!("host {host}"))
}

/// A connection's name: its host and, if that has several, its number.
pub(crate) fn flow_name(run: &RunResult, flow: &FlowResult) -> String {
    let host = host_name(run, flow.host);
    let several = run.flows.iter().filter(|other| other.host == flow.host).count() > 1;
    if several { format!("{host}, flow {}", flow.id) } else { host }
}

/// The styles of one run's connections: by kind if there are several, else by host number.
pub(crate) struct FlowLooks {
    kinds: Vec<(String, Look)>,
    /// Each host's label.
    hosts: Vec<String>,
}

impl FlowLooks {
    pub(crate) fn of(run: &RunResult) -> Self {
        let mut kinds: Vec<(String, Look)> = Vec::new();
        for flow in &run.flows {
            let kind = kind(flow);
            if !kinds.iter().any(|(known, _)| *known == kind) {
                kinds.push((kind.clone(), Look { label: kind, colour: GREY }));
            }
        }
        let hosts = run.flows.iter().map(|flow| flow.host + 1).max().unwrap_or(0);
        let hosts = (0..hosts).map(|host| host_name(run, host)).collect();
        let mut kinds = shortened(kinds);
        // Kinds that differ only in policy or congestion control have the usual colours of these.
        let labels: Vec<String> = kinds.iter().map(|(_, look)| look.label.clone()).collect();
        let looks = lines(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        kinds.iter_mut().zip(looks).for_each(|((_, look), (drawn, _))| look.colour = drawn.colour);
        Self { kinds, hosts }
    }

    /// Whether colours stand for kinds of connections and not for hosts.
    pub(crate) fn by_kind(&self) -> bool {
        self.kinds.len() > 1
    }

    pub(crate) fn colour(&self, flow: &FlowResult) -> Colour {
        if !self.by_kind() {
            return host(usize::from(flow.host), self.hosts.len());
        }
        let kind = kind(flow);
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(GREY, |(_, look)| look.colour)
    }

    pub(crate) fn label(&self, flow: &FlowResult) -> String {
        let kind = kind(flow);
        let look = self.kinds.iter().find(|(known, _)| self.by_kind() && *known == kind);
        look.map_or_else(|| self.hosts[usize::from(flow.host)].clone(), |(_, look)| look.label.clone())
    }

    /// The entries of a legend; `Err` with the number of hosts, and what they are called, if colours form a scale.
    pub(crate) fn legend(&self) -> Result<Vec<Look>, (usize, String)> {
        if self.by_kind() {
            return Ok(self.kinds.iter().map(|(_, look)| look.clone()).collect());
        }
        if self.hosts.len() > MOST_HOST_CATEGORIES {
            let [first, last] = [0, self.hosts.len() - 1].map(|host| self.hosts[host].as_str());
            // "host 0 to 9", or "laptop to uploader-10".
            let last = last.strip_prefix("host ").filter(|_| first.starts_with("host ")).unwrap_or(last);
            return Err((self.hosts.len(), format!("{first} to {last}")));
        }
        let colour = |index| host(index, self.hosts.len());
        let look = |(index, label): (usize, &String)| Look { label: label.clone(), colour: colour(index) };
        Ok(self.hosts.iter().enumerate().map(look).collect())
    }
}

/// The colour of a host by number: a category if there are enough, else a step of the ramp.
pub(crate) fn host(index: usize, hosts: usize) -> Colour {
    if hosts <= MOST_HOST_CATEGORIES {
        CATEGORIES[index % CATEGORIES.len()]
    } else {
        step(index as f64 / (hosts - 1) as f64)
    }
}

fn step(place: f64) -> Colour {
    let scaled = place.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let (from, to) = (RAMP[scaled.floor() as usize], RAMP[scaled.ceil() as usize]);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * scaled.fract()).round() as u8;
    Colour(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn kind(flow: &FlowResult) -> String {
    let direction = match flow.direction {
        lasthop_scenario::Direction::Up => "upload",
        lasthop_scenario::Direction::Down => "download",
    };
    let over = if flow.kind == "quic" { " over QUIC" } else { "" };
    let sent_by = flow.congestion_control.as_ref().unwrap_or(&flow.kind);
    format!("{direction}{over} · {sent_by} · {}", policy(&flow.policy).label)
}

/// Removes the parts common to all kinds.
fn shortened(mut kinds: Vec<(String, Look)>) -> Vec<(String, Look)> {
    let parts: Vec<Vec<String>> =
        kinds.iter().map(|(kind, _)| kind.split(" · ").map(str::to_owned).collect()).collect();
    let differs = |at: usize| parts.iter().any(|other| other[at] != parts[0][at]);
    let kept: Vec<usize> = (0..3).filter(|at| !parts.is_empty() && differs(*at)).collect();
    for ((_, look), parts) in kinds.iter_mut().zip(&parts) {
        let words: Vec<&str> = kept.iter().map(|at| parts[*at].as_str()).collect();
        if !words.is_empty() {
            look.label = words.join(" · ");
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_looks_the_same_in_every_figure() {
        let of = |labels: &[&str], label: &str| {
            let looks = lines(labels);
            let (look, marker) = looks.iter().find(|(look, _)| look.label == label).expect("it is there");
            (look.colour, *marker)
        };
        let all = ["reno", "cubic", "bbr", "HD", "CHD", "CDG", "CDG (Linux)", "UCC"];
        for control in all {
            assert_eq!(of(&[control], control), of(&all, control));
        }
        assert_eq!(of(&["NewReno", "CHD"], "NewReno"), of(&all, "reno"));
    }

    #[test]
    fn a_policy_has_one_colour_and_no_two_have_the_same() {
        let names =
            ["none", "fixed", "formula", "lasthop", "table", "cooperative", "cooperative-loose", "count", "keceli"];
        let colours: Vec<Colour> = names.iter().map(|name| policy(name).colour).collect();
        for (index, (name, colour)) in names.iter().zip(&colours).enumerate() {
            assert!(!colours[..index].contains(colour), "{name}");
            assert_eq!(lines(&["x", name])[1].0.colour, *colour, "{name}");
            assert_eq!(lines(&[&policy(name).label])[0].0.colour, *colour, "{name}");
        }
    }

    #[test]
    fn no_two_lines_of_a_figure_look_alike() {
        let labels =
            ["UCC, 10 ms", "UCC", "NewReno", "x", "bbr", "y", "z", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let looks = lines(&labels);
        for (index, (look, marker)) in looks.iter().enumerate() {
            let alike = looks[..index].iter().find(|(other, same)| other.colour == look.colour && same == marker);
            assert_eq!(alike, None, "{}", look.label);
        }
        for (index, (look, _)) in looks[..CATEGORIES.len()].iter().enumerate() {
            assert!(looks[..index].iter().all(|(other, _)| other.colour != look.colour), "{}", look.label);
        }
        // Without known names: the first two categories.
        let (first, second) = (&lines(&["a", "b"])[0], &lines(&["a", "b"])[1]);
        assert_eq!((first.0.colour, first.1, second.0.colour), (BLUE, Marker::Circle, VERMILLION));
    }
}
