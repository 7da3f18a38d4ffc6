//! Segments that have room for the report, and those that have not.

use super::*;

#[test]
fn an_ack_that_is_full_of_sacks_has_no_room_and_stays_as_it_is() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::from_millis(50));
    // each segment out of order is acknowledged by itself
    set_sysctls(&path.a, "net.ipv4.tcp_comp_sack_nr=0");
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    // every second of the first data segments is lost once: ACKs with one, two and three blocks beside the timestamps
    let lost = Mutex::new(0);
    from_now_on(&deed, move |way, segment| {
        let mut lost = lost.lock().expect("no panic");
        if way == Way::ToServer || segment.payload() < 1000 || *lost > 9 {
            return Fate::Forward;
        }
        *lost += 1;
        if *lost % 2 == 1 { Fate::Lose } else { Fate::Forward }
    });
    reporter.set(OTHER).expect("set");
    // the request takes one of three, the ACK with one block the second
    connection.converse(100_000);
    let counted = counted(&reporter);
    assert!(counted.no_room > 0, "{counted:?}");
    connection.converse(1000);
    eventually("the rest is said later", || {
        connection.converse(1000);
        told(&law) == (2000, 1000)
    });
    assert_eq!(reporter.counters().expect("counters").sent, 3);
}

#[test]
fn a_report_that_is_lost_with_its_segment_is_repeated_with_it() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::ZERO);
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    let lost = Mutex::new(false);
    from_now_on(&deed, move |way, segment| {
        let mut lost = lost.lock().expect("no panic");
        if *lost || way == Way::ToClient || segment.report().is_none() {
            return Fate::Forward;
        }
        *lost = true;
        Fate::Lose
    });
    reporter.set(OTHER).expect("set");
    connection.converse(1000);
    connection.converse(1000);
    eventually("the law hears it", || told(&law) == (2000, 1000));
    assert!(heard(&law).later >= 1);
}

#[test]
fn full_segments_are_never_made_smaller_for_a_report() {
    needs_root!();
    let law = law();
    // a veth pair hands segments on as they are joined, before and after segmentation by the card
    let net = Net::direct();
    let mut reporter = reporter_on(&net.a, "a0");
    reporter.set(CLAIM).expect("set");
    let listener = listener(&net.b, B4, law.name());
    let connection = Connection::open(&net.a, &listener);
    let before = tcp_info(&connection.client).tcpi_snd_mss;
    for claim in [OTHER, CLAIM, OTHER] {
        reporter.set(claim).expect("set");
        let data = vec![7; 2_000_000];
        let mut received = vec![0; data.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| (&connection.client).write_all(&data).expect("written"));
            (&connection.server).read_exact(&mut received).expect("read");
        });
        assert!(data == received);
        assert_eq!(tcp_info(&connection.client).tcpi_snd_mss, before);
        (0..4).for_each(|_| connection.converse(10));
    }
    assert_eq!(told(&law), (2000, 1000));
    assert_eq!((heard(&law).later, heard(&law).malformed), (9, 0));
}

/// Packets of this host that were too large for the way and were not sent.
fn too_large(host: &Host) -> u64 {
    let snmp = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").expect("readable"));
    let mut ip = snmp.lines().filter(|line| line.starts_with("Ip:")).map(|line| line.split_whitespace());
    let (mut names, mut numbers) = (ip.next().expect("names"), ip.next().expect("numbers"));
    let at = names.position(|name| name == "FragFails").expect("it is counted");
    numbers.nth(at).expect("one for each name").parse().expect("a number")
}

#[test]
fn a_segment_beside_sacks_does_not_become_larger_than_the_way_takes() {
    needs_root!();
    let law = law();
    let (path, deed) = path_with_deeds(Duration::from_millis(20));
    let mut reporter = reporter(&path);
    let listener = listener(&path.b, B4, law.name());
    let connection = Connection::open(&path.a, &listener);
    // a download with holes while the client uploads: data beside one block or more
    let count = Mutex::new(0);
    from_now_on(&deed, move |way, segment| {
        let mut count = count.lock().expect("no panic");
        *count += u32::from(way == Way::ToClient && segment.payload() > 1000);
        if way == Way::ToClient && *count % 8 == 1 { Fate::Lose } else { Fate::Forward }
    });
    let download = vec![7; 400_000];
    std::thread::scope(|scope| {
        scope.spawn(|| (&connection.server).write_all(&download).expect("written"));
        let reader = scope.spawn(|| (&connection.client).read_exact(&mut vec![0; 400_000]).expect("read"));
        scope.spawn(|| std::io::copy(&mut (&connection.server), &mut std::io::sink()).expect("read"));
        // 1500 of the way, 40 of headers, 12 each of timestamps and of one block
        let full = [7; 1436];
        let mut turn = 0;
        while !reader.is_finished() {
            turn += 1;
            reporter.set(if turn % 2 == 0 { CLAIM } else { OTHER }).expect("set");
            (&connection.client).write_all(&full).expect("written");
            std::thread::sleep(Duration::from_millis(1));
        }
        connection.client.shutdown(std::net::Shutdown::Write).expect("the server's reader ends");
    });
    assert!(path.count(|way, segment| way == Way::ToServer && segment.payload() == 1436) > 10);
    assert!(heard(&law).later > 0, "reports went meanwhile");
    assert_eq!(too_large(&path.a), 0);
}
