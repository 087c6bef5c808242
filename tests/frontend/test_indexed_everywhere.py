"""Indexed programs compiled and in transforms: the words and the errors of the eager ones."""
import numpy as np
import pytest

import tlgrad as tl

RNG = np.random.default_rng(5)
A = tl.tensor(RNG.standard_normal((6, 7)))
B = tl.tensor(RNG.standard_normal((7, 5)))


def matmul(read, i):
    row, column = i // 5, i % 5
    return tl.iterate(lambda k, total: total + read(0, 7 * row + k) * read(1, 5 * k + column), 7, 0.0)


def stencil(read, i):
    """A neighbour on either side, where there is one."""
    left = read(0, i - 1) if i > 0 else 0.0
    right = read(0, i + 1) if i < 41 else 0.0
    return left - 2.0 * read(0, i) + right


def collatz_path(read, i):
    """Reads along a path that depends on the index."""
    total, k = 0.0, i + 1
    while k != 1:
        total = total + read(0, k % 42)
        k = k // 2 if k % 2 == 0 else 3 * k + 1
    return total


def recursive(read, i):
    def prefix(n):
        return 0.0 if n == 0 else prefix(n - 1) * 0.5 + read(0, (i + n) % 42)
    return prefix(i % 5)


def several(read, i):
    return {"value": read(0, i) * read(0, 41 - i), "place": i * i}


PROGRAMS = {"matmul": (matmul, (A, B), (6, 5)), "stencil": (stencil, (A,), (42,)),
            "path": (collatz_path, (A,), (3, 9)), "recursive": (recursive, (A,), (42,)),
            "several": (several, (A,), (7, 6))}


def value_of(out):
    return out["value"] if isinstance(out, dict) else out


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_words_and_derivatives(name):
    body, inputs, shape = PROGRAMS[name]
    program = tl.Program(body)

    def run(*inputs):
        return program(*inputs, shape=shape)

    def total(*inputs):
        return tl.sum(value_of(run(*inputs)) ** 2)
    assert tl.same_bits(value_of(tl.run(run)(*inputs)), value_of(run(*inputs)))
    numbers = tuple(range(len(inputs)))
    gradient = tl.grad(total, argnums=numbers)(*inputs)
    for ours, compiled in zip(gradient, tl.run(tl.grad(total, argnums=numbers))(*inputs)):
        assert tl.same_bits(ours, compiled)
    directions = tuple(tl.tensor(RNG.standard_normal(x.shape)) for x in inputs)
    forward = tl.jvp(total, inputs, directions)[1]
    reverse = sum(float(tl.sum(g * d)) for g, d in zip(gradient, directions))
    np.testing.assert_allclose(float(forward), reverse, rtol=1e-12)


def test_matmul_is_the_ordered_product():
    assert tl.same_bits(tl.Program(matmul)(A, B, shape=(6, 5)), A @ B)


def test_second_derivatives():
    def total(x):
        return tl.sum(tl.Program(lambda read, i: read(0, i) * read(0, 2 - i) * read(0, 0))(x, shape=(3,)))
    x = tl.tensor([2.0, 3.0, 5.0])          # 2 x0^2 x2 + x0 x1^2
    expected = [[4 * 5.0, 2 * 3.0, 4 * 2.0], [2 * 3.0, 2 * 2.0, 0.0], [4 * 2.0, 0.0, 0.0]]
    for hessian in (tl.hessian(total)(x), tl.jacfwd(tl.jacfwd(total))(x), tl.jacrev(tl.jacrev(total))(x)):
        assert np.asarray(hessian).tolist() == expected


def alone(program, *inputs, shape):
    return program(*inputs, shape=shape)


def compiled(program, *inputs, shape):
    return tl.run(lambda *inputs: program(*inputs, shape=shape))(*inputs)


@pytest.mark.parametrize("way", [alone, compiled])
@pytest.mark.parametrize("body, shape, message", [
    (lambda read, i: read(0, 2 * i), (30,), r"read\(0, 42\): the index 42 is out of bounds for operand 0 of size "
                                            r"42, in entry 21 of Program"),
    (lambda read, i: read(1, i + 33), (2, 4), r"read\(1, 35\): .* operand 1 of size 35, in entry \(0, 2\)"),
    (lambda read, i: read(0, 5 - i), (7,), r"index 18446744073709551615 .* in entry 6"),
    (lambda read, i: read(0, 50 - i) + read(1, 40 - i), (60,), r"index 50 .* operand 0 of size 42, in entry 0"),
    (lambda read, i: tl.iterate(lambda k, s: s + read(0, i + k), 40, 0.0), (4,), r"index 42 .* in entry 3"),
    (lambda read, i: read(0, i) if i != 45 else 1.0, (60,), r"index 42 .* in entry 42")])
def test_the_lowest_output_that_reads_outside(way, body, shape, message):
    with pytest.raises(tl.errors.OutOfBoundsError, match=message):
        way(tl.Program(body), A, B, shape=shape)


@pytest.mark.parametrize("way", [alone, compiled])
def test_other_errors(way):
    with pytest.raises(tl.errors.ArgumentError, match=r"read\(2, ...\): there is no operand 2; .* 0 to 1"):
        way(tl.Program(lambda read, i: read(2, i)), A, B, shape=(2,))
    with pytest.raises(tl.errors.ArgumentError, match="there are no inputs"):
        way(tl.Program(lambda read, i: read(0, i)), shape=(2,))
    with pytest.raises(tl.errors.ShapeError, match=r"4611686018427387904, 2\) has 9223372036854775808 entries"):
        way(tl.Program(lambda read, i: read(0, i)), A, shape=(2**62, 2))
    with pytest.raises(tl.errors.ShapeError, match="negative size"):
        way(tl.Program(lambda read, i: read(0, i)), A, shape=(2, -1))
    empty = tl.tensor(np.zeros((0, 3)))
    with pytest.raises(tl.errors.OutOfBoundsError, match="operand 0 has no entries"):
        way(tl.Program(lambda read, i: read(0, i)), empty, shape=(2,))
    assert way(tl.Program(lambda read, i: read(0, i + 10)), empty, shape=(0, 4)).shape == (0, 4)


@pytest.mark.parametrize("way", [alone, compiled])
def test_index_arithmetic_is_modulo_2_64(way):
    def body(read, i):
        top = i - 1
        return top, top * top, top + i, i * 2**63, top // 3, top % 10, i // (i - i), i % (i - i), (i + 5) // 2 - 3
    found = way(tl.Program(body), shape=(4,))
    top, wrap = [(i - 1) % 2**64 for i in range(4)], 2**64
    expected = [top, [t * t % wrap for t in top], [(t + i) % wrap for i, t in enumerate(top)],
                [i * 2**63 % wrap for i in range(4)], [t // 3 for t in top], [t % 10 for t in top],
                [0] * 4, [0, 1, 2, 3], [((i + 5) // 2 - 3) % wrap for i in range(4)]]
    assert [y.tolist() for y in found] == expected
    assert all(y.dtype is tl.uint64 for y in found)


def test_a_read_of_a_branch_not_taken_is_not_made():
    program = tl.Program(lambda read, i: read(0, i) if i < 42 else read(0, i % 42) * 2)
    assert tl.same_bits(compiled(program, A, shape=(50,)), alone(program, A, shape=(50,)))


def test_captured_values_are_current():
    scale = 2.0
    program = tl.Program(lambda read, i: read(0, i) * scale)
    first = program(A, shape=(1,))
    scale = 3.0
    assert float(program(A, shape=(1,))[0]) == 1.5 * float(first[0])
