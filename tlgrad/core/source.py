"""Where in the user's code something happened."""
from __future__ import annotations

import linecache
import os
import sys
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KERNELS = os.path.join(os.path.dirname(_PACKAGE.rstrip(os.sep)), "kernels") + os.sep
_internal_code: dict = {}


class Source(NamedTuple):
    """A place in a program: code object and byte offset; the line is worked out when asked."""
    code: object
    offset: int

    @property
    def line(self) -> int:
        """Line number, starting at 1."""
        for k, (start, *_rest) in enumerate(self.code.co_positions()):
            if k == self.offset // 2 and start is not None:
                return start
        return self.code.co_firstlineno

    @property
    def text(self) -> str:
        """The source line itself, stripped; empty when the source is not to be had."""
        return linecache.getline(self.code.co_filename, self.line).strip()

    def __str__(self):
        text = self.text
        name = self.code.co_name
        where = f"{os.path.basename(self.code.co_filename)}:{self.line} ({name})"
        return f"{where}: {text}" if text else where


def is_internal(code) -> bool:
    """True when `code` belongs to tlgrad itself."""
    found = _internal_code.get(code.co_filename)
    if found is None:
        name = code.co_filename
        found = _internal_code[name] = name.startswith((_PACKAGE, _KERNELS)) or name.startswith("<frozen")
    return found


def user_source(depth: int = 1) -> Source | None:
    """The innermost caller outside tlgrad."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code):
            return Source(code, frame.f_lasti)
        frame = frame.f_back
    return None


def describe_callable(f) -> str:
    """How a message names a callable: ``loss (line 12 of train.py)``."""
    while hasattr(f, "__wrapped__") or hasattr(f, "func"):
        f = getattr(f, "__wrapped__", None) or f.func
    name = getattr(f, "__qualname__", type(f).__name__).replace("<locals>.", "")
    code = getattr(f, "__code__", None)
    if code is None:
        return name
    return f"{name} (line {code.co_firstlineno} of {os.path.basename(code.co_filename)})"
