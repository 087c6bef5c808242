"""Arrays of words: every tier gives the words of the pure-Python reference."""
import json
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from softfloat_operands import operands, random_numbers

from tlgrad.kernels.softfloat import catalogue, drivers, narrow, spread
from tlgrad.kernels.softfloat.engine import LIBRARY
from tlgrad.softfloat import array, convert, fast, reference, small, storage
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import Binary, binary32, binary64, binary128, binary256

WIDE = [binary128, binary256, Binary(6, 70), Binary(10, 40), Binary(2, 61), Binary(19, 44)]
EIGHT = [formats.float8_e4m3fn, formats.float8_e5m2, formats.float8_e4m3fnuz,
         formats.float8_e5m2fnuz, formats.float8_e3m4]


def same(a, b):
    """Equal words; a NaN of a hardware dtype counts as one."""
    if a.dtype.kind == "f":
        return (storage.as_words(a) == storage.as_words(b)) | (np.isnan(a) & np.isnan(b))
    return a == b


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(fast, "WARM", 0)


@pytest.mark.parametrize("name", list(fast.catalogue.ARITHMETIC))
@pytest.mark.parametrize("fmt", WIDE, ids=repr)
def test_kernels_give_the_words_of_the_reference(fmt, name, compiled):
    count = 6007 if fmt is binary128 else 2003
    arguments = operands(fmt, count, fast.catalogue.ARITHMETIC[name][1])
    got = array.evaluate(name, fmt, *arguments)
    want = reference.evaluate(name, fmt, arguments, got.shape, Environment())
    assert np.all(got == want)


@pytest.mark.parametrize("target", [binary64, binary32, formats.binary16, formats.bfloat16,
                                    binary128, Binary(9, 30), "int64", "uint64", "int32", "bool"],
                         ids=str)
@pytest.mark.parametrize("fmt", WIDE[:4], ids=repr)
def test_conversions(fmt, target, compiled, monkeypatch):
    if target is fmt:
        target = Binary(15, 111)
    values = np.concatenate([operands(fmt, 1500, 1)[0], array.convert(
        np.ldexp(np.arange(1.0, 141.0) / 64, np.arange(140) % 70), fmt)])
    got = array.convert(values, target)
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    assert np.all(same(got, array.convert(values, target)))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "bool"])
@pytest.mark.parametrize("fmt", WIDE[:4], ids=repr)
def test_integers_to_words(fmt, dtype, compiled):
    integers = np.random.default_rng(2).integers(-2**63, 2**63 - 1, 500).astype(dtype)
    got = storage.to_integers(array.convert(integers, fmt))
    assert got == [convert.from_int(fmt, int(v)) for v in integers]


@pytest.mark.parametrize("fused", [False, True], ids=["ordered", "fused"])
@pytest.mark.parametrize("fmt", [binary128, binary256], ids=repr)
@pytest.mark.parametrize("shape", [(37, 5, 19), (64, 2, 1), (3, 1, 8)], ids=str)
def test_ordered_contraction(fmt, shape, fused, compiled, monkeypatch):
    terms, rows, columns = shape
    a, b = random_numbers((terms, rows), fmt), random_numbers((terms, columns), fmt, 1)
    a[terms // 2, 0] = operands(fmt, 1, 1)[0][0]
    b[1, columns - 1] = storage.of_integers([1], fmt, (1,))[0]
    start = random_numbers((rows, columns), fmt, 2)
    got = array.contract(a, b, start, fmt, fused)
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    assert np.all(got == array.contract(a, b, start, fmt, fused))


@pytest.mark.parametrize("fused", [False, True], ids=["ordered", "fused"])
@pytest.mark.parametrize("fmt", [formats.tf32, formats.bfloat16, formats.float8_e4m3fn, formats.float8_e4m3fnuz,
                                 formats.float4_e2m1fn, Binary(9, 22), Binary(9, 24)], ids=repr)
def test_ordered_contraction_of_small_formats(fmt, fused, compiled):
    a, b, start = (operands(fmt, n, 1, n)[0].reshape(shape) for n, shape in (
        (30, (6, 5)), (6 * 47, (6, 47)), (5 * 47, (5, 47))))
    got, right = array.contract(a, b, start, fmt, fused), start
    for x, y in zip(a, b):
        rows = np.broadcast_arrays(x[:, None], y[None, :], right)
        if fused:
            right = reference.evaluate("fma", fmt, rows, start.shape, Environment())
        else:
            product = reference.evaluate("mul", fmt, rows[:2], start.shape, Environment())
            right = reference.evaluate("add", fmt, (right, product), start.shape, Environment())
    assert np.all(got == right)
    total, right = array.left_to_right(start, b[0], fmt), b[0]
    for row in start:
        right = reference.evaluate("add", fmt, (right, row), right.shape, Environment())
    assert np.all(total == right)


@pytest.mark.parametrize("fmt", [binary128, formats.tf32], ids=repr)
@pytest.mark.parametrize("shape", [(200, 19), (900,), (40, 2, 8)], ids=str)
def test_ordered_sum(shape, fmt, compiled, monkeypatch):
    terms = random_numbers(shape, fmt)
    start = np.zeros(shape[1:], terms.dtype)
    strided = np.repeat(terms, 2, axis=0)[::2]                # not contiguous: packed for the kernel
    got = [array.left_to_right(x, start, fmt) for x in (terms, strided)]
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    assert all(np.all(x == array.left_to_right(terms, start, fmt)) for x in got)


@pytest.mark.parametrize("name", ["add", "mul", "div"])
@pytest.mark.parametrize("fmt", EIGHT, ids=repr)
def test_all_pairs_of_eight_bit_formats(fmt, name, compiled):
    words = storage.of_integers(range(256), fmt, (256,))
    a, b = np.repeat(words, 256), np.tile(words, 256)
    want = reference.evaluate(name, fmt, (a, b), a.shape, Environment())
    assert np.all(small.evaluate(name, fmt, a, b) == want)
    assert np.all(fast.small_operation(name, fmt, [a, b], a.shape) == want)


@pytest.mark.parametrize("name", list(small.OPERATIONS))
@pytest.mark.parametrize("fmt", [formats.bfloat16, formats.tf32, Binary(9, 24), Binary(4, 20), Binary(7, 10),
                                 Binary(7, 10, bias=67), Binary(5, 10, specials="fn"),
                                 formats.float6_e3m2fn, formats.float4_e2m1fn], ids=repr)
def test_small_formats_through_binary64(fmt, name, compiled):
    arity = {"fma": 3}.get(name, 1 if name in ("sqrt", "floor", "ceil", "trunc", "round") else 2)
    arguments = operands(fmt, 2000, arity)
    got = small.evaluate(name, fmt, *arguments)
    want = reference.evaluate(name, fmt, arguments, got.shape, Environment())
    assert np.all(got == want) and np.all(array.evaluate(name, fmt, *arguments) == want)


@pytest.mark.parametrize("name", spread.OPERATIONS)
@pytest.mark.parametrize("fmt", [Binary(9, 22), Binary(8, 20), Binary(7, 16), Binary(3, 24), Binary(8, 23),
                                 Binary(4, 11), Binary(3, 12), Binary(9, 24), Binary(4, 11, "fn"),
                                 Binary(8, 20, "fnuz"), Binary(3, 12, "fnuz"), Binary(9, 24, "finite"),
                                 Binary(3, 20, "finite"), Binary(7, 16, bias=30), Binary(8, 23, bias=100),
                                 Binary(9, 20, bias=400), Binary(5, 18, "fn", bias=3)], ids=repr)
def test_words_spread_over_lanes(fmt, name, compiled):
    """One, two and four words a lane; every exponent; groups without special operands, and with them."""
    layout = fast.narrow_layout(fmt)
    assert spread.covers(layout, name) and not spread.covers(fast.narrow_layout(formats.tf32), name)
    for arguments in (operands(fmt, 4003, 2), [random_numbers((1000,), fmt, seed) for seed in (0, 1)]):
        got = fast.small_operation(name, fmt, arguments, arguments[0].shape)
        assert np.all(same(got, reference.evaluate(name, fmt, arguments, got.shape, Environment())))


def by_way_of(layout, name, carrier):
    """The kernel of an operation through a carrier, where no result is guarded."""
    operation, inputs = narrow.OPERATIONS[name]

    def body(*words):
        return narrow.encode(layout, operation(*(narrow.decode(layout, w, carrier) for w in words)), carrier)
    return LIBRARY.function(drivers.narrow(body, carrier.type, layout.bits, inputs, 16), 1, inputs + 1)


@pytest.mark.parametrize("name", ["mul", "div"])
def test_results_below_the_range_of_binary32_are_rounded_once(name):
    """2**20 tf32 results between the least half unit and twice the least normal number, against binary64."""
    layout, rng = fast.narrow_layout(formats.tf32), np.random.default_rng(4)
    count, ends = 1 << 20, rng.integers(-26, 2, 1 << 20)
    exponent = rng.integers(1, 254, count)
    other = ends + 1 + 127 - exponent if name == "mul" else exponent - ends + 126
    fits = (other > 0) & (other < 255)
    a, b = (((e.astype(np.uint32) << 10) | rng.integers(0, 1 << 10, count).astype(np.uint32))[fits]
            for e in (exponent, other))
    found = []
    for kernel in (catalogue.small(name, layout), by_way_of(layout, name, narrow.BINARY64),
                   by_way_of(layout, name, narrow.BINARY32)):
        found.append(np.empty_like(a))
        kernel(a.size, a.ctypes.data, b.ctypes.data, found[-1].ctypes.data)
    assert np.array_equal(found[0], found[1])
    assert name == "div" or not np.array_equal(found[1], found[2])     # without the guard products are wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_all_pairs_of_bfloat16_by_way_of_binary32(name):
    """2**32 pairs against binary64, about a minute: the range of binary32 leaves it no room to spare."""
    layout = fast.narrow_layout(formats.bfloat16)
    assert narrow.single(layout, name) and not narrow.guarded(layout, name)
    kernels = catalogue.small(name, layout), by_way_of(layout, name, narrow.BINARY64)
    every = np.arange(1 << 16, dtype=np.uint16)
    outs = np.empty((2, 1 << 16), np.uint16)
    for word in range(1 << 16):
        one = np.full(1 << 16, word, np.uint16)
        for kernel, out in zip(kernels, outs):
            kernel(1 << 16, one.ctypes.data, every.ctypes.data, out.ctypes.data)
        assert np.array_equal(*outs), hex(word)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_finite", "neg",
                                  "abs", "sign", "copysign"])
@pytest.mark.parametrize("fmt", WIDE[:3] + EIGHT, ids=repr)
def test_operations_on_words(fmt, name):
    arity = 1 if name in ("is_nan", "is_finite", "neg", "abs", "sign") else 2
    arguments = operands(fmt, 1500, arity)
    got = array.evaluate(name, fmt, *arguments)
    assert np.all(got == reference.evaluate(name, fmt, arguments, got.shape, Environment()))


def test_max_and_min_follow_their_sentences():
    x = storage.of_numbers(["-0.0", 0.0, "nan", 1, 2], binary128)
    y = storage.of_numbers([0.0, "-0.0", 1, "nan", 1], binary128)
    text = [str(v) for v in storage.to_floats(array.evaluate("max", binary128, x, y))]
    assert text == ["0.0", "-0.0", "nan", "nan", "2.0"]
    text = [str(v) for v in storage.to_floats(array.evaluate("min", binary128, x, y))]
    assert text == ["-0.0", "0.0", "nan", "nan", "1.0"]


def test_order_key_sorts_like_the_numbers():
    x = storage.of_numbers([3, "-inf", "1e-4950", "nan", "-0.0", 0, "inf", -2, "-1e-4950"], binary128)
    order = np.argsort(array.evaluate("comparable", binary128, x), kind="stable")
    assert [str(v) for v in storage.to_floats(x[order])] == [
        "-inf", "-2.0", "-1.000e-4950".replace("000e", "0e"), "-0.0", "0.0", "1.0e-4950", "3.0",
        "inf", "nan"]


def test_environment_rounds_saturates_and_collects_flags():
    one, three = storage.of_numbers([1], binary128), storage.of_numbers([3], binary128)
    nearest = array.evaluate("div", binary128, one, three)
    with array.environment("up") as env:
        up = array.evaluate("div", binary128, one, three)
    assert storage.to_integers(up)[0] == storage.to_integers(nearest)[0] + 1
    assert env.raised == ("inexact",)
    with array.environment(saturate=True):
        big = array.convert(np.array([500.0]), formats.float8_e4m3fn)
    assert storage.to_integers(big) == [126]


def test_words_survive_numpy_save_pickle_and_json(tmp_path):
    values = storage.of_numbers(["0.1", "nan", "-inf", "1e-4950"], binary128)
    np.save(tmp_path / "x.npy", values)
    assert np.load(tmp_path / "x.npy").tobytes() == values.tobytes()
    assert pickle.loads(pickle.dumps(values)).tobytes() == values.tobytes()
    text = json.dumps([v.hex() for v in storage.to_floats(values)])
    assert storage.of_numbers(json.loads(text), binary128).tobytes() == values.tobytes()


@pytest.mark.parametrize("name", list(fast.catalogue.FUNCTIONS))
def test_elementary_kernels_are_correctly_rounded(name, compiled):
    near_one = storage.of_integers(
        [(16383 << 112) + s * (1 << k) + j for k in range(111) for s in (1, -1) for j in (0, 1)],
        binary128, (444,))
    whole = array.convert(np.concatenate([np.arange(-20.0, 80.0), np.linspace(-12000, 12000, 200)]),
                          binary128)
    for values in (operands(binary128, 1000, 1)[0], random_numbers((1500,), binary128), near_one, whole):
        arguments = [values]
        if name in fast.catalogue.TWO:
            arguments = [array.evaluate("abs", binary128, values), values[::-1].copy()]
        got = array.evaluate(name, binary128, *arguments)
        want = reference.evaluate(name, binary128, arguments, values.shape, Environment())
        assert np.all(got == want)
    positive = array.evaluate("abs", binary128, random_numbers((1500,), binary128))
    within = {"acosh": "17", "asin": "1/8", "acos": "1/8", "atanh": "1/8"}.get(name, "1")
    positive = array.evaluate("mul", binary128, positive, storage.of_numbers(Fraction(within), binary128))
    _, flags = fast.elementary(name, binary128, [positive, positive][:1 + (name in fast.catalogue.TWO)])
    assert flags.sum() <= 15


@pytest.mark.parametrize("name", fast.catalogue.TWO)
def test_functions_of_two_operands_at_their_limits(name, compiled):
    """Zeros, ones, infinities, NaN, numbers of every size, and numbers whose result cancels, all pairs."""
    text = "0 -0 1 -1 inf -inf nan 1e-300 -1e-4950 16383.9 -2e4 200 -0.69314718055994530941723212145817657"
    values = storage.of_numbers(text.split(), binary128)
    x, y = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values, values))
    got = array.evaluate(name, binary128, x, y)
    assert np.all(got == reference.evaluate(name, binary128, [x, y], x.shape, Environment()))


def test_import_compiles_nothing():
    code = "import sys, tlgrad.softfloat.array; print('llvmlite' in sys.modules, 'mpmath' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]
