"""Result dtypes against NumPy, with weak Python numbers."""
import itertools
import operator

import numpy as np
import pytest

import tlgrad as tl
from tlgrad import errors
from tlgrad.core import dtypes

HARDWARE = [d for d in dtypes.all_dtypes() if not d.software]
PYTHON = [True, 3, 2.5, 1 + 2j]


@pytest.mark.parametrize("a", HARDWARE, ids=str)
def test_two_dtypes_meet_as_in_numpy(a):
    for b in HARDWARE:
        assert dtypes.promote_types(a, b) is dtypes.as_dtype(np.promote_types(a.storage, b.storage))
        x, y = (tl.tensor(np.ones(2, d.storage)) for d in (a, b))
        assert (x * y).dtype == (np.ones(2, a.storage) * np.ones(2, b.storage)).dtype


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv, operator.sub],
                         ids=lambda f: f.__name__)
def test_python_numbers_beside_arrays_as_in_numpy(op):
    for dtype, number in itertools.product(HARDWARE, PYTHON):
        if dtype.kind == "b" and (number is True or op is operator.sub):
            continue                                   # NumPy refuses bool - bool
        array = np.ones(3, dtype.storage)
        for left in (True, False):
            expected = op(array, number) if left else op(number, array)
            x = tl.tensor(array)
            found = op(x, number) if left else op(number, x)
            assert found.dtype == expected.dtype, f"{dtype} {op.__name__} {number!r}: {found.dtype}"


def test_python_numbers_alone():
    for f in (operator.add, operator.mul, operator.truediv):
        for a, b in itertools.product([3, 2.5, 1j], repeat=2):
            found = tl.run(f)(a, b)
            assert found.dtype == np.result_type(np.asarray(f(a, b)))
            assert found.aval.weak
    assert (tl.run(lambda x: x * 2)(3) + tl.tensor(1.0, tl.float32)).dtype is tl.float32


def test_a_python_integer_that_does_not_fit_is_an_error():
    with pytest.raises(errors.DTypeError, match="300 does not fit int8"):
        tl.tensor([1], tl.int8) + 300
    with pytest.raises(errors.DTypeError, match="-1 does not fit uint8"):
        tl.tensor([1], tl.uint8) * -1


def test_bfloat16():
    x = tl.tensor([1.0], tl.bfloat16)
    assert (x + 1).dtype is (x * 2.5).dtype is tl.bfloat16
    assert (x + tl.tensor([1.0], tl.float16)).dtype is tl.float32
    assert (x + tl.tensor([1.0], tl.float32)).dtype is tl.float32
    assert (x + tl.tensor([1.0])).dtype is tl.float64
    assert (x + tl.tensor([1], tl.int8)).dtype is tl.bfloat16


@pytest.mark.parametrize("f", [tl.sin, tl.sqrt, tl.exp, tl.logistic], ids=lambda f: f.__name__)
def test_functions_of_integers_give_numpys_floats(f):
    for dtype in HARDWARE:
        if dtype.kind in "biu":
            assert f(tl.tensor(np.ones(2, dtype.storage))).dtype == np.sin(np.ones(2, dtype.storage)).dtype
    assert f(2).dtype is tl.float64


def test_dtypes_are_equal_to_every_spelling():
    assert tl.float32 == np.float32 and tl.float32 == "float32" and tl.float32 == np.dtype("f4")
    assert tl.float32 != tl.float64
    assert {tl.int8: 1}[tl.int8] == 1 and np.zeros(2, tl.float32).dtype == np.float32
    with pytest.raises(errors.DTypeError, match="'float31' is not a dtype of tlgrad; known: bool, int8"):
        dtypes.as_dtype("float31")


ROUNDING = [(1 + 2.0 ** -8 + 2.0 ** -40, tl.bfloat16, 1.0078125),
            (1 + 2.0 ** -11 + 2.0 ** -40, tl.float16, 1.0009765625), (16973823, tl.bfloat16, 16908288)]


@pytest.mark.parametrize("value, dtype, right", ROUNDING, ids=["C049-bfloat16", "C049-binary16", "C049-int"])
def test_one_rounding(value, dtype, right):
    convert = tl.run(tl.convert, static=1)
    for found in (tl.tensor(value, dtype), tl.convert(tl.tensor(value), dtype), convert(value, dtype)):
        assert float(found) == right
