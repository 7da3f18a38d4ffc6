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

use lasthop_status::{VERSION, Watched};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::EnterAlternateScreen;
use ratatui::layout::{Rect, Size};
use ratatui::{TerminalOptions, Viewport};
use screen::{Place, Screen};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, ViewError>;

/// Time between two looks at the source while no key is pressed.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of a line of an agent.
const LINE_BYTES_MOST: u64 = 2 << 20;

/// The most of a terminal that is drawn on, in columns and rows: a terminal may say that it has 65535 of each.
const DRAWN_MOST: Size = Size::new(1_000, 500);

/// Shows the agent of this interface, or the first one found, until the user quits or `stop` is set.
///
/// # Errors
/// No agent serves a socket in this folder, it speaks another version, it has ended, or there is no terminal.
pub fn watch(folder: &Path, interface: Option<&str>, stop: &AtomicBool) -> Result<()> {
    let (path, stream) = lasthop_status::watch(folder, interface).map_err(ViewError::NoAgent)?;
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
    on_terminal(|terminal| live(terminal, &lines, stop))
        .map_err(|source| ViewError::Watch { path, source: Box::new(source) })
}

/// Shows a record of an agent until the user quits or `stop` is set.
///
/// # Errors
/// The record cannot be read or has no tick, or there is no terminal.
pub fn replay(record: &Path, stop: &AtomicBool) -> Result<()> {
    let mut replay = Replay::open(record)?;
    let of_record = |source| ViewError::Record { path: record.to_owned(), source };
    on_terminal(|terminal| replayed(terminal, &mut replay, stop, of_record))
}

fn on_terminal(run: impl FnOnce(&mut ratatui::DefaultTerminal) -> Result<()>) -> Result<()> {
    let begin = || {
        let (columns, rows) = ratatui::crossterm::terminal::size()?;
        let viewport = Viewport::Fixed(drawn(Size::new(columns, rows)));
        let terminal = ratatui::try_init_with_options(TerminalOptions { viewport })?;
        execute!(std::io::stdout(), EnterAlternateScreen).map(|()| terminal)
    };
    let outcome = begin().map_err(ViewError::Terminal).and_then(|mut terminal| run(&mut terminal));
    ratatui::restore();
    outcome
}

/// The part of a terminal that is drawn on.
fn drawn(size: Size) -> Rect {
    Rect::new(0, 0, size.width.min(DRAWN_MOST.width), size.height.min(DRAWN_MOST.height))
}

/// Draws on what the terminal is like now.
fn draw(terminal: &mut ratatui::DefaultTerminal, screen: &mut Screen) -> Result<()> {
    let mut draw = || {
        let area = drawn(terminal.size()?);
        if terminal.get_frame().area() != area {
            terminal.resize(area)?;
        }
        terminal.draw(|frame| screen.draw(frame)).map(drop)
    };
    draw().map_err(ViewError::Terminal)
}

/// The next key within this time, if any, or the end of the program. Where it is to stop: as if the user quits.
fn key(within: Duration, stop: &AtomicBool) -> Result<Option<KeyEvent>> {
    let end = Instant::now() + within;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) {
            return Ok(Some(KeyCode::Char('q').into()));
        }
        if event::poll(left.min(LOOK)).map_err(ViewError::Terminal)? {
            break;
        }
        if left <= LOOK {
            return Ok(None);
        }
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

fn live(terminal: &mut ratatui::DefaultTerminal, lines: &Receiver<String>, stop: &AtomicBool) -> Result<()> {
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
            draw(terminal, &mut screen)?;
            is_drawn = true;
        }
        if let Some(key) = key(LOOK, stop)? {
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
    stop: &AtomicBool,
    of_record: impl Fn(RecordError) -> ViewError,
) -> Result<()> {
    let mut screen = Screen::default();
    let mut at = 0;
    // When the tick shown was due.
    let mut due = Instant::now();
    loop {
        let place = Place { at_s: replay.time_s(at), of_s: replay.time_s(replay.last()) };
        screen.show(replay.tick(at).map_err(&of_record)?, replay.rates(at).to_vec(), place);
        draw(terminal, &mut screen)?;
        loop {
            let goes_on = !screen.is_paused() && at < replay.last();
            let next = due + Duration::from_secs_f64(replay.time_s(at + 1) - replay.time_s(at));
            let wait = if goes_on { next.saturating_duration_since(Instant::now()) } else { Duration::from_secs(3600) };
            let Some(key) = key(wait, stop)? else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_large_a_terminal_says_it_is_no_more_than_so_much_is_drawn() {
        assert_eq!(drawn(Size::new(80, 24)), Rect::new(0, 0, 80, 24));
        assert_eq!(drawn(Size::new(20_000, 20_000)), Rect::new(0, 0, 1_000, 500));
    }
}
