"""Every declared defect still shows in its smallest case; one that does not is to be removed."""

from __future__ import annotations

import pytest

from scanverify.examiner import Standing
from scanverify.kernel import kernel_of
from scanverify.known_defects import known_defects
from scanverify.simulators import simulators


@pytest.mark.parametrize("defect", known_defects(), ids=lambda defect: defect.name)
def test_known_defect_still_shows(defect, bench):
    absent = simulators()[defect.simulator].absent()
    if absent is not None:
        pytest.skip(absent)
    finding = bench.examiner(kernel_of(defect.smallest)).examine(defect.smallest)
    verdict = finding.examination.verdict
    assert (finding.standing, finding.declared) == (Standing.KNOWN_DEFECT, defect.name), (
        f"The known defect {defect.name} no longer shows ({verdict.kind.value}: "
        f"{verdict.summary}): remove it from scanverify/declared/{defect.simulator}.py."
    )
