"""Hosts for the double of `beeond`: name spaces of this machine.

Each has its own host name, processes, /var/tmp, /run and node-local disk; the network is this
machine's. `ssh HOST` (double/ssh) enters one.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from burstlab.mounts import Mount
from tests.cell.running import DEADLINE_S
from tests.storage.beeond.switch import Switch

DOUBLE = Path(__file__).parent / "double"
_ENTER = """
hostname "$1"
for own in /var/tmp /run "$2"; do mount -t tmpfs -o mode=1777 "tmpfs-of-$1" "$own"; done
mkdir "$2/scratch" "$2/state" "$2/conf" && chmod 700 "$2/state"
exec /usr/bin/python3 -ISc 'import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends here is taken at once
print("ready", flush=True)
signal.pause()'
"""
SERVICES = ("mgmtd", "meta", "storage", "helperd")


class Double:
    """The programs of the double, and what they shall do."""

    def __init__(self, root: Path, generation: int = 7) -> None:
        self.root = root
        self.binaries = root / "bin"
        for name in ("bin", "etc"):
            (root / name).mkdir(parents=True)
        (root / "generation").write_text(f"{generation}\n")
        (root / "etc/beegfs-client.conf").write_text("connDisableAuthentication = true\n")
        for name in ("beeond", "ssh"):
            (self.binaries / name).symlink_to(DOUBLE / name)
        tool = "beegfs-ctl" if generation == 7 else "beegfs"
        (self.binaries / tool).symlink_to(DOUBLE / "beegfs-ctl")
        for service in SERVICES if generation == 7 else SERVICES[:3]:
            (self.binaries / f"beegfs-{service}").symlink_to(DOUBLE / "beegfs-daemon")
        self.mount_wire()
        self.switch = Switch(root)

    def close(self) -> None:
        self.switch.close()
        self.unmount_wire()

    def mount_wire(self) -> None:
        """What all hosts see, as beegfs_ondemand."""
        wire = self.root / "wire"
        wire.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "beegfs_ondemand", wire], check=True)

    def unmount_wire(self) -> None:
        subprocess.run(["umount", self.root / "wire"], check=True)

    def environment(self) -> dict[str, str]:
        """For whoever calls beeond."""
        path = f"{self.binaries}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "BEEOND_DOUBLE": str(self.root)}

    def faults(self, *lines: str) -> None:
        (self.root / "faults").write_text("".join(f"{line}\n" for line in lines))

    def without_authentication(self) -> None:
        """What a site forgets: the tool that `beeond` calls reads no `-f`."""
        (self.root / "etc/beegfs-client.conf").unlink()

    def with_pdsh(self) -> None:
        (self.binaries / "pdsh").symlink_to(DOUBLE / "pdsh")

    def calls(self) -> list[str]:
        """What went through ssh, `HOST: COMMAND` each."""
        return (self.root / "calls").read_text().splitlines()


class Cluster:
    """Some hosts, a cell directory that all see, and `burstlab` on the first of them."""

    def __init__(self, root: Path, names: tuple[str, ...], generation: int = 7) -> None:
        self.root, self.names = root, names
        self.own = root / "own"  # of each host
        self.own.mkdir()
        self.cell = root / "cell"
        self.double = Double(root / "double", generation)
        self._holders = [self._begin(name) for name in names]
        for name in names:
            conf = self.inside(name) / "conf"
            for service in SERVICES:
                text = "connDisableAuthentication = true\n"
                (conf / f"beegfs-{service}.conf").write_text(text)
            (conf / "beegfs-client.conf").write_text("connDisableAuthentication = true\n")

    def inside(self, name: str, path: str | Path = "") -> Path:
        """What ``path`` (default: ``own``) is to that host, seen from here."""
        return Path(f"/proc/{self.hosts[name]}/root{path or self.own}")

    @property
    def hosts(self) -> dict[str, int]:
        """The init of each host that is up."""
        return self.double.switch.hosts

    def burstlab(self, *words: str | Path, host: str = "") -> list[str]:
        """A `burstlab` command, on the first host unless told otherwise."""
        return [
            *self.enter(host or self.names[0], Path.cwd()),
            sys.executable,
            "-m",
            "burstlab",
            *map(str, words),
        ]

    def cell_command(self, *options: str, script: str = "true") -> list[str]:
        """`burstlab run` on all hosts."""
        flags = ["--storage", "beeond", "--hosts", ",".join(self.names), "--launch", "ssh"]
        flags += ["--local-dir", str(self.own / "scratch"), "--cell-dir", str(self.cell)]
        pdsh = str((self.double.binaries / "pdsh").exists()).lower()  # not this machine's own
        given = [f"conf={self.own}/conf", f"pdsh={pdsh}", *options]
        flags += [word for option in given for word in ("-o", option)]
        return self.burstlab("run", *flags, "--", "sh", "-c", script)

    def beeond(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """The double's `beeond`, called by hand on the first host."""
        command = [*self.enter(self.names[0], Path("/")), "beeond", *map(str, words)]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=DEADLINE_S
        )

    def run(self, *options: str, script: str = "true") -> subprocess.CompletedProcess[str]:
        command = self.cell_command(*options, script=script)
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=DEADLINE_S
        )

    def start(self, *options: str, script: str = "sleep 60") -> subprocess.Popen[str]:
        command = self.cell_command(*options, script=script)
        return subprocess.Popen(command, env=self.environment(), stderr=subprocess.PIPE, text=True)

    def reap(self) -> None:
        """`burstlab reap`, on every host: each holds its own lease."""
        for name in self.names:
            done = subprocess.run(
                self.burstlab("reap", host=name),
                env=self.environment(), capture_output=True, text=True, timeout=DEADLINE_S,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr

    def environment(self) -> dict[str, str]:
        return {**self.double.environment(), "BURSTLAB_STATE": str(self.own / "state")}

    def record(self) -> dict[str, Any]:
        found = [p for n in ("record.json", "failed.json") if (p := self.cell / n).exists()]
        assert len(found) == 1, found
        told: dict[str, Any] = json.loads(found[0].read_text())
        return told

    def left_behind(self) -> list[str]:
        """Everything of any session or cell on any host, by looking."""
        left = []
        for name in self.hosts:
            own = [self.own / "scratch", self.own / "state"]
            places = [self.inside(name, path) for path in (*own, "/var/tmp", "/run")]
            found = [entry for place in places for entry in place.iterdir()]
            left += [f"{name}: {entry}" for entry in found if entry.name != "mount"]
            left += [f"{name}: mount {m.path}" for m in self.mounts(name) if not self._stays(m)]
            left += [f"{name}: {words}" for words in self.processes(name).values()]
        return left

    def mounts(self, name: str) -> list[Mount]:
        """The BeeOND mounts and others below this test's directory that the host has."""
        lines = Path(f"/proc/{self.hosts[name]}/mounts").read_text().splitlines()
        found = [Mount(*line.split(" ")[:4]) for line in lines]
        return [m for m in found if m.path.startswith(str(self.root))]

    def processes(self, name: str) -> dict[int, str]:
        """What runs in the host, but for its init, by the pids of this machine."""
        init = self.hosts[name]
        own, found = Path(f"/proc/{init}/ns/pid").readlink(), {}
        for proc in Path("/proc").iterdir():
            with suppress(OSError):
                if proc.name.isdigit() and (proc / "ns/pid").readlink() == own:
                    words = (proc / "cmdline").read_bytes().decode().split("\0")
                    if int(proc.name) != init and words != [""]:
                        found[int(proc.name)] = " ".join(words)
        return found

    def daemon(self, name: str, service: str) -> int:
        """The pid of a daemon there."""
        program = f"/opt/beegfs/sbin/beegfs-{service}"
        found = self.processes(name).items()
        return next(pid for pid, words in found if words.startswith(program))

    def down(self, name: str) -> None:
        """The host is lost, with everything that runs on it and its mounts."""
        os.kill(self.hosts.pop(name), signal.SIGKILL)

    def close(self) -> None:
        for name in [*self.hosts]:
            self.down(name)
        for holder in self._holders:
            holder.wait(DEADLINE_S)
            assert holder.stdout is not None
            holder.stdout.close()
        self.double.close()

    def _begin(self, name: str) -> subprocess.Popen[str]:
        unshare = [
            "unshare",
            "-m",
            "-u",
            "-p",
            "--fork",
            "--mount-proc",
            "--propagation",
            "private",
        ]
        command = [*unshare, "bash", "-c", _ENTER, "host", name, str(self.own)]
        holder = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        self.hosts[name] = int(children.read_text())
        return holder

    def enter(self, name: str, directory: Path) -> list[str]:
        """What comes before a command that is to run in a directory of that host."""
        target = ["-t", str(self.hosts[name]), "-m", "-u", "-p"]
        return ["nsenter", *target, f"--wd={directory}"]

    def _stays(self, mount: Mount) -> bool:
        return mount.path in (str(self.own), str(self.double.root / "wire"))
