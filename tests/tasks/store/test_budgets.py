"""How far searches got within their time."""

from tasks.records import Budget
from tasks.store.budgets import budget_file, read_budget, write_budget


def test_a_budget_is_read_as_it_was_written(workplace):
    assert read_budget("key") is None
    write_budget("key", Budget(600.0, 12.5, 7, True))
    assert read_budget("key") == Budget(600.0, 12.5, 7, True)
    budget_file("key").write_text("{")
    assert read_budget("key") is None
