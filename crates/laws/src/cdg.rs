//! What CDG decides by, step by step, so that each can be held against its formula: gradients, the state of the queue,
//! the chance of a back-off. Whoever wants a congestion control wants [`Law`](super::Law).

/// `struct lh_gradients`: the gradients of the delay from round to round and their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Gradients {
    last: [[i32; 2]; 16],
    sum: [i32; 2],
    previous: [u32; 2],
    rounds: u32,
    filled: u32,
    next: u32,
}

/// `enum lh_queue`: what the gradients say of the queue on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Queue {
    Unknown,
    Full,
    Empty,
    Rising,
    Falling,
}

unsafe extern "C" {
    fn lasthop_gradients_begin(gradients: *mut Gradients, rounds: u32);
    fn lasthop_gradients_skip(gradients: *mut Gradients);
    fn lasthop_gradients_look(gradients: *mut Gradients, min_us: u32, max_us: u32) -> u32;
    fn lasthop_cdg_queue(min_us: i32, max_us: i32, queue: u32) -> u32;
    fn lasthop_cdg_linux_queue(min_us: i32, max_us: i32, queue: u32) -> u32;
    fn lasthop_gradient_probability(gradient: u64, scale: u64) -> u64;
    fn lasthop_exp_minus(x: u32) -> u64;
}

// SAFETY, of every call below: as in the parent module.
impl Gradients {
    /// None yet; sums over `rounds` of them, 1 to 16.
    pub fn over(rounds: u32) -> Self {
        let mut gradients = Self { last: [[0; 2]; 16], sum: [0; 2], previous: [0; 2], rounds: 0, filled: 0, next: 0 };
        // SAFETY: see above.
        unsafe { lasthop_gradients_begin(&mut gradients, rounds) };
        gradients
    }

    /// A round with these RTTs, not 0; false if it has no gradient.
    pub fn look(&mut self, min_us: u32, max_us: u32) -> bool {
        // SAFETY: see above.
        unsafe { lasthop_gradients_look(self, min_us, max_us) != 0 }
    }

    /// The next round has none.
    pub fn skip(&mut self) {
        // SAFETY: see above.
        unsafe { lasthop_gradients_skip(self) }
    }

    /// The sums of g_min and g_max, in us.
    pub const fn sums_us(&self) -> [i32; 2] {
        self.sum
    }
}

impl Queue {
    const ALL: [Self; 5] = [Self::Unknown, Self::Full, Self::Empty, Self::Rising, Self::Falling];

    /// FreeBSD's rule: what a queue of this state is after a round with these sums.
    pub fn after([min_us, max_us]: [i32; 2], before: Self) -> Self {
        // SAFETY: see above.
        Self::ALL[unsafe { lasthop_cdg_queue(min_us, max_us, before as u32) } as usize]
    }

    /// Linux's.
    pub fn after_in_linux([min_us, max_us]: [i32; 2], before: Self) -> Self {
        // SAFETY: see above.
        Self::ALL[unsafe { lasthop_cdg_linux_queue(min_us, max_us, before as u32) } as usize]
    }
}

/// 1 - e^-(`gradient` / `scale`), 0 to 1.
pub fn backoff_probability(gradient: u64, scale: u64) -> f64 {
    // SAFETY: see above.
    (unsafe { lasthop_gradient_probability(gradient, scale) }) as f64 / 4_294_967_296.0
}

/// e^-(`x` / 2^24), 0 to 1.
pub fn exp_minus(x: u32) -> f64 {
    // SAFETY: see above.
    (unsafe { lasthop_exp_minus(x) }) as f64 / 4_294_967_296.0
}
