"""Ordered sums and contractions as LLVM text: left to right along the first axis, every step rounded.

Vector versions keep the accumulators of several outputs in registers and walk the terms once. If any
lane of a block met an operand that its body does not cover, the block is computed again by the
scalar function, from the start.
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat import quad, wide
from tlgrad.kernels.softfloat.drivers import by_rows, load_group, module, section, splat, store_group
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
#: the sums of one entry, or of several side by side, of a contraction: `element` is one of them in memory
CELL = """define internal void @{name}(i64 %terms, i64 %rows, i64 %cols, i64 %i, i64 %j, ptr %a, ptr %b,
    ptr %out) noinline {{
entry:
  %row = mul i64 %i, %cols
  %cell = add i64 %row, %j
  %place = getelementptr {element}, ptr %out, i64 %cell
  %start = load {type}, ptr %place, align {align}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %done
head:
  %t = phi i64 [ 0, %entry ], [ %next, %head ]
  %ai = phi i64 [ %i, %entry ], [ %ai1, %head ]
  %bj = phi i64 [ %j, %entry ], [ %bj1, %head ]
  %acc = phi {type} [ %start, %entry ], [ {result}, %head ]
  %pb = getelementptr {element}, ptr %b, i64 %bj
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
DOT = """define internal void @rows{count}(i64 %terms, i64 %rows, i64 %cols, i64 %i, ptr %a, ptr %b,
    ptr %out) noinline {{
entry:
  %whole = and i64 %cols, -{width}
{bases}
  %wide = icmp sgt i64 %whole, 0
  br i1 %wide, label %block, label %rest
block:
  %j = phi i64 [ 0, %entry ], [ %j1, %close ]
{start}
  %any = icmp sgt i64 %terms, 0
  br i1 %any, label %head, label %close
head:
  %t = phi i64 [ 0, %block ], [ %next, %head ]
  %ai = phi i64 [ %i, %block ], [ %ai1, %head ]
  %bj = phi i64 [ %j, %block ], [ %bj1, %head ]
{phis}
  %flag = phi {mask} [ zeroinitializer, %block ], [ %flag1, %head ]
  %pa = getelementptr i128, ptr %a, i64 %ai
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
{slow}
  %q1 = add i64 %q, 1
  %qmore = icmp slt i64 %q1, {width}
  br i1 %qmore, label %slow, label %close
close:
  %j1 = add i64 %j, {width}
  %again = icmp slt i64 %j1, %whole
  br i1 %again, label %block, label %rest
rest:
  %tail = icmp slt i64 %whole, %cols
  br i1 %tail, label %single, label %done
single:
  %jq1 = phi i64 [ %whole, %rest ], [ %s1, %single ]
{single}
  %s1 = add i64 %jq1, 1
  %left = icmp slt i64 %s1, %cols
  br i1 %left, label %single, label %done
done:
  ret void
}}
"""
#: rows of a contraction whose sums are in flight together: one sum alone waits for its own last step
ROWS = 3


def _scalar(template, layout, body, **names):
    emitter = Words(block="head")
    result = body(emitter)
    return emitter.declarations, template.format(
        type=layout.type, align=_align(layout), lines="\n".join(emitter.lines), result=result.handle, **names)


def _align(layout) -> int:
    """Bytes on which a word begins."""
    return 8 if layout.bits >= 64 else layout.bits // 8


def fold(layout, width):
    """``out[l] = ((out[l] + x[0, l]) + x[1, l]) + ...``, `width` lanes at a time."""
    declarations, one = _scalar(FOLD_ONE, layout, lambda e: wide.add(
        layout, e.value("%acc", layout.type), e.value("%term", layout.type)))
    if width == 1:
        body = {"start": "", "lo0": "0", "hi0": "0", "lo1": "%lo", "hi1": "%hi", "lines": "",
                "finish": "", "vector": "i64"}
        return module(declarations, one + FOLD.format(width=1 << 62, **body))
    emitter = Words(width, block="head")
    acc, start = section(emitter, lambda: list(load_group(emitter, "%out", "%l")))
    total, lines = section(emitter, lambda: quad.add(
        *_pair(emitter, "%lo", "%hi"), *load_group(emitter, "%x", "%at")))
    _, finish = section(emitter, lambda: store_group(
        emitter, "%out", "%l", *_pair(emitter, "%loz", "%hiz")))
    text = FOLD.format(width=width, start=start, lines=lines, finish=finish,
                       vector=f"<{width} x i64>", **_handles(acc, total))
    return module({**declarations, **emitter.declarations}, one + text)


def contraction(layout, width, fused, multiply):
    """``out[i, j] = (out[i, j] + a[0, i] b[0, j]) + ...``; fused: each step one fma."""
    def step(e):
        place = e.emit(f"getelementptr {layout.type}, ptr %a, i64 %ai")
        x = e.value(e.emit(f"load {layout.type}, ptr {place}, align {_align(layout)}"), layout.type)
        y, acc = e.value("%y", layout.type), e.value("%acc", layout.type)
        if fused:
            return wide.fma(layout, x, y, acc)
        return wide.add(layout, acc, wide.mul(layout, x, y))

    declarations, text = _scalar(CELL, layout, step, name="one", element=layout.type)
    if width == 1:
        return module(declarations, text + _scalar_rows(layout))
    for count in {1, ROWS}:
        emitter = Words(width, block="head")
        text += _rows(emitter, count, multiply, fused)
        declarations = {**declarations, **emitter.declarations}
    return module(declarations, text + by_rows(ROWS))


def _scalar_rows(layout):
    """The driver of a layout without vectors: all columns of a row are single ones."""
    head = DOT[:DOT.index("block:")].replace("%wide, label %block", "false, label %rest")
    text = (head + DOT[DOT.index("rest:"):]).replace("label %block", "label %rest")
    text = text.format(count=1, width=1, bases="", single=_one(0, "%jq1")).replace(
        "%whole = and i64 %cols, -1", "%whole = add i64 0, 0")
    return text + by_rows(1)


def _one(row, column):
    """A call of the scalar function for an entry, in row %i and `row` more."""
    return (f"  %r{row}{column[1:]} = add i64 %i, {row}\n"
            f"  call void @one(i64 %terms, i64 %rows, i64 %cols, i64 %r{row}{column[1:]}, i64 {column}, ptr %a, "
            f"ptr %b, ptr %out)")


def _rows(emitter, count, multiply, fused):
    """The function that computes `count` rows at once."""
    width, rows = emitter.lanes, range(count)
    bases = "\n".join(f"  %i{r} = add i64 %i, {r}\n  %base{r} = mul i64 %i{r}, %cols" for r in rows)
    cells = "\n".join(f"  %cell{r} = add i64 %base{r}, %j" for r in rows)
    starts, start = section(emitter, lambda: [list(load_group(emitter, "%out", f"%cell{r}")) for r in rows])
    (totals, special), lines = section(emitter, lambda: _steps(emitter, count, multiply, fused))
    _, finish = section(emitter, lambda: [store_group(emitter, "%out", f"%cell{r}", *totals[r]) for r in rows])
    vector = f"<{width} x i64>"
    phis = "\n".join(f"  %{half}{r} = phi {vector} [ {starts[r][k].handle}, %block ], "
                     f"[ {totals[r][k].handle}, %head ]" for r in rows for k, half in enumerate(("lo", "hi")))
    return DOT.format(count=count, width=width, bases=bases, start=cells + "\n" + start, phis=phis, lines=lines,
                      finish=finish, mask=f"<{width} x i1>", special=special.handle,
                      slow="\n".join(_one(r, "%jq") for r in rows),
                      single="\n".join(_one(r, "%jq1") for r in rows))


def _steps(emitter, count, multiply, fused):
    """One step of each row: its new sums, and the lanes that some row's body does not cover."""
    totals, special = [], None
    b = list(load_group(emitter, "%b", "%bj"))
    for r in range(count):
        a, acc = _spread(emitter, r), _pair(emitter, f"%lo{r}", f"%hi{r}")
        if fused:
            low, high, mask = fma(*a, *b, *acc)
        else:
            low, high, mask = multiply(*a, *b, finite=True)
            low, high, beyond = quad.add_finite(*acc, low, high)
            mask = mask | beyond
        totals.append((low, high))
        special = mask if special is None else special | mask
    return totals, special


def _spread(emitter, row):
    """The low and the high word of ``a[t, i + row]`` in all lanes."""
    cell = emitter.emit(f"getelementptr i128, ptr %pa, i64 {row}")
    high = emitter.emit(f"getelementptr i64, ptr {cell}, i64 1")
    return [splat(emitter, emitter.emit(f"load i64, ptr {p}, align 8")) for p in (cell, high)]


def _pair(emitter, low, high):
    return Value(emitter, low, "i64"), Value(emitter, high, "i64")


def _handles(first, later):
    return {"lo0": first[0].handle, "hi0": first[1].handle, "lo1": later[0].handle,
            "hi1": later[1].handle}
