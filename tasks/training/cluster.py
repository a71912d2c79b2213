"""LambdaMART over Dask workers, each with a part of the queries: one model larger than a machine.

A part is a data set of the store, opened by the worker that holds it; its rows never leave that worker. `ltr.trees.shards` says what is
asked of parts and why the model is, byte for byte, that of one machine; here is who carries the questions: one actor a part, and
Dask's scheduler, transport and knowledge of who is alive. Carried by the scheduler, a question takes a little longer than by a client
with ``direct_to_workers``.
"""

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import numba
import numpy as np
from distributed import Client, Future, KilledWorker, worker_client
from numpy.typing import NDArray

import ltr
from ltr.data.queries import select
from ltr.rankers.base import Tick
from ltr.trees.lambdamart import LambdaMART
from ltr.trees.shards import Ask, Shard, ShardLost
from tasks.records import number_of
from tasks.store import state
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.state import Noted, remember, remembered

_PATIENCE = 5.0
"""Seconds after which a part that does not answer is looked after."""


@dataclass(frozen=True)
class TreeCosts:
    """What each tree of a training cost; the first one's is that of the bins too.

    Attributes:
        moved: ``int64 [trees]``, bytes of the numbers in questions and answers of all parts, without the transport's own.
        questions: ``int64 [trees]``, questions; each goes to all parts.
        seconds: ``float64 [trees]``.
    """

    moved: NDArray[np.int64]
    questions: NDArray[np.int64]
    seconds: NDArray[np.float64]

    @property
    def remark(self) -> str:
        """The medians in words."""
        moved, questions, seconds = (float(np.median(values)) for values in (self.moved, self.questions, self.seconds))
        return f"a tree cost {moved / 1e6:.2f} MB, {questions:.0f} questions and {seconds:.3f} s (medians)"


@dataclass(frozen=True)
class ShardOnWorker:
    """A part on its worker, which answers with the worker's threads."""

    part: Shard
    threads: int

    def answer(self, question: str, *arguments: Any) -> Any:
        """The shard's answer to one of `ltr.trees.shards.ANSWERS`."""
        numba.set_num_threads(min(self.threads, numba.config.NUMBA_NUM_THREADS))
        return self.part.answer(question, *arguments)


def cut(name: str, n_parts: int) -> list[str]:
    """A stored data set as `n_parts` stored ones: as many queries in each; their names. No more than one part is in memory at a time.

    Raises:
        ValueError: for fewer queries than parts.
    """
    recipe = {"cut": 1, "of": name, "parts": n_parts}
    if noted := remembered(recipe):
        return list(noted.data)
    queries = open_queries(name)
    if n_parts > queries.n_queries:
        raise ValueError(f"parts: {n_parts} of {number_of(queries.n_queries, 'training query')}")
    parts = [keep_queries(select(queries, chosen)) for chosen in np.array_split(np.arange(queries.n_queries), n_parts)]
    remember(recipe, Noted(tuple(parts)))
    return parts


def fit_in_shards(ranker: ltr.Ranker, train: str, valid: str, n_parts: int, tick: Tick) -> LambdaMART:
    """`fit_on` from within a task of a Dask worker, on a stored data set cut here; where a part's worker dies, the training goes on from
    the trees grown so far on those that are left.

    Raises:
        ShardLost: where parts are lost twice without a tree between.
    """
    if not isinstance(ranker, LambdaMART):
        raise TypeError(f"{ranker.kind} cannot be trained on shards")
    parts = cut(train, n_parts)
    start: LambdaMART | None = None
    grown, stuck = 0, False
    with worker_client() as client:
        while True:
            try:
                return fit_on(client, parts, ranker, valid, start, tick)[0]
            except ShardLost as lost:
                progress = lost.so_far is not None and lost.so_far.trees.n_trees > grown
                if stuck and not progress:
                    raise
                stuck = not progress
                if progress:
                    start, grown = lost.so_far, lost.so_far.trees.n_trees


def fit_on(
    client: Client,
    parts: Sequence[str],
    model: LambdaMART,
    valid: str | None = None,
    start: LambdaMART | None = None,
    tick: Tick | None = None,
) -> tuple[LambdaMART, TreeCosts]:
    """`LambdaMART.fit` on the queries of all parts together: the same digest, whatever the parts and the workers.

    Args:
        client: of a running cluster; the parts are dealt to its workers in turn, and to others where one has just died.
        parts: names of stored data sets without common queries, which the workers find in the store of this working directory.
        valid: name of the stored validation queries, which are opened here.
        start: as in `LambdaMART.fit`.
        tick: called after every tree.

    Returns:
        The fitted model, whose last remark says what a tree cost, and the cost of every tree.

    Raises:
        ShardLost: naming the part whose worker is gone; its `so_far` may be the `start` of another training.
        ValueError: as `LambdaMART.fit_shards`, and for a cluster without workers.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise ValueError("the cluster has no workers")
    opened = partial(
        client.submit, _open, str(state.STATE.absolute().parent), model, actor=True, pure=False, allow_other_workers=True
    )
    held = [
        (part, opened(part, workers[place]["nthreads"], workers=[place]))
        for part, place in zip(parts, cycle(sorted(workers)), strict=False)
    ]
    asked: list[int] = []
    marks = [(0, 0, time.perf_counter())]

    def after_tree() -> None:
        marks.append((sum(asked), len(asked), time.perf_counter()))
        if tick is not None:
            tick()

    try:
        ask = _counting_bytes(_ask_actors(held), len(held), asked)
        fitted = model.fit_shards(ask, open_queries(valid) if valid else None, after_tree, start)
    finally:
        client.cancel([future for _, future in held], force=True)
    moved, questions, seconds = (np.diff(column) for column in zip(*marks, strict=True))
    cost = TreeCosts(moved, questions, seconds)
    return (replace(fitted, remarks=(*fitted.remarks, cost.remark)) if len(moved) else fitted), cost


def _open(home: str, model: LambdaMART, part: str, threads: int) -> ShardOnWorker:
    state.use_folder(home)
    return ShardOnWorker(Shard(model, open_queries(part)), threads)


def _ask_actors(held: Sequence[tuple[str, Future]]) -> Ask:
    """Questions to actors: all parts are at work before the first answer is waited for."""
    actors = [(part, future, _actor_of(part, future)) for part, future in held]

    def ask(question: str, *arguments: Any) -> list[Any]:
        answers = [(part, future, _question_to(part, actor, question, arguments)) for part, future, actor in actors]
        return [_answer_of(*answer) for answer in answers]

    return ask


def _actor_of(part: str, future: Future) -> Any:
    try:
        return future.result()
    except (KilledWorker, CancelledError) as error:
        raise _lost(part) from error


def _question_to(part: str, actor: Any, question: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return actor.answer(question, *arguments)
    except RuntimeError as error:
        raise _lost(part) from error


def _answer_of(part: str, future: Future, answer: Any) -> Any:
    """Waits as long as the actor is there: of one that dies while it is asked, Dask may never give an answer."""
    while True:
        try:
            return answer.result(timeout=_PATIENCE)
        except TimeoutError:
            if future.status != "finished":
                raise _lost(part) from None
        except OSError as error:
            raise _lost(part) from error


def _lost(part: str) -> ShardLost:
    return ShardLost(f"part {part!r} is lost: its worker does not answer any more")


def _counting_bytes(ask: Ask, n_parts: int, sizes: list[int]) -> Ask:
    """`ask`, with the bytes of every question and its answers noted."""

    def counting(question: str, *arguments: Any) -> list[Any]:
        answers = ask(question, *arguments)
        sizes.append(n_parts * _size(arguments) + _size(answers))
        return answers

    return counting


def _size(value: Any) -> int:
    """Bytes of the numbers in arrays, tuples and lists of them."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(_size, value)) if isinstance(value, tuple | list) else 8
