"""scan and while_loop: words of the Python loop, derivatives in every mode, lanes, errors."""
import pytest

import tlgrad as tl
from tlgrad.testing import ulp_distance

XS = tl.tensor([0.5, -1.5, 2.0, 0.25])


def recurrence(w):
    return lambda c, x: (tl.tanh(c * w) + x * c, c * x)


def scanned(w, xs, reverse=False, **options):
    c, ys = tl.scan(recurrence(w), 0.3 * w, xs, reverse=reverse, **options)
    return c + tl.sum(ys * ys)


def plain(w, xs, reverse=False):
    c, ys = 0.3 * w, [None] * xs.shape[0]
    for k in (range(xs.shape[0])[::-1] if reverse else range(xs.shape[0])):
        c, ys[k] = recurrence(w)(c, xs[k])
    ys = tl.stack(ys)
    return c + tl.sum(ys * ys)


MODES = {"value": lambda f: f, "gradient of w": tl.grad, "gradient of xs": lambda f: tl.grad(f, 1),
         "forward": lambda f: lambda w, xs: tl.jvp(f, (w, xs), (w, xs))[1],
         "forward over reverse": lambda f: lambda w, xs: tl.jvp(tl.grad(f, 1), (w, xs), (w, xs))[1],
         "reverse over forward": lambda f: tl.grad(lambda w, xs: tl.jvp(f, (w, xs), (w, xs))[1])}


@pytest.mark.parametrize("reverse", [False, True], ids=["from the front", "from the end"])
@pytest.mark.parametrize("mode", MODES)
def test_scan_in_every_mode(mode, reverse):
    w = tl.tensor(0.8)
    ours = MODES[mode](lambda w, xs: scanned(w, xs, reverse))(w, XS)
    expected = MODES[mode](lambda w, xs: plain(w, xs, reverse))(w, XS)
    # xs is read by the sweep of values and by that of tangents; their cotangents are added last
    assert ulp_distance(ours, expected).max() <= (2 if mode == "reverse over forward" else 0)


@pytest.mark.parametrize("mode", MODES)
def test_scan_over_lanes_and_staged(mode):
    ws, xs = tl.tensor([0.8, 0.1]), tl.stack([XS, XS * 0.5])
    f = MODES[mode](scanned)
    lanes = tl.vmap(f)(ws, xs)
    for k in range(2):
        alone = f(ws[k], xs[k])
        assert tl.same_bits(lanes[k], alone)
        assert tl.same_bits(tl.run(f)(ws[k], xs[k]), alone)


def test_scan_gives_carry_and_stacked_results_of_pytrees():
    carry, ys = tl.scan(lambda c, x: ({"n": c["n"] + x["a"]}, (c["n"], x["b"])), {"n": tl.tensor(1.0)},
                        {"a": XS, "b": tl.tensor([1, 2, 3, 4])})
    assert float(carry["n"]) == 2.25 and ys[0].tolist() == [1.0, 1.5, 0.0, 2.0]
    assert ys[1].tolist() == [1, 2, 3, 4]


def test_scan_without_inputs_and_without_turns():
    carry, ys = tl.scan(lambda c, _: (c * 2, c), 1.0, length=3)
    assert float(carry) == 8.0 and ys.tolist() == [1.0, 2.0, 4.0]
    carry, ys = tl.scan(lambda c, x: (c + x, c), 1.0, tl.tensor([1.0])[:0])
    assert float(carry) == 1.0 and ys.shape == (0,)


def test_scan_refusals():
    with pytest.raises(tl.errors.ShapeError, match=r"xs\['a'\] has 4, xs\['b'\] has 2"):
        tl.scan(lambda c, x: (c, None), 0.0, {"a": XS, "b": XS[:2]})
    with pytest.raises(tl.errors.ArgumentError, match="give length="):
        tl.scan(lambda c, x: (c, None), 0.0)
    with pytest.raises(tl.errors.OutputError, match="must return a pair"):
        tl.scan(lambda c, x: c, 0.0, XS)
    with pytest.raises(tl.errors.ShapeError, match=r"xs has shape \(\)"):
        tl.scan(lambda c, x: (c, x), 0.0, tl.tensor(1.0))


def newton(a):
    """Square root of a by Newton's iteration (case C028)."""
    return tl.while_loop(lambda y: tl.abs(y * y - a) > 1e-12, lambda y: (y + a / y) / 2, a)


def newton_plain(a):
    y = a
    while abs(y * y - a) > 1e-12:
        y = (y + a / y) / 2
    return y


@pytest.mark.parametrize("mode", ["value", "forward", "reverse", "staged reverse"])
def test_newton_equals_the_python_loop(mode):
    a = tl.tensor(2.0)
    derive = {"value": lambda f: f, "reverse": tl.grad, "staged reverse": lambda f: tl.run(tl.grad(f)),
              "forward": lambda f: lambda x: tl.jvp(f, (x,), (tl.tensor(1.0),))[1]}
    ours = derive[mode](newton)(a)
    assert tl.same_bits(ours, derive[mode.removeprefix("staged ")](newton_plain)(a))
    if mode != "value":
        assert abs(float(ours) - 0.35355339059327) < 1e-13


def test_newton_to_second_order_in_all_mode_pairs():
    def forward(f):
        return lambda x: tl.jvp(f, (x,), (tl.tensor(1.0),))[1]
    for outer in (forward, tl.grad):
        for inner in (forward, tl.grad):
            assert abs(float(outer(inner(newton))(tl.tensor(2.0))) + 0.25 * 2 ** -1.5) < 1e-12


def test_lanes_stop_by_their_own_condition():
    a = tl.tensor([1.0, 2.0, 900.0])
    lanes, slopes = tl.vmap(newton)(a), tl.vmap(tl.grad(newton))(a)
    for k in range(3):
        assert tl.same_bits(lanes[k], newton_plain(a[k]))
        assert tl.same_bits(slopes[k], tl.grad(newton_plain)(a[k]))


def test_lanes_that_have_ended_neither_raise_nor_poison():
    table = tl.tensor([1, 2, 3, -1])

    def follow(k):
        return tl.while_loop(lambda k: k >= 0, lambda k: table[k], k)
    assert tl.vmap(follow)(tl.tensor([0, 3, 2])).tolist() == [-1, -1, -1]

    def roots(x):                        # the derivative of the body is infinite at 0
        return tl.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, tl.sqrt(s[1])), (tl.tensor(1), x))[1]

    def some(k, x):
        return tl.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, tl.sqrt(s[1])), (k, x))[1]
    slopes = tl.vmap(tl.grad(some, 1))(tl.tensor([1, 0]), tl.tensor([4.0, 0.0]))
    assert slopes.tolist() == [0.25, 1.0] and float(tl.grad(roots)(4.0)) == 0.25


def test_nested_while_of_a_lane_that_has_ended_is_not_run():
    def inner(x):                        # would never end from a negative start
        return tl.while_loop(lambda y: y != 0, lambda y: y - 1, x)

    def outer(n):
        return tl.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] + inner(s[0])), (n, n * 0 + 5))[1]
    assert tl.vmap(outer)(tl.tensor([3, -2, 1])).tolist() == [5, 5, 5]


def test_while_refusals():
    with pytest.raises(tl.errors.DTypeError, match="must return one bool"):
        tl.while_loop(lambda x: x, lambda x: x - 1, tl.tensor(3.0))
    with pytest.raises(tl.errors.CarryError, match=r"carry: \(\) in, \(2,\) out"):
        tl.while_loop(lambda x: x < 1, lambda x: tl.stack([x, x]), tl.tensor(0.0))
