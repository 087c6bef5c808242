"""`evaluate`: shapes, strides, refusals, and its two ways of working, which must give the same
words."""
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.kernels.elementary import FUNCTIONS, evaluation, evaluate, meaning
from tlgrad.ops import elementary, special

DTYPES = ["float16", "float32", "float64"]
WORD = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def arguments(name, dtype, n=3000, seed=0):
    """Random words with every special value, and ordinary numbers."""
    g = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-300, 1e-42,
               1e30]

    def column():
        words = g.integers(0, 1 << 64, n, dtype=np.uint64, endpoint=False).astype(WORD[size])
        with np.errstate(all="ignore"):
            return np.concatenate([words.view(dtype), (g.standard_normal(n) * 4).astype(dtype),
                                   g.choice(special, n).astype(dtype)])
    return [column() for _ in range(FUNCTIONS[name].arity)]


def same_words(a, b):
    both_nan = np.isnan(a) & np.isnan(b)
    word = WORD[a.dtype.itemsize]
    return (a.view(word) == b.view(word)) | both_nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_compiled_body_gives_the_words_of_the_meaning(name, dtype):
    x = arguments(name, dtype)
    same = same_words(meaning(name, *x), evaluate(name, *x))
    assert same.all(), [a[~same][:3] for a in x]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (7, 41), (300, 2)], ids=str)
def test_shapes_and_strides(shape):
    g = np.random.default_rng(0)
    whole = g.standard_normal([2 * n for n in shape])
    x = whole[tuple(slice(None, None, 2) for _ in shape)]
    y = evaluate("exp", x)
    assert y.shape == shape and y.dtype == np.float64
    np.testing.assert_array_equal(y, meaning("exp", x.copy()))


def test_a_scalar_broadcasts():
    x = np.linspace(0, 3, 500)
    np.testing.assert_array_equal(evaluate("pow", x, np.float64(2.5)),
                                  meaning("pow", x, np.full(500, 2.5)))


def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, function in FUNCTIONS.items():
            for dtype in DTYPES:
                x = np.array([np.nan, np.inf, -1, 0, 6e4], dtype)
                evaluate(name, *[x] * function.arity)
                evaluate(name, *[np.tile(x, 100)] * function.arity)


def test_a_repeated_small_call_compiles():
    evaluation._COMPILED.pop(("cosh", "float64"), None)
    evaluation._SMALL.clear()
    x = np.ones(3)
    for _ in range(evaluation.SMALL_CALLS + 1):
        evaluate("cosh", x)
    assert ("cosh", "float64") in evaluation._COMPILED


@pytest.mark.parametrize("arrays, error, text", [
    ((np.ones(2, int),), TypeError, "int64"),
    ((np.ones(2), np.ones(2)), TypeError, "expected 1 argument"),
], ids=["dtype", "count"])
def test_refusals(arrays, error, text):
    with pytest.raises(error, match=text):
        evaluate("exp", *arrays)


def test_unequal_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\)"):
        evaluate("pow", np.ones(2), np.ones(3))


def test_threads_may_compile_at_once():
    program = """
import concurrent.futures, numpy as np
from tlgrad.kernels.elementary import evaluate, meaning
x, names = np.linspace(0.1, 0.9, 2000), ["exp", "log", "sin", "atan", "erf", "cbrt"] * 3
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for name, y in zip(names, pool.map(lambda name: evaluate(name, x), names)):
        assert (y == meaning(name, x)).all(), name
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_primitive_means_the_body(name):
    """Eager and compiled: the words of the body in NumPy."""
    x = [np.abs(a[-40:]) for a in arguments(name, "float64", 40)]
    primitive = {"pow": "pow_"}.get(name, name)
    function = getattr(elementary, primitive, None) or getattr(special, primitive)
    operands, right = [tl.tensor(a) for a in x], meaning(name, *x)
    for found in (function(*operands), tl.run(function)(*operands)):
        assert same_words(np.asarray(found), right).all()
