//! Laws of one's own: the worked example, copies of the tree's laws, and what is refused. Needs clang, as the build does.
#![allow(missing_docs)]

use lasthop_laws::own::{self, SOURCES, STATE_BYTES};
use lasthop_laws::{
    Acked, Choice, INFINITE_SSTHRESH, Law, LawName, Lost, Marking, Sample, Sent, SlowStart, Start, Steering, Undone,
    Window,
};
use lasthop_own::{Built, Error, Workshop};
use lasthop_units::Time;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

const WESTWOOD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/own-law/westwood.h");

const COPA: &str = include_str!("../../../scenarios/own-law/copa.h");

fn workshop(folder: &Path) -> Workshop {
    Workshop::new(folder.join("cache"), lasthop_kernel::laws::sources().collect())
}

fn built(folder: &Path, header: &Path) -> Built {
    workshop(folder).build(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()))
}

/// A law of these lines in a folder of its own, for simulated hosts only.
fn made_of(name: &str, text: &str) -> Result<Built, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join(name);
    fs::write(&header, text).expect("written");
    Workshop::new(folder.path().join("cache"), Vec::new()).build(&header)
}

/// A law that does what `acked` and `lost` say.
fn law(fields: &str, acked: &str, lost: &str) -> String {
    format!(
        "#ifndef MINE_H\n#define MINE_H\n#include \"law.h\"\n#include \"reno.h\"\nstruct lh_mine {{ {fields} }};\n\
         static inline void lh_mine_init(struct lh_mine *law, const struct lh_start *start) {{ *law = (struct lh_mine){{ 0 }}; }}\n\
         static inline void lh_mine_acked(struct lh_mine *law, const struct lh_acked *acked, struct lh_window *window)\n{{\n\
         {acked}\n}}\n\
         static inline void lh_mine_lost(struct lh_mine *law, const struct lh_lost *lost, struct lh_window *window)\n{{\n\
         {lost}\n}}\n\
         #endif\n#ifdef LH_LAW_ENTRY\nLH_LAW_ENTRY(mine, MINE, Mine, \"Mine\", Free, Circle, Everywhere, \"Mine.\")\n#endif\n"
    )
}

/// An event of the second form, before a law of the first.
const SAMPLES: &str = "#define LH_MINE_HAS_SAMPLED 1\nstatic inline void lh_mine_sampled(struct lh_mine *law, \
                       const struct lh_rate_sample *sample, struct lh_steering *steering) { steering->cwnd_segments = 9; }\n";
const GROWS: &str = "lh_reno_grow(acked, window);";
const HALVES: &str = "lh_reno_halve(lost, window);";
/// Where the body of `acked` is in [`law`].
const ACKED_LINE: usize = 9;

fn refusal(text: &str) -> String {
    let error = made_of("mine.h", text).expect_err("refused");
    error.to_string()
}

#[test]
fn westwood_filters_the_delivered_rate_and_falls_to_what_the_path_carried() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = built(folder.path(), Path::new(WESTWOOD)).law;
    assert_eq!((name.as_str(), name.kernel_name(), name.label()), ("westwood", "lh_westwood", "Westwood+"));
    assert!(name.is_for_the_kernel());
    let mut law = Law::new(name, Start::default());
    let mut window = Window { cwnd_segments: 100, cwnd_count: 0, ssthresh_segments: 50 };
    let ack = |at_ms: u64, acked_segments, rtt_ms: u32| Acked {
        now_us: at_ms * 1000,
        acked_segments,
        rtt_us: rtt_ms * 1000,
        ..Acked::default()
    };
    let lost = Lost { in_flight_segments: 100, ..Lost::default() };
    // before an estimate: half the flight
    law.on_lost(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 50);
    // 50 segments in the first 101 ms: n = b = 495.049 segments per second. With an RTTmin of 80 ms, 39.6 segments
    law.on_acked(&ack(50, 50, 80), &mut window);
    law.on_acked(&ack(101, 0, 100), &mut window);
    law.on_lost(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 39);
    // 200 in the next 100 ms, which is no longer than the last round trip of 100 ms: the interval goes on
    law.on_acked(&ack(150, 200, 100), &mut window);
    law.on_acked(&ack(201, 0, 100), &mut window);
    law.on_lost(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 39);
    // 200 in 102 ms: 1960.784. n = (7 x 495.049 + 1960.784) / 8 = 678.265, b = (7 x 495.049 + 678.265) / 8 = 517.951;
    // 41.4 segments
    law.on_acked(&ack(203, 0, 100), &mut window);
    law.on_lost(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 41);
    // at most the window, but after a timeout, which forgets RTTmin
    window.cwnd_segments = 20;
    law.on_lost(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 20);
    law.on_timed_out(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 41);
    law.on_acked(&ack(210, 0, 200), &mut window);
    // 517.951 x 0.2 s
    law.on_timed_out(&lost, &mut window);
    assert_eq!(window.ssthresh_segments, 103);
    // and grows as NewReno: 20 segments acknowledged, one more
    window = Window { cwnd_segments: 20, cwnd_count: 0, ssthresh_segments: 10 };
    let grows = Acked { flags: Acked::MAY_GROW | Acked::CWND_LIMITED, ..ack(215, 20, 0) };
    law.on_acked(&grows, &mut window);
    assert_eq!(window.cwnd_segments, 21);
}

#[test]
fn the_parameters_of_the_header_have_their_units_ranges_and_defaults() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = built(folder.path(), Path::new(WESTWOOD)).law;
    let mut choice = Choice::from(name);
    assert_eq!(choice.parameters.get(name, "interval_ms"), Some(50.0));
    assert_eq!(choice.parameters.values()[0], 50_000);
    choice.parameters.set(name, "interval_ms", 20.0).expect("in its range");
    let error = choice.parameters.set(name, "interval_ms", 0.5).expect_err("below it").to_string();
    assert_eq!(error, "westwood.interval_ms = 0.5: accepted is a number from 1 to 1000");
}

/// The answers of a law to many events, which a linear congruential generator draws.
fn answers(name: LawName, slow_start: SlowStart) -> Vec<(u32, u32, u32)> {
    let mut law =
        Law::new(Choice { seed: 7, ..name.into() }, Start { now: Time::ZERO, slow_start, ..Start::default() });
    let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    let (mut random, mut now_us, mut snd_una) = (1_u64, 0, 0_u32);
    let (mut delivered, mut pace) = (0_u32, 0_u64);
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut answers = Vec::new();
    for _ in 0..5000 {
        now_us += draw(20_000);
        let segments = draw(4) as u32;
        snd_una = snd_una.wrapping_add(segments * 1448);
        let snd_nxt = snd_una.wrapping_add(window.cwnd_segments.wrapping_mul(1448));
        let lost = Lost { now_us, in_flight_segments: window.cwnd_segments, snd_una, snd_nxt, ..Lost::default() };
        match draw(200) {
            0 => law.on_timed_out(&lost, &mut window),
            1 => law.on_lost(&lost, &mut window),
            2 => law.on_notified(&lost, &mut window),
            3 => law.on_undone(&Undone { now_us }, &mut window),
            4 => law.on_sent(&Sent { now_us, idle_us: draw(1_000_000), in_flight_before_segments: 0, snd_nxt }),
            _ => {
                let rtt_us = 20_000 + draw(30_000) as u32;
                let flags = Acked::MAY_GROW | Acked::CWND_LIMITED | Acked::ADVANCED;
                let acked =
                    Acked { now_us, acked_segments: segments, in_flight_segments: 9, rtt_us, ..Acked::default() };
                let acked = Acked { srtt_us: 30_000, min_rtt_us: 20_000, snd_una, snd_nxt, flags, ..acked };
                law.on_acked(&acked, &mut window);
                // what a law hears that steers
                delivered += segments;
                let sample = Sample {
                    now_us,
                    delivered_us: now_us,
                    departs_us: now_us + draw(2_000),
                    interval_us: rtt_us,
                    sampled_segments: 9,
                    prior_delivered_segments: delivered.saturating_sub(9),
                    acked_segments: segments,
                    all_delivered_segments: delivered,
                    lost_segments: draw(8) as u32 / 7,
                    rtt_us,
                    srtt_us: 30_000,
                    segment_bytes: 1448,
                    ..Sample::default()
                };
                let (cwnd_segments, ssthresh_segments) = (window.cwnd_segments, window.ssthresh_segments);
                let mut steering = Steering { pace, cwnd_segments, ssthresh_segments, ..Steering::default() };
                law.on_sampled(&sample, &mut steering);
                pace = steering.pace;
                window.cwnd_segments = steering.cwnd_segments;
                window.cwnd_count ^= pace as u32;
            }
        }
        window.cwnd_segments = window.cwnd_segments.clamp(1, 10_000);
        answers.push((window.cwnd_segments, window.cwnd_count, window.ssthresh_segments));
    }
    answers
}

#[test]
fn a_copy_of_a_laws_header_outside_the_tree_does_what_the_law_does() {
    for name in LawName::ALL.into_iter().filter(|law| !law.hears_reports()) {
        let header = format!("{}.h", name.identifier());
        let (_, text) = SOURCES.iter().find(|(file, _)| *file == header).expect("a law has a header");
        let copy = made_of(&header, text).unwrap_or_else(|error| panic!("{error}")).law;
        assert!(matches!(copy, LawName::Own(_)));
        assert!(!copy.is_for_the_kernel(), "there are no sources for it");
        let same = |(a, b): (&lasthop_laws::Parameter, &lasthop_laws::Parameter)| {
            (a.name, a.unit, a.from, a.to, a.default) == (b.name, b.unit, b.from, b.to, b.default)
        };
        assert_eq!(copy.parameters().len(), name.parameters().len());
        assert!(copy.parameters().iter().zip(name.parameters()).all(same), "{name}");
        for slow_start in SlowStart::ALL {
            assert_eq!(answers(copy, slow_start), answers(name, slow_start), "{name}, {slow_start:?}");
        }
    }
}

#[test]
fn a_law_that_sets_its_pace_needs_no_acked() {
    let sampled = "static inline void lh_mine_sampled(struct lh_mine *law, const struct lh_rate_sample *sample, \
                   struct lh_steering *steering) { steering->pace = 100000; steering->cwnd_segments = 20; }\n";
    let text = law("__u32 none;", GROWS, "(void)0;");
    let acked = text.find("static inline void lh_mine_acked").expect("an event");
    let lost = text.find("static inline void lh_mine_lost").expect("an event");
    let text = format!("#define LH_MINE_HAS_SAMPLED 1\n{}{sampled}{}", &text[..acked], &text[lost..]);
    let name = made_of("mine.h", &text).unwrap_or_else(|error| panic!("{error}")).law;
    assert!(name.steers());
    let mut steering = Steering { cwnd_segments: 10, ..Steering::default() };
    Law::new(name, Start::default()).on_sampled(&Sample::default(), &mut steering);
    assert_eq!((steering.pace, steering.cwnd_segments), (100_000, 20));
}

#[test]
fn a_header_that_is_no_law_is_refused_with_its_line_and_what_to_do() {
    assert!(made_of("mine.h", &law("__u32 a;", GROWS, HALVES)).is_ok());
    let acked = |body: &str| refusal(&law("__u64 a;", body, HALVES));
    let place = format!("mine.h:{ACKED_LINE}");
    let whole = law("__u32 a;", GROWS, HALVES);
    for (message, parts) in [
        (acked("window->cwnd_segments *= 1.5;"), &[&*place, "floating point", "ratios in millionths"][..]),
        (
            acked("extern __u32 noise(void); window->cwnd_segments += noise();"),
            &[&place, "noise is outside its headers", "calls nothing"],
        ),
        (
            acked("static __u32 calls; window->cwnd_segments = 2 + calls++;"),
            &[&place, "calls is a variable of all connections", "in its struct"],
        ),
        (acked("window->cwnd_segments += noise();"), &[&place, "does not compile", "noise"]),
        (acked("window->cwnd_segments ="), &["does not compile", "mine.h:10", "expected expression"]),
        (acked("window->cwnd_segments = 0;"), &["its acked() leaves a window of 0 segments; the least is 1"]),
        (refusal(&(SAMPLES.to_owned() + &whole)), &["it has sampled() and acked()"]),
        (refusal(&whole.replace("lh_mine_acked", "lh_mine_arrived")), &["it has neither acked() nor sampled()"]),
        (
            refusal(&(SAMPLES.replace("#define", "//") + &whole.replace("lh_mine_acked", "lh_mine_arrived"))),
            &["it has sampled() without a line '#define LH_MINE_HAS_SAMPLED 1'"],
        ),
        (
            refusal(&whole.replace("lh_mine_lost", "lh_mine_undone")),
            &["it has undone() without a line '#define LH_MINE_HAS_UNDONE 1'"],
        ),
        (
            refusal(&format!("#define LH_MINE_HAS_TIMEOUT 1\n{whole}")),
            &["'#define LH_MINE_HAS_TIMEOUT 1' declares nothing", "TIMED_OUT"],
        ),
        (refusal(&format!("#define LH_MINE_IS_L4S\n{whole}")), &["'#define LH_MINE_IS_L4S' declares nothing"]),
        (refusal(&format!("#define LH_MINE_IS_L4S 1\n{whole}")), &["a law with LH_LAW_IS_L4S is Simulated"]),
        (
            refusal(&format!(
                "#define LH_MINE_IS_L4S 1\n#define LH_MINE_ECHOES_MARKS 1\n{}",
                whole.replace("Everywhere", "Simulated")
            )),
            &["a law has LH_LAW_ECHOES_MARKS or LH_LAW_IS_L4S, not both"],
        ),
        (
            refusal(&law("__u32 a;", GROWS, "lh_reno_halve(lost, window); window->cwnd_segments /= 2;")),
            &["its lost() changes the window"],
        ),
        (
            refusal(&law("__u32 a;", GROWS, "window->ssthresh_segments = 0;")),
            &["its lost() leaves an ssthresh of 0; the least is LH_MIN_SSTHRESH, 2"],
        ),
        (
            refusal(&law(&format!("__u8 a[{}];", STATE_BYTES + 1), GROWS, HALVES)),
            &["the state, struct lh_mine, is larger than 360 bytes: keep less for each connection"],
        ),
        (
            refusal(
                &law("__u32 a;", GROWS, HALVES)
                    .replace("lh_mine", "lh_much_too_long")
                    .replace("(mine", "(much_too_long"),
            ),
            &["the law's name is too long for the kernel: 12 letters at most"],
        ),
        (
            refusal(&law("__u32 a;", GROWS, HALVES).replace("#ifdef LH_LAW_ENTRY", "#ifdef NEVER")),
            &["a header has one LH_LAW_ENTRY(...), behind its guard"],
        ),
        (
            refusal(&format!(
                "#define LH_MINE_HAS_REPORTED 1\n{}",
                law(
                    "__u32 a;",
                    GROWS,
                    "lh_reno_halve(lost, window); }\nstruct lh_report;\nstatic inline void lh_mine_reported(struct lh_mine *law, \
                 const struct lh_report *report, struct lh_window *window)\n{",
                )
            )),
            &["LH_LAW_HAS_REPORTED", "laws of the tree"],
        ),
    ] {
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
}

#[test]
fn the_page_says_the_room_for_a_laws_state_and_a_law_has_it_to_the_byte() {
    let page = include_str!("../../../docs/guide/own-law.md");
    assert!(page.contains(&format!("of at most {STATE_BYTES} bytes.")));
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("mine.h");
    let counts = "law->a[acked->acked_segments & 63]++;";
    fs::write(&header, law(&format!("__u32 a[{}];", STATE_BYTES / 4), counts, HALVES)).expect("written");
    assert!(built(folder.path(), &header).law.is_for_the_kernel());
}

#[test]
fn a_law_of_ones_own_may_be_one_of_l4s() {
    let simulated = law("__u32 a;", GROWS, HALVES).replace("Everywhere", "Simulated");
    let marking = |macros: &str| made_of("mine.h", &format!("{macros}{simulated}")).expect("a law").law.marking();
    assert_eq!(marking(""), Marking::OfHost);
    assert_eq!(marking("#define LH_MINE_ECHOES_MARKS 1\n"), Marking::Each);
    assert_eq!(marking("#define LH_MINE_IS_L4S 1\n"), Marking::L4s);
}

/// The tutorial's law, with one line changed.
fn copa(from: &str, to: &str) -> String {
    assert_eq!(COPA.matches(from).count(), 1, "{from}");
    COPA.replace(from, to)
}

#[test]
fn a_division_by_zero_behind_slow_start_or_at_a_parameters_end_is_refused_with_its_line() {
    let least = "lh_max(law->cwnd, 65536)";
    let line = COPA.lines().position(|line| line.contains(least)).expect("a division") + 1;
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("copa.h");
    for (divisor, with) in [
        ("(law->cwnd - law->cwnd)", ""),
        ("(sample->lost_segments)", ""),
        ("(sample->app_limited)", ""),
        ("(1 - sample->app_limited)", ""),
        ("(parameters->delta_ppm - 500000)", ""),
        ("(parameters->delta_ppm - 10000)", ", with delta = 0.01"),
        ("(parameters->delta_ppm - 1000000)", ", with delta = 1"),
    ] {
        fs::write(&header, copa(least, divisor)).expect("written");
        let message = workshop(folder.path()).build(&header).expect_err(divisor).to_string();
        assert!(message.contains(&format!("copa.h:{line}: a law divides by zero")), "{divisor}: {message}");
        assert!(message.ends_with(&format!("(law.h){with}")), "{divisor}: {message}");
    }
}

#[test]
fn the_trial_has_timeouts_marks_idleness_and_what_was_needless() {
    for (declares, event, told) in [
        ("TIMED_OUT", "timed_out", "const struct lh_lost *lost, struct lh_window *window"),
        ("NOTIFIED", "notified", "const struct lh_lost *lost, struct lh_window *window"),
        ("UNDONE", "undone", "const struct lh_undone *undone, struct lh_window *window"),
        ("SENT", "sent", "const struct lh_sent *sent"),
    ] {
        let asks = match event {
            "sent" => "if (law->a > 500 && sent->idle_us > 1500000) law->a /= sent->in_flight_before_segments;",
            "undone" => "if (law->a > 500) law->a /= law->a - law->a;",
            _ => {
                "if (law->a > 500) law->a /= lost->lost_segments - lost->lost_segments;\n\tlh_reno_halve(lost, window);"
            }
        };
        // the first events have no timestamps
        let text = law("__u32 a;", "law->a += acked->tsval > 0; lh_reno_grow(acked, window);", HALVES);
        let with = format!(
            "#define LH_MINE_HAS_{declares} 1\nstatic inline void lh_mine_{event}(struct lh_mine *law, {told}) {{ {asks} }}\n#endif\n#ifdef"
        );
        let message = refusal(&text.replacen("#endif\n#ifdef", &with, 1));
        assert!(message.contains("a law divides by zero"), "{event}: {message}");
    }
}

#[test]
fn what_only_the_kernel_lacks_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("mine.h");
    let signed = "__s64 a = acked->now_us; law->a = a / (acked->rtt_us | 1);";
    fs::write(&header, law("__s64 a;", signed, HALVES)).expect("written");
    match workshop(folder.path()).build(&header) {
        Ok(_) => {} // clang 18 and newer divide
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("does not compile for the kernel"), "{message}");
            assert!(message.contains(&format!("mine.h:{ACKED_LINE}")), "{message}");
        }
    }
}

#[test]
fn a_table_of_a_size_that_the_kernel_has_no_place_for_is_refused_with_its_line_and_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("mine.h");
    let body = "window->cwnd_segments += steps[acked->acked_segments & 7];";
    let with = |steps: &str| {
        let table = format!("#include \"reno.h\"\nstatic const __u32 steps[] = {{ {steps} }};");
        fs::write(&header, law("__u32 a;", body, HALVES).replace("#include \"reno.h\"", &table)).expect("written");
        workshop(folder.path()).build(&header)
    };
    let message = with("1, 5, 2, 9, 3, 4, 7, 8").expect_err("32 bytes").to_string();
    assert!(message.contains("mine.h:5: steps is a table of 4, 8, 16 or 32 bytes"), "{message}");
    assert!(with("1, 5, 2, 9, 3, 4, 7, 8, 6").is_ok());
}

#[test]
fn a_division_by_zero_is_an_error_with_its_line_in_the_trial_and_in_a_run() {
    let message = refusal(&law("__u32 a;", "law->a = 1000 / acked->rtt_us;", HALVES));
    assert!(
        message.contains(&format!("mine.h:{ACKED_LINE}: a law divides by zero; in the kernel that is 0")),
        "{message}"
    );
    for divided in [
        "if (acked->rtt_us) law->a = 1000 / (acked->rtt_us - acked->min_rtt_us);",
        "law->a = acked->acked_segments / (__u32)(acked->now_us - law->a);",
        "if (acked->srtt_us) law->a = 1000 / acked->in_flight_segments;",
    ] {
        let message = refusal(&law("__u32 a;", divided, HALVES));
        assert!(message.contains("a law divides by zero"), "{divided}: {message}");
    }
    let later = law("__u32 a;", "if (acked->tsval == 7) law->a = 1000 / acked->rtt_us;", HALVES);
    let name = made_of("mine.h", &later).expect("the trial does not come so far").law;
    let acked = Acked { tsval: 7, ..Acked::default() };
    let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: 5 };
    let run = || Law::new(name, Start::default()).on_acked(&acked, &mut window);
    let place = own::caught(run).expect_err("divided").place;
    assert!(place.ends_with(&format!("mine.h:{ACKED_LINE}")), "{place}");
}

#[test]
fn a_header_that_is_saved_while_it_is_compiled_gets_its_own_digest() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("mine.h");
    let with = |step: u32| law("__u32 a;", &format!("window->cwnd_segments += {step}U;"), HALVES);
    fs::write(&header, with(1)).expect("written");
    let after = folder.path().join("after");
    fs::write(&after, with(22)).expect("written");
    // saves once, between the preprocessor and the compiler
    let clang = folder.path().join("clang");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *own.o*) mv -f {} {} 2>/dev/null ;; esac\nexec clang \"$@\"\n",
        after.display(),
        header.display()
    );
    fs::write(&clang, script).expect("written");
    fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).expect("its own");
    let built = Workshop { clang: clang.into(), ..workshop(folder.path()) }.build(&header).expect("a law");
    let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: 5 };
    Law::new(built.law, Start::default()).on_acked(&Acked::default(), &mut window);
    let clean = made_of("mine.h", &with(22)).expect("a law").law;
    assert_eq!((window.cwnd_segments, built.law), (32, clean));
}

/// Makes a folder and those above it, whatever the umask.
fn private(folder: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder");
}

#[test]
fn a_damaged_product_is_made_again_and_what_a_killed_build_left_is_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    let left = cache.join(".killed");
    private(&left);
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_hours(24);
    fs::File::open(&left).and_then(|folder| folder.set_modified(yesterday)).expect("its time");
    let header = folder.path().join("mine.h");
    fs::write(&header, law("__u32 a;", GROWS, HALVES)).expect("written");
    let names = ["law.so", "law.bpf.o"];
    let products = built(folder.path(), &header).folder;
    assert!(!left.exists());
    let other = folder.path().join("other");
    private(&other.join(products.file_name().expect("a name")));
    let moved = other.join(products.file_name().expect("a name"));
    for product in names {
        let bytes = fs::read(products.join(product)).expect("a product");
        fs::write(moved.join(product), &bytes[..bytes.len() / 2]).expect("written");
    }
    let again = Workshop { cache: other, ..workshop(folder.path()) }.build(&header).expect("made again");
    assert_eq!(again.folder, moved);
    for product in names {
        // Not the same: they name the folder of their build, and the number of its process.
        let bytes = |folder: &Path| fs::read(folder.join(product)).expect("a product").len();
        assert!(bytes(&moved).abs_diff(bytes(&products)) <= 64, "{product}");
    }
}

#[test]
fn a_cache_into_which_others_may_write_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).expect("a folder");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("its own");
    let message = workshop(folder.path()).build(Path::new(WESTWOOD)).expect_err("not ours alone").to_string();
    assert!(message.contains("others may write into it: delete it, or set XDG_CACHE_HOME"), "{message}");
}

#[test]
fn a_parameter_is_refused_that_its_range_does_not_hold() {
    let text = fs::read_to_string(WESTWOOD).expect("the example");
    let of = |with: &str| refusal(&text.replace("P(Milliseconds, interval, 1, 1000, 50,", with));
    let message = of("P(Milliseconds, interval, 1, 1000, 5000,");
    assert!(
        message.ends_with(
            "its parameter interval: 0 <= 1 (lowest) <= 5000 (default) <= 1000 (highest) <= 4294967.295 must hold"
        ),
        "{message}"
    );
}

#[test]
fn without_a_compiler_the_message_says_how_to_get_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = Workshop { clang: "no-such-clang".into(), ..workshop(folder.path()) };
    let message = workshop.build(Path::new(WESTWOOD)).expect_err("no compiler").to_string();
    assert!(message.contains("no-such-clang is not here (Debian: apt install clang)"), "{message}");
    let message = workshop.build(Path::new("nowhere.h")).expect_err("no header").to_string();
    assert_eq!(message, "nowhere.h: the header of the law cannot be read");
}

#[test]
fn an_edited_header_or_one_that_it_includes_is_another_law_and_the_same_text_is_not_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("mine.h");
    let text = law("__u32 a;", "window->cwnd_segments += STEP;", HALVES)
        .replace("#include \"law.h\"", "#include \"law.h\"\n#include \"step.h\"");
    fs::write(&header, text).expect("written");
    let step = |step: u32| fs::write(folder.path().join("step.h"), format!("#define STEP {step}U\n")).expect("written");
    let grown = |built: &Built| {
        let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: 5 };
        Law::new(built.law, Start::default()).on_acked(&Acked::default(), &mut window);
        window.cwnd_segments
    };
    step(1);
    let first = built(folder.path(), &header);
    assert_eq!(grown(&first), 11);
    step(22);
    let second = built(folder.path(), &header);
    assert_eq!(grown(&second), 32);
    assert_ne!((first.law, &first.folder), (second.law, &second.folder));
    let made =
        |built: &Built| fs::metadata(built.folder.join("law.so")).and_then(|file| file.modified()).expect("made");
    let before = made(&first);
    step(1);
    let again = built(folder.path(), &header);
    assert_eq!((again.law, &again.folder, made(&again)), (first.law, &first.folder, before));
    // and nothing but products is left
    let left: Vec<_> =
        fs::read_dir(folder.path().join("cache")).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_window_without_end_is_the_greatest_that_a_law_can_have() {
    let built = made_of("mine.h", &law("__u32 at;", "window->cwnd_segments = 0xffffffff;", HALVES)).expect("a law");
    let mut law = Law::new(built.law, Start::default());
    let mut window = Window { cwnd_segments: 10, cwnd_count: 0, ssthresh_segments: INFINITE_SSTHRESH };
    law.on_acked(&Acked { acked_segments: 1, ..Acked::default() }, &mut window);
    assert_eq!(window.cwnd_segments, 1 << 24);
}
