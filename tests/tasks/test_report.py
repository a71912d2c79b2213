"""The page: the same bytes for the same run, and text that is escaped."""

from tasks.report import certificate_text, changed_text, page, promise_text, segments_text, write_report

CERTIFICATE = {
    "ranker": "linear", "verdict": "optimum", "measure": "ndcg", "value": 0.8, "steps": [0.1, 0.2], "norm": 2.0,
    "curves": [[0.79, 0.78]] * 4, "envelope": [[0.78, 0.77], [0.795, 0.79]], "rising": 0, "rising_or_tied": 0, "tie_share": 0.0,
    "upper_bound": 0.0099, "epsilon": 0.01, "delta": 0.01, "directions": 459,
}  # fmt: skip
CHAMPION = {
    "name": "search", "version": "2", "champion": "1", "ranker": "graded", "verdict": "better", "promoted": True,
    "text": "better than the champion, version 1",
    "tiers": [{"measure": "ndcg_3", "difference": 0.02, "lower_bound": 0.01, "upper_bound": 0.03, "verdict": "better"}],
    "drift": [{"kind": "features", "name": "f1", "index": 0.4, "text": "f1: stability index 0.40"}],
}  # fmt: skip
PROMISE = {
    "ranker": "graded", "baseline": "judged", "margin": 0.01, "level": 0.95, "held": "yes", "comparison": "better",
    "promises": [{"chosen": "w=1", "promised": True}],
    "tiers": [
        {"measure": "ndcg_3", "difference": -0.001, "lower_bound": -0.004, "verdict": "equal"},
        {"measure": "cndcg_3", "difference": 0.02, "lower_bound": 0.01, "verdict": "better"},
    ],
    "frontier": {
        "baseline": [0.5, 0.4], "margin": 0.01, "level": 0.95, "tiers": ["ndcg_3", "cndcg_3"],
        "points": [{"label": "w=1", "taken": True, "mean": [0.5, 0.42], "covariance": [[1e-6, 0.0], [0.0, 1e-5]]}],
    },
}  # fmt: skip
LOOKS = {
    "ranker": "graded", "measure": "ndcg@3", "iteration": [10, 20], "labels": [0.0, 4.0], "agreement": {"all": [0.7, 0.8], "same_label": [0.9, 0.9]},
    "partners": [[0.6, None], [0.7, 0.3]], "top_labels": [[0.2, 0.8], [0.1, 0.9]], "moved": [None, 0.3], "moved_top": [None, 0.1], "top": 3,
    "train": [0.5, 0.6], "test": [0.4, 0.5], "lost": [{"query": "q<1>", "document": "d", "label": 4.0, "rank": 9, "force": 0.4, "smallest": 0.3}],
}  # fmt: skip
SEGMENT = {
    "attribute": "language",
    "value": "<de>",
    "ranker": "graded",
    "queries": 12,
    "n": 11,
    "mean": 0.4,
    "baseline_mean": 0.5,
    "difference": -0.1,
    "se": 0.02,
    "p": 0.001,
    "holm_p": 0.002,
}
UNTESTED = {"se": None, "p": None, "holm_p": None}
NOBODY = {**SEGMENT, **UNTESTED, "value": "en", "queries": 2, "n": 0, "mean": None, "baseline_mean": None, "difference": None}
CHANGED = {
    "ranker": "graded", "baseline": "judged", "measure": "ndcg_3", "n_harmed": 1, "n_helped": 0, "n_same": 13, "helped": [],
    "harmed": [{"query": "q7", "text": "a <b>", "value": 0.1, "baseline": 0.4, "difference": -0.3, "attributes": {"language": "<de>"}}],
}  # fmt: skip
SEGMENTS = {"measure": "ndcg_3", "baseline": "judged", "fewest": 10, "segments": [SEGMENT, NOBODY], "changed": [CHANGED]}
CELL = {"mean": 0.5, "se": 0.01, "n": 10, "beats": {"b": 95}}
RUN = {
    "name": "<script>alert(1)</script>", "facts": ["1 fold"], "summary": "Best: linear.", "n_folds": 1, "conventions": {"ties": "expected"},
    "standings": {
        "measures": ["ndcg_10"],
        "rows": {"linear": {"letter": "a", "cells": {"ndcg_10": CELL}}, "other": {"letter": "b", "cells": {"ndcg_10": {**CELL, "mean": None}}}},
        "pairs": [{"measure": "ndcg_10", "a": "linear", "b": "other", "difference": 0.1, "se": 0.0, "z": None, "p": 0.0, "holm_p": 0.0, "n": 9}],
    },
    "champion": CHAMPION, "segments": SEGMENTS, "certificates": [CERTIFICATE], "promises": [PROMISE], "looks": [LOOKS], "objectives": {}, "curves": {}, "select": "ndcg_10", "plot_by": None, "traces": [], "findings": [{"level": "note", "subject": "train", "text": "fine"}], "config": "a: 1",
    "cells": [{"label": "linear", "ranker": "linear", "point": {}, "fold": 0, "chosen": True, "metrics": {"valid_ndcg_10": 0.5}, "seconds": 1.0, "digest": "ab" * 32}],
}  # fmt: skip


def test_the_page_is_reproducible_and_escaped(tmp_path):
    first = write_report.fn(RUN, tmp_path / "a.html").read_bytes()
    assert write_report.fn(RUN, tmp_path / "b" / "b.html").read_bytes() == first
    assert b"<script>alert" not in first
    assert b"&lt;script&gt;" in first
    assert b"0.5000<sup>b</sup>" in first
    assert b"q&lt;1&gt;" in first
    assert b"NDCG@3, test" in first


def test_undefined_means_are_dashes():
    rows = page(RUN)["rows"]
    assert rows[1]["cells"][0]["mean"] == "–"
    assert rows[0]["cells"][0]["best"]


def test_what_a_certificate_says():
    assert "no direction rises: with confidence 99% fewer than 1% do" in certificate_text(CERTIFICATE)
    assert "1 direction rises" in certificate_text({**CERTIFICATE, "verdict": "not", "rising": 1})
    assert "40.0% of the evaluations tie" in certificate_text({**CERTIFICATE, "verdict": "inconclusive", "tie_share": 0.4})


def test_what_a_promise_came_to():
    assert promise_text(PROMISE) == (
        "no loss above 0.01 on NDCG@3 (95%): promised; shown on test queries (NDCG@3 -0.0010, at least -0.0040). CNDCG@3 +0.0200: better."
    )
    assert "promised in 1 of 2 folds" in promise_text({**PROMISE, "promises": [{"promised": True}, {"promised": False}]})
    assert "not promised, no cell" in promise_text({**PROMISE, "promises": [{"promised": False}]})
    assert "broken on test queries" in promise_text({**PROMISE, "held": "no"})


def test_segments_in_the_page(tmp_path):
    text = write_report.fn(RUN, tmp_path / "a.html").read_text()
    for part in (
        "NDCG@3 against judged: 1 of 1 tests by segment differ at 95 %: graded on language &lt;de&gt; -0.1000.",
        "<td>&lt;de&gt;</td><td>12 <small>(11 defined)</small></td><td>graded</td>",
        '<td class="worse">-0.1000</td>',
        "graded against judged, NDCG@3: 0 queries helped, 1 harmed, 13 the same.",
        "<h3>Most harmed</h3>",
        "q7&ensp;<small>a &lt;b&gt;</small></td><td>0.1000</td><td>0.4000</td><td>-0.3000</td><td>&lt;de&gt;</td>",
    ):
        assert part in text
    assert "Most helped" not in text
    assert "<h2>Segments</h2>" not in write_report.fn({**RUN, "segments": None}, tmp_path / "b.html").read_text()


def test_many_segments_are_cut_and_many_findings_counted():
    many = {**SEGMENTS, "segments": [{**SEGMENT, "value": str(k)} for k in range(34)]}
    shown = page({**RUN, "segments": many})["segments"]
    assert (len(shown["attributes"]["language"]), shown["left_out"]) == (30, {"language": 4})
    assert segments_text(many).endswith("graded on language 4 -0.1000, 29 more.")
    assert segments_text({**SEGMENTS, "segments": [NOBODY]}) == "NDCG@3 against judged: 0 of 0 tests by segment differ at 95 %."
    assert changed_text(CHANGED).endswith("0 queries helped, 1 harmed, 13 the same.")


def test_where_fewer_is_better_a_fall_is_a_gain():
    errors = {**SEGMENTS, "measure": "errors"}
    assert page({**RUN, "segments": errors})["segments"]["attributes"]["language"][0]["mark"] == "better"
