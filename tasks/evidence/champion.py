"""Champion and challenger: a run's best model takes the place of the one in use only where it is shown to be better.

Both rank the same test queries, those of the new run that the champion did not learn from. One tier has to rise; of several, the first ones must not fall by more than the
margin, and the first that moves has to rise (`ltr.metrics.significance.lexicographic`; S section 1).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from prefect import task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

import ltr
from ltr.data.queries import Queries, in_order
from ltr.metrics import significance
from ltr.metrics.measure import lowest_of
from tasks.config.ranker_section import read_conventions
from tasks.config.run_config import RunConfig, register_evidence
from tasks.data.known_again import marks
from tasks.data.tables import recoded
from tasks.evidence.drawing import title_of
from tasks.evidence.drift import Drift, Profile, drift, profile, shifted
from tasks.evidence.protocol import Evidence, Found, Gathering, render, require_pairs, values_path
from tasks.evidence.significance import TierResult, tier_results, too_few_differ
from tasks.records import DataError, Fold, Trained, number_of
from tasks.store.cells import CellFolder
from tasks.store.datasets import open_queries
from tasks.store.values import names_of, read_values, table, values_of

if TYPE_CHECKING:
    from tasks.tracking import registry
from tasks.training.scoring import evaluate

_TO_GO_ON = "; if this lasts, move the alias champion to another version: until then no run is compared"
"""Where the data have lost what the champion reads, which may be the accident of a night."""
TEMPLATE = """<h2>Champion</h2>
<p>{{ found.text() }}</p>
{% if found.tiers %}<div class="scroll"><table>
  <tr><th>tier</th><th>difference</th><th>bounds</th><th></th></tr>
  {% for t in found.tiers %}<tr><td>{{ title_of(t.measure) }}</td><td>{{ '%+.4f' % t.difference }}</td><td>{{ '%+.4f' % t.lower_bound }} … {{ '%+.4f' % t.upper_bound }}</td><td class="text">{{ t.meaning }}</td></tr>{% endfor %}
</table></div>{% endif %}
{% if moved %}<p>Since the champion was trained: {{ moved | join('; ') }}.</p>{% endif %}
"""


@dataclass(frozen=True)
class Challenge(Found):
    """What became of a challenger.

    Attributes:
        ranker: its name in the run.
        name, version: of the registered model; `champion`: the version it met, None where there was none.
        verdict: ``first``, ``same``, ``better``, ``worse``, ``open``, or ``not comparable``; `why`: in words.
        promoted: it is champion now.
        tiers: of the comparison; `drift`: how the data moved since the champion was trained.
        latest: the version that stays challenger, where it is a later one.
    """

    place: ClassVar[int] = 10
    repeatable: ClassVar[bool] = False
    ranker: str
    name: str
    version: str
    champion: str | None
    verdict: str
    why: str
    promoted: bool
    tiers: tuple[TierResult, ...] = ()
    drift: tuple[Drift, ...] = ()
    latest: str | None = None

    def text(self) -> str:
        """What became of it, in words."""
        became = "remains champion" if self.verdict == "same" else "is the new champion" if self.promoted else "remains challenger"
        if self.latest:
            became = f"was not promoted (version {self.latest} remains challenger)"
        return f"{self.ranker}, version {self.version} of {self.name}, {became}: {self.why}"

    def tags(self) -> dict[str, str]:
        return {"champion": f"{self.name} {self.version}: {self.verdict}"}

    def lasting_tags(self) -> dict[str, str]:
        return {} if self.verdict == "same" else self.tags()

    def printed(self) -> Mapping[str, Any]:
        """What became of the challenger, and how the data moved as far as that is much."""
        return {"champion": {"ranker": self.ranker, **self._kept(), "drift": shifted(self.drift), "why": self.why}}

    def sentences(self) -> list[str]:
        return [self.text()]

    def section(self) -> str:
        return render(TEMPLATE, found=self, moved=shifted(self.drift), title_of=title_of)

    def as_json(self) -> str:
        """The evidence as text, as the registry's run keeps it."""
        return json.dumps({**self._kept(), "text": self.why}, indent=1)

    def _kept(self) -> dict[str, Any]:
        written: dict[str, Any] = asdict(self)
        return {name: written[name] for name in ("name", "version", "champion", "tiers", "drift", "verdict", "promoted")}


class Champion(Evidence):
    """The model in use: the version of the registered model `name` that the registry calls ``champion``. A run's best ranker on
    validation queries (`candidate`) takes its place where test queries show it better: on one of `tiers`, or on several (the most important first) no
    worse than by `margin` on each until one is better; every bound one-sided at `level`.
    """

    key: ClassVar[str] = "champion"
    last: ClassVar[bool] = True
    name: str = Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_. -]*$")
    tiers: list[str] = Field(["ndcg_10"], min_length=1)
    margin: float = Field(0.005, ge=0)
    level: float = Field(0.95, gt=0.5, lt=1)

    def check(self, config: RunConfig) -> None:
        for measure in self.tiers:
            ltr.Measure.maximised(measure)

    def measures(self) -> list[str]:
        return self.tiers

    def check_data(self, config: RunConfig, folds: tuple[Fold, ...]) -> None:
        if len(folds) > 1:
            raise DataError(f"champion: a champion is one model, and these data make {len(folds)} folds")
        require_pairs(self.key, self.tiers, "test", [fold.test for fold in folds], config.core_conventions, 1)

    def gather(self, run: Gathering) -> Challenge:
        """The best ranker on the data's own features, held against the champion."""
        from tasks.tracking import registry

        run.progress.begin("champion")
        select = f"valid_{run.config.select_key}"
        own = [trained for trained in run.chosen if trained.ranker in run.config.alone]
        best = self.candidate(own, select)
        run.tracker.text(profile(open_queries(best.cell.data.train)).as_json(), registry.PROFILE)
        found = challenge(self, run.tracker.run_of(best.result.key), best, run.tracker.was_finished)
        if not (found.verdict == "same" and run.tracker.was_finished):  # how it became champion stays
            run.tracker.text(found.as_json(), registry.EVIDENCE)
        run.progress.done(found.text())
        for text in shifted(found.drift):
            run.progress.say(f"since the champion was trained, {text}", "yellow")
        return found

    def candidate(self, own: Sequence[Trained], select: str) -> Trained:
        """The ranker that is held against the champion: the best by what selects; of several tiers, by their own rule on validation queries, the
        best on the last one of those that lose no more than the margin to the best on each before. What selects knows nothing of tiers: beside a
        `guarantee` it would hardly ever take the ranker that was promised."""

        def value(one: Trained, metric: str) -> float:
            found = one.result.metrics.get(metric)
            return -np.inf if found is None else found

        *protected, last = [f"valid_{ltr.Measure.of(tier).key}" for tier in self.tiers]
        if not protected:
            return max(own, key=lambda one: value(one, select))
        for metric in protected:
            highest = max(value(one, metric) for one in own)
            own = [one for one in own if value(one, metric) >= highest - self.margin]
        return max(own, key=lambda one: (value(one, last), value(one, select)))


register_evidence(Champion)


@task(cache_policy=NO_CACHE, name="champion", task_run_name="champion")
def challenge(rule: Champion, run_id: str, challenger: Trained, was_finished: bool = False) -> Challenge:
    """Registers a cell's model and holds it against the champion.

    Args:
        run_id: of the cell in MLflow.
        was_finished: the run had come to its end before; one that had not may have been killed between making its model champion and saying so.
    """
    from tasks.tracking import registry

    cell = challenger.cell
    model = ltr.load(CellFolder.of(challenger.result.key).model)
    sets = [open_queries(name) for name in (cell.data.train, cell.data.valid) if name]
    learned = np.unique(marks(*(in_order(queries, model.names) for queries in sets)))
    own = registry.registered(rule.name, run_id, model, cell.columns.categories, learned)
    champion = registry.version_of(rule.name, registry.CHAMPION)
    told = not was_finished and own.run_id == run_id and own.tags.get("promoted") == "true"
    while True:
        found = _met(champion, rule, challenger, own, own.tags["met"] if told else None)
        now = registry.version_of(rule.name, registry.CHAMPION) if found.promoted else champion
        if (now and now.number) == (champion and champion.number):
            break
        champion = now  # another run's model took the place meanwhile, and is the one to beat
    if found.verdict != "same":
        tags = {"verdict": found.verdict, "met": str(found.champion), "promoted": str(found.promoted).lower()}
        own.note(tags, f"{found.why}{_listed(found.tiers)}")
    if found.promoted:
        own.set_alias(registry.CHAMPION)
        latest = registry.version_of(rule.name, registry.CHALLENGER) if told else None
        if latest is None or int(latest.number) <= int(own.number):  # what came after a promotion that is told again stays
            registry.remove_alias(rule.name, registry.CHALLENGER)
    elif found.verdict not in ("first", "same"):
        latest = registry.version_of(rule.name, registry.CHALLENGER)
        if latest is None or int(latest.number) <= int(own.number):
            own.set_alias(registry.CHALLENGER)
        else:  # a run of an earlier night that is repeated, or a model that came back, is none of today's
            found = replace(found, latest=latest.number)
    return found


def _met(
    champion: "registry.Version | None", rule: Champion, challenger: Trained, own: "registry.Version", before: str | None
) -> Challenge:
    """What becomes of a challenger, registered as `own`, where this is the champion; `before`: the version that this very run met, ``None`` in
    text for none, when it made `own` champion and was killed."""
    from tasks.tracking import registry

    found = Challenge(challenger.ranker, rule.name, own.number, None, "first", "there was no champion", True)
    if champion is None or (champion.number == own.number and before == str(None)):
        return found
    found = replace(found, champion=champion.number)
    if champion.number == own.number:
        if before and (then := registry.version_numbered(rule.name, before)):
            again = _held_against(then, rule, challenger, replace(found, champion=then.number))
            if again.promoted:
                return again
        return replace(found, verdict="same", why=f"the champion (version {champion.number}) is this very model", promoted=False)
    return _held_against(champion, rule, challenger, found)


def _held_against(champion: "registry.Version", rule: Champion, challenger: Trained, found: Challenge) -> Challenge:
    """The comparison on the challenger's test queries, and how its training data differ from the champion's."""
    from tasks.tracking import registry

    data, conventions = challenger.cell.data, read_conventions(challenger.cell.conventions)
    queries, version = open_queries(data.test), f"the champion (version {champion.number})"
    to_another = f"to go on, move the alias {registry.CHAMPION} to another version"

    def not_comparable(why: str) -> Challenge:
        return replace(found, verdict="not comparable", why=f"{version}{why}", promoted=False)

    try:
        model, columns = champion.model()
    except DataError as error:
        return not_comparable(f" cannot be read: {error}; {to_another}")
    now, then = challenger.cell.columns.categories, columns.categories
    older = _read_profile(champion)
    found = replace(found, drift=drift(older, recoded(open_queries(data.train), now, then)) if older else ())
    if lacks := _unreadable(model, queries, now, then):
        return not_comparable(f" reads {lacks}{_TO_GO_ON}")
    seen = recoded(in_order(queries, model.names), now, then)
    try:
        values = evaluate(model, seen, [str(m) for m in map(ltr.Measure.of, rule.tiers)], conventions)
    except (ValueError, ArithmeticError) as error:
        told = re.sub(r"^row [\d,]+: ", "", str(error))
        return not_comparable(f" cannot score these data: {told}; {to_another}")
    known = [] if isinstance(model, ltr.Column) else _known_to(champion, queries, seen)
    if known is None:
        return not_comparable(
            " may have learned from these test queries: its run in MLflow does not record its own, or was deleted; "
            f"to go on, move the alias {registry.CHAMPION} to a version that a run has registered"
        )
    if known and len(known) > queries.n_queries - 2:
        return not_comparable(
            f" learned from, or was chosen on, {_all_of(known, queries)}; keep some test queries unseen (data.test)"
        )
    theirs = table(values, queries, "test").sort("query")
    ours = read_values(Path(values_path(challenger)), "test")
    return _by_tiers(
        [frame.filter(~pl.col("query").is_in(known)) for frame in (ours, theirs)], rule, found, version, known, queries
    )


def _unreadable(
    model: ltr.Ranker, queries: Queries, now: Mapping[str, Sequence[object]], then: Mapping[str, Sequence[object]]
) -> str:
    """What a champion reads and these data have not, or hold in another form; empty where there is nothing of that. `now` and `then`:
    categories by feature, here and of the champion."""
    if missing := [name for name in model.names if name not in queries.names]:
        return f"{missing[0]!r}, which these data do not have"
    if other := [name for name in model.names if (name in now) != (name in then)]:
        holds = ("numbers", "categories") if other[0] in now else ("categories", "numbers")
        return f"{other[0]!r} as {holds[0]}, which holds {holds[1]} here (data.categorical)"
    return ""


def _by_tiers(
    frames: Sequence[pl.DataFrame], rule: Champion, found: Challenge, version: str, known: Sequence[str], queries: Queries
) -> Challenge:
    """The verdict of the paired tests on the values of both, the challenger's first."""
    measures = [ltr.Measure.of(measure) for measure in rule.tiers]
    pairs = [[values_of(frame, m.key) for m in measures] for frame in frames]
    for measure, a, b in zip(measures, *pairs, strict=True):
        if (both := int((~np.isnan(a - b)).sum())) < 2:
            n = queries.n_queries - len(known)
            why = f"{version}: {measure.key} is defined on {both} of {number_of(n, 'test query')}, and a paired test needs 2"
            return replace(found, verdict="not comparable", why=why, promoted=False)
    margins = [rule.margin] * (len(measures) - 1) + [0.0]
    tiers, verdict = significance.lexicographic(pairs[0], pairs[1], margins, rule.level, [lowest_of(m.key) for m in measures])
    why = f"{verdict} than {version}" if verdict != "open" else f"not shown to be better than {version}"
    why += f"; left out: {_all_of(known, queries)}, which the champion learned from or was chosen on" if known else ""
    decided = next((k for k, tier in enumerate(tiers) if tier.verdict == "open"), None)
    if decided is not None:
        few = too_few_differ(measures[decided].key, significance.differences(pairs[0][decided], pairs[1][decided]))
        why += f"; their {few}" if few else ""
    results = tier_results([measure.key for measure in measures], tiers)
    return replace(found, verdict=verdict, why=why, promoted=verdict == "better", tiers=results)


def _read_profile(champion: "registry.Version") -> Profile | None:
    """That of the data which the champion was trained on; None where its run kept none that can be read."""
    older = champion.profile()
    try:
        return Profile.read(older) if older else None
    except ValueError:
        return None


def _known_to(champion: "registry.Version", queries: Queries, seen: Queries) -> list[str] | None:
    """Names of the test queries that the champion learned from or was chosen on, also under other ids; None where that is not known.
    `seen` are these queries as it reads them."""
    learned = champion.learned()
    if learned is None:
        return None
    known = np.isin(marks(seen), learned).tolist()
    return [name for name, by in zip(names_of(queries), known, strict=True) if any(by)]


def _all_of(known: Sequence[str], queries: Queries) -> str:
    n = queries.n_queries
    return f"all {number_of(n, 'test query')}" if len(known) == n else f"{len(known):,} of {number_of(n, 'test query')}"


def _listed(tiers: tuple[TierResult, ...]) -> str:
    rows = [f"{t.measure} {t.difference:+.4f} [{t.lower_bound:+.4f}, {t.upper_bound:+.4f}] {t.verdict}" for t in tiers]
    return "".join(f"\n- {row}" for row in rows)
