"""Contractions on tiles are bit-equal to the loop that defines them."""
import ctypes
from dataclasses import replace

import numpy as np
import pytest
from beside_reference import compiled

import tlgrad as tl
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.kernels.machine import host
from tlgrad.kernels.tiles.contraction import WORDS, module, tile_for
from tlgrad.ops.contract import dot_general

SHAPES = [(1, 1, 1), (2, 3, 4), (5, 7, 9), (6, 8, 16), (7, 1, 17), (13, 300, 33), (70, 65, 70),
          (3, 0, 5), (4, 9, 1), (1, 9, 40), (64, 257, 31), (30, 20, 5), (65, 9, 10), (6, 300, 2)]


def numbers(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    special = rng.choice([np.inf, -0.0, 1e-300, np.nan, 0.0], shape)
    return np.where(rng.random(shape) < 0.02, special, out).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["ordered", "fused"])
@pytest.mark.parametrize("m,k,n", SHAPES)
def test_every_layout_of_a_product_has_the_words_of_the_loop(dtype, order, m, k, n):
    if order == "fused" and m * k * n > 5000:
        m, k, n = min(m, 9), min(k, 20), min(n, 21)
    for x_turned in (False, True):
        for y_turned in (False, True):
            x = numbers((k, m) if x_turned else (m, k), dtype, 1)
            y = numbers((n, k) if y_turned else (k, n), dtype, 2)
            contract = ((0 if x_turned else 1,), (1 if y_turned else 0,))
            compiled(lambda a, b: dot_general.bind(a, b, contract=contract, batch=((), ()), order=order), x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_many_axes_strided_operands_and_a_start(dtype):
    q, k = numbers((2, 3, 10, 8), dtype, 3), numbers((2, 3, 19, 8), dtype, 4)
    scores = dict(contract=((3,), (3,)), batch=((0, 1), (0, 1)), order="ordered")
    compiled(lambda a, b: dot_general.bind(a, b, **scores), q, k)
    compiled(lambda a, b: dot_general.bind(a, b, contract=((0, 2), (0, 2)), batch=((1,), (1,)), order="ordered"),
             q, numbers((2, 3, 10, 5), dtype, 5))
    compiled(lambda a, b: dot_general.bind(a, b, contract=((2, 0), (2, 0)), batch=((), ()), order="ordered"),
             q, numbers((2, 3, 10, 5), dtype, 5))
    compiled(lambda a, b, c: dot_general.bind(a, b, c, contract=((1,), (0,)), batch=((), ()), order="ordered"),
          numbers((9, 20), dtype, 6), numbers((20, 21), dtype, 7), numbers((9, 21), dtype, 8))
    compiled(lambda a, b: dot_general.bind(a[::2, ::-1], b[1:, ::3], contract=((1,), (0,)), batch=((), ()),
                                        order="ordered"), numbers((9, 20), dtype, 6), numbers((21, 30), dtype, 7))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_terms_and_of_columns_keep_the_order(dtype):
    rng = np.random.default_rng(11)
    x, y = rng.standard_normal((8, 1100)).astype(dtype), rng.standard_normal((1100, 450)).astype(dtype)
    want = np.zeros((8, 450), dtype)
    for k in range(1100):
        want = want + np.multiply.outer(x[:, k], y[k])
    assert tl.same_bits(tl.run(lambda a, b: tl.matmul(a, b))(x, y), want)
    assert tl.same_bits(tl.run(lambda a, b: tl.matmul(a.T, b.T))(x.T.copy(), y.T.copy()), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_products_of_whole_numbers_are_exact_in_every_layout(dtype):
    rng = np.random.default_rng(12)
    for m, k, n in ((70, 1100, 450), (13, 20, 64), (6, 400, 65)):
        x, y = rng.integers(-9, 9, (m, k)), rng.integers(-9, 9, (k, n))
        for a, b in ((x, y), (x.T, y), (x, y.T), (x.T, y.T)):
            left, right = (lambda v, want=want: v if v.shape == want else v.T for want in ((m, k), (k, n)))
            f = tl.run(lambda a, b: tl.matmul(left(a), right(b)), order="fused")
            assert tl.same_bits(f(a.astype(dtype, order="C"), b.astype(dtype, order="C")), (x @ y).astype(dtype))


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_from_registers_and_from_memory_make_the_same_words(dtype, embedded):
    tile, name = replace(tile_for(f"f{dtype[-2:]}", host(), False), embedded=embedded), f"by_{dtype}_{embedded}"
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    kernel = kind(build(module(tile, name), name))
    x, y = numbers((13, 70), dtype, 1), numbers((70, 150), dtype, 2)
    got, want = np.empty((13, 150), dtype), np.zeros((13, 150), dtype)
    steps = {f"{w}_{axis}": s for w, array, axes in (("a", x, "mk"), ("b", y, "kn"), ("c", got, "mn"))
             for axis, s in zip(axes, array.strides)}
    words = dict.fromkeys(WORDS, 0) | steps | dict(
        a=x.ctypes.data, b=y.ctypes.data, c=got.ctypes.data, m_limit=13, n=150, k=70, fresh=1)
    kernel(np.array([words[w] for w in WORDS], np.int64).ctypes.data, 0, 1)
    with np.errstate(invalid="ignore"):
        for k in range(70):
            want = want + np.multiply.outer(x[:, k], y[k])
    assert tl.same_bits(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [2, 3, 5, 6, 7])
def test_few_rows_and_full_panels(rows, dtype):
    """The first rows pack the panels for those after them, whatever their number."""
    wide, y = numbers((2, rows, 400), dtype, 1), numbers((2, 400, 201), dtype, 2)
    for first in (0, 1):                                 # rows of the second factor start where lines do, or not
        for axes in ((0, 1, 2), (0, 2, 1)):
            f = tl.run(lambda a, b: tl.matmul(a, tl.transpose(b, axes)))
            b = np.ascontiguousarray(y[:, :, first:].transpose(axes))
            want = np.zeros((2, rows, 201 - first), dtype)
            with np.errstate(invalid="ignore"):
                for k in range(400):
                    want = want + wide[:, :, k, None] * y[:, k, None, first:]
            assert tl.same_bits(f(wide, b), want)


@pytest.mark.parametrize("columns", [1536, 1535])
def test_large_products_go_past_the_caches_to_the_same_words(columns):
    rng = np.random.default_rng(13)
    x, y = rng.standard_normal((1500, 3)).astype("float32"), rng.standard_normal((3, columns)).astype("float32")
    want = sum(np.multiply.outer(x[:, k], y[k]) for k in range(3))
    assert tl.same_bits(tl.run(lambda a, b: tl.matmul(a, b))(x, y), want)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_few_columns_are_computed_as_rows(dtype):
    rng, scores = np.random.default_rng(1), dict(contract=((3,), (3,)), batch=((0, 1), (0, 1)), order="ordered")
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((2, 3, 40, 30), (2, 3, 4, 30)))
    plan = compiled(lambda a, b: dot_general.bind(a, b, **scores), x, y)
    tile = tile_for({"float32": "f32", "int64": "i64"}[dtype], host(), False)
    assert ("transpose(0, 2, 1)" in plan.source) == (tile.width >= 2 * 4)
    plan = compiled(lambda a, b: dot_general.bind(b, a, **scores), x, y)
    assert "transpose(0, 2, 1)" not in plan.source


def test_products_with_vectors_fuse_into_one_kernel():
    w, x = numbers((40, 30), "float32", 1), numbers((30,), "float32", 2)
    assert len(compiled(lambda w, x: tl.matmul(w, x), w, x).kernels) == 1
    assert len(compiled(lambda w, x: tl.matmul(x, w.T), w, x).kernels) == 1
    compiled(lambda x: tl.matmul(x, x), x)
    compiled(lambda w, x: tl.matmul(w[None] + w[:, None, :], x), w, x)
