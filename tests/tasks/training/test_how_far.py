"""How far the trainings and certificates of this process are, until they end."""

import pytest

from ltr.rankers.training import Progress
from tasks.training.how_far import certifying, how_far, noting


def at(iteration: int, n_iterations: int) -> Progress:
    return Progress(iteration, n_iterations, {}, lambda: None)


def break_off() -> None:
    with noting("net") as net:
        net(at(1, 2))
        raise InterruptedError("training was interrupted")


def test_cells_under_way_are_told_with_their_iterations_however_they_end():
    assert how_far() == ""
    with noting("net · epochs=700") as net, noting("trees") as trees:
        assert how_far() == "", "nothing is known before the first iteration"
        trees(at(1, 1000))
        net(at(12, 700))
        trees(at(2, 1000))
        assert how_far() == "iteration 12 of 700 of net · epochs=700; 2 of 1,000 of trees"
    assert how_far() == ""
    with pytest.raises(InterruptedError):
        break_off()
    assert how_far() == ""


def test_a_certificate_is_told_with_its_share_until_it_ends():
    with certifying("net, steps from 0.001") as tick:
        assert how_far() == ""
        tick(0.378)
        assert how_far() == "38% of net, steps from 0.001"
    assert how_far() == ""


def test_of_many_the_first_are_named():
    with noting("a") as a, noting("b") as b, noting("c") as c, noting("d") as d, noting("e") as e:
        for note in (e, d, c, b, a):
            note(at(1, 2))
        assert how_far() == "iteration 1 of 2 of a; 1 of 2 of b; 1 of 2 of c and 2 more"
