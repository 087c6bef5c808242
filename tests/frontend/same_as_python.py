"""Compare a mapped function with plain Python, entry by entry: words, or the type of the exception."""
import math
import struct

import numpy as np

import tlgrad as tl

#: entries that bring out signs of zero, infinities and NaN
GRID = [-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 7.25, math.inf, math.nan]
ONE = [(g,) for g in GRID]
TWO = [(a, b) for a in GRID for b in GRID]
COUNTED = [(a, n) for a in GRID for n in range(6)]


def plain(f, xs):
    """What Python gives: the value, or the exception class."""
    try:
        return f(*xs)
    except Exception as error:      # noqa: BLE001
        return type(error)


def words(v):
    """The value as comparable words; int and float of equal value differ only in the sign of zero."""
    if isinstance(v, type):
        return v
    if isinstance(v, (tuple, list)):
        return tuple(map(words, v))
    v = float(v)
    return "nan" if v != v else struct.pack("d", v)


def _entries(out):
    if isinstance(out, (tuple, list)):
        return [type(out)(column) for column in zip(*map(_entries, out))]
    return list(np.asarray(out).tolist())


def mapped(m, inputs):
    """A mapped function on all inputs at once, where none of them raises."""
    return _entries(m(*[tl.tensor(list(column)) for column in zip(*inputs)]))


def differences(f, inputs):
    """(inputs, Python's answer, ours) for each entry that differs."""
    expected = [plain(f, xs) for xs in inputs]
    fine = [k for k, e in enumerate(expected) if not isinstance(e, type)]
    wrong, m = [], tl.map(f)
    if fine:
        found = mapped(m, [inputs[k] for k in fine])
        wrong += [(inputs[k], expected[k], y) for k, y in zip(fine, found) if words(expected[k]) != words(y)]
    for k, e in enumerate(expected):
        if isinstance(e, type):
            got = plain(m, [tl.tensor(v) for v in inputs[k]])
            if got is tl.errors.ScalarFunctionError:
                m(*[tl.tensor(v) for v in inputs[k]])
            if not (isinstance(got, type) and issubclass(got, e)):
                wrong.append((inputs[k], e, got))
    return wrong
