"""Patterns in binary128, bfloat16 and complex numbers: the words of the loop, one operation after the other."""
from itertools import product

import numpy as np
import pytest

import tlgrad as tl

RNG = np.random.default_rng(23)
WIDE = ["binary128", "complex64", "complex128"]
CONTRACTIONS = [("a b, b c -> a c", [(2, 5), (5, 3)]), ("a b, a b -> b", [(4, 3), (4, 3)]),
                ("a a, a b -> b", [(3, 3), (3, 2)]), ("a, a b, b ->", [(2,), (2, 3), (3,)])]


def operand(shape, dtype):
    """Numbers whose sums depend on the order."""
    parts = [RNG.standard_normal(shape) * 10.0 ** RNG.integers(-3, 4, shape) for _ in range(2)]
    values = parts[0] + 1j * parts[1] if dtype.startswith("complex") else parts[0]
    return tl.tensor(values.tolist(), dtype=dtype) / tl.tensor(3, dtype=dtype)


def loop(text, operands):
    """{index of the result: ((0 + p0) + p1) + ...}, by operations on tensors of shape ()."""
    left, right = text.split("->")
    terms, dtype = [t.split() for t in left.split(",")], operands[0].dtype
    sizes = {n: k for t, x in zip(terms, operands) for n, k in zip(t, x.shape)}
    summed, out = [n for n in sizes if n not in right.split()], {}
    for where in product(*[range(sizes[n]) for n in right.split()]):
        total = tl.tensor(0, dtype=dtype)
        for inner in product(*[range(sizes[n]) for n in summed]):
            at = dict(zip((*right.split(), *summed), (*where, *inner)))
            factors = [x[tuple(at[n] for n in t)] for t, x in zip(terms, operands)]
            term = tl.tensor(1, dtype=dtype)
            for x in factors:
                term = term * x
            total = total + term
        out[where] = total
    return out


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("text, shapes", CONTRACTIONS, ids=[t for t, _ in CONTRACTIONS])
def test_einsum_is_the_written_loop(text, shapes, dtype):
    operands = [operand(s, dtype) for s in shapes]
    got = tl.einsum(text, *operands, order="ordered")
    assert got.dtype == operands[0].dtype
    for where, expected in loop(text, operands).items():
        assert tl.same_bits(got[where], expected), where


@pytest.mark.parametrize("text, shapes", CONTRACTIONS, ids=[t for t, _ in CONTRACTIONS])
def test_bfloat16_accumulates_in_float32_and_rounds_once(text, shapes):
    operands = [operand(s, "bfloat16") for s in shapes]
    got = tl.einsum(text, *operands, order="ordered")
    assert got.dtype == operands[0].dtype
    for where, total in loop(text, [x.astype("float32") for x in operands]).items():
        assert tl.same_bits(got[where], total.astype("bfloat16")), where


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("pattern", ["a b -> b", "a b -> a", "a b ->"])
def test_sums_are_the_written_loop(pattern, dtype):
    x = operand((4, 3), dtype)
    got = tl.reduce(x, pattern, "sum", order="ordered")
    for where, expected in loop(pattern, [x]).items():
        assert tl.same_bits(got[where], expected), where


@pytest.mark.parametrize("dtype", [*WIDE, "bfloat16"])
def test_moves_keep_the_words(dtype):
    x = operand((4, 6, 3), dtype)
    got = tl.rearrange(x, "(a b) c d -> (d a) (c b)", a=2)
    for a, b, c, d in product(range(2), range(2), range(6), range(3)):
        assert tl.same_bits(got[d * 2 + a, c * 2 + b], x[a * 2 + b, c, d])


@pytest.mark.parametrize("dtype", [*WIDE, "bfloat16"])
def test_large_moves_keep_the_words(dtype):
    x = tl.tensor(RNG.integers(-100, 100, (130, 7, 301)), dtype=dtype)
    got = tl.rearrange(x, "a b c -> (c a) b")
    assert got.data.tobytes() == x.data.transpose(2, 0, 1).reshape(-1, 7).tobytes()
