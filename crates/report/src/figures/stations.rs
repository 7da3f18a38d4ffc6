//! The PHY rate of each station and its share of the air, both ways: what makes one slow station cost all others.

use super::Figure;
use super::axis::Axis;
use super::canvas::{
    Beside, Canvas, Ink, MARGIN_LEFT, MARGIN_RIGHT, Panel, Pen, SMALL, WIDTH, draw, number, text_width,
};
use super::lines::{Entry, draw_legend, legend_height};
use crate::style::{self, Look, MUTED};
use lasthop_scenario::{RunResult, StationResult};

/// One quantity of a station, up and down.
struct Quantity {
    name: &'static str,
    of: fn(&StationResult) -> [f64; 2],
}

const PHY_RATE: Quantity =
    Quantity { name: "mean PHY rate (Mb/s)", of: |station| [station.up_phy_rate_mbps, station.down_phy_rate_mbps] };

/// 802.11n and later.
const AIR_SHARE: Quantity = Quantity {
    name: "share of the air (%)",
    of: |station| [station.up_air_share, station.down_air_share].map(|share| 100.0 * share.unwrap_or(0.0)),
};

/// `None` without stations that carried data. Standards before 802.11n have PHY rates alone.
pub(crate) fn stations(run: &RunResult) -> Option<Figure> {
    let stations = &run.access.stations;
    let has_air = stations.iter().any(|station| station.up_air_share.is_some());
    let quantities = if has_air { vec![PHY_RATE, AIR_SHARE] } else { vec![PHY_RATE] };
    if stations.iter().all(|station| (PHY_RATE.of)(station) == [0.0; 2]) {
        return None;
    }
    let looks = ["up", "down"].map(style::direction);
    let entries = looks.clone().map(Entry::Box);
    let (title, air) =
        if has_air { ("PHY rate and airtime", ", and for how long it is on the air") } else { ("PHY rate", "") };
    let width = WIDTH / quantities.len() as f64;
    let svg = draw(&format!("{title} of each station"), legend_height(&entries) + 30.0 + 180.0 + 46.0, |canvas| {
        draw_legend(canvas, &entries);
        for (index, quantity) in quantities.iter().enumerate() {
            let highest = stations.iter().flat_map(quantity.of).fold(0.0, f64::max);
            let panel = Panel {
                left: index as f64 * width + MARGIN_LEFT,
                top: legend_height(&entries) + 30.0,
                width: width - MARGIN_LEFT - MARGIN_RIGHT,
                height: 180.0,
                x: Axis::Linear { from: 0.0, to: 1.0 },
                y: Axis::from_zero(highest, 6),
            };
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
    panel.draw_y(canvas, quantity.name);
    canvas.line((panel.left, panel.bottom()), (panel.right(), panel.bottom()), Pen::new(MUTED, 1.0));
    let stations = &run.access.stations;
    let space = panel.width / stations.len() as f64;
    let width = (space * 0.4).min(24.0);
    let every = ((text_width("99", SMALL) + 4.0) / space).ceil() as usize;
    let label = |host: u16| run.host_name(host).unwrap_or_else(|| host.to_string());
    let all_fit = stations.iter().all(|station| text_width(&label(station.host), SMALL) + 4.0 <= space);
    for (index, station) in stations.iter().enumerate() {
        let middle = panel.left + (index as f64 + 0.5) * space;
        let both = (quantity.of)(station).into_iter().zip(looks).zip([middle - width, middle]);
        for ((value, look), left) in both.filter(|((value, _), _)| *value > 0.0) {
            let name = style::host_name(run, station.host);
            canvas.titled(&format!("{name}, {}: {} {}", look.label, quantity.name, number(value)), |canvas| {
                let top = panel.y_at(value);
                canvas.rectangle(left, top, width, panel.bottom() - top, look.colour, 1.0);
            });
        }
        if all_fit || index % every.max(1) == 0 {
            let label = if all_fit { label(station.host) } else { station.host.to_string() };
            canvas.text(&label, middle, panel.bottom() + 14.0, Ink::label(Beside::Middle));
        }
    }
    canvas.text("host", panel.left + panel.width / 2.0, panel.bottom() + 31.0, Ink::label(Beside::Middle));
}
