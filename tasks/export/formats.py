"""Rankers in other tools' formats, checked by the tools' own readers.

A ranker is exported only into a format that can say it; what a format says differently (float32 leaves, a constant that moves no ranking)
is remarked. `verify` opens the file with the format's own reader and compares scores. A format is one entry of `FORMATS`.

References: ``model/linear`` and ``model/ranklib`` of the Elasticsearch and OpenSearch learning-to-rank plugins; ``LinearModel`` and
``MultipleAdditiveTreesModel`` of Solr.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.data.offsets import group_of_rows
from ltr.trees import dumps, formats
from ltr.trees.ensemble import Trees
from tasks.export.elastic import elastic_body, with_extractors
from tasks.export.engines import Engine
from tasks.export.ensembles import Writer, grown_score, trees_of, whole_score
from tasks.export.onnx_graphs import imputing_nodes, linear_nodes, net_nodes, onnx_scores, onnx_writer, package, tree_nodes
from tasks.export.ubjson import XGBOOST_ARRAYS, write_ubjson
from tasks.export.weights import weights_of
from tasks.records import DataError
from tasks.store.state import written_whole

ELASTIC = "elastic"
"""The format that needs to be told what its features are."""
Scores = Callable[[Path, NDArray[np.float32], tuple[str, ...]], NDArray[Any]]


@dataclass(frozen=True)
class Format:
    """A way to write rankers down.

    Attributes:
        about: what opens it.
        writers: by the form of a ranker (`form_of`), what the file holds.
        scores: by the format's own reader, where that is a package of Python: ``(path, features, names) → [documents]``.
    """

    about: str
    writers: Mapping[str, Writer]
    scores: Scores | None = None


@dataclass(frozen=True)
class Agreement:
    """How the scores of a file, by the format's own reader, compare with the model's.

    Attributes:
        documents: how many were scored.
        largest_difference: max |score of the file − score of the model|; infinity where only one of them is NaN.
        reordered: queries whose ranking, equal scores as they stand, is another.
    """

    documents: int
    largest_difference: float
    reordered: int


def form_of(ranker: ltr.Ranker) -> str:
    """The form that formats tell rankers apart by (`ltr.Ranker.export_form`), or the kind of a ranker that has none."""
    return ranker.export_form or ranker.kind


def export(
    ranker: ltr.Ranker, path: str | Path, to: str, complete: bool = False, engine: str | None = None, extractors: Path | None = None
) -> None:
    """Writes a fitted ranker to `path` as the format `to`, a key of `FORMATS`; the file is there whole or not at all.

    Args:
        complete: there will be no missing values. Formats that do not know any (`ranklib`, `solr`) then leave out what the trees do with
            them; otherwise they refuse trees that have a rule for them. A node that was grown without missing values has none, unless
            it was imported or is one of RankBoost's.
        engine: what is to open it (`tasks.export.engines`); what that cannot open, or reads in another way, is refused.
        extractors: the file that says which query each feature is the score of, for ``elastic`` (`tasks.export.elastic`).

    Raises:
        DataError: for an unknown format or engine, one that cannot hold the ranker, a folder that is not there, a package that is missing, or
            extractors that are not those of the features.
    """
    path = Path(path)
    written = _written(ranker, path, to, complete)
    if to == ELASTIC:
        written = with_extractors(str(written), extractors, ranker.names)
    elif extractors is not None:
        raise DataError(f"{extractors}: extractors are of the format {ELASTIC}, and this is {to}")
    if engine is not None:
        _require_engine(ranker, path, to, complete, engine)
    if not path.parent.is_dir():
        raise DataError(f"{path}: no such folder {path.parent}")
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it")
    try:
        with written_whole(path) as partial:
            partial.write_bytes(written if isinstance(written, bytes) else written.encode())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def _require_holds(ranker: ltr.Ranker, path: Path, to: str) -> None:
    """Raises DataError for a format that cannot hold the ranker."""
    format, form = _format(path, to), form_of(ranker)
    if form not in format.writers:
        able = [name for name, other in FORMATS.items() if form in other.writers]
        raise DataError(
            f"{path}: {to} can express {', '.join(format.writers)}, but not this ranker ({ranker.kind}: {form}); "
            + (f"choose from: {', '.join(able)}" if able else "no format can")
        )


def _written(ranker: ltr.Ranker, path: Path, to: str, complete: bool) -> str | bytes:
    if not ranker.names:
        raise DataError(f"{path}: this model is not fitted")
    _require_holds(ranker, path, to)
    try:
        _check_float32(ranker, to)
        return FORMATS[to].writers[form_of(ranker)](ranker, path.stem, complete)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    except RecursionError:
        raise DataError(f"{path}: {to} writes a node within its parent, and a tree of this model is too deep for that") from None


def _check_float32(ranker: ltr.Ranker, to: str) -> None:
    """Raises ValueError for a leaf or weight that is infinite to a format that keeps them in float32."""
    if _leaves_in_float32(ranker, to):
        kept, what = trees_of(ranker).value, "leaf"
    elif _weights_in_float32(ranker, to):
        kept, what = np.array(list(weights_of(ranker).values())), "weight"
    else:
        return
    for beyond in kept[np.abs(kept) > formats.LARGEST][:1]:
        raise ValueError(f"a {what} of the model is {beyond:g}, and {to} keeps them in float32, up to {formats.LARGEST:g}")


def _leaves_in_float32(ranker: ltr.Ranker, to: str) -> bool:
    return form_of(ranker) in _TREES and to not in ("lightgbm", "lightgbm-dump", ELASTIC)


def _weights_in_float32(ranker: ltr.Ranker, to: str) -> bool:
    return form_of(ranker) not in _TREES and to in ("solr", "opensearch")


def _require_engine(ranker: ltr.Ranker, path: Path, to: str, complete: bool, engine: str) -> None:
    try:
        opens = Engine.of(engine)
        opens.require(to)
        if form_of(ranker) == "trees of categories":
            raise ValueError(f"{opens} reads no splits by categories; train without them (data.ignore)")
        if form_of(ranker) == "trees":
            opens.check_names(trees_of(ranker), ranker.names)
            opens.check_conditions(trees_of(ranker), to)
        if form_of(ranker) == "trees" and not complete:
            opens.check_missing(trees_of(ranker), ranker.names, to)
    except ValueError as error:
        raise DataError(f"{path}: {error}{' (--complete)' if 'missing' in str(error) else ''}") from None


def _format(path: Path, to: str) -> Format:
    if to not in FORMATS:
        raise DataError(f"{path}: unknown format {to!r}; choose from: {', '.join(FORMATS)}")
    return FORMATS[to]


def verify(
    ranker: ltr.Ranker, path: str | Path, to: str, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
) -> Agreement:
    """Scores ``features float32 [documents, features]`` by the file's own reader and by the model.

    Args:
        offsets: ``[queries + 1]``, where the queries begin; left out, all documents are one query's.

    Raises:
        DataError: for a format whose reader is no package of Python, a package that is missing, or a file that it does not open.
    """
    path, features = Path(path), np.ascontiguousarray(features, np.float32)
    reader = _format(path, to).scores
    if reader is None:
        raise DataError(f"{path}: {to} is read by {FORMATS[to].about}; there is no reader to verify it with here")
    try:
        theirs = np.asarray(reader(path, features, ranker.names), np.float64).ravel()
    except DataError:
        raise
    except Exception as error:  # Each reader has errors of its own.
        raise DataError(f"{path}: {to}'s reader does not score it: {str(error).splitlines()[0]}") from None
    ours = ranker.predict(features)
    query = group_of_rows(np.array([0, len(ours)]) if offsets is None else offsets)
    differs = np.lexsort((-ours, query)) != np.lexsort((-theirs, query))
    differences = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, np.nan_to_num(np.abs(ours - theirs), nan=np.inf))
    return Agreement(len(ours), float(differences.max(initial=0.0)), len(np.unique(query[differs])))


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path, format: of the file.
        about: what opens it.
        kind, form, features: of the ranker.
        trees: None where there are none.
        bytes: of the file.
        remarks: what the format says differently.
        verified: how the scores of a sample agree, None where there was none or no reader for it.
    """

    path: str
    format: str
    about: str
    kind: str
    form: str
    features: int
    trees: int | None
    bytes: int
    remarks: tuple[str, ...]
    verified: Agreement | None


def export_to(
    ranker: ltr.Ranker,
    path: str | Path,
    to: str,
    sample: ltr.Queries | None = None,
    complete: bool = False,
    engine: str | None = None,
    extractors: Path | None = None,
) -> Exported:
    """Exports as `export` does, verifies on `sample` where there is a reader, and says what was done.

    Raises:
        DataError: as `export` and `verify` do.
    """
    path = Path(path)
    _require_holds(ranker, path, to)
    if sample is not None and not complete and _no_missing_values(ranker, to, complete) and np.isnan(sample.features).any():
        row, column = np.argwhere(np.isnan(sample.features))[0]
        raise DataError(
            f"{path}: row {row + 1} of the data has no {ranker.names[column]}, and {to} does not support missing values: it would take 0 there "
            f"and score differently (--complete: no feature will be missing)"
        )
    export(ranker, path, to, complete, engine, extractors)
    remarks = [rule for rule in (remark(ranker, to, complete) for remark in _REMARKS) if rule]
    said = Engine.of(engine).remark if engine is not None else _by_version(ranker, to)
    remarks = [*filter(None, (said, _ending(path, to))), *remarks]
    verified = None
    if sample is not None and FORMATS[to].scores is None:
        remarks.append(f"not verified: {to} is read by {FORMATS[to].about}")
    elif sample is not None:
        verified = verify(ranker, path, to, sample.features, sample.offsets)
    form = form_of(ranker)
    return Exported(
        path=str(path),
        format=to,
        about=FORMATS[to].about,
        kind=ranker.kind,
        form=form,
        features=len(ranker.names),
        trees=trees_of(ranker).n_trees if form == "trees" else None,
        bytes=path.stat().st_size,
        remarks=tuple(remarks),
        verified=verified,
    )


def told_categories(categories: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
    """Sentences for the features whose values are the places of categories in a list: no format has the list, and the other tool is to be given
    these numbers."""
    told = []
    for name in names:
        own = categories.get(name, ())
        if own and [str(place) for place in range(len(own))] != list(own):
            shown = ", ".join(f"{place} for {category}" for place, category in enumerate(own[:5]))
            more = ", … (in the order of the model's list)" if len(own) > 5 else ""
            told.append(f"the file expects {name!r} as numbers: {shown}{more}")
    return told


def _nothing_learned(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    empty = form_of(ranker) == "trees" and trees_of(ranker).n_trees == 0
    return "the model has no trees (no split gained anything in training): all documents score alike" if empty else ""


def _narrow_leaves(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    told = f"{to} keeps leaves and sums them in float32: scores agree to about six digits"
    return told if _leaves_in_float32(ranker, to) else ""


def _narrow_sums(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    told = f"{to} keeps weights and sums in float32: documents whose scores nearly tie may change ranks"
    return told if _weights_in_float32(ranker, to) else ""


def _numbered_features(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    first, last = ranker.names[0], ranker.names[-1]
    return f"features are numbered: 1 = {first!r} … {len(ranker.names)} = {last!r}" if to == "ranklib" else ""


def _no_missing_values(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    silent = to in ("ranklib", "solr", "linear") or (to == "opensearch" and form_of(ranker) != "trees")
    return f"{to} does not support missing values: give every feature of every document" if silent else ""


def _without_constant(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    dropped = form_of(ranker) == "linear net" and to in ("linear", "solr", "opensearch")
    return (
        "weights of unscaled features, without a constant that the net adds to every score: rankings are the same if no feature is missing"
        if dropped
        else ""
    )


def _moved_thresholds(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    shift = formats.solr_shift(trees_of(ranker)) if form_of(ranker) == "trees" and to == "solr" else 0.0
    return f"because Solr adds 1e-6, thresholds are accurate only to {shift:.1e}" if shift else ""


def _by_version(ranker: ltr.Ranker, to: str) -> str:
    told = form_of(ranker) == "trees" and to == "opensearch"
    versions = (
        "below 3.2 take 0 for a feature that a document lacks, 3.2 to 3.7 send it right, later ones follow the model (--engine)"
    )
    return f"versions of OpenSearch {versions}" if told else ""


def _ending(path: Path, to: str) -> str:
    ending = {"xgboost": ".json", "xgboost-ubj": ".ubj"}.get(to, path.suffix)
    return (
        f"XGBoost tells its formats apart by the end of a file's name: rename it to {path.stem}{ending}"
        if path.suffix != ending
        else ""
    )


def _of_queries(ranker: ltr.Ranker, to: str, complete: bool) -> str:
    what = "a document that an extractor's query does not match has its default_score, or lacks the feature where it has none"
    return f"{what}; scores are rounded to float32" if to == ELASTIC else ""


_REMARKS = (
    _nothing_learned,
    _narrow_leaves,
    _narrow_sums,
    _of_queries,
    _numbered_features,
    _no_missing_values,
    _without_constant,
    _moved_thresholds,
)


def _complete_trees(ranker: ltr.Ranker, to: str, complete: bool) -> Trees:
    trees = whole_score(ranker, to)
    if not complete:
        try:
            formats.check_complete(trees, ranker.names, to)
        except ValueError as error:
            raise ValueError(f"{error} (--complete)") from None
    return trees


def _lightgbm(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return formats.lightgbm_text(whole_score(ranker, "lightgbm"), ranker.names)


def _xgboost(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(formats.xgboost_document(whole_score(ranker, "xgboost"), ranker.names), ensure_ascii=False)


def _xgboost_ubj(ranker: ltr.Ranker, name: str, complete: bool) -> bytes:
    return write_ubjson(formats.xgboost_document(whole_score(ranker, "xgboost-ubj"), ranker.names), XGBOOST_ARRAYS)


def _xgboost_dump(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(dumps.xgboost_dump(grown_score(ranker, "xgboost-dump"), ranker.names), ensure_ascii=False)


def _lightgbm_dump(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(dumps.lightgbm_dump(grown_score(ranker, "lightgbm-dump"), ranker.names), ensure_ascii=False)


def _opensearch_trees(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    splits = dumps.xgboost_dump(grown_score(ranker, "opensearch"), ranker.names)
    return _stored(name, "model/xgboost+json", {"objective": "rank:ndcg", "splits": splits})


def _opensearch_linear(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return _stored(name, "model/linear", weights_of(ranker))


def _stored(name: str, kind: str, definition: Any) -> str:
    """The body of ``POST _ltr/_featureset/SET/_createmodel``; the definition is JSON in a text."""
    model = {"type": kind, "definition": json.dumps(definition, ensure_ascii=False)}
    return json.dumps({"model": {"name": name, "model": model}}, ensure_ascii=False)


def _ranklib(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return formats.ranklib_text(_complete_trees(ranker, "ranklib", complete), ranker.names)


def _solr_trees(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(formats.solr_trees(_complete_trees(ranker, "solr", complete), ranker.names, name), indent=1)


def _solr_linear(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(formats.solr_linear(weights_of(ranker), name), indent=1)


def _linear(ranker: ltr.Ranker, name: str, complete: bool) -> str:
    return json.dumps(weights_of(ranker), indent=1)


def _lightgbm_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    lightgbm = package("lightgbm")
    return np.asarray(lightgbm.Booster(model_file=str(path)).predict(features, raw_score=True))


def _xgboost_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    xgboost = package("xgboost")
    data = xgboost.DMatrix(features, feature_names=list(names))
    booster = xgboost.Booster()
    booster.load_model(bytearray(path.read_bytes()))  # read for what it is, whatever it is called: `_ending` says how it should be
    return np.asarray(booster.predict(data, output_margin=True))


_TREES = ("trees", "trees of categories")
_NET, _WEIGHTS = onnx_writer(net_nodes), {"linear": _linear, "linear net": _linear}

FORMATS: dict[str, Format] = {
    "lightgbm": Format("lightgbm.Booster(model_file=…)", {**dict.fromkeys(_TREES, _lightgbm)}, _lightgbm_scores),
    "xgboost": Format("xgboost.Booster(model_file=…)", {**dict.fromkeys(_TREES, _xgboost)}, _xgboost_scores),
    "xgboost-ubj": Format("xgboost.Booster(model_file='….ubj')", {**dict.fromkeys(_TREES, _xgboost_ubj)}, _xgboost_scores),
    "xgboost-dump": Format("Vespa's xgboost(…), and model/xgboost+json of Elasticsearch and OpenSearch", {"trees": _xgboost_dump}),
    "lightgbm-dump": Format("Vespa's lightgbm(…)", {"trees": _lightgbm_dump}),
    "opensearch": Format(
        "_ltr/_featureset/SET/_createmodel of OpenSearch",
        {"trees": _opensearch_trees, "linear": _opensearch_linear, "linear net": _opensearch_linear},
    ),
    ELASTIC: Format("PUT _ml/trained_models/NAME of Elasticsearch (from 8.15 on)", {"trees": elastic_body}),
    "ranklib": Format("RankLib's -load, and model/ranklib of Elasticsearch and OpenSearch", {"trees": _ranklib}),
    "solr": Format(
        "the model store of Solr", {"trees": _solr_trees, "linear": _solr_linear, "linear net": _solr_linear}
    ),
    "linear": Format("model/linear of Elasticsearch and OpenSearch", _WEIGHTS),
    "onnx": Format(
        "onnxruntime.InferenceSession(…)",
        {"trees": onnx_writer(tree_nodes), "linear": onnx_writer(linear_nodes), "linear net": _NET, "two-layer net": _NET,
         "linear with imputation": onnx_writer(imputing_nodes)},
        onnx_scores,
    ),
}  # fmt: skip
"""Every format by the name `export` calls it."""
