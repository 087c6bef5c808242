"""Statistics that neither cancel nor wrap around, integers by NumPy's rules, sorting with special numbers."""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn
from tlgrad.errors import ZeroDivision

inf, nan = np.inf, np.nan


def everywhere(f, *args):
    """The result of a call, eager and compiled: they are the same words."""
    eager, compiled = f(*args), tl.run(f)(*args)
    assert tl.same_bits(eager, compiled)
    return eager


# ---- never negative, never NaN by cancellation ----

@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [0.1] * 7, [1e8 + 0.1] * 5, [1e307] * 3, [5e-324] * 4])
def test_variance_of_a_constant_is_0_with_a_derivative_of_0(values):
    x = tl.tensor(values)
    for f in (tn.var, tn.std, lambda x: tn.std(x)**2, tn.nanvar, tn.nanstd, lambda x: tn.cov(x)):
        assert everywhere(f, x).item() >= 0
        assert np.isfinite(tl.grad(f)(x)).all()
    for f in (tn.var, tn.std, lambda x: tn.std(x)**2):
        if len(set(np.asarray(x) - float(tn.mean(x).item()))) == 1 and f(x).item() == 0:
            assert tl.grad(f)(x).tolist() == [0] * len(values)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12, -1e15])
def test_variance_keeps_its_digits_beside_a_large_mean(offset):
    x = offset + np.array([1.0, 2.0, 4.0, 8.0])
    exact = np.var(np.array([1.0, 2.0, 4.0, 8.0]))
    for f in (tn.var, tn.nanvar, lambda x: tn.cov(x, bias=True), lambda x: tn.average((x - tn.mean(x))**2)):
        assert f(x).item() == pytest.approx(exact, rel=1e-3 if abs(offset) > 1e13 else 1e-9)
        assert f(x).item() >= 0
    assert abs(tn.corrcoef(x, -x)[0, 1].item() + 1) < 1e-12 and (np.abs(tn.corrcoef(x, x)) <= 1).all()


def test_standard_deviation_of_a_constant_has_the_derivative_of_the_convention():
    x = tl.tensor([1.0, 1.0, 1.0])
    assert tl.grad(tn.std)(x).tolist() == tl.grad(tn.var)(x).tolist() == [0, 0, 0]
    assert tl.grad(lambda x: tn.std(x)**2)(x).tolist() == [0, 0, 0]


# ---- narrow numbers are added up wide ----

def test_means_of_16_bit_numbers_do_not_overflow():
    for dtype in ("float16", "bfloat16"):
        assert everywhere(tn.mean, tl.tensor([60.0] * 4096, dtype)).item() == 60
    x = tl.tensor([60000.0] * 3, tl.float16)
    assert everywhere(tn.mean, x).item() == 60000 and tn.mean(x).dtype is tl.float16
    assert everywhere(lambda x: tn.mean(x, dtype=tl.float32), x).item() == 60000


def test_sums_of_small_integers_do_not_wrap_around():
    assert everywhere(tn.sum, tl.tensor([65535, 1], tl.uint16)).item() == 65536
    x = tl.tensor([200] * 300, tl.int16)
    assert everywhere(tn.sum, x).item() == 60000 and tl.reduce(x, "a ->", "sum").item() == 60000
    assert tl.einsum("a ->", x).item() == 60000 or tl.einsum("a ->", x).dtype is tl.int16
    assert tl.run(lambda x: tn.sum(x, dtype=tl.int16))(x).item() == 60000 - 65536        # asked for
    ones = tl.tensor(np.ones(70000), tl.float16)
    assert everywhere(tn.sum, ones).item() == inf or tn.sum(ones).dtype is tl.float32


def test_integers_and_booleans_are_averaged_and_asked():
    x = tl.tensor([[0, 1, 2], [3, 4, 5]])
    assert tl.reduce(x, "a b -> b",
    "mean").tolist() == everywhere(lambda x: tn.mean(x, 0), x).tolist() == [1.5, 2.5, 3.5]
    assert tn.mean(tl.tensor([True, False])).item() == 0.5
    assert tl.reduce(x > 4, "a b -> b", "any").tolist() == [False, False, True]
    assert tl.reduce(x > -1, "a b ->", "all").item() is True
    assert tn.prod(tl.tensor([True, True])).item() == 1 and tn.prod(tl.tensor([100, 100], tl.int8)).item() == 10000


# ---- integers follow NumPy ----

@pytest.mark.parametrize("f, args, dtype, right", [
    (lambda a, b: a * b, (222, 222), "int16", -16252), (lambda a, b: a // b, (-2**31, -1), "int32", -2**31),
    (lambda a, b: a % b, (-2**31, -1), "int32", 0), (lambda a, b: a // b, (-7, 2), "int64", -4),
    (lambda a, b: a % b, (-7, 3), "int64", 2), (lambda a, b: a ** b, (0, 0), "int64", 1),
    (lambda a, b: a // b, (-128, -1), "int8", -128), (lambda a, b: a - b, (0, 1), "uint8", 255),
    (lambda a, b: a ** b, (2, 200), "uint8", 0), (lambda a, b: a ** b, (3, 129), "uint8", 3**129 % 256)])
def test_integers_wrap_around(f, args, dtype, right):
    a, b = (tl.tensor([v], dtype) for v in args)
    y = everywhere(f, a, b)
    assert y.tolist() == [right] and y.dtype == dtype


def test_what_integers_cannot_do_is_an_error():
    five = tl.tensor([5])
    for f in (lambda x: five // x, lambda x: five % x):
        with pytest.raises(ZeroDivision):
            f(tl.tensor([0]))
        with pytest.raises(ZeroDivision):
            tl.run(f)(tl.tensor([0]))
    with pytest.raises(ValueError, match="negative integer powers"):
        tl.tensor([2]) ** tl.tensor([-1])


# ---- order of special numbers: -inf < ... < -0 = 0 < ... < inf < NaN, equal ones keep their places ----

SPECIAL = np.array([2.0, nan, -0.0, inf, 0.0, -inf, 1.0, nan, -0.0])


def test_sorting_special_numbers_keeps_the_places_of_equals():
    order = np.argsort(SPECIAL, kind="stable")
    assert np.array_equal(everywhere(tn.argsort, SPECIAL), order)
    assert tl.same_bits(everywhere(tn.sort, SPECIAL), tl.tensor(SPECIAL[order]))
    values, places = tn.top_k(tl.tensor([1.0, 3.0, 3.0, 2.0]), 3)
    assert values.tolist() == [3, 3, 2] and places.tolist() == [1, 2, 3]
    assert tl.grad(lambda x: tn.sort(x)[1])(tl.tensor([3.0, 1.0, 2.0])).tolist() == [0, 0, 1]
    assert tl.grad(lambda x: tn.sum(tn.top_k(x, 2)[0]))(tl.tensor([3.0, 3.0, 1.0])).tolist() == [1, 1, 0]


def test_quantiles_with_special_numbers():
    assert np.isnan(tn.quantile(SPECIAL, 0.5).item()) and tn.nanquantile(SPECIAL, 0.5).item() == 0
    x = np.array([1.0, inf, -inf, 2.0])
    for q, right in ((0.0, -inf), (0.3, -inf), (0.5, 1.5), (1.0, inf)):       # between -inf and 1 there is -inf
        assert everywhere(lambda x: tn.quantile(x, q), x).item() == right
    assert tl.grad(lambda x: tn.quantile(x, 0.25))(tl.tensor([4.0, 1.0, 2.0])).tolist() == [0, 0.5, 0.5]
    assert tl.grad(lambda q: tn.quantile(tl.tensor([4.0, 1.0, 2.0]), q))(0.25).item() == 2


def test_unique_values_tell_nan_and_merge_zeros():
    values, places, inverse, counts = tn.unique_all(tl.tensor([0.0, nan, -0.0, 1.0, nan]))
    right = [0.0, 1.0, nan, nan]
    assert np.array_equal(values, right, equal_nan=True) and counts.tolist() == [2, 1, 1, 1]
    assert np.array_equal(np.asarray(values)[np.asarray(inverse)], [0, nan, 0, 1, nan], equal_nan=True)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("name", ["max", "min"])
def test_complex_numbers_are_ordered_by_real_part_then_by_imaginary_part(name, axis):
    rng = np.random.default_rng(0)
    z = rng.integers(-2, 3, size=(3, 4, 5)) + 1j * rng.integers(-2, 3, size=(3, 4, 5))
    f = getattr(tn, name)
    assert np.array_equal(everywhere(lambda z: f(z, axis), z), getattr(np, name)(z, axis))
    assert np.array_equal(f(z, axis, keepdims=True), getattr(np, name)(z, axis, keepdims=True))
    if not isinstance(axis, tuple):
        arg = getattr(tn, "arg" + name)
        assert np.array_equal(arg(z, axis), getattr(np, "arg" + name)(z, axis))
    assert np.isnan(f(tl.tensor([1 + 1j, complex(0, nan)])).item())
    slope = tl.grad(lambda z: tn.real(f(z)))(tl.tensor([1 + 2j, 1 + 2j, 1 - 3j]))
    assert slope.tolist() == ([1, 0, 0] if name == "max" else [0, 0, 1])
