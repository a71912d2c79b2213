"""The numba core of lambdaflow: measures, λ's, trees, nets and their certificates. Arrays in, arrays out.

>>> import ltr
>>> queries = ltr.Queries(features, labels, offsets)            # doctest: +SKIP
>>> model = ltr.LambdaMART(n_trees=100).fit(queries)            # doctest: +SKIP
>>> ltr.evaluate(labels, model.predict(features), offsets, ["ndcg@10", "map"])  # doctest: +SKIP
"""

from pathlib import Path

# isort: off
from ltr.kernels.threads import threads  # first: it says how threads wait, before any of them runs
from ltr.kernels import cache as _cache  # noqa: F401  (it says where all the others keep what they compile)
from ltr.kernels import numba_start as _numba_start  # noqa: F401  (and it what numba leaves for later)
from ltr.kernels import workqueue as _workqueue  # noqa: F401  (and it how several threads of Python compute without OpenMP)

# isort: on
from ltr.data.queries import Queries
from ltr.diagnostics.optimality import Certificate, certify
from ltr.diagnostics.permutation import PermutationImportance, permutation_importance
from ltr.diagnostics.polish import Polished, polish
from ltr.diagnostics.why_above import WhyAbove, why_above
from ltr.linear.adarank import AdaRank
from ltr.linear.conditional import ConditionalModel
from ltr.linear.least_squares import LeastSquares
from ltr.linear.listwise import Listwise
from ltr.linear.query_fusion import QueryFusion
from ltr.linear.ranksvm import RankSVM
from ltr.linear.svmmap import SVMmap
from ltr.metrics.calibration import Confusion, calibrate, expected_labels
from ltr.metrics.conventions import Conventions
from ltr.metrics.evaluation import evaluate
from ltr.metrics.measure import MEASURES, Measure
from ltr.metrics.prediction_powered import Corrected, corrected
from ltr.nets.lambdarank import LambdaRank
from ltr.objectives.effective_pairs import Ledger, ledger
from ltr.objectives.lambda_objective import Objective
from ltr.objectives.preferences import Preferences
from ltr.objectives.terms import Schedule, Term
from ltr.objectives.unbiased import Unbiased
from ltr.rankers import saved
from ltr.rankers.average import Average
from ltr.rankers.base import Ranker
from ltr.rankers.column import Column
from ltr.rankers.combination import Combination, combine
from ltr.rankers.estimator import Estimator
from ltr.rankers.fusion import Fusion, WeightedFusion
from ltr.rankers.line_search import Mixtures, mix_scores
from ltr.rankers.saved import save
from ltr.rankers.tables import queries_from
from ltr.trees.binned import Binned
from ltr.trees.lambdamart import LambdaMART
from ltr.trees.rankboost import RankBoost

KINDS: dict[str, type[Ranker]] = {
    ranker.kind: ranker
    for ranker in (
        LambdaMART, LambdaRank, LeastSquares, Combination, ConditionalModel, RankSVM, RankBoost, SVMmap, AdaRank, Listwise, Column,
        Fusion, QueryFusion, WeightedFusion,
        Average,
    )
}  # fmt: skip
"""Every ranker by its name in configurations and model files."""

Model = Ranker
"""`Ranker` by its former name."""


def load(folder: str | Path) -> Ranker:
    """Loads the model that `ltr.save` wrote into `folder`; raises ValueError if it is damaged or was changed (`ltr.rankers.saved.load`)."""
    return saved.load(folder, KINDS)


def ensemble(copies: int | None = None, seed: int = 1, conventions: Conventions | None = None, folds: int | None = None) -> Average:
    """An average of four kinds of rankers with default parameters, with weights found on validation queries: LambdaMART, LambdaMART with linear
    gains, a linear net and a two-layer net. For when quality matters more than training time (`docs/results.md`).

    Args:
        copies: number of copies of each; None is 3, or 1 for each fold with `folds`.
        seed: random seed of the first copies.
        conventions: label rules.
        folds: number of parts of the training queries that take the place of validation queries: each stops and weighs the rankers that learn from
            the others (`Average`).
    """
    linear_gains = LambdaMART(objective=(Term("linear_ndcg"),), normalise="query")
    kinds = (LambdaMART(), linear_gains, LambdaRank(), LambdaRank(hidden=10))
    copies = copies if copies is not None else 1 if folds else 3
    return Average(kinds, copies=copies, selection=16, seed=seed, conventions=conventions or Conventions(), folds=folds)


__all__ = [
    "KINDS",
    "MEASURES",
    "AdaRank",
    "Average",
    "Binned",
    "Certificate",
    "Column",
    "Combination",
    "ConditionalModel",
    "Confusion",
    "Conventions",
    "Corrected",
    "Estimator",
    "Fusion",
    "LambdaMART",
    "LambdaRank",
    "LeastSquares",
    "Ledger",
    "Listwise",
    "Measure",
    "Mixtures",
    "Model",
    "Objective",
    "PermutationImportance",
    "Polished",
    "Preferences",
    "Queries",
    "QueryFusion",
    "RankBoost",
    "RankSVM",
    "Ranker",
    "SVMmap",
    "Schedule",
    "Term",
    "Unbiased",
    "WeightedFusion",
    "WhyAbove",
    "calibrate",
    "certify",
    "combine",
    "corrected",
    "ensemble",
    "evaluate",
    "expected_labels",
    "ledger",
    "load",
    "mix_scores",
    "permutation_importance",
    "polish",
    "queries_from",
    "save",
    "threads",
    "why_above",
]
