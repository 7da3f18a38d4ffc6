//! The samples of a run, column by column, in memory.

use serde::{Deserialize, Serialize};

/// The congestion-avoidance states of the kernel, in the order of their numbers 0..=4.
pub const CONGESTION_STATES: [&str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];

/// All samples of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The connections.
    pub flows: FlowSeries,
    /// The queues.
    pub queues: QueueSeries,
    /// The datagrams of `ping` and `constant` flows.
    pub datagrams: DatagramSeries,
    /// The transfers: those of [`RunResult::transfers`](crate::RunResult::transfers), and of the warm-up.
    pub transfers: TransferSeries,
}

/// One sample of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FlowSample {
    /// Seconds since the start of the run.
    pub t_s: f64,
    /// The connection.
    pub flow: u32,
    /// The host at its near end.
    pub host: u16,
    /// The congestion window.
    pub cwnd_segments: u32,
    /// The slow-start threshold; `None` while it is infinite.
    pub ssthresh_segments: Option<u32>,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt_ms: Option<f64>,
    /// Lowest RTT; `None` before the first sample.
    pub min_rtt_ms: Option<f64>,
    /// Index into [`CONGESTION_STATES`].
    pub state: u8,
    /// Segments sent and not acknowledged.
    pub in_flight_segments: u32,
    /// Written by the application and not sent.
    pub unsent_bytes: u64,
    /// Retransmitted segments, since the connection opened.
    pub retransmits: u64,
    /// Goodput since the connection's row before; of its first row, since the flow's start.
    pub goodput_mbps: f64,
    /// The rate of payload at which TCP paces, or would pace, the connection; `None` before the first RTT sample.
    pub pacing_mbps: Option<f64>,
    /// The lower limit in force, if any.
    pub bound_min: Option<u32>,
    /// The upper limit in force, if any.
    pub bound_max: Option<u32>,
    /// The limit of the pacing rate in force, if any.
    pub bound_pacing_mbps: Option<f64>,
    /// The bandwidth in the client's last report of its own link; `None`: no report has reached the sender.
    pub reported_bandwidth_mbps: Option<f64>,
    /// The packet error rate in that report.
    pub reported_error_rate: Option<f64>,
    /// The window at which the law `lastlink` stops growth; `None`: no limit.
    pub cwnd_max_segments: Option<u32>,
    /// Losses attributed to errors of the last link, since the connection opened; `None`: no report has reached it.
    pub ignored_losses: Option<u32>,
}

/// Samples of connections as columns of equal length, rows in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns are the fields of FlowSample, documented there")]
pub struct FlowSeries {
    pub t_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub host: Vec<u16>,
    pub cwnd_segments: Vec<u32>,
    pub ssthresh_segments: Vec<Option<u32>>,
    pub srtt_ms: Vec<Option<f64>>,
    pub min_rtt_ms: Vec<Option<f64>>,
    pub state: Vec<u8>,
    pub in_flight_segments: Vec<u32>,
    pub unsent_bytes: Vec<u64>,
    pub retransmits: Vec<u64>,
    pub goodput_mbps: Vec<f64>,
    pub pacing_mbps: Vec<Option<f64>>,
    pub bound_min: Vec<Option<u32>>,
    pub bound_max: Vec<Option<u32>>,
    pub bound_pacing_mbps: Vec<Option<f64>>,
    pub reported_bandwidth_mbps: Vec<Option<f64>>,
    pub reported_error_rate: Vec<Option<f64>>,
    pub cwnd_max_segments: Vec<Option<u32>>,
    pub ignored_losses: Vec<Option<u32>>,
}

/// One sample of one queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueSample {
    /// Seconds since the start of the run.
    pub t_s: f64,
    /// [`place_name`] of the queue.
    pub place: String,
    /// Packets waiting there.
    pub packets: u32,
}

/// Samples of queues as columns of equal length, rows in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns are the fields of QueueSample, documented there")]
pub struct QueueSeries {
    pub t_s: Vec<f64>,
    pub place: Vec<String>,
    pub packets: Vec<u32>,
}

/// One datagram that has come; lost ones have none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DatagramSample {
    /// When it was sent, in seconds since the start of the run.
    pub t_s: f64,
    /// Its flow.
    pub flow: u32,
    /// The host at its near end.
    pub host: u16,
    /// Its number in the flow, from 0.
    pub number: u64,
    /// `constant`: until it was received; `ping`: until its answer was.
    pub took_ms: f64,
}

/// Datagrams as columns of equal length, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns are the fields of DatagramSample, documented there")]
pub struct DatagramSeries {
    pub t_s: Vec<f64>,
    pub flow: Vec<u32>,
    pub host: Vec<u16>,
    pub number: Vec<u64>,
    pub took_ms: Vec<f64>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TransferSample {
    /// Its flow.
    pub flow: u32,
    /// The host at its near end.
    pub host: u16,
    /// When it was written or asked for, and its connection opened, in seconds since the start of the run.
    pub start_s: f64,
    /// Its size.
    pub bytes: u64,
    /// From its start until its last byte was read; `None`: it was not by the end of the run.
    pub completion_s: Option<f64>,
    /// `completion_s` over what data of its size need in the empty network; `None` as before, and where nothing gets through.
    pub slowdown: Option<f64>,
}

/// Transfers as columns of equal length, in the order of their starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns are the fields of TransferSample, documented there")]
pub struct TransferSeries {
    pub flow: Vec<u32>,
    pub host: Vec<u16>,
    pub start_s: Vec<f64>,
    pub bytes: Vec<u64>,
    pub completion_s: Vec<Option<f64>>,
    pub slowdown: Vec<Option<f64>>,
}

impl TransferSeries {
    /// These rows.
    pub fn of(rows: impl IntoIterator<Item = TransferSample>) -> Self {
        let mut series = Self::default();
        for sample in rows {
            series.flow.push(sample.flow);
            series.host.push(sample.host);
            series.start_s.push(sample.start_s);
            series.bytes.push(sample.bytes);
            series.completion_s.push(sample.completion_s);
            series.slowdown.push(sample.slowdown);
        }
        series
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = TransferSample> + '_ {
        (0..self.flow.len()).map(|row| TransferSample {
            flow: self.flow[row],
            host: self.host[row],
            start_s: self.start_s[row],
            bytes: self.bytes[row],
            completion_s: self.completion_s[row],
            slowdown: self.slowdown[row],
        })
    }
}

impl DatagramSeries {
    /// Adds a row.
    pub fn push(&mut self, sample: DatagramSample) {
        self.t_s.push(sample.t_s);
        self.flow.push(sample.flow);
        self.host.push(sample.host);
        self.number.push(sample.number);
        self.took_ms.push(sample.took_ms);
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = DatagramSample> + '_ {
        (0..self.t_s.len()).map(|row| DatagramSample {
            t_s: self.t_s[row],
            flow: self.flow[row],
            host: self.host[row],
            number: self.number[row],
            took_ms: self.took_ms[row],
        })
    }
}

impl FlowSeries {
    /// Adds a row.
    pub fn push(&mut self, sample: FlowSample) {
        self.t_s.push(sample.t_s);
        self.flow.push(sample.flow);
        self.host.push(sample.host);
        self.cwnd_segments.push(sample.cwnd_segments);
        self.ssthresh_segments.push(sample.ssthresh_segments);
        self.srtt_ms.push(sample.srtt_ms);
        self.min_rtt_ms.push(sample.min_rtt_ms);
        self.state.push(sample.state);
        self.in_flight_segments.push(sample.in_flight_segments);
        self.unsent_bytes.push(sample.unsent_bytes);
        self.retransmits.push(sample.retransmits);
        self.goodput_mbps.push(sample.goodput_mbps);
        self.pacing_mbps.push(sample.pacing_mbps);
        self.bound_min.push(sample.bound_min);
        self.bound_max.push(sample.bound_max);
        self.bound_pacing_mbps.push(sample.bound_pacing_mbps);
        self.reported_bandwidth_mbps.push(sample.reported_bandwidth_mbps);
        self.reported_error_rate.push(sample.reported_error_rate);
        self.cwnd_max_segments.push(sample.cwnd_max_segments);
        self.ignored_losses.push(sample.ignored_losses);
    }

    /// Adds a connection of the last row's flow at its moment, the `joined`th: windows, flight, unsent data, retransmissions and pace
    /// add up, goodput is the flow's, round trips are the mean and the least; the worst state counts, and limits are the first one's.
    ///
    /// # Panics
    /// If there is no row.
    pub fn join(&mut self, sample: FlowSample, joined: u32) {
        let last = self.t_s.len() - 1;
        let sum =
            |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other).or(one).or(other);
        self.cwnd_segments[last] += sample.cwnd_segments;
        self.in_flight_segments[last] += sample.in_flight_segments;
        self.unsent_bytes[last] += sample.unsent_bytes;
        self.retransmits[last] += sample.retransmits;
        self.state[last] = self.state[last].max(sample.state);
        self.goodput_mbps[last] = sample.goodput_mbps;
        self.pacing_mbps[last] = sum(self.pacing_mbps[last], sample.pacing_mbps);
        self.ssthresh_segments[last] = None;
        let mean = |before: f64, now: f64| before + (now - before) / f64::from(joined);
        let (srtt, least) = (self.srtt_ms[last], self.min_rtt_ms[last]);
        self.srtt_ms[last] =
            srtt.zip(sample.srtt_ms).map(|(before, now)| mean(before, now)).or(srtt).or(sample.srtt_ms);
        self.min_rtt_ms[last] =
            least.zip(sample.min_rtt_ms).map(|(before, now)| before.min(now)).or(least).or(sample.min_rtt_ms);
    }

    /// The row of this number.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> FlowSample {
        FlowSample {
            t_s: self.t_s[row],
            flow: self.flow[row],
            host: self.host[row],
            cwnd_segments: self.cwnd_segments[row],
            ssthresh_segments: self.ssthresh_segments[row],
            srtt_ms: self.srtt_ms[row],
            min_rtt_ms: self.min_rtt_ms[row],
            state: self.state[row],
            in_flight_segments: self.in_flight_segments[row],
            unsent_bytes: self.unsent_bytes[row],
            retransmits: self.retransmits[row],
            goodput_mbps: self.goodput_mbps[row],
            pacing_mbps: self.pacing_mbps[row],
            bound_min: self.bound_min[row],
            bound_max: self.bound_max[row],
            bound_pacing_mbps: self.bound_pacing_mbps[row],
            reported_bandwidth_mbps: self.reported_bandwidth_mbps[row],
            reported_error_rate: self.reported_error_rate[row],
            cwnd_max_segments: self.cwnd_max_segments[row],
            ignored_losses: self.ignored_losses[row],
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.t_s.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.t_s.is_empty()
    }

    /// The rows of one connection.
    pub fn of_flow(&self, flow: u32) -> impl Iterator<Item = FlowSample> + '_ {
        (0..self.len()).filter(move |row| self.flow[*row] == flow).map(|row| self.row(row))
    }

    /// The connections that have rows, ascending.
    pub fn flow_ids(&self) -> Vec<u32> {
        let mut ids = self.flow.clone();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

impl QueueSeries {
    /// Adds a row.
    pub fn push(&mut self, sample: QueueSample) {
        self.t_s.push(sample.t_s);
        self.place.push(sample.place);
        self.packets.push(sample.packets);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.t_s.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.t_s.is_empty()
    }

    /// Time and length of one queue.
    pub fn of_place<'a>(&'a self, place: &'a str) -> impl Iterator<Item = (f64, u32)> + 'a {
        (0..self.len()).filter(move |row| self.place[*row] == place).map(|row| (self.t_s[row], self.packets[row]))
    }
}

/// The name of the access point's queue in results and series.
pub const ACCESS_POINT: &str = "access_point";

/// A queue's name in results and series: `access_point` (of several the first; then `access_point_1`), `host_3`, `path_up`,
/// `path_down`, `link_2_forth`,
/// `link_2_back`. Links are counted from 0, each of a multiple block separately.
pub fn place_name(place: lasthop_network::QueueId) -> String {
    match place {
        lasthop_network::QueueId::Host(node) => format!("host_{}", node.0),
        lasthop_network::QueueId::AccessPoint => ACCESS_POINT.into(),
        lasthop_network::QueueId::OtherAccessPoint(number) => format!("{ACCESS_POINT}_{number}"),
        lasthop_network::QueueId::PathUp => "path_up".into(),
        lasthop_network::QueueId::PathDown => "path_down".into(),
        lasthop_network::QueueId::Link { link, way: lasthop_network::Way::Forth } => format!("link_{link}_forth"),
        lasthop_network::QueueId::Link { link, way: lasthop_network::Way::Back } => format!("link_{link}_back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was_pushed() {
        let sample = FlowSample {
            t_s: 1.25,
            flow: 3,
            host: 2,
            cwnd_segments: 48,
            ssthresh_segments: Some(24),
            srtt_ms: Some(256.5),
            min_rtt_ms: None,
            state: 3,
            in_flight_segments: 47,
            unsent_bytes: 65_536,
            retransmits: 9,
            goodput_mbps: 1.75,
            pacing_mbps: Some(2.5),
            bound_min: Some(1),
            bound_max: None,
            bound_pacing_mbps: Some(0.44),
            reported_bandwidth_mbps: Some(7.0),
            reported_error_rate: None,
            cwnd_max_segments: Some(88),
            ignored_losses: Some(0),
        };
        let mut series = FlowSeries::default();
        series.push(FlowSample { flow: 1, ..sample });
        series.push(sample);
        assert_eq!(series.row(1), sample);
        assert_eq!(series.of_flow(3).collect::<Vec<_>>(), [sample]);
        assert_eq!((series.len(), series.flow_ids()), (2, vec![1, 3]));
    }

    #[test]
    fn connections_of_one_moment_are_one_row() {
        let mut series = FlowSeries::default();
        let sample = |cwnd_segments, goodput_mbps, srtt_ms: f64| FlowSample {
            cwnd_segments,
            goodput_mbps,
            srtt_ms: Some(srtt_ms),
            min_rtt_ms: Some(srtt_ms / 2.0),
            ..FlowSample::default()
        };
        series.push(sample(10, 1.0, 20.0));
        series.join(sample(5, 1.5, 30.0), 2);
        series.join(FlowSample { srtt_ms: None, min_rtt_ms: None, ..sample(2, 1.5, 0.0) }, 3);
        series.join(sample(3, 2.0, 65.0), 4);
        let row = series.row(0);
        // 20 and 30 are 25; then a quarter of the way to 65.
        assert_eq!((series.len(), row.cwnd_segments, row.goodput_mbps), (1, 20, 2.0));
        assert_eq!((row.srtt_ms, row.min_rtt_ms), (Some(35.0), Some(10.0)));
    }

    #[test]
    fn a_queue_is_picked_out_by_its_place() {
        let mut queues = QueueSeries::default();
        for (t_s, place, packets) in [(0.0, "access_point", 4), (0.0, "host_1", 9), (0.5, "access_point", 5)] {
            queues.push(QueueSample { t_s, place: place.into(), packets });
        }
        assert_eq!(queues.of_place("access_point").collect::<Vec<_>>(), [(0.0, 4), (0.5, 5)]);
        assert_eq!(queues.len(), 3);
    }
}
