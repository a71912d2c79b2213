"""Weights by feature name: of linear rankers, and from files."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import ltr


def weights_of(ranker: ltr.Ranker) -> dict[str, float]:
    """Weights by feature name of a linear ranker or linear net, on the features as they are. A net's constant, which its standardising
    leaves, moves no ranking and is not among them.

    Raises:
        ValueError: for a ranker that is not linear.
    """
    weights = ranker.linear_weights
    if weights is None:
        raise ValueError(f"a ranker of the kind {ranker.kind} has no weights by feature")
    return dict(zip(ranker.names, weights.tolist(), strict=True))


def read_weights(path: Path) -> dict[str, float]:
    """Weights by feature name: a JSON object ``{"f1": 0.3}``, lines ``name,weight``, or RankLib's and SVM-rank's ``1:0.3 2:-1``
    (feature k is ``fk``; ``#`` begins a comment).

    Raises:
        ValueError: naming the line, for what is no weight, a feature that has two, and a file without any.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8: no weights, and no model of LightGBM or XGBoost") from None
    weights: dict[str, float] = {}
    for where, name, weight in _of_object(text) if text.lstrip().startswith("{") else _of_lines(text):
        if name in weights:
            raise ValueError(f"{where}: feature {name[:60]!r} has a weight already")
        if not math.isfinite(weight):
            raise ValueError(f"{where}: the weight of {name[:60]!r} is {weight:g}, which is not finite")
        weights[name] = weight
    if not weights:
        raise ValueError("no weights in it, and no model of LightGBM or XGBoost")
    return weights


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf|nan|Infinity|NaN)"
_Weight = tuple[str, str, float]
"""Where it stands, the feature, and its weight."""


def _of_object(text: str) -> Iterator[_Weight]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except RecursionError:
        raise ValueError("lists within lists, too deep to read") from None
    for name, weight in pairs:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or abs(weight) >= 1 << 1023:
            raise ValueError(
                f"{name[:60]!r}: {str(weight)[:40]} is not a weight; write {{name: weight, …}} (a saved model is named by its folder; of other tools, models of LightGBM and XGBoost are read)"
            )
        yield "JSON object", name, float(weight)


def _of_lines(text: str) -> Iterator[_Weight]:
    for number, line in enumerate(text.splitlines(), 1):
        own = line.split("#")[0]
        for part in own.split() if ":" in own else filter(None, [own.strip()]):
            match = re.fullmatch(rf"(\d{{1,9}}):({_NUMBER})" if ":" in part else rf"([^,]*[^,\s])\s*,\s*({_NUMBER})", part)
            if not match:
                raise ValueError(
                    f"line {number}: {part[:60]!r} is not a weight; write name,weight or number:weight (of other tools, models of LightGBM and XGBoost are read)"
                )
            yield f"line {number}", f"f{int(match[1])}" if ":" in part else match[1], float(match[2])
