"""Where MLflow shows what the project wrote: addresses of its pages.

MLflow 3 shows everything as parts of GenAI applications, also an experiment of the kind ``custom_model_development``, unless an address asks
for its training view: its pages read ``workflowType`` from the query behind the ``#``.
"""

from urllib.parse import urlsplit

from tasks.tracking.store import tracking_uri

OWN_SERVER = "http://127.0.0.1:5000"
"""Where `lambdaflow ui` shows MLflow."""
_VIEW = "?workflowType=machine_learning"


def shown_at() -> str:
    """The server whose pages show this project: the one of ``MLFLOW_TRACKING_URI``, without user and password, otherwise our own."""
    address = urlsplit(tracking_uri())
    if address.scheme not in ("http", "https"):
        return OWN_SERVER
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl().rstrip("/")


def runs_page(server: str, experiment_id: str) -> str:
    """The list of an experiment's runs."""
    return f"{server}/#/experiments/{experiment_id}/runs{_VIEW}"


def run_page(server: str, experiment_id: str, run_id: str, artifact: str = "") -> str:
    """A run, or one of its files."""
    within = f"/artifacts/{artifact}" if artifact else ""
    return f"{server}/#/experiments/{experiment_id}/runs/{run_id}{within}{_VIEW}"
