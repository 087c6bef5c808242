"""Kernels for other processors: they compile, and no product and sum becomes one instruction there."""
import functools
import re

import llvmlite.binding as binding
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.kernels import llvm_text
from tlgrad.kernels.tiles.contraction import module, tile_for

#: name -> triple, processor, bytes of a vector
TARGETS = {"AVX-512": ("x86_64-unknown-linux-gnu", "skylake-avx512", 64),
           "Zen 4": ("x86_64-unknown-linux-gnu", "znver4", 64),
           "AVX2": ("x86_64-unknown-linux-gnu", "haswell", 32),
           "x86-64": ("x86_64-unknown-linux-gnu", "x86-64", 16),
           "aarch64": ("aarch64-unknown-linux-gnu", "generic", 16),
           "Neoverse V2": ("aarch64-unknown-linux-gnu", "neoverse-v2", 16)}
FUSED = re.compile(r"\bvfn?m(add|sub)|\bfn?m(add|sub)\b|\bfml[as]\b")


class Elsewhere:
    """A target that code is made for, not run."""

    def __init__(self, triple, cpu, vector_bytes):
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        self.cpu, self.vector_bytes, self.avx512 = cpu, vector_bytes, vector_bytes == 64
        self.target = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)

    def assembly(self, kernel):
        """The assembly of a kernel; RuntimeError where LLVM cannot make it."""
        module = binding.parse_assembly(llvm_text(kernel.lowered.kernel, "kernel", self)[0])
        assert self.target.emit_object(module)
        return self.target.emit_assembly(module)


target = functools.cache(lambda name: Elsewhere(*TARGETS[name]))


def step(v):
    return v * v * 0.25 + 0.5


def escape(v):
    n = 0
    while v < 4.0 and n < 50:
        v, n = v * v + 0.3, n + 1
    return v * n + 1.0


PROGRAMS = {"polynomial": lambda x: x * x + 0.5 - x * 0.3, "sum of products": lambda x: tl.sum(x * x, axis=1),
            "columns": lambda x: tl.sum(x * 2.0 + x, axis=0), "select": lambda x: tl.where(x > 0, x * x - x, x),
            "fold with its gradient": tl.value_and_grad(lambda x: tl.sum(tl.iterate(step, 10, x))),
            "while": tl.map(escape), "integers": lambda x: tl.convert(x, tl.int32) * 3 + 1}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_product_and_sum_are_fused(program, name):
    for dtype in ("float32", "float64"):
        for kernel in tl.kernels(PROGRAMS[program])(tl.tensor(np.ones((30, 40), dtype))):
            text = target(name).assembly(kernel)
            assert not FUSED.search(text), FUSED.search(text)


@pytest.mark.parametrize("name", TARGETS)
def test_fma_is_an_instruction_where_there_is_one(name):
    kernel, = tl.kernels(lambda x: tl.fma(x, x, x))(tl.tensor(np.ones(100, "float32")))
    text = target(name).assembly(kernel)
    assert bool(FUSED.search(text)) == (name != "x86-64")
    assert name not in ("AVX-512", "Zen 4") or re.search(r"vfmadd\w+.*zmm", text)


def test_elementary_functions_compile_everywhere():
    kernel, = tl.kernels(lambda x: tl.exp(x) * tl.tanh(x) + tl.log1p(x * x))(tl.tensor(np.ones(100, "float32")))
    for name in TARGETS:
        assert "kernel" in target(name).assembly(kernel)


@pytest.mark.parametrize("name, embedded", [("AVX-512", False), ("Zen 4", True)])
def test_tiles_multiply_from_memory_where_that_is_faster(name, embedded):
    for kind, lanes in (("f32", 16), ("f64", 8)):
        tile = tile_for(kind, target(name), False)
        text = target(name).target.emit_assembly(binding.parse_assembly(module(tile, "kernel")))
        largest = text[text.index(f"tile{tile.rows}:"):text.index(f".size\ttile{tile.rows}")]
        products = re.findall(r"vmulp[sd]\s.*zmm", largest)
        assert len(products) == tile.rows * tile.vectors
        assert all((f"{{1to{lanes}}}" in p) == embedded for p in products)
        assert not FUSED.search(text)
