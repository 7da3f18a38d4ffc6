//! `lasthop view`: a page on this machine, of the result in a folder or of a running agent.
//!
//! - A folder: the report's figures, drawn anew from its files, with their numbers below the pointer and parts enlarged.
//!   The page asks every two seconds whether the folder has another result, and loads that. While something is at work
//!   there, it asks every second for what is known of it until now ([`lasthop_report::live`]).
//! - An agent: a live view of the lines of its socket (`docs/guide/agent-log.md`).
//!
//! Everything that the page needs is in this program. It listens on loopback alone. Other users of this machine and
//! pages of the internet that have their name lead here (DNS rebinding) get nothing: each address begins with a random
//! token, and `Host` must be the loopback address.
//!
//! *What it leaves out*: TLS; more than one folder or agent; what an agent did before the page was opened.

mod http;

use crate::{LINE_BYTES_MOST, Result, ViewError};
use http::{Request, Response, Until};
use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most connections at once. One more takes the place of the one that has waited longest for its request to be
/// whole; where none waits, it is closed unanswered.
const CONNECTIONS_MOST: usize = 32;
/// How long a browser may take for its whole request, and then for the whole response; of an agent, for each event.
const PATIENCE: Duration = Duration::from_secs(20);

const STYLE: &str = include_str!("../web/view.css");
const FIGURES_SCRIPT: &str = include_str!("../web/figures.js");
const FOLDER_SCRIPT: &str = include_str!("../web/folder.js");
const AGENT_SCRIPT: &str = include_str!("../web/agent.js");
const AGENT_PAGE: &str = include_str!("../web/agent.html");

/// What a page shows.
#[derive(Clone, Debug)]
pub enum Shown {
    /// The result in this folder.
    Folder(PathBuf),
    /// The agent of this interface, or the first one found, by the sockets in this folder.
    Agent {
        /// [`lasthop_status::FOLDER`] outside of tests.
        sockets: PathBuf,
        /// Its interface.
        interface: Option<String>,
    },
}

/// A page that is served until the program ends.
#[derive(Debug)]
pub struct Page {
    /// Its address, with the token that opens it.
    pub url: String,
}

struct Server {
    shown: Shown,
    port: u16,
    /// 32 hexadecimal digits.
    token: String,
    /// The version of the result shown last, and its page.
    made: Mutex<Option<(String, String)>>,
    connections: AtomicUsize,
    /// Those whose request is not whole, in the order in which they came.
    asking: Mutex<VecDeque<Arc<TcpStream>>>,
}

impl Page {
    /// Serves the page on this port of the loopback address; 0: on one that is free.
    ///
    /// # Errors
    /// There is no result in the folder and nothing writes one, the result cannot be read, no agent can be watched, or the
    /// port is taken.
    pub fn serve(shown: Shown, port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let bound = listener.and_then(|listener| listener.local_addr().map(|address| (listener, address.port())));
        let (listener, port) = bound.map_err(|source| ViewError::Port { port, source })?;
        let token = format!("{:032x}", u128::from_ne_bytes(random()?));
        let url = format!("http://127.0.0.1:{port}/{token}/");
        let (made, connections, asking) = Default::default();
        let server = Server { shown, port, token, made, connections, asking };
        server.check()?;
        let server = Arc::new(server);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if server.connections.load(Ordering::Relaxed) >= CONNECTIONS_MOST && !server.close_the_slowest() {
                    continue;
                }
                server.connections.fetch_add(1, Ordering::Relaxed);
                let (server, stream) = (Arc::clone(&server), Arc::new(stream));
                server.asking().push_back(Arc::clone(&stream));
                thread::spawn(move || {
                    // A browser that has gone is nobody's trouble.
                    let _ = server.answer(&stream);
                    server.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { url })
    }
}

fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(ViewError::Random)?;
    Ok(bytes)
}

impl Server {
    /// Whether there is something to show.
    fn check(&self) -> Result<()> {
        match &self.shown {
            Shown::Folder(folder) => {
                let path = || folder.clone();
                std::fs::read_dir(folder).map_err(|source| ViewError::Folder { path: path(), source })?;
                if !is_written(folder) || lasthop_report::result_file(folder).is_some() {
                    self.page_of_folder(folder)?;
                }
            }
            Shown::Agent { sockets, interface } => drop(connect(sockets, interface.as_deref())?),
        }
        Ok(())
    }

    fn asking(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that has waited longest for its request to be whole. Returns whether there was one.
    fn close_the_slowest(&self) -> bool {
        let slowest = self.asking().pop_front();
        // Its thread ends, and lets it go.
        slowest.map(|stream| stream.shutdown(Shutdown::Both)).is_some()
    }

    fn answer(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        let request = Request::read(Until::new(stream, PATIENCE));
        self.asking().retain(|asking| !Arc::ptr_eq(asking, stream));
        let send = |response: &Response| response.send(Until::new(stream, PATIENCE));
        let request = match request {
            Ok(request) => request,
            Err(refused) => return send(&refused),
        };
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        if !hosts.contains(&request.host) || !stream.peer_addr().is_ok_and(|from: SocketAddr| from.ip().is_loopback()) {
            return send(&Response::text(403, "lasthop view answers at its loopback address alone.\n"));
        }
        let path = request.path.strip_prefix('/').and_then(|path| path.strip_prefix(self.token.as_str()));
        let Some(path) = path.and_then(|path| path.strip_prefix('/')) else {
            let said = "This address lacks the token that lasthop view has printed, or has another one.\n";
            return send(&Response::text(404, said));
        };
        if let (Shown::Agent { sockets, interface }, "events") = (&self.shown, path) {
            return relay(stream, sockets, interface.as_deref());
        }
        send(&self.response(path))
    }

    fn response(&self, path: &str) -> Response {
        match (&self.shown, path) {
            (_, "figures.js") => Response::script(FIGURES_SCRIPT),
            (Shown::Folder(_), "folder.js") => Response::script(FOLDER_SCRIPT),
            (Shown::Agent { .. }, "agent.js") => Response::script(AGENT_SCRIPT),
            (Shown::Agent { .. }, "") => {
                let style = format!("{}{STYLE}", lasthop_report::PAGE_STYLE);
                let [left, width] = lasthop_report::figure_span();
                let page = AGENT_PAGE.replacen("STYLE", &style, 1);
                Response::page(page.replacen("SPAN", &format!("{left} {width}"), 1))
            }
            (Shown::Folder(folder), "state") => {
                let state = serde_json::json!({ "version": version(folder), "written": is_written(folder) });
                Response::json(state.to_string())
            }
            (Shown::Folder(folder), "live") => {
                let live = is_written(folder).then(|| lasthop_report::live(folder)).flatten();
                live.map_or_else(|| Response::text(404, "Nothing is at work there.\n"), Response::page)
            }
            (Shown::Folder(folder), "") => {
                self.page_of_folder(folder).map_or_else(|error| trouble(&error), Response::page)
            }
            (Shown::Folder(folder), path) => match case_folder(path) {
                Some(case) => lasthop_report::page(&folder.join(case))
                    .map(|page| self.with_scripts(&page, &version(folder)))
                    .map_or_else(|error| trouble(&error), Response::page),
                None => Response::text(404, "There is no such page.\n"),
            },
            _ => Response::text(404, "There is no such page.\n"),
        }
    }

    /// The page of the folder's result, made once for each result. Before there is one: a page that waits for it.
    fn page_of_folder(&self, folder: &Path) -> Result<String> {
        let version = version(folder);
        if version.is_empty() && is_written(folder) {
            let said = format!("{} has no result yet", folder.display());
            let said = said.replace('&', "&amp;").replace('<', "&lt;");
            let page = format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>lasthop view</title><style>{}</style></head>\n\
                 <body><h1>{said}</h1><p>lasthop is at work there. This page shows the report as soon as the result is complete.</p>\
                 </body></html>\n",
                lasthop_report::PAGE_STYLE
            );
            return Ok(self.with_scripts(&page, &version));
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = made.as_ref().filter(|(of, _)| *of == version) {
            return Ok(page.clone());
        }
        let page = self.with_scripts(&lasthop_report::page(folder)?, &version);
        *made = Some((version, page.clone()));
        Ok(page)
    }

    fn with_scripts(&self, page: &str, version: &str) -> String {
        let root = format!("/{}", self.token);
        let (head, rest) = page.split_once("</style>").unwrap_or((page, ""));
        let (body, end) = rest.rsplit_once("</body>").unwrap_or((rest, ""));
        format!(
            "{head}{STYLE}</style>{body}<script src=\"{root}/figures.js\"></script>\n\
             <script src=\"{root}/folder.js\" data-state=\"{root}/state\" data-live=\"{root}/live\" data-version=\"{version}\"></script>\n</body>{end}"
        )
    }
}

fn trouble(error: &(dyn Error + 'static)) -> Response {
    Response::text(500, &format!("{}\n", with_causes(error)))
}

/// The error with its causes, in one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| Error::source(*error)).map(ToString::to_string);
    causes.collect::<Vec<_>>().join(": ").replace('\n', " ")
}

/// `cases/NAME/report.html`: what a comparison's page links to.
fn case_folder(path: &str) -> Option<PathBuf> {
    let name = path.strip_prefix("cases/")?.strip_suffix("/report.html")?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '.';
    (name.chars().all(is_plain) && name.chars().any(|letter| letter != '.')).then(|| Path::new("cases").join(name))
}

/// Differs for each result of the folder; empty without one.
fn version(folder: &Path) -> String {
    let data = lasthop_report::result_file(folder).and_then(|file| std::fs::metadata(file).ok());
    data.map_or(String::new(), |data| format!("{}-{}-{}", data.ino(), data.mtime(), data.mtime_nsec()))
}

/// Whether a `lasthop` is about to write into the folder: it holds its lock (flock(2)). /proc/locks tells without touching
/// the lock, which another `lasthop` might want at this moment (proc_locks(5)).
fn is_written(folder: &Path) -> bool {
    let inode = std::fs::metadata(folder).map(|data| data.ino().to_string());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    inode.is_ok_and(|inode| {
        locks.lines().any(|line| {
            let mut words = line.split_whitespace();
            let is_lock = words.clone().any(|word| word == "FLOCK") && words.clone().any(|word| word == "WRITE");
            is_lock && words.any(|word| word.rsplit(':').next() == Some(&inode) && word.matches(':').count() == 2)
        })
    })
}

fn connect(sockets: &Path, interface: Option<&str>) -> Result<std::os::unix::net::UnixStream> {
    let connected = lasthop_status::watch(sockets, interface).map(|(_, stream)| stream);
    connected.map_err(ViewError::NoAgent)
}

/// Hands on each line of the agent as an event, until it or the browser has gone. The browser then asks again by itself.
fn relay(stream: &TcpStream, sockets: &Path, interface: Option<&str>) -> io::Result<()> {
    let each = || Until::new(stream, PATIENCE);
    http::begin_events(each())?;
    let agent = match connect(sockets, interface) {
        Ok(agent) => agent,
        Err(error) => {
            return write!(each(), "event: gone\ndata: {}.\n\n", with_causes(&error));
        }
    };
    let mut agent = BufReader::new(agent);
    loop {
        let mut line = String::new();
        let read = agent.by_ref().take(LINE_BYTES_MOST).read_line(&mut line)?;
        if read == 0 {
            return write!(each(), "event: gone\ndata: The agent has ended, or has disconnected a stalled reader.\n\n");
        }
        each().write_all(format!("data: {}\n\n", line.trim_end()).as_bytes())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{Flock, FlockArg};

    #[test]
    fn only_the_pages_of_cases_are_served_below_a_folder() {
        assert_eq!(case_folder("cases/2-policy-none-seed-3/report.html"), Some("cases/2-policy-none-seed-3".into()));
        for path in [
            "cases/../report.html",
            "cases/a/b/report.html",
            "cases//report.html",
            "cases/%2e%2e/report.html",
            "result.json",
        ] {
            assert_eq!(case_folder(path), None, "{path}");
        }
    }

    #[test]
    fn a_folder_is_written_while_it_is_locked() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_written(folder.path()));
        let lock = std::fs::File::open(folder.path()).expect("a folder");
        let lock = Flock::lock(lock, FlockArg::LockExclusive).expect("nobody else locks it");
        assert!(is_written(folder.path()));
        drop(lock);
        assert!(!is_written(folder.path()));
    }
}
