"""What search engines make of an exported model: which formats they open, and what becomes of a feature that a document lacks.

OpenSearch's learning-to-rank plugin has changed that twice: up to 3.1 a missing feature arrived as 0; from 3.2 on it is missing, and was
sent to the right of every split whatever the model says, until 3.8 obeys the model. Its parser of XGBoost's own models came with 2.19.2.
(Pull requests 151, 206 and 379 of opensearch-project/opensearch-learning-to-rank-base; release notes of 3.8.0.)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ltr.trees import formats
from ltr.trees.ensemble import Trees

Version = tuple[int, ...]

_OPENSEARCH = {"opensearch": (2, 0), "xgboost": (2, 19, 2), "xgboost-dump": (2, 0), "ranklib": (2, 0), "linear": (2, 0)}
_OPENS: Mapping[str, Mapping[str, Version]] = {
    "opensearch": _OPENSEARCH,
    "elasticsearch": {"elastic": (8, 15)},
    "vespa": {"xgboost-dump": (), "lightgbm-dump": ()},
    "solr": {"solr": ()},
}
"""The formats that an engine opens, each with the first version that does."""
_VERSIONED = ("elasticsearch", "opensearch")
"""Engines of which the version matters."""
_BY_NODE, _AWARE = (3, 8), (3, 2)
"""First versions of OpenSearch that obey a model's rules for missing features, and that tell missing features from 0."""
_ARGUMENTS = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
_VESPA_FEATURE = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*(?:{_ARGUMENTS})?(?:\.[A-Za-z0-9_]+)*")
"""``popularity``, ``bm25(title)``, ``fieldMatch(title).completeness``."""
_VESPA_CALLS = (
    "acos|asin|atan2?|avg|bit|ceil|cosh?|count|elu|erf|exp|fabs|floor|fmod|hamming|if|isNan|join|ldexp|log|log10|map|max|median|min|pow|prod|reduce|relu|"
    "sigmoid|sinh?|sqrt|sum|tanh?"
)
_VESPA_WORD = re.compile(rf"true|false|({_VESPA_CALLS})\(.*")
"""What its grammar reads before features: constants, and functions of features, as in ``log(popularity)``."""


@dataclass(frozen=True)
class Engine:
    """A search engine, and its version where that matters."""

    name: str
    version: Version = ()

    @classmethod
    def of(cls, written: str) -> "Engine":
        """Reads ``vespa``, ``opensearch-2.19``.

        Raises:
            ValueError: listing the known ones.
        """
        match = re.fullmatch(r"([a-z]+)(?:-(\d+(?:\.\d+){0,2}))?", written)
        if match is None or match[1] not in _OPENS or (match[1] in _VERSIONED) != (match[2] is not None):
            versioned = ", ".join(f"{name}-VERSION" for name in _VERSIONED)
            raise ValueError(
                f"engine {written!r} is unknown; choose from: {versioned} (opensearch-2.19), {', '.join(sorted(_OPENS.keys() - set(_VERSIONED)))}"
            )
        return cls(match[1], tuple(int(part) for part in (match[2] or "").split(".") if part))

    def __str__(self) -> str:
        """As it is written."""
        return "-".join((self.name, ".".join(map(str, self.version)))).rstrip("-")

    def require(self, to: str) -> None:
        """Checks that the engine opens a format.

        Raises:
            ValueError: naming those that it opens.
        """
        opens = _OPENS[self.name]
        able = [name for name, first in opens.items() if not self._before(first)]
        if to not in able:
            since = f", {to} from {'.'.join(map(str, opens[to]))} on" if to in opens else ""
            raise ValueError(f"{self} opens {', '.join(able) or 'none of these formats'}{since}")

    def _before(self, first: Version) -> bool:
        """Whether the version is an earlier one; 2.19 may be any 2.19, the latest too."""
        return self.version < first[: len(self.version)]

    def check_missing(self, trees: Trees, names: tuple[str, ...], to: str) -> None:
        """Checks that the engine sends documents without a feature where the trees send them.

        Raises:
            ValueError: naming the first split for which it does not.
        """
        if self.name == "opensearch" and to != "ranklib" and self._before(_BY_NODE):
            formats.check_complete(trees, names, str(self))

    def check_conditions(self, trees: Trees, to: str) -> None:
        """Checks that the engine reads the splits: JSON has no infinite ones, by which a tree tells missing values from all others.

        Raises:
            ValueError: naming the format that has them finite.
        """
        if self.name == "opensearch" and to == "xgboost" and np.isinf(trees.threshold).any():
            raise ValueError(f"{self} does not support infinite split conditions, which these trees have: use opensearch")

    def check_names(self, trees: Trees, names: tuple[str, ...]) -> None:
        """Checks that the engine takes the names that trees split by for features. Vespa writes them into an expression as they are: ``2 < 0.5`` there
        is a comparison of two numbers, ``price-usd < 9`` asks for a difference, and ``log(price) < 9`` for the logarithm of a feature ``price``.

        Raises:
            ValueError: naming the first that is none.
        """
        split = [names[feature] for feature in np.unique(trees.feature)]
        strange = [name for name in split if not _VESPA_FEATURE.fullmatch(name) or _VESPA_WORD.fullmatch(name)]
        if self.name == "vespa" and strange:
            raise ValueError(
                f"{self} would read {strange[0]!r} as an expression and not as a feature, such as popularity, bm25(title) or fieldMatch(title).completeness; "
                "rename it"
            )

    @property
    def remark(self) -> str:
        """What becomes of a missing feature, in words; empty where models say it themselves."""
        if self.name == "solr":
            return "Solr takes 0 for a feature that a document lacks"
        if self.name != "opensearch" or not self._before(_BY_NODE):
            return ""
        if self._before(_AWARE):
            return f"{self} takes 0 for a feature that a document lacks, whatever the model does with missing ones (it follows the model from 3.8 on)"
        return f"{self} sends a document that lacks a feature to the right of every split, whatever the model does (it follows the model from 3.8 on)"
