"""What a campaign leaves in its report directory: ``index.html``, ``summary.json``,
``junit.xml`` and a folder for each bucket.

All of it follows from the store and the campaign, so it can be written again at any time.
"""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment

from scanverify.examination.known_defects import known_defects
from scanverify.fuzz.buckets import Bucket, Buckets
from scanverify.fuzz.campaign import Campaign
from scanverify.reports.folder import replace_file, write_folder
from scanverify.reports.heat_map import described
from scanverify.version import __version__

OK, FAILURES, NOT_RUN = 0, 1, 2
SUMMARY_VERSION = 1


def exit_code(campaign: Campaign, store: Buckets) -> int:
    """1 where a bucket is left or a declared defect no longer shows; 2 where units failed to run.

    A failure of ours never hides behind a run without findings.
    """
    if store.counts() or campaign.no_longer_shown:
        return FAILURES
    return NOT_RUN if campaign.errors else OK


def write_bucket(bucket: Bucket, directory: Path) -> Path:
    """Write one bucket's folder; returns it."""
    seen = {"count": bucket.count, "versions": list(bucket.versions)}
    folder = directory / bucket.key
    write_folder({**bucket.report, "seen": seen}, folder)
    return folder


def write_campaign(campaign: Campaign, store: Buckets, directory: Path) -> dict[str, Any]:
    """Write everything; returns the summary. Folders of buckets that are gone are removed."""
    directory.mkdir(parents=True, exist_ok=True)
    buckets = store.buckets()
    for bucket in buckets:
        write_bucket(bucket, directory)
    for key in campaign.gone:
        if key not in {bucket.key for bucket in buckets}:
            shutil.rmtree(directory / key, ignore_errors=True)
    summary = summary_of(campaign, store, buckets)
    replace_file(directory / "summary.json", json.dumps(summary, indent=2) + "\n")
    replace_file(directory / "junit.xml", junit(summary))
    replace_file(directory / "index.html", page(summary, buckets, directory))
    return summary


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def summary_of(campaign: Campaign, store: Buckets, buckets: list[Bucket]) -> dict[str, Any]:
    """The summary, by ``summary.schema.json``."""
    gone = dict(campaign.no_longer_shown)
    counts = {d.name: d.count for d in store.declared()}
    seconds = campaign.seconds
    return {
        "scanverify_summary": SUMMARY_VERSION,
        "scanverify": __version__,
        "started": _moment(campaign.started),
        "seconds": seconds,
        "cases": campaign.cases,
        "cases_per_second": campaign.cases / seconds if seconds else 0.0,
        "cases_in_all": store.examined(),
        "units": campaign.units,
        "units_lost": campaign.lost,
        "behaviours": store.behaviours(),
        "verdicts": dict(sorted(store.verdicts().items())),
        "buckets": [
            {
                "key": b.key,
                "title": b.report["title"],
                "signature": b.report["signature"],
                "summary": b.report["summary"],
                "case": b.report["case"],
                "count": b.count,
                "first_seen": _moment(b.first_seen),
                "last_seen": _moment(b.last_seen),
                "versions": list(b.versions),
                "folder": b.key,
            }
            for b in buckets
        ],
        "new_buckets": list(campaign.new),
        "gone_buckets": list(campaign.gone),
        "declared": [
            {
                "name": defect.name,
                "summary": defect.summary,
                "count": counts.get(defect.name, 0),
                "gone": gone.get(defect.name, ""),
            }
            for defect in known_defects()
            if defect.name in counts or defect.name in gone
        ],
        "errors": list(campaign.errors),
        "interrupted": campaign.interrupted,
        "samples": [asdict(sample) for sample in campaign.samples],
        "exit_code": exit_code(campaign, store),
    }


def page(summary: dict[str, Any], buckets: list[Bucket], directory: Path) -> str:
    """``index.html``: one file, no network; every text is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = resources.files("scanverify.fuzz").joinpath("templates/index.html").read_text()
    shown = []
    for bucket in buckets:
        folder = directory / bucket.key
        picture = folder / "picture.png"
        encoded = base64.b64encode(picture.read_bytes()).decode() if picture.exists() else ""
        shown.append(
            {
                "key": bucket.key,
                "report": bucket.report,
                "count": bucket.count,
                "first": _moment(bucket.first_seen).replace("T", " ")[:16],
                "last": _moment(bucket.last_seen).replace("T", " ")[:16],
                "versions": bucket.versions,
                "files": sorted(path.name for path in folder.iterdir()),
                "picture": encoded,
                "described": described(bucket.report["picture"]),
            }
        )
    template = environment.from_string(text)
    written = datetime.now(UTC).isoformat(timespec="seconds")
    return template.render(
        summary=summary, buckets=shown, declared=summary["declared"], written=written
    )


def junit(summary: dict[str, Any]) -> str:
    """JUnit XML: a failed test for each bucket and for each declared defect that is gone."""
    suite = ElementTree.Element("testsuite", name="scanverify fuzz")
    tests = failures = 0
    for bucket in summary["buckets"]:
        tests, failures = tests + 1, failures + 1
        signature = bucket["signature"]
        name = f"{signature['property_name']}[{bucket['key']}]"
        case = ElementTree.SubElement(
            suite, "testcase", classname=_plain(signature["kernel"]), name=_plain(name)
        )
        message = ElementTree.SubElement(case, "failure", message=_plain(bucket["summary"]))
        message.text = _plain(
            f"{bucket['title']}\nseen {bucket['count']} times\nsee {bucket['folder']}/report.md"
        )
    for defect in summary["declared"]:
        tests += 1
        case = ElementTree.SubElement(
            suite, "testcase", classname="known_defects", name=_plain(defect["name"])
        )
        if defect["gone"]:
            failures += 1
            text = f"no longer shows: {defect['gone']}"
            ElementTree.SubElement(case, "failure", message=_plain(text))
    for error in summary["errors"]:
        tests += 1
        case = ElementTree.SubElement(suite, "testcase", classname="fuzz", name="unit")
        ElementTree.SubElement(case, "error", message=_plain(error))
    if tests == 0:
        tests = 1
        ElementTree.SubElement(suite, "testcase", classname="fuzz", name="no failure was found")
    suite.set("tests", str(tests))
    suite.set("failures", str(failures))
    suite.set("errors", str(len(summary["errors"])))
    suite.set("time", f"{summary['seconds']:.3f}")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(
        c for c in text if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe"
    )
