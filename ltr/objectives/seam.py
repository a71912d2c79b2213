"""The one seam of the core: what a ranker learns from, however it is made.

Trees take the gradients of all documents at once; nets that move after every query take those of one query, from a compiled function
and the plan that it reads.
"""

from typing import Protocol

from ltr.kernels.kernel import F8_1D, I8, Address, Floats, NumbaType, kernel_for


def gradients_signature(plan: NumbaType) -> NumbaType:
    """``gradients(query, scores, plan, gradient, hessian) → effective pairs``, for plans of this type."""
    return I8(I8, F8_1D, plan, F8_1D, F8_1D)


gradients_kernel = kernel_for(gradients_signature)
"""``gradients_kernel(address, plan)``: what compiled code calls at the address of such a kernel."""


class ObjectiveFunction(Protocol):
    """Gradient and second derivative of all documents."""

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """``(gradient, hessian)``, both ``float64 [documents]``, at ``scores float64 [documents]``: λ, along which scores move (the
        gradient of an objective that rises), and minus the second derivative, 0 or more."""
        ...


class QueryObjective(ObjectiveFunction, Protocol):
    """An `ObjectiveFunction` that compiled code can also evaluate query by query.

    Attributes:
        gradients: address of a kernel of the `gradients_signature` of plans.
        plan_type: numba's type of a plan.
    """

    @property
    def gradients(self) -> Address:
        """Of a kernel that writes a query's gradient and hessian, ``float64 [documents of the query]``, and returns how many pairs are
        effective."""
        ...

    @property
    def plan_type(self) -> NumbaType:
        """Of what `plan` returns."""
        ...

    def plan(self, iteration: int) -> object:
        """What `gradients` reads at an iteration."""
