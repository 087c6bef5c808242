"""Recurrences: plain recursion under tl.map, and @tl.recurrence everywhere."""
import numpy as np
import pytest

import tlgrad as tl

from frontend.same_as_python import differences


def values(t):
    return np.asarray(t).tolist()


def evolve(x, n):
    if n == 0:
        return x
    previous = evolve(x, n - 1)
    return previous * previous + 1


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def relax(rate, target):
    def go(x, n):
        if n == 0:
            return x
        previous = go(x, n - 1)
        return previous + rate * (target - previous)
    return go


evolved = tl.recurrence(evolve)


@tl.recurrence
def evolve_r(x, n):
    if n == 0:
        return x
    previous = evolve_r(x, n - 1)
    return previous * previous + 1


EVOLVED = [[1.0, 2.0], [2.0, 5.0], [5.0, 26.0], [26.0, 677.0]]


@pytest.mark.parametrize("n", range(4))
def test_evolve(n):
    x = tl.tensor([1.0, 2.0])
    assert values(tl.map(lambda v: evolve(v, n))(x)) == EVOLVED[n]
    assert values(evolve_r(x, n)) == EVOLVED[n]
    assert values(tl.map(lambda v: evolve_r(v, n))(x)) == EVOLVED[n]
    assert values(tl.run(evolve_r)(x, n)) == EVOLVED[n]
    assert values(tl.map(evolve)(x, tl.tensor([n, n]))) == EVOLVED[n]


@pytest.mark.parametrize("f", [lambda x: tl.map(lambda v: evolve(v, 2))(x), lambda x: evolve_r(x, 2)],
                         ids=["plain recursion", "recurrence"])
def test_gradient_of_evolve(f):
    assert values(tl.grad(lambda x: tl.sum(f(x)))(tl.tensor([1.0, 2.0]))) == [8.0, 40.0]


def test_relax():
    x = tl.tensor([0.0, 2.0, 4.0])
    go = relax(0.5, 2.0)
    assert values(tl.map(lambda v: go(v, 3))(x)) == [1.75, 2.0, 2.25]
    assert [values(tl.map(lambda v: go(v, n))(tl.tensor(0.0))) for n in (1, 2, 3)] == [1.0, 1.5, 1.75]


def test_power():
    x = tl.tensor([1.0, 2.0, 3.0])
    assert values(tl.map(lambda v: power(v, 3))(x)) == [1.0, 8.0, 27.0]
    assert values(tl.grad(lambda x: tl.sum(tl.map(lambda v: power(v, 3))(x)))(x)) == [3.0, 12.0, 27.0]


def halves(x, n):
    if n == 0:
        return (x, 0.0)
    a, b = halves(x, n - 1)
    if a > 1:
        return a / 2, b + n
    return a, b


def outer(a, n):
    if n == 0:
        return a
    return evolve(outer(a, n - 1), 2) / 10


def inner_count(a, n):
    if n == 0:
        return a
    return power(inner_count(a, n - 1), n) + 1


V = [1.0, 2.0, 4.0, 8.0]


def prefix_sum(n):
    if n <= 0:
        return 0.0
    return prefix_sum(n - 1) + V[n - 1]


def checked(x, n):
    if n == 0:
        return x
    p = checked(x, n - 1)
    if p > 100:
        raise ValueError("blew up")
    return p * 3


def bisect(x, lo, hi):
    if hi - lo == 1:
        return float(lo)
    m = (lo + hi) // 2
    return bisect(x, lo, m) if x < m else bisect(x, m, hi)


def even(x, n):
    return x if n == 0 else odd(x, n - 1)


def odd(x, n):
    return -x if n == 0 else even(x, n - 1)


XS = [(0.0,), (2.0,), (4.5,)]
CASES = {
    "power": (power, [(x, n) for x in (1.0, 2.0, 3.0) for n in range(6)]),
    "tuple state": (halves, [(40.0, 7), (40.0, 0), (0.5, 3)]),
    "nested": (outer, [(1.0, n) for n in range(6)]),
    "nested, count of the turn": (inner_count, [(1.5, n) for n in range(5)]),
    "count used as an index": (prefix_sum, [(n,) for n in range(5)]),
    "a step that raises": (checked, [(1.0, 3), (2.0, 3), (200.0, 3)]),
    "concrete count": (lambda x: power(x, 5), XS), "bisection": (lambda x: bisect(x, 0, 16), XS),
    "even and odd": (lambda x: even(x, 7), XS)}


@pytest.mark.parametrize("name", CASES)
def test_recursion_agrees_with_python(name):
    f, inputs = CASES[name]
    assert differences(f, inputs) == []


def test_a_recurrence_is_one_loop():
    jaxpr = repr(tl.make_jaxpr(tl.map(evolve))(tl.tensor([1.0]), tl.tensor([3])))
    assert jaxpr.count("sweeps[") == 1
    assert repr(tl.make_jaxpr(lambda x: tl.map(lambda v: evolve(v, 3))(x))(tl.tensor([1.0]))).count("mul") == 1


def test_state_may_be_a_tree_and_counts_are_numbers():
    @tl.recurrence
    def sums(x, n):
        if n == 0:
            return {"total": 0 * x, "last": x}
        before = sums(x, n - 1)
        return {"total": before["total"] + n * before["last"], "last": before["last"] / 2}
    found = sums(tl.tensor([8.0]), 3)
    assert values(found["total"]) == [1 * 8.0 + 2 * 4.0 + 3 * 2.0] and values(found["last"]) == [1.0]


def test_whole_tensor_steps_and_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @tl.recurrence
        def run(self, x, n):
            if n == 0:
                return x
            return tl.matmul(self.w, self.run(x, n - 1))
    w = tl.tensor([[0.0, 1.0], [1.0, 1.0]])
    assert values(Model(w).run(tl.tensor([1.0, 1.0]), 5)) == [8.0, 13.0]


def test_count_may_be_known_only_at_run_time():
    f = tl.run(lambda x, n: evolve_r(x, n))
    x = tl.tensor([1.0, 2.0])
    before = tl.cache_info().compiles
    assert [values(f(x, n)) for n in range(4)] == EVOLVED
    after = tl.cache_info().compiles
    assert after - before <= 2
    assert values(tl.grad(lambda x: tl.sum(f(x, 2)))(x)) == [8.0, 40.0]


def test_the_two_equations_are_kept():
    zero, successor = evolve_r.equations(tl.tensor(3.0))
    assert float(zero()) == 3.0
    assert float(successor(tl.tensor(3.0), tl.tensor(0))) == 10.0


# ---- refusals ----

def fib(x, n):
    if n == 0:
        return x
    return fib(x, n - 1) + fib(x, n - 2)


def tree(x, n):
    if n == 0:
        return x
    return tree(x * 0.5, n - 1) + tree(x * 2, n - 1)


def changed(x, n):
    if n == 0:
        return x
    return changed(x * 2, n - 1)


def base_one(x, n):
    if n == 1:
        return x
    return base_one(x, n - 1) * 2


@pytest.mark.parametrize("f, reason", [
    (fib, "only `n - 1` is allowed"), (tree, "tree recursion"), (changed, "argument `x` changes"),
    (base_one, "it calls itself when n == 0"), (even, "through another function")],
    ids=lambda v: getattr(v, "__name__", ""))
def test_refusals_say_which_rule_is_broken(f, reason):
    with pytest.raises(tl.errors.ScalarFunctionError, match=reason) as caught:
        tl.map(f)(tl.tensor([1.0]), tl.tensor([3]))
    assert "test_recurrences.py:" in str(caught.value) and "Fix:" in str(caught.value)


@pytest.mark.parametrize("f, reason", [(changed, "argument `x` changes"), (base_one, "calls itself when n == 0")],
                         ids=["changed argument", "no base"])
def test_refusals_outside_map(f, reason):
    def recursive(x, n):
        return again(x, n)
    import types
    scope = dict(f.__globals__)
    again = tl.recurrence(types.FunctionType(f.__code__, scope, f.__name__))
    scope[f.__name__] = again
    with pytest.raises(tl.errors.ScalarFunctionError, match=reason):
        recursive(tl.tensor([1.0]), 3)


def test_negative_and_float_counts_are_errors():
    x = tl.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RecursionError, match="n = -2 is negative") as caught:
        tl.map(evolve)(x, tl.tensor([1, -2, -3]))
    assert "entry 1" in caught.value.__notes__[0]
    with pytest.raises(tl.errors.ScalarFunctionError, match="count `n` is a float"):
        tl.map(evolve)(x, x)
    with pytest.raises(tl.errors.ArgumentError, match="-1"):
        evolve_r(x, -1)
    with pytest.raises(tl.errors.DTypeError, match="natural number"):
        evolve_r(x, 2.0)


def test_unsigned_counts():
    assert values(tl.map(evolve)(tl.tensor([1.0]), tl.tensor([3], tl.uint64))) == [26.0]
