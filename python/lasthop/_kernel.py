"""Kernel hosts in virtual time: by the command, which boots an emulated machine (docs/guide/virtual-time.md)."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lasthop import _lasthop
from lasthop._errors import KernelError
from lasthop._lasthop import CoreScenario, Outcome
from lasthop._progress import Update

_LOG = logging.getLogger("lasthop")
_PERCENT = re.compile(r": (\d+) %$")


def run(core: CoreScenario, seed: int | None, kernel: str | None, update: Update | None) -> Outcome:
    """Runs `lasthop run --hosts kernel --clock virtual` with this scenario, and reads what it has kept."""
    name = os.environ.get("LASTHOP", "lasthop")
    program = shutil.which(name)
    if program is None:
        raise KernelError(
            f"there is no command {name} here, which boots the emulated machine; LASTHOP may have its path"
        )
    with tempfile.TemporaryDirectory() as folder:
        scenario, out = Path(folder, "scenario.toml"), Path(folder, "out")
        scenario.write_text(core.to_toml(), encoding="utf-8")
        words = [program, "run", str(scenario), "--hosts", "kernel", "--clock", "virtual", "--out", str(out)]
        words += [] if seed is None else ["--seed", str(seed)]
        words += [] if kernel is None else ["--kernel", kernel]
        _done(words, core.duration_s, update)
        return _lasthop.read_run(out)


def _done(words: Sequence[str], duration_s: float, update: Update | None) -> None:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said, failed = "", False
    try:
        for line in process.stderr:
            percent = _PERCENT.search(line.rstrip())
            if percent and update:
                update(round(int(percent[1]) / 100 * duration_s * 1e6))
            # An error begins so, and may have further lines.
            if line.startswith("lasthop: "):
                said, failed = line.removeprefix("lasthop: "), True
            elif not percent:
                said += line
                # What it waits for, such as the boot of a kernel.
                if not failed:
                    _LOG.info("%s", line.rstrip())
    except BaseException:
        process.send_signal(signal.SIGINT)
        raise
    finally:
        process.stderr.close()
        code = process.wait()
    # 1: it ran, and is not valid, as the result says.
    if code not in (0, 1):
        raise KernelError(said.strip())
