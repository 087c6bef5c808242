"""What a traced function read besides its arguments, and whether it is still the same.

A trace is valid while every closure cell, global, default and attribute that the function can
reach holds what it held.  The list is found by reading code objects, so it covers branches that
were not taken.  A function that reaches something that cannot be watched is traced at each call.
"""
from __future__ import annotations

import dis
import functools
import math
import sys
import types
from typing import Any

import numpy as np

from tlgrad.core.dtypes import DType
from tlgrad.core.primitive import Primitive
from tlgrad.core.source import is_internal
from tlgrad.core.trace import Value

#: things watched by one guard; beyond it the function is traced at each call
BUDGET = 2000
#: arrays up to this size are compared by content, larger ones cannot be watched
SMALL_ARRAY = 1 << 16

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, type, DType, Primitive,
          Value, np.generic, np.dtype, np.ufunc, types.BuiltinFunctionType, types.MethodDescriptorType)
_FIXED_MODULES = {"numpy", "math", "builtins", "tlgrad", "functools", "itertools", "operator", "typing"} \
    | set(sys.stdlib_module_names)
_MISSING = object()


class Unwatchable(Exception):
    """Raised inside when something reached cannot be watched."""


class Guard:
    """Snapshots of everything a function can read; `holds()` is True while nothing changed."""

    __slots__ = ("checks", "watchable", "keep")

    def __init__(self, f):
        self.checks: list[tuple] = []
        self.keep: list = []                   # watched objects stay alive, so identity means equality
        self.watchable = True
        seen: set[int] = set()
        try:
            self._watch(f, seen)
        except Unwatchable:
            self.watchable = False

    def holds(self) -> bool:
        """True when every watched place still holds what it held."""
        if not self.watchable:
            return False
        for check, place, key, saved in self.checks:
            if check(place, key) is not saved:
                if type(saved) is not tuple or check(place, key) != saved:
                    return False
        return True

    def _add(self, check, place, key, value):
        if len(self.checks) >= BUDGET:
            raise Unwatchable
        self.checks.append((check, place, key, value))
        self.keep.append((place, value))

    def _watch(self, value: Any, seen: set[int]):
        """Everything that can be read through `value`."""
        if isinstance(value, _ATOMS) or id(value) in seen:
            return
        seen.add(id(value))
        self.keep.append(value)
        if isinstance(value, types.FunctionType):
            self._watch_function(value, seen)
        elif isinstance(value, types.MethodType):
            self._watch(value.__func__, seen)
            self._watch(value.__self__, seen)
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._watch(part, seen)
        elif isinstance(value, (tuple, frozenset)):
            for item in value:
                self._watch(item, seen)
        elif isinstance(value, (list, dict, set)):
            self._add(_content, value, None, _content(value, None))
            for item in (value.values() if isinstance(value, dict) else value):
                self._watch(item, seen)
        elif isinstance(value, np.ndarray):
            self._watch_array(value)
        elif isinstance(value, types.ModuleType):
            return                             # its attributes are watched where code names them
        else:
            self._watch_object(value, seen)

    def _watch_array(self, array):
        if array.nbytes > SMALL_ARRAY or array.dtype.kind == "O":
            raise Unwatchable
        self._add(_bytes, array, None, _bytes(array, None))

    def _watch_object(self, value, seen):
        """An instance: its attributes, and data attributes of its classes."""
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None and is_internal_type(type(value)):
            return self._watch(wrapped, seen)  # a function under a transform
        state = getattr(value, "__dict__", None)
        slots = [s for cls in type(value).__mro__ for s in _slots_of(cls)]
        if state is None and not slots:
            raise Unwatchable
        if state is not None:
            self._add(_content, state, None, _content(state, None))
            for item in list(state.values()):
                self._watch(item, seen)
        for name in slots:
            item = getattr(value, name, _MISSING)
            self._add(_attribute, value, name, item)
            self._watch(item, seen)
        for cls in type(value).__mro__[:-1]:
            self._watch_class(cls, seen)

    def _watch_class(self, cls, seen):
        if id(cls) in seen or is_internal_type(cls) or cls.__module__.split(".")[0] in _FIXED_MODULES:
            return
        seen.add(id(cls))
        for name, item in list(vars(cls).items()):
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            elif isinstance(item, property):
                item = item.fget
            if isinstance(item, types.FunctionType):
                self._watch(item, seen)
            elif not name.startswith("__") and not isinstance(item, (types.GetSetDescriptorType,
                                                                    types.MemberDescriptorType)):
                self._add(_class_attribute, cls, name, vars(cls)[name])
                self._watch(item, seen)

    def _watch_function(self, f, seen):
        if is_internal(f.__code__):
            return self._watch_cells(f, seen)
        if (f.__module__ or "").split(".")[0] in _FIXED_MODULES:
            return
        self._add(_attribute, f, "__code__", f.__code__)
        self._add(_attribute, f, "__defaults__", f.__defaults__)
        self._add(_attribute, f, "__kwdefaults__", f.__kwdefaults__)
        for default in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._watch(default, seen)
        self._watch_cells(f, seen)
        wrapped = getattr(f, "__wrapped__", None)
        if wrapped is not None:
            self._watch(wrapped, seen)
        self._watch_names(f.__code__, f.__globals__, seen)

    def _watch_cells(self, f, seen):
        for cell in f.__closure__ or ():
            value = _cell(cell, None)
            self._add(_cell, cell, None, value)
            if value is not _MISSING:
                self._watch(value, seen)

    def _watch_names(self, code, namespace, seen):
        """Globals that the code (or code nested in it) names, and attributes of modules."""
        names, attributes = names_in(code)
        for name in names:
            if name not in namespace:
                continue                       # a builtin, or an error when it is reached
            value = namespace[name]
            self._add(_item, namespace, name, value)
            self._watch(value, seen)
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in _FIXED_MODULES:
                for attribute in attributes:
                    if attribute in vars(value):
                        self._add(_item, vars(value), attribute, vars(value)[attribute])
                        self._watch(vars(value)[attribute], seen)


@functools.lru_cache(maxsize=4096)
def names_in(code) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(global names, attribute names) in a code object and those nested in it."""
    names, attributes, todo = {}, {}, [code]
    while todo:
        one = todo.pop()
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names[instruction.argval] = None
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes[instruction.argval] = None
        todo += [c for c in one.co_consts if isinstance(c, types.CodeType)]
    return tuple(names), tuple(attributes)


def is_internal_type(cls) -> bool:
    """True for a class of tlgrad."""
    return cls.__module__ == "tlgrad" or cls.__module__.startswith("tlgrad.")


def _slots_of(cls) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    return [s for s in ((slots,) if isinstance(slots, str) else slots) if s not in ("__weakref__", "__dict__")]


# ---- readers: (place, key) -> what it holds now ----

def _cell(cell, _):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _item(namespace, name):
    return namespace.get(name, _MISSING)


def _attribute(value, name):
    return getattr(value, name, _MISSING)


def _class_attribute(cls, name):
    return vars(cls).get(name, _MISSING)


def _content(value, _):
    """Keys by value, entries by identity."""
    if isinstance(value, dict):
        return tuple((k, _token(v)) for k, v in value.items())
    if isinstance(value, set):
        return tuple(sorted(map(id, value)))
    return tuple(map(_token, value))


def _token(value):
    """Identity, or the value itself for small numbers (an equal float is the same capture)."""
    if type(value) is float:
        return (value, math.copysign(1.0, value)) if value == value else "nan"
    if type(value) in (int, bool, str):
        return value, type(value)
    return id(value)


def _bytes(array, _):
    return (array.shape, array.dtype, array.tobytes())
