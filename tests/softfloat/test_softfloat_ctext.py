"""The C++ and CUDA text of the kernels gives the words of the reference, compiled for the host."""
import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from softfloat_operands import operands, random_numbers

from tlgrad.kernels.softfloat import (
    angles, errorfunction, functions, hyperbolic, limbs, logarithms, powers, quad, quad_fma,
    remainders, roots, wide)
from tlgrad.kernels.softfloat import catalogue
from tlgrad.kernels.softfloat.catalogue import BINARY128
from tlgrad.kernels.softfloat.words import resize
from tlgrad.softfloat import reference
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import binary128

WIDE = {"add": 2, "sub": 2, "mul": 2, "div": 2, "sqrt": 1, "fma": 3}
FUNCTIONS = {**functions.FUNCTIONS, **hyperbolic.FUNCTIONS, **powers.FUNCTIONS,
             **errorfunction.FUNCTIONS, **angles.FUNCTIONS, **logarithms.FUNCTIONS, **roots.FUNCTIONS}


def lanes(body):
    """A vector body as one on i128 values."""
    def whole(*values):
        halves = [h for v in values for h in (resize(v, "i64"), resize(v.lshr(64), "i64"))]
        low, high, *special = body(*halves)
        return (resize(high, "i128") << 64 | resize(low, "i128"), *special)
    return whole


def bodies():
    """name -> (body on i128 values, operands)."""
    found = {f"wide_{n}": (lambda *v, n=n: getattr(wide, n)(BINARY128, *v), k) for n, k in WIDE.items()}
    found |= {f"quad_{n}": (lanes(getattr(quad, n)), WIDE[n]) for n in ("add", "mul", "div", "sqrt")}
    found |= {f"remainder_{n}": (lambda *v, n=n: getattr(remainders, n)(BINARY128, *v), 2)
              for n in ("rem", "fmod", "remainder")}
    found |= {"quad_fma": (lanes(quad_fma.fma), 3), "ifma_mul": (lanes(quad.mul_ifma), 2)}
    found |= {f"function_{n}": (b, 2 if n in catalogue.TWO else 1) for n, b in FUNCTIONS.items()}
    return found


BODIES = bodies()
TEXT = {name: limbs.function(name, body, arity) for name, (body, arity) in BODIES.items()}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All texts in one module, or None where there is no g++."""
    if shutil.which("g++") is None:
        return None
    folder = tmp_path_factory.mktemp("limbs")
    text = limbs.WIDE_PREAMBLE + "".join(f"namespace n_{n} {{\n{t}}}\n" for n, t in TEXT.items())
    (folder / "limbs.cpp").write_text(text)
    subprocess.run(["g++", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC",
                    str(folder / "limbs.cpp"), "-o", str(folder / "limbs.so")], check=True)
    return ctypes.CDLL(str(folder / "limbs.so"))


@pytest.mark.parametrize("name", BODIES)
def test_text(name, library):
    kind, operation = name.split("_", 1)
    arity = BODIES[name][1]
    assert "long long" in TEXT[name] and "__int128" not in TEXT[name]
    if library is None:
        return
    structured = operands(binary128, 400, arity)
    arguments = [np.concatenate([a, random_numbers((200,), binary128, k)])
                 for k, a in enumerate(structured)]
    out, flags = np.empty_like(arguments[0]), np.zeros(600, np.uint64)
    getattr(library, name)(ctypes.c_long(600), *(ctypes.c_void_p(a.ctypes.data)
                                                for a in (*arguments, out, flags)))
    decided = flags == 0
    want = reference.evaluate(operation, binary128, arguments, (600,), Environment())
    assert decided[400:].sum() > 150 or operation in ("pow", "log", "log2", "log10", "sqrt")
    assert np.all(out[decided] == want[decided])
