"""Native call of a program that is one kernel with one result: tensors in, a new tensor out.

A builtin function written in LLVM IR against CPython's C API.  It reads the arrays of its tensor
arguments, makes the result's array by ``np.empty(shape, dtype)``, runs the kernel and makes the
Tensor object.  It gives NotImplemented when an array is not contiguous and aligned.
"""
from __future__ import annotations

import ctypes
import struct

import numpy as np

from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.backends.numba_cpu.launch import METH_FASTCALL, MethodDef, new_function
from tlgrad.core.tensor import Tensor

_HEAD = object.__basicsize__
#: PyArrayObject after the object head: data, nd, dimensions, strides, base, descr, flags
_FLAGS = _HEAD + 48
_CONTIGUOUS_ALIGNED = 0x1 | 0x100
_WORDS = ("kernel", "operands", "further", "lo", "hi", "empty", "shape", "dtype", "tensor", "aval", "device",
          "vectorcall", "alloc", "incref", "declined")
_INTEGERS = ("operands", "further", "lo", "hi")


def _slot_offset(cls, name: str) -> int:
    """Byte offset of a slot: PyMemberDescrObject -> PyMemberDef.offset."""
    member = ctypes.c_void_p.from_address(id(cls.__dict__[name]) + _HEAD + 24).value
    return ctypes.c_ssize_t.from_address(member + 16).value


def _entry() -> str:
    data, aval, device = (_slot_offset(Tensor, n) for n in ("data", "aval", "device"))
    words = "".join(f"  %p{k} = getelementptr i64, ptr %plan, i64 {k}\n"
                    f"  %{w} = load {'i64' if w in _INTEGERS else 'ptr'}, ptr %p{k}, align 1\n"
                    for k, w in enumerate(_WORDS))
    return f"""
define ptr @tlgrad_call(ptr %self, ptr %args, i64 %n) {{
entry:
  %plan = getelementptr i8, ptr %self, i64 {bytes.__basicsize__ - 1}
{words}  %offsets = getelementptr i64, ptr %plan, i64 {len(_WORDS)}
  %arrays = add i64 %operands, 1
  %total = add i64 %arrays, %further
  %slots = alloca i64, i64 %total, align 16
  %pair = alloca ptr, i64 2, align 8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %good ]
  %more = icmp slt i64 %i, %operands
  br i1 %more, label %operand, label %make
operand:
  %pa = getelementptr ptr, ptr %args, i64 %i
  %t = load ptr, ptr %pa, align 8
  %px = getelementptr i8, ptr %t, i64 {data}
  %x = load ptr, ptr %px, align 8
  %pf = getelementptr i8, ptr %x, i64 {_FLAGS}
  %f = load i32, ptr %pf, align 4
  %g = and i32 %f, {_CONTIGUOUS_ALIGNED}
  %ok = icmp eq i32 %g, {_CONTIGUOUS_ALIGNED}
  br i1 %ok, label %good, label %decline
good:
  %pd = getelementptr i8, ptr %x, i64 {_HEAD}
  %d = load i64, ptr %pd, align 8
  %po = getelementptr i64, ptr %offsets, i64 %i
  %o = load i64, ptr %po, align 1
  %address = add i64 %d, %o
  %ps = getelementptr i64, ptr %slots, i64 %i
  store i64 %address, ptr %ps, align 8
  %i1 = add i64 %i, 1
  br label %head
make:
  store ptr %shape, ptr %pair, align 8
  %second = getelementptr ptr, ptr %pair, i64 1
  store ptr %dtype, ptr %second, align 8
  %out = call ptr %vectorcall(ptr %empty, ptr %pair, i64 2, ptr null)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %error, label %made
made:
  %pod = getelementptr i8, ptr %out, i64 {_HEAD}
  %od = load i64, ptr %pod, align 8
  %pos = getelementptr i64, ptr %slots, i64 %operands
  store i64 %od, ptr %pos, align 8
  br label %words
words:
  %k = phi i64 [ %arrays, %made ], [ %k1, %word ]
  %morek = icmp slt i64 %k, %total
  br i1 %morek, label %word, label %go
word:
  %pw = getelementptr i64, ptr %offsets, i64 %k
  %w = load i64, ptr %pw, align 1
  %pt = getelementptr i64, ptr %slots, i64 %k
  store i64 %w, ptr %pt, align 8
  %k1 = add i64 %k, 1
  br label %words
go:
  call void %kernel(ptr %slots, i64 %lo, i64 %hi)
  %new = call ptr %alloc(ptr %tensor, i64 0)
  %none = icmp eq ptr %new, null
  br i1 %none, label %error, label %fill
fill:
  call void %incref(ptr %aval)
  call void %incref(ptr %device)
  %n0 = getelementptr i8, ptr %new, i64 {data}
  store ptr %out, ptr %n0, align 8
  %n1 = getelementptr i8, ptr %new, i64 {aval}
  store ptr %aval, ptr %n1, align 8
  %n2 = getelementptr i8, ptr %new, i64 {device}
  store ptr %device, ptr %n2, align 8
  ret ptr %new
decline:
  call void %incref(ptr %declined)
  ret ptr %declined
error:
  ret ptr null
}}
"""


class CallMaker:
    """Makes call functions."""

    def __init__(self):
        self.definition = MethodDef(b"call", build(_entry(), "tlgrad_call"), METH_FASTCALL, None)
        api = ctypes.pythonapi
        self.api = [ctypes.cast(getattr(api, name), ctypes.c_void_p).value
                    for name in ("PyObject_Vectorcall", "PyType_GenericAlloc", "Py_IncRef")]

    def make(self, kernel: int, offsets, words, lanes: int, aval):
        """``call(*tensors) -> Tensor`` of aval `aval`, and what it points to, which must outlive it."""
        kept = (np.empty, aval.shape, aval.dtype.storage, Tensor, aval, "cpu")
        head = [kernel, len(offsets), len(words), 0, lanes, *map(id, kept), *self.api, id(NotImplemented)]
        plan = struct.pack(f"={len(head) + len(offsets) + 1 + len(words)}q", *head, *offsets, 0, *words)
        return new_function(ctypes.addressof(self.definition), plan, None), kept
