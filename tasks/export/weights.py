"""Weights by feature name: of linear rankers, and from files."""

import json
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
        ValueError: naming the line.
    """
    text = path.read_text()
    if text.lstrip().startswith("{"):
        return {str(name): float(weight) for name, weight in json.loads(text).items()}
    weights: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for part in line.split("#")[0].split() if ":" in line.split("#")[0] else [line.split("#")[0].strip()]:
            name, _, weight = part.partition(":" if ":" in part else ",")
            try:
                if part:
                    weights[f"f{int(name)}" if ":" in part else name.strip()] = float(weight)
            except ValueError:
                raise ValueError(f"line {number}: {part!r} is no weight; write name,weight or number:weight") from None
    return weights
