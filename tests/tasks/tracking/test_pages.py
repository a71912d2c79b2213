"""Addresses of MLflow's pages: in the training view, on the server that shows the project."""

import pytest

from tasks.tracking.pages import run_page, runs_page, shown_at


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        (None, "http://127.0.0.1:5000"),
        ("postgresql://me:secret@db/mlflow", "http://127.0.0.1:5000"),
        ("https://me:secret@mlflow.example:8443/team/", "https://mlflow.example:8443/team"),
    ],
)
def test_a_server_of_ones_own_shows_the_pages_and_its_password_is_not_in_them(workplace, monkeypatch, uri, server):
    if uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert shown_at() == server


def test_every_page_asks_for_the_training_view():
    assert runs_page("http://a", "1") == "http://a/#/experiments/1/runs?workflowType=machine_learning"
    assert run_page("http://a", "1", "r") == "http://a/#/experiments/1/runs/r?workflowType=machine_learning"
    assert run_page("http://a", "1", "r", "report.html").endswith("/runs/r/artifacts/report.html?workflowType=machine_learning")
