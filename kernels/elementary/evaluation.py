"""`evaluate`: the functions on NumPy arrays, for eager calls and the reference backend.

The meaning is the body run on `expr.Numpy`, one NumPy operation at a time (`meaning`). Since the
LLVM rendering gives the same words (tests compare them), `evaluate` runs that instead: always once
a function is compiled, and from the first call for arrays worth the compilation.
"""
import collections
import ctypes
import functools

import numpy as np

from ..expr import Numpy, Value
from ..expr.llvm import LLVM, link, module
from .registry import FUNCTIONS, render, unrounded

LANES = 8
WORTH_COMPILING = 256                   # elements
SMALL_CALLS = 8                         # smaller calls, after which it is compiled too
FLOATS = (np.dtype("float16"), np.dtype("float32"), np.dtype("float64"))
TYPES = {"float32": "f32", "float64": "f64", "float16": "f64"}


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


def kernel_text(name, dtype, lanes=LANES, avx512=False):
    """(module text, tables): ``run(inputs..., output, blocks)``, `lanes` elements per block."""
    type = TYPES[dtype]
    emitter = LLVM(lanes, avx512=avx512, block="loop")
    body = unrounded if dtype == "float16" else render
    arity = FUNCTIONS[name].arity
    vector, element = emitter.type(type), {"f32": "float", "f64": "double"}[type]
    pointers = [*(f"%p{j}" for j in range(arity)), "%out"]
    size = 4 if type == "f32" else 8

    def address(pointer):
        return emitter.emit(f"getelementptr inbounds {element}, ptr {pointer}, i64 %at")
    loads = [emitter.emit(f"load {vector}, ptr {address(p)}, align {size}") for p in pointers[:-1]]
    y = body(name, *(Value(emitter, x, type) for x in loads))
    target = address("%out")
    signature = ", ".join([*(f"ptr noalias {p}" for p in pointers), "i64 %n"])
    text = [f"define void @run({signature}) nounwind {{", "entry:", "  br label %loop", "loop:",
            f"  %i = phi i64 [ 0, %entry ], [ %next, %{emitter.block} ]",
            f"  %at = mul i64 %i, {lanes}",
            *emitter.lines, f"  store {vector} {y.handle}, ptr {target}, align {size}",
            "  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n",
            "  br i1 %more, label %loop, label %end", "end:", "  ret void", "}"]
    return module(text, emitter), emitter.tables


@functools.cache
def _machine():
    import llvmlite.binding as binding
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu=binding.get_host_cpu_name(),
                                           features=features.flatten(), opt=2, jit=True)
    return binding, machine, features.get("avx512f", False)


@functools.cache
def compiled(name, dtype):
    """The kernel of `kernel_text` for this machine, as a ctypes function; compiled once."""
    binding, machine, avx512 = _machine()
    text, tables = kernel_text(name, dtype, LANES, avx512)
    link(tables)
    parsed = binding.parse_assembly(text)
    parsed.verify()
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    types = [ctypes.c_void_p] * (FUNCTIONS[name].arity + 1) + [ctypes.c_int64]
    function = ctypes.CFUNCTYPE(None, *types)(engine.get_function_address("run"))
    function.engine = engine                     # keeps the code alive
    return function


_READY, _SMALL = set(), collections.Counter()


def _run(name, dtype, arrays, out):
    """Whole blocks in place; the last elements through a padded block."""
    function, n = compiled(name, dtype), out.size
    _READY.add((name, dtype))
    blocks, rest = divmod(n, LANES)
    if blocks:
        function(*(a.ctypes.data for a in arrays), out.ctypes.data, blocks)
    if rest:
        block = np.ones((len(arrays) + 1, LANES), out.dtype)
        for row, a in zip(block, arrays):
            row[:rest] = a.reshape(-1)[n - rest:]
        first = block.ctypes.data
        function(*range(first, first + block.nbytes, block.strides[0]), 1)
        out.reshape(-1)[n - rest:] = block[-1, :rest]


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
    shape = _checked(name, arrays)
    dtype = arrays[0].dtype
    out = np.empty(shape, dtype)
    if out.size < WORTH_COMPILING and not _ready(name, dtype.name):
        return meaning(name, *(np.broadcast_to(a, shape) for a in arrays)).reshape(shape)
    if dtype == np.float16:
        out = np.empty(shape, np.float64)
    work = out.dtype
    _run(name, dtype.name, [_contiguous(a, shape, work) for a in arrays], out)
    if dtype == np.float16:
        with np.errstate(all="ignore"):
            return out.astype(np.float16)
    return out


def _contiguous(a, shape, dtype):
    if a.shape != shape:
        a = np.broadcast_to(a, shape)
    return np.ascontiguousarray(a, dtype)


def _ready(name, dtype):
    """Whether a small call should use the compiled function."""
    if (name, dtype) not in _READY:
        _SMALL[name, dtype] += 1
        return _SMALL[name, dtype] > SMALL_CALLS
    return True


def _checked(name, arrays):
    arity = FUNCTIONS[name].arity
    if len(arrays) != arity:
        raise TypeError(f"{name}: expected {arity} argument{'s' * (arity > 1)}, got {len(arrays)}")
    if arity == 1 and arrays[0].dtype in FLOATS:
        return arrays[0].shape
    dtypes = {a.dtype for a in arrays}
    if len(dtypes) > 1 or not dtypes <= set(FLOATS):
        raise TypeError(f"{name}: expected float16, float32 or float64 arrays of one dtype, got "
                        f"{', '.join(map(str, sorted(map(str, dtypes))))}; convert them first")
    shapes = {a.shape for a in arrays if a.ndim}
    if len(shapes) > 1:
        raise ValueError(f"{name}: expected equal shapes, got {' and '.join(map(str, shapes))}; "
                         "broadcast them first")
    return shapes.pop() if shapes else ()
