"""The loss that Gfarm hides from its writers ends a cell that would otherwise be `ok`."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cell.running import Place

# Writes a file, has the gfsd worker behind it die half way, and is told nothing.
WRITE_IN_VAIN = """
exec 2>/dev/null  # processes that end while they are looked at
spool=$(readlink -f "$BURSTLAB_LOCAL/gfarm/spool")
exec 3>"$BURSTLAB_MOUNT/lost"
echo one >&3
for process in /proc/[0-9]*; do
    case "$(readlink $process/cwd) $(tr '\\0' ' ' <$process/cmdline)" in
        "$spool gfsd: c"*) workers="$workers ${process#/proc/}" ;;
    esac
done
kill -9 $workers && echo killed  # at once: a cell that has noticed ends this very shell
echo two >&3 && exec 3>&- && echo written
"""


def lose_a_file(place: Place, *options: str) -> None:
    """A cell that loses one must not be `ok`."""
    done = place.run("--storage", "gfarm", *options, run=["sh", "-c", WRITE_IN_VAIN])
    said = (place.cell / "workload.log").read_text().split()
    assert set(said) == {"killed", "written"}, "a worker dies and the workload sees no error"
    record = place.record()
    assert record is not None
    assert (done.returncode, record["status"]) == (122, "failed"), done.stderr
    assert "data lost: " in record["reason"]
    assert place.left_behind() == []


@pytest.mark.requires("gfarm")
def test_a_file_written_in_vain_fails_the_cell(tmp_path: Path) -> None:
    lose_a_file(Place(tmp_path))


REFUSED = """\
#!/bin/sh
echo refused >>"$0.times"
[ $(wc -l <"$0.times") -gt {times} ] && exec {gfhost} "$@"
echo "metadata server: authentication error" >&2
exit 1
"""


@pytest.mark.requires("gfarm")
@pytest.mark.parametrize(("times", "status"), [(2, "ok"), (9, "failed")])
def test_a_refused_registration_is_tried_again_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, status: str
) -> None:
    gfhost = tmp_path / "bin" / "gfhost"
    gfhost.parent.mkdir()
    gfhost.write_text(REFUSED.format(times=times, gfhost=shutil.which("gfhost")))
    gfhost.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gfhost.parent}:{os.environ['PATH']}")
    place = Place(tmp_path)
    done = place.run("--storage", "gfarm", run=["true"])
    record = place.record()
    assert record is not None and record["status"] == status, done.stderr
    assert ("authentication error" in record["reason"]) == (status == "failed")
    assert place.left_behind() == []
