//! Who may send when: inter-frame spaces, backoff, contention windows.
//!
//! Each contender (a station or the access point) has a timer in slots. While the medium is silent past its inter-frame
//! space it counts down; when it is sensed busy the timer freezes at what is left, and goes on after the next space.
//! 1. A contender whose timer has ended and that has a frame sends.
//! 2. After each transmission it draws a new timer, uniform in 0..=CW, whether it has a next frame or not (post-backoff).
//! 3. CW = aCWmin after a success or a frame given up, 2 CW + 1 up to aCWmax after a failure.
//! 4. A frame that finds the queue empty, the timer ended and the medium silent goes when the inter-frame space is over,
//!    at once if it is; if it finds the medium busy, or the medium gets busy before that, a timer is drawn.
//!
//! A transmission is sensed aCCATime after it began: whoever's timer ends before that sends too, and they collide. Nothing
//! happens slot by slot: when timers end is worked out once for each silence.
//!
//! ```text
//!                      frame arrives, timer ended, medium silent
//!    [nothing to send] -----------------------------------------> [waiting for the space] --> [sending]
//!        |    ^                                                     | medium busy                ^  |
//!        |    | timer ended, queue empty                            v                            |  |
//!        |    +------------------------------------------- [counting down] -- timer ended, ------+  |
//!        |  frame arrives, medium busy: draw                  ^  |    ^        frame waits          |
//!        +----------------------------------------------------+  |    +-----------------------------+
//!                                               medium silent |  v medium busy      exchange over: draw
//!                                                            [frozen]
//! ```
//!
//! Leaves out: the priorities of EDCA, capture, hidden stations, differences in propagation.
//!
//! References: 802.11-2020 §10.3.4.2 (basic access), §10.3.4.3 (backoff), §10.3.3 (contention window).

use super::constants::ContentionWindow;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Contention {
    slot: Span,
    sensing: Span,
    contenders: Vec<Contender>,
    streams: Vec<ChaCha8Rng>,
    /// When the next transmission begins if no frame arrives; [`Time::MAX`] while the medium is busy or nobody has a frame.
    next: Time,
    /// While the medium is busy: when that is sensed.
    busy_sensed_at: Option<Time>,
    backlogged: usize,
}

#[derive(Clone, Debug)]
struct Contender {
    /// When its inter-frame space is over.
    ready: Time,
    /// When its timer ends, if the medium stays silent.
    timer_end: Time,
    /// Slots left on the timer at `ready`.
    slots: u32,
    /// CW.
    window: u32,
    limits: ContentionWindow,
    has_frame: bool,
    /// Its frame goes at the end of the inter-frame space without backoff, if the medium stays silent.
    without_backoff: bool,
}

impl Contention {
    /// Contenders on a medium that has been silent for long.
    pub(crate) fn new(slot: Span, sensing: Span, contenders: Vec<(ContentionWindow, ChaCha8Rng)>) -> Self {
        let (limits, streams): (Vec<_>, Vec<_>) = contenders.into_iter().unzip();
        let contender = |limits: ContentionWindow| Contender {
            ready: Time::ZERO,
            timer_end: Time::ZERO,
            slots: 0,
            window: limits.min,
            limits,
            has_frame: false,
            without_backoff: false,
        };
        Self {
            slot,
            sensing,
            contenders: limits.into_iter().map(contender).collect(),
            streams,
            next: Time::MAX,
            busy_sensed_at: None,
            backlogged: 0,
        }
    }

    /// When the next transmission begins if no frame arrives; [`Time::MAX`] for never.
    pub(crate) fn next_access(&self) -> Time {
        self.next
    }

    /// Whether any contender has a frame.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged > 0
    }

    /// The contender has frames from now on. `deferring_until`: the medium counts as busy until then (a reservation, though it
    /// is silent). Gives the start of its transmission if it sends into one that it cannot have sensed yet.
    pub(crate) fn on_frame(&mut self, index: usize, now: Time, deferring_until: Time) -> Option<Time> {
        let contender = &mut self.contenders[index];
        debug_assert!(!contender.has_frame, "a frame that follows others waits behind them");
        contender.has_frame = true;
        self.backlogged += 1;
        if let Some(sensed) = self.busy_sensed_at {
            if contender.slots == 0 {
                if contender.timer_end < sensed && now < sensed {
                    return Some(contender.timer_end.max(now));
                }
                self.draw(index);
            }
            return None;
        }
        if contender.timer_end <= now {
            // The timer has ended in silence; the frame may go now.
            contender.slots = 0;
            contender.ready = now;
            contender.timer_end = now;
        } else if contender.slots == 0 && now < deferring_until {
            self.draw(index);
            let contender = &mut self.contenders[index];
            contender.timer_end = contender.ready + self.slot * u64::from(contender.slots);
        } else if contender.slots == 0 {
            contender.without_backoff = true;
        }
        self.next = self.next.min(self.contenders[index].timer_end);
        None
    }

    /// The contender has no frames from now on.
    pub(crate) fn on_empty(&mut self, index: usize) {
        self.contenders[index].has_frame = false;
        self.backlogged -= 1;
    }

    /// The medium gets busy with the transmission that was next. Names all that send before they can sense it, with their
    /// starts, and freezes the others' timers.
    pub(crate) fn seize(&mut self, start: Time, sending: &mut Vec<(usize, Time)>) {
        let sensed = start + self.sensing;
        self.busy_sensed_at = Some(sensed);
        self.next = Time::MAX;
        // Most have become ready together: divide once for them.
        let mut last_ready = Time::MAX;
        let mut last_passed = 0;
        for index in 0..self.contenders.len() {
            let contender = &mut self.contenders[index];
            if contender.timer_end < sensed {
                contender.slots = 0;
                if contender.has_frame {
                    sending.push((index, contender.timer_end));
                }
            } else if contender.ready < sensed {
                // Slots whose end was before the transmission was sensed; at least one is left, for the timer has not ended.
                if contender.ready != last_ready {
                    last_ready = contender.ready;
                    let silence = sensed - Span::from_nanos(1) - contender.ready;
                    last_passed = (silence.as_nanos() / self.slot.as_nanos()) as u32;
                }
                contender.slots -= last_passed;
            } else if contender.without_backoff {
                self.draw(index);
            }
            self.contenders[index].without_backoff = false;
        }
    }

    /// The contender's exchange has succeeded, or its frame was given up: CW = aCWmin, a new timer.
    pub(crate) fn on_done(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        contender.window = contender.limits.min;
        self.draw(index);
    }

    /// The contender's transmission has failed and will be repeated: CW doubles, a new timer.
    pub(crate) fn on_failure(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        contender.window = (2 * contender.window + 1).min(contender.limits.max);
        self.draw(index);
    }

    /// The medium is silent again. The inter-frame spaces end at `ready`, but for the contenders named in `except`.
    pub(crate) fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
        self.busy_sensed_at = None;
        for contender in &mut self.contenders {
            contender.ready = ready;
        }
        for &(index, ready) in except {
            self.contenders[index].ready = ready;
        }
        let mut next = Time::MAX;
        for contender in &mut self.contenders {
            contender.timer_end = contender.ready + self.slot * u64::from(contender.slots);
            if contender.has_frame {
                next = next.min(contender.timer_end);
            }
        }
        self.next = next;
    }

    fn draw(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        debug_assert!((contender.window + 1).is_power_of_two(), "contention windows are 2^k - 1");
        // CW is 2^k - 1, so the low k bits are uniform in 0..=CW.
        contender.slots = self.streams[index].next_u32() & contender.window;
    }
}
