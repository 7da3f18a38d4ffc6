"""Attributes of results have types: a misspelt one fails mypy, and the types are those of what there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import lasthop
import lasthop.types
from lasthop import Record
from lasthop._record import Keys, _hints

ROOT = Path(__file__).parent.parent

SNIPPET = """
import lasthop

r = lasthop.simulate({"hosts": [{}]})
goodput: float = r.aggregate_goodput_mbps
assert r.rtt_ms is not None and r.rtt_per_ack_ms is not None
p95: float = r.rtt_ms.p95 + r.rtt_per_ack_ms.p95
drops: int = r.access.stations[0].up_retries + r.policies.hosts[0].bounds_changed
anything = r.scenario.path.rtt_ms
c = lasthop.compare({"hosts": [{}]}, seeds=2)
jain = c.cases[0].summary.jain_index
assert jain is not None and jain.ci95 is not None
low: float = jain.ci95.low
flow: float = c.cases[0].runs[0].flows[0].goodput_mbps
s = lasthop.study("hayakawa/fig-06")
mean: float | None = s.points[0].measures[0].mean
"""

MISSPELT = [
    "r.agregate_goodput",
    "r.rtt_ms.p59",
    "r.access.colisions",
    "r.access.stations[0].up_retry",
    "r.policies.hosts[0].bounds",
    "c.case",
    "c.cases[0].summary.jain",
    "c.cases[0].runs[0].flows[0].goodput",
    "s.claims[0].verdikt",
    "s.points[0].measures[0].median",
    "jain.ci95.lower",
]


def test_a_misspelt_attribute_fails_mypy(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET + "".join(f"{line}\n" for line in MISSPELT))
    cache = Path(os.environ.get("XDG_CACHE_HOME", tmp_path)) / "mypy-of-snippets"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(file)]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    first = SNIPPET.count("\n") + 1
    wrong = {int(line.split(":")[1]) for line in errors if "snippet.py" in line}
    assert wrong == set(range(first, first + len(MISSPELT))), done.stdout + done.stderr


def undeclared(value: Any, of: type[Record], place: str) -> list[str]:
    """The keys of a record that its class does not declare, and all of those inside."""
    hints = _hints(of)
    found = []
    for key in value:
        if key not in hints:
            found.append(f"{place}.{key}")
            continue
        inside = record_in(hints[key])
        for item in value[key] if isinstance(value[key], list) else [value[key]]:
            if isinstance(item, Record) and inside is not Keys:
                found += undeclared(item, inside, f"{place}.{key}")
    return found


def record_in(hint: Any) -> type[Record]:
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint
    return next((of for of in map(record_in, get_args(hint)) if of is not Record), Record)


def test_types_declare_all_keys_that_there_are() -> None:
    kinds = ["bulk", "on-off", "interactive", "ping", "constant", "video", "quic"]
    flows = [{"kind": kind} for kind in kinds] + [{"kind": "transfers", "transfer_kib": 20}, {"start_s": 4}]
    hosts = [{"count": 2, "policy": "lasthop", "flows": flows}]
    for access in ({}, {"standard": "802.11n"}, {"kind": "wired", "rate_mbps": 20}):
        keys = {"duration_s": 12, "warmup_s": 2, "access": access, "hosts": hosts}
        comparison = lasthop.compare(keys, seeds=2, store=False)
        case = comparison.cases[0]
        assert undeclared(case, lasthop.types.Case, "case") == []
        run = case.runs[0]
        assert set(run) <= set(_hints(lasthop.Result)) | {"flows"}
        assert run.transfers is not None and run.transfers.delivered == case.runs[0]["transfers"]["delivered"]
    study = lasthop.study(
        "hayakawa/fig-06", studies=ROOT.parent / "studies", seeds=2, set={"duration_s": 3, "warmup_s": 1}
    )
    assert set(study.to_dict()) <= set(_hints(lasthop.Study))
    places: list[tuple[list[Any], type[Record]]] = [
        (study.points, lasthop.types.Point),
        (study.claims, lasthop.types.Claim),
        (study.figures, lasthop.types.Figure),
        (study.axes, lasthop.types.Axis),
    ]
    for items, of in places:
        assert items and [name for item in items for name in undeclared(item, of, of.__name__)] == []


def test_what_the_format_leaves_out_is_none_or_nothing() -> None:
    r = lasthop.simulate({"duration_s": 2, "warmup_s": 1, "hosts": [{}]})
    assert (r.messages, r.links, r.kernel_release) == (None, [], None)
    assert isinstance(r.rtt_ms, lasthop.types.Distribution)
    flow = lasthop.compare({"duration_s": 2, "warmup_s": 1, "hosts": [{}]}, store=False).cases[0].runs[0].flows[0]
    assert (flow.message_ms, flow.messages) == (None, 0)
    with pytest.raises(AttributeError, match="did you mean goodput_mbps"):
        flow.goodput_mbp  # type: ignore[attr-defined]
