"""Ordered folds with a run-time count: one primitive, closed under every transform.

A *tower* of m sweeps runs over i = 0 .. n-1, each forward or backward.  Sweep k reads, at
turn i, the carries that the sweeps before it had when they came to turn i; only the last sweep
has results.  A loop is a tower of one sweep.  Its reverse mode is a tower of two, the loop
itself and a backward sweep that reads its states; derivatives of that are towers again.  No
array of run-time length appears anywhere: how states are kept is the business of
`control.schedule`, under the limit `memory`.

    operands  n, consts..., xs..., carries of sweep 0..., ..., carries of sweep m-1...
    body k    i, consts..., xs[i]..., carries 0..., ..., carries k...  ->  carries k...
    results   of the last sweep: carries..., then what its body gives at each turn, stacked;
              those where `results` holds
"""
from __future__ import annotations

from typing import NamedTuple, Sequence

from tlgrad.control.lanes import borrow_all, choose
from tlgrad.control.schedule import execute
from tlgrad.control.staging import reorder, split_list
from tlgrad.core import dtypes
from tlgrad.core.aval import Aval, Zero
from tlgrad.core.jaxpr import Jaxpr, dce, eval_jaxpr
from tlgrad.core.primitive import Linear, Primitive
from tlgrad.errors import ShapeError
from tlgrad.ops.arithmetic import neg
from tlgrad.ops.define import add_tangents, documented, instantiate
from tlgrad.ops.index import mapped
from tlgrad.ops.layout import moveaxis, zeros
from tlgrad.ops.logic import gt, lt, select
from tlgrad.ops.reduce import reduce_max, reduce_min
from tlgrad.transforms.batch import batch_jaxpr
from tlgrad.transforms.jvp import jvp_jaxpr
from tlgrad.transforms.partial_eval import partial_eval_jaxpr
from tlgrad.transforms.stage import stage_closed
from tlgrad.transforms.transpose import backward


class Layout(NamedTuple):
    """The static parameters of a tower."""
    bodies: tuple[Jaxpr, ...]
    reverse: tuple[bool, ...]
    n_consts: int
    n_xs: int
    carries: tuple[int, ...]
    length: int | None
    results: tuple[bool, ...]
    memory: int | str | None

    def split(self, operands: Sequence) -> tuple:
        """n, consts, xs, [carries of each sweep]."""
        n, consts, xs, *carries, _ = split_list(operands, 1, self.n_consts, self.n_xs, *self.carries)
        return n[0], consts, xs, carries

    def bind(self, *operands) -> list:
        """Bind the primitive."""
        return sweeps_p.bind(*operands, **self._asdict())


# ---- meaning ----

def _impl(n, *operands, **params):
    layout = Layout(**params)
    _, consts, xs, carries = layout.split([n, *operands])
    return execute(layout, n, consts, xs, carries)


def _abstract(*avals, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(avals)
    if n.shape != () or not dtypes.is_integer(n.dtype):
        raise ShapeError(f"sweeps: the count must be an integer of shape (), got {n}")
    shared = [n, *consts, *[a.with_shape(a.shape[1:]) for a in xs]]
    for k, body in enumerate(layout.bodies):
        shared += carries[k]
        if [a.strong() for a in body.in_avals] != [a.strong() for a in shared]:
            raise ShapeError(f"sweeps: body {k} takes {body.in_avals}, its operands are {shared}")
    outs = [a.strong() for a in layout.bodies[-1].out_avals]
    n_carry = layout.carries[-1]
    if outs[:n_carry] != [a.strong() for a in carries[-1]]:
        raise ShapeError(f"sweeps: the carry {carries[-1]} becomes {outs[:n_carry]}")
    stacked = [a.with_shape((layout.length, *a.shape)) for a in outs[n_carry:]]
    return [a for a, want in zip([*outs[:n_carry], *stacked], layout.results, strict=True) if want]


# ---- forward mode: every body is made dual ----

def _jvp(primals, tangents, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(primals)
    _, consts_t, xs_t, carries_t = layout.split(tangents)
    nonzero = [[type(t) is not Zero for t in ts] for ts in (consts_t, xs_t, *carries_t)]
    dual, out_nonzero = _dual_layout(layout, nonzero)
    operands = [n]
    for values, ts, nz in zip([consts, xs, *carries], [consts_t, xs_t, *carries_t], nonzero):
        operands += [*values, *[instantiate(t) for t, z in zip(ts, nz) if z]]
    outs = dual.bind(*operands)
    return _pair_results(layout, outs, nonzero[-1], out_nonzero)


def _dual_layout(layout: Layout, nonzero) -> tuple[Layout, list[bool]]:
    """The tower of dual bodies; `nonzero` (consts, xs, carries...) grows to its fixed point."""
    bodies, out_nonzero = [], []
    for k, body in enumerate(layout.bodies):
        n_carry = layout.carries[k]
        mine = nonzero[2 + k]
        while True:
            flags = [False, *[z for group in nonzero[:3 + k] for z in group]]
            keep = [*mine, *[False] * (len(body.outs) - n_carry)]
            dual, out_nonzero = jvp_jaxpr(body, flags, keep)
            if out_nonzero[:n_carry] == mine:
                break
            mine[:] = [a or b for a, b in zip(mine, out_nonzero)]
        bodies.append(_interleave(dual, [1, *map(len, nonzero[:3 + k])], flags, n_carry, out_nonzero))
    sizes = [len(g) + sum(g) for g in nonzero]
    ys_nonzero = out_nonzero[layout.carries[-1]:]
    wanted, wanted_ys = split_list(layout.results, layout.carries[-1])
    results = [*wanted, *[w for w, z in zip(wanted, nonzero[-1]) if z],
               *wanted_ys, *[w for w, z in zip(wanted_ys, ys_nonzero) if z]]
    return layout._replace(bodies=tuple(bodies), n_consts=sizes[0], n_xs=sizes[1], carries=tuple(sizes[2:]),
                           results=tuple(results)), ys_nonzero


def _interleave(dual: Jaxpr, groups, flags, n_carry, out_nonzero) -> Jaxpr:
    """(x..., dots...) -> (...) with the dots of each group right after the group."""
    dot = iter(range(len(flags), len(dual.in_binders)))
    dots = [next(dot) if z else None for z in flags]
    order, start = [], 0
    for size in groups:
        span = range(start, start + size)
        order += [*span, *[dots[k] for k in span if flags[k]]]
        start += size
    n_out = len(out_nonzero)
    out_dot = iter(range(n_out, len(dual.outs)))
    out_dots = [next(out_dot) if z else None for z in out_nonzero]
    outs = [*range(n_carry), *[d for d in out_dots[:n_carry] if d is not None],
            *range(n_carry, n_out), *[d for d in out_dots[n_carry:] if d is not None]]
    return reorder(dual, order, outs)


def _pair_results(layout, outs, carry_nonzero, ys_nonzero):
    """Results of the dual tower as (primal results, tangents)."""
    n_carry = layout.carries[-1]
    wanted, wanted_ys = split_list(layout.results, n_carry)
    values, dots = [], []
    rest = list(outs)
    for want, nonzero in ((wanted, carry_nonzero), (wanted_ys, ys_nonzero)):
        kept = [z for w, z in zip(want, nonzero) if w]
        ys, ts, rest = split_list(rest, len(kept), sum(kept))
        it = iter(ts)
        values += ys
        dots += [next(it) if z else Zero(y.aval) for y, z in zip(ys, kept)]
    return values, dots


# ---- partial evaluation: known carries run now; later, all is run again beside the unknown ----

class Split(NamedTuple):
    """A tower cut in two by which values are unknown."""
    known: tuple[Jaxpr, ...]            # of known inputs only -> known carries (last: and ys)
    unknown: tuple[Jaxpr, ...]          # of all inputs -> unknown carries (last: and ys)
    consts: list[bool]
    xs: list[bool]
    carries: list[list[bool]]
    ys: list[bool]


def split_tower(layout: Layout, consts, xs, carries) -> Split:
    """Cut each body; flags say what is unknown, and grow to their fixed point."""
    carries = [list(c) for c in carries]
    known, unknown, ys = [], [], []
    for k, body in enumerate(layout.bodies):
        mine, n_carry = carries[k], layout.carries[k]
        while True:
            flags = [False, *consts, *xs, *[u for c in carries[:k + 1] for u in c]]
            part = partial_eval_jaxpr(body, flags)
            found = part[2][:n_carry]
            grown = [a or b for a, b in zip(mine, found)]
            if grown == mine:
                break
            mine[:] = grown
        ys = list(part[2][n_carry:])
        known.append(_known_body(part, [*mine, *ys]))
        unknown.append(_unknown_body(body, part, flags, [*mine, *ys]))
    return Split(tuple(known), tuple(unknown), list(consts), list(xs), carries, ys)


def _known_body(part, unknown_out) -> Jaxpr:
    known, _, found, n_res = part
    plain = iter(range(len(known.outs) - n_res))
    place = [None if u else next(plain) for u in found]
    wanted = [p for p, u in zip(place, unknown_out) if not u]
    return tidy(reorder(known, range(len(known.in_binders)), wanted))


def _unknown_body(body, part, flags, unknown_out) -> Jaxpr:
    """All inputs -> unknown results: the known part worked out again, then the rest."""
    known, rest, found, n_res = part

    def f(*xs):
        first = eval_jaxpr(known, [x for x, u in zip(xs, flags) if not u])
        plain, residuals = first[:len(first) - n_res], first[len(first) - n_res:]
        later = eval_jaxpr(rest, [*residuals, *[x for x, u in zip(xs, flags) if u]])
        a, b = iter(plain), iter(later)
        outs = [next(b) if u else next(a) for u in found]
        return [y for y, u in zip(outs, unknown_out) if u]
    return tidy(stage_closed(f, body.in_avals, "partial evaluation of a loop"))


def tidy(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without the equations that no result needs; its inputs stay."""
    small, _ = dce(jaxpr, [True] * len(jaxpr.outs))
    return Jaxpr(jaxpr.in_binders, small.eqns, small.outs)


def pick(values, flags, want=True) -> list:
    """The values whose flag is `want`."""
    return [v for v, f in zip(values, flags, strict=True) if f == want]


def _partial_eval(trace, args, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    if trace.is_unknown(n):
        return trace.emit(sweeps_p, args, params)
    is_unknown = [list(map(trace.is_unknown, group)) for group in (consts, xs, *carries)]
    cut = split_tower(layout, is_unknown[0], is_unknown[1], is_unknown[2:])
    out_unknown = [*cut.carries[-1], *cut.ys]
    now = known_layout(layout, cut)
    known_outs = now.bind(n, *known_operands(cut, consts, xs, carries)) if any(now.results) else []
    later_results = tuple(want and u for want, u in zip(layout.results, out_unknown))
    later_outs = []
    if any(later_results):
        operands = [n, *consts, *xs, *[x for c in carries for x in c]]
        later_outs = trace.emit(sweeps_p, operands, layout._replace(results=later_results)._asdict())
    first, second = iter(known_outs), iter(later_outs)
    return [next(second) if u else next(first) for u, want in zip(out_unknown, layout.results) if want]


def known_layout(layout: Layout, cut: Split) -> Layout:
    """The tower of known carries."""
    return layout._replace(
        bodies=cut.known, n_consts=cut.consts.count(False), n_xs=cut.xs.count(False),
        carries=tuple(c.count(False) for c in cut.carries),
        results=tuple(pick(layout.results, [*cut.carries[-1], *cut.ys], False)))


def known_operands(cut: Split, consts, xs, carries) -> list:
    """Operands of `known_layout`, without n."""
    groups = zip([consts, xs, *carries], [cut.consts, cut.xs, *cut.carries])
    return [x for values, flags in groups for x in pick(values, flags, False)]


# ---- batching ----

def _batch(args, axes, size, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    n_axis, consts_axes, xs_axes, carries_axes = layout.split(axes)
    is_mapped = [[k is not None for k in group] for group in (consts_axes, xs_axes, *carries_axes)]
    by_lane = n_axis is not None
    if by_lane:
        n = moveaxis(n, n_axis, 0)
        is_mapped[2:] = [[True] * len(c) for c in carries]
    ys_mapped, bodies = _mapped_bodies(layout, is_mapped, size)
    consts = [x if k is None else moveaxis(x, k, 0) for x, k in zip(consts, consts_axes)]
    xs = [x if k is None else moveaxis(x, k, 1) for x, k in zip(xs, xs_axes)]
    carries = [[mapped(x, k, size) if m else x for x, k, m in zip(*group)]
               for group in zip(carries, carries_axes, is_mapped[2:])]
    if by_lane:
        bodies = [_guarded(layout, b, k, is_mapped, n.aval) for k, b in enumerate(bodies)]
        layout, consts = layout._replace(n_consts=layout.n_consts + 1), [n, *consts]
        n = longest(n)
    outs = layout._replace(bodies=tuple(bodies)).bind(n, *consts, *xs, *[x for c in carries for x in c])
    out_axes = [*[0 if m else None for m in is_mapped[-1]], *[1 if m else None for m in ys_mapped]]
    return outs, [k for k, want in zip(out_axes, layout.results) if want]


def longest(counts):
    """The greatest count; a negative one, where there is any, so that it is refused."""
    least, most = (prim.bind(counts, axes=(0,)) for prim in (reduce_min, reduce_max))
    return select.bind(lt(least, 0), least, most)


def _mapped_bodies(layout, is_mapped, size):
    """Bodies over lanes; `is_mapped` (consts, xs, carries...) grows to its fixed point."""
    bodies, ys = [], []
    for k, body in enumerate(layout.bodies):
        mine, n_carry = is_mapped[2 + k], layout.carries[k]
        while True:
            flags = [False, *[m for group in is_mapped[:3 + k] for m in group]]
            lanes, found = batch_jaxpr(body, size, flags, [*mine, *[False] * (len(body.outs) - n_carry)])
            if found[:n_carry] == mine:
                break
            mine[:] = [a or b for a, b in zip(mine, found)]
        ys = found[n_carry:]
        bodies.append(lanes)
    return ys, bodies


def _guarded(layout, body, k, is_mapped, n_aval) -> Jaxpr:
    """Body k over lanes with counts of their own, (i, counts, ...): ended lanes stay as they are."""
    flags = [m for group in is_mapped[:3 + k] for m in group]
    n_carry = layout.carries[k]

    def f(i, counts, *values):
        live = lt(i, counts)
        outs = eval_jaxpr(body, [i, *borrow_all(live, values, flags)])
        return [choose(live, new, old) for new, old in zip(outs, values[len(values) - n_carry:])]
    return stage_closed(f, [body.in_avals[0], n_aval.strong(), *body.in_avals[1:]], "vmap of a loop")


# ---- reverse mode ----

def _transpose(cts, *args, **params):
    layout = Layout(**params)
    n, consts, xs, carries = layout.split(args)
    linear = [[type(x) is Linear for x in group] for group in (consts, xs, *carries)]
    cut = split_tower(layout, linear[0], linear[1], linear[2:])
    return Turned(layout, cut, n, consts, xs, carries).run(cts)


class Turned:
    """The transposition of one tower.

    Its linear sweeps L_0 .. L_{m-1} become sweeps T_{m-1} .. T_0 in opposite directions, behind
    the nonlinear ones.  T_k carries the cotangent of L_k's carry; the last of a tower also
    carries those of the linear constants.  Every T_k has results, so there is one tower for each.
    """

    def __init__(self, layout, cut, n, consts, xs, carries):
        self.layout, self.cut, self.n = layout, cut, n
        self.consts, self.xs, self.carries = consts, xs, carries
        self.m = len(layout.bodies)
        self.lin_consts = [x.aval.strong() for x in pick(consts, cut.consts)]
        self.lin_xs = [x.aval.strong() for x in pick(xs, cut.xs)]
        self.lin_carries = [[body.out_avals[k].strong() for k in range(sum(flags))]
                            for body, flags in zip(cut.unknown, cut.carries)]

    def run(self, cts) -> list:
        """Cotangents of all operands (None for the nonlinear ones)."""
        ct_carry, ct_ys = self.given(cts)
        ct_xs: list = [Zero(a) for a in self.lin_xs]
        ct_consts = [Zero(a) for a in self.lin_consts]
        ct_inits: list = [None] * self.m
        for k in reversed(range(self.m)):
            ct_inits[k], ct_consts, more = self.tower(k, ct_carry, ct_ys, ct_consts)
            ct_xs = [add_tangents(a, b) for a, b in zip(ct_xs, more)]
        out: list = [None]
        for flags, found in zip([self.cut.consts, self.cut.xs, *self.cut.carries], [ct_consts, ct_xs, *ct_inits]):
            it = iter(found)
            out += [next(it) if u else None for u in flags]
        return self.only_linear(out)

    def only_linear(self, out):
        """A carry whose start is known, but becomes linear on the way, has no cotangent to give."""
        starts = [x for c in self.carries for x in c]
        operands = [self.n, *self.consts, *self.xs, *starts]
        return [ct if type(x) is Linear else None for ct, x in zip(out, operands)]

    def given(self, cts):
        """Cotangents of the last sweep's linear carries and ys, results that were dropped included."""
        layout, flags = self.layout, [*self.cut.carries[-1], *self.cut.ys]
        it = iter(cts)
        full = [next(it) if want else None for want in layout.results]
        chosen = pick(full, flags)
        n = len(self.lin_carries[-1])
        avals = self.cut.unknown[-1].out_avals
        ct_carry = [zeros(a.strong()) if ct is None else instantiate(ct)
                    for ct, a in zip(chosen[:n], avals)]
        ct_ys = [zeros(a.strong().with_shape((layout.length, *a.shape))) if ct is None else instantiate(ct)
                 for ct, a in zip(chosen[n:], avals[n:])]
        return ct_carry, ct_ys

    def tower(self, last, ct_carry, ct_ys, ct_consts):
        """Cotangents of L_last's starts, of the constants so far, and of xs."""
        layout, cut = self.layout, self.cut
        sweeps = list(range(self.m - 1, last - 1, -1))
        bodies, used_consts, used_xs = turned_bodies(layout, cut, last)
        started = [neg(zeros(a)) if type(ct) is Zero else ct for ct, a in zip(ct_consts, self.lin_consts)]
        starts = [ct_carry if k == self.m - 1 else [zeros(a) for a in self.lin_carries[k]] for k in sweeps]
        starts[-1] = [*starts[-1], *pick(started, used_consts)]
        nonlinear = [k for k in range(self.m) if cut.carries[k].count(False)]
        known = [pick(self.carries[k], cut.carries[k], False) for k in nonlinear]
        new = Layout(bodies=bodies,
                     reverse=(*[layout.reverse[k] for k in nonlinear], *[not layout.reverse[k] for k in sweeps]),
                     n_consts=cut.consts.count(False), n_xs=cut.xs.count(False) + len(ct_ys),
                     carries=tuple(map(len, [*known, *starts])), length=layout.length,
                     results=(True,) * len(bodies[-1].outs), memory=layout.memory)
        outs = new.bind(self.n, *pick(self.consts, cut.consts, False), *pick(self.xs, cut.xs, False), *ct_ys,
                        *[x for group in (*known, *starts) for x in group])
        ct_init, sums, found_xs = split_list(outs, len(self.lin_carries[last]), sum(used_consts))
        it_sums, it_xs = iter(sums), iter(found_xs)
        ct_consts = [self.settle(next(it_sums), ct) if used else ct for used, ct in zip(used_consts, ct_consts)]
        ct_xs = [next(it_xs) if used else Zero(a) for used, a in zip(used_xs, self.lin_xs)]
        return ct_init, ct_consts, ct_xs

    def settle(self, total, before):
        """A sum that started at -0 (adding to -0 changes no word) is +0 when there was no turn."""
        if type(before) is not Zero:
            return total
        some = gt(self.n, 0)
        return select.bind(some, total, zeros(total.aval))


def turned_bodies(layout: Layout, cut: Split, last: int):
    """Bodies of the transposed tower that ends in T_last; which linear consts and xs it reaches."""
    memo = layout.bodies[-1].memo
    flags = (tuple(cut.consts), tuple(cut.xs), tuple(map(tuple, cut.carries)))
    key = ("turned", layout.bodies, layout.results, flags, last)
    if key not in memo:
        memo[key] = _turned_bodies(layout, cut, last)
    return memo[key]


def _turned_bodies(layout, cut, last):
    m = len(layout.bodies)
    n_ys = sum(cut.ys)
    nonlinear = [k for k in range(m) if cut.carries[k].count(False)]
    bodies = [_with_extra_xs(cut, k, n_ys, nonlinear) for k in nonlinear]
    for k in range(m - 1, last, -1):
        bodies.append(TurnedBody(layout, cut, k).plain())
    final, used_consts, used_xs = TurnedBody(layout, cut, last).with_sums()
    return (*bodies, final), used_consts, used_xs


def _with_extra_xs(cut, k, n_ys, nonlinear) -> Jaxpr:
    """Known body k, with the cotangents of ys as further xs, giving carries only."""
    body = cut.known[k]
    n_carry = cut.carries[k].count(False)
    n_front = 1 + cut.consts.count(False) + cut.xs.count(False)
    extra = [a.strong() for a in cut.unknown[-1].out_avals[len(cut.unknown[-1].outs) - n_ys:]] if n_ys else []
    return tidy(reorder(body, [*range(n_front), *extra, *range(n_front, len(body.in_binders))], range(n_carry)))


class TurnedBody:
    """T_k at one turn: from the cotangents that L_k .. L_{m-1} give to what they read."""

    def __init__(self, layout: Layout, cut: Split, k: int):
        self.layout, self.cut, self.k = layout, cut, k
        self.m = len(layout.bodies)
        self.n_lin = [sum(c) for c in cut.carries]
        self.n_known = [c.count(False) for c in cut.carries]
        self.avals_in = cut.unknown[-1].in_avals
        self.out_avals = [[a.strong() for a in b.out_avals] for b in cut.unknown]

    def flags_until(self, k) -> list[bool]:
        """Which inputs of body k are linear."""
        cut = self.cut
        return [False, *cut.consts, *cut.xs, *[u for c in cut.carries[:k + 1] for u in c]]

    def in_avals(self) -> list[Aval]:
        """turn, known consts, known xs, cts of ys, known carries of all sweeps, cts T_{m-1} .. T_k."""
        flags = self.flags_until(self.m - 1)
        shared = 1 + self.layout.n_consts + self.layout.n_xs
        front = pick(self.avals_in[:shared], flags[:shared], False)
        known = pick(self.avals_in[shared:], flags[shared:], False)
        n = self.n_lin[-1]
        cts = [a for k in range(self.m - 1, self.k - 1, -1) for a in self.out_avals[k][:self.n_lin[k]]]
        return [*front, *self.out_avals[-1][n:], *known, *cts]

    def pull(self, values, consts_out):
        """Cotangents of L_k's (consts, xs, carry), the first added to `consts_out`."""
        cut, m = self.cut, self.m
        n_front = 1 + cut.consts.count(False) + cut.xs.count(False)
        front, ct_ys, *rest = split_list(values, n_front, sum(cut.ys), *self.n_known,
                                         *[self.n_lin[k] for k in range(m - 1, self.k - 1, -1)])
        known, cts = rest[:m], rest[m:-1]
        total: list = [None] * self.n_lin[self.k]
        ct_consts, ct_xs = consts_out, []
        for j, ct in zip(range(m - 1, self.k - 1, -1), cts):
            found = self.backward(j, front, known, [*ct, *(ct_ys if j == m - 1 else [])],
                                  consts_out if j == self.k else None,
                                  total if j == self.k else None)
            lin_consts, lin_xs, *lin_carries, _ = split_list(found, sum(cut.consts), sum(cut.xs), *self.n_lin[:j + 1])
            if j == self.k:
                ct_consts, ct_xs, total = lin_consts, lin_xs, lin_carries[self.k]
            else:
                total = [c if t is None else add_tangents(t, c) for t, c in zip(total, lin_carries[self.k])]
        return ct_consts, ct_xs, total

    def backward(self, j, front, known, cts, consts_out, carry_out):
        """Body j backwards at one turn.  What is already in `consts_out` and `carry_out` comes first
        in the sums, as it does in the program without the loop."""
        cut, body = self.cut, self.cut.unknown[j]
        flags = self.flags_until(j)
        it = iter([*front, *[x for group in known[:j + 1] for x in group]])
        args = [Linear(a) if u else next(it) for a, u in zip(body.in_avals, flags)]
        lin = pick(body.in_binders, flags)
        n_shared = sum(cut.consts) + sum(cut.xs)
        outs, cts = list(body.outs), list(cts)
        for binders, before in ((lin[:sum(cut.consts)], consts_out), (lin[n_shared + sum(self.n_lin[:j]):], carry_out)):
            for var, ct in zip(binders, before or []):
                if ct is not None and type(ct) is not Zero:
                    outs.insert(0, var)
                    cts.insert(0, ct)
        return backward(Jaxpr(body.in_binders, body.eqns, outs), args, cts)

    def plain(self) -> Jaxpr:
        """The body of T_k as an earlier sweep of a tower."""
        def f(*values):
            return [instantiate(ct) for ct in self.pull(values, None)[2]]
        return tidy(stage_closed(f, self.in_avals(), "reverse mode of a loop"))

    def with_sums(self):
        """The body of T_k as the last sweep: it also adds up cotangents of consts, and gives xs'.

        Also tells which linear consts and xs have a cotangent at all.
        """
        used_consts, used_xs = self.reached()
        lin_avals = pick(self.avals_in[1:1 + self.layout.n_consts], self.cut.consts)
        sums = [a.strong() for a in pick(lin_avals, used_consts)]
        n = len(self.in_avals())

        def f(*values):
            it = iter(values[n:])
            before = [next(it) if used else None for used in used_consts]
            ct_consts, ct_xs, ct_carry = self.pull(values[:n], before)
            return [instantiate(ct) for ct in (*ct_carry, *pick(ct_consts, used_consts), *pick(ct_xs, used_xs))]
        body = stage_closed(f, [*self.in_avals(), *sums], "reverse mode of a loop")
        return tidy(body), used_consts, used_xs

    def reached(self):
        """Which linear consts and xs get anything but a symbolic zero from L_k."""
        found = []

        def f(*values):
            ct_consts, ct_xs, _ = self.pull(values, [None] * sum(self.cut.consts))
            found[:] = [[type(ct) is not Zero for ct in cts] for cts in (ct_consts, ct_xs)]
            return []
        stage_closed(f, self.in_avals(), "reverse mode of a loop")
        return found


sweeps_p = documented(
    Primitive("sweeps", impl=_impl, abstract=_abstract, jvp=_jvp, partial_eval=_partial_eval,
              transpose=_transpose, batch=_batch, multiple=True, kind="scan", lower=("control", "sweeps")),
    "A tower of ordered folds over i = 0 .. n-1 (see the module).", "n *operands")
