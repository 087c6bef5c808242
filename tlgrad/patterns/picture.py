"""A pattern as a picture: operands on the left, the result on the right, a line for every axis."""
from __future__ import annotations

from html import escape

_ROW, _BOX, _GAP = 30, 150, 24
_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#0987a0", "#975a16", "#4a5568")
_LEFT, _MIDDLE, _RIGHT = 10, 300, 470


def draw(explanation) -> str:
    """The SVG of an Explanation."""
    axes = explanation.axes
    colour = {a.name: _COLOURS[k % len(_COLOURS)] for k, a in enumerate(axes)}
    parts, ports, y = [], {}, 34
    for k, names in enumerate(explanation.operands):
        title = f"operand {k}" if len(explanation.operands) > 1 else "input"
        parts.append(_box(_LEFT, y, title, names))
        ports.update({(k, n): (_LEFT + _BOX, y + 30 + i * _ROW) for i, n in enumerate(names)})
        y += 20 + max(1, len(names)) * _ROW + _GAP
    parts.append(_box(_RIGHT, 34, f"result {explanation.shape}", explanation.result))
    ends = {n: (_RIGHT, 64 + i * _ROW) for i, n in enumerate(explanation.result)}
    lines = [_axis(a, k, colour[a.name], ports, ends) for k, a in enumerate(axes)]
    height = max(y, 60 + _ROW * max(len(axes), len(explanation.result)) + _GAP)
    title = escape(" ".join(explanation.pattern.split()))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" width="640" height="{height}" '
            f'font-family="monospace" font-size="13"><text x="10" y="20" font-weight="bold">{title}</text>'
            + "".join(lines) + "".join(parts) + "</svg>")


def _box(x, y, title, names):
    height = 20 + max(1, len(names)) * _ROW
    rows = "".join(f'<text x="{x + 10}" y="{y + 34 + i * _ROW}">{escape(n)}</text>' for i,
                   n in enumerate(names))
    return (f'<rect x="{x}" y="{y}" width="{_BOX}" height="{height}" rx="6" fill="#edf2f7" stroke="#718096"/>'
            f'<text x="{x + 10}" y="{y + 14}" font-size="11" fill="#718096">{escape(title)}</text>'
            + rows)


def _axis(axis, k, colour, ports, ends):
    """Lines from the operands that have the axis to its middle, and on to the result or a sum sign."""
    y = 64 + k * _ROW
    out = []
    for operand in axis.operands:
        x0, y0 = ports[operand, axis.name]
        out.append(_curve(x0, y0, _MIDDLE, y, colour))
    if axis.name in ends:
        out.append(_curve(_MIDDLE, y, *ends[axis.name], colour))
    kept = axis.fate == "kept"
    sign = "&#931;" if axis.fate == "summed" else "&#215;"
    mark = "" if kept else f'<text x="{_MIDDLE - 5}" y="{y + 5}" fill="{colour}" font-size="15">{sign}</text>'
    dot = (f'<circle cx="{_MIDDLE}" cy="{y}" r="{4 if kept else 10}" fill="{colour if kept else "white"}" '
           f'stroke="{colour}"/>')
    label = f'<text x="{_MIDDLE + 14}" y="{y - 6}" font-size="11" fill="{colour}">{axis.length}</text>'
    return "".join(out) + dot + mark + label


def _curve(x0, y0, x1, y1, colour):
    middle = (x0 + x1) / 2
    return (f'<path d="M{x0},{y0} C{middle},{y0} {middle},{y1} {x1},{y1}" fill="none" stroke="{colour}" '
            'stroke-width="2"/>')
