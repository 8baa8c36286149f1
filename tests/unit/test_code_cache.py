"""The kernel's compiled code: numba keeps it, never longer than its source, and where nobody else can change it."""

from __future__ import annotations

import ast
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import icestats

KERNEL = Path("read", "kernel", "kernel.py")
GATHER = """
import numpy as np
from icestats.read.kernel.kernel import gather_bytes
out = np.zeros(5, np.uint8)
gather_bytes(np.arange(10, dtype=np.uint8), np.array([7, 0, 2]), np.array([2, -1, 3]), out)
print(out.tolist(), sum(gather_bytes.stats.cache_hits.values()))
"""
FIRST_IMPORTS = """
import threading
from importlib.machinery import SourceFileLoader

import numpy.typing

part, late = threading.Event(), threading.Event()
first = threading.Thread(target=__import__, args=("icestats.read.kernel",))
other = threading.Thread(target=__import__, args=("icestats.read.kernel.kernel",))

def execute(loader, module):
    if module.__name__ == "numba.core.decorators":
        part.set()
        late.wait(3)
        late.set()
    if threading.current_thread() is other and module.__name__ == "numba.extending" and not late.is_set():
        print("took a part of the numba that another thread is importing")
        late.set()
    execute_module(loader, module)

execute_module, SourceFileLoader.exec_module = SourceFileLoader.exec_module, execute
first.start()
part.wait()
other.start()
first.join()
other.join()
"""
FIRST_CALLS = """
import threading
import numpy as np
from icestats.read.kernel.kernel import gather_bytes
start, found = threading.Barrier(8), []
def call():
    out = np.zeros(5, np.uint8)
    start.wait()
    gather_bytes(np.arange(10, dtype=np.uint8), np.array([7, 0, 2]), np.array([2, -1, 3]), out)
    found.append(out.tolist())
threads = [threading.Thread(target=call) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found == 8 * [[7, 8, 2, 3, 4]], len(gather_bytes.signatures))
"""
PLAIN = {".py", ".typed", ".java", ".toml"}
COMPILED, LOADED = "[7, 8, 2, 3, 4] 0\n", "[7, 8, 2, 3, 4] 1\n"


def start(package: Path, code: str = GATHER, **environment: str) -> subprocess.Popen[str]:
    """Start a process that uses a copy of icestats, and says how often it has found compiled code."""
    own = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package.parent / "cache")}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(
        command, env=os.environ | own | environment, cwd=package.parent, stdout=subprocess.PIPE, text=True
    )


def run(package: Path, code: str = GATHER, **environment: str) -> str:
    return start(package, code, **environment).communicate()[0]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of icestats that nothing has been compiled of."""
    copy = tmp_path_factory.mktemp("source") / "icestats"
    return shutil.copytree(Path(icestats.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def compiled(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy whose one function has been compiled by two processes at a time."""
    copy = shutil.copytree(source, tmp_path_factory.mktemp("compiled") / "icestats")
    processes = [start(copy) for _ in range(2)]
    assert {process.communicate()[0] for process in processes} <= {COMPILED, LOADED}
    return copy


@pytest.fixture
def package(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "package" / "icestats")


def kept(package: Path) -> Path:
    return package / KERNEL.parent / "__pycache__"


def plant(folder: Path) -> Path:
    """Put a file into a folder of compiled code that makes another file when it is read; return that."""
    made = folder.parent / "made"

    class Planted:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (made,)

    (index,) = folder.rglob("kernel.gather_bytes*.nbi")
    index.write_bytes(pickle.dumps(Planted()))
    return made


def test_many_threads_may_call_first(package: Path):
    assert run(package, FIRST_CALLS) == "True 1\n"


def test_compiled_code_is_kept_beside_its_source(package: Path) -> None:
    """Also by processes that compile at the same time; the next one finds it, and adds nothing."""
    before = sorted(kept(package).iterdir())
    assert run(package) == LOADED
    assert sorted(kept(package).iterdir()) == before


def test_code_that_is_compiled_leaves_what_is_printed_as_it_is(source: Path, tmp_path: Path) -> None:
    """colorama, which numba starts to color its errors, would end it with an escape sequence."""
    pytest.importorskip("colorama")
    code = GATHER + "import colorama.initialise as colorama\nprint(colorama.atexit_done)"
    assert run(source, code, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == COMPILED + "False\n"


def test_code_is_compiled_anew_when_a_function_that_it_calls_has_changed(package: Path) -> None:
    text = (package / KERNEL).read_text()
    line = "out[at + i] = data[start + i]\n"
    assert line in text
    (package / KERNEL).write_text(text.replace(line, line.replace("start + i", "start - i")))
    assert run(package) == "[7, 6, 2, 1, 0] 0\n"


def test_what_the_kernel_compiles_comes_from_no_other_file() -> None:
    """numba compiles it anew when this one file has changed."""
    tree = ast.parse((Path(icestats.__file__).parent / KERNEL).read_text())
    imported = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("icestats")} == {"icestats.read.kernel.kept_code"}


def test_what_is_planted_would_be_run(package: Path) -> None:
    """Were it trusted, as numba trusts it: what the next tests rest on."""
    made = plant(kept(package))
    run(package)
    assert made.exists()


@pytest.mark.parametrize("name", ["__pycache__", "__pycache__/kernel.gather_bytes*.nbi"])
def test_code_that_others_can_change_is_not_read(package: Path, name: str) -> None:
    """Neither in a folder that they can write to, nor in such a file."""
    made = plant(kept(package))
    (changed,) = (package / KERNEL.parent).glob(name)
    changed.chmod(0o777)
    assert run(package) == COMPILED
    assert not made.exists()


def test_a_folder_of_the_users_choice_must_be_closed_to_others(source: Path, tmp_path: Path) -> None:
    """So must be the folders that it is in."""
    folder = tmp_path / "open" / "kept"
    assert run(source, NUMBA_CACHE_DIR=str(folder)) == COMPILED
    assert run(source, NUMBA_CACHE_DIR=str(folder)) == LOADED
    assert next(folder.iterdir()).stat().st_mode & 0o777 == 0o700
    made = plant(folder)
    for changed in (folder.parent, next(folder.iterdir())):
        before = changed.stat().st_mode
        changed.chmod(0o777)
        assert run(source, NUMBA_CACHE_DIR=str(folder)) == COMPILED
        changed.chmod(before)
    assert not made.exists()


def test_compiled_code_below_the_current_folder_is_not_read(source: Path, tmp_path: Path) -> None:
    """There numba looks where XDG_CACHE_HOME is empty and `__pycache__` closed; the folder may be a table's."""
    copy = shutil.copytree(source, tmp_path / "icestats", ignore=shutil.ignore_patterns("__pycache__"))
    kept(copy).write_text("no folder")
    for _ in range(2):
        assert run(copy, XDG_CACHE_HOME="") == COMPILED
        assert run(copy, NUMBA_CACHE_DIR="kept") == COMPILED


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="root alone gives files away")
def test_a_folder_that_another_user_lets_a_path_lead_to_stays_open(source: Path, tmp_path: Path) -> None:
    """The user's own too, and an empty one."""
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    assert run(source, NUMBA_CACHE_DIR=str(theirs)) == COMPILED
    (folder,) = theirs.iterdir()
    shutil.rmtree(folder)
    mine.mkdir()
    mine.chmod(0o755)
    folder.symlink_to(mine)
    for path in (theirs, folder):
        os.lchown(path, 65534, 65534)
    assert run(source, NUMBA_CACHE_DIR=str(theirs)) == COMPILED
    assert (mine.stat().st_mode & 0o777, list(mine.iterdir())) == (0o755, [])


def test_whoever_can_change_the_source_may_change_the_code(package: Path) -> None:
    """As where a group looks after the packages of a machine."""
    kept(package).chmod(0o777)
    kept(package).parent.chmod(0o777)
    assert run(package) == LOADED


def test_where_nothing_can_be_kept_a_process_compiles_for_itself(source: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(source, tmp_path / "icestats", ignore=shutil.ignore_patterns("__pycache__"))
    kept(copy).write_text("no folder")
    file = tmp_path / "file"
    file.write_text("no folder")
    for _ in range(2):
        assert run(copy, NUMBA_CACHE_DIR=str(file), XDG_CACHE_HOME=str(file)) == COMPILED


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_compiled_code_that_is_cut_short_is_compiled_anew_and_kept(package: Path, kind: str, share: float) -> None:
    """As a machine leaves it that loses its power."""
    (file,) = kept(package).glob(f"kernel.gather_bytes*.{kind}")
    os.truncate(file, int(file.stat().st_size * share))
    assert [run(package) for _ in range(2)] == [COMPILED, LOADED]


def test_where_the_disk_is_full_a_process_compiles_for_itself(source: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(source, tmp_path / "icestats")
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))\n"
    assert run(copy, full + GATHER) == COMPILED
    assert not list(kept(copy).glob("*.nb*"))


def test_a_configuration_of_numba_in_the_current_folder_is_not_followed(package: Path, tmp_path: Path) -> None:
    """That may be a table's, of a stranger: it would say which folder's compiled code is unpickled, and run."""
    pytest.importorskip("yaml")
    (package.parent / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'theirs'}\n")
    command = [sys.executable, "-c", GATHER]
    own = {"PYTHONPATH": str(package.parent)}
    done = subprocess.run(command, env=os.environ | own, cwd=package.parent, capture_output=True, text=True)
    assert "CallError: " in done.stderr
    assert "in the current folder: if it is yours, give its settings as variables NUMBA_" in done.stderr
    assert not (tmp_path / "theirs").exists()


def test_executors_are_sent_what_only_the_user_can_have_compiled(package: Path, tmp_path: Path) -> None:
    pack = "import sys, pathlib; from icestats.spark import shipping; shipping.write_package(pathlib.Path(sys.argv[1]))"
    sent = []
    for mode in (0o755, 0o777):
        kept(package).chmod(mode)
        command = [sys.executable, "-c", pack, str(tmp_path / "sent.zip")]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": str(package.parent)}, cwd=package.parent, check=True)
        with zipfile.ZipFile(tmp_path / "sent.zip") as archive:
            sent.append({Path(name).suffix for name in archive.namelist()})
    assert sent == [{*PLAIN, ".nbi", ".nbc"}, PLAIN]


def test_threads_that_need_numba_first_wait_for_each_other() -> None:
    """Python lets a second thread import a part of a package that is half imported; no manifest could be read then."""
    done = subprocess.run([sys.executable, "-c", FIRST_IMPORTS], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_first_look_at_a_table_imports_no_numba(small_table) -> None:
    """To import it takes longer than the picture; only manifests need it."""
    code = (
        "import sys, icestats\n"
        "table = icestats.load(sys.argv[1])\n"
        "table._repr_html_()\n"
        "print(table.manifest_files().num_rows > 0, 'numba' in sys.modules)\n"
        "table.files()\n"
        "print('numba' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, small_table.metadata_location]
    assert subprocess.check_output(command, text=True).split() == ["True", "False", "True"]


def test_a_numba_that_cannot_be_imported_is_said_in_one_line(small_table, tmp_path) -> None:
    """As one that fits no NumPy that is there, or finds no memory."""
    broken = tmp_path / "numba"
    broken.mkdir()
    broken.joinpath("__init__.py").write_text("raise ImportError('Numba needs NumPy 2.3 or less')")
    location = small_table.metadata_location.removeprefix("file://")
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, "-m", "icestats", "columns", location],
        env={**os.environ, "PYTHONPATH": paths, "ICESTATS_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "Numba needs NumPy 2.3 or less" in done.stderr


def test_a_numba_that_is_to_compile_nothing_is_said_in_one_line(small_table) -> None:
    """As some set it to debug functions of their own: the attributes of compiled ones are not there."""
    code = (
        "import sys, icestats\n"
        "try:\n"
        "    icestats.load(sys.argv[1]).columns()\n"
        "except icestats.CallError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, small_table.metadata_location],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "ICESTATS_CACHE": "off"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, "")
    assert "NUMBA_DISABLE_JIT" in done.stdout
