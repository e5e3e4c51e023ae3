"""What the machines see of the file system: the host's, except for what is listed here.

The site gets a root directory of its own (a tmpfs into which the host's top-level directories
are bound), so that /local and /pfs need not exist on the host. /etc is a directory of its own too,
full of links to the host's; files in it are covered one by one. Each machine then covers what a
machine has for itself. A path of the host that would be hidden by that, but that the lab needs, is
carried through.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from burstlab.errors import BurstlabError
from lab.layout import NODE_LOCAL, PFS, Lab

# Directories each machine has for itself -> name below Lab.own
COVERED = {"/tmp": "tmp", "/var/tmp": "var-tmp", "/run": "run", NODE_LOCAL: "local"}
ETC_FILES = ("passwd", "group", "shadow", "hosts", "ssh/ssh_config")
HOST_ETC = "/etc.host"  # the host's, as deep as /etc for the sake of links that lead up and out


def hidden(path: Path) -> str:
    """The directory of COVERED that ``path`` lies below, or an empty string."""
    return next((top for top in COVERED if path.is_relative_to(top) and str(path) != top), "")


def carried(paths: Iterable[Path]) -> list[Path]:
    """Those of ``paths`` that the machines' own directories would hide, outermost only."""
    wanted: list[Path] = []
    for path in sorted({path.resolve() for path in paths if hidden(path.resolve())}):
        if not any(path.is_relative_to(outer) for outer in wanted):
            wanted.append(path)
    return wanted


def within(own: Path, path: Path) -> Path:
    """Where a hidden path of the host lies in a machine's own directories."""
    top = hidden(path)
    return own / COVERED[top] / path.relative_to(top)


def fstab_line(source: Path | str, target: Path | str, kind: str, options: str) -> str:
    """One mount, as fstab(5) wants it."""
    escaped = [os.fspath(name).replace("\\", r"\134").replace(" ", r"\040").replace("\t", r"\011")
               for name in (source, target)]  # fmt: skip
    return f"{escaped[0]} {escaped[1]} {kind} {options} 0 0\n"


def site_fstab(lab: Lab, fuse_device: Path) -> str:
    """Mounts shared by all machines."""
    lines = [fstab_line(lab.etc / name, f"/etc/{name}", "none", "bind") for name in ETC_FILES]
    lines.append(fstab_line(lab.log, "/var/log", "none", "bind"))
    lines.append(fstab_line(fuse_device, "/dev/fuse", "none", "bind"))
    return "".join(lines)


def machine_fstab(lab: Lab, machine: str, carry: Iterable[Path]) -> str:
    """Mounts of one machine. The sources' names differ from the host's, whose mounts
    ``mount -a`` would otherwise take for these."""
    own = lab.own(machine)
    lines = [fstab_line(path, within(own, path), "none", "bind") for path in carry]
    lines += [fstab_line(own / name, top, "none", "rbind") for top, name in COVERED.items()]
    lines.append(fstab_line("burstlab-lab", "/dev/shm", "tmpfs", "mode=1777"))
    lines.append(fstab_line("burstlab-lab", "/sys", "sysfs", "ro"))
    lines.append(fstab_line(own / "boot_id", "/proc/sys/kernel/random/boot_id", "none", "bind"))
    lines.append(fstab_line(own / "hostname", "/etc/hostname", "none", "bind"))
    return "".join(lines)


def mount_all(fstab: Path) -> None:
    """Mount every line of an fstab file, in order. Raises BurstlabError."""
    run_mount("-a", "-T", fstab)


def enter_own_root(directory: Path) -> None:
    """Make ``directory`` the root: the host's top-level directories, and room for more.

    Mounts made below it later reach the name spaces copied from this one.
    """
    run_mount("-t", "tmpfs", "-o", "mode=0755", "burstlab-lab", directory)
    run_mount("--make-unbindable", directory)  # or binding its parent would bind it again
    for entry in os.scandir("/"):
        inside = directory / entry.name
        if entry.is_symlink():
            inside.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            inside = directory / HOST_ETC.lstrip("/") if entry.path == "/etc" else inside
            inside.mkdir()
            run_mount("--rbind", entry.path, inside)
    link_around(["hostname", *ETC_FILES], Path("/etc"), directory / "etc", Path(HOST_ETC))
    for name in (NODE_LOCAL, PFS):
        (directory / name.lstrip("/")).mkdir(exist_ok=True)
    os.chdir(directory)
    subprocess.run(["pivot_root", ".", "."], check=True)  # the old root now lies over the new one
    subprocess.run(["umount", "-l", "."], check=True)
    os.chdir("/")
    run_mount("--make-shared", "/")


def link_around(covered: Iterable[str], real: Path, own: Path, seen: Path) -> None:
    """Make ``own``: links to what is in ``real``, seen as ``seen``, and empty files to be covered.

    A mount over one of the host's own files would end when the host replaces that file, as adding
    a user or installing a package does (rename(2) detaches what is mounted on its target).
    """
    own.mkdir()
    inner: dict[str, list[str]] = {}
    for name in covered:
        top, slash, rest = name.partition("/")
        if slash:
            inner.setdefault(top, []).append(rest)
        else:
            (own / top).touch()
    for top, names in inner.items():
        link_around(names, real / top, own / top, seen / top)
    for entry in os.scandir(real) if real.exists() else ():
        if not (own / entry.name).exists():
            target = Path(entry.path).readlink() if entry.is_symlink() else seen / entry.name
            (own / entry.name).symlink_to(target)


def run_mount(*arguments: str | Path) -> None:
    """mount(8). Raises BurstlabError with what it said."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise BurstlabError(f"mount {' '.join(map(str, arguments))}: {done.stderr.strip()}")
