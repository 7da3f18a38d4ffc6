"""Kernel hosts in virtual time, by the command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import lasthop

ONE: dict[str, Any] = {"duration_s": 3, "warmup_s": 1, "hosts": [{}]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"hosts": "real"}, 'hosts=\'real\'; accepted: "simulated" or "kernel"'),
        ({"hosts": "kernel"}, 'clock=None; accepted: "virtual"'),
        ({"hosts": "kernel", "clock": "real"}, "clock='real'; accepted: \"virtual\""),
        ({"clock": "virtual"}, 'accepted with clock or kernel: "kernel"'),
        ({"kernel": "debian-6.12"}, 'accepted with clock or kernel: "kernel"'),
        ({"hosts": "kernel", "clock": "virtual", "store": None}, "neither policy nor store"),
        ({"hosts": "kernel", "clock": "virtual", "kernel": 6}, "kernel=6; accepted: text"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(lasthop.ArgumentError, match=said):
        lasthop.simulate(ONE, **arguments)


def test_without_the_command_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASTHOP", "/nonexistent/lasthop")
    with pytest.raises(lasthop.KernelError, match="there is no command /nonexistent/lasthop"):
        lasthop.simulate(ONE, hosts="kernel", clock="virtual")


def test_all_lines_of_an_error_are_told_and_what_was_said_before_is_logged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = tmp_path / "lasthop"
    command.write_text(
        "#!/bin/sh\nprintf 'booting\\none: 50 %%\\nlasthop: it ended\\n  a word\\n  and another\\n' >&2\nexit 2\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("LASTHOP", str(command))
    with caplog.at_level("INFO", "lasthop"), pytest.raises(lasthop.KernelError) as raised:
        lasthop.simulate(ONE, hosts="kernel", clock="virtual")
    assert str(raised.value) == "it ended\n  a word\n  and another"
    assert caplog.messages == ["booting"]


def test_a_kernels_own_tcp_runs_in_an_emulated_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    command = os.environ.get("LASTHOP")
    if command is None or shutil.which("qemu-system-x86_64") is None:
        pytest.skip("no command in LASTHOP (scripts/test-python sets it), or no qemu-system-x86_64")
    # Where the tests of crates/cli keep a kernel.
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(command).parents[1] / "tmp"))
    listed = subprocess.run([command, "kernels", "list"], capture_output=True, text=True, check=True).stdout
    if not any(line.startswith("debian-6.12 ") and " 6.12." in line for line in listed.splitlines()):
        pytest.skip("no kernel here: the tests of crates/cli fetch one")
    run = lasthop.simulate(ONE, hosts="kernel", clock="virtual", seed=7)
    assert run.valid and run.seed == 7 and len(run.series) > 0
    assert (run.hosts_kind, run.clock, run.kernel) == ("kernel", "virtual", "debian-6.12")
    simulated = lasthop.simulate(ONE, seed=7)
    assert run.aggregate_goodput_mbps == pytest.approx(simulated.aggregate_goodput_mbps, rel=0.1)
    with pytest.raises(lasthop.KernelError, match="there is no kernel"):
        lasthop.simulate(ONE, hosts="kernel", clock="virtual", kernel="plan9")
