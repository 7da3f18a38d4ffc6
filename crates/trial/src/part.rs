//! A host's part in a trial.
//!
//! ```text
//!         Run                    over             End
//!  none ───────> takes turns ──────────> tells ────────> none
//!                     ├── loses, or leaves for another cause: tells, and is as its configuration says
//!                     └── not heard for LEASE: is as its configuration says, until it hears Run again
//! ```
//!
//! 1. The one who began it tells the plan and its age every [`RUN_EVERY`]. Who hears it first joins, and takes the earliest
//!    beginning that it has heard of: the messages wait in queues.
//! 2. Each host measures its blocks and tells one every [`TELL_EVERY`], the newest and the earlier ones in turn: many are lost.
//! 3. A host that sends less than [`KEEPS`] of what it sent while free leaves, and the trial ends. A stall that began before the block is
//!    none of control, the first time.
//! 4. Whoever does not hear the one who began it for [`LEASE`] is out of the trial, until it does.
//!
//! *What it leaves out*: a host that only receives and gets too little. It cannot tell that from a server with nothing to send.

use crate::block::{Block, Meter};
use crate::judge::Told;
use crate::message::Message;
use crate::plan::{Arm, Moment, Plan};
use lasthop_connection::TcpState;
use lasthop_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Who does not hear the one who began a trial for this long is out of it: thirty messages, most of which a full queue may drop.
pub const LEASE: Span = Span::from_secs(15);
/// After the last block, the one who began it waits so long for what others have measured.
pub const COLLECTS: Span = Span::from_secs(20);
/// Between two messages with the plan.
const RUN_EVERY: Span = Span::from_millis(500);
/// Between two messages of a host with a block, or a quarter of a block where that is shorter.
const TELL_EVERY: Span = Span::from_secs(2);
/// How often the end is told.
const ENDS: u32 = 4;
/// The part that a host must keep of what it sent while free, ...
const KEEPS: f64 = 0.25;
/// ... over so much of a block's time that counts, or three quarters of that, ...
const LOSES_FOR: Span = Span::from_secs(10);
/// ... if it had sent so much.
const LEAST_SENT: Rate = Rate::from_bps(100_000);
/// After the start of a block, ACKs of what was sent before it may come for so long.
const STRAGGLES: Span = Span::from_secs(2);

/// Why a trial has ended, or a host has left it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// It is over.
    Over,
    /// The command that began it has ended.
    Stopped,
    /// This host sent so much, and so much in blocks without control.
    Loses {
        /// Under control, Mb/s.
        got: f64,
        /// While free, Mb/s.
        free: f64,
    },
    /// Another host has lost too much.
    OtherLoses {
        /// That host.
        host: u32,
        /// What it sent under control, Mb/s.
        got: f64,
    },
    /// This host's agent cannot control here.
    CannotControl,
    /// This host's agent has read its configuration again.
    Reconfigured,
}

/// A host's part in trials: in none, or in one.
#[derive(Clone, Debug, Default)]
pub struct Part {
    running: Option<Running>,
    /// The one whose beginner it hears no longer: it goes on with it if it does again.
    lapsed: Option<Running>,
    /// The last one that it was in: once it has ended there, it joins it no second time.
    last: Option<u32>,
}

#[derive(Clone, Debug)]
struct Running {
    plan: Plan,
    host: u32,
    /// This host's command has begun it.
    is_ours: bool,
    began: Time,
    heard_at: Time,
    /// The host does what the plan says from then on.
    follows_from: Time,
    ended: Option<Ended>,
    meter: Meter,
    /// The block under control in which a stall from before it was no loss: one such stall is chance.
    stalled_in: Option<u16>,
    /// Own blocks, and whether the host had data to send in them throughout.
    blocks: BTreeMap<u16, (Block, bool)>,
    loses: Option<u16>,
    /// What others tell, for the one who began it.
    others: BTreeMap<(u32, u16), Block>,
    run_at: Time,
    tell_at: Time,
    turn: usize,
    ends_told: u32,
    /// Nobody waits for the results.
    is_abandoned: bool,
}

/// A trial as a status tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// By which hosts know it, in hexadecimal digits.
    pub id: String,
    /// It was begun on this host.
    pub begun_here: bool,
    /// The present block, from 1; `None`: before or after them.
    pub block: Option<u16>,
    /// The number of blocks.
    pub blocks: u16,
    /// What the host does now; `None`: what its configuration says.
    pub arm: Option<Arm>,
    /// Time until the next block, in s.
    pub left_s: f64,
    /// Hosts that have told what they measured, with this one. Only on the host that began it.
    pub hosts: u32,
    /// Blocks that they have told.
    pub told: u32,
    /// Why this host is in it no longer; `None`: it is in it, and the results are not complete.
    pub ended: Option<String>,
}

impl Part {
    /// Begins a trial on this host, which calls itself `host` in it.
    ///
    /// # Errors
    /// In words, if it is in another trial.
    pub fn begin(&mut self, now: Time, plan: Plan, host: u32) -> Result<(), String> {
        if let Some(running) = self.running.as_ref().filter(|running| !(running.is_ours && running.ended.is_some())) {
            return Err(format!("this host is in another trial, {:08x}", running.plan.id));
        }
        self.running = Some(Running::new(plan, host, true, now, now));
        self.last = Some(plan.id);
        Ok(())
    }

    /// Takes a message. `host` is drawn for a trial that it joins; `None`: it may join none. Returns whether it has joined one, or goes on
    /// with one.
    pub fn on_message(&mut self, now: Time, message: Message, host: Option<u32>) -> bool {
        match (message, &mut self.running) {
            (Message::Run(plan, _), None)
                if host.is_some() && self.lapsed.as_ref().is_some_and(|lapsed| lapsed.plan == plan) =>
            {
                self.running = self.lapsed.take();
                self.on_message(now, message, host);
                self.running.iter_mut().for_each(|running| running.follow_from(now));
                return true;
            }
            (Message::Run(plan, elapsed), None) => {
                let Some(host) = host.filter(|_| self.last != Some(plan.id) && elapsed < plan.lasts()) else {
                    return false;
                };
                let began = Time::from_nanos(now.as_nanos().saturating_sub(elapsed.as_nanos()));
                self.running = Some(Running::new(plan, host, false, began, now));
                self.last = Some(plan.id);
                return true;
            }
            (Message::Run(plan, elapsed), Some(running)) if running.plan == plan && !running.is_ours => {
                running.heard_at = now;
                let began = Time::from_nanos(now.as_nanos().saturating_sub(elapsed.as_nanos()));
                running.began = running.began.min(began);
            }
            (Message::End(trial), Some(running)) if running.plan.id == trial && !running.is_ours => self.running = None,
            (Message::End(trial), None) => self.lapsed = self.lapsed.take().filter(|lapsed| lapsed.plan.id != trial),
            (Message::Block { trial, host, block, loses }, Some(running))
                if running.plan.id == trial && running.is_ours =>
            {
                running.on_told(host, block, loses);
            }
            _ => {}
        }
        false
    }

    /// What the host does now; `None`: what its configuration says.
    pub fn arm(&self, now: Time) -> Option<Arm> {
        Some(self.running.as_ref()?.moment(now)?.arm)
    }

    /// Takes the connections of a tick. Returns why the host leaves, if it does.
    pub fn on_tick(&mut self, now: Time, flows: impl IntoIterator<Item = (u64, TcpState)>) -> Option<Ended> {
        self.running.as_mut()?.on_tick(now, flows)
    }

    /// What is to be told now. Ends what is over.
    pub fn poll(&mut self, now: Time) -> Vec<Message> {
        let Some(running) = &mut self.running else { return Vec::new() };
        if !running.is_ours && now.saturating_since(running.heard_at) > LEASE {
            self.lapsed = self.running.take().filter(|running| running.ended.is_none());
            return Vec::new();
        }
        if running.is_abandoned && running.ends_told >= ENDS {
            self.running = None;
            return Vec::new();
        }
        running.poll(now)
    }

    /// The host leaves, or ends what it has begun. What it has measured is told on.
    pub fn leave(&mut self, why: Ended) {
        self.lapsed = None;
        if let Some(running) = &mut self.running {
            running.end(why);
        }
    }

    /// This host's command is gone: what it has begun ends, and is forgotten once the others have been told.
    pub fn abandon(&mut self) {
        if let Some(running) = self.running.as_mut().filter(|running| running.is_ours) {
            running.end(Ended::Stopped);
            running.is_abandoned = true;
        }
    }

    /// Whether this host's command began the trial that it is in.
    pub fn is_ours(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_ours)
    }

    /// The trial; `None`: it is in none.
    pub fn standing(&self, now: Time) -> Option<Standing> {
        let running = self.running.as_ref()?;
        let moment = running.moment(now);
        let hosts: BTreeSet<u32> = running.others.keys().map(|(host, _)| *host).collect();
        Some(Standing {
            id: format!("{:08x}", running.plan.id),
            begun_here: running.is_ours,
            block: moment.map(|moment| moment.block + 1),
            blocks: running.plan.blocks(),
            arm: moment.map(|moment| moment.arm),
            left_s: moment.map_or(0.0, |moment| moment.left.as_secs_f64()),
            hosts: u32::try_from(hosts.len() + 1).unwrap_or(u32::MAX),
            told: u32::try_from(running.blocks.len() + running.others.len()).unwrap_or(u32::MAX),
            ended: running.ended.map(|ended| ended.to_string()),
        })
    }

    /// What all hosts have measured, once the trial of this host's command has ended; else nothing.
    pub fn told(&self) -> Vec<Told> {
        let Some(running) = self.running.as_ref().filter(|running| running.is_ours && running.ended.is_some()) else {
            return Vec::new();
        };
        let own = running.blocks.values().map(|(block, _)| Told { host: running.host, block: *block });
        own.chain(running.others.iter().map(|((host, _), block)| Told { host: *host, block: *block })).collect()
    }
}

impl Running {
    fn new(plan: Plan, host: u32, is_ours: bool, began: Time, now: Time) -> Self {
        Self {
            plan,
            host,
            is_ours,
            began,
            heard_at: now,
            follows_from: now,
            ended: None,
            meter: Meter::default(),
            stalled_in: None,
            blocks: BTreeMap::new(),
            loses: None,
            others: BTreeMap::new(),
            run_at: now,
            tell_at: now + tell_every(&plan) * (f64::from(host) / f64::from(u32::MAX)),
            turn: 0,
            ends_told: 0,
            is_abandoned: false,
        }
    }

    /// `None`: over, or left.
    fn moment(&self, now: Time) -> Option<Moment> {
        if self.ended.is_some() { None } else { self.plan.at(now.saturating_since(self.began)) }
    }

    /// It goes on after a lapse, in which it did something else.
    fn follow_from(&mut self, now: Time) {
        self.follows_from = now;
        self.meter = Meter::default();
    }

    /// Whether the host has followed the plan from the block's start on, or almost.
    fn follows(&self, block: u16) -> bool {
        let began = self.began + self.plan.block() * u64::from(block);
        self.follows_from <= began + self.plan.left_out() / 4
    }

    /// Keeps a block that counts.
    fn keep(&mut self, (block, had_data): (Block, bool)) {
        if block.is_whole(&self.plan) && self.follows(block.block) {
            self.blocks.insert(block.block, (block, had_data));
        }
    }

    fn end(&mut self, why: Ended) {
        if self.ended.is_some() {
            return;
        }
        if let Some(present) = self.meter.present() {
            self.keep(present);
        }
        self.ended = Some(why);
    }

    fn on_told(&mut self, host: u32, block: Block, loses: bool) {
        // Sixteen times what a fleet has: one who lies costs no more memory than that.
        let room = 1 << 16;
        if host != self.host && block.block < self.plan.blocks() && self.others.len() < room {
            self.others.insert((host, block.block), block);
            if loses {
                self.end(Ended::OtherLoses { host, got: block.sent().as_mbps() });
            }
        }
    }

    fn on_tick(&mut self, now: Time, flows: impl IntoIterator<Item = (u64, TcpState)>) -> Option<Ended> {
        let moment = self.moment(now);
        if let Some(ended) = self.meter.on_tick(now, moment, flows) {
            self.keep(ended);
        }
        let lost = self.lost(moment?);
        if let Some(lost) = lost {
            let (block, had_data) = self.meter.present()?;
            self.blocks.insert(block.block, (block, had_data));
            (self.loses, self.ended) = (Some(block.block), Some(lost));
        }
        lost
    }

    /// Whether the host gets too little in the present block.
    fn lost(&mut self, moment: Moment) -> Option<Ended> {
        let may_lose = moment.counts && moment.arm == Arm::Control && self.follows(moment.block);
        let (block, had_data) = self.meter.present().filter(|_| may_lose)?;
        let counts = self.plan.counts();
        let long_enough = LOSES_FOR.min(Span::from_nanos(counts.as_nanos() / 4 * 3)).as_millis();
        let free =
            self.blocks.values().filter(|(block, had_data)| *had_data && self.plan.arm(block.block) == Arm::Free);
        let free: Vec<f64> = free.map(|(block, _)| block.sent().as_mbps()).collect();
        let mean = free.iter().sum::<f64>() / free.len().max(1) as f64;
        let got = block.sent().as_mbps();
        let loses = had_data && u64::from(block.lasted_ms) >= long_enough && got < KEEPS * mean;
        if !loses || mean < LEAST_SENT.as_mbps() {
            return None;
        }
        let began = self.began + self.plan.block() * u64::from(moment.block);
        let stalled = self.meter.sent_at().is_none_or(|at| at < began + STRAGGLES);
        if stalled && self.stalled_in.is_none_or(|block| block == moment.block) {
            self.stalled_in = Some(moment.block);
            return None;
        }
        Some(Ended::Loses { got, free: mean })
    }

    fn poll(&mut self, now: Time) -> Vec<Message> {
        let mut told = Vec::new();
        if self.is_ours {
            let elapsed = now.saturating_since(self.began);
            let is_done = elapsed >= self.plan.lasts() && self.is_complete() || elapsed >= self.plan.lasts() + COLLECTS;
            if is_done {
                self.end(Ended::Over);
            }
            if now >= self.run_at {
                self.run_at = now + RUN_EVERY;
                if self.ended.is_none() {
                    told.push(Message::Run(self.plan, elapsed));
                } else if self.ends_told < ENDS {
                    self.ends_told += 1;
                    told.push(Message::End(self.plan.id));
                }
            }
        } else if now >= self.tell_at && !self.blocks.is_empty() {
            self.tell_at = now + tell_every(&self.plan);
            let (newest, all) = (self.blocks.len() - 1, self.blocks.len());
            // The newest and the earlier ones in turn.
            let at = if self.turn.is_multiple_of(2) { newest } else { self.turn / 2 % all };
            self.turn += 1;
            let at = self.loses.and_then(|lost| self.blocks.keys().position(|block| *block == lost)).unwrap_or(at);
            let block = self.blocks.values().nth(at).map(|(block, _)| *block).unwrap_or_default();
            told.push(Message::Block {
                trial: self.plan.id,
                host: self.host,
                block,
                loses: self.loses == Some(block.block),
            });
        }
        told
    }

    /// Whether every host that has told anything has told all blocks.
    fn is_complete(&self) -> bool {
        let mut counts: BTreeMap<u32, u16> = BTreeMap::new();
        for (host, _) in self.others.keys() {
            *counts.entry(*host).or_default() += 1;
        }
        counts.values().all(|count| *count >= self.plan.blocks())
    }
}

fn tell_every(plan: &Plan) -> Span {
    TELL_EVERY.min(Span::from_nanos(plan.block().as_nanos() / 4))
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = 100.0 * KEEPS;
        match self {
            Self::Over => f.write_str("it is over"),
            Self::Stopped => f.write_str("the command that began it has ended"),
            Self::Loses { got, free } => {
                write!(
                    f,
                    "this host sent {got:.2} Mb/s under control and {free:.2} Mb/s without: less than {part:.0} %"
                )
            }
            Self::OtherLoses { host, got } => write!(
                f,
                "host {host:08x} sent {got:.2} Mb/s under control, less than {part:.0} % of what it sent without"
            ),
            Self::CannotControl => f.write_str("this host's agent cannot control here; its log says why"),
            Self::Reconfigured => f.write_str("this host's agent has read its configuration again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Bytes;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    const TICK: Span = Span::from_millis(500);

    fn plan() -> Plan {
        Plan { id: 9, seed: 4, pairs: 4, block_s: 20 }
    }

    /// Hosts that hear each other, but for what `lost` says, and send at a rate of their own in each arm, in kB a tick.
    struct Place {
        hosts: Vec<Part>,
        sent: Vec<u64>,
        rates: fn(usize, Option<Arm>) -> u64,
        now: Time,
    }

    impl Place {
        fn new(hosts: usize, rates: fn(usize, Option<Arm>) -> u64) -> Self {
            let mut place = Self {
                hosts: vec![Part::default(); hosts],
                sent: vec![0; hosts],
                rates,
                now: Time::ZERO + Span::from_secs(1000),
            };
            place.hosts[0].begin(place.now, plan(), 1000).expect("it is in none");
            place
        }

        /// A tick of all; `lost` says of each message whether it is.
        fn tick(&mut self, mut lost: impl FnMut() -> bool) {
            let mut messages = Vec::new();
            for (index, host) in self.hosts.iter_mut().enumerate() {
                messages.extend(host.poll(self.now).into_iter().map(|message| (index, message)));
                self.sent[index] += 1000 * (self.rates)(index, host.arm(self.now));
                let flow = TcpState {
                    acked: Bytes::new(self.sent[index]),
                    in_flight_segments: 1,
                    newest_rtt: Some(Span::from_millis(20)),
                    ..TcpState::default()
                };
                host.on_tick(self.now, [(7, flow)]);
            }
            for (number, (from, message)) in messages.into_iter().enumerate().filter(|_| !lost()) {
                let heard = Message::decode(&message.encode()).expect("its own");
                assert_eq!(heard, message, "message {number}");
                for (index, host) in self.hosts.iter_mut().enumerate().filter(|(index, _)| *index != from) {
                    host.on_message(self.now, heard, Some(1000 + index as u32));
                }
            }
            self.now += TICK;
        }

        fn arms(&self) -> Vec<Option<Arm>> {
            self.hosts.iter().map(|host| host.arm(self.now)).collect()
        }
    }

    #[test]
    fn all_hosts_take_turns_at_once_and_the_one_who_began_it_has_what_all_measured() {
        let mut place = Place::new(4, |host, arm| 100 * (host as u64 + 1) + u64::from(arm == Some(Arm::Control)));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [0, 0];
        while place.hosts[0].told().is_empty() {
            // Seven of ten messages are lost.
            place.tick(|| rng.random::<f64>() < 0.7);
            let arms = place.arms();
            if arms.iter().all(Option::is_some) {
                assert!(arms.iter().all(|arm| *arm == arms[0]), "{arms:?}");
                seen[usize::from(arms[0] == Some(Arm::Control))] += 1;
            }
        }
        // 8 blocks of 40 ticks; the others join when they hear of it.
        assert!(seen.iter().all(|seen| (140..=160).contains(seen)), "{seen:?}");
        let told = place.hosts[0].told();
        let of = |host: u32| told.iter().filter(|told| told.host == host).count();
        assert_eq!(of(1000), 8);
        assert!((1001..=1003).all(|host| of(host) >= 6), "{told:?}");
        for Told { host, block } in told {
            let kb_a_tick = 100 * u64::from(host - 999) + u64::from(plan().arm(block.block) == Arm::Control);
            assert_eq!(block.sent(), Rate::from_bps(16_000 * kb_a_tick), "host {host}, {block:?}");
        }
        assert_eq!(
            place.hosts[0].standing(place.now).and_then(|standing| standing.ended),
            Some("it is over".to_owned())
        );
    }

    #[test]
    fn who_does_not_hear_the_one_who_began_it_is_out_after_the_lease_until_it_does() {
        let mut place = Place::new(2, |_, _| 100);
        for _ in 0..60 {
            place.tick(|| false);
        }
        assert!(place.arms()[1].is_some());
        let heard_last = place.now;
        while place.arms()[1].is_some() {
            place.tick(|| true);
        }
        let silent = place.now.saturating_since(heard_last);
        assert!(silent >= LEASE && silent <= LEASE + TICK * 2, "{silent:?}");
        let measured = place.hosts[1].lapsed.as_ref().expect("it may go on").blocks.len();
        assert!(measured > 0);
        place.tick(|| false);
        place.tick(|| false);
        assert_eq!(place.arms()[1], place.arms()[0]);
        assert_eq!(place.hosts[1].running.as_ref().map(|running| running.blocks.len()), Some(measured));
        // Not once it has left.
        while place.arms()[1].is_some() {
            place.tick(|| true);
        }
        place.hosts[1].leave(Ended::Reconfigured);
        place.tick(|| false);
        place.tick(|| false);
        assert_eq!(place.arms()[1], None);
        assert!(place.arms()[0].is_some());
    }

    #[test]
    fn the_end_is_told_and_everybody_is_as_before() {
        let mut place = Place::new(3, |_, _| 100);
        for _ in 0..20 {
            place.tick(|| false);
        }
        place.hosts[0].leave(Ended::Stopped);
        place.tick(|| false);
        place.tick(|| false);
        assert_eq!(place.arms(), [None, None, None]);
        assert!(place.hosts[1].standing(place.now).is_none());
    }

    #[test]
    fn it_ends_where_a_host_with_data_to_send_gets_less_than_a_quarter() {
        let starved = |host: usize, arm| if host == 1 && arm == Some(Arm::Control) { 24 } else { 100 };
        let fine = |host: usize, arm| if host == 1 && arm == Some(Arm::Control) { 26 } else { 100 };
        // As one that waits for a timeout since before the block: once, that is no harm.
        let silent = |host: usize, arm| if host == 1 && arm == Some(Arm::Control) { 0 } else { 100 };
        let run = |rates: fn(usize, Option<Arm>) -> u64| {
            let mut place = Place::new(2, rates);
            while place.hosts[0].told().is_empty() {
                place.tick(|| false);
            }
            (place.hosts[0].standing(place.now).and_then(|standing| standing.ended), place.now)
        };
        let (said, at) = run(starved);
        let expected = "host 000003e9 sent 0.38 Mb/s under control, less than 25 % of what it sent without";
        assert_eq!(said.as_deref(), Some(expected));
        let (over, at_the_end) = run(fine);
        assert_eq!(over.as_deref(), Some("it is over"));
        let (said, later) = run(silent);
        assert_eq!(
            said.as_deref().map(|said| said.starts_with("host 000003e9 sent 0.00 Mb/s under control")),
            Some(true)
        );
        assert!(later > at && later < at_the_end);
        // In the first block under control after a free one.
        let first =
            (1..8).find(|block| plan().arm(*block) == Arm::Control && (0..*block).any(|b| plan().arm(b) == Arm::Free));
        let begins = plan().block() * u64::from(first.expect("there is one"));
        let ran = at.saturating_since(Time::ZERO + Span::from_secs(1000));
        assert!(ran > begins && ran < begins + plan().block() + TELL_EVERY, "{ran:?}");
        assert!(at_the_end > at);
    }

    #[test]
    fn a_host_is_in_one_trial_at_a_time() {
        let mut part = Part::default();
        let now = Time::ZERO + Span::from_secs(50);
        assert!(part.on_message(now, Message::Run(plan(), Span::from_secs(5)), Some(1)));
        assert!(part.begin(now, Plan { id: 10, ..plan() }, 2).is_err());
        assert!(!part.on_message(now, Message::Run(Plan { id: 10, ..plan() }, Span::ZERO), Some(1)));
        // Not allowed: none is joined.
        assert!(!Part::default().on_message(now, Message::Run(plan(), Span::ZERO), None));
    }
}
