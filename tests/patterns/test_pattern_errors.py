"""What a wrong pattern says: the sentence, the text over the caret, what to write instead."""
import numpy as np
import pytest

import tlgrad as tl
from tlgrad.patterns.letters import read_einsum
from tlgrad.patterns.messages import Fault
from tlgrad.patterns.parse import parse_transform

X = np.zeros((2, 3, 4))
M, V = np.zeros((2, 3)), np.zeros(2)

# name: (call, sentence, text over the caret, suggestion)
TABLE = {
    "not divisible": (lambda: tl.rearrange(X, "b (h w) c -> b h w c", h=2),
                      "rearrange: 3 is not divisible by h=2 (axis 1, size 3, h=2: w would be 1.5)", "h w",
                      "h as one of 1, 3"),
    "unbalanced": (lambda: tl.rearrange(X, "a (b c"),
                   "rearrange: unbalanced '(' at column 3: it is not closed", "(",
                   '"a (b c) -> a b c"'),
    "unmatched": (lambda: tl.rearrange(X, "a b) c -> a b c"), "unmatched ')' at column 4", ")",
                  '"a b c -> a b c"'),
    "two arrows": (lambda: tl.rearrange(X, "a b c -> a b c -> c"), "two arrows: a second '->' at column 16",
                   "->",
                   '"a b c -> a b c"'),
    "no arrow": (lambda: tl.rearrange(X, "a b c"), "missing arrow", "", '"a b c -> a b c"'),
    "no arrow in einsum": (lambda: tl.einsum("row feature, feature", M, V), "missing arrow", "",
                           '"row feature, feature -> row feature"'),
    "nested": (lambda: tl.rearrange(X, "((a b) c) d -> a b c d"), "nested parentheses at column 2", "(",
               '"(a b c) d -> a b c d"'),
    "leading underscore": (lambda: tl.rearrange(X, "_a b c -> _a b c"),
                           "'_a' at column 1 is not an axis name: a name does not begin or end with an underscore",
                           "_a", '"a b c -> a b c"'),
    "trailing underscore": (lambda: tl.rearrange(X, "a_ b c -> a_ b c"),
                            "does not begin or end with an underscore",
                            "a_", '"a b c -> a b c"'),
    "lone underscore": (lambda: tl.rearrange(X, "_ b c -> _ b c"), "'_' at column 1 is not an axis name", "_",
                        '"axis b c -> axis b c"'),
    "digit first": (lambda: tl.rearrange(X, "1a b c -> 1a b c"), "a name begins with a letter", "1a",
                    '"a1 b c -> a1 b c"'),
    "zero": (lambda: tl.rearrange(X, "a b c -> a b c 0"), "an axis of length 0 at column 16", "0", None),
    "unused length": (lambda: tl.rearrange(X, "a b c -> c b a", d=3),
                      "'d' is not in the pattern (its axes: a, b and c)",
                      None, "the call without d=3"),
    "slip in a length": (lambda: tl.rearrange(X, "batch row c -> c row batch", bath=2),
                         "did you mean 'batch'?", None,
                         "the call without bath=2"),
    "length of another type": (lambda: tl.rearrange(X, "a b c -> c b a", a=2.0),
                               "the length of 'a' must be an integer, got float", None, None),
    "negative length": (lambda: tl.expand(V, "a -> a b", b=-1), "must not be negative, got -1", None, None),
    "rank": (lambda: tl.rearrange(X, "a b c d -> d c b a"), "the pattern has 4 axes, x has 3: (2, 3, 4)",
             "a b c d",
             None),
    "rank too large": (lambda: tl.rearrange(X, "a b -> b a"), "the pattern has 2 axes, x has 3: (2, 3, 4)",
                       "a b",
                       '"... a b -> ... b a"'),
    "rank under the ellipsis": (lambda: tl.rearrange(V, "a b ... -> b a ..."),
                                "the pattern has at least 2 axes, x has 1: (2,)", "a b ...", None),
    "renamed": (lambda: tl.rearrange(X, "a b c -> a b d"), "'d' is only on the right", "d",
                '"a b c -> a b c"'),
    "slip": (lambda: tl.rearrange(M, "row column -> colum row"), "did you mean 'column'?", "colum",
             '"row column -> column row"'),
    "lost": (lambda: tl.rearrange(M, "row column -> column"), "'row' is only on the left", "row",
             '"row column -> column row"'),
    "fresh": (lambda: tl.rearrange(M, "row column -> column row new"), "'new' is only on the right", "new",
              'tl.expand(x, "row column -> column row new", new=...)'),
    "lost by expand": (lambda: tl.expand(M, "row column -> column"), "expand keeps every axis of the input",
                       "row",
                       '"row column -> column row"'),
    "new axis without a length": (lambda: tl.expand(M, "a b -> a b c"), "the new axis 'c' needs a length",
                                  "c",
                                  "c=... as an argument"),
    "fresh in reduce": (lambda: tl.reduce(M, "a b -> a b c"),
                        "'c' is only on the right; reduce only removes axes", "c",
                        '"c a b -> a b c"'),
    "number in rearrange": (lambda: tl.rearrange(M, "a 3 -> 3 a"),
                            "an axis of length 3 without a name cannot be rearranged", "3", '"a n -> n a"'),
    "number in reduce": (lambda: tl.reduce(M, "a b -> a 2"), "reduce does not add an axis of length 2", "2",
                         None),
    "wrong number": (lambda: tl.reduce(M, "a 4 -> a"), "axis 1 has length 3, but the pattern says 4", "4",
                     None),
    "wrong unit": (lambda: tl.rearrange(M, "a 1 -> a"),
                   "axis 1 has length 3, but the pattern has a unit axis there",
                   "1", None),
    "wrong length": (lambda: tl.rearrange(M, "a b -> b a", b=4),
                     "axis 1 ('b') has length 3, but b=4 was given", "b",
                     "b=3, or the call without it"),
    "wrong product": (lambda: tl.rearrange(M, "a (b c) -> a b c", b=2, c=2),
                      "axis 1 has length 3, but (b c) has b=2 * c=2 = 4", "b c", None),
    "two unknown": (lambda: tl.rearrange(X, "a b (c d) -> a b c d"),
                    "axis 2 has length 4, which does not fix c and d",
                    "c d", "c=... or d=..."),
    "zero product": (lambda: tl.rearrange(M, "a (b c) -> a b c", b=0),
                     "the known lengths of (b c) have the product 0",
                     "b c", None),
    "nothing determined": (lambda: tl.rearrange(np.zeros(0), "(b c) -> b c", b=0), "so 'c' is not determined",
                           "b c",
                           "c=..."),
    "twice": (lambda: tl.rearrange(M, "a a -> a"), "'a' occurs twice on one side; the second is at column 3",
              "a", None),
    "unequal diagonal": (lambda: tl.reduce(M, "a a -> a"), "'a' has lengths 2 and 3 in one operand", "a",
                         None),
    "ellipsis on the right": (lambda: tl.rearrange(X, "a b c -> a ... c"),
                              "ellipsis on the right but not on the left",
                              "...", '"a b c -> a b c"'),
    "ellipsis from nothing": (lambda: tl.rearrange(np.zeros(()), " -> ..."),
                              "ellipsis on the right but not on the left", "...", '"... -> ..."'),
    "ellipsis of einsum from nothing": (lambda: tl.einsum(" -> ...", 1.0),
                                        "ellipsis on the right but not on the left",
                                        "...", '"... -> ..."'),
    "ellipsis in parentheses": (lambda: tl.rearrange(X, "a (...) -> a ..."), "so it cannot be in parentheses",
                                "...",
                                None),
    "two ellipses": (lambda: tl.rearrange(X, "... a ... -> a ..."), "a second ellipsis at column 7", "...",
                     '"... a -> a ..."'),
    "ellipsis touching": (lambda: tl.rearrange(X, "a b c... -> a b c ..."),
                          "the ellipsis touches its neighbour", "...",
                          '"a b c ... -> a b c ..."'),
    "unknown character": (lambda: tl.rearrange(X, "a b [c] -> a b c"),
                          "'[' at column 5 means nothing in a pattern; did "
                          "you mean '('?", "[", None),
    "half an arrow": (lambda: tl.rearrange(X, "a b c - > a"), "did you mean '->'?", "-", None),
    "comma": (lambda: tl.rearrange(X, "a, b c -> a b c"),
              "',' at column 2 has no meaning here; it belongs to einsum",
              ",", None),
    "star": (lambda: tl.rearrange(X, "a * c -> a c"), "it belongs to pack and unpack", "*", None),
    "not text": (lambda: tl.rearrange(X, 3), "the pattern must be text, got int: 3", None, None),
    "mean of nothing": (lambda: tl.reduce(np.zeros((0, 3)), "a b -> b", "mean"),
                        "the mean of no entries: the removed axes have the product 0", None, None),
    "maximum of nothing": (lambda: tl.reduce(np.zeros((0, 3)), "a b -> b", "max"), "the max of no entries",
                           None, None),
    "list of different shapes": (lambda: tl.rearrange([M, V], "a ... -> a ..."),
                                 "a list of tensors needs one shape; item 0 has (2, 3), item 1 has (2,)",
                                 None, None),
    "unequal lengths": (lambda: tl.einsum("i j, i ->", np.zeros((5, 1)), V),
                        "axis 'i' has length 5 in operand 0 and 2 in "
                        "operand 1 (shapes (5, 1) and (2,)); lengths are equal, or one is 1", "i", None),
    "unequal contraction": (lambda: tl.einsum("i j, j k -> i k", M, np.zeros((4, 5))),
                            "has length 3 in operand 0 and 4 in operand 1 (shapes (2, 3) and (4, 5))", "j", None),
    "unequal under the ellipsis": (lambda: tl.einsum("... i, ... i -> ...", M, np.zeros((4, 3))),
                                   "axis '...1' has length 2 in operand 0 and 4 in operand 1", "...", None),
    "diagonal of 1 and 3": (lambda: tl.einsum("i i -> i", np.zeros((1, 3))),
                            "axis 'i' occurs twice in operand 0 with lengths 1 and 3", "i", None),
    "output of nothing": (lambda: tl.einsum("i j, j k -> i l", M, np.zeros((3, 4))),
                          "output axis 'l' is not an axis of any operand", "l", '"i j, j k -> i j"'),
    "misspelt output": (lambda: tl.einsum("row k, k column -> row colum", M, np.zeros((3, 4))),
                        "output axis 'colum' is not an axis of any operand", "colum",
                        '"row k, k column -> row column"'),
    "output letter of nothing": (lambda: tl.einsum("ij->ijz", M), "output axis 'z' is not an axis", "z",
                                 '"ij->ij"'),
    "output twice": (lambda: tl.einsum("i j -> i i", M), "'i' occurs twice on one side", "i", None),
    "output letter twice": (lambda: tl.einsum("ij->ii", M), "output axis 'i' occurs twice", "i", '"ij->i"'),
    "operand count": (lambda: tl.einsum("a b -> b", M, V), "the pattern has 1 operand, the call 2", "a b",
                      None),
    "operand rank": (lambda: tl.einsum("a b, b -> a", M, X),
                     "operand 1: the pattern has 1 axis, the tensor has 3: "
                     "(2, 3, 4)", "b", '"a b, ... b -> a"'),
    "letters of another rank": (lambda: tl.einsum("ij,jk->ik", M, X),
                                "operand 1: the pattern has 2 axes, the tensor "
                                "has 3: (2, 3, 4)", "jk", None),
    "composite in einsum": (lambda: tl.einsum("(i j) -> i", V),
                            "a composite axis at column 2: in einsum every position "
                            "is one name or a bare ellipsis", "i", None),
    "number in einsum": (lambda: tl.einsum("i 3 -> i", M), "a number at column 3", "3", None),
    "unit in einsum": (lambda: tl.einsum("i 1 -> i", M), "a unit axis at column 3", "1", None),
    "wrong length in einsum": (lambda: tl.einsum("i j -> j", M, j=4),
                               "axis 'j' has length 3, but j=4 was given", "j",
                               None),
    "unused length in einsum": (lambda: tl.einsum("i j -> j", M, k=4),
                                "'k' is not in the pattern (its axes: i and j)",
                                None, None)}


def parts(text):
    """(sentence, text over the caret or None, suggestion or None) of a message."""
    lines = text.split("\n")
    carets = [k for k, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"}]
    over = None
    if carets:
        line = lines[carets[0]]
        over = lines[carets[0] - 1][line.index("^"):line.rindex("^") + 1].strip()
    hints = [line.split("write: ", 1)[1] for line in lines if line.startswith("  write: ")]
    return lines[0], over, hints[0] if hints else None


@pytest.mark.parametrize("name", TABLE)
def test_message(name):
    call, sentence, over, write = TABLE[name]
    with pytest.raises(tl.errors.PatternError) as error:
        call()
    first, found_over, found_write = parts(str(error.value))
    assert sentence in first
    assert (found_over, found_write) == (over, write)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("name", [n for n, row in TABLE.items() if row[3] and row[3].startswith('"')])
def test_suggestions_are_legal_patterns(name):
    pattern = TABLE[name][3].strip('"')
    try:
        parse_transform(pattern, repeats=True)
    except Fault:
        read_einsum(pattern, ())


def test_whole_message():
    def heads():
        tl.rearrange(X, "b (h w) c ->\n b h w c", h=2)
    with pytest.raises(tl.errors.PatternError) as error:
        heads()
    text = str(error.value)
    assert text.startswith("""\
rearrange: 3 is not divisible by h=2 (axis 1, size 3, h=2: w would be 1.5)
    b (h w) c ->  b h w c
       ^^^
  x has shape (2, 3, 4)
  lengths known so far: h=2, b=2
  write: h as one of 1, 3
  [test_pattern_errors.py:""")
    assert 'tl.rearrange(X, "b (h w) c ->' in text


def test_operands_are_listed():
    with pytest.raises(tl.errors.PatternError) as error:
        tl.einsum(M, V, "row column, column -> row")
    assert "  operand 0 has shape (2, 3)\n  operand 1 has shape (2,)\n" in str(error.value)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: tl.reduce(M, "a b -> b", "median"), tl.errors.ArgumentError,
     "by must be a callable or one of sum, prod"),
    (lambda: tl.reduce(M, "a b -> b", "any"), tl.errors.DTypeError,
     "any takes bool, got float64; write reduce(x != 0"),
    (lambda: tl.reduce(M, "a b -> b", "sum", order="fast"), tl.errors.ArgumentError,
     "ordered, fused, tree, free"),
    (lambda: tl.einsum(M, V), tl.errors.ArgumentError, "the first or the last argument is the pattern"),
    (lambda: tl.einsum("a ->", None), tl.errors.ArgumentError, "got NoneType")])
def test_refusals_that_are_not_about_the_pattern(call, kind, words):
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)


def test_a_cached_plan_does_not_hide_a_bad_length():
    tl.rearrange(np.zeros(4), "(a b) -> a b", a=2)
    for bad in (2.0, True, "2"):
        with pytest.raises(tl.errors.PatternError):
            tl.rearrange(np.zeros(4), "(a b) -> a b", a=bad)
    assert tl.rearrange(np.zeros(4), "(a b) -> a b", a=np.int64(2)).shape == (2, 2)
