"""The command line: the verbs of `Table`, one answer on stdout, one line on stderr where something is wrong.

Exit codes: 0 done, 1 an error of the table or the system, 2 a wrong call, 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys

import click

from icestats.answers.text import one_line
from icestats.cli import reading_verbs, statistics_verbs, workplace_verbs
from icestats.errors import CallError, IcestatsError


def run() -> int:
    """Run the command line; return its exit code, or raise KeyboardInterrupt."""
    # Without a handler, Python prints what PyIceberg logs; what went wrong is in the error line.
    logging.getLogger("pyiceberg").addHandler(logging.NullHandler())
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        _complain(error.format_message(), hint=f"; see `{_command_path(error)} --help`")
        code = 2
    except CallError as error:
        _complain(str(error))
        code = 2
    except IcestatsError as error:
        _complain(str(error))
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except Exception as error:
        if os.environ.get("ICESTATS_DEBUG"):
            raise
        _complain(f"{type(error).__name__}: {error}", hint=" (ICESTATS_DEBUG=1 shows where)")
        code = 1
    return code if isinstance(code, int) else 0


def _command_path(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "icestats"


def _complain(message: str, hint: str = "") -> None:
    click.echo(f"icestats: {one_line(message, sys.maxsize).rstrip('.')}{hint}", err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="icestats")
def cli() -> None:
    """See, explain and complete the statistics of Apache Iceberg tables.

    SOURCE is catalog.namespace.table, namespace.table (the default catalog of PyIceberg's configuration), or the
    location of a metadata.json. demo.events and demo.flights are the tables of the embedded demo warehouse.
    """


for _command in (*reading_verbs.COMMANDS, *statistics_verbs.COMMANDS, *workplace_verbs.COMMANDS):
    cli.add_command(_command)
