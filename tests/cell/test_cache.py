"""The page cache of more files than one thread is given."""

from pathlib import Path

import pytest

from burstlab import cache


@pytest.mark.requires("probe")
def test_every_one_of_many_files_is_warmed_and_looked_at(tmp_path: Path) -> None:
    for number in range(3 * cache.FEW + 1):
        (tmp_path / str(number)).write_bytes(b"x" * 8192)
    cache.bring([tmp_path], "cold")
    found = cache.bring([tmp_path], "warm")
    assert found["resident_bytes"] == found["bytes"] == (3 * cache.FEW + 1) * 8192


def test_a_file_among_many_that_can_t_be_opened_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        if path.name == "40":
            raise PermissionError(13, "no", str(path))

    for number in range(2 * cache.FEW):
        (tmp_path / str(number)).write_bytes(b"x")
    monkeypatch.setattr(cache, "_evict", refuse)
    with pytest.raises(PermissionError, match="40"):
        cache.bring([tmp_path], "cold")
