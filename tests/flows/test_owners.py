"""Who owns what a run leaves behind; what becomes of it is seen in test_kill."""

import os
import shutil
import subprocess
import sys

import pytest

from flows.owners import gone, has_ended, is_copied, is_elsewhere, is_gone, is_this_process, owner, signature
from tests.conftest import own_environment

HOLDS = "import sys; from flows.owners import owner; print(owner(), flush=True); sys.stdin.read()"


def test_an_owner_is_gone_when_its_process_has_ended_however(workplace):
    """By its lock and not by its number, which means another process in another container or after a restart."""
    mine = owner()
    other = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    theirs = other.stdout.readline().strip()
    assert owner() == mine == os.environ["LAMBDAFLOW_OWNER"]
    assert theirs != mine
    assert not is_gone(mine)
    assert not is_gone(theirs)
    assert gone() == []
    other.kill()
    other.wait()
    assert is_gone(theirs)
    assert [file.name for file in gone()] == [theirs]
    assert not is_gone(mine)


def test_a_folder_whose_state_is_another_users_is_told_as_such(workplace, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", ".lambdaflow/x.new")

    monkeypatch.setattr("flows.owners._hold", refuse)
    monkeypatch.setattr("flows.owners._names", {})
    with pytest.raises(PermissionError, match=r"\.lambdaflow: you have no permission to read or write this; .*umask 002"):
        owner()


def test_a_live_owner_in_another_process_namespace_is_not_gone(workplace):
    """There its number is that of nobody, or of somebody else."""
    within = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", sys.executable, "-c"]
    mine = owner()
    asked = f"from flows.owners import is_gone; print(is_gone({mine!r}))"
    done = subprocess.run([*within, asked], env=own_environment(), capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        return
    assert done.stdout.strip() == "False", done.stderr


def test_what_cannot_be_known_is_not_gone(workplace):
    assert not is_gone("elsewhere-1-00000000")
    assert not is_gone(f"elsewhere/{os.getpid()}/1")
    assert not is_gone("")
    assert not is_gone("../owners")


def test_an_owner_of_this_folder_has_ended_where_its_file_was_cleared_away(workplace, monkeypatch):
    """While another store was in use, for instance; that of a copied folder is another's."""
    other = subprocess.run([sys.executable, "-c", HOLDS], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    theirs = other.stdout.strip()
    mine = owner()
    assert mine.rpartition("@")[2] == theirs.rpartition("@")[2]
    assert has_ended(theirs)
    (gone_file,) = gone()
    gone_file.unlink()
    assert has_ended(theirs)
    assert not is_elsewhere(theirs)
    assert not is_gone(theirs)
    assert not has_ended(mine)
    assert not is_elsewhere(mine)
    assert not is_copied(mine)
    shutil.copytree(workplace / ".lambdaflow", workplace / "copy" / ".lambdaflow")
    monkeypatch.chdir(workplace / "copy")
    assert is_gone(mine), "its lock is not seen from here, where the file is another"
    assert is_copied(mine), "and it may be at work where the file is from"
    assert owner().rpartition("@")[2] != mine.rpartition("@")[2]
    assert is_elsewhere(theirs)
    assert not has_ended(theirs)


def test_owners_of_earlier_releases_are_told_by_their_number(workplace):
    import platform

    assert is_gone(f"{platform.node()}/{os.getpid()}/1")


def test_a_process_knows_itself_where_its_folder_was_deleted(tmp_path, monkeypatch):
    """Its end stops the processes that it started; looking for its name in the folder ended in a traceback."""
    folder = tmp_path / "a"
    folder.mkdir()
    monkeypatch.chdir(folder)
    name = signature()
    folder.rmdir()
    assert is_this_process(name)
    assert not is_this_process(f"{name}0")
    monkeypatch.chdir(tmp_path)
    assert not is_this_process(name), "there it has another name"
