"""Elementwise functions of the array API standard on every pair of special numbers, against NumPy.

NumPy keeps the standard's special cases (signed zeros, infinities, NaN), except those of floor_divide
with infinities, where NumPy, Python and tlgrad agree with one another: inf // 1 is NaN.
"""
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn

inf, nan = np.inf, np.nan
REAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e300, -1e300, 5e-324, -5e-324,
                 inf, -inf, nan])
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, inf, -inf, nan]
COMPLEX = np.array([complex(a, b) for a in PARTS for b in PARTS])
INTEGERS = np.array([0, 1, 2, 3, 7, -1, -2, -7, 127, -128])

ONE = ("abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan "
       "log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt "
       "tan "
       "tanh trunc").split()
TWO = ("add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp "
       "logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder "
       "subtract").split()
WHOLE = ("add subtract multiply bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
         "maximum minimum floor_divide remainder pow less less_equal greater equal").split()
#: of complex operands: real only in the standard; or the sign of a zero or NaN part that the standard leaves open
REAL_ONLY = set("ceil floor round trunc signbit atan2 copysign greater greater_equal hypot less less_equal "
         "logaddexp "
                "maximum minimum nextafter floor_divide remainder imag".split())
OPEN = {"reciprocal", "sign"}


def check(found, expected, what):
    """The same words up to ulps; signs of zeros and kinds of infinities included."""
    found = np.asarray(found)
    assert found.dtype == expected.dtype, what
    if found.dtype.kind == "c":
        check(found.real, expected.real, what)
        check(found.imag, expected.imag, what)
    elif found.dtype.kind == "f":
        tolerance = 4 * np.finfo(found.dtype).eps
        with np.errstate(all="ignore"):
            close = np.abs(found - expected) <= tolerance * np.abs(expected)
        zero = (expected == 0) & (found == 0) & (np.signbit(found) == np.signbit(expected))
        fine = np.where(expected == 0, zero, (found == expected) | close | (np.isnan(found) & np.isnan(expected)))
        assert fine.all(), f"{what}: {found[~fine]} is not {expected[~fine]}"
    else:
        assert np.array_equal(found, expected), what


def pairs(values):
    return [v.ravel() for v in np.meshgrid(values, values, indexing="ij")]


def compare(name, args):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*args)
    check(getattr(tn, name)(*map(tl.tensor, args)), expected, f"{name} of {args[0].dtype}")


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_operand(name):
    with np.errstate(over="ignore", under="ignore"):
        for x in (REAL, REAL.astype(np.float32)):
            compare(name, [x])
    if name not in REAL_ONLY | OPEN:
        compare(name, [COMPLEX])


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name):
    with np.errstate(over="ignore", under="ignore"):
        for x in (REAL, REAL.astype(np.float32)):
            a, b = pairs(x)
            if name in ("maximum", "minimum"):                  # NumPy takes either of two zeros
                a, b = (v[~((a == 0) & (b == 0))] for v in (a, b))
            compare(name, [a, b])
    if name not in REAL_ONLY:
        compare(name, pairs(COMPLEX))


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_functions_of_integers(name, dtype):
    a, b = pairs(INTEGERS.astype(dtype))
    keep = {"floor_divide": b != 0, "remainder": b != 0, "pow": b.astype(np.int64) >= 0}.get(name, b == b)
    if "shift" in name:
        keep = (b.astype(np.int64) >= 0) & (b.astype(np.int64) < 8)
    compare(name, [a[keep], b[keep]])


def test_clip_by_nan_is_nan():
    x = tl.tensor([1.0, nan])
    assert np.isnan(tn.clip(x, nan, 2.0)).all() and np.isnan(tn.clip(x, 0.0, nan)).all()
    assert tn.clip(x, 2.0, None).tolist()[0] == 2
