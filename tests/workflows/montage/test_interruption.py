"""Told to stop in the midst of its work, the workload ends all it started, and soon."""

import os
import signal
import time
from pathlib import Path

import pytest

from .running import DEADLINE_S, PLAIN, Workplace, pwrake

pytestmark = pytest.mark.requires("montage")

ENGINES = [
    pytest.param("rake", id="rake"),
    pytest.param("pwrake", id="pwrake", marks=pytest.mark.requires("pwrake")),
]


def marked(mark: str) -> list[str]:
    """Command lines of all processes with this text in their environment."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (proc / "environ").read_bytes():
                found.append((proc / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it ended meanwhile
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_told_to_stop(
    finished: Workplace, place: Workplace, engine: str, number: signal.Signals
) -> None:
    mark = f"BURSTLAB_CELL={place.root.name}-{engine}-{number}"
    name, value = mark.split("=")
    variables = {name: value} | (pwrake() if engine == "pwrake" else {})
    process = place.start("--engine", engine, **variables)
    assert process.stderr
    with process.stderr:
        deadline = time.monotonic() + DEADLINE_S
        while len(list(place.mount.glob("projected/*_area.fits"))) < 3:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        assert len(marked(mark)) > 1
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert marked(mark) == []
    assert not (place.cell / "metrics.json").exists()
    again = place.run()
    assert again.returncode == 0, again.stderr
    mosaics = [one.mount / "mosaic.fits" for one in (finished, place)]
    assert mosaics[0].read_bytes() == mosaics[1].read_bytes()


def test_engine_killed(place: Workplace) -> None:
    """The commands that a killed engine leaves behind are ended."""
    mark = f"BURSTLAB_CELL={place.root.name}"
    process = place.start(*PLAIN, BURSTLAB_CELL=place.root.name)
    assert process.stderr
    with process.stderr:
        deadline = time.monotonic() + DEADLINE_S
        while not list(place.mount.glob("projected/*.fits")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        [engine] = [int(pid) for pid in children.split()]
        os.kill(engine, signal.SIGKILL)
        assert process.wait(20) == 128 + signal.SIGKILL
    assert marked(mark) == []
