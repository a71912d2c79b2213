"""The one seam of the core: what a ranker learns from, however it is made.

Trees take the gradients of all documents at once; nets that move after every query take those of one query, from a compiled function
and the plan that it reads.
"""

from typing import Protocol

from ltr.kernels.kernel import Floats, Kernel, NumbaType


class ObjectiveFunction(Protocol):
    """Gradient and second derivative of all documents."""

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """``(gradient, hessian)``, both ``float64 [documents]``, at ``scores float64 [documents]``: λ, along which scores move (the
        gradient of an objective that rises), and minus the second derivative, 0 or more."""
        ...


class QueryObjective(ObjectiveFunction, Protocol):
    """An `ObjectiveFunction` that compiled code can also evaluate query by query.

    Attributes:
        gradients: compiled ``gradients(query, scores, plan, gradient, hessian)``, of the type `gradients_type`.
        plan_type, gradients_type: numba's types of a plan and of `gradients`.
    """

    @property
    def gradients(self) -> Kernel:
        """Writes a query's gradient and hessian, ``float64 [documents of the query]``; returns how many pairs are effective."""
        ...

    @property
    def plan_type(self) -> NumbaType:
        """Of what `plan` returns."""
        ...

    @property
    def gradients_type(self) -> NumbaType:
        """The signature of `gradients`."""
        ...

    def plan(self, iteration: int) -> object:
        """What `gradients` reads at an iteration."""
