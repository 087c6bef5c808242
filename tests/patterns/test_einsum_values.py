"""Worked values of einsum: the essay's, and behaviours that users found broken elsewhere."""
import tracemalloc

import numpy as np
import pytest

import tlgrad as tl
from patterns.pattern_oracle import Spec, spread, written_loop

A = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
B = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
CUBE = np.arange(18.0).reshape(3, 3, 2)
QUERIES = np.array([[[[1, 0], [0, 1]], [[1, 1], [2, 1]]]], np.float32)
KEYS = np.array([[[[1, 0], [0, 1]], [[1, 0], [0, 1]]]], np.float32)
WEIGHTS = np.array([[[[.75, .25], [.25, .75]], [[.5, .5], [1, 0]]]], np.float32)
VALUES = np.array([[[[10], [20]], [[30], [50]]]], np.float32)

TABLE = [
    ("matrix product", "row feature, feature output -> row output", (A, B), [[22, 28], [49, 64]]),
    ("row norms", "row feature, row feature -> row", (A, A), [14, 77]),
    ("attention scores", "batch head query feature, batch head key feature -> batch head query key",
     (QUERIES, KEYS), [[[[1, 0], [0, 1]], [[1, 1], [2, 1]]]]),
    ("attention values", "batch head query key, batch head key channel -> batch head query channel",
     (WEIGHTS, VALUES), [[[[12.5], [17.5]], [[40], [30]]]]),
    ("diagonal, then a sum", "i i j -> i", (CUBE,), [1, 17, 33]),
    ("diagonal", "i i j -> i j", (CUBE,), [[0, 1], [8, 9], [16, 17]]),
    ("two diagonals", "b b c d c -> d", (np.arange(4.0).reshape(1, 1, 2, 1, 2),), [3]),
    ("trace", "i i ->", (np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),), 15),
    ("trace in letters", "ii", (np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),), 15),
    ("ellipsis summed", "i ... -> i", (np.ones((3, 3, 3)),), [9, 9, 9]),
    ("ellipsis right-aligned", "... i, ... -> ...", (np.ones((2, 3, 4)), np.arange(3.0)), [[0, 4, 8]] * 2),
    ("length 1 stretches", "i, i ->", (np.array([2.0, 2.0]), np.array([2.0])), 8),
    ("0 beside 1", "i, i -> i", (np.ones(0), np.ones(1)), []),
    ("scalars", ", ->", (np.float64(3), np.float64(4)), 12),
    ("a word for one axis", "row, row ->", (np.ones(3), np.ones(3)), 3),
    ("three operands", "a b, c d, e f ->", (np.ones((2, 3)), np.ones((5, 2)), np.ones((3, 4))), 720),
    ("no terms", "a b, b c -> a c", (np.ones((2, 0)), np.ones((0, 3))), [[0, 0, 0], [0, 0, 0]]),
    ("underscore", "_ a -> a", (A,), [5, 7, 9]),
    ("blanks of every kind", "\trow\n feature -> feature", (A,), [5, 7, 9])]


@pytest.mark.parametrize("pattern, operands, expected", [row[1:] for row in TABLE],
                         ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("order", ["ordered", "fused", "tree", "free"])
def test_worked_values(pattern, operands, expected, order):
    got = tl.einsum(pattern, *operands, order=order)
    assert np.array_equal(np.asarray(got), np.array(expected))
    assert got.dtype == (np.int64 if operands[0].dtype.kind == "i" else operands[0].dtype)


def test_triple_product_and_its_gradients():
    x, y, z = [2.0, 3.0], [5.0, 7.0], [11.0, 13.0]
    value, pull = tl.vjp(lambda *v: tl.einsum("a,a,a->", *v), *map(tl.tensor, (x, y, z)))
    assert value.item() == 383
    assert [g.tolist() for g in pull(2.0)] == [[110, 182], [44, 78], [20, 42]]


def test_cotangents_have_the_shapes_of_the_inputs():
    f = tl.grad(lambda x, y: tl.einsum("i,i->", x, y), argnums=(0, 1))
    assert [g.tolist() for g in f(tl.tensor([2.0, 2.0]), tl.tensor([2.0]))] == [[2, 2], [4]]
    x = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
    assert tl.grad(lambda x: tl.sum(tl.einsum("abcd->bd", x) ** 2))(x).shape == (3, 2, 3, 2)


# ---- words ----

def test_order_of_summation_is_first_occurrence_row_major():
    x, y = np.array([[1e16, 1.0], [1.0, -1e16]]), np.ones((2, 2, 1))
    assert tl.einsum("a b, b a c -> c", x, y).tolist() == [0.0]
    x = np.array([[1e16, -1e16], [1.0, 0.0]])
    assert tl.einsum("a b, b a c -> c", x, y).tolist() == [1.0]
    assert tl.einsum("b a c, a b -> c", y, x).tolist() == [0.0]              # b first, then a


@pytest.mark.parametrize("pattern, operands", [("i -> i", 1), ("i ->", 1), ("i, -> i", 2), ("i j -> j i", 1)])
def test_sums_start_at_plus_zero(pattern, operands):
    shape = [(2,), (2,), (2,), (1, 2)][["i -> i", "i ->", "i, -> i", "i j -> j i"].index(pattern)]
    args = [np.full(shape, -0.0), np.float64(1)][:operands]
    assert not np.signbit(np.asarray(tl.einsum(pattern, *args))).any()


@pytest.mark.parametrize("order", ["ordered", "fused", "tree"])
@pytest.mark.parametrize("pattern, terms, out, shapes", [
    ("k ->", [("k",)], (), [(300,)]), ("k, k ->", [("k",), ("k",)], (), [(300,), (300,)]),
    ("k, k, k ->", [("k",)] * 3, (), [(300,)] * 3), ("k a, k -> a", [("k", "a"), ("k",)], ("a",), [(129, 2),
        (129,)]),
    ("k l, l, k -> ", [("k", "l"), ("l",), ("k",)], (), [(20, 13), (13,), (20,)])],
    ids=["sum", "dot", "triple", "matrix-vector", "form"])
def test_long_sums_have_the_documented_words(order, pattern, terms, out, shapes):
    arrays = [spread(s, np.random.default_rng(7)) for s in shapes]
    expected = written_loop(Spec(terms, out, pattern), arrays, order)
    assert tl.same_bits(tl.einsum(pattern, *arrays, order=order), expected)


def test_order_of_the_run_is_the_default():
    x, y = spread((3, 50), np.random.default_rng(1)) / 3, spread((50, 2), np.random.default_rng(2)) / 7
    fused = tl.einsum("a b, b c -> a c", x, y, order="fused")
    assert not tl.same_bits(fused, tl.einsum("a b, b c -> a c", x, y))
    assert tl.same_bits(tl.run(lambda x, y: tl.einsum("a b, b c -> a c", x, y), order="fused")(x, y), fused)


def test_complex_operands():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, s) + 1j * rng.integers(-3, 4, s) for s in [(2, 3), (3, 4)])
    assert np.array_equal(np.asarray(tl.einsum("a b, b c -> c a", x, y)), np.einsum("ab,bc->ca", x, y))
    x, y, z = (v.astype(np.complex64) for v in (x, y, y[0]))
    got = tl.einsum("a b, b c, c -> a", x, y, z)
    assert got.dtype == np.complex64 and np.array_equal(np.asarray(got), np.einsum("ab,bc,c->a", x, y, z))


# ---- dtypes ----

@pytest.mark.parametrize("dtype, result", [
    ("bool", "int64"), ("int8", "int64"), ("int16", "int64"), ("int32", "int64"), ("uint8", "uint64"),
    ("uint32", "uint64"), ("float16", "float16"), ("bfloat16", "bfloat16"), ("float32", "float32")])
@pytest.mark.parametrize("pattern", ["i ->", "i -> i", "i, i ->"])
def test_result_dtype_depends_on_the_input_dtypes_only(dtype, result, pattern):
    x = tl.tensor(np.ones(3), dtype)
    operands = [x] * (pattern.count(",") + 1)
    for order in ("ordered", "free"):
        assert tl.einsum(pattern, *operands, order=order).dtype == result
        assert tl.einsum(pattern, *[v[:0] for v in operands], order=order).dtype == result


def test_small_integers_accumulate_wide():
    x = np.full(300, 200, np.int16)
    assert tl.einsum("i ->", x).item() == 60000 and tl.reduce(x, "i ->", "sum").item() == 60000
    assert tl.einsum("i, i ->", x, np.ones(300, np.int16)).item() == 60000
    assert tl.einsum("i j -> j", x.reshape(150, 2)).tolist() == [30000, 30000]


def test_small_floats_accumulate_in_float32_and_round_once():
    ones = np.ones(70000, np.float16)
    assert np.isinf(tl.einsum("i ->", ones).item()) and np.isinf(tl.reduce(ones, "i ->", "sum").item())
    assert tl.einsum("i, i ->", ones, np.full(70000, 0.5, np.float16)).item() == np.float16(35000)
    assert tl.einsum("a b -> ", ones[:4096].reshape(64, 64)).item() == 4096
    bf = tl.tensor(np.ones(1000), "bfloat16")
    assert float(np.asarray(tl.einsum("i, i ->", bf, bf))) == 1000


def test_mixed_dtypes_meet_and_python_numbers_are_weak():
    assert tl.einsum("i, i ->", np.ones(2, np.float32), np.ones(2)).dtype == np.float64
    assert tl.einsum("i, -> i", np.ones(2, np.float32), 2.0).dtype == np.float32
    assert tl.einsum("i j -> j", [[1, 2], [3, 4]]).tolist() == [4, 6]


# ---- no work, no temporaries ----

def test_results_without_entries_do_no_work():
    wide = tl.expand(np.ones(0, np.float32), "b -> a b", a=2**40)
    assert tl.einsum("a b -> b a", wide).shape == (0, 2**40)
    assert tl.einsum("a b, a -> b", wide, tl.expand(1.0, "-> a", a=2**40)).shape == (0,)
    for by in tl.patterns.transform.REDUCTIONS:
        x = wide if by not in ("any", "all") else wide != 0
        assert tl.reduce(x, "a b -> b", by).shape == (0,)
    k = np.ones((2**22, 0), np.float32)
    assert tl.einsum("k a, k b, k c -> a b c", k, k, k).shape == (0, 0, 0)


@pytest.mark.parametrize("pattern, shapes, limit", [
    ("a b, b c -> a c", [(64, 256), (256, 64)], 1 << 20),                 # all products: 8 MiB
    ("a b, b c -> c a", [(64, 256), (256, 64)], 1 << 20),
    ("a b, b c, b -> a c", [(64, 256), (256, 64), (256,)], 1 << 20),
    ("a, b, c ->", [(100,), (100,), (100,)], 1 << 21)], ids=["product", "transposed", "three", "outer sum"])
def test_no_array_of_all_products(pattern, shapes, limit):
    arrays = [tl.tensor(np.ones(s)) for s in shapes]
    tl.einsum(pattern, *arrays)
    tracemalloc.start()
    tl.einsum(pattern, *arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit
