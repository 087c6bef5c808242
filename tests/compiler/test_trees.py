"""Sums in the order "tree" have the words of their definition."""
import numpy as np
import pytest

import tlgrad as tl
from beside_reference import compiled
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import evaluate_arrays


@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 255, 256, 257, 384, 1000, 4099])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_tree_sums(n, axis, dtype):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((3, n) if axis == 1 else (n, 3)) * 100).astype(dtype)
    program = tl.make_jaxpr(lambda x: tl.sum(x * x, axis=axis, order="tree"))(tl.tensor(x))
    for got, want in zip(Plan(program.jaxpr).run(x), evaluate_arrays(program.jaxpr, [x]), strict=True):
        assert tl.same_bits(got, want)


@pytest.mark.parametrize("columns", [1, 2, 70])
@pytest.mark.parametrize("n", [1, 5, 128, 129, 300])
@pytest.mark.filterwarnings("error")
def test_a_start_is_added_to_the_whole_tree(n, columns):
    rng = np.random.default_rng(n)
    x, w, start = (rng.standard_normal(shape) for shape in [(3, n), (n, columns), (3, columns)])
    compiled(lambda x, w, start: tl.dot_general(x, w, ((1,), (0,)), init=start, order="tree"), x, w, start)
    compiled(lambda x, start: tl.sum(x, axis=1, init=start, order="tree"), x, start[:, 0])
    endless = np.full((3, columns), np.inf)
    compiled(lambda x, w, start: tl.dot_general(x, w, ((1,), (0,)), init=start, order="tree"), -endless, endless.T,
             endless[:, :1] * np.ones((1, 3)))
