"""Databases that are copies of a template of this machine."""

import sqlite3

import pytest

from tasks.store.templates import clear_journals, folder, is_as_kept, keep, take, version_of


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def migrated(path, version):
    """A database in the form in which servers keep theirs, with what is written last still in the file beside it."""
    opened = sqlite3.connect(path)
    opened.executescript(f"""pragma journal_mode = wal; create table alembic_version (version_num);
                             insert into alembic_version values ('{version}'); create table runs (name); insert into runs values ('a')""")
    return opened


def test_a_copy_has_all_that_its_template_had_when_it_was_kept(cache):
    opened = migrated(cache / "one.db", "7")
    assert not take("some-1.db", cache / "two.db")
    keep(cache / "one.db", "some-1.db")
    with opened:
        opened.execute("insert into runs values ('b')")
    assert take("some-1.db", cache / "two.db")
    with sqlite3.connect(cache / "two.db") as copy:
        assert copy.execute("select name from runs").fetchall() == [("a",)]
    assert is_as_kept(cache / "two.db", "some-1.db")
    assert [path.name for path in folder().iterdir()] == ["some-1.db"]


def test_what_an_earlier_database_left_is_cleared_away(tmp_path):
    for name in ("a.db-wal", "a.db-shm", "a.db-journal", "b.db-wal", "a.dbx"):
        (tmp_path / name).touch()
    clear_journals(tmp_path / "a.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.dbx", "b.db-wal"]


def test_a_database_of_another_release_is_not_as_kept(cache):
    later = migrated(cache / "one.db", "7")
    migrated(cache / "older.db", "6").close()
    keep(cache / "one.db", "some-1.db")
    later.close()
    assert not is_as_kept(cache / "older.db", "some-1.db")
    assert not is_as_kept(cache / "older.db", "some-2.db")
    assert not is_as_kept(cache / "none.db", "some-1.db")


def test_what_is_no_database_is_no_template(cache):
    folder().mkdir(parents=True)
    (folder() / "some-1.db").write_text("torn")
    assert version_of(folder() / "some-1.db") is None
    assert not take("some-1.db", cache / "two.db")
    assert not (cache / "two.db").exists()


def test_where_the_cache_cannot_be_written_to_nothing_is_kept(cache):
    migrated(cache / "one.db", "7").close()
    (cache / "cache").write_text("a file where the folder would be")
    keep(cache / "one.db", "some-1.db")
    assert not take("some-1.db", cache / "two.db")
