"""Slow and obvious twins of the kernels: formulas written out, nothing shared with the code they check."""

import itertools
import math

import numpy as np


def dcg(gains, cutoff, discount):
    return sum(g * discount(r) for r, g in enumerate(gains, 1) if r <= cutoff)


def log_discount(rank):
    return 1 / math.log2(1 + rank)


def jk_discount(rank):
    return 1.0 if rank < 3 else 1 / math.log2(rank)


def value(name, labels, cutoff=None, threshold=2, max_label=4):
    """A measure of one ranked list of labels without ties; None where undefined."""
    cutoff = cutoff or len(labels)
    relevant = [1 if label >= threshold else 0 for label in labels]
    if name in ("ndcg", "jk_ndcg", "linear_ndcg", "cndcg"):
        discount = jk_discount if name == "jk_ndcg" else log_discount
        gains = [label if name == "linear_ndcg" else 2 ** (4 * label if name == "cndcg" else label) - 1 for label in labels]
        best = dcg(sorted(gains, reverse=True), cutoff, discount)
        return dcg(gains, cutoff, discount) / best if best else None
    if name == "err":
        if not any(labels):
            return None
        total, go_on = 0.0, 1.0
        for r, label in enumerate(labels, 1):
            stop = (2**label - 1) / 2**max_label
            total += go_on * stop / r if r <= cutoff else 0
            go_on *= 1 - stop
        return total
    if name in ("tau", "errors"):
        pairs = [(a, b) for a, b in itertools.combinations(labels, 2) if a != b]
        wrong = sum(a < b for a, b in pairs)
        return None if not pairs else wrong if name == "errors" else 1 - 2 * wrong / len(pairs)
    if sum(relevant) == 0:
        return None
    if name == "map":
        return sum(sum(relevant[:r]) / r for r in range(1, min(cutoff, len(labels)) + 1) if relevant[r - 1]) / sum(relevant)
    if name in ("mrr", "mrr_exact"):
        first = relevant.index(1) + 1
        return 1 / first if first <= cutoff else 0.0
    if name == "p":
        return sum(relevant[:cutoff]) / cutoff
    if name == "wta":
        return float(relevant[0])
    if name == "auc":
        pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if relevant[i] and not relevant[j]]
        return sum(i < j for i, j in pairs) / len(pairs) if pairs else None
    raise AssertionError(name)


def orders_within_ties(scores):
    """Every ranking that the scores allow."""
    groups = [[i for i in range(len(scores)) if scores[i] == s] for s in sorted(set(scores), reverse=True)]
    for arrangement in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for group in arrangement for i in group]


def expected(name, labels, scores, **conventions):
    """Mean of a measure over every order of the ties."""
    values = [value(name, [labels[i] for i in order], **conventions) for order in orders_within_ties(scores)]
    return None if values[0] is None else sum(values) / len(values)


def gradients(scores, labels, gains, groups, change, sigma=1.0, cost="logistic"):
    """Gradient and hessian of each document of one query; `change(i, j)` is |ΔM| of a pair."""
    n = len(scores)
    gradient, hessian = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(n):
            if gains[i] > gains[j] and groups[i] == groups[j]:
                o = scores[i] - scores[j]
                rho = 1 / (1 + math.exp(sigma * o))
                slope = sigma * rho if cost != "sigmoid" else sigma * rho * (1 - rho)
                bend = sigma**2 * rho * (1 - rho) if cost != "sigmoid" else 0.0
                if cost == "logistic_near" and len(set(scores)) > 1:
                    slope, bend = slope / (0.01 + abs(o)), bend / (0.01 + abs(o))
                gradient[i] += change(i, j) * slope
                gradient[j] -= change(i, j) * slope
                hessian[i] += change(i, j) * bend
                hessian[j] += change(i, j) * bend
    return gradient, hessian


def constructed(construction, measure, cutoff, scores, labels, gains, sigma=1.0):
    """Gradients of the constructions that look at neighbours or single documents, from values alone; one group."""
    order = np.argsort(-scores, kind="stable")
    ranked, ranked_gains = [labels[i] for i in order], [gains[i] for i in order]
    before, gradient = value(measure, ranked, cutoff), np.zeros(len(scores))
    if before is None:
        return gradient
    for u in range(len(order) - 1) if construction.startswith("local") else ():
        v = u + 1
        swapped = ranked.copy()
        swapped[u], swapped[v] = swapped[v], swapped[u]
        loss = before - value(measure, swapped, cutoff)
        if construction == "local_gradient":
            delta = loss / (scores[order[u]] - scores[order[v]] + 1 / sigma)
        else:
            up = np.sign(ranked_gains[u] - ranked_gains[v])
            delta = up * abs(loss) * sigma / (1 + math.exp(sigma * up * (scores[order[u]] - scores[order[v]])))
        gradient[order[u]] += delta
        gradient[order[v]] -= delta
    if construction == "discrete_bounded":
        ideal = sorted(range(len(order)), key=lambda r: -ranked_gains[r])
        for target, r in enumerate(ideal):
            moved = ranked[:r] + ranked[r + 1 :]
            moved.insert(target, ranked[r])
            gradient[order[r]] = np.sign(r - target) * min(1, 100 * abs(value(measure, moved, cutoff) - before))
    return gradient


def best_split(features, gradient, weight, min_docs, l2=0.0):
    """The best admissible split ``x ≤ threshold`` of one leaf over all features: (gain, feature, threshold)."""
    best = (0.0, None, None)
    total = gradient.sum() ** 2 / (weight.sum() + l2) if weight.sum() > 0 else 0.0
    for f in range(features.shape[1]):
        values = np.unique(features[:, f])
        for threshold in (values[:-1] + values[1:]) / 2:
            left = features[:, f] <= threshold
            if min(left.sum(), (~left).sum()) < min_docs:
                continue
            sides = [(gradient[s].sum(), weight[s].sum() + l2) for s in (left, ~left)]
            gain = sum(g * g / w if w > 0 else 0.0 for g, w in sides) - total
            if gain > best[0] * (1 + 1e-6) + 1e-9:
                best = (gain, f, threshold)
    return best
