"""custom_jvp, custom_vjp, stop_gradient and checkpoint under every transform."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.transforms.partial_eval import linearize_flat

X = tl.tensor(0.3)


@tl.custom_jvp
def scaled(x, k=2.0):
    """k sin x, whose stated slope is recognisably wrong: 100 k."""
    return tl.sin(x) * k


@scaled.defjvp
def _(primals, tangents):
    (x, k), (x_dot, _) = primals, tangents
    return scaled(x, k), 100 * x_dot * k


@tl.custom_vjp
def tenfold(x, y):
    """x y, with a stated cotangent of 10 y for x and none for y."""
    return x * y


tenfold.defvjp(lambda x, y: (tenfold(x, y), (x, y)), lambda res, ct: (10 * ct * res[1], None))


@pytest.mark.parametrize("how", ["eager", "staged", "lanes", "loop", "cond", "checkpoint", "nested run"])
@pytest.mark.parametrize("f, slope", [(scaled, 200.0), (lambda x: tenfold(x, 3.0), 30.0)],
                         ids=["custom_jvp", "custom_vjp"])
def test_the_stated_rule_is_used(f, slope, how):
    ways = {"eager": lambda: tl.grad(f)(X), "staged": lambda: tl.run(tl.grad(f))(X),
            "lanes": lambda: tl.vmap(tl.grad(f))(tl.tensor([0.3, 0.4]))[1],
            "loop": lambda: tl.grad(lambda x: tl.iterate(f, 1, x))(X),
            "cond": lambda: tl.run(tl.grad(lambda x: tl.cond(x > 0, f, lambda x: x, x)))(X),
            "checkpoint": lambda: tl.grad(tl.checkpoint(f))(X), "nested run": lambda: tl.grad(tl.run(f))(X)}
    assert float(ways[how]()) == slope


@pytest.mark.parametrize("f, slope", [(scaled, 200.0), (lambda x: tenfold(x, 3.0), 30.0)],
                         ids=["custom_jvp", "custom_vjp"])
def test_forward_mode_and_reverse_mode_agree(f, slope):
    one = tl.tensor(1.0)
    assert float(tl.jvp(f, (X,), (one,))[1]) == slope
    assert float(tl.run(lambda x: tl.jvp(f, (x,), (one,))[1])(X)) == slope
    lanes = tl.vmap(lambda x: tl.jvp(f, (x,), (one,))[1])(tl.tensor([1.0, 2.0]))
    assert lanes.tolist() == [slope, slope]


def test_gradient_of_lanes():
    total = lambda f: lambda xs: tl.sum(tl.vmap(f)(xs))
    xs = tl.tensor([1.0, 2.0])
    assert tl.grad(total(scaled))(xs).tolist() == [200.0, 200.0]
    assert tl.grad(total(lambda x: tenfold(x, 3.0)))(xs).tolist() == [30.0, 30.0]
    assert float(tl.grad(lambda y: tl.sum(tl.vmap(lambda x: tenfold(x, y))(xs)))(3.0)) == 0.0


def test_second_derivatives_follow_the_rule():
    cube = tl.custom_jvp(lambda x: x * x * x)
    cube.defjvp(lambda p, t: (cube(*p), 3 * p[0] * p[0] * t[0]))
    assert float(tl.grad(tl.grad(cube))(2.0)) == 12.0
    assert float(tl.run(tl.grad(tl.grad(lambda x: tl.iterate(cube, 1, x))))(2.0)) == 12.0
    square = tl.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (square(x), x), lambda x, ct: (2 * x * ct,))
    assert float(tl.grad(tl.grad(square))(3.0)) == 2.0
    assert float(tl.run(tl.grad(tl.grad(square)))(3.0)) == 2.0
    assert float(tl.jvp(tl.grad(square), (X,), (tl.tensor(1.0),))[1]) == 2.0
    assert float(tl.grad(lambda x: tl.jvp(square, (x,), (tl.tensor(1.0),))[1])(3.0)) == 2.0


def test_python_control_flow_on_numbers_inside():
    @tl.custom_jvp
    def kink(x):
        return x if x > 0 else -x
    kink.defjvp(lambda p, t: (kink(*p), t[0] if p[0] > 0 else -t[0]))
    assert float(tl.grad(kink)(-2.0)) == -1.0 and float(kink(-2.0)) == 2.0


@pytest.mark.parametrize("outer", [lambda f: f, tl.run], ids=["eager", "staged"])
def test_rule_closes_over_a_value_inside_a_loop(outer):
    """Case C035."""
    def total(a, m):
        masked = tl.custom_jvp(lambda a: a * m)
        masked.defjvp(lambda p, t: (masked(*p), t[0] * m))
        return tl.sum(tl.scan(lambda a, _: (masked(a), None), a, length=2)[0])
    m = tl.tensor([1.0, 0.0, 1.0])
    assert outer(tl.grad(total))(tl.ones((3,)), m).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(tl.errors.DifferentiationError, match="closes over a value that is being differentiated"):
        outer(tl.grad(total, 1))(tl.ones((3,)), m)


def test_nondiff_argnums():
    @lambda f: tl.custom_jvp(f, nondiff_argnums=(0, 2))
    def power(g, x, n):
        return g(x) ** n

    @power.defjvp
    def _(g, n, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return power(g, x, n), 7.0 * n * x_dot
    assert float(tl.grad(lambda x: power(tl.sin, x, 3))(X)) == 21.0
    assert float(tl.run(tl.grad(lambda x: tl.iterate(lambda x: power(tl.sin, x, 3), 2, x)))(X)) == 441.0

    stated = tl.custom_vjp(lambda x, scale: x * scale, nondiff_argnums=1)
    stated.defvjp(lambda x, scale: (x * scale, None), lambda scale, res, ct: (ct * scale * 5,))
    assert float(tl.grad(lambda x: stated(x, scale=3))(X)) == 15.0


def test_pytrees_and_keywords():
    @tl.custom_vjp
    def energy(params, x):
        return {"e": params["w"] * x, "n": x + params["b"]}
    energy.defvjp(lambda params, x: (energy(params, x), {"x": x}),
                  lambda res, ct: ({"w": ct["e"] * res["x"], "b": ct["n"] * 2}, ct["n"] * 3))
    params = {"w": tl.tensor(2.0), "b": tl.tensor(1.0)}
    f = lambda params, x: tl.sum(tl.stack(list(energy(x=x, params=params).values())))
    for way in (lambda f: f, tl.run):
        g, gx = way(tl.grad(f, argnums=(0, 1)))(params, tl.tensor(5.0))
        assert (float(g["w"]), float(g["b"]), float(gx)) == (5.0, 2.0, 3.0)


def test_refusals():
    bare = tl.custom_jvp(lambda x: x)
    with pytest.raises(tl.errors.ArgumentError, match="has no rule"):
        bare(X)
    bare.defjvp(lambda p, t: (p[0], tl.stack([t[0], t[0]])))
    with pytest.raises(tl.errors.DifferentiationError, match=r"the tangent of result must be float64\[\], got"):
        tl.grad(bare)(X)
    bare.defjvp(lambda p, t: p[0])
    with pytest.raises(tl.errors.OutputError, match=r"must return \(result, tangent\)"):
        tl.grad(bare)(X)
    wrong = tl.custom_vjp(lambda x, y: x)
    wrong.defvjp(lambda x, y: (x, None), lambda res, ct: (ct,))
    with pytest.raises(tl.errors.OutputError, match="a tuple of 2 cotangents"):
        tl.grad(wrong)(X, X)
    clip = tl.custom_vjp(lambda x: x)
    clip.defvjp(lambda x: (x, None), lambda res, ct: (tl.minimum(ct, 1.0),))
    assert float(tl.grad(lambda x: 5 * clip(x))(X)) == 1.0
    with pytest.raises(tl.errors.DifferentiationError, match="not linear in the cotangent"):
        tl.jvp(clip, (X,), (X,))


def test_stop_gradient():
    assert float(tl.grad(lambda x: x * tl.stop_gradient(x))(3.0)) == 3.0
    assert float(tl.run(tl.grad(lambda x: x * tl.stop_gradient({"a": x})["a"]))(3.0)) == 3.0


def layered(x, w):
    return tl.sum(tl.tanh(tl.tanh(x * w) * w))


@pytest.mark.parametrize("mode", ["reverse", "forward", "reverse over reverse", "forward over reverse", "staged",
                                  "lanes", "loop"])
def test_checkpoint_keeps_the_words(mode):
    x, w = tl.tensor([0.3, -0.7]), tl.tensor([1.5, 0.5])

    def derive(f):
        one = tl.grad(f, argnums=(0, 1))
        return {"reverse": lambda: one(x, w), "forward": lambda: tl.jvp(f, (x, w), (w, x)),
                "reverse over reverse": lambda: tl.grad(lambda x, w: tl.sum(tl.grad(f, 1)(x, w)))(x, w),
                "forward over reverse": lambda: tl.jvp(one, (x, w), (w, x)), "staged": lambda: tl.run(one)(x, w),
                "lanes": lambda: tl.vmap(one)(x, w),
                "loop": lambda: tl.grad(lambda x: tl.iterate(lambda x: x * f(x, w), 2, x)[0])(x)}[mode]()
    kept, again = tl.tree.leaves(derive(layered)), tl.tree.leaves(derive(tl.checkpoint(layered)))
    assert all(tl.same_bits(a, b) for a, b in zip(kept, again, strict=True))


def test_checkpoint_keeps_inputs_only():
    """The linear program that reverse mode keeps reads the operands, not what was computed on the way."""
    f = lambda x: tl.sum(tl.sin(tl.sin(tl.sin(x))))
    x = tl.tensor(np.linspace(0, 1, 5))
    residuals = {name: len(linearize_flat(lambda x: [g(x)], [x])[1].residuals)
                 for name, g in (("kept", f), ("again", tl.checkpoint(f)))}
    assert residuals["again"] == 1 < residuals["kept"]


def test_checkpoint_takes_flags_and_keywords_as_they_are():
    f = tl.checkpoint(lambda x, *, double=False, name="": x * 2 if double else x)
    assert float(tl.grad(lambda x: f(x, double=True, name="n"))(3.0)) == 2.0
