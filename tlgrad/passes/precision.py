"""The same program in another precision: every float of a jaxpr becomes one of `dtype`.

    in_dtype : Jaxpr, DType -> Jaxpr          inputs, literals, results, and programs within it

Constants enter by value, exactly or with one rounding; the equations stay what they are. So a
program that was traced in float64 runs in binary128 without a change of its text.
"""
from __future__ import annotations

from tlgrad.core import dtypes
from tlgrad.core.aval import Aval, make_aval
from tlgrad.core.dtypes import DType
from tlgrad.core.jaxpr import Jaxpr, Literal, eval_jaxpr
from tlgrad.core.tensor import Tensor, convert_array, frozen
from tlgrad.errors import DTypeError
from tlgrad.transforms.stage import Constant, stage


def target_of(d: DType, dtype: DType) -> DType:
    """What `d` becomes: floats `dtype`, complex numbers its companion, others themselves."""
    if d.kind == "f":
        return dtype
    return dtypes.complex_dtype(dtype) if d.kind == "c" else d


def check_float(dtype) -> DType:
    """`dtype` as a DType; DTypeError unless it is a float."""
    found = dtypes.as_dtype(dtype)
    if found.kind != "f":
        raise DTypeError(f"dtype= of run takes a float format, got {found}; write for example "
                         "dtype=tl.float32 or dtype=tl.binary128")
    return found


def tensor_in(x: Tensor, dtype: DType) -> Tensor:
    """A tensor with its floats in `dtype`: exact, or rounded once."""
    want = target_of(x.dtype, dtype)
    if want is x.dtype:
        return x
    return Tensor(frozen(convert_array(x.data, want)), aval_in(x.aval, dtype), x.device)


def aval_in(aval: Aval, dtype: DType) -> Aval:
    """The aval of `tensor_in`."""
    want = target_of(aval.dtype, dtype)
    return aval if want is aval.dtype else make_aval(aval.shape, want)


def in_dtype(jaxpr: Jaxpr, dtype: DType) -> Jaxpr:
    """`jaxpr` with every float in `dtype`; kept with the jaxpr."""
    key = "in_dtype", dtype
    if key not in jaxpr.memo:
        swapped = Jaxpr(jaxpr.in_binders, [_swap(eqn, dtype) for eqn in jaxpr.eqns],
                        [_literal(a, dtype) for a in jaxpr.outs])
        made, consts = stage(lambda *values: eval_jaxpr(swapped, values),
                             [aval_in(a, dtype) for a in jaxpr.in_avals],
                             [v.name for v in jaxpr.in_binders])
        assert not consts, "a jaxpr is closed over nothing"
        jaxpr.memo[key] = made
    return jaxpr.memo[key]


def _swap(eqn, dtype):
    params = {k: _param(v, dtype) for k, v in eqn.params.items()}
    return type(eqn)(eqn.prim, [_literal(a, dtype) for a in eqn.ins], params, eqn.outs, eqn.source)


def _literal(atom, dtype):
    return Literal(tensor_in(atom.value, dtype)) if type(atom) is Literal else atom


def _param(value, dtype):
    if isinstance(value, DType):
        return target_of(value, dtype)
    if isinstance(value, Jaxpr):
        return in_dtype(value, dtype)
    if isinstance(value, Constant):
        return Constant(tensor_in(value.value, dtype))
    return tuple(_param(v, dtype) for v in value) if type(value) is tuple else value
