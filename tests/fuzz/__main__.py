"""Fuzz the readers: `python -m tests.fuzz [--seconds N] [TARGET ...]`."""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

CORPUS = Path(".fuzz")
BROKEN = CORPUS / "broken"


def main() -> int:
    from tests.fuzz.fuzz_targets import TARGETS, attempt

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; by default all")
    parser.add_argument("--seconds", type=int, default=60, help="how long each is fuzzed (60)")
    parser.add_argument("--replay", type=Path, help="read this input alone; its name begins with that of a target")
    chosen = parser.parse_args()
    if chosen.replay:
        attempt(_target_of(chosen.replay), chosen.replay.read_bytes())
        return 0
    if unknown := set(chosen.targets) - set(TARGETS):
        parser.error(f"no target {min(unknown)!r}, expected some of {', '.join(TARGETS)}")
    failed = [name for name in chosen.targets or TARGETS if not run(name, chosen.seconds)]
    print(f"{len(failed)} of {len(chosen.targets or TARGETS)} targets broke{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def run(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own; say what came of it, and whether all went well."""
    folder = seed(name)
    BROKEN.mkdir(parents=True, exist_ok=True)
    before = len(list(folder.iterdir()))
    code = f"from tests.fuzz.__main__ import fuzz; fuzz({name!r})"
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=65536", "-verbosity=0"]
    command = [
        sys.executable,
        "-c",
        code,
        *limits,
        "-print_final_stats=1",
        f"-artifact_prefix={BROKEN / name}-",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    executed = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    corpus = f"{before:,} -> {len(list(folder.iterdir())):,} inputs"
    print(f"{name}: {int(executed[0]) if executed else 0:,} runs, {corpus}, exit code {done.returncode}", flush=True)
    if done.returncode:
        print(*done.stderr.splitlines()[-25:], sep="\n")
    return done.returncode == 0


def seed(name: str) -> Path:
    """Put the whole inputs of a target into its corpus, under names that libFuzzer gives too."""
    from tests.fuzz.fuzz_targets import TARGETS

    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    for data in TARGETS[name].inputs():
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    return folder


def write_words(name: str) -> Path:
    """Write the words of a target's inputs where libFuzzer finds them: none where inputs are no text."""
    from tests.fuzz.fuzz_targets import TARGETS

    texts = [data.decode() for data in TARGETS[name].inputs()] if TARGETS[name].is_text else []
    words = {word for text in texts for word in re.findall(r"[\w-]+|[^\w\s\"\\]", text)}
    file = CORPUS / f"{name}.words"
    file.write_text("".join(f'"{word}"\n' for word in sorted(words)))
    return file


def fuzz(name: str) -> None:
    """Fuzz a target for ever, in this process: libFuzzer takes it over, and ends it."""
    import atheris

    with atheris.instrument_imports(include=["icestats", "tests"]):
        from tests.fuzz.fuzz_targets import TARGETS, attempt
    for data in TARGETS[name].inputs():
        TARGETS[name].read(data)
    one: Callable[[bytes], None] = lambda data: attempt(name, data) and None  # noqa: E731
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


def _target_of(path: Path) -> str:
    from tests.fuzz.fuzz_targets import TARGETS

    return next(name for name in TARGETS if path.name.startswith(name))


if __name__ == "__main__":
    sys.exit(main())
