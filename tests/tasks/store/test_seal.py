"""What was damaged on the disk is noticed, cheaply by blocks or by every byte."""

import json

import pytest

from tasks.store.seal import SEAL, faults, is_whole, write_seal


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kept/model").mkdir(parents=True)
    (tmp_path / "kept/a.npy").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "kept/model/b.json").write_text("{}")
    (tmp_path / "kept/empty").touch()
    write_seal(tmp_path / "kept", "kept")
    return tmp_path / "kept"


def changed(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def test_what_was_not_touched_is_whole(folder):
    (folder / "added later.json").write_text("{}")
    assert is_whole(folder)
    assert faults(folder, fully=True) == []
    assert not is_whole(folder / "absent")


@pytest.mark.parametrize("at", [0, 256 * 4096 - 1])
def test_a_byte_at_either_end_is_noticed(folder, at):
    changed(folder / "a.npy", at)
    assert faults(folder) == [f"{folder / 'a.npy'} has other bytes than were written"]


def test_a_byte_between_the_blocks_is_noticed_where_every_byte_is_read(folder):
    changed(folder / "a.npy", 5000)
    assert is_whole(folder)
    assert faults(folder, fully=True) == [f"{folder / 'a.npy'} has other bytes than were written"]


def test_a_file_that_is_short_or_missing_is_noticed(folder):
    with open(folder / "a.npy", "r+b") as file:
        file.truncate(1000)
    (folder / "model/b.json").unlink()
    assert faults(folder) == [
        f"{folder / 'a.npy'} has 1,000 bytes and was written with 1,048,576",
        f"{folder / 'model/b.json'} is missing",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a.npy": {}}'])
def test_a_damaged_seal_is_damage(folder, text):
    (folder / SEAL).write_text(text)
    assert faults(folder) == [f"{folder / SEAL} cannot be read"]


def test_a_folder_of_an_earlier_release_is_taken_as_it_is(folder):
    (folder / SEAL).unlink()
    changed(folder / "a.npy", 0)
    assert is_whole(folder)


def test_a_folder_of_another_name_is_no_such_folder(folder):
    """As where two were swapped, or a backup was brought to another place."""
    other = folder.rename(folder.with_name("other"))
    assert faults(other) == [f"{other} holds what was written as kept"]


def test_a_seal_of_files_alone_is_read(folder):
    """As it was before the name stood there."""
    seal = json.loads((folder / SEAL).read_text())
    (folder / SEAL).write_text(json.dumps(seal["files"]))
    assert is_whole(folder)
    changed(folder / "a.npy", 0)
    assert not is_whole(folder)
