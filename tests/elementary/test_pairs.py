"""The bodies in pairs of binary32 numbers: where they do not doubt, the words of the narrow bodies."""
import numpy as np
import pytest

from tlgrad.kernels.elementary import FUNCTIONS, meaning, pairs
from tlgrad.kernels.expr import Numpy, Value
from tlgrad.kernels.expr.llvm import LLVM

NAMES = sorted(pairs.BODIES)


def samples(name):
    """Ordinary numbers, random words, and the ends of every format and range."""
    g = np.random.default_rng(len(name))
    words = g.integers(0, 1 << 32, 1 << 14, np.uint64).astype(np.uint32).view(np.float32)
    ends = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38])
    near = np.nextafter(np.float32(1), np.float32([0, 2]))
    return np.concatenate([words, ends, near, (g.standard_normal(1 << 14) * 2).astype(np.float32)])


def in_pairs(name, x):
    with np.errstate(all="ignore"):
        y, doubt = pairs.BODIES[name](Value(Numpy(), x, "f32"))
    return y.handle, doubt.handle


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_doubted_is_correctly_rounded(name):
    x = samples(name)
    y, doubt = in_pairs(name, x)
    want = meaning(name, x)
    assert not np.isnan(y[~doubt]).any()
    np.testing.assert_array_equal(y[~doubt].view(np.uint32), want[~doubt].view(np.uint32))


@pytest.mark.parametrize("name", NAMES)
def test_doubt_is_rare_for_ordinary_numbers_and_never_at_zero(name):
    x = (np.random.default_rng(1).standard_normal(1 << 14) * 2).astype(np.float32)
    if name in ("log", "log1p"):
        x = np.abs(x)
    assert in_pairs(name, x)[1].mean() < 0.004
    assert not in_pairs(name, np.float32([1.0] if name == "log" else [0.0, -0.0]))[1].any()


@pytest.mark.parametrize("name", NAMES)
def test_no_operation_meets_a_subnormal_number(name, monkeypatch):
    met = []

    def watched(self, kind, type, *values):
        if kind in ("mul", "fma", "div") and type == "f32":
            met.extend(v.handle[(np.abs(v.handle) < 2.0 ** -126) & (v.handle != 0)] for v in values)
        return operation(self, kind, type, *values)
    operation = Numpy.op
    monkeypatch.setattr(Numpy, "op", watched)
    x = np.float32([1e-45, -1e-45, 1e-40, -1e-40, 1e-38, -1e-38])
    y, doubt = in_pairs(name, x)
    if name != "log":                               # of its results, which are doubtful, nothing is promised
        assert not any(part.size for part in met), met


def test_registers_of_sixteen_only():
    assert LLVM(16, avx512=True).permutes and LLVM(32, avx512=True).permutes
    assert not (LLVM(8, avx512=True).permutes or LLVM(16).permutes or Numpy().permutes)
    assert {name for name, function in FUNCTIONS.items() if function.pairs} == set(NAMES)
