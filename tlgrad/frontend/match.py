"""What the instructions of `match` and of starred unpacking do, as functions of values."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tlgrad.frontend.block import Symbol

_KINDS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def kind(v) -> type:
    """The type of a value; of a traced number, the Python type of its kind."""
    return _KINDS[v.dtype.kind] if isinstance(v, Symbol) and not v.aval.shape else type(v)


def is_sequence(v) -> bool:
    """True when `case [...]` may match."""
    return isinstance(v, Sequence) and not isinstance(v, (str, bytes, bytearray))


def is_mapping(v) -> bool:
    """True when `case {...}` may match."""
    return isinstance(v, Mapping)


def values_of(mapping, keys):
    """The values of all the keys; None when one is missing."""
    return tuple(mapping[k] for k in keys) if all(k in mapping for k in keys) else None


def attributes_of(count, subject, cls, names):
    """The attributes that `case cls(...)` asks for, `count` of them by position; None for another class."""
    if not issubclass(kind(subject), cls):
        return None
    if isinstance(subject, Symbol) or type(subject) in (bool, int, float, complex, str, list, tuple, dict):
        return (subject,) * count if count < 2 and not names else None
    wanted = (*getattr(cls, "__match_args__", ())[:count], *names)
    if len(wanted) < count + len(names) or not all(hasattr(subject, n) for n in wanted):
        return None
    return tuple(getattr(subject, n) for n in wanted)


def starred(before, after, iterable):
    """(a, ..., [rest...], z, ...) of ``a, ..., *rest, z, ... = iterable``."""
    items = list(iterable)
    if len(items) < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(items)})")
    end = len(items) - after
    return (*items[:before], items[before:end], *items[end:])
