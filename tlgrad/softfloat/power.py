"""The special, exact and extreme cases of pow (C, annex F.10.4.4; IEEE 754-2019, section 9.2.1)."""
from __future__ import annotations

import math

from mpmath import libmp

from tlgrad.softfloat.arith import invalid, propagate, round_pack
from tlgrad.softfloat.format import FINITE, INFINITE, NAN
from tlgrad.softfloat.settle import far, near, pole, top, whole
from tlgrad.softfloat.ziv import EVALUATE, magnitude, mpf_log, to_mpf, ziv


def pow_settle(fmt, words, parts, env):
    """x**y in full: what is special or exact here, the rest by Ziv's loop on |x|."""
    x, y = parts
    if (y.kind == FINITE and y.sig == 0) or words[0] == fmt.one:
        return fmt.one
    if NAN in (x.kind, y.kind):
        return propagate(fmt, env, *words)
    if y.kind == INFINITE:
        return _infinite_power(fmt, words[0], x, y)
    parity = _parity(y)
    sign = int(x.sign and parity == 1)
    if x.kind == INFINITE:
        return fmt.zero(sign) if y.sign else fmt.infinity(sign)
    if x.sig == 0:
        return pole(fmt, sign, env) if y.sign else fmt.zero(sign)
    if x.sign and parity is None:
        return invalid(fmt, env)
    word = _exact(fmt, x, y, sign, env)
    if word is None:
        word = _extreme(fmt, x, y, sign, env)
    if word is None:
        word = ziv(fmt, _signed_power(sign), parts, env)
    return word


def _signed_power(sign):
    def evaluate(x, y, prec):
        value = EVALUATE["pow"](x, y, prec)
        return (sign, *value[1:])
    return evaluate


def _parity(y):
    """1 for an odd integer, 0 for an even one, None for a fraction."""
    if y.exponent > 0:
        return 0
    value = whole(y)
    return None if value is None else value & 1


def _infinite_power(fmt, word, x, y):
    if word == fmt.one | fmt.sign_bit:
        return fmt.one
    large = x.kind == INFINITE or (x.sig and top(x) > 0)
    return fmt.infinity() if bool(large) != bool(y.sign) else fmt.zero()


def _exact(fmt, x, y, sign, env):
    """The result where x**y is a dyadic rational short enough to meet a rounding boundary."""
    shift = (x.sig & -x.sig).bit_length() - 1
    odd, exponent = x.sig >> shift, x.exponent + shift
    shift = (y.sig & -y.sig).bit_length() - 1
    power, roots = y.sig >> shift, y.exponent + shift
    if odd == 1 and exponent == 0:
        return fmt.one | (fmt.sign_bit if sign else 0)
    if roots > fmt.E + fmt.F or -roots > 2 * fmt.E + fmt.F.bit_length() + 8:
        return None
    for _ in range(-roots):
        root = math.isqrt(odd)
        if root * root != odd or exponent & 1:
            return None
        odd, exponent = root, exponent >> 1
    power <<= max(roots, 0)
    if y.sign and odd != 1:
        return None
    if odd != 1 and power * (odd.bit_length() - 1) > fmt.precision + 80:
        return None
    value = odd ** power if odd != 1 else 1
    scaled = exponent * power * (-1 if y.sign else 1)
    limit = 4 * (fmt.emax - fmt.emin + fmt.F) + value.bit_length()
    return round_pack(fmt, sign, value, max(-limit, min(limit, scaled)), env)


def _extreme(fmt, x, y, sign, env):
    """The result where it leaves the range or lies next to 1."""
    log = libmp.mpf_mul(to_mpf(y), mpf_log(libmp.mpf_abs(to_mpf(x)), 64), 64)
    if magnitude(log) < -(fmt.F + 80):
        return near(fmt, sign, 1, 0, -1 if log[0] else 1, env)
    bits = libmp.mpf_div(log, libmp.mpf_ln2(64), 64)
    estimate = libmp.to_int(bits) if magnitude(bits) < 40 else (-1 if bits[0] else 1) << 40
    if estimate > fmt.emax + 3:
        return far(fmt, sign, True, env)
    return far(fmt, sign, False, env) if estimate < fmt.emin - fmt.F - 12 else None
