"""The worked examples of the essay, run and compared: ``python3 -m tlgrad tour``."""
from __future__ import annotations

import textwrap
import traceback
from typing import Any, NamedTuple

import numpy as np

import tlgrad as tl


class Example(NamedTuple):
    """A program as a reader would type it; it assigns `result`.  `expected`: its exact value."""
    title: str
    program: str
    expected: Any


EXAMPLES = (
    Example("Square: one function, any shape", """
        def square(x): return x * x

        result = tl.run(square)(tl.tensor([1, 2, 3], tl.float32))
        """, [1, 4, 9]),
    Example("Blend: two inputs, a captured weight", """
        weight = 0.25
        def blend(left, right): return (1 - weight) * left + weight * right

        left, right = tl.tensor([0, 4, 8], tl.float32), tl.tensor([8, 4, 0], tl.float32)
        result = tl.run(blend)(left, right)
        """, [2, 4, 6]),
    Example("Evolve: x -> x*x + 1, two updates", """
        def evolve(x, steps): return tl.iterate(lambda x: x * x + 1, steps, x)

        starts = tl.tensor([1, 2], tl.float32)
        result = tl.run(evolve)(starts, 2)
        """, [5, 26]),
    Example("Evolve: the run-time count is an argument (0, 1, 3 updates, one program)", """
        run = tl.run(evolve)
        result = [run(starts, n) for n in (0, 1, 3)]
        """, [[1, 2], [2, 5], [26, 677]]),
    Example("Evolve: backward through both updates", """
        record = tl.record(lambda x: evolve(x, 2))(starts)
        result = record.backward()
        """, [8, 40]),
    Example("Relax: x + r (t - x), three updates", """
        rate, target = 0.5, 2.0
        def relax(x, steps): return tl.iterate(lambda x: x + rate * (target - x), steps, x)

        result = tl.run(relax)(tl.tensor([0, 2, 4], tl.float32), 3)
        """, [1.75, 2, 2.25]),
    Example("Relax: the closed form t + (1 - r)^n (x - t)", """
        x = tl.tensor([0, 2, 4], tl.float32)
        result = target + (1 - rate) ** 3 * (x - target)
        """, [1.75, 2, 2.25]),
    Example("Energy: a whole-tensor function", """
        def energy(x): return tl.sum(x * x)

        x = tl.tensor([1, 2, 3], tl.float32)
        result = tl.run(energy)(x)
        """, 14),
    Example("Energy: record, value, backward", """
        record = tl.run(energy, grad=True)(x)
        result = [record.value, record.backward()]
        """, [14, [2, 4, 6]]),
    Example("Conditional: the branch taken is the branch recorded", """
        def bend(x): return tl.where(x < 0, 0, x * x)

        record = tl.record(bend)(tl.tensor([-2, 1, 3], tl.float32))
        result = [record.value, record.backward()]
        """, [[0, 1, 9], [0, 2, 6]]),
    Example("Loss: a training objective of one's own", """
        targets = tl.tensor([0, 1, 1], tl.float32)
        def loss(prediction):
            residual = prediction - targets
            return tl.sum(residual * residual)

        predictions = tl.tensor([1, 2, 3], tl.float32)
        value, gradient = tl.value_and_grad(loss)(predictions)
        result = [value, gradient]
        """, [6, [2, 2, 4]]),
    Example("Loss: one step of descent", """
        following = predictions - 0.25 * gradient
        result = [following, loss(following)]
        """, [[0.5, 1.5, 2], 1.5]),
    Example("Directions: u = (2x + 3y + 1)^3 at (1, 2), orders 0 to 4", """
        def u(p): return (2 * p[0] + 3 * p[1] + 1) ** 3

        p, ex, ey = tl.tensor([1.0, 2.0]), tl.tensor([1.0, 0.0]), tl.tensor([0.0, 1.0])
        orders = [], [ex], [ex, ey], [ex, ex, ey], [ex, ex, ex, ey]
        result = [tl.derivative(u, directions)(p) for directions in orders]
        """, [729, 486, 324, 72, 0]),
    Example("Directions: (2, -1) twice, and the pullback of a mixed derivative", """
        v = tl.tensor([2.0, -1.0])
        result = [tl.derivative(u, [v, v])(p), tl.derivative_vjp(u, [ex, ey])(p, 1.0)]
        """, [54, [72, 108]]),
)


def text_of(value) -> str:
    """A result as the essay prints it: six decimals, square brackets."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    array = np.asarray(value, np.float64)
    return f"{array:.6f}" if array.ndim == 0 else text_of(list(array))


def run_tour(out=print) -> int:
    """Run every example in order; the number of those whose result differs."""
    namespace: dict = {"tl": tl}
    wrong = 0
    for example in EXAMPLES:
        program = textwrap.dedent(example.program).strip()
        out(f"\n{example.title}\n\n{textwrap.indent(program, '    ')}\n")
        expected = text_of(example.expected)
        try:
            exec(compile(program, f"<{example.title}>", "exec"), namespace)
            found = text_of(namespace["result"])
        except Exception:
            found = traceback.format_exc(limit=-1)
        ok = found == expected
        wrong += not ok
        out(f"    result    {found}\n    expected  {expected}   {'ok' if ok else 'DIFFERENT'}")
    out(f"\n{len(EXAMPLES) - wrong} of {len(EXAMPLES)} examples as expected.")
    return wrong
