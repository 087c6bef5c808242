"""gather and scatter by kernels: the words of their meaning, and its errors."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu import places
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.errors import OutOfBoundsError
from tlgrad.ops.index import gather, scatter
from beside_reference import compiled
from compiler.test_sums import entries

DTYPES = ["float32", "float64", "int8", "uint16", "int32", "int64", "uint64", "bool", "float16"]
SHAPES = [((7, 90), 1), ((5, 6, 33), 2), ((40,), 1), ((3, 4, 5, 1), 3), ((9, 2, 16), 1)]


def places_in(shape, axes, index_shape, dtype):
    rng = np.random.default_rng(1)
    return np.stack([rng.integers(0, shape[k], index_shape) for k in range(axes)], -1).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, axes", SHAPES)
def test_rows_are_those_of_the_meaning(shape, axes, dtype, monkeypatch):
    monkeypatch.setattr(places, "LONG", 0)
    x = entries(shape, dtype, 1) if dtype != "bool" else entries(shape, "int8", 1) > 0
    for index_shape, kind in (((30,), "int64"), ((2, 11), "int32"), ((), "uint8")):
        at = places_in(shape, axes, index_shape, kind)
        along = tuple(range(axes))
        plan = compiled(lambda x, i: gather.bind(x, i, axes=along), x, at)
        assert "if t" in plan.source
        updates = np.flip(np.asarray(gather.impl(x, at, axes=along)))
        modes = ["set"] if dtype in ("bool", "float16") else ["set", "add", "mul", "min", "max"]
        for mode in modes:
            compiled(lambda x, i, u: scatter.bind(x, i, u, axes=along, mode=mode), x, at, updates.copy())
            compiled(lambda x, i, u: scatter.bind(x, i, u, axes=along, mode=mode), x, at * 0, updates.copy())


def test_a_place_outside_is_the_error_of_the_primitive():
    x, at = tl.tensor(np.ones((50, 60), "float32")), tl.tensor(np.array([3, 50, -1]))
    for f in (lambda x, i: gather.bind(x, i, axes=(0,)),
              lambda x, i: scatter.bind(x, i, tl.ones((3, 60), "float32"), axes=(0,), mode="add")):
        program = tl.make_jaxpr(lambda x, i: f(x, tl.reshape(i, (3, 1))))(x, at)
        plan = Plan(program.jaxpr)
        with pytest.raises(OutOfBoundsError, match="index 50 is out of bounds for axis 0 of size 50"):
            plan.run(*[c.data for c in program.consts], x.data, at.data)


def test_the_gradient_of_an_embedding_adds_rows_in_order():
    table = tl.tensor(entries((40, 64), "float32", 2))
    at = tl.tensor(np.random.default_rng(0).integers(0, 40, 300))
    weights = tl.tensor(np.random.default_rng(1).standard_normal((300, 64)).astype("float32"))
    got = tl.run(tl.grad(lambda t: tl.sum(t[at] * weights)))(table)
    want = np.zeros((40, 64), "float32")
    for k, row in zip(at.tolist(), np.asarray(weights)):
        want[k] = want[k] + row
    assert tl.same_bits(got, want)
