//! A study that cannot be run says where, what, and what would be accepted, before anything runs.

use lasthop_study::Study;

const BASE: &str = "duration_s = 20\n[[hosts]]\ncount = 2\n";

const GOOD: &str = "\
title = \"good\"
source = \"nobody\"
scenario = \"base.toml\"
seeds = 3
set.duration_s = 30

[[vary]]
axis = \"n\"
key = \"hosts.0.count\"
values = [1, 2, 10]

[[cases]]
label = \"fixed\"

[[cases]]
label = \"ARF\"
set.access.rate_control = \"arf\"

[[figures]]
title = \"total\"
x = \"n\"
y = \"aggregate_goodput_mbps\"
[[figures.reference]]
label = \"table\"
source = \"nobody\"
points = [[1, 20.0], [2, 19.0]]

[[claims]]
id = \"falls\"
text = \"It falls.\"
source = \"nobody\"
each = [\"case\"]
value = 'at(\"aggregate_goodput_mbps\", n=10) / at(\"aggregate_goodput_mbps\", n=1)'
at_most = 0.9
";

fn read(text: &str) -> Result<Study, String> {
    let scenario = |file: &str| match file {
        "base.toml" => Ok(BASE.to_owned()),
        _ => Err(std::io::Error::new(std::io::ErrorKind::NotFound, "No such file or directory")),
    };
    let study = Study::from_toml("studies/x/good.toml", text, &scenario).map_err(|error| error.to_string())?;
    study.plan(2).map_err(|error| error.to_string())?;
    Ok(study)
}

/// The message about `GOOD` with one line of it replaced.
#[track_caller]
fn message(line: &str, with: &str) -> String {
    let text = GOOD.replacen(line, with, 1);
    assert_ne!(text, GOOD, "{line}");
    read(&text).err().unwrap_or_else(|| panic!("{with} was accepted"))
}

#[track_caller]
fn says(line: &str, with: &str, words: &[&str]) {
    let message = message(line, with);
    assert!(message.starts_with("studies/x/good.toml:"), "{message}");
    for word in words {
        assert!(message.contains(word), "no \"{word}\" in: {message}");
    }
}

#[test]
fn the_study_without_a_mistake_is_read() {
    let study = read(GOOD).expect("a study");
    assert_eq!((study.name.as_str(), study.points(), study.seeds), ("x/good", 6, 3));
}

#[test]
fn an_unknown_key_names_the_one_that_was_meant() {
    assert_eq!(
        message("seeds = 3", "seed = 3"),
        "studies/x/good.toml:4: seed: unknown key; did you mean seeds?; accepted: title, source, note, scenario, \
         set, seeds, scenarios, first_scenario, hosts, measures, vary, draw, cases, figures, claims"
    );
    says("x = \"n\"", "x_axis = \"n\"", &["good.toml:21: figures[0].x_axis", "accepted: title, x, y"]);
    says("at_most = 0.9", "atmost = 0.9", &["claims[0].atmost", "did you mean at_most?"]);
    says("values = [1, 2, 10]", "value = [1, 2, 10]", &["vary[0].value", "did you mean values?"]);
    says("label = \"table\"", "lable = \"table\"", &["figures[0].reference[0].lable", "did you mean label?"]);
}

#[test]
fn what_must_be_there_is_asked_for() {
    says("title = \"good\"\n", "", &[": title: is not there", "accepted: text of 1 to 200 characters"]);
    says("scenario = \"base.toml\"\n", "", &[": scenario: is not there", "a table [scenario]"]);
    says("at_most = 0.9\n", "", &["good.toml:28: claims[0].at_least: is not there"]);
    says("values = [1, 2, 10]\n", "", &["good.toml:7: vary[0].values: is not there"]);
    says("value = 'at", "reading = 'at", &["claims[0].value: is not there", "an expression over results"]);
}

#[test]
fn a_value_of_the_wrong_type_or_range_says_what_it_is() {
    says("seeds = 3", "seeds = \"three\"", &["good.toml:4: seeds: \"three\" is text", "a whole number from 1 to 1000"]);
    says(
        "seeds = 3",
        "hosts = \"kernels\"",
        &["hosts: \"kernels\" is not one of the words", "did you mean \"kernel\"?"],
    );
    says("seeds = 3", "seeds = 0", &["seeds: 0 is out of range"]);
    says("seeds = 3", "seeds = -1", &["seeds: -1 is out of range"]);
    says("seeds = 3", "seeds = 2.5", &["seeds: 2.5 is a number with a fraction"]);
    says("title = \"good\"", "title = \"\"", &["title: \"\" has 0 characters"]);
    says("at_most = 0.9", "at_most = nan", &["at_most: nan is out of range"]);
    says("at_most = 0.9", "at_most = inf", &["at_most: inf is out of range"]);
    says("at_most = 0.9", "at_most = \"0.9\"", &["at_most: \"0.9\" is text", "accepted: a number"]);
    says("at_most = 0.9", "at_most = 0.9\nrequired = 1", &["required: 1 is a whole number", "true, false"]);
    says("id = \"falls\"", "id = \"It falls\"", &["claims[0].id: \"It falls\" is no such word"]);
    says("[[vary]]", "vary = 3\n[[cases]]\nlabel = \"x\"\n[[figures]]", &["vary: is no list of blocks", "[[vary]]"]);
    says(
        "y = \"aggregate_goodput_mbps\"",
        "y = 3",
        &["figures[0].y: 3 is a whole number", "accepted: a number of a result"],
    );
    let y = "y = \"aggregate_goodput_mbps\"";
    says(y, "y = []", &["figures[0].y: the list is empty", "or a list of such numbers"]);
    says(y, "y = [\"aggregate_goodput_mbps\", \"rtt_ms\"]", &["figures[0].y[1]: rtt_ms in a result is a table"]);
    says(y, &format!("{y}\nlabels = [\"sum\"]"), &["figures[0].labels: y is no list"]);
    let two = "y = [\"aggregate_goodput_mbps\", \"jain_index\"]";
    says(y, &format!("{two}\nlabels = [\"sum\"]"), &["figures[0].labels: there are 1 for 2 measures"]);
    says(y, &format!("{two}\nlabels = [\"sum\", 3]"), &["figures[0].labels: 3 is no such text"]);
    says(y, &format!("{two}\nlabels = [\"sum\", \"sum\"]"), &["figures[0].labels: \"sum\" stands twice"]);
    says("title = \"total\"", "title = \"total\"\nlog = \"z\"", &["figures[0].log: \"z\" is not one of the words"]);
}

#[test]
fn axes_that_cannot_be_are_told() {
    says("values = [1, 2, 10]", "values = []", &["good.toml:10: vary[0].values: the list is empty"]);
    says("values = [1, 2, 10]", "values = [1, 2, 1]", &["vary[0].values: 1 stands twice"]);
    says("values = [1, 2, 10]", "values = [1, 2, 1.0]", &["stands twice"]);
    says("values = [1, 2, 10]", "values = [1, 2, nan]", &["nan cannot be the name of a value"]);
    says("values = [1, 2, 10]", "values = [1, 2, 10]\nlabels = [1, 2]", &["vary[0].labels: there are 2 for 3 values"]);
    says("axis = \"n\"", "axis = \"N\"", &["vary[0].axis: \"N\" is no such word", "a word of 1 to 24"]);
    says("axis = \"n\"", "axis = \"4n\"", &["does not begin with a letter"]);
    says("axis = \"n\"", "axis = \"case\"", &["\"case\" has a meaning of its own"]);
    says("axis = \"n\"", "axis = \"max\"", &["\"max\" has a meaning of its own"]);
    says("label = \"ARF\"", "label = \"fixed\"", &["cases[1].label: \"fixed\" stands twice"]);
    let twice = "[[vary]]\naxis = \"n\"\nkey = \"seed\"\nvalues = [1]\n[[cases]]";
    says("[[cases]]", twice, &["vary[1].axis: \"n\" stands twice"]);
    let same = twice.replace("\"n\"", "\"m\"").replace("\"seed\"", "\"hosts[*].count\"");
    says("[[cases]]", &same, &["vary[1].key: it takes the place of hosts.0.count, which the axis n sets too"]);
    let in_case = "label = \"ARF\"\nset.\"hosts.0.count\" = 3";
    says("label = \"ARF\"", in_case, &["vary[0].key: it takes the place of hosts.0.count, which a case sets too"]);
    says("key = \"hosts.0.count\"", "key = \"seed\"", &["the seed is counted up for each run", "seeds"]);
    says(
        "key = \"hosts.0.count\"",
        "key = [\"hosts.0.count\", \"path.rtt_ms\"]",
        &["1 is no such list", "2 values, for hosts.0.count"],
    );
    let many: Vec<String> = (0..10_001).map(|value| value.to_string()).collect();
    says("values = [1, 2, 10]", &format!("values = [{}]", many.join(", ")), &["20002 points", "at most 20000"]);
}

#[test]
fn an_axis_or_a_value_that_nothing_varies_is_named_with_those_that_do() {
    says("x = \"n\"", "x = \"m\"", &["good.toml:21: figures[0].x: there is no axis \"m\"", "accepted: case, n"]);
    says("x = \"n\"", "x = \"n\"\npanels = \"n\"", &["figures[0].panels: is x as well"]);
    says("x = \"n\"", "x = \"case\"\nlog = \"x\"", &["case is not always a number above 0"]);
    says(
        "x = \"n\"",
        "x = \"n\"\nwhere = { n = 3 }",
        &["figures[0].where: n never has the value 3", "accepted: 1, 2, 10"],
    );
    says("x = \"n\"", "x = \"n\"\nwhere = { n = [] }", &["the list of n is empty"]);
    says(
        "each = [\"case\"]",
        "each = [\"cases\"]",
        &["claims[0].each: there is no axis \"cases\"", "did you mean \"case\"?"],
    );
    says("each = [\"case\"]", "each = [\"case\", \"case\"]", &["\"case\" stands twice"]);
    says(
        "points = [[1, 20.0], [2, 19.0]]",
        "points = [[3, 20.0]]",
        &["reference[0].points[0]: n never has the value 3"],
    );
    says("points = [[1, 20.0], [2, 19.0]]", "points = [[1, 20.0], [1, 19.0]]", &["1 stands twice"]);
    says("points = [[1, 20.0], [2, 19.0]]", "points = [[1]]", &["is no pair"]);
    says("points = [[1, 20.0], [2, 19.0]]", "points = [[1, nan]]", &["is no pair"]);
}

#[test]
fn a_claim_that_could_never_be_judged_is_told_before_the_runs() {
    let value = "value = 'at(\"aggregate_goodput_mbps\", n=10) / at(\"aggregate_goodput_mbps\", n=1)'";
    for (with, words) in [
        (
            "value = 'att(\"jain_index\", n=1)'",
            &["good.toml:33: claims[0].value", "no function or variable att", "did you mean at?"][..],
        ),
        ("value = 'at(\"jain_idx\", n=1)'", &["there is no jain_idx in a result", "did you mean jain_index?"]),
        ("value = 'at(\"jain\", n=1)'", &["`jain` is a function without its arguments", "accepted: jain(list"]),
        ("value = 'at(\"jain_index\", n=3)'", &["n never has the value 3", "1, 2, 10"]),
        ("value = 'at(\"jain_index\", delay=4)'", &["there is no axis delay", "case, n"]),
        ("value = 'at(\"jain_index\")'", &["at() looks at 3 points: (fixed, n=1), (fixed, n=2)"]),
        ("value = 'at(\"jain_index\", n=1) > 1'", &["which is no number"]),
        ("value = 'at(\"jain_index\", n=1'", &["cannot be computed"]),
        ("value = 'max(ratios(\"jain_index\", \"tables\"))'", &["no reference \"tables\"", "did you mean \"table\"?"]),
        ("value = 'max(ratios(\"jain_index\", \"table\", n=10))'", &["no point that the reference has"]),
    ] {
        says(value, with, words);
    }
    says("at_most = 0.9", "within = 0.1", &["claims[0].within: there is no number of the paper"]);
    says("at_most = 0.9", "paper = 3\nwithin = -0.1", &["within: -0.1 is out of range"]);
    says("at_most = 0.9", "paper = 0\nwithin = 0.1", &["nothing is near to 0"]);
    says("at_most = 0.9", "at_most = 0.9\nat_least = 1", &["no value is at least 1 and at most 0.9"]);
    let twice = GOOD[GOOD.find("[[claims]]").expect("claims")..].to_owned();
    says("[[claims]]", &format!("{twice}\n[[claims]]"), &["claims[1].id: \"falls\" stands twice"]);
}

/// The second case is found by search.
const SEARCH: &str = "\
[cases.search]
key = \"hosts.0.bound_segments\"
from = 2
to = 2000
maximise = 'at(\"aggregate_goodput_mbps\")'
conditions = [{ value = 'at(\"jain_index\") / n', at_least = 0.5 }]
";

/// The message about `GOOD` with a search that has one line replaced.
#[track_caller]
fn of_search(line: &str, with: &str, words: &[&str]) {
    let search = SEARCH.replacen(line, with, 1);
    assert_ne!(search, SEARCH, "{line}");
    let arf = "set.access.rate_control = \"arf\"\n";
    let text = GOOD.replace(arf, &format!("set.hosts.0.policy = \"fixed\"\n{search}"));
    let message = read(&text).err().unwrap_or_else(|| panic!("{with} was accepted"));
    assert!(message.starts_with("studies/x/good.toml:"), "{message}");
    for word in words {
        assert!(message.contains(word), "no \"{word}\" in: {message}");
    }
}

#[test]
fn a_search_that_cannot_be_is_told() {
    let text =
        GOOD.replace("set.access.rate_control = \"arf\"\n", &format!("set.hosts.0.policy = \"fixed\"\n{SEARCH}"));
    let study = read(&text).expect("a study");
    assert!(study.is_searched() && !read(GOOD).expect("a study").is_searched());
    assert_eq!(study.searched_points(), [[3], [4], [5]]);

    of_search("from = 2\n", "", &["cases[1].search.from: is not there", "a number above 0"]);
    of_search("from = 2\n", "from = 0\n", &["cases[1].search.from: 0 is out of range"]);
    of_search("to = 2000", "to = 1", &["cases[1].search.to: 1 is below 2"]);
    of_search("to = 2000", "to = 2000.5\nprecision = 0", &["precision: 0 is out of range"]);
    of_search("to = 2000", "to = 2000\nprecison = 0.1", &["unknown key", "did you mean precision?"]);
    of_search(
        "aggregate_goodput",
        "agregate_goodput",
        &["cases[1].search.maximise: there is no agregate_goodput_mbps"],
    );
    of_search("\") / n'", "\", n=1)'", &["conditions[0].value: a search sees its own point only"]);
    of_search("jain_index", "search.value", &["search.value is not known before the search is over"]);
    of_search(", at_least = 0.5", "", &["conditions[0].at_least: is not there"]);
    of_search("\"hosts.0.bound_segments\"", "\"seed\"", &["search.key: the seed is counted up for each run"]);
    of_search(
        "hosts.0.bound_segments",
        "hosts.0.bound_segment",
        &["cases[1].search: with ARF, n=1", "did you mean hosts[0].bound_segments?"],
    );
    of_search("to = 2000", "to = 2000000", &["cases[1].search: with ARF, n=1", "out of range"]);
    says("seeds = 3", "seeds = 3\nmeasures = [\"search.value\"]", &["no case is found by search", "[cases.search]"]);
    says("seeds = 3", "seeds = 3\nmeasures = [\"search.values\"]", &["did you mean search.value?"]);
}

#[test]
fn conditions_of_cells_that_cannot_be_are_told() {
    let value = "value = 'at(\"aggregate_goodput_mbps\", n=10) / at(\"aggregate_goodput_mbps\", n=1)'\nat_most = 0.9\n";
    let condition = "at_least = 0.9\n[[claims.conditions]]\nvalue = 'at(\"jain_index\") * n'\nat_least = 0.98\n";
    read(&GOOD.replace(value, condition)).expect("a study");
    let with = |from: &str, to: &str, words: &[&str]| says(value, &condition.replacen(from, to, 1), words);
    with("at_least = 0.9\n", "at_least = 0.9\nvalue = '1'\n", &["claims[0].value: there are conditions as well"]);
    with("at_least = 0.9\n", "at_least = 0.9\ncells = [\"m\"]\n", &["claims[0].cells: there is no axis \"m\""]);
    with("at_least = 0.9\n", "at_least = 0.9\ncells = [\"case\"]\n", &["claims[0].cells: case is in each as well"]);
    with("* n'", "* m'", &["claims[0].conditions[0].value: there is no function or variable m"]);
    with("at_least = 0.98\n", "", &["claims[0].conditions[0].at_least: is not there"]);
    with("at_least = 0.98\n", "within = 0.1\n", &["claims[0].conditions[0].within: unknown key"]);
    says("at_most = 0.9", "at_most = 0.9\ncells = [\"n\"]", &["claims[0].cells: there are no conditions"]);
}

#[test]
fn a_reference_must_say_one_thing_at_each_point() {
    let points = "points = [[1, 20.0], [2, 19.0]]";
    says(points, "", &["reference[0].points: is not there"]);
    says(points, &format!("{points}\nformula = \"n\""), &["formula: there are points as well"]);
    says(points, "formula = \"1 / (n - 1)\"", &["reference[0].formula: `1 / (n - 1)` gives no finite number"]);
    says(points, "formula = \"20 * m\"", &["no function or variable m", "case, n"]);
    says(points, &format!("{points}\nscale = \"n\""), &["reference[0].scale: there is no function or variable n"]);
    says(points, &format!("{points}\nscale = 2"), &["reference[0].scale: 2 is a whole number", "such as 1472 / 1500"]);
    let again = format!("{points}\n[[figures.reference]]\nlabel = \"table\"\nsource = \"x\"\nformula = \"20\"");
    says(points, &again, &["reference[1].label: \"table\" is there already for fixed, n=1"]);
    let elsewhere = again.replace("formula = \"20\"", "formula = \"20\"\nwhere = { n = 10 }");
    read(&GOOD.replace(points, &elsewhere)).expect("two parts of one reference");
}

#[test]
fn a_scenario_that_cannot_be_run_names_the_line_of_the_study() {
    says(
        "set.access.rate_control = \"arf\"",
        "set.access.rate_control = \"art\"",
        &[
            "good.toml:17: cases[1].set.access.rate_control: with ARF, n=1: `access.rate_control=art` on base.toml",
            "did you mean \"arf\"?",
        ],
    );
    says(
        "set.duration_s = 30",
        "set.duration = 30",
        &["good.toml:5: set.duration: `duration=30`", "did you mean duration_s?"],
    );
    says(
        "values = [1, 2, 10]",
        "values = [1, 2, 10, 0]",
        &["good.toml:10: vary[0].values[3]: with fixed, n=0", "leaves no host"],
    );
    says("set.duration_s = 30", "set = 30", &["good.toml:5: set: 30 is a whole number"]);
    says("set.duration_s = 30", "set.seed = 30", &["set.seed: the seed is counted up for each run"]);
    says("scenario = \"base.toml\"", "scenario = \"none.toml\"", &["scenario: none.toml cannot be read: No such file"]);
    says("title = \"good\"", "title = good", &["good.toml:1: not valid TOML"]);
}

#[test]
fn a_scenario_inside_the_study_is_told_with_its_line_there() {
    let inline = "[scenario]\nduration_s = 20\n[[scenario.hosts]]\ncount = 2\nera = \"2013\"\n";
    let text = GOOD.replace("scenario = \"base.toml\"\n", "").replace("[[vary]]", &format!("{inline}\n[[vary]]"));
    let message = read(&text).expect_err("no such era");
    assert!(
        message.starts_with("studies/x/good.toml:10: scenario.hosts[0].era: \"2013\" is not one of the words"),
        "{message}"
    );
    let message = read(&text.replace("era", "eras")).expect_err("no such key");
    assert!(message.starts_with("studies/x/good.toml:10: scenario.hosts[0].eras: unknown key"), "{message}");
    read(&text.replace("2013", "2012")).expect("a study");
}
