"""Which of a data set's labels are a machine's, and where people's are: the section ``data.calibrate`` of a configuration."""

from pathlib import Path
from typing import Any

from pydantic import field_validator, model_validator

from tasks.config.section import Strict


class Calibrate(Strict):
    """People's labels of some of the documents whose labels are a machine's (`ltr.metrics.calibration`).

    The judged label becomes the one that is worth the expected gain of what people would say, or what they did say where they judged; the
    machine's own is the label source ``machine`` from then on. People's labels are in `judgments` (of any form that ``data.qrels`` takes), and
    become the source ``people``, or they are the `source` of that name already. `by` names attributes of queries, or ``query``, by which the
    confusion may differ; the best is taken, or none. With `weights` a document counts the less in training, the less sure its gain is.
    """

    judgments: list[Path] = []
    source: str | None = None
    by: list[str] = []
    weights: bool = False

    @property
    def people(self) -> str:
        """The label source that holds people's labels."""
        return self.source or "people"

    @property
    def made(self) -> tuple[str, ...]:
        """The label sources that come of it."""
        return ("machine",) if self.source else ("machine", "people")

    @field_validator("judgments", "by", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _check(self) -> "Calibrate":
        if bool(self.judgments) == bool(self.source):
            raise ValueError(
                "people's labels are in judgments (a file), or are a source (a column that data.sources names); give one of them"
            )
        return self
