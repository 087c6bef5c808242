"""A picture of the ratios: ``python3 -m benchmarks report [FILE.svg]``, after ``peers``.

Every bar is peer / tlgrad on a logarithmic scale; right of the line tlgrad is faster.
"""
from __future__ import annotations

import html
import json
import math
import pathlib

from benchmarks.harness import RESULTS

ROW, LEFT, WIDTH, SPAN = 18, 470, 980, 5.0


def ratios() -> list[tuple[str, str, float]]:
    """(workload, peer, ratio) of every result that compares with tlgrad."""
    found = []
    for path in sorted(RESULTS.glob("W*.json")):
        content = json.loads(path.read_text())
        for name, ratio in content["ratios"].items():
            if name.endswith("/ tlgrad"):
                found.append((content["title"], name.removesuffix(" / tlgrad"), ratio))
    return found


def place(ratio: float) -> float:
    """The x coordinate of a ratio: powers of two are evenly spaced."""
    middle = (LEFT + WIDTH) / 2
    scaled = max(-SPAN, min(SPAN, math.log2(ratio)))
    return middle + scaled * (WIDTH - LEFT) / (2 * SPAN)


def picture(rows) -> str:
    """The bars as SVG."""
    height = ROW * (len(rows) + 3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 60}" height="{height}" '
           'font-family="sans-serif" font-size="11">']
    for power in range(-int(SPAN), int(SPAN) + 1):
        x = place(2.0 ** power)
        label = f"{2 ** power}x" if power >= 0 else f"1/{2 ** -power}"
        colour = "#444" if power == 0 else "#ddd"
        out.append(f'<line x1="{x}" y1="{ROW}" x2="{x}" y2="{height - ROW}" stroke="{colour}"/>'
                   f'<text x="{x}" y="{ROW - 5}" text-anchor="middle">{label}</text>')
    for k, (title, peer, ratio) in enumerate(rows):
        y, x0, x1 = ROW * (k + 1) + 4, place(1.0), place(ratio)
        colour = "#2a7f62" if ratio >= 1 else "#b5533c"
        out.append(f'<text x="{LEFT - 8}" y="{y + 9}" text-anchor="end">{html.escape(f"{title}: {peer}")}</text>'
                   f'<rect x="{min(x0, x1)}" y="{y}" width="{abs(x1 - x0)}" height="{ROW - 7}" fill="{colour}"/>'
                   f'<text x="{max(x0, x1) + 4}" y="{y + 9}">{ratio:.2f}</text>')
    return "\n".join([*out, "</svg>", ""])


def main(arguments):
    """Write the picture."""
    rows = ratios()
    if not rows:
        raise SystemExit("no results yet: run python3 -m benchmarks peers")
    target = pathlib.Path(arguments[0]) if arguments else RESULTS / "report.svg"
    target.write_text(picture(rows))
    print(f"{target}: {len(rows)} ratios, {sum(r >= 1 for *_, r in rows)} of them at least 1")
