"""A heap in huge pages for a worker's child: PyPTO spends its time in small objects.

Compiling makes and follows some hundred thousand objects, and most of what they cost is
looking up the pages that they lie in; huge pages save up to an eighth of a case. A forked child
gains little from those of its template: what it writes to is split into small ones again. glibc
gives every thread a heap of its own, so the child works in a fresh thread. Standard library alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

#: glibc's names for: heaps in huge pages, grown by 64 MiB at a time, 256 MiB of it kept when free.
_TUNABLES = {
    "glibc.malloc.hugetlb": "1",
    "glibc.malloc.top_pad": str(64 << 20),
    "glibc.malloc.trim_threshold": str(256 << 20),
}


def in_huge_pages(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that have a process's heaps lie in huge pages, where glibc can.

    What the user has tuned stays so.
    """
    chosen = dict(_TUNABLES)
    for setting in filter(None, variables.get("GLIBC_TUNABLES", "").split(":")):
        name, _, value = setting.partition("=")
        chosen[name] = value
    return {**variables, "GLIBC_TUNABLES": ":".join(f"{n}={v}" for n, v in chosen.items())}


def in_a_fresh_heap(work: Callable[[], int]) -> int:
    """``work()``, done in a new thread; raises what it raises."""
    result, raised = 0, None

    def run() -> None:
        nonlocal result, raised
        try:
            result = work()
        except BaseException as error:
            raised = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised is not None:
        raise raised
    return result
