"""`expr.fma` against exact rationals: random words, cancellation, the subnormal boundary, halfway
cases."""
from fractions import Fraction

import numpy as np
import pytest

from tlgrad.kernels.expr import fma

FORMATS = {np.float64: (53, -1022, 1023, np.uint64), np.float32: (24, -126, 127, np.uint32),
           np.float16: (11, -14, 15, np.uint16)}


def rounded(q, precision, least, greatest):
    """The float nearest to the rational `q`, ties to even, subnormals and overflow included."""
    if q == 0:
        return 0.0
    size = abs(q)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, least) - precision + 1)
    value = round(size / unit) * unit
    result = np.inf if value >= Fraction(2) ** (greatest + 1) else float(value)
    return result if q > 0 else -result


def operands(kind, dtype, n, g):
    _, least, _, word = FORMATS[dtype]
    eps = float(np.finfo(dtype).eps)

    def any_words():
        words = g.integers(0, 1 << 63, n, dtype=np.uint64).astype(word)
        return words.view(dtype) * dtype(g.choice([-1, 1]))

    def near(low, high):
        return np.ldexp(g.uniform(1, 2, n), g.integers(low, high, n)).astype(dtype)
    if kind == "words":
        return any_words(), any_words(), any_words()
    if kind == "cancelling":
        a, b = any_words(), any_words()
        return a, b, (-(a * b) * (1 + g.integers(-3, 4, n) * eps)).astype(dtype)
    if kind == "subnormal":
        tiny = float(np.finfo(dtype).smallest_subnormal)
        return (near(least // 2 - 30, least // 2 + 10), near(least // 2 - 20, least // 2 + 8),
                (g.integers(-50, 50, n) * tiny).astype(dtype))
    a, b = ((1 + g.integers(0, 8, n) * eps).astype(dtype) for _ in range(2))
    return a, b, np.ldexp(g.integers(-3, 4, n).astype(float), g.integers(-60, 3, n)).astype(dtype)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("kind", ["words", "cancelling", "subnormal", "halfway"])
def test_is_the_rounded_rational(kind, dtype):
    precision, least, greatest, _ = FORMATS[dtype]
    with np.errstate(all="ignore"):
        a, b, c = operands(kind, dtype, 6000, np.random.default_rng(1))
    keep = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[keep], b[keep], c[keep]
    want = [rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), precision, least,
                    greatest) for x, y, z in zip(a, b, c)]
    np.testing.assert_array_equal(fma(a, b, c).astype(np.float64), want)


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda d: d.__name__)
def test_infinities_and_zeros(dtype):
    inf, big = dtype(np.inf), np.finfo(dtype).max
    assert fma(big, big, -inf) == -inf
    assert np.isnan(fma(inf, dtype(0), dtype(1))) and np.isnan(fma(inf, dtype(1), -inf))
    assert np.signbit(fma(dtype(-0.0), dtype(1), dtype(-0.0)))
    assert not np.signbit(fma(dtype(2), dtype(-1), dtype(2)))
    assert fma(np.zeros((2, 0), dtype), dtype(1), dtype(1)).shape == (2, 0)


def test_mixed_dtypes_are_refused():
    with pytest.raises(TypeError, match="float32 and float64"):
        fma(np.float32(1), np.float32(1), np.float64(1))
