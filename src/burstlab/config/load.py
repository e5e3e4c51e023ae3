"""YAML files into models; whatever is wrong with one is told in one line."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from burstlab.errors import ConfigurationError


class Document(BaseModel):
    """Base of all configuration: no unknown key, no silent conversion, unchanging once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise wrong(f"{_shown(data)}: a mapping is wanted, of {', '.join(cls.model_fields)}")
        for key in data:
            if key not in cls.model_fields:
                raise wrong(f"unknown key{allowed(key, cls.model_fields)}", at=key)
        return data


Model = TypeVar("Model", bound=BaseModel)


def load_yaml(path: Path, model: type[Model], context: object = None) -> Model:
    """The file as an instance of ``model``, whose validators are given ``context``.

    Raises ConfigurationError: one line with the file, the place in it, the value, what is allowed.
    """
    where = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ConfigurationError(f"{where}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{where}: not UTF-8 at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        said = " ".join(f"{error.problem}".split())
        raise ConfigurationError(f"{where}{line}: not valid YAML: {said}") from error
    except yaml.reader.ReaderError as error:
        raise ConfigurationError(f"{where}: not valid YAML: {error.reason}") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"{where}: a mapping of keys to values is wanted")
    return validate(data, model, str(where), context)


def validate(
    data: Mapping[str, Any], model: type[Model], where: str, context: object = None
) -> Model:
    """``data`` as an instance of ``model``. Raises ConfigurationError beginning with ``where``."""
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        details = error.errors(include_url=False)
        more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
        raise ConfigurationError(f"{where}: {_line(details[0], data)}{more}") from error


def wrong(problem: str, *, at: str = "") -> PydanticCustomError:
    """An error for validators to raise: what is wrong, at which key of the model."""
    return PydanticCustomError("wrong", "{problem}", {"problem": problem, "at": at})


def allowed(name: str, names: Iterable[str]) -> str:
    """The end of an error line: the name that was meant, if one is near, and all there are."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 1)
    guess = f", did you mean {near[0]!r}?" if near else ""
    return f"{guess} (allowed: {', '.join(names) or 'none'})"


def _line(detail: ErrorDetails, data: object) -> str:
    """One error as ``key.key: problem``, with the value where it is not the problem's own."""
    place, value = _keys(detail["loc"], data), detail["input"]
    context = detail.get("ctx", {})
    if detail["type"].startswith("union_tag"):
        key = context["discriminator"].strip("'")
        place, value = [*place, key], context.get("tag")
    if detail["type"] == "wrong":
        place += [context["at"]] if context["at"] else []
        problem = context["problem"]
    elif detail["type"] in ("missing", "union_tag_not_found"):
        problem = "is missing"
    elif detail["type"] == "union_tag_invalid":
        problem = f"{_shown(value)}: {' or '.join(context['expected_tags'].split(', '))} is wanted"
    else:
        said = detail["msg"].removeprefix("Input should be ")
        problem = f"{_shown(value)}: {said} is wanted"
    return f"{'.'.join(str(part) for part in place)}: {problem}"


def _keys(location: Iterable[int | str], data: object) -> list[int | str]:
    """The keys in the document: pydantic names among them which model of a union it took."""
    keys = []
    for part in location:
        if isinstance(data, Mapping) and part not in data and part in data.values():
            continue
        keys.append(part)
        try:
            data = data[part]  # type: ignore[index]
        except (LookupError, TypeError):
            data = None
    return keys


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """The safe loader, which also refuses a key given twice: YAML itself keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not text: quote it", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping
