//! Channel access: inter-frame spaces, backoff, contention windows.
//!
//! Each contender (a station or the access point, in one access category) has a timer in slots. It counts down while
//! the medium is silent past the contender's inter-frame space. It freezes while the medium is sensed busy, and
//! resumes after the next space.
//! 1. A contender with an expired timer and a frame sends.
//! 2. After each transmission it draws a new timer, uniform in 0..=CW, whether it has a next frame or not
//!    (post-backoff).
//! 3. CW = aCWmin after a success or a frame given up, 2 CW + 1 up to aCWmax after a failure.
//! 4. A frame may find the queue empty, the timer expired and the medium silent. Then it is sent at the end of the
//!    inter-frame space, or at once if that is over. If the medium is busy, or becomes busy before that, a timer is
//!    drawn.
//!
//! The space of a category with an AIFSN of its own differs from the common one by whole slots.
//!
//! A transmission is sensed aCCATime after its start. Contenders whose timers expire before that send too, and collide.
//!
//! Nothing is computed per slot or per contender. Nearly all wait the same inter-frame space and count together, so
//! they share one count of slots passed. A timer is the count at which it expires; contenders with a frame are in a
//! wheel by that count. Kept apart are the senders of the last transmission, which draw, and contenders with another
//! inter-frame space: for once, or for ever by their AIFSN.
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
//! Leaves out: differences in propagation. All sense all here; where they do not, each node counts alone
//! (`medium/per_node`).
//!
//! References: 802.11-2020 §10.3.4.2 (basic access), §10.3.4.3 (backoff), §10.3.3 (contention window).

use super::constants::ContentionWindow;
use super::wheel::Wheel;
use lasthop_units::{Span, Time};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub(crate) struct Contention {
    slot: Span,
    sensing: Span,
    contenders: Vec<Contender>,
    streams: Vec<ChaCha8Rng>,
    /// The end of the common inter-frame space, in this silence or the last.
    ready: Time,
    /// Common count of slots until then, since the run's start.
    passed_at_ready: u64,
    /// Common count until the medium became busy; the same as above while it is silent.
    passed: u64,
    /// Contenders with a frame in the common count, by the count at which their timers expire.
    wheel: Wheel,
    /// Contenders outside the common count.
    apart: Vec<usize>,
    /// Contenders whose frame is sent without backoff at the end of the inter-frame space, if the medium stays silent.
    without_backoff: Vec<usize>,
    /// The start of the next transmission if no frame arrives; [`Time::MAX`] while the medium is busy or no frame
    /// waits.
    next: Time,
    /// While the medium is busy: the time at which that is sensed.
    busy_sensed_at: Option<Time>,
    backlogged: usize,
}

#[derive(Clone, Debug)]
struct Contender {
    /// In the common count: `passed` when its timer expires; at most `passed` if it has.
    end: u64,
    is_apart: bool,
    /// Its own AIFSN, less the common one, in slots; it is always apart unless this is 0.
    more_slots: i8,
    /// Apart: the end of its inter-frame space.
    ready: Time,
    /// Apart: the time its timer expires, if the medium stays silent.
    timer_end: Time,
    /// Apart: slots left on the timer at `ready`.
    slots: u32,
    /// CW.
    window: u32,
    limits: ContentionWindow,
    has_frame: bool,
    without_backoff: bool,
    /// Listed as apart in the silence that begins.
    named: bool,
}

impl Contention {
    /// Contenders on a medium that has been silent for long.
    pub(crate) fn new(slot: Span, sensing: Span, contenders: Vec<(ContentionWindow, ChaCha8Rng)>) -> Self {
        let (limits, streams): (Vec<_>, Vec<_>) = contenders.into_iter().unzip();
        Self {
            slot,
            sensing,
            wheel: Wheel::new(limits.len()),
            contenders: limits.into_iter().map(Contender::new).collect(),
            streams,
            ready: Time::ZERO,
            passed_at_ready: 0,
            passed: 0,
            apart: Vec::new(),
            without_backoff: Vec::new(),
            next: Time::MAX,
            busy_sensed_at: None,
            backlogged: 0,
        }
    }

    /// Gives a contender, which has not sent yet, an AIFSN that differs from the common one by this much.
    pub(crate) fn differ(&mut self, index: usize, more_slots: i8) {
        if more_slots != 0 {
            self.contenders[index].more_slots = more_slots;
            self.contenders[index].is_apart = true;
            self.apart.push(index);
        }
    }

    /// Adds a contender without a frame, which has sensed what the contender `like` has. `more_slots`: its AIFSN less
    /// the common one. Returns its number.
    pub(crate) fn add(&mut self, limits: ContentionWindow, more_slots: i8, stream: ChaCha8Rng, like: usize) -> usize {
        let index = self.contenders.len();
        let like = &self.contenders[like];
        let ready = later(if like.is_apart { like.ready } else { self.ready }, more_slots, self.slot);
        let new = Contender {
            end: self.passed,
            ready,
            timer_end: ready,
            is_apart: true,
            more_slots,
            ..Contender::new(limits)
        };
        self.contenders.push(new);
        self.streams.push(stream);
        self.wheel.add();
        self.apart.push(index);
        index
    }

    /// The start of the next transmission if no frame arrives; [`Time::MAX`] if there is none.
    pub(crate) fn next_access(&self) -> Time {
        self.next
    }

    /// Whether any contender has a frame.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged > 0
    }

    /// The contender has frames from now on. `deferring_until`: the medium counts as busy until then (a reservation,
    /// despite silence). Returns the start of its transmission if it cannot have sensed the one on the air yet.
    pub(crate) fn on_frame(&mut self, index: usize, now: Time, deferring_until: Time) -> Option<Time> {
        let timer_end = self.timer_end(index);
        let has_ended = self.slots(index) == 0;
        let contender = &mut self.contenders[index];
        debug_assert!(!contender.has_frame, "a frame that follows others waits behind them");
        contender.has_frame = true;
        self.backlogged += 1;
        if let Some(sensed) = self.busy_sensed_at {
            if has_ended && timer_end < sensed && now < sensed {
                self.set_apart(index, now);
                return Some(timer_end.max(now));
            }
            if has_ended {
                self.draw(index);
            }
            self.line_up(index);
            return None;
        }
        if timer_end <= now {
            // The timer has expired in silence; the frame may be sent now.
            self.set_apart(index, now);
        } else {
            if has_ended && now < deferring_until {
                self.draw(index);
                let contender = &mut self.contenders[index];
                contender.timer_end = contender.ready + self.slot * u64::from(contender.slots);
            } else if has_ended {
                contender.without_backoff = true;
                self.without_backoff.push(index);
            }
            self.line_up(index);
        }
        self.next = self.next.min(self.timer_end(index));
        None
    }

    /// The contender has frames from now on, and the medium is busy for the others but silent for it. It draws no timer
    /// if its own has expired, and its frame is sent at the end of the inter-frame space.
    pub(crate) fn on_frame_without_backoff(&mut self, index: usize) {
        let has_ended = self.slots(index) == 0;
        let contender = &mut self.contenders[index];
        debug_assert!(!contender.has_frame, "a frame that follows others waits behind them");
        contender.has_frame = true;
        self.backlogged += 1;
        if has_ended {
            contender.without_backoff = true;
            self.without_backoff.push(index);
        }
        self.line_up(index);
    }

    /// The contender has frames from now on, while its own node sends. It draws a timer if its own has expired.
    pub(crate) fn on_frame_while_sending(&mut self, index: usize) {
        let has_ended = self.slots(index) == 0;
        self.contenders[index].has_frame = true;
        self.backlogged += 1;
        if has_ended {
            self.draw(index);
        }
        self.line_up(index);
    }

    /// The contender, which has sent, has no more frames.
    pub(crate) fn on_empty(&mut self, index: usize) {
        debug_assert!(self.contenders[index].is_apart, "who has sent draws a timer of its own");
        self.contenders[index].has_frame = false;
        self.backlogged -= 1;
    }

    /// Whether the contender has frames.
    pub(crate) fn has_frame(&self, index: usize) -> bool {
        self.contenders[index].has_frame
    }

    /// The contender, which does not send now, may not send its frames any more. Its timer stays as without frames.
    pub(crate) fn withdraw(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        debug_assert!(contender.has_frame, "only who contends can withdraw");
        contender.has_frame = false;
        self.backlogged -= 1;
        if std::mem::take(&mut contender.without_backoff) {
            self.without_backoff.retain(|&other| other != index);
        }
        if !contender.is_apart {
            self.wheel.remove(index, contender.end);
        }
        if self.busy_sensed_at.is_none() {
            let apart = self.apart.iter().map(|&index| &self.contenders[index]);
            let apart = apart.filter(|contender| contender.has_frame).map(|contender| contender.timer_end).min();
            let first = self.wheel.first(self.passed).map(|(end, _)| self.ready + self.slot * (end - self.passed));
            self.next = apart.into_iter().chain(first).min().unwrap_or(Time::MAX);
        }
    }

    /// The medium becomes busy with the next transmission. Lists all contenders that send before they can sense it,
    /// with their starts, by number. Freezes the others' timers.
    pub(crate) fn seize(&mut self, start: Time, sending: &mut Vec<(usize, Time)>) {
        let sensed = start + self.sensing;
        self.busy_sensed_at = Some(sensed);
        self.next = Time::MAX;
        for position in 0..self.apart.len() {
            let index = self.apart[position];
            let contender = &mut self.contenders[index];
            if contender.timer_end < sensed {
                contender.slots = 0;
                if contender.has_frame {
                    sending.push((index, contender.timer_end));
                }
            } else if contender.ready < sensed {
                contender.slots -= slots_before(sensed, contender.ready, self.slot) as u32;
            } else if contender.without_backoff {
                self.draw(index);
            }
        }
        if self.ready < sensed {
            let passed = self.passed + slots_before(sensed, self.ready, self.slot);
            while let Some((end, index)) = self.wheel.first(self.passed).filter(|&(end, _)| end <= passed) {
                let timer_end = self.ready + self.slot * (end - self.passed);
                sending.push((index, timer_end));
                self.wheel.remove(index, end);
                self.set_apart(index, timer_end);
            }
            self.passed = passed;
        } else {
            for position in 0..self.without_backoff.len() {
                let index = self.without_backoff[position];
                if !self.contenders[index].is_apart {
                    self.wheel.remove(index, self.contenders[index].end);
                    self.draw(index);
                    self.line_up(index);
                }
            }
        }
        for index in self.without_backoff.drain(..) {
            self.contenders[index].without_backoff = false;
        }
        sending.sort_unstable();
    }

    /// The contender's exchange has succeeded, or its frame was given up: CW = aCWmin, a new timer.
    pub(crate) fn on_done(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        contender.window = contender.limits.min;
        self.draw(index);
    }

    /// An exchange of the contender's TXOP has succeeded, and the TXOP goes on: CW = aCWmin.
    pub(crate) fn on_answered(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        contender.window = contender.limits.min;
    }

    /// The contender's transmission has failed and will be repeated, or another of its node was first: CW doubles, a
    /// new timer.
    pub(crate) fn on_failure(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        contender.window = (2 * contender.window + 1).min(contender.limits.max);
        self.draw(index);
    }

    /// The medium is silent again. The inter-frame spaces end at `ready`, except for the contenders listed in `except`;
    /// all with the common AIFSN.
    pub(crate) fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
        self.busy_sensed_at = None;
        self.ready = ready;
        self.passed_at_ready = self.passed;
        for &(index, ready) in except {
            let slots = self.slots(index);
            let ready = later(ready, self.contenders[index].more_slots, self.slot);
            let contender = &mut self.contenders[index];
            contender.named = true;
            contender.ready = ready;
            if !contender.is_apart {
                contender.is_apart = true;
                contender.slots = slots;
                if contender.has_frame {
                    self.wheel.remove(index, contender.end);
                }
                self.apart.push(index);
            }
        }
        let mut next = Time::MAX;
        self.apart.retain(|&index| {
            let contender = &mut self.contenders[index];
            if contender.named || contender.more_slots != 0 {
                if !std::mem::take(&mut contender.named) {
                    contender.ready = later(ready, contender.more_slots, self.slot);
                }
                contender.timer_end = contender.ready + self.slot * u64::from(contender.slots);
                if contender.has_frame {
                    next = next.min(contender.timer_end);
                }
                return true;
            }
            contender.is_apart = false;
            contender.end = self.passed + u64::from(contender.slots);
            if contender.has_frame {
                self.wheel.insert(index, contender.end);
            }
            false
        });
        if let Some((end, _)) = self.wheel.first(self.passed) {
            next = next.min(ready + self.slot * (end - self.passed));
        }
        self.next = next;
    }

    /// The time its timer expires if the medium stays silent, or would have expired.
    fn timer_end(&self, index: usize) -> Time {
        let contender = &self.contenders[index];
        if contender.is_apart {
            return contender.timer_end;
        }
        self.ready + self.slot * contender.end.saturating_sub(self.passed_at_ready)
    }

    /// Slots left on the timer: at the end of the inter-frame space, or when the medium became busy.
    fn slots(&self, index: usize) -> u32 {
        let contender = &self.contenders[index];
        if contender.is_apart {
            return contender.slots;
        }
        contender.end.saturating_sub(self.passed) as u32
    }

    /// The contender's timer has expired and it sends at `start`.
    fn set_apart(&mut self, index: usize, start: Time) {
        let contender = &mut self.contenders[index];
        contender.slots = 0;
        contender.ready = start;
        contender.timer_end = start;
        if !contender.is_apart {
            contender.is_apart = true;
            self.apart.push(index);
        }
    }

    /// Puts a contender with a new frame into the wheel, if it is in the common count.
    fn line_up(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        if !contender.is_apart {
            contender.end = contender.end.max(self.passed);
            self.wheel.insert(index, contender.end);
        }
    }

    fn draw(&mut self, index: usize) {
        let contender = &mut self.contenders[index];
        debug_assert!((contender.window + 1).is_power_of_two(), "contention windows are 2^k - 1");
        // CW is 2^k - 1, so the low k bits are uniform in 0..=CW.
        contender.slots = self.streams[index].next_u32() & contender.window;
        contender.end = self.passed + u64::from(contender.slots);
    }
}

impl Contender {
    /// A contender without a frame, in the common count from its beginning.
    fn new(limits: ContentionWindow) -> Self {
        Self {
            end: 0,
            is_apart: false,
            more_slots: 0,
            ready: Time::ZERO,
            timer_end: Time::ZERO,
            slots: 0,
            window: limits.min,
            limits,
            has_frame: false,
            without_backoff: false,
            named: false,
        }
    }
}

/// This many slots later, or earlier.
#[inline]
pub(super) fn later(at: Time, slots: i8, slot: Span) -> Time {
    if slots == 0 {
        return at;
    }
    let by = slot * u64::from(slots.unsigned_abs());
    if slots < 0 { at.max(Time::ZERO + by) - by } else { at + by }
}

/// Slots after `ready` that end before a transmission is sensed.
pub(super) fn slots_before(sensed: Time, ready: Time, slot: Span) -> u64 {
    (sensed - Span::from_nanos(1) - ready).as_nanos() / slot.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;
    use crate::wifi::constants::{DSSS_WINDOW, OFDM_WINDOW};
    use proptest::prelude::*;

    /// The same rules, with every contender examined each time.
    struct Plain {
        slot: Span,
        sensing: Span,
        contenders: Vec<PlainContender>,
        streams: Vec<ChaCha8Rng>,
        /// When the next transmission begins if no frame arrives; [`Time::MAX`] while the medium is busy or nobody has
        /// a frame.
        next: Time,
        /// While the medium is busy: when that is sensed.
        busy_sensed_at: Option<Time>,
        backlogged: usize,
    }

    struct PlainContender {
        /// When its inter-frame space is over.
        ready: Time,
        /// When its timer ends, if the medium stays silent.
        timer_end: Time,
        /// Slots left on the timer at `ready`.
        slots: u32,
        /// Its AIFSN less the common one.
        more_slots: i8,
        /// CW.
        window: u32,
        limits: ContentionWindow,
        has_frame: bool,
        /// Its frame goes at the end of the inter-frame space without backoff, if the medium stays silent.
        without_backoff: bool,
    }

    impl Plain {
        /// Contenders on a medium that has been silent for long.
        fn new(slot: Span, sensing: Span, contenders: Vec<(ContentionWindow, i8, ChaCha8Rng)>) -> Self {
            let contender = |&(limits, more_slots, _): &(ContentionWindow, i8, _)| PlainContender {
                ready: later(Time::ZERO, more_slots, slot),
                timer_end: later(Time::ZERO, more_slots, slot),
                slots: 0,
                more_slots,
                window: limits.min,
                limits,
                has_frame: false,
                without_backoff: false,
            };
            Self {
                slot,
                sensing,
                contenders: contenders.iter().map(contender).collect(),
                streams: contenders.into_iter().map(|(_, _, stream)| stream).collect(),
                next: Time::MAX,
                busy_sensed_at: None,
                backlogged: 0,
            }
        }

        /// When the next transmission begins if no frame arrives; [`Time::MAX`] for never.
        fn next_access(&self) -> Time {
            self.next
        }

        /// Whether any contender has a frame.
        fn is_backlogged(&self) -> bool {
            self.backlogged > 0
        }

        /// The contender has frames from now on. `deferring_until`: the medium counts as busy until then (a
        /// reservation, though it is silent). Gives the start of its transmission if it sends into one that it cannot
        /// have sensed yet.
        fn on_frame(&mut self, index: usize, now: Time, deferring_until: Time) -> Option<Time> {
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
        fn on_empty(&mut self, index: usize) {
            self.contenders[index].has_frame = false;
            self.backlogged -= 1;
        }

        /// The medium gets busy with the transmission that was next. Names all that send before they can sense it, with
        /// their starts, and freezes the others' timers.
        fn seize(&mut self, start: Time, sending: &mut Vec<(usize, Time)>) {
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
                    // Slots whose end was before the transmission was sensed; at least one is left,
                    // for the timer has not ended.
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
        fn on_done(&mut self, index: usize) {
            let contender = &mut self.contenders[index];
            contender.window = contender.limits.min;
            self.draw(index);
        }

        /// The contender's transmission has failed and will be repeated: CW doubles, a new timer.
        fn on_failure(&mut self, index: usize) {
            let contender = &mut self.contenders[index];
            contender.window = (2 * contender.window + 1).min(contender.limits.max);
            self.draw(index);
        }

        /// The medium is silent again. The inter-frame spaces end at `ready`, but for the contenders named in `except`.
        fn resume(&mut self, ready: Time, except: &[(usize, Time)]) {
            self.busy_sensed_at = None;
            for contender in &mut self.contenders {
                contender.ready = ready;
            }
            for &(index, ready) in except {
                self.contenders[index].ready = ready;
            }
            let mut next = Time::MAX;
            for contender in &mut self.contenders {
                contender.ready = later(contender.ready, contender.more_slots, self.slot);
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

    #[derive(Clone, Debug)]
    struct Round {
        /// Who gets a frame while the medium is silent: who, how far on the way from the last event to the next (in
        /// 8ths; past that, in us if nothing is next), and for how long the medium counts as busy (us).
        in_silence: Vec<(usize, u64, u64)>,
        /// Who gets a frame while the medium is busy: who, and when (us since its beginning).
        in_transmission: Vec<(usize, u64)>,
        /// How long the transmission takes (us).
        length: u64,
        /// By sender: whether it has failed, and whether it has a next frame.
        outcomes: Vec<(bool, bool)>,
        /// The inter-frame space (us), and who has another one.
        space: u64,
        except: Vec<(usize, u64)>,
    }

    fn rounds() -> impl Strategy<Value = Vec<Round>> {
        let who = || 0..CONTENDERS;
        let in_silence = prop::collection::vec((who(), 0..12_u64, prop_oneof![Just(0), 0..60_u64]), 0..5);
        let in_transmission = prop::collection::vec((who(), prop_oneof![0..6_u64, 0..300_u64]), 0..5);
        let outcomes = prop::collection::vec(any::<(bool, bool)>(), CONTENDERS);
        // A common space is longer than two slots.
        let except = prop::collection::vec((who(), 18..108_u64), 0..4);
        let round = (in_silence, in_transmission, 6..300_u64, outcomes, 18..108_u64, except);
        let round = round.prop_map(|(in_silence, in_transmission, length, outcomes, space, except)| {
            let mut named = [false; CONTENDERS];
            let except = except.into_iter().filter(|&(index, _)| !std::mem::replace(&mut named[index], true)).collect();
            Round { in_silence, in_transmission, length, outcomes, space, except }
        });
        prop::collection::vec(round, 1..60)
    }

    const CONTENDERS: usize = MORE_SLOTS.len();
    /// By contender: its AIFSN less the common one.
    const MORE_SLOTS: [i8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -2, 4];

    #[test]
    fn an_answer_within_a_txop_ends_the_doubling() {
        let us = Span::from_micros;
        let stream = Streams::new(1).stream("one");
        let mut contention = Contention::new(us(9), us(4), vec![(OFDM_WINDOW, stream)]);
        for _ in 0..3 {
            contention.on_failure(0);
        }
        contention.on_answered(0);
        contention.on_failure(0);
        assert_eq!(contention.contenders[0].window, 2 * OFDM_WINDOW.min + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn counting_together_is_counting_each_alone(seed: u64, rounds in rounds()) {
            let us = Span::from_micros;
            let contenders = || {
                let stream = |index| Streams::new(seed).stream(&format!("{index}"));
                let window = |index| if index % 4 == 3 { DSSS_WINDOW } else { OFDM_WINDOW };
                (0..CONTENDERS).map(|index| (window(index), MORE_SLOTS[index], stream(index))).collect::<Vec<_>>()
            };
            let mut plain = Plain::new(us(9), us(4), contenders());
            let mut fast = contenders();
            let added = fast.split_off(MORE_SLOTS.iter().take_while(|&&more| more == 0).count());
            let common = fast.into_iter().map(|(window, _, stream)| (window, stream)).collect();
            let mut fast = Contention::new(us(9), us(4), common);
            for (window, more_slots, stream) in added {
                fast.add(window, more_slots, stream, 0);
            }
            let mut has_frame = [false; CONTENDERS];
            let mut now = Time::ZERO;
            for round in rounds {
                for (index, way, deferring) in round.in_silence {
                    let next = fast.next_access();
                    now += if next < Time::MAX { (next - now) * way.min(8) / 8 } else { us(way * 20) };
                    if !std::mem::replace(&mut has_frame[index], true) {
                        let deferring = now + us(deferring);
                        prop_assert_eq!(plain.on_frame(index, now, deferring), fast.on_frame(index, now, deferring));
                    }
                    prop_assert_eq!(plain.next_access(), fast.next_access());
                }
                let start = fast.next_access();
                if start == Time::MAX {
                    continue;
                }
                let (mut senders, mut fast_senders) = (Vec::new(), Vec::new());
                plain.seize(start, &mut senders);
                fast.seize(start, &mut fast_senders);
                prop_assert_eq!(&senders, &fast_senders);
                let mut late = round.in_transmission;
                late.sort_unstable_by_key(|&(_, after)| after);
                for (index, after) in late {
                    if !std::mem::replace(&mut has_frame[index], true) {
                        let at = start + us(after.min(round.length));
                        let joins = plain.on_frame(index, at, Time::ZERO);
                        prop_assert_eq!(joins, fast.on_frame(index, at, Time::ZERO));
                        senders.extend(joins.map(|start| (index, start)));
                    }
                }
                prop_assert_eq!(plain.next_access(), fast.next_access());
                now = start + us(round.length);
                for &(index, _) in &senders {
                    let (has_failed, has_next) = round.outcomes[index];
                    if has_failed {
                        plain.on_failure(index);
                        fast.on_failure(index);
                    } else {
                        plain.on_done(index);
                        fast.on_done(index);
                        if !has_next {
                            has_frame[index] = false;
                            plain.on_empty(index);
                            fast.on_empty(index);
                        }
                    }
                }
                let except: Vec<_> = round.except.iter().map(|&(index, space)| (index, now + us(space))).collect();
                plain.resume(now + us(round.space), &except);
                fast.resume(now + us(round.space), &except);
                prop_assert_eq!((plain.next_access(), plain.is_backlogged()), (fast.next_access(), fast.is_backlogged()));
            }
        }
    }
}
