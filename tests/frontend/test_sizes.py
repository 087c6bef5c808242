"""Programs are linear in the function: each block is recorded once, whatever leaves early."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.core.aval import make_aval
from tlgrad.core.dtypes import float64
from tlgrad.core.jaxpr import count_eqns
from tlgrad.frontend.interpreter import nesting, record


def made(text):
    scope = {}
    exec(text, scope)
    return scope["f"]


def ifs(n):
    return made("def f(x):\n s = 0.0\n" + "".join(
        f" if x > {k}: s = s + x\n else: s = s * 0.5\n" for k in range(n)) + " return s\n")


def early_returns(n):
    return made("def f(x):\n s = 0.0\n" + "".join(
        f" if x > {k}:\n  s = s + x\n  if s > {100 * k + 1}: return s\n else: s = s * 0.5\n"
        for k in range(n)) + " return s\n")


def program(f):
    return record(f, lambda symbols: (symbols, {}), [make_aval((), float64)]).jaxpr


def size(f):
    return count_eqns(program(f))


@pytest.mark.parametrize("family", [ifs, early_returns], ids=lambda f: f.__name__)
def test_size_is_linear(family):
    twelve, last = size(family(12)), size(family(96))
    assert last <= 8.2 * twelve


def test_early_returns_are_conds_one_after_the_other():
    assert nesting(program(early_returns(12))) == nesting(program(early_returns(96))) <= 3


def test_the_gradient_of_early_returns_is_linear():
    def gradient(n):
        f = tl.grad(lambda x: tl.sum(tl.map(early_returns(n))(x)))
        return count_eqns(tl.make_jaxpr(f)(tl.tensor([1.0])).jaxpr)
    assert gradient(48) <= 4.2 * gradient(12)


@pytest.mark.parametrize("bound", [50, 100_000])
def test_an_escape_loop_has_one_size_for_any_bound(bound):
    def escape(x):
        z = 0.0
        for k in range(bound):
            z = z * z + x
            if z > 2:
                return k
        return bound
    assert size(escape) == 10


@pytest.mark.parametrize("family", [ifs, early_returns], ids=lambda f: f.__name__)
def test_long_functions_run_and_differentiate(family):
    f, xs = family(48), [-1.0, 5.5, 20.5, 200.0]
    x = tl.tensor(xs)
    assert np.asarray(tl.map(f)(x)).tolist() == [f(v) for v in xs]
    slopes = [(f(v + 2.0**-20) - f(v - 2.0**-20)) * 2.0**19 for v in xs]
    np.testing.assert_allclose(tl.grad(lambda x: tl.sum(tl.map(f)(x)))(x), slopes, rtol=1e-9, atol=1e-12)


def test_bisection_has_a_leaf_for_each_answer():
    def go(x, lo, hi):
        if hi - lo == 1:
            return float(lo)
        m = (lo + hi) // 2
        return go(x, lo, m) if x < m else go(x, m, hi)
    assert size(lambda x: go(x, 0, 64)) < 300
