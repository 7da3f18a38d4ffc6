"""Results go to other processes, and come back the same."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lasthop

SCENARIO: dict[str, Any] = {
    "duration_s": 3,
    "warmup_s": 1,
    "hosts": [{"count": 2, "flows": [{}, {"kind": "ping"}]}],
}


def ran(seed: int) -> lasthop.Result:
    return lasthop.simulate(SCENARIO, seed=seed)


def test_results_come_back_from_other_processes() -> None:
    # Not forked: that would copy locks of threads.
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(ran, [1, 2, 3]))
    for seed, result in zip([1, 2, 3], results, strict=True):
        here = ran(seed)
        assert result.flows.to_dict() == here.flows.to_dict()
        assert result.series.to_dict() == here.series.to_dict()


def varied(scenario: lasthop.Scenario) -> float:
    return lasthop.simulate(scenario, set={"access.preset": "ac-vendor"}).aggregate_goodput_mbps


def test_a_pickled_scenario_takes_overrides_as_before() -> None:
    keys = {"duration_s": 3, "warmup_s": 1, "access": {}, "hosts": [{"count": 3}]}
    scenario = lasthop.Scenario(keys, set={"seed": 4}).with_overrides({"path.rtt_ms": 8})
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(varied, scenario).result()
    # 802.11ac is faster than what is there without the preset.
    assert there == varied(scenario) > 3 * lasthop.simulate(scenario).aggregate_goodput_mbps
    for again in (pickle.loads(pickle.dumps(scenario)), copy.deepcopy(scenario), copy.copy(scenario)):
        assert again == scenario and hash(again) == hash(scenario) and varied(again) == there
        assert (again.name, again.seed, again.to_dict()) == (scenario.name, 4, scenario.to_dict())


def test_a_pickled_scenario_has_all_of_its_trace_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "path.csv").write_text("at_s,rate_mbps\n0,8\n3.5,1\n")
    (tmp_path / "traced.toml").write_text('duration_s = 3\nwarmup_s = 1\n[[hosts]]\n[[changes]]\ntrace = "path.csv"\n')
    monkeypatch.chdir(tmp_path)
    scenario = lasthop.Scenario.from_file("traced.toml")
    longer = lasthop.simulate(scenario, set={"duration_s": 6})
    again = pickle.loads(pickle.dumps(scenario))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert again == scenario and again.name == "traced"
    assert lasthop.simulate(again, set={"duration_s": 6}).flows.to_dict() == longer.flows.to_dict()


def test_a_pickled_result_has_the_same_bytes() -> None:
    studies = Path(__file__).parent.parent.parent / "studies"
    short = {"duration_s": 3, "warmup_s": 1}
    for result in (
        lasthop.simulate(SCENARIO),
        lasthop.simulate(SCENARIO, series=False),
        lasthop.compare(SCENARIO, vary={"path.rtt_ms": [4, 64]}, seeds=2, series=True, store=False),
        lasthop.study("hayakawa/fig-06", studies=studies, seeds=1, set=short, store=False),
    ):
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert type(again) is type(result) and again.to_json() == result.to_json()
            assert again.flows.to_dict() == result.flows.to_dict()
            assert again.runs.to_dict() == result.runs.to_dict()
        table = pickle.loads(pickle.dumps(result.flows))
        assert table.to_dict() == result.flows.to_dict()
    record = lasthop.simulate(SCENARIO).access
    assert pickle.loads(pickle.dumps(record)) == record
