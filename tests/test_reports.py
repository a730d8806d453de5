"""Reports: the stand-alone reproducer runs, the page shows in a browser, and text stays text."""

from __future__ import annotations

import ast
import json
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import broken_kernels as broken
import pytest

from scanverify.domain.case import Case, Data
from scanverify.domain.verdict import Kind, Verdict
from scanverify.examination.examiner import Examiner, Violation
from scanverify.examination.known_defects import known_defects
from scanverify.fuzz.buckets import Buckets
from scanverify.fuzz.campaign import Campaign
from scanverify.fuzz.report import junit, page, summary_of, write_bucket, write_campaign
from scanverify.fuzz.unit import Failure, UnitResult
from scanverify.kernels import kernel_of
from scanverify.kernels.pypto.scanu import ScanU
from scanverify.properties.metamorphic import demand
from scanverify.properties.metamorphic import run as run_right
from scanverify.reports.folder import fenced, issue_text, write_folder
from scanverify.reports.heat_map import described, heat_map
from scanverify.reports.report import report_of
from scanverify.reports.reproducer import reproducer, without_scanverify

CASE = Case("scanu", rows=3, width=2, data=Data("values", values=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)))
HOSTILE = "</pre><script>document.title = 'owned'</script> ``` \" ' & \x07 \ud83d"


@pytest.fixture(scope="module")
def report(session):
    finding = Examiner(broken.CARRY_FROM_WRONG_COLUMN, session).examine(CASE)
    return report_of(finding, "agrees_with_oracle")


def run(folder):
    return subprocess.run(
        [sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_reproducer_shows_the_fault_without_scanverify(report, tmp_path):
    assert "scanverify" not in report["reproducer"]
    write_folder(report, tmp_path)
    result = run(tmp_path)
    assert result.returncode == 1, result.stderr
    assert "out[1, 0]: expected 6.0 (+- 0), got 4.0" in result.stdout


@pytest.mark.slow
def test_the_reproducer_of_a_right_kernel_says_so(session, tmp_path):
    examination = Examiner(ScanU(), session).examine(CASE).examination
    pretended = replace(examination, verdict=Verdict(Kind.MISMATCH, "pretended"))
    (tmp_path / "repro.py").write_text(reproducer(pretended, "pretended"))
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "right"


OF_PYPTO = [defect for defect in known_defects() if defect.simulator == "pypto"]


@pytest.mark.parametrize("defect", OF_PYPTO, ids=lambda defect: defect.name)
def test_every_known_defect_has_a_reproducer_that_parses(defect, session):
    finding = Examiner(kernel_of(defect.smallest), session).examine(defect.smallest)
    ast.parse(report_of(finding, "p")["reproducer"])


def test_our_own_decorator_is_taken_out_of_a_users_source():
    source = (
        "import pypto\nimport scanverify\nfrom scanverify import scan_kernel\n\n"
        "@scanverify.scan_kernel(\n    computes='flat',\n)\n@pypto.frontend.jit\ndef f(x): pass\n"
    )
    assert without_scanverify(source) == "import pypto\n\n@pypto.frontend.jit\ndef f(x): pass\n"


def test_the_folder_and_the_issue_text(report, tmp_path):
    write_folder(report, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "**Expected:** out[1, 0] = 6.0" in text
    assert "the program as written" in text
    assert json.loads((tmp_path / "case.json").read_text())["rows"] == 3
    assert not list(tmp_path.glob(".*"))


def test_a_later_report_leaves_nothing_of_an_earlier_one(report, tmp_path):
    earlier = {**report, "other_case": report["case"]}
    write_folder(earlier, tmp_path)
    assert (tmp_path / "other_case.json").exists() and (tmp_path / "picture.png").exists()
    write_folder({**report, "picture": None, "reproducer": None}, tmp_path)
    gone = {"other_case.json", "picture.png", "repro.py"}
    assert not gone & {path.name for path in tmp_path.iterdir()}


def contradiction_of(session, case, other, **law):
    """Two right runs and a law that does not hold of them, or is said not to."""
    one, second = (run_right(Examiner(kernel_of(c), session), c) for c in (case, other))
    with pytest.raises(Violation) as caught:
        demand("a law for tests", one, second, **law)
    return caught.value.finding


@pytest.mark.slow
def test_the_reproducer_of_two_runs(session, tmp_path):
    # another kernel, another shape: the second program is not the first one
    other = CASE.with_(kernel="reverse")
    finding = contradiction_of(session, CASE, other, left=lambda out: out[::-1, ::-1])
    report = report_of(finding, "p")
    assert report["verdict"] == "inconsistent"
    assert "against              reverse@pypto 3x2" in report["text"]
    assert "neither of the two results alone" in report["first_wrong"]
    write_folder(report, tmp_path)
    assert json.loads((tmp_path / "other_case.json").read_text())["kernel"] == "reverse"
    result = run(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "element 5 gives 21.0, due 21.0" not in result.stdout
    assert "element 4 gives 15.0, due 20.0 (+- 0); element 1 of the other run" in result.stdout


@pytest.mark.slow
def test_the_reproducer_of_two_runs_that_agree_says_so(session, tmp_path):
    finding = contradiction_of(session, CASE, CASE, factor=2.0)
    examination = finding.examination
    agreed = replace(examination.contradiction, factor=1.0)
    text = reproducer(replace(examination, contradiction=agreed), "pretended")
    assert "OTHER_PROGRAM = None" in text
    (tmp_path / "repro.py").write_text(text)
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "right"


def test_a_law_about_numbers_alone_has_one_run(session):
    one = run_right(Examiner(kernel_of(CASE), session), CASE)
    with pytest.raises(Violation, match="the last is 22") as caught:
        demand("the last is 22", one, None, left=lambda out: out[-1:, -1], offset=22.0)
    text = report_of(caught.value.finding, "p")["reproducer"]
    ast.parse(text)
    assert "LEFT = [5]" in text
    assert "OTHER_PROGRAM, OTHER_STEPS = None, []" in text


def test_two_systems_that_no_environment_has_say_how_to_run(report):
    text = issue_text({**report, "reproducer": None})
    assert "scanverify run case.json" in text


def test_the_heat_map_is_a_picture_and_has_words(report):
    # results that must be exact: an error is infinitely many times the bound
    assert report["picture"]["error_over_bound"][1] == ["inf", "inf"]
    raw = heat_map(report["picture"])
    width, height = struct.unpack(">II", raw[16:24])
    assert raw[:8] == b"\x89PNG\r\n\x1a\n" and width > 200 and height > 100
    assert described(report["picture"]) == (
        "4 of 6 elements of out (3 rows by 2) are wrong: [1, 0], [1, 1], [2, 0], [2, 1]."
    )
    assert described(None).startswith("There is no picture")


def test_a_fence_is_longer_than_any_inside():
    assert fenced("a\n````\nb", "python").startswith("`````python\n")


@pytest.fixture
def campaign_of(tmp_path):
    stores = []

    def make(report):
        store = Buckets(tmp_path / "buckets.sqlite")
        stores.append(store)
        failure = Failure("a" * 12, (), 2, report)
        versions = {"pypto": "0.2.0"}
        store.add(UnitResult("p", "k", 0, 5, 1.0, {"pass": 3}, (), (failure,), {}, versions))
        return store

    yield make
    for store in stores:
        store.close()


def hostile(report):
    texts = ("title", "summary", "line", "text", "program", "first_wrong")
    return {**report, **dict.fromkeys(texts, HOSTILE), "reproducer": HOSTILE}


def test_text_from_kernels_is_escaped(report, campaign_of, tmp_path):
    store = campaign_of(hostile(report))
    (bucket,) = store.buckets()
    write_bucket(replace(bucket), tmp_path / "reports")
    summary = summary_of(Campaign(), store, [bucket])
    html = page(summary, [bucket], tmp_path / "reports")
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\x07" not in junit(summary)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def browse(directory, *options):
    quiet = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update"
    )
    return subprocess.run(
        [
            *(BROWSER, *quiet.split(), f"--user-data-dir={directory / 'profile'}"),
            *("--window-size=900,1600", *options, (directory / "index.html").as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH (Debian: the package chromium)")
def test_the_page_in_a_browser(report, campaign_of, tmp_path):
    store = campaign_of(hostile(report))
    write_campaign(Campaign(), store, tmp_path)
    document = browse(tmp_path, "--dump-dom")
    assert "<title>scanverify: 1 kind of failure</title>" in document
    assert "document.title = 'owned'" in document
    pictures = []
    for scheme in (0, 1):
        shot = tmp_path / f"shot{scheme}.png"
        browse(tmp_path, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}")
        pictures.append(shot.read_bytes())
    # light and dark are two pictures, and neither is blank
    assert pictures[0] != pictures[1]
    assert all(len(picture) > 20_000 for picture in pictures)


def test_what_a_keyboard_and_a_screen_reader_need_is_there(report, campaign_of, tmp_path):
    store = campaign_of(report)
    write_campaign(Campaign(), store, tmp_path)
    html = (tmp_path / "index.html").read_text()
    assert '<html lang="en">' in html
    assert html.count("<main>") == 1 and html.count("<h1>") == 1
    assert html.index('class="skip"') < html.index("<main>")
    assert html.count("<img ") == html.count("alt=")
    assert "<th>" not in html and 'scope="col"' in html
    # what scrolls can be reached by keyboard
    assert html.count("<pre") == html.count("<pre tabindex")
    assert "http://" not in html and "https://" not in html
