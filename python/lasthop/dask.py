"""Comparisons and studies on a Dask cluster: the results of one machine, from many.

    import lasthop.dask
    from distributed import Client

    with Client("tcp://scheduler:8786") as client:
        grid = lasthop.dask.study("lasthop/grid", client=client, store="runs")

Runs are planned here, and their results come back here: workers need lasthop of the same build, and no common files.
They get batches of runs that take them about a second. What a lost worker had is done again by others. A run is
determined by its scenario and seed, so the result is that of `lasthop.compare` and `lasthop.study`, whatever happens to
workers.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lasthop import _arguments, _lasthop
from lasthop._errors import ArgumentError, ScenarioError
from lasthop._progress import bar
from lasthop._record import plain
from lasthop._result import Comparison, Study
from lasthop._run import Store, _chosen, _path_of, _seeds_of_study
from lasthop._scenario import Overrides, ScenarioLike, core_of

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["SchedulerLost", "compare", "study"]

# A task of a second costs a hundredth of it in Dask, and a lost worker loses little.
_TASK_S = 1.0
# On many cores tasks take longer: the scheduler is to have at most this many in a second.
_TASKS_PER_S = 200
# Each thread of a worker has one task under way and one that waits for it.
_TASKS_PER_THREAD = 2
# Scenario seconds in a second of a core, until measured.
_GUESS = 1000.0
# The weight of a new measurement.
_NEW = 0.3
# How often we ask how many threads there are: workers come and go.
_COUNT_EVERY_S = 1.0


class SchedulerLost(RuntimeError):
    """The scheduler has ended, or has started again. What is in the store need not be done again."""


def compare(
    scenario: ScenarioLike,
    *,
    vary: Mapping[str, Iterable[Any]] | None = None,
    cases: Mapping[str, Overrides] | None = None,
    seeds: int | Sequence[int] = 1,
    set: Overrides | None = None,
    client: Client | None = None,
    store: Store = False,
    retries: int = 3,
    progress: bool | None = None,
) -> Comparison:
    """Runs a scenario in several cases on a cluster, as `lasthop.compare` does on all cores. Keeps no series.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        vary: Keys, each with its values; all combinations are run, the last key changes fastest.
        cases: Labels, each with its overrides, instead of `vary`.
        seeds: With how many seeds each case runs, from the scenario's on, or with which, each once.
        set: Keys to change in all cases.
        client: A client of the cluster; by default the current one (`distributed.default_client()`).
        store: A folder of this machine: runs in it are not done again, and each is put into it when it comes back.
            `None` is the user's cache, which is kept below 2 GiB, `False` none.
        retries: How often a batch is tried again when it fails, or has ended several workers in turn.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The comparison, with the bytes of `lasthop.compare` but for the wall-clock times.

    Raises:
        ScenarioError: A case cannot be run; all are checked before the first one starts.
        SchedulerLost: The scheduler has ended, or its connection has. With a store, the same call goes on from what has come back.
        RuntimeError: A worker has another build of lasthop, or a batch failed more often than `retries`.
        ArgumentError: An argument has a wrong type or value, or they contradict each other.
        ValueError: There is no client.
        KeyboardInterrupt: Ctrl-C; batches that wait are cancelled, those that run go to their end on their workers.
    """
    store, retries, progress = _checked(store, retries, progress)
    values, of_cases, chosen, _ = _chosen(vary, cases, seeds)
    core = core_of(scenario, set)
    plan = _lasthop.Plan.of_comparison(core, plain(values), plain(of_cases), chosen, store, _model())
    return Comparison(_run(plan, client, retries, progress))


def study(
    study: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    set: Overrides | None = None,
    studies: str | os.PathLike[str] = "studies",
    client: Client | None = None,
    store: Store = False,
    retries: int = 3,
    progress: bool | None = None,
) -> Study:
    """Runs a study on a cluster, as `lasthop.study` does on all cores.

    A search tries its values one after the other, each with all seeds at once; searches of several points go on side by
    side.

    Args:
        study: Its name, such as `hayakawa/fig-06`, or the path of its file.
        seeds: With how many seeds each point runs; by default the study's own number.
        set: Keys to change in all runs; none that a case, an axis or a search sets.
        studies: The folder of studies, for names.
        client: A client of the cluster; by default the current one.
        store: A folder of this machine: runs in it are not done again, and each is put into it when it comes back.
            `None` is the user's cache, which is kept below 2 GiB, `False` none.
        retries: How often a batch is tried again when it fails, or has ended several workers in turn.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The study, with the bytes of `lasthop.study` but for the wall-clock times.

    Raises:
        ScenarioError: The study cannot be run as written; with file, line and key.
        ArgumentError: As for `compare`; or the study has kernel hosts, which are for the command.
        OSError: There is no such study, or it cannot be read.
        SchedulerLost: As for `compare`; so are `RuntimeError`, `ValueError` and `KeyboardInterrupt`.
    """
    store, retries, progress = _checked(store, retries, progress)
    path, seeds, overrides = _path_of(study, studies), _seeds_of_study(seeds), _arguments.overrides(set)
    plan = _lasthop.Plan.of_study(path, plain(overrides), seeds, store, _model())
    return Study(_run(plan, client, retries, progress))


def _checked(store: Store, retries: int, progress: bool | None) -> tuple[Store, int, bool | None]:
    retries = _arguments.whole("retries", retries, 0, 2**16)
    return _arguments.store(store), retries, _arguments.optional_flag("progress", progress)


class _Batch(NamedTuple):
    numbers: list[int]
    scenarios: list[str]
    seconds: float
    failed: int = 0


class _Done(NamedTuple):
    """What a task gives back."""

    key: str
    build: str
    results: bytes
    took_s: float


def _work(key: str, build: str, scenarios: list[str]) -> _Done:
    """A task: pure, so that it may be done twice."""
    started = time.perf_counter()
    ours = _build()
    # Another build may give other results.
    results = _lasthop.run_batch(scenarios) if ours == build else b""
    return _Done(key, ours, results, time.perf_counter() - started)


@functools.cache
def _build() -> str:
    """What results depend on besides the scenario: the commit and target, or else the very library."""
    library = Path(_lasthop.__file__).read_bytes()
    return _lasthop.model() or f"{_lasthop.VERSION}, library {hashlib.sha256(library).hexdigest()[:16]}"


def _model() -> str | None:
    return _lasthop.model()


def _run(plan: _lasthop.Plan, client: Client | None, retries: int, progress: bool | None) -> _lasthop.Outcome:
    from distributed import default_client

    if client is not None and not hasattr(client, "asynchronous"):
        raise _arguments.refused("client", client, "a client of distributed, or None")
    client = client or default_client()
    if client.asynchronous:
        raise ArgumentError("the client is asynchronous; accepted: one made with asynchronous=False")
    tasks = _Tasks(plan, client, retries)
    try:
        with bar(progress, plan.total, "run") as update:
            while _step(tasks, plan, client):
                if update is not None:
                    update(plan.finished)
    finally:
        tasks.cancel()
    return plan.outcome()


def _step(tasks: _Tasks, plan: _lasthop.Plan, client: Client) -> bool:
    """Submits and waits once. Returns whether anything was out."""
    try:
        if goes_on := tasks.submit():
            tasks.wait()
        return goes_on
    except (OSError, _Dropped) as error:
        # Dask raises an OSError when its connection breaks; nothing else here does.
        kept = f"what has come back is in {plan.store}, and the same call does the rest"
        lost = f"the Dask scheduler {client.scheduler.address if client.scheduler else ''} has dropped the tasks"
        done = f"with {plan.finished} of {plan.total} runs done"
        raise SchedulerLost(f"{lost}, {done}: {kept if plan.store else 'give store= to go on'}") from error


class _Dropped(Exception):
    """A task was cancelled, and not by us."""


class _Tasks:
    """The batches that are out."""

    def __init__(self, plan: _lasthop.Plan, client: Client, retries: int) -> None:
        from distributed import as_completed

        self._plan = plan
        self._client = client
        self._retries = retries
        self._build = _build()
        self._out: dict[str, tuple[Future, _Batch]] = {}
        self._again: list[_Batch] = []
        self._ended = as_completed(loop=client.loop)
        self._speed = _GUESS
        self._threads = 1
        self._counted_at = -math.inf

    def submit(self) -> bool:
        """Keeps all threads busy. Returns whether anything is out."""
        if not self._is_connected():
            raise _Dropped
        if time.monotonic() > self._counted_at + _COUNT_EVERY_S:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._counted_at = time.monotonic()
        slots = _TASKS_PER_THREAD * self._threads
        while len(self._out) < slots:
            # Towards the end tasks become small, so that all threads work until then.
            seconds = min(max(_TASK_S, self._threads / _TASKS_PER_S) * self._speed, self._plan.waiting_s / slots)
            batch = self._again.pop() if self._again else _Batch(*self._plan.take(seconds))
            if not batch.numbers:
                break
            key = f"lasthop-{uuid.uuid4().hex}"
            future = self._client.submit(_work, key, self._build, batch.scenarios, key=key, pure=False)
            self._out[key] = future, batch
            self._ended.add(future)
        return bool(self._out)

    def wait(self) -> None:
        """Takes the results of what has ended, at least of one task."""
        ended = self._ended.next_batch()
        finished = [future for future in ended if future.status == "finished"]
        for done in self._client.gather(finished, errors="skip"):
            self._take(done)
        for future in ended:
            if future.key in self._out:
                self._fail(future)

    def cancel(self) -> None:
        """Cancels what is out. A batch that runs goes to its end."""
        if self._out and self._is_connected():
            with contextlib.suppress(Exception):
                self._client.cancel([future for future, _ in self._out.values()], force=True)

    def _is_connected(self) -> bool:
        """Whether it is worth asking the scheduler: without it, each question waits for half a minute."""
        return bool(self._client.status == "running")

    def _take(self, done: _Done) -> None:
        if done.build != self._build:
            reason = "a worker has another build of lasthop, and may give other results"
            raise RuntimeError(f"{reason}: {done.build}; accepted: {self._build}")
        _, batch = self._out.pop(done.key)
        self._plan.done(batch.numbers, done.results)
        self._speed += _NEW * (batch.seconds / done.took_s - self._speed)

    def _fail(self, future: Future) -> None:
        if future.status == "cancelled":
            raise _Dropped
        if future.status != "error":
            # Its worker was lost after the task had ended: another does it.
            self._ended.add(future)
            return
        error = future.exception()
        if isinstance(error, ScenarioError):
            raise error
        _, batch = self._out.pop(future.key)
        if batch.failed >= self._retries:
            runs = f"{len(batch.numbers)} runs of lasthop"
            raise RuntimeError(
                f"a batch of {runs} failed {batch.failed + 1} times; the last time: {error!r}"
            ) from error
        self._again.append(batch._replace(failed=batch.failed + 1))
