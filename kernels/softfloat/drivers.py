"""Loops around bodies, as LLVM text, on contiguous packed words.

`elementwise` runs a scalar body on one element after another. `vector` runs a binary128 body on
`lanes` elements at once and hands the groups that it flags, and the rest of the array, to the scalar
body, as it does the first elements up to a cache line of the result: a vector that crosses lines takes
up to twice the time. A group's words are unzipped within 128-bit lanes (one instruction each way),
which permutes the elements of a group alike in all operands.
"""
from tlgrad.kernels.expr.value import Value
from tlgrad.kernels.softfloat.words import Words, resize

LOOP = """define void @k(i64 %n, {parameters}) {{
entry:
{entry}  %some = icmp sgt i64 %n, 0
  br i1 %some, label %head, label %done
head:
  %i = phi i64 [ 0, %entry ], [ %next, %{last} ]
{lines}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""
ROWS = """define void @k(i64 %terms, i64 %rows, i64 %cols, ptr %a, ptr %b, ptr %out{further}) {{
entry:
  %ends = sub i64 %rows, {count}
  %some = icmp sge i64 %ends, 0
  br i1 %some, label %many, label %few
many:
  %i = phi i64 [ 0, %entry ], [ %i1, %many ]
  call void @rows{count}(i64 %terms, i64 %rows, i64 %cols, i64 %i, ptr %a, ptr %b, ptr %out{further})
  %i1 = add i64 %i, {count}
  %again = icmp sle i64 %i1, %ends
  br i1 %again, label %many, label %few
few:
  %from = phi i64 [ 0, %entry ], [ %i1, %many ]
  %any = icmp slt i64 %from, %rows
  br i1 %any, label %last, label %done
last:
  %l = phi i64 [ %from, %few ], [ %l1, %last ]
  call void @rows1(i64 %terms, i64 %rows, i64 %cols, i64 %l, ptr %a, ptr %b, ptr %out{further})
  %l1 = add i64 %l, 1
  %more = icmp slt i64 %l1, %rows
  br i1 %more, label %last, label %done
done:
  ret void
}}
"""
ONE = """define internal void @one(i64 %i, {parameters}) noinline {{
entry:
{lines}
  ret void
}}
"""
GROUPS = """define void @k(i64 %n, {parameters}) {{
entry:
{entry}  %address = ptrtoint ptr %out to i64
  %gap = sub i64 0, %address
  %bytes = and i64 %gap, 63
  %wanted = lshr i64 %bytes, 4
  %short = icmp slt i64 %n, %wanted
  %first = select i1 %short, i64 %n, i64 %wanted
  %after = sub i64 %n, %first
  %groups = and i64 %after, -{lanes}
  %whole = add i64 %first, %groups
  %peels = icmp sgt i64 %first, 0
  br i1 %peels, label %lead, label %enter
lead:
  %p = phi i64 [ 0, %entry ], [ %p1, %lead ]
  call void @one(i64 %p, {arguments})
  %p1 = add i64 %p, 1
  %leads = icmp slt i64 %p1, %first
  br i1 %leads, label %lead, label %enter
enter:
  %any = icmp sgt i64 %groups, 0
  br i1 %any, label %head, label %rest
head:
  %i = phi i64 [ %first, %enter ], [ %next, %join ]
{lines}
  %next = add i64 %i, {lanes}
  br i1 {flag}, label %slow, label %join
slow:
  %s = phi i64 [ %i, %{last} ], [ %s1, %slow ]
  call void @one(i64 %s, {arguments})
  %s1 = add i64 %s, 1
  %again = icmp slt i64 %s1, %next
  br i1 %again, label %slow, label %join
join:
  %more = icmp slt i64 %next, %whole
  br i1 %more, label %head, label %rest
rest:
  %tail = icmp slt i64 %whole, %n
  br i1 %tail, label %last, label %done
last:
  %j = phi i64 [ %whole, %rest ], [ %j1, %last ]
  call void @one(i64 %j, {arguments})
  %j1 = add i64 %j, 1
  %left = icmp slt i64 %j1, %n
  br i1 %left, label %last, label %done
done:
  ret void
}}
"""


def by_rows(count, further=""):
    """The text of ``k(terms, rows, columns, a, b, out, further)``: the function ``@rows{count}`` for so many rows
    at once, then ``@rows1`` for each that is left."""
    return ROWS.format(count=count, further=further)


def elementwise(body, layout, inputs, output):
    """The module text of ``out[i] = body(layout, a[i], b[i], ...)``.

    `inputs` and `output` are integer types of whole bytes; a body that returns a mask stores i8.
    """
    emitter = _element(body, layout, inputs, output, "head")
    text = LOOP.format(parameters=_parameters(len(inputs)), entry="", lines="\n".join(emitter.lines),
                       last=emitter.block)
    return module(emitter.declarations, text)


def _element(body, layout, inputs, output, block):
    emitter = Words(block=block)
    result = body(layout, *(load(emitter, f"%a{k}", type) for k, type in enumerate(inputs)))
    if result.type == "b":
        result = result.make("zext", output, result)
    store(emitter, "%out", result)
    return emitter


def vector(body, scalar, layout, inputs, lanes):
    """The module text of a binary128 operation on `lanes` elements at a time."""
    one = _element(scalar, layout, ["i128"] * inputs, "i128", "entry")
    emitter = Words(lanes, block="head")
    operands = [word for k in range(inputs) for word in load_group(emitter, f"%a{k}", "%i")]
    low, high, *special = body(*operands)
    store_group(emitter, "%out", "%i", low, high)
    flag = emitter.any(special[0]) if special else "false"
    names, parameters = _arguments(inputs), _parameters(inputs)
    text = ONE.format(parameters=parameters, lines="\n".join(one.lines)) + GROUPS.format(
        parameters=parameters, arguments=names, lanes=lanes, entry="", lines="\n".join(emitter.lines),
        flag=flag, last=emitter.block)
    return module({**one.declarations, **emitter.declarations}, text)


def load_group(emitter, pointer, index):
    """The (low, high) lanes of the elements that start at ``pointer[index]``."""
    n = emitter.lanes
    first = emitter.emit(f"getelementptr i128, ptr {pointer}, i64 {index}")
    second = emitter.emit(f"getelementptr i64, ptr {first}, i64 {n}")
    a, b = (emitter.emit(f"load <{n} x i64>, ptr {p}, align 8") for p in (first, second))
    return unzip(emitter, a, b)


def store_group(emitter, pointer, index, low, high):
    """The inverse of `load_group`."""
    n = emitter.lanes
    first = emitter.emit(f"getelementptr i128, ptr {pointer}, i64 {index}")
    second = emitter.emit(f"getelementptr i64, ptr {first}, i64 {n}")
    for part, address in zip(unzip(emitter, low.handle, high.handle), (first, second)):
        emitter.lines.append(f"  store <{n} x i64> {part.handle}, ptr {address}, align 8")


def unzip(emitter, a, b):
    """The even and the odd lanes of two vectors, within 128-bit lanes."""
    n = emitter.lanes
    even = [x for p in range(0, n, 2) for x in (p, n + p)]
    for mask in (even, [x + 1 for x in even]):
        text = ", ".join(f"i32 {x}" for x in mask)
        yield Value(emitter, emitter.emit(
            f"shufflevector <{n} x i64> {a}, <{n} x i64> {b}, <{n} x i32> <{text}>"), "i64")


def section(emitter, build):
    """What `build` returns, and the lines it emitted."""
    emitter.lines = []
    made = build()
    return made, "\n".join(emitter.lines)


def load(emitter, pointer, type, index="%i"):
    """The element of an array, in scalar code."""
    address = emitter.emit(f"getelementptr {type}, ptr {pointer}, i64 {index}")
    return Value(emitter, emitter.emit(f"load {type}, ptr {address}, align {_align(type)}"), type)


def store(emitter, pointer, value, index="%i"):
    """The inverse of `load`."""
    address = emitter.emit(f"getelementptr {value.type}, ptr {pointer}, i64 {index}")
    emitter.lines.append(f"  store {value.type} {value.handle}, ptr {address}, align {_align(value.type)}")


def splat(emitter, scalar, type="i64"):
    """A scalar in all lanes."""
    n = emitter.lanes
    one = emitter.emit(f"insertelement <{n} x {type}> poison, {type} {scalar}, i64 0")
    return Value(emitter, emitter.emit(
        f"shufflevector <{n} x {type}> {one}, <{n} x {type}> poison, <{n} x i32> zeroinitializer"), type)


def _align(type):
    return min(8, int(type[1:]) // 8)


def _parameters(inputs):
    return ", ".join([f"ptr %a{k}" for k in range(inputs)] + ["ptr noalias %out"])


def _arguments(inputs):
    return ", ".join([f"ptr %a{k}" for k in range(inputs)] + ["ptr %out"])


def module(declarations, text):
    return "\n".join(declarations.values()) + "\n" + text


def flagged(body, inputs):
    """The module text of a binary128 function: words to `out`, and 1 to `flags` where undecided."""
    emitter = Words(block="head")
    word, undecided = body(*(load(emitter, f"%a{k}", "i128") for k in range(inputs)))
    flag = undecided.make("zext", "i8", undecided)
    for name, value in (("%out", word), ("%flags", flag)):
        store(emitter, name, value)
    text = LOOP.format(parameters=_parameters(inputs) + ", ptr noalias %flags", entry="",
                       lines="\n".join(emitter.lines), last=emitter.block)
    return module(emitter.declarations, text)


NARROW = """define void @k(i64 %n, {parameters}) {{
entry:
  %whole = and i64 %n, -{lanes}
  %any = icmp sgt i64 %whole, 0
  br i1 %any, label %head, label %rest
head:
  %i = phi i64 [ 0, %entry ], [ %next, %{wide} ]
{lines}
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %whole
  br i1 %more, label %head, label %rest
rest:
  %tail = icmp slt i64 %whole, %n
  br i1 %tail, label %last, label %done
last:
  %j = phi i64 [ %whole, %rest ], [ %j1, %{one} ]
{single}
  %j1 = add i64 %j, 1
  %left = icmp slt i64 %j1, %n
  br i1 %left, label %last, label %done
done:
  ret void
}}
"""


def narrow(body, type, bits, inputs, lanes):
    """The module text of a body on words of at most 64 bits, `lanes` at a time, in lanes of `type`."""
    emitters = Words(lanes, block="head"), Words(1, block="last")
    emitters[1].names = emitters[0].names
    for emitter, index in zip(emitters, ("%i", "%j")):
        kind = f"i{bits}"
        operands = []
        for k in range(inputs):
            pointer = emitter.emit(f"getelementptr {kind}, ptr %a{k}, i64 {index}")
            loaded = emitter.emit(f"load {emitter.type(kind)}, ptr {pointer}, align {bits // 8}")
            operands.append(resize(Value(emitter, loaded, kind), type))
        word = resize(body(*operands), kind)
        pointer = emitter.emit(f"getelementptr {kind}, ptr %out, i64 {index}")
        emitter.lines.append(f"  store {emitter.typed(word)}, ptr {pointer}, align {bits // 8}")
    text = NARROW.format(parameters=_parameters(inputs), lanes=lanes,
                         lines="\n".join(emitters[0].lines), single="\n".join(emitters[1].lines),
                         wide=emitters[0].block, one=emitters[1].block)
    return module({**emitters[0].declarations, **emitters[1].declarations}, text)
