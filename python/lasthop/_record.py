"""JSON with attributes."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from lasthop._errors import ArgumentError


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
        if not isinstance(values, dict):
            raise ArgumentError(f"values: a {type(values).__name__}; accepted: a dict")
        self._values = values

    if not TYPE_CHECKING:
        # Type checkers know the attributes of the classes in `lasthop.types`, and refuse others.
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            hints = _hints(type(self))
            if name in self._values:
                return wrapped(self._values[name], _record_in(hints.get(name)))
            if name in hints:
                return _nothing(hints[name])
            raise AttributeError(unknown("key", name, self._values))

    def __getitem__(self, name: str) -> Any:
        return wrapped(self._values[name], _record_in(_hints(type(self)).get(name)))

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
        return f"{type(self).__name__}({', '.join(f'{key}={self[key]!r}' for key in self._values)})"

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts and lists."""
        return self._values


class Keys(Record):
    """A record of keys that are not known here, such as those of a scenario: any may be an attribute."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(of: type[Any]) -> dict[str, Any]:
    """The attributes that a class declares, with their types."""
    if of not in _HINTS:
        # Results say that they are of the package itself, where these names are not.
        names = {**vars(sys.modules[of.__module__]), **vars(sys.modules["lasthop.types"]), "Any": Any}
        _HINTS[of] = {name: hint for name, hint in get_type_hints(of, names).items() if not name.startswith("_")}
    return _HINTS[of]


def _record_in(hint: Any) -> type[Record]:
    """The class of the records in a type: of `list[Link]` and of `Link | None` it is `Link`."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint
    return next((of for of in map(_record_in, get_args(hint)) if of is not Record), Record)


def _nothing(hint: Any) -> Any:
    """What the format leaves out: an empty list, 0, or `None`."""
    return [] if getattr(hint, "__origin__", hint) is list else 0 if hint is int else None


def wrapped(value: Any, of: type[Record] = Record) -> Any:
    """A value of JSON; dicts become records of this class."""
    if isinstance(value, dict):
        return of(value)
    if isinstance(value, list):
        return [wrapped(item, of) for item in value]
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """The reverse, also of other mappings."""
    if isinstance(value, Record):
        return value.to_dict()
    if depth > _MOST_DEPTH:
        raise ArgumentError(f"a value is nested deeper than {_MOST_DEPTH} times; accepted: the keys of a scenario")
    if isinstance(value, Mapping):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return value


_MOST_DEPTH = 64
"""No key of a scenario is nested as deep."""


def unknown(what: str, name: str, known: Any) -> str:
    """The message about a name that is not there."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"there is no {what} {name}" + (f"; did you mean {near[0]}?" if near else f"; accepted: {', '.join(known)}")
