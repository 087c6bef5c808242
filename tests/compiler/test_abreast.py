"""Functions of one kernel that need none of each other's results are emitted in turn; the words stay the same."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.backends.numba_cpu.abreast import MOST, groups
from tlgrad.codegen.ir import Op, Value


def op(name, *args):
    return Op(name, args, (Value("f32"),))


def test_functions_that_need_no_result_of_each_other_are_neighbours():
    x = Value("f32")
    first = op("tanh", x)
    square = op("mul", x, x)
    second = op("exp", square.outs[0])
    product = op("mul", first.outs[0], second.outs[0])
    third = op("log1p", product.outs[0])
    fourth = op("sin", x)
    found = groups([first, square, second, product, third, fourth], lambda o: o.name != "mul")
    assert found == [[square], [first, second, fourth], [product], [third]]


def test_a_group_is_not_too_large():
    x = Value("f32")
    many = [op("exp", x) for _ in range(MOST + 1)]
    assert groups(many, lambda o: True) == [many[:MOST], many[MOST:]]


def ends(n):
    """Random words with the ends of the format, and numbers at which bodies in pairs doubt."""
    words = np.random.default_rng(n).integers(0, 1 << 32, n, np.uint64).astype(np.uint32).view(np.float32)
    words[:8] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 8.5, 3.4e38
    words[8:n // 2] = np.random.default_rng(1).standard_normal(n // 2 - 8)
    return words


PROGRAMS = {
    "independent": lambda x: tl.tanh(x) * tl.exp(-x * x) + tl.log1p(x * x) + tl.erf(x) - tl.cos(x + 1),
    "nested": lambda x: tl.exp(tl.sin(x)) + tl.log(tl.abs(tl.cos(x))) * tl.logistic(tl.atan(x)),
    "mixed": lambda x: tl.exp(x) * tl.asin(tl.tanh(x)) + tl.expm1(x) * tl.asinh(x)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_words_of_functions_in_turn(name):
    x = tl.tensor(ends(1 << 14))
    with np.errstate(all="ignore"):
        assert tl.same_bits(tl.run(PROGRAMS[name])(x), PROGRAMS[name](x))
