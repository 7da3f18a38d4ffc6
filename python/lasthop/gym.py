"""Environments for reinforcement learning: `pip install 'lasthop[gym]'` (docs/guide/python.md).

- `HostEnv` (gymnasium): one host learns, and the others follow the policies of the scenario.
- `AccessPointEnv` (pettingzoo): all hosts learn.
- `vector(n)` (gymnasium): n of the first kind, simulated at the same time on all cores.

A step is a tick of the policies, 0.5 s of the run. An action limits the host until the next tick.

>>> from lasthop.gym import HostEnv, Seen
>>> four = {"duration_s": 10, "warmup_s": 2, "hosts": [{"count": 4, "policy": "formula"}]}
>>> with HostEnv(four, host=1) as env:
...     observation, info = env.reset(seed=1)
...     done = False
...     while not done:
...         observation, reward, terminated, done, info = env.step(env.action(40))
>>> Seen(*observation.tolist()).max_segments, info["result"].starved_flows
(40.0, 0)
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, cast

try:
    import numpy as np
    from gymnasium import Env
    from gymnasium.spaces import Box, Space
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
    from numpy.typing import NDArray
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ImportError(f"lasthop.gym needs its extra, pip install 'lasthop[gym]': {error}") from error

from lasthop import _arguments, _lasthop
from lasthop._arguments import refused
from lasthop._errors import ArgumentError
from lasthop._result import Result
from lasthop._scenario import Overrides, Scenario, ScenarioLike, core_of

if TYPE_CHECKING:
    # Of typing from Python 3.11 on.
    from typing_extensions import Self

__all__ = ["TICK_S", "AccessPointEnv", "HostEnv", "Seen", "VectorHostEnv", "log_goodput", "vector"]

TICK_S = 0.5
"""A step, in seconds of the run."""
_MOST = 1e6
_SEEDS = 2**31
_LEARNS: dict[str, Any] = {"policy": "external", "command": ["lasthop.gym"], "agent": "control"}

Floats = NDArray[np.float32]


class Seen(NamedTuple):
    """What a host sees at a tick: the entries of an observation, in order, each from 0 to a million.

    >>> Seen(*range(13)).goodput_mbps
    3
    """

    flows: float
    """Its connections."""
    busy_flows: float
    """Those that are sending."""
    backlogged_flows: float
    """Those whose application has written more than was sent."""
    goodput_mbps: float
    """What was acknowledged since the last tick, in Mb/s."""
    srtt_ms: float
    """Smoothed RTT in ms of the connection whose RTT has risen most; 0: no sample."""
    min_rtt_ms: float
    """Lowest RTT in ms of the same connection; 0: no sample."""
    cwnd_segments: float
    """The congestion windows, summed over its connections."""
    in_flight_segments: float
    """Segments sent and not acknowledged, of all its connections."""
    max_segments: float
    """The limit of the windows that held until now, as of the action; 0: none."""
    max_pacing_mbps: float
    """The limit of the pacing rate that held until now, in Mb/s; 0: none."""
    terminals: float
    """The hosts that are sending, with this one, as far as beacons tell."""
    peer_busy_flows: float
    """The busy connections of the others."""
    peer_rtt_ratio: float
    """The greatest smoothed RTT of another host over its lowest; 0: nothing heard."""


Reward = Callable[[Seen], float]
"""The reward of a step, of what the host sees at its end."""


def log_goodput(seen: Seen) -> float:
    """The default reward: log of the goodput in Mb/s, minus half of what the RTT is above the lowest, in lowest RTTs.

    Summed over hosts, the first part is greatest where goodput is shared in proportional fairness. Without a busy
    connection it is 0; goodput counts as at least 0.01 Mb/s.

    >>> quiet = Seen(1, 1, 1, 2.0, 300.0, 256.0, 40, 40, 40, 0, 10, 9, 1.2)
    >>> full = quiet._replace(goodput_mbps=2.4, srtt_ms=640.0)
    >>> round(log_goodput(quiet), 2), round(log_goodput(full), 2)
    (0.61, 0.13)
    """
    if not seen.busy_flows:
        return 0.0
    excess = seen.srtt_ms / seen.min_rtt_ms - 1.0 if seen.min_rtt_ms else 0.0
    return math.log(max(seen.goodput_mbps, 0.01)) - 0.5 * excess


class _Limits:
    """Actions: numbers from -1 to 1, each on a logarithmic scale."""

    def __init__(self, segments: tuple[int, int], pacing_mbps: tuple[float, float] | None) -> None:
        for name, pair in (("segments", segments), ("pacing_mbps", pacing_mbps)):
            if pair is not None:
                _arguments.pair(name, pair, _MOST)
        self.segments = segments
        self.pacing_mbps = pacing_mbps
        self.space = Box(-1.0, 1.0, (1 if pacing_mbps is None else 2,), np.float32)

    def of(self, action: Floats) -> tuple[int, float]:
        """The segments and the pacing rate that an action means."""
        try:
            action = np.asarray(action, np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise refused("action", action, str(self.space)) from error
        if action.shape != self.space.shape or not np.all(np.isfinite(action)):
            raise refused("action", action, str(self.space))
        segments = round(_scaled(float(action[0]), self.segments))
        return segments, 0.0 if self.pacing_mbps is None else _scaled(float(action[1]), self.pacing_mbps)

    def action(self, segments: float, pacing_mbps: float | None = None) -> Floats:
        """The action that means this."""
        segments = _arguments.number("segments", segments, 0.0, math.inf)
        if pacing_mbps is not None:
            pacing_mbps = _arguments.number("pacing_mbps", pacing_mbps, 0.0, math.inf)
        parts = [_unscaled(segments, self.segments)]
        if self.pacing_mbps is not None:
            parts.append(_unscaled(pacing_mbps or self.pacing_mbps[1], self.pacing_mbps))
        return np.array(parts, np.float32)


def _scaled(part: float, of: tuple[float, float]) -> float:
    return of[0] * math.pow(of[1] / of[0], (min(max(part, -1.0), 1.0) + 1.0) / 2.0)


def _unscaled(value: float, of: tuple[float, float]) -> float:
    return 2.0 * math.log(min(max(value, of[0]), of[1]) / of[0]) / math.log(of[1] / of[0]) - 1.0


def _observed(seen: Sequence[float]) -> Floats:
    return np.minimum(np.array(seen, np.float32), np.float32(_MOST))


def _observation_space() -> Box:
    return Box(0.0, _MOST, (len(Seen._fields),), np.float32)


def _steps(core: _lasthop.CoreScenario) -> int:
    """Every host has so many ticks at least, and as many steps less one."""
    steps = int(core.duration_s / TICK_S + 1e-9) - 1
    if steps < 1:
        raise ArgumentError(f"duration_s: {core.duration_s} has no step; accepted: at least {2 * TICK_S}")
    return steps


class HostEnv(Env[Floats, Floats]):
    """One host learns. A step is from one of its ticks to the next.

    An observation has the entries of `Seen`. An action has one number, the limit of the host's windows in segments,
    from -1 for the least to 1 for the greatest on a logarithmic scale; with `pacing_mbps` a second one, the limit of its
    pacing rate. Both are split over the host's busy connections. Episodes are truncated at the end of the run; then
    `info["result"]` has the run's `Result`, and what the agents did is in it.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        host: The number of the host that learns, from 0. A block of several is split for it, and loses its `name`.
        set: Keys to change in it.
        reward: What a step is worth.
        segments: The least and the greatest limit of the windows, in segments.
        pacing_mbps: The least and the greatest limit of the pacing rate, in Mb/s; without it, pacing is not limited.
        series: Whether `info["result"]` has series.

    Raises:
        ScenarioError: The scenario cannot be run.
        ArgumentError: There is no such host, or an argument has a wrong type or is out of range.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike,
        host: int = 0,
        *,
        set: Overrides | None = None,
        reward: Reward = log_goodput,
        segments: tuple[int, int] = (2, 1000),
        pacing_mbps: tuple[float, float] | None = None,
        series: bool = False,
    ) -> None:
        self._core = _alone(core_of(scenario, set), host)
        self._host = host
        self._reward = _arguments.called("reward", reward, "a function of what a host has seen")
        self._limits = _Limits(segments, pacing_mbps)
        self._series = _arguments.flag("series", series)
        self._steps = _steps(self._core)
        self._left = 0
        self._episode: _lasthop.Episode | None = None
        self.observation_space = cast("Space[Floats]", _observation_space())
        self.action_space = cast("Space[Floats]", self._limits.space)
        self.render_mode = None

    def action(self, segments: float, pacing_mbps: float | None = None) -> Floats:
        """The action that means these limits, in segments and Mb/s."""
        return self._limits.action(segments, pacing_mbps)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Starts a run, up to the host's first tick.

        Args:
            seed: The seed of every random draw of the run, as of `simulate`. Without it, the next one of the
                environment's generator, which the last seed given has set.
            options: Not looked at.
        """
        self._start(_arguments.seed(seed))
        return self._first()

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Acts, and runs up to the host's next tick.

        Raises:
            RuntimeError: The episode has ended, or has not begun.
            KeyboardInterrupt: Ctrl-C; the run has ended.
        """
        self._act(action)
        return self._next()

    def close(self) -> None:
        """Ends the run and its thread."""
        if self._episode is not None:
            self._episode.close()
        self._episode = None

    # In two halves, so that several runs go on at the same time.

    def _start(self, seed: int | None) -> None:
        super().reset(seed=seed)
        self.close()
        seed = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        self._episode = _lasthop.Episode(self._core.changed({"seed": seed}), [self._host], False, self._series)
        self._left = self._steps

    def _first(self) -> tuple[Floats, dict[str, Any]]:
        return _observed(self._running().receive()[0]), {}

    def _act(self, action: Floats) -> None:
        self._running().send([self._limits.of(action)])

    def _next(self) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        episode = self._running()
        seen = episode.receive()[0]
        self._left -= 1
        info: dict[str, Any] = {}
        if not self._left:
            info["result"] = Result(episode.finish())
            self.close()
        return _observed(seen), float(self._reward(Seen(*seen))), False, not self._left, info

    def _running(self) -> _lasthop.Episode:
        if self._episode is None:
            raise RuntimeError("no episode is running; accepted: reset() first")
        return self._episode


def _alone(core: _lasthop.CoreScenario, host: int) -> _lasthop.CoreScenario:
    """The same scenario, in which this host is a block of its own, with the policy of the caller."""
    keys = core.to_dict()
    host = _arguments.whole("host", host, 0, core.host_count - 1)
    blocks, first = [], 0
    for block in keys["hosts"]:
        count = block.get("count", 1)
        if not first <= host < first + count:
            blocks.append(block)
        elif count > 1 and "#" in json.dumps(block):
            raise ArgumentError(f"host={host} is one of several in a block with nodes of #: give it a block of its own")
        else:
            if count > 1:
                # Blocks have names of their own.
                block.pop("name", None)
            parts = (
                {**block, "count": host - first},
                {**block, "count": 1, **_LEARNS},
                {**block, "count": first + count - host - 1},
            )
            blocks.extend(part for part in parts if part["count"])
        first += count
    return Scenario({**keys, "hosts": blocks}, name=core.name)._core


class AccessPointEnv(ParallelEnv[str, Floats, Floats]):
    """All hosts learn: "host_0", "host_1", ... A step is one tick of each of them.

    Observations, actions and rewards are those of `HostEnv`. The hosts tick at different moments within 0.5 s, as on
    devices. So an action holds from the host's next tick on, at which its next observation is made: it acts on what it
    saw up to a tick before, and the effect of an action shows in the observation after the next. Before the first
    action nothing is limited.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`. Its policies are not looked at.
        set: Keys to change in it.
        reward: What a step is worth to a host.
        segments: The least and the greatest limit of a host's windows, in segments.
        pacing_mbps: The least and the greatest limit of the pacing rate, in Mb/s; without it, pacing is not limited.
        series: Whether `infos[host]["result"]`, after the last step, has series.

    Raises:
        ScenarioError: The scenario cannot be run.
        ArgumentError: An argument has a wrong type or is out of range.
    """

    metadata: dict[str, Any] = {"name": "lasthop_access_point_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        set: Overrides | None = None,
        reward: Reward = log_goodput,
        segments: tuple[int, int] = (2, 1000),
        pacing_mbps: tuple[float, float] | None = None,
        series: bool = False,
    ) -> None:
        self._core = core_of(scenario, set).changed({f"hosts.*.{key}": value for key, value in _LEARNS.items()})
        self._reward = _arguments.called("reward", reward, "a function of what a host has seen")
        self._limits = _Limits(segments, pacing_mbps)
        self._series = _arguments.flag("series", series)
        self._steps = _steps(self._core)
        self._left = 0
        self._episode: _lasthop.Episode | None = None
        self._random: np.random.Generator | None = None
        self.possible_agents = [f"host_{host}" for host in range(self._core.host_count)]
        self.agents: list[str] = []
        # Each has its own, which draws its own samples.
        self._spaces = {
            agent: (cast("Space[Floats]", _observation_space()), cast("Space[Floats]", deepcopy(self._limits.space)))
            for agent in self.possible_agents
        }
        self.render_mode = None

    def observation_space(self, agent: str) -> Space[Floats]:
        """The entries of `Seen`."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Space[Floats]:
        """One number, or two with `pacing_mbps`, from -1 to 1."""
        return self._spaces[agent][1]

    def action(self, segments: float, pacing_mbps: float | None = None) -> Floats:
        """The action that means these limits, in segments and Mb/s."""
        return self._limits.action(segments, pacing_mbps)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Starts a run, up to the last host's first tick. Seeds are those of `HostEnv.reset`."""
        seed = _arguments.seed(seed)
        self.close()
        if seed is not None or self._random is None:
            self._random, _ = seeding.np_random(seed)
        seed = int(self._random.integers(_SEEDS)) if seed is None else seed
        hosts = list(range(len(self.possible_agents)))
        self._episode = _lasthop.Episode(self._core.changed({"seed": seed}), hosts, True, self._series)
        self._left = self._steps
        self.agents = list(self.possible_agents)
        seen = self._episode.receive()
        return self._by_agent([_observed(of) for of in seen]), self._by_agent([{} for _ in seen])

    def step(
        self, actions: dict[str, Floats]
    ) -> tuple[dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Runs until each host has had one more tick.

        Raises:
            RuntimeError: The episode has ended, or has not begun.
            KeyboardInterrupt: Ctrl-C; the run has ended.
        """
        if self._episode is None:
            raise RuntimeError("no episode is running; accepted: reset() first")
        actions = dict(_arguments.table("actions", actions, "a dict with an action for each agent"))
        if missing := [agent for agent in self.possible_agents if agent not in actions]:
            raise ArgumentError(f"actions: there is none of {missing[0]}; accepted: one for each agent")
        self._episode.send([self._limits.of(actions[agent]) for agent in self.possible_agents])
        seen = self._episode.receive()
        self._left -= 1
        infos: list[dict[str, Any]] = [{} for _ in seen]
        if not self._left:
            result = Result(self._episode.finish())
            infos = [{"result": result} for _ in seen]
            self.close()
        done = [not self._left for _ in seen]
        rewards = [float(self._reward(Seen(*of))) for of in seen]
        return (
            self._by_agent([_observed(of) for of in seen]),
            self._by_agent(rewards),
            self._by_agent([False for _ in seen]),
            self._by_agent(done),
            self._by_agent(infos),
        )

    def close(self) -> None:
        """Ends the run and its thread."""
        if self._episode is not None:
            self._episode.close()
        self._episode = None
        self.agents = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _by_agent(self, values: list[Any]) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))


class VectorHostEnv(VectorEnv[Floats, Floats, Any]):
    """Several `HostEnv`, each simulated on a thread of its own: one step takes them all further at the same time.

    An episode that has ended begins anew with the next step, whose action and reward then mean nothing to it
    (gymnasium's `AutoresetMode.NEXT_STEP`).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, envs: Sequence[HostEnv]) -> None:
        accepted = "a list of HostEnv, at least one"
        self.envs = list(_arguments.instance("envs", envs, Sequence, accepted))
        if not self.envs or not all(isinstance(env, HostEnv) for env in self.envs):
            raise refused("envs", envs, accepted)
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ended = [False] * self.num_envs

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Starts all runs: with `seed`, `seed + 1`, ..., with a list of seeds, or with the next of each."""
        if isinstance(seed, Sequence) and not isinstance(seed, str | bytes):
            seeds = [_arguments.seed(of) for of in seed]
            if len(seeds) != self.num_envs:
                raise refused("seed", seed, f"a whole number, or a list of {self.num_envs}")
        else:
            first = _arguments.seed(seed)
            seeds = [None if first is None else _arguments.seed(first + place) for place in range(self.num_envs)]
        try:
            for env, of in zip(self.envs, seeds, strict=True):
                env._start(of)
            firsts = [env._first()[0] for env in self.envs]
        except BaseException:
            self.close()
            raise
        self._ended = [False] * self.num_envs
        return np.stack(firsts), {}

    def step(self, actions: Floats) -> tuple[Floats, Any, Any, Any, dict[str, Any]]:
        """Takes each run a step further; `infos["result"]` has the `Result` of those that have ended."""
        if np.ndim(actions) == 0 or len(actions) != self.num_envs:
            raise refused("actions", actions, f"an action for each of {self.num_envs} environments")
        try:
            for env, action, ended in zip(self.envs, actions, self._ended, strict=True):
                if ended:
                    env._start(None)
                else:
                    env._act(action)
            steps = [
                (*env._first(), 0.0, False) if ended else self._stepped(env)
                for env, ended in zip(self.envs, self._ended, strict=True)
            ]
        except BaseException:
            self.close()
            raise
        infos: dict[str, Any] = {}
        for place, (_, info, _, _) in enumerate(steps):
            infos = self._add_info(infos, info, place)
        self._ended = [truncated for _, _, _, truncated in steps]
        observations = np.stack([observation for observation, _, _, _ in steps])
        rewards = np.array([reward for _, _, reward, _ in steps])
        return observations, rewards, np.zeros(self.num_envs, bool), np.array(self._ended), infos

    @staticmethod
    def _stepped(env: HostEnv) -> tuple[Floats, dict[str, Any], float, bool]:
        observation, reward, _, truncated, info = env._next()
        return observation, info, reward, truncated

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all runs and their threads."""
        for env in self.envs:
            env.close()


def vector(n: int, scenario: ScenarioLike, host: int = 0, **options: Any) -> VectorHostEnv:
    """`n` environments of one scenario, simulated at the same time.

    Args:
        n: The number of environments.
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        host: The number of the host that learns, from 0.
        options: The other arguments of `HostEnv`, by name.

    Raises:
        ScenarioError: The scenario cannot be run.
        ArgumentError: `n` is below 1, there is no such host, or an argument is wrong otherwise.

    >>> envs = vector(2, {"duration_s": 5, "warmup_s": 1, "hosts": [{"count": 2}]})
    >>> observations, _ = envs.reset(seed=1)
    >>> observations, rewards, _, truncated, _ = envs.step(envs.action_space.sample())
    >>> observations.shape, rewards.shape, bool(truncated.any())
    ((2, 13), (2,), False)
    >>> envs.close()
    """
    n = _arguments.whole("n", n, 1, 2**16)
    # Read once: each reset reads only the seed.
    read = Scenario._of(core_of(scenario, cast("Overrides | None", options.pop("set", None))))
    return VectorHostEnv([HostEnv(read, host, **options) for _ in range(n)])
