"""The page of the papers is what the recorded runs say, and verdicts are what their rules say."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import block, donmez2009, dubey2009, page, svore2011, unbiased
from benchmarks.papers.block import Runs, graded

ROOT = Path(__file__).parents[1]
PAGE = page.PAGE.read_text(encoding="utf-8")
RECORDED = page.recorded()
MADE = page.MARKED


def test_the_page_is_made_of_what_is_recorded():
    assert page.render(PAGE, RECORDED) == PAGE, "make results"


def test_every_block_is_on_the_page_and_of_configurations_that_are_there():
    on_page = [found[2] for found in page.MARKED.finditer(PAGE)]
    assert sorted(on_page) == sorted(page.BLOCKS)
    known = {path.stem for path in (ROOT / "conf" / "papers").rglob("*.yaml")}
    assert {name.split("-", 1)[1] for block in page.BLOCKS.values() for name in block.names} <= known


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded_says_whence_it_is(name):
    one = RECORDED[name]
    assert len(one["run"]) == 32
    assert all(one["data"]["queries"])
    assert one["rankers"]
    assert all(len(model) == 12 for ranker in one["rankers"].values() for model in ranker["models"])
    assert "trees and epochs" not in one["cut"], "training is as long as the paper's"


def run_of(**rankers: Any) -> dict[str, Any]:
    """A recorded run of rankers by mean and by whom they beat."""
    made = {
        name: {"test": {"map": [mean, 0.01]}, "beats": {"map": dict.fromkeys(beats, 95)}, "at an end": [], "chosen": [""]}
        for name, (mean, beats) in rankers.items()
    }
    return {"run": 32 * "0", "data": {"queries": [[1, 2, 3]]}, "cut": "", "select": "map", "rankers": made, "cells": []}


def test_what_is_at_an_end_of_a_figures_cells_is_counted():
    def cell(name, share, notes, **settings):
        return {"ranker": name, "fold": 0, "point": {"share": share, **settings}, "at an end": notes}

    cells = [
        cell("a", 0.5, ["C 1e-08 is the smallest tried"], C=1e-8, rate=1),
        cell("a", 1, ["C 10 is the largest tried", "rate 1 is the largest tried"], C=10, rate=1),
        cell("b", 0.5, [], C=1),
        cell("f", 1, []),
    ]
    run = {**run_of(), "cells": cells}
    assert block.drawn_cells(run, "share")["a", 1, 0] is cells[1]
    bound = cell("c", 1, ["largest_leaf 1 is the smallest tried"], largest_leaf=1)
    assert block.at_ends([bound]) == ["of 1 chosen cells largest_leaf is the smallest in 1"]
    told = ["of 3 chosen cells C is the smallest in 1 and the largest in 1", "of 2 chosen cells rate is the largest in 1"]
    assert block.at_ends(cells) == told
    assert f"grid: {', '.join(told)}" in block.whence(Runs({"x": run})), "of the run's own choice nothing is told"
    assert "at the end" not in block.whence(Runs({"x": {**run, "cells": cells[2:]}}))
    assert "2 % of the paper's 50 to train" in block.whence(Runs({"x": run}), of_training=50)
    several = block.whence(Runs({"x": run, "x, seed 2": {**run, "run": 32 * "1"}}))
    assert several.startswith("*x: runs `00000000`, `11111111`, 1 / 2 / 3 training")
    assert "of 6 chosen cells C is the smallest in 2 and the largest in 2" in several


def test_nets_count_at_similar_numbers_of_pairs_if_they_beat_random_weights():
    def cell(name, rate, pairs, test):
        point = {"train_share": 1, "learning_rate": rate}
        return {
            "ranker": name,
            "fold": 0,
            "point": point,
            "effective_pairs": pairs,
            "test_mrr": test,
            "test_ndcg_10": test,
        }

    cells = [
        cell("trained-mrr", 0.1, 10, 0.6), cell("trained-mrr-exact", 0.1, 900, 0.21),
        cell("trained-ndcg", 0.1, 18, 0.5), cell("trained-map", 0.1, 21, 0.7), cell("untrained", 0.1, 0, 0.2),
    ]  # fmt: skip
    run = {"select": "mrr", "cells": cells, "rankers": {"untrained": {"test": {"mrr": [0.2, 0.01], "ndcg_10": [0.2, 0.01]}}}}
    assert donmez2009.pairs_judged(Runs({"x": run})) == (
        "holds",
        "MRR is better by training for it in 1 of 1 comparisons at half to twice as many pairs (x; left out, as they do not beat random weights: 1)",
    )
    assert [row.split(" | ")[1:6] for row in donmez2009.pairs_table(Runs({"x": run}))[2:4]] == [
        ["mrr", "1", "0.1", "10", ".6000"], ["mrr-exact", "1", "0.1", "900", ".2100"],
    ]  # fmt: skip


def plotted(**maps: Mapping[float, float]) -> Runs:
    """Runs of a figure against ``k``, by title; MAP at each value, on one fold."""
    return Runs({
        title.replace("_", ", "): {"cells": [
            {"ranker": "a", "fold": 0, "point": {"k": k}, "test_map": value, "test_ndcg_10": value / 2} for k, value in of.items()
        ]}
        for title, of in maps.items()
    })  # fmt: skip


def test_figures_are_means_over_seeds_and_their_verdicts_know_the_error():
    runs = plotted(x={1: 0.1, 2: 0.3}, x_seed={1: 0.2, 2: 0.3}, y={1: 0.5, 2: 0.4})
    assert dubey2009.series("k")(runs)[2:] == [
        "| 1 | .0750 (.0250) | .1500 (.0500) | .2500 | .5000 |",
        "| 2 | .1500 (.0000) | .3000 (.0000) | .2000 | .4000 |",
    ]
    assert dubey2009.best_at("k", 2, 0.01)(runs)[0] == "holds in part"
    assert dubey2009.best_at("k", 2, 0.01)(plotted(x={1: 0.1, 2: 0.3}))[0] == "holds"
    assert dubey2009.best_at("k", 2, 0.5)(plotted(x={1: 0.1, 2: 0.3}))[0] == "holds in part", "not by that much"
    unsure = plotted(x={1: 0.1, 2: 0.3}, x_seed={1: 0.3, 2: 0.2})
    assert dubey2009.best_at("k", 2, 0.01)(unsure) == (
        "does not hold",
        "x: best at 2 (within an error), 0.0500 MAP between best and worst",
    )
    verdict, told = dubey2009.rises("k")(
        plotted(x={1: 0.1, 2: 0.29, 3: 0.3}, x_seed={1: 0.2, 2: 0.3, 3: 0.3}, y={1: 0.5, 2: 0.6, 3: 0.8})
    )
    assert verdict == "holds in part"
    assert told.startswith(
        "x: MAP +0.1500 (SE 0.0500 over 2 seeds) from the fewest to the most, +0.0050 in the last step; y: MAP +0.3000 from"
    )


def test_baselines_beside_what_letor_publishes():
    def run(map_of_ranksvm, ndcg_of_listnet=0.441):
        published = dubey2009.PUBLISHED.items()
        tests = {name: {"map": [a, 0.01], "ndcg_1": [b, 0.01], "ndcg_10": [c, 0.01]} for name, (a, b, c) in published}
        tests["RankSVM"]["map"][0], tests["ListNet"]["ndcg_10"][0] = map_of_ranksvm, ndcg_of_listnet
        return Runs({"OHSUMED": {"rankers": {name: {"test": test} for name, test in tests.items()}}})

    said = "within .02 of the published MAP and NDCG@10"
    assert dubey2009.beside_letor_judged(run(0.44)) == ("holds", f"4 of 4 are {said}")
    assert dubey2009.beside_letor_judged(run(0.5)) == ("holds", f"3 of 4 are {said}, RankSVM better")
    assert dubey2009.beside_letor_judged(run(0.44, 0.4)) == ("holds in part", f"3 of 4 are {said}")
    mixed = run(0.5)
    mixed.found["OHSUMED"]["rankers"]["RankSVM"]["test"]["ndcg_10"][0] = 0.2
    assert dubey2009.beside_letor_judged(mixed) == ("holds in part", f"3 of 4 are {said}"), "better in one, worse in the other"
    assert dubey2009.beside_letor_judged(Runs({"MQ2008": {}}))[0] == "not run"


def matched(**means: tuple[float, float]) -> dict[str, Any]:
    """A recorded run of nets by what they are trained for, NDCG and MRR of each; MAP and NDCG@10 as NDCG."""
    rankers = {
        f"trained-{name.replace('_', '-')}": {"test": {"ndcg": [a, 0.01], "ndcg_10": [a, 0.01], "map": [a, 0.01], "mrr": [b, 0.01]}}
        for name, (a, b) in means.items()
    }
    return {"select": "ndcg", "rankers": rankers}


def test_training_for_mrr_is_worst_only_if_its_exact_rule_is():
    nets = {"ndcg": (0.5, 0.6), "ndcg_10": (0.4, 0.5), "map": (0.45, 0.5), "mrr": (0.1, 0.2)}
    verdict, told = donmez2009.matching(Runs({"x": matched(**nets, mrr_exact=(0.42, 0.58))}))
    assert verdict == "holds in part"
    assert told == (
        "x: matching is best for NDCG, MRR by its exact rule is not worst everywhere (in MRR 0.020 behind the best, by eq. 11 0.400)"
    )
    worst = donmez2009.matching(Runs({"x": matched(**nets, mrr_exact=(0.3, 0.4))}))[1]
    assert "its exact rule is worst everywhere (in MRR 0.200 behind" in worst
    in_one = donmez2009.matching(Runs({"x": matched(**nets, mrr_exact=(0.3, 0.58))}))[1]
    assert "its exact rule is not worst everywhere" in in_one, "in NDCG alone"


def test_small_training_sets_are_judged_at_three_ranks():
    def cells(name, *values):
        own = {f"test_ndcg_{k}": value for k, value in zip((1, 3, 10), values, strict=True)}
        return {"ranker": name, "fold": 0, "point": {"train_share": 1}, "valid_ndcg_3": 0.1, **own}

    run = {
        "cells": [
            cells("newton", 0.1, 0.1, 0.1),
            cells("gradient", 0.2, 0.2, 0.2),
            cells("linear", 0.3, 0.3, 0.15),
            cells("exponential", 0.1, 0.1, 0.1),
        ]
    }
    assert svore2011.by_share_judged(Runs({"x": run})) == (
        "holds in part", "of 1 sizes λ + λ^S is ahead at 1 (@1), 1 (@3), 0 (@10), gradient ahead of Newton at 1 (@1), 1 (@3), 1 (@10)",
    )  # fmt: skip


def test_a_winner_has_to_beat_all_others_on_every_set_and_random_weights_at_all():
    judge = donmez2009.winner("a", "map", ["b", "c"])

    def verdict(*runs):
        return judge(Runs({str(k): run for k, run in enumerate(runs)}))[0]

    surely, nominal = run_of(a=(0.4, ["b", "c"]), b=(0.3, []), c=(0.2, [])), run_of(a=(0.4, ["c"]), b=(0.3, []), c=(0.2, []))
    behind = run_of(a=(0.1, []), b=(0.3, []), c=(0.2, []))
    assert [verdict(surely), verdict(surely, nominal), verdict(nominal), verdict(surely, behind), verdict(behind)] == [
        "holds", "holds in part", "holds in part", "holds in part", "does not hold",
    ]  # fmt: skip
    weak = run_of(a=(0.4, ["b", "c"]), b=(0.3, ["untrained"]), c=(0.2, []), untrained=(0.1, []))
    assert verdict(weak) == "refused"


def test_climbs_are_read_from_what_the_training_says():
    taken = "best epoch 3 of 200; polished, map 0.4853 → 0.4898 in 18 steps: optimum; validation 0.35 → 0.36: taken"
    left = "polished, map 0.4853 → 0.4854 in 1 step: not (2 of 459 fresh directions rise); validation 0.35 → 0.34: left"
    run = run_of(net=(0.4, []), **{"net-polished": (0.5, [])})
    run["rankers"]["net-polished"] |= {"remarks": [taken, left], "chosen": ["", ""]}
    run["optimality"] = [{"ranker": "net", "rising": 7, "directions": 459}]
    runs = Runs({"x": run})
    (row,) = donmez2009.climbs(runs)[2:]
    cells = ["x: net", "7 of 459", "18, 1", "1 optimum, 1 not", "+0.0000", "1 of 2", ".4000 (.0100)", ".5000 (.0100)"]
    assert row == f"| {' | '.join(cells)} |"
    assert donmez2009.climbed(runs) == ("holds in part", "1 of 2 climbs end at an optimum; validation queries take 1 of them")
    run["rankers"]["net-polished"]["remarks"] = [taken, "best epoch 3 of 200"]
    with pytest.raises(ValueError, match="net-polished: 1 of 2 folds say nothing of a climb"):
        donmez2009.climbs(runs)


def test_optima_are_counted_and_nothing_certain_is_inconclusive():
    def run(*verdicts):
        named = zip(("single-layer", "two-layer"), verdicts, strict=True)
        return Runs({"x": {"optimality": [{"ranker": name, "verdict": verdict} for name, verdict in named]}})

    judge = donmez2009.optimum()
    assert judge(run("optimum", "optimum")) == ("holds", "2 optimum of 2")
    assert judge(run("optimum", "not")) == ("holds in part", "1 optimum, 1 not of 2")
    assert judge(run("not", "inconclusive")) == ("does not hold", "1 not, 1 inconclusive of 2")
    assert judge(run("inconclusive", "inconclusive"))[0] == "inconclusive"


def test_certificates_of_several_worlds_have_their_spread():
    def run(rising, verdict):
        return {"optimality": [{"ranker": "two-layer", "rising": rising, "directions": 100, "verdict": verdict}]}

    one = donmez2009.certificates(Runs({"artificial": run(4, "not")}))
    assert one[2] == "| two-layer | 4 of 100 | not |"
    worlds = {"figure1, artificial": run(4, "not"), "figure1, world 2": run(0, "optimum"), "figure2, artificial": run(9, "not")}
    assert donmez2009.certificates(Runs(worlds)) == [
        "|  | figure1: rise | figure2: rise | figure1: verdict | figure2: verdict |",
        "|---|---|---|---|---|",
        "| two-layer | 4, 0 of 100 (0.02 ± 0.02) | 9 of 100 | 1 optimum, 1 not | not |",
    ]


def test_what_training_on_reaches_is_told_of_the_worlds_where_it_was_tried():
    def run(escape):
        return {"optimality": [{"ranker": "two-layer", "value": 0.5, "escape": escape}]}

    worlds = {"artificial": run({"best": 0.6, "rate": 0.01}), "world 2": run(None)}
    assert donmez2009.escapes(Runs(worlds))[2:] == ["| artificial | two-layer | .5000 | .6000 | 0.01 |"]


def test_a_run_at_the_papers_size_decides_and_the_others_stand_beside():
    def run(rising, *ways):
        verdict = "not" if rising else "optimum"
        return {
            "optimality": [{"ranker": f"two-layer{way}", "rising": rising, "directions": 9, "verdict": verdict} for way in ways]
        }

    runs = Runs({
        "figure1, artificial": run(4, "", ", epoch 7"), "figure1, the paper's size": run(0, ""), "figure2, artificial": run(3, ""),
    })  # fmt: skip
    assert donmez2009.optimum()(runs) == ("holds in part", "1 optimum, 1 not of 2")
    assert donmez2009.optimum(", epoch 7")(runs) == ("does not hold", "1 not of 1"), "what was not looked at there decides nothing"
    assert donmez2009.certificates(runs)[0] == (
        "|  | figure1: rise | figure1, the paper's size: rise | figure2: rise | "
        "figure1: verdict | figure1, the paper's size: verdict | figure2: verdict |"
    )
    assert donmez2009.certificates(runs, [", epoch 7"])[0] == "|  | figure1: rise | figure1: verdict |", (
        "only of runs that have some"
    )
    alone = Runs({"artificial": run(4, ""), "the paper's size": run(0, "")})
    assert donmez2009.certificates(alone)[2] == "| two-layer | 4 of 9 | 0 of 9 | not | optimum |"
    for figure in ("", "figure1, "):
        worlds = {"artificial": 4, "the paper's size": 0, "the paper's size (world 2)": 2}
        several = Runs({f"{figure}{title}": run(rising, "") for title, rising in worlds.items()})
        assert donmez2009.certificates(several)[2] == "| two-layer | 4 of 9 | 0, 2 of 9 (0.11 ± 0.11) | not | 1 optimum, 1 not |"
        assert donmez2009.optimum()(several) == ("holds in part", "1 optimum, 1 not of 2")


def test_a_claim_holds_where_every_data_set_shows_all_of_it():
    assert [graded(got, 2) for got in ([2, 2], [2, 0], [1], [0, 0])] == ["holds", "holds in part", "holds in part", "does not hold"]


def test_unknown_blocks_and_lost_lines_are_errors():
    with pytest.raises(ValueError, match="no table 'x'; there are donmez"):
        page.render("<!-- paper: x -->\n<!-- end -->\n", {})
    with pytest.raises(ValueError, match="the summary has no line"):
        page.render("", {})


def clicked_run(plain: float, way: float) -> dict[str, Any]:
    values = {"LambdaMART": plain, "LambdaMART additive": way, "net": plain, "net dla": plain}
    return {"run": 32 * "0", "rankers": {name: {"test": {"ndcg_10": [value, 0.01]}} for name, value in values.items()}}


def test_a_way_is_better_than_clicks_as_they_are_over_the_click_seeds():
    found = {f"mq2008, {seed}": clicked_run(0.4 + 0.01 * seed, 0.45 + 0.012 * seed) for seed in range(3)}
    runs = Runs({**found, "mq2008, judged": clicked_run(0.6, 0.6)})
    assert unbiased.gap(unbiased.by_seed(runs, "mq2008"), "LambdaMART additive") == (
        pytest.approx(0.052), pytest.approx(0.002 / 3**0.5),
    )  # fmt: skip
    assert unbiased.judge(runs)[0] == "holds in part"
    assert (
        unbiased.judge(runs)[1]
        == "of 2 ways and data sets 1 are better than clicks as they are at 95 % over the click seeds, 0 worse"
    )
    rows = unbiased.table(runs)
    assert rows[2] == "| LambdaMART on judgments | .6000 |"
    assert rows[4] == "| LambdaMART additive | .4620 (+0.0520 ±0.0012) |"


def sections() -> dict[str, str]:
    """Texts below the headings of the page, by anchor as links have it."""
    parts = re.split(r"^#{2,4} (.+)\n", PAGE, flags=re.M)[1:]
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"): text
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_a_line_of_the_summary_has_the_verdict_of_its_section():
    rows = re.findall(r"^\|[^|]*\| \[([^|]*)\]\(#([^)]+)\) \|.*\| ([^|]+) \|$", PAGE, re.M)
    figures = {f"figure {k}": anchor for k, anchor in enumerate(("ndcg", "ndcg10", "map", "mrr"), 1)}
    found = sections()
    assert len(rows) >= 40
    for name, section, verdict in rows:
        anchor = figures[name] if section == "donmez-figures-1-to-4-local-optimality" else section
        told = re.findall(r"\*\*Verdict: (.+?)\.\*\*", found[anchor])
        told += re.findall(r"^\|.*\| ([a-z ]+) \|$", found[anchor], re.M) if not told else []
        assert verdict in told, (anchor, verdict, told)


def test_what_holds_without_a_recorded_run_names_the_tests_that_assert_it():
    by_hand = {anchor: MADE.sub("", text) for anchor, text in sections().items()}
    claimed = {anchor: text for anchor, text in by_hand.items() if "**Verdict: holds" in text}
    assert len(claimed) >= 7
    for anchor, text in claimed.items():
        assert re.search(r"`test_\w+`", text), anchor
