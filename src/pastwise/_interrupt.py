"""Ctrl-C, from the first moment of a program to its last.

Python turns Ctrl-C into a `KeyboardInterrupt`, and that exception may get lost: a library may raise
another one in its place (DuckDB raises a `RuntimeError`), and one that is raised in a finalizer is
printed and dropped. So a program notes that Ctrl-C came; whatever exception ends it then, it was
interrupted.

This module needs the standard library only, because it is loaded before all others.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended: 128 plus the number of the signal."""

_was_interrupted = False


def guard() -> None:
    """From now on, note Ctrl-C. Where the program was started to ignore it, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note_interrupt)
        sys.unraisablehook = _leave_if_lost


def _note_interrupt(number: int, frame: FrameType | None) -> NoReturn:
    global _was_interrupted
    _was_interrupted = True
    raise KeyboardInterrupt


def _leave_if_lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Leave if Ctrl-C came where Python cannot pass an exception on."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        leave("pastwise: interrupted")
    sys.__unraisablehook__(unraisable)


def was_interrupted() -> bool:
    """Whether Ctrl-C came since `guard`."""
    return _was_interrupted


def ignore() -> None:
    """From now on, ignore Ctrl-C: the program is about to end."""
    if signal.getsignal(signal.SIGINT) is _note_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave(message: str = "") -> NoReturn:
    """End the program at once, with exit code 130.

    Python itself would wait for threads. If Ctrl-C came during an import, it would end by a signal
    instead of an exit code.
    """
    ignore()
    with suppress(OSError, ValueError):
        if message:
            print(message, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)
