//! What the linker and `nm` say of a law's object, in words.

use lasthop_laws::own::DIVIDED_BY_ZERO;
use std::fmt;

/// What no law may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It computes with floating point; the function of the compiler's library.
    FloatingPoint(String),
    /// It computes what needs a function of the compiler's library, such as 128-bit division.
    Arithmetic(String),
    /// It calls a function, or uses a variable, that its headers do not define.
    Outside(String),
    /// It has a constant table of a size that the kernel's half has no place for.
    SmallTable(String),
    /// It has a variable that outlives an event.
    Variable(String),
    /// It is of both forms.
    BothForms,
    /// It is of neither.
    NeitherForm,
    /// It has an event, or parameters, and lacks the macro by which they count.
    Undeclared {
        /// The event, or PARAMETERS.
        event: String,
        /// The macro.
        declared_by: String,
    },
    /// It declares what no law has, or not with 1.
    Declaration(String),
    /// It has what laws of the second form alone have.
    OfSecondForm,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FloatingPoint(_) => f.write_str(
                "floating point, which the kernel does not have: count in integers, ratios in millionths (law.h)",
            ),
            Self::Arithmetic(function) => {
                write!(f, "arithmetic for which the kernel has no instruction ({function}): 64 bits are the most")
            }
            Self::Outside(name) => write!(
                f,
                "{name} is outside its headers: a law calls nothing, it has the numbers of its events only (law.h)"
            ),
            Self::SmallTable(name) => write!(
                f,
                "{name} is a table of 4, 8, 16 or 32 bytes, for which the kernel's half has no place: give it one entry more"
            ),
            Self::BothForms => f.write_str(
                "it has sampled() and acked(): a law of the second form hears of ACKs by sampled() alone; leave one of the two out (law.h)",
            ),
            Self::NeitherForm => {
                f.write_str("it has neither acked() nor sampled(): a law sets its window in one of them at each ACK (law.h)")
            }
            Self::Undeclared { event, declared_by } if event == "PARAMETERS" => {
                write!(f, "its list of parameters counts only with a line '#define {declared_by} 1' (law.h)")
            }
            Self::Undeclared { event, declared_by } => {
                write!(f, "it has {event}() without a line '#define {declared_by} 1', and would never hear of it (law.h)")
            }
            Self::Declaration(line) => write!(
                f,
                "'#define {line}' declares nothing: accepted are 0 or 1, and HAS_ with {} or PARAMETERS (law.h)",
                OPTIONAL.map(str::to_uppercase).join(", ")
            ),
            Self::OfSecondForm => f.write_str("it has resumed() without sampled(), and only a law with that hears of it (law.h)"),
            Self::Variable(name) => write!(
                f,
                "{name} is a variable of all connections: what a law remembers is in its struct, one for each connection"
            ),
        }
    }
}

/// The first undefined symbol of a linker's messages, with its place: `/home/me/mine.h:7: undefined reference to `f'`.
pub(crate) fn undefined(messages: &str) -> Option<(String, Problem)> {
    let (place, name) = messages.lines().find_map(|line| line.split_once(": undefined reference to "))?;
    let place = place.rsplit(": ").next()?.to_owned();
    let name = name.trim_matches(['`', '\'', '"']).to_owned();
    let problem = match name.strip_prefix("__") {
        Some(function) if ["sf", "df", "xf", "tf"].iter().any(|kind| function.contains(kind)) => {
            Problem::FloatingPoint(name)
        }
        Some(function) if function.contains("ti") => Problem::Arithmetic(name),
        _ => Problem::Outside(name),
    };
    Some((place, problem))
}

/// The first variable that can be written, of the table of `nm --format=sysv`: its name as in the source.
pub(crate) fn variable(symbols: &str) -> Option<String> {
    first_in(symbols, |section| [".data", ".bss", ".tdata", ".tbss", "*COM*"].contains(&section))
}

/// The first constant table of 4, 8, 16 or 32 bytes, likewise.
pub(crate) fn small_table(symbols: &str) -> Option<String> {
    first_in(symbols, |section| section.starts_with(".rodata.cst"))
}

fn first_in(symbols: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    symbols.lines().find_map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, _, _, kind, .., section] = columns[..] else { return None };
        // one inside a function is function.variable, perhaps with a number behind it
        let own = name.split('.').rfind(|part| part.parse::<u32>().is_err())?;
        let is_one = is_meant(section.split('\t').next()?) && kind != "SECTION" && own != DIVIDED_BY_ZERO;
        is_one.then(|| own.to_owned())
    })
}

/// The events that a macro declares.
const OPTIONAL: [&str; 7] = ["timed_out", "notified", "sent", "undone", "reported", "sampled", "resumed"];

/// What is wrong with the form of a law, by the text of its headers. What is not asked for in the right words would be left out in silence.
pub(crate) fn form(text: &str) -> Option<Problem> {
    let text = without_comments(text);
    let words = |text: &str| -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        text.split(move |c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    // Its entry is what the static assertions of own.c ask for.
    let entry = words(text.split_once("LH_LAW_ENTRY(")?.1);
    let (law, constant) = (entry.first()?, entry.get(1)?);
    let macros = text.lines().filter_map(|line| line.trim().strip_prefix('#')?.trim_start().strip_prefix("define"));
    let mut declared = Vec::new();
    for line in macros.map(str::trim) {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Some(what) = name.strip_prefix(&format!("LH_{constant}_")) else { continue };
        let is_known = match what.strip_prefix("HAS_") {
            Some("PARAMETERS") => true,
            Some(event) => OPTIONAL.map(str::to_uppercase).iter().any(|known| known == event),
            None if ["ECHOES_MARKS", "IS_L4S"].contains(&what) => true,
            None => continue,
        };
        if !is_known || !["0", "1"].contains(&value.trim()) {
            return Some(Problem::Declaration(line.to_owned()));
        }
        if value.trim() == "1" {
            declared.push(name.to_owned());
        }
    }
    let words = words(&text);
    let has = |event: &str| words.contains(&format!("lh_{law}_{event}"));
    match (has("acked"), has("sampled")) {
        (true, true) => return Some(Problem::BothForms),
        (false, false) => return Some(Problem::NeitherForm),
        (true, false) if has("resumed") => return Some(Problem::OfSecondForm),
        _ => {}
    }
    let lists = words.contains(&format!("LH_{constant}_PARAMETERS")).then_some("PARAMETERS");
    OPTIONAL.into_iter().filter(|event| has(event)).chain(lists).find_map(|event| {
        let declared_by = format!("LH_{constant}_HAS_{}", event.to_uppercase());
        let is_mute = !declared.contains(&declared_by);
        is_mute.then(|| Problem::Undeclared { event: event.to_owned(), declared_by })
    })
}

fn without_comments(text: &str) -> String {
    let (mut rest, mut left) = (text, String::new());
    while let Some((before, comment)) = rest.split_once("/*") {
        left += before;
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    left += rest;
    left.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The first line, from 1, with this word outside a line comment.
pub(crate) fn line_of(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.lines().position(|line| line.split(|c| !is_part(c)).any(|found| found == word)).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linkers_words_become_a_place_and_a_reason() {
        let of = |name: &str| {
            let line = format!(
                "/usr/bin/ld: own.o: in function `f':\n/usr/bin/ld: ./mine.h:7: undefined reference to `{name}'\n"
            );
            undefined(&line).expect("an undefined symbol")
        };
        assert_eq!(of("__muldf3"), ("./mine.h:7".into(), Problem::FloatingPoint("__muldf3".into())));
        assert_eq!(of("__udivti3").1, Problem::Arithmetic("__udivti3".into()));
        assert_eq!(of("printf").1, Problem::Outside("printf".into()));
        assert_eq!(undefined("ld: cannot find -lc"), None);
    }

    #[test]
    fn a_variable_is_found_by_its_section_and_named_as_in_the_source() {
        let table = |section: &str| {
            format!(
                "Name                  Value           Class        Type         Size             Line  Section\n\n\
                 lh_own_law          |0000000000000150|   D  |            OBJECT|0000000000000068|     |.data.rel.ro\n\
                 roots               |0000000000000000|   r  |            OBJECT|0000000000000068|     |.rodata\n\
                 lh_mine_acked.calls |0000000000000000|   b  |            OBJECT|0000000000000004|     |{section}\n"
            )
        };
        assert_eq!(variable(&table(".bss")), Some("calls".into()));
        assert_eq!(variable(&table(".rodata")), None);
        assert_eq!(line_of("int recalls;\nstatic int calls;\n", "calls"), Some(2));
    }
}
