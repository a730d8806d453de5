"""Campaigns: a fault is found and bucketed once, whatever is killed in between.

The kernels are host functions: what is tested is the campaign, and a case takes a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from importlib import resources
from xml.etree import ElementTree

import jsonschema
import pytest

from scanverify.commands import main as cli
from scanverify.commands.usage import UsageError, duration, worker_count
from scanverify.fuzz.buckets import Buckets
from scanverify.fuzz.campaign import Campaign, Plan, local_pool, run_campaign
from scanverify.fuzz.report import exit_code
from scanverify.fuzz.unit import Unit, replay, run_unit
from scanverify.generation.strategies import Limits
from scanverify.search.corpus import MOST_EXAMPLES, Corpus, examples_at

RIGHT = """import torch

import scanverify


@scanverify.scan_kernel(computes="flat")
def scan(x, out):
    out.copy_(torch.cumsum(x.flatten(), 0, dtype=out.dtype).reshape(x.shape))
"""
#: Wrong from 17 elements on: the last one is left out.
BROKEN = RIGHT + "    if x.numel() > 16:\n        out[-1, -1] -= x[-1, -1] - 1\n"
PROPERTY = "exact_on_integers"


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return f"{path}:scan"


def fuzz(tmp_path, kernel, *options):
    """The command line of a campaign on one property."""
    return [
        *("fuzz", "--kernel", kernel, "--property", PROPERTY, "--profile", "quick"),
        *("--corpus", str(tmp_path / "corpus"), "--report", str(tmp_path / "reports"), *options),
    ]


def summary(tmp_path):
    return json.loads((tmp_path / "reports" / "summary.json").read_text())


def test_a_campaign_finds_the_fault_once_and_writes_everything(tmp_path, kernel, capsys):
    assert cli.main(fuzz(tmp_path, kernel, "--cases", "120")) == 1
    found = summary(tmp_path)
    schema = json.loads(
        resources.files("scanverify.fuzz").joinpath("summary.schema.json").read_text()
    )
    jsonschema.validate(found, schema)
    assert len(found["buckets"]) == 1
    (bucket,) = found["buckets"]
    assert 17 <= bucket["case"]["rows"] * bucket["case"]["width"] <= 20
    folder = tmp_path / "reports" / bucket["folder"]
    assert {p.name for p in folder.iterdir()} == {
        *("case.json", "program.py", "repro.py", "report.json", "report.md", "report.txt"),
        "picture.png",
    }
    suite = ElementTree.parse(tmp_path / "reports" / "junit.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    # a second campaign goes on with other seeds and tells nothing twice
    capsys.readouterr()
    assert cli.main(fuzz(tmp_path, kernel, "--cases", "60")) == 1
    assert "NEW" not in capsys.readouterr().out
    again = summary(tmp_path)
    assert [b["key"] for b in again["buckets"]] == [bucket["key"]]
    assert again["cases_in_all"] > found["cases_in_all"]
    assert again["buckets"][0]["count"] > bucket["count"]


def test_a_mended_kernel_empties_its_bucket(tmp_path, kernel):
    assert cli.main(fuzz(tmp_path, kernel, "--cases", "60")) == 1
    (tmp_path / "broken.py").write_text(RIGHT)
    assert cli.main(fuzz(tmp_path, kernel, "--cases", "40")) == 0
    assert len(summary(tmp_path)["gone_buckets"]) == 1
    assert not [p for p in (tmp_path / "reports").iterdir() if p.is_dir()]


def test_killed_and_started_again_it_ends_as_if_nothing_had_happened(tmp_path, kernel):
    command = [sys.executable, "-m", "scanverify.commands.main", *fuzz(tmp_path, kernel, "-n", "2")]
    for seconds in (1.0, 4.0, 7.0):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.main(fuzz(tmp_path, kernel, "--cases", "120")) == 1
    store = Buckets(tmp_path / "corpus" / "buckets.sqlite")
    (bucket,) = store.buckets()
    units = sum(count for count, _ in store.done().values())
    store.close()
    assert 17 <= bucket.report["case"]["rows"] * bucket.report["case"]["width"] <= 20
    assert bucket.count > 0
    assert units > 0
    assert _leftovers(process.pid) == []


@pytest.fixture
def redis_address(tmp_path):
    """A Redis server of this test's own."""
    server = shutil.which("redis-server")
    if server is None:
        pytest.skip("there is no redis-server")
    pytest.importorskip("redis")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_units_share_failing_examples_in_a_directory(kernel, tmp_path):
    another_unit_finds_it_at_once(kernel, str(tmp_path / "examples"))


def test_machines_share_failing_examples_through_redis(kernel, redis_address):
    another_unit_finds_it_at_once(kernel, redis_address)


def another_unit_finds_it_at_once(kernel, corpus):
    """What one unit finds another finds in its first cases, also after somebody passed over it."""
    # in a process of its own, as in a campaign: pytest's --hypothesis-seed turns databases off
    with local_pool(1) as pool:

        def failures(unit):
            return pool.submit(run_unit, asdict(unit)).result()["failures"]

        finder = Unit(PROPERTY, kernel, first_seed=1, examples=100, corpus=corpus)
        (failure,) = failures(finder)
        # too few cases to find it by chance
        other = replace(finder, first_seed=7, examples=1)
        assert not failures(replace(other, corpus=""))
        knows_it = replace(other, known=(failure["key"], *failure["met_as"]))
        assert failures(knows_it)[0]["report"] is None
        (again,) = failures(other)
        assert again["report"]["verdict"] == "mismatch"


def test_a_corpus_does_not_grow_without_end(tmp_path):
    corpus = Corpus(examples_at(str(tmp_path)), "property--kernel")
    for number in range(2 * MOST_EXAMPLES):
        corpus.save(b"key", str(number).encode())
    assert len(list(corpus.fetch(b"key"))) == MOST_EXAMPLES
    corpus.save(b"key.pareto", b"no failure")
    assert not list(corpus.fetch(b"key.pareto"))
    assert not list(Corpus(examples_at(str(tmp_path)), "other").fetch(b"key"))


def _leftovers(group):
    """Processes of a killed campaign that are still there after a while."""
    deadline = time.monotonic() + 10
    while True:
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat") as stream:
                    fields = stream.read().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if entry.isdigit() and int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry))
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def test_a_killed_pool_process_loses_nothing(tmp_path, kernel):
    store = Buckets(tmp_path / "buckets.sqlite")
    plan = Plan(((PROPERTY, kernel),), Limits(33, 65, 600), cases=150)
    pools, killed = [], []

    def open_pool():
        pools.append(local_pool(2))
        return pools[-1]

    def tick(campaign):
        processes = list((pools[-1]._processes or {}).values())
        if campaign.units == 1 and not killed and processes:
            killed.append(processes[0].pid)
            os.kill(processes[0].pid, signal.SIGKILL)

    campaign = run_campaign(plan, store, open_pool, 2, tick=tick)
    assert killed and len(pools) > 1
    assert campaign.errors == []
    assert len(store.buckets()) == 1
    assert campaign.cases >= 150
    store.close()


def test_ctrl_c_writes_the_report_and_ends(tmp_path, kernel):
    # a shell's background jobs ignore Ctrl-C, and pytest may be one
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    main = "from scanverify.commands.main import main"
    command = f"{start}; import sys; {main}; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", command, *fuzz(tmp_path, kernel)], stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if line.startswith("NEW"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 1
    assert "interrupted" in rest
    assert summary(tmp_path)["interrupted"]


def test_a_declared_defect_that_no_longer_shows_fails_the_run(tmp_path):
    store = Buckets(tmp_path / "buckets.sqlite")
    campaign = Campaign()
    assert exit_code(campaign, store) == 0
    campaign.no_longer_shown.append(("some-defect", "pass: right"))
    assert exit_code(campaign, store) == 1
    store.close()


def test_a_unit_that_cannot_run_is_no_success(tmp_path):
    store = Buckets(tmp_path / "buckets.sqlite")
    assert exit_code(Campaign(errors=["unit"]), store) == 2
    store.close()


def test_replay_tells_what_still_fails():
    from scanverify.domain.case import case_to_json
    from scanverify.examination.known_defects import known_defects

    defect = next(d for d in known_defects() if d.name == "unroll-by-zero-crashes")
    plain = {
        "case": json.loads(case_to_json(defect.smallest)),
        "kernel": "scanu",
        "timeout": 60.0,
        "declared": defect.name,
    }
    assert replay(plain)["fails"]
    plain["case"]["loop"]["unroll"] = []
    assert not replay(plain)["fails"]


def test_the_unit_is_json_to_json_and_its_seed_decides(kernel):
    from dataclasses import asdict

    plain = json.loads(json.dumps(asdict(Unit(PROPERTY, kernel, 5, seeds=2, rows=33, width=65))))
    one, other = json.loads(json.dumps(run_unit(plain))), run_unit(plain)
    cases = [
        [(f["key"], f["hits"], f["report"]["case"]) for f in r["failures"]] for r in (one, other)
    ]
    assert json.dumps(cases[0]) == json.dumps(cases[1])
    assert one["verdicts"] == other["verdicts"]
    known = tuple(f["key"] for f in one["failures"]) + tuple(
        key for f in one["failures"] for key in f["met_as"]
    )
    assert known
    again = run_unit({**plain, "known": known})
    assert all(f["report"] is None for f in again["failures"])


def test_a_dask_cluster_with_a_killed_worker_loses_nothing(tmp_path, kernel):
    distributed = pytest.importorskip("distributed", reason="the extra scanverify[dask]")
    store = Buckets(tmp_path / "buckets.sqlite")
    plan = Plan(((PROPERTY, kernel),), Limits(33, 65, 600), cases=200)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = []

        def tick(campaign):
            if campaign.units >= 1 and not killed:
                pids = client.run(os.getpid)
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        campaign = run_campaign(plan, store, lambda: client.get_executor(pure=False), 2, tick=tick)
    assert killed
    assert campaign.errors == []
    assert campaign.cases >= 200
    assert len(store.buckets()) == 1
    store.close()


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 28800), ("1h30m", 5400), ("45", 45), ("45s", 45), ("2m", 120)]
)
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "soon", "-3", "1d", "3m2h"])
def test_what_is_no_duration(text):
    with pytest.raises(UsageError, match="write it like 8h"):
        duration(text)


def test_worker_counts():
    assert worker_count("auto") >= 1
    with pytest.raises(UsageError, match="at least 1"):
        worker_count("0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--time", "soon"), "no duration"),
        (("-n", "none"), "number of workers"),
        (("--property", "nothing"), "No property nothing"),
        (("--dask", "tcp://127.0.0.1:9"), "No Dask scheduler answers"),
        (("--corpus", "/proc/nowhere"), "cannot be written"),
    ],
)
def test_usage_errors_are_one_sentence(tmp_path, kernel, options, words, capsys):
    assert cli.main([*fuzz(tmp_path, kernel), *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_processes_are_replaced_now_and_then(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr("scanverify.fuzz.campaign.UNITS_A_POOL", 3)
    store = Buckets(tmp_path / "buckets.sqlite")
    plan = Plan(((PROPERTY, kernel),), Limits(33, 65, 600), cases=700)
    pools = []

    def open_pool():
        pools.append(local_pool(2))
        return pools[-1]

    campaign = run_campaign(plan, store, open_pool, 2)
    assert len(pools) > 2
    assert campaign.errors == [] and campaign.cases >= 700
    store.close()
