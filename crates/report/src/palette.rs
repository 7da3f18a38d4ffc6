//! The labels, colours and markers of figures, for figures that others draw.

use crate::style;
use lasthop_scenario::{Comparison, RunResult};

/// The look of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Its label in legends.
    pub label: String,
    /// `#RRGGBB`.
    pub colour: String,
    /// The marker of its points.
    pub marker: &'static str,
    /// The dashes of its lines: lengths of strokes and of gaps, in CSS pixels; nothing if they are whole.
    pub dashes: Vec<f64>,
}

/// The looks of lines with these labels: laws and policies have theirs in every figure, the others take what is free.
pub fn of_names(labels: &[&str]) -> Vec<Look> {
    style::lines(labels).into_iter().map(look).collect()
}

/// The look of each case of a comparison.
pub fn of_cases(comparison: &Comparison) -> Vec<Look> {
    style::cases(comparison).into_iter().map(look).collect()
}

/// The look of each connection of a run: by kind if there are several, else by host.
pub fn of_flows(run: &RunResult) -> Vec<Look> {
    let looks = style::FlowLooks::of(run);
    run.flows.iter().map(|flow| look(looks.look(flow).clone())).collect()
}

/// The colours of everything else, each with its use.
pub fn theme() -> [(&'static str, String); 6] {
    [
        ("ink", style::INK),
        ("muted", style::MUTED),
        ("grid", style::GRID),
        ("paper", style::PAPER),
        ("shade", style::SHADE),
        ("limit", style::LIMIT),
    ]
    .map(|(name, colour)| (name, colour.hex()))
}

fn look(look: style::Look) -> Look {
    use style::Marker;
    let marker = match look.marker {
        Marker::Circle => "circle",
        Marker::Square => "square",
        Marker::Triangle => "triangle",
        Marker::Diamond => "diamond",
        Marker::Down => "down",
        Marker::Ring => "ring",
        Marker::Frame => "frame",
        Marker::Cross => "cross",
        Marker::Plus => "plus",
        Marker::OpenTriangle => "open-triangle",
        Marker::OpenDiamond => "open-diamond",
    };
    let lengths = style::DASHES[look.dash].split_whitespace().filter_map(|length| length.parse::<f64>().ok());
    Look { label: look.label, colour: look.colour.hex(), marker, dashes: lengths.map(|length| length / 2.0).collect() }
}
