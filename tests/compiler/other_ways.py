"""Further ways to run a program, beside one call of its plan: they give the same words."""
from __future__ import annotations

import os
from contextlib import contextmanager

import numpy as np

import tlgrad as tl
from tlgrad.backends.numba_cpu import threads
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core.jaxpr import eval_jaxpr
from tlgrad.core.tensor import Tensor


@contextmanager
def many_threads(count: int):
    """Inside, launches are split over `count` threads, however little there is to do."""
    share, asked = threads.SHARE, os.environ.get("TLGRAD_NUM_THREADS")
    threads.SHARE, os.environ["TLGRAD_NUM_THREADS"] = 1, str(count)
    try:
        yield
    finally:
        threads.SHARE = share
        os.environ.pop("TLGRAD_NUM_THREADS")
        if asked is not None:
            os.environ["TLGRAD_NUM_THREADS"] = asked


def oddly_stored(rng, array: np.ndarray) -> np.ndarray:
    """A copy with gaps, backwards, in the other byte order or read-only; or plain."""
    kind = rng.integers(5)
    if kind == 0 and array.size:
        every = tuple(slice(0, 2 * n, 2) for n in array.shape)
        wide = np.zeros([2 * n for n in array.shape], array.dtype)
        wide[every] = array
        return wide[every]
    if kind == 1 and array.ndim:
        return array[::-1].copy()[::-1]
    if kind == 2 and array.dtype.fields is None:
        return array.astype(array.dtype.newbyteorder())
    copy = array.copy()
    copy.flags.writeable = kind != 3
    return copy


def by_threads(jaxpr, arrays, rng):
    """Results on two threads or three."""
    with many_threads(int(rng.integers(2, 4))):
        yield "on threads", Plan(jaxpr).run(*arrays)


def by_calls(jaxpr, arrays, rng):
    """Results of several calls of `tl.run`, the last ones by its short ways."""
    f = tl.run(lambda *xs: eval_jaxpr(jaxpr, xs))
    plain = rng.random() < .5
    for call in range(6):
        stored = [a.copy() if plain else oddly_stored(rng, a) for a in arrays]
        tensors = [Tensor.of(a, v.aval) if plain else tl.tensor(a) for a, v in zip(stored, jaxpr.in_binders)]
        yield f"call {call}", [y.data for y in f(*tensors)]
        yield "operands after a call", [x.data for x in tensors]


def by_donation(jaxpr, arrays, rng):
    """Results in memory that the caller gives up."""
    given = tuple(int(k) for k in np.flatnonzero(rng.random(len(arrays)) < .6))
    f = tl.run(lambda *xs: eval_jaxpr(jaxpr, xs), donate=given)
    for _ in range(2):
        yield "donating", [y.data for y in f(*[Tensor.of(a.copy(), v.aval)
                                               for a, v in zip(arrays, jaxpr.in_binders)])]


WAYS = by_threads, by_calls, by_donation
