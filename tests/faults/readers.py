"""``tox -e readers``: hostile bytes, by atheris, for what reads files and pipes.

Whatever comes in, a reader answers with a value or refuses in its own words: a case in one
sentence, a frame with :class:`FrameError`. Anything else ends the run with the bytes that did it.
The arguments are libFuzzer's, after ``case`` or ``frame``.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["scanverify"]):
    from scanverify.domain.case import Case, CaseError, Data, case_from_json, case_to_json
    from scanverify.simulators.worker.frames import FrameError, FrameReader, encode_frame

#: The longest sentence that still is one.
MOST_CHARACTERS = 400


def read_case(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        # the command line refuses these before there is a case
        return
    try:
        case = case_from_json(text)
    except CaseError as error:
        sentence = str(error)
        assert sentence.endswith("."), sentence
        assert "\n" not in sentence, sentence
        assert len(sentence) <= MOST_CHARACTERS, sentence
        return
    assert case_from_json(case_to_json(case)) == case


def read_frame(data):
    reader = FrameReader()
    with contextlib.suppress(FrameError):
        # in two pieces, as a pipe has it
        reader.feed(data[: len(data) // 2])
        reader.next()
        reader.feed(data[len(data) // 2 :])
        while reader.next() is not None:
            pass


def seeds(name, folder):
    """Good examples to start from."""
    case = Case("scanu", rows=2, width=2, data=Data("values", values=(1.0, 2.0, -3.0, 0.5)))
    if name == "case":
        texts = [case_to_json(case).encode(), b"[" * 2000, b'{"rows": NaN}', b'{"rows": 1e400}']
    else:
        import numpy as np

        texts = [encode_frame({"id": 1, "status": "completed"}, {"x": np.arange(4.0)})]
    for number, text in enumerate(texts):
        (folder / str(number)).write_bytes(text)


def dictionary(folder):
    """The words of a case, in libFuzzer's notation: it would take long to come by them."""
    plain = json.loads(case_to_json(Case("scanu", rows=2, width=2)))
    words = {"NaN", "1e999", "-1", "true", "null", '"inf"', "9223372036854775808"}
    for key, value in plain.items():
        inner = value.items() if isinstance(value, dict) else ()
        for word, its_value in ((key, value), *inner):
            words |= {json.dumps(word) + ":", json.dumps(its_value)}
    path = folder / "words"
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in sorted(words))
    path.write_text("".join(f'"{word}"\n' for word in escaped))
    return path


def main():
    name, *options = sys.argv[1:] or [""]
    readers = {"case": read_case, "frame": read_frame}
    if name not in readers:
        sys.exit(f"Say what to read: {' or '.join(readers)}.")
    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder) / "examples"
        examples.mkdir()
        seeds(name, examples)
        words = f"-dict={dictionary(Path(folder))}"
        atheris.Setup([sys.argv[0], words, *options, str(examples)], readers[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
