"""Looking at programs without running them: make_jaxpr, eval_shape, cache_info."""
from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple

from tlgrad.api.calling import FlatFunction, LeafNames, signature, wrap
from tlgrad.core import counters, tree
from tlgrad.core.aval import Aval, make_aval
from tlgrad.core.execute import backend
from tlgrad.core.jaxpr import ClosedJaxpr
from tlgrad.core.source import check_callable, describe_callable
from tlgrad.core.tensor import as_value
from tlgrad.errors import DTypeError
from tlgrad.transforms.stage import stage


def aval_of(x: Any, label: str = "an argument") -> Aval:
    """The aval of a value, of an Aval, or of anything with shape and dtype."""
    if isinstance(x, Aval):
        return x
    if not hasattr(x, "aval") and hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return make_aval(tuple(x.shape), x.dtype)
    return as_value(x, label).aval


def make_jaxpr(f: Callable | None = None) -> Callable:
    """The function that gives the jaxpr of `f` for its arguments, without running it.

    >>> tl.make_jaxpr(lambda x: x * x + 1)(2.0)
    { lambda x:float64[]* ;
        a:float64[]* = mul x x
        b:float64[]* = add a 1.0:float64
      in (b,) }
    """
    def staged(*args, **kwargs):
        jaxpr, consts, _ = _stage(f, args, kwargs)
        return ClosedJaxpr(jaxpr, consts)
    return wrap(f, staged, "The jaxpr", functools.partial(make_jaxpr, f))


def eval_shape(f: Callable, *args, **kwargs):
    """The avals of f(*args), as a tree, without computing; arguments may be avals (`tl.aval`).

    With `f` alone, gives the function of arguments.

    >>> tl.eval_shape(lambda x: tl.sum(x, axis=0), tl.aval((2**31, 3), tl.float32))
    float32[3]
    """
    if not args and not kwargs:
        return functools.partial(eval_shape, f)
    jaxpr, _, out_tree = _stage(f, args, kwargs)
    return tree.unflatten(out_tree, [a.strong() for a in jaxpr.out_avals])


def aval(shape, dtype) -> Aval:
    """An abstract value of this shape and dtype, for `eval_shape` and `make_jaxpr`."""
    try:
        return make_aval(tuple(shape), dtype)
    except TypeError:
        raise DTypeError(f"aval takes a shape tuple and a dtype, got {shape!r} and {dtype!r}") from None


def _stage(f, args, kwargs):
    check_callable(f, "tracing")
    leaves, in_tree = tree.flatten((args, kwargs))
    labels = LeafNames(in_tree, ["the arguments", "the keyword arguments"])
    avals = [aval_of(x, labels[k]) for k, x in enumerate(leaves)]
    what = describe_callable(f)
    flat = FlatFunction(lambda a, k: f(*a, **k), in_tree, what)
    sig = signature(f)
    names = [p.name for p in sig.parameters.values()] if sig and len(avals) == len(args) else []
    jaxpr, consts = stage(flat, avals, names[:len(avals)], what)
    return jaxpr, consts, flat.out_tree


def block(x: Any) -> Any:
    """Wait until every tensor of a tree is computed; gives the tree.

    On the CPU results are ready when a call returns.  Time a program with it on any device.

    >>> block(tl.ones(2))
    tensor([1., 1.], float64, shape (2,), cpu)
    """
    leaves, _ = tree.flatten(x)
    for leaf in leaves:
        as_value(leaf, "the operand of block")
    return x


class CacheInfo(NamedTuple):
    """Counts since the start or the last `clear_caches`: traces, those caused by a changed captured
    value, kernels compiled, found in memory, found on disk; and the latest reasons, one a trace and
    one a compilation."""
    traces: int
    retraces: int
    compiles: int
    memory_hits: int
    disk_hits: int
    reasons: tuple[str, ...]


def cache_info() -> CacheInfo:
    """What was traced and compiled so far, with the reason of each trace and of each compilation.

    Kernels have no lengths, numbers or trip counts in their text, so only another dtype, rank,
    broadcast or operation compiles again; the reason shows the first line that differs.

    >>> tl.cache_info().traces >= 0
    True
    """
    c = counters.counts
    return CacheInfo(c["traces"], c["retraces"], c["compiles"], c["memory_hits"], c["disk_hits"],
                     tuple(counters.reasons))


def clear_caches(disk: bool = False):
    """Forget compiled kernels and pooled memory, and set the counts of `cache_info` to zero.

    disk=True also removes what was kept on disk.  Functions that were run before keep their programs.

    >>> tl.clear_caches(); tl.cache_info().compiles
    0
    """
    counters.reset()
    engine = backend("cpu")
    if engine.name == "cpu":                   # the reference keeps nothing
        engine.clear_caches(disk)
