"""Tables: Parquet, CSV and TSV files, read as they are named and not otherwise."""

import csv
import os
import re
import tempfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.selectors import by_name

from ltr.data.queries import Queries
from tasks.config.data_section import Data
from tasks.records import DataError, number_of
from tasks.store import state
from tasks.store.state import written_whole

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = {".parquet", *SEPARATORS}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
csv.field_size_limit((1 << 31) - 1)  # for the whole process; what is no id and no number may be as long as it likes
_COLUMNS = 16
"""Of a table that are read at a time."""
_LARGE = 1 << 28
"""Bytes of a text above which its columns are taken apart in a file: as text they need more than five times the memory of their numbers."""
_FIELDS_AT_A_TIME = 1 << 22
_SAMPLE = 1 << 20
"""Bytes of a file that are looked at before it is read."""
MISSING = ["", "NULL", "NA", "nan", "NaN"]
"""What stands for a missing value in a table of text."""
NO_CATEGORY = ["", "NULL", "nan", "NaN"]
"""And for a missing category, unless it is one that is listed; ``NA`` is North America."""
_PRICE = re.compile(r"(?!\d+(\.\d+){2,}$)[-+]?[$€£¥]? ?[-+]?\d{1,3}([.,' \u00a0\u202f]?\d{3})*([.,]\d+)? ?[$€£¥%]?")
"""A number as people write it."""


Texts = TypeVar("Texts", pl.Expr, pl.Series)


def is_table(path: Path) -> bool:
    """Whether a file is read as a table, with named columns; anything else is LETOR text, whose features may end early."""
    return path.suffix.lower() in TABLES


def require_plain(path: Path) -> None:
    """Looks at a file's beginning.

    Raises:
        DataError: for an empty file, a compressed one, Parquet of another name, Arrow, UTF-16, and text whose lines, or whose first one, end with CR alone.
    """
    with open(path, "rb") as file:
        beginning = file.read(_SAMPLE)
    if not beginning:
        raise DataError(f"{path}: the file is empty")
    if beginning.startswith(b"PK") and path.suffix.lower() in (".xlsx", ".ods"):
        raise DataError(f"{path}: this is a spreadsheet; save it as CSV or Parquet")
    for mark, kind in _COMPRESSED.items():
        if beginning.startswith(mark):
            raise DataError(f"{path}: compressed with {kind}; unpack it first")
    if beginning.startswith(b"PAR1") and path.suffix.lower() != ".parquet":
        raise DataError(f"{path}: this is Parquet; rename it to {path.name}.parquet")
    if path.suffix.lower() != ".parquet" and _is_utf_16(beginning):
        raise DataError(f"{path}: this file is UTF-16; convert it to UTF-8")
    if path.suffix.lower() != ".parquet" and b"\0" in beginning[:2]:
        raise DataError(f"{path}: not a text file: it begins with a zero byte")
    if beginning.startswith(b"ARROW1"):
        raise DataError(f"{path}: this is an Arrow file; save it as Parquet, CSV or TSV")
    if path.suffix.lower() != ".parquet" and b"\r" in beginning and b"\n" not in beginning:
        raise DataError(f"{path}: its lines end with CR alone; convert them to LF or CR LF")
    header = re.sub(rb'"[^"]*"', b"", beginning).split(b"\n")[0].removesuffix(b"\r")
    if path.suffix.lower() in SEPARATORS and b"\r" in header:
        shown = header[: header.index(b"\r") + 10][-40:].decode("utf-8", "replace")
        raise DataError(f"{path}, line 1: {shown!r}: a CR alone; lines must end with LF or CR LF")


def _is_utf_16(beginning: bytes) -> bool:
    """By its mark, or as every other byte of the first eight is zero."""
    zeros = {beginning[first:8:2] for first in (0, 1)}
    return beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or any(half and not any(half) for half in zeros)


def scan(path: Path) -> pl.LazyFrame:
    """A table to be read, columns of CSV and TSV as text. Errors of reading it come when it is collected, inside `reading`.

    Raises:
        DataError: as `require_plain` and `quote_of`, for a header of a text that names a column twice or is separated otherwise, and for a name
            of the file that is not UTF-8, which polars cannot open.
    """
    require_plain(path)
    if os.fsencode(path).decode("utf-8", "replace") != str(path):
        raise DataError(f"{path}: the name of this file or folder is not UTF-8 text; rename it")
    with reading(path):
        if path.suffix.lower() == ".parquet":
            return pl.scan_parquet(path, glob=False)
        quote = quote_of(path)
        with _fields(path, quote) as lines:
            header: list[str] = next(lines, [])
        separator = _separator(path)
        if len(header) == 1 and (marks := [mark for mark in ";\t,|" if mark != separator and mark in header[0]]):
            raise DataError(
                f"{path}, line 1: {header[0][:40]!r} is one column: fields of {path.suffix.lower()} are separated by {separator!r}, not {marks[0]!r}"
            )
        twice = [name for k, name in enumerate(header) if name in header[:k]]
        if twice:
            raise DataError(f"{path}, line 1: column {twice[0]!r} is named twice; rename one")
        if broken := [name for name in header if "\ufffd" in name]:
            raise DataError(f"{path}, line 1: the name of column {broken[0]!r} is not UTF-8 text")
        # polars leaves quotes within a name doubled.
        names = (lambda _: header) if any('"' in name for name in header) else None
        return pl.scan_csv(path, separator=separator, infer_schema=False, quote_char=quote, glob=False, with_column_names=names)


def _separator(path: Path) -> str:
    """Between the fields of a text; another suffix than a table's is read as TSV."""
    return SEPARATORS.get(path.suffix.lower(), "\t")


def quote_of(path: Path) -> str | None:
    """The quotes around fields of a text: ``"``, with quotes within them doubled (RFC 4180; pandas, polars and Excel write so, TSV too). None
    where none is around a field: a quote is a letter there, as in ``7" screen``; in a text of tabs also at the beginning of a field. There
    lines that all have as many tabs as the header are rows, and no field that goes over them.

    Raises:
        DataError: where quotes are around fields, and one is neither around a whole field nor doubled within one.
    """
    with open(path, "rb") as file:
        if not any(b'"' in block for block in iter(lambda: file.read(_SAMPLE), b"")):
            return None
    always, separator = _separator(path) == ",", _separator(path).encode()
    mark = re.escape(separator)
    field = rb'(?:"(?:[^"]++|"")*+"|[^"%s\n]*+)' % mark
    whole = re.compile(rb"%s(?:%s%s)*+\r?\n?" % (field, mark, field))
    unclosed = re.compile(rb'(?:%s%s)*"(?:[^"]++|"")*+' % (field, mark))
    inner, begins = re.compile(rb'(?:[^"]++|"")*+'), re.compile(rb'(?:^|%s)"' % mark)
    quoted, rows, width = False, False, 0
    stray = inside = ""  # where the first quote stands that is of no field, and the one whose field goes on
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            width = line.count(separator) if number == 1 else width
            rows = not always and line.count(separator) == width > 0 and (rows or not inside)
            if inside:
                end = len(inner.match(line)[0])  # type: ignore[index]  # that it matches nothing is a match
                rest = b'""' + line[end + 1 :] if end < len(line) else b""
            else:
                rest = line.removeprefix(BOM_UTF8) if number == 1 else line
            if b'"' not in rest:
                continue
            if whole.fullmatch(rest) and not (inside and rows):
                quoted, inside = quoted or begins.search(rest) is not None, ""
                continue
            known = whole.match(line)
            at = known.end() if known else 0
            said = f"{path}, line {number}: {line[max(at - 20, 0) : at + 20].strip().decode('utf-8', 'replace')!r}"
            if unclosed.fullmatch(rest) and not whole.fullmatch(rest):
                inside = inside or said
            else:
                stray, inside = stray or inside or said, ""
                quoted = quoted or (always and begins.search(rest) is not None)
    quoted = quoted or (always and bool(inside))
    if quoted and stray:
        raise DataError(f"{stray}: this quote is neither around a whole field nor doubled within one")
    if quoted and inside:
        raise DataError(f"{inside}: the quote that begins here never ends")
    return '"' if quoted else None


@contextmanager
def _fields(path: Path, quote: str | None) -> Iterator[Any]:
    """The lines of a text as lists of its fields, by ``csv.reader``."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        yield csv.reader(file, delimiter=_separator(path), quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What polars raises inside is a DataError that names the file."""
    try:
        yield
    except DataError:
        raise
    except (pl.exceptions.PolarsError, OSError) as error:
        if isinstance(error, OSError) and str(error.filename or path) != str(path):
            raise  # of a file that is written
        if path.suffix.lower() in SEPARATORS and "utf-8" in str(error).lower():
            _refuse_bytes(path)
        if path.suffix.lower() in SEPARATORS and isinstance(error, pl.exceptions.PolarsError):
            refuse_uneven_lines(path)
        raise DataError(f"{path}: cannot be read as {path.suffix[1:].lower()}: {str(error).splitlines()[0]}") from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of polars, for damaged files
            raise DataError(f"{path}: cannot be read as {path.suffix[1:].lower()}: the file is damaged") from None
        raise


def read_table(path: Path) -> pl.DataFrame:
    """A table with its columns; of CSV and TSV as text, where nothing stands for a missing value.

    Raises:
        DataError: as `scan`, for a table without rows, a damaged file, and a line with fewer or more fields than the header.
    """
    table = Table(path)
    return table.read(table.columns)


class Table:
    """A table of which columns are read when they are asked for: Parquet has each on its own, text is read once, as a whole or, where it is
    large, into a file like that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading(path):
            self._lazy = scan(path)
            self.columns = self._lazy.collect_schema().names()
            if path.suffix.lower() in SEPARATORS:
                self._lazy = _by_column(self._lazy) if path.stat().st_size > _LARGE else self._lazy.collect().lazy()
                if self.columns and self.read(self.columns[-1:]).to_series().null_count():
                    refuse_uneven_lines(path)
            if not self.columns or not self._lazy.select(pl.len()).collect().item():
                raise DataError(f"{path}: no document in it")

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns, all rows.

        Raises:
            DataError: for a damaged file.
        """
        with reading(self._path):
            return self._lazy.select(by_name(*columns)).collect()  # polars takes names such as * for patterns otherwise

    def each(self, names: Sequence[str], beside: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
        """Names of columns, each with a frame that has it, and the columns of one `beside`; some are read at a time."""
        for first in range(0, len(names), _COLUMNS):
            some = names[first : first + _COLUMNS]
            frame = beside.hstack(self.read([name for name in some if name not in beside.columns]))
            yield from ((name, frame) for name in some)


def _by_column(table: pl.LazyFrame) -> pl.LazyFrame:
    """The same table, in a file below the state folder that has each column on its own, and that ends with what is returned.

    Raises:
        OSError: where the disk has no room for it.
    """
    state.root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=state.root()) as file:
        try:
            rows = max(_FIELDS_AT_A_TIME // len(table.collect_schema()), 1)
            table.sink_parquet(file, compression="lz4", statistics=False, row_group_size=rows)
        except pl.exceptions.ComputeError as error:
            if full := re.search(r"\(os error (\d+)\)", str(error)):
                raise OSError(int(full[1]), os.strerror(int(full[1])), str(state.root())) from None
            raise
        file.seek(0)
        return pl.scan_parquet(file, glob=False)  # polars holds it by itself


def require_writable(path: Path) -> None:
    """Raises DataError for a file of another kind than tables are written as, and where its folder is missing or it is one itself."""
    if not is_table(path):
        raise DataError(f"{path}: tables can be written as {', '.join(sorted(TABLES))}")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Writes a table as its name says, whole or not at all.

    Raises:
        DataError: as `require_writable`.
    """
    require_writable(path)
    with written_whole(path) as partial:
        if path.suffix.lower() == ".parquet":
            frame.write_parquet(partial)
        else:
            frame.write_csv(partial, separator=SEPARATORS[path.suffix.lower()])


def header_of(path: Path) -> list[str]:
    """The names of a text's columns; another suffix than a table's is read as TSV."""
    with _fields(path, '"') as lines:
        return next(lines, [])


def _refuse_bytes(path: Path) -> None:
    """polars does not say where a text is no UTF-8."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                shown = line[max(error.start - 20, 0) : error.start + 20].decode("utf-8", "replace").strip()
                raise DataError(f"{path}, line {number}: {shown!r}: not UTF-8; convert the file to UTF-8") from None


def require_even_lines(path: Path, frame: pl.LazyFrame) -> None:
    """Reads a text of columns once, a part at a time: of a few columns polars does not see that a line has more fields than the header.

    Raises:
        DataError: for a line with fewer or more fields than the header, and a byte that is no text.
    """
    if path.suffix.lower() == ".parquet":
        return
    missing = frame.select(pl.all().is_null().any()).collect(engine="streaming")
    if missing.to_series(-1).any():
        refuse_uneven_lines(path)


def refuse_uneven_lines(path: Path) -> None:
    """polars fills short lines up (where the last column is never empty there is none), and does not say where a long one is.

    Raises:
        DataError: for the first line of a text with fewer or more fields than the header, or none.
    """
    with _fields(path, quote_of(path)) as lines:
        width, begin = len(next(lines, [])), lines.line_num + 1
        for fields in lines:
            if not fields and width > 1:
                raise DataError(f"{path}, line {begin}: the line is empty")
            if fields and len(fields) != width:
                unclosed = " (a quote that begins here ends lines below, or never)" if lines.line_num > begin else ""
                raise DataError(f"{path}, line {begin}: {number_of(len(fields), 'field')}{unclosed}; the header has {width}")
            begin = lines.line_num + 1


def numbers(path: Path, frame: pl.DataFrame, name: str, data: Data, before: int = 0, wanted: bool = False) -> NDArray[np.float64]:
    """A column of numbers, missing ones NaN; text is read as numbers where all of it can be. `before`: rows of the file before these.
    `wanted`: a model reads it as numbers, so that it can neither be left out nor hold categories."""
    is_id = data.document not in frame.columns and name not in (data.label, *data.sources)
    ids = f"if these are document ids, set data.document: {name}; " if is_id and frame[name].dtype == pl.String else ""
    splits = (
        ""
        if frame[name].dtype.is_nested() or frame[name].dtype == pl.Binary
        else f"data.categorical: [{name}] lets trees split by it, "
    )
    ways = f"{splits}data.ignore: [{name}] leaves the column out"
    if wanted:
        ids, ways = "", "the model reads numbers here; an empty cell is a missing one"
    if name in data.categorical:
        ways = f"which category each number of the model stands for is unknown; data.categories: {{{name}: [...]}} lists them in its order"
    hint = "" if name in (data.label, *data.sources) else f" ({ids}{ways})"
    return as_numbers(path, frame[name], f"labels and features must be numbers{hint}", before).fill_null(float("nan")).to_numpy()


def has_numbers(table: Table, name: str) -> bool:
    """Whether a column of a table can be read as numbers."""
    try:
        as_numbers(Path(), table.read([name])[name], "")
    except DataError:
        return False
    return True


def categories_in(paths: Sequence[Path], name: str) -> list[str]:
    """The categories of a column of some tables, sorted.

    Raises:
        DataError: for a table without the column, or one of lists.
    """
    found: set[str] = set()
    for path in paths:
        with reading(path):
            lazy = scan(path)
            kind = lazy.collect_schema().get(name)
            if kind is None:
                raise DataError(f"{path}: no column {name!r} (data.categorical)")
            if kind.is_nested() or kind == pl.Binary:
                raise DataError(
                    f"{path}: column {name!r} holds {kind}: a category must be a text or a whole number (data.categorical)"
                )
            found.update(_names(lazy.select(name).unique().collect()[name]).drop_nulls().to_list())
    return sorted(found)


def codes(frame: pl.DataFrame, name: str, categories: Sequence[str]) -> NDArray[np.float64]:
    """A column of categories as their places in this list; NaN where one is missing or is not among them."""
    own = _names(pl.Series(categories, dtype=pl.String), categories)
    places = pl.DataFrame({"own": own, "place": pl.Series(range(len(own)), dtype=pl.Float64)}).unique("own", keep="first")
    found = pl.DataFrame({"own": _names(frame[name], categories)}).join(places, on="own", how="left", maintain_order="left")
    return found["place"].fill_null(float("nan")).to_numpy()


def known_codes(path: Path, frame: pl.DataFrame, name: str, categories: Sequence[str]) -> NDArray[np.float64]:
    """`codes` of a column of a file.

    Raises:
        DataError: where the file has numbers and all categories are text, or the other way round: nothing would be known of any.
    """
    found = codes(frame, name, categories)
    if np.isnan(found).all():
        there = _names(frame[name], categories).drop_nulls()
        listed = _names(pl.Series(categories, dtype=pl.String), categories).drop_nulls()
        kinds = [own.str.contains(r"^[+-]?[0-9.]+$") for own in (there, listed)]
        if all(map(len, kinds)) and kinds[0].n_unique() == kinds[1].n_unique() == 1 and kinds[0][0] != kinds[1][0]:
            raise DataError(
                f"{path}: column {name!r} holds {'numbers' if kinds[0][0] else 'text'}, such as {there[0]!r}, and its categories are "
                f"{'numbers' if kinds[1][0] else 'text'}, such as {listed[0]!r} (data.categories)"
            )
    return found


def recoded(queries: Queries, now: Mapping[str, Sequence[str]], then: Mapping[str, Sequence[str]]) -> Queries:
    """The data set with its features of categories as another list of them has their places.

    Args:
        now: the categories of each column, whose places the features are.
        then: those that they become; NaN for one that is not among them. A column that has none here stays as it is.
    """
    moved = [name for name in queries.names if name in now and name in then and list(now[name]) != list(then[name])]
    if not moved:
        return queries
    features = np.array(queries.features)
    for name in moved:
        places = np.append(codes(pl.DataFrame({name: pl.Series(now[name], dtype=pl.String)}), name, then[name]), np.nan)
        column = features[:, queries.names.index(name)]
        column[:] = places[np.where(np.isnan(column), len(places) - 1, column).astype(np.int64)]
    return replace(queries, features=features)


def unknown_categories(column: pl.Series, places: NDArray[np.floating]) -> pl.Series:
    """The values of a column that are no category that is listed, where these `places` are what `codes` found."""
    return _names(column.filter(pl.Series(np.isnan(places)))).drop_nulls()


def told_unknown(path: Path, name: str, unknown: int, rows: int, example: str) -> str:
    """A sentence for a column with values that are no category that is listed."""
    return f"{path.name}: {number_of(unknown, 'row')} of {rows:,} with a {name!r} that is not a known category, such as {example!r}: read as missing"


def id_texts(path: Path, column: pl.Series, before: int = 0) -> pl.Series:
    """Ids as text. Where one value of a column is missing, pandas makes floats of whole numbers: those are what they were, and NaN is none.

    Raises:
        DataError: for bytes that are no UTF-8; `before`: rows of the file before these.
    """
    if column.dtype.is_nested():
        raise DataError(f"{path}: column {column.name!r} holds {column.dtype}: an id must be a text or a number")
    try:
        return pl.select(id_text(pl.lit(column), column.dtype)).to_series().rename(column.name)
    except pl.exceptions.InvalidOperationError:
        raise DataError(f"{path}: column {column.name!r} holds {column.dtype}: an id must be a text or a number") from None
    except pl.exceptions.ComputeError:  # bytes, of some of which polars does not say the row
        row = next(row for row, value in enumerate(column.to_list(), before + 1) if value and not _is_text(value))
        uuids = (
            " (16 bytes per value, as UUIDs are: write them as text)"
            if set(map(len, column.drop_nulls().to_list())) == {16}
            else ""
        )
        raise DataError(f"{path}, row {row}: column {column.name!r} is not UTF-8 text{uuids}") from None


def id_text(column: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """`id_texts` as an expression, of a column of this type."""
    if kind.is_float():
        column = column.cast(pl.Float64 if kind == pl.Float16 else kind).fill_nan(None)  # polars rounds no halves down
        whole = (column == column.floor()) & (column.abs() < 2.0**63)
        return pl.when(whole).then(column.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(column.cast(pl.String))
    if isinstance(kind, pl.Datetime):
        return _short(column.cast(pl.String))
    if kind == pl.Time:
        return _short(column.dt.to_string("%H:%M:%S%.9f"))
    return column.cast(pl.String).str.replace(r"^(-?\d+)\.0+$", "$1") if kind.is_decimal() else column.cast(pl.String)


def _short(moments: Texts) -> Texts:
    """Moments in the digits that they need, a day where there is no time, as `ltr.queries_from` writes it."""
    return moments.str.replace(r"(\.\d*?)0+$", "$1").str.replace(r"\.$", "").str.replace(" 00:00:00$", "")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _names(column: pl.Series, listed: Sequence[str] = ()) -> pl.Series:
    """What categories are called: text without spaces around it, and whole numbers without a point, in text too: pandas writes ``1.0`` where
    a value of the column is missing, and ``True``, where a table of types has true. Null for a missing one."""
    if column.dtype.is_float() or isinstance(column.dtype, pl.Datetime | pl.Time):
        column = pl.select(id_text(pl.lit(column), column.dtype)).to_series().rename(column.name)
    text = column.cast(pl.String).str.strip_chars().str.replace(r"^([+-]?\d+)\.0+$", "$1")
    moments = text.str.contains(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?$")
    text = text.zip_with(~moments.fill_null(False), _short(text))
    if listed and {name.lower() for name in listed} <= {"true", "false"}:
        text = text.str.to_lowercase()
    return text.set(text.is_in([name for name in NO_CATEGORY if name not in listed]), None)


def as_numbers(path: Path, column: pl.Series, rule: str, before: int = 0) -> pl.Series:
    """A column as float64, null where a value is missing; true and false are 1 and 0, in text too.

    Raises:
        DataError: with the rule, for the first value that is no number, or a column of another type.
    """
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = text.set(text.is_in(MISSING), None).cast(pl.Float64, strict=False)
        wrong = (column.is_null() & text.is_not_null() & ~text.is_in(MISSING)).arg_true()
        if (
            len(wrong)
            and (said := text.set(text.is_in(MISSING), None).str.to_lowercase()).drop_nulls().is_in(["true", "false"]).all()
        ):
            return (said == "true").cast(pl.Float64)
        if len(wrong):
            first = text[wrong[0]][:40]
            how = (
                "write it as 1234.5 (decimal point, no thousands separator, currency sign or %): "
                if _PRICE.fullmatch(first)
                else ""
            )
            raise DataError(f"{path}, row {before + wrong[0] + 1}: column {text.name!r} has {first!r}: {how}{rule}")
    elif not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise DataError(f"{path}: column {column.name!r} holds {column.dtype}: {rule}")
    return column.cast(pl.Float64)
