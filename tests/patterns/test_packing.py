"""pack, unpack, parse_shape."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tlgrad as tl


def test_essay_values():
    packed, shapes = tl.pack([np.arange(2.0), np.arange(6.0).reshape(2, 3)], "*")
    assert packed.tolist() == [0, 1, 0, 1, 2, 3, 4, 5] and shapes == [(2,), (2, 3)]


@given(shapes=st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=4),
       before=st.integers(0, 2), after=st.integers(0, 2), unknown=st.booleans())
def test_unpack_undoes_pack(shapes, before, after, unknown):
    first, last = (2, 3)[:before], (4, 1)[:after]
    tensors = [np.random.default_rng(k).normal(size=(*first, *s, *last)) for k, s in enumerate(shapes)]
    pattern = " ".join([*"ab"[:before], "*", *"cd"[:after]])
    packed, found = tl.pack(tensors, pattern)
    assert found == shapes
    given_shapes = [*shapes]
    if unknown and shapes[0] and 0 not in shapes[0]:
        given_shapes[0] = (-1, *shapes[0][1:])
    for t, back in zip(tensors, tl.unpack(packed, given_shapes, pattern), strict=True):
        assert tl.same_bits(t, back)


def test_pack_meets_in_the_common_dtype():
    packed, _ = tl.pack([np.ones(2, np.int32), np.ones((1, 2), np.float32)], "*")
    assert packed.dtype == np.float64


def test_parse_shape_skips_and_checks():
    x = np.zeros((2, 1, 3, 4))
    assert tl.parse_shape(x, "batch 1 _ w") == {"batch": 2, "w": 4}
    assert list(tl.parse_shape(x, "... w")) == ["w"] and tl.parse_shape(x, "a ... 4") == {"a": 2}
    assert tl.rearrange(np.zeros(8), "(batch w) -> batch w", **tl.parse_shape(x, "batch _ _ w")).shape == (2,
        4)


@pytest.mark.parametrize("call, words", [
    (lambda: tl.pack([], "a *"), "there are no tensors to pack"),
    (lambda: tl.pack([np.ones(2)], "a *  b"), "tensor 0 has 1 axes, the pattern names 2: (2,)"),
    (lambda: tl.pack([np.ones((2, 3)), np.ones((3, 3))], "a *"),
     "axis 'a' has length 2 in tensor 0 and 3 in tensor 1"),
    (lambda: tl.pack([np.ones(2)], "a b"), "the pattern has no '*'"),
    (lambda: tl.pack([np.ones(2)], "a * a"), "'a' occurs twice; the second is at column 5"),
    (lambda: tl.pack([np.ones(2)], "a * 3"), "a packing pattern is names around one '*'"),
    (lambda: tl.unpack(np.ones(5), [(2,), (2,)], "*"), "has length 5, but [(2,), (2,)] have 4 entries"),
    (lambda: tl.unpack(np.ones(5), [(-1,), (-1,)], "*"), "at most one is -1"),
    (lambda: tl.unpack(np.ones(5), [(2,), (-1, 2)], "*"), "leaves 3 for (-1, 2)"),
    (lambda: tl.unpack(np.ones((5, 2)), [(2,)], "*"), "the pattern has 1 axes, x has 2: (5, 2)"),
    (lambda: tl.parse_shape(np.ones((2, 3)), "a b c"), "the pattern has 3 axes, x has 2: (2, 3)"),
    (lambda: tl.parse_shape(np.ones((2, 3)), "a 4"), "axis 1 has length 3, but the pattern says 4"),
    (lambda: tl.parse_shape(np.ones((6,)), "(a b)"), "single axes, not groups"),
    (lambda: tl.parse_shape(np.ones((2, 3)), "a a"), "'a' occurs twice")])
def test_refusals(call, words):
    with pytest.raises(tl.errors.PatternError) as error:
        call()
    assert words in str(error.value)
