"""The folder of a cell: names in one place, records read as they were written."""

from dataclasses import replace

import pytest

import ltr
from tasks.records import Cell, CellResult, Columns, DataError, Fold
from tasks.store.cells import (
    CellFolder,
    CurveFile,
    ImportanceFile,
    PairsEntry,
    PositionBiasFile,
    cell_key,
    columns_file,
    read_columns,
    read_curve,
    read_importance,
    read_pairs,
    read_position_bias,
    write_columns,
    write_pairs,
    write_record,
)
from tests.conftest import make_queries

CELL = Cell("x", "net", 0, {}, {"kind": "lambdarank"}, Fold("a", "b", "c"), ("map",), {"ties": "expected"})


def test_records_are_read_as_they_were_written(workplace):
    folder = CellFolder.of("k")
    assert (read_curve(folder.curve), read_importance(folder.importance), read_pairs(folder.pairs)) == (None, None, [])
    curve, importance = CurveFile("map", [1, 2], [0.1, None], [None, 0.2]), ImportanceFile(["f1"], [1.5], [2])
    pairs = [PairsEntry("ndcg", "ranknet_weighted", [1.0, 0.0], [[[1, 2]]], 3, 4, [1, None], 3, 10)]
    write_record(folder.curve, curve)
    write_record(folder.importance, importance)
    assert read_position_bias(folder.position_bias) is None
    biases = PositionBiasFile({"t_plus": [1.0, 0.5], "t_minus": [1.0, 0.9]})
    write_record(folder.position_bias, biases)
    assert read_position_bias(folder.position_bias) == biases
    write_pairs(folder.pairs, pairs)
    assert (read_curve(folder.curve), read_importance(folder.importance), read_pairs(folder.pairs)) == (curve, importance, pairs)
    assert not folder.is_finished
    result = CellResult("k", "d", {"test_map": 0.5}, 1.5, ("a", "b"))
    write_record(folder.result_file, result)
    assert folder.is_finished
    assert folder.result() == result


def test_every_name_of_a_folder_is_another():
    folder = CellFolder.of("k")
    kept = [folder.model, folder.values, folder.curve, folder.importance, folder.position_bias, folder.pairs, folder.result_file]
    kept += [folder.certificates("0" * 64), folder.inspection("0" * 64), folder.trace("0" * 64)]
    assert len(set(kept)) == len(kept)
    assert {path.parent for path in kept} == {folder.path}


def test_the_key_is_of_what_decides_and_not_of_names(workplace):
    key = cell_key(CELL)
    assert len(key) == 32
    assert cell_key(replace(CELL, label="y", ranker="other", fold=4, point={"a": 1})) == key
    others = [
        replace(CELL, section={"kind": "lambdamart"}), replace(CELL, data=Fold("a", "b", "d")), replace(CELL, measures=("err",)),
        replace(CELL, conventions={"ties": "stable"}),
    ]  # fmt: skip
    assert len({key, *map(cell_key, others)}) == 5


@pytest.mark.parametrize("written", ['{"query": 5}', "[]", "{", '{"ignore": "a"}'])
def test_columns_of_another_form_are_refused(tmp_path, written):
    columns_file(tmp_path).write_text(written)
    with pytest.raises(DataError, match=r"columns\.json: .*; the file was changed or is damaged"):
        read_columns(tmp_path)


def test_what_a_model_remembers_is_its_own_and_as_it_was_written(tmp_path):
    """Two categories that change places are other scores for the same rows."""
    for name, seed in (("a", 0), ("b", 1)):
        ltr.save(ltr.LeastSquares().fit(make_queries(10, seed=seed)), tmp_path / name)
        write_columns(tmp_path / name, Columns(query="qid", categories={"site": ("a", "b")}))
    assert read_columns(tmp_path / "a") == Columns(query="qid", categories={"site": ("a", "b")})
    (tmp_path / "a").rename(tmp_path / "moved")
    assert read_columns(tmp_path / "moved").query == "qid"
    text = columns_file(tmp_path / "moved").read_text()
    for written in (text.replace('"a"', '"c"'), text.replace('"qid"', '"query"'), columns_file(tmp_path / "b").read_text()):
        columns_file(tmp_path / "moved").write_text(written)
        with pytest.raises(
            DataError, match=r"columns\.json: does not match this model's digest: the file was changed or belongs to another model"
        ):
            read_columns(tmp_path / "moved")
