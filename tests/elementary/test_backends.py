"""Every rendering of every body gives the words of its NumPy meaning."""
import ctypes
import re
import shutil
import subprocess

import llvmlite.binding as binding
import numpy as np
import pytest

from tlgrad.kernels.elementary import FUNCTIONS, ctext, evaluation, meaning

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
    kernel = evaluation.kernel(name, dtype, lanes)
    evaluation.prepare(kernel)
    machine = binding.Target.from_default_triple().create_target_machine(cpu=cpu, opt=1, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(kernel.text), machine)
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


@pytest.mark.parametrize("lanes", [16, 32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_branches_of_many_lanes(name, lanes):
    """More lanes than a register has take branches in functions, those inside of such a branch too."""
    x = inputs(name, "float64")
    same = same_words(run(evaluation.load(evaluation.kernel(name, "float64", lanes)), x), meaning(name, *x))
    assert same.all(), [a[~same][:3] for a in x]


PAIRS = [(name, dtype) for name in FUNCTIONS for dtype in DTYPES]
# CUDA's words for g++: with them, its own branch of the preamble compiles on a machine without nvcc
CUDA_IN_C = """#include <cmath>
#include <cstring>
#define __CUDACC__
#define __device__
#define __forceinline__ inline
template <class T, class S> static inline T cast(S x) { T r; memcpy(&r, &x, sizeof r); return r; }
#define __double_as_longlong cast<long long, double>
#define __longlong_as_double cast<double, long long>
#define __float_as_int cast<int, float>
#define __int_as_float cast<float, int>
"""


def with_loops(head, loop):
    """The source of all bodies, and of ``run_NAME_TYPE(inputs..., out, n)`` with this head and loop."""
    text = ctext.source(PAIRS)
    for name, dtype in PAIRS:
        type = ctext.TYPES[dtype]
        names = [f"x{j}" for j in range(FUNCTIONS[name].arity)]
        c = ctext.TYPE[type]
        parameters = ", ".join(f"const {c} *{v}" for v in names)
        text += (f'\nextern "C" {head} run_{name}_{type}({parameters}, {c} *out, long n) {{ {loop} '
                 f"out[i] = tlgrad_{name}_{type}({', '.join(f'{v}[i]' for v in names)}); }}")
    return text


@pytest.fixture(scope="session", params=["C++", "CUDA"])
def c_library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    text = with_loops("void", "for (long i = 0; i < n; i++)")
    (folder / "all.cpp").write_text((CUDA_IN_C if request.param == "CUDA" else "") + text)
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


def test_nvcc_compiles_what_is_written(tmp_path):
    """Every rounding of the PTX is in the text: no contraction, no approximation, no flushing of subnormals.

    Without nvcc, the words of the CUDA branch compiled by g++ (`test_c`) are the evidence there is.
    """
    text = with_loops("__global__ void", "long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n)")
    assert "__device__" in text and text.count(" fma(") > 1000
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        assert all(f"run_{name}_{ctext.TYPES[dtype]}(" in text for name, dtype in PAIRS)
        return
    (tmp_path / "all.cu").write_text(text)
    subprocess.run([nvcc, "--fmad=false", "-arch=sm_90", "-w", "-ptx", str(tmp_path / "all.cu"),
                    "-o", str(tmp_path / "all.ptx")], check=True)
    ptx = (tmp_path / "all.ptx").read_text()
    assert ptx.count(".entry run_") == len(PAIRS)
    written = text.count(" fma(")
    assert 0.98 * written < ptx.count("fma.rn.f64") <= written and "fma.rn.f32" not in ptx
    assert not re.search(r"\b(mad\.rn|\w+\.approx|\w+(\.\w+)*\.ftz)", ptx)
    assembled = subprocess.run([nvcc, "-arch=sm_90", "-cubin", "-Xptxas", "-v", str(tmp_path / "all.ptx"), "-o",
                                str(tmp_path / "all.cubin")], check=True, capture_output=True, text=True).stderr
    assert assembled.count(" 0 bytes spill stores") == assembled.count("spill stores") >= len(PAIRS)


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("name", ["exp", "log", "erf", "sin"])
def test_avx512_text_assembles(name, lanes):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    text = evaluation.kernel(name, "float64", lanes, avx512=True).text
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="skylake-avx512", features="-prefer-256-bit")
    assert "zmm" in machine.emit_assembly(binding.parse_assembly(text))
