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
from tlgrad.core.writing import ASSIGNED, assignments

#: things watched by one guard; beyond it the function is traced at each call
BUDGET = 2000
#: bytes up to which arrays are compared as one string of bytes, and as words; larger ones cannot be watched
SMALL_ARRAY, LARGE_ARRAY = 1 << 16, 1 << 28

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, DType, Primitive,
          Value, np.generic, np.dtype, np.ufunc, types.MethodDescriptorType, types.GenericAlias, types.UnionType)
_FIXED_MODULES = {"numpy", "math", "builtins", "tlgrad", "functools", "itertools", "operator", "typing"} \
    | set(sys.stdlib_module_names)
#: modules and builtins through which a function reads what nothing can watch
_CHANGING_MODULES = {"datetime", "os", "random", "secrets", "threading", "time", "uuid"}
_READS_ANYTHING = {"__import__", "eval", "exec", "globals", "input", "open", "vars"}
#: attributes by which classes keep caches
_CACHES = {"_abc_impl"}
_MISSING = object()


class Unwatchable(Exception):
    """Raised inside when something reached cannot be watched."""


class Guard:
    """Snapshots of everything a function can read; `holds()` is True while nothing changed."""

    __slots__ = ("checks", "watchable", "keep", "values")

    def __init__(self, f):
        self.checks: list[tuple] = []
        self.keep: list = []                   # watched objects stay alive, so identity means equality
        self.values: list[tuple] = []          # captured values, and how often each was assigned to
        self.watchable = True
        seen: set[int] = set()
        try:
            self._watch(f, seen)
        except Unwatchable:
            self.watchable = False

    def holds(self) -> bool:
        """True when every watched place still holds what it held."""
        if not self.watchable or ASSIGNED and any(assignments(x) != n for x, n in self.values):
            return False
        for check, place, key, saved in self.checks:
            now = check(place, key)
            if now is not saved and (check not in _BY_CONTENT or now != saved):
                return False
        return True

    def _add(self, check, place, key, value):
        if len(self.checks) >= BUDGET:
            raise Unwatchable
        self.checks.append((check, place, key, value))
        self.keep.append((place, value))

    def _watch(self, value: Any, seen: set[int]):
        """Everything that can be read through `value`."""
        if isinstance(value, Value):
            self.values.append((value, assignments(value)))
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
            for part in (value.func, value.args, value.keywords):
                self._watch(part, seen)
        elif isinstance(value, (tuple, frozenset, list, dict, set)):
            self._watch_container(value, seen)
        elif isinstance(value, np.ndarray):
            self._watch_array(value)
        elif isinstance(value, types.ModuleType):
            self._watch_module(value, None, seen)
        elif isinstance(value, type):
            if value.__module__ == "datetime":                     # its class methods read the clock
                raise Unwatchable
            self._watch_classes(value, seen)
            self._watch_classes(type(value), seen)
        elif isinstance(value, types.BuiltinFunctionType):
            self._watch_builtin(value.__self__, seen)
        else:
            self._watch_object(value, seen)

    def _watch_container(self, value, seen):
        if not isinstance(value, (tuple, frozenset)):
            self._add(_content, value, None, _content(value, None))
        for item in (value.values() if isinstance(value, dict) else value):
            self._watch(item, seen)
        if type(value) not in (tuple, frozenset, list, dict, set):
            self._watch_attributes(value, seen)

    def _watch_builtin(self, owner, seen):
        """A function of a compiled module, or a method of a built-in object: what it is bound to."""
        if isinstance(owner, types.ModuleType):
            self._watch_module(owner, None, seen)
        elif owner is not None and not isinstance(owner, type):
            self._watch(owner, seen)

    def _watch_module(self, module, attributes, seen):
        """The attributes of a module that code names; None where the names are not known."""
        top = module.__name__.split(".")[0]
        if top in _CHANGING_MODULES or top == "numpy" and "random" in (attributes or ()):
            raise Unwatchable
        if top in _FIXED_MODULES or (id(module), attributes) in seen:
            return
        if attributes is None:
            raise Unwatchable
        seen.add((id(module), attributes))
        for name in attributes:
            value = vars(module).get(name, _MISSING)
            if value is not _MISSING:
                self._add(_item, vars(module), name, value)
                self._watch_read(value, attributes, seen)

    def _watch_read(self, value, attributes, seen):
        """What code with these attribute names reads."""
        if isinstance(value, types.ModuleType):
            self._watch_module(value, attributes, seen)
        else:
            self._watch(value, seen)

    def _watch_array(self, array):
        if array.nbytes > LARGE_ARRAY or array.dtype.kind == "O":
            raise Unwatchable
        if array.nbytes > SMALL_ARRAY:
            self._add(_unchanged, array, (_layout(array), _words(array).copy()), True)
        else:
            self._add(_bytes, array, None, _bytes(array, None))

    def _watch_object(self, value, seen):
        """An instance: its attributes, and data attributes of its classes."""
        if is_internal_type(type(value)) and _attribute(value, "__wrapped__") is not _MISSING:
            return self._watch(value.__wrapped__, seen)                # a function under a transform
        if type(value).__module__ == "datetime":
            return None                        # a date or a time: immutable
        if isinstance(value, functools._lru_cache_wrapper):
            self._add(_misses, value, None, _misses(value, None))
        elif not isinstance(value, BaseException) and _keeps_more(type(value)):
            raise Unwatchable
        if type(value).__module__ in _CHANGING_MODULES | {"_thread"} or not self._watch_attributes(value, seen):
            raise Unwatchable

    def _watch_attributes(self, value, seen) -> bool:
        """Attributes of an instance and of its classes; False when it has no place for any."""
        state = _attribute(value, "__dict__")
        slots = [s for cls in type(value).__mro__ for s in _slots_of(cls)]
        if state is not _MISSING:
            self._add(_content, state, None, _content(state, None))
            for item in list(state.values()):
                self._watch(item, seen)
        for name in slots:
            item = _attribute(value, name)
            self._add(_attribute, value, name, item)
            self._watch(item, seen)
        self._watch_classes(type(value), seen)
        return state is not _MISSING or bool(slots)

    def _watch_classes(self, last, seen):
        for cls in last.__mro__[:-1]:
            self._watch_class(cls, seen)

    def _watch_class(self, cls, seen):
        if (id(cls), "class") in seen or is_internal_type(cls) or cls.__module__.split(".")[0] in _FIXED_MODULES:
            return
        seen.add((id(cls), "class"))
        self._add(_class_content, cls, None, _class_content(cls, None))
        for name, item in list(vars(cls).items()):
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            elif isinstance(item, property):
                item = item.fget
            if isinstance(item, types.FunctionType):
                self._watch(item, seen)
            elif not (name.startswith("__") or name in _CACHES or _is_compiled_descriptor(item)):
                self._watch(item, seen)

    def _watch_function(self, f, seen):
        if is_internal(f.__code__):
            return self._watch_cells(f, seen)
        top = (f.__module__ or "").split(".")[0]
        if top in _CHANGING_MODULES:
            raise Unwatchable
        if top in _FIXED_MODULES:
            return
        self._add(_attribute, f, "__code__", f.__code__)
        self._add(_attribute, f, "__defaults__", f.__defaults__)
        self._add(_attribute, f, "__kwdefaults__", f.__kwdefaults__)
        for defaults in (f.__defaults__, f.__kwdefaults__):
            self._watch(defaults, seen)
        self._watch_cells(f, seen)
        if f.__dict__:
            self._watch(f.__dict__, seen)
        self._watch_names(f.__code__, f.__globals__, seen)

    def _watch_cells(self, f, seen):
        attributes = names_in(f.__code__)[1]
        for cell in f.__closure__ or ():
            value = _cell(cell, None)
            self._add(_cell, cell, None, value)
            if value is not _MISSING:
                self._watch_read(value, attributes, seen)

    def _watch_names(self, code, namespace, seen):
        """Globals that the code (or code nested in it) names, and attributes of modules."""
        names, attributes, imports = names_in(code)
        if any(name.split(".")[0] not in _FIXED_MODULES - _CHANGING_MODULES for name in imports):
            raise Unwatchable
        for name in names:
            value = namespace.get(name, _MISSING)
            self._add(_item, namespace, name, value)
            if value is not _MISSING:
                self._watch_read(value, attributes, seen)
            elif name in _READS_ANYTHING:
                raise Unwatchable


@functools.lru_cache(maxsize=4096)
def names_in(code) -> tuple[tuple[str, ...], tuple[str, ...] | None, tuple[str, ...]]:
    """(global names, attribute names, imported modules) in a code object and those nested in it.

    The attribute names are None when `getattr` may read others.
    """
    names, attributes, imports, todo = {}, {}, {}, [code]
    kinds = {"LOAD_GLOBAL": names, "LOAD_NAME": names, "LOAD_ATTR": attributes, "LOAD_METHOD": attributes,
             "IMPORT_NAME": imports}
    while todo:
        one = todo.pop()
        for instruction in dis.get_instructions(one):
            if instruction.opname in kinds:
                kinds[instruction.opname][instruction.argval] = None
        todo += [c for c in one.co_consts if isinstance(c, types.CodeType)]
    return tuple(names), None if "getattr" in names else tuple(attributes), tuple(imports)


def _is_compiled_descriptor(item) -> bool:
    """True for the getters of slots and named tuples: they hold nothing that changes."""
    return hasattr(type(item), "__get__") and type(item).__module__ in ("builtins", "_collections") \
        and not isinstance(item, (types.FunctionType, property, classmethod, staticmethod))


def is_internal_type(cls) -> bool:
    """True for a class of tlgrad."""
    return cls.__module__ == "tlgrad" or cls.__module__.startswith("tlgrad.")


def _slots_of(cls) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    return [s for s in ((slots,) if isinstance(slots, str) else slots) if s not in ("__weakref__", "__dict__")]


def _keeps_more(cls) -> bool:
    """True where a compiled base class has memory of its own in every object: files, values of ctypes."""
    word = object.__basicsize__ // 2
    places = sum(len(_slots_of(c)) for c in cls.__mro__) + 2           # its dictionary and its weak references
    return cls.__basicsize__ > object.__basicsize__ + places * word


# ---- readers: (place, key) -> what it holds now ----

def _cell(cell, _):
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _item(namespace, name):
    return namespace.get(name, _MISSING)


def _attribute(value, name):
    """As it is stored: a class's own `__getattr__` is not asked."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return _MISSING


def _class_content(cls, _):
    return tuple(map(id, vars(cls).values()))


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


def _unchanged(array, key) -> bool:
    """True when an array has the layout and words that it had."""
    layout, words = key
    return _layout(array) == layout and np.array_equal(_words(array), words)


def _layout(array):
    return array.shape, array.strides, array.dtype


def _words(array):
    """The bytes of an array as integers, in the order of its memory where that has no gaps."""
    flat = array.ravel(order="K")
    return flat.view(np.uint8 if flat.nbytes % 8 else np.uint64)


def _misses(cached, _):
    """How often a cache was filled: less after `cache_clear`."""
    return cached.cache_info().misses


#: readers whose answers are made anew: compared by value, those of the others by identity
_BY_CONTENT = {_content, _class_content, _bytes, _misses}
