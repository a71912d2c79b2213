"""Training nets: an epoch of ours beside the same epoch in PyTorch, with an update after every query and with one of all queries (there
PyTorch takes `BATCH` queries at once and adds their gradients up, which is fastest of 50 to 10,000); what an epoch does to the weights is compared first.

python benchmarks/nets.py
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch  # before ltr, which has OpenMP's threads wait asleep: PyTorch's wait as they do by default
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import alternate, columns, expect_both_processors
from benchmarks.results import Table
from ltr.nets.network import Weights, random_weights
from ltr.objectives.lambda_objective import Objective

QUERIES, DOCUMENTS, FEATURES = 10_000, 50, 300
RATE = 1e-4
BATCH = 100


def main() -> None:
    torch.set_num_threads(2)
    rng = np.random.default_rng(1)
    features = rng.normal(size=(QUERIES * DOCUMENTS, FEATURES)).astype(np.float32)
    labels = rng.integers(0, 5, QUERIES * DOCUMENTS).astype(float)
    queries = ltr.Queries(features, labels, np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS))
    discounts = 1 / torch.log2(torch.arange(2.0, DOCUMENTS + 2))
    gains = torch.tensor(2**labels - 1, dtype=torch.float32).reshape(QUERIES, DOCUMENTS)
    ideal = (gains.sort(dim=1, descending=True).values * discounts).sum(dim=1)
    inputs = torch.from_numpy(features).reshape(QUERIES, DOCUMENTS, FEATURES)
    upper = torch.triu(torch.ones(DOCUMENTS, DOCUMENTS, dtype=torch.bool), 1)

    def forces(scores: torch.Tensor, first: int) -> torch.Tensor:
        """LambdaRank's forces for NDCG on queries from the first ``[queries, documents]``, all pairs at once."""
        order = torch.argsort(scores, dim=1, descending=True, stable=True)
        own = slice(first, first + len(scores))
        s, g = scores.gather(1, order), gains[own].gather(1, order)
        apart = g[:, :, None] - g[:, None, :]
        change = (apart * (discounts[:, None] - discounts[None, :])).abs() / ideal[own, None, None]
        sign = torch.sign(apart)
        pull = sign * change * torch.sigmoid(-sign * (s[:, :, None] - s[:, None, :])) * upper
        return torch.empty_like(s).scatter_(1, order, pull.sum(dim=2) - pull.sum(dim=1))

    def net_of(weights: Weights) -> torch.nn.Module:
        if weights.hidden == 0:
            net: torch.nn.Module = torch.nn.Linear(FEATURES, 1, bias=False)
            parts = [weights.inner]
        else:
            net = torch.nn.Sequential(
                torch.nn.Linear(FEATURES, weights.hidden), torch.nn.Tanh(), torch.nn.Linear(weights.hidden, 1, bias=False)
            )
            parts = [weights.inner, weights.bias, weights.outer[None]]
        with torch.no_grad():
            for parameter, part in zip(net.parameters(), parts, strict=True):
                parameter.copy_(torch.from_numpy(part))
        return net

    for update, each in (("query", "an update a query"), ("full", "one update of all queries")):
        title = f"An epoch over {QUERIES:,} queries × {DOCUMENTS} documents × {FEATURES} features, NDCG, float32, {each}"
        table = Table("nets.epoch" if update == "query" else "nets.full_batch", title, columns("PyTorch"), ("torch",))
        for hidden, name in ((0, "linear"), (10, "two layers, 10 units")):
            start = random_weights(FEATURES, hidden, np.random.default_rng(1))
            model = ltr.LambdaRank(hidden=hidden, learning_rate=RATE, update=update)
            objective = Objective(queries, model.objective)
            batch = 1 if update == "query" else BATCH
            compared = 1 if update == "query" else QUERIES

            def ours(
                start: Weights = start, model: ltr.LambdaRank = model, objective: Objective = objective, n: int = QUERIES
            ) -> Weights:
                return model.epoch(start, features, queries, objective, 0, RATE, np.arange(n))

            def theirs(start: Weights = start, n: int = QUERIES, batch: int = batch, update: str = update) -> torch.nn.Module:
                net = net_of(start)
                step = torch.optim.SGD(net.parameters(), lr=RATE)
                for first in range(0, n, batch):
                    scores = net(inputs[first : min(first + batch, n)])[:, :, 0]
                    scores.backward(-forces(scores.detach(), first))
                    if update == "query" or first + batch >= n:
                        step.step()
                        step.zero_grad()
                return net

            same(start, ours(n=compared), [part.detach().numpy() for part in theirs(n=compared).parameters()], name)
            timing = alternate(ours, theirs, 5)
            if update == "full":
                expect_both_processors("PyTorch", timing.busy[1])
            table.add(name, *timing.cells)
        table.record()


def same(start: Weights, mine: Weights, theirs: Sequence[NDArray[np.float32]], name: str) -> None:
    """Both took the same step."""
    for found, before, after in zip(
        theirs, (start.inner, start.bias, start.outer), (mine.inner, mine.bias, mine.outer), strict=False
    ):
        moved, wanted = after - before, found.reshape(before.shape) - before
        assert np.abs(moved - wanted).max() < 2e-3 * np.abs(wanted).max() + 1e-7, name


if __name__ == "__main__":
    main()
