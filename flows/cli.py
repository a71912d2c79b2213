"""``lambdaflow …``: the command line. Heavy imports live inside the subcommands, so that help is instant."""

import argparse
import atexit
import errno
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flows import make_state_folder

if TYPE_CHECKING:
    from pathlib import Path

    from flows.own_server import OwnServer
    from flows.progress import Steps
    from ltr import Queries, Ranker
    from tasks.config.run_config import RunConfig, StudyConfig
    from tasks.records import Finding
    from tasks.report.outcome import RunOutcome

MEASURES = ("ndcg_1", "ndcg_3", "ndcg_5", "ndcg_10", "map", "mrr")


@contextmanager
def _working(stage: str = "starting") -> Iterator["Steps"]:
    """Shows on standard error that a command works, and at what (`flows.progress`)."""
    from flows.progress import steps, tell_compiling

    with steps(stage) as shown:
        tell_compiling()
        yield shown


@contextmanager
def _importing() -> Iterator[None]:
    """Nearly everything that is imported stays to the end, and is not looked through for rubbish."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def entry() -> None:
    """The command as a process of its own. Most of what it imports stays to the end: it is looked through for rubbish rarely, which is a
    quarter of the time that importing takes, and not taken apart at the end, which takes more than a second."""
    codes: list[int] = []

    def leave() -> None:
        if codes:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except (OSError, ValueError):
                os._exit(codes[0] or 1)
            os._exit(codes[0])

    atexit.register(leave)
    gc.set_threshold(100_000, 50, 100)
    codes.append(main())
    sys.exit(codes[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code: 0 done, 1 failed or refused by the data, 2 wrong usage."""
    given = _parser().parse_args(arguments)
    if progress := sys.modules.get("flows.progress"):
        progress.Steps.last_word = None  # that was an earlier command of this process
    try:
        return given.command(given)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        from tasks.tracking.secrets import masked

        if given.debug:
            print(masked(traceback.format_exc()), file=sys.stderr)
            return 1
        from tasks.records import printable

        text = printable(masked(_describe_error(error)))
        for line in text.splitlines() or [type(error).__name__]:
            print(f"error: {line}", file=sys.stderr)
        return 1


def _natural(written: str) -> int:
    """A whole number, 0 or more, of an argument."""
    if not written.isdecimal():
        raise argparse.ArgumentTypeError(f"{written!r}: a whole number, 0 or more")
    return int(written)


def _port(written: str) -> int:
    """A port of an argument."""
    if not written.isdecimal() or not 1 <= int(written) <= 65_535:
        raise argparse.ArgumentTypeError(f"{written!r}: a port is a whole number from 1 to 65,535")
    return int(written)


def _not_empty(written: str) -> str:
    """A text of an argument that says something: an unset variable of a shell says nothing."""
    if not written.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return written


def _describe_error(error: Exception) -> str:
    """An error as its user needs it."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = f" for {error.filename}" if error.filename else ""
        return f"no space left on the device{where}: what was trained is kept, make room and run the same command again"
    if isinstance(error, ValueError | OSError):
        return str(error).strip()
    if type(error).__module__.startswith("httpx"):
        print(file=sys.stderr)  # behind what Prefect says of its logs without ending its line
        where = os.environ.get("PREFECT_API_URL", "its own address")
        return f"Prefect at {where} does not answer: {error}; what was trained is kept, run the same command again"
    return f"{type(error).__name__}: {error} (--debug shows where)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lambdaflow", description="Ranking models you can trust: trained, compared, certified, tracked."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, does: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--debug", action="store_true", help="show the stack trace of an error")
        sub.set_defaults(command=does)
        return sub

    def settable(sub: argparse.ArgumentParser, text: str) -> None:
        sub.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)

    def json_line(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--json", action="store_true", help="print one JSON object as the last line of standard output")

    run = command("run", _run, "run a configuration, or continue it where it was")
    run.add_argument("config", metavar="CONF.yaml")
    settable(run, "override a key, such as sweep.learning_rate=[x0.5,x1,x2]")
    run.add_argument("--data", metavar="CONF.yaml", help="run it on the data and by the conventions of another configuration")
    run.add_argument("--fresh", action="store_true", help="train every cell again")
    run.add_argument(
        "--runner",
        default=None,
        metavar="ENGINE",
        help="where cells are trained: threads[=N], processes[=N], dask[=N] or dask=tcp://HOST:PORT (default: threads, as many as the configuration's workers)",
    )
    json_line(run)
    run.add_argument(
        "--record", metavar="FILE.json", help="keep the results in a small file, and say what differs from those kept there"
    )

    refit = command("refit", _refit, "train what a finished run chose on all its data")
    refit.add_argument("run", metavar="RUN[:RANKER]", help="the best ranker where none is named")
    refit.add_argument("--register", type=_not_empty, metavar="NAME", help="add the model to MLflow's registry under this name")
    json_line(refit)
    refit.set_defaults(fresh=False, runner=None, record=None)

    fuse = command(
        "fuse", _fuse, "make one ranking of several systems' TREC runs, and see whether it is better than the best of them"
    )
    fuse.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="TREC runs: query Q0 document rank score tag")
    fuse.add_argument("--qrels", required=True, metavar="FILE", help="judgments: query 0 document label")
    fuse.add_argument(
        "--queries", metavar="TABLE", help="features of queries, a row each: weights that depend on them are tried as well"
    )
    fuse.add_argument("-o", "--output", metavar="FUSED.run", help="write the ranking there, as a TREC run")
    fuse.add_argument(
        "--with", dest="way", metavar="RANKER", help="the one to write (default: the best fusion on validation queries)"
    )
    fuse.add_argument("--measure", default="ndcg_10", metavar="MEASURE", help="to fuse for and to compare by (default: ndcg_10)")
    fuse.add_argument("--folds", type=int, default=5, metavar="N", help="parts that the queries are cut into (default: 5)")
    settable(fuse, "override a key of the configuration, such as rankers.rrf.k=20 or conventions.gain=exp2")
    fuse.add_argument("--runner", default=None, metavar="ENGINE", help="as of run")
    fuse.add_argument("--fresh", action="store_true", help="train every cell again")
    json_line(fuse)
    fuse.set_defaults(record=None)

    judgments = command("judgments", _judgments, "write judgments in the form of another tool")
    judgments.add_argument(
        "files", nargs="+", metavar="FILE", help="TREC qrels, the workbench's JSON, Quepid's CSV or hello-ltr's text"
    )
    judgments.add_argument("--to", required=True, metavar="FORM", help="trec, quepid, workbench (OpenSearch's) or hello-ltr")
    judgments.add_argument("-o", "--output", required=True, metavar="FILE")

    correct = command(
        "correct",
        _correct,
        "measure TREC runs that a machine judged as people would, from a random sample of pairs that people judged",
    )
    correct.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="TREC runs: query Q0 document rank score tag")
    correct.add_argument("--machine", required=True, metavar="FILE", help="judgments of every pair, by a machine")
    correct.add_argument("--people", required=True, metavar="FILE", help="judgments of a random sample of these pairs, by people")
    correct.add_argument("--measure", default="dcg@10", metavar="MEASURE", help="p@k or dcg@k (default: dcg@10)")
    correct.add_argument("--level", type=float, default=0.95, help="of the intervals")
    settable(correct, "a convention, such as conventions.gain=exp2")
    correct.add_argument("--json", action="store_true", help="print the numbers as JSON")

    check = command("check", _check, "look at data files before training on them")
    check.add_argument("files", nargs="*", metavar="FILE")
    check.add_argument("--store", action="store_true", help="look at every byte of what is kept in .lambdaflow/ for damage")
    settable(check, "a key of the configuration, such as label=grade (data.label=grade is the same)")
    check.add_argument("--json", action="store_true", help="print the findings as JSON")

    clicks = command("clicks", _clicks, "fit click models to a session log and say which foretells clicks best")
    clicks.add_argument("log", metavar="LOG", help="Parquet, CSV or TSV, one row a shown result, or UBI's NDJSON")
    settable(clicks, "a key of data.clicks, such as document=doc, rank=position or prior=10")
    clicks.add_argument("--model", metavar="MODEL", help="whose attractiveness is written (default: that of the best)")
    clicks.add_argument("-o", "--output", metavar="TABLE", help="attractiveness by query and document: .parquet, .csv or .tsv")
    clicks.add_argument(
        "--held-out", type=float, default=0.2, metavar="SHARE", help="of the sessions, to judge the models on (default: 0.2)"
    )
    clicks.add_argument("--seed", type=_natural, default=1, help="draws the sessions that are held out, by their ids")
    json_line(clicks)

    offpolicy = command("offpolicy", _offpolicy, "estimate from a session log what new rankers would earn, before they go live")
    offpolicy.add_argument("log", metavar="LOG", help="Parquet, CSV or TSV, one row a shown result")
    offpolicy.add_argument(
        "scores", nargs="+", metavar="SCORES", help="of a new ranker: query, document, score as predict writes them, or a TREC run"
    )
    settable(offpolicy, "a key of data.clicks, such as document=doc or rank=position")
    offpolicy.add_argument("--top", type=int, default=10, metavar="K", help="count clicks on the first K results (default: 10)")
    offpolicy.add_argument(
        "--estimator",
        action="append",
        default=[],
        metavar="NAME",
        help="item-position, position-based, cascade or doubly-robust (default: all)",
    )
    offpolicy.add_argument(
        "--clip", type=float, default=1000.0, metavar="W", help="no page stands for more than so many (default: 1000)"
    )
    offpolicy.add_argument("--level", type=float, default=0.95, help="of the intervals")
    offpolicy.add_argument("--seed", type=_natural, default=1, help="draws the halves of the sessions, by their ids")
    json_line(offpolicy)

    interleaving = command("interleave", _interleave, "plan an interleaved comparison of rankers, or analyse one")
    steps = interleaving.add_subparsers(required=True, metavar="STEP")
    plan = steps.add_parser("plan", help="how many pages it takes to tell rankers apart")
    plan.add_argument(
        "--preference",
        type=float,
        required=True,
        metavar="D",
        help="the difference to be seen: the share of pages that prefer one ranker less that of the other",
    )
    plan.add_argument(
        "--ties",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="of pages that prefer neither, such as those without a click (default: 0.5)",
    )
    plan.add_argument("--power", type=float, default=0.8, help="how likely the difference is to be seen (default: 0.8)")
    plan.add_argument("--level", type=float, default=0.95)
    plan.add_argument("--rankers", type=int, default=2, metavar="N", help="more than two: multileaving, every two of them compared")
    analysis = steps.add_parser("analyse", help="which ranker the clicks on interleaved pages prefer")
    analysis.add_argument("log", metavar="LOG", help="a session log that says which ranker each result is of")
    analysis.add_argument("--method", default="team-draft", help="team-draft (of any number of rankers), balanced or probabilistic")
    analysis.add_argument(
        "--team", default="team", metavar="COLUMN", help="names the ranker that a result was taken from (team-draft)"
    )
    settable(analysis, "a key of data.clicks, such as document=doc or rank=position")
    analysis.add_argument("--level", type=float, default=0.95, help="of the intervals")
    for step in (plan, analysis):
        json_line(step)

    def over(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--model",
            required=True,
            metavar="M",
            help="a model's folder, an MLflow run, models:/NAME@ALIAS, or a file: LightGBM's, XGBoost's, or linear weights",
        )
        sub.add_argument("--data", required=True, nargs="+", metavar="FILE")
        settable(sub, "a key of the configuration, such as label=grade (data.label=grade is the same)")
        json_line(sub)

    def measured_by(sub: argparse.ArgumentParser, *measures: str) -> None:
        sub.add_argument("--measure", action="append", default=[], metavar="MEASURE", help=f"default: {', '.join(measures)}")

    evaluate = command(
        "evaluate", _evaluate, "measure a model on data, by the rules of any tool, and say which rule moves the number"
    )
    over(evaluate)
    measured_by(evaluate, *MEASURES)
    evaluate.add_argument("--convention", metavar="TOOL", help="lightgbm, xgboost, sklearn, ranklib, letor3, letor4 or trec")

    explain = command(
        "explain", _explain, "why one document of a query stands above another, or which features put documents in the wrong order"
    )
    over(explain)
    explain.add_argument("--query", metavar="Q", help="its id; without one, a summary over all queries")
    explain.add_argument("--above", metavar="D", help="the upper document, by id or rank (default: that of the worst pair)")
    explain.add_argument("--below", metavar="D", help="the lower document, by id or rank")
    explain.add_argument("--segment", metavar="NAME=VALUE", help="a summary over queries of one kind, such as language=de")
    explain.add_argument("-o", "--output", metavar="DRAWING.svg", help="write the drawing of a pair there")

    optimality = command("optimality", _optimality, "test whether a model is at a local optimum of a measure")
    over(optimality)
    measured_by(optimality, "ndcg_10")
    optimality.add_argument("--epsilon", type=float, default=0.01)
    optimality.add_argument("--delta", type=float, default=0.01)
    optimality.add_argument("--seed", type=_natural, default=1)
    optimality.add_argument("--escape", type=_natural, default=0, metavar="EPOCHS", help="of a net: train on for so many epochs")
    optimality.add_argument("-o", "--output", metavar="PAGE.html", help="write the page with the figures there")

    predict = command("predict", _predict, "score a file with a model")
    predict.add_argument("--model", required=True, metavar="M", help="a model's folder, an MLflow run, or models:/NAME@ALIAS")
    predict.add_argument("--data", required=True, metavar="FILE", help="Parquet, CSV or LETOR text; it may be larger than memory")
    predict.add_argument("-o", "--output", required=True, metavar="SCORES", help=".parquet, .csv or .tsv, or .trec for a TREC run")
    settable(predict, "a key of the configuration, such as label=grade (data.label=grade is the same)")

    export = command("export", _export, "write a model for another tool")
    export.add_argument(
        "--model",
        required=True,
        metavar="M",
        help="a model's folder, an MLflow run, models:/NAME@ALIAS, or a file: LightGBM's or XGBoost's",
    )
    export.add_argument(
        "--to",
        required=True,
        metavar="FORMAT",
        help="lightgbm, xgboost, xgboost-ubj, ranklib, solr, linear (Elasticsearch, OpenSearch), opensearch, elastic (Elasticsearch's own), xgboost-dump, lightgbm-dump (Vespa) or onnx",
    )
    export.add_argument(
        "--engine",
        metavar="ENGINE",
        help="what is to open it: opensearch-2.19 or elasticsearch-8.15 (its version), vespa or solr; refused where it would score otherwise",
    )
    export.add_argument("--extractors", metavar="FILE.json", help="for elastic: the query that each feature is the score of")
    export.add_argument("-o", "--output", required=True, metavar="FILE")
    export.add_argument("--data", nargs="+", metavar="FILE", help="score these by the file's own reader too, and compare")
    settable(export, "a key of the configuration, such as label=grade (data.label=grade is the same)")
    export.add_argument(
        "--complete", action="store_true", help="no feature will be missing (RankLib and Solr know no missing values)"
    )
    export.add_argument("--json", action="store_true", help="print what was done as JSON")

    compare = command("compare", _compare, "paired tests of finished runs from their stored per-query values")
    compare.add_argument("runs", nargs="+", metavar="RUN[:RANKER]")
    compare.add_argument("--measure", action="append", default=[], metavar="MEASURE", help="default: all that the runs share")
    compare.add_argument("--margin", type=float, metavar="M", help="also test that a run loses no more than M against another")
    compare.add_argument(
        "--tier", action="append", default=[], metavar="MEASURE", help="several, the most important first: the graded scorecard"
    )
    compare.add_argument("--level", type=float, help="of the scorecard's one-sided bounds (default: 0.95)")
    compare.add_argument(
        "--queries",
        type=int,
        metavar="N",
        help="list the N queries most harmed and most helped, by the first --measure, or else by the one that the run selects by",
    )
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")

    serve = command("serve", _serve, "run a configuration by the clock")
    serve.add_argument("config", metavar="CONF.yaml")
    serve.add_argument(
        "--cron", required=True, metavar="'M H D M W'", help="minute, hour, day, month, weekday: '0 3 * * *' is every night at 3"
    )
    settable(serve, "override a key, such as sweep.learning_rate=[x0.5,x1,x2]")
    serve.add_argument(
        "--prefect-port", type=_port, default=4200, help="of the server that is started where PREFECT_API_URL is not set"
    )

    serve.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="files below it may be read too (beside those below the working directory and $LAMBDAFLOW_DATA)",
    )

    command("warm", _warm, "compile the core, once per machine; the first run does it otherwise")

    ui = command("ui", _ui, "open MLflow's and Prefect's pages on this machine")
    ui.add_argument("--mlflow-port", type=_port, default=5000)
    ui.add_argument("--prefect-port", type=_port, default=4200)
    return parser


def _warm(given: argparse.Namespace) -> int:
    make_state_folder()
    _compile()
    return 0


def _compile() -> None:
    """Compiles the core, and says how far that is."""
    with _working() as shown:
        from tasks.training.warming import RECIPES, warm

        shown.begin("compiling the core, once per machine", len(RECIPES))
        warm(shown.done)


def _run(given: argparse.Namespace) -> int:
    with _working(), _importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import read, read_study

        several = None if given.data else read_study(given.config, given.set)
        config = several or read(given.config, given.set, given.data)
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
    with _working("opening MLflow"), _importing():
        from flows.interruption import ends_in_time
        from flows.leftovers import owned
        from flows.own_server import use_own_server
        from flows.pipeline import run
        from flows.runners import runner_of
        from flows.terminal import show, show_lines, show_study
        from tasks.report.outcome import PartlyFailedError
        from tasks.report.results_file import keep_results, read_results
        from tasks.tracking.description import commit
        from tasks.tracking.tracker import opened, patient
        from tasks.training.warming import is_cold

    if is_cold():
        _compile()
    if given.record:
        read_results(Path(given.record))
    written: Mapping[str, Any] = {}
    with ends_in_time(), owned():
        with _working("starting Prefect's server"):
            patient(opened, (1.0, 2.0, 3.0))()
            use_own_server(server)
        if isinstance(config, StudyConfig):
            from flows.study import StudyPartlyFailedError, study

            try:
                with _working():
                    of_all = study(config, given.fresh, given.runner)
            except StudyPartlyFailedError as partly:
                of_all = partly.outcome
            show_study(of_all, config.name)
            written, failures, outcomes = of_all.as_json(), of_all.failures, of_all.runs
        else:
            try:
                with _working():
                    outcome = runner_of(given.runner).start(run, config, given.fresh)
            except PartlyFailedError as failed:
                outcome = failed.outcome
            show(outcome)
            written, failures, outcomes = outcome.as_json(), outcome.failures, (outcome,)
            written = {**written, **(then(outcome) if then else {})}
        for failure in failures:
            print(f"error: {failure}", file=sys.stderr)
    for one in outcomes if given.record else ():
        show_lines(keep_results(one, commit(), Path(given.record)))
    if given.json:
        print(json.dumps(written))
    return 1 if "failed" in written else 0


def _refit(given: argparse.Namespace) -> int:
    """The run once more, of which everything is found, with one more model."""
    with _working(), _importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import from_yaml, parse
        from tasks.tracking.runs import find_run
        from tasks.tracking.tracker import CHOSEN

        make_state_folder()
        run_id, _, ranker = given.run.partition(":")
        found = find_run(run_id)
    if found.noted(CHOSEN) is None:
        raise ValueError(f"{given.run}: a finished run is refitted, and this is none")
    written = from_yaml(found.download("config.yaml").read_text(), given.run)
    asked = {"rankers": [ranker] if ranker else []} | ({"name": given.register} if given.register else {})
    return _start(given, parse(written | {"refit": asked}, given.run), server)


def _fuse(given: argparse.Namespace) -> int:
    """A run over the forms of some systems' scores, and its best fusion as a TREC run."""
    from tasks.records import ConfigError

    if given.way and not given.output:
        raise ConfigError(f"fuse: --with {given.way} says which ranking is written, and -o where; give both")
    with _working(), _importing():
        from flows.own_server import begin_own_server

        server = begin_own_server()
        from pathlib import Path

        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.fuse import fuse_config, named_runs
        from tasks.config.reading import override_all, parse
        from tasks.data.query_features import read_query_features

        runs = named_runs(given.runs)
        about = read_query_features([Path(given.queries)]) if given.queries else None
        by = () if about is None else about.columns[1:]
        asked = fuse_config(runs, given.qrels, given.measure, given.folds, given.queries, by)
        override_all(asked, given.set)
        config = parse(asked, "fuse")
        if given.way:
            config.require_ranker("--with", given.way)
        make_state_folder()
        from tasks.data.files import located
        from tasks.store.state import require_output

        if given.output:
            read = [given.qrels, *runs.values(), *([given.queries] if given.queries else ())]
            require_output(Path(given.output), *(located(Path(path)) for path in read))

    def write(outcome: "RunOutcome") -> Mapping[str, Any]:
        found = {name: value for one in outcome.evidence for name, value in one.numbers().items() if name == "best_single"}
        if not given.output:
            return found
        from tasks.export.fused import write_fused
        from tasks.records import number_of

        fusions = [name for name in outcome.config.rankers if name not in runs]
        way = given.way or max(fusions, key=lambda name: outcome.models[name].metrics[f"valid_{outcome.config.select_key}"])
        queries = write_fused(outcome.chosen_of(way), config.data.runs, Path(given.output), about)
        print(f"{given.output}: {number_of(queries, 'query')} ranked by {way}", file=sys.stderr)
        return {**found, "written": {"run": given.output, "ranker": way}}

    return _start(given, config, server, write)


def _judgments(given: argparse.Namespace) -> int:
    with _working("reading"):
        from pathlib import Path

        from tasks.export.judgment_forms import convert_judgments
        from tasks.records import number_of, printable

        written, notes = convert_judgments([Path(file) for file in given.files], given.to, Path(given.output))
    for note in notes:
        print(printable(note), file=sys.stderr)
    print(f"{number_of(written, 'judgment')}: {given.output}")
    return 0


def _correct(given: argparse.Namespace) -> int:
    with _working("measuring"):
        from pathlib import Path

        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.fuse import fuse_config, named_runs
        from tasks.config.reading import override_all, parse
        from tasks.evidence.machine_labels import corrected_runs
        from tasks.records import printable

        runs = named_runs(given.runs, fewest=1, command="correct")
        written = fuse_config(runs, given.people, "ndcg_10", 3)
        override_all(written, given.set)
        rules, files = parse(written, "correct").core_conventions, {name: [Path(path)] for name, path in runs.items()}
        found = corrected_runs(files, [Path(given.people)], [Path(given.machine)], given.measure, rules, given.level)
    for one in found:
        print(printable(one.text()))
    if given.json:
        print(json.dumps([one.as_json() for one in found]))
    return 0


def _check(given: argparse.Namespace) -> int:
    from tasks.records import ConfigError, printable

    if given.store == bool(given.files):
        raise ConfigError("check: files to look at, or --store")
    if given.store:
        return _check_store(given.json)
    found = _found(given)
    if given.json:
        print(json.dumps([vars(finding) for finding in found]))
    else:
        for finding in found:
            print(printable(f"{finding.level:8} {finding.subject}: {finding.text}"))
    return 1 if any(finding.level == "error" for finding in found) else 0


@_working("reading")
def _found(given: argparse.Namespace) -> "list[Finding]":
    """What there is to say of the files."""
    make_state_folder()
    from pathlib import Path

    from ltr.data.queries import Queries
    from tasks.config.reading import override_all, parse
    from tasks.data.about_file import about_file
    from tasks.data.calibrated import calibrated
    from tasks.data.check import findings, shared_queries
    from tasks.data.check_log import check_log
    from tasks.data.ingest import ingest
    from tasks.data.prepare import prepare
    from tasks.records import DataError, Finding, Prepared
    from tasks.store.datasets import open_queries

    written: dict[str, Any] = {"data": {"files": given.files}}
    override_all(written, given.set)
    config = parse(written, "check")
    data, rules = config.data, config.core_conventions
    told = {file: about_file(Path(file), data.label) for file in given.files}
    found: list[Finding] = [finding for own in told.values() for finding in own or ()]
    read = {file: ingest.fn([Path(file)], data, file) for file, own in told.items() if own is None}
    if data.clicks and read:
        try:
            found += check_log.fn(data.clicks, [one.data for one in read.values()])
        except DataError as error:
            found.append(Finding("error", data.clicks.log.name, _without_file(error, data.clicks.log)))
            data = data.model_copy(update={"clicks": None})
    made = {file: Prepared(ingested.data) for file, ingested in read.items()}
    for file, ingested in read.items():
        try:
            made[file] = prepare.fn(ingested.data, data, file)
        except DataError as error:
            found.append(Finding("error", file, _without_file(error, file)))
    sets = {file: one.data for file, one in made.items()}
    try:
        sets, said = calibrated(sets, data, rules)
        found += [Finding("note", "calibrate", note) for note in said]
    except DataError as error:
        found.append(Finding("error", "calibrate", str(error).removeprefix("data.calibrate: ")))
    seen: dict[str, Queries] = {}
    for file, ingested in read.items():
        queries = open_queries(sets[file])
        found += [Finding("warning", file, note) for note in ingested.notes]
        found += [Finding("note", file, note) for note in made[file].notes]
        found += findings(queries, ingested.split_queries, file, rules.gain, rules.threshold)
        for earlier, other in seen.items():
            found += shared_queries(other, queries, file, earlier)
        seen[file] = queries
    return found


def _without_file(error: Exception, file: "Path | str") -> str:
    """What is wrong with a file that is named in front of it already."""
    return str(error).removeprefix(f"{file}: ").removeprefix(f"{file}, ")


def _clicks(given: argparse.Namespace) -> int:
    from pathlib import Path

    with _working("reading"):
        from flows.terminal import show_click_models
        from tasks.config.click_labels import BEST
        from tasks.config.reading import parse_click_log
        from tasks.data.click_models import compare_models, fit_model, position_notes, written_models
        from tasks.data.log_pages import log_pages
        from tasks.data.tables import require_writable, write_table
        from tasks.store.state import require_output

        log = parse_click_log(given.log, given.model or BEST, given.set)
        if not 0 < given.held_out < 1:
            raise ValueError(f"--held-out {given.held_out}: a share of the sessions between 0 and 1")
        if given.output:
            require_writable(Path(given.output))
            require_output(Path(given.output), Path(given.log))
        read = log_pages(log)
    with _working("fitting click models"):
        compared = compare_models(read, log.prior or None, given.held_out, given.seed)
        chosen = fit_model(read, compared.attracting if log.model == BEST else str(log.model), log.prior or None)
        if given.output:
            write_table(chosen.table, Path(given.output))
    show_click_models(compared, [*read.notes, *position_notes(read.pages)], chosen)
    if given.output:
        print(f"{given.output}: attractiveness of {len(chosen.table):,} pairs of query and document by {chosen.name}")
    if given.json:
        print(json.dumps(written_models(compared, chosen, read)))
    return 0


def _offpolicy(given: argparse.Namespace) -> int:
    from pathlib import Path

    with _working("reading"):
        from dataclasses import asdict

        from flows.terminal import show_expected
        from ltr.clicks.off_policy import ESTIMATORS, Rules
        from tasks.config.reading import parse_click_log
        from tasks.data.log_pages import log_pages
        from tasks.data.new_rankers import expect, read_scores

        rules = Rules(top=given.top, clip=given.clip, level=given.level)
        for name in given.estimator:
            if name not in ESTIMATORS:
                raise ValueError(f"--estimator {name}: one of {', '.join(ESTIMATORS)}")
        names = [Path(path).stem for path in given.scores]
        if len({*names}) < len(names):
            names = list(given.scores)
        scores = {name: read_scores(Path(path)) for name, path in zip(names, given.scores, strict=True)}
        read = log_pages(parse_click_log(given.log, None, given.set))
    with _working("estimating"):
        found, advice = expect(read, scores, rules, given.estimator or ESTIMATORS, given.seed)
    show_expected(found, rules.level, [advice, *read.notes])
    if given.json:
        print(json.dumps({"advice": advice, "rankers": [asdict(one) for one in found]}))
    return 0 if any(one.estimates for one in found) else 1


def _interleave(given: argparse.Namespace) -> int:
    if "log" not in given:
        from ltr.clicks.interleaving import sessions_needed

        pages = sessions_needed(given.preference, given.ties, given.power, given.level, given.rankers)
        print(f"{pages:,} interleaved pages")
        if given.json:
            print(json.dumps({"pages": pages}))
        return 0
    with _working("reading"):
        from dataclasses import asdict

        from flows.terminal import show_duels
        from ltr.clicks.interleaving import METHODS
        from tasks.config.reading import parse_click_log
        from tasks.data.interleaved import analyse

        if given.method not in METHODS:
            raise ValueError(f"--method {given.method}: one of {', '.join(METHODS)}")
        if not 0 < given.level < 1:
            raise ValueError(f"--level {given.level}: between 0 and 1")
        found = analyse(parse_click_log(given.log, None, given.set), given.team, given.method, given.level)
    show_duels(found, given.level)
    if given.json:
        print(json.dumps(asdict(found)))
    return 0


def _check_store(as_json: bool) -> int:
    from tasks.store.state import damaged

    told, unsealed = damaged()
    if as_json:
        print(json.dumps(told))
    else:
        for one in told:
            print(f"error    {one}")
        if unsealed:
            print(f"note     {unsealed} folders that an earlier release made have no digests to be compared with")
        if not told:
            print("nothing is damaged")
    return 1 if told else 0


def _config_of(model: str, files: Sequence[str], overrides: Sequence[str]) -> "RunConfig":
    """Configuration of a command that works on a model and files, which are read as those that it learned from."""
    from dataclasses import asdict

    from tasks.config.reading import override_all, parse
    from tasks.tracking.lookup import find_columns

    make_state_folder()
    written: dict[str, Any] = {"data": {"files": list(files), **asdict(find_columns(model))}}
    override_all(written, overrides)
    return parse(written, "--set")


@_working("reading")
def _opened(given: argparse.Namespace) -> "tuple[Ranker, Queries, RunConfig]":
    """Model, data set and configuration of a command that works on a model and files."""
    from pathlib import Path

    make_state_folder()
    from tasks.data.calibrated import calibrated
    from tasks.data.ingest import ingest, read_for, require_scores
    from tasks.data.prepare import prepare
    from tasks.records import printable
    from tasks.store.datasets import open_queries
    from tasks.tracking.lookup import find_model

    config = _config_of(given.model, given.data, given.set)
    files = [Path(file) for file in given.data]
    read = ingest.fn(files, config.data)
    prepared = prepare.fn(read.data, config.data).data
    queries = open_queries(calibrated({"data": prepared}, config.data, config.core_conventions)[0]["data"])
    model = find_model(given.model, queries.names)
    for remark in model.remarks[1:] if Path(given.model).is_file() else ():
        print(printable(remark), file=sys.stderr)
    read_by = read_for(model.names, queries, files)
    require_scores(model, read_by, files)
    return model, read_by, config


def _predict(given: argparse.Namespace) -> int:
    from pathlib import Path

    make_state_folder()
    with _working("predicting"):
        from tasks.export.predict import predict
        from tasks.records import number_of
        from tasks.tracking.lookup import find_model

        data = _config_of(given.model, [given.data], given.set).data
        asked = [said.partition("=")[0].removeprefix("data.") for said in given.set]
        named = [getattr(data, kind) for kind in ("query", "document") if kind in asked]
        rows = predict(find_model(given.model), Path(given.data), Path(given.output), data, named)
    print(f"{number_of(rows, 'score')}: {given.output}")
    return 0


def _export(given: argparse.Namespace) -> int:
    model, queries, _ = _opened(given) if given.data else (None, None, None)
    make_state_folder()
    with _working("exporting"):
        from dataclasses import asdict
        from pathlib import Path

        from tasks.export.formats import export_to
        from tasks.records import number_of, printable
        from tasks.store.state import require_output
        from tasks.tracking.lookup import find_model

        extractors = Path(given.extractors) if given.extractors else None
        require_output(Path(given.output), Path(given.model), *map(Path, given.data or ()), *([extractors] if extractors else ()))
        found_model = model or find_model(given.model)
        done = export_to(found_model, given.output, given.to, queries, given.complete, given.engine, extractors)
    trees = f"{number_of(done.trees, 'tree')} on " if done.trees is not None else ""
    print(f"{done.path}: {done.kind}, {trees}{number_of(done.features, 'feature')}, for {done.about} ({done.bytes:,} bytes)")
    for remark in done.remarks:
        print(printable(f"  {remark}"))
    if found := done.verified:
        order = (
            f"ranked differently: {number_of(found.reordered, 'query')}" if found.reordered else "no query is ranked differently"
        )
        print(
            f"  verified on {number_of(found.documents, 'document')}: largest score difference {found.largest_difference:.1e}, {order}"
        )
    if given.json:
        print(json.dumps(asdict(done)))
    return 0


def _evaluate(given: argparse.Namespace) -> int:
    model, queries, config = _opened(given)
    with _working("measuring"):
        from tasks.evidence.explanation import explained

        rows = explained(model, queries, given.measure or MEASURES, config.core_conventions, given.convention)
    for row in rows:
        theirs = f"   by {given.convention}'s rules {row.theirs:.5f}" if given.convention else ""
        print(f"{row.measure:14} {row.value:.5f}{theirs}")
        before, still = row.value, []
        for shift in row.shifts:
            if shift.alone or shift.value != before:
                change = f"{shift.rule}: {shift.ours} → {shift.theirs}"
                print(f"  {change}   alone {shift.alone:+.5f}, so far {shift.value:.5f}")
            else:
                still.append(f"{shift.rule} ({shift.theirs})")
            before = shift.value
        if still:
            print(f"  nothing moves by: {', '.join(still)}")
    if given.json:
        print(json.dumps({row.measure: row.as_json() for row in rows}))
    return 0


def _explain(given: argparse.Namespace) -> int:
    from tasks.records import ConfigError

    if given.query is None and (given.above or given.below or given.output):
        raise ConfigError("explain: --above, --below and -o are of one --query")
    if given.query is not None and given.segment:
        raise ConfigError("explain: --query, or a --segment of queries")
    if given.output and not given.output.lower().endswith(".svg"):
        raise ConfigError(f"explain: -o {given.output}: a drawing is written as .svg")
    model, queries, config = _opened(given)
    with _working("explaining"):
        from pathlib import Path

        from flows.terminal import show_pair, show_wrong_order
        from tasks.evidence.reasons import pair_of
        from tasks.evidence.wrong_order import summary_of
        from tasks.store.state import require_output, written_whole

        if given.query is None:
            summary = summary_of(model, queries, given.segment, config.data.clicks)
            show_wrong_order(summary)
            written = summary.as_json()
        else:
            pair = pair_of(model, queries, given.query, given.above, given.below)
            show_pair(pair)
            written = pair.as_json()
            if given.output:
                require_output(Path(given.output), Path(given.model), *map(Path, given.data))
                with written_whole(Path(given.output)) as partial:
                    partial.write_text(pair.drawing())
                print(f"drawing: {given.output}")
    if given.json:
        print(json.dumps(written))
    return 0


def _optimality(given: argparse.Namespace) -> int:
    with _working("optimality"):
        from flows.own_server import begin_own_server, use_own_server

        server = begin_own_server()
        config = _config_of(given.model, given.data, given.set)
        make_state_folder()
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
    for certificate in found.certificates:
        print(f"{certificate.ranker}: {certificate.verdict}. {certificate.text()}")
    if given.output:
        with written_whole(Path(given.output)) as partial:
            shutil.copyfile(found.page, partial)
    print(f"page: {given.output or found.page}")
    if given.json:
        print(json.dumps([certificate.as_json() for certificate in found.certificates]))
    return 0


def _compare(given: argparse.Namespace) -> int:
    from tasks.records import ConfigError

    if given.level is not None and not given.tier:
        raise ConfigError(f"compare: --level {given.level} is of the scorecard's bounds; --tier MEASURE asks for a scorecard")
    make_state_folder()
    with _working():
        from dataclasses import asdict

        from flows.terminal import show_changed, show_comparison, show_scorecards
        from tasks.evidence.segments import changed_queries
        from tasks.evidence.significance import compare_stored, scorecards
        from tasks.tracking.runs import find_values

        stored = [find_values(run) for run in given.runs]
        table = compare_stored(stored, given.measure, given.margin)
        level = 0.95 if given.level is None else given.level
        cards = scorecards(stored, given.tier, given.margin or 0.0, level) if given.tier else []
        selected = [] if given.measure else [one.select for one in stored if one.select and one.select in table.measures]
        changed = [] if given.queries is None else changed_queries(stored, [*selected, table.measures[0]][0], given.queries)
    written = table.as_json()
    show_comparison(table)
    if given.tier:
        show_scorecards(cards)
        written["scorecards"] = [asdict(card) for card in cards]
    if given.queries is not None:
        show_changed(changed)
        written["changed"] = [entry.as_json() for entry in changed]
    if given.json:
        print(json.dumps(written))
    return 0


def _serve(given: argparse.Namespace) -> int:
    with _working():
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import read

        config = read(given.config, given.set)
        make_state_folder()
        from flows.servers import serve_schedule

    return serve_schedule(config, given.cron, given.prefect_port, given.allow)


def _ui(given: argparse.Namespace) -> int:
    make_state_folder()
    with _working():
        from flows.servers import serve_pages

    return serve_pages(given.mlflow_port, given.prefect_port)


if __name__ == "__main__":
    entry()
