"""LambdaMART over Dask workers, each with a part of the queries: one model larger than a machine.

A part is a data set of the store, opened by the worker that holds it; its rows never leave that worker. `ltr.trees.shards` says what is
asked of parts and why the model is, byte for byte, that of one machine; here is who carries the questions: one actor a part, and
Dask's scheduler, transport and knowledge of who is alive. A tree is one question; the sums that it is grown from go from part to part
(`tasks.training.peers`).
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

import numba
import numpy as np
from distributed import Client, Future, KilledWorker, get_worker, worker_client
from distributed.comm import get_address_host
from numpy.typing import NDArray

import ltr
from ltr.data.queries import select
from ltr.kernels.machines import Machines
from ltr.rankers.base import Tick
from ltr.trees.lambdamart import LambdaMART
from ltr.trees.shards import Shard, ShardLost
from tasks.records import number_of
from tasks.store import state
from tasks.store.datasets import keep_queries, open_queries
from tasks.store.state import Noted, remember, remembered
from tasks.training.peers import TOKEN_BYTES, Peers

_PATIENCE = 5.0
"""Seconds after which a part that does not answer is looked after."""


@dataclass(frozen=True)
class TreeCosts:
    """What each tree of a training cost; the first one's is that of the bins too.

    Attributes:
        moved: ``int64 [trees]``, bytes of the numbers in questions, answers and exchanges of all parts, without the transport's own.
        exchanges: ``int64 [trees]``, how often parts waited for each other; besides, a tree is a question or two to all of them.
        seconds: ``float64 [trees]``.
    """

    moved: NDArray[np.int64]
    exchanges: NDArray[np.int64]
    seconds: NDArray[np.float64]

    @property
    def remark(self) -> str:
        """The medians in words."""
        moved, exchanges, seconds = (float(np.median(values)) for values in (self.moved, self.exchanges, self.seconds))
        return f"each tree cost {moved / 1e6:.2f} MB, {exchanges:.0f} exchanges and {seconds:.3f} s (medians)"


class ShardOnWorker:
    """A part on its worker, which answers with the worker's threads. Parts wait for each other, so each has a thread of its own beside that
    of Dask's actors, also where a worker holds several."""

    def __init__(self, part: Shard, threads: int, host: str) -> None:
        self.part, self.peers = part, Peers(host)
        self.asked = ThreadPoolExecutor(
            1, initializer=numba.set_num_threads, initargs=(min(threads, numba.config.NUMBA_NUM_THREADS),)
        )

    async def answer(self, question: str, *arguments: Any) -> tuple[Any, int, int]:
        """The shard's answer to one of `ltr.trees.shards.ANSWERS`, bytes that it has sent to others and how often, since it was opened."""
        return await asyncio.get_running_loop().run_in_executor(self.asked, self._answer, question, arguments)

    async def address(self) -> tuple[str, int]:
        """Where other parts reach this one."""
        return self.peers.address

    async def meet(self, place: int, addresses: Sequence[tuple[str, int]], token: bytes) -> None:
        """Connects it with the parts at these addresses, itself among them at `place`."""
        self.part.machines = Machines(place, len(addresses), self.peers.exchange)
        await asyncio.get_running_loop().run_in_executor(self.asked, self.peers.meet, place, addresses, token)

    def _answer(self, question: str, arguments: tuple[Any, ...]) -> tuple[Any, int, int]:
        try:
            return self.part.answer(question, *arguments), self.peers.sent_bytes, self.peers.exchanges
        except BaseException:
            self.peers.close()
            raise


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


@dataclass(frozen=True)
class Begun:
    """What there is of a training.

    Attributes:
        model: of the trees so far; of ``unbiased: auto`` those of the way in which it was being trained.
        finished: of ``unbiased: auto`` the ways that are trained, by name; more are added as they are.
        looks: propensities of ranks that were estimated, by how; more are added as well.
    """

    model: LambdaMART | None = None
    finished: dict[str, LambdaMART] = field(default_factory=dict)
    looks: dict[ltr.Unbiased, NDArray[np.float64]] = field(default_factory=dict)

    def moved(self, model: LambdaMART | None) -> bool:
        """Whether this is more than there was."""
        if model is None or self.model is None or model.unbiased != self.model.unbiased:
            return model is not None and model.ensemble.n_trees > 0
        return model.ensemble.n_trees > self.model.ensemble.n_trees


def fit_in_shards(ranker: ltr.Ranker, train: str, valid: str, n_parts: int, tick: Tick) -> LambdaMART:
    """`fit_on` from within a task of a Dask worker, on a stored data set cut here; where a part's worker dies, the training goes on from
    the trees grown so far on those that are left.

    Raises:
        ShardLost: where parts are lost twice without a tree between.
    """
    if not isinstance(ranker, LambdaMART):
        raise TypeError(f"{ranker.kind} cannot be trained on shards")
    parts = cut(train, n_parts)
    begun, stuck = Begun(), False
    with worker_client() as client:
        while True:
            try:
                return fit_on(client, parts, ranker, valid, begun, tick)[0]
            except ShardLost as lost:
                progress = begun.moved(lost.so_far)
                if stuck and not progress:
                    raise
                stuck = not progress
                if progress:
                    begun = replace(begun, model=lost.so_far)


def fit_on(
    client: Client,
    parts: Sequence[str],
    model: LambdaMART,
    valid: str | None = None,
    begun: Begun | None = None,
    tick: Tick | None = None,
) -> tuple[LambdaMART, TreeCosts]:
    """`LambdaMART.fit` on the queries of all parts together: the same digest, whatever the parts and the workers.

    Args:
        client: of a running cluster; the parts are dealt to its workers in turn, and to others where one has just died.
        parts: names of stored data sets without common queries, which the workers find in the store of this working directory.
        valid: name of the stored validation queries, which are opened here.
        begun: what there is of the training; None begins it.
        tick: called after every tree.

    Returns:
        The fitted model, whose last remark says what a tree cost, and the cost of every tree.

    Raises:
        ShardLost: naming the part whose worker is gone; its `so_far` may be what another training goes on from.
        ValueError: as `LambdaMART.fit_shards`, for a cluster without workers, and for one whose connections are encrypted, as those between
            parts are not.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise ValueError("the cluster has no workers")
    if encrypted := [address for address in workers if address.startswith("tls://")]:
        raise ValueError(f"worker {encrypted[0]}: parts send their sums unencrypted, so they need a cluster without TLS")
    opened = partial(
        client.submit, _open, str(state.root().absolute().parent), model, actor=True, pure=False, allow_other_workers=True
    )
    held = [
        (part, opened(part, workers[place]["nthreads"], workers=[place]))
        for part, place in zip(parts, cycle(sorted(workers)), strict=False)
    ]
    marks = [(0, 0, time.perf_counter())]

    def after_tree() -> None:
        marks.append((parts_held.moved, parts_held.exchanges, time.perf_counter()))
        if tick is not None:
            tick()

    try:
        parts_held = HeldParts(held)
        judging, begun = open_queries(valid) if valid else None, begun or Begun()
        fitted = model.fit_shards(parts_held.ask, judging, after_tree, begun.model, begun.finished, begun.looks)
    finally:
        client.cancel([future for _, future in held], force=True)
    moved, exchanges, seconds = (np.diff(column) for column in zip(*marks, strict=True))
    cost = TreeCosts(moved, exchanges, seconds)
    return (replace(fitted, remarks=(*fitted.remarks, cost.remark)) if len(moved) else fitted), cost


def _open(home: str, model: LambdaMART, part: str, threads: int) -> ShardOnWorker:
    state.use_folder(home)
    return ShardOnWorker(Shard(model, open_queries(part)), threads, get_address_host(get_worker().address))


class HeldParts:
    """Parts on workers, connected with each other.

    Args:
        held: names of the parts and their actors.

    Attributes:
        exchanges: how often the parts have waited for each other.

    Raises:
        ShardLost: naming a part whose worker is gone, here and when it is asked.
    """

    def __init__(self, held: Sequence[tuple[str, Future]]) -> None:
        self.held, self.exchanges = held, 0
        self.asked = self.exchanged = 0
        self.actors = [_actor_of(part, future) for part, future in held]
        addresses, token = self._all("address", [()] * len(held)), secrets.token_bytes(TOKEN_BYTES)
        self._all("meet", [(place, addresses, token) for place in range(len(held))])

    @property
    def moved(self) -> int:
        """Bytes of the numbers in questions, answers and exchanges so far."""
        return self.asked + self.exchanged

    def ask(self, question: str, *arguments: Any) -> list[Any]:
        """`ltr.trees.shards.Ask`."""
        answers, sent, exchanges = zip(*self._all("answer", [(question, *arguments)] * len(self.held)), strict=True)
        self.asked += len(answers) * _size(arguments) + _size(answers)
        self.exchanged, self.exchanges = sum(sent), exchanges[0]
        return list(answers)

    def _all(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls a method of every actor: all are at work before the first answer is waited for. Where one fails, those that it exchanges sums
        with fail as well, so its own error is looked for."""
        calls = [_call(part, actor, method, own) for (part, _), actor, own in zip(self.held, self.actors, arguments, strict=True)]
        outcomes = [_outcome(future, call) for (_, future), call in zip(self.held, calls, strict=True)]
        for error in outcomes:
            if isinstance(error, Exception) and not isinstance(error, OSError):
                raise error
        for (part, _), error in zip(self.held, outcomes, strict=True):
            if isinstance(error, OSError):
                raise _lost(self._gone() or part) from error
        return outcomes

    def _gone(self) -> str | None:
        """The part whose worker is gone, as soon as Dask knows."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            for part, future in self.held:
                if future.status != "finished":
                    return part
            time.sleep(0.05)
        return None


def _actor_of(part: str, future: Future) -> Any:
    try:
        return future.result()
    except (KilledWorker, CancelledError) as error:
        raise _lost(part) from error


def _call(part: str, actor: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(actor, method)(*arguments)
    except RuntimeError as error:
        raise _lost(part) from error


def _outcome(future: Future, call: Any) -> Any:
    """What a call returned, or its error. Of an actor that dies while it is asked, Dask may never give an answer."""
    while True:
        try:
            return call.result(timeout=_PATIENCE)
        except TimeoutError as error:
            if future.status != "finished":
                return error
        except Exception as error:
            return error


def _lost(part: str) -> ShardLost:
    return ShardLost(f"part {part!r} is lost: its worker no longer answers")


def _size(value: Any) -> int:
    """Bytes of the numbers in arrays, and in tuples, lists and records of them."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return _size(list(vars(value).values()))
    return sum(map(_size, value)) if isinstance(value, tuple | list) else 8
