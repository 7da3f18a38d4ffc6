//! The emulator's monitor: QMP, on its standard input and output.

use crate::error::{Error, Result};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// An emulator that does not answer for longer has failed.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// How long something may take: of a processor's time, for on a busy machine an emulator waits for one. What does nothing is charged a
/// tenth of the time that passes.
pub(crate) struct Patience {
    process: Pid,
    limit: Duration,
    since: Instant,
    spent_before: Duration,
}

impl Patience {
    pub(crate) fn with(process: Pid, limit: Duration) -> Self {
        Self { process, limit, since: Instant::now(), spent_before: spent(process) }
    }

    pub(crate) fn is_over(&self) -> bool {
        spent(self.process).saturating_sub(self.spent_before).max(self.since.elapsed() / 10) > self.limit
    }
}

/// The processor's time that a process has had; nothing of one that has ended.
fn spent(process: Pid) -> Duration {
    clock_getcpuclockid(process).and_then(|clock| clock.now()).map(Duration::from).unwrap_or_default()
}

/// A conversation with the emulator.
pub(crate) struct Monitor {
    pub(crate) process: Pid,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Events that came while an answer was awaited.
    events: Vec<String>,
}

/// What is next.
pub(crate) enum Next {
    /// An event of this name.
    Event(String),
    /// Nothing within the time.
    Nothing,
    /// The emulator has ended.
    End,
}

impl Monitor {
    /// Of an emulator whose standard input and output are pipes.
    pub(crate) fn of(child: &mut Child) -> Self {
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                if let Ok(message) = serde_json::from_str(&line)
                    && send.send(message).is_err()
                {
                    break;
                }
            }
        });
        Self { process: Pid::from_raw(child.id().cast_signed()), input, messages, events: Vec::new() }
    }

    /// Does a command, and returns its answer.
    ///
    /// # Errors
    /// If the emulator refuses it, or has ended.
    pub(crate) fn run(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        let ended = || Error::Ended { said: String::new() };
        writeln!(self.input, "{request}").map_err(|_| ended())?;
        let patience = Patience::with(self.process, ANSWER_LIMIT);
        loop {
            let message = match self.messages.recv_timeout(Duration::from_secs(1)) {
                Err(RecvTimeoutError::Timeout) if !patience.is_over() => continue,
                message => message.map_err(|_| ended())?,
            };
            if let Some(event) = message.get("event").and_then(Value::as_str) {
                self.events.push(event.to_owned());
            } else if let Some(error) = message.get("error") {
                let said = error.get("desc").and_then(Value::as_str).unwrap_or_default().to_owned();
                return Err(Error::Failed { what: format!("the emulator's {command}"), said });
            } else if let Some(answer) = message.get("return") {
                return Ok(answer.clone());
            }
        }
    }

    /// A command of the monitor for people. It fails if that says anything.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        let said = self.run("human-monitor-command", &json!({ "command-line": line }))?;
        match said.as_str().map(str::trim) {
            None | Some("") => Ok(()),
            Some(said) => Err(Error::Failed { what: format!("the emulator's {line}"), said: said.to_owned() }),
        }
    }

    /// The next event, within a time.
    pub(crate) fn next(&mut self, within: Duration) -> Next {
        if !self.events.is_empty() {
            return Next::Event(self.events.remove(0));
        }
        match self.messages.recv_timeout(within) {
            Ok(message) => match message.get("event").and_then(Value::as_str) {
                Some(event) => Next::Event(event.to_owned()),
                None => Next::Nothing,
            },
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }
}
