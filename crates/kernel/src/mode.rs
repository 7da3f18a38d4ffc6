//! What the programs do to sockets.

/// How much of the kernel is used, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Our congestion control, with lower and upper bounds and limits of the pacing rate.
    Control,
    /// The sockets' own congestion control, its window and pacing rate limited from above; no lower bound. See `bpf/clamp.h`
    /// for what that cannot do.
    Clamp,
    /// Sockets are only looked at.
    Observe,
    /// Nothing is possible.
    Nothing,
}
