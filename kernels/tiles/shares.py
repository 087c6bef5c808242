"""A kernel on shares of its lanes or rows that threads take in turn: none waits for one that is late."""
from .loops import Loops

#: the words of a launch's state: shares that were taken, lanes or rows of a share, the address of the kernel
TAKEN, HEIGHT, KERNEL = range(3)


def module(name):
    """The text of a module with ``void name(ptr slots, i64 lo, i64 hi)`` for each thread; slot 0 is the state,
    the others are those of the kernel."""
    e = Loops()
    state = e.emit("load ptr, ptr %slots, align 8")
    height, kernel = (e.emit(f"load {kind}, ptr {e.at(state, 8 * k)}, align 8")
                      for kind, k in (("i64", HEIGHT), ("ptr", KERNEL)))
    slots = e.at("%slots", 8)

    def take():
        taken = e.emit(f"atomicrmw add ptr {e.at(state, 8 * TAKEN)}, i64 1 monotonic, align 8")
        return e.i64("add", "%lo", e.i64("mul", taken, height))

    def share(first):
        e.lines.append(f"  call void {kernel}(ptr {slots}, i64 {first[0]}, "
                       f"i64 {e.smin(e.i64('add', first[0], height), '%hi')})")
        return [take()]
    e.repeat([("i64", take())], lambda first: e.emit(f"icmp slt i64 {first[0]}, %hi"), share)
    return "\n".join([f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{", "entry:", *e.lines,
                      "  ret void", "}", ""])
