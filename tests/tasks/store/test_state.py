"""What a process that has ended left half-written goes; what others may still be writing stays."""

import errno
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.records import DataError, Finding, Fold
from tasks.store import state
from tasks.store.state import require_output
from tests.conftest import printed_by_each, require_free


def test_only_what_a_process_that_has_ended_left_is_cleared(workplace):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    names = {
        f"a.{platform.node()}-{ended.stdout.strip()}-00000000.partial": False,
        f"b.{platform.node()}-{os.getpid()}-00000000.partial": True,
        f"c.elsewhere-{ended.stdout.strip()}-00000000.partial": True,
        "d.0123abcd.partial": True,
    }
    folder = workplace / state.root() / "cells"
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / f"importance.json.{platform.node()}-{ended.stdout.strip()}-11111111.partial").touch()
    state.clear_partials()
    assert {name: (folder / name).exists() for name in names} == names


def test_several_may_clear_at_once(workplace):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    for k in range(300):
        folder = workplace / state.root() / "cells" / f"{k}.{platform.node()}-{ended.stdout.strip()}-{k:08x}.partial"
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "model.json").touch()
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(state.clear_partials) for _ in range(8)]:
            done.result()
    assert not list((workplace / state.root() / "cells").iterdir())


def test_a_file_in_the_place_of_a_folder_stays(workplace):
    (workplace / "a").write_text("mine")
    with pytest.raises(OSError, match="a"), state.made_whole(workplace / "a", replace=True) as partial:
        (partial / "all").touch()
    assert [(path.name, path.read_text()) for path in workplace.iterdir()] == [("a", "mine")]


def test_a_folder_stays_where_nothing_can_take_its_place(workplace, monkeypatch):
    with state.made_whole(workplace / "a") as partial:
        (partial / "all").write_text("first")
    rename, calls = os.rename, []

    def full(old, new):
        calls.append(old)
        if len(calls) == 2:
            raise OSError("no room")
        rename(old, new)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="no room"), state.made_whole(workplace / "a", replace=True) as partial:
        (partial / "all").write_text("second")
    assert [(path.name, (path / "all").read_text()) for path in workplace.iterdir()] == [("a", "first")]


def test_a_folder_that_is_replaced_is_hardly_ever_missing(workplace):
    target, missing, ended = workplace / "a", [], threading.Event()
    with state.made_whole(target) as partial:
        (partial / "all").write_text("0" * 100_000)

    def look():
        while not ended.is_set():
            missing.append(not (target / "all").is_file())

    def slowly(folder, **options):
        shutil.rmtree(folder, **options)
        time.sleep(0.2)

    watcher = threading.Thread(target=look)
    watcher.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(state, "shutil", SimpleNamespace(rmtree=slowly))
        for k in range(5):
            with state.made_whole(target, replace=True) as partial:
                (partial / "all").write_text(str(k))
    ended.set()
    watcher.join()
    assert (target / "all").read_text() == "4"
    assert sum(missing) < 0.05 * len(missing), "it is moved away, and deleted then"
    assert [path.name for path in workplace.iterdir()] == ["a"]


def test_a_file_that_is_not_finished_is_none(workplace):
    try:
        with state.written_whole(workplace / "a.txt") as partial:
            partial.write_text("half")
            raise KeyError
    except KeyError:
        pass
    assert list(workplace.iterdir()) == []


@pytest.mark.parametrize("moment", [1, 2], ids=["when it comes to its place", "when the older one comes back"])
def test_of_two_that_replace_a_folder_at_once_neither_fails(workplace, monkeypatch, moment):
    """Another one's folder is there whenever this one moves a folder to that place, and never when it looks."""
    folder, moved, is_dir = workplace / "x", [], Path.is_dir
    with state.made_whole(folder) as partial:
        (partial / "a").write_text("older")
    renames = os.rename

    def moves(source, target):
        if target != folder:
            return renames(source, target)
        moved.append(source)
        if len(moved) <= moment:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", str(source))
        return renames(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", moves)
        patch.setattr(Path, "is_dir", lambda path: False if moved and path == folder else is_dir(path))
        with state.made_whole(folder, replace=True) as partial:
            (partial / "a").write_text("newer")
    assert len(moved) == 2
    assert not list(workplace.glob("*.partial"))


def test_folders_are_whole_or_absent(workplace):
    target = workplace / "a" / "b"

    def fail_halfway():
        with state.made_whole(target) as partial:
            (partial / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert not target.exists()
    assert not list(target.parent.iterdir())
    with state.made_whole(target) as partial:
        (partial / "all").write_text("1")
    with state.made_whole(target) as partial:
        (partial / "all").write_text("2")
    assert (target / "all").read_text() == "1"
    with state.made_whole(target, replace=True) as partial:
        (partial / "all").write_text("3")
    assert (target / "all").read_text() == "3"


def test_a_folder_that_is_removed_is_whole_until_it_is_gone(workplace, monkeypatch):
    with state.made_whole(Path("a")) as partial:
        (partial / "x").write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr("tasks.store.state.shutil.rmtree", lambda *_, **__: None)  # the process is killed
        state.remove(Path("a"))
    (left,) = Path().glob("a*")
    assert left.name.endswith(".partial")
    state.remove(Path("a"))


def test_what_was_made_is_remembered_while_its_data_are_there(workplace):
    recipe = {"of": "x", "n": 1}
    noted = state.Noted(("a",), 2, ("a note",), (Fold("a", "a", "a"),), (Finding("note", "log", "fine"),))
    state.remember(recipe, noted)
    assert state.remembered(recipe) is None
    (state.root() / "data" / "a").mkdir(parents=True)
    assert state.remembered({"n": 1, "of": "x"}) == noted
    assert state.remembered({"of": "x", "n": 2}) is None


def test_notes_of_an_earlier_release_are_read(workplace):
    (state.root() / "data" / "a").mkdir(parents=True)
    recipe = {"reader": 2}
    state.write_json(state.root() / "recipes" / f"{state.digest_of(recipe)[:32]}.json", {"data": ["a"], "split_queries": 3})
    assert state.remembered(recipe) == state.Noted(("a",), split_queries=3)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_recipe_is_as_if_it_were_not_there(workplace, text):
    state.remember({"of": 1}, state.Noted(notes=("done",)))
    assert state.remembered({"of": 1}).notes == ("done",)
    (recipe,) = (state.root() / "recipes").iterdir()
    recipe.write_text(text)
    assert state.remembered({"of": 1}) is None
    state.remember({"of": 1}, state.Noted(notes=("again",)))
    assert state.remembered({"of": 1}).notes == ("again",)


def test_a_record_with_a_changed_digit_or_of_another_place_is_none(workplace):
    one, two = (state.root() / "budgets" / f"{name}.json" for name in "ab")
    state.keep_json(one, {"cells": 17, 2.5: [None, float("inf")]})
    assert state.kept_json(one) == {"cells": 17, "2.5": [None, float("inf")]}
    two.write_text(one.read_text())
    assert state.kept_json(two) is None
    one.write_text(one.read_text().replace("17", "18"))
    assert state.kept_json(one) is None
    for word in ("digest", "kept"):
        one.write_text(two.read_text().replace(word, word[:-1] + "x"))
        assert state.kept_json(one) is None, f"without its {word} it passed for one of an earlier release"
    one.write_text('{"cells": 17}')
    assert state.kept_json(one) == {"cells": 17}, "of an earlier release"


def test_swapped_records_of_recipes_are_as_if_they_were_not_there(workplace):
    for k in (1, 2):
        (state.root() / "data" / f"d{k}").mkdir(parents=True)
        state.remember({"of": k}, state.Noted((f"d{k}",)))
    one, two = (state.root() / "recipes").iterdir()
    text = one.read_text()
    one.write_text(two.read_text())
    two.write_text(text)
    assert [state.remembered({"of": k}) for k in (1, 2)] == [None, None]


def test_what_is_written_is_on_the_disk_before_it_gets_its_name(workplace, monkeypatch):
    done = []
    monkeypatch.setattr("os.fsync", lambda opened: done.append(os.readlink(f"/proc/self/fd/{opened}")))
    rename, replace = os.rename, os.replace
    monkeypatch.setattr("os.rename", lambda *names: (done.append("rename"), rename(*names)))
    monkeypatch.setattr("os.replace", lambda *names: (done.append("rename"), replace(*names)))
    state.write_json(workplace / "a.json", {})
    assert [name.endswith(".partial") for name in done] == [True, False, False]
    assert done[1:] == ["rename", str(workplace)]
    done.clear()
    with state.made_whole(workplace / "b") as partial:
        (partial / "one").touch()
    named = done.index("rename")
    assert [name.rpartition("/")[2] for name in done[: named - 1]] == ["one", "seal.json"]
    assert done[named - 1].endswith(".partial")
    assert done[named + 1 :] == [str(workplace)]


def test_a_damaged_folder_is_made_again(workplace):
    target = workplace / "b"
    for text in ("1", "2"):
        with state.made_whole(target) as partial:
            (partial / "all").write_text(text)
        (target / "all").write_text("half of it")
    assert (target / "all").read_text() == "half of it"
    with state.made_whole(target) as partial:
        (partial / "all").write_text("3")
    assert (target / "all").read_text() == "3"


def test_the_store_is_looked_at_byte_by_byte(workplace):
    state.remember({"of": 1}, state.Noted())
    for room in ("data", "cells"):
        with state.made_whole(state.root() / room / "kept") as partial:
            (partial / "all").write_bytes(bytes(100_000))
    (state.root() / "data" / "earlier").mkdir()
    assert state.damaged() == ([], 1)
    with open(state.root() / "cells/kept/all", "r+b") as file:
        file.seek(5000)
        file.write(b"1")
    for place in ("ubi/log", "cells/kept/microscope-1"):
        with state.made_whole(state.root() / place) as partial:
            (partial / "all").write_bytes(bytes(9000))
        assert len(state.damaged()[0]) == 1
        with open(state.root() / place / "all", "r+b") as file:
            file.write(b"1")
        assert [said.split(" has ")[0] for said in state.damaged()[0] if place in said] == [f".lambdaflow/{place}/all"]
        (state.root() / place / "all").write_bytes(bytes(9000))
    certificate = state.root() / "certificates" / "a.json"
    state.keep_json(certificate, {"found": [1], "whole": True})
    assert len(state.damaged()[0]) == 1
    certificate.write_text(certificate.read_text().replace("true", "false"))
    (recipe,) = (state.root() / "recipes").iterdir()
    recipe.write_text("")
    assert state.damaged()[0] == [
        ".lambdaflow/cells/kept/all has other bytes than were written; remove .lambdaflow/cells/kept, the next run makes it again",
        f"{certificate} cannot be read; the next run makes it again",
        f"{recipe} cannot be read; the next run makes it again",
    ]


def test_what_another_container_is_writing_stays(workplace, monkeypatch):
    """There its number means another process, or none."""
    monkeypatch.setattr(state, "_is_alive", lambda process: False)
    with state.made_whole(state.root() / "data" / "a") as partial:
        (partial / "all").touch()
        state.clear_partials()
    assert (state.root() / "data" / "a" / "all").is_file()


def test_what_is_read_is_not_written_over(workplace):
    (workplace / "model").mkdir()
    (workplace / "model" / "model.json").write_text("{}")
    (workplace / "a.csv").write_text("x")
    (workplace / "b.csv").symlink_to("a.csv")
    for output, said in (
        ("a.csv", "a.csv: this is b.csv itself"),
        ("model/model.json", "model/model.json: this is a part of model, which would be damaged; name another file"),
        ("none/x", "none/x: there is no folder none"),
        ("model", "model: this is a folder; name a file in it"),
    ):
        with pytest.raises(DataError, match=said):
            require_output(Path(output), Path("b.csv"), Path("model"))
    require_output(Path("model/weights.txt"), Path("b.csv"), Path("model"))


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(workplace, there):
    (workplace / "disk").mkdir()
    if there:
        (workplace / "disk" / "scores.csv").write_text("old")
    (workplace / "latest.csv").symlink_to("disk/scores.csv")
    with state.written_whole(Path("latest.csv")) as partial:
        partial.write_text("new")
    assert (workplace / "latest.csv").is_symlink()
    assert [(path.name, path.read_text()) for path in (workplace / "disk").iterdir()] == [("scores.csv", "new")]


def test_a_folder_that_may_not_be_written_to_is_told(workplace, monkeypatch):
    monkeypatch.setattr("tasks.store.state.os.access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"^o\.csv: the folder \. cannot be written to$"):
        require_output(Path("o.csv"))


def test_a_pipe_or_a_device_is_no_file_to_replace(workplace):
    os.mkfifo("pipe")
    with pytest.raises(DataError, match=r"^pipe: this is a pipe or a device"):
        require_output(Path("pipe"))
    os.symlink("/dev/null", "nothing")
    with pytest.raises(DataError, match=r"^nothing: this is a pipe or a device"):
        require_output(Path("nothing"))


def test_a_file_keeps_its_permissions(workplace):
    Path("private").write_text("before")
    Path("private").chmod(0o600)
    with state.written_whole(Path("private")) as partial:
        partial.write_text("now")
    assert (Path("private").read_text(), Path("private").stat().st_mode & 0o777) == ("now", 0o600)


def test_links_that_lead_nowhere_are_no_outputs(workplace):
    for link, target in (("a", "b"), ("b", "a"), ("away", "nowhere/x.csv"), ("new", "x.csv")):
        Path(link).symlink_to(target)
    with pytest.raises(DataError, match="a: this is a link that leads back to itself"):
        require_output(Path("a"))
    with pytest.raises(DataError, match=r"away: this is a link into .*nowhere, and there is no such folder"):
        require_output(Path("away"))
    require_output(Path("new"))


def test_one_after_another_is_alone_and_no_folder_is_made_of_it(workplace):
    inside, most, together = [0], [0], threading.Barrier(4)

    def work(path):
        together.wait()
        with state.alone(path):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1

    (workplace / "folder.lock").mkdir()
    for path in (workplace, workplace / "one.lock", workplace / "folder.lock"):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, [path] * 4))
    assert most == [1]
    with pytest.raises(FileNotFoundError), state.alone(workplace / "gone"):
        pass
    assert sorted(path.name for path in workplace.iterdir()) == ["folder.lock", "one.lock"]


def test_a_folder_is_free_though_a_process_that_was_forked_meanwhile_has_it_open(workplace, twins):
    with state.alone(workplace):
        pass
    assert len(twins) == 1
    require_free(workplace)


def test_what_is_noted_for_a_recipe_is_made_once(workplace):
    made = []

    def make():
        made.append(1)
        return state.Noted(notes=("made",))

    assert [state.made_once({"a": k}, make).notes for k in (1, 1, 2)] == [("made",)] * 3
    assert len(made) == 2


OWN = """
from dataclasses import dataclass, replace
from typing import ClassVar

from ltr.linear.least_squares import LeastSquares
from ltr.metrics.measure import MEASURES, register
from tasks.config.run_config import register_ranker

SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Own(LeastSquares):
    kind: ClassVar[str] = "own"

    def learn(self, queries, features, watch):
        weights, remarks = super().learn(queries, features, watch)
        return SHARE * weights, remarks


# ranker
# measure
"""


@pytest.mark.parametrize(
    "registers",
    [
        ("register_ranker(Own)", ""),
        ("", 'register(replace(MEASURES["ndcg"], name="own", gain=lambda labels, rules: SHARE * labels))'),
        ("", 'register(replace(MEASURES["ndcg"], name="own", lowest=SHARE))'),
    ],
    ids=["ranker", "measure", "measure of the core's functions"],
)
def test_a_file_of_ones_own_is_a_source_of_results_once_it_registers_something(tmp_path, registers):
    """A ranker that was edited was found as it had been trained before."""
    ask = "print(core_digest())"

    def digests(share, *steps):
        text = OWN.replace("0.5", share).replace("# ranker", registers[0]).replace("# measure", registers[1])
        written = f"import pathlib; pathlib.Path('own.py').write_text({text!r})"
        return "\n".join([written, "import sys; sys.path.insert(0, '.')", "from tasks.store.state import core_digest", *steps])

    edit = "pathlib.Path('own.py').write_text('edited while it runs')"
    scripts = [
        digests("0.5", ask, "import own", ask, edit, ask),
        digests("0.5", "import own", ask),
        digests("0.6", "import own", ask),
    ]
    without, before, meanwhile, again, other = printed_by_each(
        "import tasks.store.state, tasks.config.run_config", scripts, tmp_path
    )
    assert before == meanwhile == again
    assert len({without, before, other}) == 3


def test_threads_that_work_for_runs_of_two_folders_keep_to_their_own(workplace, tmp_path):
    both = threading.Barrier(2, timeout=60)

    def kept(home):
        state.use_folder(str(home))
        both.wait()  # the other one has its folder too by now
        state.remember({"of": "both"}, state.Noted(notes=(home.name,)))
        both.wait()
        return state.root(), state.remembered({"of": "both"}).notes

    homes = [tmp_path / name for name in "ab"]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(kept, homes))
    assert found == [(home / ".lambdaflow", (home.name,)) for home in homes]
    assert Path(".lambdaflow") == state.root()
