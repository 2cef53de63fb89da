"""The types of the service and of the workbench as an OpenAPI document on stdout."""

import json
import sys

from pastwise.service.openapi import openapi_document
from pastwise.workbench.routes import ALL_OPERATIONS, RESULTS

if __name__ == "__main__":
    document = openapi_document(ALL_OPERATIONS, RESULTS)
    document["paths"] = {}  # pages name addresses themselves; they need the types
    json.dump(document, sys.stdout)
