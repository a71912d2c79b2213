"""Configurations from files and the command line, with one clear line for whatever is wrong."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tasks.config.click_labels import ClickLabel, ClickLog
from tasks.config.data_section import Data
from tasks.config.ranker_section import SECTIONS
from tasks.config.run_config import EVIDENCE, RunConfig, StudyConfig
from tasks.config.section import near, several
from tasks.records import MICRO, ConfigError


def _path(fault: Any) -> str:
    """Where a fault is, without the alternatives that pydantic tried there."""
    kinds = fault["loc"][2:3]
    parts = [
        str(p)
        for k, p in enumerate(fault["loc"])
        if (k == 1 or str(p) not in SECTIONS or p not in kinds) and not re.search(r"\[|-float$|Section$", str(p))
    ]
    return ".".join(parts)


def _explain(error: ValidationError, where: str, rankers: Sequence[str] = ()) -> ConfigError:
    lines, faults = [], [(_path(fault), fault) for fault in error.errors()]
    for path, fault in faults:
        if fault["type"].endswith("_type") and any(_says_more(path, other, f) for other, f in faults if f is not fault):
            continue
        if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            lines.append(f"{where}: unknown key {path!r}{_elsewhere(path) or near(str(fault['loc'][-1]))}")
        elif fault["type"] == "value_error":
            lines.append(f"{where}: {path + ': ' if path else ''}{fault['ctx']['error']}")
        elif fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
            lines.append(f"{where}: {path}: {_not_a_kind(fault['ctx'], str(fault['loc'][-1]), rankers)}")
        else:
            shown = json.dumps(fault["input"], default=str)
            rule = re.sub(" or instance of .*", "", fault["msg"])
            rule = (rule[:1].lower() + rule[1:]).replace("tuple", "list")
            lines.append(f"{where}: {path}: {rule} (given: {shown if len(shown) <= 60 else shown[:57] + '...'})")
    return ConfigError("\n".join(dict.fromkeys(lines)))


def _says_more(path: str, other: str, fault: Any) -> bool:
    """Whether a fault at a path `other` says more than that what stands at `path` is of another type."""
    return other.startswith(f"{path}.") or (other == path and not fault["type"].endswith("_type"))


def _elsewhere(path: str) -> str:
    """Where a key stands, if it is one of another section."""
    section, _, key = path.rpartition(".")
    of_rankers = {name for ranker in SECTIONS.values() for name in ranker.model_fields}
    places = {"": ("", RunConfig.model_fields), "data": ("data.", Data.model_fields), "rankers": ("rankers.NAME.", of_rankers)}
    places.pop(section.split(".")[0], None)
    return next((f"; did you mean {before}{key}?" for before, keys in places.values() if key in keys), "")


def _not_a_kind(found: Mapping[str, Any], name: str, rankers: Sequence[str]) -> str:
    """What is wrong with the kind of a ranker of this name, beside others."""
    known = str(found.get("expected_tags", ", ".join(SECTIONS))).replace("'", "")
    if "tag" not in found:
        meant = difflib.get_close_matches(name, [other for other in rankers if other != name], n=1)
        return f"{f'did you mean {meant[0]}? ' if meant else ''}a section names its kind: {known}"
    likely = difflib.get_close_matches(found["tag"], known.split(", "), n=1)
    return f"unknown kind {found['tag']!r}; {f'did you mean {likely[0]}? ' if likely else ''}choose from: {known}"


def parse(written: Mapping[str, Any], where: str = "configuration") -> RunConfig:
    """A `RunConfig` of plain values.

    Raises:
        ConfigError: one line a fault, each with the key, the value and the rule.
    """
    try:
        return RunConfig.model_validate(written)
    except ValidationError as error:
        rankers = written.get("rankers")
        raise _explain(error, where, tuple(map(str, rankers)) if isinstance(rankers, Mapping) else ()) from None


def parse_click_log(path: str | Path, model: str | None, overrides: Iterable[str], of_label: Sequence[str] = ()) -> ClickLog:
    """The click log `path`, with the label of a click model where one is named; `overrides` are ``key=value``, with or without ``data.clicks.`` in front:
    of the columns, and of what a label is made of those that the caller reads, `of_label`.

    Raises:
        ConfigError: as `parse`, and for another key.
    """
    written: dict[str, Any] = {"data": {"clicks": {"log": str(path), "model": model}}}
    own = [said.removeprefix("data.").removeprefix("clicks.") for said in overrides]
    override_all(written, (f"data.clicks.{said}" for said in own))
    for said in own:
        key = said.partition("=")[0].split(".")[0]
        if key in (*ClickLabel.model_fields, "log", "more") and key not in of_label:
            reads = ", ".join(
                (*(name for name in ClickLog.model_fields if name not in (*ClickLabel.model_fields, "log", "more")), *of_label)
            )
            raise ConfigError(f"--set {said}: nothing here reads {key}; this reads {reads}")
    try:
        return ClickLog.model_validate(written["data"]["clicks"])
    except ValidationError as error:
        raise _explain(error, "clicks") from None


def read(path: str | Path, overrides: Iterable[str] = (), data_of: str | Path | None = None) -> RunConfig:
    """Reads a YAML file; `overrides` are ``key.path=value`` with values in YAML. Paths are relative to the working directory.
    Data and conventions are those of the configuration `data_of`, where one is given.

    Raises:
        ConfigError: for a file that is missing or not YAML, and for whatever `parse` refuses.
    """
    return _run(_written(path), path, overrides, data_of)


def read_any(path: str | Path, overrides: Iterable[str] = (), data_of: str | Path | None = None) -> RunConfig | StudyConfig:
    """The study in a YAML file that names ``datasets``, the run in another. The file is read once, for it may be a pipe.

    Raises:
        ConfigError: as `read`; of a study, for a data set that is no mapping of ``data``, ``conventions`` and ``rankers``, and for an
            unknown baseline.
    """
    written = _written(path)
    is_study = data_of is None and "datasets" in written
    return _study(written, path, overrides) if is_study else _run(written, path, overrides, data_of)


_OF_DATA = ("data", "conventions", "datasets", "baselines", "repeat")
"""What a configuration says of its data, or a study of the data sets that it is about."""


def _run(written: dict[str, Any], path: str | Path, overrides: Iterable[str], data_of: str | Path | None) -> RunConfig:
    if data_of is not None:
        other = _written(data_of)
        if "data" not in other:
            several = "; it is a study, and a run has one data set" if "datasets" in other else ""
            raise ConfigError(f"--data {data_of}: it has no section data{several}")
        written |= {"name": f"{written.get('name', 'run')}-{other.get('name', Path(data_of).stem)}"}
        written = {key: value for key, value in written.items() if key not in _OF_DATA}
        written |= {section: other[section] for section in ("data", "conventions") if section in other}
    override_all(written, overrides)
    return parse(written, str(path))


def _study(written: dict[str, Any], path: str | Path, overrides: Iterable[str]) -> StudyConfig:
    given = list(overrides)
    override_all(written, given)
    datasets, baselines, name = (
        written.pop("datasets"),
        several(written.pop("baselines", None) or []),
        str(written.pop("name", "study")),
    )
    repeat = _repeat(written.pop("repeat", {}), path)
    if not isinstance(datasets, dict) or not datasets:
        raise ConfigError(f"{path}: datasets: name each data set, with its data and conventions")
    if MICRO in datasets:
        raise ConfigError(f"{path}: datasets.{MICRO}: that is the name of the column over all data sets; choose another name")
    runs: dict[str, RunConfig] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for label, about in datasets.items():
        strange = sorted(set(about) - {"data", "conventions", "rankers"}, key=str) if isinstance(about, dict) else [str(about)]
        if strange:
            raise ConfigError(f"{path}: datasets.{label}: a data set has data, conventions and rankers, not {strange[0]!r}")
        whole = deepcopy({**written, **about})
        override_all(whole, _set_in(str(label), about, given))
        own = {f"{label}{said}": config for said, config in _repetitions(whole, repeat)}
        if twice := own.keys() & runs.keys():
            raise ConfigError(
                f"{path}: datasets.{label}: its run {min(twice)} has the name of another data set's; rename the data set"
            )
        runs |= {run: parse({**config, "name": f"{name}-{run}"}, f"{path}: datasets.{label}") for run, config in own.items()}
        columns[str(label)] = tuple(own)
    _require_set(datasets, given)
    if repeat and not any(_section_at({**written, **about}, repeat[0]) is not None for about in datasets.values()):
        raise ConfigError(f"{path}: repeat: no data set has the section of {repeat[0]}")
    rankers = list(dict.fromkeys(ranker for config in runs.values() for ranker in config.rankers))
    for baseline in baselines:
        if baseline not in rankers:
            raise ConfigError(f"{path}: baselines: no ranker {baseline!r}; choose from: {', '.join(rankers)}")
    return StudyConfig(name, runs, columns, tuple(baselines))


def _set_in(label: str, about: Mapping[str, Any], overrides: Iterable[str]) -> Iterator[str]:
    """What is set, in its order, of sections that a data set has for itself: for all data sets, or for this one; of rankers those that it has."""
    own = f"datasets.{label}."
    for said in overrides:
        if said.startswith(own):
            yield said.removeprefix(own)
            continue
        section, *below = _place_of(said.partition("=")[0])
        names = [".".join(below[:n]) for n in range(1, len(below) + 1)]
        if section in about and (section != "rankers" or any(name in about[section] for name in names)):
            yield said


def _require_set(datasets: Mapping[str, Any], overrides: Iterable[str]) -> None:
    """Raises ConfigError for what is set of rankers, where every data set has rankers of its own and this is of none of them."""
    for said in overrides:
        is_of_rankers = _place_of(said.partition("=")[0])[0] == "rankers" and all("rankers" in about for about in datasets.values())
        if is_of_rankers and not any([*_set_in(str(label), about, [said])] for label, about in datasets.items()):
            named = [about["rankers"] for about in datasets.values() if isinstance(about["rankers"], Mapping)]
            known = ", ".join(dict.fromkeys(str(name) for rankers in named for name in rankers))
            way = f"name one of them: {known}" if known else "write them down in place of auto"
            raise ConfigError(f"--set {said}: every data set has rankers of its own; {way}")


Repeat = tuple[str, list[Any]]
"""A dotted path and its values."""


def _repeat(written: Any, path: str | Path) -> Repeat | None:
    """What a study repeats; None where that is nothing."""
    if not written:
        return None
    if (
        not isinstance(written, dict)
        or len(written) != 1
        or not all(isinstance(values, list) and values for values in written.values())
    ):
        raise ConfigError(f"{path}: repeat: one key with the values that it takes, such as {{data.generate.seed: [1, 2, 3]}}")
    ((key, values),) = written.items()
    if len({str(value) for value in values}) < len(values):
        raise ConfigError(f"{path}: repeat.{key}: a value occurs twice")
    return key, values


def _repetitions(written: dict[str, Any], repeat: Repeat | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """A data set's configuration with each value of what is repeated, and what ends the name of its run; as it is where it has no
    section of what is repeated."""
    if repeat is None or _section_at(written, repeat[0]) is None:
        yield "", written
        return
    for value in repeat[1]:
        changed = dict(written)
        at, last = _container(changed, repeat[0].split("."), "repeat")
        at[last] = value
        yield f"-{value}", changed


def _section_at(written: dict[str, Any], key: str) -> dict[str, Any] | None:
    """The section that a dotted path's last part stands in; None where it is not written."""
    at: Any = written
    for part in key.split(".")[:-1]:
        at = at.get(part) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else None


_HINT = "; a configuration is YAML, and data are named in it (data.files)"
_MOST_BYTES = 4_000_000
"""Of a configuration; to read so much YAML takes some seconds."""


def _written(path: str | Path) -> dict[str, Any]:
    try:
        if (size := Path(path).stat().st_size) > _MOST_BYTES:
            raise ConfigError(f"{path}: {size:,} bytes, and a configuration has {_MOST_BYTES:,} at most{_HINT}")
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror.lower() if error.strerror else error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}, byte {error.start + 1}: not UTF-8{_HINT}") from None
    try:
        written = from_yaml(text, str(path)) or {}
    except ConfigError as error:
        raise ConfigError(f"{error}{'' if Path(path).suffix in ('.yaml', '.yml') else _HINT}") from None
    if not isinstance(written, dict):
        raise ConfigError(f"{path}: a configuration is a mapping of keys, not {type(written).__name__}{_HINT}")
    for key in EVIDENCE:
        if key in written and written[key] is None and re.search(rf"^{key}\s*:\s*(#.*)?$", text, re.MULTILINE):
            raise ConfigError(f"{path}: {_asks_for_nothing(key)}")
    return written


def from_yaml(text: str, where: str) -> Any:
    """The value that a text in YAML 1.2 holds: ``on`` and ``no`` are words, ``1e-3`` is a number.

    Raises:
        ConfigError: with the line, for what is not YAML, a key that stands twice, and aliases that unfold to more than `_LARGEST` values.
    """
    return _loaded(YAML(typ="safe", pure=True).load, YAMLError, text, where)


def from_stored(text: str, where: str) -> Any:
    """The value that the ``config.yaml`` of a finished run holds, read by what wrote it: to YAML 1.1 ``0018`` is text, and runs of earlier versions
    did not quote it.

    Raises:
        ConfigError: as `from_yaml`, but for a key that stands twice.
    """
    import yaml

    return _loaded(yaml.safe_load, yaml.YAMLError, text, where)


def _loaded(load: Callable[[str], Any], fault: type[Exception], text: str, where: str) -> Any:
    try:
        value = load(text)
    except (fault, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        why = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise ConfigError(f"{where}{f', line {mark.line + 1}' if mark else ''}: not YAML: {why}") from None
    except RecursionError:
        raise ConfigError(f"{where}: not YAML: it is nested too deeply") from None
    if sum(1 for _ in islice(_values(value), _LARGEST + 1)) > _LARGEST:
        raise ConfigError(f"{where}: its aliases unfold to more than {_LARGEST:,} values")
    return value


_LARGEST = 100_000


def _values(value: Any) -> Iterator[Any]:
    """A value and all that it holds, once for every place where it stands."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []


def _asks_for_nothing(key: str) -> str:
    return f"{key}: is empty; write {key}: {{}} (or its keys) to enable it, {key}: null to disable it"


def _place_of(key: str) -> list[str]:
    """The keys, one below the other, under which a dotted one stands."""
    first, *more = key.split(".")
    if first == "sweep" and more:
        return ["sweep", ".".join(more)]
    return ["data", first, *more] if first in Data.model_fields and first not in RunConfig.model_fields else [first, *more]


def _container(written: dict[str, Any], keys: Sequence[str], where: str) -> tuple[Any, Any]:
    """The section or list that what stands under `keys` is in, and its key or place there. Sections that are not there are made; the others on the way
    are copied, since one that an alias of YAML repeats stands in several places, and only this one is meant.

    A name with dots that is there (``sweep: {objective.1.weight: …}``, a ranker ``v1.2``) is found, and all below ``sweep`` is one name.

    Raises:
        ConfigError: naming `where`, for a key below what is no section, and a place that a list has not.
    """
    at: Any = written
    rest, name = list(keys), ""
    while True:
        there = (n for n in range(len(rest), 0, -1) if isinstance(at, dict) and ".".join(rest[:n]) in at)
        n = next(there, len(rest) if name == "sweep" else 1)
        name, rest = ".".join(rest[:n]), rest[n:]
        if isinstance(at, list) and not (name.isdecimal() and int(name) < len(at)):
            raise ConfigError(f"{where}: {name!r} is not a place of a list of {len(at)}, counted from 0")
        place: Any = int(name) if isinstance(at, list) else name
        if not rest:
            return at, place
        below = at.get(place, {}) if isinstance(at, dict) else at[place]
        if not isinstance(below, dict | list):
            raise ConfigError(f"{where}: {name!r} is not a section")
        at[place] = at = copy(below)


def override_all(written: dict[str, Any], overrides: Iterable[str]) -> None:
    """Sets ``key.path=value`` (values in YAML) in a written configuration; keys below ``sweep`` are paths themselves, numbers are places of a list
    (``rankers.graded.objective.1.weight``), and ``data.`` may be left out in front of a key that only the section of the data has."""
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"--set {override}: write it as key.path=value")
        if key in EVIDENCE and not value.strip():
            raise ConfigError(f"--set {override}: {_asks_for_nothing(key)}")
        at, last = _container(written, _place_of(key), f"--set {override}")
        try:
            at[last] = from_yaml(value, "--set")
        except ConfigError:
            raise ConfigError(f"--set {override}: {value!r} is not YAML") from None


def override_data(written: dict[str, Any], overrides: Sequence[str]) -> None:
    """`override_all` for what reads data and trains nothing.

    Raises:
        ConfigError: for a key of a configuration that is neither of its data nor of its conventions: nothing would read it.
    """
    for said in overrides:
        section = _place_of(said.partition("=")[0])[0]
        if section in RunConfig.model_fields and section not in ("data", "conventions"):
            raise ConfigError(f"--set {said}: nothing here reads {section}; this reads the keys of data and of conventions")
    override_all(written, overrides)
