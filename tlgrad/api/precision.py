"""`compare_precision`: one function in two formats, and what differs."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from tlgrad.api.run import run
from tlgrad.core import tree
from tlgrad.core.tensor import Tensor
from tlgrad.softfloat import array as softfloat
from tlgrad.softfloat import convert as exact


class Difference(NamedTuple):
    """One result in two formats: tensors, and the largest absolute and relative difference.

    Differences are taken exactly and given as floats; an entry that is not finite in one of the
    formats counts as infinite unless it is the same in both.
    """

    value: Tensor
    reference: Tensor
    absolute: float
    relative: float

    def __str__(self):
        return (f"{self.value.dtype} against {self.reference.dtype}: absolute {self.absolute:.3g}, "
                f"relative {self.relative:.3g}")


def compare_precision(f: Callable, dtype: Any) -> Callable:
    """A function that runs `f` as it is and with every float in `dtype`, and reports differences.

    The result is a `Difference`, or a tree of them for a tree of results. Raises DTypeError when
    `dtype` is no float format.

    >>> f = lambda x: (1 - tl.cos(x)) / (x * x)
    >>> found = compare_precision(f, tl.binary128)(tl.tensor(1e-8))
    >>> print(found)
    float64 against binary128: absolute 0.5, relative 1
    """
    plain, other = run(f), run(f, dtype=dtype)

    def compared(*args, **kwargs):
        mine, structure = tree.flatten(plain(*args, **kwargs))
        theirs, _ = tree.flatten(other(*args, **kwargs))
        return tree.unflatten(structure, [_difference(a, b) for a, b in zip(mine, theirs)])
    return compared


def _difference(value, reference):
    absolute = relative = 0.0
    for a, b in zip(_numbers(value), _numbers(reference)):
        if a == b:
            continue
        if not isinstance(a, str) and not isinstance(b, str):
            absolute = max(absolute, float(abs(a - b)))
            relative = max(relative, float(abs(a - b) / abs(b)) if b else np.inf)
        else:
            absolute = relative = np.inf
    return Difference(value, reference, absolute, relative)


def _numbers(t):
    """The entries as exact fractions; infinities and NaN as text."""
    fmt = t.dtype.format
    if fmt is None:
        return [complex(x) for x in np.ravel(t.data).tolist()]
    return [exact.to_fraction(fmt, x.bits) if x.classify() in _FINITE else str(x)
            for x in softfloat.to_floats(t.data).ravel()]


_FINITE = ("zero", "subnormal", "normal")
