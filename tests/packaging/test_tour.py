"""The tour itself: all examples right, and a wrong result is told."""
import pytest

from tlgrad import tour


@pytest.mark.parametrize("count", [len(tour.EXAMPLES)], ids="{} examples".format)
def test_every_example_is_as_expected(count):
    lines = []
    assert tour.run_tour(lines.append) == 0, "\n".join(lines)
    assert lines[-1] == f"\n{count} of {count} examples as expected."


def test_a_wrong_result_is_counted_and_marked(monkeypatch):
    wrong = tour.Example("wrong", "result = tl.tensor([1.0, 2.0])", [1, 3])
    broken = tour.Example("broken", "result = tl.no_such_name", 0)
    monkeypatch.setattr(tour, "EXAMPLES", (wrong, broken))
    lines = []
    assert tour.run_tour(lines.append) == 2
    assert "[1.000000, 2.000000]" in "".join(lines) and "no_such_name" in "".join(lines)
    assert "".join(lines).count("DIFFERENT") == 2
