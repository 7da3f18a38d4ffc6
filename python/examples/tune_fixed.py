"""Tunes the bound of the policy `fixed` with Optuna, and compares it with the search of `lasthop study`.

    pip install ./python optuna
    python3 python/examples/tune_fixed.py scenarios/ten-uploads.toml

Both look for the greatest total goodput among the bounds with Jain's index of at least 0.98, no starved flow, and a p95
RTT of at most 1.3 times the path's + 60 ms (docs/guide/study-keys.md). Both see the mean over the same seeds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import optuna

import lasthop

MOST_SEGMENTS = 2000

STUDY = """
title = "The best bound"
source = "python/examples/tune_fixed.py"
scenario = {scenario}
seeds = {seeds}
measures = ["search.value", "search.met"]
[[cases]]
label = "best bound"
set."hosts.0.policy" = "fixed"
[cases.search]
key = "hosts.0.bound_segments"
from = 1
to = {most}
maximise = 'at("aggregate_goodput_mbps")'
conditions = [
    {{ label = "Jain's index", value = 'at("jain_index")', at_least = 0.98 }},
    {{ label = "starved flows", value = 'at("starved_flows")', at_most = 0 }},
    {{ label = "p95 RTT", value = 'at("rtt_ms.p95") / {rtt_limit_ms}', at_most = 1 }},
]
[[vary]]
axis = "path"
key = "path.rtt_ms"
values = [{rtt_ms}]
[[figures]]
title = "total"
x = "path"
y = "aggregate_goodput_mbps"
"""


def main() -> None:
    """Prints the goodput without a bound, with Optuna's, and with the study's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", type=Path)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a number of the scenario"
    )
    parser.add_argument("--trials", type=int, default=30, help="values that Optuna tries")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each value")
    given = parser.parse_args()
    changes = {key: float(value) if "." in value else int(value) for key, value in (of.split("=") for of in given.set)}
    scenario = lasthop.Scenario.from_file(given.scenario, set=changes)
    rtt_ms = scenario.to_dict()["path"]["rtt_ms"]
    rtt_limit_ms = 1.3 * rtt_ms + 60

    def summary(**policy: Any) -> Any:
        set = {f"hosts.0.{key}": value for key, value in policy.items()}
        # Values that were tried before come from the store.
        return lasthop.compare(scenario, set=set, seeds=given.seeds).cases[0].summary

    def worth(trial: optuna.Trial) -> float:
        segments = trial.suggest_int("bound_segments", 1, MOST_SEGMENTS, log=True)
        of = summary(policy="fixed", bound_segments=segments)
        misses = (0.98 - of.jain_index.mean, of.starved_flows.mean, of.rtt_p95_ms.mean / rtt_limit_ms - 1)
        missed = sum(max(0.0, by) for by in misses)
        # Any value that has all conditions is better than any that has not.
        return of.aggregate_goodput_mbps.mean if missed == 0 else -missed

    def say(who: str, of: Any, what: str) -> None:
        print(f"{who}: {of.aggregate_goodput_mbps.mean:.2f} Mb/s, p95 RTT {of.rtt_p95_ms.mean:.0f} ms, {what}")

    say("none", summary(policy="none"), "no bound")
    started = time.monotonic()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tuning = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=1))
    tuning.optimize(worth, n_trials=given.trials)
    best = tuning.best_params["bound_segments"]
    took = time.monotonic() - started
    tried = f"{best} segments, {given.trials} values in {took:.0f} s"
    say("Optuna", summary(policy="fixed", bound_segments=best), tried)

    started = time.monotonic()
    base = json.dumps(str(given.scenario.resolve()))
    text = STUDY.format(scenario=base, seeds=given.seeds, most=MOST_SEGMENTS, rtt_ms=rtt_ms, rtt_limit_ms=rtt_limit_ms)
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder, "study.toml")
        study.write_text(text)
        found = lasthop.study(study, set=changes).summary
    best = int(found["mean"][found["measure"].index("search.value")])
    took = time.monotonic() - started
    say("the study's search", summary(policy="fixed", bound_segments=best), f"{best} segments, in {took:.0f} s")


if __name__ == "__main__":
    main()
