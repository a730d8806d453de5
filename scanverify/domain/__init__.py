"""What a scan is and when a result is right: cases, formats, data, memory, oracle, error analysis,
order of tasks, outcomes and verdicts, and what a kernel and a simulator are (protocols).

Plain data and pure functions. It imports numpy alone, and nothing else of scanverify.
"""
