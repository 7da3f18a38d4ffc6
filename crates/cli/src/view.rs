//! `lasthop view`.

use crate::numbers::whole;
use crate::{say, stop_on_signals};
use anyhow::{Result, bail};
use clap::Args;
use lasthop_view::{Page, Shown};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How soon Ctrl-C is heard.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct ViewArguments {
    /// The folder of a result (`--out`), or of a run that goes on, or `agent` for the agent that runs on this machine
    shown: PathBuf,
    /// The agent of this interface, instead of the first one found
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// Serve the page on this port of 127.0.0.1, instead of one that is free
    #[arg(long, default_value_t = 0, hide_default_value = true, value_parser = whole(0..=u16::MAX), allow_negative_numbers = true)]
    port: u16,
}

pub(crate) fn run(arguments: &ViewArguments) -> Result<ExitCode> {
    let shown = if arguments.shown.as_os_str() == "agent" {
        Shown::Agent { sockets: lasthop_status::FOLDER.into(), interface: arguments.interface.clone() }
    } else {
        if arguments.interface.is_some() {
            bail!("--interface is for `lasthop view agent`; a folder has none");
        }
        Shown::Folder(arguments.shown.clone())
    };
    let stop = stop_on_signals()?;
    let page = Page::serve(shown, arguments.port)?;
    say(&format!("{}\nOpen it in a browser on this machine; Ctrl-C ends it.", page.url))?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    Ok(ExitCode::SUCCESS)
}
