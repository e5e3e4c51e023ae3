"""The first example of the guide does what it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from burstlab.dataset.images import make_images
from burstlab.dataset.model import SyntheticImages
from tests.requirements import ROOT

GUIDE = ROOT / "docs" / "how-to" / "train-with-lazy-prefetching.md"


@pytest.mark.requires("burstio")
def test_the_first_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_images(tmp_path / "data", SyntheticImages(classes=2, files=40, mean_bytes=4000))
    names = sorted(str(p.relative_to(tmp_path / "data")) for p in tmp_path.rglob("*.JPEG"))
    (tmp_path / "manifest.json").write_text(json.dumps({"entries": [[n, 1, 1, ""] for n in names]}))
    for name, place in (("MANIFEST", "manifest.json"), ("DATA", "data"), ("LOCAL", "local")):
        monkeypatch.setenv(f"BURSTLAB_{name}", str(tmp_path / place))
    found = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found
    seen: list[Any] = []
    exec(found[1].replace("epochs=90", "epochs=2"), {"train": seen.append})
    assert [len(batch) for batch in seen] == [32, 8, 32, 8]
    assert seen[0][0][0].shape == (3, 224, 224)
    assert sorted({int(label) for batch in seen for _, label in batch}) == [0, 1]
