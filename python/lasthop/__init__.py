"""Simulate many TCP connections behind one Wi-Fi access point, and compare remedies.

>>> import lasthop
>>> ten = {"duration_s": 5, "warmup_s": 1, "hosts": [{"count": 10}]}
>>> r = lasthop.simulate(ten)
>>> c = lasthop.compare(ten, vary={"path.rtt_ms": [4, 64]}, seeds=2)
>>> len(r.flows), len(c.flows)
(10, 40)

Everything here gives the numbers that the command `lasthop` gives, from the same code. `lasthop.plot` draws them.
"""

from lasthop._errors import (
    ArgumentError,
    ColumnError,
    KernelError,
    LasthopError,
    MissingFileError,
    PolicyError,
    ResultError,
    ScenarioError,
    ScenarioWarning,
)
from lasthop._lasthop import VERSION as __version__
from lasthop._lasthop import Table
from lasthop._policy import Policy
from lasthop._record import Record
from lasthop._result import Comparison, Result, Study
from lasthop._run import compare, read, simulate, studies, study
from lasthop._scenario import Scenario

for _public in (
    ArgumentError,
    ColumnError,
    KernelError,
    Comparison,
    LasthopError,
    MissingFileError,
    Policy,
    PolicyError,
    Record,
    Result,
    ResultError,
    Scenario,
    ScenarioError,
    ScenarioWarning,
    Study,
):
    # Messages say where users find it.
    _public.__module__ = __name__

__all__ = [
    "ArgumentError",
    "ColumnError",
    "Comparison",
    "KernelError",
    "LasthopError",
    "MissingFileError",
    "Policy",
    "PolicyError",
    "Record",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Study",
    "Table",
    "__version__",
    "compare",
    "read",
    "simulate",
    "studies",
    "study",
]
