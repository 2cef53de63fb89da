"""The codes of all findings as JSON on stdout."""

import json
import sys

from pastwise.logs.findings import CATALOGUE

if __name__ == "__main__":
    json.dump(list(CATALOGUE), sys.stdout)
