from __future__ import annotations

from pathlib import Path

import pytest

from icestats.errors import SparkUnavailableError
from icestats.spark.java import find_java, parse_java_version


def make_java(home: Path, version: str, first_line: str = 'openjdk version "{version}" 2025-01-01') -> Path:
    """An executable that says its version as Java does; no Java is behind it."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{first_line.format(version=version)}' >&2\n", encoding="utf-8")
    executable.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("text", "major"),
    [("1.8.0_292", 8), ("11.0.2", 11), ("17.0.15", 17), ("21", 21), ("25", 25), ("25-ea", 25), ("17.0.15+6-LTS", 17)],
)
def test_versions_of_java_are_read(text, major):
    assert parse_java_version(text) == major


@pytest.mark.parametrize("text", ["", "openjdk", "-17"])
def test_what_is_no_version_is_refused(text):
    with pytest.raises(ValueError, match=r"expected one such as 17\.0\.15"):
        parse_java_version(text)


def test_java_home_comes_before_path(tmp_path):
    environ = {
        "JAVA_HOME": str(make_java(tmp_path / "home", "17.0.15")),
        "PATH": str(make_java(tmp_path / "path", "21.0.2") / "bin"),
    }
    java = find_java(environ, ())
    assert (java.home, java.version, java.major) == (tmp_path / "home", "17.0.15", 17)


def test_path_comes_before_the_usual_places(tmp_path):
    environ = {"PATH": str(make_java(tmp_path / "path", "21") / "bin")}
    make_java(tmp_path / "usual" / "one", "17.0.1")
    assert find_java(environ, (f"{tmp_path}/usual/*",)).version == "21"


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "25", "25-ea"])
def test_a_java_home_that_does_not_fit_does_not_hide_a_good_java(tmp_path, version):
    environ = {
        "JAVA_HOME": str(make_java(tmp_path / "wrong", version)),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "PATH": "",
    }
    make_java(tmp_path / "conda" / "lib" / "jvm", "17.0.9")
    assert find_java(environ, ()).home == tmp_path / "conda" / "lib" / "jvm"


def test_a_link_on_the_path_leads_to_the_home_behind_it(tmp_path):
    make_java(tmp_path / "jvm", "17.0.9")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "jvm" / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}, ()).home == tmp_path / "jvm"


def test_a_java_that_fails_is_passed_over(tmp_path):
    broken = make_java(tmp_path / "broken", "", first_line="Unable to locate a Java Runtime.")
    environ = {"JAVA_HOME": str(broken), "PATH": str(make_java(tmp_path / "path", "17.0.9") / "bin")}
    assert find_java(environ, ()).home == tmp_path / "path"


def test_the_message_without_java_says_what_is_needed_and_how_to_get_it(tmp_path):
    with pytest.raises(SparkUnavailableError) as caught:
        find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")}, ())
    message = str(caught.value)
    assert message.startswith("no Java found: Spark needs Java 17 to 22")
    assert "\n" not in message
    for remedy in ("apt install openjdk-17-jre-headless", "brew install openjdk@17", "conda-forge openjdk=17"):
        assert remedy in message


def test_the_message_names_each_java_that_does_not_fit(tmp_path):
    environ = {
        "JAVA_HOME": str(make_java(tmp_path / "old", "1.8.0_292")),
        "PATH": str(make_java(tmp_path / "new", "25-ea") / "bin"),
    }
    with pytest.raises(SparkUnavailableError) as caught:
        find_java(environ, ())
    message = str(caught.value)
    assert f"only Java 1.8.0_292 in {tmp_path / 'old'}, Java 25-ea in {tmp_path / 'new'} was found" in message
    assert "\n" not in message
