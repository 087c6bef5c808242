"""Names from NumPy, jax.nn and torch.nn.functional that came last: values, derivatives, refusals."""
import math

import mpmath
import numpy as np
import pytest

import tlgrad as tl
import tlgrad.numpy as tn
from tlgrad.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError

M = mpmath.MPContext()
M.dps = 40
rng = np.random.default_rng(1)
SAMPLE, WEIGHTS = rng.normal(size=(40, 3)), rng.uniform(size=40)


@pytest.mark.parametrize("options", [
    {}, {"bins": (3, 4, 5)}, {"bins": 2, "density": True},
    {"bins": 3, "weights": WEIGHTS, "range": [(-1, 1)] * 3},
    {"bins": [np.array([-1.0, 0.0, 2.0])] * 3}],
    ids=["default", "sizes", "density", "weights", "edges"])
def test_histograms_of_several_variables(options):
    counts, edges = tn.histogramdd(SAMPLE, **options)
    right, theirs = np.histogramdd(SAMPLE, **options)
    assert np.allclose(counts, right) and all(np.allclose(a, b) for a, b in zip(edges, theirs))
    of_list = tn.histogramdd([SAMPLE[:, k] for k in range(3)], **options)[0]
    assert np.array_equal(of_list, counts)
    if "weights" not in options:
        pair = tn.histogram2d(SAMPLE[:, 0], SAMPLE[:, 1], bins=(3, 4))
        theirs = np.histogram2d(SAMPLE[:, 0], SAMPLE[:, 1], bins=(3, 4))
        assert all(np.allclose(a, b) for a, b in zip(pair, theirs))


def test_histogram_counts_the_right_edge_and_differentiates_in_weights():
    x = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.5], [2.0, 0.0]])
    edges = [np.array([0.0, 0.5, 1.0])] * 2
    assert tn.histogramdd(x, edges)[0].tolist() == np.histogramdd(x, edges)[0].tolist()
    slope = tl.grad(lambda w: tn.histogramdd(x, edges, weights=w)[0][1, 1])(np.ones(4))
    assert slope.tolist() == [0, 1, 1, 0]
    with pytest.raises(ArgumentError, match="2 variables, but 3 bins"):
        tn.histogramdd(x, (1, 2, 3))


def test_masks_as_indices():
    for f, k in (("triu", 1), ("tril", -1)):
        got, right = tn.mask_indices(4, getattr(tn, f), k), np.mask_indices(4, getattr(np, f), k)
        assert all(np.array_equal(a, b) for a, b in zip(got, right))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_in_bytes(axis, order):
    bits = rng.integers(0, 2, size=(3, 13))
    packed = tn.packbits(bits, axis, order)
    assert packed.dtype is tl.uint8 and np.array_equal(packed, np.packbits(bits, axis, order))
    for count in (None, 3, -2):
        assert np.array_equal(tn.unpackbits(packed, axis, count, order),
                              np.unpackbits(np.asarray(packed), axis, count, order))
    with pytest.raises(DTypeError, match="uint8"):
        tn.unpackbits(bits)
    with pytest.raises(ArgumentError, match="'big' or 'little'"):
        tn.packbits(bits, bitorder="middle")


REFERENCES = {
    "hard_sigmoid": lambda x: min(max(x + 3, 0), 6) / 6, "hard_silu": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "squareplus": lambda x: (x + M.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: M.mpf(0) if x <= -1 else x if x >= 1 else (x + 1)**2 / 4,
    "sparse_sigmoid": lambda x: min(max((x + 1) / 2, 0), 1), "swish": lambda x: x / (1 + M.exp(-x)),
    "soft_sign": lambda x: x / (1 + abs(x)), "log1mexp": lambda x: M.log1p(-M.exp(-x)),
    "logmeanexp": lambda x: x, "celu": lambda x: x if x > 0 else M.expm1(x)}


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_of_networks_against_mpmath(name):
    for x in (-1e5, -40.0, -2.5, -0.3, -1e-9, 1e-9, 0.4, 3.5, 700.0):
        x = abs(x) if name == "log1mexp" else x
        f, reference = getattr(tn, name), REFERENCES[name]
        right, slope = reference(M.mpf(x)), M.diff(reference, M.mpf(x))
        assert abs(f(x).item() - right) <= 1e-15 * abs(right) + 1e-320
        assert abs(tl.grad(f)(x).item() - slope) <= 1e-14 * abs(slope) + 1e-30


def test_functions_of_arrays():
    x = rng.normal(size=(4, 6))
    assert np.allclose(tn.glu(x, 1), x[:, :3] / (1 + np.exp(-x[:, 3:])))
    assert np.allclose(tn.logmeanexp(x, 1), np.log(np.exp(x).mean(1))) and tn.logmeanexp(
        np.array([1000.0, 1000.0])).item() == 1000
    z = np.asarray(tn.standardize(x, epsilon=0.0))
    assert np.allclose(z.mean(-1), 0) and np.allclose(z.var(-1), 1)
    with pytest.raises(ShapeError, match="halves"):
        tn.glu(x, 0)[None] if x.shape[0] % 2 else tn.glu(x[:3], 0)


def test_attention():
    q, k, v = (rng.normal(size=s) for s in ((2, 4, 3), (2, 5, 3), (2, 5, 2)))
    scores = q @ np.swapaxes(k, 1, 2) / math.sqrt(3)
    for options, mask in (({}, np.ones((4, 5), bool)), ({"causal": True}, np.tri(4, 5, dtype=bool)),
                          ({"mask": np.arange(5) < 3}, np.broadcast_to(np.arange(5) < 3, (4, 5)))):
        e = np.exp(np.where(mask, scores, -np.inf))
        right = e / e.sum(-1, keepdims=True) @ v
        assert np.allclose(tn.scaled_dot_product_attention(q, k, v, **options), right)
        slope = tl.grad(lambda k: tl.sum(tn.scaled_dot_product_attention(q, k, v, **options)**2))(k)
        assert np.isfinite(slope).all()
    with pytest.raises(ShapeError, match="do not fit"):
        tn.scaled_dot_product_attention(q, v, v)


def test_real_if_close_cannot_decide_for_traced_values():
    z = np.array([1 + 1e-20j, 2])
    assert tn.real_if_close(z).dtype is tl.float64 and tn.real_if_close(z + 1j).dtype is tl.complex128
    with pytest.raises(ConcretizationError, match=r"real or complex depends on the numbers.*tl\.real"):
        tl.run(tn.real_if_close)(z)
    assert tl.run(tn.real_if_close)(np.ones(2)).tolist() == [1, 1]
