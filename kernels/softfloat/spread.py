"""Sums, products and quotients of formats of 11 to 24 fraction bits, whose words are spread over 64-bit lanes.

A lane holds one, two or four words. Each is moved, where it lies, to the top of a lane of its own: as a
binary64 word its exponent is the format's, so that it stands for the number times 2**(bias - 1023),
subnormals included. Words of infinities and NaN would be finite numbers there: `special` finds them, and
a group that has one goes the long way (`narrow`). Why one operation of binary64 and one rounding give the
word: see `tlgrad.softfloat.small`.
"""
from tlgrad.kernels.expr.value import select
from tlgrad.kernels.softfloat.words import umax, umin

SIGN, MAGNITUDE, EXPONENT = 1 << 63, (1 << 63) - 1, 0x7ff << 52
OPERATIONS = ("add", "sub", "mul", "div")


def covers(f, name):
    """Whether an operation of a format has a body here."""
    return name in OPERATIONS and f.F > 10 and f.bits in (16, 32, 64) and 0 < f.bias < 512


def special(f, name, a, b):
    """The mask of words, in lanes of their own width, with an operand that is infinite or NaN, or a division by 0;
    None where there are no such words."""
    found = None
    if f.nan == f.sign:
        found = a.eq(f.nan) | b.eq(f.nan)
    elif f.nan is not None:
        found = ~umax(a & (f.sign - 1), b & (f.sign - 1)).ult(f.nan if f.inf is None else f.inf)
    if name != "div":
        return found
    empty = (b & (f.sign - 1)).eq(0)
    return empty if found is None else found | empty


def _signed(f, lanes, at):
    """The words at bit `at` of each lane, as binary64 numbers ``a * 2**(bias - 1023)``."""
    up = 63 - at - f.E - f.F
    top = lanes << up if up else lanes
    return (top.ashr(11 - f.E) & (SIGN | (1 << 52 + f.E) - (1 << 52 - f.F))).as_float()


def _size(f, lanes, at):
    """`_signed` without the sign."""
    size = lanes & (f.sign - 1 << at)
    up = 52 - f.F - at
    return (size << up if up > 0 else size.lshr(-up) if up < 0 else size).as_float()


def _sum(f, a, b, minus):
    """The size of the sums or differences of binary64 numbers as `_signed` gives them, as a word, and the sign.

    The exponents are the format's, so a shift rounds, below the normal range as well as in it.
    """
    bits, drop = (a - b if minus else a + b).bits(), 52 - f.F
    size = bits & MAGNITUDE
    word = (size + ((1 << drop - 1) - 1) + (size.lshr(drop) & 1)).lshr(drop)
    return word, bits.lshr(63 - f.E - f.F) & f.sign


def _product(f, a, b):
    """The products of binary64 numbers as `_size` gives them, as words.

    They are exact where they matter. For a format of 8 and more exponent bits one factor is brought so
    far up that the product has 2**low times its value, in the normal range where the format's is; else
    both are brought to their values.
    """
    wide = f.E >= 8
    up = 2.0 ** (1023 if wide else 1023 - f.bias)
    return _word(f, (a * up) * (b if wide else b * up), 2 * f.bias - 1023 if wide else 0)


def _word(f, value, low):
    """Positive binary64 numbers, 2**low times those of the format, rounded to words.

    A number as large as the least kept unit times 2**52 is added: the sum has the rounded significand in its
    last places, over what the unit alone would have there.
    """
    drop, least = 52 - f.F, 1024 - f.bias + low << 52
    exponent = umax(value.bits() & EXPONENT, least)
    total = value + (exponent + (drop << 52)).as_float()
    return (total.bits() - (exponent + ((drop << 52) + (least >> drop)))) + exponent.lshr(drop)


def _plain(f):
    """Whether a word is a size and a sign, whatever they are: NaN aside, 0 and the largest result have both."""
    return f.inf is not None or f.nan is None


def _limited(f, word, sign):
    """A size, which may be too large, and a sign as a word of the format."""
    if _plain(f):
        return umin(word, f.max if f.inf is None else f.inf) | sign
    signed = word | sign if f.negative_zero else select(word.eq(0), 0, word | sign)
    return select(word.constant(f.max, word.type).ult(word), f.nan, signed)


def operation(f, name, a, b):
    """The words, spread as the operands are, of an operation on lanes without a `special` word."""
    signs, word = (a ^ b) & sum(f.sign << at for at in range(0, 64, f.bits)), None
    for at in range(0, 64, f.bits):
        if name in ("add", "sub"):
            size, sign = _sum(f, _signed(f, a, at), _signed(f, b, at), name == "sub")
        else:
            x, y = _size(f, a, at), _size(f, b, at)
            size = _product(f, x, y) if name == "mul" else _word(f, x / y, 0)
            sign = 0 if _plain(f) else signs.lshr(at) & f.sign
        found = _limited(f, size, sign)
        found = found << at if at else found
        word = found if word is None else word | found
    return word | signs if name in ("mul", "div") and _plain(f) else word
