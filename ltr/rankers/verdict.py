"""Whether taking position bias out of clicks helps here: a paired test on judged queries (on others: `ltr.rankers.page_verdict`).

On a large real log plain training was better than any debiased one (Hager et al. 2024, Baidu-ULTR), and LightGBM and XGBoost leave it to
their users to find that out. Judgments of some queries tell: each way is trained, and what is best on them is kept, with how sure that is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ltr.kernels.kernel import Floats
from ltr.metrics.measure import lowest_of
from ltr.metrics.significance import holm, paired_t

NAIVE = "clicks as they are"


@dataclass(frozen=True)
class Verdict:
    """What is kept, and why.

    Attributes:
        kept: the name of a way, or `NAIVE`.
        sentence: with the means, the differences and their p-values.
    """

    kept: str
    sentence: str


def verdict(values: Mapping[str, Floats], measure: str) -> Verdict:
    """The best of several trainings by the values of judged queries.

    Args:
        values: by way ``float64 [queries]``, of which more is better, NaN where undefined; `NAIVE` among them, which wins a tie.
        measure: what they are values of, by its key (`ltr.metrics.measure.Measure.key`).

    Raises:
        ValueError: for fewer than two queries where all are defined.
    """
    ways = [name for name in values if name != NAIVE]
    tests = [paired_t(values[name], values[NAIVE], lowest_of(measure)) for name in ways]
    ps = holm([test.p_value for test in tests]).tolist()
    best = max(range(len(ways)), key=lambda k: tests[k].difference)
    others = [
        f"{name} {test.difference:+.4f} (p = {p:.2g})"
        for k, (name, test, p) in enumerate(zip(ways, tests, ps, strict=True))
        if k != best
    ]
    test, p, naive = tests[best], ps[best], float(np.nanmean(values[NAIVE]))
    kept = ways[best] if test.difference > 0 else NAIVE
    sure = "at 95 %" if p < 0.05 else "at 90 %" if p < 0.1 else "not significant on these queries"
    found = f"{ways[best]} {test.difference:+.4f} ±{test.standard_error:.4f} (p = {p:.2g}, {sure})"
    holms = f", Holm over {len(ways)}" if len(ways) > 1 else ""
    beside = f"; {', '.join(others)}" if others else ""
    beside_naive = f"{measure} {naive:.4f} of {NAIVE} ({test.n_queries} judged queries)"
    return Verdict(kept, f"unbiased: auto keeps {kept}; beside {beside_naive}: {found}{beside}{holms}")
