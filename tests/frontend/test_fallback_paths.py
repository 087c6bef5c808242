"""Functions that Python runs on symbols: its `finally` and `except` run while a question passes through them."""
import pytest

from frontend.same_as_python import TWO, differences


def chosen_list(x, y):
    chosen = [y]
    try:
        if y >= 0:
            raise ValueError(1)
    except ValueError:
        chosen = [x]
    finally:
        y = max(y, 0.0)                 # a question of its own
    chosen.append(1)                    # read by Python itself: the list was chosen by a condition
    return chosen[0] + y


def swallowed(x, y):
    chosen = [y]
    try:
        if y >= 0:
            x = x + 1
    except Exception:       # noqa: BLE001
        chosen = [7.0]
    if x > 0:
        chosen = [x]
    chosen.append(2)
    return chosen[0] + chosen[1]


def raised_on_the_way(x, y):
    chosen = [y]
    if x > 1:
        chosen = [x]
    try:
        if y >= 0:
            x = x + 1
    finally:
        if x < 0:
            raise KeyError(1)
    chosen.append(x)
    return chosen[0] + chosen[1]


@pytest.mark.parametrize("f", [chosen_list, swallowed, raised_on_the_way],
                         ids=lambda f: f.__name__)
def test_a_question_is_not_replaced_by_another(f):
    assert not differences(f, TWO)
