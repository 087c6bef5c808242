"""The einops package on tensors and traced values."""
import subprocess
import sys

import einops
import numpy as np
import pytest

import tlgrad as tl

X = np.arange(24.0).reshape(2, 3, 4)

CALLS = {
    "rearrange": lambda m, x: m.rearrange(x, "a b c -> (c a) b"),
    "rearrange a list": lambda m, x: m.rearrange([x, x + 1], "l a b c -> (a b) (l c)"),
    "reduce": lambda m, x: m.reduce(x, "a (b1 b2) c -> c b2", "max", b2=3),
    "mean": lambda m, x: m.reduce(x, "a b c -> b", "mean"),
    "sum": lambda m, x: m.reduce(x, "a b c -> c a", "sum"),
    "repeat": lambda m, x: m.repeat(x, "a b c -> a r (b c s)", r=2, s=3),
    "einsum": lambda m, x: m.einsum(x, x, "a b c, a b d -> c d"),
    "pack": lambda m, x: m.pack([x, x[:, 0]], "a * c")[0],
    "unpack": lambda m, x: m.unpack(x, [(), (2,)], "a * c")[1],
    "asnumpy": lambda m, x: m.asnumpy(x)}


@pytest.mark.parametrize("name", CALLS)
def test_einops_functions_agree_with_numpy(name):
    got = CALLS[name](einops, tl.tensor(X))
    assert np.array_equal(np.asarray(got), CALLS[name](einops, X))
    assert isinstance(got, np.ndarray if name == "asnumpy" else tl.Tensor)


@pytest.mark.parametrize("name", [n for n in CALLS if n != "asnumpy"])
def test_under_transforms(name):
    def f(x):
        return CALLS[name](einops, x)
    assert tl.same_bits(tl.run(f)(X), f(tl.tensor(X)))
    assert tl.grad(lambda x: tl.sum(f(x) ** 2))(X).shape == X.shape
    mapped = tl.vmap(f)(np.stack([X, -X]))
    assert tl.same_bits(np.asarray(mapped)[1], f(tl.tensor(-X)))


def test_parse_shape_and_refusal_of_a_mean_of_integers():
    assert einops.parse_shape(tl.tensor(X), "a _ c") == {"a": 2, "c": 4}
    with pytest.raises(NotImplementedError):
        einops.reduce(tl.tensor(np.ones((2, 2), int)), "a b -> b", "mean")


@pytest.mark.parametrize("first, second", [("einops", "tlgrad"), ("tlgrad", "einops")])
def test_either_import_order_and_no_import_of_einops(first, second):
    code = f"""
import sys
import {first}
assert "{second}" not in sys.modules
import {second}
import tlgrad, einops
assert einops.rearrange(tlgrad.tensor([[1, 2]]), "a b -> b a").shape == (2, 1)
assert not any(type(f).__name__ == "_WhenLoaded" for f in sys.meta_path)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
