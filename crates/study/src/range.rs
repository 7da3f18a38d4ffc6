//! Which values an expression can have, for the confidence interval of it.
//!
//! No number of a result is below 0, and a share is at most 1. A path, a reduction of paths, `at(…)` and `over(…)` have
//! the range of what they look at. Other arithmetic without a minus is not below 0. *What it leaves out*: everything
//! finer; what is not recognised can be any number.

use lasthop_measure::Range;

/// Functions whose value can be negative.
const SIGNED: [&str; 6] = ["argmax", "argmin", "exponent", "ln", "reference", "ratios"];

/// The values that an expression of a measure, or of a claim, can have.
pub fn range_of(expression: &str) -> Range {
    let text = expression.trim();
    if let Ok(number) = text.parse::<f64>() {
        return Range { least: number, greatest: number };
    }
    if let Some((value, rest)) = text.split_once(" if ")
        && let Some((_, other)) = rest.rsplit_once(" else ")
    {
        return range_of(value).or(range_of(other));
    }
    if let Some((name, arguments)) = call(text) {
        let all = || arguments.iter().map(|argument| range_of(argument)).reduce(Range::or).unwrap_or(Range::ANY);
        return match name {
            "jain" => Range::SHARE,
            "trend" | "correlation" => Range { least: -1.0, greatest: 1.0 },
            "mean" | "median" | "min" | "max" => all(),
            "at" | "over" => {
                arguments.first().map_or(Range::ANY, |measure| range_of(measure.trim_matches(['"', '\''])))
            }
            "sum" if all().least < 0.0 => Range::ANY,
            signed if SIGNED.contains(&signed) => Range::ANY,
            _ => Range::POSITIVE,
        };
    }
    let path = outside(text);
    if !path.contains(['+', '-', '*', '/', '%', '<', '>', '=', ' ']) {
        return Range::of_key(&path);
    }
    let is_signed =
        text.contains('-') || SIGNED.iter().chain(&["trend", "correlation"]).any(|name| text.contains(name));
    if is_signed { Range::ANY } else { Range::POSITIVE }
}

/// The name and the positional arguments, if the whole text is one call.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = text.split_once('(')?;
    let inside = rest.strip_suffix(')')?;
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let (mut arguments, mut from) = (Vec::new(), 0);
    for (at, letter, depth) in depths(inside) {
        match (letter, depth) {
            (')', depth) if depth < 0 => return None,
            (',', 0) => {
                arguments.push(&inside[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(&inside[from..]);
    is_name.then_some((name, arguments))
}

/// What stands in no parentheses and no quotes.
fn outside(text: &str) -> String {
    depths(text).filter(|(_, letter, depth)| *depth == 0 && *letter != ')').map(|(_, letter, _)| letter).collect()
}

/// Each letter with its place and the number of parentheses around it; those between quotes count as one deeper.
fn depths(text: &str) -> impl Iterator<Item = (usize, char, i32)> {
    let (mut depth, mut quote) = (0, None);
    text.char_indices().map(move |(at, letter)| {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        (at, letter, depth + i32::from(quote.is_some()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_has_the_range_of_what_it_looks_at() {
        for share in [
            "jain_index",
            "access.air_shares.collision",
            "mean(flows(policy=\"cooperative-loose\", direction='up').controlled_share)",
            "max(links(place=\"link_0-back\").utilization, utilization)",
            "jain(flows.goodput_mbps)",
            "datagrams.lost_share",
            "flows[0].state_shares.loss",
            "1 if jain_index > 0.9 else 0",
            "search.met",
            "at('jain_index', n=5, case='a (b)')",
            "min(over('utilization', n=[1, 2]))",
        ] {
            assert_eq!(range_of(share), Range::SHARE, "{share}");
        }
        for positive in [
            "rtt_ms.p95",
            "sum(flows.retransmits)",
            "count(flows(direction='up'))",
            "flows[1].goodput_mbps / flows[0].goodput_mbps",
            "at('jain_index', n=5) / at('jain_index', n=1)",
            "search.value",
        ] {
            assert_eq!(range_of(positive), Range::POSITIVE, "{positive}");
        }
        for any in [
            "rtt_ms.mean - rtt_ms.min",
            "mean(flows.goodput_mbps) - 1",
            "at('jain_index', n=5) - at('jain_index', n=1)",
            "2 * trend('jain_index', 'n')",
            "exponent('aggregate_goodput_mbps', 'n')",
            "ln(jain_index)",
        ] {
            assert_eq!(range_of(any), Range::ANY, "{any}");
        }
        assert_eq!(range_of("trend('jain_index', 'n', case='a')"), Range { least: -1.0, greatest: 1.0 });
    }
}
