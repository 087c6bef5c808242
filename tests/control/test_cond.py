"""cond and switch: the branch that is not taken is not evaluated and contributes exactly zero."""
import pytest

import tlgrad as tl


def safe_root(x):
    """x for x >= 0, else sqrt(-x): case C001, written lazily."""
    return tl.cond(x >= 0, lambda x: x, lambda x: tl.sqrt(-x), x)


def cases(x):
    """Three branches by sign; the middle one has no finite derivative on its right."""
    index = tl.convert(tl.sign(x), tl.int64) + 1
    return tl.switch(index, [lambda x: x * x * x, lambda x: x * tl.sqrt(x), tl.sin], x)


def table_or_self(k, x):
    """Reads a table of one entry only at index 0."""
    table = tl.tensor([10.0])
    return tl.cond(k == 0, lambda x: table[k] * x, lambda x: x, x)


@pytest.mark.parametrize("x, expected", [(4.0, 1.0), (0.0, 1.0), (-4.0, -0.25)])
@pytest.mark.parametrize("how", ["eager", "staged", "lanes", "staged lanes", "forward"])
def test_derivative_of_the_taken_branch(x, expected, how):
    x = tl.tensor(x)
    lanes = tl.stack([x, x * 0 - 1, x * 0 + 1])
    found = {"eager": lambda: tl.grad(safe_root)(x), "staged": lambda: tl.run(tl.grad(safe_root))(x),
             "lanes": lambda: tl.vmap(tl.grad(safe_root))(lanes)[0],
             "staged lanes": lambda: tl.run(tl.vmap(tl.grad(safe_root)))(lanes)[0],
             "forward": lambda: tl.jvp(safe_root, (x,), (tl.tensor(1.0),))[1]}[how]()
    assert float(found) == expected


def test_second_order_and_mixed_modes_of_lanes():
    x = tl.tensor([-2.0, 0.0, 1.0])
    second = tl.vmap(tl.grad(tl.grad(cases)))(x)
    mixed = tl.vmap(lambda x: tl.jvp(tl.grad(cases), (x,), (tl.tensor(1.0),))[1])(x)
    one = [tl.grad(tl.grad(cases))(v) for v in x]
    for k in (0, 2):
        assert tl.same_bits(second[k], one[k]) and tl.same_bits(mixed[k], one[k])


def test_reverse_mode_over_lanes_is_not_poisoned_by_another_lane():
    def total(xs):
        return tl.sum(tl.vmap(lambda x: tl.cond(x > 0, lambda x: x * 3, lambda x: tl.sqrt(-x), x))(xs))
    assert tl.grad(total)(tl.tensor([2.0, -4.0, 1.0])).tolist() == [3.0, -0.25, 3.0]


def test_only_taken_branches_are_evaluated_over_lanes():
    ks = tl.tensor([0, 0])
    assert tl.vmap(table_or_self)(ks, tl.tensor([1.0, 2.0])).tolist() == [10.0, 20.0]
    assert tl.vmap(table_or_self)(tl.tensor([0, 7]), tl.tensor([1.0, 2.0])).tolist() == [10.0, 2.0]
    assert tl.run(tl.vmap(table_or_self))(tl.tensor([5, 7]), tl.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_a_branch_not_taken_is_not_even_called_eagerly():
    def never(x):
        raise AssertionError("called")
    assert float(tl.cond(True, lambda x: x * 2, never, tl.tensor(3.0))) == 6.0
    assert float(tl.grad(lambda x: tl.cond(x > 0, lambda x: x * 2, never, x))(3.0)) == 2.0
    with tl.record(lambda x: tl.cond(x > 0, lambda x: x * x, never, x))(3.0) as rec:
        assert float(rec.backward()) == 6.0


@pytest.mark.parametrize("pred", [True, False])
def test_closed_over_values_have_derivatives(pred):
    def f(p, w, x):
        return tl.cond(p, lambda: w * x, lambda: w * w)
    gw, gx = tl.run(tl.grad(f, argnums=(1, 2)))(tl.tensor(pred), tl.tensor(3.0), tl.tensor(5.0))
    assert (float(gw), float(gx)) == ((5.0, 3.0) if pred else (6.0, 0.0))


def test_pytrees_and_promoted_results():
    f = tl.run(lambda p, x: tl.cond(p, lambda x: {"a": x, "b": 1}, lambda x: {"a": x * 2, "b": 2.5}, x))
    out = f(tl.tensor(False), tl.tensor(2.0))
    assert float(out["a"]) == 4.0 and float(out["b"]) == 2.5


@pytest.mark.parametrize("index", [-1, 3])
def test_switch_index_outside(index):
    branches = [lambda x: x, lambda x: -x, lambda x: x * x]
    for call in (lambda: tl.switch(index, branches, tl.tensor(2.0)),
                 lambda: tl.run(lambda i, x: tl.switch(i, branches, x))(tl.tensor(index), tl.tensor(2.0)),
                 lambda: tl.vmap(lambda i: tl.switch(i, branches, tl.tensor(2.0)))(tl.tensor([0, index]))):
        with pytest.raises(tl.errors.OutOfBoundsError, match=f"index {index} is out of bounds"):
            call()


def test_refusals_name_the_branches():
    def staged(f, g):
        return lambda: tl.run(lambda p, x: tl.cond(p, f, g, x))(tl.tensor(True), tl.tensor(2.0))
    with pytest.raises(tl.errors.TreeError, match="return different structures: at the top, expected a leaf"):
        staged(lambda x: (x, x), lambda x: x)()
    with pytest.raises(tl.errors.ShapeError, match=r"different shapes at result: float64\[\] and float64\[2\]"):
        staged(lambda x: tl.stack([x, x]), lambda x: x)()
    with pytest.raises(tl.errors.DTypeError, match="must be bool"):
        tl.cond(tl.tensor(1.0), lambda: 1, lambda: 2)
    with pytest.raises(tl.errors.ArgumentError, match="no branches"):
        tl.switch(0, [])


def test_where_with_a_bad_branch_keeps_exact_zeros():
    """Case C001 with select."""
    f = lambda x: tl.where(x >= 0, x, tl.sqrt(-x))
    g = lambda x: tl.where(x > 0, 0.0, x * float("inf"))
    h = lambda x: tl.where(x == 0, 0.0, x * tl.sqrt(x))
    for derive in (tl.grad, lambda f: lambda x: tl.jvp(f, (x,), (tl.tensor(1.0),))[1],
                   lambda f: tl.run(tl.grad(f)), lambda f: lambda x: tl.vmap(tl.grad(f))(tl.stack([x]))[0]):
        assert [float(derive(e)(tl.tensor(x))) for e, x in ((f, 1.0), (g, 1.0), (h, 0.0))] == [1.0, 0.0, 0.0]


def sqrt_once(x):
    return tl.iterate(tl.sqrt, tl.tensor(1), x)


def sqrt_while(x):
    return tl.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, tl.sqrt(s[1])), (tl.tensor(0), x))[1]


def sqrt_branch(x):
    return tl.cond(x >= 0, tl.sqrt, lambda x: x, x)


@pytest.mark.parametrize("derive", [tl.grad, lambda f: lambda x: tl.run(tl.grad(f))(x),
                                    lambda f: lambda x: tl.vmap(tl.grad(f))(tl.stack([x, x + 1]))[0]],
                         ids=["eager", "staged", "lanes"])
@pytest.mark.parametrize("inner", [sqrt_once, sqrt_while, sqrt_branch, tl.checkpoint(tl.sqrt), tl.run(tl.sqrt)],
                         ids=["iterate", "while", "cond", "checkpoint", "run"])
def test_what_a_select_discards_is_exactly_zero_through_control_flow(inner, derive):
    """The slope of sqrt at 0 is infinite, and is not taken."""
    f = lambda x: tl.where(x > 0, inner(x), 3 * x)
    assert float(derive(f)(tl.tensor(0.0))) == 3.0


@pytest.mark.parametrize("inner", [sqrt_once, tl.checkpoint(tl.sqrt), tl.run(tl.sqrt)],
                         ids=["iterate", "checkpoint", "run"])
def test_entries_that_a_select_discards(inner):
    f = lambda x: tl.sum(tl.where(x > 0, inner(x), 3 * x))
    for way in (lambda f: f, tl.run):
        assert way(tl.grad(f))(tl.tensor([4.0, 0.0, 0.25])).tolist() == [0.25, 3.0, 1.0]
