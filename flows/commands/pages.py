"""``lambdaflow serve`` and ``ui``: what stays until it is stopped."""

import argparse

from flows import make_state_folder
from flows.commands.opening import working


def serve(given: argparse.Namespace) -> int:
    """Runs a configuration by the clock."""
    with working():
        import tasks.evidence  # noqa: F401  (its kinds are keys of a configuration)
        from tasks.config.reading import read

        config = read(given.config, given.set)
        make_state_folder()
        from flows.schedule import serve_schedule

    return serve_schedule(config, given.cron, given.prefect_port, given.allow)


def ui(given: argparse.Namespace) -> int:
    """Opens MLflow's and Prefect's pages."""
    make_state_folder()
    with working():
        from flows.servers import serve_pages

    return serve_pages(given.mlflow_port, given.prefect_port)
