//! What hosts tell each other of a trial, in bytes. The crate `peers` carries it, authenticated as beacons are.
//!
//! All numbers big-endian. The first byte is the kind:
//!
//! | kind | |
//! | --- | --- |
//! | 1 | the plan, and how long ago it began: from the one who began it, every 0.5 s |
//! | 2 | it has ended |
//! | 3 | what a host has measured in a block |

use crate::block::Block;
use crate::plan::Plan;
use lasthop_units::Span;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const RUN: u8 = 1;
const END: u8 = 2;
const BLOCK: u8 = 3;

/// What hosts tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// This trial began so long ago. Times travel in whole milliseconds.
    Run(Plan, Span),
    /// The trial of this identity has ended.
    End(u32),
    /// What a host has measured in a block.
    Block {
        /// Of this trial.
        trial: u32,
        /// The host, which draws a number for each trial.
        host: u32,
        /// The block.
        block: Block,
        /// In it the host has lost more than a trial may cost, and has left.
        loses: bool,
    },
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RunWire {
    kind: u8,
    none: u8,
    pairs: U16,
    trial: U32,
    seed: U32,
    elapsed_ms: U32,
    block_s: U16,
    none_either: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EndWire {
    kind: u8,
    none: [u8; 3],
    trial: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BlockWire {
    kind: u8,
    loses: u8,
    block: U16,
    trial: U32,
    host: U32,
    lasted_ms: U32,
    sent_bytes: U64,
    received_bytes: U64,
    rtt_p50_us: U32,
    rtt_p95_us: U32,
    rtts: U16,
    timeouts: U16,
    segments: U32,
    retransmitted: U32,
}

impl Message {
    /// The most bytes of a message.
    pub const MOST_BYTES: usize = size_of::<BlockWire>();

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Run(Plan { id, seed, pairs, block_s }, elapsed) => RunWire {
                kind: RUN,
                none: 0,
                pairs: pairs.into(),
                trial: id.into(),
                seed: seed.into(),
                elapsed_ms: u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX).into(),
                block_s: block_s.into(),
                none_either: 0.into(),
            }
            .as_bytes()
            .to_vec(),
            Self::End(trial) => EndWire { kind: END, none: [0; 3], trial: trial.into() }.as_bytes().to_vec(),
            Self::Block { trial, host, block, loses } => BlockWire {
                kind: BLOCK,
                loses: loses.into(),
                block: block.block.into(),
                trial: trial.into(),
                host: host.into(),
                lasted_ms: block.lasted_ms.into(),
                sent_bytes: block.sent_bytes.into(),
                received_bytes: block.received_bytes.into(),
                rtt_p50_us: block.rtt_p50_us.into(),
                rtt_p95_us: block.rtt_p95_us.into(),
                rtts: block.rtts.into(),
                timeouts: block.timeouts.into(),
                segments: block.segments.into(),
                retransmitted: block.retransmitted.into(),
            }
            .as_bytes()
            .to_vec(),
        }
    }

    /// Reads a message; `None`: it is none, or its plan is not valid. No input makes this panic.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes.first()? {
            RUN => {
                let wire = RunWire::read_from_bytes(bytes).ok()?;
                let (id, seed) = (wire.trial.get(), wire.seed.get());
                let plan = Plan { id, seed, pairs: wire.pairs.get(), block_s: wire.block_s.get() };
                plan.is_valid().then(|| Self::Run(plan, Span::from_millis(wire.elapsed_ms.get().into())))
            }
            END => EndWire::read_from_bytes(bytes).ok().map(|end| Self::End(end.trial.get())),
            BLOCK => {
                let wire = BlockWire::read_from_bytes(bytes).ok()?;
                let block = Block {
                    block: wire.block.get(),
                    lasted_ms: wire.lasted_ms.get(),
                    sent_bytes: wire.sent_bytes.get(),
                    received_bytes: wire.received_bytes.get(),
                    rtt_p50_us: wire.rtt_p50_us.get(),
                    rtt_p95_us: wire.rtt_p95_us.get(),
                    rtts: wire.rtts.get(),
                    segments: wire.segments.get(),
                    retransmitted: wire.retransmitted.get(),
                    timeouts: wire.timeouts.get(),
                };
                let (trial, host) = (wire.trial.get(), wire.host.get());
                // A lie of more would overflow sums.
                let possible = |bytes: u64| bytes < 1 << 50;
                let is_possible = possible(block.sent_bytes) && possible(block.received_bytes);
                is_possible.then_some(Self::Block { trial, host, block, loses: wire.loses != 0 })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_plan_is_laid_out_as_declared() {
        let plan = Plan { id: 0x0102, seed: 3, pairs: 10, block_s: 60 };
        let bytes = Message::Run(plan, Span::from_millis(258)).encode();
        #[rustfmt::skip]
        let expected = [1, 0, 0, 10, 0, 0, 1, 2, 0, 0, 0, 3, 0, 0, 1, 2, 0, 60, 0, 0];
        assert_eq!(bytes, expected);
        assert_eq!(Message::MOST_BYTES, 52);
    }

    proptest! {
        #[test]
        fn what_is_heard_is_what_was_told(
            (trial, host, sent_bytes, received_bytes) in (any::<u32>(), any::<u32>(), 0..1_u64 << 50, 0..1_u64 << 50),
            (block, rtts, timeouts, pairs) in (any::<u16>(), any::<u16>(), any::<u16>(), 1..=Plan::PAIRS_MOST),
            (lasted_ms, rtt_p50_us, rtt_p95_us, segments, retransmitted) in any::<(u32, u32, u32, u32, u32)>(),
            (block_s, elapsed_ms, loses) in (1..=3600_u16, any::<u32>(), any::<bool>()),
        ) {
            let block = Block { block, lasted_ms, sent_bytes, received_bytes, rtt_p50_us, rtt_p95_us, rtts, segments, retransmitted,
                timeouts };
            let plan = Plan { id: trial, seed: host, pairs, block_s };
            for message in [
                Message::Run(plan, Span::from_millis(elapsed_ms.into())),
                Message::End(trial),
                Message::Block { trial, host, block, loses },
            ] {
                prop_assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..70), kind in 0..4_u8) {
            let _ = Message::decode(&bytes);
            let _ = Message::decode(&[&[kind], &bytes[..]].concat());
        }
    }
}
