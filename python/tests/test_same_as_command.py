"""The package gives the command's bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lasthop

SHORT = {"duration_s": 6, "warmup_s": 2}


def timeless(text: str) -> str:
    """Without what the wall clock says, and the state of the work tree when each was built."""
    return re.sub(r'"(wall_s|simulated_s_per_wall_s|run_wall_s|commit|dirty)": [^,\n]*', "", text)


def flags(option: str, set: dict[str, Any]) -> list[str]:
    return [word for key, value in set.items() for word in (option, f"{key}={value}")]


@pytest.mark.parametrize(
    "name",
    ["ten-uploads", "office", "ten-uploads-arf", "mixed-80211b", "utsumi-dumbbell", "last-link", "own-law/lossy"],
)
@pytest.mark.filterwarnings("ignore::lasthop.ScenarioWarning")
def test_a_run_has_the_bytes_of_result_json(name: str, scenarios: Path, command: Any) -> None:
    path = scenarios / f"{name}.toml"
    ours = lasthop.simulate(path, seed=3, set=SHORT, series=False).to_json()
    assert timeless(ours) == timeless(command("run", path, "--seed", 3, *flags("--set", SHORT), "--json"))


def test_a_comparison_has_the_bytes_of_comparison_json(scenarios: Path, command: Any) -> None:
    path = scenarios / "ten-uploads.toml"
    vary = {"hosts.*.policy": ["none", "formula"], "path.rtt_ms": [4, 256], "hosts.0.flows.0.start_s": [[0, 2], 1.5]}
    ours = lasthop.compare(path, vary=vary, seeds=2, set=SHORT)
    typed = {key: ",".join(str(value) for value in values) for key, values in vary.items()}
    theirs = command("compare", path, *flags("--vary", typed), "--seeds", 2, *flags("--set", SHORT), "--json")
    assert timeless(ours.to_json()) == timeless(theirs)
    cases = {"a": {"path.rtt_ms": 4}, "b": {"path.rtt_ms": 8, "path.loss": 0.01}}
    ours = lasthop.compare(path, cases=cases, set=SHORT)
    theirs = command(
        "compare",
        path,
        "--case",
        "a: path.rtt_ms=4",
        "--case",
        "b: path.rtt_ms=8 path.loss=0.01",
        *flags("--set", SHORT),
        "--json",
    )
    assert timeless(ours.to_json()) == timeless(theirs)


@pytest.mark.filterwarnings("ignore::lasthop.ScenarioWarning")
def test_a_study_has_the_bytes_of_study_json(scenarios: Path, command: Any, tmp_path: Path) -> None:
    study = tmp_path / "some" / "study.toml"
    study.parent.mkdir()
    study.write_text(f"""
title = "Windows"
source = "nobody"
scenario = "{scenarios / "ten-uploads.toml"}"
seeds = 2
set = {{ duration_s = 6, warmup_s = 2 }}
[[vary]]
axis = "n"
key = "hosts.0.count"
values = [2, 4]
[[figures]]
title = "total"
x = "n"
y = "aggregate_goodput_mbps"
[[claims]]
id = "more"
text = "More."
source = "nobody"
value = 'at("aggregate_goodput_mbps", n=4) / at("aggregate_goodput_mbps", n=2)'
at_least = 0.5
""")
    ours = lasthop.study(study)
    assert timeless(ours.to_json()) == timeless(command("study", study, "--json"))
    assert lasthop.study("some/study", studies=tmp_path, jobs=1).points == ours.points
    assert lasthop.studies(tmp_path) == ["some/study"]
    assert ours.passed and ours.claims[0].id == "more" and len(ours.flows) == 2 * (2 + 4)
    assert ours.runs["n"] == [2.0, 2.0, 4.0, 4.0]
    command("study", study, "--out", tmp_path / "out")
    kept = lasthop.read(tmp_path / "out")
    assert isinstance(kept, lasthop.Study)
    assert timeless(kept.to_json()) == timeless(ours.to_json()) and kept.summary.to_dict() == ours.summary.to_dict()
    with pytest.raises(ValueError, match="no runs"):
        kept.flows


def test_a_folder_of_the_command_is_read_as_it_was_run(scenarios: Path, command: Any, tmp_path: Path) -> None:
    path = scenarios / "ten-uploads.toml"
    command("run", path, *flags("--set", SHORT), "--out", tmp_path / "run")
    ours, theirs = lasthop.simulate(path, set=SHORT), lasthop.read(tmp_path / "run")
    assert timeless(ours.to_json()) == timeless(theirs.to_json())
    for table in ("series", "queues", "flows", "hosts"):
        assert getattr(ours, table).to_dict() == getattr(theirs, table).to_dict()
    vary = ("--vary", "path.rtt_ms=4,8", "--seeds", 2)
    command("compare", path, *vary, *flags("--set", SHORT), "--out", tmp_path / "compare")
    both, kept = (
        lasthop.compare(path, vary={"path.rtt_ms": [4, 8]}, seeds=2, set=SHORT, series=True),
        lasthop.read(tmp_path / "compare"),
    )
    assert timeless(both.to_json()) == timeless(kept.to_json())
    for table in ("series", "queues", "flows", "hosts", "summary"):
        assert getattr(both, table).to_dict() == getattr(kept, table).to_dict()
