"""Known numbers on public data, and the two configurations that read them. Skipped, and said so, where the data are not there."""

import numpy as np
import pytest

import ltr
from flows.pipeline import run
from ltr.data.queries import concatenate
from tasks.config.data_section import Data
from tasks.config.reading import read
from tasks.data.ingest import ingest
from tasks.evidence.guarantee import Guarantees
from tasks.evidence.optimality import Certificates
from tasks.store.datasets import open_queries

pytestmark = pytest.mark.usefixtures("real_data", "workplace")
LETOR3 = ltr.Conventions(threshold=1, max_label=2, empty="zero", ties="stable")


def read_parts(folder):
    data = Data(parts=[folder / f"S{k}.txt" for k in range(1, 6)])
    return [open_queries(ingest.fn([part], data).data) for part in data.parts]


@pytest.mark.parametrize(("name", "queries", "documents", "features"), [("ohsumed", 106, 16140, 45), ("mq2008", 784, 15211, 46)])
def test_counts(real_data, name, queries, documents, features):
    parts = read_parts(real_data / name)
    assert sum(part.n_queries for part in parts) == queries
    assert sum(part.n_documents for part in parts) == documents
    assert {part.n_features for part in parts} == {features}


def test_least_squares_on_ohsumed_by_letor_3(real_data):
    parts = read_parts(real_data / "ohsumed")
    means = []
    for i in range(5):
        train, test = concatenate([parts[(i + k) % 5] for k in range(3)]), parts[(i + 4) % 5]
        scores = ltr.LeastSquares().fit(train).predict(test.features)
        names = ["jk_ndcg@1", "jk_ndcg@3", "jk_ndcg@5", "jk_ndcg@10", "map"]
        means.append([v.mean() for v in ltr.evaluate(test.labels, scores, test.offsets, names, LETOR3, test.position).values()])
    assert np.mean(means, axis=0) == pytest.approx([0.4456, 0.4426, 0.4278, 0.4110, 0.4220], abs=1e-4)


def test_lightgbms_example_and_its_own_bar(real_data):
    folder = real_data / "lightgbm-rank"
    data = Data(files=[folder / "rank.train"])
    train, test = (open_queries(ingest.fn([folder / name], data).data) for name in ("rank.train", "rank.test"))
    assert (train.n_queries, train.n_documents, test.n_queries, test.n_documents) == (201, 3005, 50, 768)
    features = test.features[:, : train.n_features]
    model = ltr.LambdaMART(n_trees=50, n_leaves=31, min_docs_in_leaf=50, stop_on=None).fit(train)
    values = ltr.evaluate(test.labels, model.predict(features), test.offsets, ["ndcg@1", "ndcg@3"], ltr.Conventions(empty="one"))
    assert values["ndcg_1"].mean() > 0.5674
    assert values["ndcg_3"].mean() > 0.578


@pytest.mark.long
@pytest.mark.usefixtures("prefect_server")
def test_ohsumed_configuration(real_data, monkeypatch, request):
    monkeypatch.setenv("LAMBDAFLOW_DATA", str(real_data))
    less = [
        "rankers.lambdamart.sweep={learning_rate: [0.05], n_leaves: [5]}",
        "rankers.linear.sweep={learning_rate: [0.001]}",
        "rankers.average.of=[{kind: lambdamart, n_trees: 20}, {kind: lambdarank, epochs: 10}]",
    ]
    config = read(request.config.rootpath / "conf" / "ohsumed.yaml", less)
    outcome = run(config)
    rows = outcome.standings.rows
    assert rows["least_squares"].cells["map"].mean == pytest.approx(0.4220, abs=1e-4)
    assert rows["lambdamart"].cells["map"].mean > 0.43
    assert rows["linear"].cells["map"].mean > 0.435
    (certificates,) = [found for found in outcome.evidence if isinstance(found, Certificates)]
    assert certificates.found[0].directions == 459


@pytest.mark.usefixtures("prefect_server")
def test_session_configuration(real_data, monkeypatch, request):
    """Real clicks, one point of each grid: by chance (all scores alike), trained on judgments, and on clicks too."""
    monkeypatch.setenv("LAMBDAFLOW_DATA", str(real_data))
    config = read(
        request.config.rootpath / "conf" / "trec-session.yaml", ["sweep={}", "rankers.graded.sweep={objective.1.weight: [0.3]}"]
    )
    outcome = run(config)
    numbers = {
        "ndcg@3": (0.1950, 0.3337, 0.3161), "ndcg@10": (0.2685, 0.4017, 0.4136), "map:binary": (0.3175, 0.4424, 0.4320),
        "cndcg@3": (0.0857, 0.1690, 0.1607), "cndcg@10": (0.1762, 0.2736, 0.2728),
    }  # fmt: skip
    for name, (by_chance, judged, graded) in numbers.items():
        measure, means = ltr.Measure.of(name), []
        for fold in outcome.folds:
            test = open_queries(fold.test)
            labels, nothing = {"label": test.labels, **test.sources}, np.zeros(test.n_documents)
            means.append(
                np.nanmean(ltr.evaluate(labels, nothing, test.offsets, measure, ltr.Conventions(threshold=1))[measure.key])
            )
        assert np.mean(means) == pytest.approx(by_chance, abs=0.0001), name
        for ranker, mean in (("judged", judged), ("graded", graded)):
            assert outcome.standings.rows[ranker].cells[measure.key].mean == pytest.approx(mean, abs=0.0005), (ranker, name)
            assert mean > by_chance
    (guarantees,) = [one for one in outcome.evidence if isinstance(one, Guarantees)]
    assert not any(promise.promised for promise in guarantees.rankers[0].promises), "ten topics of a fold are too few"


def test_eligible_click_pairs_of_the_session_log(real_data):
    from tasks.data.clicks import attach, click_tables

    folder = real_data / "trec-session-2013"
    columns = {"query": "topic", "document": "doc", "click": "click_orders"}
    data = Data(files=[folder / "judged.txt"], clicks={"log": folder / "clicklog.tsv", "interaction": "interaction", **columns})
    judged = open_queries(ingest.fn(data.files, data).data)
    assert (judged.n_queries, judged.n_documents) == (49, 2694)
    _, facts = attach(judged, click_tables(data.clicks)[0]["click"])
    assert facts.pairs == pytest.approx(240, abs=25)
    _, whole = attach(judged, click_tables(data.clicks.model_copy(update={"interaction": None}))[0]["click"])
    assert whole.pairs == pytest.approx(27, abs=8)
