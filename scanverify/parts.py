"""The one loader of parts: kernels, simulators, properties, declared defects.

A part is a value in a tuple (``KERNELS``, ``SIMULATORS``, ``PROPERTIES``, ``KNOWN_DEFECTS``,
``STATED_LIMITS``) of a module. Modules come from one of scanverify's packages, and from
installed distributions that name them as an entry point of the group of the same name::

    [project.entry-points."scanverify.properties"]
    mine = "my_package.my_properties"

Standard library alone, and nothing else of scanverify.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

#: Modules of a worker, whose imports (torch, pypto) are none of the parent's.
_OF_WORKERS = ("runner",)


class BrokenPart(Exception):
    """An installed distribution's part cannot be loaded; one sentence that names it."""


def parts_of(
    package: str, listed_as: str, kind: type[Any] | None = None, group: str | None = None
) -> tuple[Any, ...]:
    """Every part that the modules of ``package`` and of installed distributions list.

    ``package``: ``scanverify.kernels`` and the like, which is the entry points' ``group`` as well.
    ``listed_as``: the name of the tuple in each module. ``kind``: what a third party's parts
    have to be instances of, where that can be asked. Raises :class:`BrokenPart`.
    """
    found: list[Any] = []
    for module in _modules(package):
        found += getattr(module, listed_as, ())
    for point in sorted(entry_points(group=group or package), key=lambda point: point.name):
        # "module:function" is a user's kernel, which is read and never imported here
        if point.attr:
            continue
        owner = point.dist.name if point.dist is not None else "an unknown distribution"
        try:
            module = importlib.import_module(point.module)
            parts = tuple(getattr(module, listed_as, ()))
        except Exception as error:
            raise BrokenPart(
                f"The distribution {owner} offers {point.value} as {point.group}, and it cannot be "
                f"loaded ({type(error).__name__}: {error}): repair it, or uninstall {owner}."
            ) from None
        for part in parts:
            if kind is not None and not isinstance(part, kind):
                raise BrokenPart(
                    f"The distribution {owner} lists {part!r:.80} in {point.module}.{listed_as}, "
                    f"which is no {kind.__name__}: repair it, or uninstall {owner}."
                )
        found += parts
    return tuple(found)


def _modules(package: str) -> Iterator[ModuleType]:
    """The modules of a package and of its own packages, in order of their names."""
    opened = importlib.import_module(package)
    for found in sorted(pkgutil.iter_modules(opened.__path__), key=lambda module: module.name):
        name = f"{package}.{found.name}"
        if found.ispkg:
            yield from _modules(name)
        elif found.name not in _OF_WORKERS:
            yield importlib.import_module(name)
