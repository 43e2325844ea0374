"""The functions and types of `chat.transfer` that other packages use. The rest of the package is internal."""

from chat.transfer.exporting.personal import export_person
from chat.transfer.exporting.sessions import (
    EXTENSIONS,
    MEDIA_TYPES,
    ExportFormat,
    UnreadableError,
    export_json,
    export_markdown,
    export_session,
    require_readable,
)
from chat.transfer.formats.parsed import Source
from chat.transfer.importing.files import (
    MAX_LISTED,
    FileContents,
    ImportResult,
    OperatorLimits,
    TooLarge,
    import_file,
    limit_bytes,
    list_conversations,
)
from chat.transfer.importing.session import ImportedSession
from chat.transfer.reading.conversations import Outline

__all__ = [
    "EXTENSIONS",
    "MAX_LISTED",
    "MEDIA_TYPES",
    "ExportFormat",
    "FileContents",
    "ImportResult",
    "ImportedSession",
    "OperatorLimits",
    "Outline",
    "Source",
    "TooLarge",
    "UnreadableError",
    "export_json",
    "export_markdown",
    "export_person",
    "export_session",
    "import_file",
    "limit_bytes",
    "list_conversations",
    "require_readable",
]
