"""An answer that cannot be written to the end leaves the file as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icestats.answers.whole_file import write_whole
from tests.full_disk import files_of_at_most


def test_what_the_disk_does_not_take_leaves_the_earlier_file_and_no_half_one(tmp_path: Path) -> None:
    earlier, new = tmp_path / "earlier.json", tmp_path / "new.json"
    earlier.write_text("[]")
    for path in (earlier, new):
        with files_of_at_most(100), pytest.raises(OSError, match="too large"):
            write_whole(path, [b"x" * 200])
    assert sorted(tmp_path.iterdir()) == [earlier]
    assert earlier.read_text() == "[]"


def test_a_file_that_is_written_again_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_text("earlier")
    path.chmod(0o640)
    write_whole(path, [b"new"])
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_that_somebody_has_put_there_in_the_meantime_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answer"
    path.symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(FileExistsError):
        write_whole(path, [b"new"])
    assert path.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_links_and_pipes_stay_what_they_are(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("earlier")
    link.symlink_to(target)
    write_whole(link, [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, [b"new"])
    assert os.read(reading, 10) == b"new"
    os.close(reading)
