"""What the tests share: the repository's scenarios, the command, and a short run."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import matplotlib
import pytest

import lasthop

matplotlib.use("Agg")
# A shell starts what it puts into the background with SIGINT ignored, as `make test` does, and Python keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The tests' store of runs is empty at first, and not the user's. The command's is the same.
_CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _CACHE.name
ROOT = Path(__file__).parents[2]
# The same examples each time, as proptest has them; HYPOTHESIS_PROFILE=wide looks for more.
hypothesis.settings.register_profile("usual", deadline=None, derandomize=True, max_examples=60, database=None)
hypothesis.settings.register_profile("wide", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

SHORT: dict[str, Any] = {"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 4}]}


@pytest.fixture
def short() -> dict[str, Any]:
    return SHORT


@pytest.fixture(scope="session")
def once() -> lasthop.Result:
    return lasthop.simulate(SHORT)


@pytest.fixture(scope="session")
def scenarios() -> Path:
    return ROOT / "scenarios"


@pytest.fixture(scope="session")
def command() -> Any:
    """Runs the command `lasthop` and gives what it prints."""
    program = os.environ.get("LASTHOP", ROOT / "target/debug/lasthop")
    if not Path(program).exists():
        pytest.skip(f"there is no {program}: cargo build -p lasthop-cli")

    def run(*arguments: object) -> str:
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run
