"""A small program loads only what it needs; everything else is there when it is asked for."""
import subprocess
import sys

PROGRAM = """
import sys, numpy as np, tlgrad as tl
assert tl.run(lambda x: x * x)(tl.tensor(np.ones(3, "float32"))).tolist() == [1.0, 1.0, 1.0]
heavy = {"numba", "scipy", "mpmath", "tqdm", "numpy.ma", "jax", "torch", "opt_einsum", "tlgrad.frontend",
         "tlgrad.patterns", "tlgrad.random", "tlgrad.scipy", "tlgrad.interop", "tlgrad.testing", "tlgrad.linalg",
         "tlgrad.fft", "tlgrad.special", "tlgrad.conv", "tlgrad.numpy.rootfinding", "tlgrad.ops.matrixfunctions",
         "tlgrad.kernels.softfloat.catalogue", "tlgrad.codegen.python_text", "tlgrad.api.jacobians"}
print(sorted(heavy & set(sys.modules)))
"""
LATER = """
import tlgrad as tl
from tlgrad import einsum, map, zip
assert tl.map is map and tl.einsum is einsum and callable(tl.numpy.einsum)
assert {"map", "random", "testing", "einsum", "sum"} <= set(dir(tl))
assert tl.random.__name__ == "tlgrad.random" and tl.testing.check_grads
assert tl.numpy.linalg is tl.linalg and tl.numpy.fft is tl.fft and tl.numpy.special is tl.special
assert {"linalg", "polyval", "einsum"} <= set(dir(tl.numpy)) and tl.numpy.polyval([1.0, 2.0], 3.0) == 5.0
assert not hasattr(tl, "no_such_name") and not hasattr(tl.numpy, "no_such_name")
print("ok")
"""


def output(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_small_program_loads_no_heavy_module():
    assert output(PROGRAM) == "[]"


def test_what_is_loaded_later_is_there():
    assert output(LATER) == "ok"
