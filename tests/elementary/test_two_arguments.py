"""The functions without an exhaustive proof, in binary32: within one ulp of MPFR; hypot correctly rounded."""
import gmpy2
import numpy as np
import pytest

from tlgrad.kernels.elementary import FUNCTIONS, evaluate

N, FEW = 20000, 2000                    # FEW where MPFR is slow
EXACT = {"pow": lambda x, y: x ** y, "atan2": gmpy2.atan2, "hypot": gmpy2.hypot,
         "lgamma": lambda x: gmpy2.lgamma(x)[0], "digamma": gmpy2.digamma,
         "logaddexp": lambda x, y: max(x, y) + gmpy2.log1p(gmpy2.exp(-abs(x - y)))}


def columns(name):
    g = np.random.default_rng(11)

    def wide():
        words = g.integers(0, 0x7f800000, N // 2, dtype=np.uint32).view(np.float32)
        return np.concatenate([words * g.choice(np.float32([-1, 1]), N // 2),
                               (g.standard_normal(N // 2) * 5).astype(np.float32)])
    x = [wide() for _ in range(FUNCTIONS[name].arity)]
    if name == "pow":
        x[0] = np.abs(x[0])
        x[1][:N // 2] = g.uniform(-103, 88, N // 2) / np.log(x[0][:N // 2].astype(float))
    if name == "hypot":                      # comparable sizes, where both squares matter
        x[1][:N // 2] = x[0][:N // 2] * g.uniform(0.01, 1, N // 2).astype(np.float32)
    return x


def exact(name, arguments):
    """(the value at 300 bits, the same rounded to binary32)."""
    with gmpy2.context(precision=300, emin=-(1 << 24), emax=1 << 24):
        value = EXACT[name](*(gmpy2.mpfr(float(v)) for v in arguments))
    with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True):
        return value, np.float32(float(gmpy2.mpfr(value, 24)))


@pytest.mark.parametrize("name", EXACT)
def test_binary32(name):
    x = [c[::N // FEW] if name in ("lgamma", "digamma") else c for c in columns(name)]
    with np.errstate(all="ignore"):
        got = evaluate(name, *x)
    off, worst = 0, 0.0
    for row in zip(got, *x):
        value, nearest = exact(name, row[1:])
        if row[0] == nearest or np.isnan(nearest) and np.isnan(row[0]):
            continue
        off += 1
        with gmpy2.context(precision=300):
            worst = max(worst, float(abs(gmpy2.mpfr(float(row[0])) - value) / float(np.spacing(abs(nearest)))))
    assert off == 0 if name == "hypot" else worst <= 1, (off, worst)
