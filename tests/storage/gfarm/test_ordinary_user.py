"""An ordinary user needs no more than a usable /dev/fuse and a setuid fusermount."""

import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import burstlab

USER = "nobody"

# A mount name space of its own gets a FUSE device that everybody may open.
AS_USER = """
mknod "$1/fuse" c 10 229 && chmod 666 "$1/fuse" && mount --bind "$1/fuse" /dev/fuse
shift
exec setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"
"""

CELL = """
import os, sys
from pathlib import Path
from burstlab.lease import Lease
from burstlab.mounts import mounted_at
from burstlab.nodes import VirtualNodes
from burstlab.storage.gfarm import GfarmStorage
from burstlab.storage.interface import Context

held = Lease.create()
directory = held.directory(Path(sys.argv[1], "cell"))
nodes = VirtualNodes(directory, 1, held)
context = Context(held.id, directory, nodes, held, None, frozenset(), 0)
storage = GfarmStorage(GfarmStorage.Options(), context)
assert storage.unavailable() is None, storage.unavailable()
storage.start()
(storage.mount / "work").mkdir(0o700)
(storage.mount / "work" / "file").write_text("written")
assert storage.problems() == storage.verify() == []
print(os.getuid(), (storage.mount / "work" / "file").stat().st_uid, mounted_at(storage.mount).type)
storage.stop()
assert held.clean() == []
held.release()
"""


def interpreter() -> str:
    """A Python that others may run too: not one below root's home."""
    for path in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        asked = ["setpriv", "--reuid", USER, "--clear-groups", path or "false", "-c"]
        version = "import sys; sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([*asked, version], stderr=subprocess.DEVNULL).returncode == 0:
            return str(path)
    raise AssertionError("no Python 3.11 that an ordinary user may run: install python3")


@pytest.mark.requires("gfarm", "root")
def test_an_ordinary_user_gets_a_gfarm_too(tmp_path: Path) -> None:
    user = pwd.getpwnam(USER)
    source, scratch = tmp_path / "src", tmp_path / "scratch"
    shutil.copytree(Path(burstlab.__file__).parent, source / "burstlab")
    scratch.mkdir()
    shutil.chown(scratch, user.pw_uid, user.pw_gid)
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(directory.stat().st_mode | 0o011)
    script = ["bash", "-c", AS_USER, "bash", tmp_path, str(user.pw_uid), str(user.pw_gid)]
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(source),
        "BURSTLAB_STATE": str(scratch / "state"),
    }
    done = subprocess.run(
        ["unshare", "--mount", *script, interpreter(), "-c", CELL, scratch],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(user.pw_uid), str(user.pw_uid), "fuse.gfarm2fs"]
    assert sorted(path.name for path in scratch.iterdir()) == ["state"]
