"""How often things were traced and compiled, and why: the data of `tl.cache_info()`."""
from __future__ import annotations

import threading
import warnings
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from tlgrad.core.source import describe_callable
from tlgrad.kernels.fork import in_child

_lock = threading.Lock()
#: counts by name; backends add their own ("compiles", "memory_hits", "disk_hits", ...)
counts: dict[str, int] = {"traces": 0, "retraces": 0, "compiles": 0, "memory_hits": 0, "disk_hits": 0}
#: the latest reasons, newest last
reasons: deque[str] = deque(maxlen=200)
_last_avals: OrderedDict[str, list] = OrderedDict()
#: kernels compiled for one function after which it is reported, once
MANY_COMPILES = 64


@in_child
def _after_fork():
    global _lock
    _lock = threading.Lock()


@dataclass(slots=True)
class Origin:
    """What programs were traced from: its name, the kernels compiled for it, their latest texts."""
    name: str
    compiles: int = 0
    texts: dict[int, str] = field(default_factory=dict)


def add(name: str, n: int = 1):
    """Count an event."""
    with _lock:
        counts[name] = counts.get(name, 0) + n


def count_trace(f, captured_changed: bool, avals):
    """Count a trace of `f` and keep the reason for it."""
    name = describe_callable(f)
    with _lock:
        counts["traces"] += 1
        if captured_changed:
            counts["retraces"] += 1
            reasons.append(f"{name}: a captured value changed")
        elif name in _last_avals:
            reasons.append(f"{name}: {_changed(_last_avals[name], avals)}")
        else:
            reasons.append(f"{name}: first call")
        _last_avals[name] = list(avals)
        if len(_last_avals) > 1000:
            _last_avals.popitem(last=False)


def count_compile(origin: Origin | None, number: int, text: str):
    """Count a compilation of kernel `number` of a function, and keep the reason for it."""
    with _lock:
        counts["compiles"] += 1
        if origin is None:
            reasons.append(f"kernel {number} compiled: its text is new")
            return
        origin.compiles += 1
        last = origin.texts.get(number)
        reason = f"{origin.name}: kernel {number} compiled: {_changed_text(last, text)}"
        reasons.append(reason)
    if origin.compiles == MANY_COMPILES:
        warnings.warn(f"{MANY_COMPILES} kernels were compiled for one function. The latest: {reason}. "
                      "tl.cache_info().reasons has the others. Lengths and numbers never compile again; dtypes, "
                      "ranks, broadcasts and static arguments do.", RuntimeWarning, stacklevel=2)


def count_library(name: str):
    """Count the compilation of a kernel that all programs share."""
    with _lock:
        counts["compiles"] += 1
        reasons.append(f"{name} compiled: a library kernel, the first use on this machine")


def _changed_text(old: str | None, new: str) -> str:
    """What is different from the kernel of this number that the function had last."""
    if old is None:
        return "the first"
    before, after = old.splitlines(), new.splitlines()
    for a, b in zip(before, after):
        if a != b:
            return f"`{a.strip()}` became `{b.strip()}`"
    return f"{len(before)} lines became {len(after)}"


def _changed(old, new) -> str:
    if len(old) != len(new):
        return f"{len(old)} argument leaves became {len(new)}"
    for k, (a, b) in enumerate(zip(old, new)):
        if a is not b:
            return f"argument leaf {k} changed from {a} to {b}"
    return "another function or static argument"


def reset():
    """Set all counts to zero."""
    with _lock:
        for name in counts:
            counts[name] = 0
        reasons.clear()
        _last_avals.clear()
