"""Simulate, compare, study, read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from lasthop import _arguments, _kernel, _lasthop
from lasthop._arguments import refused
from lasthop._errors import ArgumentError, MissingFileError
from lasthop._policy import Asked, MakePolicy, named
from lasthop._progress import bar
from lasthop._record import plain
from lasthop._result import Comparison, Result, Study
from lasthop._scenario import Overrides, ScenarioLike, core_of

Store = str | os.PathLike[str] | Literal[False] | None
"""Where runs are stored, and taken from: a folder, nowhere (`False`), or the user's cache (`None`)."""


def simulate(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Overrides | None = None,
    series: bool = True,
    policy: MakePolicy | None = None,
    store: Store = False,
    progress: bool | None = None,
    hosts: Literal["simulated", "kernel"] = "simulated",
    clock: Literal["virtual"] | None = None,
    kernel: str | None = None,
) -> Result:
    """Runs a scenario once, as `lasthop run` does.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        seed: The seed of every random draw; by default the scenario's.
        set: Keys to change, such as `{"hosts.*.policy": "lasthop"}`.
        series: Whether to keep the samples of connections and queues: some 170 bytes each.
        policy: A policy in Python (docs/guide/external-policy.md), for the hosts whose `policy` is "external"; for
            all hosts if none has that. It is called with `hello` once for each host and run, and gives a `Policy`.
        store: A folder in which to store the run, and to look for it first; `None` is that of `compare`.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.
        hosts: "kernel" has Linux's own TCP, in an emulated machine (docs/guide/virtual-time.md). It needs the command `lasthop`
            in the PATH, or its path in LASTHOP, and keeps the series.
        clock: "virtual" for kernel hosts. In real time, as root, they are for the command. What comes before a run, such
            as the first boot of a kernel, is told to the logger "lasthop" (INFO).
        kernel: Their kernel, of those that `lasthop kernels list` shows; by default debian-6.12.

    Returns:
        The result: keys of `result.json` as attributes, and the tables `flows`, `hosts`, `runs`, `series`, `queues`.

    Raises:
        ScenarioError: The scenario cannot be run; with file, line and key.
        ArgumentError: An argument has a wrong type or value; with what is accepted.
        OSError: The file cannot be read; `MissingFileError` if there is none.
        MemoryError: The run would need more than half of the free memory.
        PolicyError: The policy of a host raised an exception, or gave no decision; with host and tick.
        KernelError: Kernel hosts cannot run here: no command, no emulator, no such kernel.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.

    >>> r = simulate({"duration_s": 5, "warmup_s": 1, "hosts": [{"count": 10}]}, seed=3)
    >>> 20 < r.aggregate_goodput_mbps < 27
    True
    >>> len(r.flows), r.flows["goodput_mbps"][0] < r.aggregate_goodput_mbps
    (10, True)
    """
    seed, store, asked = _arguments.seed(seed), _arguments.store(store), _asked(policy)
    series, progress = _arguments.flag("series", series), _arguments.optional_flag("progress", progress)
    in_guest = _in_guest(hosts, clock, kernel)
    if in_guest and (asked or store is not False):
        raise ArgumentError('hosts="kernel"; accepted with it: neither policy nor store')
    core = core_of(scenario, _with_name(set, policy))
    with bar(progress, core.duration_s, "s", 1e6) as update:
        if in_guest:
            return Result(_kernel.run(core, seed, kernel, update))
        return Result(_lasthop.simulate(core, seed, series, asked, store, update))


def compare(
    scenario: ScenarioLike,
    *,
    vary: Mapping[str, Iterable[Any]] | None = None,
    cases: Mapping[str, Overrides] | None = None,
    seeds: int | Sequence[int] = 1,
    set: Overrides | None = None,
    series: bool = False,
    policy: MakePolicy | None = None,
    jobs: int | None = None,
    store: Store = None,
    progress: bool | None = None,
) -> Comparison:
    """Runs a scenario in several cases on all cores, as `lasthop compare` does.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        vary: Keys, each with its values; all combinations are run, the last key changes fastest.
        cases: Labels, each with its overrides, instead of `vary`.
        seeds: With how many seeds each case runs, from the scenario's on, or with which, each once.
        set: Keys to change in all cases.
        series: Whether to keep the samples of all runs: some 170 bytes for each connection and sample.
        policy: A policy in Python, as of `simulate`: for cases in which a host's `policy` is "external", or for all.
        jobs: The number of runs at once; by default the number of cores. Results do not depend on it.
        store: The folder in which runs are stored, and not done again; `False`: none. By default the command's own
            (docs/guide/study.md). Runs with external policies, or of a build with changes, are never stored.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The comparison: keys of `comparison.json` as attributes, and tables over all cases and seeds. Each has a column
        for each varied key, of the type of its values.

    Raises:
        ScenarioError: A case cannot be run; all are checked before the first one starts.
        OSError: The file cannot be read.
        MemoryError: The runs would need more than half of the free memory.
        ArgumentError: An argument has a wrong type or value, there are both `vary` and `cases`, two cases have one
            label, a case sets the seed, or no host asks the policy given.
        PolicyError: The policy of a host raised an exception, or gave no decision; with host and tick.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.

    >>> four = {"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 4}]}
    >>> c = compare(four, vary={"path.loss": [0.0, 0.01]}, seeds=[5, 9])
    >>> c.flows.column_names[:4], len(c.flows)
    (['case', 'seed', 'path.loss', 'name'], 16)
    """
    jobs, store, asked = _arguments.jobs(jobs), _arguments.store(store), _asked(policy)
    series, progress = _arguments.flag("series", series), _arguments.optional_flag("progress", progress)
    values, of_cases, chosen, total = _chosen(vary, cases, seeds)
    core = core_of(scenario, _with_name(set, policy))
    with bar(progress, total, "run") as update:
        return Comparison(
            _lasthop.compare(core, plain(values), plain(of_cases), chosen, jobs, series, asked, store, update)
        )


def study(
    study: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    set: Overrides | None = None,
    jobs: int | None = None,
    store: Store = None,
    studies: str | os.PathLike[str] = "studies",
    progress: bool | None = None,
) -> Study:
    """Runs a study on all cores, as `lasthop study` does: a figure of a paper, and which of its claims hold.

    Args:
        study: Its name, such as `hayakawa/fig-06`, or the path of its file.
        seeds: With how many seeds each point runs; by default the study's own number.
        set: Keys to change in all runs; none that a case, an axis or a search sets.
        jobs: The number of runs at once; by default the number of cores. Results do not depend on it.
        store: The folder in which runs are stored, and not done again, as of `compare`.
        studies: The folder of studies, for names.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The study: keys of `study.json` as attributes, and tables over all points and seeds.

    Raises:
        ScenarioError: The study cannot be run as written; with file, line and key.
        ArgumentError: An argument has a wrong type or value; with what is accepted. The study has kernel hosts, which are for the command.
        OSError: The study cannot be read; `MissingFileError` if there is none.
        MemoryError: The runs would need more than half of the free memory.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.
    """
    path, seeds, jobs = _path_of(study, studies), _seeds_of_study(seeds), _arguments.jobs(jobs)
    store, progress = _arguments.store(store), _arguments.optional_flag("progress", progress)
    with bar(progress, None, "run") as update:
        return Study(_lasthop.study(path, plain(_arguments.overrides(set)), seeds, jobs, store, update))


def studies(folder: str | os.PathLike[str] = "studies") -> list[str]:
    """The names of all studies in a folder, as in `hayakawa/fig-06`.

    Args:
        folder: The folder; there is nothing in one that is not there.
    """
    folder = _arguments.path("folder", folder, "the path of a folder")
    found = (path.relative_to(folder).with_suffix("") for path in Path(folder).glob("*/*.toml"))
    return sorted(path.as_posix() for path in found)


def read(folder: str | os.PathLike[str]) -> Result | Comparison | Study:
    """Reads a folder that `lasthop run`, `compare` or `study` has written with `--out`, of simulated or kernel hosts.

    Args:
        folder: What was given to `--out`.

    Raises:
        ResultError: A file of it is damaged, or of another version.
        OSError: There is no result, or a file of it cannot be read.
    """
    path = Path(_arguments.path("folder", folder, "the path of a folder that --out has written"))
    if (path / "study.json").exists():
        return Study(_lasthop.read_study(path))
    if (path / "comparison.json").exists():
        return Comparison(_lasthop.read_comparison(path))
    return Result(_lasthop.read_run(path))


def _in_guest(hosts: str, clock: str | None, kernel: str | None) -> bool:
    """Whether an emulated machine runs it."""
    if hosts not in ("simulated", "kernel"):
        raise refused("hosts", hosts, '"simulated" or "kernel"')
    if hosts == "kernel" and clock != "virtual":
        raise refused("clock", clock, '"virtual" with kernel hosts: in real time, as root, they are for the command')
    if hosts == "simulated" and (clock is not None or kernel is not None):
        raise ArgumentError('hosts="simulated"; accepted with clock or kernel: "kernel"')
    if kernel is not None:
        _arguments.text("kernel", kernel)
    return hosts == "kernel"


def _asked(policy: MakePolicy | None) -> Asked | None:
    return policy and Asked(_arguments.called("policy", policy, "a class or a function that makes a policy, or None"))


def _seeds_of_study(seeds: int | None) -> int | None:
    return _arguments.optional("seeds", seeds, 1, _arguments.MOST_SEEDS, "the study's own number")


def _with_name(set: Overrides | None, policy: MakePolicy | None) -> Overrides | None:
    """The overrides, with the name of a policy in Python as every host's program."""
    return set if policy is None else {"hosts.*.command": [named(policy)], **_arguments.overrides(set)}


def _chosen(
    vary: Mapping[str, Iterable[Any]] | None, cases: Mapping[str, Overrides] | None, seeds: int | Sequence[int]
) -> tuple[dict[str, list[Any]], dict[str, Overrides], int | list[int], int]:
    """The values to vary, the cases, the seeds, and the number of runs of a comparison."""
    of_vary = _arguments.table("vary", {} if vary is None else vary, _VARY)
    of_cases = _arguments.table("cases", {} if cases is None else cases, _CASES)
    if of_vary and of_cases:
        raise ArgumentError("there are both vary and cases; accepted: one of them")
    values: dict[str, list[Any]] = {}
    for key, many in of_vary.items():
        if isinstance(many, str | bytes | Mapping) or not isinstance(many, Iterable):
            raise refused(f"vary[{key!r}]", many, "a list of values")
        values[key] = list(many)
    checked = {label: _arguments.table(f"cases[{label!r}]", of, _CASES) for label, of in of_cases.items()}
    chosen = _arguments.seeds(seeds)
    total = len(checked) if checked else _product(len(many) for many in values.values())
    return values, checked, chosen, total * (chosen if isinstance(chosen, int) else len(chosen))


_VARY = 'a dict such as {"path.rtt_ms": [4, 64]}'
_CASES = 'a dict such as {"far": {"path.rtt_ms": 64}}'


def _path_of(study: str | os.PathLike[str], studies: str | os.PathLike[str]) -> Path:
    study = _arguments.path("study", study, "the name of a study, such as hayakawa/fig-06, or the path of its file")
    folder = Path(_arguments.path("studies", studies, "the path of a folder"))
    return Path(study) if study.endswith(".toml") else _find(study, folder)


def _find(name: str, folder: Path) -> Path:
    path = folder / f"{name}.toml"
    if path.exists():
        return path
    known = studies(folder)
    near = difflib.get_close_matches(name, known, 3)
    meant = f"; did you mean {', '.join(near)}?" if near else ""
    raise MissingFileError(f"there is no study {name} in {folder}{meant}; lasthop.studies() has all {len(known)}")


def _product(counts: Iterable[int]) -> int:
    product = 1
    for count in counts:
        product *= count
    return product
