"""The scheduled jobs: parsed, and held against what the command line knows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from scanverify.commands import main as cli
from scanverify.commands.summary import markdown, workflow_commands

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request):
    return yaml.safe_load(request.param.read_text())


def test_both_are_there():
    assert [path.stem for path in WORKFLOWS] == ["nightly", "pull-request"]


def test_every_job_has_a_limit_and_few_rights(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 360


def test_every_step_does_something_and_actions_have_versions(workflow):
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])


def test_commands_of_ours_parse(workflow):
    """Every ``scanverify`` line is one that the parser takes."""
    found = 0
    for step in steps(workflow):
        line = re.sub(r"\$\{\{.*?\}\}", "1h", step.get("run", ""))
        line = re.sub(r"\$\(\(.*?\)\)", "0", line).partition(">>")[0]
        if line.startswith("scanverify"):
            found += 1
            cli._parser().parse_args(shlex.split(line)[1:])
    assert found or workflow["name"] == "pull request"


def test_tox_environments_exist(workflow):
    known = set(re.findall(r"^\[testenv:(\w+)\]", (ROOT / "tox.ini").read_text(), re.MULTILINE))
    for step in steps(workflow):
        for names in re.findall(r"tox -e ([\w,]+)", step.get("run", "")):
            assert set(names.split(",")) <= known


def test_the_night_is_sharded_keeps_its_corpus_and_always_tells():
    nightly = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    # YAML reads a bare "on" as true
    assert nightly[True]["schedule"][0]["cron"].count(" ") == 4
    (job,) = nightly["jobs"].values()
    assert len(job["strategy"]["matrix"]["shard"]) >= 2
    used = [step.get("uses", "") for step in job["steps"]]
    assert any("cache/restore" in use for use in used) and any("cache/save" in use for use in used)
    after = job["steps"][[s.get("name") for s in job["steps"]].index("fuzz") + 1 :]
    assert after and all(step["if"] == "always()" for step in after)


SUMMARY = {
    "scanverify_summary": 1,
    "cases": 10,
    "seconds": 60.0,
    "verdicts": {},
    "buckets": [
        {"key": "a" * 12, "title": "mismatch: a, b", "summary": "<b>1|2\n3 100%", "count": 2}
    ],
    "declared": [{"name": "old", "summary": "", "count": 0, "gone": "pass: right"}],
}


def test_annotations_and_the_step_summary_are_escaped():
    assert workflow_commands(SUMMARY) == [
        "::error title=mismatch%3A a%2C b::<b>1|2%0A3 100%25",
        "::error title=old::no longer shows: pass: right",
    ]
    text = markdown(SUMMARY)
    assert "&lt;b>1\\|2 3 100%" in text
    assert "no longer shows" in text


def test_the_summary_command(tmp_path, capsys):
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(SUMMARY))
    assert cli.main(["summary", str(path), "--github"]) == 0
    captured = capsys.readouterr()
    assert "1 kinds of failure" in captured.out
    assert captured.err.count("::error") == 2


@pytest.mark.parametrize("content", ["{", "[]", "{}", "3", "[" * 100_000])
def test_what_is_no_summary(tmp_path, capsys, content):
    path = tmp_path / "summary.json"
    path.write_text(content)
    assert cli.main(["summary", str(path)]) == 2
    assert "is no summary of scanverify fuzz" in capsys.readouterr().err
