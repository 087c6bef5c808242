"""Compiled programs have the words of the reference."""
import pytest

from compiler_programs import check


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_programs_and_their_jvps_have_the_words_of_the_reference(first):
    found = {seed: check(seed) for seed in range(first, first + 20)}
    assert not {seed: text for seed, text in found.items() if text}


@pytest.mark.parametrize("seed", [8034, 20000, 16131],
                         ids=["a reduction of nothing", "read by an absorbed step", "an error that nothing needs"])
def test_programs_that_were_wrong_once(seed):
    assert check(seed) == []
