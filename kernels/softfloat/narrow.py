"""Vector bodies for formats of at most 24 fraction and 9 exponent bits, by way of binary64.

Words are spread to binary64, exactly; one binary64 operation; one rounding back to words. Why that is
the correctly rounded result: see `tlgrad.softfloat.small`.
"""
from dataclasses import dataclass
from math import frexp

from tlgrad.kernels.expr.value import select, sqrt
from tlgrad.kernels.softfloat.words import truth


@dataclass(frozen=True)
class Narrow:
    """The numbers of a format: words of `bits` bits; `inf` and `nan` are None where there is none."""

    E: int
    F: int
    bias: int
    bits: int
    inf: int | None
    nan: int | None
    max: int
    negative_zero: bool

    @property
    def sign(self):
        return 1 << (self.E + self.F)

    @property
    def least(self):
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


def decode(f, w):
    """The binary64 value of words in i64 lanes: a subnormal is a normal one less the hidden bit."""
    magnitude = w & (f.sign - 1)
    low = magnitude.ult(1 << f.F)
    bits = (magnitude << (52 - f.F)) + ((1023 - f.bias) << 52) + (truth(low, "i64") << 52)
    value = bits.as_float()
    value = select(low, value - f.least, value)
    if f.inf is not None:
        value = select(magnitude.eq(f.inf), float("inf"), value)
        value = select(magnitude > f.inf, float("nan"), value)
    elif f.nan is not None:
        value = select(w.eq(f.nan), float("nan"), value)
        if f.nan != f.sign:
            value = select(magnitude.eq(f.nan), float("nan"), value)
    return (value.bits() | ((w & f.sign) << (63 - f.E - f.F))).as_float()


def encode(f, value):
    """Round binary64 lanes to words, to nearest even."""
    bits, drop = value.bits(), 52 - f.F
    size = bits & ((1 << 63) - 1)
    normal = size - ((1023 - f.bias) << 52)
    normal = (normal + ((1 << drop - 1) - 1) + (normal.lshr(drop) & 1)).lshr(drop)
    grid = f.least * 2.0 ** drop                       # adding it rounds to the least unit
    tiny = (size.as_float() + grid).bits() - _bits_of(grid)
    word = select(size.as_float() < f.least, tiny, normal)
    over = word > f.max
    beyond = f.inf if f.inf is not None else f.nan if f.nan is not None else f.max
    word = select(over, beyond, word)
    sign = bits.lshr(63) << (f.E + f.F)
    if not f.negative_zero:
        sign = select(word.eq(0), 0, sign)
    bad = value.ne(value)
    if beyond == f.nan:
        bad = bad | over
    return select(bad, 0 if f.nan is None else f.nan, word | sign)


def _bits_of(power_of_two):
    return 1022 + frexp(power_of_two)[1] << 52


def fma(a, b, c):
    """a * b + c in binary64, rounded to odd: the product is exact, the error of the sum is known."""
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.bits()
    step = select((error > 0.0) ^ (total > 0.0), bits.constant(-1, "i64"), 1)
    fix = error.ne(0.0) & error.eq(error) & (bits & 1).eq(0)
    return select(fix, bits + step, bits).as_float()


OPERATIONS = {"add": (lambda a, b: a + b, 2), "sub": (lambda a, b: a - b, 2),
              "mul": (lambda a, b: a * b, 2), "div": (lambda a, b: a / b, 2), "sqrt": (sqrt, 1),
              "fma": (fma, 3)}


def body(f, name):
    """The body on words in i64 lanes."""
    operation, _ = OPERATIONS[name]
    return lambda *words: encode(f, operation(*(decode(f, w) for w in words)))
