"""``python -m pastwise``: the command line."""

from pastwise.cli.main import run

if __name__ == "__main__":
    run()
