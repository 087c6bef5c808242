"""Runs of operations of a software format in compiled programs: one kernel, the words of one by one."""
import numpy as np
import pytest
from softfloat_operands import operands, random_numbers

import tlgrad as tl
from tlgrad.kernels.softfloat import catalogue
from tlgrad.softfloat import array, fast
from tlgrad.softfloat.format import Binary, binary128, binary256

STEPS = (("mul", 0, 1), ("add", 3, 2), ("neg", 4), ("sub", 5, 0), ("fma", 3, 6, 2), ("abs", 7), ("sqrt", 8),
         ("div", 6, 9))


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(fast, "WARM", 0)


@pytest.mark.parametrize("fmt", [binary128, binary256, Binary(6, 70), Binary(10, 40)], ids=repr)
@pytest.mark.parametrize("uniform", [(False, False, False), (False, True, False), (True, False, True)], ids=str)
def test_chains_give_the_words_of_single_operations(fmt, uniform, compiled, monkeypatch):
    inputs = [np.concatenate([random_numbers((40,), fmt, 7), x]) for x in operands(fmt, 1003, 3)]
    inputs = [x[k:k + 1].reshape(()) if same else x for k, (x, same) in enumerate(zip(inputs, uniform))]
    outs = (4, 6, 7, 9, 10)
    got = array.evaluate_chain(STEPS, uniform, outs, fmt, *inputs)
    monkeypatch.setattr(fast, "WARM", 1 << 60)
    for found, right in zip(got, array.evaluate_chain(STEPS, uniform, outs, fmt, *inputs)):
        assert np.all(found == right)


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
    assert max(len(steps) for _, steps, *_ in made) >= 5


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
