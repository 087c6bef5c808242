"""Vector body of the fused multiply-add of binary128, in windows of four 64-bit lanes."""
from tlgrad.kernels.softfloat.quad import (
    FAR, FRACTION, HIDDEN, LIMB, MAGNITUDE, SIGN, columns, _limit, _round, _zero)
from tlgrad.kernels.softfloat.words import (
    fshl, fshr, left_words, right_words, select, truth, umax, umin)


def fma(al, ah, bl, bh, cl, ch):
    """a * b + c, rounded once; subnormal, infinite and NaN operands and subnormal results are
    flagged.

    Product and c stand in 256 bits, leading bit at 252 or 253; the one of smaller exponent moves
    right. The 28 zero bits below the product keep a small move exact, so that a sum that cancels
    is exact; after a long move a sticky bit is enough.
    """
    ea, eb, ec = ((x & MAGNITUDE).lshr(48) for x in (ah, bh, ch))
    flat, empty = _zero(cl, ch), _zero(al, ah) | _zero(bl, bh)
    product = [select(empty, 0, w) for w in _product(al, ah, bl, bh)]
    addend = _addend(cl, ch, flat)
    ep = ea + eb - 16383
    gap = select(flat | empty, 0, ep - ec)
    ahead = ~(gap < 0) & ~empty                                     # the product stays
    high = [select(ahead, p, c) for p, c in zip(product, addend)]
    low = [select(ahead, c, p) for p, c in zip(product, addend)]
    low, lost = right_words(low, umin(select(ahead, gap, -gap), 255))
    low[0] = low[0] | truth(lost.ne(0), "i64")
    differ = (ah ^ bh ^ ch).lshr(63)
    total = _add(high, [w ^ -differ for w in low], differ)
    negative = total[3].lshr(63)                                    # only if they differ
    total = _add([w & 0 for w in total], [w ^ -negative for w in total], negative)
    sign = (select(ahead, ah ^ bh, ch) & SIGN) ^ (negative << 63)
    nothing = (total[0] | total[1] | total[2] | total[3]).eq(0)
    code = select(ahead, ep, ec) + 2
    low, high, code = _rounded(total, code)
    below = ~code.ult(FAR) & ~nothing
    special = below | umax(umax(ea, eb), ec).eq(0x7fff) | (umin(ea, eb).eq(0) & ~empty)
    special = special | (ec.eq(0) & ~flat)
    low, high = _limit(low, high + (code << 48))
    nil = (ah ^ bh) & ch & SIGN                                     # -0 of two negative zeros only
    return select(nothing, 0, low), select(nothing, nil, high | sign), special


def _product(al, ah, bl, bh):
    """The exact product times 2**28 as four words."""
    t = columns(al, ah, bl, bh)
    r0, r1, r2, r3, r4, r5 = (x & LIMB for x in t[:6])
    return [(r0 << 28) | (r1 << 57), r1.lshr(7) | (r2 << 22) | (r3 << 51),
            r3.lshr(13) | (r4 << 16) | (r5 << 45), r5.lshr(19) | (t[6] << 10)]


def _addend(cl, ch, flat):
    """The significand of c with its leading bit at 252; 0 for zero."""
    sig = select(flat, 0, (ch & FRACTION) | HIDDEN)
    zero = cl & 0
    return [zero, zero, cl << 12, fshl(sig, cl, 12)]


def _add(x, y, carry):
    """x + y + carry in four words."""
    out = []
    for a, b in zip(x, y):
        total = a + b + carry
        carry = ((a & b) | ((a | b) & ~total)).lshr(63)
        out.append(total)
    return out


def _rounded(words, code):
    """``(low, high, exponent - 1)`` of four words; `code` belongs to a leading bit at 255."""
    up, words = left_words(words)
    kept = fshr(words[3], words[2], 15)
    rest = ((words[2] & 0x7fff) << 1) | truth((words[0] | words[1]).ne(0), "i64")
    low, high = _round(kept, words[3].lshr(15), (rest + 0x7fff + (kept & 1)).lshr(16))
    return low, high, code - up
