"""The schemas for editors are those of the models, and every shipped file names its own."""

from pathlib import Path

import pytest

from burstlab import cli
from burstlab.config.experiment import load_experiment
from burstlab.config.load import load_yaml
from burstlab.config.site import Site

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(ROOT.glob("config/experiments/*.yaml")) + sorted(ROOT.glob("config/sites/*.yaml"))


def test_schemas_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["schema", "--check"]) == 0


def test_an_outdated_schema_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["schema"]) == 0
    (tmp_path / "config/schema/site.json").write_text("{}")
    assert cli.main(["schema", "--check"]) == 120
    assert capsys.readouterr().err == (
        "burstlab schema: config/schema/site.json is outdated: burstlab schema writes it anew\n"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_shipped_file_is_valid_and_names_its_schema(path: Path) -> None:
    kind = path.parent.name.removesuffix("s")
    first = path.read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../schema/{kind}.json"
    if kind == "experiment":
        load_experiment(path.stem, ROOT)
    else:
        load_yaml(path, Site)
