"""Random scalar programs: statements nested at random, as source text.

`easy` and `hard` differ in what they use: the hard ones have ranges with traced bounds, lists that
are rebound or appended to, tuples as state, helpers that raise, variables that some paths do
not assign.
"""
import linecache
import random

VARIABLES = ["x", "y", "s", "t", "k", "m"]
EASY_ITERABLES = ["range(3)", "(1, 1, 2)", "[0.5, 0.5]", "enumerate([1, 1])", "zip((1, 1), (2, 2))"]
HARD_ITERABLES = ["range(3)", "range(2)", "range(3, 0, -1)", "range(1, 9, 3)", "range(n)", "range(n + 1)",
                  "range(2, n)", "(x, 1.0)", "M", *EASY_ITERABLES[1:]]


class Writer:
    """Writes the body of one program."""

    def __init__(self, seed, hard):
        self.r, self.hard = random.Random(seed), hard

    def var(self):
        return self.r.choice(VARIABLES)

    def comparison(self):
        other = self.r.choice(VARIABLES + ["0", "1", "2.5", "-1"])
        return f"{self.var()} {self.r.choice(['<', '>', '<=', '=='])} {other}"

    def condition(self):
        c = self.comparison
        return self.r.choice([c(), c(), f"{c()} and {c()}", f"{c()} or {c()}", f"not {c()}",
                              f"-1 < {self.var()} < 3", f"any({self.var()} > q for q in (0, 1, 2))"])

    def expression(self):
        v, choice = self.var, self.r.choice
        forms = [f"{v()} + {v()}", f"{v()} * 0.5", f"{v()} - {choice([1, 2.0, 0.25])}", f"-{v()}",
                 str(choice([0, 1, 2.5])), v(), f"h({v()}, {v()})", f"max({v()}, {v()})",
                 f"({v()} if {self.condition()} else {v()})", f"L[{choice([0, 1])}] + 1",
                 f"sum(q * {v()} for q in (1, 2) if {v()} > q)"]
        if self.hard:
            forms += [f"p[{choice([0, 1])}] - 1", f"len(M) * {v()}", f"hr({v()}, {v()})", f"abs({v()})", "u",
                      f"w({v()})", f"[{v()} * q for q in range(3)][1]"]
        return choice(forms)

    def assignment(self):
        choice, e = self.r.choice, self.expression
        forms = [f"{self.var()} = {e()}", f"{choice('kms')} += {choice([1, 2])}", f"L[{choice([0, 1])}] = {e()}",
                 f"x, y = {e()}, {e()}"]
        if self.hard:
            forms += [f"p = ({e()}, p[0])", f"u = {e()}", f"M = [{e()}]"]
            forms += [f"M.append({e()})"] if self.r.random() < .2 else []
        return choice(forms)

    def block(self, depth, indent, in_loop):
        out = []
        for _ in range(self.r.randint(1, 4)):
            out += self.statement(depth, indent, in_loop)
        return out

    def statement(self, depth, indent, in_loop):
        pad, k, r = " " * indent, self.r.random(), self.r
        if k < .4 or depth == 0:
            return [pad + self.assignment()]
        if k < .65:
            out = [pad + f"if {self.condition()}:", *self.block(depth - 1, indent + 1, in_loop)]
            return out + ([pad + "else:", *self.block(depth - 1, indent + 1, in_loop)] if r.random() < .6 else [])
        if k < .78:
            iterable = r.choice(HARD_ITERABLES if self.hard else EASY_ITERABLES)
            target = "(k, m)" if iterable[0] in "ez" else r.choice(["k", "_", "m"])
            out = [pad + f"for {target} in {iterable}:", *self.block(depth - 1, indent + 1, True)]
            return out + ([pad + "else:", *self.block(0, indent + 1, in_loop)] if r.random() < .3 else [])
        if k < .87:
            g = f"g{r.randint(0, 10**6)}"
            return [pad + f"{g} = 0", pad + f"while {self.condition()} and {g} < {r.choice([2, 3, 5])}:",
                    *self.block(depth - 1, indent + 1, True), pad + f" {g} += 1"]
        if k < .93:
            out = [pad + "try:", *self.block(depth - 1, indent + 1, in_loop),
                   pad + f" if {self.condition()}: raise ValueError(1)", pad + "except ValueError:",
                   *self.block(0, indent + 1, in_loop)]
            return out + ([pad + "finally:", *self.block(0, indent + 1, False)] if r.random() < .5 else [])
        if in_loop:
            return [pad + f"if {self.condition()}: {r.choice(['break', 'continue'])}"]
        return [pad + f"if {self.condition()}: return {self.var()}"]


def h(a, b):
    if a > b:
        return a - b
    return b


def hr(a, b):
    if a > b + 1:
        raise ValueError(2)
    for i in range(3):
        if a < i:
            return b - i
        a = a - 1
    return a * 2


def source(seed, hard):
    """The text of a program."""
    body = "\n".join(Writer(seed, hard).block(3, 1, False))
    if not hard:
        return ("def f(x, y):\n s, t, k, m = 0.0, 1, 0, 2; L = [x, 0.5]\n" + body
                + "\n return x + 2 * y + 4 * s + 8 * t + 16 * k + 32 * m + L[0] - L[1]\n")
    return ("def f(x, y, n):\n s, t, k, m = 0.0, 1, 0, 2; L = [x, 0.5]; M = [y]; p = (x, 1.0)\n x0 = x\n"
            " if x > 3.5: u = 1\n w = lambda v: v + x0 if v > x0 else x0\n" + body
            + "\n return x + 2 * y + 4 * s + 8 * t + 16 * k + 32 * m + L[0] - L[1] + p[0] * 3 + p[1] + len(M)\n")


def program(seed, hard):
    """(function, inputs)."""
    text, name = source(seed, hard), f"<program {seed} {'hard' if hard else 'easy'}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"h": h, "hr": hr}
    exec(compile(text, name, "exec"), scope)
    r = random.Random(seed + 1)
    inputs = [(r.uniform(-3, 4), r.choice([-1., 0., 1., 2.5, r.uniform(-3, 4)])) for _ in range(40)]
    if hard:
        inputs = [(*xs, r.randint(0, 4)) for xs in inputs]
    return scope["f"], inputs
