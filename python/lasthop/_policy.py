"""Policies written in Python, asked in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Policy(Protocol):
    """What decides for one host of one run: any object with this method.

    `observation` and decision are the objects of the JSON lines of docs/guide/external-policy.md, as dicts: times are
    whole nanoseconds, windows segments, rates Mb/s.
    """

    def decide(self, observation: dict[str, Any], /) -> Mapping[str, Any]:
        """Called at each tick of the host, every 0.5 s of the run. What it does not limit is not limited."""


MakePolicy = Callable[[dict[str, Any]], Policy]
"""A class or function that makes a host's policy of its `hello`: `{"schema": 1, "host": 0, "seed": 1, ...}`."""


def named(make: MakePolicy) -> str:
    """What stands for a policy in results, as `command`."""
    of = make if hasattr(make, "__qualname__") else type(make)
    return f"{of.__module__}.{of.__qualname__}"


def lines(make: MakePolicy) -> Callable[[str], Callable[[str], str]]:
    """The same policy for lines of JSON."""

    def of(hello: str) -> Callable[[str], str]:
        policy = make(json.loads(hello))

        def answer(observation: str) -> str:
            return json.dumps(policy.decide(json.loads(observation)), default=_number)

        return answer

    return of


def _number(value: Any) -> Any:
    """The numbers of NumPy as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is no part of a decision; accepted: dicts, lists, numbers, text, None")
