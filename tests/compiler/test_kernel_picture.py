"""The picture of a compiled program: a box for each launch, lines from what it reads."""
import xml.etree.ElementTree as tree

import pytest

import tlgrad as tl

NAME = "{http://www.w3.org/2000/svg}"


def picture(f, *args):
    """(titles of the boxes, (from x, to x) of the lines)."""
    svg = tree.fromstring(tl.kernels(f)(*args)._repr_svg_())
    titles = [t.text for t in svg.iter(f"{NAME}text") if t.get("font-weight")]
    ends = []
    for path in svg.iter(f"{NAME}path"):
        points = path.get("d")[1:].split(" ")
        ends.append([float(point.split(",")[0]) for point in (points[0], points[-1])])
    return titles, ends


def layer(x, w, b):
    return tl.mean(tl.tanh(x @ w + b))


PROGRAMS = {
    "one kernel": (lambda x: x * x + 1.0, ["input 0", "kernel 0, lanes", "result 0"]),
    "an input is a result": (lambda x: (x, tl.argsort(x)),
                             ["input 0", "NumPy or library", "result 0", "result 1"]),
    "nothing is read": (lambda x: tl.ones(2), ["input 0", "result 0"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_box_for_each_input_launch_and_result(name):
    f, expected = PROGRAMS[name]
    assert picture(f, tl.ones((8, 4)))[0] == expected


def test_a_gradient_runs_from_left_to_right():
    args = tl.ones((8, 4)), tl.ones((4, 3)), tl.ones(3)
    gradient = tl.value_and_grad(layer, (0, 1, 2))
    titles, ends = picture(gradient, *args)
    assert titles.count("contraction") == 3 and sum(t.startswith("result") for t in titles) == 4
    assert sum(t.startswith("kernel") for t in titles) == len(tl.kernels(gradient)(*args))
    assert ends and all(start < end for start, end in ends)
