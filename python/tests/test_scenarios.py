"""Scenarios from files, texts and dicts, and what is said about wrong ones."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lasthop

hosts = st.fixed_dictionaries(
    {"count": st.integers(1, 20), "bound_segments": st.integers(1, 500)},
    optional={
        "era": st.sampled_from(["2012", "modern"]),
        "congestion_control": st.sampled_from(["newreno", "cubic", "hd", "chd", "cdg"]),
        "policy": st.sampled_from(["none", "formula", "lasthop", "fixed"]),
        "queue_packets": st.integers(1, 5000),
        "flows": st.lists(
            st.fixed_dictionaries({"direction": st.sampled_from(["up", "down"]), "start_s": st.floats(0, 1)}),
            min_size=1,
            max_size=2,
        ),
    },
)
scenarios_of_all_kinds = st.fixed_dictionaries(
    {"duration_s": st.floats(2, 1000), "warmup_s": st.floats(0, 1), "hosts": st.lists(hosts, min_size=1, max_size=4)},
    optional={
        "name": st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=40).filter(
            str.strip
        ),
        "seed": st.integers(1, 2**63 - 1),
        "path": st.fixed_dictionaries({"rtt_ms": st.floats(0, 1000), "loss": st.floats(0, 1)}),
    },
)


@given(scenarios_of_all_kinds)
def test_a_scenario_goes_round_through_dict_and_text(keys: dict[str, Any]) -> None:
    scenario = lasthop.Scenario(keys)
    again = lasthop.Scenario(scenario.to_dict())
    assert again.to_dict() == scenario.to_dict() and again.to_toml() == scenario.to_toml() and again == scenario
    assert lasthop.Scenario.from_toml(scenario.to_toml(), name=scenario.name).to_dict() == scenario.to_dict()
    assert pickle.loads(pickle.dumps(scenario)) == scenario and hash(again) == hash(scenario)


@given(keys=scenarios_of_all_kinds, seed=st.integers(1, 2**63 - 1))
def test_the_same_seed_gives_the_same_bytes(keys: dict[str, Any], seed: int) -> None:
    keys = {**keys, "duration_s": 0.4, "warmup_s": 0.1}
    for host in keys["hosts"]:
        for flow in host.get("flows", []):
            flow["start_s"] = 0.0
    scenario = lasthop.Scenario(keys)

    def once(scenario: Any) -> str:
        # These runs are too short for policies, and some keys go with others.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = lasthop.simulate(scenario, seed=seed, series=False).to_json()
        return re.sub(r'"(wall_s|simulated_s_per_wall_s)": [^,\n]*', "", text)

    assert once(scenario) == once(keys) == once(scenario.to_dict())


def test_a_file_and_its_keys_are_the_same(scenarios: Path) -> None:
    for path in sorted(scenarios.glob("*.toml")):
        scenario = lasthop.Scenario.from_file(path)
        assert lasthop.Scenario(scenario.to_dict()).to_toml() == scenario.to_toml(), path.name
        assert lasthop.Scenario.from_toml(path.read_text(), name=str(path)) == scenario


def test_overrides_add_up(short: dict[str, Any]) -> None:
    scenario = (
        lasthop.Scenario(short, set={"hosts.0.count": 5})
        .with_overrides({"path.rtt_ms": 8})
        .with_overrides({"path.rtt_ms": 9})
    )
    assert scenario.to_dict()["hosts"][0]["count"] == 5 and scenario.to_dict()["path"]["rtt_ms"] == 9


def test_an_error_has_file_line_and_key(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('name = "x"\n[[hosts]]\ncount = -1\n')
    with pytest.raises(lasthop.ScenarioError) as caught:
        lasthop.simulate(path)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(path), 3, "hosts[0].count") and error.accepted
    assert str(error).startswith(f"{path}:3: hosts[0].count: -1 ") and isinstance(error, ValueError)
    path.write_text("[[hosts]\n")
    with pytest.raises(lasthop.ScenarioError, match="not valid TOML") as caught:
        lasthop.Scenario.from_file(path)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("keys", "set", "key", "message"),
    [
        ({"hosts": [{"polcy": "none"}]}, {}, "hosts[0].polcy", "did you mean policy"),
        ({"hosts": [{}]}, {"hosts.0.polcy": "none"}, "hosts.0.polcy", "hosts.0.polcy=none"),
        ({"hosts": [{"congestion_control": "illinois"}]}, {}, "hosts[0].congestion_control", "simulated hosts have no"),
        ({"hosts": []}, {}, "hosts", "accepted"),
        ({"hosts": [{}], "duration_s": 5, "warmup_s": 9}, {}, "warmup_s", "leaves nothing"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(keys: Any, set: Any, key: str, message: str) -> None:
    with pytest.raises(lasthop.ScenarioError, match=re.escape(message)) as caught:
        lasthop.simulate(keys, set=set)
    assert caught.value.key == key
    assert pickle.loads(pickle.dumps(caught.value)).key == key


def test_other_errors_are_of_their_types(short: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lasthop.simulate(tmp_path / "none.toml")
    with pytest.raises(FileNotFoundError):
        lasthop.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="did you mean some/fig-1"):
        (tmp_path / "some").mkdir()
        (tmp_path / "some/fig-1.toml").touch()
        lasthop.study("some/fig1", studies=tmp_path)
    (tmp_path / "result.json").write_text('{"schema_version": 99}')
    with pytest.raises(lasthop.ResultError, match="99"):
        lasthop.read(tmp_path)
    with pytest.raises(MemoryError, match="series=False"):
        lasthop.simulate(short, set={"duration_s": 86_400, "sample_ms": 1, "hosts.0.count": 250})
    with pytest.raises(TypeError, match=r"path\.rtt_ms: a object"):
        lasthop.simulate(short, set={"path.rtt_ms": object()})
    with pytest.raises(ValueError, match="accepted: finite numbers"):
        lasthop.Scenario({**short, "path": {"rtt_ms": float("nan")}})
    for wrong, message in [
        ({"vary": {"path.rtt_ms": [4]}, "cases": {"a": {}}}, "both vary and cases"),
        ({"cases": {"a": {"seed": 4}}}, "seed cannot be varied"),
        ({"vary": {"path.rtt_ms": [4, 4]}}, "stands twice"),
        ({"vary": {"path.rtt_ms": []}}, "no values"),
        ({"vary": {"hosts.*.policy": "none"}}, "accepted: a list"),
        ({"vary": {"path.rtt_ms": [4, -4]}}, 'the case "rtt_ms=-4" cannot be run'),
        ({"vary": {"hosts.0.era": ["2012"], "hosts.*.era": ["modern"]}}, "hosts.0.era=2012 has no effect before"),
        ({"cases": {"a": {"hosts.0.era": "2012", "hosts[0].era": "modern"}}}, "accepted: each key once"),
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": []}, "seeds="),
    ]:
        with pytest.raises(ValueError, match=message):
            lasthop.compare(short, **wrong)


def test_what_the_command_notes_is_a_warning(short: dict[str, Any]) -> None:
    with pytest.warns(lasthop.ScenarioWarning, match="policy lasthop needs about") as caught:
        lasthop.simulate(short, set={"hosts.0.policy": "lasthop"})
    assert caught[0].filename == __file__
    with pytest.warns(lasthop.ScenarioWarning, match="an override: hosts.0.enable_ratio has no effect here"):
        lasthop.simulate(short, set={"hosts.0.enable_ratio": 3})
    with pytest.warns(lasthop.ScenarioWarning, match=r"scenario: access.rate_control has no effect here"):
        lasthop.simulate({**short, "access": {"kind": "wired", "rate_control": "arf"}})


def test_numbers_of_numpy_are_numbers(short: dict[str, Any]) -> None:
    import numpy

    c = lasthop.compare(short, vary={"path.rtt_ms": numpy.array([4, 8]), "path.loss": numpy.linspace(0, 0.1, 2)})
    assert [case.label for case in c.cases][-1] == "rtt_ms=8, loss=0.1"
