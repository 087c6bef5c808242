"""What a body means: every operation is one NumPy operation, and `fma` is exact.

`fma` needs no wider hardware type. binary16 and binary32: the product is exact in binary64, and
the sum is rounded to odd there, which leaves one innocuous second rounding [1]. binary64: the
product is split by Veltkamp and Dekker into two words, and the three-word sum is rounded once by
the algorithm of Boldo and Melquiond [1]; operands near the ends of the exponent range are scaled
first.

[1] S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
using rounding to odd", IEEE Trans. Computers 57(4), 2008.
"""
import numpy as np

from .value import FLOAT_OF, Value

DTYPE = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "b": np.bool_}


def two_sum(a, b):
    """(s, e): s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def two_product(a, b):
    """(p, e): p = fl(a * b) and p + e = a * b exactly (Dekker), inside the exponent range."""
    p = a * b
    ah, bh = _high(a), _high(b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _high(a):
    t = a * 134217729.0
    return t - (t - a)


def sum_to_odd(a, b):
    """fl(a + b) rounded to odd: an inexact sum has its last bit set."""
    s, e = two_sum(a, b)
    step = np.where((e > 0) == (s > 0), 1, -1)
    word = np.asarray(s).view(np.int64)
    fix = (e != 0) & ((word & 1) == 0) & np.isfinite(s)
    return np.where(fix, word + step, word).view(np.float64)


def _head_and_odd(a, b, c):
    """(head, tail): a * b + c rounded to any width up to 53 bits equals head + tail rounded so."""
    p, e = two_product(a, b)
    u, v = two_sum(c, e)
    head, rest = two_sum(p, u)
    return head, sum_to_odd(rest, v)


def _fma64_scaled(a, b, c):
    """fma where exponents are extreme: significands are scaled to [1/2, 1), the result back."""
    ma, ea = np.frexp(a)
    mb, eb = np.frexp(b)
    shift = ea + eb
    mc, ec = np.frexp(c)
    distance = np.where(mc == 0.0, 0, ec - shift)
    shift = np.where(distance > 400, ec - 400, shift)
    head, tail = _head_and_odd(ma, mb, np.ldexp(mc, np.clip(distance, -400, 400)))
    normal = np.ldexp(head + tail, shift)
    return np.where(np.abs(normal) < 2.0 ** -1021, _round_subnormal(head, tail, shift), normal)


def _round_subnormal(head, tail, shift):
    """(head + tail) * 2**shift rounded once to a multiple of 2**-1074."""
    head, tail = two_sum(head, tail)
    scale = np.clip(shift + 1074, -2000, 1000)
    x, y = np.ldexp(head, scale), np.ldexp(tail, scale)
    n = np.rint(x)
    d = x - n
    n = n + np.where((d == 0.5) & (y > 0), 1.0, 0.0) - np.where((d == -0.5) & (y < 0), 1.0, 0.0)
    return np.copysign(np.ldexp(n, -1074), head)


def _fma64(a, b, c):
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)
    size = np.abs(a * b)
    safe = ((size > 2.0 ** -900) & (size < 2.0 ** 1000) & (np.abs(c) < 2.0 ** 1000)
            & (np.abs(a) < 2.0 ** 990) & (np.abs(b) < 2.0 ** 990)
            & ((np.abs(c) > 2.0 ** -900) | (c == 0.0)))
    head, tail = _head_and_odd(a, b, c)
    result = np.where(safe, head + tail, plain)
    odd = ~safe & np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
    if odd.any():
        result[odd] = _fma64_scaled(a[odd], b[odd], c[odd])
    return result


def fma(a, b, c):
    """``a * b + c`` rounded once, elementwise, for equal dtypes float16, float32 or float64.

    The operands broadcast against each other. NaN in, or ``inf * 0``, or ``inf - inf``, gives NaN.
    Raises `TypeError` if the dtypes differ or are not binary floats.

    >>> float(fma(np.float64(1 + 2**-52), np.float64(1 - 2**-52), np.float64(-1.0))) == -2.0**-104
    True
    """
    a, b, c = (np.asarray(v) for v in (a, b, c))
    if not a.dtype == b.dtype == c.dtype or a.dtype not in (np.float16, np.float32, np.float64):
        raise TypeError(f"fma: expected three float16, float32 or float64 arrays of one dtype, got "
                        f"{a.dtype}, {b.dtype} and {c.dtype}; convert them first")
    dtype, shape = a.dtype, np.broadcast_shapes(a.shape, b.shape, c.shape)
    with np.errstate(all="ignore"):
        wide = [np.broadcast_to(v, shape).astype(np.float64).ravel() for v in (a, b, c)]
        if dtype == np.float64:
            return _fma64(*wide).reshape(shape)
        return sum_to_odd(wide[0] * wide[1], wide[2]).astype(dtype).reshape(shape)


def _shift_right(a, n):
    return (a.view(np.uint64 if a.itemsize == 8 else np.uint32) >> _unsigned(n)).view(a.dtype)


def _unsigned(a):
    return a.view(np.uint64 if a.itemsize == 8 else np.uint32)


OPERATIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "sqrt": np.sqrt, "rint": np.rint, "fma": fma, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "shl": np.left_shift, "lshr": _shift_right,
    "ashr": np.right_shift, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "select": np.where,
    "ult": lambda a, b: _unsigned(a) < _unsigned(b)}


class Numpy:
    """The emitter whose handles are ndarrays; run it under ``np.errstate(all="ignore")``."""

    permutes = False

    def const(self, number, type):
        if type in ("i64", "i32"):
            bits = 64 if type == "i64" else 32
            number = (int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return np.asarray(number, DTYPE[type])

    def op(self, name, type, *values):
        handles = [v.handle for v in values]
        if name == "bitcast":
            return handles[0].view(DTYPE[type])
        if name == "exponent":
            return np.asarray((handles[0] & -(1 << 52)).astype(np.float64))
        if name == "zext":
            return np.asarray(_unsigned(handles[0]).astype(DTYPE[type]))
        if name in OPERATIONS:
            return np.asarray(OPERATIONS[name](*handles))
        return np.asarray(handles[0].astype(DTYPE[type]))

    def lookup(self, tables, index):
        mask = tables[0].mask
        i = index.handle if mask is None else index.handle & mask
        dtype = DTYPE[FLOAT_OF[index.type]]
        return [np.asarray(np.asarray(table.numbers, dtype)[i]) for table in tables]

    def rare(self, mask, slow, values):
        if not mask.handle.any():
            return values
        return [Value(self, np.asarray(np.where(mask.handle, new.handle, old.handle)), old.type)
                for new, old in zip(slow(), values, strict=True)]

    vote = rare
