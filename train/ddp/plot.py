"""Draws a report: bus bandwidth by message size, and throughput by ranks.

python -m ddp.plot REPORT.json FILE.svg      draws what --json has printed
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddp.chart import HEIGHT, Axis, Line, draw_chart, draw_page, linear_ticks, log_ticks
from ddp.errors import PhaseNotRun, Refused
from ddp.links import bounds_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNITS = ("B", "KiB", "MiB", "GiB")
KIB = 1024


def render_plot(document: Mapping[str, Any]) -> str:
    """Return the SVG for the document of --json; raises `PhaseNotRun` when nothing was measured."""
    data = {phase["name"]: phase["data"] for phase in document["phases"]}
    label = f"{document['label']}, {document['world_size']} ranks"
    charts = []
    if data.get("collectives", {}).get("bandwidth"):
        links = document["facts"]["nvml"]["links"]
        charts.append(_bandwidth(data["collectives"], links, label))
    if data.get("scaling", {}).get("rows"):
        charts.append(_throughput(data["scaling"]["rows"], label, HEIGHT * len(charts)))
    if not charts:
        raise PhaseNotRun("neither collectives nor scaling has measured anything to draw")
    return draw_page(charts)


def must_be_writable(file: Path) -> None:
    """Raise `Refused` where the plot could not be written after all the work."""
    is_there = file.exists()  # it may be a device or a pipe
    try:
        with file.open("a"):
            pass
        if not is_there:
            file.unlink()
    except OSError as error:
        raise Refused("--plot", str(error), "name a file in a folder that can be written") from None


def _bandwidth(
    data: Mapping[str, Any], links: Sequence[Mapping[str, float | None]], label: str
) -> str:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in data["bandwidth"]:
        if row["busbw_gb_per_s"] > 0:  # with one rank nothing crosses a bus
            at = (row["size_bytes"], row["busbw_gb_per_s"])
            points.setdefault(row["label"], []).append(at)
    sizes = sorted({row["size_bytes"] for row in data["bandwidth"]})
    lines = [Line(name, sorted(places)) for name, places in points.items()]
    lines += [
        Line(name, [(sizes[0], speed), (sizes[-1], speed)], is_dashed=True)
        for name, speed in bounds_of(data["limits"], links).items()
    ]
    speeds = [speed for line in lines for _, speed in line.points]
    return draw_chart(
        f"Bus bandwidth by message size ({label})",
        Axis("message size", sizes, size_label, is_log=True),
        Axis("GB/s", log_ticks(speeds), _number, is_log=True),
        lines,
    )


def _throughput(rows: Sequence[Mapping[str, Any]], label: str, top: int) -> str:
    points = [(float(row["ranks"]), float(row["samples_per_s"])) for row in rows]
    one = points[0][1]
    ideal = [(ranks, ranks * one) for ranks, _ in points]
    return draw_chart(
        f"Throughput by ranks ({label})",
        Axis("ranks", [ranks for ranks, _ in points], _number, is_log=False),
        Axis("samples/s", linear_ticks([y for _, y in [*points, *ideal]]), _number, is_log=False),
        [Line("measured", points), Line("ideal", ideal, is_dashed=True)],
        top,
    )


def size_label(size: float) -> str:
    """Return a size in bytes as people write it: 4 KiB."""
    power = 0
    while size >= KIB and power < len(UNITS) - 1:
        size, power = size / KIB, power + 1
    return f"{size:g} {UNITS[power]}"


def _number(value: float) -> str:
    return f"{value:g}"


def main(report: str, file: str) -> None:
    """Draw a report that was kept."""
    Path(file).write_text(render_plot(json.loads(Path(report).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
