//! The policy `external`: decisions come from a program outside, over the lines of [`schema`](crate::schema).
//!
//! This room starts no process. [`External`] is given a function that asks. The caller of a policy makes one that
//! writes to a program and reads its answer, or that calls into Python:
//!
//! ```text
//!  Observation ──> schema::Observation ──> ask ──> schema::Decision ──> checks, floors ──> Decision
//!                                           │ error
//!                                           └──> no limits at all, and Policy::failure says why
//! ```
//!
//! ```
//! use lasthop_policy::{External, FlowId, FlowObservation, Observation, Policy as _, schema};
//!
//! let mut policy = External::new(1, |seen: &schema::Observation| {
//!     let limited =
//!         |flow: &schema::Flow| schema::FlowLimits { id: flow.id, max_segments: Some(20), ..Default::default() };
//!     Ok(schema::Decision { flows: seen.flows.iter().map(limited).collect(), ..Default::default() })
//! });
//! let flows = [FlowObservation { id: FlowId(7), ..FlowObservation::default() }];
//! let peers = lasthop_peers::Neighbourhood::alone();
//! let observation = Observation { now: lasthop_units::Time::ZERO, flows: &flows, peers: &peers };
//! assert_eq!(policy.on_tick(&observation).flows[0].bound.unwrap().max_segments, 20);
//! ```

use crate::{Decision, Enabled, FlowDecision, FlowId, Observation, Policy, Reason, Trigger, schema};
use lasthop_laws::bound::{Bound, LEAST_PACING_RATE};
use lasthop_peers::Word;
use lasthop_units::Rate;
use std::collections::BTreeMap;

/// The longest text of a reason, in characters.
pub const REASON_CHARACTERS: usize = 200;
/// The greatest pacing rate that a program may name, in Mb/s.
const MOST_MBPS: f64 = 1e5;

/// The policy `external`: asks at each tick.
pub struct External<Ask> {
    ask: Ask,
    minimum_segments: u32,
    tick: u64,
    /// How each connection came under control.
    enabled: BTreeMap<FlowId, Enabled>,
    word: Option<Word>,
    failure: Option<String>,
}

impl<Ask: FnMut(&schema::Observation) -> Result<schema::Decision, String>> External<Ask> {
    /// `ask` gives the decision for an observation, or says why there is none. Limits are raised to `minimum_segments`.
    pub fn new(minimum_segments: u32, ask: Ask) -> Self {
        Self { ask, minimum_segments, tick: 0, enabled: BTreeMap::new(), word: None, failure: None }
    }

    fn decide(&mut self, observation: &Observation<'_>) -> Result<Decision, String> {
        let asked = schema::Observation::new(self.tick, observation);
        let answer = (self.ask)(&asked)?;
        let (decision, word) = check(&answer, observation, self.minimum_segments, &self.enabled)?;
        self.word = word;
        Ok(decision)
    }
}

impl<Ask: FnMut(&schema::Observation) -> Result<schema::Decision, String>> Policy for External<Ask> {
    fn on_tick(&mut self, observation: &Observation<'_>) -> Decision {
        self.word = None;
        self.failure = None;
        let decision = self.decide(observation).unwrap_or_else(|problem| {
            let reason = Reason::NoAnswer(problem.as_str().into());
            self.failure = Some(problem);
            let unbounded = |id| FlowDecision::new(id, None, Err(reason.clone()));
            Decision { flows: observation.flows.iter().map(|flow| unbounded(flow.id)).collect(), new_flows: None }
        });
        self.tick += 1;
        let enabled = decision.flows.iter().filter_map(|flow| Some((flow.id, flow.enabled?)));
        self.enabled = enabled.collect();
        decision
    }

    fn word(&self) -> Option<Word> {
        self.word
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// The policy of a caller that runs no programs: it never decides.
pub(crate) fn nobody(_: &schema::Observation) -> Result<schema::Decision, String> {
    Err("the policy is \"external\", and what runs this host starts no program for it".to_owned())
}

/// What the answer means, with its word; or the field that is wrong, and what is accepted.
fn check(
    answer: &schema::Decision,
    observation: &Observation<'_>,
    minimum_segments: u32,
    before: &BTreeMap<FlowId, Enabled>,
) -> Result<(Decision, Option<Word>), String> {
    let mut limits = BTreeMap::new();
    for (place, flow) in answer.flows.iter().enumerate() {
        let here = format!("flows[{place}]");
        if !observation.flows.iter().any(|seen| seen.id.0 == flow.id) {
            return Err(format!("{here}.id: {} is no connection of the observation", flow.id));
        }
        let &schema::FlowLimits {
            min_segments, max_segments, max_pacing_mbps, max_receive_bytes, paced, at_once, ..
        } = flow;
        let own = schema::Limits { min_segments, max_segments, max_pacing_mbps, max_receive_bytes, paced, at_once };
        let bound = bound(&own, minimum_segments);
        let bound = bound.map_err(|problem| format!("{here}.{problem}"))?;
        let by = flow.control.map(Trigger::from).or(bound.map(|_| Trigger::Always));
        if limits.insert(FlowId(flow.id), (bound, by)).is_some() {
            return Err(format!("{here}.id: {} is there twice", flow.id));
        }
    }
    let new_flows = answer.new_flows.as_ref().map_or(Ok(None), |new| bound(new, minimum_segments));
    let new_flows = new_flows.map_err(|problem| format!("new_flows.{problem}"))?;
    let word = answer.word.as_ref().map(schema::Word::to_word).transpose()?;
    let said = answer.reason.as_deref().unwrap_or_default();
    if said.chars().count() > REASON_CHARACTERS || said.contains(char::is_control) {
        return Err(format!("reason: accepted: up to {REASON_CHARACTERS} characters in one line"));
    }
    let reason = Reason::Program(said.into());
    let decide = |id: FlowId| {
        let (bound, by) = limits.get(&id).copied().unwrap_or_default();
        let at = before.get(&id).map_or(observation.now, |enabled| enabled.at);
        FlowDecision { id, bound, enabled: by.map(|by| Enabled { at, by }), reason: reason.clone() }
    };
    Ok((Decision { flows: observation.flows.iter().map(|flow| decide(flow.id)).collect(), new_flows }, word))
}

/// The limits, raised to their floors; `None`: no limits.
fn bound(limits: &schema::Limits, floor: u32) -> Result<Option<Bound>, String> {
    let &schema::Limits {
        min_segments: min,
        max_segments: max,
        max_pacing_mbps: mbps,
        max_receive_bytes,
        paced,
        at_once,
    } = limits;
    if let Some(mbps) = mbps.filter(|mbps| !(0.0..=MOST_MBPS).contains(mbps)) {
        return Err(format!("max_pacing_mbps: {mbps} is out of range; accepted: a number from 0 to {MOST_MBPS}"));
    }
    if *limits == schema::Limits::default() {
        return Ok(None);
    }
    let max_segments = max.map_or(0, |max| max.max(floor));
    let min_segments = min.unwrap_or(floor).max(floor).min(if max.is_some() { max_segments } else { u32::MAX });
    let max_pacing_rate = mbps.map_or(Rate::ZERO, |mbps| Rate::from_mbps(mbps).max(LEAST_PACING_RATE));
    // TCP raises it to two full segments.
    let max_receive_bytes = max_receive_bytes.map_or(0, |most| most.max(1));
    Ok(Some(Bound { min_segments, max_segments, max_pacing_rate, max_receive_bytes, paced, at_once }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowObservation;
    use lasthop_connection::TcpState;
    use lasthop_peers::{Neighbourhood, Peer, PeerId, Report};
    use lasthop_units::{Span, Time};
    use std::cell::RefCell;

    const PACED: schema::FlowLimits = schema::FlowLimits {
        id: 8,
        min_segments: None,
        max_segments: None,
        max_pacing_mbps: Some(2.0),
        max_receive_bytes: None,
        paced: false,
        at_once: false,
        control: None,
    };

    fn seen(ids: &[u64]) -> Vec<FlowObservation> {
        ids.iter().map(|id| FlowObservation { id: FlowId(*id), busy: true, ..FlowObservation::default() }).collect()
    }

    fn at(tick: u64) -> Time {
        Time::ZERO + Span::from_millis(500) * tick
    }

    /// What becomes of this answer for the connections 7 and 8.
    fn decided(minimum_segments: u32, json: &str) -> Result<Decision, String> {
        let answer: schema::Decision = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut policy = External::new(minimum_segments, |_: &_| Ok(answer.clone()));
        let peers = Neighbourhood::alone();
        let decision = policy.on_tick(&Observation { now: at(0), flows: &seen(&[7, 8]), peers: &peers });
        policy.failure.map_or(Ok(decision), Err)
    }

    #[test]
    fn limits_below_the_floor_are_raised_to_it() {
        let limits = |json: &str| decided(4, json).expect("a decision").flows[0].bound;
        let of = |min_segments, max_segments| Some(Bound { min_segments, max_segments, ..Bound::default() });
        assert_eq!(limits(r#"{"flows": [{"id": 7, "max_segments": 0}]}"#), of(4, 4));
        assert_eq!(limits(r#"{"flows": [{"id": 7, "max_segments": 30}]}"#), of(4, 30));
        assert_eq!(limits(r#"{"flows": [{"id": 7, "min_segments": 1}]}"#), of(4, 0));
        // The upper limit wins.
        assert_eq!(limits(r#"{"flows": [{"id": 7, "max_segments": 30, "min_segments": 40}]}"#), of(30, 30));
        let receiving = |max_receive_bytes| Some(Bound { min_segments: 4, max_receive_bytes, ..Bound::default() });
        assert_eq!(limits(r#"{"flows": [{"id": 7, "max_receive_bytes": 43440}]}"#), receiving(43_440));
        assert_eq!(limits(r#"{"flows": [{"id": 7, "max_receive_bytes": 0}]}"#), receiving(1));
        let by_tcp = Some(Bound { min_segments: 4, paced: true, ..Bound::default() });
        assert_eq!(limits(r#"{"flows": [{"id": 7, "paced": true}]}"#), by_tcp);
        let at_once = Some(Bound { min_segments: 4, at_once: true, ..Bound::default() });
        assert_eq!(limits(r#"{"flows": [{"id": 7, "at_once": true}]}"#), at_once);
        assert_eq!(limits(r#"{"flows": [{"id": 7, "paced": false}]}"#), None);
        assert_eq!(limits(r#"{"flows": [{"id": 7}]}"#), None);
        assert_eq!(limits("{}"), None);
        let decision = decided(1, r#"{"new_flows": {"max_pacing_mbps": 0}}"#).expect("a decision");
        assert_eq!(decision.new_flows.expect("limits").max_pacing_rate, LEAST_PACING_RATE);
    }

    #[test]
    fn a_wrong_decision_is_an_error_that_names_the_field() {
        let errors = [
            (r#"{"flows": [{"id": 9}]}"#, "flows[0].id: 9 is no connection of the observation"),
            (r#"{"flows": [{"id": 7}, {"id": 7}]}"#, "flows[1].id: 7 is there twice"),
            (
                r#"{"flows": [{"id": 7, "max_pacing_mbps": -1}]}"#,
                "flows[0].max_pacing_mbps: -1 is out of range; accepted: a number from 0 to 100000",
            ),
            (
                r#"{"new_flows": {"max_pacing_mbps": 1e6}}"#,
                "new_flows.max_pacing_mbps: 1000000 is out of range; accepted: a number from 0 to 100000",
            ),
            (r#"{"word": {"kind": 16, "hex": ""}}"#, "word.kind: 16 is out of range; accepted: 1 to 15"),
            (r#"{"word": {"kind": 9, "hex": "00"}}"#, "word.hex: \"00\" is no word; accepted: 32 hexadecimal digits"),
            (r#"{"reason": "a\nb"}"#, "reason: accepted: up to 200 characters in one line"),
        ];
        for (json, expected) in errors {
            assert_eq!(decided(1, json), Err(expected.to_owned()));
        }
        let unknown = decided(1, r#"{"flows": [{"id": 7, "max_segment": 3}]}"#).expect_err("there is no such field");
        assert!(unknown.contains("unknown field `max_segment`"), "{unknown}");
    }

    #[test]
    fn a_connection_is_under_control_from_its_first_limit_on_by_the_cause_that_the_program_names() {
        let answer = RefCell::new(schema::Decision::default());
        let mut policy = External::new(1, |_: &_| Ok(answer.borrow().clone()));
        let peers = Neighbourhood::alone();
        let mut enabled = |tick, flows: Vec<schema::FlowLimits>| {
            answer.borrow_mut().flows = flows;
            let decision = policy.on_tick(&Observation { now: at(tick), flows: &seen(&[7, 8]), peers: &peers });
            decision.flows[1].enabled
        };
        let by = |tick, by| Some(Enabled { at: at(tick), by });
        assert_eq!(enabled(0, vec![]), None);
        assert_eq!(enabled(1, vec![PACED]), by(1, Trigger::Always));
        let control = Some(schema::Control::OwnRtt);
        assert_eq!(enabled(2, vec![schema::FlowLimits { control, ..PACED }]), by(1, Trigger::OwnRtt));
        assert_eq!(enabled(3, vec![]), None);
        // Without limits, because it is not time for them yet.
        let waits = schema::FlowLimits { control, max_pacing_mbps: None, ..PACED };
        assert_eq!(enabled(4, vec![waits]), by(4, Trigger::OwnRtt));
    }

    #[test]
    fn without_an_answer_nothing_is_limited_and_nothing_is_told() {
        let mut answers = vec![Err("it sleeps".to_owned()), Ok(()), Err("it sleeps".to_owned())];
        let word = schema::Word { kind: 9, hex: "000102030405060708090a0b0c0d0eff".to_owned() };
        let mut policy = External::new(1, |_: &_| {
            let answer = schema::Decision { flows: vec![PACED], word: Some(word.clone()), ..Default::default() };
            answers.pop().expect("three ticks").map(|()| answer)
        });
        let peers = Neighbourhood::alone();
        let mut tick = |number| {
            let decision = policy.on_tick(&Observation { now: at(number), flows: &seen(&[8]), peers: &peers });
            (decision.flows[0].bound.is_some(), policy.word().is_some(), policy.failure().map(str::to_owned))
        };
        let silent = (false, false, Some("it sleeps".to_owned()));
        assert_eq!(tick(0), silent);
        assert_eq!(tick(1), (true, true, None));
        assert_eq!(tick(2), silent);
    }

    #[test]
    fn an_observation_says_what_a_policy_sees() {
        let word = schema::Word { kind: 9, hex: "000102030405060708090a0b0c0d0eff".to_owned() };
        let report = Report { busy_flows: 2, word: Some(word.to_word().expect("a word")), ..Report::default() };
        let peers = Neighbourhood::new(vec![Peer { id: PeerId(255), report, heard_at: at(1) }]);
        let (srtt, receive_rtt) = (Some(Span::from_nanos(1_234_567)), Some(Span::from_millis(20)));
        let tcp = TcpState { srtt, receive_rtt, ..TcpState::default() };
        let flow = FlowObservation { tcp, left_alone: true, ..seen(&[7])[0] };
        let line = schema::Line::Observation(schema::Observation::new(
            3,
            &Observation { now: at(2), flows: &[flow], peers: &peers },
        ));
        let expected = concat!(
            r#"{"event":"observation","tick":3,"now_ns":1000000000,"flows":[{"id":7,"srtt_ns":1234567,"#,
            r#""min_rtt_ns":null,"newest_rtt_ns":null,"cwnd_segments":0,"in_flight_segments":0,"acked_bytes":0,"#,
            r#""mss_bytes":0,"busy":true,"#,
            r#""backlogged":false,"received_bytes":0,"receive_rtt_ns":20000000,"min_receive_rtt_ns":null,"#,
            r#""receiving":false,"left_alone":true}],"peers":{"terminals":2,"hosts":1,"busy_flows":2,"#,
            r#""authenticated":false,"reports":["#,
            r#"{"id":"00000000000000ff","heard_at_ns":500000000,"busy_flows":2,"waiting":false,"srtt_ns":null,"#,
            r#""min_rtt_ns":null,"controlling":false,"congested":false,"word":{"kind":9,"#,
            r#""hex":"000102030405060708090a0b0c0d0eff"}}]}}"#,
        );
        assert_eq!(serde_json::to_string(&line).expect("plain data"), expected);
        assert_eq!(serde_json::from_str::<schema::Line>(expected).expect("plain data"), line);
    }
}
