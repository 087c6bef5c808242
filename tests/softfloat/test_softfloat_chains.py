"""Runs of operations of a software format in compiled programs: one kernel, the words of one by one."""
import numpy as np
import pytest
from softfloat_operands import operands, random_numbers
from softfloat_programs import FAMILIES, check, column, differs

import tlgrad as tl
from tlgrad.backends.numba_cpu import plan
from tlgrad.kernels.softfloat import carried, catalogue
from tlgrad.softfloat import array, chained, fast, reference, storage
from tlgrad.softfloat import format as formats
from tlgrad.softfloat.arith import Environment
from tlgrad.softfloat.format import Binary, binary64, binary128, binary256

STEPS = (("mul", 0, 1), ("add", 3, 2), ("neg", 4), ("sub", 5, 0), ("fma", 3, 6, 2), ("abs", 7), ("sqrt", 8),
         ("div", 6, 9))


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(fast, "WARM", 0)


@pytest.mark.parametrize("fmt", [binary128, binary256, Binary(6, 70), Binary(10, 40)], ids=repr)
@pytest.mark.parametrize("uniform", [(False, False, False), (False, True, False), (True, False, True)], ids=str)
def test_chains_give_the_words_of_single_operations(fmt, uniform, compiled, monkeypatch):
    inputs = [np.concatenate([random_numbers((40,), fmt, 7), x]) for x in operands(fmt, 1003, 3)]
    steps = tuple((name, fmt, *operands) for name, *operands in STEPS)
    inputs = [x[k:k + 1].reshape(()) if same else x for k, (x, same) in enumerate(zip(inputs, uniform))]
    outs = (4, 6, 7, 9, 10)
    chain = chained.Chained((fmt,) * 3, steps, uniform, outs)
    got = chain((1043,), *inputs)
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    values = chain.one_by_one([np.broadcast_to(x, (1043,)) for x in inputs])
    for found, right in zip(got, [values[k] for k in outs]):
        assert np.all(found == right)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family[0]} of {len(family)}")
def test_random_chains(family, compiled):
    """Comparisons, choices, masks, conversions, functions and arithmetic, of one format and of many."""
    for seed in range(4):
        check(seed, family)


@pytest.mark.parametrize("fmt", [formats.tf32, formats.float8_e4m3fnuz], ids=repr)
def test_functions_of_small_formats(fmt, compiled):
    """All of them in one chain, where binary64 decides; few entries are left for mpmath."""
    count = 256 if fmt.width == 8 else 400
    x, y = (column(fmt, count, False, 9 * k + 1) for k in range(2))
    names = list(carried.FUNCTIONS)
    steps = tuple((name, fmt, *range(carried.FUNCTIONS[name])) for name in names)
    chain = fast.Chain((fmt,) * 2, steps, (False,) * 2, tuple(range(2, 2 + len(names))))
    found, flags = chain.run(x.shape, count, [x, y])
    sure = np.ones(count, bool) if flags is None else flags == 0
    assert sure.sum() > 0.98 * count
    for name, got in zip(names, found):
        arguments = [x, y][:carried.FUNCTIONS[name]]
        assert np.all((got == reference.evaluate(name, fmt, arguments, x.shape, Environment()))[sure]), name


@pytest.mark.parametrize("source", [binary64, formats.binary16, formats.tf32, formats.float8_e4m3fn], ids=repr)
@pytest.mark.parametrize("target", [binary64, formats.bfloat16, formats.float8_e5m2, formats.float4_e2m1fn],
                         ids=repr)
def test_conversions_of_small_formats(source, target, compiled, monkeypatch):
    x = column(source, 900, False, 3)
    found = array.convert(x, target)
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    assert not differs(found, array.convert(x, target))


def test_what_binary64_cannot_decide_goes_to_the_reference(compiled):
    """exp2 of 5/2 and 3/2 lie between two numbers of this format; hypot(3, 4) = 5 halfway."""
    fmt = formats.float4_e2m1fn
    three, four = (storage.of_numbers([v] * 40, fmt) for v in (3, 4))
    found, flags = fast.elementary("hypot", fmt, [three, four])
    assert flags.all() and str(storage.to_floats(array.evaluate("hypot", fmt, three, four))[0]) == "4.0"


def test_far_arguments_of_narrow_ranges():
    """expm1 far below 0 is near -1, and a power far below the range is 0, in formats of few exponents."""
    fmt = formats.float8_e4m3fn
    x = storage.of_numbers([-64, -448], fmt)
    assert storage.to_floats(array.evaluate("expm1", fmt, x)).tolist() == [-1, -1]
    fmt = formats.float8_e4m3fnuz
    x, y = storage.of_numbers([3 / 1024, -10 / 64], fmt), storage.of_numbers([56, 36], fmt)
    assert storage.to_integers(array.evaluate("pow", fmt, x, y)) == [0, 0]


def _runs(f, *args):
    """The primitives of a compiled program, those of one kernel together; its words are right."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "in_runs", lambda g, f=plan.in_runs: made.append(f(g)) or made[-1])
        got = tl.run(f)(*args)
    assert all(tl.same_bits(a, b) for a, b in zip(tl.tree.leaves(got), tl.tree.leaves(f(*args))))
    return [[eqn.prim.name for step in run for eqn in step.eqns] for run in made[0]]


@pytest.mark.parametrize("dtype", [tl.binary128, tl.tf32, tl.bfloat16, tl.float8_e5m2], ids=str)
def test_one_kernel_from_end_to_end(dtype, compiled):
    """Choices, comparisons, elementary functions, conversions and masks do not end a run; a contraction does."""
    x, y = (tl.tensor(np.random.default_rng(k).standard_normal(300), dtype) for k in (0, 1))

    def f(x, y):
        return tl.where((x > y) & ~(y < -1), tl.exp(x) * y, tl.maximum(x, -y) + tl.abs(y) * 3)

    assert len(_runs(f, x, y)) == 1
    assert all(len(run) > 5 for run in _runs(tl.grad(lambda x, y: tl.sum(f(x, y))), x, y))
    wide = tl.tensor(np.random.default_rng(2).standard_normal(300))
    assert len(_runs(lambda x: tl.convert(tl.tanh(tl.convert(x, dtype) * 3), tl.float64), wide)) == 1
    runs = _runs(lambda x, y: (x * 2 + y) * tl.matmul(x, y) + tl.exp(y) * 3, x, y)
    assert "exp" in runs[0] and len(runs[-1]) == 2        # what does not wait for the product joins the first run


def test_programs_run_in_packed_form(compiled, monkeypatch):
    """An MLP's arithmetic between its products: results of one run that others read, views, literals, powers."""
    made = []
    monkeypatch.setattr(catalogue, "chain", lambda *a, f=catalogue.chain: made.append(a) or f(*a))
    w, x = (tl.tensor(random_numbers(s, binary128, k)) for k, s in enumerate(((8, 5), (30, 8))))
    bias = tl.tensor(random_numbers((5,), binary128, 9))

    def loss(w, bias):
        y = (x @ w + bias) * 2 - 1
        z = -(y * y) + y ** 3
        return tl.sum((z - tl.tanh(y).T.T) ** 2) / 30

    for f in (loss, tl.grad(loss, argnums=(0, 1)), lambda w, b: tl.jvp(loss, (w, b), (w, b))[1]):
        eager, ran = f(w, bias), tl.run(f)(w, bias)
        assert all(tl.same_bits(a, b) for a, b in zip(tl.tree.leaves(eager), tl.tree.leaves(ran)))
    assert max(len(plan.steps) for plan, in made) >= 5


def test_environments_reach_into_programs(compiled):
    """Directed rounding and flags: the kernels step aside, in a program compiled before."""
    x = tl.tensor(random_numbers((50,), binary128))
    f = tl.run(lambda x: (x * x + x) / 3)
    nearest = f(x)
    for rounding in ("up", "down", "zero"):
        with tl.float_environment(rounding) as env:
            assert tl.same_bits(f(x), (x * x + x) / 3)
            assert not tl.same_bits(f(x), nearest) and env.raised == ("inexact",)
    assert tl.same_bits(f(x), nearest)
