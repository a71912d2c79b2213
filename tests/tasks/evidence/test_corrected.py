"""Rankers of a run as people would judge them: against all of people's labels, in a whole run, and what is refused."""

import itertools

import numpy as np
import polars as pl
import pytest

import ltr
from flows.pipeline import run
from tasks.config.reading import parse
from tasks.evidence.corrected import AsPeopleWould
from tasks.records import ConfigError, DataError
from tasks.store.datasets import open_queries

pytestmark = pytest.mark.usefixtures("undrawn")


def written(share, n_queries=60, seed=0):
    """Writes a machine's labels and people's of a share; returns people's of everything."""
    rng = np.random.default_rng(seed)
    n = 20 * n_queries
    people = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    machine = np.clip(people + (rng.random(n) < 0.4), 0, 2)
    pl.DataFrame({
        "query": [f"q{k // 20}" for k in range(n)], "document": [f"d{k}" for k in range(n)], "label": machine,
        "grade": [int(y) if rng.random() < share else None for y in people], "good": people + rng.normal(size=n), "poor": people + 5 * rng.normal(size=n),
    }).write_csv("judged.csv")  # fmt: skip
    return people


CONFIG = {
    "data": {"files": "judged.csv", "sources": ["grade"], "calibrate": {"source": "grade"}, "folds": 3},
    "rankers": {"good": {"kind": "column", "feature": "good"}, "poor": {"kind": "column", "feature": "poor"}},
    "conventions": {"gain": "linear"},
    "corrected": {"measure": "dcg@5"},
}


@pytest.mark.usefixtures("prefect_server")
def test_a_run_says_what_people_would(workplace):
    people = written(0.4)
    outcome = run(parse(CONFIG))
    found = next(one for one in outcome.evidence if isinstance(one, AsPeopleWould))
    assert [(row.run, row.against) for row in found.rows] == [("good", None), ("poor", None), ("poor", "good")]
    table = pl.read_csv("judged.csv").with_columns(people=people)
    for row in found.rows[:2]:
        dcg = {"label": [], "people": []}
        for (_, own), (labels, values) in itertools.product(table.group_by("query"), dcg.items()):
            top = own.sort(row.run, descending=True).head(5)[labels].to_numpy()
            values.append((top / np.log2(np.arange(2, 7))).sum())
        assert row.found.machine == pytest.approx(np.mean(dcg["label"]))
        assert row.found.interval[0] < np.mean(dcg["people"]) < row.found.interval[1] < row.found.machine
    assert found.rows[2].settled
    tests = [open_queries(fold.test) for fold in outcome.folds]
    judged = sum((~np.isnan(queries.sources["grade"])).sum() for queries in tests)
    assert found.rows[0].found.population == len(table)
    assert 0 < found.rows[0].found.sampled < judged
    assert found.sentences()[0] == "dcg@5 as people would judge, with 95% intervals:"
    assert "poor − good" in found.section()
    assert "settled" in found.section()
    assert found.numbers()["corrected"][0]["run"] == "good"
    assert ltr.Conventions(gain="linear") == outcome.config.core_conventions


@pytest.mark.usefixtures("prefect_server")
def test_equal_scores_and_documents_at_no_rank_count_as_in_every_measure(workplace):
    """Whatever the order of rows."""
    written(0.4)
    table = pl.read_csv("judged.csv").with_columns(
        good=(pl.col("good") > 1).cast(pl.Int8), poor=pl.when(pl.col("poor") > 4).then(pl.col("poor"))
    )
    found = []
    for frame in (table, table.sample(fraction=1, shuffle=True, seed=3), table.sort("label")):
        frame.write_csv("judged.csv")
        config = parse(
            {
                **CONFIG,
                "corrected": {"measure": "p@5"},
                "measures": ["p@5:machine"],
                "conventions": {"empty": "zero", "threshold": 1},
            }
        )
        outcome = run(config)
        (rows,) = (one.rows for one in outcome.evidence if isinstance(one, AsPeopleWould))
        found.append(rows)
        means = outcome.standings.rows
        for row in rows[:2]:
            assert row.found.machine == pytest.approx(means[row.run].cells["p_5_machine"].mean)
    assert found[0] == found[1] == found[2]


def test_it_needs_labels_of_people_and_a_sum_over_documents(workplace):
    with pytest.raises(ConfigError, match=r"corrected: data\.calibrate, which names the human labels, is missing"):
        parse({"data": {"files": "a"}, "corrected": {}})
    with pytest.raises(ConfigError, match="corrected: measure 'ndcg@10': p@k and dcg@k are sums over documents"):
        parse({**CONFIG, "corrected": {"measure": "ndcg@10"}})
    with pytest.raises(
        ConfigError, match=r"corrected: every document must be ranked, and conventions\.unlabelled: condensed leaves some out"
    ):
        parse({**CONFIG, "conventions": {"unlabelled": "condensed"}})
    with pytest.raises(
        ConfigError,
        match=r"corrected: p@k must be divided by k, and conventions\.short: size divides by the query's number of documents",
    ):
        parse({**CONFIG, "corrected": {"measure": "p@5"}, "conventions": {"short": "size"}})
    parse({**CONFIG, "conventions": {"short": "size"}})
    written(0.01, n_queries=12)
    with pytest.raises(DataError, match="corrected: people judged 0 test documents that the machine labelled; an interval needs 4"):
        run(parse({**CONFIG, "data": {**CONFIG["data"], "folds": 1}}))
