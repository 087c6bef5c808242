"""Lines of LLVM IR for vectors of L lanes of every kernel type."""
from __future__ import annotations

from tlgrad.codegen.ir import SIZES
from tlgrad.kernels.expr.llvm import literal
from tlgrad.kernels.tiles.loops import Loops

#: kernel type -> LLVM type of a register
REGISTER = {"b1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8", "u16": "i16",
            "u32": "i32", "u64": "i64", "f16": "float", "f32": "float", "f64": "double",
            "b": "i1"}
#: kernel type -> LLVM type in memory
MEMORY = {**REGISTER, "b1": "i8", "f16": "half"}
#: kernel type -> how LLVM names it in an intrinsic
SUFFIX = {"f16": "f32", "f32": "f32", "f64": "f64"}
FLOATS = ("f16", "f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")


class Emitter(Loops):
    """LLVM IR text of one kernel; shares names, lines and declarations with the bodies of
    `tlgrad.kernels.elementary`."""

    def type(self, type):
        return REGISTER[type] if self.lanes == 1 else f"<{self.lanes} x {REGISTER[type]}>"

    def const(self, number, type):
        if type in ("f16", "f32", "f64"):
            text = literal(number, "f64" if type == "f64" else "f32")
        elif type in ("b1", "b"):
            text = "true" if number else "false"
        else:
            bits = SIZES[type] * 8
            text = str((int(number) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
        return text if self.lanes == 1 else f"splat ({REGISTER[type]} {text})"

    def two(self, instruction, type, a, b):
        """``instruction type a, b``."""
        return self.emit(f"{instruction} {self.type(type)} {a}, {b}")

    def choose(self, type, mask, a, b):
        """a where mask, else b."""
        t, m = self.type(type), self.type("b1")
        return self.emit(f"select {m} {mask}, {t} {a}, {t} {b}")

    def cast(self, instruction, a, source, target):
        """``instruction a to target``."""
        return self.emit(f"{instruction} {self.type(source)} {a} to {self.type(target)}")

    def call_float(self, name, type, *args):
        """A floating-point intrinsic of LLVM."""
        t = self.type(type)
        suffix = SUFFIX[type] if self.lanes == 1 else f"v{self.lanes}{SUFFIX[type]}"
        self.declare(f"@llvm.{name}.{suffix}", t, [t] * len(args))
        return self.emit(f"call {t} @llvm.{name}.{suffix}({', '.join(f'{t} {a}' for a in args)})")

    def rounded(self, type, a):
        """`a` rounded to the type: only a 16-bit float held in 32 bits needs it."""
        if type != "f16":
            return a
        half = "half" if self.lanes == 1 else f"<{self.lanes} x half>"
        h = self.emit(f"fptrunc {self.type('f32')} {a} to {half}")
        return self.emit(f"fpext {half} {h} to {self.type('f32')}")

    def any_lane(self, masks):
        """An i1: some lane of some mask is set."""
        mask = masks[0]
        for other in masks[1:]:
            mask = self.two("or", "b1", mask, other)
        if self.lanes == 1:
            return mask
        word = self.emit(f"bitcast {self.type('b1')} {mask} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {word}, 0")
