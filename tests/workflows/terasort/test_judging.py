"""What is read from what Hadoop leaves: its verdict, the cause of a failure, the job history."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Import = Callable[[str], ModuleType]
FACTS = {"rows": "3", "checksum": "7a27"}


def output(mount: Path, report: str, size: int = 300) -> Path:
    for name, content in (("sorted", "x" * size), ("validated", report)):
        (mount / name).mkdir()
        (mount / name / "part-r-00000").write_text(content)
    return mount


def test_sorted_rows_are_told(tmp_path: Path, module: Import) -> None:
    told = module("verdict").judge(output(tmp_path, "checksum\t7a27\n"), FACTS)
    assert told == "3 rows in order, checksum 7a27"


@pytest.mark.parametrize(
    ("report", "size", "why"),
    [
        (  # TeraValidate returned 0 for it
            "error\tmisorder in part-r-00000 between a and b\nchecksum\t7a27\n", 300,
            "TeraValidate found 1 errors, first misorder in part-r-00000 between a and b",
        ),
        ("checksum\t7a28\n", 300, "their checksum is 7a28, TeraGen's was 7a27"),
        ("", 300, "their checksum is None"),
        ("checksum\t7a27\n", 200, "200 bytes are sorted, of 3 rows of 100 bytes"),
    ],
)  # fmt: skip
def test_wrong_output_is_refused(
    tmp_path: Path, module: Import, report: str, size: int, why: str
) -> None:
    verdict = module("verdict")
    with pytest.raises(verdict.WrongOrder, match=why):
        verdict.judge(output(tmp_path, report, size), FACTS)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "INFO mapreduce.Job: Task Id : attempt_1_0001_m_000000_0, Status : FAILED\n"
            "Error: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/m at 512\n"
            "INFO mapreduce.Job: Job job_1_0001 failed with state FAILED due to: Task failed\n",
            "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/m at 512",
        ),
        (
            "Job job_1_0001 failed with state FAILED due to: Application failed 1 times\n"
            "Diagnostics: [x]Container [pid=7,containerID=c_1] is running beyond physical memory "
            "limits. Current usage: 99.5 MB of 96 MB physical memory used; more",
            "Container [pid=7,containerID=c_1] is running beyond physical memory limits. "
            "Current usage: 99.5 MB of 96 MB physical memory used",
        ),
        (
            "2026-11-21 10:00:00 ERROR terasort.TeraSort: Input path does not exist: file:/in\n",
            "terasort.TeraSort: Input path does not exist: file:/in",
        ),
        (
            "Exception in thread main java.lang.OutOfMemoryError: Java heap space\n\tat A.b\n",
            "java.lang.OutOfMemoryError: Java heap space",
        ),
        (
            "2026-11-21 10:00:00,001 WARN ipc.Client: Exception encountered\n"
            "java.net.ConnectException: Connection refused\n\tat A.b\n"
            "Caused by: java.io.IOException: of the socket\n\tat A.c\n"
            "2026-11-21 10:00:00,002 INFO retry.RetryInvocationHandler: "
            "java.net.SocketTimeoutException: 60000 ms, while invoking A.b. Retrying\n"
            "2026-11-21 10:00:01,001 INFO mapreduce.Job: map 0%\n"
            "java.io.FileNotFoundException: File file:/in does not exist\n\tat A.d\n",
            "java.io.FileNotFoundException: File file:/in does not exist",
        ),
        (
            "2026-11-21 10:00:00,001 WARN ipc.Client: java.net.ConnectException: refused\nKilled\n",
            "java.net.ConnectException: refused",
        ),
        ("Killed\n", "Killed"),
        ("", "it says nothing"),
    ],
)
def test_the_cause_of_a_failed_job(module: Import, said: str, cause: str) -> None:
    assert module("jobs").cause(said) == cause


HARMLESS = """\
2026-11-21 20:52:18,955 WARN server.AuthenticationFilter: Reason: IOException: no secret file
INFO: Registering org.apache.hadoop.yarn.webapp.GenericExceptionHandler as a provider class
"""
NO_PORT = """\
2026-11-21 20:52:19,001 ERROR resourcemanager.ResourceManager: Error starting ResourceManager
org.apache.hadoop.yarn.exceptions.YarnRuntimeException: java.net.BindException: Problem
\tat org.apache.hadoop.yarn.A.b(A.java:62)
Caused by: java.net.BindException: Address already in use
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
\t... 9 more
2026-11-21 20:52:19,007 INFO resourcemanager.ResourceManager: SHUTDOWN_MSG:
"""
TOLD_TO_END = """\
2026-11-21 20:52:20,001 ERROR nodemanager.NodeManager: RECEIVED SIGNAL 15: SIGTERM
2026-11-21 20:52:20,009 ERROR ipc.Server: java.lang.InterruptedException
"""


@pytest.mark.parametrize(
    ("returncode", "log", "told"),
    [
        (-9, HARMLESS, "it died (killed by SIGKILL)"),
        (-9, NO_PORT, "it died (killed by SIGKILL)"),
        (1, HARMLESS, "it died (exit status 1)"),
        (
            255, HARMLESS + NO_PORT + HARMLESS,
            "it died (exit status 255): resourcemanager.ResourceManager: Error starting "
            "ResourceManager: java.net.BindException: Address already in use",
        ),
        (
            143, NO_PORT + TOLD_TO_END,
            "it died (exit status 143): nodemanager.NodeManager: RECEIVED SIGNAL 15: SIGTERM",
        ),
    ],
)  # fmt: skip
def test_why_a_daemon_died(
    tmp_path: Path, module: Import, returncode: int, log: str, told: str
) -> None:
    path = tmp_path / "log"
    path.write_text(log)
    assert module("failure").death("it", returncode, path) == told


def test_tasks_of_a_job_history(module: Import) -> None:
    counters = [{"name": "FILE_BYTES_READ", "value": 5}, {"name": "FILE_BYTES_WRITTEN", "value": 7}]
    events = [
        ("JOB_SUBMITTED", {"jobName": "TeraSort"}),
        ("MAP_ATTEMPT_STARTED", {"attemptId": "a", "startTime": 1500}),
        ("MAP_ATTEMPT_FINISHED", {
            "attemptId": "a", "taskType": "MAP", "finishTime": 3750, "hostname": "n1",
            "counters": {"groups": [{"counts": counters}]},
        }),
        ("JOB_FINISHED", {"totalCounters": {"groups": [{"counts": counters}]}}),
    ]  # fmt: skip
    lines = [json.dumps({"type": kind, "event": {"body": body}}) for kind, body in events]
    history = module("history")
    found = history.read("\n".join(["Avro-Json", "{}", *lines, ""]))
    [task] = found.tasks
    assert task == history.Task("TeraSort-map", 1.5, 2.25, "n1", 0, 5, 7)
    assert found.counters == {"FILE_BYTES_READ": 5, "FILE_BYTES_WRITTEN": 7}


def test_a_history_of_another_format_is_refused(module: Import) -> None:
    with pytest.raises(module("failure").Failed, match="begins with 'Avro-Binary'"):
        module("history").read("Avro-Binary\nx\n")
