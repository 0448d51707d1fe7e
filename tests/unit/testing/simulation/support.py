"""A process on a simulated disk, without a world around it."""

import os

from kexpr.testing.simulation.disk import Disk, DiskFaults, ProcessFiles
from kexpr.testing.simulation.scheduler import Process, Scheduler

WRITER = os.O_RDWR | os.O_CREAT | os.O_APPEND


class Computer:
    def __init__(self) -> None:
        self.disk = Disk()
        self.faults = DiskFaults()
        self.scheduler = Scheduler(lambda _name: None)

    def process(self, slot: int = 1) -> ProcessFiles:
        return ProcessFiles(self.disk, Process(slot, slot), self.scheduler, self.faults)

    def content(self, path: str) -> bytes | None:
        node = self.disk.find(path)
        return None if node is None else bytes(node.content)
