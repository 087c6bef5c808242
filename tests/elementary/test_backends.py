"""Every rendering of every body gives the words of its NumPy meaning."""
import ctypes
import subprocess

import llvmlite.binding as binding
import numpy as np
import pytest

from tlgrad.kernels.elementary import FUNCTIONS, ctext, evaluation, meaning
from tlgrad.kernels.expr.llvm import link

from .test_evaluate import arguments, same_words

DTYPES = ["float32", "float64"]
COUNT = 1001                            # elements: the last block is not whole
# name: (lanes, cpu): fma by instruction and, on the last, by libm's exact function
MACHINES = {"avx2-4": (4, "haswell"), "scalar": (1, "haswell"), "no-fma-2": (2, "x86-64")}
ENGINES = []                            # compiled code must outlive its pointers


def inputs(name, dtype):
    return [np.ascontiguousarray(x[::9][:COUNT]) for x in arguments(name, dtype, seed=5)]


def run(function, x):
    out = np.empty_like(x[0])
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*x, out)]
    function(*pointers, ctypes.c_int64(len(out)))
    return out


def llvm_function(name, dtype, lanes, cpu):
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    text, tables = evaluation.kernel_text(name, dtype, lanes)
    link(tables)
    machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, opt=1, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    ENGINES.append(engine)
    return ctypes.CFUNCTYPE(None)(engine.get_function_address("run"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_llvm(name, machine, dtype):
    lanes, cpu = MACHINES[machine]
    x = inputs(name, dtype)
    same = same_words(run(llvm_function(name, dtype, lanes, cpu), x), meaning(name, *x))
    assert same.all(), [a[~same][:3] for a in x]


@pytest.fixture(scope="session")
def c_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    pairs = [(name, dtype) for name in FUNCTIONS for dtype in DTYPES]
    text = ctext.source(pairs)
    for name, dtype in pairs:
        type = ctext.TYPES[dtype]
        names = [f"x{j}" for j in range(FUNCTIONS[name].arity)]
        c = ctext.TYPE[type]
        parameters = ", ".join(f"const {c} *{v}" for v in names)
        text += (f'\nextern "C" void run_{name}_{type}({parameters}, {c} *out, long n) {{ for (long i = 0; '
                 f"i < n; i++) out[i] = tlgrad_{name}_{type}({', '.join(f'{v}[i]' for v in names)}); }}")
    (folder / "all.cpp").write_text(text)
    subprocess.run(["g++", "-O1", "-mfma", "-ffp-contract=off", "-shared", "-fPIC",
                    str(folder / "all.cpp"), "-o", str(folder / "all.so")], check=True)
    return ctypes.CDLL(str(folder / "all.so"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_c(name, dtype, c_library):
    x = inputs(name, dtype)
    out = run(getattr(c_library, f"run_{name}_{ctext.TYPES[dtype]}"), x)
    same = same_words(out, meaning(name, *x))
    assert same.all(), [a[~same][:3] for a in x]


@pytest.mark.parametrize("name", ["exp", "log", "erf", "sin"])
def test_avx512_text_assembles(name):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    text, _ = evaluation.kernel_text(name, "float64", 8, avx512=True)
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="skylake-avx512", features="-prefer-256-bit")
    assert "zmm" in machine.emit_assembly(binding.parse_assembly(text))
