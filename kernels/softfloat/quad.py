"""Vector bodies for binary128: several numbers side by side, each in a low and a high 64-bit lane.

There are no branches, and carries are found by logic. `add` covers every operand. The others return a
third value, a mask of the lanes that they do not cover (a subnormal operand or result, infinity, NaN):
the driver computes those lanes again with the scalar body, so that the words are always the same.
"""
from tlgrad.kernels.expr.value import sqrt as float_sqrt
from tlgrad.kernels.softfloat.words import (
    clz, fshl, fshr, held, nearest, product32, select, small, truth, umax,
    umin)

SIGN, MAGNITUDE = 1 << 63, (1 << 63) - 1
FRACTION, HIDDEN = (1 << 48) - 1, 1 << 48         # of the high lane
INF, NAN = 0x7fff << 48, 0x7fff8 << 44
BITS, LIMB = 29, (1 << 29) - 1                    # limbs of a product or quotient
FAR = 1 << 32                                     # an exponent this large has wrapped below zero


def _hidden(high, code):
    return (high & FRACTION) | select(code.ne(0), high.like(HIDDEN), 0)


def _by_magnitude(al, ah, bl, bh):
    am, bm = ah & MAGNITUDE, bh & MAGNITUDE
    less = am.ult(bm) | (am.eq(bm) & al.ult(bl))
    return (select(less, bl, al), select(less, bh, ah)), (select(less, al, bl), select(less, ah, bh))


def _align(low, high, count):
    """(low, high) >> count with a sticky last bit, for high below 2**63 and any unsigned count."""
    count = umin(count, 127)
    far = ~count.ult(64)
    lost = select(far, low, 0)
    low, high = select(far, high, low), select(far, 0, high)
    lost = lost | fshr(low, low.like(0), count)     # count modulo 64
    return fshr(high, low, count) | umin(lost, held(lost.like(1))), high.lshr(count & 63)


def _round(low, high, up):
    """(low, high) + up for an `up` of 0 or 1."""
    total = low + up
    return total, select(total.eq(0), high + up, high)


def _limit(low, high):
    over = ~high.ult(INF)
    return select(over, 0, low), select(over, INF, high)


def _sum(x, y, xe, ye):
    """``(low, high without a sign, mask of zeros, mask of unlike signs)`` of x + y, |x| >= |y|, as if no
    exponent were special: significands at 14 bits above their place, one carry out to spare."""
    (xl, xh), (yl, yh) = x, y
    code = umax(xe, 1)
    fxh, fyh = _hidden(xh, xe), _hidden(yh, ye)
    sxh, sxl = fshl(fxh, xl, 14), xl << 14
    syl, syh = _align(yl << 14, fshl(fyh, yl, 14), code - umax(ye, 1))
    differ = (xh ^ yh).lshr(63)
    flip = -differ                                  # all ones to subtract: x + ~y + 1
    syl, syh = syl ^ flip, syh ^ flip
    tl, th = (sxl | differ) + syl, sxh + syh        # the last bits of sxl are 0
    th = select(tl.ult(syl), th + held(th.like(1)), th)
    empty = th.eq(0) & ~code.ult(64)                # a word at once, if the exponent allows
    th, tl, code = select(empty, tl, th), select(empty, 0, tl), select(empty, code - 64, code)
    up = umin(clz(th), code)                        # stops at the least exponent: gradual underflow
    rh, rl = fshl(th, tl, up), tl << (up & 63)
    zero = (th | tl).eq(0)
    ql = fshr(rh, rl, 15)
    low, high = _round(ql, rh.lshr(15), ((rl & 0x7fff) + 0x3fff + (ql & 1)).lshr(15))
    return low, high + (select(zero, 0, code - up) << 48), zero, differ.ne(0)


def add(al, ah, bl, bh):
    """a + b for all operands."""
    x, y = _by_magnitude(al, ah, bl, bh)
    (xl, xh), xm, ym = x, x[1] & MAGNITUDE, y[1] & MAGNITUDE
    low, high, zero, differ = _sum(x, y, xm.lshr(48), ym.lshr(48))
    low, high = _limit(low, high)
    high = high | select(zero & differ, 0, xh & SIGN)
    special = ~xm.ult(INF)
    bad = (xm.ult(INF + 1) ^ True) | xl.ne(0) | (differ & ym.eq(INF))
    return select(special, 0, low), select(special, select(bad, xh.like(NAN), xh), high)


def add_finite(al, ah, bl, bh):
    """a + b; an operand or a result that is not finite is flagged."""
    x, y = _by_magnitude(al, ah, bl, bh)
    xm = x[1] & MAGNITUDE
    low, high, zero, differ = _sum(x, y, xm.lshr(48), (y[1] & MAGNITUDE).lshr(48))
    special = ~umax(xm, high).ult(INF)
    return low, high | select(zero & differ, 0, x[1] & SIGN), special


def sub(al, ah, bl, bh):
    """a - b."""
    return add(al, ah, bl, bh ^ SIGN)


def _limbs(low, high):
    """Four limbs of 29 bits of a 113-bit significand, low first."""
    sig = (high & FRACTION) | HIDDEN
    return (low & LIMB, low.lshr(BITS) & LIMB, (low.lshr(58) | (sig << 6)) & LIMB, sig.lshr(23))


def _finish(sign, zero, special, code, low, high, finite=False):
    """Select zero results, and flag what the fast path does not cover; `code` is exponent - 1."""
    high = high + (code << 48)
    if not finite:
        low, high = _limit(low, high)
    low, high = select(zero, 0, low), select(zero, 0, high)
    return low, high | sign, special


def _zero(low, high):
    return ((high & MAGNITUDE) | low).eq(0)


def columns(al, ah, bl, bh):
    """The seven columns of a product of significands in limbs of 29 bits, each with the carry of
    the one below: sixteen products, columns below 2**61."""
    a, b = _limbs(al, ah), _limbs(bl, bh)
    column, t = None, []
    for k in range(7):
        terms = [a[i] * b[k - i] for i in range(4) if 0 <= k - i < 4]
        column = sum(terms[1:], terms[0]) + (column.lshr(BITS) if k else 0)
        t.append(column)
    return t


def mul(al, ah, bl, bh, finite=False):
    """a * b, rounded from the columns of the exact product."""
    t = columns(al, ah, bl, bh)
    r3, r4, r5 = t[3] & LIMB, t[4] & LIMB, t[5] & LIMB
    low = r3.lshr(25) | (r4 << 4) | (r5 << 33) | (t[6] << 62)
    high = t[6].lshr(2)
    rest = select(((t[0] | t[1] | t[2]) & LIMB).ne(0), (r3 << 1) | 1, r3 << 1)
    return _product_end(al, ah, bl, bh, low, high, rest, 26, finite)


def _product_end(al, ah, bl, bh, low, high, rest, bits, finite):
    """Round a product of 113 or 114 bits (high:low) with `bits` bits and a sticky one below it; `finite`
    flags overflow instead of giving infinity."""
    top = high.lshr(49)
    tall = top.ne(0)
    rest = select(tall, rest | (low << bits), rest << 1)
    rest = rest & ((1 << bits + 1) - 1)
    low, high = fshr(high, low, top), high.lshr(top)
    low, high = _round(low, high, (rest + ((1 << bits) - 1) + (low & 1)).lshr(bits + 1))
    ea, eb = (ah & MAGNITUDE).lshr(48), (bh & MAGNITUDE).lshr(48)
    code = ea + eb + top - 16384
    zero = _zero(al, ah) | _zero(bl, bh)
    outside = ~code.ult(0x7ffe if finite else FAR) | umin(ea, eb).eq(0)
    special = umax(ea, eb).eq(0x7fff) | (outside & ~zero)
    return _finish((ah ^ bh) & SIGN, zero, special, code, low, high, finite)


def limbs_ifma(low, high):
    """A significand as limbs of 52, 52 and 9 bits, low first."""
    mask = (1 << 52) - 1
    sig = (high & FRACTION) | HIDDEN
    return low & mask, fshl(sig, low, 12) & mask, sig.lshr(40)


def shifted_ifma(low, high):
    """The fraction bits ``<< 44`` as limbs, whose bits from 52 on do not count: the last place of the result
    of a product is the bottom of its limb 3."""
    return low << 44, low.lshr(8), fshl(high, low, 4)


def columns_ifma(a, b):
    """The six columns of a product, each with the carry of the one below, of `limbs_ifma` and `shifted_ifma`:
    the hidden bit of b is added instead of multiplied."""
    lo, hi = _multiply_low, _multiply_high
    (a0, a1, a2), (b0, b1, b2) = a, b
    zero = b0 ^ b0
    c0 = lo(zero, a0, b0)
    c1 = lo(lo(hi(zero, a0, b0), a0, b1), a1, b0)
    c2 = lo(lo(lo(hi(hi(zero, a0, b1), a1, b0), a0, b2), a1, b1), a2, b0)
    c3 = lo(lo(hi(hi(hi(a0, a0, b2), a1, b1), a2, b0), a1, b2), a2, b1)
    c4 = lo(hi(hi(a1, a1, b2), a2, b1), a2, b2)
    c5 = hi(a2, a2, b2)
    c1 = c1 + c0.lshr(52)
    c2 = c2 + c1.lshr(52)
    c3 = c3 + c2.lshr(52)
    c4 = c4 + c3.lshr(52)
    c5 = c5 + c4.lshr(52)
    return c0, c1, c2, c3, c4, c5


def mul_ifma(al, ah, bl, bh, finite=False):
    """`mul` by 52-bit products (AVX-512 IFMA)."""
    mask = (1 << 52) - 1
    c0, c1, c2, c3, c4, c5 = columns_ifma(limbs_ifma(al, ah), shifted_ifma(bl, bh))
    low, high = (c3 & mask) | (c4 << 52), fshl(c5, c4 << 12, 40)
    rest = (c2 & mask) << 1
    rest = select(((c0 | c1) & mask).ne(0), rest | held(rest.like(1)), rest)
    return _product_end(al, ah, bl, bh, low, high, rest, 53, finite)


def _multiply_low(total, a, b):
    return total.make("madlo", "i64", total, a, b)


def _multiply_high(total, a, b):
    return total.make("madhi", "i64", total, a, b)


def of_binary64(x):
    """A binary64 word as binary128; subnormal numbers, infinity and NaN are flagged."""
    size = x & MAGNITUDE
    zero = size.eq(0)
    special = ~(size - (1 << 52)).ult(0x7fe << 52) & ~zero
    high = select(zero, 0, size.lshr(4) + (16383 - 1023 << 48))
    return x << 60, high | (x & SIGN), special


def to_binary64(low, high):
    """A binary128 rounded to a binary64 word; what is not of its normal range, nor zero, is flagged."""
    size = high & MAGNITUDE
    zero = (size | low).eq(0)
    moved = size - (16383 - 1023 << 48)
    special = ~(moved - (1 << 48)).ult(0x7fe << 48) & ~zero
    kept = fshl(moved, low, 4)
    word = kept + ((low & (1 << 60) - 1) + ((1 << 59) - 1) + (kept & 1)).lshr(60)
    return select(zero, 0, word) | (high & SIGN), special


def div(al, ah, bl, bh):
    """a / b: four signed digits of 29 bits, each the rounded binary64 quotient of what is left.

    The reciprocal is good to 2**-50 and a digit is below 2**30, so the exact remainder stays within
    half a unit and a little; its sign and whether it is zero decide the last place.
    """
    rest, divisor = list(_limbs(al, ah)), _limbs(bl, bh)
    scale = 1.0 / (1 << BITS)
    inverse = 1.0 / (small(divisor[3]) * 536870912.0 + small(divisor[2])
                     + small(divisor[1]) * scale)
    digits = []
    for _ in range(4):
        digit, rest = _quotient_digit(rest, divisor, inverse)
        digits.append(digit)
    digits[3] = digits[3] - rest[3].lshr(63)
    sticky = truth((rest[0] | rest[1] | rest[2] | rest[3]).ne(0), "i64")
    low, high = _join(digits)
    top = high.lshr(52)
    tall = top.ne(0)
    low, high = select(tall, low, low << 1), select(tall, high, fshl(high, low, 1))
    low, high = _round_four(low, high, sticky)
    ea, eb = (ah & MAGNITUDE).lshr(48), (bh & MAGNITUDE).lshr(48)
    code, zero = ea - eb + top + 16381, _zero(al, ah)
    special = umax(ea, eb).eq(0x7fff) | eb.eq(0) | ((~code.ult(FAR) | ea.eq(0)) & ~zero)
    return _finish((ah ^ bh) & SIGN, zero, special, code, low, high)


def _quotient_digit(r, d, inverse):
    estimate = ((small(r[3]) * 536870912.0 + small(r[2])) * 536870912.0 + small(r[1])) * inverse
    q = nearest(estimate)
    s0, s1, s2, s3 = (b - product32(q, x) for b, x in zip((r[0] & 0, *r), d))
    s1, s0 = s1 + s0.ashr(BITS), s0 & LIMB
    s2, s1 = s2 + s1.ashr(BITS), s1 & LIMB
    s3, s2 = s3 + s2.ashr(BITS) + (r[3] << BITS), s2 & LIMB
    return q, [s0, s1, s2, s3]


def _join(digits):
    """Four signed digits, high first, as (low, high)."""
    q1, q2, q3, q4 = digits
    q3, q4 = q3 + q4.ashr(BITS), q4 & LIMB
    q2, q3 = q2 + q3.ashr(BITS), q3 & LIMB
    q1, q2 = q1 + q2.ashr(BITS), q2 & LIMB
    return q4 | (q3 << BITS) | (q2 << 58), q2.lshr(6) | (q1 << 23)


def _round_four(low, high, sticky):
    """Drop four bits of a 117-bit significand."""
    kept = fshr(high, low, 4)
    rest = ((low & 15) << 1) | sticky
    return _round(kept, high.lshr(4), (rest + 15 + (kept & 1)).lshr(5))


def sqrt(al, ah):
    """The root: a first digit from the binary64 root, three more from ``rest / 2 root``."""
    magnitude = ah & MAGNITUDE
    code = magnitude.lshr(48)
    odd = (code & 1) ^ 1
    sig = (ah & FRACTION) | HIDDEN
    high, low = select(odd.ne(0), fshl(sig, al, 1), sig), select(odd.ne(0), al << 1, al)
    head = (high << 10) | low.lshr(54)
    n5, n4 = low.lshr(25) & LIMB, (low << 4) & LIMB
    digits, rest = _root_digits(head, n5, n4)
    digits[3] = digits[3] - rest[3].lshr(63)
    sticky = truth((rest[0] | rest[1] | rest[2] | rest[3]).ne(0), "i64")
    low, high = _round_four(*_join(digits), sticky)
    code = (code + 16383 - odd).lshr(1) - 1
    high = high + (code << 48)
    zero = _zero(al, ah)
    special = ~(ah - HIDDEN).ult(INF - HIDDEN) & ~zero
    return select(zero, 0, low), select(zero, ah, high), special


def _root_digits(head, n5, n4):
    def digit(top, below):
        return nearest((small(top) * 536870912.0 + small(below)) * inverse)

    def twice(a, b):                                                # s1 may be 2**30, its double not
        return product32(a, b) << 1

    root = float_sqrt(small(head.lshr(32)) * 4294967296.0 + small(head & 0xffffffff))
    s1, inverse = nearest(root), 0.5 / root
    rest = head - product32(s1, s1)
    d2 = digit(rest, n5)
    h1, h0 = (rest << BITS) + n5 - twice(s1, d2), n4 - product32(d2, d2)
    h1, h0 = h1 + h0.ashr(BITS), h0 & LIMB
    d3 = digit(h1, h0)
    g2, g1, g0 = (h1 << BITS) + h0 - twice(s1, d3), -twice(d2, d3), -product32(d3, d3)
    g1, g0 = g1 + g0.ashr(BITS), g0 & LIMB
    g2, g1 = g2 + g1.ashr(BITS), g1 & LIMB
    d4 = digit(g2, g1)
    f3, f2 = (g2 << BITS) + g1 - twice(s1, d4), g0 - twice(d2, d4)
    f1, f0 = -twice(d3, d4), -product32(d4, d4)
    f1, f0 = f1 + f0.ashr(BITS), f0 & LIMB
    f2, f1 = f2 + f1.ashr(BITS), f1 & LIMB
    f3, f2 = f3 + f2.ashr(BITS), f2 & LIMB
    return [s1, d2, d3, d4], [f0, f1, f2, f3]
