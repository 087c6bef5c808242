"""Which primitives no kernel does, by their rows of `opspec`."""
from __future__ import annotations

import numpy as np
from opspec import Calls, Scalar, Words, all_rows

import tlgrad as tl
from tlgrad.backends.numba_cpu.plan import Plan
from tlgrad.core import dtypes
from tlgrad.core.primitive import PRIMITIVES
from tlgrad.errors import TlgradError
from tlgrad.ops.convert import convert

#: dtypes of operands of elementwise primitives
KINDS = ("bool", "int32", "uint64", "float16", "float32", "float64", "complex128")


def host_steps(f, args) -> set[str] | None:
    """Primitives that the compiled program of f runs by themselves; None where f does not take these."""
    try:
        jaxpr = tl.make_jaxpr(f)(*args).jaxpr
    except (TlgradError, TypeError):
        return None
    eqns = [run[0].eqns[0] for work, run in Plan(jaxpr).work if work == "primitive"]
    return {e.prim.name for e in eqns if e.ins}


def calls_of(name, row):
    """(dtype or "", function, operands) of each example of a row."""
    prim = PRIMITIVES[name]
    if isinstance(row, Calls):
        for f, args, *_ in row.calls:
            yield "", f, [tl.tensor(a) for a in args]
    elif isinstance(row, Words):
        for args, params, *_ in row.calls:
            operands = [tl.tensor(a) for a in args]
            yield "", lambda *xs, p=params: prim.bind(*xs, **p), operands
    if isinstance(row, Scalar) or isinstance(row, Words) and prim.kind == "elementwise":
        params = row.params if isinstance(row, Scalar) else row.calls[0][1]
        arity = len(row.domain) if isinstance(row, Scalar) else len(row.calls[0][0])
        for kind in KINDS:
            x = convert(tl.tensor(np.linspace(1, 2, 5)), dtypes.as_dtype(kind))
            first = [tl.tensor(np.arange(5) > 2)] if name == "select" else []
            yield kind, lambda *xs: prim.bind(*xs, **params), [*first, *[x] * (arity - len(first))]


def found() -> dict[str, set[str]]:
    """For each primitive with host steps, the dtypes of its elementwise operands ("": other examples)."""
    out: dict[str, set[str]] = {}
    for name, row in all_rows().items():
        for kind, f, operands in calls_of(name, row):
            steps = host_steps(f, operands)
            if steps:
                out.setdefault(name, set()).add(kind)
    return out
