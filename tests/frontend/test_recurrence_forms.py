"""Recurrences: every form of state, count and callee, and every rule that refuses, named with its place."""
from typing import NamedTuple

import numpy as np
import pytest

import tlgrad as tl

from frontend.same_as_python import differences


class Pair(NamedTuple):
    first: float
    second: float


class State:
    """A state with operators."""

    def __init__(self, value, turns):
        self.value, self.turns = value, turns

    def __mul__(self, factor):
        return State(self.value * factor, self.turns + 1)


def named_tuple(x, n):
    def go(x, n):
        if n == 0:
            return Pair(x, 0.0)
        p = go(x, n - 1)
        return Pair(p.first / 2, p.second + p.first)
    last = go(x, n)
    return last.first + 10 * last.second


def nested_tree(x, n):
    def go(x, n):
        if n == 0:
            return {"a": [x, 0.0], "b": (1.0,)}
        s = go(x, n - 1)
        return {"a": [s["a"][1] + 1.0, s["a"][0]], "b": (s["b"][0] * 2,)}
    s = go(x, n)
    return s["a"][0] + 10 * s["a"][1] + 100 * s["b"][0]


def objects(x, n):
    def go(x, n):
        if n == 0:
            return State(x, 0)
        return go(x, n - 1) * 0.5
    s = go(x, n)
    return s.value + s.turns


class Damped:
    """A recurrence as a method, its rate an attribute."""

    def __init__(self, rate):
        self.rate = rate

    def run(self, x, n):
        if n == 0:
            return x
        before = self.run(x, n - 1)
        return before + self.rate * (2.0 - before)


def method(x, n):
    return Damped(0.5).run(x, n)


DAMPED = Damped(0.25)


def method_of_a_captured_object(x, n):
    return DAMPED.run(x, n)


def keywords(x, n):
    def go(n, x, rate=0.5):
        return x if n == 0 else go(rate=rate, n=n - 1, x=x) * rate + 1.0
    return go(n, x)


def one_value_used_twice(x, n):
    def go(x, n):
        return x if n == 0 else go(x, n - 1) * 0.5 + go(x, n - 1) * go(x, n - 1) * 0.125
    return go(x, n)


def count_in_arithmetic(x, n):
    def go(x, n):
        return x if n == 0 else go(x, n - 1) * n / (n + 2) - (n - 1) * 0.5 + n % 2
    return go(x, n)


def count_in_a_branch(x, n):
    def go(x, n):
        if n == 0:
            return x
        before = go(x, n - 1)
        if n % 3 == 0:
            return before * 2
        return before - 1 if n > 4 else before + n
    return go(x, n)


def loops_inside(x, n):
    def go(x, n):
        if n == 0:
            return x
        total = go(x, n - 1)
        for k in range(n):
            if total > 50:
                break
            total = total + k * 0.5
        return total
    return go(x, n)


def a_recurrence_of_recurrences(x, n):
    def inner(x, m):
        return x if m == 0 else inner(x, m - 1) * 0.5 + m

    def outer(x, n):
        return x if n == 0 else inner(outer(x, n - 1), n) + inner(x, 2)
    return outer(x, n)


def other_first_test(x, n):
    def go(x, n):
        return go(x, n - 1) * 0.5 + 1 if n > 0 else x
    return go(x, n)


FORMS = [named_tuple, nested_tree, objects, method, method_of_a_captured_object, keywords, one_value_used_twice,
         count_in_arithmetic, count_in_a_branch, loops_inside, a_recurrence_of_recurrences, other_first_test]
INPUTS = [(x, n) for x in (-1.5, 0.0, 40.0) for n in range(8)]


@pytest.mark.parametrize("f", FORMS, ids=lambda f: f.__name__)
def test_forms_agree_with_python_for_a_count_of_each_entry(f):
    assert differences(f, INPUTS) == []
    jaxpr = repr(tl.make_jaxpr(tl.map(f))(tl.tensor([1.0]), tl.tensor([3])))
    assert "sweeps[" in jaxpr or "while[" in jaxpr


@pytest.mark.parametrize("f", FORMS, ids=lambda f: f.__name__)
def test_forms_differentiate_and_compile(f):
    xs, ns = (tl.tensor(list(column)) for column in zip(*INPUTS))
    total = tl.grad(lambda x: tl.sum(tl.map(f)(x, ns)))
    forward = tl.jvp(lambda x: tl.map(f)(x, ns), (xs,), (tl.ones(xs.shape),))[1]
    np.testing.assert_allclose(total(xs), forward, rtol=1e-13)
    assert tl.same_bits(tl.run(tl.map(f))(xs, ns), tl.map(f)(xs, ns))
    assert tl.same_bits(tl.run(total)(xs), total(xs))


@pytest.mark.parametrize("dtype", [tl.uint64, tl.uint8, tl.int32, tl.int64])
def test_counts_of_every_integer_type(dtype):
    counts = tl.tensor([0, 1, 5, 2], dtype)
    found = tl.map(lambda x, n: Damped(0.5).run(x, n))(tl.tensor([0.0] * 4), counts)
    assert np.asarray(found).tolist() == [0.0, 1.0, 1.9375, 1.5]


# ---- rules, each with its place ----

def halved(x, n):
    return x if n == 0 else halved(x, n // 2) + 1


def two_steps(x, n):
    return x if n == 0 else two_steps(x, n - 2) + 1


def both_change(x, n):
    return x if n == 0 else both_change(x - 1, n - 1) + 1


def forgets_an_argument(x, n, rate=0.5):
    return x if n == 0 else forgets_an_argument(x, n - 1) * rate


def two_counts(x, n):
    return x if n == 0 else two_counts(x - 1, n) + two_counts(x, n - 1)


def no_base(x, n):
    return no_base(x, n - 1) + x


def late_base(x, n):
    return x if n == 1 else late_base(x, n - 1) + 1


@pytest.mark.parametrize("f, rule", [
    (halved,
     "no argument is the predecessor n - 1: `n` changes otherwise"), (two_steps, "only `n - 1` is allowed"),
    (both_change,
     "arguments `x` and `n` both become their predecessor"), (forgets_an_argument, "must give every argument"),
    (two_counts, "different arguments .* in 2 places"), (no_base, "it calls itself when n == 0"),
    (late_base, "it calls itself when n == 0")], ids=lambda v: getattr(v, "__name__", ""))
def test_each_rule_is_named_with_its_place(f, rule):
    with pytest.raises(tl.errors.ScalarFunctionError, match=rule) as caught:
        tl.map(lambda x, n: f(x, n))(tl.tensor([1.0]), tl.tensor([3]))
    text = str(caught.value)
    assert "test_recurrence_forms.py:" in text and f.__name__ in text and "Fix:" in text


def test_what_does_not_call_itself_is_no_recurrence():
    @tl.recurrence
    def plain(x, n):
        return x * n
    with pytest.raises(tl.errors.ScalarFunctionError, match="does not call itself"):
        tl.map(lambda x, n: plain(x, n))(tl.tensor([1.0]), tl.tensor([3]))


def test_counts_that_are_no_natural_numbers():
    x, f = tl.tensor([1.0, 2.0]), tl.map(lambda x, n: method(x, n))
    with pytest.raises(RecursionError, match="run: the count n = -3 is negative") as caught:
        f(x, tl.tensor([2, -3]))
    assert "entry 1" in caught.value.__notes__[0]
    with pytest.raises(RecursionError, match="n = -3 is negative"):
        tl.run(f)(x, tl.tensor([2, -3]))
    with pytest.raises(tl.errors.ScalarFunctionError, match="its count `n` is a float"):
        f(x, tl.tensor([2.0, 3.0]))
