"""Declared data sets: what is wrong is told in one line, before anything is made."""

from pathlib import Path

import pytest

from burstlab.dataset.model import Region, load_datasets
from burstlab.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]


def test_the_data_sets_of_this_checkout() -> None:
    datasets = load_datasets(ROOT / "config/datasets.yaml")
    paper = datasets["2mass"]  # Sawada: "2MASS images M31(7x7deg), J band"
    assert (paper.source, paper.band) == ("fetched", "J")
    assert paper.region == Region(
        ra_deg=10.684708, dec_deg=41.268750, width_deg=7.0, height_deg=7.0
    )
    demo = datasets["2mass-demo"]
    assert demo.source == "auto"
    assert demo.synthetic.columns * demo.synthetic.rows == 10


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x: {kind: imagenet2}", r"x\.kind: 'imagenet2': '2mass' or 'imagenet' is wanted"),
        ("x: {}", r"x\.kind: is missing"),
        ("x: {kind: 2mass, sourc: given}", r"x\.sourc: unknown key, did you mean 'source'\?"),
        ("x: {kind: 2mass, source: found}", r"x\.source: 'found': 'auto', 'given', 'fetched' or"),
        ("x: {kind: 2mass, band: V}", r"x\.band: 'V': 'J', 'H' or 'K' is wanted"),
        ("x: {kind: 2mass, source: fetched}", r"x\.region: is missing"),
        ("x: {kind: 2mass, source: synthetic, directory: /d}", r"x\.directory: is for `source: g"),
        ("x: {kind: 2mass, region: {ra_deg: 400}}", r"x\.region\.ra_deg: 400: less than 360"),
        ("x: {kind: 2mass, synthetic: {columns: 2.5}}", r"x\.synthetic\.columns: 2\.5: "),
        ("x: {kind: 2mass, synthetic: {columns: 0}}", r"x\.synthetic\.columns: 0: "),
        ("x: {kind: imagenet, band: J}", r"x\.band: unknown key"),
        ("x: {kind: imagenet, synthetic: {files: 0}}", r"x\.synthetic\.files: 0: "),
        (
            "x: {kind: imagenet, synthetic: {files: 3, classes: 4}}",
            r"x\.synthetic\.files: 3: fewer than the 4 classes",
        ),
        ("../x: {kind: 2mass}", r"'?\.\./x'?"),
        ("[]", "a mapping of keys to values is wanted"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "datasets.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=rf"datasets\.yaml: .*{told}") as caught:
        load_datasets(path)
    assert "\n" not in str(caught.value)
