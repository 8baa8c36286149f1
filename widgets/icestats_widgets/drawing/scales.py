"""Scales: where a value lies along an axis, which value lies somewhere, and which ticks stand there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

Tick = tuple[float, str]
_UNITS = (("", 1.0), ("k", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12))
_MOST_DECIMALS = 3
_LATEST_MS = 9.2e15
"""Beyond it, about 290,000 years from 1970, NumPy has no microseconds."""
_YEAR_MS = 31_556_952_000.0
_LEAST_STEP = 1e-290
"""Between ticks: Python rounds to no more than some 300 decimals."""
_STEPS: tuple[tuple[str, float, tuple[int, ...]], ...] = (
    ("us", 0.001, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    ("ms", 1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    ("s", 1_000, (1, 2, 5, 10, 15, 30)),
    ("m", 60_000, (1, 2, 5, 10, 15, 30)),
    ("h", 3_600_000, (1, 2, 3, 6, 12)),
    ("D", 86_400_000, (1, 2)),
    ("W", 604_800_000, (1, 2)),
    ("M", _YEAR_MS / 12, (1, 2, 3, 6)),
    ("Y", _YEAR_MS, tuple(n * 10**power for power in range(6) for n in (1, 2, 5))),
)


class Scale(Protocol):
    """Values along an axis; what lies outside of its ends lies outside of 0 to 1."""

    def position(self, value: float) -> float:
        """Return where a value lies: 0 is the start, left or on top; 1 the end."""

    def invert(self, fraction: float) -> float:
        """Return the value that lies at a fraction."""

    def ticks(self, count: int) -> list[Tick]:
        """Return at most about `count` values that are worth a label, with their labels."""


def render_compact(value: float) -> str:
    """Return a number in few characters.

    Examples
    --------
    >>> [render_compact(number) for number in (950, 1200, 3_000_000, 0.25, 1e18, float("inf"))]
    ['950', '1.2k', '3M', '0.25', '1e18', 'inf']
    """
    size = abs(value)
    if not math.isfinite(size) or size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    unit, factor = next((one for one in reversed(_UNITS) if size >= one[1] * 0.9995), _UNITS[0])
    return f"{value / factor:.3g}{unit}"


def render_percent(share: float) -> str:
    """Return a share of a whole as a percentage; it is only 0 or 100 if the share is 0 or 1.

    Examples
    --------
    >>> [render_percent(share) for share in (0, 0.00002, 0.00306, 0.0199, 0.9999, 1)]
    ['0%', '< 0.01%', '0.31%', '2.0%', '> 99.9%', '100.0%']
    """
    percent = 100 * share
    if percent == 0:
        return "0%"
    if percent < 0.01:
        return "< 0.01%"
    if 99.95 <= percent < 100:
        return "> 99.9%"
    return f"{percent:.2f}%" if percent < 0.995 else f"{percent:.1f}%"


def render_ticks(values: Sequence[float]) -> list[str]:
    """Return numbers with as many digits as tell neighbours apart.

    Examples
    --------
    >>> render_ticks([500, 1500, 3000]), render_ticks([0, 20000, 40000]), render_ticks([1000020, 1000040])
    (['500', '1.5k', '3k'], ['0', '20k', '40k'], ['1,000,020', '1,000,040'])
    >>> render_ticks([2013, 2014])
    ['2013', '2014']
    """
    largest = max(map(abs, values), default=0.0)
    step = min((abs(b - a) for a, b in pairwise(values)), default=largest) or 1.0
    if largest >= 1e15 or 0 < largest < 1e-4:
        short = [render_compact(value) for value in values]
        return short if len(set(short)) == len(short) else [f"{value:,.0f}" for value in values]
    if 1_000 <= largest < 10_000 and _decimals(step / 1_000) <= 1:
        return [render_compact(value) for value in values]
    if largest >= 10_000:
        factor, unit = max((factor, unit) for unit, factor in _UNITS if factor <= largest)
        decimals = _decimals(step / factor)
        if decimals <= _MOST_DECIMALS:
            return [f"{value / factor:.{decimals}f}{unit}" if value else "0" for value in values]
        return [f"{value:,.{_decimals(step)}f}" for value in values]
    return [f"{value:.{_decimals(step)}f}" if value else "0" for value in values]


def _decimals(step: float) -> int:
    whole = (round(step * 10**n) for n in range(18))
    return next((n for n, digits in enumerate(whole) if digits and math.isclose(step * 10**n, digits, rel_tol=1e-6)), 0)


@dataclass(frozen=True)
class LinearScale:
    """Numbers from `start` to `end`; from the larger to the smaller for an axis that grows upwards."""

    start: float
    end: float
    is_whole: bool = False
    """Whether only whole numbers are worth a label."""
    render: Callable[[Sequence[float]], list[str]] = render_ticks

    def position(self, value: float) -> float:
        """Return where a value lies."""
        # Halves, as the difference of very large numbers is infinite.
        span = self.end / 2 - self.start / 2
        return (value / 2 - self.start / 2) / span if span else 0.5

    def invert(self, fraction: float) -> float:
        """Return the value at a fraction."""
        return self.start * (1 - fraction) + self.end * fraction

    def ticks(self, count: int) -> list[Tick]:
        """Return round numbers."""
        values = _round_numbers(min(self.start, self.end), max(self.start, self.end), count, self.is_whole)
        return list(zip(values, self.render(values), strict=True))


@dataclass(frozen=True)
class LogScale:
    """Positive numbers by their logarithm; what is not positive lies at the smaller end."""

    start: float
    end: float
    render: Callable[[Sequence[float]], list[str]] | None = None
    """By default the powers of ten as `render_compact` has them."""

    def position(self, value: float) -> float:
        """Return where a value lies."""
        low, high = math.log10(self.start), math.log10(self.end)
        least = min(self.start, self.end)
        return 0.5 if low == high else (math.log10(value if value > 0 else least) - low) / (high - low)

    def invert(self, fraction: float) -> float:
        """Return the value at a fraction."""
        low, high = math.log10(self.start), math.log10(self.end)
        return float(10 ** (low * (1 - fraction) + high * fraction))

    def ticks(self, count: int) -> list[Tick]:
        """Return powers of ten, or round numbers where the ends are close."""
        low, high = sorted((self.start, self.end))
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last - first < 1 and high < 5 * low:
            values = [value for value in _round_numbers(low, high, count, False) if value > 0]
            return list(zip(values, (self.render or render_ticks)(values), strict=True))
        step = max(1, -(-(last - first + 1) // max(count, 1)))
        values = [float(f"1e{power}") for power in range(first, last + 1, step)]
        if last - first < 1 or (last - first < 3 and count >= 3 * (last - first + 1)):
            values = [float(f"{n}e{power}") for power in range(first - 1, last + 1) for n in (1, 2, 5)]
            values = [value for value in values if low <= value <= high]
        labels = self.render(values) if self.render else [render_compact(value) for value in values]
        return list(zip(values, labels, strict=True))


@dataclass(frozen=True)
class TimeScale(LinearScale):
    """Times from `start` to `end`, in milliseconds since 1970 in UTC."""

    is_clock: bool = False
    """Whether the values are times of day, without a date."""

    def ticks(self, count: int) -> list[Tick]:
        """Return round times; a label says only what differs from the label before."""
        if max(abs(self.start), abs(self.end)) > _LATEST_MS:
            years = _round_numbers(1970 + self.start / _YEAR_MS, 1970 + self.end / _YEAR_MS, count, True)
            return [((year - 1970) * _YEAR_MS, f"year {year:,.0f}") for year in years]
        for unit, length, steps in _STEPS:
            for step in steps:
                if (self.end - self.start) / (length * step) <= max(count, 1):
                    return self._ticks(unit, step)
        return []

    def _ticks(self, unit: str, step: int) -> list[Tick]:
        # Weeks begin on Mondays, of which 1970-01-05 was one; years are multiples of the step.
        unit, size, offset = ("D", 7 * step, 4) if unit == "W" else (unit, step, -1970 % step if unit == "Y" else 0)
        ends = np.array([math.ceil(self.start * 1000), math.floor(self.end * 1000)], np.int64).astype("datetime64[us]")
        first, last = ends.astype(f"datetime64[{unit}]").astype(np.int64).tolist()
        numbers = np.arange((first - offset) // size * size + offset, last + 1, size)
        times = numbers.astype(f"datetime64[{unit}]").astype("datetime64[us]")
        times = times[(times >= ends[0]) & (times <= ends[1])]
        texts = [str(time) for time in times]
        labels = [self._label(text, before, unit) for before, text in pairwise(["", *texts])]
        return list(zip((times.astype(np.int64) / 1000).tolist(), labels, strict=True))

    def _label(self, text: str, before: str, unit: str) -> str:
        year, month, day = text.rsplit("-", 2)
        day, _, clock = day.partition("T")
        is_new_year = not before.startswith(f"{year}-")
        if unit == "Y":
            return year
        name = _MONTHS[int(month) - 1]
        if unit == "M":
            return f"{name} {year}" if is_new_year else name
        date = f"{int(day)} {name}{f' {year}' if is_new_year else ''}"
        if unit == "D":
            return date
        clock = clock[: {"h": 5, "m": 5, "s": 8, "ms": 12}.get(unit, 15)]
        return clock if self.is_clock or before.partition("T")[0] == text.partition("T")[0] else f"{date} {clock}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class BandScale:
    """Places beside each other, numbered from 0, each as wide as any other."""

    labels: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of places; at least 1."""
        return max(1, len(self.labels))

    def position(self, value: float) -> float:
        """Return where the middle of a place lies."""
        return (value + 0.5) / self.count

    def invert(self, fraction: float) -> float:
        """Return the place at a fraction."""
        return min(self.count - 1, max(0, math.floor(fraction * self.count)))

    def ticks(self, count: int) -> list[Tick]:
        """Return one place in n."""
        step = max(1, -(-len(self.labels) // max(count, 1)))
        return [(place, self.labels[place]) for place in range(0, len(self.labels), step)]


def _round_numbers(low: float, high: float, count: int, is_whole: bool) -> list[float]:
    span = high / 2 - low / 2
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(count, 1) * 2
    if raw < _LEAST_STEP:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((n * power for n in (1, 2, 5) if n * power >= raw * (1 - 1e-9)), 10 * power)
    step = max(step, 1.0) if is_whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [_rounded(number * step, step) for number in range(first, min(last, first + 1000) + 1)]


def _rounded(value: float, step: float) -> float:
    return round(value, max(0, min(300, 2 - math.floor(math.log10(step)))))
