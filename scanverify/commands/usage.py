"""What the commands share: errors of use, exit codes, and how durations are written."""

from __future__ import annotations

import os
import re

OK, VERDICT, USAGE, INTERRUPTED, CLOSED_OUTPUT = 0, 1, 2, 130, 141


class UsageError(Exception):
    """What the user has to change, in one sentence."""


def duration(text: str) -> float:
    """Seconds in ``8h``, ``90m``, ``1h30m`` or ``45`` (seconds); raises :class:`UsageError`."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    if not text or match is None:
        raise UsageError(f"{text!r} is no duration: write it like 8h, 90m, 1h30m or 45s.")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(3600 * hours + 60 * minutes + seconds)


def worker_count(text: str) -> int:
    """``auto`` or a number of at least 1; raises :class:`UsageError`."""
    if text == "auto":
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"-n {text}: the number of workers must be at least 1, or auto.")
    return int(text)
