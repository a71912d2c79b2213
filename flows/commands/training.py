"""``lambdaflow run``, ``refit``, ``fuse`` and ``warm``: what trains."""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from flows import make_state_folder
from flows.commands.opening import importing, print_json, words_of, working

if TYPE_CHECKING:
    from flows.own_server import OwnServer
    from tasks.config.run_config import RunConfig, StudyConfig
    from tasks.report.outcome import RunOutcome


def run_configuration(given: argparse.Namespace) -> int:
    """Runs a configuration, or a study."""
    with working(), importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import read_any

        config = read_any(given.config, given.set, given.data)
    return _start(given, config, server)


def _start(
    given: argparse.Namespace,
    config: "RunConfig | StudyConfig",
    server: "OwnServer | None",
    then: "Callable[[RunOutcome], Mapping[str, Any]] | None" = None,
) -> int:
    """Runs a configuration, or a study, and shows what came of it. `server` was begun for it, and `then` sees the outcome of a run, and
    what it returns is written with it."""
    make_state_folder()
    from pathlib import Path

    from tasks.config.run_config import StudyConfig
    from tasks.data.files import require_files

    if not isinstance(config, StudyConfig):
        require_files(config.data)
    with working("opening MLflow"), importing():
        from flows.interruption import ends_in_time
        from flows.leftovers import owned
        from flows.own_server import use_own_server
        from flows.pipeline import run
        from flows.runners import runner_of
        from flows.terminal import show, show_lines, show_study
        from ltr.trees.grower import is_cold
        from tasks.report.outcome import PartlyFailedError
        from tasks.report.results_file import keep_results, read_results
        from tasks.store.state import require_output
        from tasks.tracking.description import commit
        from tasks.tracking.store import opened, patient

    runner = runner_of(given.runner)
    if is_cold():
        _compile()
    if given.record:
        read_results(Path(given.record))
        require_output(Path(given.record))
    written: Mapping[str, Any] = {}
    with ends_in_time(), owned():
        with working("opening MLflow"):
            patient(opened, (1.0, 2.0, 3.0))()
        with working("starting Prefect's server"):
            use_own_server(server)
        if isinstance(config, StudyConfig):
            from flows.study import StudyPartlyFailedError, study

            try:
                with working():
                    of_all = study(config, given.fresh, given.runner)
            except StudyPartlyFailedError as partly:
                of_all = partly.outcome
            written, failures, outcomes = of_all.as_json(), of_all.failures, of_all.runs
            show_end = partial(show_study, of_all, config.title)
        else:
            try:
                with working():
                    outcome = runner.start(run, config, given.fresh)
            except PartlyFailedError as failed:
                outcome = failed.outcome
            written, failures, outcomes = outcome.as_json(), outcome.failures, (outcome,)
            written = {**written, **(then(outcome) if then else {})}
            show_end = partial(show, outcome)
        try:
            kept = [keep_results(one, commit(), Path(given.record)) for one in outcomes] if given.record else []
        finally:
            show_end(words_of(given))  # behind what is written: who reads it may stop reading
        for failure in failures:
            print(f"error: {failure}", file=sys.stderr)
    for lines in kept:
        show_lines(lines, words_of(given))
    if given.json:
        print_json(written)
    return 1 if "failed" in written else 0


def refit(given: argparse.Namespace) -> int:
    """The run once more, of which everything is found, with one more model. Who is champion was decided when the run ended."""
    with working(), importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import from_stored, parse
        from tasks.tracking.runs import find_run
        from tasks.tracking.store import CHOSEN

        make_state_folder()
        run_id, _, ranker = given.run.partition(":")
        found = find_run(run_id)
    if found.noted(CHOSEN) is None:
        raise ValueError(f"{given.run}: not a finished run; refit needs one")
    written = from_stored(found.download("config.yaml").read_text(encoding="utf-8"), given.run)
    written.pop("champion", None)
    asked = {"rankers": [ranker] if ranker else [], "of": found.id} | ({"name": given.register} if given.register else {})
    return _start(given, parse(written | {"refit": asked}, given.run), server)


def fuse(given: argparse.Namespace) -> int:
    """A run over the forms of some systems' scores, and its best fusion as a TREC run."""
    from tasks.records import ConfigError

    if given.way and not given.output:
        raise ConfigError(f"fuse: --with {given.way} needs -o, the file to write that ranking to")
    with working(), importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        from pathlib import Path

        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.fuse import fuse_config, fused_runs
        from tasks.config.reading import override_all, parse
        from tasks.data.files import located
        from tasks.data.query_features import read_query_features
        from tasks.store.seal import digest_of_file

        runs = fused_runs(given.runs)
        about = read_query_features([Path(given.queries)]) if given.queries else None
        by = () if about is None else about.columns[1:]
        asked = fuse_config(runs, given.qrels, given.measure, given.folds, given.queries, by)
        override_all(asked, given.set)
        config = parse(asked, "fuse")
        if given.way:
            config.require_ranker("--with", given.way)
        make_state_folder()
        from tasks.store.state import require_output

        digests: dict[Path, str] = {}
        if given.output:
            read = [given.qrels, *runs.values(), *([given.queries] if given.queries else ())]
            require_output(Path(given.output), *(located(Path(path)) for path in read))
            # What is written is of the lists that were measured, which are read again for it.
            lists = [*chain.from_iterable(config.data.runs.values()), *config.data.query_features]
            digests = {path: digest_of_file(path) for path in map(located, lists)}

    def write(outcome: "RunOutcome") -> Mapping[str, Any]:
        found = {name: value for one in outcome.evidence for name, value in one.numbers().items() if name == "best_single"}
        if not given.output:
            return found
        from tasks.export.fused import write_fused
        from tasks.records import number_of

        fusions = [name for name in outcome.config.rankers if name not in runs]
        # By queries that no fold's model has seen: learned fusions chose their length or penalty on the validation queries, and rules did not.
        way = given.way or max(fusions, key=lambda name: outcome.models[name].metrics[f"test_{outcome.config.select_key}"])
        queries = write_fused(outcome.chosen_of(way), config.data.runs, Path(given.output), about, digests)
        print(f"wrote {number_of(queries, 'query')} ranked by {way} to {given.output}", file=sys.stderr)
        return {**found, "written": {"run": given.output, "ranker": way}}

    return _start(given, config, server, write)


def warm_up(given: argparse.Namespace) -> int:
    """Compiles the core."""
    make_state_folder()
    _compile()
    return 0


def _compile() -> None:
    """Compiles the core, and says how far that is."""
    with working() as shown:
        from tasks.training.warming import RECIPES, warm

        shown.begin("compiling the core, once per machine", len(RECIPES))
        warm(shown.done)
