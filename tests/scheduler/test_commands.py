"""submit, status and cancel, with schedulers' commands whose answers the tests choose.

They stand for what no lab can be made to do on demand: to refuse, to be silent, to forget. Their
words are those of captures/slurm.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

SITE = "title: x\ndefault_scale: demo\nscheduler: slurm\nlocal_dir: /tmp\npoll_s: {poll}\n"
TARGET = "results/e/demo/noop/nodelocal-none/n1/default/r2/record.json"
RUN = "--storage nodelocal --nodes 1 --label experiment=e --label workload=noop --label repeat=2"


class Checkout:
    """A directory with a site, job scripts, and commands of its own in PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "config/sites").mkdir(parents=True)
        (root / "bin").mkdir()
        (root / TARGET).parent.mkdir(parents=True)
        self.poll(0.01)
        self.script("--storage nodelocal")
        self.command("sbatch", f"echo called >> {root}/sbatch.calls; echo 7")
        self.says("7|PENDING|Priority||bl-x")

    def poll(self, seconds: float) -> None:
        (self.root / "config/sites/x.yaml").write_text(SITE.format(poll=seconds))

    def script(self, run: str, body: str = "true") -> None:
        told = {"output": [TARGET], "resources": {"nodes": 1, "runtime": 5}, "params": {"run": run}}
        text = f"#!/bin/sh\n# properties = {json.dumps(told)}\n{body}\n"
        (self.root / "job").write_text(text)

    def command(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def says(self, rows: str) -> None:
        """The answer of squeue."""
        (self.root / "rows").write_text(f"{rows}\n" if rows else "")
        self.command("squeue", f"echo called >> {self.root}/squeue.calls; cat {self.root}/rows")

    def calls(self, name: str) -> int:
        path = self.root / f"{name}.calls"
        return len(path.read_text().split()) if path.exists() else 0

    def burstlab(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.root}/bin:{os.environ['PATH']}"
        source = Path(__file__).resolve().parents[2] / "src"
        return subprocess.run(
            [sys.executable, "-m", "burstlab", *words],
            cwd=self.root,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def submit(self) -> str:
        done = self.burstlab("submit", "--site", "x", "job")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def status(self, job: str = "7") -> str:
        done = self.burstlab("status", job)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def run_job(self) -> None:
        """What the node does."""
        (script,) = self.root.glob(".burstlab/jobs/bl-*/*.sh")
        subprocess.run([script], check=False, cwd="/", timeout=60)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_waiting_job_is_not_submitted_again(checkout: Checkout) -> None:
    assert [checkout.submit(), checkout.submit(), checkout.status()] == ["7", "7", "running"]
    assert checkout.calls("sbatch") == 1


def test_a_job_under_other_conditions_is_not_taken_for_this_one(checkout: Checkout) -> None:
    checkout.submit()
    checkout.script("--storage pfs")
    done = checkout.burstlab("submit", "--site", "x", "job")
    assert done.returncode != 0
    assert "job 7 of results/" in done.stderr
    assert "burstlab cancel 7" in done.stderr


def test_a_failed_cell_is_submitted_again(checkout: Checkout) -> None:
    checkout.submit()
    checkout.says("7|FAILED|NonZeroExitCode|node01|bl-x")
    assert checkout.status() == "failed"
    assert checkout.status() == "failed"
    checkout.command("sbatch", "echo 8")
    assert checkout.submit() == "8"


def test_a_job_that_ended_well_is_run_again_only_after_that_was_told(checkout: Checkout) -> None:
    checkout.script("x", f"touch {checkout.root}/{TARGET}")
    checkout.submit()
    checkout.run_job()
    assert checkout.submit() == "7"
    assert checkout.status() == "success"
    checkout.command("sbatch", "echo 8")
    assert checkout.submit() == "8"


def test_the_job_leaves_word_whatever_ends_its_shell(checkout: Checkout) -> None:
    checkout.script("x", "kill -TERM $BASHPID $$; exit 5")
    checkout.submit()
    checkout.run_job()
    (word,) = checkout.root.glob(".burstlab/jobs/bl-*/1.exit")
    assert word.read_text().splitlines()[0] == "exit 5"


def test_the_job_knows_the_modules_of_who_submitted_it(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedulers other than Slurm may pass nothing of the submitter's environment."""
    (checkout.root / "init").write_text(f"module() {{ echo $2 > {checkout.root}/loaded; }}\n")
    monkeypatch.setenv("BASH_ENV", str(checkout.root / "init"))
    checkout.script("x", "bash -c 'module load montage/6.0'")
    checkout.submit()
    monkeypatch.delenv("BASH_ENV")
    checkout.run_job()
    assert (checkout.root / "loaded").read_text() == "montage/6.0\n"


def test_a_refused_submission_is_told_and_forgotten(checkout: Checkout) -> None:
    checkout.command("sbatch", "echo 'sbatch: error: Invalid qos' >&2; exit 1")
    done = checkout.burstlab("submit", "--site", "x", "job")
    assert done.returncode != 0
    assert done.stderr == "burstlab submit: sbatch: error: Invalid qos\n"
    checkout.command("sbatch", "echo 9")
    assert checkout.submit() == "9"


def test_a_submission_of_unknown_outcome_is_not_repeated_blindly(checkout: Checkout) -> None:
    checkout.command("sbatch", f"touch {checkout.root}/called; kill -KILL $PPID; echo 7")
    assert checkout.burstlab("submit", "--site", "x", "job").returncode == -9
    checkout.command("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    done = checkout.burstlab("submit", "--site", "x", "job")
    assert done.returncode != 0
    assert "Unable to contact slurm controller" in done.stderr


def test_a_silent_scheduler_means_nothing_for_the_job(checkout: Checkout) -> None:
    checkout.submit()
    checkout.command("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert checkout.status() == "running"


def test_a_failure_is_recorded_for_the_cell(checkout: Checkout) -> None:
    checkout.script(RUN)
    checkout.submit()
    checkout.says("7|NODE_FAIL|NodeDown|node03|bl-x")
    done = checkout.burstlab("status", "7")
    assert done.stdout == "failed\n"
    reason = "a node of it was lost (Slurm says NODE_FAIL)"
    path = Path(TARGET).with_name("failed.json")
    assert done.stderr.startswith(f"job 7 of {TARGET}: {reason}; {path}; log: .burstlab/jobs/")
    told = json.loads((checkout.root / path).read_text())
    assert (told["status"], told["reason"]) == ("failed", f"job 7: {reason}")
    cell = told["cell"]
    assert (cell["experiment"], cell["storage"], cell["repeat"]) == ("e", "nodelocal", 2)


def test_what_the_cell_recorded_itself_stays(checkout: Checkout) -> None:
    checkout.submit()
    (checkout.root / TARGET).with_name("failed.json").write_text("its own\n")
    checkout.says("7|TIMEOUT|TimeLimit|node03|bl-x")
    assert checkout.status() == "failed"
    assert (checkout.root / TARGET).with_name("failed.json").read_text() == "its own\n"


def test_a_job_that_can_never_start_is_cancelled(checkout: Checkout) -> None:
    checkout.submit()
    checkout.command("scancel", f'echo "$@" > {checkout.root}/cancelled')
    checkout.says("7|PENDING|PartitionTimeLimit||bl-x")
    assert checkout.status() == "failed"
    assert (checkout.root / "cancelled").read_text() == "7\n"


def test_many_who_ask_at_once_ask_the_scheduler_once(checkout: Checkout) -> None:
    checkout.poll(60.0)
    checkout.submit()
    threads = [threading.Thread(target=checkout.status) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert checkout.calls("squeue") == 1


def test_a_variable_that_the_site_wants_is_asked_for(checkout: Checkout) -> None:
    text = SITE.format(poll=1) + "submit: [-A, $BURSTLAB_NO_SUCH]\n"
    (checkout.root / "config/sites/x.yaml").write_text(text)
    done = checkout.burstlab("submit", "--site", "x", "job")
    assert done.returncode == 120
    assert "set BURSTLAB_NO_SUCH in the environment" in done.stderr
    assert checkout.calls("sbatch") == 0


def test_a_storage_that_the_scheduler_gives_is_asked_for(checkout: Checkout) -> None:
    text = SITE.format(poll=1) + "submit: [-A, x]\nsubmit_for: {provided: [--beeond]}\n"
    (checkout.root / "config/sites/x.yaml").write_text(text)
    checkout.command("sbatch", f'echo "$@" > {checkout.root}/words; echo 7')
    checkout.script("--storage provided --nodes 1")
    checkout.submit()
    assert " -A x --beeond /" in (checkout.root / "words").read_text()


def test_an_id_that_nobody_noted_is_failed(checkout: Checkout) -> None:
    assert checkout.status("99") == "failed"
