//! Suggestions for a misspelt name.

/// The lowest similarity of a suggestion; 1 is the same name.
const ALIKE: f64 = 0.75;
/// The similarity of a name to a longer one that contains it: `reno` to `newreno`.
const PART: f64 = 0.8;

/// The most similar names, nearest first, up to a limit; none if nothing is near.
pub fn nearest_names<'a>(name: &str, names: &[&'a str], most: usize) -> Vec<&'a str> {
    let alike = |known: &str| {
        let part = if name.len() > 2 && known.contains(name) { PART } else { 0.0 };
        strsim::jaro_winkler(name, known).max(part)
    };
    let mut near: Vec<(f64, &str)> = names.iter().map(|known| (alike(known), *known)).collect();
    near.retain(|(alike, _)| *alike > ALIKE);
    // Of two equally near, the later one.
    near.reverse();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_told_and_nothing_else() {
        let laws = ["newreno", "cubic", "cubic-rfc9438", "hd", "chd"];
        assert_eq!(nearest_names("reno", &laws, 1), ["newreno"]);
        assert_eq!(nearest_names("cubik", &laws, 3), ["cubic", "cubic-rfc9438"]);
        assert!(nearest_names("bbr", &laws, 3).is_empty());
    }
}
