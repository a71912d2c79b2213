"""The numba core of lambdaflow: measures, λ's, trees, nets and their certificates. Arrays in, arrays out.

>>> import ltr
>>> queries = ltr.Queries(features, labels, offsets)            # doctest: +SKIP
>>> model = ltr.LambdaMART(n_trees=100).fit(queries)            # doctest: +SKIP
>>> ltr.evaluate(labels, model.predict(features), offsets, ["ndcg@10", "map"])  # doctest: +SKIP
"""

from pathlib import Path
from typing import Any

from ltr import models
from ltr.baselines import AdaRank, Listwise, RankBoost, RankSVM, SVMmap
from ltr.boosting import LambdaMART
from ltr.column import Column
from ltr.combine import Combination, Mixtures, combine, mix_scores
from ltr.conditional import ConditionalModel
from ltr.estimator import Estimator
from ltr.evaluation import evaluate
from ltr.lambdas import Objective, Schedule, Term
from ltr.least_squares import LeastSquares
from ltr.ledger import Ledger, ledger
from ltr.measures import MEASURES, Conventions, Measure
from ltr.models import Model, save
from ltr.nets import LambdaRank
from ltr.optimality import Certificate, certify
from ltr.preferences import Preferences
from ltr.queries import Queries

_MODELS: tuple[Any, ...] = (
    LambdaMART, LambdaRank, LeastSquares, Combination, ConditionalModel, RankSVM, RankBoost, SVMmap, AdaRank, Listwise, Column,
)  # fmt: skip
KINDS: dict[str, type] = {model.kind: model for model in _MODELS}
"""Every ranker by the name configurations and model files call it."""


def load(folder: str | Path) -> Model:
    """The model saved in `folder`; see `ltr.models.load`."""
    return models.load(folder, KINDS)


__all__ = [
    "KINDS",
    "MEASURES",
    "Certificate",
    "Column",
    "Conventions",
    "Estimator",
    "LambdaMART",
    "LambdaRank",
    "LeastSquares",
    "Ledger",
    "Measure",
    "Mixtures",
    "Model",
    "Objective",
    "Preferences",
    "Queries",
    "Schedule",
    "Term",
    "certify",
    "combine",
    "evaluate",
    "ledger",
    "load",
    "mix_scores",
    "save",
]  # fmt: skip
