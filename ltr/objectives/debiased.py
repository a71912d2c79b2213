"""The objective of clicks with position bias, in the way that an `Unbiased` names: what trees and nets are given."""

from ltr.kernels.kernel import Floats
from ltr.kernels.machines import ALONE, Machines
from ltr.metrics.conventions import Conventions
from ltr.objectives.dual import DualObjective
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.unbiased import AdditiveObjective, InverseObjective, PairwiseObjective, Unbiased

Debiased = InverseObjective | PairwiseObjective | AdditiveObjective | DualObjective


def debiased(
    plain: Objective, how: Unbiased, conventions: Conventions, step: float, begun: Floats | None, machines: Machines = ALONE
) -> Debiased:
    """The objective of one term `plain`, with position bias taken out.

    Args:
        conventions: label rules of `plain`.
        step: of biases that are added to scores, see `AdditiveObjective`.
        begun: what is known of ranks, ``float64 [iterations, sides, ranks]``: of ``ipw`` the propensities, of the others what was learned so
            far, None where that is nothing.
        machines: which have the other pages; ``dla`` learns on one.
    """
    (term,), queries = plain.terms, plain.queries
    if how.kind == "pairwise":
        return PairwiseObjective(queries, term, how, conventions, plain.sigma, begun, machines)
    if how.kind == "additive":
        return AdditiveObjective(plain, queries, term, how, step, begun, machines)
    if how.kind == "dla":
        return DualObjective(queries, term, how, plain.sigma, begun)
    assert begun is not None
    return InverseObjective(plain, queries, term, how, begun, machines)
