//! Networks from outside. One binary: each would compile the whole network again for packets of its own.

mod accounting;
mod aggregation;
mod block_ack;
mod cells;
mod changes;
mod common;
mod departures;
mod digests;
mod edca;
mod generations;
mod holds;
mod host_path;
mod links;
mod opportunities;
mod properties;
mod queueing_theory;
mod queues;
mod radios;
mod rates;
mod roaming;
mod saturation;
mod tcp_bounds;
mod timelines;
mod turnaround;
