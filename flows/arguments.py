"""The arguments of every command; what a command does is in `flows.commands`."""

import argparse
from collections.abc import Callable
from typing import Any

from flows.commands import judged, logs, models, pages, training


def _natural(written: str) -> int:
    """A whole number, 0 or more, of an argument."""
    if not written.isdecimal():
        raise argparse.ArgumentTypeError(f"{written!r}: must be a whole number, 0 or more")
    return int(written)


def _port(written: str) -> int:
    """A port of an argument."""
    if not written.isdecimal() or not 1 <= int(written) <= 65_535:
        raise argparse.ArgumentTypeError(f"{written!r}: a port must be a whole number from 1 to 65,535")
    return int(written)


def _not_empty(written: str) -> str:
    """A text of an argument that says something: an unset variable of a shell says nothing."""
    if not written.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return written


_OF_DATA = "a key of data or of conventions, such as label=grade (data.label=grade is the same) or conventions.gain=linear"
"""What commands set that read data and train nothing."""


class _Version(argparse.Action):
    """Asks the installed package, which takes a while, only when it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(parser.prog, version("lambdaflow"))
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """What reads a command line; `command` of what it read is the function of the command."""
    whole = argparse.ArgumentParser(
        prog="lambdaflow", description="Ranking models you can trust: trained, compared, certified, tracked."
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="show the installed version and exit")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for group in (_training, _judged, _logs, _models, _pages):
        group(commands)
    return whole


def _command(commands: Any, name: str, does: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    added.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    added.set_defaults(command=does)
    return added


def _settable(sub: argparse.ArgumentParser, text: str) -> None:
    sub.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)


def _json_line(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print the result as JSON on the last line of standard output")


def _model(sub: argparse.ArgumentParser, files: str = "LightGBM's, XGBoost's, or linear weights") -> None:
    text = f"model: its folder, an MLflow run, models:/NAME@ALIAS, or a file: {files}"
    sub.add_argument("--model", required=True, type=_not_empty, metavar="M", help=text)


def _over(sub: argparse.ArgumentParser) -> None:
    _model(sub)
    sub.add_argument("--data", required=True, nargs="+", metavar="FILE", help="data files with labels: Parquet, CSV or LETOR text")
    _settable(sub, _OF_DATA)
    _json_line(sub)


def _measured_by(sub: argparse.ArgumentParser, *measures: str) -> None:
    sub.add_argument("--measure", action="append", default=[], metavar="MEASURE", help=f"measure (default: {', '.join(measures)})")


def _training(commands: Any) -> None:
    run = _command(commands, "run", training.run_configuration, "run a configuration, or continue it where it was")
    run.add_argument("config", metavar="CONF.yaml", help="configuration (docs/configuration.md) or study")
    _settable(run, "override a key, such as sweep.learning_rate=[x0.5,x1,x2]")
    run.add_argument("--data", metavar="CONF.yaml", help="configuration whose data and conventions are used instead")
    run.add_argument("--fresh", action="store_true", help="train every cell again")
    run.add_argument(
        "--runner",
        default=None,
        metavar="ENGINE",
        help="engine that trains the cells: threads[=N], processes[=N], dask[=N] or dask=tcp://HOST:PORT (default: threads; N defaults to the configuration's workers, and to at least two for processes and Dask)",
    )
    _json_line(run)
    run.add_argument(
        "--record", metavar="FILE.json", help="keep the results in a small file, and report what changed since it was last written"
    )

    refit = _command(commands, "refit", training.refit, "retrain what a finished run chose on all its data")
    refit.add_argument(
        "run",
        type=_not_empty,
        metavar="RUN[:RANKER]",
        help="run and ranker; default: the run's best ranker that uses the data's own features",
    )
    refit.add_argument("--register", type=_not_empty, metavar="NAME", help="add the model to MLflow's registry under this name")
    _json_line(refit)
    refit.set_defaults(fresh=False, runner=None, record=None)

    fuse = _command(
        commands,
        "fuse",
        training.fuse,
        "fuse the TREC runs of several systems into one ranking, and test whether it beats the best of them",
    )
    fuse.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="TREC runs: query Q0 document rank score tag")
    fuse.add_argument("--qrels", required=True, metavar="FILE", help="judgments: query 0 document label")
    fuse.add_argument(
        "--queries", metavar="TABLE", help="features of queries, one row per query: weights that depend on them are tried as well"
    )
    fuse.add_argument("-o", "--output", metavar="FUSED.run", help="file to write the fused ranking to, as a TREC run")
    fuse.add_argument(
        "--with",
        dest="way",
        metavar="RANKER",
        help="ranker whose ranking is written (default: the best fusion on queries that its folds' models have not seen)",
    )
    fuse.add_argument(
        "--measure", default="ndcg_10", metavar="MEASURE", help="measure to fuse for and to compare by (default: ndcg_10)"
    )
    fuse.add_argument(
        "--folds", type=int, default=5, metavar="N", help="number of parts that the queries are split into (default: 5)"
    )
    _settable(fuse, "override a key of the configuration, such as rankers.rrf.k=20 or conventions.gain=exp2")
    fuse.add_argument("--runner", default=None, metavar="ENGINE", help="engine that trains the cells, as in run")
    fuse.add_argument("--fresh", action="store_true", help="train every cell again")
    _json_line(fuse)
    fuse.set_defaults(record=None)


def _judged(commands: Any) -> None:
    judgments = _command(commands, "judgments", judged.judgments, "write judgments in the form of another tool")
    judgments.add_argument(
        "files", nargs="+", metavar="FILE", help="TREC qrels, the workbench's JSON, Quepid's CSV or hello-ltr's text"
    )
    judgments.add_argument("--to", required=True, metavar="FORM", help="trec, quepid, workbench (OpenSearch's) or hello-ltr")
    judgments.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write the judgments to")

    correct = _command(
        commands,
        "correct",
        judged.correct,
        "estimate how people would judge TREC runs, from machine labels and a random sample of human ones",
    )
    correct.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="TREC runs: query Q0 document rank score tag")
    correct.add_argument("--machine", required=True, metavar="FILE", help="machine judgments of every query-document pair")
    correct.add_argument("--people", required=True, metavar="FILE", help="human judgments of a random sample of these pairs")
    correct.add_argument("--measure", default="dcg@10", metavar="MEASURE", help="measure, p@k or dcg@k (default: dcg@10)")
    correct.add_argument("--level", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    _settable(correct, "a convention, conventions.gain=exp2 or conventions.threshold=2")
    correct.add_argument("--json", action="store_true", help="print the numbers as JSON")

    check = _command(commands, "check", judged.check_files, "check data files before training on them")
    check.add_argument(
        "files", nargs="*", metavar="FILE", help="data files: Parquet, CSV or LETOR text; judgments or what search engines logged"
    )
    check.add_argument("--store", action="store_true", help="check every byte of what is kept in .lambdaflow/ for damage")
    _settable(check, _OF_DATA)
    check.add_argument("--json", action="store_true", help="print the findings as JSON")


def _logs(commands: Any) -> None:
    clicks = _command(commands, "clicks", logs.clicks, "fit click models to a session log and report which predicts clicks best")
    clicks.add_argument("log", metavar="LOG", help="session log: Parquet, CSV or TSV, one row per result shown, or UBI's NDJSON")
    _settable(clicks, "a key of data.clicks, such as document=doc, rank=position or prior=10")
    clicks.add_argument("--model", metavar="MODEL", help="click model whose attractiveness is written (default: the best)")
    clicks.add_argument(
        "-o",
        "--output",
        metavar="TABLE",
        help="file for the attractiveness of every query-document pair: .parquet, .csv or .tsv",
    )
    clicks.add_argument(
        "--held-out",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="share of sessions held out to judge the models on (default: 0.2)",
    )
    clicks.add_argument("--seed", type=_natural, default=1, help="random seed that chooses the held-out sessions (default: 1)")
    _json_line(clicks)

    offpolicy = _command(
        commands, "offpolicy", logs.offpolicy, "estimate from a session log what new rankers would earn, before they go live"
    )
    offpolicy.add_argument("log", metavar="LOG", help="session log: Parquet, CSV or TSV, one row per result shown")
    offpolicy.add_argument(
        "scores",
        nargs="+",
        metavar="SCORES",
        help="scores of a new ranker: query, document, score as predict writes them, or a TREC run",
    )
    _settable(offpolicy, "a key of data.clicks, such as document=doc or rank=position")
    offpolicy.add_argument(
        "--top", type=int, default=10, metavar="K", help="number of results, from the first, whose clicks count (default: 10)"
    )
    offpolicy.add_argument(
        "--estimator",
        action="append",
        default=[],
        metavar="NAME",
        help="estimator: item-position, position-based, cascade or doubly-robust (repeatable; default: all)",
    )
    offpolicy.add_argument(
        "--clip",
        type=float,
        default=1000.0,
        metavar="W",
        help="largest importance weight of a page (of a click for position-based; default: 1000)",
    )
    offpolicy.add_argument("--level", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    offpolicy.add_argument(
        "--seed", type=_natural, default=1, help="random seed for the split of the sessions into halves (default: 1)"
    )
    _json_line(offpolicy)

    interleaving = _command(commands, "interleave", logs.interleave, "plan an interleaved comparison of rankers, or analyse one")
    steps = interleaving.add_subparsers(required=True, metavar="STEP")
    plan = steps.add_parser("plan", help="compute how many pages it takes to detect a difference")
    plan.add_argument(
        "--preference",
        type=float,
        required=True,
        metavar="D",
        help="smallest difference to detect: share of pages preferring one ranker minus share preferring the other",
    )
    plan.add_argument(
        "--ties",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="share of pages that prefer neither ranker, such as those without a click (default: 0.5)",
    )
    plan.add_argument("--power", type=float, default=0.8, help="probability of detecting the difference (default: 0.8)")
    plan.add_argument("--level", type=float, default=0.95, help="confidence level of the test (default: 0.95)")
    plan.add_argument(
        "--rankers",
        type=int,
        default=2,
        metavar="N",
        help="number of rankers (default: 2); with more than two, multileaving, and every two are compared",
    )
    plan.set_defaults(needs_folder=False)  # it neither reads nor keeps anything
    analysis = steps.add_parser("analyse", help="test which ranker the clicks on interleaved pages prefer")
    analysis.add_argument("log", metavar="LOG", help="session log that names the ranker of each result")
    analysis.add_argument(
        "--method",
        default="team-draft",
        help="method of interleaving: team-draft (any number of rankers), balanced or probabilistic",
    )
    analysis.add_argument(
        "--team", default="team", metavar="COLUMN", help="column that names the ranker of each result (team-draft; default: team)"
    )
    _settable(analysis, "a key of data.clicks, such as document=doc or rank=position")
    analysis.add_argument("--level", type=float, default=0.95, help="confidence level of the intervals (default: 0.95)")
    for step in (plan, analysis):
        _json_line(step)


def _models(commands: Any) -> None:
    evaluate = _command(
        commands,
        "evaluate",
        models.evaluate,
        "measure a model on data, by the conventions of any tool, and report which convention changes the number",
    )
    _over(evaluate)
    _measured_by(evaluate, *models.MEASURES)
    evaluate.add_argument(
        "--convention",
        metavar="TOOL",
        help="tool whose conventions to compare with: lightgbm, xgboost, sklearn, ranklib, letor3, letor4 or trec",
    )

    explain = _command(
        commands,
        "explain",
        models.explain,
        "explain why one document ranks above another, or which features put documents in the wrong order",
    )
    _over(explain)
    explain.add_argument("--query", metavar="Q", help="id of a query; without one, a summary over all queries")
    explain.add_argument("--above", metavar="D", help="upper document, by id or rank (default: that of the worst pair)")
    explain.add_argument("--below", metavar="D", help="lower document, by id or rank")
    explain.add_argument("--segment", metavar="NAME=VALUE", help="queries to summarise, such as language=de")
    explain.add_argument("-o", "--output", metavar="DRAWING.svg", help="file to write the drawing of the pair to")

    optimality = _command(commands, "optimality", models.optimality, "test whether a model is at a local optimum of a measure")
    _over(optimality)
    _measured_by(optimality, "ndcg_10")
    optimality.add_argument(
        "--epsilon", type=float, default=0.01, metavar="SHARE", help="share of rising directions to rule out (default: 0.01)"
    )
    optimality.add_argument(
        "--delta", type=float, default=0.01, metavar="P", help="probability of missing such a share (default: 0.01: 459 directions)"
    )
    optimality.add_argument("--seed", type=_natural, default=1, help="random seed for the directions (default: 1)")
    optimality.add_argument(
        "--escape", type=_natural, default=0, metavar="EPOCHS", help="number of further epochs to train a net for (default: 0)"
    )
    optimality.add_argument("-o", "--output", metavar="PAGE.html", help="file to write the page with the figures to")

    predict = _command(commands, "predict", models.predict_scores, "score a file with a model")
    _model(predict)
    predict.add_argument(
        "--data", required=True, metavar="FILE", help="data file: Parquet, CSV or LETOR text; may be larger than memory"
    )
    predict.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="SCORES",
        help="file for the scores: .parquet, .csv or .tsv, or .trec for a TREC run",
    )
    _settable(predict, _OF_DATA)

    export = _command(commands, "export", models.export, "write a model for another tool")
    _model(export, "LightGBM's or XGBoost's")
    export.add_argument(
        "--to",
        required=True,
        metavar="FORMAT",
        help="lightgbm, xgboost, xgboost-ubj, ranklib, solr, linear (Elasticsearch, OpenSearch), opensearch, elastic (Elasticsearch's own), xgboost-dump, lightgbm-dump (Vespa) or onnx",
    )
    export.add_argument(
        "--engine",
        metavar="ENGINE",
        help="target engine and version: opensearch-2.19 or elasticsearch-8.15 (your version), vespa or solr; the export is refused if it would score differently there",
    )
    export.add_argument("--extractors", metavar="FILE.json", help="file with the query that computes each feature (elastic)")
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write the model to")
    export.add_argument(
        "--data", nargs="+", metavar="FILE", help="data files to score both with the model and with the written file, and compare"
    )
    _settable(export, _OF_DATA)
    export.add_argument(
        "--complete",
        action="store_true",
        help="declare that no feature will be missing (RankLib and Solr do not support missing values)",
    )
    export.add_argument("--json", action="store_true", help="print what was done as JSON")

    compare = _command(
        commands, "compare", models.compare, "compare finished runs by paired tests on their stored per-query values"
    )
    compare.add_argument(
        "runs",
        nargs="+",
        type=_not_empty,
        metavar="RUN[:RANKER]",
        help="two or more finished runs, by id; the best ranker of each unless one is named",
    )
    compare.add_argument(
        "--measure", action="append", default=[], metavar="MEASURE", help="measure (default: all that the runs share)"
    )
    compare.add_argument("--margin", type=float, metavar="M", help="also test that no run loses more than M against another")
    compare.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="MEASURE",
        help="measure of the graded scorecard, most important first (repeatable)",
    )
    compare.add_argument(
        "--level", type=float, help="confidence level of the scorecard's one-sided bounds, with --tier (default: 0.95)"
    )
    compare.add_argument(
        "--queries",
        type=int,
        metavar="N",
        help="list the N queries most harmed and most helped, by the first --measure, or by the measure that the run selects by",
    )
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _pages(commands: Any) -> None:
    serve = _command(commands, "serve", pages.serve, "run a configuration on a schedule")
    serve.add_argument("config", metavar="CONF.yaml", help="configuration to run")
    serve.add_argument(
        "--cron", required=True, metavar="'MIN HOUR DAY MONTH WEEKDAY'", help="schedule: '0 3 * * *' is every night at 3"
    )
    _settable(serve, "override a key, such as sweep.learning_rate=[x0.5,x1,x2]")
    serve.add_argument(
        "--prefect-port",
        type=_port,
        default=4200,
        help="port of the Prefect server that is started if PREFECT_API_URL is not set (default: 4200)",
    )

    serve.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="folder whose files may be read too, besides those in the working directory and $LAMBDAFLOW_DATA",
    )

    _command(commands, "warm", training.warm_up, "compile the core, once per machine (otherwise the first run does)")

    ui = _command(commands, "ui", pages.ui, "open MLflow's and Prefect's pages on this machine")
    ui.add_argument("--mlflow-port", type=_port, default=5000, help="port of MLflow's pages (default: 5000)")
    ui.add_argument("--prefect-port", type=_port, default=4200, help="port of Prefect's pages (default: 4200)")
