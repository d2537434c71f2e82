"""Draws one chart and ends: `python -m bot.tools.chart_process`, JSON on stdin, PNG on stdout."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

WIDTH, HEIGHT, DPI = 1_200, 500, 100
LONGEST_TITLE = 130
LONGEST_NAME = 70
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")


def main() -> None:
    """Read, draw, write."""
    _draw(json.load(sys.stdin))


def _draw(order: dict[str, Any]) -> None:
    # Imported here: this is the slow part, and the module must be importable without it.
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    matplotlib.rcParams["text.parse_math"] = False  # a query may hold dollar signs
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, layout="constrained")
    axes: Any = figure.subplots()
    for line, colour in zip(order["lines"], COLOURS, strict=False):
        times = [datetime.fromtimestamp(at, UTC) for at, _ in line["points"]]
        values = [float("nan") if value is None else value for _, value in line["points"]]
        mark = "o" if len(times) == 1 else None
        axes.plot(
            times,
            values,
            label=_clamped(line["name"], LONGEST_NAME),
            color=colour,
            linewidth=1.6,
            marker=mark,
        )
    _dress(axes, order)
    figure.savefig(sys.stdout.buffer, format="png")


def _dress(axes: Any, order: dict[str, Any]) -> None:
    from matplotlib import dates, ticker  # noqa: PLC0415

    untyped: Any = dates
    locator = untyped.AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator, tz=UTC))
    axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.set_title(_clamped(order["title"], LONGEST_TITLE), fontsize=11, loc="left")
    axes.set_xlabel("UTC")
    axes.set_ylabel(_clamped(order["unit"], 40))
    axes.grid(visible=True, alpha=0.3)
    axes.margins(x=0.01)
    if order["hidden"]:
        axes.plot([], [], " ", label=f"and {order['hidden']} more, not drawn")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8, frameon=False)


def _clamped(text: str, most: int) -> str:
    flat = " ".join(text.split())
    # A leading underscore would hide the line from the legend.
    flat = f" {flat}" if flat.startswith("_") else flat
    return flat if len(flat) <= most else flat[: most - 1] + "…"


if __name__ == "__main__":
    main()
