//! The effect of the programs on sockets.

/// How much of the kernel is used, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Our congestion control, with lower and upper bounds and limits of the pacing rate.
    Control,
    /// The sockets' own congestion control, with its window and pacing rate limited from above; no lower bound.
    /// `bpf/clamp.h` lists its limitations.
    Clamp,
    /// Sockets are only observed.
    Observe,
    /// Nothing is possible.
    Nothing,
}
