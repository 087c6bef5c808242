"""The njit engine has the words of the direct engine."""
import numpy as np
import pytest
from compiler_programs import Maker, same, staged

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
        if all(o.root in inputs for o in lowered.inputs) and "f16" not in lowered.kernel.text():
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
