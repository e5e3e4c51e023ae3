"""The loss that Gfarm hides from its writers ends a cell that would otherwise be `ok`."""

from pathlib import Path

import pytest

from tests.cell.running import Place

# Writes a file, has the gfsd worker behind it die half way, and is told nothing.
WRITE_IN_VAIN = """
exec 2>/dev/null  # processes that end while they are looked at
exec 3>"$BURSTLAB_MOUNT/lost"
echo one >&3
for process in /proc/[0-9]*; do
    case "$(readlink $process/cwd) $(tr '\\0' ' ' <$process/cmdline)" in
        "$BURSTLAB_LOCAL/gfarm/spool gfsd: c"*) kill -9 ${process#/proc/} && echo killed ;;
    esac
done
echo two >&3 && exec 3>&- && echo written
"""


@pytest.mark.requires("gfarm")
def test_a_file_written_in_vain_fails_the_cell(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run("--storage", "gfarm", run=["sh", "-c", WRITE_IN_VAIN])
    said = (place.cell / "workload.log").read_text().split()
    assert set(said) == {"killed", "written"}, "a worker dies and the workload sees no error"
    record = place.record()
    assert record is not None
    assert (done.returncode, record["status"]) == (122, "failed"), done.stderr
    assert "data lost: " in record["reason"]
    assert place.left_behind() == []
