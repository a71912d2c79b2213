"""What a run finds out beside means, one file a kind. Importing the package registers all of them, in the order in which the measures they
read stand in tables of values."""

# isort: off
from tasks.evidence.guarantee import Guarantee
from tasks.evidence.champion import Champion
from tasks.evidence.refit import Refit
from tasks.evidence.segments import Segments
from tasks.evidence.optimality import Optimality
from tasks.evidence.microscope import Microscope
from tasks.evidence.trace import Trace
from tasks.evidence.best_single import BestSingle
from tasks.evidence.corrected import Corrected

# isort: on

__all__ = ["BestSingle", "Champion", "Corrected", "Guarantee", "Microscope", "Optimality", "Refit", "Segments", "Trace"]
