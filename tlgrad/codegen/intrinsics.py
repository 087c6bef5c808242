"""What the compiler can express of each intrinsic, and what it costs."""
from __future__ import annotations

from tlgrad.core.dtypes import DType
from tlgrad.kernels.elementary import FUNCTIONS

#: dtype name -> kernel type
TYPES = {"bool": "b1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
         "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32",
         "float64": "f64"}
FLOATS = _FLOATS = ("f16", "f32", "f64")
_WHOLE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_ALL = ("b1", *_WHOLE, *_FLOATS)

_OPERANDS = {
    **dict.fromkeys(["add", "mul", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "select", "conj"],
                    _ALL),
    "abs": _ALL, **dict.fromkeys(["sub", "neg", "sign", "real", "integer_pow", "within"], (*_WHOLE, *_FLOATS)),
    **dict.fromkeys(["div", "sqrt", "floor", "ceil", "trunc", "round", "copysign", "direction",
                     "nextafter"], _FLOATS),
    **dict.fromkeys(["is_finite", "is_nan"], _ALL),
    "fma": ("f32", "f64"), **dict.fromkeys(["floor_divide", "remainder"], (*_WHOLE, *_FLOATS)),
    **dict.fromkeys(["and", "or", "xor", "not"], ("b1", *_WHOLE)),
    **dict.fromkeys(["shift_left", "shift_right"], _WHOLE)}


#: operations that some operands make an error
FAULTY = ("floor_divide", "remainder", "within")


def type_of(dtype: DType) -> str | None:
    """The kernel type of a dtype, or None when kernels cannot hold it."""
    return TYPES.get(dtype.name)


def expressible(name: str, operands: list[str | None], result: str | None, params: dict) -> bool:
    """True when a kernel can compute this operation with the words of its NumPy meaning."""
    if result is None or None in operands:
        return False
    if name == "convert":
        return True
    if name == "bitcast":
        return "b1" not in (operands[0], result) and "f16" not in (operands[0], result)
    if name == "integer_pow" and params["n"] < 0:
        return operands[0] in _FLOATS
    if name in FUNCTIONS:
        return operands[0] in _FLOATS and len(operands) == FUNCTIONS[name].arity
    return operands[-1] in _OPERANDS.get(name, ())


#: operations that cost more than one instruction
_COSTS = {"nextafter": 12, "div": 4, "sqrt": 5, "sign": 4, "max": 3, "min": 3, "direction": 10, "integer_pow": 3,
          "convert": 2, "sweeps": 1000, "while": 1000, "cond": 50, "map": 100,
          "floor_divide": 30, "remainder": 30}


def cost(name: str) -> int:
    """About how many instructions an operation becomes."""
    return 40 if name in FUNCTIONS else _COSTS.get(name, 1)
