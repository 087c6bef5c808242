"""Every vector kernel compiles for every kind of x86 that is chosen between at run time.

Only the kernels of this machine run here; `test_softfloat_ctext` checks the words of all bodies.
"""
import llvmlite.binding as llvm
import pytest

from tlgrad.kernels.softfloat import catalogue, drivers, engine, folds, narrow, quad, wide
from tlgrad.softfloat.fast import narrow_layout
from tlgrad.softfloat.format import bfloat16

MACHINES = {"x86-64-v2": ("x86-64-v2", 1), "haswell": ("haswell", 4), "skylake-avx512":
            ("skylake-avx512", 8), "icelake-server": ("icelake-server", 8)}


class Elsewhere(engine.Library):
    """A library that compiles for another processor, to text."""

    def __init__(self, cpu):
        super().__init__()
        self.cpu = cpu

    @property
    def host(self):
        return self.cpu, ""


@pytest.mark.parametrize("machine", MACHINES)
def test_kernels_compile(machine):
    cpu, lanes = MACHINES[machine]
    library, layout = Elsewhere(cpu), catalogue.BINARY128
    texts = {"mul wide": drivers.elementwise(wide.mul, layout, ["i128"] * 2, "i128"),
             "narrow": drivers.narrow(narrow.body(narrow_layout(bfloat16), "fma"), 16, 3, 2 * lanes)}
    if lanes > 1:
        for name, body in catalogue.VECTOR.items():
            operands = catalogue.ARITHMETIC[name][1]
            texts[name] = drivers.vector(body, catalogue.ARITHMETIC[name][0], layout, operands, lanes)
        texts["fold"] = folds.fold(layout, lanes)
        texts["dot"] = folds.contraction(layout, lanes, False, quad.mul)
    if cpu == "icelake-server":
        texts["ifma"] = drivers.vector(quad.mul_ifma, wide.mul, layout, 2, lanes)
        assert "vpmadd52huq" in library.assembly(texts["ifma"])
    for text in texts.values():
        llvm.parse_assembly(text).verify()
    assert ".globl\tk" in library.assembly(texts["narrow"])
    assert ("zmm" in library.assembly(texts.get("mul", texts["mul wide"]))) == (lanes == 8)
