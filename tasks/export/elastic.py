"""Trees as Elasticsearch's own learning to rank takes them, from 8.15 on: the body of ``PUT _ml/trained_models/NAME``.

A feature goes to the left of a split where it is ``lte`` the threshold, both in float64; a missing one goes where ``default_left`` says, and an
infinite one counts as missing (``TreeInferenceModel`` and ``Numbers.isValidDouble`` of Elasticsearch). The sum of the leaves, in float64, is the
document's score, in float32. eland writes the same trees of models of LightGBM and XGBoost; but the thresholds that it takes from XGBoost's table have
nine digits, so that a value on a threshold may go the other way.

A feature is the score of a query, its extractor, which a file says: JSON, a list of ``{"query_extractor": {"feature_name": …, "query": …}}`` as
in ``inference_config.learning_to_rank.feature_extractors``.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ltr
from ltr.data.arrays import few_of
from ltr.rankers.base import Json
from ltr.trees.ensemble import Trees, documents_below
from tasks.data.json_lines import read_json_file
from tasks.export.ensembles import grown_score
from tasks.records import DataError

_KIND = "query_extractor"
_EXAMPLE = '[{"query_extractor": {"feature_name": "title_bm25", "query": {"match": {"title": "{{query}}"}}}}, …]'


def elastic_body(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    """The body without extractors, which `with_extractors` puts in."""
    body = {
        "description": f"{name}: {ranker.kind}",
        "model_type": "tree_ensemble",
        "inference_config": {"learning_to_rank": {"feature_extractors": []}},
        "definition": {"preprocessors": [], "trained_model": elastic_ensemble(grown_score(ranker, "elastic"), ranker.names)},
    }
    return json.dumps(body, ensure_ascii=False)


def elastic_ensemble(trees: Trees, names: Sequence[str]) -> dict[str, Json]:
    """The trees as a ``trained_model``."""
    return {
        "ensemble": {
            "target_type": "regression",
            "feature_names": list(names),
            "trained_models": [{"tree": _tree(trees.between(k, k + 1), names)} for k in range(trees.n_trees)],
            "aggregate_output": {"weighted_sum": {"weights": [1.0] * trees.n_trees}},
        }
    }


def _tree(tree: Trees, names: Sequence[str]) -> Json:
    """Node k is the k-th split, leaf k stands behind all splits."""
    n, below, most = len(tree.feature), documents_below(tree), np.finfo(np.float64).max
    edges = np.clip(tree.threshold.astype(np.float64), -most, most)

    def child(number: int) -> int:
        return number if number >= 0 else n + ~number

    splits: list[Json] = [
        {
            "node_index": k,
            "split_feature": int(tree.feature[k]),
            "threshold": float(edges[k]),
            "decision_type": "lte",
            "default_left": bool(tree.missing_left[k]),
            "left_child": child(int(tree.left[k])),
            "right_child": child(int(tree.right[k])),
            "number_samples": int(below[k]),
        }
        for k in range(n)
    ]
    leaves: list[Json] = [
        {"node_index": n + k, "leaf_value": float(value), "number_samples": int(count)}
        for k, (value, count) in enumerate(zip(tree.value, tree.documents, strict=True))
    ]
    return {"target_type": "regression", "feature_names": list(names), "tree_structure": [*splits, *leaves]}


def with_extractors(body: str, path: Path | None, names: Sequence[str]) -> str:
    """The body with the extractors of a file, one for each feature.

    Raises:
        DataError: without a file, for one of another form, or where a feature has no extractor, two, or an extractor no feature.
    """
    if path is None:
        raise DataError(f"elastic: Elasticsearch needs a query for each feature: pass --extractors FILE, JSON: {_EXAMPLE}")
    written = read_json_file(path)
    if not isinstance(written, list):
        raise DataError(f"{path}: it must be a list of extractors: {_EXAMPLE}")
    named: dict[str, Json] = {}
    for number, one in enumerate(written):
        inside = one.get(_KIND) if isinstance(one, dict) and len(one) == 1 else None
        if (
            not isinstance(inside, dict)
            or not isinstance(inside.get("feature_name"), str)
            or not isinstance(inside.get("query"), dict)
        ):
            raise DataError(
                f"{path}: element {number}: {json.dumps(one, ensure_ascii=False)[:60]}: an extractor is one of {_EXAMPLE}"
            )
        if inside["feature_name"] in named:
            raise DataError(
                f"{path}: element {number}: feature {inside['feature_name']!r} has an extractor above; each feature must have one"
            )
        if inside["feature_name"] not in names:
            raise DataError(
                f"{path}: element {number}: the model has no feature {inside['feature_name']!r}; it has: {few_of(names)}"
            )
        named[inside["feature_name"]] = one
    if missing := [name for name in names if name not in named]:
        raise DataError(f"{path}: feature {missing[0]!r} has no extractor ({len(missing)} of {len(names)} features have none)")
    made = json.loads(body)
    made["inference_config"]["learning_to_rank"]["feature_extractors"] = [named[name] for name in names]
    return json.dumps(made, ensure_ascii=False)
