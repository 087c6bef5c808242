"""The njit engine has the words of the direct engine."""
import numpy as np
import pytest
from compiler_programs import same, staged
from random_programs import Maker

import tlgrad as tl
from tlgrad.backends.numba_cpu.njit import run_lowered
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import evaluate_arrays


def compare(jaxpr, arrays):
    """Every kernel that reads only inputs, by both engines."""
    plan = Plan(jaxpr)
    inputs = dict(zip(plan.jaxpr.in_binders, arrays))
    results = dict(zip([plan.grouping.view(a).root for a in plan.jaxpr.outs], plan.run(*arrays)))
    count = 0
    for lowered, _ in plan.kernels:
        if all(o.root in inputs for o in lowered.inputs):
            for var, got in zip(lowered.outs, run_lowered(lowered, inputs)):
                if var in results and results[var].shape == got.shape:
                    assert same(got, np.asarray(results[var])), lowered.kernel.text()
                    count += 1
    return count


@pytest.mark.parametrize("seed", [8, 34])
def test_random_kernels_agree(seed):
    compare(*staged(Maker(seed)))


@pytest.mark.parametrize("f", [
    lambda x: tl.exp(x) * tl.tanh(x) + tl.log1p(x * x),
    lambda x: tl.sum(x * x),
    lambda x: tl.iterate(lambda v: v * v * 0.25 + 0.5, 20, x),
    tl.value_and_grad(lambda x: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 20, x)))],
    ids=["elementary", "sum", "fold", "gradient of a fold"])
def test_programs_agree(f):
    x = np.linspace(-2, 2, 50).astype("float32")
    program = tl.make_jaxpr(f)(tl.tensor(x))
    arrays = [*[c.data for c in program.consts], x]
    assert compare(program.jaxpr, arrays) >= 1
    evaluate_arrays(program.jaxpr, arrays)


TABLE = tl.tensor(np.arange(40.0).reshape(8, 5) / 3)
HALVES = np.array([-2.0, -0.0, 1e-7, 0.1, 3.14, 60000.0, np.inf, 1.0, 2.5], np.float16)


def reading(k, x):
    total = x
    while total < 30.0 and k < 8:
        total = total + TABLE[k, k % 5] * x
        k = k + 1
    return total


def corner(k):
    return TABLE[k, 2] * 2


@pytest.mark.parametrize("f,arrays", [
    (tl.map(reading), [np.arange(8) % 4, np.linspace(0.5, 9, 8)]),
    (tl.map(corner), [np.array([0, 7, 3])]),
    (lambda x: (x * x - x / 3 + tl.sqrt(tl.abs(x)), x ** 3 > x, tl.maximum(x, 0.1) ** -2), [HALVES]),
    (lambda x: tl.iterate(lambda v: v * 0.5 + 0.3, 5, x), [HALVES]),
    (lambda x: (tl.convert(x, tl.float32) * 3, tl.convert(tl.convert(x, tl.float32) * 3, tl.float16)), [HALVES]),
    (lambda x, k: x * tl.convert(k, tl.float16), [HALVES, np.arange(9, dtype=np.int8)])],
    ids=["table", "corner", "float16", "float16 fold", "from and to float32", "from int8"])
def test_tables_and_16_bit_floats_agree(f, arrays):
    program = tl.make_jaxpr(f)(*map(tl.tensor, arrays))
    assert compare(program.jaxpr, [*[c.data for c in program.consts], *arrays]) >= 1


def test_an_index_outside_is_noted():
    program = tl.make_jaxpr(tl.map(corner))(tl.tensor([0, 1, 2]))
    lowered, = [lowered for lowered, _ in Plan(program.jaxpr).kernels]
    roots = dict(zip(program.jaxpr.in_binders, [*[c.data for c in program.consts], np.array([0, 8, -9])]))
    failed, _ = run_lowered(lowered, roots)
    assert failed.tolist() == [False, True, True]


def test_numbers_are_constants_or_arguments():
    kernel, = tl.kernels(lambda x: x * 2.5 + 1.0)(tl.tensor([1.0, 2.0]))
    x, out = np.array([1.0, 2.0, 3.0]), np.empty(3)
    kernel.to_numba()(x, out, 3)
    assert out.tolist() == [3.5, 6.0, 8.5]
    kernel.to_numba(fixed=False)(x, out, 10.0, 0.5, 3)
    assert out.tolist() == [10.5, 20.5, 30.5]


def test_a_kernel_can_be_called_from_njit_code():
    import numba
    kernel, = tl.kernels(lambda x: x * x)(tl.tensor([1.0, 2.0]))
    inner = kernel.to_numba()

    @numba.njit
    def outer(x, y):
        inner(x, y, x.size)
        return y.sum()
    assert outer(np.array([1.0, 2.0, 3.0]), np.empty(3)) == 14.0
    assert "def kernel(in0, out0, n0)" in inner.source
