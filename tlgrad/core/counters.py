"""How often things were traced and compiled, and why: the data of `tl.cache_info()`."""
from __future__ import annotations

import threading
from collections import OrderedDict, deque

from tlgrad.core.source import describe_callable

_lock = threading.Lock()
#: counts by name; backends add their own ("compiles", "memory_hits", "disk_hits", ...)
counts: dict[str, int] = {"traces": 0, "retraces": 0, "compiles": 0, "memory_hits": 0, "disk_hits": 0}
#: the latest reasons, newest last
reasons: deque[str] = deque(maxlen=200)
_last_avals: OrderedDict[str, list] = OrderedDict()


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
