"""Branches of wide vectors are functions that all kernels share, with the words of the branch in place."""
import numpy as np
import pytest

from tlgrad.kernels.elementary import evaluation
from tlgrad.kernels.expr import Numpy, Value, horner, rare, select, vote
from tlgrad.kernels.expr.branches import SHORT, Branch
from tlgrad.kernels.expr.llvm import LLVM

from .test_evaluate import same_words

LONG = [1.0 / k for k in range(1, SHORT)]


def nested(x):
    """Branches in branches, which take values from the kernel, and from the branch around them."""
    square = x * x

    def outer():
        near = horner(LONG, square * 0.5)
        taken = near + x

        def inner():
            return taken + horner(LONG, taken * 2.0 ** -9), near - square * x
        y, z = vote(taken > 1.5, inner, near, taken)
        return (rare(z > 2.0, lambda: (horner(LONG, z * 2.0 ** -9) - square,), y + z),)
    return vote(x > 0.25, outer, select(square > 1.0, x, square))


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_branches_in_branches(lanes):
    kernel = evaluation.loop_kernel(nested, 1, "f64", LLVM(lanes, block="loop"))
    x = np.random.default_rng(lanes).uniform(-2, 2, 1001)
    x[lanes:4 * lanes] = -1                        # no lane of these takes a branch
    out = np.empty_like(x)
    evaluation.load(kernel)(x.ctypes.data, out.ctypes.data, x.size)
    assert same_words(out, nested(Value(Numpy(), x, "f64")).handle).all()
    functions = [b for b in kernel.externals.values() if isinstance(b, Branch)]
    assert len(functions) == (lanes > 8)
    assert [len(b.externals) for b in functions] == [2] * (lanes > 8)


def test_functions_share_branches():
    sine, cosine, tangent = (evaluation.kernel(name, "float64", 16).externals for name in ("sin", "cos", "tan"))
    shared = sine.keys() & cosine.keys()
    assert [type(sine[symbol]) for symbol in shared] == [Branch]
    assert all("two_over_pi" not in symbol for symbol in (*sine, *cosine, *tangent))       # only branches read it


def test_a_short_branch_is_in_the_kernel():
    kernel = evaluation.loop_kernel(lambda x: rare(x < 0.0, lambda: (-x,), x), 1, "f64", LLVM(16, block="loop"))
    assert not kernel.externals and "call <16" not in kernel.text
