"""The files of deploy/ pass the linters of their formats and name what the service has."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pastwise.cli.serve import serve
from pastwise.service.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
YAML = ("compose.yaml", "prometheus.yml", "alerts.yaml")


def accepted(*command: str | Path) -> None:
    """Run a linter of this environment, which must not object."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str) -> Path:
    """A program that was installed next to this interpreter."""
    return Path(sys.executable).with_name(name)


def test_dockerfile_follows_the_practices_of_hadolint() -> None:
    accepted(tool("hadolint"), DEPLOY / "Dockerfile")


@pytest.mark.parametrize("name", YAML)
def test_yaml_is_tidy(name: str) -> None:
    rules = "{extends: default, rules: {document-start: disable, line-length: {max: 100}}}"
    accepted(sys.executable, "-m", "yamllint", "--strict", "-d", rules, DEPLOY / name)


def test_compose_file_follows_its_specification() -> None:
    schema = "vendor.compose-spec"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    accepted(*command, DEPLOY / "compose.yaml")


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian: prometheus)")
def test_prometheus_reads_its_files(tmp_path: Path) -> None:
    for name in ("prometheus.yml", "alerts.yaml"):
        shutil.copy(DEPLOY / name, tmp_path)
    tmp_path.joinpath("metrics.token").write_text("pw_token")
    accepted("promtool", "check", "config", tmp_path / "prometheus.yml")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "pastwise.service").read_text(encoding="utf-8")
    unit = tmp_path / "pastwise.service"
    unit.write_text(text.replace("/opt/pastwise/bin/pastwise", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_line_has_the_options_that_are_used() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    image = json.loads(dockerfile.partition("ENTRYPOINT ")[2])
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    unit = (DEPLOY / "pastwise.service").read_text(encoding="utf-8")
    started = unit.partition("ExecStart=")[2].splitlines()[0].split()
    for command in ([*image, *compose["services"]["pastwise"]["command"]], started):
        assert command[1] == "serve"
        serve.make_context("serve", command[2:])


def test_the_image_gets_the_files_that_it_is_built_from() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    sources = {source for copy in copies if not copy[0].startswith("--") for source in copy}
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert {source.removeprefix("./") for source in sources} == sent


def test_alerts_look_at_metrics_that_the_service_has() -> None:
    alerts = (DEPLOY / "alerts.yaml").read_text(encoding="utf-8")
    named = {name.removesuffix("_bucket") for name in re.findall(r"pastwise_[a-z_]+", alerts)}
    exported = {metric.name for metric in vars(Metrics()).values()}
    assert named <= exported
    assert len(named) >= 5
