"""The simulator ``host``: a plain numpy or torch function, run in a worker process.

No PyPTO here: a first check of an algorithm before it is ported, and the way to hold a peer
(``torch.cumsum``, a jitted function) to the same properties.
"""

from __future__ import annotations

from scanverify.simulators.worker.process import Worker
from scanverify.simulators.worker.session import WorkerSession


class Host:
    """Whatever runs the user's function: this machine."""

    name = "host"
    dialect = "host"
    limits = ("It runs a host function: nothing is compiled by PyPTO.",)

    stand_alone = "host.py"
    requirements = "Python 3.11 and: pip install numpy torch==2.13.0"

    def absent(self) -> None:
        """This machine is always there."""

    def open(self, timeout: float = 120.0) -> WorkerSession:
        """Start a worker."""
        return WorkerSession(self.name, Worker("scanverify.simulators.host.runner"), timeout)


SIMULATORS = (Host(),)
