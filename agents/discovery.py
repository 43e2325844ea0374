"""The models that a provider offers, from the configuration, from its listing endpoint or from the built-in list."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from agents.config import ProviderConfig
from agents.errors import ProviderError
from agents.i18n import gettext as _
from agents.model_facts import is_known_claude
from agents.providers.base import ListedModel

logger = logging.getLogger(__name__)

FRESH_SECONDS = 600.0
# Shorter after a failure, because the server may be starting.
RETRY_SECONDS = 60.0
# How long a page waits for a list. A list that arrives later, such as from a server that is loading, is still used.
LISTING_SECONDS = 5.0
ANSWER_SECONDS = 30.0

# Over Chat Completions, OpenAI's newer models accept tools only if they do not reason. These models reason only if
# they are asked to.
OPENAI_CHAT = ("gpt-5.4", "gpt-5.4-mini", "gpt-4.1")

_NO_CHAT = re.compile(
    "embed|whisper|tts|dall-e|moderation|rerank|audio|realtime|transcribe|image|stable-diffusion|sora|computer-use"
    "|deep-research|babbage|davinci|guard"
)
# In the names of open models, "instruct" marks the chat model.
_NO_CHAT_OF_OPENAI = re.compile("search|instruct$")
# OpenAI lists all of its models. Those that match answer over its Responses API. Except for `_RESPONSES_ONLY`, they
# also answer over Chat Completions.
_OPENAI = re.compile(r"(gpt-|chatgpt-|o\d)(?!.*(cyber|live))")
_RESPONSES_ONLY = re.compile(r"-pro\b|codex")

ListModels = Callable[[], Awaitable[Mapping[str, ListedModel]]]
UNLISTED = ListedModel()


class Listing:
    """The models of one provider. Its methods never raise, and `refresh` waits for LISTING_SECONDS at most."""

    def __init__(
        self, name: str, config: ProviderConfig, ask: ListModels, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.problem = ""
        self._name = name
        self._config = config
        self._ask = ask
        self._clock = clock
        self._found: list[str] = []
        self._stated: Mapping[str, ListedModel] = {}
        self._due = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._asked_at = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether only the listed models may be used."""
        return bool(self._config.listed)

    @property
    def _is_needed(self) -> bool:
        """Whether the list can say what the configuration does not: models, the windows of an own server, or what
        newer models of Claude can.
        """
        config = self._config
        is_own_server = config.type == "openai" and not config.is_openai
        has_windows = bool(config.context_window) or all(each.context_window for each in config.models.values())
        has_newer = config.type == "anthropic" and not all(map(is_known_claude, config.models))
        return not self.is_complete or (is_own_server and not has_windows) or has_newer

    def known(self) -> list[str]:
        """Return the known models, the default first. Without built-in models, it is [] until the server lists some."""
        return self._config.listed or self._found or self._built_in()

    def stated(self, model: str) -> ListedModel:
        """Return what the server states about a model."""
        return self._stated.get(model, UNLISTED)

    async def refresh(self) -> None:
        """Request the list if it is needed and due. Wait for the answer only if no model is known without it.

        The time to wait counts from the request, so a silent server does not delay each page again.
        """
        if not self._is_needed or (self._clock() < self._due and not self._is_asking()):
            return
        if not self._is_asking():
            self._task = asyncio.create_task(self._update(), name=f"models of {self._name}")
            self._asked_at = self._clock()
        if self._task is not None and not (self._found or self.is_complete):
            rest = self._asked_at + LISTING_SECONDS - self._clock()
            await asyncio.wait([self._task], timeout=max(0.0, rest))
            if not self._task.done():
                self.problem = f"{self._name} did not list its models within {LISTING_SECONDS:g} seconds."

    async def close(self) -> None:
        if self._is_asking() and self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _is_asking(self) -> bool:
        task = self._task
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    async def _update(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                models = await self._ask()
        except TimeoutError:
            self._note_failure(f"{self._name} did not list its models within {ANSWER_SECONDS:g} seconds.")
        except ProviderError as error:
            self._note_failure(str(error))
        except Exception:  # the page must open, whatever the server sends
            logger.log(self._level(logging.ERROR), "Could not list the models of %s", self._name, exc_info=True)
            self._note_failure(f"{self._name} returned a list of models that Parley cannot read.")
        else:
            # The built-in ones come first, in their order. The others keep the order of the server.
            offered = _chat_models(self._config, models)
            first = [name for name in self._built_in() if name in offered]
            self._found = [*first, *(name for name in offered if name not in first)]
            self._stated = models
            has_models = self._found or self.is_complete
            self.problem = "" if has_models else _("{name} offers no chat models.", name=self._name)
            self._due = self._clock() + FRESH_SECONDS

    def _note_failure(self, problem: str) -> None:
        self.problem = "" if self.is_complete else problem
        self._due = self._clock() + RETRY_SECONDS
        logger.log(self._level(logging.WARNING), "Models of %s: %s", self._name, problem)

    def _level(self, level: int) -> int:
        """Return the level for a failure. With configured models, it is normal that a server has no list."""
        return logging.DEBUG if self.is_complete else level

    def _built_in(self) -> list[str]:
        if self._config.type == "openai" and not self._config.is_openai:
            return []
        with_chat = self._config.is_openai and self._config.openai_api == "chat"
        return list(OPENAI_CHAT if with_chat else self._config.vendor.models)


def _chat_models(config: ProviderConfig, names: Iterable[str]) -> list[str]:
    chat = [name for name in dict.fromkeys(names) if name and not _NO_CHAT.search(name.lower())]
    if not config.is_openai:
        return chat
    with_responses = config.openai_api == "responses"
    own = [name for name in chat if _OPENAI.match(name) and not _NO_CHAT_OF_OPENAI.search(name)]
    return sorted((name for name in own if with_responses or not _RESPONSES_ONLY.search(name)), reverse=True)
