"""Write the JSON schemas of the configuration, by which editors complete and check it."""

import argparse
import json
from pathlib import Path

from pydantic import BaseModel

from burstlab.config.experiment import Experiment
from burstlab.config.site import Site
from burstlab.dataset.model import Datasets
from burstlab.errors import ConfigurationError

DIRECTORY = Path("config/schema")
MODELS: dict[str, type[BaseModel]] = {"experiment": Experiment, "site": Site, "datasets": Datasets}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--check`` writes nothing."""
    parser.add_argument("--check", action="store_true", help="fail where a schema is outdated")


def main(arguments: argparse.Namespace) -> int:
    """Returns 0; with ``--check`` an outdated schema is an error."""
    for name, model in MODELS.items():
        path = DIRECTORY / f"{name}.json"
        text = json.dumps(model.model_json_schema(), indent=1, ensure_ascii=False) + "\n"
        if arguments.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                raise ConfigurationError(f"{path} is outdated: burstlab schema writes it anew")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    return 0
