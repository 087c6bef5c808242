"""Derivatives of loops of any order are kernels: towers of two, four, eight sweeps, with the words of the
reference."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.njit import run_lowered
from tlgrad.control import tower

from beside_reference import compiled


def hosted(plan):
    """Loops that no kernel runs."""
    return [s for s in plan.grouping.steps if s.kind == "host" and s.eqns[0].prim.name == "sweeps"]


def sweeps(plan):
    """The most sweeps of a tower of a program."""
    return max(len(e.params["bodies"]) for e in plan.jaxpr.eqns if e.prim.name == "sweeps")


def power(v):
    return v * v * 0.25 + 0.5


def derived(order, memory=None):
    """The derivative of this order of a sum of folds, reverse mode each time."""
    def f(x, n):
        return tl.sum(tl.iterate(power, n, x, memory=memory))
    for _ in range(order - 1):
        f = (lambda g: lambda x, n: tl.sum(tl.grad(g)(x, n)))(f)
    return tl.value_and_grad(f)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 60, 300])
@pytest.mark.parametrize("size", [1, 21, 300])
@pytest.mark.parametrize("order", [2, 3])
def test_reverse_mode_of_reverse_mode_is_one_kernel(order, size, n):
    plan = compiled(derived(order), np.linspace(-1, 1, size), n)
    # the sum of one entry is a number, in a kernel over numbers
    assert len(plan.kernels) <= (2 if size == 1 else 1) and not hosted(plan) and sweeps(plan) == 2 ** order


@pytest.mark.parametrize("memory, n", [(1, 9), (2, 13), (3, 40), (10, 40), ("2KB", 9), ("40KB", 40)])
def test_a_tower_of_four_under_a_limit(memory, n):
    x = np.linspace(-1, 1, 37)
    within, free = compiled(derived(2, memory), x, n), compiled(derived(2), x, n)
    assert not hosted(within)
    assert all(tl.same_bits(a, b) for a, b in zip(within.run(x, np.int64(n)), free.run(x, np.int64(n))))


def test_a_tower_of_eight_under_a_limit():
    for n in (0, 1, 5):
        assert not hosted(compiled(derived(3, 3), np.linspace(-1, 1, 11), n))


def cell(c, x):
    h = tl.tanh(c * 0.5 + x)
    return h, h * 2 + c


def loss(reverse):
    def f(c, xs):
        c, ys = tl.scan(cell, c, xs, reverse=reverse)
        return tl.sum(c) + tl.sum(ys * ys)
    return f


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("derive", [
    lambda f: lambda c, xs: tl.jvp(tl.grad(f, (0, 1)), (c, xs), (c * 2, xs)),
    lambda f: tl.grad(lambda c, xs: tl.sum(tl.grad(f, 1)(c, xs) * xs), (0, 1)),
    lambda f: lambda c, xs: tl.jvp(tl.grad(lambda c: tl.sum(tl.grad(f)(c, xs) * c)), (c,), (c * c,)),
    lambda f: lambda c, xs: tl.jvp(lambda c: tl.jvp(tl.grad(f, (0, 1)), (c, xs), (c * 2, xs)), (c,), (c,))],
    ids=["forward over reverse", "reverse over reverse", "forward over those", "forward twice"])
def test_derivatives_of_scans(derive, reverse):
    rng = np.random.default_rng(3)
    for n in (0, 1, 14, 120):
        plan = compiled(derive(loss(reverse)), rng.standard_normal((2, 17)), rng.standard_normal((n, 2, 17)))
        assert not hosted(plan)


def test_each_lane_with_a_count_of_its_own():
    f = tl.map(lambda x, n: tl.iterate(power, n, x))
    x, n = np.linspace(-1, 1, 150), np.arange(150) % 31
    slope = tl.grad(lambda x, n: tl.sum(f(x, n)))
    assert not hosted(compiled(tl.grad(lambda x, n: tl.sum(slope(x, n))), x, n))


def test_a_loop_inside_a_loop():
    def f(x, n):
        return tl.sum(tl.iterate(lambda v: tl.iterate(power, 3, v) * 0.5 + x, n, x))
    twice = tl.grad(lambda x, n: tl.sum(tl.grad(f)(x, n)))
    assert not hosted(compiled(twice, np.linspace(-1, 1, 40), 6))


@pytest.mark.parametrize("reverse", [(False, False), (True, True), (False, False, True),
                                     (True, False, False, True)])
@pytest.mark.parametrize("memory", [None, 3])
def test_sweeps_in_any_directions(reverse, memory):
    """Transforms turn each sweep around; the primitive takes any."""
    avals = [tl.tensor(np.zeros(5)), tl.tensor(0)]
    bodies = []
    for k in range(len(reverse)):
        def body(i, *states):
            total = states[-1] * 0.5 + tl.convert(i, tl.float64)
            for j, s in enumerate(states[:-1]):
                total = total + s * (0.25 + j)
            return [total * 0.5]
        bodies.append(tl.make_jaxpr(body)(avals[1], *[avals[0]] * (k + 1)).jaxpr)
    layout = tower.Layout(tuple(bodies), reverse, 0, 0, (1,) * len(reverse), None, (True,), memory)
    starts = [np.linspace(k, 2, 5) for k in range(len(reverse))]
    for n in (0, 1, 2, 9, 400):
        if memory is None or n < 20:
            assert not hosted(compiled(lambda n, *xs: layout.bind(n, *xs), np.int64(n), *starts))


def test_the_njit_engine_runs_towers():
    x, n = np.linspace(-1, 1, 9), 5
    program = tl.make_jaxpr(derived(3))(tl.tensor(x), tl.tensor(n))
    plan = compiled(derived(3), x, n)
    (lowered, _), = plan.kernels
    arrays = dict(zip(plan.jaxpr.in_binders, [*[c.data for c in program.consts], x, np.int64(n)]))
    found = dict(zip(lowered.outs, run_lowered(lowered, arrays)))
    for atom, got in zip(plan.jaxpr.outs, plan.run(*arrays.values())):
        want = found[plan.grouping.view(atom).root]
        assert tl.same_bits(got, want.reshape(got.shape))
