"""An objective that is a plain function of a user's: ``function(scores, queries) → (force, curvature)``.

The force moves a score up where it is positive; it is the gradient of what is to rise, minus the gradient of a loss. The curvature is minus
the second derivative of what is to rise, that of a loss as it is, 0 or more. The queries have their documents in canonical order, so that
what a function makes of them does not depend on the order of rows. Weights of queries multiply what it gives (LightGBM and XGBoost leave
that to the function).
"""

import numpy as np

from ltr.data.plain_function import PlainFunction, numbers_from
from ltr.data.queries import Queries
from ltr.kernels.kernel import Floats

_LARGEST = 1e100
"""Gains of splits are squares of sums of forces times weights, and are recorded."""


class PlainObjective:
    """``objective(scores, iteration) → (gradient, hessian)``, both ``float64 [documents]``.

    Args:
        function: of ``scores float64 [documents]`` and `queries`; whatever it gives is checked.
    """

    def __init__(self, queries: Queries, function: PlainFunction) -> None:
        self.queries, self.function = queries, function
        self.weight = np.repeat(queries.shares, np.diff(queries.offsets))

    def __call__(self, scores: Floats, iteration: int) -> tuple[Floats, Floats]:
        """Gradient and hessian at `scores`; scores move along the gradient.

        Raises:
            ValueError: where the function does not give two numbers up to 1e100 for each document, or a curvature below 0.
        """
        name, n = self.function.name, len(scores)
        expected = f"(force, curvature), {n} numbers each, one for each document"
        given = self.function(scores, self.queries)
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise ValueError(f"{name} gave {type(given).__name__}; expected {expected}")
        force, curvature = (numbers_from(name, side, expected) for side in given)
        for what, side in (("force", force), ("curvature", curvature)):
            if side.shape != (n,):
                raise ValueError(f"{name} gave a {what} of shape {side.shape}; expected {expected}")
            lowest = 0 if what == "curvature" else -_LARGEST
            wrong = ~((side >= lowest) & (side <= _LARGEST))
            if wrong.any():
                row = int(wrong.argmax())
                rule = f"from {lowest:g} to {_LARGEST:g}"
                raise ValueError(f"{name} gave the {what} {side[row]:g} for document {row}; it has to be {rule}")
        return self.weight * force, self.weight * curvature
