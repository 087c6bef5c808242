"""Keys and random words: the counter-based generator Threefry-2x32 with 20 rounds.

A key is a uint32 tensor (..., 2).  Words are a function of key and counter only: the same on every
device, in any batch, in any order of evaluation.  Source: Salmon, Moraes, Dror and Shaw, "Parallel
random numbers: as easy as 1, 2, 3", SC 2011.
"""
from __future__ import annotations

from math import prod

import numpy as np

from tlgrad.core import dtypes
from tlgrad.core.tensor import Tensor
from tlgrad.core.trace import Value
from tlgrad.errors import ArgumentError, DTypeError, ShapeError
from tlgrad.numpy.arrays import as_array, as_shape, constant
from tlgrad.numpy.shaping import reshape, stack
from tlgrad.ops import arithmetic as ar
from tlgrad.ops import layout
from tlgrad.ops import logic as lo
from tlgrad.ops.convert import bitcast, convert
from tlgrad.ops.shape import iota

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _rotated(x, n):
    return lo.or_(lo.shift_left(x, n), lo.shift_right(x, 32 - n))


def threefry2x32(k0, k1, c0, c1) -> tuple[Value, Value]:
    """Two random words of a key (k0, k1) and a counter (c0, c1), all uint32 and broadcast.

    >>> [hex(w.item()) for w in threefry2x32(*map(_word, (0, 0, 0, 0)))]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = (k0, k1, lo.xor(lo.xor(k0, k1), _word(_PARITY)))
    x, y = ar.add(c0, k0), ar.add(c1, k1)
    for block in range(5):
        for n in _ROTATIONS[block % 2]:
            x = ar.add(x, y)
            y = lo.xor(x, _rotated(y, n))
        x = ar.add(x, keys[(block + 1) % 3])
        y = ar.add(ar.add(y, keys[(block + 2) % 3]), _word(block + 1))
    return x, y


def _word(n: int) -> Tensor:
    return constant(np.uint32(n))


def _halves(n) -> tuple[Value, Value]:
    """Upper and lower 32 bits of 64-bit integers."""
    n = as_array(n, "a seed")
    if not dtypes.is_integer(n.dtype):
        raise DTypeError(f"random: a seed or number is an integer, got {n.aval}")
    wide = n if n.dtype.bits == 64 else convert(n, dtypes.int64)
    wide = bitcast(convert(wide, wide.dtype), dtypes.uint64)
    return convert(lo.shift_right(wide, 32), dtypes.uint32), convert(wide, dtypes.uint32)


def key(seed) -> Value:
    """The key of a seed, an integer of up to 64 bits (or an integer array: one key an entry).

    >>> key(7)
    tensor([0, 7], uint32, shape (2,), cpu)
    """
    if isinstance(seed, int) and not -2**63 <= seed < 2**64:
        raise ArgumentError(f"random.key: the seed {seed} does not fit 64 bits")
    return stack(_halves(seed), -1)


def check_key(k, name: str) -> Value:
    """A key argument; DTypeError says how to make one."""
    if not isinstance(k, (Value, np.ndarray)):
        raise DTypeError(f"random.{name}: the first argument is a key, got {type(k).__name__}; make one with "
                         "tl.random.key(seed)")
    k = as_array(k, name)
    if k.dtype is not dtypes.uint32 or k.shape != (2,):
        raise DTypeError(f"random.{name}: a key is uint32 of shape (2,), got {k.aval}; make one with "
                         "tl.random.key(seed), map over several with tl.vmap")
    return k


def _counters(shape):
    """Upper and lower words of the row-major number of each place."""
    n = prod(shape)
    if not shape:
        return _word(0), _word(0)
    flat = iota.bind(shape=(n,), axis=0, dtype=dtypes.int64)
    return [reshape(h, shape) for h in _halves(flat)]


def word_pair(k, shape) -> tuple[Value, Value]:
    """Two uint32 words for every place of `shape`."""
    words = threefry2x32(k[0], k[1], *_counters(shape))
    return tuple(w if w.shape == shape else layout.broadcast.bind(w, shape=shape, axes=()) for w in words)


def split(k, num=2) -> Value:
    """`num` new keys (an int or a shape): uint32 (num, 2).  Use each key once.

    >>> a, b = split(key(0))
    """
    shape = as_shape(num, "split")
    return stack(word_pair(check_key(k, "split"), shape), -1)


def fold_in(k, data) -> Value:
    """A new key of a key and a number: a step, a layer, a lane.

    >>> fold_in(key(0), 3).shape
    (2,)
    """
    k = check_key(k, "fold_in")
    data = as_array(data, "fold_in")
    if data.ndim:
        raise ShapeError(f"random.fold_in: data is one integer, got shape {data.shape}; map with tl.vmap")
    return stack(threefry2x32(k[0], k[1], *_halves(data)), -1)


def bits(k, shape=(), dtype=dtypes.uint32) -> Value:
    """Random words of an unsigned dtype: every word equally likely.

    >>> bits(key(0), (2,)).dtype
    uint32
    """
    k, shape, dtype = check_key(k, "bits"), as_shape(shape, "bits"), dtypes.as_dtype(dtype)
    if dtype.kind != "u":
        raise DTypeError(f"random.bits: an unsigned dtype is needed, got {dtype}")
    x, y = word_pair(k, shape)
    if dtype.bits == 64:
        return lo.or_(lo.shift_left(convert(x, dtypes.uint64), 32), convert(y, dtypes.uint64))
    return convert(lo.xor(x, y), dtype)


def unit_interval(word: Value, dtype) -> Value:
    """Random words as floats in [0, 1): the upper fraction bits of a number in [1, 2), less 1."""
    form = dtype.format
    storage = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits]
    word = convert(lo.shift_right(word, word.dtype.bits - form.F), storage)
    one = form.bias << form.F
    return ar.sub(bitcast(lo.or_(word, constant(np.asarray(one, storage.storage))), dtype), 1)


def open_interval(word: Value, dtype) -> Value:
    """Random words as floats in (0, 1): (word + 1/2) / 2**bits, rounded, at most 1 - eps/2."""
    half = ar.add(ar.mul(convert(word, dtypes.float64), 2.0**-word.dtype.bits), 2.0**-(word.dtype.bits + 1))
    return convert(lo.minimum(half, 1 - 2.0**-(dtype.format.F + 1)), dtype)


def lane_keys(k, shape) -> Value:
    """One key for every place of `shape`: (*shape, 2)."""
    return stack(word_pair(k, shape), -1)
