//! One label, one colour and one marker for each item of figures and tables.
//!
//! The colours have the hues of M. Okabe and K. Ito, *Color Universal Design*, 2008, and of P. Tol's muted scheme, which
//! remain distinct with every common form of colour blindness. Their lightness L* (CIE 1976) is one of five, 12.5 apart, so
//! that they can be told apart in a grey print too. Items of one figure with the same lightness differ in marker and dashes. If all connections are of one kind, many hosts take steps of viridis, which also rises in lightness.

pub(crate) use lasthop_laws::Marker;

use lasthop_laws::LawName;
use lasthop_scenario::{CaseResult, Comparison, FlowResult, RunResult, Transport};

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// How an item is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) label: String,
    pub(crate) colour: Colour,
    /// Of its points.
    pub(crate) marker: Marker,
    /// The index of its lines' dashes in [`DASHES`]; 0: none.
    pub(crate) dash: usize,
}

impl Look {
    /// Of something that neither a marker nor dashes stand for.
    pub(crate) fn plain(label: &str, colour: Colour) -> Self {
        Self { label: label.to_owned(), colour, marker: Marker::Circle, dash: 0 }
    }
}

impl Colour {
    pub(crate) fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }

    /// L* of CIE 1976, from 0 (black) to 100 (white): what is left of a colour in a grey print.
    pub(crate) fn lightness(self) -> f64 {
        // IEC 61966-2-1 (sRGB): from the value of a channel to its light.
        let light = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = 0.2126 * light(self.0) + 0.7152 * light(self.1) + 0.0722 * light(self.2);
        if luminance > 216.0 / 24_389.0 { 116.0 * luminance.cbrt() - 16.0 } else { luminance * 24_389.0 / 27.0 }
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

// L* = 70
const GREY: Colour = Colour(0xA5, 0xAC, 0xB6);
const ORANGE: Colour = Colour(0xE4, 0x9D, 0x00);
const SKY: Colour = Colour(0x57, 0xB4, 0xE9);
// L* = 57.5
const VERMILLION: Colour = Colour(0xE3, 0x64, 0x00);
const PURPLE: Colour = Colour(0xC7, 0x6C, 0x9F);
/// Of a direction, as [`INDIGO`]. Nothing else uses these two.
const TEAL: Colour = Colour(0x3D, 0x99, 0x89);
// L* = 45
const GREEN: Colour = Colour(0x00, 0x7A, 0x58);
const OLIVE: Colour = Colour(0x6E, 0x6E, 0x25);
const ROSE: Colour = Colour(0xBA, 0x3E, 0x53);
// L* = 32.5
const BLUE: Colour = Colour(0x00, 0x50, 0x7E);
const WINE: Colour = Colour(0x8A, 0x23, 0x57);
// L* = 20
const BROWN: Colour = Colour(0x48, 0x29, 0x00);
const INDIGO: Colour = Colour(0x2E, 0x1F, 0x7B);

/// Colours of items without their own, in this order: the first five differ in lightness.
const CATEGORIES: [Colour; 11] = [BLUE, VERMILLION, GREEN, ORANGE, BROWN, PURPLE, WINE, SKY, OLIVE, GREY, ROSE];
/// Up to this number, each host has a category. More hosts take steps of a scale.
const MOST_HOST_CATEGORIES: usize = 7;
/// Two colours whose L* differ by this much can be told apart in grey.
const APART: f64 = 12.0;

/// The markers of items without their own, in this order.
const MARKERS: [Marker; 11] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Down,
    Marker::Ring,
    Marker::Frame,
    Marker::Cross,
    Marker::Plus,
    Marker::OpenTriangle,
    Marker::OpenDiamond,
];

/// The dashes of lines, in twice the pixels of a figure: of items, then of references, then of limits.
pub(crate) const DASHES: [&str; 15] = [
    "",
    "14 7",
    "4 5",
    "18 6 4 6",
    "8 12",
    "26 8",
    "12 5 4 5 4 5",
    "2 10",
    "26 6 10 6",
    "26 6 3 6 3 6 3 6",
    "10 7",
    "3 6",
    "16 6 3 6",
    "22 8",
    "9 7",
];
/// The number of these that items have.
const ITEM_DASHES: usize = 10;
const REFERENCE_DASHES: usize = 4;
/// Of limits.
pub(crate) const LIMIT_DASH: usize = ITEM_DASHES + REFERENCE_DASHES;

/// Theory and published points. They have no markers, and dashes of their own.
const REFERENCES: [Colour; REFERENCE_DASHES] =
    [Colour(0x11, 0x17, 0x26), Colour(0x2D, 0x33, 0x3B), Colour(0x47, 0x51, 0x5E), Colour(0x63, 0x71, 0x83)];

/// Policies, directions, and congestion controls other than ours, under their names in studies: the same in every
/// figure. No two policies have the same marker.
const NAMED: [(&[&str], Colour, Marker); 12] = [
    (&["bbr"], WINE, Marker::Square),
    (&["none", "no policy"], GREY, Marker::Cross),
    (&["fixed", "fixed bound", "best bound", "best fixed bound"], GREEN, Marker::Square),
    (&["formula"], BLUE, Marker::Diamond),
    (&["lasthop"], VERMILLION, Marker::Circle),
    (&["table"], SKY, Marker::Plus),
    (&["cooperative"], PURPLE, Marker::Triangle),
    (&["cooperative-loose"], WINE, Marker::Down),
    (&["count"], ORANGE, Marker::OpenDiamond),
    (&["keceli"], OLIVE, Marker::OpenTriangle),
    (&["upload", "up"], INDIGO, Marker::Triangle),
    (&["download", "down"], TEAL, Marker::Down),
];

/// The looks of items of one figure, with the colours and markers that they have in every figure, if any. Up to
/// fifty differ in lightness, or in both marker and dashes. The first with an own look has it; others that ask for the same get its colour with another marker.
/// Colours repeat only when all are taken.
fn looks(items: &[(&str, Option<(Colour, Marker)>)]) -> Vec<Look> {
    let mut looks: Vec<Option<Look>> = vec![None; items.len()];
    let repeated = |item: usize| items[..item].iter().any(|(_, own)| *own == items[item].1);
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|item| (items[*item].1.is_none(), repeated(*item)));
    for item in order {
        let (label, own) = items[item];
        let taken: Vec<&Look> = looks.iter().flatten().collect();
        looks[item] = Some(next_look(label, own, &taken));
    }
    looks.into_iter().flatten().collect()
}

fn next_look(label: &str, own: Option<(Colour, Marker)>, taken: &[&Look]) -> Look {
    let mut free = CATEGORIES.to_vec();
    free.sort_by_key(|colour| taken.iter().filter(|other| other.colour == *colour).count());
    let colours: Vec<Colour> = own.iter().map(|(colour, _)| *colour).chain(free).collect();
    let mut free = MARKERS.to_vec();
    free.sort_by_key(|marker| taken.iter().filter(|other| other.marker == *marker).count());
    let markers = || own.iter().map(|(_, marker)| *marker).chain(free.iter().copied());
    let of_colour = |colour: &Colour| {
        let marker = markers().find(|marker| near(*colour, taken).all(|other| other.marker != *marker))?;
        let dash = (0..ITEM_DASHES).find(|dash| near(*colour, taken).all(|other| other.dash != *dash))?;
        Some((*colour, marker, dash))
    };
    // With more items than can be told apart, no two look the same as long as there are combinations.
    let any = || {
        let mut all = colours.iter().flat_map(|colour| {
            MARKERS.iter().flat_map(move |marker| (0..ITEM_DASHES).map(move |dash| (*colour, *marker, dash)))
        });
        all.find(|look| taken.iter().all(|other| (other.colour, other.marker, other.dash) != *look))
    };
    let look = colours.iter().find_map(of_colour).or_else(any);
    let (colour, marker, dash) = look.unwrap_or((colours[0], MARKERS[0], 0));
    Look { label: label.to_owned(), colour, marker, dash }
}

/// Those that have nearly the lightness of this colour.
fn near<'a>(colour: Colour, taken: &[&'a Look]) -> impl Iterator<Item = &'a Look> {
    let lightness = colour.lightness();
    taken.iter().copied().filter(move |other| (other.colour.lightness() - lightness).abs() < APART)
}

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

/// The styles of a figure's items with these labels. Known names have their colour and marker, and the others take the free
/// ones in order.
pub(crate) fn lines(labels: &[&str]) -> Vec<Look> {
    looks(&labels.iter().map(|label| (*label, named(label))).collect::<Vec<_>>())
}

/// The style of a study's reference, by its index among all references.
pub(crate) fn reference(index: usize, label: &str) -> Look {
    let kind = index % REFERENCE_DASHES;
    Look { dash: ITEM_DASHES + kind, ..Look::plain(label, REFERENCES[kind]) }
}

/// viridis from 0.2 to 0.85: both ends are visible on white and on black.
const RAMP: [Colour; 5] = [
    Colour(0x41, 0x44, 0x87),
    Colour(0x2A, 0x78, 0x8E),
    Colour(0x22, 0xA8, 0x84),
    Colour(0x5E, 0xC9, 0x62),
    Colour(0xA5, 0xDB, 0x36),
];

/// The congestion-avoidance states, by the kernel's numbers: the worse the darker.
pub(crate) const STATES: [(&str, Colour); 5] = [
    ("0 Open", Colour(0xD7, 0xE4, 0xEF)),
    ("1 Disorder", Colour(0x74, 0xC2, 0xED)),
    ("2 CWR", Colour(0x5D, 0x9D, 0x86)),
    ("3 Recovery", Colour(0xA7, 0x54, 0x00)),
    ("4 Loss", Colour(0x8D, 0x15, 0x15)),
];

/// For a state number unknown to the kernel.
pub(crate) const UNKNOWN_STATE: Colour = Colour(0x22, 0x26, 0x2C);

/// The looks of policies in one figure, by their names in the scenario. Those without a colour of their own take free ones.
pub(crate) fn of_policies(names: &[&str]) -> Vec<Look> {
    lines(&names.iter().map(|name| policy_label(name)).collect::<Vec<_>>())
}

fn policy_label(name: &str) -> &str {
    match name {
        "none" => "no policy",
        "fixed" => "fixed bound",
        other => other,
    }
}

/// The looks of both directions: up, down.
pub(crate) fn directions() -> [Look; 2] {
    [("up", INDIGO, Marker::Triangle, 0), ("down", TEAL, Marker::Down, 0)].map(|(label, colour, marker, dash)| Look {
        label: label.to_owned(),
        colour,
        marker,
        dash,
    })
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

/// What cases may differ in: a name of a connection that has one, and its colour and marker if that has some.
type By = fn(&FlowResult) -> Option<(&str, Option<(Colour, Marker)>)>;

/// The styles of a comparison's cases. If they differ in policy, a case with one policy for all hosts has that policy's
/// colour, which several cases may share. Otherwise, if they differ in congestion control, it is that of the control.
/// The other cases take the free colours. If they differ in neither, each case has its own colour.
pub(crate) fn cases(comparison: &Comparison) -> Vec<Look> {
    let by: [By; 2] = [
        |flow| Some((&flow.policy, named(&flow.policy))),
        |flow| {
            let control = flow.congestion_control.as_deref()?;
            Some((control, named(control)))
        },
    ];
    let by = by.into_iter().find(|by| distinct(flows(comparison).filter_map(by).map(|(name, _)| name)).len() > 1);
    let own = |case: &CaseResult| by.and_then(|by| only(case.runs.first()?, by));
    looks(&comparison.cases.iter().map(|case| (case.label.as_str(), own(case))).collect::<Vec<_>>())
}

/// The colour and marker that all connections of a run have.
fn only(run: &RunResult, by: By) -> Option<(Colour, Marker)> {
    let mut named = run.flows.iter().filter_map(by);
    let (name, look) = named.next()?;
    look.filter(|_| named.all(|(other, _)| other == name))
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
    /// By number.
    hosts: Vec<Look>,
}

impl FlowLooks {
    pub(crate) fn of(run: &RunResult) -> Self {
        let mut kinds: Vec<String> = Vec::new();
        for flow in &run.flows {
            let kind = kind(flow);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let hosts = run.flows.iter().map(|flow| flow.host + 1).max().unwrap_or(0);
        let names: Vec<String> = (0..hosts).map(|host| host_name(run, host)).collect();
        // Kinds that differ only in policy or congestion control have the usual colours of these.
        let labels = shortened(&kinds);
        let looks = lines(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        Self { kinds: kinds.into_iter().zip(looks).collect(), hosts: of_hosts(&names) }
    }

    /// Whether colours stand for kinds of connections and not for hosts.
    pub(crate) fn by_kind(&self) -> bool {
        self.kinds.len() > 1
    }

    /// The look of a connection; its label is that of its kind or host.
    pub(crate) fn look(&self, flow: &FlowResult) -> &Look {
        if !self.by_kind() {
            return &self.hosts[usize::from(flow.host)];
        }
        let kind = kind(flow);
        let look = self.kinds.iter().find(|(known, _)| *known == kind);
        look.map_or(&self.hosts[usize::from(flow.host)], |(_, look)| look)
    }

    /// The entries of a legend; `Err` with the number of hosts, and what they are called, if colours form a scale.
    pub(crate) fn legend(&self) -> Result<Vec<Look>, (usize, String)> {
        if self.by_kind() {
            return Ok(self.kinds.iter().map(|(_, look)| look.clone()).collect());
        }
        if self.hosts.len() > MOST_HOST_CATEGORIES {
            let [first, last] = [0, self.hosts.len() - 1].map(|host| self.hosts[host].label.as_str());
            // "host 0 to 9", or "laptop to uploader-10".
            let last = last.strip_prefix("host ").filter(|_| first.starts_with("host ")).unwrap_or(last);
            return Err((self.hosts.len(), format!("{first} to {last}")));
        }
        Ok(self.hosts.clone())
    }
}

/// The looks of hosts: categories if there are enough, else steps of the ramp.
fn of_hosts(names: &[String]) -> Vec<Look> {
    if names.len() <= MOST_HOST_CATEGORIES {
        return looks(&names.iter().map(|name| (name.as_str(), None)).collect::<Vec<_>>());
    }
    let look = |(index, name): (usize, &String)| Look::plain(name, host(index, names.len()));
    names.iter().enumerate().map(look).collect()
}

/// The colour of what alone is drawn.
pub(crate) const ALONE: Colour = BLUE;

/// The step of the ramp for a host by number.
pub(crate) fn host(index: usize, hosts: usize) -> Colour {
    step(index as f64 / hosts.saturating_sub(1).max(1) as f64)
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
    let over = if flow.transport() == Transport::Quic { " over QUIC" } else { "" };
    let sent_by = flow.congestion_control.as_ref().unwrap_or(&flow.kind);
    format!("{direction}{over} · {sent_by} · {}", policy_label(&flow.policy))
}

/// The kinds without the parts common to all.
fn shortened(kinds: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = kinds.iter().map(|kind| kind.split(" · ").collect()).collect();
    let differs = |at: &usize| parts.iter().any(|other| other[*at] != parts[0][*at]);
    let kept: Vec<usize> = (0..3).filter(|at| !parts.is_empty() && differs(at)).collect();
    let short = |(kind, parts): (&String, &Vec<&str>)| {
        let words: Vec<&str> = kept.iter().map(|at| parts[*at]).collect();
        if words.is_empty() { kind.clone() } else { words.join(" · ") }
    };
    kinds.iter().zip(&parts).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether these two can be told apart without their colours: by lightness, or by both marker and dashes.
    fn apart(one: &Look, other: &Look) -> bool {
        (one.colour.lightness() - other.colour.lightness()).abs() >= APART
            || (one.marker != other.marker && one.dash != other.dash)
    }

    /// Every name of the table, and every law with a colour of its own.
    fn all_named() -> Vec<&'static str> {
        let laws = LawName::ALL.into_iter().map(LawName::as_str).filter(|name| named(name).is_some());
        NAMED.iter().map(|(names, ..)| names[0]).chain(laws).collect()
    }

    #[track_caller]
    fn assert_apart(looks: &[Look]) {
        for (index, look) in looks.iter().enumerate() {
            let alike = looks[..index].iter().find(|other| !apart(look, other));
            assert_eq!(alike, None, "{look:?}");
        }
    }

    /// The values of Bruce Lindbloom's calculator, for D65.
    #[test]
    fn lightness_is_that_of_cie_1976() {
        for (colour, lightness) in
            [(Colour(255, 255, 255), 100.0), (Colour(0, 0, 0), 0.0), (Colour(119, 119, 119), 50.03)]
        {
            assert!((colour.lightness() - lightness).abs() < 0.01, "{colour:?}: {}", colour.lightness());
        }
    }

    #[test]
    fn all_policies_laws_and_directions_can_be_told_apart_in_one_grey_figure() {
        assert_apart(&lines(&all_named()));
        let main: Vec<f64> =
            of_policies(&["none", "lasthop", "fixed", "formula"]).iter().map(|look| look.colour.lightness()).collect();
        assert!(main.is_sorted_by(|lighter, darker| lighter - darker >= APART), "{main:?}");
    }

    #[test]
    fn up_to_fifty_items_can_be_told_apart_in_grey_whatever_they_are() {
        let names = all_named();
        for items in 1..=50 {
            let labels: Vec<String> = (0..items).map(|item| format!("case {item}")).collect();
            let all: Vec<&str> = labels.iter().map(String::as_str).collect();
            assert_apart(&lines(&all));
            // As cases of a comparison: some share the colour of their policy or law.
            for policies in 1..=names.len() {
                let own = |item: usize| named(names[item % policies]).filter(|_| !item.is_multiple_of(3));
                assert_apart(&looks(&(0..items).map(|item| (all[item], own(item))).collect::<Vec<_>>()));
            }
        }
        // Named ones among others.
        let mixed: Vec<&str> =
            names.iter().copied().chain(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).collect();
        assert_apart(&lines(&mixed));
    }

    #[test]
    fn of_a_hundred_items_no_two_look_the_same() {
        let labels: Vec<String> = (0..100).map(|item| format!("case {item}")).collect();
        let looks = lines(&labels.iter().map(String::as_str).collect::<Vec<_>>());
        for (index, look) in looks.iter().enumerate() {
            let same =
                |other: &&Look| (other.colour, other.marker, other.dash) == (look.colour, look.marker, look.dash);
            assert_eq!(looks[..index].iter().find(same), None);
        }
    }

    #[test]
    fn references_states_and_the_scale_of_hosts_differ_in_lightness() {
        let lightness = |colours: Vec<Colour>| colours.into_iter().map(Colour::lightness).collect::<Vec<f64>>();
        assert!(lightness(REFERENCES.to_vec()).is_sorted_by(|darker, lighter| lighter - darker >= APART));
        let states = STATES.iter().map(|(_, colour)| *colour).chain([UNKNOWN_STATE]).collect();
        assert!(lightness(states).is_sorted_by(|lighter, darker| lighter - darker >= APART));
        for hosts in [8, 10, 50, 200] {
            let scale = lightness((0..hosts).map(|index| host(index, hosts)).collect());
            // Channels are whole numbers.
            assert!(
                scale.is_sorted_by(|darker, lighter| lighter - darker > -0.5) && scale[hosts - 1] - scale[0] > 45.0,
                "{scale:?}"
            );
        }
        assert_apart(&directions());
    }

    #[test]
    fn a_congestion_control_looks_the_same_in_every_figure() {
        let of = |labels: &[&str], label: &str| {
            let looks = lines(labels);
            let look = looks.iter().find(|look| look.label == label).expect("it is there");
            (look.colour, look.marker)
        };
        let all = ["reno", "cubic", "bbr", "HD", "CHD", "CDG", "CDG (Linux)", "UCC"];
        for control in all {
            assert_eq!(of(&[control], control), of(&all, control));
        }
        assert_eq!(of(&["NewReno", "CHD"], "NewReno"), of(&all, "reno"));
    }

    #[test]
    fn a_policy_has_one_colour_and_no_two_have_the_same_colour_or_the_same_marker() {
        let names =
            ["none", "fixed", "formula", "lasthop", "table", "cooperative", "cooperative-loose", "count", "keceli"];
        let looks = of_policies(&names);
        for (index, (name, look)) in names.iter().zip(&looks).enumerate() {
            let alike = looks[..index].iter().find(|other| other.colour == look.colour || other.marker == look.marker);
            assert_eq!(alike, None, "{name}");
            let beside = &lines(&["x", name])[1];
            assert_eq!((beside.colour, beside.marker), (look.colour, look.marker), "{name}");
        }
    }

    #[test]
    fn without_known_names_the_first_categories_are_taken() {
        let looks = lines(&["a", "b"]);
        assert_eq!((looks[0].colour, looks[0].marker, looks[0].dash), (BLUE, Marker::Circle, 0));
        assert_eq!((looks[1].colour, looks[1].marker, looks[1].dash), (VERMILLION, Marker::Square, 0));
    }
}
