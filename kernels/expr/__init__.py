"""The expression class: a numerical body is written once and rendered for every backend.

A body is a plain Python function of `Value`s. A `Value` wraps an *emitter*, a handle that only the
emitter understands, and a type: ``f64 f32 i64 i32 b``. Every operator asks the emitter for one
operation. There are three emitters here: `numpy_meaning.Numpy` (handles are ndarrays: the
definition of what a body means), `llvm.LLVM` (handles are LLVM IR operands, scalar or vector) and
`ctext.CText` (C++ and CUDA text). All of them use IEEE 754 operations rounded to nearest even, and
a fused multiply-add only where the body says `fma`; so they agree word for word, NaN payloads
aside.

An emitter is any object with these methods:

=================================  ============================================================
``const(number, type)``            handle of a constant (integers are taken modulo 2**width)
``op(name, type, *values)``        handle of one operation; `type` is that of the result.
                                   Arithmetic: ``add sub mul div neg sqrt rint fma``; bits:
                                   ``and or xor not shl lshr ashr``; comparisons, result ``b``
                                   (``ne`` is true for NaN, the others false): ``lt le gt ge eq
                                   ne ult``; the rest: ``select bitcast fpext fptrunc sitofp
                                   fptosi sext zext trunc``;
                                   ``exponent``: ``sitofp`` of an ``i64`` without its lower 52 bits
``lookup(tables, index)``          list of the handles of ``table[index]`` for tables of one
                                   length; an ``i64`` `index` counts modulo a length that is a
                                   power of two, and is in range of any other; an ``i32`` one
                                   gives binary32 numbers of tables of 32
``rare(mask, slow, values)``       `values` where `mask` is false, and those that ``slow()``
                                   returns where it is true; ``slow`` need not be run if no
                                   lane has the mask; a branch that is almost never taken
``vote(mask, some, values)``       the same, where the branch is often taken
``permutes``                       whether a table of 32 binary32 numbers is as cheap as a sum
=================================  ============================================================
"""
from .numpy_meaning import Numpy, fma
from .value import (Table, Value, copysign, fma as fma_value, horner, horner_halves, maximum, minimum,
                    rare, select, sqrt, to_odd, vote)

__all__ = ["Numpy", "Table", "Value", "copysign", "fma", "fma_value", "horner", "horner_halves", "maximum",
           "minimum", "rare", "select", "sqrt", "to_odd", "vote"]
