"""A kernel on shares of its lanes or rows, as a task of a team: threads take one after the other."""
from .loops import Loops
from .team import OWN

#: the function's words of the state: lanes or rows of a share; the address of the kernel; bytes that each thread
#: has of the memory that is the kernel's second operand; the slot that takes the first row of a share, the next
#: one taking its end; what the kernel runs over, where those are slots of its own, else 0; then two counters: the
#: shares that were taken, the threads
HEIGHT, KERNEL, ROOM, ROWS, OVER, TAKEN, THREAD = range(OWN, OWN + 7)


def module(name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` for each thread; slot 0 is the state, the
    others are those of the kernel."""
    e = Loops()
    state = e.emit("load ptr, ptr %slots, align 8")
    height, room, rows, over = (_word(e, state, k) for k in (HEIGHT, ROOM, ROWS, OVER))
    kernel = _word(e, state, KERNEL, "ptr")
    memory = e.at("%slots", 16)
    mine = e.i64("add", _word(e, memory, 0), e.i64("mul", room, _count(e, state, THREAD)))
    e.lines.append(f"  store i64 {mine}, ptr {memory}, align 8")
    place = e.at("%slots", e.i64("mul", rows, 8))
    by_rows = e.emit(f"icmp sgt i64 {over}, 0")

    def take():
        return e.i64("add", "%lo", e.i64("mul", _count(e, state, TAKEN), height))

    def share(first):
        limit = e.smin(e.i64("add", first[0], height), "%hi")
        for k, x in enumerate((first[0], limit)):
            e.lines.append(f"  store i64 {x}, ptr {e.at(place, 8 * k)}, align 8")
        e.lines.append(f"  call void {kernel}(ptr {e.at('%slots', 8)}, "
                       f"i64 {e.emit(f'select i1 {by_rows}, i64 0, i64 {first[0]}')}, "
                       f"i64 {e.emit(f'select i1 {by_rows}, i64 {over}, i64 {limit}')})")
        return [take()]
    e.repeat([("i64", take())], lambda first: e.emit(f"icmp slt i64 {first[0]}, %hi"), share)
    return "\n".join([f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{", "entry:", *e.lines,
                      "  ret void", "}", ""])


def _word(e, place, number, kind="i64"):
    return e.emit(f"load {kind}, ptr {e.at(place, 8 * number)}, align 8")


def _count(e, state, number):
    """What a counter was, which counts on."""
    return e.emit(f"atomicrmw add ptr {e.at(state, 8 * number)}, i64 1 monotonic, align 8")
