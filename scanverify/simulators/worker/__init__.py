"""The worker process that simulators share: frames, time-outs, a heap of its own, sessions.

It knows no simulator; a runner is a module's name that it is given. It imports the domain alone.
"""
