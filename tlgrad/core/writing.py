"""Item assignment for libraries that are written against the array API standard.

Tensors are immutable, and `x[i] = v` in a user's code is an error that gives the functional form.
The standard has item assignment, though, and libraries written against it (SciPy, scikit-learn,
array-api-extra) fill arrays that they made.  Code of the packages in `WRITERS` may assign: the
object gets a new value, `x.at[i].set(v)`; no memory is written, so nothing that was computed or
recorded from the old value changes.  What such code made by slicing, reshaping or permuting axes
is a view, as in NumPy: an assignment to it reaches its base, and one to the base reaches it.
Inside a transform, float arrays that such a library makes belong to the transform from the start,
so that traced values can be assigned to their entries.
"""
from __future__ import annotations

import sys
import weakref
from typing import Callable, NamedTuple

from tlgrad.core.source import user_source
from tlgrad.core.trace import EVAL, Tracer, Value, current_trace, running_under
from tlgrad.errors import MutationError

#: packages whose code may assign to entries; add the name of one that follows the standard
WRITERS = {"array_api_extra", "scipy", "sklearn"}

#: id of a value that was assigned to -> (weak reference, how often); for guards of what functions captured
ASSIGNED: dict[int, tuple] = {}


class View(NamedTuple):
    """How a view and its base follow from one another."""
    view: weakref.ref
    base: Value
    read: Callable                # base -> view
    write: Callable               # base, view -> base with the view's entries


#: id of a view -> View; id of a base -> ids of its views
_views: dict[int, View] = {}
_views_of: dict[int, set[int]] = {}


def may_write(depth: int = 1) -> bool:
    """True when the innermost caller outside tlgrad is code of one of `WRITERS`."""
    frame = sys._getframe(depth)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package != "tlgrad":
            return package in WRITERS
        frame = frame.f_back
    return False


def assignments(x: Value) -> int:
    """How often `x` was assigned to."""
    found = ASSIGNED.get(id(x))
    return found[1] if found is not None else 0


def clone(x: Value) -> Value:
    """Another object with the same value: an assignment to one does not reach the other."""
    out = object.__new__(type(x))
    for name in _fields(type(x)):
        setattr(out, name, getattr(x, name))
    return out


def fresh(x: Value) -> Value:
    """A value just made: inside a transform it belongs to it, where the caller may assign to it."""
    if not may_write(2):
        return x
    trace = current_trace()
    return clone(x) if trace is EVAL else clone(trace.own(x))


def view(out: Value, base: Value, read: Callable, write: Callable) -> Value:
    """`out`, remembered as a view of `base` if the caller may assign to it."""
    if out is not base and may_write(2):
        key, owner = id(out), id(base)
        _views[key] = View(weakref.ref(out, lambda _: _forget(key, owner)), base, read, write)
        _views_of.setdefault(owner, set()).add(key)
    return out


def _forget(key: int, owner: int) -> None:
    del _views[key]
    _views_of[owner].discard(key)
    if not _views_of[owner]:
        del _views_of[owner]


def where_known(*parts) -> running_under:
    """The trace to compute an assignment under: what follows from tensors alone stays a tensor."""
    return running_under(current_trace() if any(isinstance(x, Tracer) for x in parts) else EVAL)


def assign(x: Value, new: Value) -> None:
    """Give the object `x` the value of `new`, and tell its base and views.

    Raises MutationError, and changes nothing, when `new` belongs to another trace than `x` or its base.
    """
    if type(new) is not type(x) or isinstance(new, Tracer) and new.trace is not x.trace:
        raise MutationError(
            f"a traced value, {new.aval} of {getattr(new, 'trace', EVAL).name}, cannot be assigned to entries of "
            f"an array from outside that transform; write x = x.at[i].set(v) [{user_source()}]")
    of = _views.get(id(x))
    if of is None:
        _replace(x, new)
        _tell_views(x)
    else:                                                # the base tells every view, `x` too
        with where_known(of.base, new):
            base = of.write(of.base, new)
        assign(of.base, base)


def written(x, new: Value) -> Value:
    """`new`, the result of a function that in NumPy writes into `x`: code that may assign finds it there."""
    if type(x) is type(new) and may_write(2):
        assign(x, new)
    return new


def _tell_views(x):
    for key in list(_views_of.get(id(x), ())):
        of = _views[key]
        if (seen := of.view()) is not None:
            with where_known(x):
                now = of.read(x)
            _replace(seen, now)
            _tell_views(seen)


def _replace(x, new):
    """What running traces hold of the old value is kept for them under another object."""
    trace, old = current_trace(), clone(x)
    while trace is not None:
        trace.keep(x, old)
        trace = trace.parent
    for name in _fields(type(x)):
        setattr(x, name, getattr(new, name))
    key = id(x)
    ASSIGNED[key] = (weakref.ref(x, lambda _: ASSIGNED.pop(key, None)), assignments(x) + 1)


def _fields(cls) -> list[str]:
    return [name for c in cls.__mro__ for name in getattr(c, "__slots__", ()) if name != "__weakref__"]
