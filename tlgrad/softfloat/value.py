"""``Float``: one number of a format as a Python scalar, with exact construction and printing."""
from __future__ import annotations

import operator
from fractions import Fraction

from tlgrad.kernels.later import Later
from tlgrad.softfloat import arith, compare, convert, text
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import FINITE, INFINITE, NAN, Binary

elementary = Later("tlgrad.softfloat.elementary")               # it takes mpmath


class Float:
    """An immutable number of a ``Binary`` format.

    ``Float(fmt, value)`` reads text, int, float, Fraction, Decimal, a NumPy number or another Float
    exactly and rounds once; ``Float.from_bits(fmt, word)`` takes a word. Operators round to nearest even, and
    take a Python number beside a Float exactly; two Floats must share a format. Raises TypeError
    for anything else.

    >>> from tlgrad.softfloat.format import binary128
    >>> x = 1 + Float(binary128, 2) ** -100
    >>> x * x == 1 + Float(binary128, 2) ** -99, f"{Float(binary128, '0.1'):.40f}"
    (True, '0.1000000000000000000000000000000000048148')
    """

    __slots__ = ("format", "bits")

    def __init__(self, fmt, value=0):
        object.__setattr__(self, "format", fmt)
        object.__setattr__(self, "bits", word_of(fmt, value))

    @classmethod
    def from_bits(cls, fmt: Binary, word: int):
        """The number of a word; ValueError outside ``0 <= word < 2**width``."""
        if not 0 <= word < 1 << fmt.width:
            raise ValueError(f"word {word:#x} has more than the {fmt.width} bits of {fmt!r}")
        self = object.__new__(cls)
        object.__setattr__(self, "format", fmt)
        object.__setattr__(self, "bits", int(word))
        return self

    def __setattr__(self, name, value):
        raise AttributeError("a Float is immutable")

    def __reduce__(self):
        return Float.from_bits, (self.format, self.bits)

    def __repr__(self):
        return f"{self.format!r}('{self}')"

    def __str__(self):
        return text.to_repr(self.format, self.bits)

    def __format__(self, spec):
        return text.format_word(self.format, self.bits, spec)

    def __hash__(self):
        if compare.is_finite(self.format, self.bits):
            return hash(self.to_fraction())
        return hash(float(self))

    # ---- reading

    def hex(self):
        """Exact hexadecimal text."""
        return text.to_hex(self.format, self.bits)

    def to_bytes(self):
        """The stored word, little-endian, as in C."""
        return self.bits.to_bytes(self.format.itemsize, "little")

    def to_fraction(self):
        """The exact rational value; ValueError for infinity and NaN."""
        return convert.to_fraction(self.format, self.bits)

    def as_integer_ratio(self):
        """The exact value as ``(numerator, denominator)``."""
        return self.to_fraction().as_integer_ratio()

    def astype(self, fmt):
        """The nearest number of another format."""
        return Float.from_bits(fmt, convert.convert(self.format, fmt, self.bits))

    def __float__(self):
        return convert.to_float(self.format, self.bits)

    def __int__(self):
        if self.classify() == "infinite":
            raise OverflowError(f"cannot convert {self!r} to an integer")
        return int(self.to_fraction())

    def __round__(self, digits=None):
        """The nearest int, ties to even; with `digits`, the number nearest to that decimal."""
        if digits is None:
            return int(self._with(arith.round_to_integral(self.format, self.bits, Environment())))
        digits = operator.index(digits)
        if self.classify() in ("nan", "infinite"):
            return self
        return self._with(convert.from_fraction(self.format, round(self.to_fraction(), digits)))

    def __bool__(self):
        return compare.is_nan(self.format, self.bits) or compare.key(self.format, self.bits) != 0

    def classify(self):
        """One of "nan", "infinite", "zero", "subnormal", "normal"."""
        return self.format.classify(self.bits)

    # ---- neighbours

    def ulp(self):
        """The value of the last place."""
        return self._with(compare.ulp(self.format, self.bits))

    def next_up(self):
        """The least greater number."""
        return self._with(compare.next_up(self.format, self.bits))

    def next_down(self):
        """The greatest smaller number."""
        return self._with(compare.next_down(self.format, self.bits))

    def nextafter(self, toward):
        """The neighbour in the direction of another number; this one if they are equal."""
        return self._with(compare.next_after(self.format, self.bits, word_of(self.format, toward)))

    def total_order(self, other):
        """Whether this word comes before the other, or is it: -nan, -inf, ..., -0, 0, ..., inf, nan
        (IEEE 754-2019, section 5.10)."""
        return compare.total_order(self.format, self.bits, word_of(self.format, other, exact_format=True))

    def same_bits(self, other):
        """Whether both are the same word of the same format."""
        return self.format is other.format and self.bits == other.bits

    def _with(self, word):
        return Float.from_bits(self.format, word)

    # ---- arithmetic

    def _binary(self, operation, other, swap=False):
        if not isinstance(other, (Float, int, float, Fraction)):
            return NotImplemented
        pair = (self.bits, word_of(self.format, other, exact_format=True))
        result = operation(self.format, *(reversed(pair) if swap else pair), Environment())
        return result if isinstance(result, bool) else self._with(result)

    def __add__(self, other):
        return self._binary(arith.add, other)

    def __radd__(self, other):
        return self._binary(arith.add, other, True)

    def __sub__(self, other):
        return self._binary(arith.sub, other)

    def __rsub__(self, other):
        return self._binary(arith.sub, other, True)

    def __mul__(self, other):
        return self._binary(arith.mul, other)

    def __rmul__(self, other):
        return self._binary(arith.mul, other, True)

    def __truediv__(self, other):
        return self._binary(arith.div, other)

    def __rtruediv__(self, other):
        return self._binary(arith.div, other, True)

    def __mod__(self, other):
        return self._binary(arith.mod, other)

    def __rmod__(self, other):
        return self._binary(arith.mod, other, True)

    def __pow__(self, exponent):
        """The power: of an integer worked out exactly, else `elementary`'s; rounded once."""
        if not isinstance(exponent, int):
            return self._binary(_power, exponent)
        if abs(exponent) > 1 << 20:
            raise ValueError(f"exponent {exponent}: exact powers stop at 2**20; use tl.pow on tensors")
        kind, sign, sig, _ = self.format.unpack(self.bits)
        if exponent == 0:
            return self._with(self.format.one)
        if kind != FINITE or sig == 0:
            return self._power_of_special(kind, sign and exponent & 1, exponent > 0)
        return self._with(convert.from_fraction(self.format, self.to_fraction() ** exponent))

    def _power_of_special(self, kind, sign, grows):
        if kind == NAN:
            return self
        large = (kind == INFINITE) == grows
        return self._with(self.format.infinity(sign) if large else self.format.zero(sign))

    def __rpow__(self, base):
        return self._binary(_power, base, True)

    def __pos__(self):
        return self

    def __neg__(self):
        return self._with(arith.neg(self.format, self.bits))

    def __abs__(self):
        return self._with(arith.absolute(self.format, self.bits))

    def sqrt(self):
        """The square root."""
        return self._with(arith.sqrt(self.format, self.bits, Environment()))

    def __eq__(self, other):
        return self._binary(compare.eq, other)

    def __lt__(self, other):
        return self._binary(compare.lt, other)

    def __le__(self, other):
        return self._binary(compare.le, other)

    def __gt__(self, other):
        return self._binary(compare.gt, other)

    def __ge__(self, other):
        return self._binary(compare.ge, other)


def word_of(fmt, value, env=None, exact_format=False):
    """The word nearest to a number or text of any kind.

    With ``exact_format`` a Float of another format raises TypeError instead of being rounded.
    """
    if isinstance(value, Float):
        if value.format is not fmt and exact_format:
            raise TypeError(f"{fmt!r} beside {value.format!r}: convert one explicitly, "
                            f"for example y.astype({fmt!r})")
        return convert.convert(value.format, fmt, value.bits, env)
    if isinstance(value, (str, bytes)):
        return text.parse(fmt, value, env)
    return convert.from_python(fmt, value, env)


def _power(fmt, base, exponent, env):
    return elementary.evaluate("pow", fmt, base, exponent, env=env)


def _number(fmt, value=0):
    """A `Float` of this format: text, int, float, Fraction, Decimal, NumPy number or Float, rounded once.

    >>> from tlgrad.softfloat.format import binary128
    >>> binary128("0.1").hex()
    '0x1.999999999999999999999999999ap-4'
    """
    return Float(fmt, value)


# a format is a constructor of its numbers; `format` itself lies below them
Binary.__call__ = _number
Binary.from_bits = lambda fmt, word: Float.from_bits(fmt, word)
