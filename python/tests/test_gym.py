"""Environments: their interfaces, the runs behind them, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

import lasthop
from lasthop.gym import AccessPointEnv, HostEnv, Seen, vector

FOUR = {"duration_s": 10, "warmup_s": 2, "path": {"rtt_ms": 64}, "hosts": [{"count": 4, "policy": "formula"}]}
FIXED = {"policy": "fixed", "bound_segments": 40}


def same(one: lasthop.Result, other: lasthop.Result) -> bool:
    def numbers(result: lasthop.Result) -> str:
        values = {key: value for key, value in result.to_dict().items() if key not in ("scenario", "wall_s")}
        del values["simulated_s_per_wall_s"]
        return json.dumps(values).replace('"external"', '"fixed"')

    return numbers(one) == numbers(other)


def run(env: HostEnv, action: Any, seed: int | None = None) -> tuple[list[Any], dict[str, Any]]:
    """An episode with one action: every observation and reward, and the last info."""
    observation, info = env.reset(seed=seed)
    seen, done = [(observation.tolist(), 0.0)], False
    while not done:
        observation, reward, _, done, info = env.step(action)
        seen.append((observation.tolist(), reward))
    return seen, info


def test_the_environments_pass_the_checks_of_gymnasium_and_pettingzoo() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It wants a registered environment to make anew, and warns without one.
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(HostEnv(FOUR), skip_render_check=True)
    parallel_api_test(AccessPointEnv(FOUR, pacing_mbps=(0.1, 20)), num_cycles=50)


def test_a_host_that_does_what_fixed_does_gets_its_bytes() -> None:
    with HostEnv(FOUR, host=1) as env:
        seen, info = run(env, env.action(40), seed=7)
    assert len(seen) == 20 and all(Seen(*observation).max_segments == 40 for observation, _ in seen[1:])
    one, rest = {"count": 1}, {"policy": "formula"}
    beside = {**FOUR, "hosts": [{**one, **rest}, {**one, **FIXED}, {"count": 2, **rest}]}
    assert same(info["result"], lasthop.simulate(beside, seed=7, series=False))


def test_hosts_that_all_do_what_fixed_does_get_its_bytes_from_their_second_tick_on() -> None:
    class Late:
        def __init__(self, hello: dict[str, Any]) -> None: ...

        def decide(self, observation: dict[str, Any]) -> dict[str, Any]:
            if observation["tick"] == 0:
                return {}
            limits = [{"id": flow["id"], "max_segments": 40} for flow in observation["flows"]]
            return {"flows": limits, "new_flows": {"max_segments": 40}}

    env = AccessPointEnv(FOUR, series=True)
    env.reset(seed=7)
    while env.agents:
        _, rewards, _, _, infos = env.step({agent: env.action(40) for agent in env.agents})
        assert rewards.keys() == {"host_0", "host_1", "host_2", "host_3"}
        if "result" in infos["host_0"]:
            break
    result = infos["host_0"]["result"]
    assert same(result, lasthop.simulate(FOUR, policy=Late, seed=7)) and len(result.series) > 0


def test_the_same_seed_gives_the_same_episodes() -> None:
    def episodes() -> list[Any]:
        with HostEnv(FOUR, segments=(1, 100)) as env:
            return [run(env, env.action(10), seed=3)[0], run(env, env.action(10))[0]]

    first, second = episodes()
    assert first != second and episodes() == [first, second]
    envs = vector(3, FOUR, segments=(1, 100))
    action = np.stack([envs.envs[0].action(10)] * 3)
    observations, _ = envs.reset(seed=[1, 3, 3])
    for step in range(1, 20):
        observations, rewards, _, done, infos = envs.step(action)
        assert (observations[1].tolist(), rewards[1]) == first[step]
        assert (observations[1] == observations[2]).all() and (observations[0] != observations[1]).any()
    assert done.all() and infos["result"][0].seed == 1 and infos["_result"].all()
    observations, rewards, _, done, infos = envs.step(action)
    assert observations[1].tolist() == second[0][0] and not done.any() and not rewards.any() and not infos
    envs.close()


def test_what_is_seen_is_what_happened() -> None:
    with HostEnv({**FOUR, "hosts": [{"count": 2}]}, pacing_mbps=(0.5, 8), series=True) as env:
        seen, _ = run(env, env.action(1000, 2), seed=1)
    last = Seen(*seen[-1][0])
    assert last.busy_flows == last.flows == 1 and last.max_pacing_mbps == pytest.approx(2, rel=1e-6)
    # Pacing is of payload, and goodput too.
    assert 1.5 < last.goodput_mbps < 2.1 and 64 <= last.min_rtt_ms <= last.srtt_ms
    assert Seen(*seen[0][0]).max_segments == 0
    with HostEnv(FOUR, reward=lambda seen: seen.goodput_mbps) as env:
        env.reset(seed=1)
        observation, reward, *_ = env.step(env.action(40))
        assert reward == pytest.approx(float(observation[3]), rel=1e-6)


def test_a_host_of_a_named_block_may_learn() -> None:
    with HostEnv({**FOUR, "hosts": [{"count": 3, "name": "phone"}, {"name": "laptop"}]}, host=2) as env:
        _, info = run(env, env.action(40), seed=1)
    assert info["result"].hosts["name"] == ["host_0", "host_1", "host_2", "laptop"]


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="host=4; accepted: a whole number from 0 to 3"):
        HostEnv(FOUR, host=4)
    with pytest.raises(ValueError, match="segments="):
        HostEnv(FOUR, segments=(5, 5))
    with pytest.raises(ValueError, match="has no step"):
        HostEnv(FOUR, set={"duration_s": 0.9, "warmup_s": 0})
    env = HostEnv(FOUR)
    with pytest.raises(RuntimeError, match=r"reset\(\) first"):
        env.step(env.action(4))
    env.reset()
    with pytest.raises(ValueError, match="accepted: Box"):
        env.step(np.zeros(2, np.float32))
    env.close()


def test_closing_and_an_interrupt_leave_no_thread() -> None:
    program = """
import os, signal, threading, time
from lasthop.gym import AccessPointEnv, HostEnv, vector
LONG = {"duration_s": 3000, "warmup_s": 1, "hosts": [{"count": 20}]}
def threads(most):
    # A thread that has ended is in the list for a moment.
    until = time.monotonic() + 10
    while (left := len(os.listdir("/proc/self/task")) - before) > most and time.monotonic() < until:
        time.sleep(0.01)
    return left
before = len(os.listdir("/proc/self/task"))
one, all, many = HostEnv(LONG), AccessPointEnv(LONG), vector(3, LONG)
for env in (one, all, many):
    env.reset(seed=1)
print(threads(5))
for env in (one, all, many):
    env.close()
print(threads(0))
HostEnv(LONG).reset()
print(threads(0))
many = vector(3, LONG)
many.reset(seed=1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    while True:
        many.step(many.action_space.sample())
except KeyboardInterrupt:
    many.close()
    print(threads(0))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.stdout.split() == ["5", "0", "0", "0"], done.stderr


def test_the_example_tunes_a_bound(scenarios: Path) -> None:
    example = Path(__file__).parents[1] / "examples/tune_fixed.py"
    short = ("--trials", "6", "--set", "duration_s=6", "--set", "warmup_s=2", "--set", "hosts.0.count=3")
    done = subprocess.run(
        [sys.executable, example, scenarios / "ten-uploads.toml", *short],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["none", "Optuna", "the study's search"]


def test_environments_close_at_the_end_of_with() -> None:
    with AccessPointEnv(FOUR) as env:
        env.reset(seed=1)
        env.step({agent: env.action(40) for agent in env.agents})
    with pytest.raises(RuntimeError, match="reset"):
        env.step({})
    with vector(2, FOUR) as envs:
        envs.reset(seed=1)
    with pytest.raises(RuntimeError, match="reset"):
        envs.step(np.zeros((2, 1), np.float32))


def test_a_wrong_argument_of_an_environment_is_a_lasthop_error() -> None:
    env, all = HostEnv(FOUR), AccessPointEnv(FOUR)
    env.reset(seed=1)
    all.reset(seed=1)
    wrong: list[Callable[[], Any]] = [
        *[lambda host=host: HostEnv(FOUR, host) for host in (-1, 4, 0.5, "0", None, 10**30)],
        *[
            lambda pair=pair: HostEnv(FOUR, segments=pair)
            for pair in ((0, 4), (9, 4), (2, 1e9), 3, "ab", (1,), (2, "x"))
        ],
        *[lambda pair=pair: AccessPointEnv(FOUR, pacing_mbps=pair) for pair in ((-1, 4), (float("nan"), 4), [], "ab")],
        *[lambda n=n: vector(n, FOUR) for n in (0, -1, 0.5, "2", None)],
        lambda: HostEnv(FOUR, reward=3),  # type: ignore[arg-type]
        lambda: HostEnv(FOUR, series="no"),  # type: ignore[arg-type]
        lambda: HostEnv({"duration_s": 0.5, "warmup_s": 0, "hosts": [{}]}),
        *[lambda seed=seed: HostEnv(FOUR).reset(seed=seed) for seed in (-1, "1", 2**63, 0.5)],
        *[lambda seed=seed: AccessPointEnv(FOUR).reset(seed=seed) for seed in (-1, "1", 2**63, 0.5)],
        *[lambda action=action: env.step(action) for action in ("x", None, [float("nan")], [0.0, 0.0], 3, [None])],
        *[lambda actions=actions: all.step(actions) for actions in ({}, None, {"host_0": [0.0]}, [1])],
        *[lambda value=value: env.action(value) for value in ("x", None, float("nan"), -1, [])],
        lambda: vector(2, FOUR).reset(seed=[1]),
        lambda: vector(2, FOUR).reset(seed="ab"),  # type: ignore[arg-type]
        lambda: vector(2, FOUR).step(np.zeros((1, 1), np.float32)),
    ]
    for call in wrong:
        with pytest.raises(lasthop.LasthopError, match=r"accepted|has no step"):
            call()
    env.close()
    all.close()
