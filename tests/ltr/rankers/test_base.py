"""Models on disk: what was saved is what scores, and what was touched is refused."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ltr
from ltr.rankers.base import content_digest, digest_of, with_features_of
from tests.conftest import make_queries
from tests.mutations import check_sentence, mutations

FITTED = [
    ltr.LambdaMART(
        n_trees=4,
        n_leaves=4,
        min_docs_in_leaf=3,
        objective=(ltr.Term("ndcg"), ltr.Term("map", weight=ltr.Schedule(0.1, "linear", 0.1))),
    ),
    ltr.LambdaRank(epochs=2),
    ltr.LambdaRank(hidden=3, epochs=2),
    ltr.LeastSquares(ridge=0.5),
]


@pytest.mark.parametrize("model", FITTED, ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}")
def test_saved_and_loaded_is_the_same_model(model, tmp_path):
    queries = make_queries(20)
    fitted = model.fit(queries)
    ltr.save(fitted, tmp_path / "m")
    loaded = ltr.load(tmp_path / "m")
    assert loaded.digest == fitted.digest
    assert loaded.parameters == fitted.parameters
    assert np.array_equal(loaded.predict(queries.features), fitted.predict(queries.features))
    assert replace(loaded).fit(queries).digest == fitted.digest


def test_a_touched_or_foreign_folder_is_refused(tmp_path):
    ltr.save(ltr.LeastSquares().fit(make_queries(20)), tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    for change, rule in (
        ({"digest": "0" * 64}, "do not match the digest"),
        ({"format": 99}, "format 99"),
        ({"kind": "x"}, "unknown kind"),
    ):
        (tmp_path / "model.json").write_text(json.dumps(about | change))
        with pytest.raises(ValueError, match=rule):
            ltr.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(about))
    (tmp_path / "model.npz").write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="no readable"):
        ltr.load(tmp_path)
    with pytest.raises(ValueError, match="no readable"):
        ltr.load(tmp_path / "nowhere")


def test_frames_are_read_by_feature_name():
    queries = make_queries(20)
    model = ltr.LeastSquares().fit(queries)
    frame = pl.DataFrame(queries.features, schema=list(queries.names))
    assert np.array_equal(model.predict(frame.select(reversed(frame.columns))), model.predict(queries.features))
    with pytest.raises(ValueError, match="features missing in the data: f2"):
        model.predict(frame.drop("f2"))
    with pytest.raises(ValueError, match="features: column 'f2' holds no numbers"):
        model.predict(frame.with_columns(f2=pl.lit("shop")))


def crafted(folder, change):
    """A saved ensemble whose archive is written anew, with `change` applied to what stands in it, and the digest that goes with it."""
    queries = make_queries(30)
    model = ltr.LambdaMART(n_trees=2, n_leaves=3, min_docs_in_leaf=2).fit(queries)
    ltr.save(model, folder)
    arrays = change(dict(model.arrays))
    with open(folder / "model.npz", "wb") as file:
        np.savez(file, **arrays)
    about = json.loads((folder / "model.json").read_text())
    about["digest"] = digest_of("lambdamart", {name: a for name, a in arrays.items() if a.dtype != object})
    about["content"] = content_digest(about, arrays)
    (folder / "model.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("name", "values"),
    [("left", [10**6] * 4), ("left", [0] * 4), ("right", [-(10**6)] * 4), ("feature", [99] * 4), ("feature", [-1] * 4)],
)
def test_trees_that_lead_out_of_their_arrays_or_in_circles_are_refused(tmp_path, name, values):
    crafted(tmp_path, lambda arrays: arrays | {name: np.array(values, np.int32)[: len(arrays[name])]})
    with pytest.raises(ValueError, match="arrays that are no trees on 4 features"):
        ltr.load(tmp_path)


MISFITS = {
    "leaves from right to left": lambda arrays: {"left": arrays["right"], "right": arrays["left"]},
    "a leaf twice": lambda arrays: {"right": arrays["left"]},
    "a threshold that is no number": lambda arrays: {"threshold": np.full_like(arrays["threshold"], np.nan)},
    "thresholds of 64 bits": lambda arrays: {"threshold": arrays["threshold"].astype(np.float64)},
    "children of 64 bits": lambda arrays: {"left": arrays["left"].astype(np.int64)},
    "two dimensions": lambda arrays: {"feature": arrays["feature"][:, None]},
    "a gain too few": lambda arrays: {"gain": arrays["gain"][1:]},
    "a leaf without documents": lambda arrays: {"documents": arrays["documents"][1:]},
    "no beginnings": lambda arrays: {"node_starts": np.empty(0, np.int64), "leaf_starts": np.empty(0, np.int64)},
    "a beginning too few": lambda arrays: {"leaf_starts": arrays["leaf_starts"][:-1]},
}


@pytest.mark.parametrize("change", MISFITS.values(), ids=MISFITS)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, change):
    crafted(tmp_path, lambda arrays: arrays | change(arrays))
    with pytest.raises(ValueError, match="arrays that are no trees on 4 features"):
        ltr.load(tmp_path)


def test_an_archive_with_objects_is_not_opened(tmp_path):
    crafted(tmp_path, lambda arrays: arrays | {"gain": np.array([print], object)})
    with pytest.raises(ValueError, match="array 'gain' holds objects"):
        ltr.load(tmp_path)


def test_an_array_that_claims_a_terabyte_is_refused_before_anything_is_allocated(tmp_path):
    ltr.save(ltr.LeastSquares().fit(make_queries(20)), tmp_path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 37,)})
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as archive:
        archive.writestr("weights.npy", header.getvalue() + b"\0" * 64)
    with pytest.raises(ValueError, match=r"claims shape \(137438953472,\) of float64 and holds 64 bytes"):
        ltr.load(tmp_path)
    with zipfile.ZipFile(tmp_path / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights.npy", header.getvalue() + b"\0" * 64)
    with pytest.raises(ValueError, match="'weights' is compressed"):
        ltr.load(tmp_path)


def as_of_0_1_0(folder):
    """Leaves out the second digest of ``model.json``, which 0.1.0 did not write."""
    about = json.loads((folder / "model.json").read_text())
    del about["content"]
    (folder / "model.json").write_text(json.dumps(about))
    return about


@pytest.mark.parametrize("model", FITTED, ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}")
def test_fewer_features_than_the_arrays_are_for_are_refused(model, tmp_path):
    queries = make_queries(20)
    ltr.save(model.fit(queries), tmp_path)
    about = as_of_0_1_0(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(about | {"features": about["features"][:1]}))
    with pytest.raises(ValueError, match=f"no {model.kind}|arrays that are no trees"):
        ltr.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(about | {"parameters": {}}))
    with pytest.raises(ValueError, match=f"no {model.kind}"):
        ltr.load(tmp_path)


CHANGES = {
    "a name": lambda about, arrays: about["features"].reverse(),
    "a name twice": lambda about, arrays: about["features"].__setitem__(0, about["features"][1]),
    "a base": lambda about, arrays: about["parameters"].update(base="f2"),
    "a rate": lambda about, arrays: about["parameters"].update(learning_rate=0.7),
    "a kept epoch": lambda about, arrays: (
        arrays.update({"2/inner": arrays["2/inner"] + 1}) if "2/inner" in arrays else about.clear()
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("model", FITTED[:2], ids=lambda m: m.kind)
def test_everything_that_was_saved_is_under_a_digest(tmp_path, model, change):
    fitted = model.fit(make_queries(20))
    ltr.save(fitted, tmp_path)
    about, arrays = json.loads((tmp_path / "model.json").read_text()), dict(fitted.arrays)
    change(about, arrays)
    (tmp_path / "model.json").write_text(json.dumps(about))
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(ValueError, match=r"changed or are damaged|model format None"):
        ltr.load(tmp_path)


@pytest.mark.parametrize("model", FITTED, ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}")
def test_models_of_0_1_0_are_read(tmp_path, model):
    queries = make_queries(20)
    fitted = model.fit(queries)
    ltr.save(fitted, tmp_path)
    as_of_0_1_0(tmp_path)
    with pytest.warns(UserWarning, match="version 0.1.0 saved it, without a digest of its parameters and features"):
        again = ltr.load(tmp_path)
    assert np.array_equal(again.predict(queries.features), fitted.predict(queries.features))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ltr.LeastSquares(), "weights"),
        (ltr.LambdaRank(epochs=1), "inner"),
        (ltr.LambdaRank(epochs=1), "scaling"),
        (FITTED[0], "value"),
    ],
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "text"])
def test_weights_that_are_no_numbers_are_refused(tmp_path, model, name, wrong):
    """With digests that fit."""
    fitted = model.fit(make_queries(20))
    ltr.save(fitted, tmp_path)
    arrays = fitted.arrays | {name: np.full(fitted.arrays[name].shape, wrong)}
    np.savez(tmp_path / "model.npz", **arrays)
    about = json.loads((tmp_path / "model.json").read_text())
    about["digest"] = digest_of(fitted.kind, {key: array for key, array in arrays.items() if "/" not in key})
    about["content"] = content_digest(about, arrays)
    (tmp_path / "model.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"finite|no trees"):
        ltr.load(tmp_path)


def outcomes(folder, name, n, seed, as_before):
    """Loads changed copies of one file of a model: each is refused in a sentence or, with `as_before`, is the same model."""
    content, model = (folder / name).read_bytes(), ltr.load(folder)
    features, same = make_queries(20).features, 0
    before = model.predict(features)
    for changed in mutations(content, n, seed):
        (folder / name).write_bytes(changed)
        try:
            scores = ltr.load(folder).predict(features)
        except ValueError as error:
            check_sentence(error)
            continue
        same += np.array_equal(scores, before)
        assert not as_before or np.array_equal(scores, before)
    (folder / name).write_bytes(content)
    return same


@pytest.mark.parametrize("n", [200, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("model", FITTED, ids=lambda m: f"{m.kind}{getattr(m, 'hidden', '')}")
def test_changed_bytes_are_refused_or_do_not_matter(tmp_path, model, n):
    """Those of 0.1.0's ``model.json`` may describe another model, but never fail otherwise."""
    ltr.save(model.fit(make_queries(20)), tmp_path)
    outcomes(tmp_path, "model.npz", n, 1, as_before=True)
    outcomes(tmp_path, "model.json", n, 2, as_before=True)
    as_of_0_1_0(tmp_path)
    assert outcomes(tmp_path, "model.json", n, 3, as_before=False) > 0


@pytest.mark.parametrize("core", [core for core in ltr.KINDS.values() if not core.query_weights])
def test_weights_that_a_ranker_does_not_obey_are_refused(queries, core):
    with pytest.raises(ValueError, match=rf"queries have weights, and {core.kind} does not obey them"):
        core().fit(replace(queries, weights=np.ones(queries.n_queries)))


def test_what_is_not_fitted_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        ltr.save(ltr.RankSVM(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_repr_is_a_line_of_what_is_not_default(queries):
    model = ltr.LambdaMART(n_trees=2, min_docs_in_leaf=3, objective="map")
    assert repr(ltr.LambdaRank()) == "LambdaRank()"
    assert repr(ltr.Column(feature="f2")) == "Column(feature='f2')"
    assert repr(model).startswith("LambdaMART(n_trees=2, min_docs_in_leaf=3, objective=(Term(measure='map'")
    fitted = model.fit(queries)
    assert repr(fitted) == f"{replace(model, objective=fitted.objective)!r} fitted on 4 features"
    assert "objective=(Term(measure='map', cost='logistic'),)" in repr(fitted)
    assert repr(fitted.trees) == f"Trees({fitted.trees.n_trees} trees, {len(fitted.trees.value)} leaves)"
    assert repr(ltr.Estimator(ltr.LeastSquares())).startswith("Estimator(model=LeastSquares(), measure='ndcg_10'")


def test_an_objective_may_be_a_measures_name(queries):
    for kind in (ltr.LambdaMART, ltr.LambdaRank):
        for given in ("map", ["map"], ltr.Measure.of("map"), ltr.Term("map")):
            assert kind(objective=given).objective == (ltr.Term("map"),)
        assert kind(objective="NDCG@10").trained_for == (ltr.Measure.of("ndcg_10"),)
        for wrong in (None, 3, [], [None]):
            with pytest.raises(ValueError, match=r"objective: .* is no ltr.Term or measure; .* such as 'ndcg'"):
                kind(objective=wrong)
        with pytest.raises(ValueError, match="unknown measure 'mpa'; did you mean map"):
            kind(objective="mpa")


def test_misspelt_parameters_get_near_misses():
    with pytest.raises(TypeError, match=r"LambdaMART: no parameter 'n_leafs'; did you mean n_leaves"):
        ltr.LambdaMART(n_leafs=3)
    with pytest.raises(
        TypeError, match=r"LeastSquares: no parameter 'zzz'; there are conventions, standardise, impute, stop_on, ridge"
    ):
        ltr.LeastSquares(zzz=1)


def test_wrong_types_are_named_with_what_is_expected(queries, tmp_path):
    X, y = queries.features, queries.labels
    with pytest.raises(
        ValueError, match=r"LambdaMART.fit: queries is a numpy ndarray \(.*, 4\); it takes ltr.Queries.* ltr.Estimator\(model\)"
    ):
        ltr.LambdaMART().fit(X, y)
    with pytest.raises(ValueError, match=r"RankSVM.fit: valid is a Python tuple; it takes ltr.Queries"):
        ltr.RankSVM().fit(queries, (X, y))
    with pytest.raises(
        ValueError, match=r"save: model is a ltr Estimator; it takes a fitted ranker; of an estimator, save its model_"
    ):
        ltr.save(ltr.Estimator(ltr.LeastSquares()), tmp_path)
    with pytest.raises(ValueError, match=r"save: model is a Python str; it takes a fitted ranker$"):
        ltr.save("model", tmp_path)
    model = ltr.LeastSquares().fit(queries)
    for given in ((model, queries), (model.surface(X), X)):
        with pytest.raises(ValueError, match=r"certify: given .*; it takes model.surface\(queries.features\) and ltr.Queries"):
            ltr.certify(*given)
    for given, says in (
        (queries, r"features: a ltr Queries; expected numbers \[documents, 4\]; of ltr.Queries, give their features"),
        ("rows", r"features: a Python str; expected numbers \[documents, 4\]$"),
        ([["a"] * 4], "features: a Python list; expected numbers"),
        ([["1"] * 4], "features: a Python list; expected numbers"),
        (np.ones((1, 4), complex), r"features: .*; expected numbers \[documents, 4\]$"),
        (X[0], r"features have shape \(4,\); the model was fitted on 4 features"),
    ):
        with pytest.raises(ValueError, match=says):
            model.predict(given)


def test_models_are_equal_by_what_they_are_and_have_learned():
    queries, other = make_queries(20), make_queries(20, seed=1)
    for model in FITTED:
        one, same = model.fit(queries), model.fit(queries)
        assert one == same
        assert hash(one) == hash(same)
        assert one in [model, same]
        assert one != model
        assert one != model.fit(other)
    assert ltr.RankSVM(C=1) == ltr.RankSVM(C=1) != ltr.RankSVM(C=2)
    assert {ltr.LambdaMART(learning_rate=1): 1}[ltr.LambdaMART(learning_rate=1.0)] == 1
    assert ltr.LeastSquares() != ltr.RankSVM()
    assert queries == queries
    assert queries != other


def test_what_holds_no_rows_or_no_numbers_is_told_as_the_estimator_tells_it():
    model = ltr.LeastSquares().fit(make_queries(10))
    frame = pl.DataFrame(make_queries(5).features, schema=list(model.names))
    with pytest.raises(ValueError, match=r"a LazyFrame holds no rows yet; collect\(\) it first"):
        model.predict(frame.lazy())
    with pytest.raises(ValueError, match=r"a Table of Arrow; give polars\.from_arrow"):
        model.predict(frame.to_arrow())
    for text in (np.array([["1.5", "0", "1", "2"]], object), np.array([[10**400, 0, 1, 2]], object)):
        with pytest.raises(ValueError, match=r"expected numbers \[documents, 4\]"):
            model.predict(text)
        with pytest.raises(ValueError, match=r"features: .* is no array of numbers"):
            ltr.Queries(text, [1], [0, 1])
    numbered = frame.to_pandas().set_axis(range(4), axis=1)
    assert np.array_equal(model.predict(numbered), model.predict(frame))


def test_arrays_that_lie_column_by_column_are_read_as_the_kernels_want_them(tmp_path):
    queries = make_queries(20, n_features=4)
    model = ltr.LambdaRank(hidden=3, epochs=2).fit(queries)
    ltr.save(model, tmp_path / "m")
    with np.load(tmp_path / "m" / "model.npz") as archive:
        arrays = {name: np.asfortranarray(archive[name]) for name in archive.files}
    assert any(array.ndim == 2 for array in arrays.values())
    np.savez(tmp_path / "m" / "model.npz", **arrays)
    assert np.array_equal(ltr.load(tmp_path / "m").predict(queries.features), model.predict(queries.features))


def test_numbers_of_numpy_are_saved_and_what_cannot_be_leaves_the_older_model(tmp_path, monkeypatch):
    queries = make_queries(30, n_features=3, seed=3)
    terms = (ltr.Term("ndcg"), ltr.Term("map", weight=ltr.Schedule(np.float32(0.25), "linear", np.float64(0.01))))
    given = ltr.LambdaMART(n_trees=3, objective=terms, monotone={"f1": np.int64(1)}, seed=np.int32(2)).fit(queries)
    ltr.save(given, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened.objective[1].weight == ltr.Schedule(0.25, "linear", 0.01)
    assert np.array_equal(given.predict(queries.features, n_trees=np.int64(2)), opened.predict(queries.features, n_trees=2))
    for wrong in (np.float32(-1), np.float64(1.5), True, "half"):
        with pytest.raises(ValueError, match="term weight"):
            ltr.Term(weight=wrong)
    monkeypatch.setattr(np, "savez", lambda file, **_: file.write(b"half") and exec("raise OSError('disk full')"))
    with pytest.raises(OSError, match="disk full"):
        ltr.save(replace(given, trees=given.trees.first(1)), tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["model.json", "model.npz"]
    assert ltr.load(tmp_path / "m").digest == given.digest


@pytest.mark.parametrize(
    "model",
    [
        ltr.LambdaMART(n_trees=2, objective=[ltr.Term(ltr.Measure.of("ndcg@10"))], stop_on=(ltr.Measure.of("map"), "ndcg@3")),
        ltr.LambdaRank(epochs=1, objective=[ltr.Term(ltr.Measure.of("map"))]),
        ltr.AdaRank(rounds=2, measure=ltr.Measure.of("ndcg@3")),
        ltr.RankSVM(stop_on=ltr.Measure.of("map")),
    ],
)
def test_a_model_of_measures_is_saved_by_their_names(model, tmp_path):
    queries = make_queries(20, n_features=3, seed=3)
    fitted = model.fit(queries, queries)
    ltr.save(fitted, tmp_path / "m")
    opened = ltr.load(tmp_path / "m")
    assert opened.digest == fitted.digest
    assert np.array_equal(opened.predict(queries.features), fitted.predict(queries.features))


def test_numbers_of_numpy_are_numbers():
    assert ltr.LambdaRank(epochs=9, keep_epochs=np.array([5, 7])).keep_epochs == (5, 7)
    debiased = ltr.Unbiased("ipw", propensities=np.array([1, 0.5], np.float32), least=np.float32(0.25))
    assert (debiased.propensities, debiased.least) == ((1.0, 0.5), 0.25)
    with ltr.threads(np.int64(1)) as n:
        assert n == 1
    for alone in (ltr.Listwise, ltr.ConditionalModel):
        with pytest.raises(ValueError, match="samples=1 is out of range; it is a whole number from 2"):
            alone(samples=1)


def test_arrays_of_another_shape_or_order_in_memory():
    """The shape is part of the digest, the order is not."""
    square = np.arange(4.0).reshape(2, 2)
    assert digest_of("kind", {"a": square}) != digest_of("kind", {"a": square.ravel()})
    assert digest_of("kind", {"a": square}) == digest_of("kind", {"a": np.asfortranarray(square)})


def test_arrays_that_lie_by_columns_are_saved_as_they_are(tmp_path):
    queries = make_queries(20)
    fitted = ltr.LambdaRank(hidden=3, epochs=2).fit(queries)
    ltr.save(replace(fitted, scaling=np.asfortranarray(fitted.scaling)), tmp_path)
    assert ltr.load(tmp_path).predict(queries.features).tolist() == fitted.predict(queries.features).tolist()


def test_what_looks_at_a_model_on_queries_takes_these_two():
    queries = make_queries(10, seed=1)
    model, estimator = ltr.LeastSquares().fit(queries), ltr.Estimator(ltr.LeastSquares())
    with pytest.raises(
        ValueError,
        match=r"polish: given Estimator and Queries; it takes a fitted ranker and ltr\.Queries; of an estimator, its model_",
    ):
        with_features_of(estimator, queries, "polish")
    for ask in (ltr.polish, ltr.permutation_importance, lambda *given: ltr.why_above(*given, 0, 1)):
        with pytest.raises(ValueError, match=r"given LeastSquares and ndarray; it takes a fitted ranker and ltr\.Queries$"):
            ask(model, queries.features)
        with pytest.raises(ValueError, match="of an estimator, its model_"):
            ask(estimator, queries)


def test_a_save_that_is_interrupted_or_killed_leaves_the_one_model_or_the_other(tmp_path, monkeypatch):
    """Between its two files it left neither."""
    queries = make_queries(30, seed=1)
    old, new = ltr.LeastSquares().fit(queries), ltr.LeastSquares(ridge=2.0).fit(queries)
    replace_file = Path.replace
    for stopped_at, kept in ((1, old), (2, new)):
        ltr.save(old, tmp_path)
        calls = []

        def stopped(path, target, calls=calls, stopped_at=stopped_at):
            calls.append(path)
            if len(calls) == stopped_at:
                raise KeyboardInterrupt
            return replace_file(path, target)

        monkeypatch.setattr(Path, "replace", stopped)
        with pytest.raises(KeyboardInterrupt):
            ltr.save(new, tmp_path)
        monkeypatch.setattr(Path, "replace", replace_file)
        assert ltr.load(tmp_path).digest == kept.digest
    ltr.save(old, tmp_path)
    assert ltr.load(tmp_path).digest == old.digest
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.npz"}
    (tmp_path / "model.npz.partial").write_bytes(b"half")
    (tmp_path / "model.json.partial").write_bytes(b"half")
    assert ltr.load(tmp_path).digest == old.digest, "what was never in its place"
