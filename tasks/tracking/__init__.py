"""The only rooms that know MLflow: runs, the model registry, and what a reference means."""
