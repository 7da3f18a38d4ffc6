"""What runs give: the keys of the command's result files as attributes, and tables."""

from __future__ import annotations

import copyreg
import json
from typing import TYPE_CHECKING, Any

from lasthop import _lasthop
from lasthop._errors import ArgumentError
from lasthop._lasthop import Outcome, Table
from lasthop._record import Keys, _hints, _nothing, _record_in, unknown, wrapped
from lasthop.types import (
    Access,
    AccessPoint,
    Axis,
    Case,
    Claim,
    Convergence,
    Datagrams,
    Deliveries,
    Distribution,
    Figure,
    Lateness,
    Link,
    Node,
    Point,
    Policies,
    Roam,
    Slowdown,
    Varied,
    Videos,
)


def _outcome_again(data: bytes) -> Outcome:
    return _lasthop.outcome_of_bytes(data)


def _table_again(outcome: Outcome, name: str) -> Table:
    table: Table = getattr(outcome, name)
    return table


# The whole document goes with each, as text that zstd has compressed.
copyreg.pickle(Outcome, lambda outcome: (_outcome_again, (outcome.to_bytes(),)))
copyreg.pickle(Table, lambda table: (_table_again, (table._outcome(), table._name())))


class _Document:
    """A result file of the command: its keys are attributes. It can be pickled, with its series."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._read: dict[str, Any] | None = None

    @property
    def _values(self) -> dict[str, Any]:
        if self._read is None:
            self._read = json.loads(self._outcome.to_json())
        return self._read

    if not TYPE_CHECKING:
        # Type checkers know the attributes below, and refuse others.
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            hints = _hints(type(self))
            if name in self._values:
                return wrapped(self._values[name], _record_in(hints.get(name)))
            # What the format leaves out where there is nothing.
            if name in hints:
                return _nothing(hints[name])
            raise AttributeError(unknown("key", name, dir(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._outcome,)

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in super().__dir__() if name[0] != "_"), *self._values, *_hints(type(self))})

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

    @property
    def completions(self) -> Table:
        """One row a transfer: start and completion time in s, bytes, slowdown; `None` where it was not complete."""
        return self._with_series().completions

    def _of_runs(self) -> Outcome:
        if not self._outcome.has_runs:
            raise ArgumentError("a study's folder has no runs: run it with lasthop.study(), or see .summary")
        return self._outcome

    def _with_series(self) -> Outcome:
        if not self._outcome.has_series:
            raise ArgumentError("no series were kept: give series=True to lasthop.simulate() or lasthop.compare()")
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

    schema_version: int
    """The version of the format."""
    scenario: Keys
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
    rtt_ms: Distribution | None
    """Smoothed RTT in ms over samples in time: `min`, `mean`, `p50`, `p95`, `p99`, `max`."""
    rtt_per_ack_ms: Distribution | None
    """RTT in ms over all ACKs, not smoothed; `None` on kernel hosts and with QUIC."""
    messages: Deliveries | None
    """The messages of interactive connections: `delivered`, `undelivered`, `took_ms`."""
    transfers: Deliveries | None
    """The same of transfers, with `slowdown`."""
    slowdowns: list[Slowdown]
    """The slowdowns of transfers by size."""
    pings: Datagrams | None
    """The round trips of pings: `sent`, `received`, `lost`, `lost_share`, `round_trip_ms`, `jitter_ms`."""
    datagrams: Datagrams | None
    """The same of datagrams at a constant rate, with `one_way_ms`."""
    videos: Videos | None
    """What viewers of videos saw: `chunks`, `mean_bit_rate_mbps`, `switches`, `stalls`, `stalled_s`, `startup_s`."""
    utilization: float
    """Share of the time in which the medium or link is busy, 0 to 1."""
    access: Access
    """Totals of the shared last hop: drops, queue in packets, collisions, `air_shares`, `stations`."""
    cells: list[AccessPoint]
    """Each access point of several, or where not all hear all."""
    nodes: list[Node]
    """Who hears whom there."""
    roams: list[Roam]
    """Each time that a host goes to another access point."""
    links: list[Link]
    """Each direction of each link of `[[links]]`."""
    convergence: list[Convergence]
    """How soon shares were equal after each change, in seconds."""
    policies: Policies
    """The agents' totals."""
    kernel_release: str | None
    """The kernel's release; kernel hosts only."""
    clock: str | None
    """The clock of kernel hosts: real or virtual."""
    kernel: str | None
    """The name of the kernel in an emulated machine; clock virtual only."""
    kernel_digest: str | None
    """The beginning of a digest of that kernel's image and modules; clock virtual only."""
    emulator: str | None
    """What emulated that machine; clock virtual only."""
    wifi: str | None
    """Whose Wi-Fi carried the last hop, if not the model's alone: mac80211."""
    queue: str | None
    """Whose the access point's downlink queue was, if not the model's: linux."""
    wall_s: float
    """Seconds that the run took."""
    events: int
    """Events of the network model and timers."""
    simulated_s_per_wall_s: float
    """Seconds of the run per second of the wall clock."""
    lateness_us: Lateness | None
    """Lateness of packets in microseconds; kernel hosts only."""
    machine_turnaround_us: Lateness | None
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
    scenario: Keys
    """The scenario without the varied keys."""
    written: Keys | None
    """Its keys as they were set, without defaults; `None` in files without it."""
    hosts_kind: str
    """"simulated" or "kernel"."""
    version: str
    """The version of lasthop."""
    commit: str | None
    """Its commit, if known."""
    dirty: bool
    """Whether the work tree had changes on top of the commit."""
    varied: list[Varied]
    """The varied keys, each with its values as typed; the last changes fastest."""
    seeds: list[int]
    """The seeds of each case."""
    cases: list[Case]
    """Each case: `label`, `settings`, `summary` (mean, deviation, ci95, ... over its runs), `runs`."""
    valid: bool
    """Whether every run is valid."""

    @property
    def summary(self) -> Table:
        """One row a case and measure: mean, min, max, deviation over the seeds, and the 95 % interval of the mean."""
        return self._outcome.summary


class Study(_Document):
    """A study: its attributes are the keys of `study.json` (docs/guide/study.md), and tables over all points."""

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
    file: str | None
    """The path of the study's own file, where it is none of `lasthop study list`."""
    set: list[str] | None
    """What was set from outside, as `--set` takes it."""
    scenario: Keys
    """The scenario of every run, before anything varies."""
    hosts_kind: str
    """"simulated" or "kernel"."""
    hosts_option: str | None
    """What `--hosts` has to say for the same runs; `None` if the study says it itself."""
    version: str
    """The version of lasthop."""
    commit: str | None
    """Its commit, if known."""
    dirty: bool
    """Whether the work tree had changes on top of the commit."""
    seeds: list[int]
    """The seeds of each point."""
    axes: list[Axis]
    """The axes with their values, the cases first."""
    points: list[Point]
    """Every point with its measures."""
    figures: list[Figure]
    """The figures' lines."""
    claims: list[Claim]
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
    scenarios: int | None
    """The number of drawn scenarios; `None` if nothing is drawn."""
    simulated_s: float
    """Seconds of all runs on the scenario's clock."""
    run_wall_s: float
    """Seconds that the runs took, summed over all cores."""

    @property
    def summary(self) -> Table:
        """One row a point and measure of the study: mean, min, max, deviation, and the 95 % interval of the mean."""
        return self._outcome.summary
