"""What is wrong with a YAML file is told in one line that names file and place."""

from pathlib import Path

import pytest
from pydantic import Field

from burstlab.config.load import Document, load_yaml
from burstlab.errors import ConfigurationError


class Inner(Document):
    colour: str = "red"
    count: int = Field(1, ge=1)


class Outer(Document):
    name: str
    inner: Inner = Inner(count=1)
    several: list[Inner] = Field(default=[])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: [1", ":2: not valid YAML: did not find expected ',' or ']'"),
        (
            "name: a\n\tinner: {}",
            ":2: not valid YAML: found a tab character that violates indentation",
        ),
        ("name: a\nname: b", ":2: not valid YAML: key 'name' is given twice"),
        ("name: a\ninner: {count: 1, count: 2}", ":2: not valid YAML: key 'count' is given twice"),
        ("name: a\n1: b", ":2: not valid YAML: key 1 is not text: quote it"),
        ("- name", ": a mapping of keys to values is wanted"),
        ("", ": a mapping of keys to values is wanted"),
        ("name: \x07", ": not valid YAML: control characters are not allowed"),
        ("inner: {}", ": name: is missing"),
        ("name: 3", ": name: 3: a valid string is wanted"),
        ("name: a\ninner: {count: '3'}", ": inner.count: '3': a valid integer is wanted"),
        ("name: a\ninner: {count: true}", ": inner.count: True: a valid integer is wanted"),
        ("name: a\ninner: {count: 0}", ": inner.count: 0: greater than or equal to 1 is wanted"),
        ("name: a\ninner: red", ": inner: 'red': a mapping is wanted, of colour, count"),
        (
            "name: a\nseveral: [{}, {color: red}]",
            ": several.1.color: unknown key, did you mean 'colour'? (allowed: colour, count)",
        ),
        (
            "name: a\nzzz: 1",
            ": zzz: unknown key (allowed: name, inner, several)",
        ),
        ("name: 1\ninner: {count: 0}", ": name: 1: a valid string is wanted (and 1 more)"),
    ],
)
def test_one_line_names_file_place_and_value(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_yaml(path, Outer)
    assert str(caught.value) == f"{path}{line}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"it\.yaml: No such file or directory$"):
        load_yaml(tmp_path / "it.yaml", Outer)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ConfigurationError, match=r"it\.yaml: not UTF-8 at byte 6$"):
        load_yaml(tmp_path / "it.yaml", Outer)


def test_merge_keys_are_no_keys_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text("name: a\ninner: &it {colour: blue}\nseveral: [{<<: *it, count: 2}]")
    assert load_yaml(path, Outer).several == [Inner(colour="blue", count=2)]


def test_what_was_read_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text("name: a")
    with pytest.raises(ValueError, match="frozen"):
        load_yaml(path, Outer).name = "b"
