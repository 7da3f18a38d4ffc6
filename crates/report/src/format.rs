//! The formats of figures: SVG as drawn, PDF with vectors and text, PNG.
//!
//! PDF and PNG have the embedded font. Letters that it lacks come from the fonts of this machine; where that has none either, they
//! are boxes.

use crate::figures::{FONT, is_in_font};
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels of a PNG for each CSS pixel: a figure of 10 inches has some 200 pixels an inch.
const PNG_SCALE: f32 = 2.0;
/// CSS pixels of an inch, so that a PDF is as large as the SVG.
const PIXELS_OF_INCH: f32 = 96.0;

/// The format of a figure's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureFormat {
    /// For browsers and for programs that draw.
    Svg,
    /// For papers: vectors, and text that can be searched.
    Pdf,
    /// For slides and documents that take no vectors: 1932 pixels wide.
    Png,
}

impl FigureFormat {
    /// The end of a file's name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Png => "png",
        }
    }

    /// The bytes of a figure's file.
    pub(crate) fn made_of(self, svg: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Svg => Ok(svg.as_bytes().to_vec()),
            Self::Pdf => pdf(&tree(svg)?),
            Self::Png => png(&tree(svg)?),
        }
    }
}

fn tree(svg: &str) -> Result<usvg::Tree, String> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    if !is_in_font(svg) {
        fonts.load_system_fonts();
    }
    let options = usvg::Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".into(), ..Default::default() };
    usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())
}

fn pdf(tree: &usvg::Tree) -> Result<Vec<u8>, String> {
    let page = svg2pdf::PageOptions { dpi: PIXELS_OF_INCH };
    svg2pdf::to_pdf(tree, svg2pdf::ConversionOptions::default(), page).map_err(|error| error.to_string())
}

fn png(tree: &usvg::Tree) -> Result<Vec<u8>, String> {
    let [width, height] = [tree.size().width(), tree.size().height()].map(|length| (length * PNG_SCALE).ceil() as u32);
    let mut pixels = tiny_skia::Pixmap::new(width, height).ok_or("it is too large")?;
    resvg::render(tree, tiny_skia::Transform::from_scale(PNG_SCALE, PNG_SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
