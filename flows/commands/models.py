"""``lambdaflow predict``, ``export``, ``evaluate``, ``explain``, ``optimality`` and ``compare``: what is done with models."""

import argparse
import sys
from typing import TYPE_CHECKING

from flows import make_state_folder
from flows.commands.opening import config_of, opened, print_json, say_notes, say_remarks, words_of, working

if TYPE_CHECKING:
    from ltr import Conventions

MEASURES = ("ndcg_1", "ndcg_3", "ndcg_5", "ndcg_10", "map", "mrr")
"""That `evaluate` takes where none is asked for."""


def predict_scores(given: argparse.Namespace) -> int:
    """Scores a file with a model."""
    from pathlib import Path

    make_state_folder()
    with working("predicting"):
        from tasks.data.tables import is_table
        from tasks.export.predict import predict
        from tasks.records import number_of, printable
        from tasks.store.state import require_output
        from tasks.tracking.lookup import find_model, places_in, settled

        given.model = settled(given.model)
        data = config_of(given.model, [given.data], given.set).data
        asked = [said.partition("=")[0].removeprefix("data.") for said in given.set]
        named = [getattr(data, kind) for kind in ("query", "document") if kind in asked]
        require_output(Path(given.output), Path(given.model))
        places = () if data.names or is_table(Path(given.data)) else places_in(given.model, data.first_feature)
        model = find_model(given.model, places)
        say_remarks(given, model)
        done = predict(model, Path(given.data), Path(given.output), data, named, bool(places))
    for note in done.notes:
        print(printable(note), file=sys.stderr)
    print(f"wrote {number_of(done.rows, 'score')} to {given.output}")
    return 0


def export(given: argparse.Namespace) -> int:
    """Writes a model for another tool."""
    from tasks.records import ConfigError

    if given.set and not given.data:
        raise ConfigError(f"export: --set {given.set[0]} says how the files of --data are read, and there is no --data")
    model, queries, _ = opened(given) if given.data else (None, None, None)
    make_state_folder()
    with working("exporting"):
        from dataclasses import asdict, replace
        from pathlib import Path

        from tasks.export.formats import export_to, told_categories
        from tasks.records import number_of, printable
        from tasks.store.state import require_output
        from tasks.tracking.lookup import find_columns, find_model, settled

        given.model = settled(given.model)
        extractors = Path(given.extractors) if given.extractors else None
        require_output(Path(given.output), Path(given.model), *map(Path, given.data or ()), *([extractors] if extractors else ()))
        found_model = model or find_model(given.model)
        done = export_to(found_model, given.output, given.to, queries, given.complete, given.engine, extractors)
        numbered = told_categories(find_columns(given.model).categories, found_model.names)
        done = replace(done, remarks=(*done.remarks, *numbered))
    trees = f"{number_of(done.trees, 'tree')} on " if done.trees is not None else ""
    words = words_of(given)
    print(
        f"{done.path}: {done.kind}, {trees}{number_of(done.features, 'feature')}, for {done.about} ({done.bytes:,} bytes)",
        file=words,
    )
    for remark in done.remarks:
        print(printable(f"  {remark}"), file=words)
    if found := done.verified:
        order = (
            f"ranked differently: {number_of(found.reordered, 'query')}" if found.reordered else "no query is ranked differently"
        )
        print(
            f"  verified on {number_of(found.documents, 'document')}: largest score difference {found.largest_difference:.1e}, {order}",
            file=words,
        )
    if given.json:
        print_json(asdict(done))
    return 0


def evaluate(given: argparse.Namespace) -> int:
    """Measures a model on data."""
    model, queries, config = opened(given)
    with working("measuring"):
        from tasks.evidence.explanation import explained

        used = config.core_conventions
        rows = explained(model, queries, given.measure or MEASURES, used, given.convention)
    words = words_of(given)
    for row in rows:
        ours, other = (f"{mean:.5f}" if mean is not None else "–" for mean in (row.value, row.theirs))
        theirs = f"   by {given.convention}'s conventions {other}" if given.convention else ""
        print(f"{row.measure:14} {ours}{theirs}{f'   ({row.why})' if row.why else ''}", file=words)
        before, still = row.value, []
        for shift in row.shifts:
            if shift.alone or shift.value != before:
                change = f"{shift.rule}: {shift.ours} → {shift.theirs}"
                print(f"  {change}   alone {shift.alone:+.5f}, so far {shift.value:.5f}", file=words)
            else:
                still.append(f"{shift.rule} ({shift.theirs})")
            before = shift.value
        if still:
            print(f"  no effect: {', '.join(still)}", file=words)
    if told := _other_rules(model.conventions, used):
        print(told, file=sys.stderr)
    if given.json:
        print_json({row.measure: row.as_json() for row in rows})
    return 0


def _other_rules(trained: "Conventions", used: "Conventions") -> str:
    """Says by which rules a model was trained that are not those by which it is measured; nothing where there are none."""
    other = {name: value for name, value in vars(trained).items() if value != getattr(used, name)}
    if not other:
        return ""
    its = ", ".join(f"{name} {value}" for name, value in other.items())
    ours = ", ".join(f"{name} {getattr(used, name)}" for name in other)
    options = " ".join(f"--set conventions.{name}={value}" for name, value in other.items())
    return f"the model was trained with {its} and is measured with {ours}; to measure with its own conventions: {options}"


def _rules_with(trained: "Conventions", configured: "Conventions", overrides: list[str]) -> "Conventions":
    """The rules that a model was trained by, with those of `overrides` (``conventions.gain=linear``) as configured."""
    from dataclasses import fields, replace

    keys = [one.partition("=")[0] for one in overrides]
    named = {key.removeprefix("conventions.") for key in keys if key.startswith("conventions.")}
    if "conventions" in keys:
        named = {one.name for one in fields(configured)}
    return replace(trained, **{name: getattr(configured, name) for name in named})


def explain(given: argparse.Namespace) -> int:
    """Says why documents stand where they do."""
    from tasks.records import ConfigError

    if given.query is None and (given.above or given.below or given.output):
        raise ConfigError("explain: --above, --below and -o need --query")
    if given.query is not None and given.segment:
        raise ConfigError("explain: give either --query or --segment")
    if given.output and not given.output.lower().endswith(".svg"):
        raise ConfigError(f"explain: -o {given.output}: a drawing must be a .svg file")
    model, queries, config = opened(given)
    with working("explaining"):
        from pathlib import Path

        from flows.terminal import show_pair, show_wrong_order
        from tasks.evidence.reasons import pair_of
        from tasks.evidence.wrong_order import summary_of
        from tasks.store.state import require_output, written_whole

        if given.output:
            require_output(Path(given.output), Path(given.model), *map(Path, given.data))
        rules = _rules_with(model.conventions, config.core_conventions, given.set)
        if given.query is None:
            summary = summary_of(model, queries, given.segment, config.data.clicks, conventions=rules)
            show_wrong_order(summary, words_of(given))
            written = summary.as_json()
        else:
            pair = pair_of(model, queries, given.query, given.above, given.below, conventions=rules)
            show_pair(pair, words_of(given))
            written = pair.as_json()
            if given.output:
                with written_whole(Path(given.output)) as partial:
                    partial.write_text(pair.drawing(), encoding="utf-8")
                print(f"drawing: {given.output}", file=words_of(given))
    if given.json:
        print_json(written)
    return 0


def optimality(given: argparse.Namespace) -> int:
    """Tests whether a model is at a local optimum."""
    from tasks.records import ConfigError

    if len(given.measure) > 1:
        raise ConfigError(
            f"optimality: --measure {' and '.join(given.measure)}: a model can be certified for only one measure at a time"
        )
    for name in ("epsilon", "delta"):
        if not 0 < getattr(given, name) < 1:
            raise ConfigError(f"optimality: --{name} {getattr(given, name):g}: must be between 0 and 1, such as 0.01")
    with working("optimality"):
        from flows.own_server import begin_own_server, use_own_server

        server = begin_own_server()
        make_state_folder()
        from tasks.tracking.lookup import settled

        given.model = settled(given.model)
        config = config_of(given.model, given.data, given.set)
        import shutil
        from pathlib import Path

        from flows.certify import certify_model
        from flows.interruption import ends_in_time
        from flows.leftovers import owned
        from tasks.data.files import require_files
        from tasks.store.state import require_output, written_whole

        require_files(config.data)
        if given.output:
            require_output(Path(given.output), Path(given.model), *config.data.files)
        measure = (given.measure or ["ndcg_10"])[0]
        with ends_in_time(), owned():
            use_own_server(server)
            found = certify_model(given.model, config, measure, given.epsilon, given.delta, given.seed, given.escape)
    say_notes(found.notes)
    say_remarks(given, found.model)
    if told := _other_rules(found.model.conventions, config.core_conventions):
        print(told, file=sys.stderr)
    for certificate in found.certificates:
        print(f"{certificate.ranker}: {certificate.verdict}. {certificate.text()}", file=words_of(given))
    if given.output:
        with written_whole(Path(given.output)) as partial:
            shutil.copyfile(found.page, partial)
    print(f"page: {given.output or found.page}", file=words_of(given))
    if given.json:
        print_json([certificate.as_json() for certificate in found.certificates])
    return 0


def compare(given: argparse.Namespace) -> int:
    """Tests finished runs against each other."""
    from tasks.records import ConfigError

    if given.level is not None and not given.tier:
        raise ConfigError(f"compare: --level {given.level} applies only with --tier")
    make_state_folder()
    with working():
        from dataclasses import asdict

        from flows.terminal import show_changed, show_comparison, show_scorecards
        from tasks.evidence.segments import changed_queries
        from tasks.evidence.stored_runs import compare_stored, scorecards
        from tasks.tracking.runs import find_values

        stored = [find_values(run) for run in given.runs]
        table = compare_stored(stored, given.measure, given.margin)
        level = 0.95 if given.level is None else given.level
        cards = scorecards(stored, given.tier, given.margin or 0.0, level) if given.tier else []
        selected = [] if given.measure else [one.select for one in stored if one.select and one.select in table.measures]
        changed = [] if given.queries is None else changed_queries(stored, [*selected, table.measures[0]][0], given.queries)
    written = table.as_json()
    show_comparison(table, words_of(given))
    if given.tier:
        show_scorecards(cards, words_of(given))
        written["scorecards"] = [asdict(card) for card in cards]
    if given.queries is not None:
        show_changed(changed, words_of(given))
        written["changed"] = [entry.as_json() for entry in changed]
    if given.json:
        print_json(written)
    return 0
