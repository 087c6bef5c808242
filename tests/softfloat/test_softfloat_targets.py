"""Every vector kernel compiles for every kind of x86 that is chosen between at run time, and the kinds that
this machine has give equal words; `test_softfloat_ctext` checks the words of the others' bodies."""
import os
import subprocess
import sys
import textwrap

import llvmlite.binding as llvm
import pytest

from tlgrad.kernels.machine import RESTRICTED, Machine, host
from tlgrad.kernels.softfloat import catalogue, drivers, engine, folds, narrow, products, quad, wide
from tlgrad.softfloat.fast import narrow_layout
from tlgrad.softfloat.format import bfloat16

LANES = {"baseline": 1, "avx2": 4, "avx512": 8, "ifma": 8}


@pytest.mark.parametrize("tier", RESTRICTED)
def test_kernels_compile(tier):
    lanes, library, layout = LANES[tier], engine.Library(Machine(tier)), catalogue.BINARY128
    texts = {"mul wide": drivers.elementwise(wide.mul, layout, ["i128"] * 2, "i128"),
             "narrow": drivers.narrow(*narrow.body(narrow_layout(bfloat16), "fma"), 16, 3, 2 * lanes)}
    if lanes > 1:
        for name, body in catalogue.VECTOR.items():
            operands = catalogue.ARITHMETIC[name][1]
            texts[name] = drivers.vector(body, catalogue.ARITHMETIC[name][0], layout, operands, lanes)
        texts["fold"] = folds.fold(layout, lanes)
        texts["dot"] = folds.contraction(layout, lanes, False, quad.mul)
    if tier == "ifma":
        texts["ifma"] = drivers.vector(quad.mul_ifma, wide.mul, layout, 2, lanes)
        assert "vpmadd52huq" in library.assembly(texts["ifma"])
        texts["within"], texts["extremes"] = products.contraction(), products.extremes()
    for text in texts.values():
        llvm.parse_assembly(text).verify()
    assert ".globl\tk" in library.assembly(texts["narrow"])
    assert ("zmm" in library.assembly(texts.get("mul", texts["mul wide"]))) == (lanes == 8)


WORDS = """
    import hashlib, sys
    import numpy as np
    import softfloat_fuzz as fuzz
    from tlgrad.kernels.softfloat import catalogue
    from tlgrad.softfloat import array, fast
    from tlgrad.softfloat.format import binary128, float8_e4m3fn, tf32
    from tlgrad.softfloat.storage import dtype_of
    fast.WARM = 0
    operands, digest = fuzz.operands(20011, np.random.default_rng(1)), hashlib.sha256()
    for name in catalogue.VECTOR:
        digest.update(array.evaluate(name, binary128, *operands[:catalogue.ARITHMETIC[name][1]]).tobytes())
    for name in ("exp", "log"):
        digest.update(array.evaluate(name, binary128, operands[0][:600]).tobytes())
    for fmt in (float8_e4m3fn, tf32):
        raw = [np.asarray(x).view(f"u{fmt.itemsize}")[:20011] for x in operands]
        words = [(r & (2 ** fmt.width - 1)).astype(r.dtype).view(dtype_of(fmt)) for r in raw]
        for name in ("add", "mul", "div", "fma"):
            digest.update(array.evaluate(name, fmt, *words[:3 if name == "fma" else 2]).tobytes())
    a, b = (x[:1600].reshape(40, 40) for x in operands[:2])
    for fused in (False, True):
        digest.update(array.contract(a, b, a, binary128, fused).tobytes())
    a, b = (array.convert(np.random.default_rng(k).standard_normal((40, 40)), binary128) for k in (2, 3))
    digest.update(array.contract(a, b, a, binary128).tobytes())
    digest.update(array.left_to_right(a, b[0], binary128).tobytes())
    print(catalogue.lanes("add"), digest.hexdigest())
"""


def _present(tier):
    """Whether this machine can run the kernels of a tier."""
    return all(map(host().has, {"ifma": ["avx512dq", "avx512ifma"], "avx512": ["avx512dq", "avx512bw"],
                                "avx2": ["avx2", "bmi2", "fma"], "baseline": []}[tier]))


def test_tiers_give_equal_words():
    """Scalar, AVX2, AVX-512 and IFMA kernels, as far as this machine has them, in a process each."""
    found = {}
    for tier in filter(_present, RESTRICTED):
        env = {**os.environ, "TLGRAD_CPU": tier, "PYTHONPATH": os.path.dirname(__file__)}
        out = subprocess.run([sys.executable, "-c", textwrap.dedent(WORDS)], env=env, capture_output=True,
                             text=True, check=True)
        lanes, found[tier] = out.stdout.split()
        assert int(lanes) == LANES[tier]
    assert len(set(found.values())) == 1, found
