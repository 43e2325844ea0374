"""The page of a file of a workspace."""

from __future__ import annotations

import re

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from chat.models import KnowledgeFile, KnowledgePassage, Membership, User, Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]
PASSAGES = 120


@pytest.fixture
def page(ana: User, workspace: Workspace) -> str:
    file = KnowledgeFile(
        workspace=workspace, name="Long.md", kind="text", size=2, characters=2, passage_count=PASSAGES, added_by=ana
    )
    file.file.save("x", ContentFile(b"Hi"))
    KnowledgePassage.objects.bulk_create(
        KnowledgePassage(file=file, number=number, text="Hi", words="hi") for number in range(1, PASSAGES + 1)
    )
    return reverse("knowledge-file", args=[file.pk])


def shown(html: str) -> tuple[int, int, list[int], dict[str, str]]:
    """Return the first and the last passage, the passages marked as cited, and the addresses of other passages."""
    numbers = [int(each) for each in re.findall(r'id="passage-(\d+)"', html)]
    marked = [int(each) for each in re.findall(r'id="passage-(\d+)"[^>]*data-cited', html)]
    links = {name: address for address, name in re.findall(r'href="(\?[^"]*)">(Earlier|Later) passages', html)}
    return numbers[0], numbers[-1], marked, links


def test_paging_marks_no_passage_as_cited(client: Client, ana: User, page: str) -> None:
    """CTX-09: only the passage of the followed link is marked as cited, and paging shows every passage."""
    client.force_login(ana)

    def see(query: str) -> tuple[int, int, list[int], dict[str, str]]:
        return shown(client.get(page + query).content.decode())

    first, last, marked, links = see("?passage=60")
    assert (first, last, marked) == (58, 107, [60])
    assert see(links["Earlier"])[:3] == (8, 57, [])
    first, last, marked, rest = see(links["Later"])
    assert (first, last, marked, list(rest)) == (108, PASSAGES, [], ["Earlier"])
    assert see("")[:3] == (1, 50, [])
    assert see("?start=x")[:3] == (1, 50, [])


def test_refused_rename_says_why_and_keeps_the_name(client: Client, ana: User, page: str, workspace: Workspace) -> None:
    """CTX-09: also if another page has removed the file in the meantime."""
    client.force_login(ana)
    file = KnowledgeFile.objects.get()
    where = reverse("knowledge", args=[workspace.pk])
    rename = {"part": "rename", "file_id": file.pk, "name": " \t "}
    refused = client.post(where, rename).content.decode()
    assert "Enter a name." in refused
    assert f'value="{rename["name"]}"' in refused
    client.post(where, {"part": "remove", "file_id": file.pk})
    refused = client.post(where, {**rename, "name": "Short.md"}).content.decode()
    assert '<p class="errors" role="alert">This file no longer exists.</p>' in refused


def test_guests_read_who_can_open_a_cited_file(client: Client, bo: User, page: str) -> None:
    """CTX-09: the page for a citation says that only members can open the file, and does not tell whether it exists."""
    client.force_login(bo)
    Membership.objects.filter(user=bo).update(role=Membership.Role.GUEST)
    found, other = client.get(f"{page}?passage=1"), client.get(reverse("knowledge-file", args=["k_" + "1" * 24]))
    assert (found.status_code, other.status_code) == (404, 404)
    assert "Only members of its workspace can open it." in found.content.decode()
    assert found.content == other.content
