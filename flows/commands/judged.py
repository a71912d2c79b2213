"""``lambdaflow check``, ``judgments`` and ``correct``: data files, judgments, and what a machine judged."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from flows import make_state_folder
from flows.commands.opening import print_json, words_of, working

if TYPE_CHECKING:
    from pathlib import Path

    from tasks.records import Finding


def check_files(given: argparse.Namespace) -> int:
    """Looks at data files, or at the store."""
    from tasks.records import ConfigError, printable

    if given.store == bool(given.files):
        raise ConfigError("check: give either files to check or --store")
    if given.store:
        return _check_store(given.json)
    found = _found(given)
    if given.json:
        print_json([vars(finding) for finding in found])
    else:
        for finding in found:
            print(printable(f"{finding.level:8} {finding.subject}: {finding.text}"))
    return 1 if any(finding.level == "error" for finding in found) else 0


@working("reading")
def _found(given: argparse.Namespace) -> "list[Finding]":
    """What there is to say of the files."""
    make_state_folder()
    from pathlib import Path

    from ltr.data.queries import Queries
    from tasks.config.reading import override_data, parse
    from tasks.data.about_file import about_file
    from tasks.data.calibrated import calibrated
    from tasks.data.check import findings, seldom_twice, shared_queries
    from tasks.data.check_log import check_log
    from tasks.data.ingest import ingest, with_categories
    from tasks.data.prepare import prepare
    from tasks.records import DataError, Finding, Prepared
    from tasks.store.datasets import open_queries

    written: dict[str, Any] = {"data": {"files": given.files}}
    override_data(written, given.set)
    config = parse(written, "check")
    data, rules = with_categories(config.data, config.data.files), config.core_conventions
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
        found += [Finding("warning", file, note.removeprefix(f"{Path(file).name}: ")) for note in ingested.notes]
        found += [Finding("note", file, note) for note in made[file].notes]
        found += findings(queries, ingested.split_queries, file, rules)
        for earlier, other in seen.items():
            found += shared_queries(other, queries, file, earlier)
        seen[file] = queries
    return found + seldom_twice(list(sets.values()), data.of_categories)


def _without_file(error: Exception, file: "Path | str") -> str:
    """What is wrong with a file that is named in front of it already."""
    return str(error).removeprefix(f"{file}: ").removeprefix(f"{file}, ")


def _check_store(as_json: bool) -> int:
    from tasks.records import number_of
    from tasks.store.state import damaged, root

    told, unsealed = damaged()
    if as_json:
        print_json(told)
    else:
        for one in told:
            print(f"error    {one}")
        if unsealed:
            folders = number_of(unsealed, "folder")
            print(
                f"note     {folders} from an earlier release {'has' if unsealed == 1 else 'have'} no digest and {'was' if unsealed == 1 else 'were'} not checked"
            )
        if not told:
            print("nothing is damaged" if root().is_dir() else f"nothing is stored in {root()}/ of this folder")
    return 1 if told else 0


def judgments(given: argparse.Namespace) -> int:
    """Writes judgments in the form of another tool."""
    with working("reading"):
        from pathlib import Path

        from tasks.export.judgment_forms import convert_judgments
        from tasks.records import number_of, printable

        written, notes = convert_judgments([Path(file) for file in given.files], given.to, Path(given.output))
    for note in notes:
        print(printable(note), file=sys.stderr)
    print(f"wrote {number_of(written, 'judgment')} to {given.output}")
    return 0


def correct(given: argparse.Namespace) -> int:
    """Measures TREC runs that a machine judged as people would."""
    with working("measuring"):
        from pathlib import Path

        from ltr.metrics.conventions import PRESETS
        from tasks.config.fuse import named_runs
        from tasks.config.reading import override_all, parse
        from tasks.evidence.machine_labels import corrected_runs
        from tasks.records import ConfigError, printable

        for one in given.set:
            if (key := one.partition("=")[0]) not in (known := ("conventions.gain", "conventions.threshold")):
                raise ConfigError(f"correct: --set {key}: correct accepts only {' and '.join(known)}")
        if not 0 < given.level < 1:
            raise ConfigError(f"correct: --level {given.level:g}: must be between 0 and 1, such as 0.95")
        files = {name: [Path(path)] for name, path in named_runs(given.runs, "correct").items()}
        written = {"data": {"generate": {}}, "conventions": asdict(PRESETS["trec"].conventions)}
        override_all(written, given.set)
        rules = parse(written, "correct").core_conventions
        found = corrected_runs(files, [Path(given.people)], [Path(given.machine)], given.measure, rules, given.level)
    for one in found:
        print(printable(one.text()), file=words_of(given))
    if given.json:
        print_json([one.as_json() for one in found])
    return 0
