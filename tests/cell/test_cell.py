"""A cell from the outside: what the workload sees, what is recorded, how it ends."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.polling import until

from .running import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_workload_sees_its_world(place: Place) -> None:
    script = 'env >"$BURSTLAB_CELL_DIR/seen"; touch "$BURSTLAB_MOUNT/here"; pwd'
    flags = ["--nodes", "2", "--cores-per-node", "3", "--label", "workload=noop"]
    flags += ["--label", "size_mb=7"]
    done = place.run("--storage", "nodelocal", *flags, run=["sh", "-c", script])
    assert done.returncode == 0, done.stderr
    seen = dict(line.split("=", 1) for line in (place.cell / "seen").read_text().splitlines())
    assert seen["BURSTLAB_NODES"] == "2"
    assert seen["BURSTLAB_CORES"] == "3"
    assert seen["NOOP_SIZE_MB"] == "7"
    assert Path(seen["BURSTLAB_HOSTFILE"]).read_text() == "localhost\nlocalhost\n"
    assert Path(seen["BURSTLAB_MOUNT"]).is_relative_to(place.scratch)
    assert Path(seen["BURSTLAB_LOCAL"]).is_relative_to(place.scratch)
    assert (place.cell / "workload.log").read_text().strip() == str(Path.cwd())
    assert place.left_behind() == []


def test_one_directory_may_be_scratch_and_parallel_file_system(place: Place) -> None:
    done = place.run("--storage", "pfs", "--pfs", place.scratch, run=["true"])
    assert done.returncode == 0, done.stderr
    assert place.left_behind() == []


def test_the_record_tells_spans_reports_and_provenance(place: Place) -> None:
    script = """
        cd "$BURSTLAB_CELL_DIR"
        echo '[{"name": "rate", "value": 2.5, "unit": "MB/s", "better": "higher"}]' >metrics.json
        echo '{"engine": "sh"}' >facts.json
        echo '["only a test"]' >issues.json
        printf 'operation,start_s,elapsed_s,host,status\\nsh,1,2,h,0\\n' >operations.csv
    """
    done = place.run("--storage", "nodelocal", "--check", "true", run=["sh", "-c", script])
    assert done.returncode == 0, done.stderr
    record = place.record()
    assert record is not None
    assert record["schema"] == "burstlab.record/1"
    assert record["status"] == "ok"
    names = [span["name"] for span in record["spans"]]
    assert names == ["allocation", "pfs", "provision", "run", "check", "drain", "teardown"]
    assert all(span["elapsed_s"] >= 0 for span in record["spans"])
    assert record["metrics"] == [{"name": "rate", "value": 2.5, "unit": "MB/s", "better": "higher"}]
    assert record["workload_facts"] == {"engine": "sh"}
    assert "only a test" in record["issues"]
    assert record["operations"] == "operations.csv"
    assert record["storage"]["name"] == "nodelocal"
    assert record["provenance"]["cores"] >= 1
    assert record["pfs"]["emulated"] is False


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_workloads(place: Place, script: str, status: int) -> None:
    done = place.run("--storage", "nodelocal", run=["sh", "-c", f"echo said; {script}"])
    assert done.returncode == status
    record = place.record()
    assert record is not None
    assert record["status"] == "failed"
    assert record["exit_status"] == status
    block = done.stderr[done.stderr.index("FAILED") :]
    assert "FAILED in run: the workload ended with" in block
    assert f"directory  {place.cell}" in block
    assert "burstlab run --virtual" in block, "the command to repeat"
    assert "said" in block, "the first lines of output"
    assert place.left_behind() == []


def test_a_workload_may_tell_why_it_failed(place: Place) -> None:
    script = 'echo "rank 1 died: no space" >"$BURSTLAB_CELL_DIR/failure.txt"; exit 3'
    done = place.run("--storage", "nodelocal", run=["sh", "-c", script])
    assert done.returncode == 3
    record = place.record()
    assert record is not None
    assert record["reason"] == ("the workload ended with exit status 3: rank 1 died: no space")
    place.run("--storage", "nodelocal", run=["sh", "-c", "exit 4"])
    record = place.record()
    assert record is not None
    assert record["reason"] == "the workload ended with exit status 4", "no earlier run's words"


def test_what_the_workload_leaves_running_is_ended(place: Place) -> None:
    script = 'setsid sleep 60 & cd "$BURSTLAB_MOUNT"; sleep 60 & exit 0'
    done = place.run("--storage", "nodelocal", run=["sh", "-c", script])
    assert done.returncode == 0, done.stderr
    assert place.left_behind() == []


def test_a_refused_result_is_a_failed_cell(place: Place) -> None:
    check = "sh -c 'echo the sum is wrong; exit 4'"
    done = place.run("--storage", "nodelocal", "--check", check, run=["true"])
    assert done.returncode == 119
    record = place.record()
    assert record is not None
    assert "the sum is wrong" in record["reason"]


def test_a_cell_that_can_not_run_here_is_skipped_with_its_reason(place: Place) -> None:
    done = place.run("--storage", "nodelocal", "--nodes", "2", "--needs", "shared", run=["true"])
    assert done.returncode == 0
    record = place.record()
    assert record is not None
    assert record["status"] == "skipped"
    assert "one name space for its 2 nodes" in record["reason"]
    assert place.left_behind() == []


def test_success_replaces_an_earlier_failure(place: Place) -> None:
    place.run("--storage", "nodelocal", run=["false"])
    assert (place.cell / "failed.json").exists()
    place.run("--storage", "nodelocal", run=["true"])
    assert (place.cell / "record.json").exists()
    assert not (place.cell / "failed.json").exists()


def test_stage_out_brings_results_and_misses_nothing_silently(place: Place) -> None:
    script = 'cd "$BURSTLAB_MOUNT"; mkdir a; echo 1 >a/x.out; echo 2 >y.out'
    done = place.run("--storage", "nodelocal", "--stage-out", "**/*.out", run=["sh", "-c", script])
    assert done.returncode == 0, done.stderr
    found = {str(p.relative_to(place.cell / "outputs")) for p in place.cell.rglob("*.out")}
    assert found == {"a/x.out", "y.out"}
    done = place.run("--storage", "nodelocal", "--stage-out", "*.none", run=["true"])
    assert done.returncode == 123
    assert "nothing matches '*.none'" in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[{}]", "metrics.json: {}: a mapping of name, value, unit and better is wanted"),
        ("{", "metrics.json: no JSON list: Expecting property name"),
        ("{}", "metrics.json: {}: a JSON list is wanted"),
    ],
)
def test_broken_reports_are_the_workloads_fault(place: Place, text: str, told: str) -> None:
    script = f'echo "{text}" >"$BURSTLAB_CELL_DIR/metrics.json"'
    done = place.run("--storage", "nodelocal", run=["sh", "-c", script])
    assert done.returncode == 119
    assert f"FAILED in report: {place.cell}/{told}" in done.stderr


def test_a_site_that_can_not_drop_caches_says_how(place: Place) -> None:
    flags = ["--storage", "nodelocal", "--cache", "cold", "--drop-caches"]
    done = place.run(*flags, "ls /no/such/thing", run=["true"])
    assert "--drop-caches ls /no/such/thing: exit status 2: ls: cannot" in done.stderr
    done = place.run(*flags, "/no/such/program", run=["true"])
    assert "--drop-caches /no/such/program: No such file" in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--storage", "nodelocal", "-o", "speed=9"], "-o speed=9: no such option"),
        (["--storage", "nodelocal", "--pfs-option", "x=1"], "--pfs-option is for --pfs emulated"),
        (["--storage", "pfs", "--pfs", "emulated", "--pfs-option", "bandwidth_mb_s=fast"],
         "--pfs-option bandwidth_mb_s=fast: float is wanted"),
        (["--storage", "nodelocal", "--label", "nonsense"], "--label nonsense: KEY=VALUE"),
        (["--storage", "nodelocal", "--label", "repeat=x"], "--label repeat=x: int is wanted"),
        (["--storage", "tape"], "--storage: invalid choice: 'tape' (choose from 'pfs'"),
        (["--storage", "nodelocal", "--needs", "luck"], "'luck' is not one of shared, mmap"),
        (["--storage", "nodelocal", "--nodes", "0"], "'0': a whole number from 1 is wanted"),
        (["--storage", "nodelocal", "--time-limit", "-5"], "'-5': a number from 0 is wanted"),
        (["--storage", "nodelocal", "--check", "it's"], "--check it's: No closing quotation"),
        (["--storage", "nodelocal", "--staging", "eager"], "--staging eager: a --dataset"),
        (["--storage", "nodelocal", "--stage-out", "/etc/*"], "--stage-out /etc/*: a pattern"),
        (["--storage", "nodelocal", "--stage-out", "../*"], "--stage-out ../*: a pattern"),
        (["--storage", "nodelocal", "--site=nowhere"], "there is no site 'nowhere' (allowed: "),
        (["--storage", "nodelocal", "--sit", "local"], "unrecognized arguments: --sit"),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_line(place: Place, flags: list[str], said: str) -> None:
    done = place.run(*flags, run=["true"])
    assert done.returncode == 120
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert place.record() is None


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("/no/such/program", "/no/such/program: no such program"),
        ("no-such-program", "no-such-program: no such program on PATH"),
        ("/etc/passwd", "/etc/passwd: is not executable: chmod +x /etc/passwd"),
        ("/etc", "/etc: is a directory, not a program"),
    ],
)
def test_a_program_that_is_none(place: Place, program: str, told: str) -> None:
    done = place.run("--storage", "nodelocal", run=[program])
    assert done.returncode == 120
    assert f"FAILED in run: {told}\n" in done.stderr
    assert place.left_behind() == []


@pytest.mark.parametrize(
    ("directory", "told"),
    [("/no/such", "No such file or directory"), ("/etc/passwd", "Not a directory")],
)
def test_a_local_directory_that_is_none(place: Place, directory: str, told: str) -> None:
    done = place.run("--storage", "nodelocal", "--local-dir", directory, run=["true"])
    assert done.returncode == 120
    assert f"FAILED in allocation: --local-dir {directory}: {told} on " in done.stderr
    assert place.left_behind() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "not JSON (line 1, column 1), so no manifest"),
        ("{}", "not JSON"),
        (None, "No such"),
    ],
)
def test_a_manifest_that_is_none(place: Place, text: str | None, told: str) -> None:
    path = place.root / "manifest.json"
    if text is not None:
        path.write_text(text)
    done = place.run("--storage", "nodelocal", "--dataset", path, run=["true"])
    assert done.returncode == 120
    assert done.stderr.startswith(f"burstlab run: {path}: {told}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.requires("ssh")
@pytest.mark.parametrize("hosts", ["nohost.invalid", "{here},nohost.invalid"])
def test_hosts_that_are_none(place: Place, hosts: str) -> None:
    hosts = hosts.format(here=os.uname().nodename)
    command = place.command("--storage", "nodelocal", "--hosts", hosts, run=["true"])
    done = subprocess.run(
        [word for word in command if word not in ("--virtual", "--nodes", "1")],
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 121
    assert "nohost.invalid" in done.stderr.splitlines()[-1]
    assert place.left_behind() == []


def test_a_time_limit_ends_the_cell(place: Place) -> None:
    done = place.run("--storage", "nodelocal", "--time-limit", "0.5", run=["sleep", "60"])
    assert done.returncode == 124
    record = place.record()
    assert record is not None
    assert record["reason"] == "time limit of 0.5 s reached"
    assert place.left_behind() == []


def test_hostile_words_stay_words(place: Place) -> None:
    label = "name=$(touch /tmp/burstlab-hostile); `id` '\"\n|&"
    done = place.run("--storage", "nodelocal", "--label", label,
                     run=["sh", "-c", 'printf %s "$1"', "sh", "$(exit 9); 'x'"])  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (place.cell / "workload.log").read_text() == "$(exit 9); 'x'"
    assert not Path("/tmp/burstlab-hostile").exists()
    assert json.loads((place.cell / "record.json").read_text())["cell"]["parameters"]["name"]


def test_two_cells_never_share_a_directory(place: Place) -> None:
    first = place.start("--storage", "nodelocal", run=["sleep", "60"])
    until(lambda: (place.cell / "workload.log").exists(), "the first runs")
    second = place.run("--storage", "nodelocal", run=["true"])
    assert second.returncode == 120
    assert f"--cell-dir {place.cell}: cell " in second.stderr
    assert len(second.stderr.splitlines()) == 1
    first.terminate()
    first.communicate(timeout=60)
    assert place.run("--storage", "nodelocal", run=["true"]).returncode == 0


def test_a_killed_cell_does_not_keep_the_record_of_an_earlier_one(place: Place) -> None:
    assert place.run("--storage", "nodelocal", run=["true"]).returncode == 0
    script = 'touch "$BURSTLAB_CELL_DIR/started"; sleep 60'
    again = place.start("--storage", "nodelocal", run=["sh", "-c", script])
    until(lambda: (place.cell / "started").exists(), "it runs again")
    again.kill()
    again.communicate(timeout=60)
    assert place.record() is None
    assert place.reap().returncode == 0
