"""Lets a Delta table forget files that are not there any more, as docs/operations.md shows it, and prints which."""

import json
import sys

from deltalake import DeltaTable

json.dump(DeltaTable(sys.argv[1]).repair(), sys.stdout)
