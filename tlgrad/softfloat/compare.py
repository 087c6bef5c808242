"""Comparisons, minimum and maximum, total order, neighbours: exact operations on words."""
from __future__ import annotations

from tlgrad.softfloat.arith import INVALID, propagate
from tlgrad.softfloat.format import FINITE, INFINITE, NAN


def key(fmt, a):
    """An integer that orders the words that are numbers; -0 and +0 have the same key."""
    magnitude = a & ~fmt.sign_bit
    return -magnitude if fmt.signed and a & fmt.sign_bit else magnitude


def _ordered(fmt, a, b, env, signals):
    if fmt.is_nan(a) or fmt.is_nan(b):
        if signals or fmt.is_signalling(a) or fmt.is_signalling(b):
            env.flags |= INVALID
        return False
    return True


def eq(fmt, a, b, env):
    """a == b; false with a NaN (quiet)."""
    return _ordered(fmt, a, b, env, False) and key(fmt, a) == key(fmt, b)


def ne(fmt, a, b, env):
    """a != b; true with a NaN (quiet)."""
    return not eq(fmt, a, b, env)


def lt(fmt, a, b, env):
    """a < b; false and invalid with a NaN."""
    return _ordered(fmt, a, b, env, True) and key(fmt, a) < key(fmt, b)


def le(fmt, a, b, env):
    """a <= b; false and invalid with a NaN."""
    return _ordered(fmt, a, b, env, True) and key(fmt, a) <= key(fmt, b)


def gt(fmt, a, b, env):
    """a > b."""
    return lt(fmt, b, a, env)


def ge(fmt, a, b, env):
    """a >= b."""
    return le(fmt, b, a, env)


def minimum(fmt, a, b, env):
    """The smaller number; NaN if either is NaN, -0 below +0 (IEEE 754-2019 ``minimum``)."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return propagate(fmt, env, a, b)
    return min(a, b, key=lambda w: total_key(fmt, w))


def maximum(fmt, a, b, env):
    """The larger number; NaN if either is NaN, +0 above -0 (IEEE 754-2019 ``maximum``)."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return propagate(fmt, env, a, b)
    return max(a, b, key=lambda w: total_key(fmt, w))


def sign(fmt, a, env=None):
    """-1, +0 or 1; NaN is kept."""
    del env
    kind, negative, sig, _ = fmt.unpack(a)
    if kind == NAN:
        return fmt.invalid()
    if kind == FINITE and sig == 0:
        return fmt.zero()
    return fmt.one | (fmt.sign_bit if negative else 0)


def copysign(fmt, a, b, env=None):
    """The magnitude of a with the sign of b; NaN stays the canonical NaN."""
    del env
    if fmt.is_nan(a) or not fmt.signed:
        return fmt.invalid() if fmt.is_nan(a) else a
    magnitude = a & ~fmt.sign_bit
    negative = b & fmt.sign_bit and not fmt.is_nan(b)
    if negative and (magnitude or fmt.has_negative_zero):
        return magnitude | fmt.sign_bit
    return magnitude


def total_key(fmt, a):
    """An integer in the order of IEEE 754-2019, section 5.10 (-NaN, ..., -0, +0, ..., NaN)."""
    magnitude = a & ~fmt.sign_bit
    return ~magnitude if fmt.signed and a & fmt.sign_bit else magnitude


def total_order(fmt, a, b):
    """Whether a comes before b, or is b, in the total order."""
    return total_key(fmt, a) <= total_key(fmt, b)


def is_finite(fmt, a, env=None):
    """Neither infinite nor NaN."""
    del env
    return fmt.unpack(a).kind == FINITE


def is_inf(fmt, a, env=None):
    """Infinite."""
    del env
    return fmt.unpack(a).kind == INFINITE


def is_nan(fmt, a, env=None):
    """NaN, of any payload."""
    del env
    return fmt.is_nan(a)


def signbit(fmt, a, env=None):
    """Whether the sign bit is set; false for NaN (the canonical NaN is positive)."""
    del env
    return bool(a & fmt.sign_bit) and not fmt.is_nan(a)


def next_up(fmt, a):
    """The least number that compares greater than a."""
    if fmt.is_nan(a) or a in (fmt.inf, None):
        return a
    if not fmt.signed:
        return a + 1
    top = fmt.max if fmt.inf is None else fmt.inf
    if a & fmt.sign_bit and a != fmt.sign_bit:
        lower = a - 1
        return lower if lower != fmt.sign_bit or fmt.has_negative_zero else 0
    return min((a & ~fmt.sign_bit) + 1, top)


def next_down(fmt, a):
    """The greatest number that compares less than a."""
    if fmt.is_nan(a):
        return a
    if not fmt.signed:
        return max(a - 1, 0)
    if a & ~fmt.sign_bit == 0:
        return fmt.sign_bit | 1
    flipped = next_up(fmt, a ^ fmt.sign_bit)
    return flipped ^ fmt.sign_bit if flipped or fmt.has_negative_zero else 0


def next_after(fmt, a, b, env=None):
    """The neighbour of a towards b; a itself if they are equal."""
    del env
    if fmt.is_nan(a) or fmt.is_nan(b):
        return fmt.invalid()
    if key(fmt, a) == key(fmt, b):
        return b
    return next_up(fmt, a) if key(fmt, a) < key(fmt, b) else next_down(fmt, a)


def ulp(fmt, a, env=None):
    """The value of the last place of a: the gap to the next number away from zero in its binade."""
    del env
    kind, _, _, exponent = fmt.unpack(a)
    if kind != FINITE:
        return fmt.invalid() if kind == NAN else fmt.inf
    return fmt.power_of_two(exponent)
