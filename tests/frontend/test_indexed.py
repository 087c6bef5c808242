"""Indexed programs: values, index arithmetic, errors, derivatives."""
import numpy as np
import pytest

import tlgrad as tl

M = tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def values(t):
    return np.asarray(t).tolist()


def row_sum(width):
    return tl.Program(lambda read, i: tl.iterate(lambda k, total: total + read(0, width * i + k), width, 0.0))


@pytest.mark.parametrize("width, expected", [(3, [6.0, 15.0]), (0, [0.0, 0.0])])
def test_row_sum(width, expected):
    assert values(row_sum(width)(M, shape=(2,))) == expected


def test_other_ways_to_write_it():
    def looped(read, i):
        total = 0.0
        for k in range(3):
            total = total + read(0, 3 * i + k)
        return total

    def recursive(read, i):
        def prefix(n):
            return 0.0 if n == 0 else prefix(n - 1) + read(0, 3 * i + (n - 1))
        return prefix(3)
    for body in (looped, recursive):
        assert values(tl.Program(body)(M, shape=(2,))) == [6.0, 15.0]


def test_two_inputs_and_several_outputs():
    x = tl.tensor([1.0, 2.0, 3.0])
    both = tl.Program(lambda read, i: (read(0, i) + read(1, i), read(0, i)))
    total, first = both(x, x, shape=3)
    assert values(total) == [2.0, 4.0, 6.0] and values(first) == [1.0, 2.0, 3.0]


def test_outputs_of_any_shape():
    transposed = tl.Program(lambda read, i: read(0, i % 2 * 3 + i // 2))
    assert values(transposed(M, shape=(3, 2))) == np.asarray(M).T.tolist()
    assert float(transposed(M, shape=())) == 1.0


def test_index_arithmetic_is_unsigned():
    i, q, r, below = tl.Program(lambda read, i: (i, i // 0, i % 0, i - 1))(shape=(2,))
    assert values(i) == [0, 1] and values(q) == [0, 0] and values(r) == [0, 1]
    assert values(below) == [2**64 - 1, 0]


def test_an_empty_output_reads_nothing():
    assert tl.Program(lambda read, i: read(0, i + 100))(M, shape=(0,)).shape == (0,)


def test_reads_outside_name_operand_index_size_and_output():
    with pytest.raises(tl.errors.OutOfBoundsError, match=r"index 6 .* operand 0 of size 6.*entry 3"):
        tl.Program(lambda read, i: read(0, 2 * i))(M, shape=(9,))
    with pytest.raises(tl.errors.OutOfBoundsError, match=r"18446744073709551615"):
        tl.Program(lambda read, i: read(0, 2 - i))(M, shape=(5,))


def test_unknown_operands_and_outputs_that_are_too_large():
    with pytest.raises(tl.errors.ArgumentError, match="no operand 2"):
        tl.Program(lambda read, i: read(2, i))(M, shape=(2,))
    with pytest.raises(tl.errors.ShapeError, match="the limit is 2"):
        tl.Program(lambda read, i: 1.0)(shape=(2**32, 2**32))
    with pytest.raises(tl.errors.ShapeError, match="tuple of sizes"):
        tl.Program(lambda read, i: 1.0)(shape="wide")


def test_derivatives_scatter_in_order():
    weights = tl.tensor([1.0, 10.0])
    gradient = tl.grad(lambda m: tl.sum(row_sum(3)(m, shape=(2,)) * weights))(M)
    assert values(gradient) == [[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]]

    def shared(x):              # every output reads entry 0
        return tl.sum(tl.Program(lambda read, i: read(0, 0) * read(0, i))(x, shape=(3,)))
    assert values(tl.grad(shared)(tl.tensor([2.0, 3.0, 5.0]))) == [2 + 2 + 3 + 5, 2.0, 2.0]
    assert values(tl.jacfwd(shared)(tl.tensor([2.0, 3.0, 5.0]))) == [2 + 2 + 3 + 5, 2.0, 2.0]
    second = [[2.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    assert values(tl.hessian(shared)(tl.tensor([2.0, 3.0, 5.0]))) == second


def test_scatter_adds_are_ordered():
    """Entry 0 collects in the order of the outputs: ((0 + a) + b) + c."""
    a = np.array([1e16, 1.0, -1e16, 1.0])
    x, seeds = tl.tensor([1.0]), tl.tensor(a)
    program = tl.Program(lambda read, i: read(0, 0))
    gradient = tl.vjp(lambda x: program(x, shape=(4,)), x)[1](seeds)
    gradient = gradient[0] if isinstance(gradient, tuple) else gradient
    assert float(gradient[0]) == ((((0.0 + a[0]) + a[1]) + a[2]) + a[3])


def test_under_run_and_vmap():
    assert values(tl.run(lambda m: row_sum(3)(m, shape=(2,)))(M)) == [6.0, 15.0]
    assert values(tl.vmap(lambda m: row_sum(3)(m, shape=(1,)))(M)) == [[6.0], [15.0]]
