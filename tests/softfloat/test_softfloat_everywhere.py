"""binary128 in every transform: recurrences, loops, maps, programs, all orders of sums; E8M0; text of any kind.

Arithmetic on short dyadic numbers is exact in binary128, so programs are compared with rational numbers.
"""
from fractions import Fraction

import numpy as np
import pytest
from softfloat_operands import random_numbers

import tlgrad as tl
from tlgrad.softfloat import fast
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.format import binary128
from tlgrad.softfloat.value import Float


@pytest.fixture(autouse=True, params=["reference", "kernels"])
def tier(request, monkeypatch):
    """Every test runs on the pure-Python reference and on compiled kernels."""
    monkeypatch.setattr(fast, "WARM", 0 if request.param == "kernels" else 1 << 60)


def quad(data):
    return tl.tensor(data, binary128)


HALF, STEPS = Fraction(1, 2), 3


def exact(x):
    """y <- y * y / 2 + x / 4, three times from x, and its derivatives of order 1 and 2 by x."""
    y, dy, ddy = x, Fraction(1), Fraction(0)
    for _ in range(STEPS):
        y, dy, ddy = y * y * HALF + x / 4, y * dy + Fraction(1, 4), dy * dy + y * ddy
    return y, dy, ddy


@tl.recurrence
def recurrence(x, n):
    if n == 0:
        return x
    y = recurrence(x, n - 1)
    return y * y * 0.5 + x * 0.25


def scalar(x):
    y = x
    for _ in range(STEPS):
        y = y * y * 0.5 + x * 0.25 if x > -9 else y
    return y


LOOPS = {
    "iterate": lambda x: tl.iterate(lambda y: y * y * 0.5 + x * 0.25, STEPS, x),
    "scan": lambda x: tl.scan(lambda y, _: (y * y * 0.5 + x * 0.25, y), x, quad([0, 0, 0]))[0],
    "recurrence": lambda x: recurrence(x, STEPS), "map": tl.map(scalar),
    "program": lambda x: tl.Program(lambda read, i: tl.iterate(
        lambda y: y * y * 0.5 + read(0, i) * 0.25, STEPS, read(0, i)))(x, shape=(2,)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_their_derivatives_are_exact(name):
    f, points = LOOPS[name], [Fraction(3, 4), Fraction(-5, 8)]
    x, one = quad(points), quad([1, 1])
    right = [exact(p) for p in points]
    words = lambda t: [v.to_fraction() for v in t.tolist()]
    value, pull = tl.vjp(f, x)
    _, tangent = tl.jvp(f, (x,), (one,))
    pulled = pull(one)
    assert words(value) == [r[0] for r in right] == words(tl.run(f)(x))
    for slope in (pulled[0] if isinstance(pulled, tuple) else pulled, tangent, tl.grad(lambda v: tl.sum(f(v)))(x),
                  tl.derivative(f, [one])(x), tl.run(tl.grad(lambda v: tl.sum(f(v))))(x)):
        assert words(slope) == [r[1] for r in right]
    assert words(tl.derivative(f, [one, one])(x)) == [r[2] for r in right]
    if name != "program":
        assert words(tl.vmap(f)(quad([points, points[::-1]]))[1]) == [r[0] for r in right[::-1]]


ORDERS = {
    "ordered": lambda terms: _fold(terms, lambda acc, a, b: acc + a * b),
    "fused": lambda terms: _fold(terms, _fma), "tree": lambda terms: _tree(terms),
}


def _fold(terms, step):
    acc = Float(binary128, 0)
    for a, b in terms:
        acc = step(acc, a, b)
    return acc


def _fma(acc, a, b):
    return Float(binary128, a.to_fraction() * b.to_fraction() + acc.to_fraction())


def _tree(terms):
    """Leaves of 128 terms from the left, then neighbours level by level."""
    level = [_fold(terms[k:k + 128], lambda acc, a, b: acc + a * b) for k in range(0, len(terms), 128)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2])] + level[len(level) // 2 * 2:]
    return level[0]


@pytest.mark.parametrize("order", ORDERS)
def test_sums_and_products_in_every_order(order):
    a, b = (tl.Tensor.own(random_numbers((300,), binary128, k)) for k in (1, 2))
    pairs, ones = list(zip(a.tolist(), b.tolist())), [(x, Float(binary128, 1)) for x in a.tolist()]
    for f, right in ((lambda: tl.sum(a, order=order), ORDERS[order](ones)),
                     (lambda: tl.matmul(a, b, order=order), ORDERS[order](pairs)),
                     (lambda: tl.run(lambda x, y: x @ y, order=order)(a, b), ORDERS[order](pairs)),
                     (lambda: tl.run(lambda x: tl.sum(x), order=order)(a), ORDERS[order](ones))):
        assert f().item().same_bits(right)
    free = tl.sum(a, order="free").item() - ORDERS[order](ones)
    assert abs(free) < Float(binary128, "1e-30")


def test_scales_add_compare_and_sort():
    """E8M0 has powers of two alone: no sign, no zero, and 255 is its NaN."""
    x = tl.tensor([4, 1, 2, 1], formats.float8_e8m0fnu)
    assert (tl.sum(x).item(), tl.run(lambda v: tl.sum(v * v))(x).item()) == (8.0, 16.0)
    assert tl.sort(x).tolist() == [1, 1, 2, 4] and tl.argmax(x).item() == 0
    assert (x + x).tolist() == [8, 2, 4, 2] and (x > 1).tolist() == [True, False, True, False]
    assert tl.tensor([3, 6], formats.float8_e8m0fnu).tolist() == [4, 8]
    assert (x - x).words().tolist() == [255] * 4


@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16, tl.binary128, tl.float8_e4m3fn, tl.tf32],
                         ids=str)
def test_the_sign_of_a_zero_is_plus_zero(dtype):
    x = tl.tensor([-0.0, 0.0, -3.0, 2.0], dtype)
    signs = tl.tensor([0.0, 0.0, -1.0, 1.0], dtype)
    for f in (tl.sign, tl.run(tl.sign), tl.run(lambda v: tl.sign(v * 1.0))):
        assert tl.same_bits(f(x), signs)


def test_every_route_of_text_is_rounded_once():
    tenth = "0x1.999999999999999999999999999ap-4"
    for source in ("0.1", b"0.1", np.array("0.1"), np.array([b"0.1"]), ["0.1"], Fraction(1, 10)):
        assert tl.ravel(quad(source))[0].item().hex() == tenth
    assert quad("50000.012345678901234").item().hex() == "0x1.86a006522c3e416427949a25ce69p+15"
    assert int(quad(12345678901234567890).item()) == 12345678901234567890


def test_overflow_and_higher_derivatives():
    found, f = [], tl.softplus
    for _ in range(5):
        found.append(str(f(quad(0)).item()))
        f = tl.grad(f)
    assert found[1:] == ["0.5", "0.25", "0.0", "-0.125"]
    naive = tl.grad(lambda x: 1 / (1 + tl.exp(-x)))(quad(-800)).item()
    assert f"{naive:.15e}" == "3.667874584177687e-348"
    assert f"{tl.log(tl.cosh(quad(800))).item():.16f}" == "799.3068528194400547"[:20]
    assert f"{tl.grad(tl.expm1)(quad(-40)).item():.15e}" == "4.248354255291589e-18"


def test_neighbours_and_total_order_of_scalars():
    one = Float(binary128, 1)
    assert one.nextafter(2).same_bits(one.next_up()) and one.nextafter(one).same_bits(one)
    ranks = [Float(binary128, x) for x in ("-inf", "-1", "-0.0", "0.0", "1", "inf", "nan")]
    assert all(a.total_order(b) for a, b in zip(ranks, ranks[1:]))
    assert not any(b.total_order(a) for a, b in zip(ranks, ranks[1:]))
