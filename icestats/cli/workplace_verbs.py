"""Verbs that set up a place to work: the demo warehouse, a notebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from icestats.cli.output import write_json
from icestats.cli.verb_options import text_or_json
from icestats.errors import UnsupportedError


@click.command()
@text_or_json
def demo(output_format: str) -> None:
    """Build the demo warehouse (once), and compute and commit statistics for its tables."""
    from icestats.cli.demo_walk import walk_demo

    walks = walk_demo(lambda line: click.echo(line, err=True))
    if output_format == "json":
        write_json([walk.to_json() for walk in walks], None)
    else:
        click.echo("\n\n".join(walk.to_text() for walk in walks))


@click.command()
@click.argument("source", default="demo.events")
def lab(source: str) -> None:
    """Open JupyterLab on a notebook about SOURCE; create it in this folder if there is none."""
    from icestats.cli.notebook import write_notebook

    jupyter = shutil.which("jupyter", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if jupyter is None:
        raise UnsupportedError("JupyterLab is not installed: pip install 'icestats[lab]'")
    notebook = write_notebook(source, Path.cwd())
    sys.exit(subprocess.call([jupyter, "lab", str(notebook)]))  # noqa: S603 - the interpreter's own jupyter


COMMANDS = (demo, lab)
