//! The agent's part in trials ([`lasthop_trial`]): it hears and tells, switches between control and free, and takes the orders of
//! `lasthop trial`.
//!
//! In a free block the programs that bound are unloaded, and connections have their own congestion control back: free is as
//! without an agent. In a block with control they are loaded and the policy begins anew, whatever the configured mode.

use super::{Agent, wanted_mode};
use lasthop_policy::PolicyName;
use lasthop_status::{Mode, TrialOrder};
use lasthop_trial::{Arm, Ended, Message, Part, Standing};
use lasthop_units::{Span, Time};
use tracing::{info, warn};

/// For so long those who watch are told why a trial does not begin.
const REFUSED_FOR: Span = Span::from_secs(3);

/// What the agent knows of trials.
#[derive(Debug, Default)]
pub(super) struct Trying {
    pub(super) part: Part,
    /// What the trial has it do now; `None`: what the configuration says.
    arm: Option<Arm>,
    /// Why it has not begun one that it was told to, and until when that is told.
    refused: Option<(Standing, Time)>,
    /// The reader of the socket whose command began the trial.
    reader: Option<u64>,
}

impl Trying {
    /// For a status.
    pub(super) fn standing(&self, now: Time) -> Option<Standing> {
        let refused = self.refused.as_ref().filter(|(_, until)| now < *until);
        refused.map(|(refused, _)| refused.clone()).or_else(|| self.part.standing(now))
    }
}

impl Agent<'_> {
    /// The mode that configuration and trial ask for.
    pub(super) fn wanted_mode(&self) -> Mode {
        match self.trying.arm {
            Some(Arm::Control) => Mode::Control,
            Some(Arm::Free) => Mode::Advise,
            None => wanted_mode(&self.config),
        }
    }

    /// Hears and tells, and takes turns.
    pub(super) fn follow_trial(&mut self, now: Time) {
        self.take_order(now);
        for note in self.hearing.take_notes() {
            let Some(message) = Message::decode(&note.text) else { continue };
            let host = self.may_not_try(self.hearing.has_key()).is_none().then(rand::random);
            if self.trying.part.on_message(now, message, host) {
                info!("takes part in a trial that another agent of the group has begun");
            }
        }
        for message in self.trying.part.poll(now) {
            self.hearing.send_note(now, &message.encode());
        }
        self.take_turn(now);
    }

    /// Measures what the kernel shows of the connections at a tick.
    pub(super) fn measure_trial(&mut self, now: Time, seen: &super::Seen) {
        let flows = seen.sockets.iter().map(|socket| (socket.cookie, socket.tcp));
        if let Some(why) = self.trying.part.on_tick(now, flows) {
            warn!("leaves the trial: {why}");
        }
    }

    /// Why this host takes no part in trials; `None`: it may. `by_default`: where the configuration does not say.
    fn may_not_try(&self, by_default: bool) -> Option<&'static str> {
        if self.config.mode == Mode::Observe {
            Some("its mode is observe")
        } else if self.config.policy.policy == PolicyName::None {
            Some("its policy is none")
        } else if !self.config.trial.unwrap_or(by_default) {
            Some("`trial` is false in its configuration")
        } else {
            None
        }
    }

    fn take_order(&mut self, now: Time) {
        let Some(socket) = &mut self.socket else { return };
        socket.is_read();
        if self.trying.reader.is_some_and(|reader| !socket.has(reader)) {
            self.trying.reader = None;
            self.trying.part.abandon();
        }
        let Some((reader, order)) = socket.take_order() else { return };
        match serde_json::from_str(&order) {
            Ok(TrialOrder::Begin(plan)) => {
                let begun = match self.may_not_try(true) {
                    _ if !plan.is_valid() => Err("its numbers are out of range".to_owned()),
                    Some(why) => Err(why.to_owned()),
                    None => self.trying.part.begin(now, plan, rand::random()),
                };
                if begun.is_ok() {
                    info!("a trial begins: {} blocks of {} s", plan.blocks(), plan.block_s);
                    self.trying.reader = Some(reader);
                }
                let refused = |why: String| Standing {
                    id: format!("{:08x}", plan.id),
                    begun_here: true,
                    ended: Some(why),
                    ..Standing::default()
                };
                self.trying.refused = begun.err().map(|why| (refused(why), now + REFUSED_FOR));
            }
            Ok(TrialOrder::End) if self.trying.reader == Some(reader) => self.trying.part.leave(Ended::Stopped),
            Ok(TrialOrder::End) => {}
            Err(error) => warn!("an order on the socket is not understood: {error}"),
        }
    }

    /// Switches between control and free.
    fn take_turn(&mut self, now: Time) {
        let arm = self.trying.part.arm(now);
        if arm == self.trying.arm {
            return;
        }
        let before = self.wanted_mode();
        self.trying.arm = arm;
        match arm {
            Some(arm) => info!("trial: {arm}"),
            None => info!("trial: over for this host, which does what its configuration says"),
        }
        let wanted = self.wanted_mode();
        if wanted == before && self.tcp.is_some() {
            return;
        }
        self.reload(now);
        if arm.is_some() && self.mode != wanted {
            warn!("leaves the trial: {}", Ended::CannotControl);
            self.trying.part.leave(Ended::CannotControl);
            self.trying.arm = None;
            self.reload(now);
        }
    }

    /// The configuration was read again: the host leaves a trial first.
    pub(super) fn leave_trial(&mut self, now: Time) {
        self.trying.part.leave(Ended::Reconfigured);
        self.take_turn(now);
    }
}
