"""Ordered sums and contractions of small formats as LLVM text, on the binary64 numbers that stand in for them.

Each step is one of binary64 and one rounding (`narrow.rounded`); several outputs are in flight side by
side, since one sum alone waits for its own last step.
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat import drivers, narrow
from tlgrad.kernels.softfloat.folds import CELL
from tlgrad.kernels.softfloat.words import Words

#: outputs side by side, the widest first; what is left of a row is done with the next
WIDTHS = (32, 8, 1)
ROWS = """define void @k(i64 %terms, i64 %rows, i64 %cols, ptr %a, ptr %b, ptr %out) {{
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %i1, %last ]
  br label %test{first}
{widths}last:
  %i1 = add i64 %i, 1
  %again = icmp slt i64 %i1, %rows
  br i1 %again, label %row, label %done
done:
  ret void
}}
"""
WIDTH = """test{width}:
  %j{width} = phi i64 [ {from}, %{before} ], [ %n{width}, %turn{width} ]
  %n{width} = add i64 %j{width}, {width}
  %fits{width} = icmp sle i64 %n{width}, %cols
  br i1 %fits{width}, label %turn{width}, label %{after}
turn{width}:
  call void @cells{width}(i64 %terms, i64 %rows, i64 %cols, i64 %i, i64 %j{width}, ptr %a, ptr %b, ptr %out)
  br label %test{width}
"""


def fold(f, kind):
    """The module text of ``k(terms, rows, columns, a, b, accumulators)`` on binary64 arrays.

    `kind` is "ordered" or "fused": ``out[i, j] = (out[i, j] + a[0, i] b[0, j]) + ...``, a step rounded twice or
    once; or "sum": ``out[0, j] = (out[0, j] + b[0, j]) + ...``, where `a` is not read.
    """
    text, declarations, widths = "", {}, ""
    for k, width in enumerate(WIDTHS):
        emitter = Words(width, block="head")
        result = _step(f, kind, emitter)
        declarations |= emitter.declarations
        text += CELL.format(name=f"cells{width}", element="double", type=emitter.type("f64"), align=8,
                            lines="\n".join(emitter.lines), result=result.handle)
        widths += WIDTH.format(width=width, before=f"test{WIDTHS[k - 1]}" if k else "row",
                               after=f"test{WIDTHS[k + 1]}" if k + 1 < len(WIDTHS) else "last",
                               **{"from": f"%j{WIDTHS[k - 1]}" if k else "0"})
    return drivers.module(declarations, text + ROWS.format(first=WIDTHS[0], widths=widths))


def _step(f, kind, emitter):
    acc, y = Value(emitter, "%acc", "f64"), Value(emitter, "%y", "f64")
    if kind != "sum":
        place = emitter.emit("getelementptr double, ptr %a, i64 %ai")
        x = emitter.emit(f"load double, ptr {place}, align 8")
        x = drivers.splat(emitter, x, "double") if emitter.lanes > 1 else Value(emitter, x, "f64")
        x = Value(emitter, x.handle, "f64")
        if kind == "fused":
            return narrow.rounded(f, narrow.fma(x, y, acc), narrow.BINARY64)
        y = narrow.rounded(f, x * y, narrow.BINARY64)
    return narrow.rounded(f, acc + y, narrow.BINARY64)
