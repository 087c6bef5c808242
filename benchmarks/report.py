"""A picture of the ratios: ``python3 -m benchmarks report [FILE.svg]``, after ``peers``.

Every bar is peer / tlgrad on a logarithmic scale; right of the line tlgrad is faster.  The thin line
over a bar goes from quartile to quartile; grey bars compare with a limit of the machine.  Above all of
them stands, for each workload, the one where tlgrad does worst.
"""
from __future__ import annotations

import html
import json
import math
import pathlib
from typing import NamedTuple

from benchmarks.harness import RESULTS

ROW, LEFT, RIGHT, TOP, DOUBLE = 17, 290, 200, 86, 68
FASTER, SLOWER, LIMIT = "#2a7f62", "#b5533c", "#8a8f98"
CAPTION = ("Time of a peer / time of tlgrad: medians, and their quartiles as a thin line",
           "green: tlgrad is faster; red: slower; grey: share of a limit of the machine")


class Row(NamedTuple):
    """A bar: workload, peer, ratio, and the ratios of the quartiles."""
    title: str
    peer: str
    ratio: float
    low: float
    high: float

    @property
    def limit(self) -> bool:
        """It compares with a limit of the machine, not with a peer."""
        return self.peer.startswith("limit")


def rows() -> list[Row]:
    """Every result that compares with tlgrad, workload by workload."""
    found = []
    for path in sorted(RESULTS.glob("*.json")):
        content = json.loads(path.read_text())
        for name, (peer, mine) in content.get("pairs", {}).items():
            if "tlgrad" in peer:
                name, peer, mine = f"{mine} to {peer.removeprefix('tlgrad ')}", mine, peer
            if "tlgrad" in mine and "tlgrad" not in peer:
                a, b = (content["timings"][x] for x in (peer, mine))
                found.append(Row(content["title"], name.removesuffix(" / tlgrad"), a["median"] / b["median"],
                                 a["low"] / b["high"], a["high"] / b["low"]))
    return found


def worst(bars: list[Row]) -> list[Row]:
    """The lowest ratio of each workload to a peer."""
    found: dict[str, Row] = {}
    for bar in bars:
        if not bar.limit and bar.ratio <= found.get(bar.title, bar).ratio:
            found[bar.title] = bar
    return list(found.values())


class Picture:
    """The worst bar of every workload, then all bars under the headings of their workloads."""

    def __init__(self, bars: list[Row]):
        powers = [math.log2(bar.ratio) for bar in bars]
        self.first, self.last = math.floor(min(*powers, -1)), math.ceil(max(*powers, 1))
        self.width = LEFT + (self.last - self.first) * DOUBLE + RIGHT
        self.y, self.parts = TOP, []
        peers = [bar for bar in bars if not bar.limit]
        self.caption = (f"tlgrad is at least as fast in {sum(bar.ratio >= 1 for bar in peers)} "
                        f"of {len(peers)} comparisons with a peer", *CAPTION)
        self.heading("Each workload beside the peer that does best in it")
        for bar in worst(bars):
            self.bar(bar, bar.title, f"{bar.ratio:.2f}  {bar.peer}")
        title = ""
        for bar in bars:
            if bar.title != title:
                title = bar.title
                self.heading(title)
            self.bar(bar, bar.peer, f"{bar.ratio:.2f}")

    def x(self, ratio: float) -> float:
        """The coordinate of a ratio: powers of two are evenly spaced."""
        return LEFT + DOUBLE * (min(max(math.log2(ratio), self.first), self.last) - self.first)

    def text(self, x, words, anchor, more=""):
        """Words on this line."""
        self.parts.append(f'<text x="{x:.1f}" y="{self.y + 10}" text-anchor="{anchor}" {more}>'
                          f'{html.escape(words)}</text>')

    def heading(self, words):
        """A line in bold type, after a gap."""
        self.y += ROW // 2
        self.text(8, words, "start", 'font-weight="bold"')
        self.y += ROW

    def bar(self, bar: Row, label: str, number: str):
        """One line: label, bar, spread, number."""
        one, end, low, high = (self.x(v) for v in (1.0, bar.ratio, bar.low, bar.high))
        colour = LIMIT if bar.limit else FASTER if bar.ratio >= 1 else SLOWER
        self.text(self.x(2.0 ** self.first) - 8, label, "end")
        self.parts.append(f'<rect x="{min(one, end):.1f}" y="{self.y + 2}" width="{abs(end - one):.1f}" '
                          f'height="{ROW - 7}" fill="{colour}"/><path d="M{low:.1f},{self.y + 7}H{high:.1f}" '
                          'stroke="#222" stroke-width="1.2"/>')
        self.text(max(one, end, high) + 5, number, "start")
        self.y += ROW

    def svg(self) -> str:
        """The picture with its scale."""
        scale = []
        for power in range(self.first, self.last + 1):
            x, label = self.x(2.0 ** power), f"{2 ** power}x" if power >= 0 else f"1/{2 ** -power}"
            scale.append(f'<path d="M{x:.1f},{TOP - 8}V{self.y}" stroke="{"#444" if power == 0 else "#ddd"}"/>'
                         f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{label}</text>')
        head = [f'<text x="8" y="{16 + 16 * k}" font-size="12">{line}</text>'
                for k, line in enumerate(self.caption)]
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.y + ROW}" '
            'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>',
            *head, *scale, *self.parts, "</svg>", ""])


def main(arguments):
    """Write the picture."""
    bars = rows()
    if not bars:
        raise SystemExit("no results yet: run python3 -m benchmarks peers")
    target = pathlib.Path(arguments[0]) if arguments else RESULTS / "report.svg"
    target.write_text(Picture(bars).svg())
    print(f"{target}: {len(bars)} ratios, {sum(bar.ratio >= 1 for bar in bars)} of them at least 1")
