"""Which kernels there are, by name and layout; each is compiled when first asked for."""
from functools import lru_cache
from importlib import import_module

from tlgrad.kernels.softfloat import chains, drivers, folds, narrow, quad, quad_fma, wide
from tlgrad.kernels.softfloat.engine import LIBRARY
from tlgrad.kernels.softfloat.narrow import Narrow
from tlgrad.kernels.softfloat.wide import Layout

BINARY128 = Layout(15, 112, 16383, 128)
#: name -> (body, operands)
ARITHMETIC = {
    "add": (wide.add, 2), "sub": (wide.sub, 2), "mul": (wide.mul, 2), "div": (wide.div, 2),
    "sqrt": (wide.sqrt, 1), "fma": (wide.fma, 3), "floor": (wide.round_to_integral("floor"), 1),
    "ceil": (wide.round_to_integral("ceil"), 1), "trunc": (wide.round_to_integral("trunc"), 1),
    "round": (wide.round_to_integral("rint"), 1),
}
VECTOR = {"add": quad.add, "sub": quad.sub, "mul": quad.mul, "div": quad.div, "sqrt": quad.sqrt,
          "fma": quad_fma.fma}
#: elementary functions of binary128 with a fixed-point kernel -> the module that has it
FUNCTIONS = {"exp": "functions", "log": "functions", "sin": "functions", "cos": "functions",
             "tanh": "hyperbolic", "logistic": "hyperbolic", "sinh": "hyperbolic",
             "cosh": "hyperbolic", "expm1": "hyperbolic", "exp2": "powers", "log2": "powers",
             "log10": "powers", "pow": "powers", "erf": "errorfunction", "tan": "angles", "atan": "angles",
             "log1p": "logarithms", "softplus": "logarithms", "atanh": "logarithms", "hypot": "roots",
             "asinh": "roots", "acosh": "roots", "asin": "roots", "acos": "roots", "atan2": "angles"}
#: those of two operands
TWO = ("pow", "hypot", "atan2")


def lanes(name):
    """Numbers side by side in a vector body on this machine; 1 where vectors do not pay.

    Division and the root wait on long chains, and run two vectors at once.
    """
    single = 8 if LIBRARY.has("avx512dq") else 4 if LIBRARY.has("avx2") else 1
    return 2 * single if single > 1 and name in ("div", "sqrt") else single


@lru_cache(maxsize=None)
def arithmetic(name, layout):
    """The kernel ``(count, *operands, out)`` of an operation on a layout."""
    body, operands = ARITHMETIC[name]
    width = lanes(name)
    if layout == BINARY128 and name in VECTOR and width > 1:
        fast = quad.mul_ifma if name == "mul" and LIBRARY.has("avx512ifma") else VECTOR[name]
        text = drivers.vector(fast, body, layout, operands, width)
    else:
        text = drivers.elementwise(body, layout, [layout.type] * operands, layout.type)
    return LIBRARY.function(text, 1, operands + 1)


#: operations that a chain may have
CHAINED = {*VECTOR, *chains.SIGNS}


@lru_cache(maxsize=None)
def chain(layout, steps, uniform, outs):
    """The kernel ``(count, *inputs, *outs)`` of a chain of operations (see `chains`) on a layout."""
    scalar = {name: body for name, (body, _) in (*ARITHMETIC.items(), *chains.SIGNS.items())}
    vector = {name: body for name, (_, body) in chains.SIGNS.items()} | VECTOR
    if LIBRARY.has("avx512ifma"):
        vector["mul"] = quad.mul_ifma
    packed = layout == BINARY128 and all(step[0] in vector for step in steps)
    width = lanes("add") if packed else 1
    text = chains.chain(layout, steps, uniform, outs, width, scalar, vector)
    return LIBRARY.function(text, 1, len(uniform) + len(outs))


@lru_cache(maxsize=None)
def small(name, layout: Narrow):
    """The kernel ``(count, *operands, out)`` of an operation of `narrow` on a small format."""
    _, operands = narrow.OPERATIONS[name]
    body, type = narrow.body(layout, name)
    width = 2 * lanes("add") * max(1, 64 // int(type[1:]))
    text = drivers.narrow(body, type, layout.bits, operands, width)
    return LIBRARY.function(text, 1, operands + 1)


@lru_cache(maxsize=None)
def function(name):
    """The kernel ``(count, *words, out, flags)`` of an elementary function of binary128."""
    module = import_module("tlgrad.kernels.softfloat." + FUNCTIONS[name])   # their constants take mpmath
    inputs = 2 if name in TWO else 1
    return LIBRARY.function(drivers.flagged(module.FUNCTIONS[name], inputs), 1, inputs + 2)


@lru_cache(maxsize=None)
def conversion(source, target):
    """The kernel ``(count, words, out)`` between two layouts, or a layout and "i64" or "u64"."""
    if isinstance(source, str):
        body, types = wide.from_integer(target, source == "i64"), ("i64", target.type)
    elif isinstance(target, str):
        body, types = wide.to_integer(source, target == "i64"), (source.type, "i64")
    else:
        body, types = wide.convert(source, target), (source.type, target.type)
    return LIBRARY.function(drivers.elementwise(body, None, [types[0]], types[1]), 1, 2)


@lru_cache(maxsize=None)
def fold(layout):
    """The kernel ``(terms, lanes, words, accumulators)`` of ordered sums along the first axis."""
    width = lanes("add") if layout == BINARY128 else 1
    return LIBRARY.function(folds.fold(layout, width), 2, 2)


@lru_cache(maxsize=None)
def contraction(layout, fused):
    """The kernel ``(terms, rows, columns, a, b, accumulators)`` of ordered sums of products."""
    width = lanes("mul") if layout == BINARY128 else 1
    multiply = quad.mul_ifma if LIBRARY.has("avx512ifma") else quad.mul
    return LIBRARY.function(folds.contraction(layout, width, fused, multiply), 3, 3)
