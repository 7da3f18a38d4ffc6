//! Safe calls of the headers' functions: a reference guarantees all that a pointer must satisfy.

use crate::c::*;

macro_rules! safe {
    ($(fn $name:ident($($argument:ident: $type:ty),+) $(-> $result:ty)?;)+) => {$(
        pub(crate) fn $name($($argument: $type),+) $(-> $result)? {
            // SAFETY: the compiler checks these types against bindgen's. Every pointer comes from a reference and is
            // not kept. The C code reads const data and writes the rest, nothing else. Signed sums wrap (build.rs), and
            // the callers check C's divisors.
            #[allow(unsafe_code)]
            unsafe {
                crate::c::$name($($argument),+)
            }
        }
    )+};
}

safe! {
    fn lh_law_init(law: &mut lh_law, name: u32, parameters: &lh_parameters, start: &lh_start);
    fn lh_law_acked(law: &mut lh_law, parameters: &lh_parameters, acked: &lh_acked, window: &mut lh_window);
    fn lh_law_lost(law: &mut lh_law, parameters: &lh_parameters, lost: &lh_lost, window: &mut lh_window);
    fn lh_law_notified(law: &mut lh_law, parameters: &lh_parameters, notice: &lh_lost, window: &mut lh_window);
    fn lh_law_timed_out(law: &mut lh_law, parameters: &lh_parameters, lost: &lh_lost, window: &mut lh_window);
    fn lh_law_reported(law: &mut lh_law, parameters: &lh_parameters, report: &lh_report, window: &mut lh_window);
    fn lh_law_sent(law: &mut lh_law, sent: &lh_sent);
    fn lh_law_sampled(law: &mut lh_law, parameters: &lh_parameters, sample: &lh_rate_sample, steering: &mut lh_steering);
    fn lh_law_resumed(law: &mut lh_law, parameters: &lh_parameters, sample: &lh_rate_sample, steering: &mut lh_steering);
    fn lh_law_undone(law: &mut lh_law, undone: &lh_undone, window: &mut lh_window);

    fn lh_bound_holds(bound: &lh_bound, now_ns: u64) -> i32;
    fn lh_bound_window(bound: &lh_bound, now_ns: u64, cwnd: u32, in_flight: u32, flags: u32) -> u32;
    fn lh_bound_paces(bound: &lh_bound, now_ns: u64) -> i32;
    fn lh_bound_pacing_rate(bound: &lh_bound, now_ns: u64, rate: u64, paced_anyway: i32) -> u64;
    fn lh_bound_receive_window(bound: &lh_bound, now_ns: u64, window: u64, segment: u64) -> u64;

    fn lh_cubic_init(cubic: &mut lh_cubic, start: &lh_start);
    fn lh_cubic_sample(cubic: &mut lh_cubic, acked: &lh_acked, now: u32, cushion_us: u32, window: &mut lh_window);
    fn lh_cubic_grow(cubic: &mut lh_cubic, acked: &lh_acked, now: u32, window: &mut lh_window);
    fn lh_cubic_lost(cubic: &mut lh_cubic, lost: &lh_lost, window: &mut lh_window);
    fn lh_cubic_reset(cubic: &mut lh_cubic, now_us: u64, snd_nxt: u32);
    fn lh_cubic_resume(cubic: &mut lh_cubic, now: u32, idle: u32);
    fn lh_cube_root(a: u64) -> u32;

    fn lh_gradients_init(gradients: &mut lh_gradients, rounds: u32);
    fn lh_gradients_skip(gradients: &mut lh_gradients);
    fn lh_gradients_look(gradients: &mut lh_gradients, round: &lh_round, latest: &mut lh_gradient) -> i32;
    fn lh_cdg_queue(sum: &lh_gradient, queue: u32) -> u32;
    fn lh_cdg_linux_queue(sum: &lh_gradient, queue: u32) -> u32;
    fn lh_gradient_exponent(gradient: u64, scale: u64) -> u32;
    fn lh_gradient_probability(exponent: u32) -> u64;
    fn lh_exp_minus(x: u32) -> u64;
}
