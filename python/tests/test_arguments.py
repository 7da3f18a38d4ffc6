"""What is wrong in an argument is a `LasthopError` that names the argument and what is accepted."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasthop
import lasthop.dask
import lasthop.plot

SCENARIO: dict[str, Any] = {"duration_s": 1, "warmup_s": 0.5, "hosts": [{}]}

NAN, INFINITE = float("nan"), float("inf")
"""What is no whole number from 0 to 2^63 - 1."""
NO_WHOLE = [-1, 2**63, 10**40, -(10**40), 0.5, NAN, INFINITE, "1", "", b"1", [], {}, object(), True, 1j]
NO_FLAG = [0, 1, 2, "no", "", [], object(), NAN]
NO_TABLE = [0, 3.5, "a", "", b"", [1], object(), {1: 2}, {None: 3}]
NO_PATH = [0, -1, 3.5, NAN, "", b"x", [], {}, object(), "a\0b"]


def deep() -> list[Any]:
    nest: list[Any] = []
    nest.append(nest)
    return nest


WRONG: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("simulate scenario", lasthop.simulate, [*NO_PATH, None, {1: 2}]),
    ("simulate seed", lambda of: lasthop.simulate(SCENARIO, seed=of), NO_WHOLE),
    ("simulate set", lambda of: lasthop.simulate(SCENARIO, set=of), [of for of in NO_TABLE if of != ""]),
    ("simulate series", lambda of: lasthop.simulate(SCENARIO, series=of), [*NO_FLAG, None]),
    ("simulate policy", lambda of: lasthop.simulate(SCENARIO, policy=of), [3, "lasthop", [1], {"a": 1}]),
    ("simulate store", lambda of: lasthop.simulate(SCENARIO, store=of), [*NO_PATH, True]),
    ("simulate progress", lambda of: lasthop.simulate(SCENARIO, progress=of), NO_FLAG),
    (
        "a value of set",
        lambda of: lasthop.simulate(SCENARIO, set={"path.rtt_ms": of}),
        [NAN, INFINITE, 10**40, deep(), {}],
    ),
    (
        "a value of set",
        lambda of: lasthop.simulate(SCENARIO, set={"path.rtt_ms": of}),
        [None, object(), b"4", -1, 1e9, "x"],
    ),
    (
        "a key of set",
        lambda of: lasthop.simulate(SCENARIO, set={of: 1}),
        ["", "nothing", "a b", "hosts.7.count", ".", "="],
    ),
    ("compare scenario", lasthop.compare, [*NO_PATH, None]),
    ("compare vary", lambda of: lasthop.compare(SCENARIO, vary=of), NO_TABLE),
    (
        "compare values",
        lambda of: lasthop.compare(SCENARIO, vary={"path.rtt_ms": of}),
        [3, "4", b"4", {}, None, [], [4, 4]],
    ),
    ("compare values", lambda of: lasthop.compare(SCENARIO, vary={"path.rtt_ms": [4, of]}), [NAN, None, object(), -4]),
    ("compare cases", lambda of: lasthop.compare(SCENARIO, cases=of), NO_TABLE),
    ("compare a case", lambda of: lasthop.compare(SCENARIO, cases={"a": of}), [*NO_TABLE, None]),
    (
        "compare seeds",
        lambda of: lasthop.compare(SCENARIO, seeds=of),
        [*[of for of in NO_WHOLE if of != 1], 0, 1001, [-1], [0.5], [NAN]],
    ),
    (
        "compare seeds",
        lambda of: lasthop.compare(SCENARIO, seeds=of),
        [None, [2**63], ["1"], range(0), [1, 1, 1, 2], (3, np.int64(3))],
    ),
    ("compare jobs", lambda of: lasthop.compare(SCENARIO, jobs=of), [*NO_WHOLE, 0]),
    ("compare series", lambda of: lasthop.compare(SCENARIO, series=of), [*NO_FLAG, None]),
    ("compare store", lambda of: lasthop.compare(SCENARIO, store=of), [*NO_PATH, True]),
    ("compare both", lambda of: lasthop.compare(SCENARIO, vary={"path.rtt_ms": [4]}, cases=of), [{"a": {}}]),
    ("compare the seed", lambda of: lasthop.compare(SCENARIO, vary={"seed": of}), [[1, 2]]),
    ("study", lasthop.study, [*NO_PATH, None, "no/study", "nowhere.toml"]),
    ("study seeds", lambda of: lasthop.study("a/b", seeds=of), [*NO_WHOLE, 0, 1001]),
    ("study jobs", lambda of: lasthop.study("a/b", jobs=of), [*NO_WHOLE, 0]),
    ("study studies", lambda of: lasthop.study("a/b", studies=of), [*NO_PATH, None]),
    ("studies", lasthop.studies, [*NO_PATH, None]),
    ("read", lasthop.read, [*NO_PATH, None, "nowhere"]),
    ("Scenario", lambda of: lasthop.Scenario(of), [*NO_TABLE, None, {"hosts": deep()}, {"nothing": 1}]),
    ("Scenario name", lambda of: lasthop.Scenario(SCENARIO, name=of), [3, None, b"a"]),
    ("Scenario set", lambda of: lasthop.Scenario(SCENARIO, set=of), NO_TABLE),
    ("from_file", lasthop.Scenario.from_file, [*NO_PATH, None, "nowhere.toml"]),
    ("from_toml", lasthop.Scenario.from_toml, [3, None, b"[[hosts]]", [], "nonsense"]),
    ("with_overrides", lasthop.Scenario(SCENARIO).with_overrides, NO_TABLE),
    ("Record", lasthop.Record, [3, "a", None, [1]]),
]


@pytest.mark.parametrize(("what", "call", "values"), WRONG, ids=[what for what, _, _ in WRONG])
def test_a_wrong_argument_is_a_lasthop_error(what: str, call: Callable[[Any], Any], values: list[Any]) -> None:
    for value in values:
        with pytest.raises(lasthop.LasthopError) as error:
            call(value)
        message = str(error.value)
        assert (message and "accepted" in message) or not isinstance(error.value, lasthop.ArgumentError), message
        assert type(pickle.loads(pickle.dumps(error.value))) is type(error.value)


def test_the_message_has_the_accepted_range() -> None:
    with pytest.raises(
        lasthop.ArgumentError, match=r"^seed=-1; accepted: a whole number from 0 to 9223372036854775807$"
    ):
        lasthop.simulate(SCENARIO, seed=-1)
    with pytest.raises(lasthop.ArgumentError, match=r"^seeds=0; accepted: a whole number from 1 to 1000, or a list"):
        lasthop.compare(SCENARIO, seeds=0)
    with pytest.raises(lasthop.ArgumentError, match=r"^seeds=\[1, 1, 1, 2\]; accepted: each seed once$"):
        lasthop.compare(SCENARIO, seeds=[1, 1, 1, 2])
    # As they were before, for those that catch them so.
    for kind in (ValueError, TypeError):
        with pytest.raises(kind):
            lasthop.simulate(SCENARIO, seed=-1)
    with pytest.raises(FileNotFoundError):
        lasthop.simulate("nowhere.toml")


@pytest.mark.parametrize("kernel", ['hosts = "kernel"', '[[cases]]\nlabel = "linux"\nhosts = "kernel"'])
def test_a_study_with_kernel_hosts_is_not_judged_by_simulated_ones(tmp_path: Path, kernel: str) -> None:
    file = tmp_path / "kernel.toml"
    keys = 'title = "Linux"\nsource = "nobody"\nseeds = 1\n'
    table, top = (kernel, "") if kernel.startswith("[[") else ("", kernel)
    file.write_text(f"{keys}{top}\n{table}\n[scenario]\nduration_s = 2\nwarmup_s = 1\n[[scenario.hosts]]\n")
    for study in (lasthop.study, lasthop.dask.study):
        with pytest.raises(
            lasthop.ArgumentError, match="accepted: a study of simulated hosts; `lasthop study` runs this one"
        ):
            study(file)


def test_numbers_of_numpy_are_numbers() -> None:
    r = lasthop.simulate(SCENARIO, seed=np.int64(3), series=np.bool_(False), set={"path.rtt_ms": np.float32(8)})
    assert (r.seed, r.scenario.path.rtt_ms) == (3, 8)
    assert lasthop.compare(SCENARIO, seeds=np.array([3, 5])).seeds == [3, 5]


def test_tables_and_figures_refuse_what_they_do_not_have(tmp_path: Path) -> None:
    c = lasthop.compare(SCENARIO, seeds=2)
    for column in ("goodput", "", 0, None, -1, NAN):
        with pytest.raises(lasthop.ColumnError, match="accepted: case, seed"):
            c.flows[column]  # type: ignore[index]
    r = lasthop.simulate(SCENARIO, series=False)
    calls: list[Callable[[], Any]] = [
        lambda: r.series,
        lambda: lasthop.plot.run(r),
        lambda: lasthop.plot.run(c),  # type: ignore[arg-type]
        lambda: lasthop.plot.run(lasthop.simulate(SCENARIO), ["nothing"]),
        lambda: lasthop.plot.run(lasthop.simulate(SCENARIO), 3),  # type: ignore[arg-type]
        lambda: lasthop.plot.run(lasthop.simulate(SCENARIO), []),
        lambda: lasthop.plot.bars(r),  # type: ignore[arg-type]
        lambda: lasthop.plot.bars(c, "nothing"),
        lambda: lasthop.plot.bars(c, 3),  # type: ignore[arg-type]
        lambda: lasthop.plot.bars(c, ax=3),  # type: ignore[arg-type]
        lambda: lasthop.plot.lines(c, "nothing"),
        lambda: lasthop.plot.lines(c, None),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(lasthop.LasthopError):
            call()
