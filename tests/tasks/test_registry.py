"""Addresses of the registry that lead nowhere; what leads somewhere is in test_champion."""

import pytest

from tasks.ingest import DataError
from tasks.lookup import find_model
from tasks.registry import CHAMPION, called


def test_what_is_not_registered_is_one_line(workplace):
    assert called("nobody", CHAMPION) is None
    for address in ("models:/nobody@champion", "models:/nobody/3"):
        with pytest.raises(DataError, match=f"^{address}: ") as caught:
            find_model(address)
        assert "\n" not in str(caught.value)
