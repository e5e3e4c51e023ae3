"""The table in docs/reliability.md."""

import re
from collections.abc import Mapping

from tests.faults import driver
from tests.faults.bench import STORAGES
from tests.faults.strikes import FAULTS
from tests.lab.cluster import REPOSITORY

PAGE = REPOSITORY / "docs/reliability.md"
NOT_RUN = "not run"
BEGIN, END = "<!-- fault table: begin -->\n", "<!-- fault table: end -->"


def rows() -> list[str]:
    """Names of the faults, in the order of the table."""
    return [driver.NAME, *(fault.name for fault in FAULTS)]


def written() -> list[list[str]]:
    """The page's rows, cells of text."""
    table = PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def write(told: Mapping[tuple[str, str], str]) -> None:
    """Put what was seen between the marks of the page; what was not struck now stays."""
    seen = {
        (name, storage): text
        for name, *texts in written()
        for storage, text in zip(STORAGES, texts, strict=True)
    }
    seen.update(told)
    struck = {fault.name: fault.storages for fault in FAULTS} | {driver.NAME: STORAGES}
    lines = ["| Fault | " + " | ".join(STORAGES) + " |", "|---" * (len(STORAGES) + 1) + "|"]
    for name in rows():
        texts = [
            seen.get((name, storage), NOT_RUN) if storage in struck[name] else "-"
            for storage in STORAGES
        ]
        lines.append(f"| {name} | " + " | ".join(plain(text) for text in texts) + " |")
    above, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(above + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1])


def plain(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d{4}-\d{6}-[0-9a-f]{6}", "ID", text)
    return " ".join(text.replace("|", "/").split())
