"""Every declared defect still shows in its smallest case; one that does not is to be removed."""

from __future__ import annotations

import pytest

from scanverify.examination.known_defects import known_defects
from scanverify.kernels import kernel_of
from scanverify.simulators import simulators


@pytest.mark.parametrize("defect", known_defects(), ids=lambda defect: defect.name)
def test_known_defect_still_shows(defect, bench):
    absent = simulators()[defect.simulator].absent()
    if absent is not None:
        pytest.skip(absent)
    examiner = bench.examiner(kernel_of(defect.smallest))
    shown = []
    for case in defect.runs_of(defect.smallest):
        finding = examiner.examine(case)
        shown.append(finding.declared)
        if finding.declared == defect.name:
            break
    verdict = finding.examination.verdict
    assert defect.name in shown, (
        f"The known defect {defect.name} no longer shows ({verdict.kind.value}: "
        f"{verdict.summary}): remove it from scanverify/examination/declared/{defect.simulator}.py."
    )
