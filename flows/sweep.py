"""A grid of cells over one data set's folds: what there is to train, training it, and choosing on validation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import ltr
from flows.cells import AS_WRITTEN, cells_of, say_what_goes_on, train_all
from flows.search import search, told
from tasks.config.run_config import RunConfig
from tasks.evidence.protocol import Evidence, Gathering, asked_for, values_path
from tasks.evidence.significance import Standings, standings
from tasks.records import Budget, Cell, CellResult, ExpectationError, Failure, Fold, Progress, Searched, Trained
from tasks.store.cells import CellFolder, cell_key
from tasks.store.values import read_values, values_of
from tasks.tracking.description import describe_fold
from tasks.tracking.tracker import Tracker
from tasks.training.search import surely_better
from tasks.training.stack import stack


@dataclass(frozen=True)
class Swept:
    """What a sweep gave.

    Attributes:
        config: of the run, with the rankers that could be trained on every fold and the evidence that is left of them.
        cells: that were trained, in the order of the grid.
        failures: cells that could not be trained, and what went with them.
        searches: of the rankers whose parameters are drawn; `budget`: how far they got in their time.
    """

    config: RunConfig
    cells: tuple[Trained, ...]
    failures: tuple[Failure, ...]
    searches: tuple[Searched, ...] = ()
    budget: Budget | None = None


def sweep(config: RunConfig, folds: tuple[Fold, ...], tracker: Tracker, fresh: bool, progress: Progress) -> Swept:
    """Trains all cells and notes each in MLflow; results in the order of the grid. Rankers with expected numbers come first, and
    nothing else is trained where those do not come out; rankers on the scores of others come last. A cell that cannot be trained
    takes no other cell with it.

    Raises:
        ExpectationError: where an expected number does not come out.
        Exception: of the first cell, where no ranker could be trained.
    """
    training = _Training(config, tracker, fresh, progress)
    written = _train_written(config, folds, training)
    drawn = search(config, folds, tracker, fresh, progress)
    alone = (*written, *drawn.cells)
    left, lost = config.without(_incomplete(config.alone, alone, len(folds)))
    done = (*alone, *_train_on_scores(left, folds, alone, training))
    left, more = left.without(_incomplete(list(left.rankers), done, len(folds)))
    failures = (*(Failure(cell.label, str(error)) for cell, error in training.errors), *drawn.failures, *lost, *more)
    if not left.rankers:
        raise training.errors[0][1] if training.errors else ValueError("\n".join(map(str, drawn.failures)))
    return Swept(left, tuple(one for one in done if one.ranker in left.rankers), failures, drawn.searches, drawn.budget)


@dataclass
class _Training:
    """Trains cells; notes each in MLflow and says it as soon as it is done.

    Attributes:
        errors: cells that could not be trained, and why.
        below: of rankers on the scores of others, the cells that these are of, by ranker and fold.
    """

    config: RunConfig
    tracker: Tracker
    fresh: bool
    progress: Progress
    errors: list[tuple[Cell, Exception]] = field(default_factory=list)
    below: dict[tuple[str, int], list[Trained]] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)

    def begin(self, title: str, cells: Sequence[Cell]) -> None:
        """Says what is to be trained, of which some may be there."""
        if cells:
            self.progress.begin(title, len(cells))
        self.there |= set() if self.fresh else {key for cell in cells if CellFolder.of(key := cell_key(cell)).is_finished}
        if not self.fresh:
            say_what_goes_on(self.config, cells, self.there, self.progress)

    def train(self, cells: Sequence[Cell], all_of_them: bool = False, parts: int | None = None) -> tuple[Trained, ...]:
        """Those that could be trained, in their order; the error of one that cannot is raised where it takes `all_of_them`."""
        results: dict[int, CellResult] = {}

        def finished(cell: Cell, result: CellResult) -> None:
            results[id(cell)] = result
            self.note(cell, result)
            self.progress.done(told(cell, result, self.config.select_of(cell.ranker), result.key in self.there))

        def failed(cell: Cell, error: Exception) -> None:
            self.errors.append((cell, error))
            self.tracker.failed_cell(cell, cell_key(cell), str(error))
            self.progress.done(f"{cell.label}: {error}")

        config = self.config if parts is None else self.config.model_copy(update={"parts": parts})
        train_all(config, cells, self.fresh, finished, None if all_of_them else failed)
        return tuple(Trained(cell, results[id(cell)]) for cell in cells if id(cell) in results)

    def note(self, cell: Cell, result: CellResult) -> None:
        """In MLflow."""
        below = self.below.get((cell.ranker, cell.fold), [])
        self.tracker.cell(cell, result, list(describe_fold(cell.data)), below=[one.result.key for one in below])


def _train_written(config: RunConfig, folds: tuple[Fold, ...], training: _Training) -> tuple[Trained, ...]:
    """Cells of the rankers whose parameters are written down, those with expected numbers first."""
    cells = cells_of(config, [name for name in config.alone if name not in config.searched], folds)
    training.begin("training", cells)
    expected = config.expect.values if config.expect else {}
    first = training.train([cell for cell in cells if cell.ranker in expected], all_of_them=True)
    if first and not any(type(one).choose is not Evidence.choose for one in asked_for(config)):
        expect_numbers(config, _compared(first, config))
    trained = (*first, *training.train([cell for cell in cells if cell.ranker not in expected]))
    found = {id(one.cell): one for one in trained}
    return tuple(found[id(cell)] for cell in cells if id(cell) in found)


def _train_on_scores(
    config: RunConfig, folds: tuple[Fold, ...], alone: Sequence[Trained], training: _Training
) -> tuple[Trained, ...]:
    """Cells of the rankers that learn from scores of others, on the cells that are chosen of these."""
    on_scores = [name for name in config.rankers if name not in config.alone]
    if not on_scores:
        return ()
    own = tuple(one for one in alone if one.ranker in config.alone)
    taken = select(Gathering(config, folds, own, (), training.tracker, training.progress))
    training.below |= {(name, fold): _bases(taken, name, fold) for name in on_scores for fold in range(len(folds))}
    for one in {id(one): one for below in training.below.values() for one in below}.values():
        training.note(one.cell, one.result)
    cells = [cell for name in on_scores for cell in _stacked_cells(config, name, folds, training.below)]
    training.begin("training on scores", cells)
    return training.train(cells, parts=1)


def _incomplete(rankers: Sequence[str], trained: Sequence[Trained], n_folds: int) -> list[str]:
    """Rankers without a trained cell on some fold."""
    folds = {name: {one.fold for one in trained if one.ranker == name} for name in rankers}
    return [name for name in rankers if len(folds[name]) < n_folds]


def _bases(taken: Gathering, ranker: str, fold: int) -> list[Trained]:
    """The cells whose scores a ranker learns from on a fold, in the order of its features: the chosen ones, or the best so many on validation
    queries, each once. Of a search that its time ended with fewer cells, or of which fewer could be trained, the best ones stand in for those
    that are not there."""
    section, found = taken.config.rankers[ranker], []
    for base in section.on:
        among = taken.chosen if section.best == 1 else taken.cells
        own = ranked([one for one in among if (one.ranker, one.fold) == (base, fold)], taken.config)
        cells = [*{one.result.key: one for one in own}.values()]
        found += [cells[place % len(cells)] for place in range(section.best)]
    return found


def _stacked_cells(
    config: RunConfig, ranker: str, folds: tuple[Fold, ...], bases: Mapping[tuple[str, int], Sequence[Trained]]
) -> list[Cell]:
    """The cells of a ranker on the scores of others, which are known by ranker and fold."""
    below = [
        {name: one.result.key for name, one in zip(config.rankers[ranker].inputs, bases[ranker, k], strict=True)}
        for k in range(len(folds))
    ]
    scored = tuple(stack(fold, keys, config.seed) for fold, keys in zip(folds, below, strict=True))
    return cells_of(config, [ranker], scored)


def select(gathering: Gathering) -> Gathering:
    """Of each ranker and fold the best cell on validation queries, or the one that evidence takes in its place."""
    chosen: tuple[Trained, ...] = tuple(choose(gathering.cells, gathering.config))
    for evidence in asked_for(gathering.config):
        chosen = evidence.choose(replace(gathering, chosen=chosen))
    return replace(gathering, chosen=chosen)


def choose(trained: Iterable[Trained], config: RunConfig) -> Iterator[Trained]:
    """For each ranker and fold the cell with the highest validation value, the first in the grid where several tie; of a search the ranker as
    written, unless another is surely better.

    Raises:
        ValueError: where the measure is undefined on every validation query.
    """
    cells: dict[str, dict[int, list[Trained]]] = {}
    for one in trained:
        cells.setdefault(one.ranker, {}).setdefault(one.fold, []).append(one)
    for of_ranker in cells.values():  # fold by fold, whichever of its cells were trained
        yield from (_taken(of_ranker[fold], config) for fold in sorted(of_ranker))


def _taken(own: Sequence[Trained], config: RunConfig) -> Trained:
    """One of a ranker's cells on a fold."""
    best, search = ranked(own, config)[0], config.rankers[own[0].ranker].search
    written = next((one for one in own if AS_WRITTEN in one.cell.label), best)
    if search is None or not search.standard_errors or best is written:
        return best
    measure = ltr.Measure.of(config.select_of(best.ranker)).key
    ours, theirs = (values_of(read_values(Path(values_path(one)), "valid"), measure) for one in (best, written))
    return best if surely_better(ours, theirs, search.standard_errors) else written


def ranked(trained: Sequence[Trained], config: RunConfig) -> list[Trained]:
    """Cells from the highest validation value to the lowest, as they stand where several tie.

    Raises:
        ValueError: where the measure is undefined on every validation query.
    """

    def value(one: Trained) -> float:
        select = config.select_of(one.ranker)
        found = one.result.metrics.get(f"valid_{select}")
        if found is None:
            raise ValueError(f"{select} is undefined on every validation query")
        return -found

    return sorted(trained, key=value)


def _compared(trained: Sequence[Trained], config: RunConfig) -> Standings:
    paths: dict[str, list[str]] = {}
    for one in choose(trained, config):
        paths.setdefault(one.ranker, []).append(values_path(one))
    return standings(paths, list(dict.fromkeys(ltr.Measure.of(measure).key for measure in config.measures)))


def expect_numbers(config: RunConfig, table: Standings) -> None:
    """Checks the means of those of these rankers that the configuration expects numbers of.

    Raises:
        ExpectationError: where one is not what is expected.
    """
    asked = {} if config.expect is None else {name: own for name, own in config.expect.values.items() if name in table.rows}
    wrong = [fault for ranker, values in asked.items() for fault in _faults(config, table, ranker, values)]
    if wrong:
        raise ExpectationError("\n".join(wrong))


def _faults(config: RunConfig, table: Standings, ranker: str, values: dict[str, float]) -> Iterator[str]:
    tolerance = config.expect.tolerance if config.expect else 0.0
    for metric, value in values.items():
        cell = table.rows[ranker].cells.get(metric.removeprefix("test_"))
        if cell is None or cell.mean is None or not abs(cell.mean - value) <= tolerance + 1e-12:
            came = "was not measured" if cell is None else "is undefined" if cell.mean is None else f"is {cell.mean:.5f}"
            yield f"{ranker}: {metric} {came}, expected {value:g} ± {tolerance:g}"
