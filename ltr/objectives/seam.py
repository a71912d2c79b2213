"""The one seam of the core: what a ranker is given to learn from, whatever made it.

Trees ask for gradients of all documents at once; nets that move after every query ask for one query's, by a compiled function and the
plan that it reads.
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
    """The same, and query by query from compiled code.

    Attributes:
        gradients: compiled ``gradients(query, scores, plan, gradient, hessian)``, of the type `gradients_type`.
        plan_type, gradients_type: numba's types of a plan and of `gradients`.
    """

    @property
    def gradients(self) -> Kernel: ...

    @property
    def plan_type(self) -> NumbaType: ...

    @property
    def gradients_type(self) -> NumbaType: ...

    def plan(self, iteration: int) -> object:
        """What `gradients` reads at an iteration."""
