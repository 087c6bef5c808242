"""explain: text and picture."""
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import tlgrad as tl


def test_einsum_text():
    assert str(tl.explain("b q f, b k f -> b q k", (4, 16, 8), (4, 16, 8), order="fused")) == """\
einsum: b q f, b k f -> b q k
  b   4  operands 0, 1   kept
  q  16  operand 0       kept
  f   8  operands 0, 1   summed
  k  16  operand 1       kept
  result (4, 16, 16), order fused:
    for b, q, k:
        y = 0
        for f: y = fma(x0[b, q, f], x1[b, k, f], y)
  8192 products, 8192 additions; 1024 entries read, 1024 written
  one dot_general; an array of all products (8192 entries) is not made"""


def test_the_path_of_three_operands_is_stated():
    shapes = (10, 100), (100, 5), (5, 30)
    ordered = str(tl.explain("i j, j k, k l -> i l", *shapes))
    assert "150000 products of 3 factors" in ordered and "one contract of 3 operands" in ordered
    assert "for j, k: y = y + x0[i, j] * x1[j, k] * x2[k, l]" in ordered
    free = str(tl.explain("i j, j k, k l -> i l", *shapes, order="free"))
    assert "6500 products" in free and "contract (0, 1) -> i k: 50 entries" in free


def test_rearrange_text():
    assert str(tl.explain("b h q c -> b q (h c)", np.zeros((1, 2, 3, 4)))) == """\
rearrange: b h q c -> b q (h c)
  b  1  input   kept
  h  2  input   kept
  q  3  input   kept
  c  4  input   kept
  (1, 2, 3, 4) -> (1, 3, 8)
  axes in the order (0, 2, 1, 3): a view
  joined to (1, 3, 8): a copy where joined axes are not neighbours in memory"""


@pytest.mark.parametrize("pattern, args, lengths, words", [
    ("a b -> b", dict(a=2, b=3), {}, "reduce by sum"), ("a b -> b", dict(a=2, b=3), {"by": "max"},
                                                        "max of 2 entries"),
    ("a -> a c", dict(a=2, c=3), {}, "repeated to (2, 3): a view"), ("(a b) -> b a", dict(a=2, b=3), {},
        "split into"),
    ("i i -> i", dict(i=3), {}, "y = y + x0[i, i]"), ("a -> a", dict(a=3), {}, "nothing to do"),
    ("a, a ->", dict(a=0), {}, "no work: there are no terms"), ("a, b -> a b", dict(a=0, b=2), {},
        "no work: the result")])
def test_what_is_said(pattern, args, lengths, words):
    assert words in str(tl.explain(pattern, **args, **lengths))


def test_stretched_axes_are_read_at_zero():
    assert "x0[i] * x1[0]" in str(tl.explain("i, i ->", (3,), (1,)))


@pytest.mark.parametrize("pattern, shapes", [
    ("b h q f, b h k f -> b h q k", [(4, 8, 16, 8)] * 2), ("a b -> b", [(2, 3)]), ("... a -> a ...", [(2, 3,
        4)]),
    ("ij,jk,kl->il", [(2, 2)] * 3), (", ->", [(), ()])])
def test_picture_is_svg_with_every_axis_inside(pattern, shapes):
    explanation = tl.explain(pattern, *shapes)
    root = ElementTree.fromstring(explanation._repr_svg_())
    width, height = int(root.get("width")), int(root.get("height"))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(a.name in texts and str(a.length) in texts for a in explanation.axes)
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        numbers = [float(v) for v in re.findall(r"[\d.]+", path.get("d"))]
        assert max(numbers[0::2]) <= width and max(numbers[1::2]) <= height
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.get("y")) + float(box.get("height")) <= height
    kept = sum(a.fate == "kept" for a in explanation.axes)
    lines = sum(len(a.operands) for a in explanation.axes) + kept
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == lines


def test_missing_lengths_and_wrong_patterns_are_pattern_errors():
    for call in (lambda: tl.explain("a b, b c -> a c", a=2, b=3), lambda: tl.explain("a b -> c", (2, 3)),
                 lambda: tl.explain("a (b -> a b", (2, 3))):
        with pytest.raises(tl.errors.PatternError):
            call()
    with pytest.raises(tl.errors.ArgumentError):
        tl.explain(np.zeros(3), "a -> a")
