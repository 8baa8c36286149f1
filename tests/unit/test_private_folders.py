"""Caches are for one user: made so, not used where another can write, and nothing of another's is removed."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

import icestats
from icestats.read.private_folder import is_private, make_private
from icestats.read.rollups import rollup_cache
from tests.cached_rollups import differing, entries, manifest_paths, read, read_all, spoil

NOBODY = 65534
is_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="root alone gives files away")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_cache_is_made_for_the_user_alone(small_table, load, folder):
    """Whatever the process's mask leaves open: what is in it are values of tables."""
    read_all(load())
    before = os.umask(0)
    try:
        read(load())
    finally:
        os.umask(before)
    (entry,) = entries(folder)
    assert [mode(path) for path in (folder.parent, folder, entry.parent, entry)] == [0o700, 0o700, 0o700, 0o600]


def test_a_cache_that_others_could_read_is_closed(load, small_table, folder):
    read(load())
    folder.chmod(0o755)
    read(load())
    assert mode(folder) == 0o700


@pytest.mark.parametrize("which", ["above", "folder", "of the table", "entry"])
def test_a_cache_that_others_can_write_to_is_not_used(load, small_table, folder, which):
    """It stays as it is: what is in it could be anybody's."""
    read(load())
    (entry,) = entries(folder)
    opened = {"above": folder.parent, "folder": folder, "of the table": entry.parent, "entry": entry}[which]
    opened.chmod(0o777)
    before = entry.read_bytes()
    assert differing(read(load()), read_all(load())) == []
    # An entry that was read would hide that the manifests are gone.
    spoil(manifest_paths(load()))
    with pytest.raises(icestats.MetadataError):
        read(load())
    assert entries(folder) == [entry]
    assert (entry.read_bytes(), mode(opened)) == (before, 0o777)


@is_root
@pytest.mark.parametrize(("members", "is_used"), [([], True), (["root"], True), (["root", "nobody"], False)])
def test_a_cache_that_members_of_the_users_own_group_can_write_to_is_not_used(members, is_used, tmp_path, monkeypatch):
    """The number of the group is the user's, but an administrator may put others into it."""
    grp = pytest.importorskip("grp")
    monkeypatch.setattr(grp, "getgrgid", lambda number: grp.struct_group(("root", "x", number, members)))
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o775)
    assert make_private(folder, "*") == is_used


@is_root
@pytest.mark.parametrize("which", ["folder", "of the table", "entry"])
def test_a_cache_of_another_user_is_neither_used_nor_cleared(load, small_table, folder, monkeypatch, which):
    """Not even by root, who may delete what he likes."""
    read(load())
    (entry,) = entries(folder)
    theirs = entry.with_name("theirs.rollup")
    theirs.write_bytes(b"damaged, and theirs")
    given = {"folder": folder, "of the table": entry.parent, "entry": theirs}[which]
    os.chown(given, NOBODY, NOBODY)
    monkeypatch.setattr(rollup_cache, "MOST_ENTRIES_A_TABLE", 0)
    monkeypatch.setattr(rollup_cache, "MOST_CACHE_BYTES", 0)
    assert differing(read(load()), read_all(load())) == []
    assert theirs.read_bytes() == b"damaged, and theirs"
    assert entries(folder) == sorted([entry, theirs])


@is_root
def test_two_users_of_one_folder_have_caches_of_their_own(tmp_path):
    """As in /tmp, where each can make folders and remove none of the others'."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    tmp_path.chmod(0o755)
    theirs = shared / "theirs"
    theirs.mkdir(0o700)
    os.chown(theirs, NOBODY, NOBODY)
    assert not make_private(theirs, "*")
    assert make_private(shared / "mine", "*")
    assert is_private(shared / "mine", "*")
    assert not make_private(theirs / "below", "*")


@is_root
def test_a_link_in_another_users_folder_is_not_followed(tmp_path):
    """Wherever it leads now: they may let it lead elsewhere once it was looked at."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir(0o700)
    (theirs / "link").symlink_to(mine)
    (tmp_path / "first").symlink_to("theirs/link")
    (tmp_path / "good").symlink_to("mine")
    (tmp_path / "better").symlink_to(tmp_path / "good" / ".." / "good")
    assert all(make_private(tmp_path / name, "*") for name in ("first", "good", "better"))
    os.chown(theirs, NOBODY, NOBODY)
    assert not make_private(tmp_path / "first", "*")
    assert not make_private(tmp_path / "first" / "below", "*")
    assert make_private(tmp_path / "better" / "below", "*")


@pytest.mark.skipif(os.name != "posix", reason="Windows has other links")
def test_links_in_a_circle_are_no_cache(tmp_path):
    (tmp_path / "one").symlink_to("two/../one")
    (tmp_path / "two").symlink_to("one")
    assert not make_private(tmp_path / "one", "*")
    assert not make_private(tmp_path / "two" / "below", "*")


def give_by_list(path: Path, permissions: int) -> None:
    """Give another user what he may do here, as `setfacl -m u:nobody:rwx` does."""
    everyone = 0xFFFFFFFF
    listed = [
        (1, 7, everyone),
        (2, permissions, NOBODY),
        (4, 0, everyone),
        (16, permissions, everyone),
        (32, 0, everyone),
    ]
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in listed)
    try:
        os.setxattr(path, "system.posix_acl_access", content)
    except OSError:
        pytest.skip("this file system has no access lists")


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Linux alone has them so")
def test_a_cache_that_others_can_write_to_by_an_access_list_is_not_used(tmp_path):
    above = tmp_path / "above"
    folder = above / "cache"
    folder.mkdir(parents=True)
    os.chown(above, -1, os.getuid())
    assert make_private(folder, "*")
    give_by_list(above, 5)
    assert make_private(folder, "*")
    give_by_list(above, 7)
    assert not make_private(folder, "*")
