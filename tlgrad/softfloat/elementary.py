"""Elementary functions on words, correctly rounded in every format and rounding mode.

Each function first settles what Ziv's loop (``ziv.py``) cannot: special values, results that are
exact, arguments so large that the result leaves the range or flattens, and arguments so small that
the result lies next to a simple number. Special values follow IEEE 754-2019, section 9.2, and C.

>>> from tlgrad.softfloat import text
>>> from tlgrad.softfloat.format import binary128
>>> text.to_repr(binary128, evaluate("exp", binary128, binary128.one))
'2.7182818284590452353602874713526623'
"""
from __future__ import annotations

import math

from mpmath import libmp

from tlgrad.softfloat import gammas, gaussian, turns, ziv
from tlgrad.softfloat.arith import Environment, invalid, propagate, round_pack
from tlgrad.softfloat.format import FINITE, INFINITE, NAN
from tlgrad.softfloat.power import pow_settle
from tlgrad.softfloat.settle import above, far, flat, near, pole, range_bits, tiny, top, whole

REDUCTION_LIMIT = 1 << 22


def evaluate(name, fmt, *words, env=None):
    """The correctly rounded value of an elementary function at words of a format.

    ``name`` is one of ``FUNCTIONS``. Raises KeyError for another name, and ValueError for sin, cos
    and tan of a number beyond 2**4,194,304, whose reduction needs that many bits of pi.
    """
    env = env or Environment()
    parts = [fmt.unpack(w) for w in words]
    settle = SETTLE[name]
    if any(p.kind == NAN for p in parts) and name not in ("pow", "hypot"):
        return propagate(fmt, env, *words)
    word = settle(fmt, words, parts, env)
    return ziv.ziv(fmt, EVALUATE[name], parts, env) if word is None else word


def _exponential(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.zero() if x.sign else fmt.infinity()
    if x.sig == 0:
        return fmt.one
    if top(x) > range_bits(fmt):
        return far(fmt, 0, not x.sign, env)
    return near(fmt, 0, 1, 0, -1 if x.sign else 1, env) if tiny(fmt, x) else None


def _exp2(fmt, words, parts, env):
    (x,) = parts
    if x.kind == FINITE and x.sig and top(x) <= range_bits(fmt):
        power = whole(x)
        if power is not None:
            return round_pack(fmt, 0, 1, power, env)
    return _exponential(fmt, words, parts, env)


def _expm1(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.one | fmt.sign_bit if x.sign else fmt.infinity()
    if x.sig == 0:
        return words[0]
    if x.sign and above(x, flat(fmt)):
        return near(fmt, 1, 1, 0, -1, env)
    if not x.sign and top(x) > range_bits(fmt):
        return far(fmt, 0, True, env)
    return near(fmt, *x[1:], -1 if x.sign else 1, env) if tiny(fmt, x) else None


def _exp10(fmt, words, parts, env):
    (x,) = parts
    if x.kind == FINITE and x.sig and not x.sign and top(x) <= range_bits(fmt):
        power = whole(x)
        if power is not None:
            return far(fmt, 0, True, env) if power > fmt.emax else round_pack(fmt, 0, 5 ** power, power, env)
    return _exponential(fmt, words, parts, env)


def _logarithm(exact):
    def settle(fmt, words, parts, env):
        (x,) = parts
        if x.kind == FINITE and x.sig == 0:
            return pole(fmt, 1, env)
        if x.sign:
            return invalid(fmt, env)
        if x.kind == INFINITE:
            return fmt.infinity()
        power = exact(x)
        if power is None:
            return None
        return round_pack(fmt, int(power < 0), abs(power), 0, env)
    return settle


def _power_of_one(x):
    return 0 if x.sig == 1 << max(0, -x.exponent) and x.exponent <= 0 else None


def _power_of_two(x):
    return x.exponent + x.sig.bit_length() - 1 if x.sig & (x.sig - 1) == 0 else None


def _power_of_ten(x):
    value = whole(x) if top(x) < 4 * x.sig.bit_length() + 8 else None
    if value is None:
        return None
    power = round(top(x) * 0.3010299956639812 - 0.15)
    return next((k for k in range(max(power - 1, 0), power + 2) if 10 ** k == value), None)


def _log1p(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return invalid(fmt, env) if x.sign else fmt.infinity()
    if x.sig == 0:
        return words[0]
    if x.sign and top(x) > 0:
        return pole(fmt, 1, env) if words[0] == fmt.one | fmt.sign_bit else invalid(fmt, env)
    return near(fmt, *x[1:], 1 if x.sign else -1, env) if tiny(fmt, x) else None


def _odd(direction, at_infinity=None, flattens=False, grows=False):
    """An odd function with slope 1 at 0; ``direction`` is the sign of its second term there."""
    def settle(fmt, words, parts, env):
        (x,) = parts
        if x.kind == INFINITE:
            return at_infinity(fmt, x.sign, env)
        if x.sig == 0:
            return words[0]
        if flattens and above(x, flat(fmt)):
            return near(fmt, x.sign, 1, 0, -1, env)
        if grows and top(x) > range_bits(fmt):
            return far(fmt, x.sign, True, env)
        return near(fmt, *x[1:], direction, env) if tiny(fmt, x) else None
    return settle


def _periodic(small):
    def settle(fmt, words, parts, env):
        (x,) = parts
        if x.kind == INFINITE:
            return invalid(fmt, env)
        if x.sig == 0:
            return words[0] if small else fmt.one
        if top(x) > REDUCTION_LIMIT:
            raise ValueError(f"sin, cos and tan of a {fmt!r} number beyond 2**{REDUCTION_LIMIT:,} "
                             f"would need as many bits of pi")
        if not tiny(fmt, x):
            return None
        return near(fmt, *x[1:], small, env) if small else near(fmt, 0, 1, 0, -1, env)
    return settle


def _cosh(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.infinity()
    if x.sig == 0:
        return fmt.one
    if top(x) > range_bits(fmt):
        return far(fmt, 0, True, env)
    return near(fmt, 0, 1, 0, 1, env) if tiny(fmt, x) else None


def _acosh(fmt, words, parts, env):
    (x,) = parts
    if x.sign or (x.kind == FINITE and top(x) <= 0):
        return invalid(fmt, env)
    if x.kind == INFINITE:
        return words[0]
    return fmt.zero() if words[0] == fmt.one else None


def _within_one(direction, at_one):
    def settle(fmt, words, parts, env):
        (x,) = parts
        unit = words[0] & ~fmt.sign_bit == fmt.one
        if x.kind == INFINITE or (top(x) > 0 and not unit):
            return invalid(fmt, env)
        if unit:
            return at_one(fmt, x.sign, env)
        if direction and x.sig == 0:
            return words[0]
        return near(fmt, *x[1:], direction, env) if direction and tiny(fmt, x) else None
    return settle


def _acos(fmt, words, parts, env):
    (x,) = parts
    if x.kind == FINITE and x.sig == 0:
        return _pi(fmt, 0, -1, env)
    return _within_one(0, lambda fmt, sign, env: _pi(fmt, 0, 0, env) if sign else fmt.zero())(
        fmt, words, parts, env)


def _pi(fmt, sign, shift, env, factor=1):
    """``factor * pi * 2**shift``, rounded."""
    bits = fmt.precision + 80
    sig, exponent = libmp.mpf_pi(bits)[1:3]
    return round_pack(fmt, sign, 2 * factor * int(sig) + 1, int(exponent) + shift - 1, env)


def _atan2(fmt, words, parts, env):
    y, x = parts
    if INFINITE in (y.kind, x.kind):
        if y.kind == FINITE:
            return _pi(fmt, y.sign, 0, env) if x.sign else fmt.zero(y.sign)
        if x.kind == FINITE:
            return _pi(fmt, y.sign, -1, env)
        return _pi(fmt, y.sign, -2, env, 3 if x.sign else 1)
    if y.sig == 0:
        return _pi(fmt, y.sign, 0, env) if x.sign else words[0]
    if x.sig == 0:
        return _pi(fmt, y.sign, -1, env)
    if x.sign or top(y) - top(x) > -flat(fmt):
        return None
    extra = 2 * fmt.F + 80
    quotient, rest = divmod(y.sig << extra, x.sig)
    below = 2 * quotient + (1 if rest else -1)
    return round_pack(fmt, y.sign, below, y.exponent - x.exponent - extra - 1, env)


def _erf(fmt, words, parts, env):
    (x,) = parts
    if x.kind == FINITE and x.sig == 0:
        return words[0]
    if above(x, math.isqrt(fmt.F + 90) + 1):
        return near(fmt, x.sign, 1, 0, -1, env) if x.kind == FINITE else (
            fmt.one | (fmt.sign_bit if x.sign else 0))
    return None


def _erfc(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.power_of_two(1) if x.sign else fmt.zero()
    if x.sig == 0:
        return fmt.one
    if x.sign and above(x, math.isqrt(fmt.F + 90) + 1):
        return near(fmt, 0, 1, 1, -1, env)
    if not x.sign and above(x, math.isqrt(fmt.F - fmt.emin + 8) + 1):
        return far(fmt, 0, False, env)
    return near(fmt, 0, 1, 0, 1 if x.sign else -1, env) if tiny(fmt, x) else None


def _logistic(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.zero() if x.sign else fmt.one
    if x.sig == 0:
        return fmt.power_of_two(-1)
    if not x.sign and above(x, flat(fmt)):
        return near(fmt, 0, 1, 0, -1, env)
    if x.sign and top(x) > range_bits(fmt):
        return far(fmt, 0, False, env)
    return near(fmt, 0, 1, -1, -1 if x.sign else 1, env) if tiny(fmt, x) else None


def _softplus(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE:
        return fmt.zero() if x.sign else fmt.infinity()
    if not x.sign and above(x, flat(fmt)):
        return near(fmt, 0, x.sig, x.exponent, 1, env)
    if x.sign and top(x) > range_bits(fmt):
        return far(fmt, 0, False, env)
    return None


def _logaddexp(fmt, words, parts, env):
    x, y = parts
    if INFINITE in (x.kind, y.kind):
        first = x.kind == INFINITE and not x.sign or y.kind == INFINITE and y.sign
        word, part = (words[0], x) if first else (words[1], y)
        return word if part.kind == INFINITE or part.sig else fmt.zero()
    values = ziv.to_mpf(x), ziv.to_mpf(y)
    if libmp.mpf_lt(*values):
        x, y = y, x
    if not x.sig:
        return far(fmt, 0, False, env) if y.sig and top(y) > range_bits(fmt) else None
    gap = libmp.mpf_abs(libmp.mpf_sub(*values, 64))
    if libmp.mpf_gt(gap, libmp.from_int(flat(fmt) + max(0, -top(x)))):
        return near(fmt, *x[1:], -1 if x.sign else 1, env)
    return None


def _hypot(fmt, words, parts, env):
    x, y = parts
    if INFINITE in (x.kind, y.kind):
        return fmt.infinity()
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, *words)
    if top(x) < top(y) or not x.sig:
        x, y = y, x
    if not y.sig:
        return round_pack(fmt, 0, x.sig, x.exponent, env)
    if top(x) - top(y) > fmt.F + 70:
        return near(fmt, 0, x.sig, x.exponent, 1, env)
    low = min(x.exponent, y.exponent)
    square = (x.sig << x.exponent - low) ** 2 + (y.sig << y.exponent - low) ** 2
    extra = max(0, fmt.precision + 4 - square.bit_length() // 2)
    root = math.isqrt(square << 2 * extra)
    inexact = root * root != square << 2 * extra
    return round_pack(fmt, 0, root << 1 | inexact, low - extra - 1, env)


def _cbrt(fmt, words, parts, env):
    (x,) = parts
    if x.kind == INFINITE or x.sig == 0:
        return words[0]
    extra = max(0, 3 * (fmt.precision + 3) - x.sig.bit_length())
    extra += (x.exponent - extra) % 3
    wide = x.sig << extra
    root = 1 << -(-wide.bit_length() // 3)
    while True:
        better = (2 * root + wide // (root * root)) // 3
        if better >= root:
            break
        root = better
    return round_pack(fmt, x.sign, root << 1 | (root ** 3 != wide), (x.exponent - extra) // 3 - 1,
                      env)


def _rsqrt(fmt, words, parts, env):
    (x,) = parts
    if x.kind == FINITE and x.sig == 0:
        return pole(fmt, x.sign, env)
    if x.sign:
        return invalid(fmt, env)
    if x.kind == INFINITE:
        return fmt.zero()
    extra = 2 * fmt.precision + 6 + x.sig.bit_length()
    extra += (x.exponent + extra) & 1
    root = math.isqrt((1 << extra) // x.sig)
    inexact = root * root * x.sig != 1 << extra
    return round_pack(fmt, 0, root << 1 | inexact, -(x.exponent + extra) // 2 - 1, env)


def _same(fmt, sign, env):
    del env
    return fmt.infinity(sign)


def _unit(fmt, sign, env):
    del env
    return fmt.one | (fmt.sign_bit if sign else 0)


SETTLE = {
    "exp": _exponential, "exp2": _exp2, "expm1": _expm1, "log": _logarithm(_power_of_one),
    "log1p": _log1p, "log2": _logarithm(_power_of_two), "log10": _logarithm(_power_of_ten),
    "sin": _periodic(-1), "cos": _periodic(0), "tan": _periodic(1),
    "sinh": _odd(1, _same, grows=True), "cosh": _cosh, "tanh": _odd(-1, _unit, flattens=True),
    "asinh": _odd(-1, _same), "acosh": _acosh,
    "atanh": _within_one(1, lambda fmt, sign, env: pole(fmt, sign, env)),
    "asin": _within_one(1, lambda fmt, sign, env: _pi(fmt, sign, -1, env)), "acos": _acos,
    "atan": _odd(-1, lambda fmt, sign, env: _pi(fmt, sign, -1, env)), "atan2": _atan2,
    "erf": _erf, "erfc": _erfc, "cbrt": _cbrt, "pow": pow_settle, "hypot": _hypot,
    "logistic": _logistic, "softplus": _softplus, "rsqrt": _rsqrt, "exp10": _exp10,
    "logaddexp": _logaddexp, **gammas.SETTLE, **turns.SETTLE, **gaussian.SETTLE,
}
EVALUATE = {**ziv.EVALUATE, **gammas.EVALUATE, **turns.EVALUATE, **gaussian.EVALUATE}
FUNCTIONS = tuple(SETTLE)


# ---- constants

_CONSTANTS = {
    "pi": libmp.mpf_pi, "ln2": libmp.mpf_ln2, "ln10": libmp.mpf_ln10,
    "1/ln2": lambda prec: libmp.mpf_rdiv_int(1, libmp.mpf_ln2(prec + 4), prec),
    "1/ln10": lambda prec: libmp.mpf_rdiv_int(1, libmp.mpf_ln10(prec + 4), prec),
    "2/sqrt(pi)": lambda prec: libmp.mpf_rdiv_int(
        2, libmp.mpf_sqrt(libmp.mpf_pi(prec + 8), prec + 8), prec),
    **gaussian.CONSTANTS,
}


def constant(name, fmt):
    """The word nearest to a constant of `_CONSTANTS`: "pi", "ln2", "ln10", "1/ln2", "2/sqrt(pi)", ...

    >>> from tlgrad.softfloat.format import binary64
    >>> hex(constant("pi", binary64))
    '0x400921fb54442d18'
    """
    return ziv.ziv(fmt, _CONSTANTS[name], (), Environment())
