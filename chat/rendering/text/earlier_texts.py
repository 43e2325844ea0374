"""Texts of earlier releases that rows still have, and the present texts that replaced them.

A row keeps the template of its text, and `translation.translate` looks it up in the catalogs. They contain only
present templates, so an earlier one would be shown in English to all users.
"""

from __future__ import annotations

from collections.abc import Mapping

_BROKEN = "Something went wrong. The error was logged. Retry, and contact your administrator if it happens again."
_DECLINED = (
    "The model declined to answer. Further requests contain the declined message, too. Edit that message, exclude it "
    "from context, or switch to another model."
)
_INCOMPLETE = "The model’s answer was incomplete. Retry, or choose another model."
_LIMITED = "Rate limit reached at {name}. Retry later."
_LIMITED_FOR = "Rate limit reached at {name}. Retry in {seconds} s."
_OUTPUT = "The answer reached the model’s output limit. Ask it to continue, or raise max_tokens for this model."
_OVERLOADED = "{name} is overloaded or down ({status}). Retry later."
_PAUSED = "The model paused {count} times without an answer. Retry, or choose another model."
_STOPPED = (
    "The server stopped several times during this answer, so Parley didn’t continue it. Retry, and contact your "
    "administrator if it happens again."
)

# Present templates by earlier ones, which have the same values.
PRESENT: Mapping[str, str] = {
    "Cannot reach {name} at {address}: {reason}.": "Couldn’t reach {name} at {address}: {reason}.",
    "It has not been asked yet.": "It hasn’t been queried yet.",
    "Rate limit reached at {name}. Try again in {seconds} s.": _LIMITED_FOR,
    "Rate limit reached at {name}. Try again later.": _LIMITED,
    "Something went wrong inside Parley. It has been logged.": _BROKEN,
    "Something went wrong inside Parley. It has been logged. Retry, and tell your administrator if it happens "
    "again.": _BROKEN,
    "Talking to {name} failed in an unexpected way; the server's log has the details. Retry, or switch to another "
    "model.": (
        "Something went wrong while calling {name}. The server log has the details. Retry, or switch to another model."
    ),
    "The API key{key} may not do this at {name}.": "The API key{key} isn’t allowed to do this at {name}.",
    "The account at {name} cannot pay for this.": "{name} reports insufficient credit.",
    "The answer reached the model's output limit. Ask it to continue, or raise max_tokens for this model.": _OUTPUT,
    "The answer was cut at the model's output limit. Ask it to go on, or raise max_tokens for this model.": _OUTPUT,
    "The connection to {name} ({address}) broke off in the middle of the answer.": (
        "The connection to {name} ({address}) was lost during the answer."
    ),
    "The files of this conversation are not available right now. Retry in a moment.": (
        "The files of this session are not available right now. Retry in a moment."
    ),
    "The model declined to answer. Rephrase the request, or switch to another model.": _DECLINED,
    "The model gave an empty answer. Try again, or choose another model.": (
        "The model gave an empty answer. Retry, or choose another model."
    ),
    "The model paused {count} times without an answer. Retry to continue.": _PAUSED,
    "The model paused {count} times without an answer. Retry to go on.": _PAUSED,
    "The model's answer ended without its end mark. Retry to ask again.": _INCOMPLETE,
    "The model's answer was incomplete. Retry to ask again.": _INCOMPLETE,
    "The model’s answer was incomplete. Retry to ask again.": _INCOMPLETE,
    "The provider “{provider}” is not configured here (any more). Choose another model.": (
        "The provider “{provider}” isn’t configured on this server. Choose another model."
    ),
    "The request to {name} cannot be sent: {reason}. Check its address and its API key{key}.": (
        "Couldn’t send the request to {name}: {reason}. Check its address and API key{key}."
    ),
    "The server stopped several times during this answer, so Parley didn’t try again. Retry, and contact your "
    "administrator if it happens again.": _STOPPED,
    "The server stopped several times while it worked on this answer, so it has not tried again. Retry, and tell "
    "your administrator if it happens again.": _STOPPED,
    "it did not take the connection in time": "the connection timed out",
    "the connection was refused; is the server running?": "the connection was refused (is the server running?)",
    "the host name cannot be resolved": "the host name couldn’t be resolved",
    "{name} ({address}) sent something that is not a model's answer: {detail}": (
        "Unexpected response from {name} ({address}): {detail}"
    ),
    "{name} does not accept the API key{key}.": "{name} rejected the API key{key}.",
    "{name} gave up waiting for the request.": "The request to {name} timed out.",
    "{name} is overloaded or down ({status}). Try again later.": _OVERLOADED,
    "{name} is overloaded or out of order ({status}). Try again later.": _OVERLOADED,
    "{name} lists no chat models.": "{name} offers no chat models.",
    "{name} refuses the parameter “{parameter}”.": "{name} rejected the parameter “{parameter}”.",
    "{name} refuses the request ({status}).": "{name} rejected the request ({status}).",
    "{name} takes no more requests for now. Try again in {seconds} s.": _LIMITED_FOR,
    "{name} takes no more requests for now. Try again later.": _LIMITED,
    "{name} wants an API key and none is set.": "{name} needs an API key, and none is set.",
    "{name} wants an API key and none is set. Set {key}.": "{name} needs an API key. Set {key}.",
    "“{provider}” has not told which models it offers. {why} Check the server, or choose a model.": (
        "Couldn’t get the list of models from “{provider}”. {why} Check the server, or choose a model."
    ),
}
