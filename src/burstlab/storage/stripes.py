"""Stripe settings of a directory, as the file system's own tool tells them."""

import re
import subprocess
from pathlib import Path

from burstlab.doctor.environments import find_command

ANSWER_S = 20.0

# `beegfs-ctl --getentryinfo`: "+ Chunksize: 512K", "+ Number of storage targets: desired: 4"
_BEEGFS = {
    "pattern": re.compile(r"^\+ Type: (.+)$", re.MULTILINE),
    "chunk_size": re.compile(r"^\+ Chunksize: (.+)$", re.MULTILINE),
    "targets": re.compile(r"^\+ Number of storage targets: desired: (\d+)", re.MULTILINE),
    "pool": re.compile(r"^\+ Storage Pool: (.+)$", re.MULTILINE),
}
# `lfs getstripe -d`: "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 ..."
_LUSTRE = {
    "pattern": re.compile(r"pattern:\s+(\S+)"),
    "chunk_size": re.compile(r"stripe_size:\s+(\d+)"),
    "targets": re.compile(r"stripe_count:\s+(-?\d+)"),
}


def stripes(directory: Path, mount: Path, kind: str) -> dict[str, str]:
    """Of ``directory`` on a file system of that kind; empty where they can't be had."""
    if kind == "beegfs" and find_command("beegfs-ctl"):
        command = ["beegfs-ctl", "--getentryinfo", f"--mount={mount}", str(directory)]
        return _found(_BEEGFS, _answer(command))
    if kind == "beegfs" and find_command("beegfs"):
        told = _answer(["beegfs", "entry", "info", str(directory)])
        return {"told": " ".join(told.split())} if told else {}
    if kind == "lustre" and find_command("lfs"):
        return _found(_LUSTRE, _answer(["lfs", "getstripe", "-d", str(directory)]))
    return {}


def _found(patterns: dict[str, re.Pattern[str]], text: str) -> dict[str, str]:
    return {
        name: found[1].strip()
        for name, pattern in patterns.items()
        if (found := pattern.search(text))
    }


def _answer(command: list[str]) -> str:
    """Its output, whatever its exit status: beegfs-ctl's says nothing."""
    command[0] = find_command(command[0]) or command[0]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, cwd="/")
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout if done.returncode == 0 else ""
