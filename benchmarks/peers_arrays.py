"""W1 recurrence, W3 contraction, W4 row sums."""
from __future__ import annotations

import ctypes

import numpy as np

import tlgrad as tl
from benchmarks.harness import Case
from benchmarks.peers_report import compare, jax, torch
from tlgrad.backends.numba_cpu.kernels import build
from tlgrad.kernels.machine import host

STARTS = 1 << 20


def step(v):
    """One turn of W1."""
    return v * v * 0.25 + 0.5


def limit_case(dtype: str, name: str, muls: int, adds: int, count: int) -> Case:
    """`count` vectors through independent multiplications and additions in registers: the ceiling."""
    machine = host()
    kind, size = ("float", 4) if dtype == "float32" else ("double", 8)
    lanes = machine.vector_bytes // size
    v, chains = f"<{lanes} x {kind}>", 12
    lines = [f"  %x{c} = phi {v} [ splat ({kind} 1.0), %entry ], [ %y{c}, %loop ]" for c in range(chains)]
    for c in range(chains):
        now = f"%x{c}"
        for m, op in enumerate(["fmul"] * muls + ["fadd"] * adds):
            last = m == muls + adds - 1
            lines.append(f"  {f'%y{c}' if last else f'%z{c}_{m}'} = {op} {v} {now}, splat ({kind} 0.75)")
            now = f"%z{c}_{m}"
    stores = [f"  %p{c} = getelementptr {v}, ptr %slots, i64 {c}\n  store {v} %y{c}, ptr %p{c}, align {size}"
              for c in range(chains)]
    text = "\n".join([f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) {{", "entry:", "  br label %loop",
                      "loop:", "  %i = phi i64 [ %lo, %entry ], [ %j, %loop ]", *lines,
                      f"  %j = add i64 %i, {chains}", "  %more = icmp slt i64 %j, %hi",
                      "  br i1 %more, label %loop, label %end", "end:", *stores, "  ret void", "}", ""])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(build(text, name))
    room = np.zeros(chains * 64, np.uint8)
    return Case(f"limit: {muls} mul and {adds} add", lambda: function(room.ctypes.data, 0, count))


def read_case(x: np.ndarray) -> Case:
    """What a core reads of memory: a copy of the array, in order, into eight vectors of sums."""
    machine = host()
    lanes, chains = machine.vector_bytes // 4, 8
    v, turn = f"<{lanes} x float>", chains * machine.vector_bytes
    sums = [f"  %x{c} = phi {v} [ zeroinitializer, %entry ], [ %y{c}, %loop ]" for c in range(chains)]
    lines = []
    for c in range(chains):
        lines += [f"  %p{c} = getelementptr i8, ptr %p, i64 {c * machine.vector_bytes}",
                  f"  %z{c} = load {v}, ptr %p{c}, align {machine.vector_bytes}",
                  f"  %y{c} = fadd {v} %x{c}, %z{c}"]
    stores = [f"  %q{c} = getelementptr {v}, ptr %out, i64 {c}\n  store {v} %y{c}, ptr %q{c}, align 4"
              for c in range(chains)]
    text = "\n".join(["define void @limit_read(ptr %in, ptr %out, i64 %bytes) {", "entry:", "  br label %loop",
                      "loop:", "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]", *sums,
                      "  %p = getelementptr i8, ptr %in, i64 %i", *lines, f"  %j = add i64 %i, {turn}",
                      "  %more = icmp slt i64 %j, %bytes", "  br i1 %more, label %loop, label %end", "end:",
                      *stores, "  ret void", "}", ""])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(build(text, "limit_read"))
    data, out = tl.tensor(x).data, np.zeros(turn, np.uint8)
    return Case("limit: reading", lambda: function(data.ctypes.data, out.ctypes.data, data.nbytes))


def w1(rounds: int):
    """The recurrence, forward and with its gradient."""
    for dtype, grad_turns in (("float32", 60), ("float64", 100)):
        x = np.linspace(-1, 1, STARTS).astype(dtype)
        vectors = STARTS * x.itemsize // host().vector_bytes
        w1_forward(rounds, x, dtype, vectors)
        w1_gradient(rounds, x, dtype, vectors, grad_turns)
    x = tl.tensor(np.linspace(-1, 1, 1 << 12).astype("float32"))
    both = tl.run(tl.value_and_grad(lambda x, n: tl.sum(tl.iterate(step, n, x))))
    timings = compare("W1 50000 turns, 4096 starts, value and gradient",
                      [Case("tlgrad", lambda: both(x, 50_000))], max(rounds // 3, 3))
    per = timings["timings"]["tlgrad"]["best"] / (50_000 * 4096 * 4 / host().vector_bytes)
    print(f"  {per * 1e9:.2f} ns a vector and turn, by the minimum")


def w1_forward(rounds, x, dtype, vectors):
    """100 turns without derivative."""
    forward = tl.run(lambda x, n: tl.iterate(step, n, x))
    t, n = tl.tensor(x), tl.tensor(100)
    cases = [Case("tlgrad", lambda: forward(t, n)),
             limit_case(dtype, f"limit_forward_{dtype}", 2, 1, vectors * 100)]
    if (j := jax()) is not None:
        def unrolled(v):
            for _ in range(100):
                v = step(v)
            return v
        a = j.numpy.asarray(x)
        one, loop = j.jit(unrolled), j.jit(lambda v: j.lax.fori_loop(0, 100, lambda i, c: step(c), v))
        cases += [Case("jax unrolled", lambda: one(a).block_until_ready()),
                  Case("jax loop", lambda: loop(a).block_until_ready())]
    compare(f"W1 {dtype} forward, 100 turns", cases, rounds)


def w1_gradient(rounds, x, dtype, vectors, turns):
    """Value and gradient of the sum."""
    both = tl.run(tl.value_and_grad(lambda x, n: tl.sum(tl.iterate(step, n, x))))
    t, n = tl.tensor(x), tl.tensor(turns)
    cases = [Case("tlgrad", lambda: both(t, n)),
             limit_case(dtype, f"limit_gradient_{dtype}", 4, 2, vectors * turns)]
    if (j := jax()) is not None:
        def unrolled(v):
            for _ in range(turns):
                v = step(v)
            return v.sum()

        def scanned(v):
            return j.lax.scan(lambda c, _: (step(c), None), v, None, length=turns)[0].sum()
        a = j.numpy.asarray(x)
        one, loop = (j.jit(j.value_and_grad(f)) for f in (unrolled, scanned))
        cases += [Case("jax unrolled", lambda: j.block_until_ready(one(a))),
                  Case("jax scan", lambda: j.block_until_ready(loop(a)))]
    compare(f"W1 {dtype} value and gradient, {turns} turns", cases, max(rounds // 2, 3))


def w3(rounds: int):
    """Matrix products and attention scores."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for m, k, n in ((256, 1024, 256), (128, 784, 512), (1024, 1024, 1024)):
            a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
            vectors = m * k * n * a.itemsize // host().vector_bytes
            many = rounds if m < 1024 else max(rounds // 3, 3)
            product(f"W3 {dtype} {m}x{k}x{n}", a, b, vectors, dtype, many)
    q, k = (rng.standard_normal((8, 8, 256, 64)).astype("float32") for _ in range(2))
    scores = {o: tl.run(lambda q, k: tl.matmul(q, tl.moveaxis(k, -1, -2)), order=o)
              for o in ("ordered", "fused")}
    tq, tk = tl.tensor(q), tl.tensor(k)
    cases = [Case(f"tlgrad {o}", lambda f=f: f(tq, tk)) for o, f in scores.items()]
    cases.append(Case("numpy matmul", lambda: np.matmul(q, k.swapaxes(-1, -2))))
    vectors = 64 * 256 * 256 * 64 * 4 // host().vector_bytes
    cases.append(limit_case("float32", "limit_scores", 1, 1, vectors))
    if (j := jax()) is not None:
        f = j.jit(lambda q, k: j.numpy.einsum("bhqf,bhkf->bhqk", q, k))
        jq, jk = j.numpy.asarray(q), j.numpy.asarray(k)
        cases.append(Case("jax einsum", lambda: f(jq, jk).block_until_ready()))
    compare_orders("W3 attention scores 8x8x256x64", cases, rounds)


def product(title, a, b, vectors, dtype, rounds):
    """One matrix product in both orders."""
    ta, tb = tl.tensor(a), tl.tensor(b)
    f = {o: tl.run(lambda x, y: tl.matmul(x, y), order=o) for o in ("ordered", "fused")}
    cases = [Case("tlgrad ordered", lambda: f["ordered"](ta, tb)),
             Case("tlgrad fused", lambda: f["fused"](ta, tb)),
             Case("numpy (OpenBLAS)", lambda: a @ b),
             limit_case(dtype, f"limit_product_{dtype}_{vectors}", 1, 1, vectors)]
    if (j := jax()) is not None:
        g, ja, jb = j.jit(lambda x, y: x @ y), j.numpy.asarray(a), j.numpy.asarray(b)
        cases.append(Case("jax dot", lambda: g(ja, jb).block_until_ready()))
    compare_orders(title, cases, rounds)


def compare_orders(title, cases, rounds):
    """Ratios of every peer to both orders."""
    peers = [c.name for c in cases if not c.name.startswith("tlgrad")]
    pairs = {f"{p} to {o}": (p, f"tlgrad {o}") for p in peers for o in ("ordered", "fused")}
    compare(title, cases, rounds, pairs=pairs)


def w4(rounds: int):
    """Ordered sums of rows."""
    x = np.random.default_rng(0).standard_normal((4096, 4096)).astype("float32")
    rows, t = tl.run(lambda x: tl.sum(x, axis=1)), tl.tensor(x)
    cases = [Case("tlgrad", lambda: rows(t)), Case("numpy sum", lambda: np.sum(x, axis=1)), read_case(x)]
    if (j := jax()) is not None:
        f, a = j.jit(lambda x: x.sum(axis=1)), j.numpy.asarray(x)
        cases.append(Case("jax sum", lambda: f(a).block_until_ready()))
    if (th := torch()) is not None:
        b = th.from_numpy(x)
        cases.append(Case("torch sum", lambda: b.sum(1)))
    compare("W4 row sums 4096x4096 float32", cases, rounds)


WORKS = {"W1": w1, "W3": w3, "W4": w4}
