"""Comparisons, choices and signs, written once over what three kinds of values can tell about themselves.

`Scalar` are words of a layout, `Packed` pairs of binary128 lanes, `Carried` the hardware numbers that
stand in for a small format. The meanings are those of `tlgrad.softfloat.bits`: comparisons with NaN are
false but for `ne`, zeros are equal, and operations on the sign give the canonical NaN.
"""
from tlgrad.kernels.softfloat import quad
from tlgrad.kernels.softfloat.words import select, truth


class Scalar:
    """Words of a layout as integers."""

    def __init__(self, layout):
        self.f = layout

    def nan(self, x):
        return x.constant(self.f.inf, self.f.type).ult(x & (self.f.sign - 1))

    def finite(self, x):
        return (x & (self.f.sign - 1)).ult(self.f.inf)

    def zero(self, x):
        return (x & (self.f.sign - 1)).eq(0)

    def negative(self, x):
        return (x & self.f.sign).ne(0)

    def _key(self, x):
        """An integer that orders the numbers."""
        size = x & (self.f.sign - 1)
        return select(self.negative(x), -size, size)

    def equal(self, a, b):
        return self._key(a).eq(self._key(b))

    def less(self, a, b):
        return self._key(a) < self._key(b)

    def choose(self, mask, a, b):
        return select(mask, a, b)

    def canonical(self, x):
        return select(self.nan(x), self.f.nan, x)

    def one(self, like):
        return like.constant(self.f.bias << self.f.F, self.f.type)

    def signed(self, x, mask):
        """The size of x, below zero where the mask holds."""
        return (x & (self.f.sign - 1)) | select(mask, x.constant(self.f.sign, self.f.type), 0)


class Packed:
    """Pairs of a low and a high 64-bit lane of binary128."""

    def nan(self, x):
        low, high = x
        size = high & quad.MAGNITUDE
        return ~size.ult(quad.INF) & (size.ne(quad.INF) | low.ne(0))

    def finite(self, x):
        return (x[1] & quad.MAGNITUDE).ult(quad.INF)

    def zero(self, x):
        return (x[0] | (x[1] & quad.MAGNITUDE)).eq(0)

    def negative(self, x):
        return x[1] < 0

    def _key(self, x):
        """Two words, the second signed, that order the numbers: the number's size, or its complement."""
        low, high = x
        size, below = high & quad.MAGNITUDE, high < 0
        return select(below, -low, low), select(below, truth(low.eq(0), "i64") + ~size, size)

    def equal(self, a, b):
        (al, ah), (bl, bh) = self._key(a), self._key(b)
        return al.eq(bl) & ah.eq(bh)

    def less(self, a, b):
        (al, ah), (bl, bh) = self._key(a), self._key(b)
        return (ah < bh) | (ah.eq(bh) & al.ult(bl))

    def choose(self, mask, a, b):
        return tuple(select(mask, x, y) for x, y in zip(a, b))

    def canonical(self, x):
        bad = self.nan(x)
        return select(bad, 0, x[0]), select(bad, quad.NAN, x[1])

    def one(self, like):
        return like[0].like(0), like[0].like(0x3fff << 48)

    def signed(self, x, mask):
        low, high = x
        return low, (high & quad.MAGNITUDE) | select(mask, high.like(quad.SIGN), 0)


class Carried:
    """Hardware numbers in place of the words of a small format."""

    def __init__(self, narrow):
        self.f = narrow

    def nan(self, x):
        return x.ne(x)

    def finite(self, x):
        return x.abs() < float("inf")

    def zero(self, x):
        return x.eq(0.0)

    def negative(self, x):
        return x.sign().ne(0)

    def equal(self, a, b):
        return a.eq(b)

    def less(self, a, b):
        return a < b

    def choose(self, mask, a, b):
        return select(mask, a, b)

    def canonical(self, x):
        return x                                       # words of NaN are made when they are stored

    def one(self, like):
        return like.like(1.0)

    def signed(self, x, mask):
        size = x.abs()
        changed = select(mask, -size, size)
        return changed if self.f.negative_zero else changed + 0.0


def _nowhere(v, x):
    """The empty mask."""
    below = v.negative(x)
    return below ^ below


def _numbers(v, a, b):
    return ~(v.nan(a) | v.nan(b))


def _sign(v, x):
    unit = v.choose(v.zero(x) | v.nan(x), x, v.one(x))
    return v.canonical(v.signed(unit, v.negative(x) & ~v.zero(x)))


def _equal(v, a, b):
    return v.equal(a, b) & _numbers(v, a, b)


def _less(v, a, b):
    return v.less(a, b) & _numbers(v, a, b)


def _not_above(v, a, b):
    return ~v.less(b, a) & _numbers(v, a, b)


#: operation -> (body of a kind of values and operands, operands); what gives a mask
PREDICATES = {
    "eq": (_equal, 2), "ne": (lambda v, a, b: ~_equal(v, a, b), 2), "lt": (_less, 2), "le": (_not_above, 2),
    "gt": (lambda v, a, b: _less(v, b, a), 2), "ge": (lambda v, a, b: _not_above(v, b, a), 2),
    "is_nan": (lambda v, x: v.nan(x), 1), "is_finite": (lambda v, x: v.finite(x), 1),
}
#: ... and what gives a number
CHOICES = {
    "max": (lambda v, x, y: v.choose(_less(v, y, x) | v.nan(x), x, y), 2),
    "min": (lambda v, x, y: v.choose(_less(v, y, x) | v.nan(y), y, x), 2),
    "select": (lambda v, mask, x, y: v.choose(mask, x, y), 3),
    "neg": (lambda v, x: v.canonical(v.signed(x, ~v.negative(x))), 1),
    "abs": (lambda v, x: v.canonical(v.signed(x, _nowhere(v, x))), 1),
    "sign": (_sign, 1),
    "copysign": (lambda v, x, y: v.canonical(v.signed(x, v.negative(y) & ~v.nan(y))), 2),
}
