"""`record`: evaluate now, go backward once later (the essay's run with gradients)."""
from __future__ import annotations

import functools
from typing import Any, Callable

from tlgrad.api.calling import FlatFunction, flatten_values, wrap
from tlgrad.api.derivatives import full_cotangent, match_cotangents, ones_like, pull_back
from tlgrad.core import dtypes, tree
from tlgrad.core.source import describe_callable
from tlgrad.errors import DifferentiationError, RecordError
from tlgrad.ops.arithmetic import conj
from tlgrad.ops.orders import check_order, use_order
from tlgrad.transforms.partial_eval import linearize_flat


class Record:
    """A value together with what its backward pass needs; made by `tl.record(f)(x)`.

    value, device: usable at any time.  backward(seed=ones): the cotangent of the input (of all
    inputs, as a tuple, when there are several); consumes the record, also when it fails.
    close(): lets the saved values go; may be called again.  A context manager closes at its end.
    """

    def __init__(self, value, device: str, what: str, saved):
        self.value, self.device = value, device
        self._what, self._saved = what, saved

    def backward(self, seed: Any = None):
        """Pull a seed of the shape of `value` (default: ones) back to the input.

        Raises RecordError on a second call or after close, ShapeError for a seed of another shape.
        """
        if self._saved is None:
            raise RecordError(f"the record of {self._what} is consumed or closed: a record goes backward "
                              "once. Record again, or use tl.vjp for several pullbacks.")
        saved, self._saved = self._saved, None
        return _pull(saved, seed, self._what)

    def close(self):
        """Release the saved intermediates; `value` stays."""
        self._saved = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __repr__(self):
        return repr(self.value)

    def __str__(self):
        return str(self.value)


def _pull(saved, seed, what):
    lin, xs, ys, in_tree, out_tree, order = saved
    if seed is None:
        cts = [ones_like(y) for y in ys]
    else:
        cts = match_cotangents(seed, out_tree, ys, f"the record of {what}")
    with use_order(order):
        bars = [full_cotangent(b, x) for b, x in zip(pull_back(lin, cts), xs)]
    bars = [conj(b) if x.dtype.kind == "c" else b for b, x in zip(bars, xs)]
    args, kwargs = tree.unflatten(in_tree, bars)
    both = (*args, *kwargs.values())
    return both[0] if len(both) == 1 else both


class Recordable:
    """What `run` makes: a callable with `options` and the plain function `f` under it."""

    f: Callable
    options: Any


def record(f: Callable | None = None, *, order: str | None = None) -> Callable:
    """The function that evaluates `f` and keeps what one backward pass needs.

    A conditional records the branch that was taken.  Gives a `Record`.  order: as in `run`, also for
    the backward pass; a function made by `run` keeps its options.

    >>> r = tl.record(lambda x: tl.sum(x * x))(tl.tensor([1.0, 2.0, 3.0]))
    >>> r.value, r.backward()
    (tensor(14.0, float64, shape (), cpu), tensor([2., 4., 6.], float64, shape (3,), cpu))
    """
    if f is None:
        return functools.partial(record, order=order)
    body, device, used_order = f, "cpu", check_order(order) if order else None
    if isinstance(f, Recordable):
        device, used_order = f.options.device, used_order or f.options.order
        body = f.f if f.options.dtype is None else f
    what = describe_callable(f)

    def recorded(*args, **kwargs):
        xs, in_tree, labels = flatten_values((args, kwargs), ["the arguments", "the keyword arguments"])
        if not any(dtypes.is_inexact(x.dtype) for x in xs):
            raise DifferentiationError(f"record of {what}: no argument is a float or complex number, so there "
                                       f"is nothing to go back to ({[x.aval for x in xs]})")
        flat = FlatFunction(lambda a, k: body(*a, **k), in_tree, what)
        with use_order(used_order):
            ys, lin = linearize_flat(flat, xs)
        saved = (lin, xs, ys, in_tree, flat.out_tree, used_order)
        return Record(tree.unflatten(flat.out_tree, ys), device, what, saved)
    return wrap(f, recorded, "Record", functools.partial(record, f, order=order))
