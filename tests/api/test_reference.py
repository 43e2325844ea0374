"""The reference page of the API."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from django.test import Client

from chat.api.api import api

pytestmark = pytest.mark.django_db


def test_session_files_have_the_name_of_the_glossary() -> None:
    """LIVE-03: the files of a session are never called those of its workspace, which is a team with other files."""
    tags = {tag["name"] for tag in api.get_openapi_schema()["tags"]}
    assert ("Session files" in tags, "Workspace files" in tags) == (True, False)
    used = [each["tags"] for methods in api.get_openapi_schema()["paths"].values() for each in methods.values()]
    assert {name for names in used for name in names} <= tags


def test_paths_of_new_objects_are_described_where_there_are_any() -> None:
    """LIVE-03: only operations whose new object can be read at a path of its own describe a `Location`."""
    paths = api.get_openapi_schema()["paths"]
    made = {
        path: "Location" in methods["post"]["responses"][201].get("headers", {})
        for path, methods in paths.items()
        if 201 in methods.get("post", {}).get("responses", {})
    }
    assert {path.removeprefix("/api") for path, described in made.items() if not described} == {
        "/me/notes",
        "/workspaces/{workspace_id}/notes",
        "/workspaces/{workspace_id}/invitations",
        "/sessions/{session_id}/invitations",
        "/workspaces/{workspace_id}/webhooks",
        "/sessions/import",
        "/imports/{import_id}/sessions",
    }


def test_page_describes_every_operation_and_object() -> None:
    """LIVE-03: each operation and object has its own anchor, links lead to existing ones, and the policy allows no
    inline content."""
    answer = Client().get("/api/docs")
    page = BeautifulSoup(answer.content, "html.parser")
    schema = api.get_openapi_schema()
    ids = {str(each["id"]) for each in page.find_all(id=True)}
    operations = {each["operationId"] for methods in schema["paths"].values() for each in methods.values()}
    assert operations | schema["components"]["schemas"].keys() <= ids
    links = {str(each["href"]) for each in page.find_all("a", href=True)}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    assert not page.find_all(style=True)
    assert not page.find_all("style")
    assert all(each.get("src") for each in page.find_all("script"))
    assert "unsafe" not in answer["Content-Security-Policy"]
    text = page.get_text(" ", strip=True)
    assert "`" not in text
    assert '"completed" or "interrupted"' in " ".join(text.split())
