//! Every key of a study file, as data: the reader, its messages and the tables of `docs/guide/study*.md` come from here.

/// One key.
#[derive(Debug)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What it takes, in words.
    pub takes: &'static str,
    /// What it is when left out; `None`: it must be there.
    pub default: Option<&'static str>,
    /// One or two sentences for the guide.
    pub meaning: &'static str,
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Above the first heading.
    Top,
    /// `[[vary]]`.
    Vary,
    /// `[[cases]]`.
    Case,
    /// `[cases.search]`.
    Search,
    /// `[[figures]]`.
    Figure,
    /// `[[figures.reference]]`.
    Reference,
    /// `[[claims]]`.
    Claim,
    /// `[[claims.conditions]]`, and the conditions of a search.
    Condition,
}

impl Section {
    /// All, in the order of the file.
    pub const ALL: [Self; 8] =
        [Self::Top, Self::Vary, Self::Case, Self::Search, Self::Figure, Self::Reference, Self::Claim, Self::Condition];

    /// As it stands in the file.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Vary => "[[vary]]",
            Self::Case => "[[cases]]",
            Self::Search => "[cases.search]",
            Self::Figure => "[[figures]]",
            Self::Reference => "[[figures.reference]]",
            Self::Claim => "[[claims]]",
            Self::Condition => "[[claims.conditions]]",
        }
    }

    /// The keys of the table.
    pub const fn keys(self) -> &'static [Key] {
        match self {
            Self::Top => TOP,
            Self::Vary => VARY,
            Self::Case => CASE,
            Self::Search => SEARCH,
            Self::Figure => FIGURE,
            Self::Reference => REFERENCE,
            Self::Claim => CLAIM,
            Self::Condition => CONDITION,
        }
    }

    /// The key of this name.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn key(self, name: &str) -> &'static Key {
        self.keys()
            .iter()
            .find(|key| key.name == name)
            .unwrap_or_else(|| panic!("{} has no key {name}", self.heading()))
    }

    /// Their names.
    pub(crate) fn names(self) -> Vec<&'static str> {
        self.keys().iter().map(|key| key.name).collect()
    }
}

const fn key(name: &'static str, takes: &'static str, default: Option<&'static str>, meaning: &'static str) -> Key {
    Key { name, takes, default, meaning }
}

const SET: &str =
    "keys of a scenario with their values, as after --set, such as path.rtt_ms = 4 or \"hosts.*.era\" = \"modern\"";
const MEASURES: &str = "a number of a result, such as aggregate_goodput_mbps, rtt_ms.p95 or mean(flows.goodput_mbps), or a list of such numbers";
const WHERE: &str = "the names of axes, each with a value or a list of its values, such as { delay = 256 }";

const TOP: &[Key] = &[
    key("title", "text of 1 to 200 characters", None, "What the study shows, in one line."),
    key("source", "text of 1 to 500 characters", None, "The paper and figure, or the standard and clause."),
    key(
        "note",
        "text of 1 to 4000 characters",
        Some("none"),
        "What a reader of the report should know: what is ours and not the paper's, what is left out.",
    ),
    key(
        "scenario",
        "the path of a scenario file, from the folder of the study, or a table [scenario] with the keys of a scenario",
        None,
        "What is run, before anything is varied.",
    ),
    key("set", SET, Some("none"), "What to change in that scenario in every run."),
    key(
        "seeds",
        "a whole number from 1 to 1000",
        Some("`5`"),
        "With how many seeds each point runs, counted from the scenario's; `--seeds` changes it. With one there are no confidence intervals.",
    ),
    key(
        "hosts",
        "\"simulated\" or \"kernel\"",
        Some("`\"simulated\"`"),
        "What runs it: simulated hosts in virtual time, or this machine's own TCP in real time; `--hosts` changes it.",
    ),
    key(
        "measures",
        "a list of numbers of a result, as for figures.y",
        Some("none"),
        "What else to keep of each point, beside what the figures and claims look at.",
    ),
    key("vary", "blocks [[vary]]", Some("none"), "What varies, one block for each axis; every combination is run."),
    key(
        "cases",
        "blocks [[cases]]",
        Some("none"),
        "What is set side by side: each case runs over all axes. To figures and claims they are an axis called `case`.",
    ),
    key("figures", "blocks [[figures]]", Some("none"), "What to draw."),
    key("claims", "blocks [[claims]]", Some("none"), "What is claimed, and whether it holds here."),
];

const VARY: &[Key] = &[
    key(
        "axis",
        "a word of 1 to 24 of a-z, 0-9 and _, beginning with a letter",
        None,
        "What figures and claims call it.",
    ),
    key(
        "label",
        "text of 1 to 60 characters",
        Some("`axis`"),
        "What stands beside the axis of a figure, with its unit.",
    ),
    key(
        "key",
        "a key of a scenario, such as path.rtt_ms, or a list of keys",
        None,
        "What varies. Several keys vary together.",
    ),
    key(
        "values",
        "a list of at least one value, each different; with several keys, a list of lists with a value for each key",
        None,
        "What it takes in turn.",
    ),
    key(
        "labels",
        "a list with a text or a number for each of the values",
        Some("the values; with several keys, those of the first"),
        "What figures and claims call the values.",
    ),
];

const CASE: &[Key] = &[
    key(
        "label",
        "text of 1 to 60 characters, different from the other cases'",
        None,
        "What tables, figures and claims call it.",
    ),
    key("set", SET, Some("none"), "What is different in this case."),
    key(
        "search",
        "a table [cases.search]",
        Some("none"),
        "At each point of this case the value of one key is found by search; simulated hosts only.",
    ),
];

const SEARCH: &[Key] = &[
    key("key", "a key of a scenario that takes a number, such as hosts.0.bound_segments", None, "What is searched."),
    key(
        "from",
        "a number above 0",
        None,
        "The least value that is tried. Where it and `to` are whole numbers, only whole ones are.",
    ),
    key("to", "a number, not below from", None, "The greatest value that is tried."),
    key(
        "precision",
        "a number from 0 to 1",
        Some("`0.05`"),
        "How near the next values that were tried must be to the one that is found, relative to it; of whole numbers the next one is near enough.",
    ),
    key(
        "maximise",
        "an expression over results, such as at(\"aggregate_goodput_mbps\")",
        None,
        "What is to be as great as can be, at the point itself; every axis is a variable.",
    ),
    key(
        "conditions",
        "a list of tables as [[claims.conditions]]",
        Some("none"),
        "What the value should meet. Where no value meets all of them, the best without them is taken, and that is told.",
    ),
];

const FIGURE: &[Key] = &[
    key("title", "text of 1 to 200 characters", None, "What it shows."),
    key("x", "the name of an axis", None, "What is along the level axis."),
    key(
        "y",
        MEASURES,
        None,
        "What is along the upright axis: the mean over the seeds, with its 95 % confidence interval. Of a list each has lines of its own.",
    ),
    key(
        "labels",
        "a list of texts of 1 to 60 characters, one for each of y",
        Some("the measures' names"),
        "What the legend calls each of them, where y is a list.",
    ),
    key(
        "y_label",
        "text of 1 to 80 characters",
        Some("the name of the (first) measure"),
        "What stands beside the upright axis, with its unit.",
    ),
    key(
        "panels",
        "the name of an axis, or \"case\"",
        Some("one panel"),
        "One panel for each value of this axis. What is neither `x` nor `panels` makes one line for each combination.",
    ),
    key("where", WHERE, Some("every point"), "Which points are drawn."),
    key("log", "\"x\", \"y\" or \"xy\"", Some("none"), "Which axes have equal steps for equal ratios."),
    key(
        "reference",
        "blocks [[figures.reference]]",
        Some("none"),
        "Theory and published points to draw beside ours and to compare with.",
    ),
];

const REFERENCE: &[Key] = &[
    key(
        "label",
        "text of 1 to 60 characters",
        None,
        "What it is called in the legend and by claims. Several blocks may have one label, each for other points (`where`).",
    ),
    key("source", "text of 1 to 500 characters", None, "Where it is from, with the number of the table or equation."),
    key(
        "points",
        "a list of pairs [x, y], x one of the values of the figure's axis x",
        Some("none"),
        "Published points; either these or `formula`.",
    ),
    key(
        "scale",
        "an expression without axes, such as 1472 / 1500",
        Some("`1`"),
        "What `points` are multiplied with, where they count something else than we do.",
    ),
    key(
        "formula",
        "an expression over the names of axes, such as 1.22 / sqrt(loss)",
        Some("none"),
        "Theory; either this or `points`.",
    ),
    key("where", WHERE, Some("every point"), "Which points it is about."),
];

const CLAIM: &[Key] = &[
    key("id", "a word of 1 to 40 of a-z, 0-9 and -, different from the other claims'", None, "What tables call it."),
    key("text", "text of 1 to 1000 characters", None, "The claim, in the words of its source."),
    key(
        "source",
        "text of 1 to 500 characters",
        None,
        "The paper with its section or figure, or another source of the claim.",
    ),
    key(
        "reading",
        "text of 1 to 1000 characters",
        Some("none"),
        "How the words are read as a number, where more than one reading is possible.",
    ),
    key(
        "value",
        "an expression over results, such as at(\"jain_index\", n=10)",
        Some("with `conditions`, the share of the cells that meet them; else must be there"),
        "The number that is claimed something about.",
    ),
    key(
        "cells",
        "a list of names of axes, or \"case\"",
        Some("with `conditions`, every axis but the cases and `each`"),
        "What the share is counted over: every combination of the values of these axes is a cell.",
    ),
    key(
        "conditions",
        "blocks [[claims.conditions]]",
        Some("none"),
        "What a cell must meet, all of it, to count. The claim's number is the share of the cells that do, and those that do not are told.",
    ),
    key(
        "each",
        "a list of names of axes, or \"case\"",
        Some("none"),
        "Judge the claim for each value of these axes by itself.",
    ),
    key("where", WHERE, Some("every point"), "Which points the claim is about."),
    key("paper", "a number", Some("none"), "The number that the source prints."),
    key(
        "at_least",
        "a number",
        Some("none"),
        "The claim holds if the value is not below; one of `at_least`, `at_most` and `within` must be there.",
    ),
    key("at_most", "a number", Some("none"), "The claim holds if the value is not above."),
    key(
        "within",
        "a number above 0, up to 10, with paper",
        Some("none"),
        "The claim holds if the value is this near to the paper's number, relative to it.",
    ),
    key(
        "required",
        "true or false",
        Some("`false`"),
        "Whether the command ends with exit code 1 where the claim does not hold. For what validates us, not for what papers claim.",
    ),
];

const CONDITION: &[Key] = &[
    key(
        "label",
        "text of 1 to 60 characters",
        Some("`value`"),
        "What the number is called where the cells that fail are told.",
    ),
    key(
        "value",
        "an expression over results, such as at(\"jain_index\", case=\"ARF\")",
        None,
        "The number; the axes of the cell are variables.",
    ),
    key("at_least", "a number", Some("none"), "It must not be below; one of `at_least` and `at_most` must be there."),
    key("at_most", "a number", Some("none"), "It must not be above."),
];
