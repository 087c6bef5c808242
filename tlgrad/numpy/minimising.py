"""`argmin` of an array, as NumPy has it, or of a function."""
from __future__ import annotations

from tlgrad.control import minimise
from tlgrad.core.trace import Value
from tlgrad.numpy import reductions


def argmin(x, *args, **options):
    """Where an array or a function is least.

    ``argmin(x, axis=None, *, keepdims=False)``: int64 index of the first least entry.
    ``argmin(f, start, *args, lower=None, upper=None, ...)``: the point where f is least, with
    implicit derivatives; see `control.minimise.argmin`.

    >>> int(argmin(tl.tensor([3.0, 1.0, 2.0]))), float(argmin(lambda x: (x - 3) ** 2, 0.0))
    (1, 3.0)
    """
    if callable(x) and not isinstance(x, Value):
        return minimise.argmin(x, *args, **options)
    return reductions.argmin(x, *args, **options)
