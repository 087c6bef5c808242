"""Kernel IR -> compiled kernel, once per text: in memory, on disk, or by the compiler."""
from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Callable

from tlgrad.backends.numba_cpu.nests import Lanes
from tlgrad.backends.numba_cpu.reductions import Columns, Rows
from tlgrad.backends.numba_cpu.tiles import Tiles
from tlgrad.codegen.intrinsics import cost
from tlgrad.codegen.ir import Kernel, Op, count_ops
from tlgrad.codegen.lowering import ended_by_lane, lane_bytes
from tlgrad.core import counters
from tlgrad.kernels.cache import disk
from tlgrad.kernels.elementary import FUNCTIONS
from tlgrad.kernels.expr.llvm import link
from tlgrad.kernels.machine import compiling, host


@dataclass(slots=True)
class Compiled:
    """Machine code: `address` of ``void k(i64 *slots, i64 lo, i64 hi)``."""

    name: str
    address: int
    text: str


#: instructions of a kernel whose folds are short: many vectors fit into the registers
SHORT_FOLD = 30
NESTS = {"lanes": Lanes, "rows": Rows, "columns": Columns}
_compiled: dict[str, Compiled] = {}
_loaded: dict[str, int] = {}


def unroll_of(kernel: Kernel, registers: int) -> int:
    """Independent vectors in flight: enough to hide latency, few enough not to spill.

    A fold needs many, one after the other being its whole body; a kept tape should stay in L1.
    """
    if kernel.nest == "rows" or one_lane(kernel):
        return 1
    loops = ended_by_lane(kernel)
    if loops:
        return min(unroll_of_loop(op, registers) for op in loops)
    folds = [op for op in kernel.ops if op.name in ("fold", "unfold", "unfold_within")]
    size = count_ops(kernel.ops, cost)
    if folds and size <= SHORT_FOLD:
        carried = max(len(op.outs) for op in folds)
        most = 9 if any("tape" in op.params for op in folds) else 14
        return max(1, min(most, registers - 4) // carried)
    if folds and size <= 8 * SHORT_FOLD:
        return registers // 8
    return 2 if count_ops(kernel.ops) <= 60 else 1


def one_lane(kernel: Kernel) -> bool:
    """True when no operand has an entry per lane: loops over single numbers want no vectors."""
    return any(op.regions for op in kernel.ops) and all(
        i.value.uniform or i.access == "table" for i in kernel.inputs)


def unroll_of_loop(op: Op, registers: int) -> int:
    """Vectors in flight in a loop that ends by lane: what a lane carries and counts stays in registers."""
    held = len([v for v in op.outs if v.type != "b1"])
    return max(1, min(4, (registers - 4) // held))


def shape_of(kernel: Kernel, machine) -> tuple[int, int]:
    """(lanes of a vector value, vectors in flight).

    A body of an elementary function is long, and the window of the processor does not reach from one body to
    the next: so its vectors advance together, operation by operation, as one value. With AVX-512 a body works
    on four registers in a chain of bodies (measured 1.2x), on two registers of binary64 alone, which compiles
    faster.
    """
    width = 16 if one_lane(kernel) else machine.vector_bytes
    lanes = max(width // max(lane_bytes(kernel), 4), 2)
    simple = kernel.nest == "lanes" and not any(op.regions for op in kernel.ops)
    bodies = sum(op.name in FUNCTIONS for op in kernel.ops)
    if machine.avx512 and simple and bodies:
        return (32 if bodies > 1 else 2 * lanes), 1
    return lanes, unroll_of(kernel, 32 if machine.avx512 else 16)


def llvm_text(kernel: Kernel, name: str, machine) -> tuple[str, dict]:
    """The module text of a kernel for a machine, and the external symbols to link."""
    lanes, unroll = shape_of(kernel, machine)
    make = Tiles if ended_by_lane(kernel) else NESTS[kernel.nest]
    nest = make(kernel, lanes, unroll, machine.avx512)
    text = nest.function(name)
    return text, nest.e.externals


def compile_kernel(kernel: Kernel, origin: counters.Origin | None = None, number: int = 0) -> Compiled:
    """The compiled form of a kernel; equal texts are compiled once.  `number` is its place among the
    kernels of a program that was traced from `origin`."""
    text = kernel.text()
    found = _compiled.get(text)
    if found is None:
        found = _compile(kernel, text, origin, number)
    else:
        counters.add("memory_hits")
    if origin is not None:
        origin.texts[number] = text
    return found


def _compile(kernel, text, origin, number) -> Compiled:
    with compiling:
        if text not in _compiled:
            name = "k" + hashlib.sha256(text.encode()).hexdigest()[:24]
            module, externals = llvm_text(kernel, name, host())
            address = build(module, name, externals, lambda: counters.count_compile(origin, number, text))
            _compiled[text] = Compiled(name, address, text)
        return _compiled[text]


def build(module: str, name: str, externals=(), count: Callable | None = None) -> int:
    """Compile and load a module, or load it from disk; the address of `name`.  `count` is told of a
    compilation; without it, the module is one that all programs share.

    Machine code stays loaded for the life of the process, so clearing caches frees no kernel
    that a program still runs.
    """
    machine = host()
    with compiling:
        key = disk.key(machine.key, module)
        if key not in _loaded:
            if externals:
                link(externals)
            code = disk.read(key)
            if code is None:
                code = machine.compile(module)
                (count or functools.partial(counters.count_library, name))()
                disk.write(key, code)
            else:
                counters.add("disk_hits")
            _loaded[key] = machine.load(code, name)
        return _loaded[key]


def clear():
    """Forget compiled kernels in memory; machine code in use stays."""
    with compiling:
        _compiled.clear()
