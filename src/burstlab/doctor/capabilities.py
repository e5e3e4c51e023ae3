"""What a machine lets this user do, apart from the programs that environments list.

The same table answers `burstlab doctor` and the tests' ``requires(...)``.
"""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from burstlab.doctor import jars, pythons
from burstlab.doctor.environments import Environment, find_command, installed_packages

FUSE_DEVICE = Path("/dev/fuse")
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


@dataclass(frozen=True)
class Capability:
    """One thing a machine can do or not; ``optional`` says why one can do without it."""

    purpose: str
    problem: Callable[[], str | None]
    remedy: str
    optional: str = ""


def root() -> str | None:
    """Whether this is root."""
    return None if os.geteuid() == 0 else "not root"


def fuse() -> str | None:
    """Whether this user may mount FUSE file systems."""
    try:
        os.close(os.open(FUSE_DEVICE, os.O_RDWR))
    except OSError as error:
        return f"{FUSE_DEVICE} can't be opened: {error.strerror}"
    return None if find_command("fusermount3") else "the command fusermount3 is missing"


def network_namespaces() -> str | None:
    """Whether network name spaces can be made, as the lab does (root only)."""
    unshare = find_command("unshare")
    if unshare is None:
        return "the command unshare is missing"
    done = subprocess.run(
        [unshare, "--net", "--mount", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return None if done.returncode == 0 else done.stderr.strip() or "unshare failed"


def drop_caches() -> str | None:
    """Whether all caches of this machine can be dropped at once."""
    return None if os.access(DROP_CACHES, os.W_OK) else f"{DROP_CACHES} can't be written"


def bpftrace() -> str | None:
    """Whether bpftrace can follow a workload, but for tracefs, which is mounted by hand."""
    if find_command("bpftrace") is None:
        return "the command bpftrace is missing"
    if os.uname().machine != "x86_64" or not KERNEL_TYPES.exists():
        return f"the kernel is none of x86-64 with {KERNEL_TYPES}"
    return root()


def pwrake() -> str | None:
    """Whether there is a Pwrake to run Montage with, as workflows/montage/engine.rb finds it."""
    given = os.environ.get("PWRAKE")
    if given is None:
        return None if find_command("pwrake") else "pwrake is not on PATH and PWRAKE is not set"
    if Path(given).is_file() or Path(given, "bin", "pwrake").is_file():
        return None
    return f"PWRAKE={given}: neither a program nor a checkout that has bin/pwrake"


def burstio() -> str | None:
    """Whether burstlab's data path is installed beside it."""
    found = importlib.util.find_spec("burstio")
    return None if found else "the Python module burstio is not installed"


def real_tiles() -> str | None:
    """Whether a directory of real 2MASS tiles is given."""
    given = os.environ.get("BURSTLAB_2MASS")
    if given is None:
        return "BURSTLAB_2MASS is not set"
    return None if any(Path(given).glob("*.fits")) else f"BURSTLAB_2MASS={given}: no *.fits in it"


CAPABILITIES = {
    "root": Capability("the lab, disk-full and time-out faults", root, "run as root"),
    "fuse": Capability(
        "pfs (emulated) and gfarm",
        fuse,
        "install fuse3; in a container, give it /dev/fuse (--device /dev/fuse --cap-add SYS_ADMIN)",
    ),
    "netns": Capability(
        "the lab: a cluster on this machine",
        network_namespaces,
        "run as root; a container needs --privileged",
    ),
    "drop_caches": Capability(
        "cold caches for a whole machine at once",
        drop_caches,
        "run as root, or name your site's command in config/sites (drop_caches)",
        optional="without it files are made cold one by one, which needs no rights",
    ),
    "burstio": Capability(
        "staging, prefetching and the emulated parallel file system",
        burstio,
        "make setup builds it; it wants cargo and rustc 1.88 (rustup, or Debian's cargo-web)",
    ),
    "hadoop": Capability(
        "TeraSort",
        jars.problem,
        f"make setup PARTS=terasort fetches it; {jars.GIVEN} may name a directory of its jars",
    ),
    "bpftrace": Capability(
        "burstlab run --trace-io bpftrace",
        bpftrace,
        "as root, make setup PARTS=trace installs it",
        optional="--trace-io by strace counts the same, and needs no rights",
    ),
    "pwrake": Capability(
        "Montage under Pwrake, the paper's engine",
        pwrake,
        "set PWRAKE to a checkout of Pwrake 2.3.1 or newer",
        optional="no distribution packages it; plain rake runs the same Rakefile on many nodes too",
    ),
    "2mass": Capability(
        "Montage on real tiles",
        real_tiles,
        "set BURSTLAB_2MASS to a directory of 2MASS Atlas tiles",
        optional="tiles are generated, with the truth known, where none are given",
    ),
}


def environment_problem(environment: Environment) -> str | None:
    """Why an environment can't be used: a command, a Python package or FUSE is missing."""
    missing = [command.name for command in environment.missing_commands()]
    if missing:
        return f"missing: {' '.join(missing)}"
    if not environment.commands:
        installed = installed_packages(list(environment.packages)) or set()
        absent = [package for package in environment.packages if package not in installed]
        return f"missing packages: {' '.join(absent)}" if absent else None
    if environment.own_python:
        return pythons.problem(environment.name)
    if any(command.name == "fusermount3" for command in environment.commands):
        return fuse()
    return None
