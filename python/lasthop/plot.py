"""Figures with matplotlib, in the colours of lasthop's reports (`pip install lasthop[plot]`).

- `run`: goodput, RTT and window over time, of one run.
- `bars`: one measure of each case of a comparison, with its interval.
- `lines`: one measure over a varied key or an axis of a study, with its interval.

Each returns the figure; `figure.savefig("x.pdf")` writes it. Laws and policies have the same colour and marker in every
figure, and what has nearly the same lightness differs in marker and dashes: in grey too. Below is how many seeds there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lasthop import _arguments, _lasthop
from lasthop._arguments import refused
from lasthop._errors import ArgumentError
from lasthop._record import unknown
from lasthop._result import Comparison, Result, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["bars", "lines", "run"]

QUANTITIES = {
    "goodput_mbps": "goodput, Mb/s",
    "srtt_ms": "smoothed RTT, ms",
    "min_rtt_ms": "least RTT, ms",
    "cwnd_segments": "window, segments",
    "ssthresh_segments": "ssthresh, segments",
    "in_flight_segments": "in flight, segments",
    "unsent_bytes": "not sent, bytes",
    "retransmits": "segments sent again",
    "pacing_mbps": "pacing rate, Mb/s",
    "bound_max": "upper bound, segments",
    "bound_pacing_mbps": "pacing bound, Mb/s",
}
"""What `run` can draw, with its label."""

# Of matplotlib, and whether it is filled.
_MARKERS = {
    "circle": ("o", True),
    "square": ("s", True),
    "triangle": ("^", True),
    "diamond": ("D", True),
    "down": ("v", True),
    "ring": ("o", False),
    "frame": ("s", False),
    "cross": ("X", True),
    "plus": ("P", True),
    "open-triangle": ("^", False),
    "open-diamond": ("D", False),
}
# The most levels of a varied key that each get a tick.
_MOST_TICKS = 12
# Goodput of one sample is a matter of few packets.
_MEAN_OVER_S = 1.0


def run(
    result: Result,
    quantities: Sequence[str] = ("goodput_mbps", "srtt_ms", "cwnd_segments"),
    figure: Figure | None = None,
) -> Figure:
    """Quantities of the series over time, one panel each, one line a connection; goodput as means over 1 s, 0 without one.

    Args:
        result: A run with its series.
        quantities: Keys of `QUANTITIES`.
        figure: Where to draw; by default a new figure.

    Raises:
        ArgumentError: There is no such quantity, or the run has no series.

    >>> import lasthop, lasthop.plot
    >>> r = lasthop.simulate({"duration_s": 5, "warmup_s": 1, "hosts": [{"count": 3}]})
    >>> [panel.get_ylabel() for panel in lasthop.plot.run(r).axes]
    ['goodput, Mb/s', 'smoothed RTT, ms', 'window, segments']
    """
    _arguments.instance("result", result, Result, "what lasthop.simulate gives")
    if isinstance(quantities, str) or not isinstance(quantities, Sequence) or not quantities:
        raise refused("quantities", quantities, f"a list of some of {', '.join(QUANTITIES)}")
    _drawable("figure", figure, "subplots", "a figure of matplotlib, or None")
    theme = _lasthop.theme()
    for quantity in quantities:
        if not isinstance(quantity, str) or quantity not in QUANTITIES:
            raise ArgumentError(unknown("quantity", quantity, QUANTITIES))
    series = result.series.to_dict()
    looks = result._outcome.looks()
    goodputs = result._outcome.goodputs(_MEAN_OVER_S)
    rows: dict[int, list[int]] = defaultdict(list)
    for row, flow in enumerate(series["flow"]):
        rows[flow].append(row)
    figure = figure or _figure(7.5, 1.0 + 1.9 * len(quantities))
    panels = figure.subplots(len(quantities), 1, sharex=True, squeeze=False)[:, 0]
    for panel, quantity in zip(panels, quantities, strict=True):
        _dress(panel, theme)
        if result.warmup_s > 0:
            panel.axvspan(0, result.warmup_s, color=theme["shade"], linewidth=0)
        shown = set()
        for flow, of_flow in sorted(rows.items()):
            label, colour, _, dashes = looks[flow]
            times = [series["t_s"][row] for row in of_flow]
            values = [series[quantity][row] for row in of_flow]
            if quantity == "goodput_mbps":
                times, values = goodputs[flow]
            name = None if label in shown else label
            shown.add(label)
            numbers = [float("nan") if value is None else value for value in values]
            panel.plot(times, numbers, color=colour, linestyle=_line_style(dashes), linewidth=1.0, label=name)
        panel.set_ylabel(QUANTITIES[quantity])
        panel.set_ylim(bottom=0)
        panel.set_xlim(0, result.duration_s)
    panels[-1].set_xlabel(f"time, s\none run, seed {result.seed}")
    panels[0].set_title(result.scenario.name, loc="left", fontsize=10, color=theme["ink"])
    _legend(panels[0], theme)
    return figure


def bars(comparison: Comparison, measure: str = "aggregate_goodput_mbps", ax: Axes | None = None) -> Figure:
    """A bar for each case, with the 95 % confidence interval of the mean over its seeds.

    Args:
        comparison: What `lasthop.compare` gives.
        measure: A measure of `comparison.summary`, such as `rtt_ms_p95`.
        ax: Where to draw; by default a new figure.

    Raises:
        ArgumentError: There is no such measure.
    """
    _arguments.instance("comparison", comparison, Comparison, "what lasthop.compare gives")
    _drawable("ax", ax, "barh", "axes of matplotlib, or None")
    theme = _lasthop.theme()
    rows = _rows(comparison, measure)
    looks = {label: colour for label, colour, *_ in comparison._outcome.looks()}
    ax = ax or _figure(6.5, 0.9 + 0.42 * len(rows)).subplots()
    _dress(ax, theme)
    ax.grid(axis="y", visible=False)
    for place, row in enumerate(rows):
        ax.barh(
            place,
            row["mean"],
            color=looks[row["case"]],
            height=0.62,
            xerr=_error(row),
            ecolor=theme["ink"],
            capsize=2.5,
        )
    ax.set_yticks(range(len(rows)), [row["case"] or "all" for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(left=_least(rows))
    ax.set_xlabel(f"{_label(measure)}\n{_note(rows)}")
    return _figure_of(ax)


def lines(
    comparison: Comparison | Study,
    x: str,
    measure: str = "aggregate_goodput_mbps",
    ax: Axes | None = None,
    log_x: bool = False,
) -> Figure:
    """Lines over a varied key, one for each combination of the others, with the means' 95 % confidence intervals.

    Args:
        comparison: A comparison or a study.
        x: A column of its summary, such as `path.rtt_ms`; of a study the name of an axis.
        measure: A measure of its summary, such as `rtt_ms_p95`; of a study as written there.
        ax: Where to draw; by default a new figure.
        log_x: Whether the horizontal axis is logarithmic.

    Raises:
        ArgumentError: There is no such measure, or `x` does not vary.

    >>> import lasthop, lasthop.plot
    >>> ten = {"duration_s": 3, "warmup_s": 1, "hosts": [{"count": 2}]}
    >>> vary = {"hosts.*.congestion_control": ["cubic", "newreno"], "path.rtt_ms": [4, 64]}
    >>> c = lasthop.compare(ten, vary=vary, seeds=2)
    >>> [line.get_label() for line in lasthop.plot.lines(c, "path.rtt_ms").axes[0].containers]
    ['cubic', 'newreno']
    """
    _drawable("ax", ax, "errorbar", "axes of matplotlib, or None")
    log_x = _arguments.flag("log_x", log_x)
    theme = _lasthop.theme()
    rows = _rows(comparison, measure)
    settings = [name for name in rows[0] if name not in _OF_SUMMARY]
    if _arguments.text("x", x) not in settings:
        raise ArgumentError(unknown("varied key", x, settings))
    of_line: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        others = [str(row[name]) for name in settings if name != x and row[name] is not None]
        of_line[", ".join(others)].append(row)
    looks = _lasthop.looks_of_names(list(of_line))
    ax = ax or _figure(6.5, 4.0).subplots()
    _dress(ax, theme)
    for (label, of_label), (_, colour, name, dashes) in zip(of_line.items(), looks, strict=True):
        marker, filled = _MARKERS[name]
        ax.errorbar(
            [row[x] for row in of_label],
            [row["mean"] for row in of_label],
            yerr=[list(ends) for ends in zip(*((e[0][0], e[1][0]) for e in map(_error, of_label)), strict=True)],
            color=colour,
            linestyle=_line_style(dashes),
            marker=marker,
            markerfacecolor=colour if filled else theme["paper"],
            markersize=4.5,
            linewidth=1.3,
            capsize=2.5,
            label=label or None,
        )
    if log_x:
        ax.set_xscale("log")
    levels = list(dict.fromkeys(row[x] for row in rows))
    # A logarithmic axis of matplotlib has ticks at powers of ten alone, and an axis of few numbers some between them.
    if len(levels) <= _MOST_TICKS and all(isinstance(level, int | float) for level in levels):
        ax.set_xticks(levels, [f"{level:g}" for level in levels])
        ax.minorticks_off()
    ax.set_xlabel(f"{_label(x)}\n{_note(rows)}")
    ax.set_ylabel(_label(measure))
    ax.set_ylim(bottom=_least(rows))
    _legend(ax, theme)
    return _figure_of(ax)


_OF_SUMMARY = {"case", "measure", "runs", "mean", "min", "max", "deviation", "ci95_low", "ci95_high"}


def _rows(comparison: Comparison | Study, measure: str) -> list[dict[str, Any]]:
    _arguments.instance("comparison", comparison, (Comparison, Study), "a comparison or a study")
    table = comparison.summary.to_dict()
    measures = dict.fromkeys(table["measure"])
    if _arguments.text("measure", measure) not in measures:
        raise ArgumentError(unknown("measure", measure, measures))
    rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    return [row for row in rows if row["measure"] == measure and row["mean"] is not None]


def _drawable(name: str, value: Any, method: str, accepted: str) -> None:
    if value is not None and not hasattr(value, method):
        raise refused(name, value, accepted)


def _note(rows: list[dict[str, Any]]) -> str:
    """How many seeds there are, and what the bars mean."""
    runs = sorted({row["runs"] for row in rows})
    if runs == [1]:
        return "one seed, no intervals"
    seeds = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"means; bars: 95 % confidence interval of {seeds} seeds"


def _least(rows: list[dict[str, Any]]) -> float:
    """Where an axis begins: at 0, or at the least end of an interval below it."""
    ends: list[float] = [row["mean"] - _error(row)[0][0] for row in rows]
    return min(0.0, *ends)


def _line_style(dashes: list[float]) -> str | tuple[int, list[float]]:
    return (0, dashes) if dashes else "solid"


def _error(row: dict[str, Any]) -> list[list[float]]:
    """Below and above the mean; nothing with one seed."""
    if row["ci95_low"] is None:
        return [[0.0], [0.0]]
    return [[row["mean"] - row["ci95_low"]], [row["ci95_high"] - row["mean"]]]


def _label(measure: str) -> str:
    """A measure or a key in words: `hosts.*.bound_segments` is `bound, segments`, and `path.rtt_ms` is `path RTT, ms`."""
    words = [word for word in measure.split(".") if word not in ("hosts", "*") and not word.isdecimal()]
    measure = " ".join(words).replace("rtt", "RTT")
    for ending, unit in (("_mbps", "Mb/s"), ("_ms", "ms"), ("_us", "µs"), ("_s", "s"), ("_segments", "segments")):
        if measure.endswith(ending):
            return f"{measure.removesuffix(ending).replace('_', ' ')}, {unit}"
        if f"{ending}_" in measure:
            return f"{measure.replace(f'{ending}_', ' ').replace('_', ' ')}, {unit}"
    return measure.replace("_", " ")


def _figure(width: float, height: float) -> Figure:
    from matplotlib import pyplot

    return pyplot.figure(figsize=(width, height), layout="constrained", facecolor=_lasthop.theme()["paper"])


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _dress(ax: Axes, theme: dict[str, str]) -> None:
    ax.set_facecolor(theme["paper"])
    ax.set_axisbelow(True)
    ax.grid(color=theme["grid"], linewidth=0.8)
    ax.tick_params(colors=theme["muted"], labelsize=8.5, length=0)
    ax.xaxis.label.set_color(theme["muted"])
    ax.yaxis.label.set_color(theme["muted"])
    for side in ax.spines.values():
        side.set_visible(False)


def _legend(ax: Axes, theme: dict[str, str]) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) > 1:
        ax.legend(
            handles,
            labels,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize=8.5,
            labelcolor=theme["ink"],
        )
