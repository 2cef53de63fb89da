"""The program: ``pastwise`` and ``python -m pastwise``.

It imports the command line only after Ctrl-C is guarded, because that takes most of the time until
a command starts.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from pastwise._interrupt import INTERRUPTED, guard, ignore, leave, was_interrupted

BUG = 70
"""Exit code of a program that cannot even start: EX_SOFTWARE of sysexits.h."""


def run() -> NoReturn:
    """Run the command line. Ctrl-C ends it at any moment, with one line and exit code 130."""
    try:
        guard()
        from pastwise.cli.main import main

        main()
    except SystemExit as leaving:
        ignore()
        if leaving.code == INTERRUPTED:
            leave()
        raise
    except BaseException:
        ignore()
        if was_interrupted():
            leave("pastwise: interrupted")
        import traceback

        traceback.print_exc()
        sys.exit(BUG)


if __name__ == "__main__":
    run()
