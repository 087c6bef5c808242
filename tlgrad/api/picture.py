"""A compiled program as a picture: inputs on the left, launches in columns by depth, results on the right."""
from __future__ import annotations

from collections import Counter
from html import escape

from tlgrad.core.jaxpr import Literal

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 190, 54, 250, 74
_FILL = {"kernel": "#ebf8ff", "chain": "#ebf8ff", "contraction": "#faf5ff", "sum": "#f0fff4", "rows": "#fffaf0",
         "primitive": "#f7fafc", "join": "#fffaf0", "input": "#ffffff", "result": "#ffffff"}
_TITLE = {"chain": "kernel of words", "rows": "gather, scatter", "join": "join, pad",
          "primitive": "NumPy or library"}
#: characters of the list of operations in a box
_ROOM = 27


def draw(plan) -> str:
    """The SVG of a Plan."""
    boxes, lines = _nodes(plan)
    place, rows = {}, Counter()
    for node, (_, _, column) in boxes.items():
        place[node] = (10 + column * _ACROSS, 10 + rows[column] * _DOWN)
        rows[column] += 1
    width, height = 20 + (len(rows) - 1) * _ACROSS + _WIDTH, 10 + max(rows.values()) * _DOWN
    drawn = [_line(place[a], place[b], label) for a, b, label in lines]
    drawn += [_box(*place[node], kind, text) for node, (kind, text, _) in boxes.items()]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="monospace" font-size="11">{"".join(drawn)}</svg>')


def _nodes(plan):
    """Boxes, node -> (kind, two lines of text, column), and lines (from, to, aval)."""
    boxes, lines, maker = {}, [], {}
    for k, var in enumerate(plan.jaxpr.in_binders):
        boxes["a", k] = ("input", (f"input {k}", str(var.aval)), 0)
        maker[var] = ("a", k)
    count = 0
    for k, (kind, run) in enumerate(plan.work):
        eqns = [e for step in run for e in (*step.uniforms, *step.eqns)]
        made = {v for e in eqns for v in e.outs}
        title = _TITLE.get(kind, kind)
        if kind == "kernel":
            title, count = f"kernel {count}, {plan.kernels[count][0].kernel.nest}", count + 1
        read = _roots(plan, [a for e in eqns for a in e.ins], maker)
        read = {v: node for v, node in read.items() if v not in made}
        boxes["k", k] = (kind, (title, _operations(eqns)),
                         1 + max((boxes[node][2] for node in read.values()), default=0))
        lines += [(node, ("k", k), str(v.aval)) for v, node in read.items()]
        maker.update(dict.fromkeys(made, ("k", k)))
    last = 1 + max((column for _, _, column in boxes.values()), default=0)
    for k, atom in enumerate(plan.jaxpr.outs):
        boxes["r", k] = ("result", (f"result {k}", str(atom.aval)), last)
        lines += [(node, ("r", k), "") for node in _roots(plan, [atom], maker).values()]
    return boxes, lines


def _roots(plan, atoms, maker):
    """The variables that are read, and the nodes that make them; views are of what they view."""
    roots = dict.fromkeys(plan.grouping.view(a).root for a in atoms)
    return {v: maker[v] for v in roots if not isinstance(v, Literal) and v in maker}


def _operations(eqns) -> str:
    """``mul x3, add, exp``, cut to the width of a box."""
    counts = Counter(e.prim.name for e in eqns)
    text = ", ".join(name if n == 1 else f"{name} x{n}" for name, n in counts.items())
    return text if len(text) <= _ROOM else text[:_ROOM - 4] + " ..."


def _box(x, y, kind, text):
    title, below = map(escape, text)
    return (f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{_FILL[kind]}" '
            f'stroke="#718096"/><text x="{x + 8}" y="{y + 20}" font-weight="bold">{title}</text>'
            f'<text x="{x + 8}" y="{y + 40}" fill="#4a5568">{below}</text>')


def _line(start, end, label):
    x0, y0, x1, y1 = start[0] + _WIDTH, start[1] + _HEIGHT / 2, end[0], end[1] + _HEIGHT / 2
    middle = (x0 + x1) / 2
    return (f'<path d="M{x0},{y0} C{middle},{y0} {middle},{y1} {x1},{y1}" fill="none" stroke="#a0aec0" '
            f'stroke-width="1.5"><title>{escape(label)}</title></path>')
