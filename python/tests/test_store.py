"""The store of runs, shared with the command."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import lasthop

VARY = {"path.rtt_ms": [4, 8]}


@pytest.fixture(autouse=True)
def clean(once: lasthop.Result) -> None:
    if once.dirty or once.commit is None:
        pytest.skip("a build with changes stores no run")


def entries(folder: Path) -> dict[Path, int]:
    """The files of a store. What was written anew has another number."""
    files = (path for path in folder.glob("[0-9a-f][0-9a-f]/*"))
    return {path: path.stat().st_ino for path in files}


def test_python_finds_the_runs_of_the_command_and_the_other_way_round(
    scenarios: Path, command: Any, tmp_path: Path
) -> None:
    path, set = scenarios / "ten-uploads.toml", {"duration_s": 3, "warmup_s": 1}
    flags = ("--vary", "path.rtt_ms=4,8", "--set", "duration_s=3", "--set", "warmup_s=1", "--json")
    theirs = command("compare", path, *flags, "--store", tmp_path / "a")
    before = entries(tmp_path / "a")
    ours = lasthop.compare(path, vary=VARY, set=set, store=tmp_path / "a")
    # Wall-clock times too: these are the runs of the command.
    assert ours.to_json() == theirs and entries(tmp_path / "a") == before and len(before) == 2
    ours = lasthop.compare(path, vary=VARY, set=set, store=tmp_path / "b")
    before = entries(tmp_path / "b")
    theirs = command("compare", path, *flags, "--store", tmp_path / "b")
    assert theirs == ours.to_json() and entries(tmp_path / "b") == before
    assert {file.name for file in entries(tmp_path / "a")} == {file.name for file in entries(tmp_path / "b")}


def test_the_store_is_the_cache_unless_told_otherwise(
    short: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "lasthop/runs"
    lasthop.simulate(short)
    lasthop.compare(short, vary=VARY, store=False)
    assert not cache.exists()
    first, second = (lasthop.compare(short, vary=VARY) for _ in range(2))
    assert first.to_json() == second.to_json() and len(entries(cache)) == 2
    one = lasthop.simulate(short, set={"path.rtt_ms": 4}, series=False, store=None)
    assert one.wall_s == first.cases[0].runs[0].wall_s
    # Its series are not there, so it is done again.
    with_series = lasthop.simulate(short, set={"path.rtt_ms": 4}, store=os.fspath(cache))
    again = lasthop.simulate(short, set={"path.rtt_ms": 4}, store=cache)
    assert again.wall_s == with_series.wall_s and again.series.to_dict() == with_series.series.to_dict()


def test_a_study_does_its_runs_once(scenarios: Path, tmp_path: Path) -> None:
    study = tmp_path / "some" / "study.toml"
    study.parent.mkdir()
    study.write_text(f"""
title = "Windows"
source = "nobody"
scenario = "{scenarios / "ten-uploads.toml"}"
seeds = 2
set = {{ duration_s = 3, warmup_s = 1 }}
[[vary]]
axis = "n"
key = "hosts.0.count"
values = [2, 4]
[[figures]]
title = "total"
x = "n"
y = "aggregate_goodput_mbps"
""")
    first, second = (lasthop.study(study, store=tmp_path / "store") for _ in range(2))
    assert first.run_wall_s == second.run_wall_s and len(entries(tmp_path / "store")) == 4


def test_runs_with_a_policy_in_python_are_never_stored(short: dict[str, Any], tmp_path: Path) -> None:
    class Free:
        def __init__(self, hello: dict[str, Any]) -> None: ...

        def decide(self, observation: dict[str, Any]) -> dict[str, Any]:
            return {}

    lasthop.compare(short, vary={"hosts.0.policy": ["none", "external"]}, policy=Free, store=tmp_path)
    assert len(entries(tmp_path)) == 1
    lasthop.simulate(short, policy=Free, store=tmp_path)
    assert len(entries(tmp_path)) == 1


def test_a_wrong_store_is_told(short: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="store=True; accepted"):
        lasthop.compare(short, store=True)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot make the folder"):
        lasthop.compare(short, store=tmp_path / "file")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_that_cannot_be_written_costs_no_result(short: dict[str, Any], tmp_path: Path) -> None:
    for group in range(256):
        # There the folders of entries would be.
        (tmp_path / f"{group:02x}").touch()
    with pytest.warns(RuntimeWarning, match="will have to be done again"):
        lasthop.compare(short, vary=VARY, store=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert len(lasthop.compare(short, vary=VARY, store=tmp_path).runs) == 2
