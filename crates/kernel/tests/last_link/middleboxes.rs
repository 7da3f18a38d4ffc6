//! What is between the two takes the option for something else.

use super::*;

#[test]
fn a_middlebox_that_drops_syns_with_the_option_costs_two_retransmissions_and_is_remembered() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::ZERO, |way, segment| match (way, segment.report()) {
        (Way::ToServer, Some(_)) if segment.is_syn() => Fate::Lose,
        _ => Fate::Forward,
    });
    let reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    // Once may be what a radio does.
    Connection::open(&path.a, &listener).converse(1000);
    Connection::open(&path.a, &listener).converse(1000);
    let twice = counted(&reporter);
    let sent_again = twice.sent_again.max(2);
    assert_eq!(twice, ReportCounters { offered: 2, sent_again, unanswered: 2, ..ReportCounters::default() });
    Connection::open(&path.a, &listener).converse(1000);
    assert_eq!(counted(&reporter), ReportCounters { avoided: 1, ..twice });
    assert_eq!(path.reports(Way::ToServer).len(), 2);
    assert_eq!(heard(&law), Heard { listeners: 1, ..Heard::default() });
}

#[test]
fn a_middlebox_that_drops_answers_lets_their_repetition_pass() {
    needs_root!();
    let law = law();
    let path = Path::new(Duration::ZERO, |way, segment| match (way, segment.report()) {
        (Way::ToClient, Some(_)) => Fate::Lose,
        _ => Fate::Forward,
    });
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    reporter.set(OTHER).expect("set");
    connection.converse(1000);
    // the server has what the SYN said, and hears no more
    assert_eq!(told(&law), (3000, 5000));
    assert_eq!((counted(&reporter).unanswered, counted(&reporter).sent), (1, 0));
    assert_eq!(path.reports(Way::ToClient).len(), 1);
}

#[test]
fn an_option_that_is_stripped_leaves_an_ordinary_connection() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    for (way, with_syn, at_accept) in [(Way::ToServer, true, 0), (Way::ToClient, true, 1), (Way::ToServer, false, 1)] {
        let (before, counted_before) = (heard(&law), counted(&reporter));
        from_now_on(&deed, move |went, segment| {
            if went == way && segment.is_syn() == with_syn {
                segment.strip_report();
            }
            Fate::Forward
        });
        path.forget();
        let connection = Connection::open(&path.a, &listener);
        reporter.set(OTHER).expect("set");
        connection.converse(10_000);
        reporter.set(CLAIM).expect("set");
        let (now, counted) = (heard(&law), counted(&reporter));
        assert_eq!((now.at_accept - before.at_accept, now.later, now.malformed), (at_accept, 0, 0));
        assert_eq!(counted.unanswered - counted_before.unanswered, u64::from(with_syn));
        // where it was stripped from later segments only, the client cannot know
        assert_eq!(path.reports(Way::ToServer).len() > 1, !with_syn);
    }
}

#[test]
fn an_option_that_is_mangled_is_counted_and_ignored() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let change = |way: Way, with_syn: bool, at: usize, to: u8| {
        from_now_on(&deed, move |went, segment| {
            if let (true, Some(option)) = (went == way && segment.is_syn() == with_syn, segment.report_at()) {
                segment.change(|bytes| bytes[option.start + at] = to);
            }
            Fate::Forward
        });
    };
    // These make the header end within an option. Linux 7.2 does not take such a SYN: it is sent again without ours. What is
    // answered between them keeps the client from avoiding the option.
    let overruns = [(1, 4), (1, 6), (1, 39)];
    // Which octet of a SYN becomes what: heard, malformed, other version.
    for (at, to, expected) in [
        (1, 4, [0, 1, 0]),
        // of a later version that is longer
        (1, 12, [1, 0, 0]),
        (1, 6, [0, 1, 0]),
        (5, 0xf9, [1, 0, 0]),
        (1, 39, [0, 1, 0]),
        (1, 9, [0, 1, 0]),
        (2, 0, [0, 0, 0]),
        (4, 0x20, [0, 0, 1]),
        (4, 0x00, [0, 0, 1]),
        // a server's answer in a SYN
        (4, 0x11, [0, 1, 0]),
        // 2^32 and more
        (7, 0xff, [0, 1, 0]),
        (9, 0xff, [0, 1, 0]),
        (1, 12, [1, 0, 0]),
    ] {
        let (before, counted_before) = (heard(&law), counted(&reporter));
        change(Way::ToServer, true, at, to);
        Connection::open(&path.a, &listener).converse(1000);
        let (now, counted) = (heard(&law), counted(&reporter));
        let heard = [now.at_accept - before.at_accept, now.malformed - before.malformed];
        let [at_accept, malformed] = heard;
        let was_lost = overruns.contains(&(at, to)) && counted.sent_again > counted_before.sent_again;
        let expected = if was_lost { [0; 3] } else { expected };
        assert_eq!([at_accept, malformed, now.other_version - before.other_version], expected, "octet {at}: {to}");
        assert_eq!(now.answered - before.answered, at_accept);
        assert_eq!(counted.answered - counted_before.answered, at_accept);
    }
    // and of a SYN-ACK: that it has our option does not make it an answer
    for (at, to) in [(1, 6), (4, 0x21), (4, 0x10)] {
        let before = counted(&reporter);
        change(Way::ToClient, true, at, to);
        Connection::open(&path.a, &listener).converse(1000);
        let now = counted(&reporter);
        assert_eq!((now.answered - before.answered, now.unanswered - before.unanswered), (0, 1), "octet {at}: {to}");
        let was_lost = overruns.contains(&(at, to)) && now.mangled == before.mangled;
        assert_eq!(now.mangled - before.mangled, u64::from(!was_lost), "octet {at}: {to}");
    }
    // and of later segments: what was heard before stays
    let before = heard(&law);
    change(Way::ToServer, false, 7, 0xff);
    let connection = Connection::open(&path.a, &listener);
    reporter.set(OTHER).expect("set");
    (0..5).for_each(|_| connection.converse(1000));
    assert_eq!((heard(&law).malformed - before.malformed, heard(&law).later), (3, 0));
    let server = support::cookie(&connection.server);
    let sockets = law.sockets().expect("a walk");
    let state = sockets.iter().find(|socket| socket.cookie == server).expect("it has the law");
    assert_eq!(field(state, "bandwidth_kbps"), 3000);
}
