"""The model as MLflow serves it: loaded from code and arrays, fed features (array or frame), answering scores."""

from typing import Any

import mlflow

import ltr


class Ranker(mlflow.pyfunc.PythonModel):
    """Scores of documents, higher is better; a frame is read by feature name, an array by position."""

    def load_context(self, context: Any) -> None:
        self.model = ltr.load(context.artifacts["model"])

    # No type hints here: MLflow would make a schema of them.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        return self.model.predict(model_input)


mlflow.models.set_model(Ranker())
