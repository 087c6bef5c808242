"""What a loop says when it is given something it cannot run (case C088)."""
import pytest

import tlgrad as tl
from tlgrad.errors import ArgumentError, CarryError, DTypeError, OutOfBoundsError

START = {"h": tl.ones((2,)), "n": tl.tensor(0.0)}


def longer(c):
    return {"h": tl.ones((3,)), "n": c["n"]}


def whole_number(c):
    return {"h": c["h"], "n": tl.tensor(1)}


def other_structure(c):
    return {"h": c["h"]}


def no_tensor(c):
    return {"h": c["h"], "n": "text"}


def run_iterate(body):
    return tl.iterate(body, 3, START)


def run_scan(body):
    return tl.scan(lambda c, x: (body(c), x), START, tl.ones((4,)))


def run_while(body):
    return tl.while_loop(lambda c: c["n"] < 1, body, START)


@pytest.mark.parametrize("body, text", [
    (longer, r"carry['h']: (2,) in, (3,) out"),
    (whole_number, "carry['n']: float64 in, int64 out (write tl.convert(x, tl.float64))"),
    (other_structure, "at carry, expected entries ['h'], ['n'], got ['h']")], ids=["shape", "dtype", "structure"])
@pytest.mark.parametrize("loop", [run_iterate, run_scan, run_while])
def test_carry_that_changes(loop, body, text):
    with pytest.raises(CarryError) as caught:
        loop(body)
    assert text in str(caught.value)
    if loop is not run_scan:
        assert f"{body.__name__} (line {body.__code__.co_firstlineno} of test_loop_errors.py)" in str(caught.value)


def test_body_that_returns_no_tensor():
    with pytest.raises(tl.errors.OutputError, match="no_tensor .line .* returned something that is not a tensor"):
        run_iterate(no_tensor)


@pytest.mark.parametrize("n, error, text", [
    (-1, ArgumentError, "the count must not be negative, got -1"),
    (2.0, DTypeError, "the count must be one integer, got float64"),
    (tl.tensor(2.5), DTypeError, "a count is a natural number"),
    (tl.tensor([1, 2]), DTypeError, "the count must be one integer"),
    (True, DTypeError, "the count must be one integer")])
def test_counts_that_are_none(n, error, text):
    with pytest.raises(error) as caught:
        tl.iterate(lambda x: x, n, 1.0)
    assert text in str(caught.value)


def test_negative_count_of_a_staged_program_and_of_a_lane():
    f = tl.run(lambda n: tl.iterate(lambda x: x * 2, n, 1.0))
    assert float(f(tl.tensor(3))) == 8.0
    with pytest.raises(ArgumentError, match="a loop cannot run -2 times"):
        f(tl.tensor(-2))
    with pytest.raises(ArgumentError, match="a loop cannot run -1 times"):
        tl.vmap(lambda n: tl.iterate(lambda x: x * 2, n, 1.0))(tl.tensor([2, -1]))


@pytest.mark.parametrize("loop", ["iterate", "while_loop"])
def test_error_at_run_time_names_the_turn(loop):
    table = tl.tensor([1.0, 2.0])
    with pytest.raises(OutOfBoundsError) as caught:
        if loop == "iterate":
            tl.iterate(lambda i, x: x + table[i], 5, 0.0)
        else:
            tl.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, table[s[0]]), (tl.tensor(0), tl.tensor(0.0)))
    assert "index 2 is out of bounds for axis 0 of size 2" in str(caught.value)
    assert "in turn 2" in caught.value.__notes__[0]


def test_error_of_the_body_itself_points_to_its_line():
    def body(x):
        return tl.matmul(x, tl.ones((3, 3)))
    with pytest.raises(tl.errors.TlgradError) as caught:
        tl.iterate(body, 2, tl.ones((2,)))
    assert any(f.name == "body" for f in caught.traceback)
