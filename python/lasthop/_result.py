"""What runs give: the keys of the command's result files as attributes, and tables."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from lasthop._lasthop import Outcome, Table
from lasthop._record import Record, unknown, wrapped


class _Document:
    """A result file of the command: its keys are attributes."""

    # What the format leaves out where there is nothing.
    _absent: ClassVar[dict[str, Any]] = {}

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._read: dict[str, Any] | None = None

    @property
    def _values(self) -> dict[str, Any]:
        if self._read is None:
            self._read = json.loads(self._outcome.to_json())
        return self._read

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values:
            return wrapped(self._values[name])
        if name in self._absent:
            return self._absent[name]
        raise AttributeError(unknown("key", name, dir(self)))

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in super().__dir__() if name[0] != "_"), *self._values, *self._absent})

    def __repr__(self) -> str:
        return self._outcome.to_text()

    def to_dict(self) -> dict[str, Any]:
        """The whole file as nested dicts and lists; of a run with the list `flows`, which is a table as an attribute."""
        return dict(self._values)

    def to_json(self) -> str:
        """The text of the command's file, byte for byte but for the wall-clock times."""
        return self._outcome.to_json()

    @property
    def runs(self) -> Table:
        """One row a run: case, seed, settings, and every number of its `result.json` that is in no list."""
        return self._of_runs().runs

    @property
    def flows(self) -> Table:
        """One row a connection and run: host, name, kind, and its numbers (goodput in Mb/s, RTT in ms)."""
        return self._of_runs().flows

    @property
    def hosts(self) -> Table:
        """One row a host and run: goodput in Mb/s over its connections, PHY rates in Mb/s, its agent's counts."""
        return self._of_runs().hosts

    @property
    def series(self) -> Table:
        """One row a connection and sample: window in segments, RTT in ms, goodput in Mb/s."""
        return self._with_series().series

    @property
    def queues(self) -> Table:
        """One row a queue and sample: packets that wait there."""
        return self._with_series().queues

    def _of_runs(self) -> Outcome:
        if not self._outcome.has_runs:
            raise ValueError("a study's folder has no runs: run it with lasthop.study(), or see .summary")
        return self._outcome

    def _with_series(self) -> Outcome:
        if not self._outcome.has_series:
            raise ValueError("no series were kept: give series=True to lasthop.simulate() or lasthop.compare()")
        return self._outcome


class Result(_Document):
    """One run. Its attributes are the keys of `result.json` (docs/guide/result-json.md), and tables.

    `flows` is a table; the list of the file is `to_dict()["flows"]`.

    >>> import lasthop
    >>> r = lasthop.simulate({"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 2}]})
    >>> r.seed, r.starved_flows, len(r.flows), r.messages
    (1, 0, 2, None)
    >>> r.rtt_ms.min < r.rtt_ms.p95
    True
    """

    _absent: ClassVar[dict[str, Any]] = {
        "convergence": [],
        "datagrams": None,
        "invalid_kinds": [],
        "kernel_release": None,
        "lateness_us": None,
        "links": [],
        "machine_turnaround_us": None,
        "messages": None,
        "notes": [],
        "pings": None,
        "transfers": None,
        "videos": None,
    }

    schema_version: int
    """The version of the format."""
    scenario: Record
    """The whole scenario, defaults filled in."""
    hosts_kind: str
    """"simulated" or "kernel"."""
    seed: int
    """The seed of every random draw."""
    version: str
    """The version of lasthop."""
    commit: str | None
    """Its commit, if known."""
    dirty: bool
    """Whether the work tree had changes on top of the commit."""
    duration_s: float
    """Length of the run in seconds, the warm-up included."""
    warmup_s: float
    """Seconds excluded from every figure."""
    aggregate_goodput_mbps: float
    """Goodput in Mb/s, summed over all connections."""
    fairness_flows: int
    """Connections that always had data to send; Jain's index and starved flows cover these."""
    jain_index: float | None
    """Jain's index of their goodputs, 0 to 1."""
    starved_flows: int
    """How many have less than 5 % of their fair share."""
    rtt_ms: Record | None
    """Smoothed RTT in ms: `min`, `mean`, `p50`, `p95`, `p99`, `max`."""
    messages: Record | None
    """The messages of interactive connections: `delivered`, `undelivered`, `took_ms`."""
    transfers: Record | None
    """The same of transfers."""
    pings: Record | None
    """The round trips of pings: `sent`, `received`, `lost`, `lost_share`, `round_trip_ms`, `jitter_ms`."""
    datagrams: Record | None
    """The same of datagrams at a constant rate, with `one_way_ms`."""
    videos: Record | None
    """What viewers of videos saw: `chunks`, `mean_bit_rate_mbps`, `switches`, `stalls`, `stalled_s`, `startup_s`."""
    utilization: float
    """Share of the time in which the medium or link is busy, 0 to 1."""
    access: Record
    """Totals of the shared last hop: drops, queue in packets, collisions, `air_shares`, `stations`."""
    links: list[Record]
    """Each direction of each link of `[[links]]`."""
    convergence: list[Record]
    """How soon shares were equal after each change, in seconds."""
    policies: Record
    """The agents' totals."""
    kernel_release: str | None
    """The kernel's release; kernel hosts only."""
    wall_s: float
    """Seconds that the run took."""
    events: int
    """Events of the network model and timers."""
    simulated_s_per_wall_s: float
    """Seconds of the run per second of the wall clock."""
    lateness_us: Record | None
    """Lateness of packets in microseconds; kernel hosts only."""
    machine_turnaround_us: Record | None
    """This machine's part of its hosts' turnaround in microseconds; kernel hosts only."""
    valid: bool
    """False if something could have changed the result."""
    invalid_reasons: list[str]
    """Why, in words."""
    invalid_kinds: list[str]
    """The kinds of these reasons."""
    notes: list[str]
    """Further remarks, in words."""


class Comparison(_Document):
    """Several runs. Its attributes are the keys of `comparison.json`, and tables over all cases and seeds.

    >>> import lasthop
    >>> c = lasthop.compare({"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 2}]}, vary={"path.rtt_ms": [4, 64]})
    >>> [case.label for case in c.cases]
    ['rtt_ms=4', 'rtt_ms=64']
    >>> c.runs["path.rtt_ms"]
    [4, 64]
    """

    schema_version: int
    """The version of the format."""
    scenario: Record
    """The scenario without the varied keys."""
    hosts_kind: str
    """"simulated" or "kernel"."""
    version: str
    """The version of lasthop."""
    commit: str | None
    """Its commit, if known."""
    dirty: bool
    """Whether the work tree had changes on top of the commit."""
    varied: list[Record]
    """The varied keys, each with its values as typed; the last changes fastest."""
    seeds: list[int]
    """The seeds of each case."""
    cases: list[Record]
    """Each case: `label`, `settings`, `summary` (mean, min, max over its runs), `runs`."""
    valid: bool
    """Whether every run is valid."""

    @property
    def summary(self) -> Table:
        """One row a case and measure: mean, min, max over the seeds, and the 95 % confidence interval of the mean."""
        return self._outcome.summary


class Study(_Document):
    """A study: its attributes are the keys of `study.json` (docs/guide/study-result.md), and tables over all points."""

    _absent: ClassVar[dict[str, Any]] = {"invalid_kinds": [], "note": None, "repeated_runs": 0}

    schema_version: int
    """The version of the format."""
    name: str
    """The folder and the file without its ending: `hayakawa/fig-06`."""
    title: str
    """Its subject, in one line."""
    source: str
    """The paper and figure."""
    note: str | None
    """Notes for the reader."""
    study: str
    """The text of its file."""
    scenario: Record
    """The scenario of every run, before anything varies."""
    hosts_kind: str
    """"simulated" or "kernel"."""
    version: str
    """The version of lasthop."""
    commit: str | None
    """Its commit, if known."""
    dirty: bool
    """Whether the work tree had changes on top of the commit."""
    seeds: list[int]
    """The seeds of each point."""
    axes: list[Record]
    """The axes with their values, the cases first."""
    points: list[Record]
    """Every point with its measures."""
    figures: list[Record]
    """The figures' lines."""
    claims: list[Record]
    """Each claim with its verdict."""
    passed: bool
    """Whether every claim could be judged, and every required one holds."""
    valid: bool
    """Whether every run is valid."""
    invalid_reasons: list[str]
    """Why not, in words."""
    invalid_kinds: list[str]
    """The kinds of these reasons."""
    repeated_runs: int
    """Runs repeated because the machine was busy; kernel hosts only."""
    simulated_s: float
    """Seconds of all runs on the scenario's clock."""
    run_wall_s: float
    """Seconds that the runs took, summed over all cores."""

    @property
    def summary(self) -> Table:
        """One row a point and measure of the study: mean, min, max, and the 95 % confidence interval of the mean."""
        return self._outcome.summary
