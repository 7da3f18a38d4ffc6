//! `lasthop key`.

use crate::say;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zeroize::Zeroizing;

/// The length of a SHA-256 hash: the least that RFC 2104 §3 recommends for a key of HMAC-SHA-256.
const KEY_BYTES: usize = 32;

#[derive(Args)]
pub(crate) struct KeyArguments {
    /// The file to write; an existing file is never overwritten
    #[arg(long, value_name = "FILE", default_value = "/etc/lasthop/group.key")]
    out: PathBuf,
}

/// `lasthop key`: writes a new group key to a file that only its owner can read, and prints what to do with it.
pub(crate) fn run(arguments: &KeyArguments) -> Result<ExitCode> {
    let file = std::path::absolute(&arguments.out).context("cannot tell the current folder")?;
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut secret[..]).context("cannot get random bytes from the kernel")?;
    write_new(&file, &text(&secret[..]))?;
    let shown = file.display();
    say(&format!(
        "A new group key is in {shown}, which only its owner can read.\n\n\
         Copy it to each host of the place, over a connection that you trust:\n  \
         scp -p {shown} root@HOST:{shown}\n\n\
         On each of them add this line to [beacon] in /etc/lasthop/agent.toml, and restart the agent:\n  \
         group_key_file = \"{shown}\"\n\n\
         Hosts with the key and hosts without it do not hear each other."
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Hexadecimal digits and a line end: the agent reads the whole file without white space at its end.
fn text(secret: &[u8]) -> Zeroizing<String> {
    // Of its whole length from the start: growing would leave a copy behind.
    let mut text = secret.iter().fold(String::with_capacity(2 * secret.len() + 1), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes what it is given");
        text
    });
    text.push('\n');
    Zeroizing::new(text)
}

fn write_new(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let shown = file.display();
    let mut opened = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{shown} is there already and stays as it is: remove it first, or name another file with --out")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write the group key {shown}")),
    };
    let written = opened.write_all(text.as_bytes()).and_then(|()| File::sync_all(&opened));
    if written.is_err() {
        let _ = fs::remove_file(file); // part of a key would be taken for a whole one
    }
    written.with_context(|| format!("cannot write the group key {shown}"))
}
