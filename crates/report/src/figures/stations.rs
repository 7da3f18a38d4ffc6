//! The PHY rate of each station and its share of the air, both ways: what makes one slow station cost all others.

use super::axis::Axis;
use super::bars::host_labels;
use super::canvas::{
    Beside, Canvas, Ink, Margins, Panel, Pen, TO_LABELS, draw, full_width, is_narrow, number, y_name_height,
};
use super::lines::{Entry, draw_legend, legend_height};
use super::{Figure, note_of_run};
use crate::style::{self, Look, MUTED};
use lasthop_scenario::{RunResult, StationResult};

const HEIGHT: f64 = 180.0;

/// One quantity of a station, up and down.
struct Quantity {
    name: &'static str,
    of: fn(&StationResult) -> [Option<f64>; 2],
}

const PHY_RATE: Quantity =
    Quantity { name: "mean PHY rate (Mb/s)", of: |station| [station.up_phy_rate_mbps, station.down_phy_rate_mbps] };

/// 802.11n and later.
const AIR_SHARE: Quantity = Quantity {
    name: "share of the air (%)",
    of: |station| [station.up_air_share, station.down_air_share].map(|share| share.map(|share| 100.0 * share)),
};

/// `None` without stations that carried data. Standards before 802.11n have PHY rates alone.
pub(crate) fn stations(run: &RunResult) -> Option<Figure> {
    let stations = &run.access.stations;
    let has_air = stations.iter().any(|station| station.up_air_share.is_some());
    let quantities = if has_air { vec![PHY_RATE, AIR_SHARE] } else { vec![PHY_RATE] };
    if stations.iter().all(|station| (PHY_RATE.of)(station) == [None; 2]) {
        return None;
    }
    let looks = style::directions();
    let entries = looks.clone().map(Entry::Box);
    let (title, air) =
        if has_air { ("PHY rate and airtime", ", and for how long it is on the air") } else { ("PHY rate", "") };
    let columns = if is_narrow() { 1 } else { quantities.len() };
    let cell = full_width() / columns as f64;
    let axis =
        |quantity: &Quantity| Axis::from_zero(stations.iter().flat_map(quantity.of).flatten().fold(0.0, f64::max), 6);
    let top = legend_height(&entries) + y_name_height(PHY_RATE.name, axis(&PHY_RATE), cell);
    let row = HEIGHT + 46.0 + y_name_height(AIR_SHARE.name, axis(&AIR_SHARE), cell);
    let height = top + HEIGHT + 46.0 + (quantities.len() / columns - 1) as f64 * row;
    let svg = draw(&format!("{title} of each station"), &note_of_run(run), height, |canvas| {
        draw_legend(canvas, &entries);
        for (index, quantity) in quantities.iter().enumerate() {
            let y = axis(quantity);
            let margins = Margins::of_y(y, HEIGHT);
            let panel = Panel {
                left: (index % columns) as f64 * cell + margins.left,
                top: top + (index / columns) as f64 * row,
                width: cell - margins.left - margins.right,
                height: HEIGHT,
                x: Axis::Linear { from: 0.0, to: 1.0 },
                y,
            };
            panel.draw_y(canvas, quantity.name, margins);
            draw_bars(canvas, &panel, run, quantity, &looks);
        }
    });
    Some(Figure {
        name: "stations".into(),
        title: format!("{title} of each station").into(),
        caption: format!(
            "The mean rate at which its data is sent, from it and to it{air}. A low rate takes long for the same data."
        ),
        svg: svg.text,
    })
}

fn draw_bars(canvas: &mut Canvas, panel: &Panel, run: &RunResult, quantity: &Quantity, looks: &[Look; 2]) {
    canvas.line((panel.left, panel.bottom()), (panel.right(), panel.bottom()), Pen::new(MUTED, 1.0));
    let stations = &run.access.stations;
    let space = panel.width / stations.len() as f64;
    let width = (space * 0.4).min(24.0);
    let label = |station: &StationResult| run.host_name(station.host).unwrap_or_else(|| station.host.to_string());
    let labels = host_labels(&stations.iter().map(label).collect::<Vec<_>>(), space);
    for (index, (station, label)) in stations.iter().zip(labels).enumerate() {
        let middle = panel.left + (index as f64 + 0.5) * space;
        let both = (quantity.of)(station).into_iter().zip(looks).zip([middle - width, middle]);
        for ((value, look), left) in both {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let name = style::host_name(run, station.host);
            canvas.titled(&format!("{name}, {}: {} {}", look.label, quantity.name, number(value)), |canvas| {
                let top = panel.y_at(value);
                canvas.rectangle(left, top, width, panel.bottom() - top, look.colour, 1.0);
            });
        }
        if let Some(label) = label {
            canvas.text(&label, middle, panel.bottom() + TO_LABELS, Ink::label(Beside::Middle));
        }
    }
    panel.draw_x_name(canvas, "host", 0.0);
}
