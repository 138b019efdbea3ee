import logging
import re
import sys
from typing import Any

import structlog

from ledger.settings import Settings

#: Keys of ours, secrets of webhooks, passwords in addresses, and whatever stands in an Authorization header.
SECRETS = (
    (re.compile(r"fc_[0-9A-Za-z]{20,}"), "fc_***"),
    (re.compile(r"whsec_[0-9A-Za-z+/=_-]+"), "whsec_***"),
    (re.compile(r"(\w+://[^\s:/@]*):[^\s@/]*@"), r"\1:***@"),
    (re.compile(r"(?i)(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)\b(password|secret|token)=[^\s&'\"]+"), r"\1=***"),
)


def configure_logs(settings: Settings) -> None:
    """One format for our lines and for those of the libraries."""
    level = logging.getLevelName(settings.log_level)
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        without_secrets,
    ]
    last: structlog.types.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last], foreign_pre_chain=shared
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


def without_secrets(_: Any, __: str, line: structlog.types.EventDict) -> structlog.types.EventDict:
    """The last look at a line: errors of libraries quote what they were given."""
    return {name: _mask(value) for name, value in line.items()}


def _mask(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mask(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(part) for part in value]
    if isinstance(value, BaseException):
        value = str(value)
    if not isinstance(value, str):
        return value
    for pattern, replacement in SECRETS:
        value = pattern.sub(replacement, value)
    return value
