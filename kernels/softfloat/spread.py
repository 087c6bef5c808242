"""Sums and products of formats of 11 to 24 fraction bits, whose words are spread over 64-bit lanes.

A lane holds one, two or four words. Each is moved, where it lies, to the top of a lane of its own: as a
binary64 word its exponent is the format's, so that it stands for the number times 2**(bias - 1023),
subnormals included. Words of infinities and NaN would be finite numbers there: `special` finds them, and
a group that has one goes the long way (`narrow`). Why one operation of binary64 and one rounding give the
word: see `tlgrad.softfloat.small`.
"""
from tlgrad.kernels.softfloat.words import umax, umin

SIGN, MAGNITUDE, EXPONENT = 1 << 63, (1 << 63) - 1, 0x7ff << 52


def covers(f, name):
    """Whether an operation of a format has a body here."""
    return (name in OPERATIONS and f.F > 10 and f.bits in (16, 32, 64) and f.inf is not None
            and f.bias == (1 << f.E - 1) - 1 and f.negative_zero)


def special(f, a, b):
    """The mask of words, in lanes of their own width, with an operand that is infinite or NaN."""
    return ~umax(a & (f.sign - 1), b & (f.sign - 1)).ult(f.inf)


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
    """The words of the sums or differences of binary64 numbers as `_signed` gives them.

    The exponents are the format's, so a shift rounds, below the normal range as well as in it.
    """
    bits, drop = (a - b if minus else a + b).bits(), 52 - f.F
    size = bits & MAGNITUDE
    word = (size + ((1 << drop - 1) - 1) + (size.lshr(drop) & 1)).lshr(drop)
    return umin(word, f.inf) | (bits.lshr(63 - f.E - f.F) & f.sign)


def _product(f, a, b):
    """The words, without signs, of products of binary64 numbers as `_size` gives them.

    They are exact where they matter. For a format of 8 and more exponent bits one factor is brought so
    far up that the product has 2**low times its value, in the normal range where the format's is; else
    both are brought to their values. A number as large as the least kept unit times 2**52 is added: the
    sum has the rounded significand in its last places, over what the unit alone would have there.
    """
    wide, drop = f.E >= 8, 52 - f.F
    low = 2 * f.bias - 1023 if wide else 0
    up = 2.0 ** (1023 if wide else 1023 - f.bias)
    product = (a * up) * (b if wide else b * up)
    least = 1024 - f.bias + low << 52
    exponent = umax(product.bits() & EXPONENT, least)
    total = product + (exponent + (drop << 52)).as_float()
    word = (total.bits() - (exponent + ((drop << 52) + (least >> drop)))) + exponent.lshr(drop)
    return umin(word, f.inf)


def operation(f, name, a, b):
    """The words, spread as the operands are, of an operation on lanes without a `special` word."""
    word = None
    for at in range(0, 64, f.bits):
        if name == "mul":
            found = _product(f, _size(f, a, at), _size(f, b, at))
        else:
            found = _sum(f, _signed(f, a, at), _signed(f, b, at), name == "sub")
        found = found << at if at else found
        word = found if word is None else word | found
    if name != "mul":
        return word
    return word | ((a ^ b) & sum(f.sign << at for at in range(0, 64, f.bits)))


OPERATIONS = ("add", "sub", "mul")
