"""Threads, signals, memory, progress."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lasthop

ROOT = Path(__file__).parents[2]
LONG = {"duration_s": 3000, "warmup_s": 1, "sample_ms": 1000, "hosts": [{"count": 20}]}


@pytest.mark.parametrize(
    "call",
    ["lasthop.simulate(LONG)", "lasthop.compare(LONG, seeds=4)", "lasthop.compare(LONG, policy=Endless, seeds=4)"],
)
def test_an_interrupt_ends_a_run_and_leaves_no_thread(call: str) -> None:
    program = f"""
import lasthop, os, signal, threading, time
LONG = {LONG!r}
class Endless:
    def __init__(self, hello): ...
    def decide(self, observation):
        while True:
            pass
at = []
def interrupt():
    time.sleep(0.5)
    at.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
beside = threading.Thread(target=interrupt)
beside.start()
try:
    {call}
except KeyboardInterrupt:
    took = time.monotonic() - at[0]
    beside.join()
    # A thread that has ended is in the list for a moment.
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < at[0] + 10:
        time.sleep(0.01)
    print(took, len(os.listdir("/proc/self/task")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=_environment(), timeout=120
    )
    took, threads = done.stdout.split()
    # A second by itself; this machine may be busy with other tests.
    assert float(took) < 10 and threads == "1", done.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_other_threads_of_python_go_on_during_a_run(short: dict[str, Any]) -> None:
    counted, stop = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    beside = threading.Thread(target=count)
    beside.start()
    lasthop.compare(short, seeds=10)
    stop.set()
    beside.join()
    assert counted > 3


def test_runs_at_once_from_several_threads_are_the_same(short: dict[str, Any]) -> None:
    results: list[float] = []
    threads = [
        threading.Thread(target=lambda: results.append(lasthop.simulate(short).aggregate_goodput_mbps))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1 and len(results) == 4


def test_results_do_not_depend_on_the_number_of_jobs(short: dict[str, Any]) -> None:
    one, three = (lasthop.compare(short, vary={"path.rtt_ms": [4, 8]}, seeds=3, jobs=jobs) for jobs in (1, 3))
    assert one.flows.to_dict() == three.flows.to_dict() and one.summary.to_dict() == three.summary.to_dict()


def test_memory_stays_flat_over_many_runs(short: dict[str, Any]) -> None:
    def resident_kib() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() // 1024

    def runs(number: int) -> None:
        for seed in range(1, number):
            result = lasthop.simulate(short, seed=seed, set={"duration_s": 1.2})
            len(result.series["t_s"]), len(result.flows["goodput_mbps"]), result.rtt_ms

    runs(40)
    before = resident_kib()
    runs(200)
    assert resident_kib() - before < 8 * 1024


def test_a_bar_shows_how_far_the_runs_are(short: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    lasthop.compare(short, seeds=3, progress=True)
    assert "3.0/3" in (shown := capsys.readouterr().err) or "3/3" in shown
    lasthop.simulate(short, progress=True)
    assert "3.0/3.0" in capsys.readouterr().err
    lasthop.simulate(short)
    assert capsys.readouterr().err == ""


def test_a_handler_of_a_signal_that_does_not_raise_ends_nothing(short: dict[str, Any]) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        lasthop.compare(short, seeds=20)
    finally:
        timer.join()
        time.sleep(0.1)
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


def test_a_law_that_divides_by_zero_is_an_error_and_python_goes_on(tmp_path: Path) -> None:
    westwood = ROOT / "scenarios" / "own-law" / "westwood.h"
    text = westwood.read_text()
    line = "\tlh_reno_grow(acked, window);"
    assert line in text
    later = "\tif (acked->now_us > 1000000)\n\t\twindow->cwnd_count = 1 / (acked->flags >> 31);\n"
    (tmp_path / "mine.h").write_text(text.replace(line, later + line))
    scenario = tmp_path / "mine.toml"
    scenario.write_text('duration_s = 20\n[[hosts]]\ncongestion_control = "./mine.h"\n')
    with pytest.raises(lasthop.ScenarioError, match=r"mine\.h:\d+: a law divides by zero"):
        lasthop.simulate(scenario)


def test_a_dict_may_name_the_header_of_a_law(short: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "scenarios" / "own-law"
    hosts = [{"congestion_control": str(folder / "westwood.h")}]
    by_path = lasthop.simulate({**short, "hosts": hosts})
    monkeypatch.chdir(folder)
    here = lasthop.simulate({**short, "hosts": [{}]}, set={"hosts.0.congestion_control": "./westwood.h"})
    assert by_path.flows.to_dict()["goodput_mbps"] == here.flows.to_dict()["goodput_mbps"]
    assert by_path.flows.to_dict() != lasthop.simulate({**short, "hosts": [{}]}).flows.to_dict()
