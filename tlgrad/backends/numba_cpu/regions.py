"""Operations with nested bodies as LLVM IR."""
from __future__ import annotations

from typing import Callable

#: operation name -> function of (body, op)
REGIONS: dict[str, Callable] = {}
