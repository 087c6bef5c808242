"""Fixed-point pieces of elementary functions: products, tables, division, and the rounding test.

A number is an unsigned integer with a scale known when the body is written. A body ends in `settle`,
which is given a bound on the error of its result: where the bound does not decide the rounding, the
element is flagged and computed again in higher precision (Ziv, ACM TOMS 17, 1991).
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat.wide import Layout, split, whole
from tlgrad.kernels.softfloat.words import clz, fshr, resize, select, shl0, signed, truth, width

F = Layout(15, 112, 16383, 128)
ONE = F.bias << F.F


def mulshift(a, b, shift):
    """``(a * b) >> shift`` of unsigned integers, in the type of a; the product is exact."""
    wide = whole(width(a.type) + width(b.type))
    return resize((resize(a, wide) * resize(b, wide)).lshr(shift), a.type)


def high(a, b):
    """The high half of the product of two integers of one type."""
    return mulshift(a, b, width(a.type))


def constant(like, value, type):
    """An integer constant."""
    return like.constant(value, type)


def table(name, type, numbers, index):
    """``numbers[index]``: a constant array of integers in the module."""
    emitter = index.emitter
    symbol = f"@{name}"
    if symbol not in emitter.declarations:
        cells = ", ".join(f"{type} {emitter.const(n, type)}" for n in numbers)
        emitter.declarations[symbol] = (
            f"{symbol} = internal constant [{len(numbers)} x {type}] [{cells}], align 64")
    cell = emitter.emit(f"getelementptr [{len(numbers)} x {type}], ptr {symbol}, i64 0, i64 "
                        f"{index.handle}")
    return Value(emitter, emitter.emit(f"load {type}, ptr {cell}, align 16"), type)


def parts(x):
    """``(is negative, unbiased exponent as i64, 113-bit significand)`` of a normal word."""
    _, code, sig = split(F, x)
    return (x & F.sign).ne(0), code - F.bias, sig


def place(sig, type, most, down):
    """``(sig << most) >> down`` for ``down >= 0`` of any size, 64 bits at a time by choice."""
    wide = resize(sig, type) << most
    words = [resize(wide.lshr(64 * k), "i64") for k in range(width(type) // 64)]
    step = 1
    while step < len(words):
        step *= 2
    while step > 1:
        step //= 2
        far = (down & (64 * step)).ne(0)
        moved = words[step:] + [words[0] & 0] * step
        words = [select(far, m, w) for m, w in zip(moved, words)]
    down, zero = down & 63, words[0] & 0
    words = [fshr(h, w, down) for w, h in zip(words, words[1:] + [zero])]
    return joined(words, type)


def joined(words, type):
    """64-bit words, low first, as one integer."""
    total = resize(words[0], type)
    for k, word in enumerate(words[1:], 1):
        total = total | (resize(word, type) << 64 * k)
    return total


def about(x, scale):
    """``x * 2**-scale`` in binary64, from the two top words of x, each below 2**63."""
    bits = width(x.type)
    top = signed(resize(x.lshr(bits - 64), "i64"))
    below = signed(resize(x.lshr(bits - 96), "i64") & 0xffffffff)
    return top * 2.0 ** (bits - 64 - scale) + below * 2.0 ** (bits - 96 - scale)


def settle(sign, total, scale, error):
    """Round ``total * 2**-scale``: ``(word, mask of what the error leaves undecided)``.

    Results outside the normal range are undecided too.
    """
    bits, up = width(total.type), clz(total)
    exponent = -resize(up, "i64") + (bits - 1 - scale + F.bias)
    return settle_normal(sign, shl0(total, up), exponent, shl0(error, up))


def settle_normal(sign, total, exponent, error):
    """`settle` for a total whose top bit is set, worth ``2**(exponent - bias)``."""
    drop = width(total.type) - 1 - F.F
    rest, half = total & ((1 << drop) - 1), 1 << (drop - 1)
    near = (rest - half + error).ult(error << 1)
    kept = resize(total.lshr(drop), F.type) + truth(~rest.ult(half), F.type)
    word = kept + (resize(exponent - 1, F.type) << F.F)
    return word | sign, near | (exponent < 1) | (exponent > 32766)


def negate_if(mask, x):
    """-x where the mask holds, modulo the width."""
    return select(mask, -x, x)


def quotient(n, d, bits):
    """``(n << bits) / d`` to within two units, for ``n <= d`` and the top bit of d at `bits`.

    One Newton step takes the binary64 reciprocal of d to 100 bits; the remainder of the quotient
    that this gives, divided in the same way, supplies the rest.
    """
    kind = d.type
    inverse = 2.0 ** 61 / signed(resize(d.lshr(bits - 61), "i64"))
    y = resize((inverse * float(1 << 60)).to_integer(), kind) << (bits - 60)
    y = (y << 1) - mulshift(mulshift(y, y, bits), d, bits)
    first = mulshift(n, y, bits)
    wide = whole(2 * width(kind))
    rest = (resize(n, wide) << bits) - resize(first, wide) * resize(d, wide)
    negative = rest < 0
    size = resize(negate_if(negative, rest).lshr(bits // 2), kind)
    return first + negate_if(negative, mulshift(size, y, 2 * bits - bits // 2))
