"""Rankers for other tools, and ensembles of other tools as rankers: files and the tools' own readers around `ltr.trees.formats`.

A model is exported only into a format that can say it; what a format says differently (float32 leaves, a constant that moves no ranking)
is told. `verify` opens the file with the format's own reader and compares scores. Imported trees are a `ltr.LambdaMART` like any other:
certificates, the microscope and comparisons work on them.

References: ``model/linear`` and ``model/ranklib`` of the Elasticsearch and OpenSearch learning-to-rank plugins; ``LinearModel`` and
``MultipleAdditiveTreesModel`` of Solr; ``TreeEnsembleRegressor`` of ai.onnx.ml 3 and ``Gemm`` of ai.onnx 13.
"""

import importlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ltr
from ltr.linear.linear_ranker import LinearRanker
from ltr.trees import formats
from ltr.trees.ensemble import Trees
from tasks import store
from tasks.ingest import DataError

Scores = Callable[[Path, NDArray[np.float32], tuple[str, ...]], NDArray[Any]]
Writer = Callable[[Any, str, bool], str | bytes]
"""``writer(model, name, complete)``: what the file holds; `name` is that of the file without its suffix."""
_EXTRA = {"onnx": "lambdaflow[export]", "onnxruntime": "lambdaflow[export]", "xgboost": "xgboost-cpu"}


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

    @property
    def same_ranking(self) -> bool:
        return self.reordered == 0


def form_of(model: ltr.Ranker) -> str:
    """``trees``, ``linear``, ``linear net``, ``two-layer net``, or the kind of a ranker that is none of these."""
    forms = {
        "trees": isinstance(getattr(model, "trees", None), Trees),
        "linear": isinstance(model, LinearRanker | ltr.Combination),
        "linear net": isinstance(model, ltr.LambdaRank) and model.hidden == 0,
        "two-layer net": isinstance(model, ltr.LambdaRank) and model.hidden > 0,
    }
    return next((form for form, holds in forms.items() if holds), model.kind)


def weights_of(model: Any) -> dict[str, float]:
    """Weights by feature name of a linear ranker or linear net, on the features as they are. A net's constant, which its standardising
    leaves, moves no ranking and is not among them."""
    if isinstance(model, ltr.LambdaRank):
        assert model.weights is not None
        assert model.scaling is not None
        weights = model.weights.outer[0] * model.weights.inner[0] / model.scaling[1]
    elif isinstance(model, ltr.Combination):
        assert model.alpha is not None
        weights = np.array([1 - model.alpha, model.alpha])
    else:
        weights = model.weights
    return dict(zip(model.names, weights.tolist(), strict=True))


def export(model: ltr.Ranker, path: str | Path, to: str, complete: bool = False) -> None:
    """Writes a fitted ranker to `path` as the format `to`, a key of `FORMATS`; the file is there whole or not at all.

    Args:
        complete: there will be no missing values. Formats that do not know any (`ranklib`, `solr`) then leave out what the trees do with
            them; otherwise they refuse trees that have a rule for them. A node that was grown without missing values has none, unless
            it was imported or is one of RankBoost's.

    Raises:
        DataError: for an unknown format, one that cannot hold the ranker, a folder that is not there, or a package that is missing.
    """
    path = Path(path)
    written = _written(model, path, to, complete)
    if not path.parent.is_dir():
        raise DataError(f"{path}: no such folder {path.parent}")
    try:
        with store.written_whole(path) as partial:
            partial.write_bytes(written if isinstance(written, bytes) else written.encode())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def _written(model: ltr.Ranker, path: Path, to: str, complete: bool) -> str | bytes:
    if not model.names:
        raise DataError(f"{path}: this model is not fitted")
    format, form = _format(path, to), form_of(model)
    if form not in format.writers:
        able = [name for name, other in FORMATS.items() if form in other.writers]
        raise DataError(
            f"{path}: {to} holds {', '.join(format.writers)}, and this ranker ({model.kind}) is of the form {form!r}; "
            + (f"formats that hold it: {', '.join(able)}" if able else "no format holds it")
        )
    try:
        return format.writers[form](model, path.stem, complete)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def _format(path: Path, to: str) -> Format:
    if to not in FORMATS:
        raise DataError(f"{path}: unknown format {to!r}; known: {', '.join(FORMATS)}")
    return FORMATS[to]


def verify(
    model: ltr.Ranker, path: str | Path, to: str, features: NDArray[np.float32], offsets: NDArray[np.int64] | None = None
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
        theirs = np.asarray(reader(path, features, model.names), np.float64).ravel()
    except DataError:
        raise
    except Exception as error:  # Each reader has errors of its own.
        raise DataError(f"{path}: {to}'s reader does not score it: {str(error).splitlines()[0]}") from None
    ours = model.predict(features)
    starts = np.array([0, len(ours)]) if offsets is None else offsets
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    differs = np.lexsort((-ours, query)) != np.lexsort((-theirs, query))
    differences = np.where(np.isnan(ours) & np.isnan(theirs), 0.0, np.nan_to_num(np.abs(ours - theirs), nan=np.inf))
    return Agreement(len(ours), float(differences.max(initial=0.0)), len(np.unique(query[differs])))


def export_to(
    model: ltr.Ranker, path: str | Path, to: str, sample: ltr.Queries | None = None, complete: bool = False
) -> dict[str, Any]:
    """Exports as `export` does, verifies on `sample` where there is a reader, and says what was done.

    Returns:
        ``path``, ``format``, ``about`` (what opens it), ``kind``, ``form``, ``features``, ``trees`` (None where there are none),
        ``bytes``, ``remarks`` (what the format says differently), and ``verified``: ``documents``, ``largest_difference`` and
        ``reordered`` queries of the sample, or None.

    Raises:
        DataError: as `export` and `verify` do.
    """
    path = Path(path)
    export(model, path, to, complete)
    remarks = [rule for rule in (told(model, to, complete) for told in _REMARKS) if rule]
    verified = None
    if sample is not None and FORMATS[to].scores is None:
        remarks.append(f"not verified: {to} is read by {FORMATS[to].about}")
    elif sample is not None:
        verified = dict(vars(verify(model, path, to, sample.features, sample.offsets)))
    trees = getattr(model, "trees", None)
    return {
        "path": str(path),
        "format": to,
        "about": FORMATS[to].about,
        "kind": model.kind,
        "form": form_of(model),
        "features": len(model.names),
        "trees": trees.n_trees if trees is not None else None,
        "bytes": path.stat().st_size,
        "remarks": remarks,
        "verified": verified,
    }


# --- what a format says differently -------------------------------------------------------------------------------------


def _narrow_leaves(model: Any, to: str, complete: bool) -> str:
    narrow = form_of(model) == "trees" and to != "lightgbm"
    return f"{to} keeps leaves and sums them in float32: scores agree to about six digits" if narrow else ""


def _numbered_features(model: Any, to: str, complete: bool) -> str:
    first, last = model.names[0], model.names[-1]
    return f"features by number: 1 is {first!r}, {len(model.names)} is {last!r}" if to == "ranklib" else ""


def _no_missing_values(model: Any, to: str, complete: bool) -> str:
    silent = to in ("ranklib", "solr", "linear")
    return f"{to} knows no missing values: every document must bring every feature" if silent else ""


def _without_constant(model: Any, to: str, complete: bool) -> str:
    dropped = form_of(model) == "linear net" and to in ("linear", "solr")
    return "the net's scores less a constant, on features as they are: the rankings are the same" if dropped else ""


def _moved_thresholds(model: Any, to: str, complete: bool) -> str:
    shift = formats.solr_shift(model.trees) if form_of(model) == "trees" and to == "solr" else 0.0
    return f"Solr adds 1e-6 to thresholds, which lets it meet these to {shift:.1e} only" if shift else ""


_REMARKS = (_narrow_leaves, _numbered_features, _no_missing_values, _without_constant, _moved_thresholds)


# --- writers ------------------------------------------------------------------------------------------------------------


def _trees(model: Any, to: str) -> Trees:
    """The ensemble, which is the whole score."""
    if getattr(model, "base", None) is not None:
        raise ValueError(f"the scores of base {model.base!r} are added to the trees', which {to} cannot say; onnx can")
    trees: Trees = model.trees
    return trees


def _complete_trees(model: Any, to: str, complete: bool) -> Trees:
    trees = _trees(model, to)
    if not complete:
        formats.check_complete(trees, model.names, to)
    return trees


def _lightgbm(model: Any, name: str, complete: bool) -> str:
    return formats.lightgbm_text(_trees(model, "lightgbm"), model.names)


def _xgboost(model: Any, name: str, complete: bool) -> str:
    return json.dumps(formats.xgboost_document(_trees(model, "xgboost"), model.names), ensure_ascii=False)


def _ranklib(model: Any, name: str, complete: bool) -> str:
    return formats.ranklib_text(_complete_trees(model, "ranklib", complete), model.names)


def _solr_trees(model: Any, name: str, complete: bool) -> str:
    return json.dumps(formats.solr_trees(_complete_trees(model, "solr", complete), model.names, name), indent=1)


def _solr_linear(model: Any, name: str, complete: bool) -> str:
    return json.dumps(formats.solr_linear(weights_of(model), name), indent=1)


def _linear(model: Any, name: str, complete: bool) -> str:
    return json.dumps(weights_of(model), indent=1)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise DataError(f"the package {name} is not installed: pip install {_EXTRA.get(name, name)}") from None


def _onnx(nodes: Callable[[Any, Any], tuple[list[Any], dict[str, NDArray[Any]], Any]]) -> Writer:
    """A writer of the graph whose nodes ``nodes(model, helper)`` lists with their constants and the type of the score."""

    def write(model: Any, name: str, complete: bool) -> bytes:
        onnx = _package("onnx")
        helper = onnx.helper
        listed, constants, dtype = nodes(model, helper)
        taken = helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["documents", len(model.names)])
        given = helper.make_tensor_value_info("score", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["documents", 1])
        tensors = [onnx.numpy_helper.from_array(array, key) for key, array in constants.items()]
        graph = helper.make_graph(listed, name, [taken], [given], tensors)
        versions = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)]
        made = helper.make_model(graph, opset_imports=versions, producer_name="lambdaflow", ir_version=8)
        helper.set_model_props(made, {"feature_names": json.dumps(list(model.names)), "digest": model.digest})
        onnx.checker.check_model(made)
        return bytes(made.SerializeToString())

    return write


def _onnx_trees(model: Any, helper: Any) -> tuple[list[Any], dict[str, NDArray[Any]], Any]:
    """A tree's leaves are numbered behind its nodes. Without a base the ensemble is the score."""
    trees: Trees = model.trees
    base = getattr(model, "base", None)
    n_nodes, n_leaves = np.diff(trees.node_starts), np.diff(trees.leaf_starts)
    tree_of_node, tree_of_leaf = (np.repeat(np.arange(trees.n_trees), sizes) for sizes in (n_nodes, n_leaves))
    node = np.arange(len(trees.feature)) - trees.node_starts[tree_of_node]
    leaf = np.arange(len(trees.value)) - trees.leaf_starts[tree_of_leaf] + n_nodes[tree_of_leaf]
    left, right = (np.where(c >= 0, c, n_nodes[tree_of_node] + ~c) for c in (trees.left, trees.right))
    trees_of = np.concatenate((tree_of_node, tree_of_leaf))
    # onnxruntime takes every change of the tree for a root: a tree's nodes and leaves must stand together.
    order = np.argsort(trees_of, kind="stable")

    def of_all(of_nodes: NDArray[Any], of_leaves: Any = 0) -> list[Any]:
        return np.concatenate((of_nodes, np.broadcast_to(of_leaves, len(leaf))))[order].tolist()

    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["features"],
        ["score" if base is None else "trees"],
        domain="ai.onnx.ml",
        aggregate_function="SUM",
        n_targets=1,
        nodes_treeids=trees_of[order].tolist(),
        nodes_nodeids=of_all(node, leaf),
        nodes_modes=of_all(np.full(len(node), "BRANCH_LEQ"), "LEAF"),
        nodes_featureids=of_all(trees.feature),
        nodes_values=of_all(trees.threshold.astype(np.float64)),
        nodes_missing_value_tracks_true=of_all(trees.missing_left.astype(np.int64)),
        nodes_truenodeids=of_all(left),
        nodes_falsenodeids=of_all(right),
        target_ids=[0] * len(leaf),
        target_treeids=tree_of_leaf.tolist(),
        target_nodeids=leaf.tolist(),
        target_weights=trees.value.tolist(),
    )
    if base is None:
        return [ensemble], {}, np.float32
    added = [
        helper.make_node("Gather", ["features", "base"], ["start"], axis=1),
        helper.make_node("Add", ["start", "trees"], ["score"]),
    ]
    return [ensemble, *added], {"base": np.array([model.names.index(base)])}, np.float32


def _onnx_linear(model: Any, helper: Any) -> tuple[list[Any], dict[str, NDArray[Any]], Any]:
    """In float64, as here."""
    weights = np.array(list(weights_of(model).values()), np.float64)[:, None]
    nodes = [
        helper.make_node("Cast", ["features"], ["wide"], to=helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))),
        helper.make_node("Gemm", ["wide", "weights"], ["score"]),
    ]
    return nodes, {"weights": weights}, np.float64


def _onnx_net(model: Any, helper: Any) -> tuple[list[Any], dict[str, NDArray[Any]], Any]:
    """Standardised as here, a missing value being the mean; then in float64, where the net sums its inputs in float32."""
    assert model.weights is not None
    assert model.scaling is not None
    float32, float64 = (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for dtype in (np.float32, np.float64))
    inner = model.weights.inner.astype(np.float32).astype(np.float64)
    constants = {"mean": model.scaling[0], "deviation": model.scaling[1], "zero": np.zeros(1, np.float32), "inner": inner.T.copy()}
    nodes = [
        helper.make_node("Cast", ["features"], ["wide"], to=float64),
        helper.make_node("Sub", ["wide", "mean"], ["centred"]),
        helper.make_node("Div", ["centred", "deviation"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["narrow"], to=float32),
        helper.make_node("IsNaN", ["narrow"], ["missing"]),
        helper.make_node("Where", ["missing", "zero", "narrow"], ["filled"]),
        helper.make_node("Cast", ["filled"], ["standardised"], to=float64),
    ]
    if model.hidden == 0:
        return [*nodes, helper.make_node("Gemm", ["standardised", "inner"], ["score"])], constants, np.float64
    layers = [
        helper.make_node("Gemm", ["standardised", "inner", "bias"], ["sums"]),
        helper.make_node("Tanh", ["sums"], ["units"]),
        helper.make_node("Gemm", ["units", "outer"], ["score"]),
    ]
    return [*nodes, *layers], {**constants, "bias": model.weights.bias, "outer": model.weights.outer[:, None].copy()}, np.float64


# --- the formats' own readers -------------------------------------------------------------------------------------------


def _lightgbm_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    lightgbm = _package("lightgbm")
    return np.asarray(lightgbm.Booster(model_file=str(path)).predict(features, raw_score=True))


def _xgboost_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    xgboost = _package("xgboost")
    data = xgboost.DMatrix(features, feature_names=list(names))
    return np.asarray(xgboost.Booster(model_file=str(path)).predict(data, output_margin=True))


def _onnx_scores(path: Path, features: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[Any]:
    session = _package("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["score"], {"features": features})[0])


_NET, _WEIGHTS = _onnx(_onnx_net), {"linear": _linear, "linear net": _linear}
FORMATS: dict[str, Format] = {
    "lightgbm": Format("lightgbm.Booster(model_file=…)", {"trees": _lightgbm}, _lightgbm_scores),
    "xgboost": Format("xgboost.Booster(model_file=…)", {"trees": _xgboost}, _xgboost_scores),
    "ranklib": Format("RankLib's -load, and model/ranklib of Elasticsearch and OpenSearch", {"trees": _ranklib}),
    "solr": Format(
        "the model store of Solr", {"trees": _solr_trees, "linear": _solr_linear, "linear net": _solr_linear}
    ),
    "linear": Format("model/linear of Elasticsearch and OpenSearch", _WEIGHTS),
    "onnx": Format(
        "onnxruntime.InferenceSession(…)",
        {"trees": _onnx(_onnx_trees), "linear": _onnx(_onnx_linear), "linear net": _NET, "two-layer net": _NET},
        _onnx_scores,
    ),
}  # fmt: skip
"""Every format by the name `export` calls it."""


# --- read ---------------------------------------------------------------------------------------------------------------

_BEGINNINGS = {"lightgbm": r"\s*tree\s*\nversion=", "xgboost": r'\s*\{\s*"(learner|version)"\s*:\s*[\[{]'}


def _read_document(text: str) -> formats.Ensemble:
    return formats.read_xgboost(json.loads(text))


READERS: dict[str, Callable[[str], formats.Ensemble]] = {"lightgbm": formats.read_lightgbm, "xgboost": _read_document}


def source_of(path: str | Path) -> str | None:
    """The tool (a key of `READERS`) that wrote a file, by its beginning; None for others."""
    with open(path, "rb") as file:
        beginning = file.read(200).decode("utf-8", "replace")
    return next((tool for tool, pattern in _BEGINNINGS.items() if re.match(pattern, beginning)), None)


def read_model(path: str | Path, names: tuple[str, ...] = ()) -> ltr.LambdaMART:
    """The ensemble in a LightGBM text model or XGBoost JSON as a fitted ranker. Its scores are LightGBM's raw scores to the bit, and
    XGBoost's margins but for that tool's sums in float32.

    Args:
        names: of the features it shall read, in their order; found by name, or by place where the file names none and has as many. Left
            out: those of the file, or else ``f1``, ``f2``, ….

    Raises:
        DataError: naming the file, for anything else, for what `ltr.trees.formats` refuses, or for a feature that is not among `names`.
    """
    path = Path(path)
    try:
        tool = source_of(path)
        if tool is None:
            raise ValueError("neither LightGBM's text nor XGBoost's JSON (a .ubj file is XGBoost's too: save it as .json)")
        trees, taken = _on_features(READERS[tool](path.read_text("utf-8")), names)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    if trees.n_trees == 0:
        raise DataError(f"{path}: no trees")
    plain = ltr.LambdaMART(n_trees=trees.n_trees, n_leaves=max(int(np.diff(trees.leaf_starts).max()), 2), stop_on=None)
    return replace(plain, trees=trees, names=taken, remarks=(f"read from a model of {tool}",))


def _on_features(found: formats.Ensemble, names: tuple[str, ...]) -> tuple[Trees, tuple[str, ...]]:
    """The trees over the features `names`."""
    if not names:
        return found.trees, found.names
    if not found.named:
        if len(found.names) != len(names):
            raise ValueError(f"the file names no features and has {len(found.names)} of them; the data have {len(names)}")
        return found.trees, names
    place = {name: k for k, name in enumerate(names)}
    strange = [found.names[f] for f in np.unique(found.trees.feature) if found.names[f] not in place]
    if strange:
        raise ValueError(f"trees on features that the data do not have: {', '.join(strange[:5])}{' …' if len(strange) > 5 else ''}")
    places = np.array([place.get(name, -1) for name in found.names], np.int32)
    return replace(found.trees, feature=places[found.trees.feature]), names
