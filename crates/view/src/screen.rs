//! What is on the screen, and what the keys change.

use lasthop_status::Status;
use lasthop_status::{Watched, WatchedFlow};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Sparkline, Table, TableState, Wrap};

/// Ticks whose common rate is kept: more than any terminal has columns.
const KEPT: usize = 1000;

const HELP: &str = "\
q        quit                       space    pause, go on
up down  select a connection        PgUp PgDn  ten of them
s        sort by the next column    r        the other way round
h or ?   this help

In a record (--replay):
left right  1 s back, on            [ ]      60 s back, on
0 $         the beginning, the end

GOODPUT  payload acknowledged, Mb/s     RECEIVED  payload received, Mb/s
RTT+     round trip above the lowest one, ms
WIN      congestion window, segments    BOUND     its upper limit
PACE     limit of the pacing rate, Mb/s; TCP: paced at its own rate";

/// The order of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Sort {
    #[default]
    Goodput,
    Received,
    Excess,
    Window,
    Remote,
}

/// Where in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) at_s: f64,
    pub(crate) of_s: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Screen {
    now: Option<Watched>,
    rates: Vec<Option<f64>>,
    place: Option<Place>,
    sort: Sort,
    reversed: bool,
    paused: bool,
    helps: bool,
    table: TableState,
}

impl Screen {
    /// Takes a line of a running agent. Returns whether the screen changes.
    pub(crate) fn push(&mut self, watched: Watched) -> bool {
        if self.paused {
            return false;
        }
        if self.rates.len() == KEPT {
            self.rates.remove(0);
        }
        self.rates.push(watched.status.common_rate_mbps);
        self.now = Some(watched);
        true
    }

    /// Shows a tick of a record.
    pub(crate) fn show(&mut self, watched: Watched, rates: Vec<Option<f64>>, place: Place) {
        (self.now, self.rates, self.place) = (Some(watched), rates, Some(place));
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(crate) fn on_key(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('h' | '?') => self.helps = !self.helps,
            KeyCode::Esc => self.helps = false,
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('s') => {
                self.sort = match self.sort {
                    Sort::Goodput => Sort::Received,
                    Sort::Received => Sort::Excess,
                    Sort::Excess => Sort::Window,
                    Sort::Window => Sort::Remote,
                    Sort::Remote => Sort::Goodput,
                };
            }
            KeyCode::Down => self.table.scroll_down_by(1),
            KeyCode::Up => self.table.scroll_up_by(1),
            KeyCode::PageDown => self.table.scroll_down_by(10),
            KeyCode::PageUp => self.table.scroll_up_by(10),
            _ => {}
        }
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let Some(now) = &self.now else {
            return frame.render_widget("waiting for the agent's next tick ...", frame.area());
        };
        let [head, rate, table, reason, keys] = Layout::vertical([
            Constraint::Length(5),
            Constraint::Length(3),
            Constraint::Min(2),
            Constraint::Length(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(heading(now, self.place, self.paused)), head);
        let width = usize::from(rate.width);
        // In kb/s: bars are whole numbers.
        let shown = &self.rates[self.rates.len().saturating_sub(width)..];
        let bars: Vec<_> = shown.iter().map(|rate| rate.map(|mbps| (mbps * 1000.0) as u64)).collect();
        frame.render_widget(Sparkline::default().data(bars), rate);
        if self.helps {
            frame.render_widget(Paragraph::new(HELP), table);
        } else {
            let mut flows: Vec<_> = now.flows.iter().collect();
            sort(&mut flows, self.sort);
            if self.reversed {
                flows.reverse();
            }
            let at = self.table.selected().unwrap_or(0).min(flows.len().saturating_sub(1));
            self.table.select((!flows.is_empty()).then_some(at));
            let why = flows.get(at).map_or(String::new(), |flow| format!("{}: {}", flow.remote, flow.reason));
            frame.render_widget(Paragraph::new(why).wrap(Wrap { trim: true }), reason);
            frame.render_stateful_widget(connections(&flows), table, &mut self.table);
        }
        let order = if self.reversed { ", reversed" } else { "" };
        let more =
            if now.flows_left_out > 0 { format!("  {} more not shown", now.flows_left_out) } else { String::new() };
        let line = format!("q quit  s sort ({:?}{order})  space pause  h help{more}", self.sort);
        frame.render_widget(Line::styled(line, Style::new().add_modifier(Modifier::REVERSED)), keys);
    }
}

fn sort(flows: &mut [&WatchedFlow], by: Sort) {
    let most = |value: fn(&WatchedFlow) -> f64| move |a: &&WatchedFlow, b: &&WatchedFlow| value(b).total_cmp(&value(a));
    match by {
        Sort::Goodput => flows.sort_by(most(|flow| flow.goodput_mbps.unwrap_or(-1.0))),
        Sort::Received => flows.sort_by(most(|flow| flow.received_mbps.unwrap_or(-1.0))),
        Sort::Excess => flows.sort_by(most(|flow| flow.excess_us.map_or(-1.0, |excess| excess as f64))),
        Sort::Window => flows.sort_by(most(|flow| flow.window_segments.into())),
        Sort::Remote => flows.sort_by(|a, b| a.remote.cmp(&b.remote)),
    }
}

fn known(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn heading(now: &Watched, place: Option<Place>, paused: bool) -> Vec<Line<'static>> {
    let status = &now.status;
    let place = place.map_or(String::new(), |Place { at_s, of_s }| format!("  {at_s:.1} of {of_s:.1} s"));
    let paused = if paused { "  PAUSED" } else { "" };
    let access_point = status.place();
    let first = format!(
        "{}: mode {}, policy {}, behind {access_point}{place}{paused}",
        status.interface, status.mode, status.policy
    );
    let peers = if place.is_empty() { format!("{} peers, ", status.peers) } else { String::new() };
    let second = format!(
        "{peers}{} hosts sending; {} connections, {} busy, {} bounded",
        status.terminals, status.connections, status.busy, status.bounded
    );
    let excess = now.status.excess_us.map(|excess| excess as f64 / 1000.0);
    let sum =
        |value: fn(&WatchedFlow) -> Option<f64>| now.flows.iter().filter_map(value).fold(0.0, |sum, value| sum + value);
    let third = format!(
        "goodput {:.2} Mb/s, received {:.2} Mb/s, round trip above base {} ms",
        sum(|flow| flow.goodput_mbps),
        sum(|flow| flow.received_mbps),
        known(excess, 1),
    );
    let trouble = if status.loaded { "" } else { "  THE AGENT CANNOT USE ITS INTERFACE: see its log" };
    let fourth = format!("common rate {} Mb/s, over time:{trouble}", known(status.common_rate_mbps, 2));
    let first = Line::styled(first, Style::new().add_modifier(Modifier::BOLD));
    vec![first, second.into(), third.into(), gain(status).into(), fourth.into()]
}

/// In few words: what `lasthop agent status` says in full.
fn gain(status: &Status) -> String {
    let gain = &status.gain;
    let percent = |ratio: f64| format!("{:+.0} %", 100.0 * (ratio - 1.0));
    if let Some((host, group)) = gain.gain_ratio.zip(gain.group_gain_ratio) {
        return format!("gain: this host {}, all hosts {}; {}", percent(host), percent(group), gain.delay());
    }
    format!("gain: {}; {}", gain.gain_unknown.as_deref().unwrap_or("not known yet"), gain.delay())
}

fn connections<'a>(flows: &[&'a WatchedFlow]) -> Table<'a> {
    let rows = flows.iter().map(|flow| {
        let bound = flow.bound.unwrap_or_default();
        let limit = (bound.max_segments > 0).then(|| f64::from(bound.max_segments));
        let pace = match bound.max_pacing_rate.as_mbps() {
            mbps if mbps > 0.0 => known(Some(mbps), 2),
            _ if bound.paced => "TCP".to_owned(),
            _ => known(None, 2),
        };
        Row::new([
            flow.remote.clone(),
            known(flow.goodput_mbps, 2),
            known(flow.received_mbps, 2),
            known(flow.excess_us.map(|excess| excess as f64 / 1000.0), 1),
            flow.window_segments.to_string(),
            known(limit, 0),
            pace,
            flow.reason.clone(),
        ])
    });
    let widths = [22, 8, 8, 7, 5, 5, 6].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let head = Row::new(["REMOTE", "GOODPUT", "RECEIVED", "RTT+", "WIN", "BOUND", "PACE", "REASON"]);
    Table::new(rows, widths)
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replay;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::fmt::Write as _;

    /// A record of so many connections and ten ticks: each has half the goodput of the one before.
    fn record(flows: u64) -> Replay {
        let mut text = r#"{"event":"ready","t_ns":0,"interface":"wlan0","congestion_control":"lasthop","mode":"control","policy":"lasthop","group":"gateway 10.0.0.1","version":"0.1.0"}"#.to_owned();
        for tick in 1..=10_u64 {
            let flow = |number: u64| {
                let acked = tick * (250_000 >> number.min(20));
                let pace = if number.is_multiple_of(2) { r#""paced":true"# } else { r#""max_pacing_mbps":2.5"# };
                format!(
                    r#"{{"cookie":{number},"local":"10.0.0.2:5000","remote":"10.0.1.{}:{}","congestion_control":"lasthop","controlled":true,"srtt_us":42000,"min_rtt_us":{},"cwnd_segments":{},"ssthresh_segments":null,"state":"Open","in_flight_segments":4,"unsent_bytes":9,"retransmits":0,"delivery_rate_mbps":1.0,"acked_bytes":{acked},"received_bytes":0,"receive_rtt_us":null,"mss_bytes":1448,"busy":true,"bound":{{"min_segments":4,"max_segments":12,{pace}}},"bound_until_ns":9,"advised":null,"enabled":true,"enabled_at_ns":1,"reason":"2.50 Mb/s for each of 4 hosts, over {flows} busy connections"}}"#,
                    number % 250,
                    5000 + number,
                    10_000 + number * 100,
                    10 + number,
                )
            };
            let flows: Vec<_> = (0..flows).map(flow).collect();
            let rate = 0.5 + tick as f64 / 5.0;
            let _ = write!(
                text,
                "\n{{\"event\":\"tick\",\"t_ns\":{},\"late_ns\":0,\"terminals\":4,\"flows\":[{}],\"beacons\":{{\"sent\":1,\"unsent\":0,\"heard\":3,\"rejected\":0}},\"policy_state\":{{\"common_rate_mbps\":{rate},\"delivered_mbps\":null,\"excess_us\":21000,\"free\":false,\"harmed\":false}}}}",
                tick * 500_000_000,
                flows.join(","),
            );
        }
        Replay::read(text + "\n{\"event\":\"tick\",\"t_ns\":9").expect("a record, and the start of a line")
    }

    fn drawn(flows: u64, width: u16, height: u16, keys: &[KeyCode]) -> String {
        let replay = record(flows);
        let mut screen = Screen::default();
        let at = replay.last();
        let place = Place { at_s: replay.time_s(at), of_s: replay.time_s(replay.last()) };
        screen.show(replay.tick(at).expect("a tick"), replay.rates(at).to_vec(), place);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        for key in keys {
            terminal.draw(|frame| screen.draw(frame)).expect("drawn");
            screen.on_key(*key);
        }
        terminal.draw(|frame| screen.draw(frame)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn one_connection_at_80_by_24() {
        insta::assert_snapshot!(drawn(1, 80, 24, &[]));
    }

    #[test]
    fn five_hundred_connections_at_80_by_24_sorted_by_what_the_round_trip_has_risen() {
        insta::assert_snapshot!(drawn(500, 80, 24, &[KeyCode::Char('s'), KeyCode::Char('s'), KeyCode::Down]));
    }

    #[test]
    fn five_hundred_connections_at_200_by_60_the_other_way_round() {
        insta::assert_snapshot!(drawn(500, 200, 60, &[KeyCode::Char('r')]));
    }

    #[test]
    fn the_help_fits_80_by_24() {
        insta::assert_snapshot!(drawn(1, 80, 24, &[KeyCode::Char('h')]));
    }

    #[test]
    fn a_paused_screen_keeps_what_it_shows_and_goes_on() {
        let replay = record(1);
        let mut screen = Screen::default();
        assert!(screen.push(replay.tick(0).expect("a tick")));
        screen.on_key(KeyCode::Char(' '));
        assert!(!screen.push(replay.tick(1).expect("a tick")));
        assert_eq!(screen.now.as_ref().map(|now| now.seq), Some(0));
        screen.on_key(KeyCode::Char(' '));
        assert!(screen.push(replay.tick(2).expect("a tick")));
        assert_eq!((screen.now.map(|now| now.seq), screen.rates.len()), (Some(2), 2));
    }

    #[test]
    fn seeking_finds_the_tick_and_goodput_is_of_the_tick_before() {
        let replay = record(2);
        assert_eq!((replay.last(), replay.at(-5.0), replay.at(1.2), replay.at(99.0)), (9, 0, 2, 9));
        let goodputs = |at: usize| {
            let flows = replay.tick(at).expect("a tick").flows;
            flows.iter().map(|flow| flow.goodput_mbps).collect::<Vec<_>>()
        };
        assert_eq!(goodputs(0), [None, None]);
        assert_eq!(goodputs(5), [Some(4.0), Some(2.0)]);
        let error = Replay::read("{\"event\":\"nothing\"}\n".to_owned()).err().expect("no record");
        assert_eq!(error.to_string(), "line 1");
    }
}
