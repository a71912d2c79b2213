"""``lambdaflow …``: the command line. Heavy imports live inside the subcommands, so that help is instant."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from flows import make_state_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code: 0 done, 1 failed or refused by the data, 2 wrong usage."""
    given = _parser().parse_args(arguments)
    try:
        return given.command(given)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        if given.debug:
            raise
        known = isinstance(error, ValueError | OSError)
        text = str(error).strip() if known else f"{type(error).__name__}: {error} (--debug shows where)"
        for line in text.splitlines() or [type(error).__name__]:
            print(f"error: {line}", file=sys.stderr)
        return 1


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

    run = command("run", _run, "run a configuration, or continue it where it was")
    run.add_argument("config", metavar="CONF.yaml")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key, such as sweep.learning_rate=[0.1,0.2]"
    )
    run.add_argument("--fresh", action="store_true", help="train every cell again")
    run.add_argument("--runner", default=None, metavar="threads[=N]", help="cells at a time (default: the configuration's workers)")
    run.add_argument("--json", action="store_true", help="print one JSON object as the last line of standard output")

    check = command("check", _check, "look at data files before training on them")
    check.add_argument("files", nargs="+", metavar="FILE")
    check.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the data section, such as label=grade"
    )
    check.add_argument("--json", action="store_true", help="print the findings as JSON")

    ui = command("ui", _ui, "open MLflow's and Prefect's pages on this machine")
    ui.add_argument("--mlflow-port", type=int, default=5000)
    ui.add_argument("--prefect-port", type=int, default=4200)
    return parser


def _run(given: argparse.Namespace) -> int:
    from tasks.config import ConfigError, read

    overrides = list(given.set)
    if given.runner is not None:
        kind, _, count = given.runner.partition("=")
        if kind != "threads" or not (count or "1").isdigit():
            raise ConfigError(f"--runner {given.runner}: threads or threads=N")
        overrides.append(f"workers={count or 2}")
    config = read(given.config, overrides)

    make_state_folder()
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.pipeline import run
    from flows.terminal import show

    runner: Any = ThreadPoolTaskRunner(max_workers=config.workers)
    outcome = run.with_options(task_runner=runner)(config, given.fresh)
    show(outcome, config.name)
    if given.json:
        print(json.dumps({"run_id": outcome["run_id"], "models": outcome["models"]}))
    return 0


def _check(given: argparse.Namespace) -> int:
    from pathlib import Path

    import yaml

    make_state_folder()
    from tasks import store
    from tasks.check import findings
    from tasks.config import parse
    from tasks.ingest import ingest

    pairs = (override.partition("=") for override in given.set)
    data = parse({"data": {"files": given.files, **{key: yaml.safe_load(value) for key, _, value in pairs}}}, "check").data
    found = []
    for file in given.files:
        read = ingest.fn([Path(file)], data, file)
        found += findings(store.open_queries(read["data"][0]), read["split_queries"], file)
    if given.json:
        print(json.dumps([vars(finding) for finding in found]))
    else:
        for finding in found:
            print(f"{finding.level:8} {finding.subject}: {finding.text}")
    return 1 if any(finding.level == "error" for finding in found) else 0


def _ui(given: argparse.Namespace) -> int:
    from flows.servers import serve_pages

    return serve_pages(given.mlflow_port, given.prefect_port)


if __name__ == "__main__":
    sys.exit(main())
