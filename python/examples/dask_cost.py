"""What a run costs through Dask beside its own work, in CPU time: `python python/examples/dask_cost.py [RUNS]`.

CPU time (user and system) does not count what other programs take, so the machine may be busy. The cost is that of a run
of 0.1 s, of which a batch has ten: the runs here are shorter and their batches have ten as well, so that it takes some
seconds, and what an idle cluster takes meanwhile hardly counts. The client, the scheduler and the nannies are this
process; two workers are processes of their own.
"""

from __future__ import annotations

import sys
import time

from distributed import Client, LocalCluster

import lasthop
import lasthop.dask

SCENARIO = {"duration_s": 2, "warmup_s": 1, "hosts": [{"count": 10}]}
BATCH = 10


def watch() -> None:
    """In a worker: counts the CPU time of its batches, and their number."""
    from lasthop import _lasthop

    run_batch = _lasthop.run_batch

    def counted(scenarios: list[str]) -> bytes:
        started = time.process_time()
        results = run_batch(scenarios)
        counted.seconds += time.process_time() - started  # type: ignore[attr-defined]
        counted.batches += 1  # type: ignore[attr-defined]
        return results

    counted.seconds = 0.0  # type: ignore[attr-defined]
    counted.batches = 0  # type: ignore[attr-defined]
    _lasthop.run_batch = counted


def spent() -> tuple[float, float, int]:
    """In a worker: its CPU time, that of its batches, and their number."""
    from lasthop import _lasthop

    batches = _lasthop.run_batch
    return time.process_time(), batches.seconds, batches.batches  # type: ignore[attr-defined]


def main() -> None:
    """Prints the CPU time that client, scheduler and workers add to a run."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    started = time.perf_counter()
    lasthop.compare(SCENARIO, seeds=50, jobs=1, store=False, progress=False)
    lasthop.dask._TASK_S = BATCH * (time.perf_counter() - started) / 50
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with workers as cluster, Client(cluster) as client:
        client.run(watch)
        # Imports, and the speed of a run.
        lasthop.dask.compare(SCENARIO, seeds=100, client=client, progress=False)
        before, here = client.run(spent), time.process_time()
        lasthop.dask.compare(SCENARIO, seeds=runs, client=client, progress=False)
        here, after = time.process_time() - here, client.run(spent)
    total, inside, batches = (sum(after[worker][part] - before[worker][part] for worker in after) for part in range(3))
    ms = [1000 * part / runs for part in (here, total - inside)]
    print(
        f"{runs} runs in {batches} batches: client and scheduler {ms[0]:.2f} ms, workers {ms[1]:.2f} ms for each,",
        end=" ",
    )
    print(f"{sum(ms):.1f} % of a run of 0.1 s")


if __name__ == "__main__":
    main()
