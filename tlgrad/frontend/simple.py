"""Functions without control flow: Python runs them on symbols, and Numba is not imported.

Only functions whose bytecode moves values, applies operators and calls other such functions
qualify.  They run as a copy in which captured floats and arrays are symbols, so that the record
is the one that the front end would make.
"""
from __future__ import annotations

import dis
import functools
import types

import numpy as np

from tlgrad.core.primitive import Primitive
from tlgrad.core.source import is_internal
from tlgrad.core.trace import Value

_OPCODES = {dis.opmap[name] for name in (
    "BINARY_OP BINARY_SUBSCR BUILD_TUPLE CACHE CALL COMPARE_OP COPY COPY_FREE_VARS EXTENDED_ARG KW_NAMES "
    "LOAD_ATTR LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_LOAD_FAST LOAD_GLOBAL LOAD_METHOD NOP POP_TOP "
    "PRECALL PUSH_NULL RESUME RETURN_CONST RETURN_VALUE STORE_FAST STORE_FAST_LOAD_FAST "
    "STORE_FAST_STORE_FAST SWAP UNARY_NEGATIVE UNARY_POSITIVE UNPACK_SEQUENCE").split() if name in dis.opmap}


class NotSimple(Exception):
    """The function needs the front end."""


@functools.lru_cache(maxsize=4096)
def _straight(code) -> bool:
    """No branch, loop, inner function or store outside."""
    return not code.co_flags & 0xAC and _OPCODES.issuperset(code.co_code[::2])


def copy_on_symbols(interpreter, f, seen=None):
    """A copy of `f` in which what it captures is admitted to the program.  Raises NotSimple."""
    seen = {} if seen is None else seen
    if f in seen:
        raise NotSimple                        # recursion
    seen[f] = None
    if not isinstance(f, types.FunctionType) or is_internal(f.__code__) or not _straight(f.__code__):
        raise NotSimple

    def admitted(v, place, name):
        if isinstance(v, types.FunctionType) and not is_internal(v.__code__):
            return copy_on_symbols(interpreter, v, seen)
        if isinstance(v, (Value, np.ndarray)) or type(v) is float:
            return interpreter.admit(v, place, name)
        if isinstance(v, (types.ModuleType, types.FunctionType, Primitive, bool, int, complex, str)):
            return v
        raise NotSimple
    try:
        cells = tuple(types.CellType(admitted(c.cell_contents, c, n))
                      for c, n in zip(f.__closure__ or (), f.__code__.co_freevars))
    except ValueError:
        raise NotSimple from None
    names = {i.argval for i in dis.get_instructions(f.__code__) if i.opname == "LOAD_GLOBAL"}
    found = {n: admitted(f.__globals__[n], f.__globals__, n) for n in names if n in f.__globals__}
    if names - found.keys():
        raise NotSimple                        # builtins: abs, min, max, sum follow Python's rules
    defaults = tuple(admitted(v, f, f"default {k}") for k, v in enumerate(f.__defaults__ or ())) or None
    new = types.FunctionType(f.__code__, {**f.__globals__, **found}, f.__name__, defaults, cells)
    new.__kwdefaults__ = {k: admitted(v, f, k) for k, v in (f.__kwdefaults__ or {}).items()} or None
    return new
