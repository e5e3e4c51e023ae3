"""Is the output in BURSTLAB_MOUNT sorted, and all of it there? Tells it in one line; exit status
1 if it is not.

TeraValidate itself returns 0 on misordered output and only writes down what it found. Its checksum,
the sum of the CRC-32 of all rows, must be the one that TeraGen counted while it wrote them.
"""

import json
import os
import sys
from pathlib import Path

from parameters import ROW_BYTES


class WrongOrder(Exception):
    """What is wrong with the output, in one line."""


def judge(mount: Path, facts: dict[str, str]) -> str:
    """What was found right, in a few words. Raises WrongOrder."""
    report = mount / "validated" / "part-r-00000"
    rows = [line.split("\t", 1) for line in report.read_text().splitlines()]
    errors = [what for kind, *what in rows if kind == "error"]
    if errors:
        raise WrongOrder(f"TeraValidate found {len(errors)} errors, first {''.join(errors[0])}")
    found = dict(row for row in rows if len(row) == 2).get("checksum")
    if found != facts["checksum"]:
        raise WrongOrder(
            f"rows were changed: their checksum is {found}, TeraGen's was {facts['checksum']}"
        )
    size = sum(path.stat().st_size for path in (mount / "sorted").glob("part-r-*"))
    if size != int(facts["rows"]) * ROW_BYTES:
        raise WrongOrder(f"{size} bytes are sorted, of {facts['rows']} rows of {ROW_BYTES} bytes")
    return f"{facts['rows']} rows in order, checksum {found}"


def main() -> int:
    """The check's exit status."""
    facts = json.loads(Path(os.environ["BURSTLAB_CELL_DIR"], "facts.json").read_text())
    try:
        print(judge(Path(os.environ["BURSTLAB_MOUNT"]), facts))
    except (WrongOrder, OSError) as error:
        print(f"output wrong: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
