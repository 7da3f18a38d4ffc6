//! Results as folders: written, listed in advance, and read again.

use crate::figures::{self, Figure};
use crate::{CaseRun, FigureFormat, ReportError, file_name, html, series_file, study};
use lasthop_scenario::{Comparison, ResultFile as _, RunResult, Scenario, Series};
use lasthop_study::{Study, StudyResult};
use std::path::Path;

/// The result of one run in its folder.
pub const RESULT_FILE: &str = "result.json";
/// The result of a comparison in its folder.
pub const COMPARISON_FILE: &str = "comparison.json";
/// The result of a study in its folder.
pub const STUDY_FILE: &str = "study.json";
/// The means of a study in its folder.
pub const POINTS_FILE: &str = "points.csv";
/// The page in each of these folders.
pub const REPORT_FILE: &str = "report.html";
/// The scenario as a file that can run again: of a run with defaults and `--set` filled in, of a comparison with `--set` alone.
pub const SCENARIO_FILE: &str = "scenario.toml";

/// The files that [`write_run`] may write, relative to its folder.
pub fn run_files(formats: &[FigureFormat]) -> Vec<String> {
    use series_file::{DATAGRAMS_FILE, FLOWS_FILE, QUEUES_FILE, TRANSFERS_FILE};
    let files = [RESULT_FILE, SCENARIO_FILE, FLOWS_FILE, QUEUES_FILE, DATAGRAMS_FILE, TRANSFERS_FILE, REPORT_FILE];
    files.map(str::to_owned).into_iter().chain(figure_files(figures::OF_RUN, formats)).collect()
}

/// The files that [`write_comparison`] may write, relative to its folder. The cases have these labels and `seeds` runs
/// each, from this seed on.
pub fn comparison_files(labels: &[&str], seeds: std::ops::Range<u64>, formats: &[FigureFormat]) -> Vec<String> {
    let several = seeds.end - seeds.start > 1;
    let folders = labels.iter().enumerate().flat_map(|(index, label)| {
        seeds.clone().map(move |seed| numbered_folder(index + 1, label, several.then_some(seed)))
    });
    let of_runs = folders.flat_map(|folder| run_files(formats).into_iter().map(move |file| format!("{folder}/{file}")));
    let figures = figure_files(figures::OF_COMPARISON, formats);
    [COMPARISON_FILE, SCENARIO_FILE, REPORT_FILE].map(str::to_owned).into_iter().chain(figures).chain(of_runs).collect()
}

/// The files that [`write_study`] may write, relative to its folder.
pub fn study_files(study: &Study, formats: &[FigureFormat]) -> Vec<String> {
    let figures = study.figures.iter().enumerate();
    let names: Vec<String> = figures.map(|(index, figure)| figures::name_in_study(index, &figure.title)).collect();
    let figures = figure_files(&names, formats);
    [STUDY_FILE, POINTS_FILE, REPORT_FILE].map(str::to_owned).into_iter().chain(figures).collect()
}

/// Writes one run to `folder`, which is created if missing, with its figures in these formats. Replaces files of the same
/// names.
///
/// # Errors
/// If a file cannot be written. The message names it.
pub fn write_run(
    folder: &Path,
    result: &RunResult,
    series: &Series,
    formats: &[FigureFormat],
) -> Result<(), ReportError> {
    make(folder)?;
    write(&folder.join(RESULT_FILE), &result.to_json())?;
    write_scenario(folder, &result.scenario)?;
    series_file::write(folder, result, series)?;
    let figures = figures::of_run(result, series);
    write_figures(folder, &figures, formats)?;
    write(&folder.join(REPORT_FILE), &html::run(html::PAGE, result, &figures))
}

/// Writes a comparison to `folder`, which is created if missing. `runs` are all runs of all cases, with the labels of
/// their cases. Figures have these formats. Replaces files of the same names.
///
/// # Errors
/// If a file cannot be written. The message names it.
pub fn write_comparison(
    folder: &Path,
    comparison: &Comparison,
    runs: &[CaseRun],
    formats: &[FigureFormat],
) -> Result<(), ReportError> {
    make(folder)?;
    write(&folder.join(COMPARISON_FILE), &comparison.to_json())?;
    match comparison.to_toml() {
        Some(scenario) => write(&folder.join(SCENARIO_FILE), &scenario)?,
        None => write_scenario(folder, &comparison.scenario)?,
    }
    let folders = case_folders(comparison, runs);
    for ((_, run, series), of_case) in runs.iter().zip(&folders) {
        write_run(&folder.join(of_case), run, series, formats)?;
    }
    let figures = figures::of_comparison(comparison, runs);
    write_figures(folder, &figures, formats)?;
    write(&folder.join(REPORT_FILE), &html::comparison(html::PAGE, comparison, runs, &figures, &folders))
}

/// Writes a study to `folder`, which is created if missing, with its figures in these formats. Replaces files of the same
/// names.
///
/// # Errors
/// If a file cannot be written. The message names it.
pub fn write_study(folder: &Path, study: &StudyResult, formats: &[FigureFormat]) -> Result<(), ReportError> {
    make(folder)?;
    write(&folder.join(STUDY_FILE), &study.to_json())?;
    write(&folder.join(POINTS_FILE), &study::csv(study))?;
    let figures = figures::of_study(study);
    write_figures(folder, &figures, formats)?;
    write(&folder.join(REPORT_FILE), &study::page(study, &figures))
}

/// Reads the output of [`write_study`].
///
/// # Errors
/// If it cannot be read or has another schema version. The message names it.
pub fn read_study(folder: &Path) -> Result<StudyResult, ReportError> {
    let path = folder.join(STUDY_FILE);
    StudyResult::load(&path).map_err(|source| ReportError::Result { path, source })
}

/// Reads the output of [`write_run`].
///
/// # Errors
/// If a file cannot be read or has another schema version. The message names it.
pub fn read_run(folder: &Path) -> Result<(RunResult, Series), ReportError> {
    let path = folder.join(RESULT_FILE);
    let result = RunResult::load(&path).map_err(|source| ReportError::Result { path, source })?;
    let series = series_file::read(folder, &result)?;
    Ok((result, series))
}

/// Reads the output of [`write_comparison`].
///
/// # Errors
/// If a file cannot be read or has another schema version. The message names it.
pub fn read_comparison(folder: &Path) -> Result<(Comparison, Vec<CaseRun>), ReportError> {
    let path = folder.join(COMPARISON_FILE);
    let comparison = Comparison::load(&path).map_err(|source| ReportError::Result { path, source })?;
    let mut runs = Vec::new();
    for case in &comparison.cases {
        for run in &case.runs {
            let (run, series) = read_run(&folder.join(case_folder(&comparison, &case.label, run.seed)))?;
            runs.push((case.label.clone(), run, series));
        }
    }
    Ok((comparison, runs))
}

/// The result in a folder: of a study, a comparison or a run, in this order; `None` if there is none.
pub fn result_file(folder: &Path) -> Option<std::path::PathBuf> {
    let files = [STUDY_FILE, COMPARISON_FILE, RESULT_FILE].map(|file| folder.join(file));
    files.into_iter().find(|file| file.exists())
}

/// The page of the result in a folder, made anew from its files. Nothing is written.
///
/// # Errors
/// If there is no result, or a file cannot be read or has another schema version. The message names it.
pub fn page(folder: &Path) -> Result<String, ReportError> {
    let file = result_file(folder).ok_or_else(|| ReportError::NoResult { path: folder.to_owned() })?;
    if file.ends_with(STUDY_FILE) {
        let study = read_study(folder)?;
        return Ok(study::page(&study, &figures::of_study(&study)));
    }
    if file.ends_with(COMPARISON_FILE) {
        let (comparison, runs) = read_comparison(folder)?;
        let figures = figures::of_comparison(&comparison, &runs);
        return Ok(html::comparison(html::PAGE, &comparison, &runs, &figures, &case_folders(&comparison, &runs)));
    }
    let (result, series) = read_run(folder)?;
    Ok(html::run(html::PAGE, &result, &figures::of_run(&result, &series)))
}

fn case_folders(comparison: &Comparison, runs: &[CaseRun]) -> Vec<String> {
    runs.iter().map(|(label, run, _)| case_folder(comparison, label, run.seed)).collect()
}

/// The folder of one run inside its comparison: `cases/1-policy-none`, with the seed if there are several.
fn case_folder(comparison: &Comparison, label: &str, seed: u64) -> String {
    let number = comparison.cases.iter().position(|case| case.label == label).map_or(0, |index| index + 1);
    numbered_folder(number, label, (comparison.seeds.len() > 1).then_some(seed))
}

fn numbered_folder(number: usize, label: &str, seed: Option<u64>) -> String {
    let seed = seed.map_or(String::new(), |seed| format!("-seed-{seed}"));
    format!("cases/{number}-{}{seed}", file_name(label))
}

/// The path of a figure.
fn figure_file(name: &str, format: FigureFormat) -> String {
    format!("figures/{name}.{}", format.extension())
}

fn figure_files(names: &[impl AsRef<str>], formats: &[FigureFormat]) -> Vec<String> {
    names.iter().flat_map(|name| formats.iter().map(move |format| figure_file(name.as_ref(), *format))).collect()
}

fn write_figures(folder: &Path, figures: &[Figure], formats: &[FigureFormat]) -> Result<(), ReportError> {
    make(&folder.join("figures"))?;
    for (figure, format) in figures.iter().flat_map(|figure| formats.iter().map(move |format| (figure, *format))) {
        let path = folder.join(figure_file(&figure.name, format));
        let made = format.made_of(&figure.svg);
        let bytes = made.map_err(|message| ReportError::Figure { path: path.clone(), message })?;
        std::fs::write(&path, bytes).map_err(|source| ReportError::Write { path, source })?;
    }
    Ok(())
}

/// A result of another version may have keys unknown here. They remain in its result, and there is no such file.
fn write_scenario(folder: &Path, scenario: &serde_json::Value) -> Result<(), ReportError> {
    let scenario = Scenario::from_json(scenario);
    let file = |scenario: Scenario| format!("{ALL_KEYS}{}", scenario.to_toml());
    scenario.map_or(Ok(()), |scenario| write(&folder.join(SCENARIO_FILE), &file(scenario)))
}

/// What stands above all keys of a run.
const ALL_KEYS: &str = "\
# Every key is written out, with defaults and --set. A key that follows from another one, as the stack from hosts.era, keeps its value
# when --set changes the other: leave it out first, or begin with the scenario of the run.
";

fn make(folder: &Path) -> Result<(), ReportError> {
    std::fs::create_dir_all(folder).map_err(|source| ReportError::Write { path: folder.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), ReportError> {
    std::fs::write(path, text).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}
