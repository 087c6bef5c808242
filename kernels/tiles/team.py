"""Threads that run one function together, as LLVM IR: they wait in native code, with no interpreter in the way.

A task is a function of (slots, lo, hi) that may run on several threads at once; what they share they find in
memory.  The gate counts the threads inside of a task.  Whoever opened it leaves when there is nothing left to do,
closes it, and waits for those inside; a thread that comes late finds it closed.  One that waits looks for a while
before it sleeps: to wake it takes longer than many a task.
"""
from .loops import Loops

#: the words of a team, each counter in a line of the cache of its own.  BUSY: 1 while it has a task; GATE: the
#: number of the task, whether it is closed, threads inside; then slots, lo, hi of the task, threads at most;
#: LEAVE: 1 when workers are to end; from WORKERS on, addresses of the words of each worker: whether it sleeps, a
#: mutex, a condition
BUSY, GATE, SLOTS, LO, HI, THREADS, LEAVE, WORKERS = 0, 8, 16, 17, 18, 19, 20, 24
ASLEEP, MUTEX, CONDITION, WORDS = 0, 8, 16, 32
#: parts of the gate
TASK, CLOSED, INSIDE = 1 << 32, 1 << 31, (1 << 31) - 1
#: the words of a task's state, which its first slot holds: its function, its slots, threads at most; from OWN on,
#: words of the function
FUNCTION, COUNT, MOST, OWN = 0, 1, 2, 3
#: slots behind a task's own that its function may use
SPARE = 2
#: looks in a row before others may have the processor, and how often so before a thread sleeps: 0.1 ms
LOOKS, ROUNDS = 16, 300


def serving(name):
    """The module of ``void name(ptr slots, i64 lo, i64 hi)``, which a worker runs until it is to leave: slot 0 is
    the team, slot 1 its own words, lo its number."""
    e = Loops()
    team, mine = (e.emit(f"load ptr, ptr {e.at('%slots', 8 * k)}, align 8") for k in range(2))
    gate = e.at(team, 8 * GATE)

    def task(state):
        _wait(e, gate, mine, state[0])
        old = e.emit(f"atomicrmw add ptr {gate}, i64 1 seq_cst, align 8")
        closed = e.emit(f"icmp ne i64 {e.i64('and', old, CLOSED)}, 0")
        most = e.i64("sub", _word(e, team, THREADS), 1)
        out = e.emit(f"or i1 {closed}, {e.emit(f'icmp sge i64 %lo, {most}')}")
        e.when(e.emit(f"xor i1 {out}, true"), lambda: e.lines.append(
            f"  call void @run(ptr {_word(e, team, SLOTS, 'ptr')}, i64 {_word(e, team, LO)}, "
            f"i64 {_word(e, team, HI)})"))
        e.emit(f"atomicrmw sub ptr {gate}, i64 1 seq_cst, align 8")
        return [e.i64("lshr", old, 32)]
    e.repeat([("i64", "0")], lambda _: e.emit(f"icmp eq i64 {_word(e, team, LEAVE)}, 0"), task)
    return _module(name, e)


def sharing(name):
    """The module of ``void name(ptr slots, i64 lo, i64 hi)``, which runs a task on a team, or alone where that
    has one already: slot 0 is the team, the slots of the task follow."""
    e = Loops()
    team, slots = e.emit("load ptr, ptr %slots, align 8"), e.at("%slots", 8)
    state = e.emit(f"load ptr, ptr {slots}, align 8")
    busy, gate, most = e.at(team, 8 * BUSY), e.at(team, 8 * GATE), _word(e, state, MOST)
    found = e.emit(f"cmpxchg ptr {busy}, i64 0, i64 1 seq_cst seq_cst, align 8")
    free = e.emit(f"extractvalue {{ i64, i1 }} {found}, 1")

    def begin():
        for word, value in ((SLOTS, f"ptr {slots}"), (LO, "i64 %lo"), (HI, "i64 %hi"), (THREADS, f"i64 {most}")):
            e.lines.append(f"  store {value}, ptr {e.at(team, 8 * word)}, align 8")
        e.emit(f"atomicrmw add ptr {gate}, i64 {TASK - CLOSED} seq_cst, align 8")
        e.loop(e.i64("sub", most, 1), lambda k, _: _wake(e, team, k))

    def end():
        e.emit(f"atomicrmw or ptr {gate}, i64 {CLOSED} seq_cst, align 8")

        def inside(_):
            return e.emit(f"icmp ne i64 {e.i64('and', _load(e, gate), INSIDE)}, 0")
        e.repeat([], inside, lambda _: _look(e, inside) or [])
        e.lines.append(f"  store atomic i64 0, ptr {busy} seq_cst, align 8")
    e.when(free, begin)
    e.lines.append(f"  call void @run(ptr {slots}, i64 %lo, i64 %hi)")
    e.when(free, end)
    return _module(name, e)


def nothing(name):
    """The module of a task without work."""
    return f"define void @{name}(ptr %slots, i64 %lo, i64 %hi) nounwind {{\n  ret void\n}}\n"


def _module(name, e):
    """The text, with the function that runs a task on one thread: it has slots of its own."""
    run = Loops()
    state = run.emit("load ptr, ptr %slots, align 8")
    function, count = _word(run, state, FUNCTION, "ptr"), _word(run, state, COUNT)
    own = run.emit(f"alloca i64, i64 {run.i64('add', count, SPARE)}, align 16")
    run.lines += [f"  call void @llvm.memcpy.p0.p0.i64(ptr {own}, ptr %slots, i64 {run.i64('mul', count, 8)}, "
                  "i1 false)", f"  call void {function}(ptr {own}, i64 %lo, i64 %hi)"]
    text = ["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", "declare i32 @sched_yield()",
            *[f"declare i32 @pthread_{f}(ptr)" for f in ("mutex_lock", "mutex_unlock", "cond_signal")],
            "declare i32 @pthread_cond_wait(ptr, ptr)"]
    for head, body in (("define internal void @run(ptr %slots, i64 %lo, i64 %hi) noinline", run),
                       (f"define void @{name}(ptr %slots, i64 %lo, i64 %hi)", e)):
        text += [f"{head} nounwind {{", "entry:", *body.lines, "  ret void", "}"]
    return "\n".join([*text, ""])


def _wait(e, gate, mine, seen):
    """Go on when the task is not the one of this number any more."""
    def same():
        number = e.i64("lshr", _load(e, gate), 32)
        return e.emit(f"icmp eq i64 {number}, {seen}")

    def sleep():
        asleep, mutex, condition = (e.at(mine, 8 * k) for k in (ASLEEP, MUTEX, CONDITION))
        e.lines.append(f"  call i32 @pthread_mutex_lock(ptr {mutex})")
        e.lines.append(f"  store atomic i64 1, ptr {asleep} seq_cst, align 8")
        e.repeat([], lambda _: same(), lambda _: e.lines.append(
            f"  call i32 @pthread_cond_wait(ptr {condition}, ptr {mutex})") or [])
        e.lines.append(f"  store atomic i64 0, ptr {asleep} seq_cst, align 8")
        e.lines.append(f"  call i32 @pthread_mutex_unlock(ptr {mutex})")

    def again(state):
        few = e.emit(f"icmp slt i64 {state[0]}, {ROUNDS}")
        return e.emit(f"and i1 {few}, {same()}")
    e.repeat([("i64", "0")], again, lambda state: _look(e, lambda _: same()) or [e.i64("add", state[0], 1)])
    e.when(same(), sleep)


def _look(e, more):
    """Look some times whether there is `more` to wait for; then others may have the processor."""
    def again(state):
        few = e.emit(f"icmp slt i64 {state[0]}, {LOOKS}")
        return e.emit(f"and i1 {few}, {more(None)}")
    e.repeat([("i64", "0")], again, lambda state: [e.i64("add", state[0], 1)])
    e.when(more(None), lambda: e.lines.append("  call i32 @sched_yield()"))


def _wake(e, team, number):
    """Wake a worker that sleeps."""
    worker = e.emit(f"load ptr, ptr {e.at(team, e.i64('add', e.i64('mul', number, 8), 8 * WORKERS))}, align 8")
    mutex, condition = (e.at(worker, 8 * k) for k in (MUTEX, CONDITION))
    asleep = e.emit(f"icmp ne i64 {_load(e, e.at(worker, 8 * ASLEEP))}, 0")
    e.when(asleep, lambda: e.lines.extend(f"  call i32 @pthread_{call})" for call in (
        f"mutex_lock(ptr {mutex}", f"cond_signal(ptr {condition}", f"mutex_unlock(ptr {mutex}")))


def _word(e, place, number, kind="i64"):
    return e.emit(f"load {kind}, ptr {e.at(place, 8 * number)}, align 8")


def _load(e, place):
    """A word that other threads write."""
    return e.emit(f"load atomic i64, ptr {place} seq_cst, align 8")
