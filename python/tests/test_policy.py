"""Policies: in Python in this process, and programs."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import lasthop

FIVE = {"duration_s": 60, "warmup_s": 10, "hosts": [{"count": 5}], "path": {"rtt_ms": 256}}


def nameless(result: lasthop.Result) -> str:
    """The bytes of a result, without its clock, and without what names the policy."""
    values = {key: value for key, value in result.to_dict().items() if key not in ("scenario", "wall_s")}
    del values["simulated_s_per_wall_s"]
    return re.sub('"(external|formula|fixed)"', '"POLICY"', json.dumps(values))


@pytest.fixture
def formula(scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of scenarios/external/formula.py, a policy of `hello`."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    spec = importlib.util.spec_from_file_location("formula", scenarios / "external" / "formula.py")
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda hello: module.Formula()


def test_the_formula_in_python_gives_the_bytes_of_the_built_in_one_and_of_the_program(
    scenarios: Path, formula: Any
) -> None:
    built_in = nameless(lasthop.simulate(FIVE, set={"hosts.0.policy": "formula"}))
    assert nameless(lasthop.simulate(FIVE, policy=formula)) == built_in
    command = {"hosts.0.policy": "external", "hosts.0.command": ["python3", str(scenarios / "external/formula.py")]}
    assert nameless(lasthop.simulate(FIVE, set=command)) == built_in
    assert nameless(lasthop.simulate(FIVE)) != built_in


class Fixed:
    """So many segments for each connection."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, hello: dict[str, Any]) -> None:
        self.made.append(hello)

    def decide(self, observation: dict[str, Any]) -> dict[str, Any]:
        limits = [{"id": flow["id"], "max_segments": np.int64(40)} for flow in observation["flows"]]
        return {"flows": limits, "new_flows": {"max_segments": 40}}


def test_a_policy_is_made_once_for_each_host_and_run_and_named_in_the_result() -> None:
    Fixed.made.clear()
    fixed = {"hosts.0.policy": "fixed", "hosts.0.bound_segments": 40}
    ours = lasthop.simulate(FIVE, policy=Fixed, seed=7)
    assert nameless(ours) == nameless(lasthop.simulate(FIVE, set=fixed, seed=7))
    assert [made["host"] for made in Fixed.made] == [0, 1, 2, 3, 4]
    assert Fixed.made[0] == {"event": "hello", "schema": 1, "host": 0, "seed": 7, "tick_ns": 500_000_000}
    block = ours.scenario.hosts[0]
    assert block.policy == "external" and block.command[0].endswith("test_policy.Fixed")


def test_only_hosts_whose_policy_is_external_ask_it(short: dict[str, Any], recwarn: pytest.WarningsRecorder) -> None:
    Fixed.made.clear()
    two = {**short, "hosts": [{"count": 2}, {"policy": "external"}]}
    lasthop.simulate(two, policy=Fixed)
    assert [made["host"] for made in Fixed.made] == [2]
    Fixed.made.clear()
    vary = {"hosts.0.policy": ["none", "formula", "external"]}
    c = lasthop.compare(short, vary=vary, policy=Fixed, seeds=2, jobs=2)
    assert len(Fixed.made) == 2 * 4 and len(c.cases) == 3
    assert not recwarn.list
    with pytest.raises(ValueError, match="no host asks it"):
        lasthop.compare(short, vary={"hosts.0.policy": ["none", "formula"]}, policy=Fixed)


def test_an_exception_ends_the_run_with_host_tick_and_traceback(short: dict[str, Any]) -> None:
    class Broken(Fixed):
        def decide(self, observation: dict[str, Any]) -> dict[str, Any]:
            if observation["tick"] == 3:
                raise KeyError("my last words")
            return {}

    with pytest.raises(lasthop.PolicyError, match=r"host \d \(.*Broken\) failed at tick 3, at 1\.\d* s") as caught:
        lasthop.simulate(short, policy=Broken)
    error = caught.value
    assert error.tick == 3 and error.host in range(4) and error.at_s is not None and 1.5 <= error.at_s < 2
    assert isinstance(error.__cause__, KeyError) and error.__cause__.__traceback__ is not None
    with pytest.raises(lasthop.PolicyError, match="external: the policy of host"):
        lasthop.compare(short, cases={"none": {}, "external": {"hosts.0.policy": "external"}}, policy=Broken)


def test_what_cannot_be_made_or_is_no_decision_is_told(short: dict[str, Any]) -> None:
    def cannot(hello: dict[str, Any]) -> Any:
        raise RuntimeError("no")

    with pytest.raises(lasthop.PolicyError, match="the policy of host 0 cannot start: RuntimeError: no") as caught:
        lasthop.simulate(short, policy=cannot)
    assert caught.value.tick is None and isinstance(caught.value.__cause__, RuntimeError)

    class Wrong(Fixed):
        answer: Any = None

        def decide(self, observation: dict[str, Any]) -> Any:
            return self.answer

    wrong = [
        ({"flow": []}, "unknown field `flow`"),
        ({"new_flows": {"max_segments": -1}}, "new_flows.max_segments: invalid value"),
        ({"reason": {1, 2}}, "TypeError: a set is no part of a decision"),
        (None, "invalid type: null"),
    ]
    for answer, message in wrong:
        Wrong.answer = answer
        with pytest.raises(lasthop.PolicyError, match=message):
            lasthop.simulate(short, policy=Wrong)
    with pytest.raises(lasthop.PolicyError, match="cannot start"):
        lasthop.simulate(short, set={"hosts.0.policy": "external", "hosts.0.command": ["/nonexistent"]})


def test_a_comparison_ends_with_its_first_failure(short: dict[str, Any]) -> None:
    seeds = set()

    class Fails:
        def __init__(self, hello: dict[str, Any]) -> None:
            seeds.add(hello["seed"])

        def decide(self, observation: dict[str, Any]) -> dict[str, Any]:
            raise LookupError("no decision")

    with pytest.raises(lasthop.PolicyError, match="no decision"):
        lasthop.compare(short, seeds=20, jobs=2, policy=Fails)
    assert len(seeds) <= 4
