"""What one host does for a Gfarm instance: node actions that start and stop its daemons."""

import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL
from typing import Any

from burstlab.errors import StorageError
from burstlab.mounts import mount_of, mounted_at
from burstlab.nodes import Node
from burstlab.storage.gfarm.configuration import LOCAL, Instance, files
from burstlab.storage.gfarm.network import FreePort, listens, local_addresses, misnamed
from burstlab.storage.gfarm.programs import ask, end, missing, spawn, wait_until
from burstlab.storage.nodelocal import sync_filesystem
from burstlab.storage.probing import following

TYPE = "fuse.gfarm2fs"
REFUSALS = 3  # of a host's registration, which are tried again
END_S = 1.0  # for a daemon that was asked to end
WATCH = "probe of the Gfarm mount"
FOREGROUND = ("-d", "-L", "warning")  # -d alone would log everything

# Whoever asks a mount whose server died may hang, so it is asked by a process of its own.
# It ends when any of its steps does not succeed, be it that somebody ends one.
_WATCH = 'while stat -f -- "$0" && : >"$1" && sleep 5; do :; done'


def unfit(node: Node, alone: bool) -> str:
    """Node action: why this host can't be a Gfarm node, or nothing."""
    return missing() or ("" if alone else misnamed(node.host.name))


def instance_on(node: Node, server: str, port: int) -> Instance:
    """The instance as this host sees it. Raises StorageError for a user without a name."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise StorageError(f"user {os.getuid()} has no name here, and Gfarm wants one") from None
    name = LOCAL if server == LOCAL else node.host.name  # one host alone keeps to its loopback
    return Instance(node.host.local_dir / "gfarm", user, server, port, name)


def start_metadata_server(
    node: Node, head: str, server: str, key_lifetime_s: int
) -> dict[str, Any] | None:
    """Node action: gfmd on the host ``head``; its port and the instance's new shared key."""
    if node.host.name != head:
        return None
    with FreePort() as port:
        instance = instance_on(node, server, port.number)
        _write_configuration(instance)
        ask(node, ["gfkey", "-c", "-p", str(key_lifetime_s)], instance)
        spawn(node, instance, "gfmd", [*FOREGROUND, "-f", instance.directory / "gfmd.conf"])
        accepts = f"gfmd accepts connections to port {port.number}"
        wait_until(lambda: listens(port.number), accepts, node, instance, ["gfmd"])
    return {"port": instance.port, "key": instance.key.read_text()}


def start_filesystem_node(
    node: Node, server: str, port: int, key: str, mount: str, options: str
) -> dict[str, str]:
    """Node action: gfsd and the mount, seen to write to this host's own disk."""
    instance = instance_on(node, server, port)
    _write_configuration(instance)
    instance.key.unlink(missing_ok=True)
    instance.key.touch(0o600)
    _write(instance.key, key)
    _start_gfsd(node, instance)
    Path(mount).mkdir(0o700)
    node.lease.mount(mount)
    spawn(node, instance, "gfarm2fs", ["-f", "-o", f"loglevel=warning,{options}", mount])
    daemons = ["gfsd", "gfarm2fs"]
    wait_until(lambda: is_mounted(mount), f"{mount} is mounted", node, instance, daemons)
    return {**prove(node, instance, mount, daemons), "gfarm2fs_options": options}


def prove(node: Node, instance: Instance, mount: str, daemons: Sequence[str]) -> dict[str, str]:
    """Returns what it is, when a file was written through the mount to this host's own disk; from
    then on the mount is watched. ``daemons``: those that are children, by name."""
    wait_until(lambda: _takes_files(node, instance), "gfsd takes files", node, instance, daemons)
    _leave_probe(node, instance, Path(mount))
    beat = instance.directory / "beat"
    beat.touch()
    node.lease.spawn(["/bin/sh", "-c", _WATCH, mount, beat], WATCH, DEVNULL)
    return _what_it_is(node, instance, mount)


def meet(node: Node, mount: str, hosts: Sequence[str]) -> None:
    """Node action: read what the next host's probe wrote, and remove it."""
    other = following(hosts, node.host.name)
    script = 'cat -- "$0" && rm -- "$0"'
    read = ask(node, ["/bin/sh", "-c", script, _probe(Path(mount), other)])
    if read.decode() != other:
        raise StorageError(f"{mount}: what {other} wrote is read as {read!r}")


def write_back(node: Node) -> None:
    """Node action: this host's part of the data is on its disk."""
    sync_filesystem(node.host.local_dir / "gfarm" / "spool")


def stop_filesystem_node(node: Node, mount: str) -> None:
    """Node action: unmount, then end gfsd with its workers; harmless when none of it runs."""
    watch = node.lease.children.get(WATCH)
    if watch and watch.poll() is None:
        os.killpg(watch.pid, SIGKILL)  # the group of a child not waited for is nobody else's
    try:
        _unmount(node, mount)
    finally:
        end(node, "gfsd", END_S)


def stop_metadata_server(node: Node) -> None:
    """Node action: end gfmd, where it runs; after this the file system is gone."""
    end(node, "gfmd", END_S)


def socket_directory(address: str, port: int) -> Path:
    """What gfsd makes for its local clients, for each address (GFSD_LOCAL_SOCKET_DIR)."""
    return Path(f"/tmp/.gfarm-gfsd{address}-{port}")


def is_mounted(mount: str) -> bool:
    """Whether what is mounted there is Gfarm."""
    found = mounted_at(mount)
    return found is not None and found.type == TYPE


def _write_configuration(instance: Instance) -> None:
    instance.directory.mkdir(0o700, exist_ok=True)
    for name, text in files(instance).items():
        _write(instance.directory / name, text)


def _write(path: Path, text: str) -> None:
    """Raises StorageError naming the path, which the error of a full disk does not."""
    try:
        path.write_text(text)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def _start_gfsd(node: Node, instance: Instance) -> None:
    """Registers this host with gfmd; what gfsd makes in /tmp is the lease's beforehand."""
    name = instance.host
    addresses = ["127.0.0.1"] if name == LOCAL else local_addresses()

    def sockets(port: int) -> list[Path]:
        return [socket_directory(address, port) for address in addresses]

    instance.spool.mkdir(0o700)
    with FreePort(lambda port: not any(path.exists() for path in sockets(port))) as port:
        for path in sockets(port.number):
            node.lease.directory(path)
        host = ["-a", os.uname().machine, "-n", str(os.cpu_count()), "-p", str(port.number), name]
        _register(node, instance, host)
        listen = ["-l", "127.0.0.1"] if name == LOCAL else []
        where = ["-f", f"{instance.directory}/gfsd.conf", "-h", name, "-r", f"{instance.spool}"]
        spawn(node, instance, "gfsd", [*FOREGROUND, *where, *listen])
        taken = f"gfsd takes port {port.number}"
        wait_until(lambda: listens(port.number), taken, node, instance, ["gfsd"])


def _register(node: Node, instance: Instance, host: list[str]) -> None:
    """gfmd now and then refuses the right key when several hosts come at once: about one start in
    forty on four nodes of a busy machine."""
    for refused in range(REFUSALS + 1):
        try:
            ask(node, ["gfhost", "-c", *host], instance)
            return
        except StorageError as error:
            if refused == REFUSALS or "authentication error" not in str(error):
                raise


def _takes_files(node: Node, instance: Instance) -> bool:
    """Whoever writes earlier waits for a second; gfsched fails while there is no node."""
    try:
        hosts = ask(node, ["gfsched"], instance).decode().split()
    except StorageError:
        return False
    return instance.host in hosts


def _leave_probe(node: Node, instance: Instance, mount: Path) -> None:
    """Write a file through the mount; Gfarm must have put it on this host's disk."""
    script = 'printf %s "$1" >"$0" && exec gfwhere "$0"'
    probe = _probe(mount, node.host.name)
    written = ask(node, ["/bin/sh", "-c", script, probe, node.host.name], instance)
    where = written.decode().split()
    if where != [name := instance.host]:
        raise StorageError(
            f"what {name} writes lies on {' '.join(where) or 'no host'}: Gfarm does not take this "
            f"host for {name}; compare its host name and /etc/hosts with the allocation's names"
        )


def _probe(mount: Path, host: str) -> Path:
    return mount / f".probe-{host}"


def _what_it_is(node: Node, instance: Instance, mount: str) -> dict[str, str]:
    gfarm, spool = mount_of(mount), mount_of(instance.spool)
    version = ask(node, ["/bin/sh", "-c", "exec gfkey -V 2>&1"], instance)
    return {
        "version": version.decode().split()[-1],
        "mount_options": gfarm.options,
        "spool_type": spool.type,
        "spool_source": spool.source,
    }


def _unmount(node: Node, mount: str) -> None:
    """In order if gfarm2fs lets go of it; else its end is what frees those who wait for it."""
    if "gfarm2fs" not in node.lease.children:
        return
    grace_s = END_S
    try:
        ask(node, ["fusermount", "-u", mount], limit_s=2)
    except StorageError:
        grace_s = 0.0
    end(node, "gfarm2fs", grace_s)
    if mounted_at(mount):
        ask(node, ["fusermount", "-u", "-z", mount], limit_s=5)
