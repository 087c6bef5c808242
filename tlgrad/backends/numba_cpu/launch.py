"""Native launcher: a builtin function that puts array addresses into slots and runs a kernel.

One METH_FASTCALL function written in LLVM IR serves every kernel.  Its ``self`` is a bytes object,
the plan of the launch:

    word 0  address of the kernel        word 3  first lane
    word 1  number of array operands     word 4  limit
    word 2  number of further words      word 5  1 to release the GIL, 0 to keep it
    word 6  PyEval_SaveThread            word 7  PyEval_RestoreThread
    word 8  Py_None                      word 9  Py_IncRef

    then byte offsets of the operands, then the further words

The arguments are NumPy arrays; their data address is read from PyArrayObject (the field after the
object header, stable ABI of NumPy).
"""
from __future__ import annotations

import ctypes
import struct
import sys

HEADER = 10
_BYTES_HEAD = bytes.__basicsize__ - 1
_OBJECT_HEAD = object.__basicsize__

ENTRY = f"""
define ptr @tlgrad_launch(ptr %self, ptr %args, i64 %n) {{
entry:
  %plan = getelementptr i8, ptr %self, i64 {_BYTES_HEAD}
""" + "".join(f"  %p{k} = getelementptr i64, ptr %plan, i64 {k}\n"
              f"  %w{k} = load {'ptr' if k in (0, 6, 7, 8, 9) else 'i64'}, ptr %p{k}, align 1\n"
              for k in range(HEADER)) + f"""
  %total = add i64 %w1, %w2
  %slots = alloca i64, i64 %total, align 16
  %offsets = getelementptr i64, ptr %plan, i64 {HEADER}
  br label %operands
operands:
  %i = phi i64 [ 0, %entry ], [ %i1, %operand ]
  %more = icmp slt i64 %i, %w1
  br i1 %more, label %operand, label %words
operand:
  %pa = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %pa, align 8
  %pd = getelementptr i8, ptr %a, i64 {_OBJECT_HEAD}
  %d = load i64, ptr %pd, align 8
  %po = getelementptr i64, ptr %offsets, i64 %i
  %o = load i64, ptr %po, align 1
  %address = add i64 %d, %o
  %ps = getelementptr i64, ptr %slots, i64 %i
  store i64 %address, ptr %ps, align 8
  %i1 = add i64 %i, 1
  br label %operands
words:
  %k = phi i64 [ %w1, %operands ], [ %k1, %word ]
  %morek = icmp slt i64 %k, %total
  br i1 %morek, label %word, label %go
word:
  %pf = getelementptr i64, ptr %offsets, i64 %k
  %f = load i64, ptr %pf, align 1
  %pt = getelementptr i64, ptr %slots, i64 %k
  store i64 %f, ptr %pt, align 8
  %k1 = add i64 %k, 1
  br label %words
go:
  %release = icmp ne i64 %w5, 0
  br i1 %release, label %free, label %held
held:
  call void %w0(ptr %slots, i64 %w3, i64 %w4)
  br label %done
free:
  %state = call ptr %w6()
  call void %w0(ptr %slots, i64 %w3, i64 %w4)
  call void %w7(ptr %state)
  br label %done
done:
  call void %w9(ptr %w8)
  ret ptr %w8
}}
"""


class MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p)]


METH_FASTCALL = 0x0080
new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi))
_addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
              for name in ("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef")]


class Launcher:
    """Makes launch functions; `entry` is the address of the compiled ENTRY."""

    def __init__(self, entry: int):
        self.definition = MethodDef(b"launch", entry, METH_FASTCALL, None)

    def make(self, kernel: int, offsets, words, lo: int, hi: int, release: bool):
        """``launch(*arrays)`` of a kernel over lanes lo..hi; returns None."""
        head = [kernel, len(offsets), len(words), lo, hi, int(release), *_addresses[:2], id(None),
                _addresses[2]]
        plan = struct.pack(f"={len(head) + len(offsets) + len(words)}q", *head, *offsets, *words)
        return new_function(ctypes.addressof(self.definition), plan, None)


def supported() -> bool:
    """The layouts that ENTRY relies on: CPython with the GIL, 64-bit, little-endian."""
    return (sys.implementation.name == "cpython" and struct.calcsize("P") == 8
            and sys.byteorder == "little" and getattr(sys, "_is_gil_enabled", lambda: True)())
