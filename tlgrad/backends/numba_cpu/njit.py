"""The njit engine: a kernel as Python source compiled by `numba.njit`, with the words of the direct
engine."""
from __future__ import annotations

import re

import numpy as np

from tlgrad.codegen.ir import Kernel
from tlgrad.codegen.lowering import Lowered
from tlgrad.codegen.python_text import NAMES, python_text
from tlgrad.errors import UnsupportedError
from tlgrad.kernels.elementary import FUNCTIONS
from tlgrad.kernels.machine import host
from tlgrad.kernels.numba.text import PARTS, elementary_function, intrinsics, modulo


def to_numba(kernel: Kernel, name: str = "kernel", numbers=None):
    """The kernel as an njit function of (inputs..., outputs..., numbers..., sizes...).

    numbers: when given, they are constants of the function instead of arguments; the compiler then knows
             them, and 2 * x becomes x + x.

    Arrays of 16-bit floats are passed as uint16.  The source is in the attribute `source`; the function
    can be called from other njit code.  Raises UnsupportedError for 16-bit floats on a CPU that does not
    convert them.
    """
    import numba
    if "f16" in kernel.text() and not host().has_f16:
        raise UnsupportedError("this CPU does not convert float16, so numba.njit cannot; convert to float32 first")
    source = python_text(kernel, name, numbers is not None)
    scope = {"np": np, **intrinsics(), **{f"number{k}": x for k, x in enumerate(numbers or ())}}
    for found, type in set(re.findall(r"\b([a-z0-9_]+)_(f16|f32|f64)\(", source)):
        if found in FUNCTIONS:
            scope[f"{found}_{type}"] = elementary_function(found, type, FUNCTIONS[found].arity)
        elif found in ("remainder", "floor_divide"):
            scope |= modulo(type)
    scope |= {part: make() for part, make in PARTS.items() if f"{part}(" in source}
    exec(compile(source, f"<tlgrad {name}>", "exec"), scope)
    function = numba.njit(scope[name], error_model="numpy")
    function.source = source
    return function


def numbers_of(lowered: Lowered) -> list:
    """The numbers of a launch as typed scalars."""
    return [eval(NAMES[v.type], {"np": np})(lit.value.data.reshape(())[()])
            for lit, v in zip(lowered.literals, lowered.kernel.literals)]


def run_lowered(lowered: Lowered, arrays: dict) -> list[np.ndarray]:
    """Run a kernel by this engine on the arrays of its roots; its results."""
    function = to_numba(lowered.kernel)
    inputs = []
    for operand, entry in zip(lowered.inputs, lowered.kernel.inputs):
        root = np.ascontiguousarray(arrays[operand.root]).reshape(-1)
        view = operand.view
        if entry.access == "table":
            inputs.append(np.ascontiguousarray(_placed(root, view.offset, view.strides, view.shape)))
            continue
        if entry.access == "turns":
            array = np.ascontiguousarray(_placed(root, view.offset, view.strides, view.shape))
            inputs.append(array.reshape(-1, *(() if entry.value.uniform else lowered.sizes)))
            continue
        if operand.copied:
            root = _placed(root, view.offset, view.strides, view.shape).reshape(-1)
        offset = 0 if operand.copied else view.offset
        inputs.append(_placed(root, offset, operand.strides or (0,) * len(lowered.sizes), lowered.sizes))
    outs = [np.empty(v.aval.shape, v.aval.dtype.storage) for v in lowered.outs]
    kept = {"lanes": (1,), "rows": lowered.sizes[:1], "columns": lowered.sizes[1:]}[lowered.kernel.nest]
    modes = {"store": lowered.sizes, "once": (1,), "turns": (-1, *lowered.sizes)}
    shaped = [o.reshape(modes.get(k.mode, kept))
              for o, k in zip(outs, lowered.kernel.outputs)]
    function(*map(_words, inputs), *map(_words, shaped), *numbers_of(lowered), *lowered.sizes)
    return outs


def _words(array):
    """An array as the engine takes it."""
    return array.view(np.uint16) if array.dtype == np.float16 else array


def _placed(flat, offset, strides, shape):
    """A view of flat storage; strides in entries."""
    if 0 in shape:
        return np.empty(shape, flat.dtype)
    steps = tuple(s * flat.itemsize for s in strides)
    return np.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, steps)
