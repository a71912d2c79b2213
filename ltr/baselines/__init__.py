"""The rankers that others are held against, trained here and selected alike."""

from ltr.baselines.adarank import AdaRank
from ltr.baselines.listwise import Listwise
from ltr.baselines.rankboost import RankBoost
from ltr.baselines.ranksvm import RankSVM
from ltr.baselines.svmmap import SVMmap

__all__ = ["AdaRank", "Listwise", "RankBoost", "RankSVM", "SVMmap"]
