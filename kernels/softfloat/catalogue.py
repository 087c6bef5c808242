"""Which kernels there are, by name and layout; each is compiled when first asked for."""
from functools import lru_cache
from importlib import import_module

from tlgrad.kernels.softfloat import (
    carried, carried_folds, chains, drivers, folds, narrow, products, quad, quad_fma, remainders, wide)
from tlgrad.kernels.softfloat.chains import Chain
from tlgrad.kernels.softfloat.engine import LIBRARY, address
from tlgrad.kernels.softfloat.narrow import Narrow
from tlgrad.kernels.softfloat.wide import Layout

BINARY128 = Layout(15, 112, 16383, 128)
#: name -> (body, operands)
ARITHMETIC = {
    "add": (wide.add, 2), "sub": (wide.sub, 2), "mul": (wide.mul, 2), "div": (wide.div, 2),
    "sqrt": (wide.sqrt, 1), "fma": (wide.fma, 3), "floor": (wide.round_to_integral("floor"), 1),
    "ceil": (wide.round_to_integral("ceil"), 1), "trunc": (wide.round_to_integral("trunc"), 1),
    "round": (wide.round_to_integral("rint"), 1), "rem": (remainders.rem, 2), "fmod": (remainders.fmod, 2),
    "remainder": (remainders.remainder, 2),
}
VECTOR = {"add": quad.add, "sub": quad.sub, "mul": quad.mul, "div": quad.div, "sqrt": quad.sqrt,
          "fma": quad_fma.fma}
#: elementary functions of binary128 with a fixed-point kernel -> the module that has it
FUNCTIONS = {"exp": "functions", "log": "functions", "sin": "functions", "cos": "functions",
             "tanh": "hyperbolic", "logistic": "hyperbolic", "sinh": "hyperbolic",
             "cosh": "hyperbolic", "expm1": "hyperbolic", "exp2": "powers", "log2": "powers",
             "log10": "powers", "pow": "powers", "erf": "errorfunction", "tan": "angles", "atan": "angles",
             "log1p": "logarithms", "softplus": "logarithms", "logaddexp": "logarithms", "atanh": "logarithms",
             "hypot": "roots", "rsqrt": "roots", "cbrt": "roots", "asinh": "roots", "acosh": "roots",
             "asin": "roots", "acos": "roots", "atan2": "angles"}
#: those of two operands
TWO = ("pow", "hypot", "atan2", "logaddexp")


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


@lru_cache(maxsize=None)
def chain(plan: Chain):
    """``(kernel, flags)`` of a chain on one layout: ``kernel(count, *inputs, *outs)``, and with `flags` one more
    array of bytes, not 0 where a function left an entry undecided."""
    layout = next(k for k in plan.every_kind if k not in (chains.MASK, chains.BINARY64))
    scalar = {name: body for name, (body, _) in ARITHMETIC.items()}
    vector = VECTOR | ({"mul": quad.mul_ifma} if LIBRARY.has("avx512ifma") else {})
    width = lanes("add") if layout == BINARY128 else 1
    calls = plan.called(vector if width > 1 else scalar)
    kernels = [function(name) if name in FUNCTIONS else arithmetic(name, layout) for name in calls]
    flags = any(name in FUNCTIONS for name in calls)
    text = chains.text(plan, width, scalar, vector, FUNCTIONS)
    pointers = len(plan.kinds) + len(plan.outs)
    made = LIBRARY.function(text, 1, pointers + len(kernels) + flags)
    if not kernels:
        return made, False
    called = [address(k) for k in kernels]
    return lambda count, *places: made(count, *places[:pointers], *called, *places[pointers:]), flags


@lru_cache(maxsize=None)
def small_chain(plan: Chain):
    """``(kernel, flags)`` of a chain of small formats, as `chain`."""
    width = 2 * lanes("add") * (2 if carried.carrier(plan) is narrow.BINARY32 else 1)
    text, externals = carried.text(plan, width, LIBRARY.has("avx512dq"))
    flags = carried.flags(plan)
    return LIBRARY.function(text, 1, len(plan.kinds) + len(plan.outs) + flags, externals), flags


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
def small_fold(layout: Narrow, kind):
    """The kernel ``(terms, rows, columns, a, b, accumulators)`` of `carried_folds` on binary64 arrays."""
    return LIBRARY.function(carried_folds.fold(layout, kind), 3, 3)


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


def has_products():
    """Whether `products` has kernels for this machine."""
    return LIBRARY.has("avx512ifma") and lanes("mul") == products.LANES


@lru_cache(maxsize=None)
def extremes():
    """The kernel ``(*counts, *arrays, found)`` of the least and the largest exponent of three arrays each."""
    return LIBRARY.function(products.extremes(), 3, 4)


@lru_cache(maxsize=None)
def contraction_within():
    """The kernel ``(terms, rows, columns, a, b, accumulators, panel)`` of numbers that are `products.within`."""
    return LIBRARY.function(products.contraction(), 3, 4)
