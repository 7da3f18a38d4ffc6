"""Simulate, compare, study, read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from lasthop import _lasthop
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
) -> Result:
    """Runs a scenario once with simulated hosts, as `lasthop run` does.

    Args:
        scenario: A TOML file, its keys as a dict, or a `Scenario`.
        seed: The seed of every random draw; by default the scenario's.
        set: Keys to change, such as `{"hosts.*.policy": "lasthop"}`.
        series: Whether to keep the samples of connections and queues: some 170 bytes each.
        policy: A policy in Python (docs/guide/external-policy.md), for the hosts whose `policy` is "external"; for
            all hosts if none has that. It is called with `hello` once for each host and run, and gives a `Policy`.
        store: A folder in which to store the run, and to look for it first; `None` is that of `compare`.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The result: keys of `result.json` as attributes, and the tables `flows`, `hosts`, `runs`, `series`, `queues`.

    Raises:
        ScenarioError: The scenario cannot be run; with file, line and key.
        OSError: The file cannot be read.
        MemoryError: The run would need more than half of the free memory.
        PolicyError: The policy of a host raised an exception, or gave no decision; with host and tick.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.

    >>> r = simulate({"duration_s": 5, "warmup_s": 1, "hosts": [{"count": 10}]}, seed=3)
    >>> 20 < r.aggregate_goodput_mbps < 27
    True
    >>> len(r.flows), r.flows["goodput_mbps"][0] < r.aggregate_goodput_mbps
    (10, True)
    """
    core = core_of(scenario, _with_name(set, policy))
    with bar(progress, core.duration_s, "s", 1e6) as update:
        return Result(_lasthop.simulate(core, seed, series, policy and Asked(policy), store, update))


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
        seeds: With how many seeds each case runs, from the scenario's on, or with which.
        set: Keys to change in all cases.
        series: Whether to keep the samples of all runs: some 170 bytes for each connection and sample.
        policy: A policy in Python, as of `simulate`: for cases in which a host's `policy` is "external", or for all.
        jobs: The number of runs at once; by default the number of cores. Results do not depend on it.
        store: The folder in which runs are stored, and not done again; `False`: none. By default the command's own
            (docs/guide/study-store.md). Runs with external policies, or of a build with changes, are never stored.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The comparison: keys of `comparison.json` as attributes, and tables over all cases and seeds. Each has a column
        for each varied key, of the type of its values.

    Raises:
        ScenarioError: A case cannot be run; all are checked before the first one starts.
        OSError: The file cannot be read.
        MemoryError: The runs would need more than half of the free memory.
        ValueError: There are both `vary` and `cases`, two cases have one label, a case sets the seed, or no host asks
            the policy given.
        PolicyError: The policy of a host raised an exception, or gave no decision; with host and tick.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.

    >>> four = {"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 4}]}
    >>> c = compare(four, vary={"path.loss": [0.0, 0.01]}, seeds=[5, 9])
    >>> c.flows.column_names[:4], len(c.flows)
    (['case', 'seed', 'path.loss', 'name'], 16)
    """
    core = core_of(scenario, _with_name(set, policy))
    values, chosen, total = _chosen(vary, cases, seeds)
    with bar(progress, total, "run") as update:
        asked = policy and Asked(policy)
        return Comparison(
            _lasthop.compare(core, plain(values), plain(cases or {}), chosen, jobs, series, asked, store, update)
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
        set: Keys to change in all runs, whatever the study sets.
        jobs: The number of runs at once; by default the number of cores. Results do not depend on it.
        store: The folder in which runs are stored, and not done again, as of `compare`.
        studies: The folder of studies, for names.
        progress: Whether to show a bar of tqdm; by default in terminals and notebooks that have it.

    Returns:
        The study: keys of `study.json` as attributes, and tables over all points and seeds.

    Raises:
        ScenarioError: The study cannot be run as written; with file, line and key.
        OSError: There is no such study, or it cannot be read.
        MemoryError: The runs would need more than half of the free memory.
        KeyboardInterrupt: Ctrl-C; nothing goes on in the background.
    """
    with bar(progress, None, "run") as update:
        path = _path_of(study, studies)
        return Study(_lasthop.study(path, plain(set or {}), seeds, jobs, store, update))


def studies(folder: str | os.PathLike[str] = "studies") -> list[str]:
    """The names of all studies in a folder, as in `hayakawa/fig-06`.

    Args:
        folder: The folder; there is nothing in one that is not there.
    """
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
    path = Path(folder)
    if (path / "study.json").exists():
        return Study(_lasthop.read_study(path))
    if (path / "comparison.json").exists():
        return Comparison(_lasthop.read_comparison(path))
    return Result(_lasthop.read_run(path))


def _with_name(set: Overrides | None, policy: MakePolicy | None) -> Overrides | None:
    """The overrides, with the name of a policy in Python as every host's program."""
    return set if policy is None else {"hosts.*.command": [named(policy)], **(set or {})}


def _chosen(
    vary: Mapping[str, Iterable[Any]] | None, cases: Mapping[str, Overrides] | None, seeds: int | Sequence[int]
) -> tuple[dict[str, Any], int | list[int], int]:
    """The values to vary, the seeds, and the number of runs of a comparison."""
    if vary and cases:
        raise ValueError("there are both vary and cases; accepted: one of them")
    chosen: int | list[int] = seeds if isinstance(seeds, int) else list(seeds)
    count = chosen if isinstance(chosen, int) else len(chosen)
    if count < 1:
        raise ValueError(f"seeds={seeds}; accepted: a number from 1, or a list of seeds")
    values = {key: list(many) if not isinstance(many, str) else many for key, many in (vary or {}).items()}
    total = len(cases) if cases else _product(len(many) for many in values.values())
    return values, chosen, total * count


def _path_of(study: str | os.PathLike[str], studies: str | os.PathLike[str]) -> Path:
    return Path(study) if os.fspath(study).endswith(".toml") else _find(os.fspath(study), Path(studies))


def _find(name: str, folder: Path) -> Path:
    path = folder / f"{name}.toml"
    if path.exists():
        return path
    known = studies(folder)
    near = difflib.get_close_matches(name, known, 3)
    meant = f"; did you mean {', '.join(near)}?" if near else ""
    raise FileNotFoundError(f"there is no study {name} in {folder}{meant}; lasthop.studies() has all {len(known)}")


def _product(counts: Iterable[int]) -> int:
    product = 1
    for count in counts:
        product *= count
    return product
