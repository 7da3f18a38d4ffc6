"""Policies written in Python, asked in this process."""

from __future__ import annotations

import ctypes
import json
import threading
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


class Asked:
    """The same policy for lines of JSON, from any thread."""

    def __init__(self, make: MakePolicy) -> None:
        self._make = make
        self._asked: set[int] = set()

    def __call__(self, hello: str) -> Callable[[str], str]:
        """What answers the lines of a host."""
        policy = self._noted(self._make, json.loads(hello))

        def answer(observation: str) -> str:
            return json.dumps(self._noted(policy.decide, json.loads(observation)), default=_number)

        return answer

    def _noted(self, asked: Callable[[dict[str, Any]], Any], what: dict[str, Any]) -> Any:
        self._asked.add(thread := threading.get_ident())
        try:
            return asked(what)
        finally:
            self._asked.discard(thread)

    def interrupt(self) -> None:
        """Ends the decisions that are being made, however long they would take."""
        for thread in list(self._asked):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def _number(value: Any) -> Any:
    """The numbers of NumPy as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is no part of a decision; accepted: dicts, lists, numbers, text, None")
