"""Operations that a lane may be unable to do, as LLVM IR: they note it and go on with a safe operand.

A noted lane makes the plan run the whole program through its primitives, which raise the error.
Only lanes that are at work (`body.active`) are noted.
"""
from __future__ import annotations

from typing import Callable

from tlgrad.backends.numba_cpu.emitter import MEMORY, REGISTER
from tlgrad.codegen.ir import Op, SIZES

#: operation name -> function of (body, op)
FAULTS: dict[str, Callable] = {}


def fault(name: str):
    """Register the text of an operation."""
    def keep(f):
        FAULTS[name] = f
        return f
    return keep


def note(body, masks):
    """Set the bytes of the lanes of these masks that are at work."""
    e = body.e
    vector = f"<{e.lanes} x i8>"
    for u, (place, mask) in enumerate(zip(body.faults, masks)):
        if body.active is not None:
            mask = e.two("and", "b1", mask, body.active[u])
        old = e.emit(f"load {vector}, ptr {place}, align 1")
        bytes_ = e.emit(f"zext {e.type('b1')} {mask} to {vector}")
        new = e.emit(f"or {vector} {old}, {bytes_}")
        e.lines.append(f"  store {vector} {new}, ptr {place}, align 1")


@fault("fault")
def _fault(body, op: Op):
    note(body, body.env[op.args[0]])
    body.set(op.outs[0], [body.e.const(0, "b1")])


@fault("faulted")
def _faulted(body, op: Op):
    vector = f"<{body.e.lanes} x i8>"
    loads = [body.e.emit(f"load {vector}, ptr {place}, align 1") for place in body.faults]
    body.set(op.outs[0], [body.e.emit(f"icmp ne {vector} {x}, zeroinitializer") for x in loads])


@fault("read")
def _read(body, op: Op):
    """Entries of a table, one load a lane; an index outside is noted and reads the first entry."""
    e, type = body.e, op.args[0].type
    pointer, extents = body.tables[op.args[0]]
    found, bad = [], []
    for u in range(body.unroll):
        place, inside = e.const(0, "i64"), e.const(1, "b1")
        for index, extent in zip(op.args[1:], extents):
            i, n = body.env[index][u], body.splat(extent, "i64")
            inside = e.two("and", "b1", inside, e.emit(f"icmp ult {e.type('i64')} {i}, {n}"))
            place = e.two("add", "i64", e.two("mul", "i64", place, n), i)
        place = e.choose("i64", inside, place, e.const(0, "i64"))
        bad.append(e.two("xor", "b1", inside, e.const(1, "b1")))
        found.append(_gather(e, pointer, place, type))
    note(body, bad)
    body.set(op.outs[0], found)


def _gather(e, pointer, place, type):
    """One load per lane."""
    out, size = "poison", SIZES[type]
    for lane in range(e.lanes):
        i = e.emit(f"extractelement {e.type('i64')} {place}, i64 {lane}")
        here = e.at(pointer, e.i64("mul", i, size))
        x = e.emit(f"load {MEMORY[type]}, ptr {here}, align {size}")
        if type == "b1":
            x = e.emit(f"icmp ne i8 {x}, 0")
        out = e.emit(f"insertelement {e.type(type)} {out}, {REGISTER[type]} {x}, i64 {lane}")
    return out
