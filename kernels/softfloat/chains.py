"""Chains of operations on one layout as LLVM text: values stay in registers, in packed or scalar form.

A chain is a tuple of steps ``(operation, *operands)``. Operands are numbered: the inputs first, then the
result of each step. An input may be one word for all entries (uniform).
"""
from tlgrad.kernels.expr.value import select
from tlgrad.kernels.softfloat import drivers, quad
from tlgrad.kernels.softfloat.words import Words


def _signed(change):
    """Scalar and vector body of an operation on the sign: NaN becomes the canonical one."""
    def scalar(f, x):
        return select(x.constant(f.inf, f.type).ult(x & (f.sign - 1)), f.nan, change(x, f.sign))

    def vector(low, high):
        return low, change(high, quad.SIGN), ~(high & quad.MAGNITUDE).ult(quad.INF)
    return scalar, vector


#: operation -> (scalar body, vector body of binary128); arithmetic is in the catalogue
SIGNS = {"neg": _signed(lambda x, sign: x ^ sign), "abs": _signed(lambda x, sign: x & (sign - 1))}


def chain(layout, steps, uniform, outs, width, scalar, vector):
    """The module text of ``k(count, *inputs, *outs)``, `width` lanes at a time where it is above 1.

    `scalar` and `vector` are the bodies by operation; `uniform` tells which inputs are one word; `outs`
    are the numbers of the values to store.
    """
    pointers = [f"ptr %a{k}" for k in range(len(uniform))]
    results = ["%out" if k == 0 else f"%out{k}" for k in range(len(outs))]
    parameters = ", ".join(pointers + [f"ptr noalias {name}" for name in results])
    one = Words(block="entry" if width > 1 else "head")
    values = [drivers.load(one, f"%a{k}", layout.type, "0" if u else "%i") for k, u in enumerate(uniform)]
    for name, *operands in steps:
        values.append(scalar[name](layout, *(values[k] for k in operands)))
    for name, k in zip(results, outs):
        drivers.store(one, name, values[k])
    lines = "\n".join(one.lines)
    if width == 1:
        return drivers.module(one.declarations, drivers.LOOP.format(
            parameters=parameters, lines=lines, last=one.block))
    many = Words(width, block="head")
    flag = _vector(many, steps, uniform, zip(results, outs), vector)
    text = drivers.ONE.format(parameters=parameters, lines=lines) + drivers.GROUPS.format(
        parameters=parameters, arguments=parameters.replace(" noalias", ""), lanes=width,
        lines="\n".join(many.lines), flag=flag, last=many.block)
    return drivers.module({**one.declarations, **many.declarations}, text)


def _vector(emitter, steps, uniform, outs, bodies):
    """The vector lines of a chain; an i1: whether some lane met what a body does not cover."""
    values, special = [], None
    for k, same in enumerate(uniform):
        values.append(_everywhere(emitter, k) if same else list(drivers.load_group(emitter, f"%a{k}", "%i")))
    for name, *operands in steps:
        low, high, *mask = bodies[name](*(half for k in operands for half in values[k]))
        values.append([low, high])
        for one in mask:
            special = one if special is None else special | one
    for name, k in outs:
        drivers.store_group(emitter, name, "%i", *values[k])
    return "false" if special is None else emitter.any(special)


def _everywhere(emitter, k):
    """Input k, one word, in all lanes."""
    high = emitter.emit(f"getelementptr i64, ptr %a{k}, i64 1")
    return [drivers.splat(emitter, emitter.emit(f"load i64, ptr {p}, align 8")) for p in (f"%a{k}", high)]
