//! The room that text takes, by the widths of the font that is embedded for PDF and PNG.
//!
//! DejaVu Sans is among the widest of common fonts: what has room in it has room in the font that a browser takes.

use std::sync::LazyLock;
use ttf_parser::Face;

/// Latin, Greek and Cyrillic letters of DejaVu Sans 2.37, with signs of mathematics (LICENSES/Bitstream-Vera.txt). Made
/// from Debian's fonts-dejavu-core by fonttools: `pyftsubset DejaVuSans.ttf --layout-features='' --no-hinting
/// --unicodes=U+0020-007E,U+00A0-017F,U+0370-03FF,U+0400-045F,U+2002-203A,U+2044,U+2070-209F,U+20AC,U+2190-2195,U+2200-2265,U+FFFD`.
pub(crate) const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| Face::parse(FONT, 0).expect("the font in the program"));

/// Whether the embedded font has all letters of a text.
pub(crate) fn is_in_font(text: &str) -> bool {
    text.chars().all(|letter| letter == '\n' || FACE.glyph_index(letter).is_some())
}

/// The width of a letter in its size. Of letters that the font lacks, those of other scripts, it is at most 1.
fn letter_width(letter: char) -> f64 {
    let width = FACE.glyph_index(letter).and_then(|glyph| FACE.glyph_hor_advance(glyph));
    width.map_or(1.0, |width| f64::from(width) / f64::from(FACE.units_per_em()))
}

/// The width of a text in this size.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(letter_width).sum::<f64>() * size
}

/// The lines of a text in this width: broken between words, and within a word that is wider.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if text_width(&longer, size) <= width {
            line = longer;
            continue;
        }
        lines.extend((!line.is_empty()).then(|| std::mem::take(&mut line)));
        for letter in word.chars() {
            line.push(letter);
            if line.chars().count() > 1 && text_width(&line, size) > width {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    lines.push(line);
    lines
}

/// The height of a line of text in this size.
pub(crate) fn line_height(size: f64) -> f64 {
    (size * 1.3).round()
}

/// The height of this text in this width.
pub(crate) fn text_height(text: &str, size: f64, width: f64) -> f64 {
    wrapped(text, size, width).len() as f64 * line_height(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1303 of 2048 units: a digit of DejaVu Sans.
    #[test]
    fn widths_are_those_of_the_font() {
        assert!((text_width("100", 20.48) - 3.0 * 13.03).abs() < 1e-9);
        assert_eq!(text_width("語", 10.0), 10.0);
        assert!(is_in_font("Jain's index ≥ 0.95 · 10 µs × 2 → −5 %, Größe, ток, \u{202f}") && !is_in_font("語"));
    }

    #[test]
    fn a_long_text_is_broken_between_words_and_within_one_only_if_it_must_be() {
        assert_eq!(wrapped("short", 10.0, 100.0), ["short"]);
        assert_eq!(wrapped("", 10.0, 100.0), [""]);
        let lines = wrapped("a label that is much too long and hosts.0.congestion_control=cubic-rfc9438", 10.0, 90.0);
        assert!(lines.iter().all(|line| text_width(line, 10.0) <= 90.0), "{lines:?}");
        assert_eq!(lines[..2], ["a label that is", "much too long"]);
        assert_eq!(
            lines.concat().replace(' ', ""),
            "alabelthatismuchtoolongandhosts.0.congestion_control=cubic-rfc9438"
        );
    }
}
