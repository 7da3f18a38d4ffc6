//! What an agent does, and what came out of a run.
//!
//! - `lasthop top`: an agent on the terminal. Of a running agent (its socket), or of a record.
//! - `lasthop view`: a running agent, or the result in a folder, in a browser ([`Page`]).

mod error;
mod replay;
mod screen;
mod web;

pub use error::{RecordError, ViewError};
pub use replay::Replay;
pub use web::{Page, Shown};

use lasthop_agent::watch::{self, VERSION, Watched};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::{Place, Screen};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, ViewError>;

/// Time between two looks at the source while no key is pressed.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of a line of an agent.
const LINE_BYTES_MOST: u64 = 2 << 20;

/// Shows the agent of this interface, or the first one found, until the user quits.
///
/// # Errors
/// No agent serves a socket in this folder, it speaks another version, it has ended, or there is no terminal.
pub fn watch(folder: &Path, interface: Option<&str>) -> Result<()> {
    let (path, stream) = watch::connect(folder, interface).map_err(ViewError::NoAgent)?;
    let (sender, lines) = sync_channel(4);
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            let read = reader.by_ref().take(LINE_BYTES_MOST).read_line(&mut line);
            if !read.is_ok_and(|read| read > 0) || sender.send(line).is_err() {
                return;
            }
        }
    });
    on_terminal(|terminal| live(terminal, &lines)).map_err(|source| ViewError::Watch { path, source: Box::new(source) })
}

/// Shows a record of an agent until the user quits.
///
/// # Errors
/// The record cannot be read or has no tick, or there is no terminal.
pub fn replay(record: &Path) -> Result<()> {
    let mut replay = Replay::open(record)?;
    let of_record = |source| ViewError::Record { path: record.to_owned(), source };
    on_terminal(|terminal| replayed(terminal, &mut replay, of_record))
}

fn on_terminal(run: impl FnOnce(&mut ratatui::DefaultTerminal) -> Result<()>) -> Result<()> {
    let mut terminal = ratatui::try_init().map_err(ViewError::Terminal)?;
    let outcome = run(&mut terminal);
    ratatui::restore();
    outcome
}

/// The next key within this time, if any, or the end of the program.
fn key(within: Duration) -> Result<Option<KeyEvent>> {
    if !event::poll(within).map_err(ViewError::Terminal)? {
        return Ok(None);
    }
    Ok(match event::read().map_err(ViewError::Terminal)? {
        Event::Key(key) if key.kind == KeyEventKind::Press => Some(key),
        // To draw anew.
        Event::Resize(..) => Some(KeyCode::Null.into()),
        _ => None,
    })
}

fn quits(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('q') || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn live(terminal: &mut ratatui::DefaultTerminal, lines: &Receiver<String>) -> Result<()> {
    let mut screen = Screen::default();
    let mut is_drawn = false;
    loop {
        loop {
            match lines.try_recv() {
                Ok(line) => is_drawn &= !screen.push(read_line(&line)?),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(ViewError::Ended),
            }
        }
        if !is_drawn {
            terminal.draw(|frame| screen.draw(frame)).map_err(ViewError::Terminal)?;
            is_drawn = true;
        }
        if let Some(key) = key(LOOK)? {
            if quits(key) {
                return Ok(());
            }
            screen.on_key(key.code);
            is_drawn = false;
        }
    }
}

fn read_line(line: &str) -> Result<Watched> {
    let watched: Watched = serde_json::from_str(line).map_err(ViewError::Line)?;
    if watched.v != VERSION {
        return Err(ViewError::Version(watched.v));
    }
    Ok(watched)
}

fn replayed(
    terminal: &mut ratatui::DefaultTerminal,
    replay: &mut Replay,
    of_record: impl Fn(RecordError) -> ViewError,
) -> Result<()> {
    let mut screen = Screen::default();
    let mut at = 0;
    // When the tick shown was due.
    let mut due = Instant::now();
    loop {
        let place = Place { at_s: replay.time_s(at), of_s: replay.time_s(replay.last()) };
        screen.show(replay.tick(at).map_err(&of_record)?, replay.rates(at).to_vec(), place);
        terminal.draw(|frame| screen.draw(frame)).map_err(ViewError::Terminal)?;
        loop {
            let goes_on = !screen.is_paused() && at < replay.last();
            let next = due + Duration::from_secs_f64(replay.time_s(at + 1) - replay.time_s(at));
            let wait = if goes_on { next.saturating_duration_since(Instant::now()) } else { Duration::from_secs(3600) };
            let Some(key) = key(wait)? else {
                if goes_on && Instant::now() >= next {
                    (at, due) = (at + 1, next);
                    break;
                }
                continue;
            };
            if quits(key) {
                return Ok(());
            }
            let seconds = |seconds: f64| replay.at(replay.time_s(at) + seconds);
            at = match key.code {
                KeyCode::Left => seconds(-1.0).min(at.saturating_sub(1)),
                KeyCode::Right => seconds(1.0).max(at + 1).min(replay.last()),
                KeyCode::Char('[') => seconds(-60.0),
                KeyCode::Char(']') => seconds(60.0),
                KeyCode::Char('0') => 0,
                KeyCode::Char('$') => replay.last(),
                code => {
                    screen.on_key(code);
                    at
                }
            };
            due = Instant::now();
            break;
        }
    }
}
