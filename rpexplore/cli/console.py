"""How the command line speaks: one-line errors, exit codes, JSON, text tables, progress, files."""

import json
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Self

import click

from rpexplore.cli.commands import Group
from rpexplore.common.files import check_replaceable, write_whole
from rpexplore.common.processes import Progress, no_progress, take_hangup
from rpexplore.common.text import joined
from rpexplore.errors import RpexploreError

# Exit codes: 0 done; 1 a plan does not hold what it claims; 2 refused or failed; 130 stopped, 143
# and 129 by SIGTERM and SIGHUP; 141 nobody read the output to its end.


PROGRAM = "rpexplore"
_MOST_SHOWN = 1200  # signs of an error
# Controls, but for line ends and tabs, ends of lines that few programs know as such, and what turns
# the direction of reading.
_STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]|\r(?!\n)")
_FEW_VERBS = 3  # that are named beside an option that another verb has
_ONE_STOP = 2.0  # s: signals that follow each other as fast are one
_SIGNAL = 128  # and the number of a signal: a shell's exit code of what that signal has ended
DEBUG = "RPEXPLORE_DEBUG"


class Interrupted(KeyboardInterrupt):
    """A signal that ends programs, which all that heeds Ctrl-C heeds."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def heed_signals() -> None:
    """Let what ends the program from outside, or closes its terminal, stop it as Ctrl-C does.

    `timeout` and service managers signal a program and then its whole group, and people press
    Ctrl-C twice: the second one would interrupt what clears up after the first.
    """
    stopped = float("-inf")

    def interrupt(number: int, _: object) -> None:
        nonlocal stopped
        if monotonic() - stopped > _ONE_STOP:
            stopped = monotonic()
            raise Interrupted(number)

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    take_hangup(interrupt)


class Verbs(Group):
    """The program's verbs; whatever goes wrong in one of them is said in one line.

    A note added to an exception (`add_note`) is said as well.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            notes = getattr(error, "__notes__", ["Nothing was left half-written."])
            stop = click.Abort(" ".join(["Stopped.", *notes]))
            raise stop from error
        except BrokenPipeError:  # whoever reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(141) from None

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        extra |= {"prog_name": PROGRAM, "standalone_mode": False}
        try:
            code = super().main(given, **extra) or 0
        except Exception as error:
            code = 2
            if isinstance(error, click.Abort):
                code = _SIGNAL + getattr(error.__cause__, "number", signal.SIGINT)
            notes = " ".join(getattr(error, "__notes__", []))
            # What was read from records is for the screen: JSON may go on into a file or a log.
            is_told = False
            if "--json" in given:
                with suppress(RpexploreError, OSError):  # of standard output
                    say_json({"error": one_line(f"{message_of(error)} {notes}")})
                    is_told = True
            if not is_told:
                shown = message_of(error)
                if isinstance(error, RpexploreError) and error.on_screen() != shown:
                    # Standard error may go on into a file or a log, too.
                    hint = "(Run it in a terminal to see what was found.)"
                    shown = error.on_screen() if on_a_terminal() else f"{shown} {hint}"
                text = one_line(f"{'error: ' if code == 2 else ''}{shown} {notes}")
                if len(text) > _MOST_SHOWN:  # values can have any length, and fill a screen
                    text = f"{text[: _MOST_SHOWN // 2]} … {text[-300:]}"
                with suppress(OSError):  # the terminal may have been closed
                    click.echo(text, err=True)
        sys.exit(code)


def message_of(error: Any) -> str:
    """What to say of an error; holds nothing that was read from records."""
    if isinstance(error, RpexploreError):
        return str(error)
    if isinstance(error, click.Abort):
        return str(error) or "Stopped. Nothing was left half-written."
    if isinstance(error, click.ClickException):  # wrong usage
        context = getattr(error, "ctx", None)
        command = context.command_path if context else PROGRAM
        if isinstance(error, click.NoSuchOption) and (verbs := _verbs_with(error)):
            return (
                f"{command} has no option {error.option_name!r}, but {joined(verbs)} "
                f"{'has' if len(verbs) == 1 else 'have'} it; see {command} --help."
            )
        return f"{error.format_message().rstrip('.')}; see {command} --help."
    if os.environ.get(DEBUG) == "1":
        traceback.print_exception(error)
    if isinstance(error, OSError) and error.strerror:
        return (
            f"{error.strerror}: {error.filename or 'no file named'}; check the path and the disk."
        )
    if isinstance(error, MemoryError):
        return "There is not enough memory; plan fewer or smaller tables."
    # The text of an unexpected error could hold anything, so only its kind and line are said.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"
    return f"This is a bug in {PROGRAM} ({where}); please report it. {DEBUG}=1 shows more."


# ---- text


def _verbs_with(error: click.NoSuchOption) -> list[str]:
    """The other verbs that have an option, if they are few."""
    group = error.ctx.parent.command if error.ctx and error.ctx.parent else None
    commands = group.commands.items() if isinstance(group, click.Group) else ()
    verbs = [
        f"{PROGRAM} {name}"
        for name, command in commands
        if any(error.option_name in parameter.opts for parameter in command.params)
    ]
    return verbs if len(verbs) <= _FEW_VERBS else []


def open_closed_streams() -> None:
    """Open what a cron job or a daemon closed of standard input and output, onto nothing.

    A file that is opened later would take the number of a closed one, and what is printed with it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def without_steering(text: str) -> str:
    """The text without signs that steer a terminal, or turn the direction of reading.

    Texts of others, such as a condition, could hide by them what is shown before it is approved.
    """
    return _STEERING.sub("�", text)


def say(text: str = "") -> None:
    """Print to standard output; what its encoding lacks becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    _print(without_steering(text).encode(encoding, "replace").decode(encoding))


def say_privately(sentences: Iterable[str]) -> None:
    """Print what depends on records, if errors go to a screen: never into a file or a pipe."""
    if on_a_terminal():
        for sentence in sentences:
            text = without_steering(sentence)
            click.echo(text.encode("utf-8", "replace").decode(), err=True)


def say_help_alone() -> None:
    """Print the help of the group of commands that is run, unless one of its commands follows."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        say(context.get_help())


def say_json(content: Any) -> None:
    """Print one JSON object, in plain ASCII, which survives every terminal and pipe."""
    _print(json.dumps(content, allow_nan=False))


def _print(text: str) -> None:
    """Write a text to standard output, which may be a file on a full disk."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RpexploreError(
            f"What is printed cannot be written to standard output ({error.strerror}); what was "
            "done before stays done, so look at it before you run this again."
        ) from None


def say_result(as_json: bool, facts: Mapping[str, Any], text: str) -> None:
    """Print what a verb has done: as one JSON object, or as text."""
    if as_json:
        say_json(facts)
    else:
        say(text)


def one_line(text: str) -> str:
    """The text without line breaks or anything else that could steer a terminal."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))


def text_table(columns: Mapping[str, Sequence[str]], alignment: str | None = None) -> str:
    """Columns under their names.

    alignment: < or > for each column; else the first stands left and the others right
    """
    alignment = alignment or "<" + ">" * (len(columns) - 1)
    texts = [[one_line(text) for text in (name, *column)] for name, column in columns.items()]
    widths = [max(map(len, column)) for column in texts]
    padded = [
        [f"{text:{side}{width}}" for text in (column[0], "-" * width, *column[1:])]
        for column, side, width in zip(texts, alignment, widths, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


# ---- files


def refuse_existing(path: Path, force: bool) -> None:
    """Raise `RpexploreError` if writing to `path` would overwrite a file, or cannot succeed."""
    if not path.parent.is_dir():
        remedy = "name another" if path.parent.exists() else "make it first"
        raise RpexploreError(f"There is no folder {str(path.parent)!r}; {remedy}.")
    if path.is_dir():
        raise RpexploreError(f"{str(path)!r} is a folder; name a file in it.")
    try:
        check_replaceable(path)
    except OSError as error:
        raise RpexploreError(
            f"{str(path)!r} cannot be written ({error.strerror}); name another file."
        ) from None
    if path.exists() and not force:
        raise RpexploreError(
            f"{str(path)!r} exists already; choose another name, or overwrite it with --force."
        )


def write_new(path: Path, content: str | bytes, force: bool) -> None:
    """Write a file whole; what is there is kept unless `force`."""
    refuse_existing(path, force)
    try:
        write_whole(path, content)
    except OSError as error:
        raise RpexploreError(
            f"{str(path)!r} cannot be written ({error.strerror}); check the folder and the disk."
        ) from None


# ---- people


def interactive() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty()


def on_a_terminal() -> bool:
    """Whether errors go to a screen."""
    return sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Whether the answer is yes. Asked on standard error, so that output can go into a file."""
    click.echo(f"{question} [y/N] ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """Shows on a terminal that work goes on; yields a function that shows what, and which share.

    Until that is called, only the time that passes is shown. A pipe or file gets nothing.
    """
    if not on_a_terminal():
        yield no_progress
        return
    with ProgressLine(doing) as line:
        yield line.update


# ---- The line of a terminal that shows that work goes on.


_PAUSE = 0.2  # seconds from one drawing to the next


class ProgressLine:
    """What is done, which share of it, and for how long; a thread draws it anew until the end.

    As a context manager: it is wiped out afterwards.
    """

    def __init__(self, doing: str) -> None:
        self._doing, self._share = doing, None
        self._begun = monotonic()
        self._screen = sys.stderr
        self._ended = Event()
        self._drawing = Thread(target=self._draw_until_ended, daemon=True)

    def __enter__(self) -> Self:
        self._drawing.start()
        return self

    def update(self, doing: str, share: float) -> None:
        self._doing, self._share = doing, share

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._drawing.join()

    def _draw_until_ended(self) -> None:
        drawn = 0  # signs on the line
        with suppress(OSError, ValueError):  # the terminal may have been closed
            while not self._ended.wait(_PAUSE):
                text = self._text()
                self._write(f"\r{text:{drawn}}")
                drawn = len(text)
            self._write(f"\r{'':{drawn}}\r")

    def _text(self) -> str:
        minutes, seconds = divmod(int(monotonic() - self._begun), 60)
        share = "" if self._share is None else f" {self._share:.0%}"
        end = f"{share} {minutes}:{seconds:02}"
        # The last column stays empty: a full line would go on to the next one.
        room = shutil.get_terminal_size().columns - 1 - len(end)
        return self._doing[: max(room, 0)] + end

    def _write(self, text: str) -> None:
        self._screen.write(text)
        self._screen.flush()
