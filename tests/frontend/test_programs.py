"""Random programs; `frontend.fuzz` runs thousands by command."""
import pytest

from frontend.dual_numbers import derivative_differences
from frontend.fuzz import run

#: the alarm that stops a slow program may fall into a finaliser or a callback of the collector, which
#: Python reports and goes on from; it rings again a second later
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

#: of 100 hard programs, how many may be refused with a message (lists whose length a condition decides)
REFUSED = 25


@pytest.mark.parametrize("part", range(4))
def test_easy_programs_agree_with_python(part):
    counts, others = run(range(25 * part, 25 * part + 25), hard=False)
    assert others == []
    assert counts["equal"] >= 20


@pytest.mark.parametrize("part", range(4))
def test_hard_programs_agree_with_python_or_are_refused(part):
    counts, others = run(range(25 * part, 25 * part + 25), hard=True)
    assert [o for o in others if o[1] == "wrong"] == []
    assert sum(counts[k] for k in ("refused", "budget", "slow")) <= REFUSED / 2
    assert all(detail for _, what, detail in others if what in ("refused", "budget"))


@pytest.mark.parametrize("hard", [False, True], ids=["easy", "hard"])
def test_derivatives_are_those_of_the_branch_taken(hard):
    counts, others = run(range(10), hard, derivative_differences)
    assert [o for o in others if o[1] == "wrong"] == []
    assert counts["equal"] >= 5
