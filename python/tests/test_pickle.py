"""Results go to other processes, and come back the same."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

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
