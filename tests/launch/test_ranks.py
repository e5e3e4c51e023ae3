"""What mpirun is told for the ranks of a workload."""

from pathlib import Path

import pytest

from burstlab.launch import ranks


@pytest.fixture(autouse=True)
def cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two hosts, and an mpirun that nobody starts."""
    (tmp_path / "hostfile").write_text("node01\nnode02\n")
    (tmp_path / "mpirun").write_text("#!/bin/sh\n")
    (tmp_path / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BURSTLAB_HOSTFILE", str(tmp_path / "hostfile"))
    monkeypatch.setenv("BURSTLAB_CELL_DIR", str(tmp_path))
    monkeypatch.setenv("BURSTLAB_CELL", "one")


def on_each_host(variables: dict[str, str]) -> list[dict[str, str]]:
    """The environment that the ranks of each host are given."""
    words = ranks.command(["program"], variables, 1)
    *_, first, second = " ".join(words).split(" --host ")
    return [dict(w.split("=", 1) for w in part.split() if "=" in w) for part in (first, second)]


@pytest.mark.parametrize(
    "name",
    [
        "MXNET_CUDNN_AUTOTUNE_DEFAULT",
        "CUDA_LAUNCH_BLOCKING",
        "OMP_PROC_BIND",
        "OPENBLAS_NUM_THREADS",
        "CHAINER_DTYPE",
        "CHAINERMN_ALLREDUCE",
        "GLOO_SOCKET_IFNAME",
    ],
)
def test_what_the_user_has_set_reaches_every_host(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "x")
    assert [found[name] for found in on_each_host({})] == ["x", "x"]


def test_a_parameter_of_the_cell_is_stronger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINERMN_BATCH", "2")
    found = on_each_host({"CHAINERMN_BATCH": "8"})
    assert [one["CHAINERMN_BATCH"] for one in found] == ["8", "8"]
    assert [one["BURSTLAB_HOST"] for one in found] == ["node01", "node02"]
    assert [one["BURSTLAB_CELL"] for one in found] == ["one", "one.node02"]


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "OMPI_COMM_WORLD_RANK", "HOME"])
def test_what_is_a_hosts_own_stays_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    assert not any(name in found for found in on_each_host({}))


@pytest.mark.parametrize(
    ("launch", "parameter", "before"),
    [("ssh", "plm_rsh_agent", "ssh -o BatchMode=yes -o ConnectTimeout=10 "),
     ("srun", "plm_slurm_args", "")],
)  # fmt: skip
def test_options_of_the_launcher_are_given_as_words(
    launch: str, parameter: str, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen with Open MPI 4.1.4: it splits them at blanks, and a quote is a letter."""
    monkeypatch.setenv("BURSTLAB_LAUNCH", launch)
    monkeypatch.setenv("BURSTLAB_LAUNCH_OPTIONS", "-i '~/key' --comment='\"quoted\"'")
    words = ranks.options()
    assert words[words.index(parameter) + 1] == f'{before}-i ~/key --comment="quoted"'


@pytest.mark.parametrize(
    ("launch", "given", "why"),
    [
        (
            "ssh", "-o 'ProxyCommand nc %h'",
            "--launch-option 'ProxyCommand nc %h': mpirun can't have it: plm_rsh_agent is "
            "split at ' ' or ':'",
        ),
        (
            "ssh", "-o ProxyJump=gate:2222 -l me",
            "--launch-option 'ProxyJump=gate:2222': mpirun can't have it: plm_rsh_agent is "
            "split at ' ' or ':'",
        ),
        (
            "srun", "--comment='two words'",
            "--launch-option '--comment=two words': mpirun can't have it: plm_slurm_args is "
            "split at ' '",
        ),
        (
            "srun", "''",
            "--launch-option '': mpirun can't have it: plm_slurm_args is split at ' '",
        ),
    ],
)  # fmt: skip
def test_options_that_mpirun_would_tear_are_refused(
    launch: str, given: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURSTLAB_LAUNCH", launch)
    monkeypatch.setenv("BURSTLAB_LAUNCH_OPTIONS", given)
    with pytest.raises(ranks.Unusable) as error:
        ranks.options()
    assert str(error.value) == why


def test_a_colon_tears_nothing_of_sruns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSTLAB_LAUNCH", "srun")
    monkeypatch.setenv("BURSTLAB_LAUNCH_OPTIONS", "--gres=gpu:4")
    assert ranks.options()[-2:] == ["plm_slurm_args", "--gres=gpu:4"]
