"""A line chart as SVG, for images that have no plotting library.  Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
# Okabe and Ito's colours, which people who see few colours can tell apart.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#666666"
# What bounds a measurement is grey: the dashes tell one bound from another.
DASHES = ("5 4", "2 3", "9 3", "9 3 2 3")
TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'


@dataclass(frozen=True)
class Line:
    """One line: its name in the legend, and its points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """One axis: what it shows, where it has ticks, how a tick reads, whether it is logarithmic."""

    title: str
    ticks: Sequence[float]
    label: Callable[[float], str]
    is_log: bool

    def share(self, value: float) -> float:
        """Return where `value` lies between the first tick (0) and the last one (1)."""
        first, last = self._scale(self.ticks[0]), self._scale(self.ticks[-1])
        return 0.5 if first == last else (self._scale(value) - first) / (last - first)

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def log_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Return the powers of ten that enclose all values, which must be above 0."""
    first = math.floor(math.log10(min(values)))
    last = math.ceil(math.log10(max(values)))
    return tuple(10.0**power for power in range(first, max(last, first + 1) + 1))


def linear_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Return four to eight round numbers from 0 to above all values."""
    highest = max(values)
    step = 10.0 ** math.floor(math.log10(highest / 4)) if highest > 0 else 1.0
    while highest / step > 7:  # noqa: PLR2004 - steps of 1, 2, 4, 8 times a power of ten
        step *= 2
    return tuple(step * number for number in range(math.ceil(highest / step) + 1))


def draw_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line], top: int = 0) -> str:
    """Return the chart as a group of SVG elements, `top` pixels from the top."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = LEFT + x.share(point[0]) * (right - LEFT)
        return across, bottom - y.share(point[1]) * (bottom - TOP)

    middle = f'{TEXT} text-anchor="middle"'
    across, down = (LEFT + right) / 2, (TOP + bottom) / 2
    parts = [
        f'<text x="{LEFT}" y="20" {TEXT} font-weight="bold">{escape(title)}</text>',
        f'<text x="{across}" y="{HEIGHT - 10}" {middle}>{escape(x.title)}</text>',
        f'<text transform="translate(16 {down}) rotate(-90)" {middle}>{escape(y.title)}</text>',
    ]
    for tick in x.ticks:
        at, _ = place((tick, y.ticks[0]))
        parts.append(f'<path d="M{at:.1f} {TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{bottom + 18}" {TEXT} text-anchor="middle">'
            f"{escape(x.label(tick))}</text>"
        )
    for tick in y.ticks:
        _, at = place((x.ticks[0], tick))
        parts.append(f'<path d="M{LEFT} {at:.1f}H{right}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" {TEXT} text-anchor="end">'
            f"{escape(y.label(tick))}</text>"
        )
    for number, line in enumerate(lines):
        parts.append(_draw_line(line, [place(point) for point in line.points], number))
    return f'<g transform="translate(0 {top})">\n' + "\n".join(parts) + "\n</g>"


def _draw_line(line: Line, places: Sequence[tuple[float, float]], number: int) -> str:
    color = GREY if line.is_dashed else COLORS[number % len(COLORS)]
    dash = f' stroke-dasharray="{DASHES[number % len(DASHES)]}"' if line.is_dashed else ""
    path = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
    dots = [
        f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{color}"/>'
        for across, down in places
        if not line.is_dashed
    ]
    x, y = WIDTH - RIGHT + 14, TOP + 20 * number + 8
    return "\n".join(
        [
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>',
            *dots,
            f'<path d="M{x} {y}h18" stroke="{color}" stroke-width="2"{dash}/>',
            f'<text x="{x + 24}" y="{y + 4}" {TEXT}>{escape(line.name)}</text>',
        ]
    )


def draw_page(charts: Sequence[str]) -> str:
    """Return the charts, one below the other, as an SVG document."""
    height = HEIGHT * len(charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(charts)
        + "\n</svg>\n"
    )
