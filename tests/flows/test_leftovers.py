"""Runs are signed by their owner; what becomes of what an owner that is gone leaves behind is seen in test_kill."""

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

from flows.leftovers import close_in_prefect, owned, signed
from flows.owners import owner


@pytest.mark.usefixtures("prefect_server")
def test_runs_of_an_owner_are_closed_and_others_left(workplace):
    @flow
    def under_way():
        with signed() as mine:
            assert mine == owner()
        close_in_prefect(lambda who: False, "not theirs")
        with get_client(sync_client=True) as client:
            assert client.read_flow_run(flow_run.id).state_type == "RUNNING"
            close_in_prefect(lambda who: who == mine, "it was interrupted")
            return client.read_flow_run(flow_run.id).state.name

    with owned():
        assert under_way() == "Crashed"
    assert under_way() == "Crashed"
