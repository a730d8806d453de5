"""What each parameter is: by its name, by what the user says, by its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

ROLES = ("x", "out", "upper", "lower", "ones", "carry", "temporary")
#: Parameter names that tell what they are; ``_tensor``, ``_t``, ``_ptr`` and digits fall away.
_NAMES = {
    "x": "x x_in in inp input inputs src source a data values x_input in_data array arr t xs seq "
    "signal operand self_tensor",
    "out": "out output outputs y y_out dst dest destination result results res ret z o out_data "
    "x_out target ys sums scanned cumsum prefix",
    "upper": "u upper triu upper_ones triangle ut",
    "lower": "l lower tril lower_ones lt",
    "ones": "ones all_ones",
    "carry": "carry carry_in init initial state h0 start",
    "temporary": "tmp temp tmp_out row_sums temporary buf buffer scratch workspace ws partial",
}
USUAL_NAMES = {name: role for role, names in _NAMES.items() for name in names.split()}
_ENDINGS = ("_tensor", "_ptr", "_gm", "_mat", "_t", "_")


def usual_role(name: str) -> str | None:
    """The role that a parameter's name tells; the whole name counts before parts of it."""
    plain = name.lower()
    while plain:
        if plain in USUAL_NAMES:
            return USUAL_NAMES[plain]
        ending = next((e for e in _ENDINGS if plain.endswith(e) and len(plain) > len(e)), None)
        if ending is not None:
            plain = plain.removesuffix(ending)
        elif plain[-1].isdigit():
            plain = plain[:-1]
        elif plain.startswith("tensor_"):
            plain = plain.removeprefix("tensor_")
        else:
            return None
    return None


def readings(names: Sequence[str], told: Mapping[str, str], returns: bool) -> list[dict[str, str]]:
    """The ways in which parameters can be read, as roles by name; one where it is clear.

    ``told``: what the user says. ``returns``: whether the result comes back as a value.
    """
    known = {n: role for n in names if (role := told.get(n) or usual_role(n))}
    unknown = [n for n in names if n not in known]
    taken = [known[n] for n in names if n in known]
    missing = [role for role in ("x", "out") if role not in taken]
    if returns and "out" in missing:
        # a function that returns its result needs no parameter for it
        missing.remove("out")
    if not unknown:
        return [known]
    if len(unknown) == len(missing):
        # inputs come before outputs
        return [{**known, **dict(zip(unknown, missing, strict=True))}]
    if len(unknown) > 4 or len(missing) > len(unknown):
        return []
    found = []
    others = [r for r in ROLES if r not in ("x", "out")]
    for places in permutations(unknown, len(missing)):
        if list(places) == sorted(places, key=list(names).index):
            rest = [n for n in unknown if n not in places]
            roles = dict(zip(places, missing, strict=True))
            for role in others:
                found.append({**known, **roles, **dict.fromkeys(rest, role)})
    return found
