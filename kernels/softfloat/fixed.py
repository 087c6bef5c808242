"""Fixed-point pieces of elementary functions: products, tables, division, and the rounding test.

A number is an unsigned integer with a scale known when the body is written. A body ends in `settle`,
which is given a bound on the error of its result: where the bound does not decide the rounding, the
element is flagged and computed again in higher precision (Ziv, ACM TOMS 17, 1991).
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat.wide import Layout, split, whole
from tlgrad.kernels.softfloat.words import (
    joined, normalised, resize, right_words, select, signed, split_words, width)

F = Layout(15, 112, 16383, 128)
ONE = F.bias << F.F


def mulshift(a, b, shift):
    """``(a * b) >> shift`` of unsigned integers, in the type of a; the product is exact."""
    wide = whole(width(a.type) + width(b.type))
    return resize((resize(a, wide) * resize(b, wide)).lshr(shift), a.type)


def high(a, b):
    """The high half of the product of two 64-bit integers, exactly; of two of 128 bits, at most
    three units too small: the product of the low words is left out."""
    if a.type == "i64":
        return mulshift(a, b, 64)
    (al, ah), (bl, bh) = halves(a), halves(b)
    wide = resize(ah, "i128") * resize(bh, "i128")
    return wide + resize(high(ah, bl), "i128") + resize(high(al, bh), "i128")


def halves(x):
    """The low and the high word of a 128-bit integer."""
    return resize(x, "i64"), resize(x.lshr(64), "i64")


def table(name, type, numbers, index):
    """``numbers[index]``: a constant array of integers in the module."""
    return Value(index.emitter, index.emitter.integer_table(name, type, numbers, index), type)


def parts(x):
    """``(is negative, unbiased exponent as i64, 113-bit significand)`` of a normal word."""
    _, code, sig = split(F, x)
    return (x & F.sign).ne(0), code - F.bias, sig


def place(sig, type, most, down):
    """``(sig << most) >> down``; bits shifted out are lost. `down` is at least 0 and below 128 in two
    words, 256 in three and four, 512 in up to eight (see `right_words`)."""
    words, _ = right_words(split_words(resize(sig, type) << most), down)
    return joined(words, type)


def about(x, scale):
    """``x * 2**-scale`` in binary64, from the two top words of x, each below 2**63."""
    bits = width(x.type)
    top = signed(resize(x.lshr(bits - 64), "i64"))
    below = signed(resize(x.lshr(bits - 96), "i64") & 0xffffffff)
    return top * 2.0 ** (bits - 64 - scale) + below * 2.0 ** (bits - 96 - scale)


def settle(sign, total, scale, absolute, relative):
    """Round ``total * 2**-scale``: ``(word, mask of what the error leaves undecided)``.

    The error of `total` is below the larger of ``2**absolute`` and ``total * 2**-relative``.
    """
    bits = width(total.type)
    up, total = normalised(total)
    exponent = -up + (bits - 1 - scale + F.bias)
    error = up + absolute
    floor = bits - 1 - relative
    return settle_normal(sign, total, exponent, select(error < floor, floor, error))


def settle_normal(sign, total, exponent, error):
    """`settle` for a total with its top bit set, worth ``2**(exponent - bias)``, and an error below
    ``2**error``. Results outside the normal range are undecided too."""
    drop = width(total.type) - 1 - F.F
    rest = resize(total.lshr(drop - 64), "i64")                    # the 64 bits below the last place
    if isinstance(error, int):
        reach = rest.constant((1 << max(error - (drop - 64), 0)) + 1, "i64")
        near = (rest - (1 << 63) + reach).ult(reach << 1)
    else:
        count = error - (drop - 64)
        rough = count > 61                                         # the last place itself is not known
        count = select(count < 0, 0, select(rough, 61, count))
        reach = (rest.constant(1, "i64") << count) + 1
        near = (rest - (1 << 63) + reach).ult(reach << 1) | rough
    kept = resize(total.lshr(drop), F.type) + resize(rest.lshr(63), F.type)
    word = kept + (resize(exponent - 1, F.type) << F.F)
    return word | sign, near | (exponent < 1) | (exponent > 32766)


def negate_if(mask, x):
    """-x where the mask holds, modulo the width."""
    return select(mask, -x, x)


def quotient(n, d):
    """``n / d`` at 2**-191 for n and d at 2**-191, ``n <= d`` and d in [1, 2): too small by less
    than 2**-154.

    One Newton step takes the binary64 reciprocal of d, made a little too small, to 2**-97. The
    quotient that it gives is taken back exactly from n; the remainder, divided the same way, is added.
    """
    upper = resize(d.lshr(64), "i192")                             # at 2**-127
    guess = (2.0 ** 124 / signed(resize(d.lshr(129), "i64"))).to_integer() - (1 << 12)
    guess = resize(guess, "i192")                                  # at 2**-62
    short = -mulshift(upper, guess, 62) + (1 << 127)               # 1 - d y, below 2**-48
    inverse = resize((guess << 65) + mulshift(short, guess, 62), "i128")    # at 2**-127
    first = high(resize(n.lshr(64), "i128"), inverse) << 1         # at 2**-127
    rest = (resize(n, "i320") << 127) - resize(first, "i320") * resize(d, "i320")
    size = resize(rest.lshr(160), "i64")                           # at 2**-158
    more = high(size, resize(inverse.lshr(64), "i64"))             # at 2**-157
    return (resize(first, "i192") << 64) + (resize(more, "i192") << 34)
