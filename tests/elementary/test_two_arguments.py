"""The functions without an exhaustive proof, in binary32: within one ulp of MPFR; hypot correctly rounded."""
import gmpy2
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from tlgrad.kernels.elementary import FUNCTIONS, evaluate

N, FEW = 20000, 2000                    # FEW where MPFR is slow
EXACT = {"pow": lambda x, y: x ** y, "atan2": gmpy2.atan2, "hypot": gmpy2.hypot,
         "gamma": gmpy2.gamma, "lgamma": lambda x: gmpy2.lgamma(x)[0], "digamma": gmpy2.digamma,
         "logaddexp": lambda x, y: max(x, y) + gmpy2.log1p(gmpy2.exp(-abs(x - y)))}


def columns(name):
    g = np.random.default_rng(11)

    def wide():
        words = g.integers(0, 0x7f800000, N // 2, dtype=np.uint32).view(np.float32)
        return np.concatenate([words * g.choice(np.float32([-1, 1]), N // 2),
                               (g.standard_normal(N // 2) * 5).astype(np.float32)])
    x = [wide() for _ in range(FUNCTIONS[name].arity)]
    if name == "gamma":
        x[0][:N // 2] = g.uniform(-40, 36, N // 2)
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


def allowance(name, arguments):
    """The absolute part of the bound of a binary64 result."""
    if arguments[0].dtype == np.float32:
        return 0.0
    size = min(abs(v) for v in arguments) if len(arguments) == 2 else arguments[0] < 0
    return FUNCTIONS[name].absolute * float(size)


def errors(name, x):
    """(results that are not the nearest, the greatest error in ulps) at arrays of arguments of one format.

    In binary64, errors count beyond the absolute part of the bound.
    """
    with np.errstate(all="ignore"):
        got = evaluate(name, *x)
    off, worst = 0, 0.0
    for row in zip(got, *x):
        value, nearest = exact(name, row[1:])
        nearest = nearest if got.dtype == np.float32 else np.float64(float(value))
        if row[0] == nearest or np.isnan(nearest) and np.isnan(row[0]):
            continue
        off += 1
        with gmpy2.context(precision=300):
            error = abs(gmpy2.mpfr(float(row[0])) - value) - allowance(name, row[1:])
        worst = max(worst, float(error / float(np.spacing(abs(nearest)))))
    return off, worst


@pytest.mark.parametrize("name", EXACT)
def test_binary32(name):
    x = [c[::N // FEW] if FUNCTIONS[name].arity == 1 else c for c in columns(name)]
    off, worst = errors(name, x)
    assert off == 0 if name == "hypot" else worst <= 1, (off, worst)


def beside(centres, dtype, reach):
    """The numbers of a format at most `reach` steps from each centre."""
    word = {np.float32: np.int32, np.float64: np.int64}[dtype]
    steps = np.arange(-reach, reach + 1, dtype=word)
    return (np.asarray(centres, dtype).view(word)[:, None] + steps).astype(word).view(dtype).ravel()


def zeros(name):
    """The zeros of a function below 0, by bisection of SciPy's signs: two a unit, one of digamma."""
    function = {"lgamma": scipy.special.gammaln, "digamma": scipy.special.psi}[name]
    edge = 2.0 ** -40
    for n in range(2, 12):
        middle = -n - 0.5
        for low, high in (((-n - 1 + edge, middle), (middle, -n - edge)) if name == "lgamma"
                          else ((-n - 1 + edge, -n - edge),)):
            if function(low) * function(high) < 0:
                yield scipy.optimize.brentq(function, low, high)


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_zeros_and_poles_below_0(name):
    found = list(zeros(name))
    assert len(found) > 8
    near = np.concatenate([beside(found, np.float32, 20), beside(-np.arange(1.0, 12.0), np.float32, 5)])
    assert errors(name, [near])[1] <= 1
    assert errors(name, [beside(found, np.float64, 20)])[1] <= FUNCTIONS[name].ulps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logaddexp_beside_its_zeros(dtype):
    g = np.random.default_rng(1)
    x = np.concatenate([-np.geomspace(1e-9, 0.69, 1500), np.log(g.random(1500))]).astype(dtype)
    with gmpy2.context(precision=120):
        y = np.array([float(gmpy2.log(-gmpy2.expm1(gmpy2.mpfr(float(v))))) for v in x]).astype(dtype)
    assert errors("logaddexp", [x, y])[1] <= FUNCTIONS["logaddexp"].ulps
