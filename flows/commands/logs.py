"""``lambdaflow clicks``, ``offpolicy`` and ``interleave``: what session logs say."""

import argparse

from flows.commands.opening import print_json, words_of, working


def clicks(given: argparse.Namespace) -> int:
    """Fits click models to a session log."""
    from pathlib import Path

    with working("reading"):
        from flows.terminal import show_click_models
        from tasks.config.click_labels import BEST
        from tasks.config.reading import parse_click_log
        from tasks.data.click_log import told_of_form
        from tasks.data.click_models import compare_models, fit_model, position_notes, written_models
        from tasks.data.log_pages import log_pages
        from tasks.data.tables import require_writable, write_table
        from tasks.store.state import require_output

        log = parse_click_log(given.log, given.model or BEST, given.set, ("model", "prior", "min_impressions"))
        if not 0 < given.held_out < 1:
            raise ValueError(f"--held-out {given.held_out}: must be a share of the sessions between 0 and 1")
        if given.output:
            require_writable(Path(given.output))
            require_output(Path(given.output), Path(given.log))
        read = log_pages(log)
    with working("fitting click models"):
        compared = compare_models(read, log.prior or None, given.held_out, given.seed)
        named = compared.attracting if log.model == BEST else str(log.model)
        chosen = fit_model(read, named, log.prior or None, log.min_impressions)
        if given.output:
            write_table(read.as_written(chosen.table), Path(given.output))
    notes = [*told_of_form(log), *read.notes, *position_notes(read.pages)]
    show_click_models(compared, notes, chosen, words_of(given))
    if given.output:
        print(
            f"wrote the attractiveness of {len(chosen.table):,} query-document pairs, estimated by {chosen.name}, to {given.output}",
            file=words_of(given),
        )
    if given.json:
        print_json(written_models(compared, chosen, notes))
    return 0


def offpolicy(given: argparse.Namespace) -> int:
    """Estimates from a session log what new rankers would earn."""
    from pathlib import Path

    with working("reading"):
        from dataclasses import asdict

        from flows.terminal import show_expected
        from ltr.clicks.off_policy import ESTIMATORS, Rules
        from tasks.config.reading import parse_click_log
        from tasks.data.click_log import told_of_form
        from tasks.data.log_pages import log_pages
        from tasks.data.new_rankers import expect, read_scores

        rules = Rules(top=given.top, clip=given.clip, level=given.level)
        for name in given.estimator:
            if name not in ESTIMATORS:
                raise ValueError(f"--estimator {name}: choose from: {', '.join(ESTIMATORS)}")
        names = [Path(path).stem for path in given.scores]
        if len({*names}) < len(names):
            names = list(given.scores)
        scores = {name: read_scores(Path(path)) for name, path in zip(names, given.scores, strict=True)}
        log = parse_click_log(given.log, None, given.set)
        read = log_pages(log)
    with working("estimating"):
        found, advice = expect(read, scores, rules, given.estimator or ESTIMATORS, given.seed)
    notes = [*told_of_form(log), *read.notes]
    show_expected(found, rules.level, [advice, *notes], words_of(given))
    if given.json:
        print_json({"advice": advice, "notes": notes, "rankers": [asdict(one) for one in found]})
    return 0 if any(one.estimates for one in found) else 1


def interleave(given: argparse.Namespace) -> int:
    """Plans an interleaved comparison, or analyses one."""
    if "log" not in given:
        from ltr.clicks.interleaving import sessions_needed

        pages = sessions_needed(given.preference, given.ties, given.power, given.level, given.rankers)
        print(f"{pages:,} interleaved pages", file=words_of(given))
        if given.json:
            print_json({"pages": pages})
        return 0
    with working("reading"):
        from dataclasses import asdict

        from flows.terminal import show_duels
        from ltr.clicks.interleaving import METHODS
        from tasks.config.reading import parse_click_log
        from tasks.data.interleaved import analyse

        if given.method not in METHODS:
            raise ValueError(f"--method {given.method}: choose from: {', '.join(METHODS)}")
        if not 0 < given.level < 1:
            raise ValueError(f"--level {given.level}: must be between 0 and 1")
        found = analyse(parse_click_log(given.log, None, given.set), given.team, given.method, given.level)
    show_duels(found, given.level, words_of(given))
    if given.json:
        print_json(asdict(found))
    return 0
