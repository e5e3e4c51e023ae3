"""Records made for tests: written with burstlab.record, in temporary directories only."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from burstlab import record
from burstlab.record import CellKey, Metric, Record, Span

COMMANDS = {"mProjectPP": 10, "mDiff": 17, "mFitplane": 17, "mBackground": 10, "mAdd": 1}
PFS = {"emulated": True, "type": "fuse", "metadata_latency_ms": 1.0, "bandwidth_mb_s": 200.0}

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes one record below tmp_path, with its operations, and returns the record's path."""

    def write(
        storage: str = "pfs",
        nodes: int = 1,
        repeat: int = 1,
        *,
        staging: str = "none",
        workflow_time: float | None = 10.0,
        operations: list[tuple[str, float]] | None = None,
        **fields: Any,
    ) -> Path:
        status = fields.pop("status", "ok")
        cell = CellKey(
            id=f"{storage}-{nodes}-{repeat}",
            experiment="trial",
            scale="demo",
            workload="montage",
            storage=storage,
            staging=staging,
            dataset=fields.pop("dataset_name", "2mass-test"),
            nodes=nodes,
            parameters=fields.pop("parameters", {}),
            repeat=repeat,
        )
        made = Record(
            status=status,
            reason=fields.pop("reason", ""),
            exit_status=0,
            cell=cell,
            started="2026-11-21T03:00:00+0000",
        )
        parameters = ",".join(f"{k}={v}" for k, v in cell.parameters.items()) or "default"
        directory = (
            tmp_path
            / "results/trial/demo/montage"
            / f"{storage}-{staging}/n{nodes}/{parameters}/r{repeat}"
        )
        directory.mkdir(parents=True)
        if status == "ok":
            made = made._replace(**_ran(storage, repeat, workflow_time))
            rows = operations if operations is not None else commands(repeat)
            _write_operations(directory / "operations.csv", rows)
            made = made._replace(operations="operations.csv")
        return record.write(made._replace(**fields), directory)

    return write


def commands(seed: int) -> list[tuple[str, float]]:
    """Operation and elapsed time [s] of a small Montage run."""
    rng = random.Random(seed)
    return [
        (name, round(rng.lognormvariate(-2, 0.5), 3))
        for name, number in COMMANDS.items()
        for _ in range(number)
    ]


def _ran(storage: str, repeat: int, workflow_time: float | None) -> dict[str, Any]:
    names = ("provision", "stage_in", "cache", "run", "check", "drain", "teardown")
    metrics = [Metric("workflow_time", workflow_time, "s", "lower")] if workflow_time else []
    return {
        "spans": tuple(Span(name, 100.0 + i, 0.5 + repeat / 10) for i, name in enumerate(names)),
        "metrics": tuple(metrics),
        "workload_facts": {"engine": "rake 13.0.6"},
        "storage": {"name": storage, "mount": "/m", "emulated": storage == "pfs"},
        "pfs": PFS,
        "dataset": {"name": "2mass-test", "source": "synthetic", "files": 12, "bytes": 1_572_864},
        "cache": {"state": "cold", "method": "posix_fadvise(DONTNEED) per file"},
        "hosts": ("node01",),
        "provenance": {
            "burstlab": "0.1.0",
            "git_sha": "0123456789abcdef",
            "git_dirty": False,
            "kernel": "6.1.0",
            "hostname": "laptop",
            "cores": 2,
            "memory_bytes": 8 * 2**30,
            "cpu_model": "A CPU",
            "load_before": 0.1,
            "load_after": 1.0,
        },
    }


def _write_operations(path: Path, rows: list[tuple[str, float]]) -> None:
    lines = ["operation,start_s,elapsed_s,host,status,argument"]
    lines += [f"{name},{100 + i},{s},node01,0,x" for i, (name, s) in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
