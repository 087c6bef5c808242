"""Conversions between words, Python numbers and other formats: exact, then one rounding."""
from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational

from tlgrad.softfloat.arith import (
    INEXACT, INVALID, Environment, propagate, round_pack, round_ratio, round_to_int)
from tlgrad.softfloat.format import FINITE, INFINITE, NAN, Binary, binary64


def from_int(fmt: Binary, value: int, env=None):
    """The word nearest to an integer.

    >>> from tlgrad.softfloat.format import bfloat16
    >>> to_fraction(bfloat16, from_int(bfloat16, 16973823))
    Fraction(16908288, 1)
    """
    return round_pack(fmt, int(value < 0), abs(value), 0, env or Environment())


def from_fraction(fmt, value, env=None):
    """The word nearest to a rational number."""
    if value == 0:
        return fmt.zero()
    sign, numerator = int(value < 0), abs(value.numerator)
    return round_ratio(fmt, sign, numerator, value.denominator, 0, env or Environment())


def from_float(fmt, value: float, env=None):
    """The word nearest to a Python float; exact in every format at least as wide as binary64."""
    if value != value:
        return fmt.invalid()
    if math.isinf(value):
        return fmt.infinity(int(value < 0))
    if value == 0:
        return fmt.zero(int(math.copysign(1, value) < 0))
    numerator, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    return round_pack(fmt, int(value < 0), abs(numerator), exponent, env or Environment())


def from_decimal(fmt, value: Decimal, env=None):
    """The word nearest to a Decimal, its special values included."""
    if value.is_nan():
        return fmt.invalid()
    if value.is_infinite():
        return fmt.infinity(int(value.is_signed()))
    sign, digits, exponent = value.as_tuple()
    sig = int("".join(map(str, digits)) or "0")
    return from_scaled(fmt, sign, sig, 10, exponent, env)


def from_scaled(fmt, sign, sig, base, exponent, env=None):
    """The word nearest to ``(-1)**sign * sig * base**exponent``, for base 2 or 10."""
    env = env or Environment()
    if sig == 0:
        return fmt.zero(sign)
    if base == 2:
        return round_pack(fmt, sign, sig, exponent, env)
    # far outside the range of the format the exact power of ten would only cost time
    decimal_top = exponent + sig.bit_length() * 30103 // 100000
    reach = (fmt.emax + 2 - fmt.emin + fmt.F) * 30103 // 100000 + 10
    if abs(decimal_top) > reach:
        far = fmt.emax + 2 if decimal_top > 0 else fmt.emin - 2 * fmt.F - 8
        return round_pack(fmt, sign, 3, far, env)
    if exponent >= 0:
        return round_pack(fmt, sign, sig * 10 ** exponent, 0, env)
    return round_ratio(fmt, sign, sig, 10 ** -exponent, 0, env)


def to_fraction(fmt, word):
    """The exact value; ValueError for infinity and NaN, which have none."""
    kind, sign, sig, exponent = fmt.unpack(word)
    if kind != FINITE:
        raise ValueError(f"a {fmt!r} {kind} word has no rational value")
    value = Fraction(sig << exponent) if exponent >= 0 else Fraction(sig, 1 << -exponent)
    return -value if sign else value


def convert(source, target, word, env=None):
    """The word of another format nearest to this one's value."""
    env = env or Environment()
    kind, sign, sig, exponent = source.unpack(word)
    if kind == NAN:
        if source.is_signalling(word):
            env.flags |= INVALID
        return target.invalid()
    if kind == INFINITE:
        return target.infinity(sign)
    return round_pack(target, sign, sig, exponent, env)


def to_float(fmt, word, env=None):
    """The Python float nearest to the value."""
    kind, sign, sig, exponent = binary64.unpack(convert(fmt, binary64, word, env))
    if kind == NAN:
        return math.nan
    magnitude = math.inf if kind == INFINITE else math.ldexp(sig, exponent)
    return -magnitude if sign else magnitude


def to_int(fmt, word, bits=64, signed=True, env=None, exact=True):
    """Round to an integer of ``bits`` bits in the rounding mode.

    NaN, infinities and values out of range raise the invalid flag and give the integer farthest
    from zero in x86 fashion: the least signed, the greatest unsigned one.
    """
    env = env or Environment()
    kind, sign, sig, exponent = fmt.unpack(word)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    bad = low if signed else high
    if kind != FINITE or sig.bit_length() + exponent > bits + 1:
        env.flags |= INVALID
        return bad
    magnitude, lost = round_to_int(sig, exponent, sign, env)
    value = -magnitude if sign else magnitude
    if not low <= value <= high:
        env.flags |= INVALID
        return bad
    if lost and exact:
        env.flags |= INEXACT
    return value


def from_python(fmt, value, env=None):
    """The word nearest to an int, bool, float, Fraction, Decimal, NumPy number or other rational, exactly read.

    Raises TypeError for anything else; text goes through ``text.parse``.
    """
    if isinstance(value, Integral):
        return from_int(fmt, int(value), env)
    if isinstance(value, float):
        return from_float(fmt, float(value), env)
    if isinstance(value, Decimal):
        return from_decimal(fmt, value, env)
    if isinstance(value, Rational):
        return from_fraction(fmt, value, env)
    if hasattr(value, "as_integer_ratio"):             # a float of NumPy: a ratio, or 0, infinity, NaN
        if value != value or value == value / 2:
            return from_float(fmt, float(value), env)
        return from_fraction(fmt, Fraction(*value.as_integer_ratio()), env)
    raise TypeError(f"a {fmt!r} number cannot be made from {type(value).__name__}; expected int, "
                    f"float, Fraction, Decimal or decimal or hexadecimal text")


def scale(fmt, word, exponent, env):
    """``a * 2**exponent``, rounded once (IEEE 754 ``scaleB``)."""
    kind, sign, sig, low = fmt.unpack(word)
    if kind == NAN:
        return propagate(fmt, env, word)
    if kind == INFINITE:
        return word
    return round_pack(fmt, sign, sig, low + exponent, env)
