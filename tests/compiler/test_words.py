"""Compiled programs have the words of the reference."""
import numpy as np
import pytest

import tlgrad as tl
from beside_reference import compiled
from compiler_programs import SURFACE, check
from random_programs import ELEMENTARY
from tlgrad.core.primitive import PRIMITIVES


@pytest.mark.parametrize("first", [*range(0, 120, 20), *range(SURFACE, SURFACE + 60, 20)])
def test_random_programs_and_their_jvps_have_the_words_of_the_reference(first):
    found = {seed: check(seed) for seed in range(first, first + 20)}
    assert not {seed: text for seed, text in found.items() if text}


@pytest.mark.parametrize("seed", [8034, 20000, 16131, 3161, 18675, 645, 1000196, 8693, 15908, 1000708],
                         ids=["a reduction of nothing", "read by an absorbed step", "an error that nothing needs",
                              "zero over zero that the compiler finds", "a fold before a loop, both in reverse",
                              "a number in one entry in an array", "a number that turns read",
                              "the sign of a NaN", "the sign of a NaN in a logarithm",
                              "two folds before a loop, all in reverse"])
def test_programs_that_were_wrong_once(seed):
    assert check(seed) == []


@pytest.mark.parametrize("name", [n for n, arity in ELEMENTARY.items() if arity == 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quotient_of_zeros_that_the_compiler_finds_is_not_a_number(name, dtype):
    def f(x):
        zero = tl.convert(x < x, dtype)
        y = zero / zero
        return y, PRIMITIVES[name].bind(y), tl.where(y > 0.5, 0.0, y)
    outs = compiled(f, np.ones(9, dtype)).run(np.ones(9, dtype))
    assert np.isnan(outs).all()
