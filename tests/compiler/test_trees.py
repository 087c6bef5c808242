"""Sums in the order "tree" have the words of their definition."""
import numpy as np
import pytest

import tlgrad as tl
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
