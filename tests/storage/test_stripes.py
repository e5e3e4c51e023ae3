"""Stripe settings of the site's parallel file system reach the record."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from burstlab.storage.interface import NoOptions
from burstlab.storage.pfs import PfsStorage

LFS = """\
#!/bin/sh
# `lfs getstripe -d DIRECTORY` of Lustre 2.14
[ "$1 $2" = "getstripe -d" ] && [ -d "$3" ] || exit 1
echo "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1"
"""


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PfsStorage:
    """On a directory that is said to be Lustre's, with a program that answers as Lustre's does."""
    (tmp_path / "lfs").write_text(LFS)
    (tmp_path / "lfs").chmod(0o755)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    pfs = SimpleNamespace(work=tmp_path, describe=lambda: {"emulated": False, "type": "lustre"})
    context: Any = SimpleNamespace(pfs=pfs)
    return PfsStorage(NoOptions(), context)


def test_stripes_of_lustre_are_told(storage: PfsStorage) -> None:
    expected = {"pattern": "raid0", "chunk_size": "1048576", "targets": "4"}
    assert storage.describe() == {"emulated": False, "type": "lustre", "stripes": expected}


def test_a_tool_that_fails_tells_none(storage: PfsStorage, tmp_path: Path) -> None:
    (tmp_path / "data").rmdir()
    assert storage.describe()["stripes"] == {}
