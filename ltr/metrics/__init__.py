"""Ranking measures and the statistics that compare them. Importing the package registers every measure, in the order of the table in
`docs/measures.md`."""

# isort: off
from ltr.metrics import dcg
from ltr.metrics import average_precision
from ltr.metrics import reciprocal_rank
from ltr.metrics import err
from ltr.metrics import precision
from ltr.metrics import auc
from ltr.metrics import pair_errors

# isort: on

__all__ = ["auc", "average_precision", "dcg", "err", "pair_errors", "precision", "reciprocal_rank"]
