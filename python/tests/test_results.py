"""Attributes and tables of results."""

from __future__ import annotations

import inspect
import json
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lasthop


def test_every_key_of_the_file_is_an_attribute(once: lasthop.Result) -> None:
    document = once.to_dict()
    for key, value in document.items():
        if key != "flows":
            got = getattr(once, key)
            assert got == value or got.to_dict() == value or [item.to_dict() for item in got] == value, key
    assert json.loads(once.to_json()) == document
    assert once.access.air_shares.idle == document["access"]["air_shares"]["idle"]
    assert once.links == [] and once.transfers is None
    with pytest.raises(AttributeError, match="did you mean jain_index"):
        once.jain_indx
    with pytest.raises(AttributeError, match="did you mean p95"):
        once.rtt_ms.p_95
    assert {"rtt_ms", "flows", "to_json"} <= set(dir(once)) and "p95" in dir(once.rtt_ms)


def test_what_is_documented_is_what_there_is(once: lasthop.Result, short: dict[str, Any]) -> None:
    comparison = lasthop.compare(short, vary={"path.rtt_ms": [4]})
    for result in (once, comparison):
        documented = {name for name in inspect.get_annotations(type(result)) if name[0] != "_"}
        assert set(result.to_dict()) - {"flows"} <= documented <= set(dir(result)), type(result)
        assert all(getattr(result, name) in (None, []) for name in documented - set(result.to_dict()))


def test_the_public_names_are_these() -> None:
    assert set(lasthop.__all__) == {
        "ArgumentError", "ColumnError", "Comparison", "KernelError", "LasthopError", "MissingFileError", "Policy", "PolicyError", "Record", "Result", "ResultError", "Scenario", "ScenarioError",
        "ScenarioWarning", "Study", "Table", "__version__", "compare", "read", "simulate", "studies", "study",
    }  # fmt: skip
    assert all(inspect.getdoc(getattr(lasthop, name)) for name in lasthop.__all__)


def test_the_tables_are_those_of_the_file(once: lasthop.Result) -> None:
    flows, document = once.flows.to_dict(), once.to_dict()["flows"]
    assert flows["goodput_mbps"] == [flow["goodput_mbps"] for flow in document]
    assert flows["rtt_ms_p95"] == [flow["rtt_ms"]["p95"] for flow in document]
    assert flows["name"] == [f"host_{flow['host']}" for flow in document]
    assert set(flows["case"]) == {""} and set(flows["seed"]) == {1} and set(flows["kind"]) == {"bulk"}
    hosts = once.hosts.to_dict()
    assert sum(hosts["goodput_mbps"]) == pytest.approx(once.aggregate_goodput_mbps)
    assert hosts["up_phy_rate_mbps"] == [54.0] * 4 and hosts["flows"] == [1] * 4 and hosts["era"] == ["2012"] * 4
    runs = once.runs.to_dict()
    assert runs["rtt_ms_p95"] == [once.rtt_ms.p95] and runs["access_collisions"] == [once.access.collisions]
    # 3 s, a sample each 50 ms, four connections.
    assert len(once.series) == pytest.approx(3 * 20 * 4, abs=8)
    assert set(once.queues["place"]) >= {"access_point", "host_0"}


def test_frames_of_others_read_the_tables(once: lasthop.Result) -> None:
    goodput = once.flows["goodput_mbps"]
    flows = once.flows
    assert polars.DataFrame(flows)["goodput_mbps"].to_list() == goodput
    assert pyarrow.table(flows)["goodput_mbps"].to_pylist() == goodput
    assert pyarrow.schema(flows).names == flows.column_names
    frame: pandas.DataFrame = pyarrow.table(flows).to_pandas()
    assert frame.goodput_mbps.tolist() == goodput and frame.seed.dtype == "uint64"
    assert duckdb.sql("select sum(goodput_mbps) from flows").fetchall() == [(pytest.approx(sum(goodput)),)]
    for table in (once.series, once.queues, once.hosts, once.runs):
        assert polars.DataFrame(table).shape == (len(table), len(table.column_names))
        # A table can be read more than once.
        assert pyarrow.table(table).num_rows == len(table) == len(table[table.column_names[0]])
    with pytest.raises(KeyError, match="no column goodput; accepted: case"):
        flows["goodput"]


def test_settings_are_typed_columns(short: dict[str, Any]) -> None:
    vary = {
        "path.rtt_ms": [4, 64],
        "path.loss": [0, 0.5],
        "hosts.*.policy": ["none", "fixed"],
        "hosts.0.tcp.sack": [True, False],
    }
    cases = {"one": {"path.rtt_ms": 4}, "other": {"hosts.0.policy": "formula"}}
    runs = polars.DataFrame(lasthop.compare(short, vary=vary, set={"hosts.*.bound_segments": 9}, seeds=[4]).runs)
    kinds = [runs.schema[key] for key in vary]
    assert kinds == [polars.Int64, polars.Float64, polars.String, polars.Boolean] and len(runs) == 16
    runs = polars.DataFrame(lasthop.compare(short, cases=cases).runs)
    assert runs["path.rtt_ms"].to_list() == [4, None] and runs["hosts.0.policy"].to_list() == [None, "formula"]


def test_pandas_reads_tables_by_themselves(short: dict[str, Any]) -> None:
    comparison = lasthop.compare(short, vary={"path.loss": [0.0, 0.02]}, series=True)
    for table in (comparison.flows, comparison.runs, comparison.summary, comparison.series, comparison.queues):
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == table.column_names and len(frame) == len(table)
    frame = pandas.DataFrame(comparison.flows)
    assert frame["goodput_mbps"].tolist() == comparison.flows["goodput_mbps"]
    assert frame["goodput_mbps"].dtype == "float64" and frame["flow"].dtype == "int64"
    assert [row["flow"] for row in comparison.flows] == comparison.flows["flow"]


def test_a_summary_has_the_interval_of_the_mean(short: dict[str, Any]) -> None:
    comparison = lasthop.compare(short, vary={"path.loss": [0.0, 0.02]}, seeds=3)
    rows = polars.DataFrame(comparison.summary).filter(polars.col("measure") == "aggregate_goodput_mbps")
    runs = polars.DataFrame(comparison.runs)
    for row, (_, of_case) in zip(rows.iter_rows(named=True), runs.group_by("case", maintain_order=True), strict=True):
        values = of_case["aggregate_goodput_mbps"]
        # t(2) = 4.30265.
        half = 4.30265 * values.std() / 3**0.5
        assert row["mean"] == pytest.approx(values.mean()) and row["ci95_high"] == pytest.approx(
            values.mean() + half, rel=1e-5
        )
        assert row["deviation"] == pytest.approx(values.std()) and 0 < row["ci95_low"] < row["mean"]
        assert (row["min"], row["max"], row["runs"]) == (values.min(), values.max(), 3)
    summary = comparison.cases[0].summary.aggregate_goodput_mbps
    assert (summary.mean, summary.deviation) == pytest.approx((rows["mean"][0], rows["deviation"][0]))
    assert (summary.ci95.low, summary.ci95.high) == pytest.approx((rows["ci95_low"][0], rows["ci95_high"][0]))
    shares = polars.DataFrame(comparison.summary).filter(polars.col("measure").is_in(["jain_index", "utilization"]))
    assert shares["ci95_low"].min() > 0 and shares["ci95_high"].max() <= 1


@given(
    blocks=st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.sampled_from(["up", "down"])), min_size=1, max_size=3
    ),
    seeds=st.lists(st.integers(1, 2**63 - 1), min_size=1, max_size=3, unique=True),
)
def test_there_is_one_row_a_flow_a_host_and_a_run(blocks: list[tuple[int, int, str]], seeds: list[int]) -> None:
    hosts = [{"count": n, "flows": [{"count": flows, "direction": way}]} for n, flows, way in blocks]
    comparison = lasthop.compare({"duration_s": 0.5, "warmup_s": 0.1, "hosts": hosts}, seeds=seeds, series=True)
    flows = sum(n * of_host for n, of_host, _ in blocks)
    assert len(comparison.flows) == flows * len(seeds) == len(comparison.flows["seed"])
    assert len(comparison.hosts) == sum(n for n, _, _ in blocks) * len(seeds)
    assert comparison.runs["seed"] == seeds == comparison.seeds
    assert set(comparison.series["seed"]) <= set(seeds)
    block = [index for index, (n, of_host, _) in enumerate(blocks) for _ in range(n * of_host)]
    assert comparison.flows["block"] == block * len(seeds)


def test_each_transfer_has_a_row(short: dict[str, Any]) -> None:
    flows = [{"kind": "transfers", "transfer_kib": 50, "off_s": 0.1}, {"transfer_kib": 1_000_000}]
    result = lasthop.simulate({**short, "hosts": [{"flows": flows}]})
    rows = polars.DataFrame(result.completions)
    assert rows["bytes"].unique().sort().to_list() == [51_200, 1_024_000_000]
    complete = rows.filter(polars.col("flow") == 0).drop_nulls()
    assert len(complete) >= result.transfers.delivered > 3
    assert complete["slowdown"].min() > 1 and complete["start_s"].is_sorted()
    # The bulk transfer is not complete, and as old as it is, it has no slowdown yet.
    assert rows.filter(polars.col("flow") == 1).select("completion_s", "slowdown").rows() == [(None, None)]
    assert [item.above_bytes for item in result.slowdowns] == [10_000]
    assert result.slowdowns[0].transfers == result.transfers.delivered
