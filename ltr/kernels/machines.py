"""Several machines that compute together: each sends the others arrays of integers, so that nothing depends on how the work is divided.

What comes of the answers are sums and maxima of integers, which are the same in any order; MPI calls the two ``allreduce``.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from ltr.kernels.kernel import Floats, Ints


class Machines(NamedTuple):
    """This machine among those that train together.

    Attributes:
        place: its number, from 0.
        n: how many there are.
        exchange: ``exchange(sent)`` sends array k, ``int64 [any]``, to machine k, and returns what each machine has sent here. All machines
            call it as often.
    """

    place: int
    n: int
    exchange: Callable[[Sequence[Ints]], list[Ints]]

    def summed(self, values: Ints) -> Ints:
        """Σ values over all machines."""
        return reduce(np.add, self.exchange([values] * self.n))

    def largest(self, values: Floats) -> Floats:
        """The largest of each of the values, ``float64 [any]``, over all machines."""
        of_machines = self.exchange([values.view(np.int64)] * self.n)
        highest: Floats = np.max([bits.view(np.float64) for bits in of_machines], axis=0)
        return highest


ALONE = Machines(0, 1, list)
"""The only machine there is."""
