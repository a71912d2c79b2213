"""The folder of a cell: names in one place, records read as they were written."""

from dataclasses import replace

import pytest

from tasks.records import Cell, CellResult, DataError, Fold
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
    write_pairs,
    write_record,
)

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
