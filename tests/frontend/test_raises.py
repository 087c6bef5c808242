"""`assert` and `raise` reached by some entry: the lowest one raises, with its values in the message."""
import math

import numpy as np
import pytest

import tlgrad as tl

XS = [4.0, 1.0, -2.5, 9.0, -7.0]


def raising(x, n):
    if x < 0:
        raise ValueError(f"x = {x:.2f} is below 0 in turn {n}")
    return math.sqrt(x) * n


def asserting(x, n):
    assert x >= 0, f"x = {x:.2f} is below 0 in turn {n}"
    return math.sqrt(x) * n


def in_a_helper(x, n):
    def root(v):
        if v < 0:
            raise ValueError(f"x = {v:.2f} is below 0 in turn {n}")
        return math.sqrt(v)
    return root(x) * n


def in_a_loop(x, n):
    total = 0.0
    for k in range(n):
        if k == 3 and x < 0:
            raise ValueError(f"x = {x:.2f} is below 0 in turn {k}")
        total = total + x * x
    return total


def called(f, x, n):
    return tl.map(f)(x, n)


def compiled(f, x, n):
    return tl.run(tl.map(f))(x, n)


def gradient(f, x, n):
    return tl.grad(lambda x: tl.sum(tl.map(f)(x, n)))(x)


def compiled_gradient(f, x, n):
    return tl.run(tl.grad(lambda x: tl.sum(tl.map(f)(x, n))))(x)


def forward(f, x, n):
    return tl.jvp(lambda x: tl.map(f)(x, n), (x,), (x,))[1]


def second(f, x, n):
    return tl.grad(lambda x: tl.sum(tl.grad(lambda x: tl.sum(tl.map(f)(x, n)))(x) * x))(x)


def batched(f, x, n):
    return tl.vmap(tl.map(f), in_axes=0)(tl.stack([x, x]), tl.stack([n, n]))


WAYS = [called, compiled, gradient, compiled_gradient, forward, second, batched]


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("f", [raising, asserting, in_a_helper, in_a_loop], ids=lambda f: f.__name__)
def test_the_lowest_failing_entry_raises_with_its_values(f, way):
    n = tl.tensor([1, 2, 5, 4, 6])
    turn = 3 if f is in_a_loop else 5
    kind = AssertionError if f is asserting else ValueError
    with pytest.raises(kind, match=f"^x = -2.50 is below 0 in turn {turn}\n") as caught:
        way(f, tl.tensor(XS), n)
    entry = "entry (0, 2)" if way is batched else "entry 2"
    assert any(entry in note and "-2.5" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("f", [raising, asserting, in_a_helper, in_a_loop], ids=lambda f: f.__name__)
def test_without_a_failing_entry_nothing_is_raised(f, way):
    x, n = tl.tensor(np.abs(XS)), tl.tensor([1, 2, 5, 4, 6])
    assert np.isfinite(np.asarray(way(f, x, n))).all()


def test_the_lowest_entry_of_many_in_row_major_order():
    x = np.ones((200, 300))
    x[150, 7] = x[40, 299] = x[41, 0] = -1.0
    for m in (tl.map(lambda x: raising(x, 1)), tl.run(tl.map(lambda x: raising(x, 1)))):
        with pytest.raises(ValueError) as caught:
            m(tl.tensor(x))
        assert "entry (40, 299)" in caught.value.__notes__[0]


def test_integers_and_bools_keep_their_form_in_messages():
    def f(x, n, b):
        if n > 2:
            raise KeyError(f"{n} {n:+d} {b} {x!r} {x:8.3e}")
        return x
    with pytest.raises(KeyError, match=r"3 \+3 True 0\.5 5\.000e-01"):
        tl.map(f)(tl.tensor([1.0, 0.5]), tl.tensor([1, 3]), tl.tensor([False, True]))


def test_an_assertion_under_pytest_shows_its_operands():
    with pytest.raises(AssertionError, match=r"assert -2.5 >= 0"):
        tl.map(lambda x: asserting(x, 1))(tl.tensor([1.0, -2.5]))
