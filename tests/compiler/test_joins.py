"""Joined and padded arrays: parts are written where they will lie."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.steps import runs_primitive

from beside_reference import compiled

RNG = np.random.default_rng(0)


def copies(plan):
    """The lines of a plan that copy a part."""
    return [line for line in plan.lines if "[...] =" in line]


def hosted(plan):
    """Primitives that run by themselves."""
    return [s.eqns[0].prim.name for s in plan.grouping.steps if runs_primitive(s)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (1, 6), (0, 2), (300, 70)], ids=str)
def test_made_parts_are_not_copied(shape, dtype):
    x, y = (RNG.integers(0, 5, shape).astype(dtype) for _ in range(2))
    plan = compiled(lambda x, y: tl.concatenate([x + y, x * y, x]), x, y)
    assert not hosted(plan) or dtype == "complex64" or 0 in shape
    assert len(copies(plan)) == (1 if 0 not in shape and dtype != "complex64" else len(copies(plan)))
    compiled(lambda x, y: tl.stack([x + y, x * y]), x, y)
    compiled(lambda x, y: tl.concatenate([x + y, x * y], axis=-1), x, y)
    compiled(lambda x, y: tl.concatenate([x + y, x + y, x]), x, y)
    compiled(lambda x, y: (lambda a: (a, tl.concatenate([a, x, a * y])))(x + y), x, y)


def test_a_join_within_a_join():
    x = RNG.standard_normal((40, 3))

    def f(x):
        inner = tl.concatenate([x * 2.0, tl.exp(x)])
        return tl.concatenate([inner, tl.concatenate([inner * 3.0, x - 1.0]), inner + 1.0])
    plan = compiled(f, x)
    assert not copies(plan) and not hosted(plan)
    compiled(lambda x: tl.sum(f(x), axis=0) + tl.max(f(x)), x)
    compiled(tl.grad(lambda x: tl.sum(f(x) * f(x))), x)


def test_products_and_sums_are_written_in_place():
    x, w = RNG.standard_normal((50, 30)), RNG.standard_normal((30, 20))
    compiled(lambda x, w: tl.concatenate([x @ w, tl.tanh(x @ w), (w.T @ x.T).T]), x, w)
    compiled(lambda x: tl.concatenate([tl.sum(x, axis=1), tl.cumsum(x[:, 0]), tl.sum(x, axis=0)]), x)


@pytest.mark.parametrize("widths", [(2, 3), (0, 1), (4, 0), (0, 0)])
def test_pads(widths):
    for shape in ((7,), (1, 9), (6, 5), (0, 3)):
        x = RNG.standard_normal(shape)
        none = [(0, 0)] * (len(shape) - 1)
        for pads in ([widths, *none], [*none, widths], [widths] * len(shape)):
            compiled(lambda x: tl.pad(x * 2.0, pads), x)
    plan = compiled(tl.grad(lambda x: tl.sum((x[1:] - x[:-1]) ** 2)), RNG.standard_normal(500))
    assert not hosted(plan)
