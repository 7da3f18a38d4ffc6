//! Why a policy decided as it did.

use super::{Harm, Row, RttReading, Share, Start, TableIndex};
use lasthop_units::{About, Rate, Span};
use std::fmt;

/// Why a connection has its limits, with the numbers; [`Display`](fmt::Display) gives the words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// The policy is `none`.
    NoPolicy,
    /// A constant budget of the host, split over its busy connections.
    Budget {
        /// The host's upper limit.
        bound_segments: u32,
        /// The host's upper limit of the pacing rate; [`Rate::ZERO`]: no limit.
        pacing_rate: Rate,
        /// The number of connections over which they are split.
        busy_flows: u32,
        /// The host's upper limit of what it lets others send to it; 0: no limit.
        receive_segments: u32,
    },
    /// A rule of the host: so much for its connections together.
    Rule {
        /// Its number in the configuration, from 1.
        rule: usize,
        /// Of the pacing rates of all of them.
        rate: Rate,
        /// The number of connections over which it is split.
        busy_flows: u32,
    },
    /// The RTT of the connection is not known yet.
    NoRtt,
    /// The window for this number of terminals, split over the host's busy connections.
    Count {
        /// The number of terminals at the last adjustment, with this one.
        terminals: u32,
        /// The host's upper limit.
        bound_segments: u32,
        /// The number of connections over which it is split.
        busy_flows: u32,
    },
    /// One flow's part of the segments on the path and in the access point's queue.
    QueueShare {
        /// The lowest RTT of the connection.
        lowest_rtt: Span,
        /// The number of flows of all terminals over which it is split.
        flows: u32,
        /// The part before rounding, in segments.
        ideal_segments: f64,
    },
    /// Not under control: the RTT has not risen enough.
    NotCongested {
        /// RTT / lowest RTT.
        ratio: f64,
        /// RTT − lowest RTT.
        excess: Span,
        /// The threshold of control.
        start: Start,
    },
    /// Under control, and the ratio is so high that the window is cut until the next tick.
    Cut {
        /// RTT / lowest RTT.
        ratio: f64,
        /// The window is cut above this.
        cut_ratio: f64,
    },
    /// Under control, with this host's share of the bandwidth-delay product.
    Share {
        /// RTT / lowest RTT.
        ratio: f64,
        /// The share of the host.
        share: Share,
        /// The number of connections over which it is split.
        busy_flows: u32,
    },
    /// Under control, with the smaller of a share and the table's limit.
    Table {
        /// RTT / lowest RTT.
        ratio: f64,
        /// The value that was looked up in the table.
        index: f64,
        /// The kind of that value.
        by: TableIndex,
        /// The row.
        row: Row,
        /// The share of the host; `None`: the table alone decides.
        share: Option<Share>,
        /// The number of connections over which the limits are split.
        busy_flows: u32,
    },
    /// A connection's part of the rate that each host may send.
    CommonRate {
        /// The payload rate that each host may send.
        rate: Rate,
        /// The number of connections over which it is split.
        busy_flows: u32,
        /// The number of hosts that share the access point, with this one.
        terminals: u32,
        /// RTT − lowest RTT, the mean over the busy hosts.
        excess: Span,
        /// The target of `excess`.
        aim: Span,
    },
    /// Not under control: nothing is congested.
    NotFull {
        /// RTT − lowest RTT, the mean over the busy hosts.
        excess: Span,
    },
    /// Not under control yet: a queue stands, and is looked at first.
    Waits {
        /// RTT − lowest RTT, the mean over the busy hosts.
        excess: Span,
        /// For how much longer it must stand; zero: until most hosts propose limits.
        left: Span,
    },
    /// Not under control: too little is sent or received to fill a queue.
    NotBulk,
    /// Not under control: what it receives would be limited, and cannot be.
    ReceivesFreely,
    /// Not under control on purpose: control did not help.
    Free {
        /// Why.
        harm: Harm,
        /// For how much longer.
        left: Span,
    },
    /// No longer under control: a peer's risen RTT started it, and no peer reports one any more.
    PeersCalm {
        /// RTT / lowest RTT.
        ratio: f64,
    },
    /// No longer under control: the ratio fell below the threshold.
    Released {
        /// RTT / lowest RTT.
        ratio: f64,
        /// The threshold.
        release_ratio: f64,
    },
    /// As a program outside says; may be empty.
    Program(Box<str>),
    /// A program outside did not decide, and why.
    NoAnswer(Box<str>),
}

impl Reason {
    /// The kind of reason as one word, without its numbers: tells whether the reason has changed in kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoPolicy => "no-policy",
            Self::Rule { .. } => "rule",
            Self::Budget { .. } => "budget",
            Self::Count { .. } => "count",
            Self::QueueShare { .. } => "queue-share",
            Self::NoRtt => "no-rtt",
            Self::NotCongested { .. } => "not-congested",
            Self::Cut { .. } => "cut",
            Self::Share { .. } => "share",
            Self::Table { .. } => "table",
            Self::CommonRate { .. } => "common-rate",
            Self::NotFull { .. } => "not-full",
            Self::Waits { .. } => "waits",
            Self::NotBulk => "not-bulk",
            Self::ReceivesFreely => "receives-freely",
            Self::Free { .. } => "free",
            Self::PeersCalm { .. } => "peers-calm",
            Self::Released { .. } => "released",
            Self::Program(_) => "program",
            Self::NoAnswer(_) => "no-answer",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoPolicy => f.write_str("the policy is none"),
            Self::Budget { bound_segments, pacing_rate, busy_flows, receive_segments } => {
                write!(f, "the host's {bound_segments} segments")?;
                if pacing_rate > Rate::ZERO {
                    write!(f, " and {}", About(pacing_rate))?;
                }
                write!(f, " over {}", many(busy_flows, "connection"))?;
                if receive_segments > 0 { write!(f, ", and {receive_segments} received") } else { Ok(()) }
            }
            Self::Rule { rule, rate, busy_flows } => {
                write!(f, "rule {rule}: {} over {}", About(rate), many(busy_flows, "connection"))
            }
            Self::NoRtt => f.write_str("no RTT has been measured yet"),
            Self::Count { terminals, bound_segments, busy_flows } => write!(
                f,
                "{bound_segments} segments for each of {}, over {}",
                many(terminals, "terminal"),
                many(busy_flows, "connection")
            ),
            Self::QueueShare { lowest_rtt, flows, ideal_segments } => write!(
                f,
                "a part of what {:.0} ms (lowest RTT) and the access point's queue hold, over {} of all = {ideal_segments:.1} \
                 segments",
                lowest_rtt.as_millis_f64(),
                many(flows, "connection")
            ),
            Self::NotCongested { ratio, start: Start::Ratio(start), .. } => {
                write!(f, "RTT is {ratio:.1} times the lowest, not above {start:.1}")
            }
            Self::NotCongested { excess, start: Start::Excess(start), .. } => {
                write!(
                    f,
                    "RTT is {:.0} ms above the lowest, not above {:.0} ms",
                    excess.as_millis_f64(),
                    start.as_millis_f64()
                )
            }
            Self::Cut { ratio, cut_ratio } => {
                write!(f, "RTT is {ratio:.1} times the lowest, above {cut_ratio:.1}: cut until the next tick")
            }
            Self::Share { ratio, share, busy_flows } => {
                write!(f, "{share} over {}; RTT is {ratio:.1} times the lowest", many(busy_flows, "connection"))
            }
            Self::CommonRate { rate, busy_flows, terminals, excess, aim } => write!(
                f,
                "{} for each of {}, over {}; RTTs are {:.0} ms above the lowest, {:.0} ms are aimed at",
                About(rate),
                many(terminals, "terminal"),
                many(busy_flows, "connection"),
                excess.as_millis_f64(),
                aim.as_millis_f64()
            ),
            Self::NotBulk => f.write_str("too little is sent or received to fill a queue"),
            Self::ReceivesFreely => f.write_str("what it receives cannot be limited here"),
            Self::NotFull { excess } => {
                write!(f, "nothing is congested: RTTs are {:.0} ms above the lowest", excess.as_millis_f64())
            }
            Self::Waits { excess, left } => {
                write!(f, "RTTs are {:.0} ms above the lowest: limits begin ", excess.as_millis_f64())?;
                match left.as_secs_f64().ceil() as u64 {
                    0 => f.write_str("when most hosts propose them"),
                    1 => f.write_str("after 1 more second of that"),
                    seconds => write!(f, "after {seconds} more seconds of that"),
                }
            }
            Self::Free { harm, left } => {
                write!(f, "free for a while ({:.0} s more), because {harm}", left.as_secs_f64().ceil())
            }
            Self::Table { ratio, index, by, row, share, busy_flows } => {
                let by = match by {
                    TableIndex::Excess => "ms above the lowest RTT",
                    TableIndex::Rtt => "ms of RTT",
                    TableIndex::Ratio => "times the lowest RTT",
                };
                let Row { from, max_segments, min_segments } = row;
                write!(f, "{index:.0} {by}: {min_segments} to {max_segments} segments (row {from})")?;
                if let Some(share) = share {
                    write!(f, ", at most the {share}")?;
                }
                write!(f, ", over {}; RTT is {ratio:.1} times the lowest", many(busy_flows, "connection"))
            }
            Self::PeersCalm { ratio } => {
                write!(
                    f,
                    "no peer's RTT is high any more, and this one is {ratio:.1} times its lowest: control released"
                )
            }
            Self::Program(ref said) if said.is_empty() => f.write_str("the program gives no reason"),
            Self::Program(ref said) => f.write_str(said),
            Self::NoAnswer(ref problem) => write!(f, "no limits, because the program did not decide: {problem}"),
            Self::Released { ratio, release_ratio } => {
                write!(f, "RTT is {ratio:.1} times the lowest, below {release_ratio:.1}: control released")
            }
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reading = match self.reading {
            RttReading::Current => "current",
            RttReading::Minimum => "lowest",
        };
        write!(
            f,
            "share of {:.1} Mb/s x {:.0} ms ({reading} RTT) over {} = {:.1} segments",
            self.bandwidth_mbps,
            self.rtt.as_millis_f64(),
            many(self.terminals, "terminal"),
            self.ideal_segments
        )
    }
}

fn many(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence_with_its_numbers() {
        let share = Share {
            bandwidth_mbps: 13.45,
            rtt: Span::from_millis(256),
            reading: RttReading::Current,
            terminals: 10,
            ideal_segments: 28.69,
        };
        assert_eq!(
            Reason::Share { ratio: 1.0, share, busy_flows: 1 }.to_string(),
            "share of 13.4 Mb/s x 256 ms (current RTT) over 10 terminals = 28.7 segments over 1 connection; \
             RTT is 1.0 times the lowest"
        );
        let row = Row { from: 51, max_segments: 200, min_segments: 50 };
        let table =
            Reason::Table { ratio: 1.2, index: 60.4, by: TableIndex::Excess, row, share: Some(share), busy_flows: 2 };
        assert_eq!(
            table.to_string(),
            "60 ms above the lowest RTT: 50 to 200 segments (row 51), at most the share of 13.4 Mb/s x 256 ms (current RTT) \
             over 10 terminals = 28.7 segments, over 2 connections; RTT is 1.2 times the lowest"
        );
        assert_eq!(
            Reason::Cut { ratio: 5.25, cut_ratio: 5.0 }.to_string(),
            "RTT is 5.2 times the lowest, above 5.0: cut until the next tick"
        );
        assert_eq!(
            Reason::Budget { bound_segments: 64, pacing_rate: Rate::ZERO, busy_flows: 3, receive_segments: 0 }
                .to_string(),
            "the host's 64 segments over 3 connections"
        );
    }
}
