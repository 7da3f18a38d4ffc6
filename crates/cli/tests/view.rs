//! `lasthop view`, and the command by which a report says that its result can be made again.

use crate::common::lasthop;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The arguments of a run of five seconds.
const SHORT: [&str; 8] =
    ["scenarios/ten-uploads.toml", "--set", "duration_s=5", "--set", "warmup_s=1", "--set", "hosts.0.count=3", "--out"];

fn done(mut command: Command) -> Output {
    let output = command.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn run(out: &Path, more: &[&str]) {
    done(lasthop(&[&["run"], &SHORT[..], &[out.to_str().expect("text")], more].concat()));
}

fn compare(out: &Path, more: &[&str]) {
    done(lasthop(&[&["compare", "--no-store"], &SHORT[..], &[out.to_str().expect("text")], more].concat()));
}

/// A page that is served until it is dropped.
struct Served {
    child: Child,
    address: String,
    token: String,
}

impl Served {
    fn of(arguments: &[&str]) -> Self {
        let mut child = lasthop(&[&["view"], arguments].concat()).spawn().expect("the command starts");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut url).expect("the address");
        let rest = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {url}"));
        let (address, token) = rest.split_once('/').expect("a token");
        Self { address: address.to_owned(), token: token.trim_matches('/').to_owned(), child }
    }

    fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    fn ask(&self, path: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (code, answer)
    }

    /// A page below the one that is served.
    fn page(&self, path: &str) -> (u16, String) {
        self.ask(&format!("/{}/{path}", self.token), &self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser with one page, driven by the DevTools protocol over its pipe.
struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    calls: u64,
    session: String,
}

impl Browser {
    /// `None` without a browser.
    fn at(url: &str, folder: &Path) -> Option<Self> {
        if Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            crate::common::say("left out: what a browser makes of the page (no `chromium` is installed)");
            return None;
        }
        let pipes = ["to", "from"].map(|name| folder.join(name));
        pipes.iter().for_each(|pipe| mkfifo(pipe, Mode::S_IRWXU).expect("a pipe"));
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"exec chromium "$@" 3<"$TO" 4>"$FROM""#,
            "sh",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
        ]);
        command.args(["--disable-dev-shm-usage", "--remote-debugging-pipe", "--window-size=1200,900"]);
        command.arg(format!("--user-data-dir={}", folder.join("profile").display())).arg("about:blank");
        command.env("TO", &pipes[0]).env("FROM", &pipes[1]).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("a shell");
        let to = File::options().write(true).open(&pipes[0]).expect("a pipe");
        let from = BufReader::new(File::open(&pipes[1]).expect("a pipe"));
        let mut browser = Self { child, to, from, calls: 0, session: String::new() };
        let page = browser.call("Target.createTarget", json!({ "url": url }));
        let to_page = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session =
            browser.call("Target.attachToTarget", to_page)["sessionId"].as_str().expect("text").to_owned();
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            call["sessionId"] = self.session.clone().into();
        }
        write!(self.to, "{call}\0").expect("it reads");
        loop {
            let mut answer = Vec::new();
            assert!(self.from.read_until(0, &mut answer).expect("it writes") > 0, "the browser has ended");
            answer.pop();
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    fn value(&mut self, script: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({ "expression": script, "returnByValue": true }));
        result["result"]["value"].clone()
    }

    /// Waits until this is so.
    #[track_caller]
    fn wait_for(&mut self, script: &str) {
        let begun = Instant::now();
        while self.value(script) != true {
            assert!(begun.elapsed() < Duration::from_secs(60), "{script}: {}", self.value("document.body.innerText"));
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Moves the mouse to a place of a figure, in parts of its width and height.
    fn mouse(&mut self, kind: &str, figure: &str, (right, down): (f64, f64)) {
        let place = format!(
            "(() => {{ const svg = document.querySelector('{figure}'); svg.scrollIntoView({{ block: 'center' }}); \
             const {{ x, y, width, height }} = svg.getBoundingClientRect(); return [x + width * {right}, y + height * {down}]; }})()"
        );
        let place = self.value(&place);
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event =
            json!({ "type": kind, "x": place[0], "y": place[1], "button": button, "buttons": 1, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_is_a_page_with_its_figures_and_ctrl_c_ends_it_with_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    run(&out, &[]);
    let mut served = Served::of(&[out.to_str().expect("text")]);
    assert!(served.address.starts_with("127.0.0.1:") && served.token.len() == 32, "{}", served.url());
    let (code, page) = served.page("");
    assert_eq!(code, 200);
    for part in [
        "<svg ",
        "class=\"data\"",
        "data-name=\"host 2\"",
        "/figures.js",
        "/folder.js",
        "Content-Security-Policy: default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["https://", "@import", "url(", "<img", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for (path, part) in [("figures.js", "class Panel"), ("folder.js", "fetch"), ("state", "\"written\":false")] {
        let (code, answer) = served.page(path);
        assert!(code == 200 && answer.contains(part), "{path}: {answer:.300}");
    }
    assert_eq!(served.page("result.json").0, 404);
    assert_eq!(served.page("cases/../report.html").0, 404);
    // Another page of the internet whose name leads here, and another user of this machine.
    assert_eq!(served.ask(&format!("/{}/", served.token), "example.org").0, 403);
    assert_eq!(served.ask("/", &served.address).0, 404);
    assert_eq!(served.ask(&format!("/{}/", "0".repeat(32)), &served.address).0, 404);
    if let Some(mut browser) = Browser::at(&served.url(), folder.path()) {
        // The script has found every figure.
        browser.wait_for("document.documentElement.dataset.figures >= 8");
        browser.wait_for("document.documentElement.dataset.figures == document.querySelectorAll('figure').length");
        browser.value("document.querySelectorAll('figure').forEach((figure, at) => (figure.id = `figure-${at}`))");
        // Below the pointer: a bar, then the point of a line.
        browser.mouse("mouseMoved", "#figure-0 svg", (0.25, 0.7));
        browser.wait_for("/^host 0: [0-9.]+ Mb\\/s$/.test(document.getElementById('tip').innerText)");
        browser.mouse("mouseMoved", "#figure-1 svg", (0.5, 0.5));
        browser.wait_for("/^host [0-2]\\ntime \\(s\\): [0-9.]+\\ngoodput \\(Mb\\/s\\): [0-9.]+$/.test(document.getElementById('tip').innerText)");
        // From 2 to 4 of 5 seconds, and back to all.
        browser.mouse("mousePressed", "#figure-1 svg", (0.42, 0.5));
        browser.mouse("mouseMoved", "#figure-1 svg", (0.8, 0.52));
        browser.mouse("mouseReleased", "#figure-1 svg", (0.8, 0.52));
        let enlarged = "[...document.querySelectorAll('#figure-1 g.enlarged text')].map((text) => text.textContent)";
        browser.wait_for(&format!(
            "{enlarged}.includes('2.2') && {enlarged}.includes('3.8') && !{enlarged}.includes('4.2')"
        ));
        browser.value("document.querySelector('#figure-1 svg').dispatchEvent(new Event('dblclick'))");
        browser.wait_for(&format!("{enlarged}.length == 0"));
    }
    kill(Pid::from_raw(served.child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(served.child.wait().expect("it ends").code(), Some(0));
}

/// Slow clients that never end their request: each read of theirs was given 20 s anew, and 32 of them kept the owner out.
#[test]
fn slow_clients_keep_the_owner_out_of_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    run(&out, &[]);
    let served = Served::of(&[out.to_str().expect("text")]);
    let mut slow: Vec<_> = (0..40).map(|_| TcpStream::connect(&served.address).expect("it listens")).collect();
    for _ in 0..3 {
        slow.iter_mut().for_each(|stream| _ = stream.write_all(b"G"));
        assert_eq!(served.page("state").0, 200);
    }
    // Those that came last are still waited for.
    let last = slow.last_mut().expect("one of them");
    last.set_nonblocking(true).expect("a socket");
    assert_eq!(last.read(&mut [0]).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn a_comparison_has_its_differences_and_a_page_for_each_case() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    compare(&out, &["--vary", "hosts.0.policy=none,formula"]);
    let served = Served::of(&[out.to_str().expect("text")]);
    let (code, page) = served.page("");
    assert!(code == 200 && page.contains("Difference to case 1: policy=none"), "{page:.500}");
    let (code, page) = served.page("cases/2-policy-formula/report.html");
    assert!(code == 200 && page.contains("/figures.js") && page.contains("Distribution of goodput"), "{page:.500}");
    assert_eq!(served.page("cases/3-nothing/report.html").0, 500);
}

#[test]
fn a_new_result_in_the_folder_is_another_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("a folder");
    // As a lasthop does that is about to write there.
    let lock = File::open(&out).expect("a folder");
    let lock = Flock::lock(lock, FlockArg::LockExclusive).expect("nobody else locks it");
    let served = Served::of(&[out.to_str().expect("text")]);
    assert!(served.page("").1.contains("has no result yet"));
    assert!(served.page("state").1.contains(r#"{"version":"","written":true}"#));
    drop(lock);
    run(&out, &[]);
    let state = |served: &Served| served.page("state").1.rsplit("\r\n").next().map(str::to_owned);
    let first = state(&served);
    assert!(served.page("").1.contains("seed 1"));
    run(&out, &["--seed", "2"]);
    assert_ne!(state(&served), first);
    assert!(served.page("").1.contains("seed 2"));
}

/// A command that is held where its page shows so many seconds of a run, until it is told to go on.
fn held(arguments: &[&str], out: &Path, seconds: u32) -> (Child, Served) {
    let mut child = lasthop(arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("the command starts");
    let begun = Instant::now();
    let log = out.join(".lasthop-live/log.jsonl");
    while !log.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60) && child.try_wait().expect("a child").is_none(),
            "nothing is shown"
        );
        thread::sleep(Duration::from_millis(5));
    }
    let served = Served::of(&[out.to_str().expect("text")]);
    let shown = |page: &str| -> Option<u32> {
        let (_, title) = page.split_once("<h2>At work: ")?;
        let (title, _) = title.split_once(" of ")?;
        title.rsplit(' ').next()?.parse().ok()
    };
    while shown(&served.page("live").1).is_none_or(|shown| shown < seconds) {
        assert!(
            begun.elapsed() < Duration::from_secs(60) && child.try_wait().expect("a child").is_none(),
            "no figures"
        );
        thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::SIGSTOP);
    (child, served)
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
}

#[test]
fn a_run_is_shown_before_it_ends_and_then_its_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let name = out.to_str().expect("text");
    let long = ["run", SHORT[0], "--set", "duration_s=1000", "--set", "hosts.0.count=3", "--out", name];
    let (mut child, served) = held(&long, &out, 100);
    let (code, live) = served.page("live");
    assert_eq!(code, 200);
    for part in [
        "<h2>At work: Ten stations upload through one 802.11g access point, ",
        " of 1000 s</h2>",
        "id=\"live-goodput-over-time\"",
        "id=\"live-air\"",
        "data-name=\"host 2\"",
    ] {
        assert!(live.contains(part), "{part}: {live:.600}");
    }
    assert_eq!(served.ask(&format!("/{}/live", served.token), "example.org").0, 403);
    assert!(served.page("").1.contains("has no result yet"));
    if let Some(mut browser) = Browser::at(&served.url(), folder.path()) {
        let lines = "document.querySelectorAll('#live-rtt g.data polyline').length";
        browser.wait_for(&format!("{lines} == 3"));
        let last = "document.querySelector('#live h2').innerText";
        let before = browser.value(last);
        // Values below the pointer, as in a report.
        browser.mouse("mouseMoved", "#live-rtt svg", (0.3, 0.5));
        browser.wait_for("document.getElementById('tip') !== null");
        signal(&child, Signal::SIGCONT);
        browser.wait_for(&format!("!document.querySelector('#live h2') || {last} != {before}"));
        // Nobody loads the page anew.
        browser.wait_for("document.body.innerText.includes('How to make it again')");
        browser.wait_for("document.querySelectorAll('#live h2').length == 0");
    }
    signal(&child, Signal::SIGCONT);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(served.page("live").0, 404);
    assert!(served.page("").1.contains("How to make it again"));
    assert!(!out.join(".lasthop-live").exists());
}

#[test]
fn what_a_killed_comparison_showed_is_shown_no_more_and_is_in_nobodys_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let name = out.to_str().expect("text");
    let cases = ["--vary", "duration_s=50,3000", "--jobs", "1", "--no-store"];
    let (mut child, served) = held(&[&["compare"], &SHORT[..1], &["--out", name], &cases].concat(), &out, 0);
    let begun = Instant::now();
    signal(&child, Signal::SIGCONT);
    while !served.page("live").1.contains("1 of 2 runs are done") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", served.page("live").1);
        thread::sleep(Duration::from_millis(5));
    }
    assert!(served.page("live").1.contains("<td class=\"case\">duration_s=50</td>"), "{}", served.page("live").1);
    signal(&child, Signal::SIGKILL);
    child.wait().expect("it ends");
    assert!(out.join(".lasthop-live").exists());
    assert_eq!(served.page("live").0, 404);
    compare(&out, &["--vary", "hosts.0.policy=none,formula"]);
    assert!(!out.join(".lasthop-live").exists());
}

#[test]
fn a_folder_without_a_result_and_an_agent_that_is_not_there_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().to_str().expect("text");
    fs::write(folder.path().join("broken.json"), "{}").expect("a file");
    let broken = folder.path().join("broken");
    fs::create_dir(&broken).and_then(|()| fs::write(broken.join("result.json"), "{}")).expect("a file");
    for (arguments, words) in [
        (vec![empty], vec!["has no result: none of result.json", "--out"]),
        (vec!["/nowhere"], vec!["cannot view /nowhere"]),
        (vec![broken.to_str().expect("text")], vec!["broken/result.json", "schema_version"]),
        (vec!["agent", "--interface", "nowhere0"], vec!["no agent can be watched", "lasthop agent"]),
        (vec![empty, "--interface", "wlan0"], vec!["--interface is for `lasthop view agent`"]),
    ] {
        let output = lasthop(&[&["view"], &arguments[..]].concat()).output().expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)) && said.lines().count() == 1, "{words:?}: {said}");
    }
}

/// A line of an agent's socket.
fn line(seq: u64) -> String {
    let flow = |cookie: u64, goodput: f64| {
        json!({"cookie": cookie, "local": "10.0.0.2:5000", "remote": format!("10.0.1.{cookie}:443"),
            "congestion_control": "lasthop", "busy": true, "goodput_mbps": goodput, "received_mbps": 0.1,
            "rtt_us": 32_000, "excess_us": 21_000, "window_segments": 9 + seq % 4,
            "bound": {"min_segments": 4, "max_segments": 12, "max_pacing_mbps": 2.5},
            "reason": "2.50 Mb/s for each of <b>4</b> hosts"})
    };
    let line = json!({"v": 1, "seq": seq, "t_ns": 500_000_000 * seq, "version": "0.1.0", "pid": 7,
        "interface": "wlan0", "loaded": true, "mode": "control", "policy": "lasthop", "access_point": "aa:bb", "peers": 3,
        "terminals": 4, "connections": 2, "busy": 2, "control_since_s": 3.0, "reason": null, "common_rate_mbps": 2.5,
        "bounded": 2, "window_segments": null, "pacing_mbps": null, "delivered_mbps": null, "free_mbps": null, "program": null,
        "excess_us": 21_000, "neighbours": [], "flows": [flow(1, 2.0), flow(2, 0.4)], "flows_left_out": 0});
    format!("{line}\n")
}

/// An agent that sends ten lines to each reader and goes on for a while.
fn made_up_agent(socket: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                for seq in 1..100 {
                    if stream.write_all(line(seq).as_bytes()).is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(if seq < 10 { 1 } else { 500 }));
                }
            });
        }
    });
}

#[test]
fn an_agent_is_a_page_that_its_lines_move() {
    let folder = tempfile::tempdir().expect("a folder");
    made_up_agent(&folder.path().join("watch-wlan0.sock"));
    let shown = lasthop_view::Shown::Agent { sockets: folder.path().to_owned(), interface: None };
    let page = lasthop_view::Page::serve(shown, 0).expect("there is an agent");
    let (address, token) =
        page.url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address with a token");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /{token}events HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let mut events = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    for seq in 1..5_u64 {
        let event: Value = serde_json::from_str(&events.next().expect("an event")).expect("JSON");
        assert_eq!(event["seq"], seq);
    }
    let Some(mut browser) = Browser::at(&page.url, folder.path()) else { return };
    for figure in ["goodput", "excess", "window", "rate"] {
        browser.wait_for(&format!("document.querySelectorAll('#{figure} polyline').length > 0"));
    }
    let [left, width] = lasthop_report::figure_span();
    browser.wait_for(&format!("document.querySelector('#rate svg').getAttribute('viewBox') == '{left} 0 {width} 490'"));
    browser.wait_for("document.getElementById('title').textContent == 'Agent on wlan0'");
    browser.wait_for("document.getElementById('tiles').innerText.includes('2.40 Mb/s')");
    browser.wait_for("document.querySelector('#window polyline').dataset.name == 'window, 10.0.1.1:443'");
    // What an agent says is text.
    browser.wait_for("document.getElementById('reason').textContent.endsWith('2.50 Mb/s for each of <b>4</b> hosts')");
    browser.value("document.querySelectorAll('.flows tbody tr')[1].dispatchEvent(new Event('pointerdown'))");
    browser.wait_for("document.querySelector('#window polyline').dataset.name == 'window, 10.0.1.2:443'");
    browser.mouse("mouseMoved", "#rate svg", (0.9, 0.5));
    browser.wait_for("document.getElementById('tip').innerText.includes('common rate (Mb/s): 2.5')");
}

/// The command that a report says makes it again, run in its folder.
fn made_again(out: &Path, again: &Path) {
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    let (_, rest) = page.split_once("<h2>How to make it again</h2>").expect("a command");
    let (_, rest) = rest.split_once("<pre>").expect("a command");
    let (command, _) = rest.split_once("</pre>").expect("a command");
    let command = command.replace("&#x27;", "'").replace("&quot;", "\"").replace("&#x2f;", "/").replace("&amp;", "&");
    let command = command.replacen("lasthop", env!("CARGO_BIN_EXE_lasthop"), 1);
    let command = command.replace("--out DIR", &format!("--out '{}'", again.display()));
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(out).env("XDG_CACHE_HOME", again.with_extension("cache"));
    done(shell);
}

/// But for what the clock on the wall says.
fn without_clock(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_clock = |line: &&str| line.contains("\"wall_s\"") || line.contains("\"simulated_s_per_wall_s\"");
    text.lines().filter(|line| !is_clock(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_command_of_a_report_makes_the_same_bytes_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let [out, again] = ["run", "run-again"].map(|name| folder.path().join(name));
    run(&out, &["--seed", "7", "--set", "hosts.0.policy=formula", "--set", "path.rtt_ms=17"]);
    made_again(&out, &again);
    assert_eq!(without_clock(&out.join("result.json")), without_clock(&again.join("result.json")));
    assert!(without_clock(&out.join("result.json")).contains("\"seed\": 7"));
    for file in ["scenario.toml", "figures/rtt-cdf.svg"] {
        assert_eq!(fs::read(out.join(file)).expect("a file"), fs::read(again.join(file)).expect("a file"), "{file}");
    }
    let [out, again] = ["cases", "cases-again"].map(|name| folder.path().join(name));
    let cases = [
        "--case",
        "nobody's agent: hosts.0.policy=none",
        "--case",
        "agent: hosts.0.policy=fixed hosts.0.bound_segments=9",
    ];
    compare(&out, &[&cases[..], &["--seeds", "2", "--set", "seed=5"]].concat());
    made_again(&out, &again);
    assert_eq!(without_clock(&out.join("comparison.json")), without_clock(&again.join("comparison.json")));
    for file in ["scenario.toml", "figures/difference.svg"] {
        assert_eq!(fs::read(out.join(file)).expect("a file"), fs::read(again.join(file)).expect("a file"), "{file}");
    }
}

/// A scenario as it is typed: with few keys, so that many follow from others.
const AS_TYPED: &str = "duration_s = 3\nwarmup_s = 1\n[access]\n[[hosts]]\ncount = 3\n";

/// Compares a scenario of this text, beside which these files are, and again as the report says.
fn compared_again(text: &str, files: &[(&str, &str)], vary: &str, files_stay: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    for (name, text) in files.iter().chain(&[("typed.toml", text)]) {
        fs::write(place(name), text).expect("a file");
    }
    let [out, again] = ["out", "again"].map(place);
    let words = ["compare", "--no-store", "typed.toml", "--vary", vary, "--set", "seed=5", "--out", "out"];
    let mut command = lasthop(&words);
    command.current_dir(folder.path());
    done(command);
    if !files_stay {
        files.iter().for_each(|(name, _)| fs::remove_file(place(name)).expect("a file"));
    }
    made_again(&out, &again);
    for file in ["comparison.json", "scenario.toml"] {
        assert_eq!(without_clock(&out.join(file)), without_clock(&again.join(file)), "{vary}: {file}");
    }
    let read = |name: &str| serde_json::from_str::<Value>(&without_clock(&out.join(name))).expect("JSON");
    let cases = read("comparison.json")["cases"].as_array().expect("cases").clone();
    let of = |case: &Value| case["summary"]["aggregate_goodput_mbps"]["mean"].clone();
    assert!(cases.iter().skip(1).all(|case| of(case) != of(&cases[0])), "{vary} changes nothing");
}

/// Each changes keys that follow from it, and that a scenario with all defaults filled in has as they were.
#[test]
fn what_follows_from_a_varied_key_follows_when_a_comparison_is_made_again() {
    for vary in [
        "access.preset=2012,n-home,ac-vendor",
        "hosts.0.congestion_control=cubic,newreno,bbr",
        "hosts.0.era=2012,modern",
        "access.kind=wifi,wired",
        "hosts.0.flows.0.kind=bulk,ping",
    ] {
        compared_again(AS_TYPED, &[], vary, true);
    }
}

#[test]
fn files_of_a_comparison_are_read_up_to_the_end_of_each_case_when_it_is_made_again() {
    let trace = [("path.csv", "at_s,rate_mbps\n0,8\n3.5,1\n5,2\n")];
    let with_trace = format!("{AS_TYPED}[[changes]]\ntrace = \"path.csv\"\n");
    compared_again(&with_trace, &trace, "duration_s=3,6", true);
    // Otherwise the rows are kept and the file is not needed; nor is that of flows.
    compared_again(&with_trace, &trace, "hosts.0.count=1,3", false);
    let arrivals = [("at.txt", "0.5\n1.2\n1.5\n4.5\n")];
    let flows = "[[hosts.flows]]\nkind = \"transfers\"\ntransfer_kib = 500\narrivals = \"at.txt\"\n";
    let with_arrivals = format!("{AS_TYPED}{flows}");
    compared_again(&with_arrivals, &arrivals, "duration_s=3,6", true);
    compared_again(&with_arrivals, &arrivals, "hosts.0.count=1,3", false);
}
