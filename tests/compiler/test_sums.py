"""Reductions, contractions of any number of operands and running sums: the words of the loop."""
import itertools
import tracemalloc

import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu import steps
from tlgrad.core.execute import WORTH_A_KERNEL
from tlgrad.ops.contract_many import contract
from beside_reference import compiled
from compiler.test_contractions import numbers

TYPES = ["float32", "float64", "int8", "uint16", "int32", "int64", "uint64"]


def entries(shape, dtype, seed):
    """Numbers of a dtype; some special."""
    if np.dtype(dtype).kind == "f":
        return numbers(shape, dtype, seed)
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(dtype)


def names_of(pattern):
    """Labels of a pattern such as "ab,bc->ac"."""
    terms, out = pattern.split("->")
    letters = list(dict.fromkeys(terms.replace(",", "")))
    summed = tuple(k for k, n in enumerate(letters) if n not in out)
    return dict(labels=tuple(tuple(map(letters.index, t)) for t in terms.split(",")),
                out=tuple(map(letters.index, out)), summed=summed), letters


PATTERNS = ["ab,bc,b->ac", "ab,ab,ab->a", "ab,ab,b->b", "a,b,c->", "abc,cb,a->b", "abcd,bd,da->ca", "ab,cd->ad",
            "abc,acb->", "ba,cb,a->ca", "abcde,ace->db"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("order", ["ordered", "fused", "tree", "free"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_contractions_of_any_operands(pattern, order, dtype):
    labels, letters = names_of(pattern)
    rng = np.random.default_rng(len(pattern))
    for lengths in ([3, 5, 4, 2, 3], [1, 17, 20, 3, 2], [19, 33, 2, 16, 3]):
        sizes = dict(zip(letters, rng.permutation(lengths)))
        terms = pattern.split("->")[0].split(",")
        xs = [entries(tuple(sizes[c] for c in t), dtype, k) for k, t in enumerate(terms)]
        if order == "free" and dtype.startswith("f"):
            xs = [np.round(np.nan_to_num(x, posinf=2, neginf=-2)) for x in xs]     # exact in every order
        compiled(lambda *xs: contract.bind(*xs, order=order, **labels), *xs)


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions_along_all_sets_of_axes(dtype, monkeypatch):
    monkeypatch.setattr(steps, "LONG", 0)
    for shape in ((3, 18, 5), (2, 1, 35), (33, 2, 3, 20), (70, 70)):
        x = entries(shape, dtype, 1)
        for n in range(1, len(shape)):
            for axes in itertools.combinations(range(len(shape)), n):
                for f in (tl.sum, tl.max, tl.min, tl.prod):
                    compiled(lambda x: f(x, axis=axes), x)
                compiled(lambda x: tl.sum(tl.flip(x.T, 0), axis=axes), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["ordered", "tree"])
def test_sums_continue_from_an_accumulator(order, dtype, monkeypatch):
    monkeypatch.setattr(steps, "LONG", 0)
    for shape in ((300, 40), (5, 130, 7), (1, 1), (3, 1, 1), (1, 1, 1)):
        x = entries(shape, dtype, 2)
        start = entries(shape[:-2] + shape[-1:], dtype, 3)
        compiled(lambda x, s: tl.sum(x, axis=-2, init=s, order=order), x, start)


@pytest.mark.parametrize("order", ["ordered", "tree"])
def test_products_in_a_tree_and_of_integers(order):
    for dtype in ("float32", "float64", "int8", "uint16", "int32", "uint64"):
        for k in (3, 128, 129, 700):
            a, b = entries((5, k), dtype, 4), entries((k, 9), dtype, 5)
            compiled(lambda a, b: tl.matmul(a, b, order=order), a, b)
            a, b = entries((3, 7, k), dtype, 4), entries((3, 4, k), dtype, 5)
            compiled(lambda a, b: tl.matmul(a, tl.moveaxis(b, -1, -2), order=order), a, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("f", [tl.cumsum, tl.cumprod])
def test_running_sums_and_products(f, dtype):
    for shape in ((70,), (5, 33), (40, 17, 3), (16, 16), (2, 64, 48)):
        x = entries(shape, dtype, 6)
        for axis in range(len(shape)):
            compiled(lambda x: f(x, axis=axis), x)
            compiled(lambda x: f(tl.flip(x, axis), axis=axis), x)
            compiled(lambda x: tl.grad(lambda x: tl.sum(f(x, axis=axis)))(x), x.astype("float64"))


def test_many_chunks_and_threads(monkeypatch):
    x = entries((40, 9000), "float32", 7)
    want = compiled(lambda x: tl.sum(x, axis=0), x)
    for threads in ("1", "3"):
        monkeypatch.setenv("TLGRAD_NUM_THREADS", threads)
        compiled(lambda x: tl.sum(x, axis=0), x)
        compiled(lambda x: tl.sum(x.reshape(4, 10, 9000), axis=1), x)
        compiled(lambda x: contract.bind(x, x, x[0], labels=((0, 1), (0, 1), (1,)), out=(1,), summed=(0,),
                                         order="fused"), x)
    assert not want.kernels and x.size > WORTH_A_KERNEL


@pytest.mark.parametrize("order", ["ordered", "fused", "tree"])
def test_long_products_with_a_vector_read_the_matrix_in_place(order):
    for dtype in ("float32", "float64"):
        w, x, y = (entries(s, dtype, 8) for s in ((129, 200), (200,), (129,)))
        for f in (lambda w, x, y: tl.matmul(w, x, order=order), lambda w, x, y: tl.matmul(y, w, order=order),
                  lambda w, x, y: tl.matmul(w.T, y, order=order), lambda w, x, y: tl.vecdot(w, w, order=order)):
            assert not compiled(f, w, x, y).kernels


def test_free_einsum_of_operands_with_all_indices_is_one_pass():
    x, y, z = (np.round(entries((40, 50), "float64", k), 1) for k in (1, 2, 3))
    x, y, z = (np.nan_to_num(v, posinf=1, neginf=1) for v in (x, y, z))
    for pattern in ("a b, a b, a b -> b", "a b, a b, a b -> a", "a b, a b, a b ->", "a b, a b, a b -> b a"):
        letters = pattern.replace(" ", "")
        got = np.asarray(tl.einsum(pattern, x, y, z, order="free"))
        assert np.allclose(got, np.einsum(letters, x, y, z), rtol=1e-12)


@pytest.mark.parametrize("order", ["ordered", "fused", "tree", "free"])
def test_no_array_of_all_products_is_made(order):
    x, y, z = (tl.tensor(np.ones(s, "float32")) for s in ((300, 256), (256, 300), (256,)))
    for f in (lambda: tl.einsum("a b, b c, b -> a c", x, y, z, order=order),
              lambda: tl.einsum("a b, b c -> a c", x, y, order=order)):
        tracemalloc.start()
        try:
            assert f().tolist() == [[256.0] * 300] * 300
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 12 << 20                       # all products would be 88 MiB


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint16"])
def test_the_first_winner_of_large_arrays(dtype):
    x = np.random.default_rng(9).integers(0, 50, (300, 120)).astype(dtype)
    t = tl.tensor(x)
    before = t.words().copy()
    for axis in (0, 1, None):
        for f, want in ((tl.argmax, np.argmax), (tl.argmin, np.argmin)):
            assert np.array_equal(np.asarray(f(t, axis=axis)), want(x, axis=axis))
            assert np.array_equal(np.asarray(tl.run(lambda x, f=f: f(x, axis=axis))(t)), want(x, axis=axis))
    assert np.array_equal(t.words(), before)
