"""The documents agree with the code."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import get_args

import crossplane
import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from agents.registry import load
from agents.vendors import VENDORS
from chat.api.webhooks import Event
from chat.asgi import bodies
from chat.limits.rates import DAY, HOUR, MINUTE, RATES, Rate
from chat.models import TEST_EVENT, WebhookEvent
from chat.services.people.security_log import Kind
from config.options import OTHERS
from tests.commands.process import ROOT
from tests.support.agreement import agree

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.yaml")])


def test_configuration_page_is_up_to_date() -> None:
    """The page describes exactly the settings that exist, with their present defaults."""
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts/configuration", "--check"], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stderr


def test_variables_of_vendors_are_described() -> None:
    """RUN-05: the document names the environment variable of each vendor's key, which is enough to use the vendor."""
    described = {name for name in OTHERS if any(name in (each.key_env, each.url_env) for each in VENDORS.values())}
    agree(
        described,
        [name for each in VENDORS.values() for name in (each.key_env, each.url_env) if name],
        missing="Describe {} in OTHERS of config/options.py, then run scripts/configuration.",
        extra="",
    )
    page = (ROOT / "docs/models.md").read_text()
    unnamed = [each.key_env for each in VENDORS.values() if each.key_env not in page]
    assert not unnamed, f"Write into docs/models.md: {', '.join(unnamed)}"


def test_events_of_webhooks_are_described() -> None:
    """HOOK-02: the page describes the events that the API accepts, and no others."""
    described = [row[0].strip("`") for row in table("webhooks.md", "## Events")]
    agree(
        described,
        [*WebhookEvent.values, TEST_EVENT],
        missing='Add `{}` to the table of "Events" in docs/webhooks.md.',
        extra='Remove `{}` from the table of "Events" in docs/webhooks.md: no webhook gets it.',
    )
    agree(
        get_args(Event),
        WebhookEvent.values,
        missing="Add {} to Event in chat/api/webhooks.py.",
        extra="Remove {} from Event in chat/api/webhooks.py: no webhook gets it.",
    )


def test_commands_are_in_a_document() -> None:
    """Each command is named in a document."""
    own = [name for name, app in get_commands().items() if app == "chat"]
    texts = "\n".join(document.read_text() for document in DOCUMENTS)
    unnamed = [name for name in own if not re.search(rf"manage\.py {name}\b", texts)]
    assert not unnamed, f"Describe them in docs/deployment.md: {', '.join(unnamed)}"


def test_example_configuration_can_be_used(tmp_path: Path) -> None:
    example = "\n".join(re.findall(r"```toml\n(.*?)```", (ROOT / "docs/models.md").read_text(), re.DOTALL))
    file = tmp_path / "parley.toml"
    file.write_text(example)

    registry = load(file, {"CLAUDE_KEY": "key", "OPENAI_API_KEY": "key"})

    assert [registry.preset(name).name for name in ("assistant", "researcher")] == ["assistant", "researcher"]
    assert registry.context_window("workstation", "qwen3-32b") == 131072
    assert registry.preset().model == "claude-sonnet-5-5"


def test_commands_in_documents_exist_with_their_options() -> None:
    """OPS-07: the commands in the documents exist with their options."""
    named = re.compile(r"manage\.py ([a-z]+)([^`#\n]*)")
    found = {use for document in DOCUMENTS for use in named.findall(document.read_text())}
    wrong = set()
    for name, rest in found:
        if name not in get_commands():
            wrong.add(name)
            continue
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        known = {option for action in parser._actions for option in action.option_strings}
        wrong |= {f"{name} {option}" for option in re.findall(r"--[a-z-]+", rest) if option not in known}
    assert len(found) > 20
    assert wrong == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"(?<!!)\[[^\]]+\]\((?!https?:)([^)#]+)", document.read_text())

    assert [link for link in links if not (document.parent / link).exists()] == []


def test_proxy_examples_can_be_used_and_let_through_what_parley_takes(tmp_path: Path) -> None:
    """The proxies' limits allow what Parley's settings allow, because the proxy's error page would explain nothing."""
    document = (ROOT / "docs/deployment.md").read_text()
    (example,) = re.findall(r"```nginx\n(.*?)```", document, re.DOTALL)
    file = tmp_path / "nginx.conf"
    file.write_text(f"events {{}}\nhttp {{\n{example}}}\n")

    parsed = crossplane.parse(str(file))

    assert (parsed["status"], parsed["errors"]) == ("ok", [])
    (caddy,) = re.findall(r"```caddy\n(.*?)```", document, re.DOTALL)
    largest = [settings.DATA_UPLOAD_MAX_MEMORY_SIZE, bodies.UPLOADS["import-file"]().size]
    sizes = [int(size) * 1024**2 for size in re.findall(r"client_max_body_size (\d+)m;", example)]
    assert [size >= most for size, most in zip(sizes, largest, strict=True)] == [True, True]
    assert f"limit_conn parley {settings.CONNECTIONS_PER_ADDRESS};" in example
    assert "proxy_max_temp_file_size 0;" in example  # otherwise large downloads are cut off
    for proxy in (example, caddy):  # otherwise clients choose the ids in the log
        assert re.search(r"X-Request-ID [${]", proxy)
    sizes = [int(size) * 1000**2 for size in re.findall(r"max_size (\d+)MB", caddy)]
    assert [size >= most for size, most in zip(sizes, reversed(largest), strict=True)] == [True, True]


def table(document: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its header."""
    section = (ROOT / "docs" / document).read_text().split(f"{heading}\n")[1].split("\n#")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def window(rate: Rate) -> str:
    unit, name = next(each for each in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")) if rate.seconds >= each[0])
    many = rate.seconds // unit
    article = "an" if name == "hour" else "a"
    return f"{rate.amount:,} in {article} {name}" if many == 1 else f"{rate.amount:,} in {many} {name}s"


def test_rate_limits_are_those_of_the_code() -> None:
    """The document has each name of LIMITS with its default, in the order of the code."""
    expected = [[f"`{name}`", window(rate), rate.reason] for name, rate in RATES.items()]
    assert table("deployment.md", "### Rate limits") == expected


def test_kinds_of_security_events_are_those_of_the_code() -> None:
    text = (ROOT / "docs/security.md").read_text()
    (kinds,) = re.findall(r"^Kinds: (.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    agree(
        re.findall(r"`([a-z_]+)`", kinds),
        Kind,
        missing='Add `{}` to the line "Kinds:" in docs/security.md.',
        extra='Remove `{}` from the line "Kinds:" in docs/security.md: no event is of that kind.',
    )


def test_limits_of_sockets_are_the_defaults_of_the_settings() -> None:
    """LIVE-06: the protocol document has the number of connections that a client may open."""
    (row,) = (row[1] for row in table("protocol.md", "### Limits") if row[0] == "sockets of one user")
    defaults = dict(re.findall(r"`(\w+)` \| integer \| `(\d+)`", (ROOT / "docs/configuration.md").read_text()))
    assert re.findall(r"\d+", row) == [defaults["SOCKETS_PER_USER"], defaults["STREAMS_PER_USER"]]


def test_going_back_keeps_what_only_the_log_of_the_database_has(tmp_path: Path) -> None:
    """After a crash, the last rows of the newer version are in the write-ahead log, not yet in the file."""
    (tmp_path / "var/backups").mkdir(parents=True)
    (tmp_path / "var/backups/before-update-20260228-143000.sqlite3").write_text("the copy")
    with closing(sqlite3.connect(tmp_path / "parley.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE written AS SELECT 'after the update' AS text")
        database.commit()
        for end in ("", "-wal"):  # as a server that was killed leaves them
            shutil.copy(tmp_path / f"parley.sqlite3{end}", tmp_path / "var")
    section = (ROOT / "docs/deployment.md").read_text().split("### Going back\n")[1]
    (commands,) = re.findall(r"```sh\n(.*?)```", section.split("\n#")[0], re.DOTALL)

    subprocess.run(["/bin/sh", "-e", "-c", commands], cwd=tmp_path, check=True)

    with closing(sqlite3.connect(tmp_path / "var/parley-newer.sqlite3")) as newer:
        assert newer.execute("SELECT text FROM written").fetchall() == [("after the update",)]
    assert (tmp_path / "var/parley.sqlite3").read_text() == "the copy"
