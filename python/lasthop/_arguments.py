"""Arguments are checked before anything else is done with them. Each error names the argument and what is accepted."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lasthop._errors import ArgumentError

MOST_SEED = 2**63 - 1
"""The greatest seed: a whole number of TOML has 64 bits, with its sign."""
MOST_SEEDS = 1000
"""With how many seeds a case or a point runs at most, as with `--seeds` of the command."""
_MOST_JOBS = 2**16
_SHOWN = 80


def refused(name: str, value: object, accepted: str) -> ArgumentError:
    """The error about an argument."""
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = f"a {type(value).__name__}"
    return ArgumentError(f"{name}={shown}; accepted: {accepted}")


def whole(name: str, value: Any, least: int, greatest: int, none: str | None = None) -> int:
    """A whole number of this range, of Python or NumPy; `none` says what `None` stands for where that is accepted."""
    accepted = f"a whole number from {least} to {greatest}" + (f", or None ({none})" if none else "")
    if _is_flag(value):
        raise refused(name, value, accepted)
    try:
        number = operator.index(value)
    except TypeError as error:
        raise refused(name, value, accepted) from error
    if not least <= number <= greatest:
        raise refused(name, value, accepted)
    return number


def optional(name: str, value: Any, least: int, greatest: int, none: str) -> int | None:
    """The same, or `None`."""
    return None if value is None else whole(name, value, least, greatest, none)


def seed(value: Any) -> int | None:
    """A seed, or `None`."""
    return None if value is None else whole("seed", value, 0, MOST_SEED)


def seeds(value: Any) -> int | list[int]:
    """How many seeds, or which."""
    accepted = f"a whole number from 1 to {MOST_SEEDS}, or a list of seeds from 0 to {MOST_SEED}"
    if isinstance(value, str | bytes | Mapping) or _is_flag(value):
        raise refused("seeds", value, accepted)
    if not isinstance(value, Iterable):
        try:
            return whole("seeds", value, 1, MOST_SEEDS)
        except ArgumentError as error:
            raise refused("seeds", value, accepted) from error
    which = list(value)
    if not which:
        raise refused("seeds", value, accepted)
    numbers = [whole(f"seeds[{place}]", of, 0, MOST_SEED) for place, of in enumerate(which)]
    if len(set(numbers)) < len(numbers):
        raise refused("seeds", value, "each seed once")
    return numbers


def jobs(value: Any) -> int | None:
    """How many runs at once, or `None`."""
    return optional("jobs", value, 1, _MOST_JOBS, "the number of cores")


def flag(name: str, value: Any) -> bool:
    """`True` or `False`."""
    if not _is_flag(value):
        raise refused(name, value, "True or False")
    return bool(value)


def optional_flag(name: str, value: Any) -> bool | None:
    """The same, or `None`."""
    if value is not None and not _is_flag(value):
        raise refused(name, value, "True, False, or None (in terminals and notebooks)")
    return None if value is None else bool(value)


def number(name: str, value: Any, least: float, greatest: float) -> float:
    """A finite number of this range."""
    accepted = f"a number from {least} to {greatest}"
    if _is_flag(value) or isinstance(value, str | bytes):
        raise refused(name, value, accepted)
    try:
        of = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(name, value, accepted) from error
    if not (math.isfinite(of) and least <= of <= greatest):
        raise refused(name, value, accepted)
    return of


def text(name: str, value: Any) -> str:
    """Text."""
    if not isinstance(value, str):
        raise refused(name, value, "text")
    return value


def path(name: str, value: Any, accepted: str) -> str:
    """The path of a file or a folder."""
    try:
        of = os.fspath(value)
    except TypeError as error:
        raise refused(name, value, accepted) from error
    if not isinstance(of, str) or not of or "\0" in of:
        raise refused(name, value, accepted)
    return of


def store(value: Any) -> Any:
    """Where runs are stored."""
    accepted = "a folder, None (the user's cache), or False (nowhere)"
    if value is None or (_is_flag(value) and not value):
        return None if value is None else False
    if _is_flag(value):
        raise refused("store", value, accepted)
    return path("store", value, accepted)


def table(name: str, value: Any, accepted: str) -> Mapping[str, Any]:
    """A mapping whose keys are text."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(name, value, accepted)
    return value


def overrides(value: Any, name: str = "set") -> Mapping[str, Any]:
    """Keys of a scenario with their values, or `None`."""
    return {} if value is None else table(name, value, 'a dict such as {"path.rtt_ms": 4}')


def called(name: str, value: Any, accepted: str) -> Callable[..., Any]:
    """A function or a class."""
    if not callable(value):
        raise refused(name, value, accepted)
    called: Callable[..., Any] = value
    return called


def instance(name: str, value: Any, of: type[Any] | tuple[type[Any], ...], accepted: str) -> Any:
    """An object of this class."""
    if not isinstance(value, of):
        raise refused(name, value, accepted)
    return value


def pair(name: str, value: Any, greatest: float) -> tuple[float, float]:
    """Two numbers above 0, the lower one first."""
    accepted = f"two numbers above 0 and up to {greatest:g}, the lower one first"
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        raise refused(name, value, accepted)
    try:
        low, high = (number(name, of, 0.0, greatest) for of in value)
    except ArgumentError as error:
        raise refused(name, value, accepted) from error
    if not 0 < low < high:
        raise refused(name, value, accepted)
    return value[0], value[1]


def _is_flag(value: Any) -> bool:
    # NumPy's are called bool or, before 2.0, bool_.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
