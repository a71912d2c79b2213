"""What can be run. Importing this package points Prefect and MLflow at the working directory, unless the environment says
otherwise, and keeps them quiet."""

import os
from pathlib import Path
from warnings import filterwarnings

# It is made when there is something to put into it (`make_state_folder`).
filterwarnings("ignore", message="Failed to create the Prefect home directory")
_STATE = Path(".lambdaflow").absolute()

for _name, _value in {
    "PREFECT_HOME": str(_STATE / "prefect"),
    "PREFECT_LOCAL_STORAGE_PATH": str(_STATE / "results"),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "NUMBA_THREADING_LAYER_PRIORITY": "omp tbb workqueue",
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
}.items():
    os.environ.setdefault(_name, _value)


def make_state_folder() -> None:
    """Prefect makes its home but not the folders above it; call this before Prefect is imported."""
    Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True)
