"""The plan of a jaxpr: its steps compiled, and one Python function that runs them in order.

The function's source is made here, so a call does no bookkeeping:

    def run(a0, a1):
        a0 = contiguous(a0, None, order="C")
        b2 = allocate(s0, d0)
        k0(a0, a1, b2)
        return [b2]
"""
from __future__ import annotations

import functools
import gc
from contextlib import contextmanager
from math import prod
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from tlgrad.backends.numba_cpu.bands import Bands, bands_kernel, beside_readers
from tlgrad.backends.numba_cpu.buffers import allocate
from tlgrad.backends.numba_cpu.calls import sharing
from tlgrad.backends.numba_cpu.contraction import ROWS_AT, banded_product, product_of, tile_kernel
from tlgrad.backends.numba_cpu.copies import LARGE, contiguous
from tlgrad.backends.numba_cpu.donation import donation, may_fail
from tlgrad.backends.numba_cpu.facts import launch_facts
from tlgrad.backends.numba_cpu.joins import Joins
from tlgrad.backends.numba_cpu.kernels import Compiled, compile_kernel
from tlgrad.backends.numba_cpu.leaves import continued, tree_of_products, tree_of_sums
from tlgrad.backends.numba_cpu.packed import Chain, in_runs
from tlgrad.backends.numba_cpu.places import kernel_kind, place_kernel, place_time, words_of
from tlgrad.backends.numba_cpu.relay import relay_of
from tlgrad.backends.numba_cpu.shares import Shares, shares_of
from tlgrad.backends.numba_cpu.steps import is_constant, runs_primitive, work_of
from tlgrad.backends.numba_cpu.sums import fold_kernel, sum_of
from tlgrad.codegen.intrinsics import cost
from tlgrad.codegen.lowering import GroupLowering, Lowerable, Lowered
from tlgrad.core.jaxpr import Jaxpr, Literal, Var, evaluate_arrays
from tlgrad.core.tensor import frozen
from tlgrad.errors import TlgradError
from tlgrad.passes import optimise
from tlgrad.passes.groups import Grouping, Step
from tlgrad.passes.views import View, row_major
from tlgrad.softfloat import chained

#: about how much work (entries times instructions) pays for releasing the GIL
RELEASE = 20_000


@contextmanager
def collector_paused():
    """No search for cycles while many objects are made that all live: it would take half of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class Plan:
    """A compiled program.  `run(*arrays)` gives its results; `kernels` are what it launches."""

    def __init__(self, jaxpr: Jaxpr):
        self.origin = jaxpr.memo.get("origin")
        self.kernels: list[tuple[Lowered, Compiled]] = []
        self.names: dict[Any, str] = {}
        self.constants: dict[str, Any] = {"allocate": allocate, "contiguous": np.asarray,
                                          "packed": contiguous, "ndarray": np.ndarray, "Error": TlgradError}
        self.lines: list[str] = []
        #: what is done, in order: how, and the steps it is for
        self.work: list[tuple[str, list[Step]]] = []
        self.bands = Bands()
        #: kernel of the latest single launch, and whether that releases the GIL
        self.single: tuple[Lowered, Compiled, bool] | None = None
        with collector_paused():
            self.jaxpr = optimise(jaxpr)
            self.grouping = Grouping(self.jaxpr, Lowerable(self.jaxpr), cost)
            self.grouping.steps = beside_readers(self.grouping, lambda s: banded_product(self.grouping, s))
            self.wanted = self._wanted()
            #: inputs whose memory results may take, see `donation`
            twice = any(may_fail(s) or runs_primitive(s) for s in self.grouping.steps)
            given = () if twice else jaxpr.memo.get("donated", ())
            self.donated = {v for k, v in enumerate(self.jaxpr.in_binders) if k in given}
            self.joins = Joins(self)
            self.run = self._build()

    # -- source

    def _build(self):
        params = []
        for k, var in enumerate(self.jaxpr.in_binders):
            params.append(f"a{k}")
            self.names[var] = f"a{k}"
            large = var.aval.size * var.aval.dtype.itemsize >= LARGE
            self.lines.append(f"a{k} = packed(a{k})" if large else f"a{k} = contiguous(a{k}, None, 'C')")
        for run in in_runs(self.grouping):
            work = work_of(run)
            self.work.append((work, run))
            if work == "kernel":
                self._kernel(run[0])
                continue
            self._end_bands()
            if work == "chain":
                self._chain(run)
            elif work == "contraction" and (product := banded_product(self.grouping, run[0])):
                self.bands.start(run[0], product)
            else:
                {"contraction": self._contraction, "sum": self._sum, "rows": self._places,
                 "join": self.joins.join, "primitive": self._host}[work](run[0].eqns[0])
        self._end_bands()
        outs = [self.array(self.grouping.view(atom)) for atom in self.jaxpr.outs]
        lines = [*self.lines, f"return [{', '.join(outs)}]"]
        if any(map(runs_primitive, self.grouping.steps)):
            lines = ["try:", *[f"    {line}" for line in lines], "except Error:", f"    {self._by_primitives()}"]
        body = "\n    ".join(lines)
        self.source = f"def run({', '.join(params)}):\n    {body}\n"
        scope = dict(self.constants)
        exec(compile(self.source, "<tlgrad plan>", "exec"), scope)
        return scope["run"]

    def constant(self, value, stem="c") -> str:
        name = f"{stem}{len(self.constants)}"
        self.constants[name] = value
        return name

    def _wanted(self) -> set[Var]:
        """Variables that are read outside of the step that makes them."""
        g = self.grouping
        wanted = {g.view(a).root for a in self.jaxpr.outs}
        for step in g.steps:
            for eqn in (*step.uniforms, *step.eqns):
                wanted |= {g.view(a).root for a in eqn.ins if not g.made_by(g.view(a).root, step)}
        return wanted

    # -- arrays

    def array(self, view: View) -> str:
        """An expression for a value as a NumPy array."""
        root = view.root
        if isinstance(root, Literal):
            data = np.ndarray(view.shape, root.value.data.dtype, root.value.data.copy(), 0,
                              tuple(0 for _ in view.shape))
            data.flags.writeable = False
            return self.constant(data)
        name = self.names[root]
        if view.whole and view.shape == root.aval.shape:
            return name
        dtype = root.aval.dtype.storage
        strides = tuple(s * dtype.itemsize for s in view.strides)
        if 0 in view.shape:
            return self.constant(np.empty(view.shape, dtype))
        return (f"ndarray({self.constant(view.shape)}, {self.constant(dtype)}, {name}, "
                f"{view.offset * dtype.itemsize}, {strides})")

    def _host(self, eqn):
        """One equation through its primitive's meaning; one without operands is evaluated now."""
        if is_constant(eqn):
            self.names[eqn.outs[0]] = self.constant(frozen(np.array(eqn.prim.eager(**eqn.params), order="C")))
            return
        impl, params = self.constant(eqn.prim.eager, "f"), self.constant(eqn.params, "p")
        args = ", ".join(self.array(self.grouping.view(a)) for a in eqn.ins)
        call = f"{impl}({args}{', ' if args else ''}**{params})"
        names = [f"b{len(self.names) + k}" for k in range(len(eqn.outs))]
        self.names.update(zip(eqn.outs, names))
        if eqn.prim.multiple:
            self.lines.append(f"{', '.join(names)}{',' * (len(names) == 1)} = {call}")
            self.lines += [f"{n} = contiguous({n}, None, 'C')" for n in names]
        else:
            self.lines.append(f"{names[0]} = contiguous({call}, None, 'C')")

    def _chain(self, run):
        """A run of operations of a software format."""
        chain = Chain(self.grouping, run)
        steps = chained.Chained(tuple(chain.kinds), tuple(chain.steps), tuple(chain.uniform), chain.outs)
        meaning = functools.partial(steps, chain.results[0].aval.shape, new=allocate, call=sharing(chain))
        names = [f"b{len(self.names) + k}" for k in range(len(chain.results))]
        args = ", ".join(map(self.array, chain.views))
        self.names.update(zip(chain.results, names))
        self.lines.append(f"{', '.join(names)}, = {self.constant(meaning, 'f')}({args})")

    # -- kernels

    def _kernel(self, step: Step):
        """A kernel: another one of the bands before it, or the first of the next."""
        lowered = GroupLowering(self.grouping, step, self.wanted).lower()
        if not self.bands.takes(lowered):
            self._end_bands()
        self.bands.add(step, lowered)

    def _end_bands(self):
        """Launch the kernels that are waiting: band by band, or a single one."""
        bands, self.bands = self.bands, Bands()
        if bands.several:
            self._launch_bands(bands)
        elif bands.product:
            self._contraction(bands.product[0].eqns[0])
        elif bands.members:
            self._group(*bands.members[0])

    def _launch_bands(self, bands: Bands):
        compiled = [self._compiled(lowered) for _, lowered in bands.members]
        results = {self.grouping.view(a).root for a in self.jaxpr.outs}
        factors, offsets = self._sides(bands.product[0].eqns[0], bands.product[1]) if bands.product else ([], [])
        program, operands, room = bands.program(compiled, bands.kept(self.grouping, results), factors, offsets)
        for step, lowered in bands.members:
            self._donate(step, lowered, bands.alone(self.grouping, step, self.donated))
        for var in operands:
            if isinstance(var, Var) and var in bands.widths and var not in self.names:
                self.names[var] = self.joins.room(var)
        args = [self.names[o] if isinstance(o, Var) else o if isinstance(o, str) else self._copied(o)
                for o in operands]
        shares = Shares(bands_kernel(), bands.rows, bands.time, *bands.shares)
        scratch = self.bind(f"allocate(({room * shares.threads},), {self.constant(np.dtype(np.uint8))})")
        launch = shares.launch([0] * (2 + len(args)), [], bands.cost > RELEASE, room)
        self._run(launch, [self.constant(program, "p"), scratch, *args])

    def _compiled(self, lowered: Lowered) -> Compiled:
        compiled = compile_kernel(lowered.kernel, self.origin, len(self.kernels))
        self.kernels.append((lowered, compiled))
        return compiled

    def _group(self, step: Step, lowered: Lowered):
        args = [self._copied(o) if o.copied else self.names[o.root] for o in lowered.inputs]
        self._donate(step, lowered, self.donated)
        for var in lowered.outs:
            if var not in self.names:
                self.names[var] = self.joins.room(var)
            args.append(self.names[var])
        relay = relay_of(self.grouping, step, lowered)
        self._run(relay.placed(self, step) if relay else self._launch(lowered, step), args)
        for var in lowered.outs[:lowered.flags]:      # the primitives raise the error, or give the result
            found = f"{self.names[var]}.any()" if var.aval.shape else self.names[var]
            self.lines.append(f"if {found}: {self._by_primitives()}")

    def _donate(self, step: Step, lowered: Lowered, donated: set[Var]):
        """Name results after the inputs whose memory they take."""
        taken = donation(self.grouping, step, lowered, donated)
        self.donated -= set(taken.values())
        self.names.update({var: self.names[given] for var, given in taken.items()})

    def _by_primitives(self) -> str:
        """The line that runs the program by its primitives: they raise its first error, or give the result."""
        inputs = ", ".join(f"a{k}" for k in range(len(self.jaxpr.in_binders)))
        return f"return {self.constant(functools.partial(evaluate_arrays, self.jaxpr), 'f')}([{inputs}])"

    def _contraction(self, eqn):
        """A contraction on tiles, continuing from `init` when it has one."""
        product = product_of(eqn, *[self.grouping.view(a) for a in eqn.ins[:2]])
        args, offsets = self._sides(eqn, product)
        kernel = tile_kernel(product.type, product.order)
        if in_leaves(eqn, product.leaves):
            run = tree_of_products(product, kernel, offsets, eqn.outs[0].aval)
            self._tree(eqn, run, args)
            return
        out = self.joins.room(eqn.outs[0])
        self._from_start(eqn, out, 2)
        self._run(product.shares(kernel).launch_by_rows(
            [*offsets, 0], product.words(len(eqn.ins) == 2), ROWS_AT, product.sizes[0],
            prod(product.sizes) > RELEASE), [*args, out])
        if product.swapped:                # it was written as C[b, n, m]
            batch, n, m, _ = product.sizes
            turned = f"{out}.reshape({(batch, n, m)}).transpose(0, 2, 1)"
            out = self.bind(f"contiguous({turned}, None, 'C').reshape({eqn.outs[0].aval.shape})")
        self.names[eqn.outs[0]] = out

    def _sides(self, eqn, product):
        """The operands of a contraction on tiles and where they start, in bytes."""
        args, offsets = [], []
        for side, atom in zip((product.a, product.b), eqn.ins[1::-1] if product.swapped else eqn.ins):
            view = self.grouping.view(atom)
            if side.perm is None and isinstance(view.root, Var):
                args.append(self.names[view.root])
                offsets.append(view.offset * view.root.aval.dtype.itemsize)
            else:
                args.append(self.bind(f"contiguous({self.array(view)}.transpose({side.perm}), None, 'C')"))
                offsets.append(0)
        return args, offsets

    def _sum(self, eqn):
        """A reduction, a contraction of any operands, or a running sum."""
        views = [self.grouping.view(a) for a in eqn.ins[:len(eqn.ins) - starts_from(eqn)]]
        args = []
        for k, view in enumerate(views):
            if isinstance(view.root, Var):
                args.append(self.names[view.root])
            else:
                args.append(self.bind(f"contiguous({self.array(view)}, None, 'C')"))
                views[k] = View(view.root, view.shape, row_major(view.shape))
        found = sum_of(eqn, views)
        kernel, release = fold_kernel(found.fold), found.work > RELEASE
        if in_leaves(eqn, found.leaves):
            self._tree(eqn, tree_of_sums(found, kernel, eqn.outs[0].aval), args)
            return
        out = self.names[eqn.outs[0]] = self.joins.room(eqn.outs[0])
        self._from_start(eqn, out, len(views))
        words = found.words_from(len(eqn.ins) == len(views))
        launch = Shares(kernel, found.items, found.time).launch(found.offsets, words, release)
        self._run(launch, [*args, out])

    def _places(self, eqn):
        """A gather or scatter of rows; the primitive raises the error for a place outside."""
        views = [self.array(self.grouping.view(a)) for a in eqn.ins]
        arrays = [views[0], *[self.bind(f"contiguous({v}, None, 'C')") for v in views[1:]]]
        if eqn.prim.name == "gather":
            arrays[0] = self.bind(f"contiguous({views[0]}, None, 'C')")
        indices = self.bind(f"contiguous({arrays[1]}, {self.constant(np.dtype(np.int64), 'd')}, 'C')")
        flag = self.bind(f"{self.constant(np.zeros)}(1, {self.constant(np.dtype(np.int64), 'd')})")
        out = self.names[eqn.outs[0]] = self.joins.room(eqn.outs[0])
        scatters = eqn.prim.name == "scatter"
        if scatters:
            self.lines.append(f"{out}[...] = {arrays[0]}")
        count = prod(eqn.ins[1].aval.shape[:-1])
        moved = (eqn.ins[2] if scatters else eqn.outs[0]).aval
        shares = Shares(place_kernel(*kernel_kind(eqn)), count, place_time(eqn, moved))
        self._run(shares.launch([0] * 4, words_of(eqn), moved.size > RELEASE),
                  [out, arrays[2], indices, flag] if scatters else [arrays[0], out, indices, flag])
        self.lines.append(f"if {flag}[0]: {self._by_primitives()}")

    def _tree(self, eqn, run, args):
        """A result in tree order, after its start if it has one."""
        out = self.names[eqn.outs[0]] = self.bind(f"{self.constant(run, 'f')}({', '.join(args)})")
        if starts_from(eqn):
            start = self.array(self.grouping.view(eqn.ins[-1]))
            self.names[eqn.outs[0]] = self.bind(f"{self.constant(continued)}({start}, {out})")

    def _from_start(self, eqn, out, operands):
        """Fill the result with what the sum continues from, where it has a start."""
        if len(eqn.ins) > operands:
            self.lines.append(f"{out}[...] = {self.array(self.grouping.view(eqn.ins[operands]))}")

    def _run(self, launch, args):
        """The line that launches, on one thread or several."""
        stem = "k" if isinstance(launch, BuiltinFunctionType) else "shared"
        self.lines.append(f"{self.constant(launch, stem)}({', '.join(args)})")

    def bind(self, expression) -> str:
        """A name for an intermediate array."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def new(self, aval) -> str:
        """A name for an array without contents."""
        shape, dtype = self.constant(aval.shape, "s"), self.constant(aval.dtype.storage, "d")
        return self.bind(f"allocate({shape}, {dtype})")

    def _copied(self, operand) -> str:
        return self.bind(f"{self.array(operand.view)}.copy()")

    def _launch(self, lowered: Lowered, step: Step):
        """The function that launches a kernel: everything but the arrays is fixed."""
        compiled = self._compiled(lowered)
        offsets, words, _, entries = launch_facts(lowered)
        release = entries * max(step.weight, 1) > RELEASE
        self.single = (lowered, compiled, release)
        shares = shares_of(lowered, compiled.address)
        return shares.launch([*offsets, *[0] * len(lowered.outs)], words, release)

    def direct(self) -> tuple | None:
        """(kernel, byte offsets, further words, lanes, numbers of the inputs it takes) of a small program
        that is one kernel with one result; None for others."""
        steps, out = self.grouping.steps, self.jaxpr.outs
        if (self.single is None or len(steps) != 1 or len(self.kernels) != 1 or len(out) != 1
                or not isinstance(out[0], Var)):
            return None
        lowered, compiled, release = self.single
        binders = {v: k for k, v in enumerate(self.jaxpr.in_binders)}
        view = self.grouping.view(out[0])
        if (release or lowered.outs != [view.root] or view.shape != view.root.aval.shape
                or not view.whole or any(o.copied or o.root not in binders for o in lowered.inputs)):
            return None
        offsets, words, lanes, _ = launch_facts(lowered)
        return compiled.address, offsets, words, lanes, [binders[o.root] for o in lowered.inputs]


def in_leaves(eqn, leaves: int) -> bool:
    """True when leaves are summed by themselves: a start is then added to their total, however few."""
    return leaves > 1 or eqn.params.get("order") == "tree" and starts_from(eqn)


def starts_from(eqn) -> bool:
    """True when the last operand is what a sum continues from."""
    return len(eqn.ins) == {"dot_general": 3, "reduce_sum": 2}.get(eqn.prim.name, -1)
