"""Chains of operations on small formats as LLVM text: between the operations a hardware number stands in.

Words are decoded once and encoded once; every operation of arithmetic is one of binary64, or of binary32
where all of a chain may be, and one rounding (`narrow.rounded`). Why that gives the words of one operation
after another: see `narrow`. A chain may have several small formats, binary64, and masks. Elementary functions
are those of binary64: where `REACH` units in its last place, more than their error, leave the rounding open,
the entry is flagged, for the caller to do again.
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels import elementary
from tlgrad.kernels.softfloat import drivers, narrow
from tlgrad.kernels.softfloat.chains import LOGIC, MASK
from tlgrad.kernels.softfloat.narrow import BINARY32, BINARY64, Narrow
from tlgrad.kernels.softfloat.ordering import CHOICES, PREDICATES, Carried
from tlgrad.kernels.softfloat.words import Words, resize, select, truth

#: elementary functions whose error in binary64 is below one unit in the last place everywhere, and that have
#: a meaning for all formats (gamma has none)
FUNCTIONS = {name: f.arity for name, f in elementary.FUNCTIONS.items()
             if f.ulps < 1 and not f.absolute and name != "gamma"}
REACH = 2


def flags(chain):
    """Whether a chain has a function, and so flags entries."""
    return any(name in FUNCTIONS for name, *_ in chain.steps)


def carrier(chain):
    """What stands in for all the numbers of a chain."""
    formats = [k for k in chain.every_kind if k != MASK]
    tasks = [(kind, name) for name, kind, *_ in chain.steps if kind != MASK] + [(f, "add") for f in formats]
    small = all(isinstance(f, Narrow) and narrow.within(f, BINARY32) for f in formats) and all(
        narrow.single(f, name) and not narrow.guarded(f, name) for f, name in tasks)
    return BINARY32 if small and not flags(chain) else BINARY64


def text(chain, lanes, avx512):
    """``(the module text of k(count, *inputs, *outs, flags), its externals)``, `lanes` entries at a time.

    Without functions there are no flags.
    """
    emitters = Words(lanes, avx512=avx512, block="head"), Words(1, avx512=avx512, block="last")
    emitters[1].names = emitters[0].names
    for emitter, index in zip(emitters, ("%i", "%j")):
        _write(chain, emitter, index, carrier(chain))
    results = ["%out" if k == 0 else f"%out{k}" for k in range(len(chain.outs))]
    parameters = ", ".join([f"ptr %a{k}" for k in range(len(chain.kinds))]
                           + [f"ptr noalias {name}" for name in results] + ["ptr noalias %flags"] * flags(chain))
    many, one = emitters
    module = drivers.module({**many.declarations, **one.declarations}, drivers.NARROW.format(
        parameters=parameters, lanes=lanes, lines="\n".join(many.lines), single="\n".join(one.lines),
        wide=many.block, one=one.block))
    return module, {**many.externals, **one.externals}


def _write(chain, e, index, c):
    kinds, values, undecided = chain.every_kind, [], None
    for k, (kind, same) in enumerate(zip(chain.kinds, chain.uniform)):
        values.append(_load(e, f"%a{k}", index, kind, same, c))
    for name, kind, *operands in chain.steps:
        given = [values[k] for k in operands]
        if name in FUNCTIONS:
            value = elementary.render(name, *given)
            close = _open(kind, value)
            undecided = close if undecided is None else undecided | close
            values.append(narrow.rounded(kind, value, c))
        else:
            values.append(_step(name, kind, kinds[operands[-1]], given, c))
    for number, k in enumerate(chain.outs):
        _store(e, "%out" if number == 0 else f"%out{number}", index, kinds[k], values[k], c)
    if undecided is not None:
        _store(e, "%flags", index, MASK, undecided, c)


def _open(f, value):
    """Whether numbers about a binary64 value round to different ones of the format; not for 0, infinity, NaN."""
    size = value.abs().bits()
    far = size.ult(BINARY64.inf) & ~size.ult(REACH)
    low, high = (select(far, size + step, size).as_float() for step in (-REACH, REACH))
    return far & narrow.encode(f, low, BINARY64).ne(narrow.encode(f, high, BINARY64))


def _step(name, kind, source, values, c):
    if kind == MASK and source == MASK:
        return LOGIC[name](*values)
    if name in PREDICATES or name in CHOICES:
        body, _ = (PREDICATES if name in PREDICATES else CHOICES)[name]
        return body(Carried(source), *values)
    value = values[0] if name == "convert" else narrow.OPERATIONS[name][0](*values)
    return value if kind == BINARY64 else narrow.rounded(kind, value, c)


def _bits(kind):
    return 8 if kind == MASK else kind.width if kind == BINARY64 else kind.bits


def _load(e, pointer, index, kind, same, c):
    bits = _bits(kind)
    if same:
        value = drivers.load(Words(lines=e.lines, names=e.names), pointer, f"i{bits}", "0")
        value = drivers.splat(e, value.handle, f"i{bits}") if e.lanes > 1 else Value(e, value.handle, value.type)
    else:
        place = e.emit(f"getelementptr i{bits}, ptr {pointer}, i64 {index}")
        value = Value(e, e.emit(f"load {e.type(f'i{bits}')}, ptr {place}, align {bits // 8}"), f"i{bits}")
    if kind == MASK:
        return value.ne(0)
    return value.as_float() if kind == BINARY64 else narrow.decode(kind, resize(value, c.type), c)


def _store(e, pointer, index, kind, value, c):
    bits = _bits(kind)
    word = (truth(value, "i8") if kind == MASK else value.bits() if kind == BINARY64
            else resize(narrow.encode(kind, value, c), f"i{bits}"))
    place = e.emit(f"getelementptr i{bits}, ptr {pointer}, i64 {index}")
    e.lines.append(f"  store {e.typed(word)}, ptr {place}, align {bits // 8}")
