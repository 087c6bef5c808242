"""Ordered folds: words of the Python loop in every mode, any count, under every transform."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.testing import ulp_distance
from loop_programs import PROGRAMS, looped, plain

W, X = tl.tensor(0.7), tl.tensor(0.3)


def forward(f):
    """Derivative in direction (1, 0.5), forward mode."""
    return lambda w, x: tl.jvp(f, (w, x), (tl.tensor(1.0), tl.tensor(0.5)))[1]


def reverse(f):
    """The same number by reverse mode."""
    def run(w, x):
        a, b = tl.grad(f, argnums=(0, 1))(w, x)
        return a + 0.5 * b
    return run


MODES = {"value": lambda f: f, "forward": forward, "reverse": reverse,
         "forward over forward": lambda f: forward(forward(f)),
         "forward over reverse": lambda f: forward(reverse(f)),
         "reverse over forward": lambda f: reverse(forward(f))}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_words_are_those_of_the_python_loop(name, mode, n):
    ours, expected = (MODES[mode](f(name, n))(W, X) for f in (looped, plain))
    assert tl.same_bits(ours, expected + 0.0), (float(ours), float(expected))


@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_over_reverse(name):
    """The words of the Python loop, but where a value of the inner reverse loop is used by two sweeps: their
    cotangents are sums of several terms each, which are added last."""
    ours, expected = (reverse(reverse(f(name, 4)))(W, X) for f in (looped, plain))
    assert ulp_distance(ours, expected) <= (2 if name in ("pair", "vector") else 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["logistic_map", "pair", "branches"])
def test_count_is_an_argument_of_the_staged_program(name, mode):
    f = tl.run(lambda n, w, x: MODES[mode](looped(name, n))(w, x))
    before = None
    for n in (3, 0, 5):
        assert tl.same_bits(f(tl.tensor(n), W, X), MODES[mode](plain(name, n))(W, X) + 0.0)
        compiles = tl.cache_info()
        before = before or compiles
    assert len(f.plans) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_are_independent(name, mode):
    ws, xs = tl.tensor([0.7, 0.2, 0.9]), tl.tensor([0.3, -0.4, 0.8])
    lanes = tl.vmap(MODES[mode](looped(name, 3)))(ws, xs)
    one = [MODES[mode](plain(name, 3))(w, x) for w, x in zip(ws, xs)]
    assert lanes.words().tolist() == [int(y.words()) for y in one]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["logistic_map", "pair", "vector", "branches"])
def test_lanes_with_counts_of_their_own(name, mode):
    ns, xs = tl.tensor([2, 0, 5]), tl.tensor([0.3, -0.4, 0.8])
    lanes = tl.vmap(lambda n, x: MODES[mode](looped(name, n))(W, x))(ns, xs)
    one = [MODES[mode](plain(name, n))(W, x) + 0.0 for n, x in zip([2, 0, 5], xs)]
    assert lanes.words().tolist() == [int(y.words()) for y in one]


def test_lanes_that_have_ended_do_not_evaluate_the_body():
    table = tl.tensor([1.0, 2.0, 3.0])

    def sum_of_table(n):
        return tl.iterate(lambda i, acc: acc + table[i], n, 0.0)
    lanes = tl.vmap(sum_of_table)(tl.tensor([3, 1, 0]))
    assert lanes.tolist() == [6.0, 1.0, 0.0]
    with pytest.raises(tl.errors.OutOfBoundsError, match="index 3") as caught:
        tl.vmap(sum_of_table)(tl.tensor([3, 4]))
    assert any("in turn 3 of the loop" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("n, dx, ds", [(3, 42.0, [9.0, 9.0, 9.0]), (1, 6.0, [9.0, 0.0, 0.0]),
                                       (0, 0.0, [0.0, 0.0, 0.0])])
def test_value_used_before_and_after_the_loop(n, dx, ds):
    """Case C029."""
    def f(x, s, n=n):
        g = x * x
        return g * tl.iterate(lambda i, acc: acc + s[i], n, 0.0)
    s = tl.tensor([1.0, 2.0, 4.0])
    gx, gs = tl.grad(f, argnums=(0, 1))(tl.tensor(3.0), s)
    assert float(gx) == dx and gs.tolist() == ds
    gx, gs = tl.run(tl.grad(f, argnums=(0, 1)))(tl.tensor(3.0), s, tl.tensor(n))
    assert float(gx) == dx and gs.tolist() == ds


def test_loop_with_a_run_time_count_equals_the_unrolled_program():
    """Case C028, the second program."""
    def f(x, n):
        return tl.iterate(lambda h: h * tl.sin(h), n, x)

    def plain(x):
        for _ in range(5):
            x = x * tl.sin(x)
        return x
    x = tl.tensor(0.7)
    value, slope = tl.run(tl.value_and_grad(f))(x, tl.tensor(5))
    assert tl.same_bits(value, plain(x)) and tl.same_bits(slope, tl.grad(plain)(x))


@pytest.mark.parametrize("start, n, expected, dtype", [
    (0, 5, 10, tl.int64), (0.0, 5, 10.0, tl.float64), (tl.tensor(0, "float32"), 4, 6.0, tl.float32)])
def test_turn_and_state(start, n, expected, dtype):
    out = tl.iterate(lambda i, acc: acc + tl.convert(i, tl.tensor(start).dtype), n, start)
    assert float(out) == expected and out.dtype == dtype


def test_python_numbers_take_the_dtype_of_the_body():
    x = tl.tensor([1.5, 2.5], "float32")
    assert tl.iterate(lambda h: h + tl.sum(x), 2, 0).dtype == tl.float32
    assert float(tl.iterate(lambda h: h * 0.5, 2, 1)) == 0.25


def test_gradient_reaches_start_and_closed_over_values_of_several_dtypes():
    w = tl.tensor([0.5, 2.0], "float32")

    def f(w, x):
        return tl.sum(tl.iterate(lambda s: (s[0] * w, s[1] + tl.sum(s[0])), 3, (w, x))[1])
    gw, gx = tl.grad(f, argnums=(0, 1))(w, tl.tensor(0.0, "float32"))
    assert gw.dtype == tl.float32 and gw.tolist() == [1 + 2 * .5 + 3 * .25, 1 + 2 * 2 + 3 * 4]
    assert float(gx) == 1.0


def test_empty_state_and_integer_state():
    assert tl.iterate(lambda s: s, 3, ()) == ()
    assert float(tl.grad(lambda x: x * tl.iterate(lambda k: k + 1, 3, 0))(2.0)) == 3.0


def test_large_unsigned_counts_and_counts_from_data():
    data = tl.tensor([1, 2, 3])
    assert float(tl.iterate(lambda x: x * 2, data[1], 1.0)) == 4.0
    assert float(tl.iterate(lambda x: x + 1, tl.tensor(3, "uint64"), 0.0)) == 3.0
    assert float(tl.iterate(lambda x: x + 1, np.int32(3), 0.0)) == 3.0


def test_captured_value_is_current():
    box = [2.0]
    f = lambda x: tl.iterate(lambda h: h * box[0], 2, x)
    assert float(f(1.0)) == 4.0
    box[0] = 3.0
    assert float(f(1.0)) == 9.0


@pytest.mark.parametrize("wrap", [lambda f: f, tl.run], ids=["eager", "nested run"])
def test_parameter_used_after_the_loop_too(wrap):
    """Its cotangent is added up in the order of the Python loop."""
    def with_tail(f):
        return lambda w, x: f(w, x) * tl.sin(w) * w
    ours = tl.grad(with_tail(wrap(looped("logistic_map", 4))))(W, X)
    assert tl.same_bits(ours, tl.grad(with_tail(plain("logistic_map", 4)))(W, X))
