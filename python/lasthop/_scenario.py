"""Scenarios: what is simulated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lasthop import _arguments
from lasthop._lasthop import CoreScenario
from lasthop._record import plain

Overrides = Mapping[str, Any]
"""Keys of the scenario with their values, such as `{"hosts.*.policy": "lasthop", "path.rtt_ms": 4}`."""


class Scenario:
    """A scenario, read and checked: what `lasthop run` has in a file (docs/guide/scenario.md).

    Args:
        keys: The keys of the file as nested dicts and lists. What is left out has its default.
        set: Overrides, as after `--set`.
        name: Its name in messages, and in results if `keys` has none.

    Raises:
        ScenarioError: A key is unknown, or has a value that it does not take.

    >>> scenario = Scenario({"duration_s": 20, "warmup_s": 5, "hosts": [{"count": 3, "policy": "formula"}]})
    >>> scenario
    <lasthop.Scenario "scenario": 3 hosts, 20.0 s, seed 1>
    >>> scenario.to_dict()["access"]["rate_mbps"]
    54.0
    """

    __slots__ = ("_core",)
    _core: CoreScenario

    def __init__(self, keys: Mapping[str, Any], *, set: Overrides | None = None, name: str = "scenario") -> None:
        keys = _arguments.table("keys", keys, "the keys of a scenario as a dict")
        name = _arguments.text("name", name)
        self._core = CoreScenario.of_dict(plain(keys), name, plain(_arguments.overrides(set)))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, set: Overrides | None = None) -> Scenario:
        """Reads a TOML file.

        Raises:
            ScenarioError: With the line of the key at fault.
            OSError: The file cannot be read.
        """
        path = _arguments.path("path", path, "the path of a TOML file")
        return cls._of(CoreScenario.of_file(Path(path), plain(_arguments.overrides(set))))

    @classmethod
    def from_toml(cls, text: str, *, set: Overrides | None = None, name: str = "scenario") -> Scenario:
        """Reads the text of such a file.

        >>> Scenario.from_toml('[[hosts]]', name="one")
        <lasthop.Scenario "one": 1 hosts, 60.0 s, seed 1>
        """
        text, name = _arguments.text("text", text), _arguments.text("name", name)
        return cls._of(CoreScenario.of_text(text, name, plain(_arguments.overrides(set))))

    @classmethod
    def _of(cls, core: CoreScenario) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._core = core
        return scenario

    def with_overrides(self, set: Overrides) -> Scenario:
        """The same scenario with these keys changed.

        >>> Scenario({"hosts": [{}]}).with_overrides({"hosts.0.count": 4, "seed": 7})
        <lasthop.Scenario "scenario": 4 hosts, 60.0 s, seed 7>
        """
        return self._of(self._core.changed(plain(_arguments.overrides(set))))

    def to_dict(self) -> dict[str, Any]:
        """Every key with its value, defaults filled in; `Scenario` reads it again.

        A host's `agent` is left out where it follows from its `policy`, so that a changed policy brings its own.

        >>> keys = Scenario({"hosts": [{"count": 4}]}).to_dict()
        >>> keys["hosts"][0]["policy"] = "formula"
        >>> Scenario(keys) == Scenario({"hosts": [{"count": 4, "policy": "formula"}]})
        True
        """
        return dict(self._core.to_dict())

    def to_toml(self) -> str:
        """The same as the text of a file, for `lasthop run`."""
        return self._core.to_toml()

    @property
    def name(self) -> str:
        """Its purpose, in one line."""
        return self._core.name

    @property
    def duration_s(self) -> float:
        """Length of the run in seconds, the warm-up included."""
        return self._core.duration_s

    @property
    def seed(self) -> int:
        """The seed of every random draw."""
        return self._core.seed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_read_again, (self._core.written(), self.name))

    def __repr__(self) -> str:
        return f'<lasthop.Scenario "{self.name}": {self._core.host_count} hosts, {self.duration_s} s, seed {self.seed}>'


def _read_again(text: str, name: str) -> Scenario:
    return Scenario.from_toml(text, name=name)


ScenarioLike = str | os.PathLike[str] | Mapping[str, Any] | Scenario
"""A file, the keys of one, or a scenario."""


def core_of(scenario: ScenarioLike, set: Overrides | None) -> CoreScenario:
    """The scenario that is meant, with overrides."""
    set = _arguments.overrides(set)
    if isinstance(scenario, Scenario):
        return scenario._core.changed(plain(set)) if set else scenario._core
    if isinstance(scenario, Mapping):
        return Scenario(scenario, set=set)._core
    path = _arguments.path("scenario", scenario, "a TOML file, its keys as a dict, or a Scenario")
    return CoreScenario.of_file(Path(path), plain(set))
