"""rearrange, expand and reduce: worked values, einops as the oracle of generated patterns."""
import einops
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tlgrad as tl

M = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
X = np.arange(24.0).reshape(2, 3, 4)

TABLE = [
    ("transpose", lambda: tl.rearrange(M, "row column -> column row"), [[1, 4], [2, 5], [3, 6]]),
    ("flatten", lambda: tl.rearrange(M, "row column -> (row column)"), [1, 2, 3, 4, 5, 6]),
    ("flatten the transpose", lambda: tl.rearrange(M, "row column -> (column row)"), [1, 4, 2, 5, 3, 6]),
    ("join heads", lambda: tl.rearrange(np.array([[[[12.5], [17.5]], [[40], [30]]]]),
                                        "batch head query channel -> batch query (head channel)"),
     [[[12.5, 40], [17.5, 30]]]),
    ("split", lambda: tl.rearrange(np.arange(6), "(a b) -> b a", b=2), [[0, 2, 4], [1, 3, 5]]),
    ("unit axes", lambda: tl.rearrange(M, "a b -> b 1 () a"), [[[[1, 4]]], [[[2, 5]]], [[[3, 6]]]]),
    ("list of tensors", lambda: tl.rearrange([M[0], M[1]], "row column -> column row"), [[1, 4], [2, 5], [3,
        6]]),
    ("list of numbers", lambda: tl.rearrange([1, 2, 3], "a -> 1 a"), [[1, 2, 3]]),
    ("blanks of every kind", lambda: tl.rearrange(M, "\ta\n b ->\r\n (b a)"), [1, 4, 2, 5, 3, 6]),
    ("unicode names", lambda: tl.rearrange(M, "é x_1 -> x_1 é"), [[1, 4], [2, 5], [3, 6]]),
    ("ellipsis joined", lambda: tl.rearrange(X[:1, :, :2], "... c -> c (...)"), [[0, 4, 8], [1, 5, 9]]),
    ("bias for every row", lambda: M + tl.expand(np.float32([10, 20, 30]), "column -> row column", row=2),
     [[11, 22, 33], [14, 25, 36]]),
    ("copies", lambda: tl.expand([1, 2], "column -> column copy", copy=3), [[1, 1, 1], [2, 2, 2]]),
    ("copies in a number", lambda: tl.expand([1, 2], "column -> column 3"), [[1, 1, 1], [2, 2, 2]]),
    ("joined copies", lambda: tl.expand([1, 2], "column -> (batch row) column", batch=2, row=3), [[1,
        2]] * 6),
    ("row sums", lambda: tl.reduce(M, "row column -> row", "sum"), [6, 15]),
    ("mean of integers", lambda: tl.reduce([[0, 1, 2], [3, 4, 5]], "a b -> b", "mean"), [1.5, 2.5, 3.5]),
    ("mean of bool", lambda: tl.reduce([True, False], "a ->", "mean"), 0.5),
    ("maximum over blocks", lambda: tl.reduce(X, "a b (c d) -> c", "max", d=2), [21, 23]),
    ("minimum of a diagonal", lambda: tl.reduce(X[:, :2], "a a c -> c", "min"), [0, 1, 2, 3]),
    ("product from one", lambda: tl.reduce(np.ones((0, 2)), "a b -> b", "prod"), [1, 1]),
    ("sum from zero", lambda: tl.reduce(np.ones((0, 2)), "a b -> b"), [0, 0]),
    ("any", lambda: tl.reduce(M > 4, "row column -> row", "any"), [False, True]),
    ("all", lambda: tl.reduce(M > 0, "row column ->", "all"), True),
    ("number on the left", lambda: tl.reduce(M, "2 column -> column", "max"), [4, 5, 6]),
    ("ellipsis removed", lambda: tl.reduce(X, "... c -> c", "max"), [20, 21, 22, 23]),
    ("callable", lambda: tl.reduce(M, "row column -> column", lambda x, axes: tl.max(x, axes) - tl.min(x,
        axes)),
     [3, 3, 3])]


@pytest.mark.parametrize("call, expected", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_worked_values(call, expected):
    got = np.asarray(call())
    assert got.shape == np.shape(expected) and np.array_equal(got, expected)


@pytest.mark.parametrize("rank", range(4))
def test_ellipsis_alone_is_the_identity(rank):
    x = np.arange(2.0**rank).reshape((2,) * rank)
    assert tl.same_bits(tl.rearrange(x, "... -> ..."), x)


@pytest.mark.parametrize("dtype, by, result", [
    ("int8", "sum", "int64"), ("uint16", "sum", "uint64"), ("bool", "sum", "int64"), ("int16", "prod",
        "int64"),
    ("int32", "mean", "float64"), ("int8", "max", "int8"), ("float16", "sum", "float16"),
    ("float16", "mean", "float16"), ("float32", "mean", "float32"), ("bool", "all", "bool")])
def test_result_dtypes(dtype, by, result):
    assert tl.reduce(tl.tensor(np.ones((2, 2)), dtype), "a b -> b", by).dtype == result


def test_sixteen_bit_data_does_not_overflow_inside():
    assert tl.reduce(np.full(4096, 60, np.float16), "i ->", "mean").item() == 60
    assert tl.reduce(np.full(3, 60000, np.float16), "i ->", "mean").item() == 60000
    assert tl.reduce(np.array([65535, 1], np.uint16), "i ->").item() == 65536


def test_entries_are_taken_row_major_the_last_axis_fastest():
    x = np.array([[1e16, 1.0], [1.0, -1e16]])
    assert tl.reduce(x, "a b ->", "sum").item() == ((0 + 1e16 + 1) + 1) + -1e16 == 0.0
    assert tl.reduce(x, "a b ->", "sum", order="tree").item() == 0.0
    assert np.signbit(tl.reduce(np.array([-0.0]), "a ->", "sum").item()) == np.False_


def test_whole_shapes_of_2_to_the_40():
    x = tl.expand(1.0, "-> a", a=2**40)
    assert tl.rearrange(x, "(a b) -> b a", b=2).shape == (2, 2**39)


# ---- generated patterns, einops as the oracle ----

POOL = ("a", "b", "c", "d", "row", "é")


@st.composite
def moves(draw, kind):
    """(pattern, shape, sizes) for rearrange, expand ("repeat" of einops) or reduce."""
    names = list(draw(st.permutations(POOL)))[:draw(st.integers(1, 4))]
    length = {n: draw(st.integers(1, 3)) for n in names}
    dots = [2, 3][:draw(st.integers(0, 2))] if draw(st.booleans()) else None
    left = draw(_grouped([*names]))
    sizes, shape, words = {}, [], []
    for group in left:
        if len(group) > 1:
            unknown = draw(st.sampled_from(group))
            sizes.update({n: length[n] for n in group if n != unknown})
        shape.append(int(np.prod([length[n] for n in group])))
        words.append(_text(group))
    if dots is not None:
        at = draw(st.integers(0, len(words)))
        words.insert(at, "...")
        shape[at:at] = dots
    right_names = list(draw(st.permutations(names)))
    if kind == "reduce":
        right_names = right_names[:draw(st.integers(0, len(right_names)))]
    if kind == "expand":
        right_names.insert(draw(st.integers(0, len(right_names))), "new")
        sizes["new"] = draw(st.integers(1, 3))
    right = [_text(g) for g in draw(_grouped(right_names))]
    if dots is not None and (kind != "reduce" or draw(st.booleans())):
        right.insert(draw(st.integers(0, len(right))), draw(st.sampled_from(["...", "(...)"])))
    if draw(st.booleans()):
        right.insert(draw(st.integers(0, len(right))), "1")
    return f"{' '.join(words)} -> {' '.join(right)}", tuple(shape), sizes


@st.composite
def _grouped(draw, names):
    """The names in order, some neighbours in one group."""
    groups = []
    for n in names:
        if groups and draw(st.booleans()):
            groups[-1].append(n)
        else:
            groups.append([n])
    return groups


def _text(group):
    return group[0] if len(group) == 1 else f"({' '.join(group)})"


@given(case=moves("rearrange"))
@settings(max_examples=100, deadline=None)
def test_rearrange_agrees_with_einops(case):
    pattern, shape, sizes = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    assert np.array_equal(np.asarray(tl.rearrange(x, pattern, **sizes)), einops.rearrange(x, pattern,
        **sizes))


@given(case=moves("expand"))
@settings(max_examples=100, deadline=None)
def test_expand_agrees_with_einops(case):
    pattern, shape, sizes = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    got = tl.expand(x, pattern, **sizes)
    assert np.array_equal(np.asarray(got), einops.repeat(x, pattern, **sizes))
    (bar,) = tl.vjp(lambda x: tl.expand(x, pattern, **sizes), x)[1](np.ones(got.shape))
    assert bar.shape == shape and np.array_equal(np.asarray(bar), np.full(shape, sizes["new"]))


@pytest.mark.parametrize("by", ["sum", "mean", "min", "max", "prod"])
@given(case=moves("reduce"))
@settings(max_examples=40, deadline=None)
def test_reduce_agrees_with_einops(by, case):
    pattern, shape, sizes = case
    x = np.arange(float(np.prod(shape))).reshape(shape) % 5 - 2
    got, expected = np.asarray(tl.reduce(x, pattern, by, **sizes)), einops.reduce(x, pattern, by, **sizes)
    assert got.shape == np.shape(expected) and np.allclose(got, expected, rtol=1e-15, atol=0)


@given(case=moves("rearrange"))
@settings(max_examples=40, deadline=None)
def test_rearrange_and_back_is_the_identity(case):
    pattern, shape, sizes = case
    left, right = pattern.split("->")
    x = np.arange(float(np.prod(shape))).reshape(shape)
    if "(...)" in right:
        return
    known = {n: k for n, k in tl.explain(pattern, shape, **sizes).lengths.items() if n.isidentifier()}
    there = tl.rearrange(x, pattern, **known)
    assert tl.same_bits(tl.rearrange(there, f"{right} -> {left}", **known), x)
