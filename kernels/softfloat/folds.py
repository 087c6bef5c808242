"""Ordered sums and contractions as LLVM text: left to right along the first axis, every step rounded.

Vector versions keep the accumulators of several outputs in registers and walk the terms once. If any
lane of a block met an operand that its body does not cover, the block is computed again by the
scalar function, from the start.
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat import quad, wide
from tlgrad.kernels.softfloat.drivers import load_group, store_group
from tlgrad.kernels.softfloat.quad_fma import fma
from tlgrad.kernels.softfloat.words import Words

FOLD_ONE = """define internal void @one(i64 %terms, i64 %lanes, i64 %l, ptr %x, ptr %out) noinline {{
entry:
  %place = getelementptr {type}, ptr %out, i64 %l
  %start = load {type}, ptr %place, align {align}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %done
head:
  %t = phi i64 [ 0, %entry ], [ %next, %head ]
  %at = phi i64 [ %l, %entry ], [ %forward, %head ]
  %acc = phi {type} [ %start, %entry ], [ {result}, %head ]
  %from = getelementptr {type}, ptr %x, i64 %at
  %term = load {type}, ptr %from, align {align}
{lines}
  %forward = add i64 %at, %lanes
  %next = add i64 %t, 1
  %more = icmp slt i64 %next, %terms
  br i1 %more, label %head, label %done
done:
  %last = phi {type} [ %start, %entry ], [ {result}, %head ]
  store {type} %last, ptr %place, align {align}
  ret void
}}
"""
FOLD = """define void @k(i64 %terms, i64 %lanes, ptr %x, ptr %out) {{
entry:
  %whole = and i64 %lanes, -{width}
  %some = icmp sgt i64 %whole, 0
  br i1 %some, label %block, label %rest
block:
  %l = phi i64 [ 0, %entry ], [ %l1, %close ]
{start}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %close
head:
  %t = phi i64 [ 0, %block ], [ %next, %head ]
  %at = phi i64 [ %l, %block ], [ %forward, %head ]
  %lo = phi {vector} [ {lo0}, %block ], [ {lo1}, %head ]
  %hi = phi {vector} [ {hi0}, %block ], [ {hi1}, %head ]
{lines}
  %forward = add i64 %at, %lanes
  %next = add i64 %t, 1
  %more = icmp slt i64 %next, %terms
  br i1 %more, label %head, label %close
close:
  %loz = phi {vector} [ {lo0}, %block ], [ {lo1}, %head ]
  %hiz = phi {vector} [ {hi0}, %block ], [ {hi1}, %head ]
{finish}
  %l1 = add i64 %l, {width}
  %again = icmp slt i64 %l1, %whole
  br i1 %again, label %block, label %rest
rest:
  %tail = icmp slt i64 %whole, %lanes
  br i1 %tail, label %single, label %done
single:
  %s = phi i64 [ %whole, %rest ], [ %s1, %single ]
  call void @one(i64 %terms, i64 %lanes, i64 %s, ptr %x, ptr %out)
  %s1 = add i64 %s, 1
  %left = icmp slt i64 %s1, %lanes
  br i1 %left, label %single, label %done
done:
  ret void
}}
"""
DOT_ONE = """define internal void @one(i64 %terms, i64 %rows, i64 %cols, i64 %i, i64 %j, ptr %a, ptr %b,
    ptr %out) noinline {{
entry:
  %row = mul i64 %i, %cols
  %cell = add i64 %row, %j
  %place = getelementptr {type}, ptr %out, i64 %cell
  %start = load {type}, ptr %place, align {align}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %done
head:
  %t = phi i64 [ 0, %entry ], [ %next, %head ]
  %ai = phi i64 [ %i, %entry ], [ %ai1, %head ]
  %bj = phi i64 [ %j, %entry ], [ %bj1, %head ]
  %acc = phi {type} [ %start, %entry ], [ {result}, %head ]
  %pa = getelementptr {type}, ptr %a, i64 %ai
  %pb = getelementptr {type}, ptr %b, i64 %bj
  %x = load {type}, ptr %pa, align {align}
  %y = load {type}, ptr %pb, align {align}
{lines}
  %ai1 = add i64 %ai, %rows
  %bj1 = add i64 %bj, %cols
  %next = add i64 %t, 1
  %more = icmp slt i64 %next, %terms
  br i1 %more, label %head, label %done
done:
  %last = phi {type} [ %start, %entry ], [ {result}, %head ]
  store {type} %last, ptr %place, align {align}
  ret void
}}
"""
DOT = """define void @k(i64 %terms, i64 %rows, i64 %cols, ptr %a, ptr %b, ptr %out) {{
entry:
  %whole = and i64 %cols, -{width}
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %rowloop, label %done
rowloop:
  %i = phi i64 [ 0, %entry ], [ %i1, %rowend ]
  %base = mul i64 %i, %cols
  %wide = icmp sgt i64 %whole, 0
  br i1 %wide, label %block, label %rest
block:
  %j = phi i64 [ 0, %rowloop ], [ %j1, %close ]
  %cell = add i64 %base, %j
{start}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %finish
head:
  %t = phi i64 [ 0, %block ], [ %next, %head ]
  %ai = phi i64 [ %i, %block ], [ %ai1, %head ]
  %bj = phi i64 [ %j, %block ], [ %bj1, %head ]
  %lo = phi {vector} [ {lo0}, %block ], [ {lo1}, %head ]
  %hi = phi {vector} [ {hi0}, %block ], [ {hi1}, %head ]
  %flag = phi {mask} [ zeroinitializer, %block ], [ %flag1, %head ]
  %pa = getelementptr i128, ptr %a, i64 %ai
  %ph = getelementptr i64, ptr %pa, i64 1
  %al = load i64, ptr %pa, align 8
  %ah = load i64, ptr %ph, align 8
{splat}
{lines}
  %flag1 = or {mask} %flag, {special}
  %ai1 = add i64 %ai, %rows
  %bj1 = add i64 %bj, %cols
  %next = add i64 %t, 1
  %more = icmp slt i64 %next, %terms
  br i1 %more, label %head, label %check
check:
  %bits = bitcast {mask} %flag1 to i{width}
  %bad = icmp ne i{width} %bits, 0
  br i1 %bad, label %slow, label %good
good:
{finish}
  br label %close
slow:
  %q = phi i64 [ 0, %check ], [ %q1, %slow ]
  %jq = add i64 %j, %q
  call void @one(i64 %terms, i64 %rows, i64 %cols, i64 %i, i64 %jq, ptr %a, ptr %b, ptr %out)
  %q1 = add i64 %q, 1
  %qmore = icmp slt i64 %q1, {width}
  br i1 %qmore, label %slow, label %close
finish:
  br label %close
close:
  %j1 = add i64 %j, {width}
  %again = icmp slt i64 %j1, %whole
  br i1 %again, label %block, label %rest
rest:
  %tail = icmp slt i64 %whole, %cols
  br i1 %tail, label %single, label %rowend
single:
  %s = phi i64 [ %whole, %rest ], [ %s1, %single ]
  call void @one(i64 %terms, i64 %rows, i64 %cols, i64 %i, i64 %s, ptr %a, ptr %b, ptr %out)
  %s1 = add i64 %s, 1
  %left = icmp slt i64 %s1, %cols
  br i1 %left, label %single, label %rowend
rowend:
  %i1 = add i64 %i, 1
  %rowmore = icmp slt i64 %i1, %rows
  br i1 %rowmore, label %rowloop, label %done
done:
  ret void
}}
"""


def _scalar(template, layout, body):
    emitter = Words(block="head")
    result = body(emitter)
    return emitter.declarations, template.format(
        type=layout.type, align=8 if layout.bits >= 64 else layout.bits // 8,
        lines="\n".join(emitter.lines), result=result.handle)


def fold(layout, width):
    """``out[l] = ((out[l] + x[0, l]) + x[1, l]) + ...``, `width` lanes at a time."""
    declarations, one = _scalar(FOLD_ONE, layout, lambda e: wide.add(
        layout, e.value("%acc", layout.type), e.value("%term", layout.type)))
    if width == 1:
        body = {"start": "", "lo0": "0", "hi0": "0", "lo1": "%lo", "hi1": "%hi", "lines": "",
                "finish": "", "vector": "i64"}
        return _module(declarations, one + FOLD.format(width=1 << 62, **body))
    emitter = Words(width, block="head")
    acc, start = _section(emitter, lambda: list(load_group(emitter, "%out", "%l")))
    total, lines = _section(emitter, lambda: quad.add(
        *_pair(emitter, "%lo", "%hi"), *load_group(emitter, "%x", "%at")))
    _, finish = _section(emitter, lambda: store_group(
        emitter, "%out", "%l", *_pair(emitter, "%loz", "%hiz")))
    text = FOLD.format(width=width, start=start, lines=lines, finish=finish,
                       vector=f"<{width} x i64>", **_handles(acc, total))
    return _module({**declarations, **emitter.declarations}, one + text)


def contraction(layout, width, fused, multiply):
    """``out[i, j] = (out[i, j] + a[0, i] b[0, j]) + ...``; fused: each step one fma."""
    def step(e):
        x, y, acc = (e.value(n, layout.type) for n in ("%x", "%y", "%acc"))
        if fused:
            return wide.fma(layout, x, y, acc)
        return wide.add(layout, acc, wide.mul(layout, x, y))

    declarations, one = _scalar(DOT_ONE, layout, step)
    emitter = Words(max(width, 2), block="head")
    acc, start = _section(emitter, lambda: list(load_group(emitter, "%out", "%cell")))
    spread, splat = _section(emitter, lambda: [_splat(emitter, n) for n in ("%al", "%ah")])
    advance = _fused if fused else _multiply_add
    (total, special), lines = _section(emitter, lambda: advance(emitter, multiply, spread))
    _, finish = _section(emitter, lambda: store_group(emitter, "%out", "%cell", *total))
    lanes = emitter.lanes
    text = DOT.format(width=lanes, start=start, splat=splat, lines=lines, finish=finish,
                      vector=f"<{lanes} x i64>", mask=f"<{lanes} x i1>", special=special.handle,
                      **_handles(acc, total))
    if width == 1:
        text = text.replace(f"%whole = and i64 %cols, -{lanes}", "%whole = add i64 0, 0")
    return _module({**declarations, **emitter.declarations}, one + text)


def _multiply_add(emitter, multiply, spread):
    low, high, special = multiply(*spread, *load_group(emitter, "%b", "%bj"))
    return quad.add(*_pair(emitter, "%lo", "%hi"), low, high), special


def _fused(emitter, multiply, spread):
    del multiply
    low, high, special = fma(*spread, *load_group(emitter, "%b", "%bj"),
                             *_pair(emitter, "%lo", "%hi"))
    return (low, high), special


def _pair(emitter, low, high):
    return Value(emitter, low, "i64"), Value(emitter, high, "i64")


def _splat(emitter, scalar):
    n = emitter.lanes
    one = emitter.emit(f"insertelement <{n} x i64> poison, i64 {scalar}, i64 0")
    return Value(emitter, emitter.emit(
        f"shufflevector <{n} x i64> {one}, <{n} x i64> poison, <{n} x i32> zeroinitializer"), "i64")


def _section(emitter, build):
    """What `build` returns, and the lines it emitted."""
    emitter.lines = []
    made = build()
    return made, "\n".join(emitter.lines)


def _handles(first, later):
    return {"lo0": first[0].handle, "hi0": first[1].handle, "lo1": later[0].handle,
            "hi1": later[1].handle}


def _module(declarations, text):
    return "\n".join(declarations.values()) + "\n" + text
