"""Pair costs: what a pair of documents costs by the difference o of its scores, upper gain less lower.

A cost is a kernel ``cost(first, sigma, spread, o, slope, bend)`` that writes minus its derivative and its second derivative at ``o[first:]``;
`spread` is how far the highest score of the whole query is above the lowest, which not all pairs at hand need show.
"""

import numpy as np
from numba import njit, types

from ltr.kernels.exponential import exp
from ltr.kernels.kernel import F8, F8_1D, I8, Floats, Kernel, kernel_at

COST = types.void(I8, F8, F8, F8_1D, F8_1D, F8_1D)
"""``cost(first, sigma, spread, o, slope, bend)``."""
cost_kernel = kernel_at(COST)
"""What compiled code calls at the address of a cost."""


@njit(cache=True, error_model="numpy")
def logistic(first: int, sigma: float, spread: float, o: Floats, slope: Floats, bend: Floats) -> None:
    """RankNet's cost log(1 + e^{−σo}) (B section 2): slope σρ, bend σ²ρ(1 − ρ), ρ = 1/(1 + e^{σo}); finite at any gap."""
    for k in range(np.uint64(first), np.uint64(len(o))):
        e = exp(-abs(sigma * o[k]))
        share = 1.0 / (1.0 + e)
        slope[k] = sigma * share * (e if o[k] > 0.0 else 1.0)
        bend[k] = sigma * sigma * e * share * share


@njit(cache=True, error_model="numpy")
def sigmoid(first: int, sigma: float, spread: float, o: Floats, slope: Floats, bend: Floats) -> None:
    """The cost 1/(1 + e^{σo}) (S eq. 13–14, μ = 0): slope σρ(1 − ρ), falling for pairs far apart. Its hessian changes sign,
    so there is none: gradient leaves only."""
    for k in range(np.uint64(first), np.uint64(len(o))):
        e = exp(-abs(sigma * o[k]))
        slope[k] = sigma * e / ((1.0 + e) * (1.0 + e))
        bend[k] = 0.0


NEAR = 0.01
"""What `logistic_near` adds to the distance of two scores before it divides by it."""


@njit(cache=True, error_model="numpy")
def logistic_near(first: int, sigma: float, spread: float, o: Floats, slope: Floats, bend: Floats) -> None:
    """`logistic` divided by 0.01 + |o| as soon as any scores of the query differ: pairs that are far apart already count less. This is the half of
    LightGBM's ``lambdarank_norm`` that helps."""
    logistic(first, sigma, spread, o, slope, bend)
    if spread > 0.0:
        for k in range(np.uint64(first), np.uint64(len(o))):
            nearness = 1.0 / (NEAR + abs(o[k]))
            slope[k] *= nearness
            bend[k] *= nearness


COSTS: dict[str, Kernel] = {"logistic": logistic, "sigmoid": sigmoid, "logistic_near": logistic_near}
"""Every pair cost, a kernel of the signature `COST`, by the name that terms call it by."""
