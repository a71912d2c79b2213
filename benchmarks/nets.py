"""Training nets: an epoch of ours, an update after every query, beside the same epoch in PyTorch; gradients compared first.

python benchmarks/nets.py
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import ltr
from benchmarks.pairs import alternate, columns
from benchmarks.results import Table
from ltr.nets.network import Weights, random_weights
from ltr.objectives.lambda_objective import Objective

QUERIES, DOCUMENTS, FEATURES = 10_000, 50, 300
RATE = 1e-4


def main() -> None:
    import torch

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

    def forces(scores: "torch.Tensor", q: int) -> "torch.Tensor":
        """LambdaRank's forces for NDCG, all pairs at once."""
        order = torch.argsort(scores, descending=True, stable=True)
        s, g = scores[order], gains[q][order]
        change = ((g[:, None] - g[None, :]) * (discounts[:, None] - discounts[None, :])).abs() / ideal[q]
        sign = torch.sign(g[:, None] - g[None, :])
        pull = sign * change * torch.sigmoid(-sign * (s[:, None] - s[None, :])) * upper
        out = torch.empty_like(s)
        out[order] = pull.sum(dim=1) - pull.sum(dim=0)
        return out

    def net_of(weights: Weights) -> "torch.nn.Module":
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

    title = f"An epoch over {QUERIES:,} queries × {DOCUMENTS} documents × {FEATURES} features, NDCG, float32"
    table = Table("nets.epoch", title, columns("PyTorch"), ("torch",))
    for hidden, name in ((0, "linear"), (10, "two layers, 10 units")):
        start = random_weights(FEATURES, hidden, np.random.default_rng(1))
        model = ltr.LambdaRank(hidden=hidden, learning_rate=RATE)
        objective = Objective(queries, model.objective)

        def ours(start: Weights = start, model: ltr.LambdaRank = model, objective: Objective = objective) -> Weights:
            return model.epoch(start, features, queries, objective, 0, RATE, np.arange(QUERIES))

        def theirs(start: Weights = start, n: int = QUERIES) -> "torch.nn.Module":
            net = net_of(start)
            step = torch.optim.SGD(net.parameters(), lr=RATE)
            for q in range(n):
                step.zero_grad()
                scores = net(inputs[q])
                scores.backward(-forces(scores.detach()[:, 0], q)[:, None])
                step.step()
            return net

        first = theirs(n=1)
        mine = model.epoch(start, features, queries, objective, 0, RATE, np.arange(1))
        for parameter, before, after in zip(
            first.parameters(), (start.inner, start.bias, start.outer), (mine.inner, mine.bias, mine.outer), strict=False
        ):
            moved, wanted = after - before, parameter.detach().numpy().reshape(before.shape) - before
            assert np.abs(moved - wanted).max() < 2e-3 * np.abs(wanted).max() + 1e-7, name
        table.add(name, *alternate(ours, theirs, 5).cells)
    table.record()


if __name__ == "__main__":
    main()
