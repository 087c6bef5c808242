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
from tlgrad.kernels.numba.text import elementary_function, intrinsics


def to_numba(kernel: Kernel, name: str = "kernel"):
    """The kernel as an njit function of (inputs..., outputs..., numbers..., sizes...).

    Its source is in the attribute `source`; it can be called from other njit code.  Raises
    UnsupportedError for 16-bit floats, which Numba does not compile.
    """
    import numba
    if any(i.access == "table" for i in kernel.inputs):
        raise UnsupportedError("this kernel reads tables, which the njit engine does not render yet")
    if "f16" in kernel.text():
        raise UnsupportedError("numba.njit does not compute in float16; convert to float32 first")
    source = python_text(kernel, name)
    scope = {"np": np, **intrinsics()}
    for found, type in set(re.findall(r"\b([a-z0-9_]+)_(f32|f64)\(", source)):
        if found in FUNCTIONS:
            scope[f"{found}_{type}"] = elementary_function(found, type, FUNCTIONS[found].arity)
    exec(compile(source, f"<tlgrad {name}>", "exec"), scope)
    function = numba.njit(scope[name], error_model="numpy")
    function.source = source
    return function


def run_lowered(lowered: Lowered, arrays: dict) -> list[np.ndarray]:
    """Run a kernel by this engine on the arrays of its roots; its results."""
    function = to_numba(lowered.kernel)
    inputs = []
    for operand, entry in zip(lowered.inputs, lowered.kernel.inputs):
        root = np.ascontiguousarray(arrays[operand.root]).reshape(-1)
        if operand.copied:
            root = _placed(root, operand.view.offset, operand.view.strides, operand.view.shape).reshape(-1)
        offset = 0 if operand.copied else operand.view.offset
        strides = operand.strides or (0,) * len(lowered.sizes)
        inputs.append(_placed(root, offset, strides, lowered.sizes))
    outs = [np.empty(v.aval.shape, v.aval.dtype.storage) for v in lowered.outs]
    kept = {"lanes": (1,), "rows": lowered.sizes[:1], "columns": lowered.sizes[1:]}[lowered.kernel.nest]
    shaped = [o.reshape({"store": lowered.sizes, "once": (1,)}.get(k.mode, kept))
              for o, k in zip(outs, lowered.kernel.outputs)]
    numbers = [_number(lit, v.type) for lit, v in zip(lowered.literals, lowered.kernel.literals)]
    function(*inputs, *shaped, *numbers, *lowered.sizes)
    return outs


def _number(literal, type):
    return eval(NAMES[type], {"np": np})(literal.value.data.reshape(())[()])


def _placed(flat, offset, strides, shape):
    """A view of flat storage; strides in entries."""
    if 0 in shape:
        return np.empty(shape, flat.dtype)
    steps = tuple(s * flat.itemsize for s in strides)
    return np.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, steps)
