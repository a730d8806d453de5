"""All that is known of each way to write a kernel, a package each: how its programs are written,
and how a stand-alone reproducer drives it. Text in, text out: it imports the domain alone, and no
torch or pypto.
"""
