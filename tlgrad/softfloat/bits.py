"""Operations that only look at words, in NumPy, for every format with a sign: compare, negate, choose."""
from __future__ import annotations

import numpy as np

from tlgrad.softfloat.format import Binary
from tlgrad.softfloat.storage import as_words, dtype_of, of_words


def _columns(array, fmt):
    """The words of an array, most significant first, as a list of equal-shaped integer arrays."""
    words = as_words(array)
    if fmt.itemsize <= 8:
        return [words]
    return [words[..., k] for k in reversed(range(words.shape[-1]))]


def _join(columns, fmt):
    if fmt.itemsize <= 8:
        return columns[0].view(dtype_of(fmt))
    return of_words(np.stack(list(reversed(columns)), axis=-1), fmt)


def _limbs(word, fmt):
    """A constant word as integers, most significant first, of the type of `_columns`."""
    if fmt.itemsize <= 8:
        return [np.dtype(f"<u{fmt.itemsize}").type(word)]
    count = fmt.itemsize // 8
    return [np.uint64(word >> 64 * k & (1 << 64) - 1) for k in reversed(range(count))]


def _split(array, fmt):
    """``(is negative, magnitude columns)``."""
    columns, sign = _columns(array, fmt), _limbs(fmt.sign_bit, fmt)
    if not fmt.signed:
        return np.zeros(array.shape, bool), columns
    at = next(k for k, s in enumerate(sign) if s)
    negative = (columns[at] & sign[at]) != 0
    return negative, [c & ~s for c, s in zip(columns, sign)]


def _less(a, b):
    """Lexicographic a < b over columns."""
    out = np.zeros(np.broadcast_shapes(a[0].shape, b[0].shape), bool)
    for x, y in zip(reversed(a), reversed(b)):
        out = (x < y) | ((x == y) & out)
    return out


def _equal(a, b):
    out = a[0] == b[0]
    for x, y in zip(a[1:], b[1:]):
        out = out & (x == y)
    return out


def is_nan(a, fmt: Binary):
    """NaN, of any payload."""
    negative, magnitude = _split(a, fmt)
    if fmt.inf is not None:
        return _less(_limbs_like(fmt.inf, magnitude, fmt), magnitude)
    if fmt.nan is None:
        return np.zeros(a.shape, bool)
    if fmt.specials == "fnuz":
        return negative & _equal(magnitude, _limbs_like(0, magnitude, fmt))
    return _equal(magnitude, _limbs_like(fmt.nan, magnitude, fmt))


def _limbs_like(word, columns, fmt):
    return [np.broadcast_to(limb, c.shape) for limb, c in zip(_limbs(word, fmt), columns)]


def is_finite(a, fmt):
    """Neither infinite nor NaN."""
    if fmt.inf is None:
        return ~is_nan(a, fmt)
    _, magnitude = _split(a, fmt)
    return _less(magnitude, _limbs_like(fmt.inf, magnitude, fmt))


def is_zero(a, fmt):
    """Zero of either sign; scales have none."""
    if not fmt.signed:
        return np.zeros(a.shape, bool)
    negative, magnitude = _split(a, fmt)
    zero = _equal(magnitude, _limbs_like(0, magnitude, fmt))
    return zero & ~negative if fmt.specials == "fnuz" else zero


def _numbers(a, b, fmt):
    return ~(is_nan(a, fmt) | is_nan(b, fmt))


def _below(a, b, fmt):
    (an, am), (bn, bm) = _split(a, fmt), _split(b, fmt)
    both = an & bn
    inside = np.where(both, _less(bm, am), _less(am, bm))
    zeros = is_zero(a, fmt) & is_zero(b, fmt)
    return np.where(an != bn, an, inside) & ~zeros


def eq(a, b, fmt):
    """a == b."""
    same = _equal(_columns(a, fmt), _columns(b, fmt))
    return (same | (is_zero(a, fmt) & is_zero(b, fmt))) & _numbers(a, b, fmt)


def lt(a, b, fmt):
    """a < b."""
    return _below(a, b, fmt) & _numbers(a, b, fmt)


def le(a, b, fmt):
    """a <= b."""
    return ~_below(b, a, fmt) & _numbers(a, b, fmt)


def _canonical(out, a, fmt):
    """`out` with the canonical NaN where `a` is NaN."""
    nan = is_nan(a, fmt)
    return fill(out, nan, fmt.invalid(), fmt) if np.any(nan) else out


def fill(array, mask, word, fmt):
    """The array with a word put where the mask holds."""
    return _join([np.where(mask, limb, c) for limb, c in
                  zip(_limbs(word, fmt), _columns(array, fmt))], fmt)


def with_sign(a, negative, fmt):
    """The magnitude of a, with the sign bit where the mask holds; NaN becomes canonical."""
    _, magnitude = _split(a, fmt)
    if not fmt.has_negative_zero:
        negative = negative & ~_equal(magnitude, _limbs_like(0, magnitude, fmt))
    signed = [np.where(negative, m | s, m) for m, s in zip(magnitude, _limbs(fmt.sign_bit, fmt))]
    return _canonical(_join(signed, fmt), a, fmt)


def neg(a, fmt):
    """-a."""
    return with_sign(a, ~_split(a, fmt)[0], fmt)


def absolute(a, fmt):
    """|a|."""
    return with_sign(a, np.zeros(a.shape, bool), fmt)


def copysign(a, b, fmt):
    """|a| with the sign of b."""
    a, b = np.broadcast_arrays(a, b)
    return with_sign(a, _split(b, fmt)[0] & ~is_nan(b, fmt), fmt)


def sign(a, fmt):
    """-1, +0 or 1; NaN is kept."""
    negative, _ = _split(a, fmt)
    zero = is_zero(a, fmt)
    unit = fill(a, ~zero, fmt.one, fmt)
    return with_sign(_where(is_nan(a, fmt), a, unit, fmt), negative & ~zero, fmt)


def _where(mask, a, b, fmt):
    return _join([np.where(mask, x, y) for x, y in zip(_columns(a, fmt), _columns(b, fmt))], fmt)


def maximum(x, y, fmt):
    """x if x > y or x is NaN, else y."""
    x, y = np.broadcast_arrays(x, y)
    return _where(lt(y, x, fmt) | is_nan(x, fmt), x, y, fmt)


def minimum(x, y, fmt):
    """y if y < x or y is NaN, else x."""
    x, y = np.broadcast_arrays(x, y)
    return _where(lt(y, x, fmt) | is_nan(y, fmt), y, x, fmt)


def order_key(array, fmt):
    """An array that NumPy sorts as the format orders its numbers, NaN last: ranks of the words."""
    negative, magnitude = _split(array, fmt)
    zero, nan = is_zero(array, fmt), is_nan(array, fmt)
    columns = [np.where(negative & ~zero, ~m, m) for m in magnitude]
    group = np.where(nan, 2, np.where(negative & ~zero, 0, 1)).ravel()
    keys = [c.ravel() for c in reversed(columns)] + [group]
    keys[:-1] = [np.where(zero.ravel() | nan.ravel(), 0, k) for k in keys[:-1]]
    order = np.lexsort(keys)
    stacked = np.stack([k.astype(np.uint64) for k in keys])[:, order]
    step = np.ones(array.size, bool)
    step[1:] = np.any(stacked[:, 1:] != stacked[:, :-1], axis=0)
    ranks = np.empty(array.size, np.float64)
    ranks[order] = np.cumsum(step)
    return np.where(nan, np.nan, ranks.reshape(array.shape))
