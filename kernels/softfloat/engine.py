"""Compiles kernel text once per text, in memory and on disk; calls it on contiguous arrays."""
import ctypes

from tlgrad.kernels.expr.llvm import link
from tlgrad.kernels.machine import compiling, host


class Library:
    """Compiled functions by text, for this machine or for another `Machine` (to look at)."""

    def __init__(self, machine=None):
        self._functions, self._machine = {}, machine

    @property
    def machine(self):
        """The machine that is compiled for."""
        return self._machine or host()

    def has(self, feature):
        """Whether the machine has a CPU feature, by LLVM's name for it."""
        return self.machine.has(feature)

    def function(self, text, counts, pointers, externals=None):
        """The function `k` of a module text, taking `counts` i64 and then `pointers` pointers;
        `externals` are the symbols of others that it names."""
        with compiling:
            link(externals or {})
            if text not in self._functions:
                arguments = [ctypes.c_int64] * counts + [ctypes.c_void_p] * pointers
                self._functions[text] = ctypes.CFUNCTYPE(None, *arguments)(self._address(text))
            return self._functions[text]

    def _address(self, text):
        """Where the machine code of a text lies."""
        machine = self.machine
        return machine.function(text, "k", lambda text: machine.target.emit_object(machine.optimised(text)))

    def assembly(self, text):
        """The machine code of a module text, as assembler text."""
        return self.machine.target.emit_assembly(self.machine.optimised(text))


def address(function):
    """Where the machine code of a function of a library lies."""
    return ctypes.cast(function, ctypes.c_void_p).value


LIBRARY = Library()
