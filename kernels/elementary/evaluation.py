"""`evaluate`: the functions on NumPy arrays, for eager calls and the reference backend.

The meaning is the body run on `expr.Numpy`, one NumPy operation at a time (`meaning`). Since the
LLVM rendering gives the same words (tests compare them), `evaluate` runs that instead: always once
a function is compiled, and from the first call for arrays worth the compilation.
"""
import collections
import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from ..expr import Numpy, Value
from ..expr.llvm import LLVM, link, module
from ..machine import add_symbols, compiling, host
from .registry import FUNCTIONS, render, unrounded

LANES = {True: 16, False: 8}            # with AVX-512 or without: two vectors of binary64 in flight
PAIR_LANES = 32                         # of bodies in pairs: two vectors of binary32
WORTH_COMPILING = 256                   # elements
SMALL_CALLS = 8                         # smaller calls, after which it is compiled too
NAMES = {np.dtype(name): name for name in ("float16", "float32", "float64")}
WORK = {"float16": np.dtype("float64"), "float32": np.dtype("float32"), "float64": np.dtype("float64")}
TYPES = {"float32": "f32", "float64": "f64", "float16": "f64"}
BYTES = {"f32": 4, "f64": 8}


def meaning(name, *arrays):
    """The function by its definition, elementwise, on arrays as in `evaluate` (any number of
    elements)."""
    dtype = np.result_type(*arrays)
    body = unrounded if dtype == np.float16 else render
    with np.errstate(all="ignore"):
        wide = [np.asarray(a).astype(np.float64 if dtype == np.float16 else dtype) for a in arrays]
        type = TYPES[dtype.name]
        result = body(name, *(Value(Numpy(), a, type) for a in np.broadcast_arrays(*wide)))
        return np.asarray(result.handle).astype(dtype)


@dataclass(frozen=True)
class Kernel:
    """The module `text` of ``run(inputs..., output, n)``, the tables and branches it names, and the loop it has.

    `run` hands ``blocks``, a loop over whole vectors, to the driver of its `shape`, another module: so a kernel is
    one loop with its constants in registers, and what surrounds it is compiled once.
    """

    text: str
    externals: dict
    shape: tuple                        # (type, arity, lanes)


def kernel(name, dtype, lanes=LANES[False], avx512=False):
    """The `Kernel` of an elementary function; `unrounded` for float16."""
    body = functools.partial(unrounded if dtype == "float16" else render, name)
    return loop_kernel(body, FUNCTIONS[name].arity, TYPES[dtype], LLVM(lanes, avx512=avx512, block="loop"))


def loop_kernel(body, arity, type, emitter):
    """`kernel` for any body of `arity` Values."""
    inputs = _inputs(arity)
    vector, element = emitter.type(type), emitter.scalar(type)

    def place(pointer):
        return emitter.emit(f"getelementptr inbounds {element}, ptr %{pointer}, i64 %at")
    loads = [emitter.emit(f"load {vector}, ptr {place(p)}, align {BYTES[type]}") for p in inputs]
    y = body(*(Value(emitter, x, type) for x in loads))
    emitter.lines.append(f"  store {vector} {y.handle}, ptr {place('out')}, align {BYTES[type]}")
    shape = type, arity, emitter.lanes
    pointers = [*inputs, "out"]
    emitter.declare(f"@{_driver_name(shape)}", "void", ["ptr"] * (arity + 2) + ["i64"])
    lines = [
        *_blocks(emitter, pointers), f"define void @run({_signature(pointers)}) nounwind {{",
        f"  tail call void @{_driver_name(shape)}(ptr @blocks, {_arguments(pointers)}, i64 %n)", "  ret void", "}"]
    return Kernel(module(lines, emitter), emitter.externals, shape)


def _inputs(arity):
    return [f"p{j}" for j in range(arity)]


def _signature(pointers):
    return ", ".join([*(f"ptr noalias %{p}" for p in pointers), "i64 %n"])


def _arguments(pointers, suffix=""):
    return ", ".join(f"ptr %{p}{suffix}" for p in pointers)


def _blocks(emitter, pointers):
    """The loop: `n` elements, a positive multiple of the lanes."""
    return [
        f'define internal void @blocks({_signature(pointers)}) nounwind "stackrealign" {{', "entry:",
        "  br label %loop",
        "loop:", f"  %at = phi i64 [ 0, %entry ], [ %next, %{emitter.block} ]", *emitter.lines,
        f"  %next = add i64 %at, {emitter.lanes}", "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %loop, label %end", "end:", "  ret void", "}"]


def _driver_name(shape):
    return "tlgrad.driver." + ".".join(map(str, shape))


def driver_text(shape):
    """The driver: whole vectors in place, the rest by way of the stack, by the loop that it is given."""
    type, arity, lanes = shape
    emitter, inputs = LLVM(lanes), _inputs(arity)
    pointers, element, vector = [*inputs, "out"], emitter.scalar(type), emitter.type(type)
    copy = "@llvm.memcpy.p0.p0.i64"
    emitter.declare(copy, "void", ["ptr", "ptr", "i64", "i1 immarg"])

    def each(names, text):
        return ["  " + text.format(p=p, element=element, vector=vector) for p in names]

    def call(suffix, count):
        return f"  call void %blocks({_arguments(pointers, suffix)}, i64 {count})"
    return module([
        f"define void @{_driver_name(shape)}(ptr %blocks, {_signature(pointers)}) nounwind {{", "entry:",
        *each(pointers, "%{p}.stack = alloca {vector}, align 64"),
        f"  %left = and i64 %n, {lanes - 1}", "  %whole = sub i64 %n, %left",
        "  %some = icmp sgt i64 %whole, 0", "  br i1 %some, label %most, label %rest", "most:",
        call("", "%whole"), "  br label %rest", "rest:",
        "  %more = icmp sgt i64 %left, 0", "  br i1 %more, label %copy, label %end", "copy:",
        f"  %bytes = mul i64 %left, {BYTES[type]}",
        *each(pointers, "%{p}.rest = getelementptr inbounds {element}, ptr %{p}, i64 %whole"),
        *each(inputs, "store {vector} " + emitter.const(1, type) + ", ptr %{p}.stack, align 64"),
        *each(inputs, f"call void {copy}(ptr %{{p}}.stack, ptr %{{p}}.rest, i64 %bytes, i1 false)"),
        call(".stack", lanes),
        f"  call void {copy}(ptr %out.rest, ptr %out.stack, i64 %bytes, i1 false)",
        "  br label %end", "end:", "  ret void", "}"], emitter)


def compiled(name, dtype):
    """The `kernel` for this machine, as a ctypes function; compiled once."""
    with compiling:
        return _compile(name, dtype)


def build(name, dtype):
    """The `kernel` for this machine, as a ctypes function."""
    return load(host_kernel(name, dtype))


def host_kernel(name, dtype):
    """The `kernel` for this machine."""
    avx512 = host().avx512
    pairs = avx512 and dtype == "float32" and FUNCTIONS[name].pairs
    return kernel(name, dtype, PAIR_LANES if pairs else LANES[avx512], avx512)


def load(made):
    """The function ``run(inputs..., output, n)`` of a `Kernel`, as a ctypes function."""
    prepare(made)
    types = [ctypes.c_void_p] * (made.shape[1] + 1) + [ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *types)(host().function(made.text, "run"))


def prepare(made):
    """Give what a `Kernel` names, and its driver, their addresses."""
    link(made.externals)
    _driver(made.shape)


@functools.cache
def _driver(shape):
    """The address of a driver, which its symbol has from now on."""
    name = _driver_name(shape)
    address = host().function(driver_text(shape), name)
    add_symbols({name: address})
    return address


_compile = functools.cache(build)
_COMPILED, _SMALL = {}, collections.Counter()


def evaluate(name, *arrays):
    """The elementary function `name` elementwise on float16, float32 or float64 arrays of one
    dtype.

    The arrays have one shape, or are 0-d (scalars broadcast); strides are free. float16 results
    are the binary64 value rounded once. No warning is given; NaN gives NaN. Raises `KeyError` for
    an unknown name, `TypeError` for a wrong count or dtype, `ValueError` for shapes that differ.

    >>> evaluate("exp", np.float32([0.0, 1.0]))
    array([1.       , 2.7182817], dtype=float32)
    """
    arrays = [np.asarray(a) for a in arrays]
    shape, dtype = _checked(name, arrays)
    work = WORK[dtype]
    out = np.empty(shape, work)
    function = _COMPILED.get((name, dtype)) or _worth_compiling(name, dtype, out.size)
    if function is None:
        return meaning(name, *(np.broadcast_to(a, shape) for a in arrays)).reshape(shape)
    operands = [_contiguous(a, shape, work) for a in arrays]
    function(*[a.ctypes.data for a in operands], out.ctypes.data, out.size)
    if dtype == "float16":
        with np.errstate(all="ignore"):
            return out.astype(np.float16)
    return out


def _contiguous(a, shape, dtype):
    return np.ascontiguousarray(a if a.shape == shape else np.broadcast_to(a, shape), dtype)


def _worth_compiling(name, dtype, size):
    """The compiled function if the array is large or small ones have come often, else None."""
    _SMALL[name, dtype] += 1
    if size < WORTH_COMPILING and _SMALL[name, dtype] <= SMALL_CALLS:
        return None
    return _COMPILED.setdefault((name, dtype), compiled(name, dtype))


def _checked(name, arrays):
    """(shape, dtype name) of the result."""
    arity = FUNCTIONS[name].arity
    if len(arrays) != arity:
        raise TypeError(f"{name}: expected {arity} argument{'s' * (arity > 1)}, got {len(arrays)}")
    dtypes = {a.dtype for a in arrays}
    if len(dtypes) > 1 or not dtypes <= NAMES.keys():
        raise TypeError(f"{name}: expected float16, float32 or float64 arrays of one dtype, got "
                        f"{', '.join(sorted(map(str, dtypes)))}; convert them first")
    shapes = {a.shape for a in arrays if a.ndim}
    if len(shapes) > 1:
        raise ValueError(f"{name}: expected equal shapes, got {' and '.join(map(str, shapes))}; "
                         "broadcast them first")
    return shapes.pop() if shapes else (), NAMES[dtypes.pop()]
