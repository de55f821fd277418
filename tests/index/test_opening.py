"""The index file: made private and whole, versioned, and told apart from everything else."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from relay.index import opening, schema
from relay.index.faults import IndexForeign, IndexUnavailable, IndexUnwritable, is_damage, translated


@pytest.fixture
def path(tmp_path: Path) -> str:
    return opening.database_path(str(tmp_path / "state"))


def test_reading_and_writing_agree_on_the_version() -> None:
    assert opening.SCHEMA_VERSION == schema.SCHEMA_VERSION


def test_a_new_index_is_private_and_has_an_identity_of_its_own(path: str) -> None:
    index = opening.open_for_writing(path)
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert opening.header(index.connection) == (opening.APPLICATION_ID, opening.SCHEMA_VERSION)
    first = index.incarnation
    index.close()
    again = opening.open_for_writing(path)
    assert again.incarnation == first and not again.rebuilt
    again.close()
    opening.remove(path)
    new = opening.open_for_writing(path)
    assert new.incarnation != first
    new.close()


def test_an_open_folder_is_closed_to_others(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    os.chmod(os.path.dirname(path), 0o755)
    Path(path).touch(0o644)
    opening.open_for_writing(path).close()
    assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_reading_cannot_write(path: str) -> None:
    opening.open_for_writing(path).close()
    reader = opening.open_for_reading(path)
    with pytest.raises(sqlite3.OperationalError):
        reader.execute("DELETE FROM meta")
    reader.close()


def test_reading_needs_no_peewee(path: str) -> None:
    import subprocess
    import sys

    opening.open_for_writing(path).close()
    code = (
        "import sys\nfrom relay.index import opening\nopening.open_for_reading(sys.argv[1]).close()\n"
        "assert 'peewee' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)


def test_an_index_without_its_identity_is_rebuilt(path: str) -> None:
    index = opening.open_for_writing(path)
    index.connection.execute("DELETE FROM meta")
    index.close()
    again = opening.open_for_writing(path)
    assert again.rebuilt and os.path.exists(path + opening.DAMAGED)
    again.close()


def test_a_missing_table_is_damage(path: str) -> None:
    index = opening.open_for_writing(path)
    index.connection.execute("DROP TABLE sessions")
    index.close()
    again = opening.open_for_writing(path)
    assert again.rebuilt
    again.close()


def test_what_is_not_there_cannot_be_read(path: str) -> None:
    with pytest.raises(IndexUnavailable) as caught:
        opening.open_for_reading(path)
    assert caught.value.reason == "not-ready"


def test_another_schema_is_foreign(path: str) -> None:
    index = opening.open_for_writing(path)
    index.connection.execute("PRAGMA user_version = 2")
    index.close()
    with pytest.raises(IndexForeign):
        opening.open_for_reading(path)


def test_a_state_folder_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(IndexUnwritable):
        opening.open_for_writing(opening.database_path(str(tmp_path / "state")))


def test_a_replaced_file_is_noticed(path: str) -> None:
    index = opening.open_for_writing(path)
    assert not index.replaced()
    os.rename(path, path + ".old")
    assert index.replaced()
    Path(path).touch()
    assert index.replaced()
    index.close()


def test_this_python_has_fts5() -> None:
    assert opening.fts5_available()


@pytest.mark.parametrize("message", ["database disk image is malformed", "file is not a database"])
def test_damage_is_told_from_other_errors(message: str) -> None:
    assert is_damage(sqlite3.DatabaseError(message)) and not is_damage(sqlite3.OperationalError("database is locked"))
    assert "full" in str(translated(sqlite3.OperationalError("database or disk is full")))
    assert isinstance(translated(sqlite3.OperationalError("unheard of")), IndexUnwritable)
