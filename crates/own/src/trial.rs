//! A law's first events, and those in which a mistake shows: nothing is measured yet, nothing has changed since the last event, the
//! round trip is the least one, the window is the smallest.

use lasthop_laws::{
    Acked, INFINITE_SSTHRESH, Law, LawName, Lost, Sample, Sent, SlowStart, Start, Steering, Undone, Window,
};

/// A long flight, which any law has to reduce or to tolerate.
const FLIGHT: u32 = 1000;
/// From one event to the next: the same instant, and steps below and above a round trip.
const STEPS_US: [u64; 4] = [0, 1, 10_000, 10_000_000];
/// No sample, then the least round trip, longer ones, and the least again.
const ROUND_TRIPS_US: [u32; 5] = [0, 1_000, 1_001, 100_000, 1_000];
const SEGMENT_BYTES: u32 = 1448;

/// Runs each event without measurements, then with them, and with small and large windows. A division by zero unwinds.
///
/// # Errors
/// If the law leaves a window or an ssthresh that TCP cannot have.
pub(crate) fn survives(name: LawName) -> Result<(), String> {
    for slow_start in SlowStart::ALL {
        let start = || Law::new(name, Start { slow_start, ..Start::default() });
        let mut law = start();
        for cwnd_segments in [1, 2, FLIGHT] {
            each_event(&mut law, cwnd_segments, &Acked::default())?;
        }
        let (mut law, mut now_us, mut snd_una) = (start(), 0, 0);
        for cwnd_segments in [2, FLIGHT, 1] {
            for (step_us, rtt_us) in STEPS_US.into_iter().flat_map(|step| ROUND_TRIPS_US.map(|rtt| (step, rtt))) {
                for acked_segments in [0, 1, cwnd_segments] {
                    now_us += step_us;
                    snd_una += acked_segments * SEGMENT_BYTES;
                    let acked = Acked {
                        now_us,
                        acked_segments,
                        in_flight_segments: cwnd_segments - acked_segments.min(cwnd_segments),
                        rtt_us,
                        srtt_us: rtt_us,
                        min_rtt_us: rtt_us.min(ROUND_TRIPS_US[1]),
                        snd_una,
                        snd_nxt: snd_una,
                        ..Acked::default()
                    };
                    each_event(&mut law, cwnd_segments, &acked)?;
                }
            }
        }
    }
    Ok(())
}

/// Every event once, of a sender with this window, at the time and with the round trips of this ACK.
fn each_event(law: &mut Law, cwnd_segments: u32, acked: &Acked) -> Result<(), String> {
    let Acked { now_us, srtt_us, min_rtt_us, snd_una, snd_nxt, .. } = *acked;
    let mut window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    if law.steers() {
        return each_event_of_steering(law, cwnd_segments, acked);
    }
    let grows = Acked::MAY_GROW | Acked::CWND_LIMITED;
    for flags in [0, Acked::ADVANCED, grows, Acked::HAS_TIMESTAMP, Acked::IN_REDUCTION] {
        law.on_acked(&Acked { acked_segments: acked.acked_segments.max(1), flags, ..*acked }, &mut window);
        within("acked", &window, 1)?;
        law.on_acked(&Acked { flags, ..*acked }, &mut window);
        within("acked", &window, 1)?;
    }
    let lost =
        Lost { now_us, in_flight_segments: cwnd_segments, srtt_us, min_rtt_us, snd_una, snd_nxt, ..Lost::default() };
    law.on_lost(&lost, &mut window);
    within("lost", &window, 2)?;
    law.on_notified(&lost, &mut window);
    within("notified", &window, 2)?;
    law.on_timed_out(&lost, &mut window);
    within("timed_out", &window, 2)?;
    law.on_undone(&Undone { now_us }, &mut window);
    law.on_sent(&Sent { now_us, snd_nxt, ..Sent::default() });
    Ok(())
}

/// The same for a law that sets its window and pace.
fn each_event_of_steering(law: &mut Law, cwnd_segments: u32, acked: &Acked) -> Result<(), String> {
    let Acked { now_us, rtt_us, srtt_us, min_rtt_us, snd_una, snd_nxt, acked_segments, .. } = *acked;
    let mut window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    let mut steering = Steering { cwnd_segments, ssthresh_segments: INFINITE_SSTHRESH, ..Steering::default() };
    let all_delivered_segments = snd_una / SEGMENT_BYTES;
    for (state, interval_us) in (0..5).flat_map(|state| [(state, 0), (state, rtt_us)]) {
        let sample = Sample {
            now_us,
            delivered_us: now_us,
            departs_us: now_us,
            interval_us,
            sampled_segments: acked_segments,
            prior_delivered_segments: all_delivered_segments.saturating_sub(cwnd_segments),
            prior_in_flight_segments: cwnd_segments,
            acked_segments,
            lost_segments: state,
            in_flight_segments: cwnd_segments - acked_segments.min(cwnd_segments),
            all_delivered_segments,
            rtt_us,
            srtt_us,
            min_rtt_us,
            snd_una,
            snd_nxt,
            segment_bytes: SEGMENT_BYTES,
            state,
            ..Sample::default()
        };
        for (event, answer) in [("sampled", Law::on_sampled as fn(&mut _, &_, &mut _)), ("resumed", Law::on_resumed)] {
            answer(law, &sample, &mut steering);
            window = Window { cwnd_segments: steering.cwnd_segments, ..window };
            within(event, &Window { ssthresh_segments: steering.ssthresh_segments, ..window }, 2)?;
        }
    }
    let lost =
        Lost { now_us, in_flight_segments: cwnd_segments, srtt_us, min_rtt_us, snd_una, snd_nxt, ..Lost::default() };
    law.on_lost(&lost, &mut window);
    law.on_timed_out(&lost, &mut window);
    law.on_undone(&Undone { now_us }, &mut window);
    Ok(())
}

fn within(event: &str, window: &Window, least_ssthresh: u32) -> Result<(), String> {
    let Window { cwnd_segments, ssthresh_segments, .. } = *window;
    if cwnd_segments == 0 {
        return Err(format!("its {event}() leaves a window of 0 segments; the least is 1"));
    }
    if ssthresh_segments < least_ssthresh {
        return Err(format!(
            "its {event}() leaves an ssthresh of {ssthresh_segments}; the least is LH_MIN_SSTHRESH, 2"
        ));
    }
    Ok(())
}
