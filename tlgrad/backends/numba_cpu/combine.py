"""How reductions start and continue, by combination."""
from __future__ import annotations

from tlgrad.backends.numba_cpu.emitter import FLOATS, SIGNED
from tlgrad.backends.numba_cpu.scalars import SCALARS
from tlgrad.codegen.ir import SIZES


def identity(e, mode: str, type: str) -> str:
    """The register that a reduction starts from: +0, 1, or the lowest or highest number."""
    return e.const(start_number(mode, type), type)


def start_number(mode: str, type: str):
    """The number that a reduction starts from."""
    if mode in ("max", "min"):
        return _extreme(mode, type)
    return {"add": 0, "mul": 1, "and": -1, "or": 0}[mode]


def neutral(mode: str, type: str):
    """The number that changes no accumulator: -0 for float sums."""
    return -0.0 if mode == "add" and type in FLOATS else start_number(mode, type)


def _extreme(mode, type):
    if type in FLOATS:
        return float("-inf") if mode == "max" else float("inf")
    bits = SIZES[type] * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type in SIGNED else (0, (1 << bits) - 1)
    return low if mode == "max" else high


def accumulate(e, mode: str, type: str, acc: str, term: str) -> str:
    """acc with one more term; of equal extremes the earlier stays."""
    operands = [term, acc] if mode == "max" else [acc, term]
    return SCALARS[mode](e, type, operands, type, {})
