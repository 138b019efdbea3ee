"""Bars for those who ask with `progress=True`, in plain text on standard error: a terminal or a notebook shows them."""

import sys
import time
from collections.abc import Callable

from flashcards.contract.resources import TERMINAL_STATES, Event, Progress

WIDTH = 24
PAUSE_SECONDS = 0.2


class Line:
    """One line that is written over again and again; where that cannot be, only its last form is printed."""

    def __init__(self) -> None:
        self._drawn_at = 0.0
        self._longest = 0

    def draw(self, text: str, last: bool) -> None:
        if not last and (not sys.stderr.isatty() or time.monotonic() - self._drawn_at < PAUSE_SECONDS):
            return
        self._drawn_at = time.monotonic()
        self._longest = max(self._longest, len(text))
        sys.stderr.write(f"\r{text:<{self._longest}}" if sys.stderr.isatty() else text)
        sys.stderr.write("\n" if last else "")
        sys.stderr.flush()


def show_job(kind: str) -> Callable[[Event], None]:
    """To be called with the events of a job."""
    line, latest = Line(), Progress()

    def show(event: Event) -> None:
        nonlocal latest
        if event.kind == "progress":
            latest = Progress.model_validate(event.data, extra="ignore")
            line.draw(f"{kind} {bar(latest.fraction)} {in_words(latest)}", last=False)
        elif event.kind == "state" and event.data["state"] in TERMINAL_STATES:
            line.draw(f"{kind} {bar(latest.fraction)} {event.data['state']}", last=True)

    return show


def show_upload(name: str) -> Callable[[int, int], None]:
    line = Line()
    return lambda sent, size: line.draw(f"{name} {bar(sent / size if size else 1.0)} {size:,} bytes", sent >= size)


def bar(fraction: float) -> str:
    done = round(WIDTH * min(1.0, max(0.0, fraction)))
    return f"[{'#' * done}{'.' * (WIDTH - done)}] {fraction:4.0%}"


def in_words(progress: Progress) -> str:
    unit = progress.unit or "steps"
    parts = [f"{progress.step:,}/{progress.steps:,}" if progress.steps else f"{progress.step:,}"]
    if progress.epoch is not None:
        parts.append(f"epoch {progress.epoch}")
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.4f}")
    if progress.rate is not None:
        parts.append(f"{progress.rate:,.0f} {unit}/s")
    if progress.eta_seconds:
        minutes, seconds = divmod(round(progress.eta_seconds), 60)
        parts.append(f"{minutes}:{seconds:02d} left")
    return "  ".join(parts)
