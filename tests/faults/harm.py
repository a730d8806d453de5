"""Faults, one function each: do harm to a session, and say whether every case was answered right.

Each takes a :class:`Bed` and a random generator, and returns a word for what came of it; anything
that is not as it has to be raises. After each of them the bed's own case must give its first bits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from scanverify.domain.case import Case, CaseError, Data, case_from_json, case_to_json
from scanverify.examination.examine import examine
from scanverify.fuzz.buckets import Buckets, CorpusError
from scanverify.simulators import simulators
from scanverify.simulators.worker.process import Worker

#: Writes frames that nobody asked for, on every descriptor that may be the reply pipe.
_FRAMES = """
import os
from scanverify.simulators.worker.frames import encode_frame
frame = encode_frame({frame}, {{}}) if {whole} else os.urandom(200)
for descriptor in range(3, 30):
    try:
        if os.readlink(f"/proc/self/fd/{{descriptor}}").startswith("pipe:"):
            os.write(descriptor, frame)
    except OSError:
        pass
"""


@dataclass
class Bed:
    """A session under test, its case, and what the case gives when nothing is wrong."""

    name: str
    kernel: object
    case: Case
    folder: Path
    session: object = field(init=False)

    def __post_init__(self):
        self.session = simulators()[self.name].open(60.0)
        self.first = examine(self.case, self.kernel, self.session)
        assert self.first.verdict.kind.value == "pass", self.first.verdict

    @property
    def worker(self):
        return self.session.worker

    def right_again(self, examination=None):
        """The case as it always was: the same verdict and the same bits."""
        again = examination or examine(self.case, self.kernel, self.session)
        assert again.verdict == self.first.verdict, again.verdict
        assert again.outcome.memory.same_bits(self.first.outcome.memory)

    def answer(self, program, timeout=60.0):
        job = {
            "program": program,
            "steps": [],
            "buffers": {},
            "passes": [],
            "tolerance": 0.0,
            "task_graph": False,
        }
        return self.worker.submit(job, {}, timeout)

    def disturbed(self, harm, delay):
        """The bed's case while ``harm`` is done to its worker from outside."""

        def later():
            time.sleep(delay)
            with contextlib.suppress(ProcessLookupError):
                harm()

        thread = threading.Thread(target=later)
        thread.start()
        examination = examine(self.case, self.kernel, self.session)
        thread.join()
        self.right_again(examination)


def segmentation_fault(bed, rng):
    answer = bed.answer("import ctypes\nctypes.string_at(0)\n")
    assert answer.crash == -signal.SIGSEGV, answer
    return "crash SIGSEGV"


def exit_within_a_job(bed, rng):
    code = rng.randrange(1, 9)
    answer = bed.answer(f"import os\nos._exit({code})\n")
    assert answer.crash == code, answer
    return "crash with its exit code"


def abort(bed, rng):
    answer = bed.answer("import os\nos.abort()\n")
    assert answer.crash == -signal.SIGABRT, answer
    return "crash SIGABRT"


def child_killed_from_outside(bed, rng):
    bed.disturbed(lambda: os.kill(bed.worker.child or 0, signal.SIGKILL), rng.random() * 0.02)
    return "done again, same bits"


def template_killed(bed, rng):
    bed.disturbed(lambda: os.kill(bed.worker._process.pid, signal.SIGKILL), rng.random() * 0.02)
    return "started anew, same bits"


def hang(bed, rng):
    answer = bed.answer("import time\ntime.sleep(3600)\n", timeout=0.15)
    assert answer.timed_out, answer
    return "timed out"


def frozen(bed, rng):
    # the signal reaches the process some time after the call, as every one from outside
    program = "import os, signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(3600)\n"
    answer = bed.answer(program, timeout=0.15)
    assert answer.timed_out, answer
    return "timed out"


def out_of_memory(bed, rng):
    with Worker(bed.worker._runner, memory_limit=3 << 30) as limited:
        job = {
            "program": "import numpy\nblock = numpy.ones(1 << 30)\n",
            "steps": [],
            "buffers": {},
            "passes": [],
            "tolerance": 0.0,
            "task_graph": False,
        }
        answer = limited.submit(job, {}, 60.0)
        assert answer.reply is not None and answer.reply["status"] == "out_of_memory", answer
    return "out of memory"


def full_disk(bed, rng):
    answer = bed.answer("with open('/dev/full', 'w') as stream:\n    stream.write('x' * 100000)\n")
    assert answer.reply is not None and "No space left" in answer.reply["message"], answer
    return "rejected, No space left"


def file_size_limit(bed, rng):
    program = (
        # Python ignores the signal that comes with it
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with open('big', 'w') as stream:\n    stream.write('x' * 100000)\n"
    )
    answer = bed.answer(program)
    assert answer.reply is not None and "File too large" in answer.reply["message"], answer
    return "rejected, File too large"


def garbage_answer(bed, rng):
    answer = bed.answer(_FRAMES.format(frame="{}", whole=False), timeout=20.0)
    assert answer.crash is not None or answer.reply is not None, answer
    return "crash or its own answer"


def second_answer(bed, rng):
    """A frame of another job comes first: it must not pass for this job's answer."""
    identity = rng.choice((0, 1, bed.worker._next_id, 10**9))
    frame = f"{{'id': {identity}, 'status': 'completed', 'forged': True}}"
    answer = bed.answer(_FRAMES.format(frame=frame, whole=True), timeout=20.0)
    assert answer.reply is None or not answer.reply.get("forged"), answer
    return "forged answer passed over"


def one_sentence(error):
    assert "\n" not in str(error), error
    return "refused in one sentence"


def damaged_case_file(bed, rng):
    raw = bytearray(case_to_json(bed.case).encode())
    if rng.random() < 0.5:
        del raw[rng.randrange(len(raw)) :]
    else:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    try:
        case = case_from_json(raw.decode(errors="replace"))
    except CaseError as error:
        return one_sentence(error)
    assert isinstance(case, Case)
    return "still a case"


def damaged_corpus(bed, rng):
    path = bed.folder / "buckets.sqlite"
    if not path.exists():
        Buckets(path).close()
    whole = path.read_bytes()
    raw = bytearray(whole)
    if rng.random() < 0.3:
        del raw[rng.randrange(1, len(raw)) :]
    else:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    try:
        store = Buckets(path)
        store.buckets()
        store.close()
        return "no harm"
    except CorpusError as error:
        return one_sentence(error)
    finally:
        for leftover in bed.folder.glob("buckets.sqlite*"):
            leftover.unlink()
        path.write_bytes(whole)


def clock_jump(bed, rng):
    """Wall-clock time leaps by up to years; nothing here may depend on it."""
    real = time.time
    offset = rng.uniform(-1e8, 1e8)
    time.time = lambda: real() + offset
    try:
        bed.right_again()
    finally:
        time.time = real
    return "same bits"


FAULTS = (
    segmentation_fault,
    exit_within_a_job,
    abort,
    child_killed_from_outside,
    template_killed,
    hang,
    frozen,
    out_of_memory,
    full_disk,
    file_size_limit,
    garbage_answer,
    second_answer,
    damaged_case_file,
    damaged_corpus,
    clock_jump,
)

HOST_SOURCE = """import numpy as np


def scan(x, out):
    out[...] = np.cumsum(x.astype(out.dtype)).reshape(x.shape)
"""


def beds(folder):
    """A quick bed of a host function, and one of PyPTO itself."""
    from scanverify.kernels import bundled_kernels
    from scanverify.user_kernels.reading import load_user_kernel

    path = folder / "host_scan.py"
    path.write_text(HOST_SOURCE)
    host = load_user_kernel(f"{path}:scan", {"computes": "flat"}, None)
    numbers = Data("distinct_integers", 3)
    yield Bed("host", host, Case(host.name, "host", 6, 7, data=numbers), folder)
    scanu = bundled_kernels()["scanu"]
    yield Bed("pypto", scanu, Case("scanu", "pypto", 6, 7, data=numbers), folder)
