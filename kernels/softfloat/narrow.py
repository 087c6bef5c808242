"""Vector bodies for formats of at most 24 fraction and 9 exponent bits, by way of binary64 or binary32.

Words are spread to hardware numbers, exactly; one operation of theirs; one rounding back to words. Why
that is the correctly rounded result: see `tlgrad.softfloat.small`, and `single` for binary32, which puts
twice as many numbers in a vector.
"""
from dataclasses import dataclass
from math import frexp

from tlgrad.kernels.expr.value import rare, select, sqrt
from tlgrad.kernels.softfloat import spread
from tlgrad.kernels.softfloat.words import regrouped, resize, umax, umin


@dataclass(frozen=True)
class Carrier:
    """The hardware format that stands in: its words are integers of `type`."""

    type: str
    width: int
    F: int
    bias: int

    @property
    def inf(self):
        return (2 * self.bias + 1) << self.F

    def word(self, power_of_two):
        """The word of a power of two in the normal range."""
        return self.bias - 1 + frexp(power_of_two)[1] << self.F


BINARY64, BINARY32 = Carrier("i64", 64, 52, 1023), Carrier("i32", 32, 23, 127)


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

    @property
    def top(self):
        """The power of two at or below the largest number."""
        return 2.0 ** ((self.max >> self.F) - self.bias)

    @property
    def largest(self):
        return self.top * (1.0 + (self.max & ((1 << self.F) - 1)) / (1 << self.F))

    def like(self, c: Carrier):
        """Whether the carrier's words are this format's with more fraction bits, subnormals included."""
        return self.inf is not None and 2 * self.bias == (1 << self.E) - 2 and self.bias == c.bias


def single(f, name):
    """Whether an operation may go by way of binary32.

    Its 24 bits are at least twice the precision plus 2. Sums are exact below its normal range; products
    must be, and quotients must not come near half of the least number there, or a result could be
    rounded twice. Where that number is at least 2**-74, neither happens. In bfloat16, whose range is that
    of binary32, 16 bits of a product from 2**-134 on fit above 2**-149, and a quotient of 8-bit numbers
    that is not half a unit stays 2**-150 away from it; with more bits, as in tf32, such results are
    `guarded`. fma needs the product of any two numbers.
    """
    if f.F > 10 or (f.max >> f.F) - f.bias > 127:
        return False
    return name != "fma" if f.like(BINARY32) else 2 * (f.bias + f.F - 1) <= 149


def within(f, c):
    """Whether `rounded` may hold the format's numbers in a carrier: what it adds must be a normal number."""
    return f.like(c) or (f.bias < c.bias and (f.max >> f.F) - f.bias + 1 + c.F - f.F < c.bias)


def guarded(f, name):
    """Whether binary32 may have rounded a result below its normal range before the format does."""
    return f.like(BINARY32) and f.F > 7 and name in ("mul", "div")


def carrier(f, name):
    """What stands in for the format in an operation."""
    return BINARY32 if single(f, name) else BINARY64


def decode(f, w, c):
    """The hardware number of each word, in lanes of the carrier's width."""
    if f.like(c):
        return (w << (c.width - 1 - f.E - f.F)).as_float()
    magnitude = w & (f.sign - 1)
    bits = (magnitude << (c.F - f.F)) + ((c.bias - f.bias) << c.F)
    if f.inf is not None:
        end = c.inf - (f.inf << (c.F - f.F)) - ((c.bias - f.bias) << c.F)
        bits = select(magnitude.ult(f.inf), bits, bits + end)
    elif f.nan is not None and f.nan != f.sign:
        bits = select(magnitude.eq(f.nan), c.inf | 1, bits)
    low = magnitude.ult(1 << f.F)                      # subnormal: a normal one less the hidden bit
    value = select(low, bits + (1 << c.F), bits).as_float()
    value = select(low, value - f.least, value)
    if f.nan == f.sign:
        value = select(w.eq(f.nan), float("nan"), value)
    return (value.bits() | ((w & f.sign) << (c.width - 1 - f.E - f.F))).as_float()


def encode(f, value, c):
    """Round hardware numbers to words, to nearest even."""
    bits, drop = value.bits(), c.F - f.F
    size = bits & ((1 << c.width - 1) - 1)
    bottom = 0 if f.like(c) else (c.bias - f.bias) << c.F
    word = (size + ((1 << drop - 1) - 1 - bottom) + (size.lshr(drop) & 1)).lshr(drop)
    if not f.like(c):
        grid = f.least * 2.0 ** drop                   # adding it rounds to the least unit
        tiny = (size.as_float() + grid).bits() - c.word(grid)
        word = select(size.ult(c.word(f.least)), tiny, word)
    over, bad = word.constant(f.max, c.type).ult(word), None
    if f.inf is not None:
        word, bad = select(over, f.inf, word), value.ne(value)
    elif f.nan is not None:
        bad = over                                     # NaN and infinity too: their words are the largest
    else:
        word, bad = select(over, f.max, word), value.ne(value)
    sign = bits.lshr(c.width - 1 - f.E - f.F) & f.sign
    if not f.negative_zero:
        sign = select(word.eq(0), 0, sign)
    return select(bad, 0 if f.nan is None else f.nan, word | sign)


def rounded(f, value, c):
    """Hardware numbers rounded to those of the format: `decode` of `encode`, without the words.

    A number whose last place is the least kept unit is added, and taken away again; its exponent stops
    below at that of the least normal number and above where all results are too large.
    """
    bits, drop = value.bits(), c.F - f.F
    size, sign = bits & ((1 << c.width - 1) - 1), bits & (1 << c.width - 1)
    if f.like(c):
        kept = ((size + ((1 << drop - 1) - 1) + (size.lshr(drop) & 1)) & -(1 << drop)).as_float()
        kept = select(value.ne(value), value, kept)               # or its bits could round to those of infinity
    else:
        exponent = umax(size & c.inf, c.word(f.least))
        unit = umin(exponent, c.word(2.0 * f.top)) + (drop << c.F)
        kept = (size.as_float() + unit.as_float()) - unit.as_float()
        beyond = float("inf") if f.inf is not None else f.largest if f.nan is None else float("nan")
        kept = select(kept > f.largest, beyond, kept)
    kept = (kept.bits() | sign).as_float()
    if f.inf is None and f.nan is None:
        return select(value.ne(value), 0.0, kept)
    return kept if f.negative_zero else kept + 0.0


def _integral(round):
    """A rounding to integers by the nearest one, which keeps the sign of zero."""
    def run(x):
        return (round(x, x.rint()).abs().bits() | x.sign()).as_float()
    return run


def _trunc(x, near):
    return select(near.abs() > x.abs(), near.abs() - 1.0, near.abs())


def fma(a, b, c):
    """a * b + c, rounded to odd: the product is exact, the error of the sum is known."""
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.bits()
    step = select((error > 0.0) ^ (total > 0.0), bits.constant(-1, bits.type), 1)
    fix = error.ne(0.0) & error.eq(error) & (bits & 1).eq(0)
    return select(fix, bits + step, bits).as_float()


OPERATIONS = {"add": (lambda a, b: a + b, 2), "sub": (lambda a, b: a - b, 2),
              "mul": (lambda a, b: a * b, 2), "div": (lambda a, b: a / b, 2), "sqrt": (sqrt, 1),
              "fma": (fma, 3), "round": (_integral(lambda x, near: near), 1),
              "floor": (_integral(lambda x, near: select(near > x, near - 1.0, near)), 1),
              "ceil": (_integral(lambda x, near: select(near < x, near + 1.0, near)), 1),
              "trunc": (_integral(_trunc), 1)}


def _through(f, name, c):
    operation, _ = OPERATIONS[name]
    return lambda *words: operation(*(decode(f, w, c) for w in words))


def body(f, name):
    """``(the body on words in integer lanes, the type of the lanes)``."""
    c = carrier(f, name)
    quick, exact = _through(f, name, c), _through(f, name, BINARY64)
    spreads = spread.covers(f, name)
    type = f"i{f.bits}" if spreads else c.type

    def again(*words):
        return [resize(encode(f, exact(*(resize(w, "i64") for w in words)), BINARY64), type)]

    def run(*words):
        emitter = words[0].emitter
        if spreads and emitter.lanes * f.bits % 64 == 0:
            wide = emitter.beside(emitter.lanes * f.bits // 64)
            found = spread.operation(f, name, *(regrouped(w, "i64", wide) for w in words))
            found, mask = regrouped(found, type, emitter), spread.special(f, name, *words)
            return found if mask is None else rare(mask, lambda: again(*words), found)
        if spreads:
            return again(*words)[0]
        value = quick(*words)
        word = encode(f, value, c)
        if not guarded(f, name):
            return word
        size = value.bits() & (c.inf | (1 << c.F) - 1)
        return rare(size.ult(1 << c.F) & size.ne(0), lambda: again(*words), word)
    return run, type
