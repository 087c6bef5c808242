"""The compiled tier: which kernel computes what, compiled when an array is worth it.

A kernel is a text for one operation on one layout; `Library` compiles it once. Until `WARM` elements
of an operation have been seen, the pure-Python reference is quicker than a compilation; the words are
the same.
"""
from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from tlgrad.kernels.later import Later
from tlgrad.softfloat import small
from tlgrad.softfloat.format import Binary, binary64, binary128
from tlgrad.softfloat.storage import dtype_of

carried, catalogue, chains, narrow, products = (Later("tlgrad.kernels.softfloat.carried"),
                                                Later("tlgrad.kernels.softfloat.catalogue"),
                                                Later("tlgrad.kernels.softfloat.chains"),
                                                Later("tlgrad.kernels.softfloat.narrow"),
                                                Later("tlgrad.kernels.softfloat.products"))
WARM = 4096
#: a chain is compiled for one program: it has to see this many times as many elements
CHAIN = 8
#: steps of a contraction from which it pays to look for the exponents of its operands
WITHIN = 16384
#: bytes of a cache line: a vector that crosses two is loaded twice
LINE = 64
WIDEST = 1024
_seen: Counter = Counter()


def covers(fmt: Binary) -> bool:
    """Whether kernels exist for the format."""
    return fmt.specials == "ieee" and fmt.width <= WIDEST


@lru_cache(maxsize=None)
def layout(fmt: Binary) -> catalogue.Layout:
    """The numbers of a format that kernels need."""
    return catalogue.Layout(fmt.E, fmt.F, fmt.bias, 8 * fmt.itemsize)


def worth(key, size) -> bool:
    """Whether to compile: true once an operation has seen `WARM` elements."""
    _seen[key] += size
    return _seen[key] >= WARM


def _contiguous(arrays):
    return [np.ascontiguousarray(a) for a in arrays]


def _aligned(array, copy=False):
    """The array, row-major and on a cache line; with `copy`, always a new one."""
    if not copy and array.flags.c_contiguous and array.ctypes.data % LINE == 0:
        return array
    raw = np.empty(array.nbytes + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    out = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def _run(kernel, size, arrays, out):
    kernel(size, *[a.ctypes.data for a in arrays], out.ctypes.data)
    return out


def arithmetic(name, fmt, arrays, shape):
    """An operation of `catalogue.ARITHMETIC` on arrays of equal shape; None where none is compiled."""
    if not covers(fmt) or not worth((name, fmt), arrays[0].size):
        return None
    kernel = catalogue.arithmetic(name, layout(fmt))
    return _run(kernel, arrays[0].size, _contiguous(arrays), np.empty(shape, dtype_of(fmt)))


@lru_cache(maxsize=None)
def narrow_layout(fmt: Binary) -> catalogue.Narrow:
    """The numbers of a small format that kernels need."""
    return catalogue.Narrow(fmt.E, fmt.F, fmt.bias, 8 * fmt.itemsize, fmt.inf, fmt.nan, fmt.max,
                  fmt.has_negative_zero)


def chained(fmt: Binary) -> bool:
    """Whether chains may have the format: all that kernels compute, and small ones that hold 1."""
    if not small.fits(fmt):
        return covers(fmt) and fmt is not binary64
    return fmt.signed and fmt.emin <= 0 <= fmt.emax and narrow.within(narrow_layout(fmt), narrow.BINARY64)


class Chain:
    """A chain of operations (see `chained.Chained`), compiled when it has seen entries enough."""

    def __init__(self, kinds, steps, uniform, outs):
        every = (*kinds, *(kind for _, kind, *_ in steps))
        self.formats = {*every} - {chains.MASK}
        self.small = any(map(small.fits, self.formats))
        self.plan = chains.Chain(tuple(map(self._kind, kinds)), tuple(
            (name, self._kind(kind), *operands) for name, kind, *operands in steps), uniform, outs)
        self.dtypes = [np.dtype(bool) if every[k] == chains.MASK else dtype_of(every[k]) for k in outs]
        self.seen, self.kernel, self.flagged = 0, None, False

    def _kind(self, fmt):
        """What stands for a format in the kernel's plan."""
        if fmt == chains.MASK:
            return fmt
        if self.small:
            return narrow.BINARY64 if fmt is binary64 else narrow_layout(fmt)
        return layout(fmt)

    def run(self, shape, count, arrays, new=np.empty, call=None):
        """``(the results, which entries are undecided)`` on row-major arrays of this shape, and of one entry where
        they are uniform; None where it is not compiled. The second is None where all are decided.

        `new` makes arrays of a shape and dtype; `call` runs a kernel, see `_call`.
        """
        if self.kernel is None:
            self.seen += count
            if self.seen < CHAIN * WARM:
                return None
            self.kernel, self.flagged = (catalogue.small_chain if self.small else catalogue.chain)(self.plan)
        found = [new(shape, dtype) for dtype in self.dtypes]
        flags = [new(shape, _BYTE)] if self.flagged else []
        (call or _call)(self.kernel, count, [*arrays, *found, *flags])
        return found, flags[0] if flags and flags[0].any() else None


_BYTE = np.dtype(np.uint8)


def _call(kernel, count, arrays):
    """Run a kernel on `count` entries."""
    kernel(count, *[a.ctypes.data for a in arrays])


def small_operation(name, fmt, arrays, shape):
    """An operation on a small format by way of binary64; None where none is compiled."""
    if name not in narrow.OPERATIONS or not fmt.signed or not worth(
            (name, fmt), arrays[0].size // 16):
        return None
    kernel = catalogue.small(name, narrow_layout(fmt))
    return _run(kernel, arrays[0].size, _contiguous(arrays), np.empty(shape, dtype_of(fmt)))


def elementary(name, fmt, arrays):
    """An elementary function of binary128 or a small format: ``(words, where they are undecided)``, or None."""
    first = arrays[0]
    if small.fits(fmt):
        return _small_function(name, fmt, arrays) if name in carried.FUNCTIONS and chained(fmt) else None
    if fmt is not binary128 or name not in catalogue.FUNCTIONS or not worth((name, fmt), first.size):
        return None
    kernel = catalogue.function(name)
    out, flags = np.empty(first.shape, first.dtype), np.empty(first.shape, np.uint8)
    inputs = _contiguous(arrays)
    kernel(first.size, *[a.ctypes.data for a in inputs], out.ctypes.data, flags.ctypes.data)
    return out, flags


@lru_cache(maxsize=None)
def _one_step(name, fmt, arity):
    return Chain((fmt,) * arity, ((name, fmt, *range(arity)),), (False,) * arity, (arity,))


def _small_function(name, fmt, arrays):
    """A chain of one step."""
    first = arrays[0]
    found = _one_step(name, fmt, len(arrays)).run(first.shape, first.size, _contiguous(arrays))
    if found is None:
        return None
    (out,), flags = found
    return out, np.zeros(first.shape, np.uint8) if flags is None else flags


def convert(array, source, target):
    """Words of one format, or 64-bit integers, as another; None where none is compiled.

    `source` and `target` are formats, or "i64" and "u64".
    """
    formats = [f for f in (source, target) if isinstance(f, Binary)]
    if not all(map(covers, formats)) or not worth((source, target), array.size):
        return None
    kinds = [layout(f) if isinstance(f, Binary) else f for f in (source, target)]
    dtype = dtype_of(target) if isinstance(target, Binary) else np.dtype(target.replace("64", "8"))
    kernel = catalogue.conversion(*kinds)
    return _run(kernel, array.size, _contiguous([array]), np.empty(array.shape, dtype))


def left_to_right(terms, start, fmt):
    """``((start + t0) + t1) + ...`` along axis 0."""
    if small.fits(fmt):
        return _small_fold("sum", terms, terms, start, fmt, terms.size)
    if not covers(fmt) or not worth(("sum", fmt), terms.size):
        return None
    packed, out = _aligned(terms), _aligned(start, copy=True)
    kernel = catalogue.fold(layout(fmt))
    kernel(terms.shape[0], start.size, packed.ctypes.data, out.ctypes.data)
    return out


def _small_fold(kind, a, b, start, fmt, steps):
    """A sum or contraction of a small format on binary64 numbers."""
    if not chained(fmt) or not worth((kind, fmt), steps // 4):
        return None
    a, b, out = (_converted(x, fmt, binary64) for x in (a, b, start))
    rows, columns = (a.shape[1], b.shape[1]) if kind != "sum" else (1, start.size)
    catalogue.small_fold(narrow_layout(fmt), kind)(
        b.shape[0], rows, columns, a.ctypes.data, b.ctypes.data, out.ctypes.data)
    return _converted(out, binary64, fmt)


def small_conversion(x, source, target):
    """Words of a small format or binary64 as those of another; None where none is compiled."""
    formats = [f for f in (source, target) if f is not binary64]
    if not all(small.fits(f) and chained(f) for f in formats) or not worth((source, target), x.size // 16):
        return None
    return _converted(x, source, target) if x.size else None


def _converted(x, source, target):
    """A new array in another format: small formats and binary64."""
    step = _conversion(source, target)
    return step.run(x.shape, x.size, _contiguous([x]))[0][0]


@lru_cache(maxsize=None)
def _conversion(source, target):
    found = Chain((source,), (("convert", target, 0),), (False,), (1,))
    found.seen = CHAIN * WARM                                    # it is compiled at once
    return found


def contract(a, b, start, fmt, fused):
    """Ordered sums over axis 0 of products of ``a[k, i]`` and ``b[k, j]``, from ``start[i, j]``."""
    if small.fits(fmt):
        return _small_fold("fused" if fused else "ordered", a, b, start, fmt, a.shape[0] * start.size)
    if not covers(fmt) or not worth(("dot", fmt), a.shape[0] * start.size):
        return None
    a, b = map(_aligned, (a, b))
    if (fmt is binary128 and not fused and a.shape[0] * start.size >= WITHIN and catalogue.has_products()
            and products.within(*_extremes(a, b, np.ascontiguousarray(start)))):
        return _contract_within(a, b, start)
    out = _aligned(start, copy=True)
    kernel = catalogue.contraction(layout(fmt), fused)
    kernel(a.shape[0], a.shape[1], b.shape[1], a.ctypes.data, b.ctypes.data, out.ctypes.data)
    return out


def _extremes(*arrays):
    """What `products.within` takes, of three arrays."""
    found = np.empty((3, 3), np.int64)
    catalogue.extremes()(*[x.size for x in arrays], *[x.ctypes.data for x in (*arrays, found)])
    return found.tolist()


def _contract_within(a, b, start):
    """`contract` of numbers that are `products.within`, a and b exchanged where that leaves fewer lanes empty."""
    (terms, rows), columns = a.shape, b.shape[1]
    if rows * -(columns // -products.LANES) > columns * -(rows // -products.LANES):
        return _contract_within(b, a, start.T).T
    out, panel = _aligned(start, copy=True), np.empty(terms * products.ROWS * products.WORDS, np.uint64)
    catalogue.contraction_within()(terms, rows, columns, *(x.ctypes.data for x in (a, b, out, panel)))
    return out
