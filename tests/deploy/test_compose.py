"""compose.yaml, checked without Docker: it is consistent and uses Parley's settings."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

from chat.asgi import bodies
from config.options import OPTIONS, OTHERS
from tests.commands.process import ROOT
from tests.deploy.dockerfile import stages

TEXT = (ROOT / "deploy/compose.yaml").read_text()
FILE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
FINAL = stages(ROOT / "deploy/Dockerfile")[-1]


def seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)(s|m)", text)
    assert found, text
    return int(found[1]) * {"s": 1, "m": 60}[found[2]]


def test_compose_has_a_team() -> None:
    """OPS-07: there are two of each process, so that one can be restarted."""
    assert set(SERVICES) == {"proxy", "migrate", "web", "agents", "postgres", "redis"}
    assert [SERVICES[name]["deploy"]["replicas"] for name in ("web", "agents")] == [2, 2]
    assert SERVICES["web"]["environment"]["RUNNER"] == "none"
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]


@pytest.mark.parametrize("name", OURS)
def test_parley_s_services_run_its_commands_with_its_settings(name: str) -> None:
    """OPS-07: the services use existing commands and settings, because a misspelled setting would be ignored
    silently."""
    service = SERVICES[name]
    assert service["command"][0] in {*get_commands(), "migrate"}
    assert set(service["environment"]) <= {*OPTIONS, *OTHERS}
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert [volume.split(":")[1] for volume in service["volumes"]] == [FINAL.last("VOLUME")]


def test_references_lead_somewhere() -> None:
    """OPS-07: a service that others wait for has a health check, because they would wait forever otherwise."""
    for service in SERVICES.values():
        for needed, condition in service.get("depends_on", {}).items():
            kind = condition["condition"]
            assert kind != "service_healthy" or "test" in SERVICES[needed]["healthcheck"]
            assert kind != "service_completed_successfully" or SERVICES[needed]["restart"] == "on-failure"
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in FILE["volumes"] or (ROOT / "deploy" / source).exists()
    assert (ROOT / "deploy" / SERVICES["web"]["build"]["context"] / SERVICES["web"]["build"]["dockerfile"]).exists()
    for variable in ("DATABASE_URL", "REDIS_URL"):
        (host,) = re.findall(r"(?:@|//)(\w+):\d+/", SERVICES["web"]["environment"][variable])
        assert host in SERVICES


def test_variables_are_in_the_example() -> None:
    """OPS-07: the example has every variable that must be set."""
    used = set(re.findall(r"\$\{(\w+)", TEXT)) | set(re.findall(r"\{\$(\w+)\}", caddyfile()))
    named = re.findall(r"^(\w+)=", (ROOT / "deploy/example.env").read_text(), re.MULTILINE)
    assert used - {"PARLEY_VERSION"} == set(named)


def test_probes_ask_the_image_s_port() -> None:
    """OPS-07, OPS-01: the probes use the image's port, because the proxy would wait forever otherwise."""
    port = FINAL.environment()["MONITORING_PORT"]
    for name in ("web", "agents"):
        assert f"http://127.0.0.1:{port}/readyz" in SERVICES[name]["healthcheck"]["test"][-1]


def test_turns_may_end_before_a_container_is_killed() -> None:
    """OPS-07, RUN-15: containers have time to finish their turns, unlike with Docker's default of ten seconds."""
    agents = SERVICES["agents"]
    assert seconds(agents["stop_grace_period"]) > int(agents["environment"]["GRACE_SECONDS"])


def caddyfile() -> str:
    return (ROOT / "deploy/Caddyfile").read_text()


def test_proxy_lets_through_what_parley_takes() -> None:
    """OPS-07: the proxy's limits allow what the settings allow, because its error page would explain nothing."""
    largest = [bodies.UPLOADS["import-file"]().size, settings.DATA_UPLOAD_MAX_MEMORY_SIZE]
    sizes = [int(size) * 1000**2 for size in re.findall(r"max_size (\d+)MB", caddyfile())]
    assert [size >= most for size, most in zip(sizes, largest, strict=True)] == [True, True]
    assert f"name web\n\t\t\tport {FINAL.environment()['PORT']}" in caddyfile()
    example = re.findall(r"```caddy\n(.*?)```", (ROOT / "docs/deployment.md").read_text(), re.DOTALL)[0]
    matchers = re.findall(r"^\t@.*$", example, re.MULTILINE)
    assert re.findall(r"^\t@.*$", caddyfile(), re.MULTILINE) == matchers
