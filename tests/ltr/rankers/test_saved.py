"""Models on disk: what was saved is what scores, and what was touched is refused."""

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ltr
from ltr.rankers.base import digest_of
from ltr.rankers.saved import content_digest
from tests.conftest import make_queries, require_free
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


def test_who_saves_and_loads_in_one_folder_at_the_same_time_finds_a_whole_model(tmp_path):
    """Of two that saved at once the arrays of one and what is said of the other were left, in one pair of seven; and a model was not readable
    while it was being replaced."""
    queries = make_queries(20)
    models = [ltr.LeastSquares(ridge=ridge).fit(queries) for ridge in (0.1, 1.0, 10.0)]
    ltr.save(models[0], tmp_path)

    def often(model):
        for _ in range(40):
            ltr.save(model, tmp_path)
            assert ltr.load(tmp_path).digest in {one.digest for one in models}

    with ThreadPoolExecutor(len(models)) as at_once:
        for done in [at_once.submit(often, model) for model in models]:
            done.result()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.npz"]


def test_a_folder_is_free_when_it_was_saved_though_a_forked_process_has_it_open(tmp_path, twins):
    """Whoever forks while another thread saves gives the new process the lock too, and all waited for its end."""
    model = ltr.LeastSquares().fit(make_queries(20))
    for use in (lambda: ltr.save(model, tmp_path), lambda: ltr.load(tmp_path)):
        before = len(twins)
        use()
        assert len(twins) == before + 1
        require_free(tmp_path)


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
    with pytest.raises(ValueError, match="arrays that are not trees on 4 features"):
        ltr.load(tmp_path)


MISFITS = {
    "leaves from right to left": lambda arrays: {"left": arrays["right"], "right": arrays["left"]},
    "a leaf twice": lambda arrays: {"right": arrays["left"]},
    "a threshold that is not a number": lambda arrays: {"threshold": np.full_like(arrays["threshold"], np.nan)},
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
    with pytest.raises(ValueError, match="arrays that are not trees on 4 features"):
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
    with pytest.raises(ValueError, match=f"its content is not a {model.kind}|arrays that are not trees"):
        ltr.load(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(about | {"parameters": {}}))
    with pytest.raises(ValueError, match=f"its content is not a {model.kind}"):
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
    with pytest.raises(ValueError, match=r"finite|not trees"):
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


def test_what_is_not_fitted_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        ltr.save(ltr.RankSVM(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


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


def test_arrays_that_lie_by_columns_are_saved_as_they_are(tmp_path):
    queries = make_queries(20)
    fitted = ltr.LambdaRank(hidden=3, epochs=2).fit(queries)
    ltr.save(replace(fitted, scaling=np.asfortranarray(fitted.scaling)), tmp_path)
    assert ltr.load(tmp_path).predict(queries.features).tolist() == fitted.predict(queries.features).tolist()


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
