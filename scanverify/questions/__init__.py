"""The five questions of kernel authors, answered from the verdicts of a run."""
