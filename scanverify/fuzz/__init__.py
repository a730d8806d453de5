"""Campaigns: units of work, buckets that outlive a kill, the report directory.

It imports search and reports.
"""
