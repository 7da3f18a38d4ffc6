"""What a run costs through Dask beside its own work, in CPU time: `python python/examples/dask_cost.py [RUNS]`.

CPU time (user and system) does not count what other programs take, so the machine may be busy. The client, the
scheduler and the nannies are this process; two workers are processes of their own. What an idle cluster takes is measured
first, and left out of the cost of a run: it is there however many runs there are.
"""

from __future__ import annotations

import sys
import time

from distributed import Client, LocalCluster

import lasthop
import lasthop.dask

# Ten uploads; a run takes a tenth of a second of a core, or some.
SCENARIO = {"duration_s": 50, "warmup_s": 10, "hosts": [{"count": 10}]}


def watch() -> None:
    """In a worker: counts the CPU time of its batches."""
    from lasthop import _lasthop

    run_batch = _lasthop.run_batch

    def counted(scenarios: list[str]) -> bytes:
        started = time.process_time()
        results = run_batch(scenarios)
        counted.seconds += time.process_time() - started  # type: ignore[attr-defined]
        return results

    counted.seconds = 0.0  # type: ignore[attr-defined]
    _lasthop.run_batch = counted


def seconds() -> tuple[float, float]:
    """In a worker: its CPU time, and that of its batches."""
    from lasthop import _lasthop

    return time.process_time(), _lasthop.run_batch.seconds  # type: ignore[attr-defined]


def main() -> None:
    """Prints the CPU time of a run, and what the client, the scheduler and the workers add to it."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with workers as cluster, Client(cluster) as client:
        client.run(watch)
        # Imports, and the speed of a run.
        lasthop.dask.compare(SCENARIO, seeds=10, client=client, progress=False)
        idle = -time.process_time()
        time.sleep(10)
        idle = (idle + time.process_time()) / 10
        before, here, began = client.run(seconds), time.process_time(), time.monotonic()
        lasthop.dask.compare(SCENARIO, seeds=runs, client=client, progress=False)
        here, took, after = time.process_time() - here, time.monotonic() - began, client.run(seconds)
        total = sum(after[worker][0] - before[worker][0] for worker in after)
        batches = sum(after[worker][1] - before[worker][1] for worker in after)
    ms = [1000 * part / runs for part in (batches, here - idle * took, total - batches)]
    print(
        f"{runs} runs of {ms[0]:.1f} ms: client and scheduler {ms[1]:.2f} ms, workers {ms[2]:.2f} ms more for each:",
        end=" ",
    )
    print(f"{100 * (ms[1] + ms[2]) / ms[0]:.1f} %; idle, client and scheduler take {100 * idle:.1f} % of a core")


if __name__ == "__main__":
    main()
