"""Figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.colors
import pytest

import lasthop
import lasthop.plot


def test_goodput_is_zero_in_the_seconds_without_a_connection() -> None:
    flows = [{"kind": "transfers", "transfer_kib": 200, "off_s": 8}]
    scenario = {"duration_s": 60, "warmup_s": 0, "hosts": [{"flows": flows}], "path": {"rtt_ms": 20}}
    result = lasthop.simulate(scenario, series=True)
    (line,) = lasthop.plot.run(result, ["goodput_mbps"]).axes[0].lines
    means = [float(mbps) for mbps in line.get_ydata()]
    assert len(means) == 60 and means.count(0) >= 30
    assert sum(means) / 60 == pytest.approx(result.aggregate_goodput_mbps, rel=0.02)


def test_figures_have_what_they_say(once: lasthop.Result, short: dict[str, Any], tmp_path: Path) -> None:
    figure = lasthop.plot.run(once, ["srtt_ms", "in_flight_segments"])
    assert len(figure.axes) == 2 and len(figure.axes[0].lines) == 4
    comparison = lasthop.compare(
        short,
        vary={"hosts.*.policy": ["none", "fixed"], "path.rtt_ms": [4, 8]},
        seeds=2,
        set={"hosts.*.bound_segments": 9},
    )
    bars = lasthop.plot.bars(comparison, "rtt_ms_p95")
    assert [bar.get_width() for bar in bars.axes[0].patches] == [
        mean
        for name, mean in zip(comparison.summary["measure"], comparison.summary["mean"], strict=True)
        if name == "rtt_ms_p95"
    ]
    lines = lasthop.plot.lines(comparison, "path.rtt_ms", log_x=True)
    assert lines.axes[0].get_xscale() == "log" and [
        label.get_text() for label in lines.axes[0].get_legend().get_texts()
    ] == ["none", "fixed"]
    # The report's colours and markers: a grey cross without control, a green square for a fixed bound.
    colours = [matplotlib.colors.to_hex(line.lines[0].get_color()).upper() for line in lines.axes[0].containers]
    assert colours == ["#A5ACB6", "#007A58"]
    assert [line.lines[0].get_marker() for line in lines.axes[0].containers] == ["X", "s"]
    assert lines.axes[0].get_xlabel() == "path RTT, ms\nmeans; bars: 95 % confidence interval of 2 seeds"
    assert [label.get_text() for label in lines.axes[0].get_xticklabels()] == ["4", "8"]
    assert "95 % confidence interval of 2 seeds" in bars.axes[0].get_xlabel()
    assert figure.axes[-1].get_xlabel() == f"time, s\none run, seed {once.seed}"
    for number, drawn in enumerate((figure, bars, lines)):
        drawn.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5_000


def test_policies_have_markers_of_their_own(short: dict[str, Any]) -> None:
    comparison = lasthop.compare(short, vary={"hosts.*.policy": ["none", "lasthop"], "path.rtt_ms": [4, 8, 200]})
    lines = lasthop.plot.lines(comparison, "path.rtt_ms").axes[0]
    drawn = [container.lines[0] for container in lines.containers]
    assert len({line.get_marker() for line in drawn}) == len({line.get_color() for line in drawn}) == 2
    assert lines.get_xlabel().endswith("one seed, no intervals") and len(lines.get_xticks()) == 3


def test_a_wrong_name_is_told(once: lasthop.Result, short: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="did you mean srtt_ms"):
        lasthop.plot.run(once, ["rtt_ms"])
    comparison = lasthop.compare(short, vary={"path.rtt_ms": [4, 8]})
    with pytest.raises(ValueError, match="did you mean rtt_ms_p9"):
        lasthop.plot.bars(comparison, "rtt_ms_p9")
    with pytest.raises(ValueError, match="no varied key"):
        lasthop.plot.lines(comparison, "hosts.0.count")
