"""The provisioning steps on a fake machine: what they install, that a second run changes nothing, how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_machine import FakeMachine, read_pins

PINS = read_pins()
CHANGING = ("apt-get", "pip install", "-m venv")


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def provisioned(machine: FakeMachine) -> FakeMachine:
    result = machine.run()
    assert result.returncode == 0, result.stdout + result.stderr
    return machine


def changing(calls: list[str]) -> list[str]:
    """The calls that change a machine; not `make setup`, which decides by itself whether to."""
    return [call for call in calls if any(word in call for word in CHANGING)]


def test_everything_is_installed_at_its_pin(machine: FakeMachine) -> None:
    result = machine.run()
    calls = "\n".join(machine.take_calls())
    assert result.returncode == 0, result.stderr
    assert f"p4lang-bmv2={PINS['BMV2_VERSION']} p4lang-p4c={PINS['P4C_VERSION']}" in calls
    assert f"mininet={PINS['MININET_VERSION']}" in calls
    assert f"git+{PINS['P4_UTILS_REPOSITORY']}@{PINS['P4_UTILS_COMMIT']}" in calls
    assert f"python{PINS['PYTHON_VERSION']} -m venv --system-site-packages {machine.kit}/.venv" in calls


def test_repository_is_trusted_with_its_own_key_only(provisioned: FakeMachine) -> None:
    source = (provisioned.etc / "apt/sources.list.d/p4lang.list").read_text()
    key = provisioned.etc / "apt/keyrings/p4lang.asc"
    assert source == f"deb [signed-by={key}] {PINS['P4LANG_REPOSITORY']}/xUbuntu_{PINS['UBUNTU_RELEASE']}/ /\n"
    assert key.read_text() == "a signing key\n"


def test_bmv2_modules_are_made_importable_from_where_dpkg_put_them(provisioned: FakeMachine) -> None:
    path_file = provisioned.state / "site-packages" / "p4lang-bmv2.pth"
    assert path_file.read_text() == "/usr/lib/python3.10/site-packages\n"


def test_second_run_changes_nothing(provisioned: FakeMachine) -> None:
    before = provisioned.files()
    assert changing(provisioned.take_calls())
    assert provisioned.run().returncode == 0
    assert changing(provisioned.take_calls()) == []
    assert provisioned.files() == before


def test_changed_pin_is_followed(provisioned: FakeMachine) -> None:
    versions = provisioned.kit / "vagrant" / "versions.env"
    versions.write_text(versions.read_text().replace(PINS["P4_UTILS_COMMIT"], "0" * 40).replace("=1.15.*", "=1.16.*"))
    provisioned.take_calls()
    assert provisioned.run().returncode == 0
    installed = "\n".join(changing(provisioned.take_calls()))
    assert "p4lang-bmv2=1.16.*" in installed
    assert "p4lang-p4c" not in installed
    assert f"@{'0' * 40}" in installed


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        ("prerequisites", "apt-get -q -o APT::Update::Error-Mode=any update"),
        ("prerequisites", "mininet="),
        ("p4lang-repository", "curl -fsSL"),
        ("p4lang-packages", "p4lang-bmv2="),
        ("kit", "-m venv"),
        ("kit", "make -C"),
        ("p4-utils", "pip install"),
        ("bmv2-modules", "dpkg -L"),
        ("bmv2-modules", "import bm_runtime"),
    ],
)
def test_failing_step_stops_with_its_name(machine: FakeMachine, step: str, failure: str) -> None:
    result = machine.run(FAKE_FAILURE=failure)
    assert result.returncode == 1
    assert f"step {step}" in result.stderr
    assert f"provisioning stopped at step {step}" in result.stderr
    assert result.stdout.splitlines()[-1] == f"== {step}", "a later step ran, or the check"


@pytest.mark.parametrize("failure", ["update", "curl -fsSL", "make -C", "pip install"])
def test_network_is_tried_three_times_and_no_more(machine: FakeMachine, failure: str) -> None:
    result = machine.run(FAKE_FAILURE=failure)
    assert sum(failure in call for call in machine.take_calls()) == 3
    assert "gave up on: " in result.stderr


def test_provisioning_goes_on_where_it_failed(machine: FakeMachine) -> None:
    machine.run(FAKE_FAILURE="pip install")
    machine.take_calls()
    assert machine.run().returncode == 0
    assert not any(call.startswith("apt-get") for call in machine.take_calls())


def test_failed_key_leaves_no_repository_behind(machine: FakeMachine) -> None:
    result = machine.run(FAKE_FAILURE="curl -fsSL")
    assert f"Does p4lang publish for ubuntu {PINS['UBUNTU_RELEASE']}?" in result.stderr
    assert not (machine.etc / "apt/sources.list.d/p4lang.list").exists()


def test_other_release_is_refused(machine: FakeMachine) -> None:
    machine.set_release("debian", "12")
    result = machine.run()
    assert result.returncode == 1
    assert f"this is debian 12, not ubuntu {PINS['UBUNTU_RELEASE']}" in result.stderr
    assert changing(machine.take_calls()) == []


def test_root_is_needed(machine: FakeMachine) -> None:
    result = machine.run(FAKE_USER_ID="1000")
    assert result.returncode == 2
    assert "needs root" in result.stderr


def verdicts(report: str) -> dict[str, str]:
    """The verdict of each component of a check's report."""
    return {line.split()[0]: line.split()[-1] for line in report.splitlines()[1:]}


def test_check_reports_every_component(provisioned: FakeMachine) -> None:
    result = provisioned.run("check.sh")
    assert result.returncode == 0
    assert set(verdicts(result.stdout).values()) == {"ok"}
    assert {"mininet", "p4lang-bmv2", "p4lang-p4c", "simple_switch", "p4c-bm2-ss", "python", "p4-utils"} <= set(
        verdicts(result.stdout)
    )


@pytest.mark.parametrize(
    ("variables", "wrong"),
    [
        ({"FAKE_FAILURE": "simple_switch --version"}, {"simple_switch"}),
        ({"FAKE_FAILURE": "import p4utils.mininetlib.node"}, {"p4utils.mininetlib.node"}),
        ({"FAKE_PYTHON_VERSION": "3.10.12"}, {"python"}),
    ],
)
def test_check_names_what_is_wrong(provisioned: FakeMachine, variables: dict[str, str], wrong: set[str]) -> None:
    result = provisioned.run("check.sh", **variables)
    assert result.returncode == 1
    assert {name for name, verdict in verdicts(result.stdout).items() if verdict == "WRONG"} == wrong
    assert "1 of the components above" in result.stderr


def test_check_finds_a_package_of_another_series(provisioned: FakeMachine) -> None:
    (provisioned.state / "packages" / "p4lang-bmv2").write_text("1.14.0-7\n")
    result = provisioned.run("check.sh")
    assert result.returncode == 1
    assert verdicts(result.stdout)["p4lang-bmv2"] == verdicts(result.stdout)["simple_switch"] == "WRONG"


def test_check_of_a_bare_machine_reports_all_as_missing(machine: FakeMachine) -> None:
    result = machine.run("check.sh")
    assert result.returncode == 1
    found = verdicts(result.stdout)
    assert found.pop("ubuntu") == "ok"
    assert set(found.values()) == {"WRONG"}
