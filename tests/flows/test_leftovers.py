"""Who owns what a run leaves behind; what becomes of it is seen in test_kill."""

import os

from flows.leftovers import is_gone, owner


def test_a_process_that_has_ended_is_told_from_a_new_one_of_its_number():
    mine = owner()
    machine, number, begun = mine.split("/")
    assert int(number) == os.getpid()
    assert not is_gone(mine)
    assert is_gone(f"{machine}/{number}/{int(begun) - 1}")


def test_what_cannot_be_known_is_not_gone():
    assert not is_gone(f"elsewhere/{os.getpid()}/1")
    assert not is_gone("")
