"""How far searches got within their time, so that a run that is repeated trains the same, and one that was killed has what is left."""

from dataclasses import asdict
from pathlib import Path

from tasks.records import Budget
from tasks.store import state
from tasks.store.state import keep_json, kept_json


def budget_file(run_key: str) -> Path:
    """Where the budget of a run is, by the digest of what it does."""
    return state.root() / "budgets" / f"{run_key[:32]}.json"


def read_budget(run_key: str) -> Budget | None:
    """What was noted of a run; None where nothing was."""
    written = kept_json(budget_file(run_key))
    return Budget(**written) if isinstance(written, dict) else None


def write_budget(run_key: str, budget: Budget) -> None:
    """Notes how far a run is."""
    keep_json(budget_file(run_key), asdict(budget))
