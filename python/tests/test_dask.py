"""Comparisons and studies on Dask: the bytes of one process, whatever happens to workers and the scheduler."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, LocalCluster

import lasthop
import lasthop.dask

VARY = {"path.rtt_ms": [4, 64], "hosts.*.policy": ["none", "formula"]}
MODEL = "the model of these tests"
STUDY = """
title = "A search and two cases"
source = "ours"
seeds = 2
measures = ["search.met"]
[scenario]
duration_s = 3
warmup_s = 1
[[scenario.hosts]]
count = 3
[[cases]]
label = "none"
[[cases]]
label = "best"
set.hosts.0.policy = "fixed"
[cases.search]
key = "hosts.0.bound_segments"
from = 1
to = 32
maximise = 'at("aggregate_goodput_mbps")'
conditions = [{ label = "Jain", value = 'at("jain_index")', at_least = 0.9 }]
[[cases]]
label = "most"
set.hosts.0.policy = "fixed"
[cases.search]
key = "hosts.0.bound_segments"
from = 1
to = 32
maximise = 'at("aggregate_goodput_mbps")'
[[vary]]
axis = "path"
key = "path.rtt_ms"
values = [4, 64]
[[claims]]
id = "some"
text = "something gets through"
source = "ours"
value = 'at("aggregate_goodput_mbps", case="none", path=4)'
at_least = 1
"""


def timeless(document: lasthop.Comparison | lasthop.Study) -> str:
    return re.sub(r'"(wall_s|simulated_s_per_wall_s|run_wall_s)": [^,\n]*', "", document.to_json())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with workers as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "ours" / "search.toml"
    path.parent.mkdir()
    path.write_text(STUDY)
    return path


def test_a_comparison_has_the_bytes_of_one_process(client: Client, short: dict[str, Any]) -> None:
    ours = lasthop.dask.compare(short, vary=VARY, seeds=3, client=client)
    assert timeless(ours) == timeless(lasthop.compare(short, vary=VARY, seeds=3))
    cases = {"a": {"path.rtt_ms": 4}, "b": {"path.loss": 0.01}}
    ours = lasthop.dask.compare(short, cases=cases, seeds=[4, 9])
    there = lasthop.compare(short, cases=cases, seeds=[4, 9])
    assert timeless(ours) == timeless(there) and ours.flows.to_dict() == there.flows.to_dict()


def test_a_study_with_a_search_has_the_bytes_of_one_process(client: Client, study: Path) -> None:
    ours, there = lasthop.dask.study(study, client=client), lasthop.study(study)
    assert timeless(ours) == timeless(there) and len(there.points) == 6
    assert ours.runs.to_dict().keys() == there.runs.to_dict().keys()


def test_stored_runs_are_not_done_again(
    client: Client, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasthop.dask, "_model", lambda: MODEL)
    first = lasthop.dask.study(study, client=client, store=tmp_path / "runs")
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    monkeypatch.setattr(client, "submit", None)
    again = lasthop.dask.study(study, client=client, store=tmp_path / "runs")
    assert again.to_json() == first.to_json() and len(files) > 20
    monkeypatch.setattr(lasthop.dask, "_model", lambda: None)
    with pytest.warns(RuntimeWarning, match="no run is stored"), pytest.raises(TypeError):
        lasthop.dask.study(study, client=client, store=tmp_path / "runs")


def test_the_users_store_is_tidied_at_the_end(
    client: Client, short: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasthop.dask, "_model", lambda: MODEL)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # What a killed process was writing goes when the store is brought below its limit.
    abandoned = tmp_path / "lasthop/runs/tmp/abandoned"
    abandoned.parent.mkdir(parents=True)
    abandoned.touch()
    os.utime(abandoned, (0, 0))
    lasthop.dask.compare(short, client=client, store=None)
    assert not abandoned.exists() and len(list(tmp_path.glob("lasthop/runs/??/*"))) == 1


def test_only_the_errors_of_dask_are_a_lost_scheduler(
    client: Client, short: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def broken(*_: Any) -> Iterator[Any]:
        def update(_: int) -> None:
            raise BrokenPipeError("nobody reads the bar")

        yield update

    monkeypatch.setattr(lasthop.dask, "bar", broken)
    with pytest.raises(BrokenPipeError):
        lasthop.dask.compare(short, client=client)


def test_a_worker_killed_in_the_middle_changes_nothing(short: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    there = lasthop.compare(short, vary=VARY, seeds=30)
    # Tasks of some runs, so that there are many of them.
    monkeypatch.setattr(lasthop.dask, "_TASK_S", 0.02)
    workers = LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None)
    with workers as cluster, Client(cluster) as client:
        victims = list(client.run(os.getpid).values())[:2]
        take = lasthop.dask._Tasks._take
        killed: list[int] = []

        def take_and_kill(tasks: Any, done: Any) -> None:
            take(tasks, done)
            if not killed and tasks._plan.finished > tasks._plan.total / 3:
                killed.append(tasks._plan.finished)
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)

        monkeypatch.setattr(lasthop.dask._Tasks, "_take", take_and_kill)
        ours = lasthop.dask.compare(short, vary=VARY, seeds=30, client=client)
        assert killed and killed[0] < 80 and timeless(ours) == timeless(there)
        assert not set(victims) & set(client.run(os.getpid, on_error="ignore").values())


def test_a_mistake_and_a_batch_that_fails_end_a_call(
    client: Client, short: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(lasthop.ScenarioError, match=r"hosts\[0\].cout"):
        lasthop.dask.compare(short, vary={"hosts.0.cout": [1]}, client=client)
    with pytest.raises(ValueError, match="accepted: a whole number from 1"):
        lasthop.dask.compare(short, seeds=0, client=client)
    submit = client.submit
    monkeypatch.setattr(client, "submit", lambda _, *given, **how: submit(_fails, **how))
    with pytest.raises(RuntimeError, match=r"failed 3 times.*no space"):
        lasthop.dask.compare(short, client=client, retries=2)
    monkeypatch.setattr(client, "submit", submit)
    monkeypatch.setattr(lasthop.dask, "_build", lambda: "another")
    with pytest.raises(RuntimeError, match="accepted: another"):
        lasthop.dask.compare(short, client=client)


def _fails() -> None:
    raise OSError("no space")


def test_an_interrupt_cancels_what_waits(client: Client) -> None:
    long = {"duration_s": 400, "warmup_s": 1, "sample_ms": 1000, "hosts": [{"count": 4}]}

    def interrupt() -> None:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        lasthop.dask.compare(long, seeds=200, client=client)
    interrupting.join()
    waiting_until = time.monotonic() + 60
    while any(client.processing().values()) and time.monotonic() < waiting_until:
        time.sleep(0.05)
    assert not any(client.processing().values())


def test_a_bar_shows_how_far_the_runs_are(
    client: Client, short: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    lasthop.dask.compare(short, seeds=3, client=client, progress=True)
    assert "3.0/3" in (shown := capsys.readouterr().err) or "3/3" in shown


@pytest.fixture
def start() -> Iterator[Any]:
    """Starts a program of distributed, as `dask scheduler` and `dask worker` do, and ends it after the test."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments]
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_until_heard(port: int) -> None:
    """A busy machine takes long to start a scheduler."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)


def test_after_a_restart_of_the_scheduler_the_same_call_goes_on(
    start: Any, short: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lasthop.dask, "_model", lambda: MODEL)
    monkeypatch.setattr(lasthop.dask, "_TASK_S", 0.02)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    start(*worker)
    start(*worker)
    take = lasthop.dask._Tasks._take
    taken: list[int] = []

    def take_and_kill(tasks: Any, done: Any) -> None:
        take(tasks, done)
        taken.append(tasks._plan.finished)
        if scheduler.poll() is None and taken[-1] > tasks._plan.total / 3:
            scheduler.kill()
            scheduler.wait()

    monkeypatch.setattr(lasthop.dask._Tasks, "_take", take_and_kill)
    store = tmp_path / "runs"
    # Dask waits so long for a scheduler that is gone.
    impatient = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    lost = pytest.raises(lasthop.dask.SchedulerLost, match=f"is in {store}")
    wait_until_heard(port)
    with Client(address, timeout=30) as client, impatient, lost:
        lasthop.dask.compare(short, vary=VARY, seeds=30, client=client, store=store)
    before = taken[-1]
    assert 40 <= before < 120
    start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    start(*worker)
    wait_until_heard(port)
    with Client(address, timeout=30) as client:
        ours = lasthop.dask.compare(short, vary=VARY, seeds=30, client=client, store=store)
    assert timeless(ours) == timeless(lasthop.compare(short, vary=VARY, seeds=30))
    # What had come back was not done again.
    assert taken[taken.index(before) + 1] > before
