"""Where the data are, and how they are cut: the section ``data`` of a configuration."""

import re
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ltr.data.runs import Form, column_of
from ltr.data.synthetic import LABEL_SHARES
from tasks.config.calibrate import Calibrate
from tasks.config.click_labels import ClickLabel, ClickLog
from tasks.config.clicked_pages import ClickedPages
from tasks.config.section import Strict
from tasks.records import RETRIEVED, Columns, number_of

Count = Annotated[int, Field(ge=1)]
"""Of what there is at least one."""


def _as_text(given: object) -> object:
    """YAML has read a number by now, and 01234 is 1234 to it."""
    if isinstance(given, int | float):
        raise ValueError(f"{given!r} is a number to YAML; write categories in quotes, as they are in the file")
    return given


Category = Annotated[str, BeforeValidator(_as_text)]
"""What a category is called."""


class Generate(Strict):
    """Artificial data with simulated sessions (`ltr.data.synthetic`): training, validation and test queries.

    What judges and users value is a polynomial in `active` variables: features, or sums of `mixed` features each; `shares` are those of
    labels 0–4. Every query has so many `sessions`, and so many of a `similar` query: one more word, the same results, users who value them a
    little differently; the label ``click`` comes of the first, `more` names further ones. Of as many sessions of an `earlier` time features
    are made: how often a document was shown and clicked, and at which rank. With `attraction` there is a label source of that name: how often
    users who look at a document want it, which no log shows.
    """

    queries: tuple[Count, Count, Count] = (1000, 500, 1000)
    documents: int = Field(50, ge=2)
    features: int = Field(300, ge=2)
    noise: float = Field(0.3, ge=0)
    sessions: int = Field(20, ge=1)
    similar: int = Field(0, ge=0)
    earlier: int = Field(0, ge=0)
    attraction: bool = False
    active: int = Field(5, ge=1)
    mixed: int = Field(1, ge=1)
    shares: tuple[float, float, float, float, float] = LABEL_SHARES
    more: dict[str, ClickLabel] = {}
    seed: int = Field(1, ge=0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label sources that come of it."""
        return ("click", *self.more, *(["attraction"] if self.attraction else []))

    @model_validator(mode="after")
    def _check(self) -> "Generate":
        if self.active * self.mixed > self.features:
            raise ValueError(
                f"active: {self.active} variables of {number_of(self.mixed, 'feature')} each, of {self.features} features"
            )
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares {list(self.shares)} must not be negative and sum to 1")
        return self


class Data(Strict):
    """Where the data are and how they are cut into training, validation and test queries. One of:

    - ``train``, ``valid`` and ``test``: files of each; without ``valid`` some training queries validate;
    - ``parts``: files to rotate as LETOR does (fold i: all but two for training, the next for validation, the next for test);
    - ``files``: cut by query into `folds` folds, or once by `shares`;
    - ``qrels``: judgments of TREC, the workbench, Quepid or hello-ltr; then the scores of ``runs`` and what search engines logged, in
      ``feature_logs``, are all there is to rank by, with tables of ``query_features`` that say something of each query, and they are cut as
      ``files`` are;
    - ``generate``: artificial data.

    `attributes` names columns that say something of a query, alike in all its rows; nothing is learned from them. One of the name
    ``text`` is what was typed.
    `names` is a file with the names of the features of text, one a line, the first feature's first.
    `ignore` names columns of tables that are not read at all, ``*`` for any letters; `drop` names features.
    `categorical` names columns of tables that hold categories, as text or numbers; `categories` lists them by column where they are not all
    that the files have. The value of the feature is the place in that list, and what is not in it is missing.
    `runs` are TREC runs by name; beside files their scores become features of these names, joined by query and document id. `run_forms`
    asks for other forms of them (`ltr.data.runs`), such as ``rank of bm25``.
    """

    train: list[Path] = []
    valid: list[Path] = []
    test: list[Path] = []
    parts: list[Path] = []
    files: list[Path] = []
    qrels: list[Path] = []
    runs: dict[str, list[Path]] = {}
    run_forms: tuple[Form, ...] = Field(("score",), min_length=1)
    feature_logs: list[Path] = []
    query_features: list[Path] = []
    generate: Generate | None = None
    folds: int = Field(1, ge=1)
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    query: str = "query"
    document: str = "document"
    label: str = "label"
    weight: str | None = None
    sources: list[str] = []
    attributes: list[str] = []
    first_feature: Literal[0, 1] = 1
    names: Path | None = None
    ignore: list[str] = []
    drop: list[str] = []
    categorical: list[str] = []
    categories: dict[str, list[Category]] = {}
    drop_telling: bool = True
    clean: bool = False
    binarise: float | None = None
    binarise_into: Literal["binary", "label"] = "binary"
    clicks: ClickLog | None = None
    calibrate: Calibrate | None = None
    clicked_pages: ClickedPages | None = None

    @property
    def columns(self) -> Columns:
        """What a model remembers of its data's files."""
        ignore = (*self.ignore, *map(escape, self.attributes))
        categories = {name: tuple(own) for name, own in self.categories.items()}
        return Columns(self.query, self.document, self.label, self.first_feature, ignore, categories)

    @property
    def of_categories(self) -> list[str]:
        """The columns of categories."""
        return list(dict.fromkeys([*self.categorical, *self.categories]))

    @property
    def known(self) -> list[str]:
        """Attributes that queries can be told apart by: columns, and those that need none."""
        columns = [name for name in self.attributes if name != "text"]
        made = [
            "documents",
            *(["length"] if self.clicks or "text" in self.attributes else []),
            *(["popularity"] if self.clicks else []),
        ]
        return list(dict.fromkeys([*columns, *made]))

    @field_validator("train", "valid", "test", "parts", "files", "qrels", "feature_logs", "query_features", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            raise ValueError(
                "a list of files; those of data for training, validation and test are data.train, data.valid and data.test"
            )
        return [value] if isinstance(value, str | Path) else value

    @field_validator("runs", mode="before")
    @classmethod
    def _one_each_is_a_list(cls, value: Any) -> Any:
        return {name: cls._one_is_a_list(paths) for name, paths in value.items()} if isinstance(value, Mapping) else value

    @field_validator("clicks", mode="before")
    @classmethod
    def _a_log_is_enough(cls, value: Any) -> Any:
        return {"log": value} if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _check(self) -> "Data":
        self._check_files()
        self._check_runs()
        if self.folds == 2:
            raise ValueError("folds: 2 leaves nothing to train on (one part validates, one tests); give 1 or at least 3")
        if min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares {list(self.shares)} must be positive and sum to 1")
        self._check_labels()
        self._check_columns()
        if self.calibrate:
            self._check_calibrated(self.calibrate)
        if self.clicked_pages and (self.weight or self.calibrate):
            raise ValueError(
                "clicked_pages: pages have neither weights of queries nor labels of people (data.weight, data.calibrate)"
            )
        return self

    def _check_files(self) -> None:
        """What names the data, and how they are cut."""
        ways = {"train": self.train, "parts": self.parts, "files": self.files, "qrels": self.qrels, "generate": self.generate}
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            raise ValueError(f"name the data by exactly one of {', '.join(ways)}; given: {', '.join(given) or 'none'}")
        if self.train and not self.test:
            raise ValueError("train needs test (or use files, which are split by query)")
        if 0 < len(self.parts) < 3:
            raise ValueError(
                f"parts: {len(self.parts)} files cannot be rotated into training, validation and test; give at least 3"
            )
        cut = ("files", "qrels")
        for key, needs in (("valid", ("train",)), ("test", ("train",)), ("folds", cut), ("shares", cut)):
            if getattr(self, key) != type(self).model_fields[key].default and given[0] not in needs:
                raise ValueError(f"{key} needs {' or '.join(needs)}, and the data are named by {given[0]}")
        if self.folds > 1 and self.shares != type(self).model_fields["shares"].default:
            raise ValueError(f"shares cut the queries once, and folds: {self.folds} cuts them into equal parts; give one of them")
        for key in ("clicks", "sources") if self.generate else ():
            if getattr(self, key):
                raise ValueError(
                    f"{key} cannot be combined with generated data, which have their own click log; data.generate.more names further labels from it"
                )

    def _check_runs(self) -> None:
        """What other systems said of the documents."""
        if self.qrels and not (self.runs or self.feature_logs):
            raise ValueError("qrels needs runs: TREC runs, whose scores are the features; or feature_logs of a search engine")
        if self.query_features and not self.qrels:
            raise ValueError(
                "query_features needs qrels; in files, query features are columns with the same value in all rows of a query"
            )
        if self.feature_logs and not self.qrels:
            raise ValueError("feature_logs needs qrels, the judgments of the logged documents")
        if self.runs and self.generate:
            raise ValueError("runs cannot be combined with generated data; name the data by files")
        if self.run_forms != type(self).model_fields["run_forms"].default and not self.runs:
            raise ValueError("run_forms needs runs")
        for name, paths in self.runs.items():
            if not paths or name in (self.query, self.document, self.label, "query", "document", "label", RETRIEVED):
                raise ValueError(
                    f"runs.{name}: a run has at least one file, and a name that is not the query's, document's or label's, nor {RETRIEVED}"
                )
        columns = [column_of(form, name) for name in self.runs for form in self.run_forms]
        for name in columns:
            if columns.count(name) > 1:
                raise ValueError(f"run_forms: two features would be named {name!r}; rename the runs, and list each form once")

    def _check_labels(self) -> None:
        """Names of labels beside the judgments."""
        names = [*self.sources, *(self.clicks.labels if self.clicks else ())]
        names += ["binary"] if self.binarise is not None and self.binarise_into == "binary" else []
        names += self.calibrate.made if self.calibrate else ()
        names += ["position"] if self.clicked_pages else []
        names += self.generate.labels if self.generate else ()
        for name in names:
            if not re.fullmatch(r"\w{1,100}", name):
                raise ValueError(
                    f"label source {name!r}: 1 to 100 letters, digits and '_' (measures read it as ndcg@10:NAME); rename the column, or the "
                    "label in data.clicks.more (of generated data data.generate.more)"
                )
        for name in names:
            if name == self.label or names.count(name) > 1 or name == "label":
                raise ValueError(
                    f"two label sources are named {name!r}: rename one (data.sources, data.clicks.more, data.generate.more)"
                )
        if self.binarise is None and self.binarise_into != type(self).model_fields["binarise_into"].default:
            raise ValueError(f"binarise_into: {self.binarise_into} needs binarise, the smallest label that counts as relevant")

    def _check_columns(self) -> None:
        """What columns are besides features."""
        own = [self.query, self.document, self.label, *([self.weight] if self.weight else [])]
        for name in own:
            if own.count(name) > 1:
                raise ValueError(f"two of query, document, label and weight are the column {name!r}; each needs its own")
        taken = [*own, *self.sources]
        for k, name in enumerate(self.attributes):
            if name in taken or name in self.attributes[:k]:
                raise ValueError(
                    f"attributes: the column {name!r} is named twice (or is the query, document, label, weight or a source)"
                )
            if not re.fullmatch(r"[^/\\\0]+", name):
                raise ValueError(f"attributes: {name!r}: rename the column; the name of an attribute has no slash and is not empty")
        for name in self.of_categories:
            if name in taken or name in self.attributes:
                raise ValueError(
                    f"categorical: the column {name!r} is the query, document, label, weight, a source or an attribute already"
                )
            if len({*(listed := self.categories.get(name, []))}) < len(listed):
                raise ValueError(f"categories.{name}: a category occurs twice")
        if self.of_categories and (self.generate or self.qrels):
            raise ValueError("categorical: columns of categories are in tables; name the data by files")
        if self.attributes and self.generate:
            raise ValueError("attributes: generated data have no columns besides features; name the data by files")

    def _check_calibrated(self, calibrate: Calibrate) -> None:
        if calibrate.source and calibrate.source not in self.sources:
            raise ValueError(
                f"calibrate.source: {calibrate.source!r} must be listed in data.sources, as the column with people's labels"
            )
        for name in calibrate.by:
            if name != "query" and name not in self.attributes:
                raise ValueError(
                    f"calibrate.by: {name!r} is not query, nor one of data.attributes: {', '.join(self.attributes) or 'none'}"
                )
        if self.clean or self.binarise is not None:
            raise ValueError("calibrate: clean and binarise need human labels, and these are a machine's")
