"""JSON with attributes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any


class Record:
    """A table of a result. Its keys are attributes, and items: `r.rtt_ms.p95` is `r.rtt_ms["p95"]`.

    >>> record = Record({"rtt_ms": {"p95": 4.5}, "stations": [{"host": 0}]})
    >>> record.rtt_ms.p95, record.stations[0].host
    (4.5, 0)
    >>> record
    Record(rtt_ms=Record(p95=4.5), stations=[Record(host=0)])
    """

    __slots__ = ("_values",)
    _values: dict[str, Any]

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            raise AttributeError(unknown("key", name, self._values))
        return wrapped(self._values[name])

    def __getitem__(self, name: str) -> Any:
        return wrapped(self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._values == other._values

    def __hash__(self) -> int:
        return hash(repr(self._values))

    def __getstate__(self) -> dict[str, Any]:
        return self._values

    def __setstate__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{key}={wrapped(value)!r}' for key, value in self._values.items())})"

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts and lists."""
        return self._values


def wrapped(value: Any) -> Any:
    """A value of JSON; dicts become records."""
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """The reverse, also of other mappings."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def unknown(what: str, name: str, known: Any) -> str:
    """The message about a name that is not there."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"there is no {what} {name}" + (f"; did you mean {near[0]}?" if near else f"; accepted: {', '.join(known)}")
