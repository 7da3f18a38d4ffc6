//! A law's first events, those in which a mistake shows: nothing is measured yet, and the window is the smallest.

use lasthop_laws::{Acked, INFINITE_SSTHRESH, Law, LawName, Lost, Sent, SlowStart, Start, Undone, Window};

/// A long flight, which any law has to reduce or to tolerate.
const FLIGHT: u32 = 1000;

/// Runs each event without measurements, and with small and large windows. A division by zero unwinds.
///
/// # Errors
/// If the law leaves a window or an ssthresh that TCP cannot have.
pub(crate) fn survives(name: LawName) -> Result<(), String> {
    for slow_start in SlowStart::ALL {
        let mut law = Law::new(name, Start { slow_start, ..Start::default() });
        for cwnd_segments in [1, 2, FLIGHT] {
            let mut window = Window { cwnd_segments, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
            let grows = Acked::MAY_GROW | Acked::CWND_LIMITED;
            for flags in [0, Acked::ADVANCED, grows, Acked::IN_REDUCTION] {
                law.on_acked(&Acked { acked_segments: 1, flags, ..Acked::default() }, &mut window);
                within("acked", &window, 1)?;
            }
            let lost = Lost { in_flight_segments: cwnd_segments, ..Lost::default() };
            law.on_lost(&lost, &mut window);
            within("lost", &window, 2)?;
            law.on_notified(&lost, &mut window);
            within("notified", &window, 2)?;
            law.on_timed_out(&lost, &mut window);
            within("timed_out", &window, 2)?;
            law.on_undone(&Undone::default(), &mut window);
            law.on_sent(&Sent::default());
        }
    }
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
