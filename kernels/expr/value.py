"""`Value`: one scalar or vector in a body, with Python's operators."""
from dataclasses import dataclass, field

WIDTH = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "b": 1}
INTEGER_OF = {"f64": "i64", "f32": "i32"}
FLOAT_OF = {"i64": "f64", "i32": "f32"}


@dataclass(frozen=True)
class Table:
    """A named constant array of binary64 numbers that bodies index; equal names, equal contents."""

    name: str
    numbers: tuple = field(compare=False, repr=False)

    def __len__(self):
        return len(self.numbers)

    @property
    def mask(self):
        """The bits of an index that count; None if the length is no power of two."""
        n = len(self.numbers)
        return None if n & (n - 1) else n - 1


def _binary(name, swapped=False):
    def method(self, other):
        other = self.like(other)
        return self.make(name, self.type, *((other, self) if swapped else (self, other)))
    return method


def _compare(name):
    return lambda self, other: self.make(name, "b", self, self.like(other))


class Value:
    """A number inside a body: `emitter` renders it, `handle` is the emitter's, `type` is ours.

    Arithmetic, bitwise and ordering operators give Values; equality is `eq` / `ne`, because Values
    are compared by identity in Python. `lshr` and `ashr` are the two right shifts.
    """

    __slots__ = ("emitter", "handle", "type")

    def __init__(self, emitter, handle, type):
        self.emitter, self.handle, self.type = emitter, handle, type

    def make(self, name, type, *values):
        return Value(self.emitter, self.emitter.op(name, type, *values), type)

    def like(self, number):
        """`number` as a Value of this one's type."""
        if isinstance(number, Value):
            return number
        return Value(self.emitter, self.emitter.const(number, self.type), self.type)

    def constant(self, number, type):
        return Value(self.emitter, self.emitter.const(number, type), type)

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", True)
    __and__, __rand__ = _binary("and"), _binary("and", True)
    __or__, __ror__ = _binary("or"), _binary("or", True)
    __xor__, __rxor__ = _binary("xor"), _binary("xor", True)
    __lshift__, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    __lt__, __le__, __gt__, __ge__ = map(_compare, ("lt", "le", "gt", "ge"))
    eq, ne, ult = map(_compare, ("eq", "ne", "ult"))

    def __neg__(self):
        return self.make("neg", self.type, self)

    def __invert__(self):
        return self.make("not", self.type, self)

    def bits(self):
        """The word of a float, as the integer of its width."""
        return self.make("bitcast", INTEGER_OF[self.type], self)

    def as_float(self):
        """The float whose word this integer is."""
        return self.make("bitcast", FLOAT_OF[self.type], self)

    def f64(self):
        return self.make("fpext" if self.type == "f32" else "sitofp", "f64", self)

    def f32(self):
        return self.make("fptrunc" if self.type == "f64" else "sitofp", "f32", self)

    def to_integer(self):
        """Truncated to the integer of the same width; the value must fit."""
        return self.make("fptosi", INTEGER_OF[self.type], self)

    def rint(self):
        """The nearest integer as a float, ties to even."""
        return self.make("rint", self.type, self)

    def abs(self):
        return (self.bits() & ((1 << WIDTH[self.type] - 1) - 1)).as_float()

    def sign(self):
        """The sign bit alone, as an integer word."""
        return self.bits() & (1 << WIDTH[self.type] - 1)

    def exponent(self):
        """2**52 times the signed integer in the upper 12 bits of an i64, as f64."""
        return self.make("exponent", "f64", self)

    def lookup(self, *tables):
        """``table[self]``, modulo the length if that is a power of two, else in range: f64 for an i64, f32
        for an i32.

        A Value, or a list of them for several tables of one length.
        """
        found = [Value(self.emitter, h, FLOAT_OF[self.type]) for h in self.emitter.lookup(tables, self)]
        return found if len(tables) > 1 else found[0]


def _first(values):
    return next(v for v in values if isinstance(v, Value))


def fma(a, b, c):
    """a * b + c with one rounding."""
    some = _first((a, b, c))
    return some.make("fma", some.type, some.like(a), some.like(b), some.like(c))


def sqrt(a):
    """The square root, correctly rounded."""
    return a.make("sqrt", a.type, a)


def select(mask, a, b):
    """`a` where `mask`, else `b`; two Python numbers become binary64."""
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = mask.constant(a, "f64")
    some = _first((a, b))
    return mask.make("select", some.type, mask, some.like(a), some.like(b))


def to_odd(y):
    """A binary64 value in binary32; where it does not fit, the neighbour whose word is odd.  Rounding that to
    at most 22 bits is rounding the value once (Boldo and Melquiond, "Emulation of FMA", 2008)."""
    near = y.f32()
    wide, word = near.f64(), near.bits()
    toward = select(wide.abs() > y.abs(), word.like(-1), word.like(1))
    inexact = wide.ne(y) & y.eq(y) & (word & 1).eq(0)
    return select(inexact, (word + toward).as_float(), near)


def minimum(a, bound):
    """`a` clamped from above by the number `bound`; NaN stays NaN."""
    return select(a > bound, bound, a)


def maximum(a, bound):
    """`a` clamped from below by the number `bound`; NaN stays NaN."""
    return select(a < bound, bound, a)


def copysign(magnitude, sign):
    """`magnitude` (non-negative) with the sign word `sign` of `Value.sign`."""
    return (magnitude.bits() | sign).as_float()


def rare(mask, slow, *values):
    """`values`, replaced by what ``slow()`` returns where `mask`: a branch almost never taken."""
    out = mask.emitter.rare(mask, slow, list(values))
    return out[0] if len(values) == 1 else out


def vote(mask, some, *values):
    """`values`, replaced by what ``some()`` returns where `mask`: a branch taken if some lane has the mask."""
    out = mask.emitter.vote(mask, some, list(values))
    return out[0] if len(values) == 1 else out


def horner(coefficients, x):
    """The polynomial with `coefficients` from low to high, by fma."""
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def horner_halves(coefficients, x, square):
    """`horner` over the even and the odd coefficients apart, `square` = x * x: half as long a chain of fmas."""
    even, odd = (horner(coefficients[first::2], square) for first in (0, 1))
    return fma(odd, x, even)
