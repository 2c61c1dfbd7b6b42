"""Draw plots as SVG, from a small template: series with intervals over two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 190, 40, 50
_COLOURS = (
    "#1b6ca8",
    "#c0392b",
    "#2e8b57",
    "#8e44ad",
    "#d68910",
    "#566573",
    "#117a65",
    "#a04000",
    "#5b2c6f",
    "#7d6608",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A named series of (x, y); `whiskers` are (low, high) of y at each point, where there are any."""

    name: str
    points: tuple[tuple[float, float], ...]
    whiskers: tuple[tuple[float, float], ...] = ()


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values from at most `low` to at least `high`, about `count` of them."""
    span = (high - low) or 1.0
    power = 10 ** math.floor(math.log10(span / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= count)
    first = math.floor(low / step)
    last = max(first + 1, math.ceil(high / step))
    return [round(number * step, 10) for number in range(first, last + 1)]


def lines(title: str, x_name: str, y_name: str, series: Sequence[Line]) -> str:
    """Draw several series over two axes, with a legend."""
    xs = [x for each in series for x, _ in each.points]
    ys = [y for each in series for _, y in each.points] + [y for each in series for w in each.whiskers for y in w]
    x_ticks, y_ticks = ticks(min(0.0, *xs), max(xs)), ticks(min(0.0, *ys), max(ys))
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at_x(x: float) -> float:
        return _LEFT + (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0]) * across

    def at_y(y: float) -> float:
        return _TOP + down - (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * down

    parts = [
        _text(_LEFT, 22, title, weight="bold"),
        _text(_LEFT + across / 2, _HEIGHT - 10, x_name, anchor="middle"),
    ]
    parts.append(_text(_LEFT, _TOP - 4, y_name, size=11))
    for x in x_ticks:
        parts += [
            _stroke(at_x(x), _TOP, at_x(x), _TOP + down),
            _text(at_x(x), _TOP + down + 16, f"{x:g}", anchor="middle"),
        ]
    for y in y_ticks:
        parts += [
            _stroke(_LEFT, at_y(y), _LEFT + across, at_y(y)),
            _text(_LEFT - 6, at_y(y) + 4, f"{y:g}", anchor="end"),
        ]
    for number, each in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in each.points)
        dashes = ' stroke-dasharray="5 3"' if number >= len(_COLOURS) else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
        parts += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in each.points]
        for (x, _), (low, high) in zip(each.points, each.whiskers, strict=False):
            parts.append(_stroke(at_x(x), at_y(low), at_x(x), at_y(high), colour))
        top = _TOP + 14 * number + 6
        parts.append(f'<rect x="{_WIDTH - _RIGHT + 14}" y="{top - 8}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(_WIDTH - _RIGHT + 30, top + 1, each.name, size=11))
    return _svg(_HEIGHT, parts)


def _svg(height: float, parts: Sequence[str]) -> str:
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{_WIDTH}" height="{height:g}" fill="#ffffff"/>\n{inside}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="#222222">{escape(text)}</text>'
    )


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str = "#dddddd") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
