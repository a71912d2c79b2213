"""What holds for every measure: it is its formula, over ties the mean of their orders, and swap changes are differences of values.

The file of each measure calls these checks for its own names; `test_measure.py` looks whether a measure is left out.
"""

import math

import numpy as np
import pytest

from ltr.kernels.kernel import ready
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import MEASURES, N_AUX, PREPARE, ROW, Measure, curve_of, gains_of
from tests import naive


def cases(*names):
    """Each name with and without cutoffs, as far as it has any."""
    return [
        (name, cutoff)
        for name in names
        for cutoff in (None, 1, 3, 10)
        if not (MEASURES[name].needs_cutoff and cutoff is None) and not (MEASURES[name].whole and cutoff)
    ]


def labels_for(name, rng, n):
    return rng.integers(0, 5, n) / 4 if name == "cndcg" else rng.integers(0, 5, n).astype(float)


def one(name, cutoff, labels, scores, **conventions):
    """The value of one query."""
    measure = Measure(name, cutoff)
    values = evaluate({measure.source: labels}, scores, [0, len(labels)], [measure], Conventions(**conventions))
    return values[measure.key][0]


def check_values(name, cutoff):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 5, 6):
        for levels in (2, 3, 50):
            labels, scores = labels_for(name, rng, n), rng.integers(0, levels, n).astype(float)
            want = naive.expected(name, labels, scores, cutoff=cutoff)
            got = one(name, cutoff, labels, scores)
            assert math.isnan(got) if want is None else got == pytest.approx(want, abs=1e-12)


def swap_changes(name, cutoff, labels):
    """``float64 [n, n]``: |ΔM| of every pair of ranks, the upper one first, by the kernels; and the gains."""
    n, measure, conventions = len(labels), Measure(name, cutoff), Conventions()
    gains = gains_of(measure, np.asarray(labels, float), conventions)
    curve, limit = curve_of(measure, n, conventions)
    aux, change = np.empty((N_AUX, n + 1)), np.zeros((n, n))
    rows = ready(measure.definition.prepare, PREPARE)(gains, curve, limit, aux)
    for t in range(rows):
        ready(measure.definition.row, ROW)(t, gains, curve, limit, aux, change[t])
    return change, gains


def check_swaps(name, cutoff):
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 8):
        for _ in range(6):
            labels = labels_for(name, rng, n)
            change, gains = swap_changes(name, cutoff, labels)
            before = naive.value(name, labels, cutoff)
            for t in range(n):
                for b in range(t + 1, n):
                    swapped = labels.copy()
                    swapped[[t, b]] = swapped[[b, t]]
                    after = naive.value(name, swapped, cutoff)
                    want = 0.0 if before is None else abs(after - before)
                    if name == "mrr" and before is not None and gains[t] > 0:
                        want = 0.0  # the seed rule of D eq. 11 sees only documents that climb
                    assert change[t, b] == pytest.approx(want, abs=1e-12), (name, cutoff, labels, t, b)
