//! Serves the metrics over HTTP and writes them to a file, by a thread of its own that has no rights.
//!
//! ```text
//!             ┌─ accept ─> reads a request ──> writes the answer ──> waits for the client to close
//!   poll ─────┤              (8 KiB most)                    all of it within 5 s, or closed
//!             ├─ every 10 s, and if there was a tick: a new FILE in its place
//!             └─ the agent stops: closed, FILE removed
//! ```
//!
//! It waits for nobody: sockets do not block, and at most [`CLIENTS_MOST`] are open. One more client takes the place of
//! the one that has been there longest, so that slow ones keep no other out. The agent's loop waits for the thread only
//! when it stops, and then not for long.
//!
//! What it leaves out of HTTP: each connection is for one request, and a request's body is not read.

use crate::clock;
use crate::config::MetricsConfig;
use crate::error::{Doing as _, Error, Result};
use crate::only_one::OnlyOne;
use crate::privilege;
use crate::tell::log_limit::LogLimit;
use crate::tell::metrics::{Page, Shown};
use lasthop_files::{Kind, Whole};
use lasthop_status::http::Request;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Clients at once: with 8 KiB each, a MiB.
const CLIENTS_MOST: usize = 128;
/// A client's time, from its connection on. Some may be behind the crowded access point.
const SERVED_WITHIN: Duration = Duration::from_secs(5);
/// More than any scraper sends.
const REQUEST_BYTES_MOST: usize = 8 << 10;
/// Time between two files. node_exporter is asked every 15 s or less often.
const FILE_EACH: Duration = Duration::from_secs(10);
/// At the end of the agent, the thread's time to remove its file.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
/// The pause of a listener that cannot accept, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Exposition {
    stop: Option<PipeWriter>,
    ended: Receiver<()>,
}

struct Teller {
    page: Page,
    shown: Arc<Shown>,
    listener: Option<TcpListener>,
    clients: Vec<Client>,
    file: Option<Textfile>,
    stop: PipeReader,
    /// Its end tells the agent's loop that the thread has ended.
    _ended: Sender<()>,
}

impl Exposition {
    /// `None`: nothing is configured, or can be had; the log says which.
    /// `lock`: makes sure that no other agent writes the same file.
    pub(crate) fn start(config: &MetricsConfig, lock: bool, shown: Arc<Shown>) -> Option<Self> {
        let listener = config.listen.and_then(|address| match listen(address) {
            Ok(listener) => Some(listener),
            Err(error) => {
                warn!("metrics are not served: {}", error.in_a_line());
                None
            }
        });
        let only_one = |path| lock.then(|| OnlyOne::writes(path)).transpose();
        let file = config.textfile.as_deref().and_then(|path| match only_one(path) {
            Ok(only_one) => Some(Textfile::new(path.to_owned(), only_one)),
            Err(error) => {
                warn!("the metrics are not written: {}", error.in_a_line());
                None
            }
        });
        if listener.is_none() && file.is_none() {
            return None;
        }
        match Self::spawn(listener, file, shown) {
            Ok(exposition) => Some(exposition),
            Err(error) => {
                warn!("metrics are told to nobody: {}", error.in_a_line());
                None
            }
        }
    }

    fn spawn(listener: Option<TcpListener>, file: Option<Textfile>, shown: Arc<Shown>) -> Result<Self> {
        let (stopped, stop) = io::pipe().doing("cannot make a pipe")?;
        let (end, ended) = channel();
        let page = Page::new(Arc::clone(&shown));
        let teller = Teller { page, shown, listener, clients: Vec::new(), file, stop: stopped, _ended: end };
        thread::Builder::new()
            .name("lasthop-metrics".to_owned())
            .spawn(move || {
                privilege::keep_none();
                teller.run();
            })
            .doing("cannot start the thread that tells them")?;
        Ok(Self { stop: Some(stop), ended })
    }
}

impl Drop for Exposition {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.ended.recv_timeout(ENDS_WITHIN);
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address).doing(format_args!("cannot listen on {address}"))?;
    listener.set_nonblocking(true).doing("cannot make a socket non-blocking")?;
    info!("metrics are served at http://{address}/metrics");
    if !address.ip().is_loopback() {
        warn!(
            "metrics are served without a password to all who reach {address}: a loopback address in `listen` keeps them \
             on this machine"
        );
    }
    Ok(listener)
}

impl Teller {
    fn run(mut self) {
        while self.round() {}
        if let Some(file) = &self.file {
            file.remove();
        }
    }

    /// Waits for something to do and does it. `false`: the agent stops.
    fn round(&mut self) -> bool {
        let now = Instant::now();
        self.clients.retain(|client| client.until > now);
        let next_file = self.file.as_ref().map(|file| file.due_at);
        let next = self.clients.iter().map(|client| client.until).chain(next_file).min();
        let timeout = next.map_or(PollTimeout::NONE, |next| {
            let milliseconds = next.saturating_duration_since(now).as_millis() + 1; // not before it is time
            PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
        });
        let listener = self.listener.as_ref();
        let listens = listener.is_some();
        let mut polled = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        polled.extend(self.clients.iter().map(|client| PollFd::new(client.stream.as_fd(), client.waits_for())));
        polled.extend(listener.map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)));
        if poll(&mut polled, timeout).is_err() {
            thread::sleep(PAUSE); // EINTR, or no memory
            return true;
        }
        let mut ready = polled.iter().map(|polled| polled.any().unwrap_or(true));
        if ready.next() == Some(true) {
            return false;
        }
        let ready_clients: Vec<bool> = ready.by_ref().take(self.clients.len()).collect();
        let calls = listens && ready.next() == Some(true);
        drop(ready);
        drop(polled);
        let mut ready_clients = ready_clients.into_iter();
        let page = &self.page;
        self.clients.retain_mut(|client| !ready_clients.next().unwrap_or(false) || client.go_on(page));
        if calls {
            self.accept();
        }
        if let Some(file) = &mut self.file {
            file.poll(&self.page, self.shown.tick());
        }
        true
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        // No more at once than there is room for: whoever was just accepted is looked at before he goes.
        for _ in 0..CLIENTS_MOST {
            match listener.accept() {
                Ok((stream, _)) => {
                    let mut client = Client::new(stream);
                    // Most send their request as soon as they are connected.
                    if client.stream.set_nonblocking(true).is_err() || !client.go_on(&self.page) {
                        continue;
                    }
                    if self.clients.len() == CLIENTS_MOST {
                        // In the order in which they came.
                        self.clients.remove(0);
                    }
                    self.clients.push(client);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return thread::sleep(PAUSE),
            }
        }
    }
}

/// A connection.
struct Client {
    stream: TcpStream,
    until: Instant,
    request: Vec<u8>,
    /// The rest of the answer; `None`: the request is not complete.
    answer: Option<Vec<u8>>,
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        Self { stream, until: Instant::now() + SERVED_WITHIN, request: Vec::new(), answer: None }
    }

    fn waits_for(&self) -> PollFlags {
        let writes = self.answer.as_ref().is_some_and(|rest| !rest.is_empty());
        if writes { PollFlags::POLLOUT } else { PollFlags::POLLIN }
    }

    /// Reads or writes what is possible now. `false`: it is done.
    fn go_on(&mut self, page: &Page) -> bool {
        match self.step(page) {
            Ok(goes_on) => goes_on,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn step(&mut self, page: &Page) -> io::Result<bool> {
        if self.answer.is_none() {
            let mut bytes = [0; 1024];
            let count = self.stream.read(&mut bytes)?;
            self.request.extend_from_slice(&bytes[..count]);
            if count == 0 && self.request.is_empty() {
                return Ok(false);
            }
            if count > 0 && self.request.len() < REQUEST_BYTES_MOST && Request::parse(&self.request) == Ok(None) {
                return Ok(true);
            }
            self.answer = Some(answer(&self.request, page));
        }
        let rest = self.answer.get_or_insert_default();
        if rest.is_empty() {
            // Closed while the client still sends, the connection would be reset and the answer lost.
            return Ok(self.stream.read(&mut [0; 1024])? > 0);
        }
        while !rest.is_empty() {
            let count = self.stream.write(rest)?;
            rest.drain(..count);
        }
        self.stream.shutdown(Shutdown::Write)?;
        Ok(true)
    }
}

/// The whole answer to a request, or to the beginning of one that is too long or was broken off.
fn answer(request: &[u8], page: &Page) -> Vec<u8> {
    let refused =
        |status: &str, more: &str| response(status, "text/plain; charset=utf-8", more, &format!("{status}\n"));
    let request = match Request::parse(request) {
        Ok(Some(request)) => request,
        Ok(None) if request.len() >= REQUEST_BYTES_MOST => return refused("431 Request Header Fields Too Large", ""),
        Ok(None) | Err(_) => return refused("400 Bad Request", ""),
    };
    if request.path != "/metrics" {
        return refused("404 Not Found", "");
    }
    if request.method != "GET" {
        return refused("405 Method Not Allowed", "Allow: GET\r\n");
    }
    // Who asks for nothing in particular gets what every tool reads.
    if request.values("accept").any(|value| value.to_ascii_lowercase().contains("application/openmetrics-text")) {
        response("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", "", &page.openmetrics())
    } else {
        response("200 OK", prometheus_client::encoding::prometheus_text::CONTENT_TYPE, "", &page.prometheus())
    }
}

fn response(status: &str, content_type: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A file for the textfile collector of node_exporter, which reads the format of Prometheus only.
struct Textfile {
    path: PathBuf,
    due_at: Instant,
    /// The tick of the last file: one of the same tick would hide that the agent stands still.
    tick: Option<u64>,
    trouble_log: LogLimit,
    _only_one: Option<OnlyOne>,
}

impl Textfile {
    fn new(path: PathBuf, only_one: Option<OnlyOne>) -> Self {
        let trouble_log = LogLimit::each_minute();
        Self { path, due_at: Instant::now(), tick: None, trouble_log, _only_one: only_one }
    }

    fn poll(&mut self, page: &Page, tick: u64) {
        if Instant::now() < self.due_at {
            return;
        }
        self.due_at = Instant::now() + FILE_EACH;
        if self.tick == Some(tick) {
            return;
        }
        match replace(&self.path, &page.prometheus()) {
            Ok(()) => self.tick = Some(tick),
            Err(error) => {
                if let Some(more) = self.trouble_log.may_say(clock::monotonic()) {
                    warn!("the metrics are not written, trying again: {}{more}", error.in_a_line());
                }
            }
        }
    }

    fn remove(&self) {
        if self.tick.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// By which it knows a file of its own.
pub(crate) const METRICS: Kind =
    Kind { name: "a file of metrics", looked_at: 64, is: |begin| begin.starts_with(b"# HELP lasthop_") };

/// Readers find the old file or the new one. The unit's umask would keep it from them.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let written = || {
        let whole = Whole::begin(path, Some(&METRICS))?;
        whole.file().write_all(text.as_bytes())?;
        whole.file().set_permissions(Permissions::from_mode(0o644))?;
        whole.put_in_place()
    };
    written().doing(format_args!("cannot replace {}", path.display()))
}
