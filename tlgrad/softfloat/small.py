"""Formats of at most 24 fraction and 9 exponent bits: binary64 does the work, then one rounding.

Both numbers of an operation are exact in binary64. Its result, rounded to 53 bits, rounds again to
the same word as the exact one, since 53 is at least twice the precision plus 2 (Figueroa, "When is
double rounding innocuous?", 1995); for fma the first rounding is to odd (Boldo and Melquiond, 2008).
"""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from tlgrad.softfloat import convert
from tlgrad.softfloat.format import Binary
from tlgrad.softfloat.storage import as_words, dtype_of

SIGN, MAGNITUDE = np.uint64(1 << 63), np.uint64((1 << 63) - 1)


def fits(fmt: Binary) -> bool:
    """Whether binary64 can stand in for the format."""
    return fmt.F <= 24 and fmt.E <= 9


@lru_cache(maxsize=None)
def _table(fmt):
    """The binary64 value of every word of a format of at most 16 bits."""
    return np.array([convert.to_float(fmt, w) for w in range(1 << fmt.width)])


def decode(array: np.ndarray, fmt: Binary) -> np.ndarray:
    """The values in binary64, exactly."""
    words = as_words(array)
    if fmt.width <= 16:
        return _table(fmt)[words]
    words = words.astype(np.uint64)
    magnitude = words & np.uint64(fmt.sign_bit - 1)
    code = (magnitude >> np.uint64(fmt.F)).astype(np.int64)
    sig = (magnitude & np.uint64((1 << fmt.F) - 1)).astype(np.float64)
    sig = sig + np.where(code > 0, float(1 << fmt.F), 0.0)
    out = np.ldexp(sig, np.maximum(code, 1) - fmt.bias - fmt.F)
    if fmt.inf is not None:
        out = np.where(magnitude == fmt.inf, np.inf, out)
    nan = magnitude > fmt.inf if fmt.inf is not None else (
        words == fmt.nan if fmt.specials == "fnuz" else magnitude == fmt.nan)
    out = np.where(nan, np.nan, out)
    return np.where((words & np.uint64(fmt.sign_bit)) != 0, -out, out)


def encode(values: np.ndarray, fmt: Binary) -> np.ndarray:
    """Round binary64 to the format, to nearest even, once."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    size = (bits & MAGNITUDE).view(np.float64)
    exponent = np.maximum(np.frexp(size)[1].astype(np.int64) - 1, fmt.emin)
    exponent = np.where(np.isfinite(size) & (size > 0), exponent, fmt.emin)
    with np.errstate(all="ignore"):
        kept = np.rint(np.ldexp(size, fmt.F - exponent))           # a power of two: exact
        word = np.where(np.isfinite(kept), kept, 0).astype(np.int64)
    word = word + ((exponent - fmt.emin) << fmt.F)
    if not fmt.signed:
        word = np.maximum(word - 1, 0)
    over = (word > fmt.max) | np.isinf(size)
    word = np.where(over, fmt.infinity(0), word)
    negative = (bits & SIGN) != 0
    if not fmt.signed:
        word = np.where(negative | (size == 0), fmt.nan, word)
    elif fmt.has_negative_zero:
        word = np.where(negative, word | fmt.sign_bit, word)
    else:
        word = np.where(negative & (word != 0), word | fmt.sign_bit, word)
    over_to_nan = over & (fmt.infinity(0) == fmt.nan)
    word = np.where(np.isnan(size) | over_to_nan, fmt.invalid(), word)
    return word.astype(f"<u{fmt.itemsize}").view(dtype_of(fmt))


def _fma(a, b, c):
    product = a * b                                                # exact: at most 50 bits
    total = np.asarray(product + c)
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    fix = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    return np.where(fix, bits + toward, bits).view(np.float64)


OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
              "sqrt": np.sqrt, "fma": _fma, "floor": np.floor, "ceil": np.ceil,
              "trunc": np.trunc, "round": np.rint}


def evaluate(name, fmt, *arrays):
    """One of `OPERATIONS` on arrays of words."""
    wide = [decode(a, fmt) for a in arrays]
    with np.errstate(all="ignore"):
        out = OPERATIONS[name](*wide)
    return encode(out, fmt)
