"""What the Snakemake rules ask of figures without importing what draws them, which takes 2 s."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def digest(*patterns: str) -> str:
    """Of the content of the checkout's files that match: a rule's parameter, so that drawings are
    made again when what draws them has changed."""
    files = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def short_title(figure: str) -> str:
    """What a figure shows, in few words: the bold ones its caption begins with."""
    return (ROOT / "report" / f"{figure}.rst").read_text().split("**")[1]
