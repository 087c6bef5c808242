"""Where in the user's code something happened."""
from __future__ import annotations

import dis
import functools
import linecache
import os
import sys
from typing import NamedTuple

from tlgrad.errors import ArgumentError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KERNELS = os.path.join(os.path.dirname(_PACKAGE.rstrip(os.sep)), "kernels") + os.sep
#: frames that nobody's line is in; Numba looks at an operand before it calls a compiled function
_BETWEEN, _NUMBA = (_PACKAGE, _KERNELS, functools.__file__, "<frozen"), os.path.join(os.sep, "numba", "core", "")
_kinds: dict = {}


class Source(NamedTuple):
    """A place in a program: code object and byte offset; the line is worked out when asked.

    `derived`: reached through a rule of a transform, not by the user's call alone.
    """
    code: object
    offset: int
    derived: bool = False

    @property
    def line(self) -> int:
        """Line number, starting at 1."""
        for k, (start, *_rest) in enumerate(self.code.co_positions()):
            if k == self.offset // 2 and start is not None:
                return start
        return self.code.co_firstlineno

    @property
    def target(self) -> str:
        """The variable that the value computed here is stored in at once; "" if there is none."""
        return _stores(self.code).get(self.offset, "")

    @property
    def text(self) -> str:
        """The source line itself, stripped; empty when the source is not to be had."""
        return linecache.getline(self.code.co_filename, self.line).strip()

    def __str__(self):
        text = self.text
        name = self.code.co_name
        where = f"{os.path.basename(self.code.co_filename)}:{self.line} ({name})"
        return f"{where}: {text}" if text else where


@functools.lru_cache(maxsize=4096)
def _stores(code) -> dict[int, str]:
    """Offset of an instruction -> name that the next instruction stores its result under."""
    instructions = list(dis.get_instructions(code))
    return {a.offset: b.argval for a, b in zip(instructions, instructions[1:])
            if b.opname in ("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL") and b.argval.isidentifier()}


_USER, _INTERNAL, _TRANSFORM = range(3)
_TRANSFORMS = os.path.join(_PACKAGE, "transforms") + os.sep


def _kind(code) -> int:
    found = _kinds.get(code.co_filename)
    if found is None:
        name = code.co_filename
        internal = name.startswith(_BETWEEN) or _NUMBA in name
        rules = name.startswith(_TRANSFORMS) and not name.endswith("stage.py")
        found = _kinds[name] = _TRANSFORM if rules else _INTERNAL if internal else _USER
    return found


def is_internal(code) -> bool:
    """True when `code` belongs to tlgrad itself."""
    return _kind(code) != _USER


def user_source(depth: int = 1) -> Source | None:
    """The innermost caller outside tlgrad."""
    frame, derived = sys._getframe(depth), False
    while frame is not None:
        code = frame.f_code
        kind = _kind(code)
        if kind == _USER:
            return Source(code, frame.f_lasti, derived)
        derived |= kind == _TRANSFORM
        frame = frame.f_back
    return None


def check_callable(f, what: str):
    """ArgumentError unless `f` can be called."""
    if not callable(f):
        raise ArgumentError(f"{what} takes a callable, got {type(f).__name__}: {f!r:.60}")


def describe_callable(f) -> str:
    """How a message names a callable: ``loss (line 12 of train.py)``."""
    while hasattr(f, "__wrapped__") or hasattr(f, "func"):
        f = getattr(f, "__wrapped__", None) or f.func
    name = getattr(f, "__qualname__", type(f).__name__).replace("<locals>.", "")
    code = getattr(f, "__code__", None)
    if code is None:
        return name
    return f"{name} (line {code.co_firstlineno} of {os.path.basename(code.co_filename)})"
