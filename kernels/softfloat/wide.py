"""Scalar bodies for any Binary(E, F) with infinities, on integers as wide as the exact results.

One body serves every width: LLVM splits the integers into machine words. There are no branches, so a
body costs the same for every operand, subnormal or not. A significand on its way to `round_pack` is
an integer with its leading bit at the top; everything below the format's last place stays in it, down
to a sticky last bit where bits were shifted out.
"""
from dataclasses import dataclass

from tlgrad.kernels.expr.value import sqrt as float_sqrt
from tlgrad.kernels.softfloat.words import (
    clz, normalised, resize, select, shl0, shr0, signed, sticky_shift, truth, umax, umin, width)

DIGIT = 28                        # bits of a quotient or root digit that binary64 can estimate


@dataclass(frozen=True)
class Layout:
    """The numbers of a format with infinities that bodies need; words have `bits` bits."""

    E: int
    F: int
    bias: int
    bits: int

    @property
    def type(self):
        return f"i{self.bits}"

    @property
    def inf(self):
        return ((1 << self.E) - 1) << self.F

    @property
    def nan(self):
        return self.inf | 1 << (self.F - 1)

    @property
    def sign(self):
        return 1 << (self.E + self.F)


def whole(bits):
    """The integer type of at least `bits` bits in 64-bit words."""
    return f"i{64 * -(-bits // 64)}"


def split(f, x):
    """``(magnitude word, exponent code at least 1, significand)`` of a finite word."""
    magnitude = x & (f.sign - 1)
    code = resize(magnitude.lshr(f.F), "i64")
    hidden = select(code.ne(0), x.constant(1 << f.F, f.type), 0)
    return magnitude, umax(code, 1), (magnitude & ((1 << f.F) - 1)) | hidden


def normal(f, x):
    """`split`, with subnormal significands shifted up to the hidden bit: ``(exponent, sig)``."""
    _, exponent, sig = split(f, x)
    up = clz(sig) - (f.bits - 1 - f.F)
    return exponent - resize(up, "i64"), shl0(sig, up)


def round_pack(f, sign, exponent, sig):
    """The word of `sig`, leading bit at the top and worth ``2**(exponent - bias)``; sig 0 gives zero.

    `exponent` is a signed i64. Gradual underflow is a shift, overflow a comparison, and a carry out of
    the significand walks into the exponent by itself.
    """
    top = width(sig.type)
    drop = top - 1 - f.F
    low = exponent < 1
    sig = select(low, sticky_shift(sig, resize(umin(-exponent + 1, top), sig.type)), sig)
    exponent = select(low | sig.eq(0), 1, exponent)
    kept = sig.lshr(drop)
    rest = sig & ((1 << drop) - 1)
    up = (rest + ((1 << (drop - 1)) - 1) + (kept & 1)).lshr(drop)
    code = select(exponent > (1 << f.E), 1 << f.E, exponent) - 1
    word = resize(kept + up, f.type) + (resize(code, f.type) << f.F)
    return umin(word, f.inf) | sign


def _positive(x):
    return select(x < 0, 0, x)


def leading(sig):
    """``(leading zeros as i64, sig shifted up to its top bit)``; those of 0 stop at the width."""
    if width(sig.type) > 128:
        return normalised(sig)
    up = clz(sig)
    return resize(up, "i64"), shl0(sig, up)


def is_nan(f, x):
    return (x.constant(f.inf, f.type)).ult(x & (f.sign - 1))


def is_zero(f, x):
    return (x & (f.sign - 1)).eq(0)


def is_inf(f, x):
    return (x & (f.sign - 1)).eq(f.inf)


def add(f, a, b):
    """a + b: align by the exponent difference with a sticky bit, add or subtract, round."""
    room = width(whole(f.F + 6))
    swap = (a & (f.sign - 1)).ult(b & (f.sign - 1))
    x, y = select(swap, b, a), select(swap, a, b)
    (xm, xe, xs), (ym, ye, ys) = split(f, x), split(f, y)
    wide = f"i{max(room, 64)}"
    shift = width(wide) - 2 - f.F
    high, low = resize(xs, wide) << shift, resize(ys, wide) << shift
    low = sticky_shift(low, resize(umin(xe - ye, width(wide)), wide))
    differ = ((x ^ y) & f.sign).ne(0)
    total = select(differ, high - low, high + low)
    up, sig = leading(total)
    sign = select(total.eq(0) & differ, 0, x & f.sign)
    word = round_pack(f, sign, xe + 1 - up, sig)
    bad = is_nan(f, x) | (ym.eq(f.inf) & differ)
    return select(bad, f.nan, select(xm.eq(f.inf), x, word))


def sub(f, a, b):
    """a - b."""
    return add(f, a, b ^ f.sign)


def product(f, a, b):
    """``(exponent, exact product normalised to the top)`` of two finite words."""
    wide = whole(2 * f.F + 2)
    (_, ae, asig), (_, be, bsig) = split(f, a), split(f, b)
    up, sig = leading(resize(asig, wide) * resize(bsig, wide))
    return ae + be - (f.bias + 2 * f.F - width(wide) + 1) - up, sig


def mul(f, a, b):
    """a * b: the exact product, rounded."""
    sign = (a ^ b) & f.sign
    exponent, sig = product(f, a, b)
    infinite = is_inf(f, a) | is_inf(f, b)
    zero = is_zero(f, a) | is_zero(f, b)
    word = select(infinite, sign | f.inf, round_pack(f, sign, exponent, sig))
    return select(is_nan(f, a) | is_nan(f, b) | (infinite & zero), f.nan, word)


def div(f, a, b):
    """a / b by digits of 28 bits.

    Each digit is a binary64 estimate of ``remainder / divisor`` that is never too large: the
    divisor is read 2**-30 too large at most, against digits below 2**29, so that less than 2 stays
    behind. It stays in the exact remainder, and one correction at the end finds the rest.
    """
    (ae, asig), (be, bsig) = normal(f, a), normal(f, b)
    steps = -(-(f.F + 3) // DIGIT)
    wide, out = whole(f.F + 1 + DIGIT + 4), whole(DIGIT * steps + 2)
    rest, divisor = resize(asig, wide), resize(bsig, wide)
    cut = f.F + DIGIT + 4 - 62
    inverse = 0.9999999999999973 / (upper(divisor, cut) + 1.0)
    quotient = resize(rest, out) & 0
    for _ in range(steps):
        rest = rest << DIGIT
        digit = (upper(rest, cut) * inverse).to_integer()
        rest = rest - resize(digit, wide) * divisor
        quotient = (quotient << DIGIT) + resize(digit, out)
    less = rest.ult(divisor)
    rest = select(less, rest, rest - divisor)
    quotient = select(less, quotient, quotient + 1)
    up, sig = leading((quotient << 1) | truth(rest.ne(0), out))
    exponent = ae - be + (f.bias - up + width(out) - 2 - DIGIT * steps)
    return _div_specials(f, a, b, round_pack(f, (a ^ b) & f.sign, exponent, sig))


def upper(x, cut):
    """binary64 of ``x * 2**-cut``, truncated to an integer below 2**63."""
    return signed(resize(x.lshr(cut) if cut > 0 else x << -cut, "i64"))


def _div_specials(f, a, b, word):
    sign = (a ^ b) & f.sign
    az, bz, ai, bi = is_zero(f, a), is_zero(f, b), is_inf(f, a), is_inf(f, b)
    word = select(az | bi, sign, word)
    word = select(ai | bz, sign | f.inf, word)
    return select(is_nan(f, a) | is_nan(f, b) | (az & bz) | (ai & bi), f.nan, word)


def sqrt(f, a):
    """The root by digits of 28 bits, each a binary64 estimate that is never too large.

    ``R = N - S**2`` is kept exactly. ``R / 2S`` overshoots the next digit q by ``q**2 / 2S``, which
    is 4 at most, so 5 is taken off; the last two corrections find what that leaves.
    """
    exponent, sig = normal(f, a)
    odd = (exponent ^ (f.bias & 1)) & 1
    steps = max(1, -(-(f.F + 4 - 26) // DIGIT))
    total = 52 + 2 * DIGIT * steps                # bits of the radicand: 51 or 52 before the chunks
    radicand, wide = whole(total), whole(total // 2 + DIGIT + 8)
    n = resize(sig, radicand) << (total - 2 - f.F)
    n = select(odd.ne(0), n << 1, n)
    head = resize(n.lshr(2 * DIGIT * steps), "i64")
    first = (float_sqrt(signed(head)) * 0.9999999999999982).to_integer()
    root, rest = resize(first, wide), resize(head - first * first, wide)
    for step in range(1, steps + 1):
        chunk = n.lshr(2 * DIGIT * (steps - step)) & ((1 << 2 * DIGIT) - 1)
        digit = resize(_root_digit(rest, root, 26 + DIGIT * (step - 1)), wide)
        rest = (rest << 2 * DIGIT) + resize(chunk, wide)
        rest = rest - ((root * digit) << (DIGIT + 1)) - digit * digit
        root = (root << DIGIT) + digit
    digit = resize(_root_digit(rest, root, 26 + DIGIT * steps, shift=0, less=0), wide)
    rest = rest - ((root * digit) << 1) - digit * digit
    root = root + digit
    more = ~rest.ult((root << 1) + 1)
    rest = select(more, rest - (root << 1) - 1, rest)
    root = select(more, root + 1, root)
    up, sig = leading((root << 1) | truth(rest.ne(0), wide))
    half = (exponent - f.bias - resize(odd, "i64")).ashr(1) + f.bias
    return _sqrt_specials(f, a, round_pack(f, a.constant(0, f.type), half, sig))


def _root_digit(rest, root, done, shift=DIGIT, less=5):
    """floor(rest * 2**shift / (2 root)) - less, not below 0, for a root of `done` bits."""
    cut = max(0, done + 5 - 62)
    top = signed(resize(rest.lshr(cut), "i64")) * (0.9999999999999973 * 2.0 ** (shift - 1))
    below = signed(resize(root.lshr(cut), "i64")) + (1.0 if cut else 0.0)
    return _positive((top / below).to_integer() - less)


def _sqrt_specials(f, a, word):
    word = select(is_zero(f, a) | a.eq(f.inf), a, word)
    negative = (a & f.sign).ne(0) & ~is_zero(f, a)
    return select(is_nan(f, a) | negative, f.nan, word)


def fma(f, a, b, c):
    """a * b + c, rounded once: the exact product and c in one window, the smaller one sticky."""
    wide = whole(2 * f.F + 2 + 8)
    pe, psig = product(f, a, b)
    psig = resize(psig, wide) << (width(wide) - width(psig.type))
    ce, csig = normal(f, c)
    csig = resize(csig, wide) << (width(wide) - 1 - f.F)
    psign, differ = (a ^ b) & f.sign, ((a ^ b ^ c) & f.sign).ne(0)
    ahead = psig.ne(0) & ((ce < pe) | (ce.eq(pe) & ~psig.ult(csig)) | csig.eq(0))
    he, le = select(ahead, pe, ce), select(ahead, ce, pe)
    high, low = select(ahead, psig, csig).lshr(1), select(ahead, csig, psig)
    gap = select(low.eq(0), 0, he - le)
    low = sticky_shift(low.lshr(1) | (low & 1), resize(umin(gap, width(wide)), wide))
    total = select(differ, high - low, high + low)
    up, sig = leading(total)
    sign = select(ahead, psign, c & f.sign)
    sign = select(total.eq(0), psign & c, sign)
    return _fma_specials(f, a, b, c, round_pack(f, sign, he + 1 - up, sig))


def _fma_specials(f, a, b, c, word):
    sign = (a ^ b) & f.sign
    infinite = is_inf(f, a) | is_inf(f, b)
    zero = is_zero(f, a) | is_zero(f, b)
    against = is_inf(f, c) & (c & f.sign).ne(sign)
    word = select(is_inf(f, c), c, word)
    word = select(infinite, sign | f.inf, word)
    bad = is_nan(f, a) | is_nan(f, b) | is_nan(f, c)
    return select(bad | (infinite & (zero | against)), f.nan, word)


def convert(source, target):
    """The body that rounds words of one layout to another."""
    def body(f, x):
        exponent, sig = normal(source, x)
        wide = whole(max(source.F + 1, target.F + 4))
        sig = resize(sig, wide) << (width(wide) - 1 - source.F)
        sign = _move_sign(source, target, x)
        word = round_pack(target, sign, exponent + (target.bias - source.bias), sig)
        word = select(is_inf(source, x), sign | target.inf, word)
        return select(is_nan(source, x), target.nan, word)
    return body


def _move_sign(source, target, x):
    wide = f"i{max(source.bits, target.bits)}"
    moved = resize(x & source.sign, wide)
    gap = (target.E + target.F) - (source.E + source.F)
    return resize(moved << gap if gap >= 0 else moved.lshr(-gap), target.type)


def from_integer(target, is_signed):
    """The body that rounds i64 words, signed or not, to a layout."""
    def body(f, x):
        negative = (x < 0) if is_signed else x.ne(x)
        up, sig = leading(select(negative, -x, x))
        wide = whole(max(64, target.F + 4))
        sig = resize(sig, wide) << (width(wide) - 64)
        zero = resize(sig, target.type) & 0
        sign = select(negative, zero | target.sign, zero)
        return round_pack(target, sign, -up + (63 + target.bias), sig)
    return body


def to_integer(source, is_signed):
    """The body that truncates words of a layout to i64; what does not fit gives x86's indefinite."""
    def body(f, x):
        _, exponent, sig = split(source, x)
        wide = whole(max(source.F + 1, 66))
        sig = resize(sig, wide) << (width(wide) - 1 - source.F)
        down = -exponent + (source.bias + width(wide) - 1)
        value = resize(shr0(sig, resize(_positive(down), wide)), "i64")
        negative = (x & source.sign).ne(0)
        limit = source.bias + (63 if is_signed else 64)
        bad = ~(exponent < limit) | ~((x & (source.sign - 1)).ult(source.inf))
        if is_signed:
            bad = bad & ~(exponent.eq(limit) & negative & value.eq(1 << 63))
        else:
            bad = bad | (negative & value.ne(0))
        return select(bad, 1 << 63 if is_signed else -1, select(negative, -value, value))
    return body


def round_to_integral(mode):
    """The body of "floor", "ceil", "trunc" or "rint"; the sign of zero is kept."""
    def body(f, x):
        magnitude = x & (f.sign - 1)
        sign, negative = x & f.sign, (x & f.sign).ne(0)
        exponent = resize(magnitude.lshr(f.F), "i64") - f.bias
        drop = resize(_positive(-exponent + f.F), f.type)
        unit = shl0(x.constant(1, f.type), drop)
        cut = magnitude & ~(unit - 1)
        inexact = cut.ne(magnitude)
        if mode == "rint":
            half, beyond = unit.lshr(1), magnitude - cut
            away = half.ult(beyond) | (beyond.eq(half) & (cut & unit).ne(0))
            one_half = (f.bias - 1) << f.F if f.bias > 1 else 1 << (f.F - 1)
            step = x.constant(one_half, f.type).ult(magnitude)
        else:
            away = {"floor": negative, "ceil": ~negative, "trunc": x.ne(x)}[mode]
            step = magnitude.ne(0) & away
        large = select(inexact & away, cut + unit, cut)
        small = select(step, x.constant(f.bias << f.F, f.type), 0)
        word = select(exponent < 0, small, large) | sign
        word = select(exponent < f.F, word, x)
        return select(is_nan(f, x), f.nan, word)
    return body
