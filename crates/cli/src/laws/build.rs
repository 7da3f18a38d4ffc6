//! `lasthop laws build`: a law of the user's own, from one header.

use crate::say;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use lasthop_files::Kind;
use lasthop_kernel::laws::{Loaded, Name, Options};
use lasthop_laws::own::SOURCES;
use lasthop_laws::{LawName, Parameter, Parameters};
use lasthop_own::{Built, Workshop};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct BuildArguments {
    /// The header of the law
    header: PathBuf,
    /// Keep what is made in this folder too, apart from the cache
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The law of a header, for scenarios.
pub(crate) fn own_law(header: &Path) -> Result<LawName, String> {
    made(header).map(|built| built.law).map_err(|error| format!("{error:#}"))
}

fn made(header: &Path) -> Result<Built> {
    let workshop = Workshop::new(cache()?, lasthop_kernel::laws::sources().collect());
    Ok(workshop.build(header)?)
}

/// The folder of what is made, as the XDG base directory specification has it.
fn cache() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    let cache =
        cache.context("there is no folder to compile laws in: set HOME or XDG_CACHE_HOME to an absolute path")?;
    Ok(cache.join("lasthop/laws"))
}

/// `lasthop laws build`.
pub(super) fn build(arguments: &BuildArguments) -> Result<()> {
    let header = arguments.header.display();
    if arguments.header.extension().is_none_or(|extension| extension != "h") {
        bail!("{header}: a law is a C header, and its name ends with .h");
    }
    let built = made(&arguments.header)?;
    let LawName::Own(own) = built.law else { unreachable!("a header makes a law of one's own") };
    let law = built.law;
    let verified = verify(law, &built.folder)?;
    let mut text = format!("{law}: {}\n", law.label());
    for Parameter { name, from, to, default, .. } in law.parameters() {
        let _ = writeln!(text, "  parameter {name} = {default} ({from} to {to})");
    }
    let habitats = if law.is_for_the_kernel() { "this machine and for the kernel" } else { "this machine" };
    let _ = writeln!(text, "  passed   compiles without a warning for {habitats}");
    text.push_str("  passed   one law; integers only; calls nothing; remembers only what is in its struct\n");
    text.push_str(
        "  passed   a trial at each parameter's default and ends: first events, and connections with losses, marks,\n",
    );
    text.push_str("           timeouts and pauses: no division by zero, no window of 0, no ssthresh below 2\n");
    let _ = writeln!(text, "  {verified}");
    let _ = writeln!(text, "  made     {} (digest {})", built.folder.display(), own.digest());
    if let Some(out) = &arguments.out {
        keep(&built.folder, out)?;
        let _ = writeln!(text, "  kept     {}", out.display());
    }
    let _ =
        writeln!(text, "A scenario beside it uses it with congestion_control = \"./{}\"", file_name(&arguments.header));
    say(&text)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// By which it knows a compiled law.
const OBJECT: Kind = Kind { name: "a compiled law", looked_at: 4, is: |begin| begin.starts_with(b"\x7fELF") };

/// Copies what was made.
fn keep(products: &Path, out: &Path) -> Result<()> {
    let reading = || format!("reading {}", products.display());
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    for file in std::fs::read_dir(products).with_context(reading)? {
        let file = file.with_context(reading)?;
        // What the verifier said of a law that it refused is no product.
        let object = std::fs::read(file.path()).with_context(reading)?;
        if (OBJECT.is)(&object) {
            let to = out.join(file.file_name());
            let written = lasthop_files::write(&to, Some(&OBJECT), &object);
            written.with_context(|| format!("writing {}", to.display()))?;
        }
    }
    Ok(())
}

/// By which it knows a header that it has written before: by its first lines.
const HEADER: Kind = Kind { name: "a header", looked_at: 4096, is: is_header };

fn is_header(begin: &[u8]) -> bool {
    let headers = SOURCES.iter().filter(|(name, _)| name.ends_with(".h"));
    let first = |text: &'static str| text.split_inclusive('\n').take(4).map(str::len).sum::<usize>();
    headers.into_iter().any(|(_, text)| begin.starts_with(&text.as_bytes()[..first(text)]))
}

/// `lasthop laws headers`.
pub(super) fn headers(folder: &Path) -> Result<()> {
    for (name, text) in SOURCES.iter().filter(|(name, _)| name.ends_with(".h")) {
        let path = folder.join(name);
        let write = || lasthop_files::write(&path, Some(&HEADER), text.as_bytes());
        std::fs::create_dir_all(folder)
            .and_then(|()| write())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    say(&folder.join("law.h").display().to_string())
}

/// Loads it into the kernel for a moment. A line that says how that went.
fn verify(law: LawName, folder: &Path) -> Result<String> {
    if !law.is_for_the_kernel() {
        return Ok("skipped  the kernel's verifier: its LH_LAW_ENTRY says Simulated, not Everywhere".to_owned());
    }
    if let Err(error) = lasthop_kernel::laws::check() {
        return Ok(format!("skipped  the kernel's verifier: {error}"));
    }
    let options = Options { name: Name::Private, ..Options::new(law, Parameters::of(law)) };
    if let Err(error) = Loaded::load(&options) {
        let log = format!("{:#}", anyhow::Error::new(error));
        let file = folder.join("verifier.txt");
        let told = match in_brief(&log) {
            Some(reason) if std::fs::write(&file, &log).is_ok() => {
                format!("the verifier says: {reason} (the end of its log: {})", file.display())
            }
            _ => log,
        };
        bail!("{law} is no law for the kernel: {told}");
    }
    Ok("passed   the kernel's verifier".to_owned())
}

/// The reason at the end of a verifier's log, with the line of the source that it was at.
fn in_brief(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let end = lines.iter().rposition(|line| line.starts_with("processed ") && line.contains(" insns "))?;
    let reason = lines[end.checked_sub(1)?];
    if reason.starts_with("BPF program is too large") {
        return Some(format!("{reason}; mostly a loop has no constant end, or too many rounds"));
    }
    // ; law->a = b[i]; @ mine.h:10
    let source = lines[..end].iter().rev().find_map(|line| line.strip_prefix("; ")).unwrap_or_default();
    Some(match source.rsplit_once(" @ ") {
        Some((text, place)) => format!("{reason}, at {place}: {text}"),
        None => format!("{reason}, at: {source}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_verifiers_log_the_reason_is_told_with_its_line() {
        let log = "loading the BPF programs: Permission denied (os error 13)\n\
                   libbpf: prog 'law_cong_control': -- BEGIN PROG LOAD LOG --\n\
                   ; law->b[acked->acked_segments] = 3; @ mine.h:10\n\
                   890: (63) *(u32 *)(r1 +16) = r4\n\
                   R1 unbounded memory access, make sure to bounds check any such access\n\
                   processed 9744 insns (limit 1000000) max_states_per_insn 12\n\
                   -- END PROG LOAD LOG --\nlibbpf: failed to load object 'lasthop_law'";
        assert_eq!(
            in_brief(log).expect("a reason"),
            "R1 unbounded memory access, make sure to bounds check any such access, at mine.h:10: \
             law->b[acked->acked_segments] = 3;"
        );
        assert_eq!(in_brief("loading the BPF programs: Operation not permitted"), None);
    }
}
