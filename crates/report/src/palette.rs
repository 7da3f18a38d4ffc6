//! The labels, colours and markers of figures, for figures that others draw.

use crate::style;
use lasthop_scenario::{Comparison, RunResult};

/// The look of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its label in legends.
    pub label: String,
    /// `#RRGGBB`.
    pub colour: String,
    /// The marker of its points.
    pub marker: &'static str,
}

/// The looks of lines with these labels: laws and policies have theirs in every figure, the others take what is free.
pub fn of_names(labels: &[&str]) -> Vec<Look> {
    style::lines(labels).into_iter().map(|(look, marker)| named(look, marker)).collect()
}

/// The look of each case of a comparison.
pub fn of_cases(comparison: &Comparison) -> Vec<Look> {
    let looks = style::cases(comparison).into_iter();
    looks.enumerate().map(|(index, look)| named(look, style::marker(index))).collect()
}

/// The look of each connection of a run: by kind if there are several, else by host.
pub fn of_flows(run: &RunResult) -> Vec<Look> {
    let looks = style::FlowLooks::of(run);
    let look = |flow| named(style::Look { label: looks.label(flow), colour: looks.colour(flow) }, style::marker(0));
    run.flows.iter().map(look).collect()
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

fn named(look: style::Look, marker: style::Marker) -> Look {
    use style::Marker;
    let marker = match marker {
        Marker::Circle => "circle",
        Marker::Square => "square",
        Marker::Triangle => "triangle",
        Marker::Diamond => "diamond",
        Marker::Down => "down",
        Marker::Ring => "ring",
        Marker::Frame => "frame",
    };
    Look { label: look.label, colour: look.colour.hex(), marker }
}
