"""Which equations are one pass over the data."""
import pathlib

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.backends.numba_cpu.steps import runs_primitive
from tlgrad.passes.groups import SHORT

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "compiler.md"
X = tl.tensor(np.linspace(-2, 2, 600))


def loss(x):
    return tl.sum(tl.tanh(x) * tl.exp(-x * x) + tl.log1p(x * x))


def launches(f, *args):
    return len(tl.kernels(f)(*args))


@pytest.mark.parametrize("f", [loss, lambda x: tl.mean((x - 0.5) ** 2),
                               lambda x: tl.sum(tl.where(x > 0, x * x, 0.1 * x)),
                               lambda x: tl.sum(tl.iterate(lambda v: v * v * 0.25 + 0.5, 10, x))],
                         ids=["elementary", "mean square", "select", "fold"])
def test_value_and_grad_of_an_elementwise_loss_is_one_pass(f):
    passes = [k for k in tl.kernels(tl.value_and_grad(f))(X) if k.lowered.sizes != (1,)]
    assert len(passes) == 1
    value, slope = tl.run(tl.value_and_grad(f))(X)
    assert tl.same_bits(value, f(X)) and tl.same_bits(slope, tl.grad(f)(X))


def test_several_readers_of_a_value_are_one_pass():
    assert launches(lambda x: (x * 2.0 + 1.0, tl.sum(x * 2.0), tl.max(tl.sin(x * 2.0))), X) == 1


def test_a_short_producer_of_one_number_is_computed_again_by_each_reader():
    def f(x, y, s):
        scale = s * s + 1.0
        return x * scale, y * scale
    shown = tl.kernels(f)(X, tl.ones((3, 5)), tl.tensor(2.0))
    assert len(shown) == 2 and all("mul" in kernel.text and "! = add" in kernel.text for kernel in shown)


@pytest.mark.parametrize("turns, kernels", [(SHORT // 2, 2), (SHORT // 2 + 1, 3)])
def test_a_longer_producer_is_stored(turns, kernels):
    def f(x, y, s):
        scale = s
        for _ in range(turns):
            scale = scale * s + 0.5
        return x * scale, y * scale
    assert launches(f, X, tl.ones((3, 5)), tl.tensor(2.0)) == kernels
    assert f"most {SHORT} instructions" in PAGE.read_text().replace("\n", " ")


def test_a_producer_that_is_a_result_or_an_array_is_stored():
    def shown(x, y, s):
        scale = s * s + 1.0
        return x * scale, y * scale, scale

    def wide(x, y):
        z = x * x + 1.0
        return z * 2.0, tl.sum(z * y, axis=0)
    assert launches(shown, X, tl.ones((3, 5)), tl.tensor(2.0)) == 3
    kernels = tl.kernels(wide)(tl.ones(40), tl.ones((30, 40)))
    assert len(kernels) == 2 and sum(k.text.count("= add") for k in kernels) == 1


def test_a_total_that_is_needed_before_the_next_pass_cuts():
    assert launches(lambda x: x / tl.sum(x), X) == 2
    assert launches(lambda x: tl.softmax(x), X) <= 3


def test_views_are_no_pass():
    x = tl.tensor(np.ones((20, 30)))
    assert launches(lambda x: x.T[::2] + tl.reshape(x, (30, 20))[::2], x) == 1
    plan = Plan(tl.make_jaxpr(lambda x: tl.reshape(x.T[:, ::-1], (30, 20)))(x).jaxpr)
    assert plan.kernels == [] and not any(map(runs_primitive, plan.grouping.steps))
