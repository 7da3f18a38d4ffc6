//! Figures, tables and series files, made only from results.
//!
//! - [`write_run`] writes one run to a folder: `result.json`, `scenario.toml`, `series.parquet`, `queues.parquet`,
//!   `datagrams.parquet`, `transfers.parquet`, `figures/*.svg`, or in other formats ([`FigureFormat`]), and one self-contained
//!   `report.html`.
//! - [`write_comparison`] writes several runs: `comparison.json`, `scenario.toml`, the figures that compare them,
//!   `report.html`, and each run as above in `cases/`.
//! - [`write_study`] writes a study: `study.json`, `points.csv`, its figures and `report.html`.
//! - [`page`]: the page of such a folder, made anew.
//! - [`Live`] and [`live()`]: what is known of a run before it ends, and a part of a page that shows it.
//! - [`run_files`], [`comparison_files`] and [`study_files`] list the possible files in advance.
//! - [`read_run`] and [`read_comparison`] read such a folder, so that figures can be remade without a run.
//! - [`export`]: a run in the formats of other tools.
//! - [`part_of_run`], [`part_of_comparison`] and, before the end, [`Going`]: the same for a page that is there already. A browser has these
//!   alone, and no folders.
//! - [`goodput_over_time`]: the goodput of each flow, 0 where it had no connection.
//! - [`palette`]: the labels, colours and markers of these figures.
//! - [`tables`]: the same figures as text for the terminal.
//!
//! *What it leaves out*: figures over time of several runs of a case. They show the first seed, and their captions say so.
#![cfg_attr(not(unix), expect(dead_code, reason = "a browser has no folders, and takes a part of this"))]

#[cfg(unix)]
pub mod export;
pub mod palette;
#[cfg(unix)]
pub mod series_file;
pub mod tables;

mod cells;
mod difference;
mod distributions;
#[cfg(unix)]
mod error;
mod figures;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod format;
mod going;
mod goodput;
mod html;
#[cfg(unix)]
mod live;
mod parts;
mod study;
mod style;

#[cfg(unix)]
pub use error::ReportError;
pub use figures::{set_width as set_figure_width, span as figure_span};
#[cfg(unix)]
pub use folder::{
    COMPARISON_FILE, POINTS_FILE, REPORT_FILE, RESULT_FILE, SCENARIO_FILE, STUDY_FILE, comparison_files, page,
    read_comparison, read_run, read_study, result_file, run_files, study_files, write_comparison, write_run,
    write_study,
};
#[cfg(unix)]
pub use format::FigureFormat;
pub use going::{Going, Sample, Sampler};
pub use goodput::goodput_over_time;
#[cfg(unix)]
pub use live::{LIVE_FOLDER, Live, LiveRun, live};
pub use parts::{part_of_comparison, part_of_run};

use lasthop_scenario::{RunResult, Series};

/// One run of a comparison, with the label of its case.
pub type CaseRun = (String, RunResult, Series);

/// The style sheet of the pages.
pub const PAGE_STYLE: &str = include_str!("../templates/page.css");

/// A label as part of a file name: `Total, 4 ms` becomes `total-4-ms`.
pub(crate) fn file_name(text: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let words: Vec<String> = text
        .chars()
        .map(plain)
        .collect::<String>()
        .split('-')
        .filter(|word| !word.is_empty() && !word.chars().all(|letter| letter == '.'))
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-").chars().take(60).collect()
}
