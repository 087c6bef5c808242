"""Arithmetic on words in pure Python integers: the specification of every other tier.

Each operation decodes its operands, works on exact integers, and rounds once, in ``round_pack``:
the only rounding of the package. An ``Environment`` says how to round and collects the exception
flags of IEEE 754-2019, section 7 (underflow: tiny after rounding). Every NaN result is the one
canonical NaN of the format.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tlgrad.softfloat.format import FINITE, INFINITE, NAN, Binary

INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 1, 2, 4, 8, 16
FLAG_NAMES = {1: "inexact", 2: "underflow", 4: "overflow", 8: "divide_by_zero", 16: "invalid"}
ROUNDINGS = ("nearest", "away", "zero", "up", "down", "odd", "stochastic")


@dataclass
class Environment:
    """How to round, and the sticky flags of what happened.

    ``rounding`` is "nearest" (ties to even), "away" (ties away from zero), "zero", "up", "down",
    "odd" or "stochastic"; ``saturate`` turns overflow into the largest finite number; ``key`` and
    ``counter`` are the state of stochastic rounding: the n-th rounding under a key always draws
    the same number.

    >>> from tlgrad.softfloat.format import binary32
    >>> env = Environment()
    >>> hex(div(binary32, binary32.one, binary32.power_of_two(1), env)), env.raised
    ('0x3f000000', ())
    """

    rounding: str = "nearest"
    saturate: bool = False
    key: int = 0
    counter: int = 0
    flags: int = 0

    def __post_init__(self):
        if self.rounding not in ROUNDINGS:
            raise ValueError(f"rounding={self.rounding!r}; expected one of "
                             f"{', '.join(map(repr, ROUNDINGS))}")

    @property
    def raised(self):
        """The names of the flags that are set."""
        return tuple(name for bit, name in FLAG_NAMES.items() if self.flags & bit)

    def draw(self):
        """64 random bits from (key, counter), which advances (splitmix64, Steele et al. 2014)."""
        self.counter += 1
        z = (self.key * 0xD1342543DE82EF95 + self.counter * 0x9E3779B97F4A7C15) & _M64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _M64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _M64
        return z ^ z >> 31


_M64 = (1 << 64) - 1


def rounds_up(env, sign, kept, rest, half):
    """Whether ``kept + rest / (2 * half)`` rounds away from zero; ``0 < rest < 2 * half``."""
    mode = env.rounding
    if mode == "nearest":
        return rest > half or (rest == half and kept & 1)
    if mode == "away":
        return rest >= half
    if mode == "stochastic":
        return (rest << 64) > env.draw() * (2 * half)
    if mode == "odd":
        return not kept & 1
    return mode == ("down" if sign else "up")


def round_pack(fmt: Binary, sign, sig, exponent, env):
    """The word of ``(-1)**sign * sig * 2**exponent``, rounded once; ``sig >= 0`` is any integer."""
    if sig == 0:
        return fmt.zero(sign)
    if sign and not fmt.signed:
        env.flags |= INVALID
        return fmt.nan
    top = max(sig.bit_length() - 1 + exponent, fmt.emin)
    shift = top - fmt.F - exponent
    if shift <= 0:
        kept, rest = sig << -shift, 0
    else:
        kept, rest = sig >> shift, sig & ((1 << shift) - 1)
    if rest:
        env.flags |= INEXACT | (_tiny(fmt, sign, sig, exponent, env) and UNDERFLOW)
        kept += bool(rounds_up(env, sign, kept, rest, 1 << (shift - 1)))
    word = ((top - fmt.emin) << fmt.F) + kept
    if not fmt.signed:
        word = max(word - 1, 0)
    if word > fmt.max:
        return overflow(fmt, sign, env)
    return word | fmt.sign_bit if sign and (word or fmt.has_negative_zero) else word


def _tiny(fmt, sign, sig, exponent, env):
    """Whether the result, rounded with an unbounded exponent, is below the least normal number."""
    top = sig.bit_length() - 1 + exponent
    if top >= fmt.emin:
        return False
    shift = top - fmt.F - exponent
    if top < fmt.emin - 1 or shift <= 0:
        return True
    kept, rest = sig >> shift, sig & ((1 << shift) - 1)
    probe = Environment(env.rounding, key=env.key, counter=env.counter)
    carries = rest and rounds_up(probe, sign, kept, rest, 1 << (shift - 1))
    return (kept + bool(carries)).bit_length() <= fmt.precision


def overflow(fmt, sign, env):
    """The result of a finite value too large for the format, by rounding mode and convention."""
    env.flags |= OVERFLOW | INEXACT
    inward = env.rounding in ("zero", "odd") or env.rounding == ("up" if sign else "down")
    return fmt.largest(sign) if env.saturate or inward else fmt.infinity(sign)


def invalid(fmt, env):
    """Raise the invalid flag and return its result."""
    env.flags |= INVALID
    return fmt.invalid()


def propagate(fmt, env, *words):
    """The result of an operation with a NaN operand."""
    if any(fmt.is_signalling(w) for w in words):
        env.flags |= INVALID
    return fmt.invalid()


def neg(fmt, a, env=None):
    """Flip the sign; NaN becomes the canonical NaN."""
    del env
    if fmt.is_nan(a) or not fmt.signed:
        return fmt.invalid()
    return a ^ fmt.sign_bit if a or fmt.has_negative_zero else a


def absolute(fmt, a, env=None):
    """Clear the sign; NaN becomes the canonical NaN."""
    del env
    return fmt.invalid() if fmt.is_nan(a) else a & ~fmt.sign_bit


def exact_sum(fmt, x, y, env):
    """The sum of two values ``(sign, sig, exponent)`` in the same form, exact but for one case:
    an operand far below the last place that rounding can see becomes a unit there (sticky)."""
    (xs, xm, xe), (ys, ym, ye) = x, y
    if ym and (not xm or ym.bit_length() + ye > xm.bit_length() + xe):
        (xs, xm, xe), (ys, ym, ye) = y, x
    if not ym:
        return (xs, xm, xe) if xm else (xs if xs == ys else env.rounding == "down", 0, 0)
    reach = min(xe, xm.bit_length() + xe - fmt.F - 70)
    if ym.bit_length() + ye < reach:
        ym, ye = 1, reach - 1
    low = min(xe, ye)
    total = (xm << (xe - low)) + (ym << (ye - low) if xs == ys else -(ym << (ye - low)))
    if total == 0:
        return int(env.rounding == "down"), 0, 0
    return (xs if total > 0 else 1 - xs), abs(total), low


def add(fmt, a, b, env):
    """a + b."""
    x, y = fmt.unpack(a), fmt.unpack(b)
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, a, b)
    if INFINITE in (x.kind, y.kind):
        if x.kind == y.kind and x.sign != y.sign:
            return invalid(fmt, env)
        return fmt.infinity(x.sign if x.kind == INFINITE else y.sign)
    return round_pack(fmt, *exact_sum(fmt, x[1:], y[1:], env), env)


def sub(fmt, a, b, env):
    """a - b."""
    return add(fmt, a, b if fmt.is_nan(b) else neg(fmt, b), env)


def mul(fmt, a, b, env):
    """a * b."""
    x, y = fmt.unpack(a), fmt.unpack(b)
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, a, b)
    sign = x.sign ^ y.sign
    if INFINITE in (x.kind, y.kind):
        if (x.kind, x.sig) == (FINITE, 0) or (y.kind, y.sig) == (FINITE, 0):
            return invalid(fmt, env)
        return fmt.infinity(sign)
    return round_pack(fmt, sign, x.sig * y.sig, x.exponent + y.exponent, env)


def round_ratio(fmt, sign, numerator, denominator, exponent, env):
    """The word of ``numerator / denominator * 2**exponent``, rounded once; positive integers."""
    extra = max(0, denominator.bit_length() - numerator.bit_length() + fmt.precision + 2)
    quotient, rest = divmod(numerator << extra, denominator)
    return round_pack(fmt, sign, quotient << 1 | (rest != 0), exponent - extra - 1, env)


def div(fmt, a, b, env):
    """a / b."""
    x, y = fmt.unpack(a), fmt.unpack(b)
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, a, b)
    sign = x.sign ^ y.sign
    if x.kind == INFINITE:
        return invalid(fmt, env) if y.kind == INFINITE else fmt.infinity(sign)
    if y.kind == INFINITE:
        return fmt.zero(sign)
    if y.sig == 0:
        if x.sig == 0:
            return invalid(fmt, env)
        env.flags |= DIVIDE_BY_ZERO
        return fmt.infinity(sign)
    if x.sig == 0:
        return fmt.zero(sign)
    return round_ratio(fmt, sign, x.sig, y.sig, x.exponent - y.exponent, env)


def sqrt(fmt, a, env):
    """The square root; sqrt(-0) is -0."""
    x = fmt.unpack(a)
    if x.kind == NAN:
        return propagate(fmt, env, a)
    if x.kind == FINITE and x.sig == 0:
        return a
    if x.sign:
        return invalid(fmt, env)
    if x.kind == INFINITE:
        return a
    extra = max(0, 2 * fmt.precision + 4 - x.sig.bit_length())
    extra += (x.exponent - extra) & 1
    wide = x.sig << extra
    root = math.isqrt(wide)
    return round_pack(fmt, 0, root << 1 | (root * root != wide), (x.exponent - extra) // 2 - 1, env)


def fma(fmt, a, b, c, env):
    """a * b + c, rounded once."""
    x, y, z = fmt.unpack(a), fmt.unpack(b), fmt.unpack(c)
    zero_times_infinity = {(x.kind, x.sig), (y.kind, y.sig)} == {(INFINITE, 0), (FINITE, 0)}
    if zero_times_infinity:
        return invalid(fmt, env)
    if NAN in (x.kind, y.kind, z.kind):
        return propagate(fmt, env, a, b, c)
    sign = x.sign ^ y.sign
    if INFINITE in (x.kind, y.kind):
        if z.kind == INFINITE and z.sign != sign:
            return invalid(fmt, env)
        return fmt.infinity(sign)
    if z.kind == INFINITE:
        return fmt.infinity(z.sign)
    product = (sign, x.sig * y.sig, x.exponent + y.exponent)
    return round_pack(fmt, *exact_sum(fmt, product, z[1:], env), env)


def _remainder(fmt, a, b, env, settle):
    x, y = fmt.unpack(a), fmt.unpack(b)
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, a, b)
    if x.kind == INFINITE or (y.kind == FINITE and y.sig == 0):
        return invalid(fmt, env)
    if x.sig == 0:
        return a
    if y.kind == INFINITE:
        return settle(x, y, None, None, env)
    if x.exponent >= y.exponent:
        gap, low = x.exponent - y.exponent, y.exponent
        twice, divisor = x.sig * pow(2, gap, 2 * y.sig) % (2 * y.sig), y.sig
    else:
        low = x.exponent
        gap = min(y.exponent - low, x.sig.bit_length() + 2)
        divisor = y.sig << gap
        twice = x.sig % (2 * divisor)
    return settle(x, y, (twice, divisor, low), fmt, env)


def rem(fmt, a, b, env):
    """IEEE 754 remainder ``a - b * n``, n the integer nearest to a / b (ties to even); exact."""
    def settle(x, y, parts, _, env):
        if parts is None:
            return a
        twice, divisor, low = parts
        odd, rest = divmod(twice, divisor)
        if 2 * rest > divisor or (2 * rest == divisor and odd):
            rest -= divisor
        return round_pack(fmt, x.sign ^ (rest < 0), abs(rest), low, env)
    return _remainder(fmt, a, b, env, settle)


def fmod(fmt, a, b, env):
    """The remainder with the sign of a, as C ``fmod``; exact."""
    def settle(x, y, parts, _, env):
        if parts is None:
            return a
        twice, divisor, low = parts
        return round_pack(fmt, x.sign, twice % divisor, low, env)
    return _remainder(fmt, a, b, env, settle)


def mod(fmt, a, b, env):
    """The remainder with the sign of b, as Python ``%``: ``fmod(a, b)``, plus b if signs differ."""
    rest = fmod(fmt, a, b, env)
    kind, sign, sig, _ = fmt.unpack(rest)
    if kind != FINITE or fmt.is_nan(b):
        return rest
    b_sign = fmt.unpack(b).sign
    if sig == 0:
        return fmt.zero(b_sign)
    return add(fmt, rest, b, env) if sign != b_sign else rest


def round_to_integral(fmt, a, env, exact=False):
    """Round to an integer in the mode of ``env``; ``exact`` raises inexact. Keeps zero's sign."""
    x = fmt.unpack(a)
    if x.kind == NAN:
        return propagate(fmt, env, a)
    if x.kind == INFINITE or x.exponent >= 0 or x.sig == 0:
        return a
    kept, rest = round_to_int(x.sig, x.exponent, x.sign, env)
    if rest and exact:
        env.flags |= INEXACT
    return round_pack(fmt, x.sign, kept, 0, Environment())


def round_to_int(sig, exponent, sign, env):
    """``sig * 2**exponent`` as an integer in the rounding mode: ``-> (integer, what was lost)``."""
    if exponent >= 0:
        return sig << exponent, 0
    shift = min(-exponent, sig.bit_length() + 2)
    kept, rest = sig >> shift, sig & ((1 << shift) - 1)
    if rest:
        kept += bool(rounds_up(env, sign, kept, rest, 1 << (shift - 1)))
    return kept, rest


def _integral(fmt, a, env, rounding):
    probe = Environment(rounding)
    word = round_to_integral(fmt, a, probe)
    env.flags |= probe.flags
    return word


def ceil(fmt, a, env):
    """The least integer not below a."""
    return _integral(fmt, a, env, "up")


def floor(fmt, a, env):
    """The greatest integer not above a."""
    return _integral(fmt, a, env, "down")


def trunc(fmt, a, env):
    """The integer part."""
    return _integral(fmt, a, env, "zero")


def rint(fmt, a, env):
    """The nearest integer, ties to even."""
    return _integral(fmt, a, env, "nearest")
