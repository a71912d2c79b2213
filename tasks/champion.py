"""Champion and challenger: a run's best model takes the place of the one in use only where it is shown to be better.

Both rank the same test queries, those of the new run. One tier has to rise; of several, the first ones must not fall by more than the
margin, and the first that moves has to rise (`ltr.metrics.significance.lexicographic`; S section 1).
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE

import ltr
from ltr.metrics import significance
from tasks import registry, store
from tasks.config import Champion
from tasks.drift import drift, shifted
from tasks.evaluate import evaluate, read_values, table


@task(cache_policy=NO_CACHE, name="champion", task_run_name="champion")
def challenge(
    rule: Champion, run_id: str, digest: str, values: str, data: dict[str, str], conventions: ltr.Conventions
) -> dict[str, Any]:
    """Registers a cell's model and holds it against the champion.

    Args:
        run_id: of the cell in MLflow; `digest`: of its model; `values`: its per-query values.
        data: names of its ``train`` and ``test`` sets.

    Returns:
        ``name``, ``version``, ``champion`` (the version it met, None where there was none), ``verdict`` (``first``, ``same``, ``better``,
        ``worse``, ``open``, or ``not comparable``), ``promoted``, ``tiers``, ``drift``, ``text``.
    """
    own = registry.registered(rule.name, run_id, digest)
    champion = registry.called(rule.name, registry.CHAMPION)
    found: dict[str, Any] = {
        "name": rule.name,
        "version": own.number,
        "champion": champion and champion.number,
        "tiers": [],
        "drift": [],
    }
    if champion is None:
        found |= {"verdict": "first", "text": "there was no champion"}
    elif champion.digest == digest:
        found |= {"verdict": "same", "text": f"the champion, version {champion.number}, is this very model"}
    else:
        found |= _held_against(champion, rule, values, data, conventions)
    promoted = found["verdict"] in ("first", "better")
    if found["verdict"] != "same":
        tags = {"verdict": str(found["verdict"]), "met": str(found["champion"]), "promoted": str(promoted).lower()}
        own.note(tags, f"{found['text']}{_shown(found['tiers'])}")
    if promoted:
        own.call(registry.CHAMPION)
    if promoted and champion is not None:
        registry.uncall(rule.name, registry.CHALLENGER)
    elif found["verdict"] not in ("first", "same"):
        own.call(registry.CHALLENGER)
    return {**found, "promoted": promoted}


def _held_against(
    champion: registry.Version, rule: Champion, values: str, data: dict[str, str], conventions: ltr.Conventions
) -> dict[str, Any]:
    """The comparison on the challenger's test queries, and how its training data differ from the champion's."""
    queries = store.open_queries(data["test"])
    measures = [ltr.Measure.of(measure) for measure in rule.tiers]
    older = champion.profile()
    moved = drift(older, store.open_queries(data["train"])) if older else []
    model = champion.model()
    missing = [name for name in model.names if name not in queries.names]
    if missing:
        why = f"the champion, version {champion.number}, reads {missing[0]!r}, which these data do not have"
        return {"verdict": "not comparable", "text": why, "drift": moved}
    places = [queries.names.index(name) for name in model.names]
    seen = replace(queries, features=np.ascontiguousarray(queries.features[:, places]), names=model.names)
    theirs = table(evaluate(model, seen, [str(m) for m in measures], conventions), queries, "test").sort("query")
    ours = read_values(Path(values), "test")
    pairs = [[frame[m.key].cast(float).fill_null(float("nan")).to_numpy() for m in measures] for frame in (ours, theirs)]
    margins = [rule.margin] * (len(measures) - 1) + [0.0]
    tiers, verdict = significance.lexicographic(pairs[0], pairs[1], margins, rule.level)
    named = [{"measure": m.key, **asdict(tier)} for m, tier in zip(measures, tiers, strict=True)]
    text = f"{verdict} than the champion, version {champion.number}" if verdict != "open" else (
        f"not shown to be better than the champion, version {champion.number}"
    )  # fmt: skip
    return {"verdict": verdict, "text": text, "tiers": named, "drift": moved}


def _shown(tiers: list[dict[str, Any]]) -> str:
    rows = [
        f"{t['measure']} {t['difference']:+.4f} [{t['lower_bound']:+.4f}, {t['upper_bound']:+.4f}] {t['verdict']}" for t in tiers
    ]
    return "".join(f"\n- {row}" for row in rows)


def champion_text(found: dict[str, Any], ranker: str) -> str:
    """What became of a ranker, in words."""
    became = {"same": "stays champion"}.get(found["verdict"], "is champion now" if found["promoted"] else "stays challenger")
    return f"{ranker}, version {found['version']} of {found['name']}, {became}: {found['text']}"


def moved(found: dict[str, Any]) -> list[str]:
    """What has moved in the data since the champion was trained."""
    return shifted(found["drift"])
