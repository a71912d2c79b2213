"""Segments by hand: bands, paired tests with Holm's correction, the most changed queries, and the tables."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import ltr
from ltr.data.queries import Queries
from ltr.diagnostics.why_above import values_to_try
from tasks.config.click_labels import ClickLog
from tasks.data.click_log import typed_queries
from tasks.evidence import segments as segments_module
from tasks.evidence.reasons import pair_of
from tasks.evidence.segments import (
    ChangedQuery,
    Changes,
    Segments,
    _looked_into,
    changed_queries,
    changes,
    contrast,
    described,
    segmented,
    segments_of,
    write_tables,
)
from tasks.records import DataError
from tasks.store.cells import CellFolder
from tasks.store.datasets import keep_queries
from tasks.store.values import names_of
from tasks.tracking.runs import Stored
from tests.conftest import make_queries
from tests.tasks.evidence.samples import CHANGES, NOBODY, SEGMENT, SEGMENTS


def cut(values, name="a"):
    """The segments with the positions of their queries."""
    return {value: np.flatnonzero(mask).tolist() for value, mask in segments_of(pl.Series(values, dtype=pl.String), name)}


def test_words_stand_by_falling_number_of_queries_and_the_unknown_last():
    assert list(cut(["de", "en", None, "en", "cs"]).items()) == [("en", [1, 3]), ("cs", [4]), ("de", [0]), ("(none)", [2])]
    assert cut([None, None]) == {"(none)": [0, 1]}


def test_few_numbers_are_segments_of_their_own_and_many_are_cut_into_terciles():
    assert cut(["10", "9", "10.0"]) == {"9": [1], "10": [0, 2]}
    assert cut([str(k) for k in range(12)])["11"] == [11]
    assert cut([str(k) for k in range(13)]) == {"0–4": [0, 1, 2, 3, 4], "5–8": [5, 6, 7, 8], "9–12": [9, 10, 11, 12]}
    assert list(cut([*map(str, range(13)), None]))[-1] == "(none)"
    assert list(cut([*map(str, range(13)), "many"]))[:2] == ["0", "1"], "one word among them: no numbers"


def test_codes_with_leading_zeros_are_words():
    assert cut(["01", "1", "01", "10"]) == {"01": [0, 2], "1": [1], "10": [3]}
    assert cut(["0", "0.5", "-0.5"]) == {"-0.5": [2], "0": [0], "0.5": [1]}


def test_equal_sizes_stay_in_one_band():
    assert cut(["3", "1", "2"], "documents") == {"1": [1], "2": [2], "3": [0]}
    assert cut(["1", "1", "1", "5"], "documents") == {"1": [0, 1, 2], "5": [3]}
    assert cut(["7", "7"], "documents") == {"7": [0, 1]}
    assert cut(["0", "9", "2", "4", "0", "30"], "popularity") == {"tail 0": [0, 4], "torso 2–4": [2, 3], "head 9–30": [1, 5]}
    assert list(cut(["1", "1", "1", "5"], "popularity")) == ["tail 1", "head 5"]
    assert list(cut(["7", "7"], "popularity")) == ["7"]


def test_paired_t_in_each_segment_and_holm_over_those_of_an_attribute():
    base = np.full(9, 0.5)
    own = base + np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.1, -0.2, np.nan, 0.3])
    masks = [("x", np.arange(9) < 3), ("y", (np.arange(9) >= 3) & (np.arange(9) < 6)), ("z", np.arange(9) >= 6)]
    x, y, z = contrast(masks, {"own": own}, base, (3, 0.0))
    # x: mean 0.2, deviation 0.1, so t = 0.2 / (0.1 / √3) on 2 degrees of freedom
    assert (x.queries, x.n, x.mean, x.baseline_mean) == (3, 3, pytest.approx(0.7), 0.5)
    assert x.difference == pytest.approx(0.2)
    assert x.se == pytest.approx(0.1 / np.sqrt(3))
    assert x.p == pytest.approx(0.0742, abs=1e-4)
    # y: differences 0, 0, 0.1: mean 1/30, standard error 1/30, t = 1
    assert y.p == pytest.approx(2 * stats.t.sf(1, 2))
    assert (x.holm_p, y.holm_p) == (pytest.approx(2 * x.p), pytest.approx(y.p))
    # z: one query is undefined, and two are too few
    assert (z.queries, z.n, z.p, z.holm_p) == (3, 2, None, None)
    assert z.difference == pytest.approx(0.05)


def test_equal_rankers_undefined_segments_and_several_rankers():
    base = np.array([0.5, 0.25, 0.75, np.nan])
    masks = [("x", np.arange(4) < 3), ("y", np.arange(4) == 3)]
    x, y = contrast(masks, {"same": base}, base, (2, 0.0))
    assert (x.difference, x.p, x.holm_p) == (0, 1, 1)
    assert (y.n, y.mean, y.difference, y.p) == (0, None, None, None)
    own = {"a": base + np.array([0.1, 0.1, 0.2, 0]), "b": base + np.array([0.1, 0.1, 0.3, 0])}
    a, b, *_ = contrast(masks, own, base, (2, 0.0))
    assert a.holm_p == pytest.approx(min(2 * a.p, 1)), "two tests of the attribute"
    assert b.holm_p == pytest.approx(max(2 * a.p, b.p))


def test_the_most_changed_queries_equal_ones_by_name():
    names = ["c", "a", "b", "d", "e", "f"]
    base = np.array([0.5, 0.5, 0.5, 0.5, 0.5, np.nan])
    own = np.array([0.4, 0.4, 0.1, 0.5 + 1e-16, 0.9, 0.3])
    found = changes(("own", "base", "map"), names, own, base, 2)
    assert [row.query for row in found.harmed] == ["b", "a"]
    assert found.harmed[0] == ChangedQuery("b", 0.1, 0.5, -0.4)
    assert [row.query for row in found.helped] == ["e"]
    assert (found.n_harmed, found.n_helped, found.n_same) == (3, 1, 1)
    turned = changes(("own", "base", "errors"), names, own, base, 2)
    assert [row.query for row in turned.helped] == ["b", "a"]


def judged(n=6, **attributes):
    """Queries ``q1``, ``q2``, … of 1, 2, … documents."""
    sizes = np.arange(1, n + 1)
    ids = np.array([f"q{k}".encode() for k in sizes])
    keys = np.arange(n).astype(np.uint64)
    total = int(sizes.sum())
    features = np.random.default_rng(0).normal(size=(total, 2)).astype(np.float32)
    known = {name: np.array(values) for name, values in attributes.items()}
    return Queries(features, np.ones(total), np.append(0, np.cumsum(sizes)), keys=keys, ids=ids, attributes=known)


def write_log(path):
    rows = [
        ("s1", "Q1", "cheap flights"),
        ("s2", "q1", "cheap  flights"),
        ("s3", "q1", "cheap flights"),
        ("s3", "q2", "rome"),
        ("s3", "x", "y"),
    ]
    shown = [(*row, document, 0) for row in rows for document in ("d1", "d2")]
    pl.DataFrame(shown, schema=["session", "query", "text", "document", "click"], orient="row").write_csv(path)
    return ClickLog(log=path, text="text")


def test_texts_and_result_pages_come_from_the_log(tmp_path):
    log = write_log(tmp_path / "log.csv")
    assert typed_queries(log).rows() == [("q1", "cheap flights", 3), ("q2", "rome", 1), ("x", "y", 1)]
    found = described(judged(3), ["documents", "length", "popularity"], log)
    assert found.columns == ["query", "text", "attribute.documents", "attribute.length", "attribute.popularity"]
    assert found.rows() == [("q1", "cheap flights", "1", "2", "3"), ("q2", "rome", "2", "1", "1"), ("q3", None, "3", None, "0")]


def test_a_column_takes_the_place_of_what_is_made(tmp_path):
    queries = judged(3, text=["a b c", "", "q3"], popularity=["5", "", "1"], language=["de", "en", ""])
    found = described(queries, ["language", "length", "popularity"], write_log(tmp_path / "log.csv"))
    assert found.rows() == [("q1", "a b c", "de", "3", "5"), ("q2", None, "en", None, None), ("q3", None, None, "1", "1")]
    assert described(judged(1), ["documents"]).rows() == [("q1", None, "1")]


def stored(path, values, queries=None):
    names = queries or [f"q{k + 1}" for k in range(len(values))]
    pl.DataFrame({"split": ["test"] * len(values), "query": names, "ndcg_3": values}).write_parquet(path)
    return str(path)


def test_segments_of_long_numbers_have_names_of_their_own():
    shops = pl.Series([str(10000000000 + k) for k in (1, 2, 3)] * 4)
    assert [name for name, _ in segments_of(shops, "shop")] == ["10000000001", "10000000002", "10000000003"]
    fractions = pl.Series(["0.1", "0.25", "0.1", "0.25"])
    assert [name for name, _ in segments_of(fractions, "share")] == ["0.1", "0.25"]


@pytest.mark.parametrize("most", [1, 3, 200])
def test_the_most_changed_of_many_are_those_of_all_sorted(most):
    draw = np.random.default_rng(5)
    names = [f"q{k}" for k in draw.permutation(300)]
    own, theirs = draw.integers(0, 4, (2, 300)) / 3.0  # many are equal
    own[::7] = np.nan
    found = changes(("a", "b", "ndcg_10"), names, own, theirs, most)
    gain = np.round(own - theirs, 12)
    for sign, listed in ((-1, found.harmed), (1, found.helped)):
        rows = sorted(np.flatnonzero(sign * gain > 0), key=lambda k: (-abs(gain[k]), names[k]))
        assert [row.query for row in listed] == [names[k] for k in rows[:most]]


def test_segments_and_changed_queries_of_stored_values(workplace):
    test = keep_queries(judged(6, language=["de", "de", "de", "en", "en", "en"], text=["x <y>", "", "", "", "", ""]))
    base = stored("base.parquet", [0.5, 0.5, 0.5, 0.5, 0.5, None])
    own = stored("own.parquet", [0.1, 0.2, 0.3, 0.6, 0.5, None])
    rule = Segments(baseline="base", fewest=3, queries=2)
    found = segmented.fn({"base": [base], "own": [own]}, [test], rule, "ndcg_3", ["language", "documents"], None)
    rows = {(row.attribute, row.value): row for row in found.segments}
    assert list(rows) == [("language", "de"), ("language", "en"), ("documents", "1–2"), ("documents", "3–4"), ("documents", "5–6")]
    german = rows["language", "de"]
    assert german.difference == pytest.approx(-0.3)
    assert german.holm_p == german.p == pytest.approx(2 * stats.t.sf(0.3 / (0.1 / np.sqrt(3)), 2)), "the only test"
    assert rows["language", "en"].p is None
    (changed,) = found.changed
    assert changed.harmed[0] == ChangedQuery("q1", 0.1, 0.5, -0.4, {"language": "de", "documents": "1"}, "x <y>")
    assert "text" not in changed.as_json()["harmed"][1], "what is unknown is left out"
    assert [row.query for row in changed.helped] == ["q4"]

    segments, queries = (pl.read_csv(path) for path in write_tables(found, workplace / "out"))
    assert segments.columns[:7] == ["attribute", "value", "measure", "baseline", "ranker", "queries", "n"]
    assert segments.height == 5
    assert segments["difference"][0] == german.difference
    assert queries.select("effect", "query", "baseline", "baseline_value", "difference", "attribute.language").rows() == [
        ("harmed", "q1", "base", 0.5, -0.4, "de"),
        ("harmed", "q2", "base", 0.5, -0.3, "de"),
        ("helped", "q4", "base", 0.5, 0.1, "en"),
    ]


def test_no_changed_query_is_a_table_with_its_columns(workplace):
    test, same = keep_queries(judged(2)), stored("same.parquet", [0.5, 0.5])
    rule = Segments(baseline="base")
    found = segmented.fn({"base": [same], "own": [same]}, [test], rule, "ndcg_3", ["documents"], None)
    _, path = write_tables(found, workplace)
    assert path.read_text() == "measure,baseline,ranker,effect,query,text,value,baseline_value,difference,attribute.documents\n"
    other = stored("other.parquet", [0.5, 0.5], ["q1", "q9"])
    with pytest.raises(DataError, match="not tested on the same queries"):
        segmented.fn({"base": [same], "own": [other]}, [test], rule, "ndcg_3", ["documents"], None)


def test_folds_stand_behind_one_another(workplace):
    parts = [keep_queries(judged(3)), keep_queries(judged(2))]
    base = [stored("b1.parquet", [0.5] * 3), stored("b2.parquet", [0.5] * 2)]
    own = [stored("o1.parquet", [0.6] * 3), stored("o2.parquet", [0.3] * 2)]
    found = segmented.fn({"base": base, "own": own}, parts, Segments(baseline="base", fewest=2), "ndcg_3", ["documents"], None)
    assert [(row.value, row.queries) for row in found.segments] == [("1", 2), ("2", 2), ("3", 1)]
    assert found.segments[0].difference == pytest.approx((0.1 - 0.2) / 2)


def test_changed_queries_of_finished_runs(tmp_path):
    runs = [Stored("a", [stored(tmp_path / "a", [0.5, 0.5])]), Stored("b", [stored(tmp_path / "b", [0.7, 0.1])])]
    (found,) = changed_queries(runs, "ndcg_3", 1)
    assert (found.ranker, found.baseline) == ("b", "a")
    assert [row.query for row in (*found.harmed, *found.helped)] == ["q2", "q1"]
    with pytest.raises(DataError, match="--queries 0: the number of queries to list, 1 or more"):
        changed_queries(runs, "ndcg_3", 0)


def test_segments_in_the_page():
    text = SEGMENTS.section()
    for part in (
        "NDCG@3 against judged: 1 of 1 segment test is significant at 95 % (Holm): graded on language=&lt;de&gt; -0.1000.",
        "<td>&lt;de&gt;</td><td>12 <small>(11 defined)</small></td><td>graded</td>",
        '<td class="worse">-0.1000</td>',
        "graded against judged, NDCG@3: 0 queries helped, 1 harmed, 13 unchanged.",
        "<h3>Most harmed</h3>",
        "q7&ensp;<small>a &lt;b&gt;</small></td><td>0.1000</td><td>0.4000</td><td>-0.3000</td><td>&lt;de&gt;</td>",
    ):
        assert part in text
    assert "Most helped" not in text


def test_many_segments_are_cut_and_many_findings_counted():
    many = replace(SEGMENTS, segments=tuple(replace(SEGMENT, value=str(k)) for k in range(34)))
    text = many.section()
    assert "4 more in segments.csv" in text
    assert text.count('class="worse"') == 30
    assert many.text().endswith("graded on language=4 -0.1000, 29 more.")
    assert replace(SEGMENTS, segments=(NOBODY,)).text() == "NDCG@3 against judged: no segment has enough queries for a test."
    assert CHANGES.text().endswith("0 queries helped, 1 harmed, 13 unchanged.")


def test_where_fewer_is_better_a_fall_is_a_gain():
    assert '<td class="better">-0.1000</td>' in replace(SEGMENTS, measure="errors").section()


def test_values_that_a_number_does_not_hold_are_words():
    tenants = ["1790000000000000001", "1790000000000000002", "1790000000000500000"]
    assert list(cut([*tenants, tenants[1], None]).items()) == [
        (tenants[1], [1, 3]),
        (tenants[0], [0]),
        (tenants[2], [2]),
        ("(none)", [4]),
    ]
    assert list(cut(["3.1", "3.10", "3.9", "3.1"]).items()) == [("3.1", [0, 3]), ("3.10", [1]), ("3.9", [2])]
    moments = [str(1_700_000_000_000_000_000 + k) for k in range(0, 90_000, 1000)]
    assert len(cut(moments)) == 3, "terciles of many"
    assert cut(["3.10", "3.90", "3.50"]) == {"3.1": [0], "3.5": [2], "3.9": [1]}, "prices"


def test_of_equal_gains_p_knows_how_low_values_may_be():
    masks, own, base = [("all", np.ones(6, bool))], np.full(6, 0.5), np.zeros(6)
    of_ndcg, of_tau = (contrast(masks, {"own": own}, base, (2, lowest))[0].p for lowest in (0.0, -1.0))
    assert of_ndcg < of_tau


def test_what_features_are_changed_to_is_found_once_for_a_data_set(workplace, monkeypatch):
    """It was looked for in all test queries again for each query of each ranker: of 200,000 documents 13 seconds a ranker."""
    queries, looked = make_queries(12), []
    stored = keep_queries(queries)
    chosen = []
    for name in ("one", "two"):
        model = ltr.LeastSquares(ridge=len(chosen) + 1.0).fit(queries)
        ltr.save(model, CellFolder.of(name).model)
        cell = SimpleNamespace(data=SimpleNamespace(test=stored))
        chosen.append(SimpleNamespace(ranker=name, cell=cell, result=SimpleNamespace(key=name)))
    rows = tuple(ChangedQuery(name, 0.4, 0.6, -0.2) for name in names_of(queries)[:3])
    tried = {}
    with monkeypatch.context() as patched:
        patched.setattr(segments_module, "values_to_try", lambda *given: looked.append(given) or values_to_try(*given))
        patched.setattr("ltr.diagnostics.why_above.values_to_try", None)
        found = [_looked_into(Changes(name, "base", "map", rows, (), 3, 0, 0), chosen, tried) for name in ("one", "two")]
    assert len(looked) == 1
    for one, entry in zip(chosen, found, strict=True):
        model = ltr.load(CellFolder.of(one.ranker).model)
        assert [row.why for row in entry.harmed] == [pair_of(model, queries, row.query).text() for row in rows]


def test_rankers_of_other_features_are_told_changes_of_their_own(workplace):
    """Both rank one data set, in which the one reads all features and the other the last two."""
    queries = make_queries(12)
    fewer = replace(queries, features=queries.features[:, 2:], names=queries.names[2:])
    stored, chosen, tried = keep_queries(queries), [], {}
    for name, own in (("all", queries), ("two", fewer)):
        ltr.save(ltr.LeastSquares().fit(own), CellFolder.of(name).model)
        cell = SimpleNamespace(data=SimpleNamespace(test=stored))
        chosen.append(SimpleNamespace(ranker=name, cell=cell, result=SimpleNamespace(key=name)))
    rows = (ChangedQuery(names_of(queries)[0], 0.4, 0.6, -0.2),)
    for one in chosen:
        found = _looked_into(Changes(one.ranker, "base", "map", rows, (), 3, 0, 0), chosen, tried)
        assert found.harmed[0].why == pair_of(ltr.load(CellFolder.of(one.ranker).model), queries, rows[0].query).text()
