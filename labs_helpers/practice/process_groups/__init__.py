"""torch.distributed on practice ranks: threads of this process that run the same way every time, without gloo."""

from labs_helpers.practice.process_groups.process_group import PracticeGroup
from labs_helpers.practice.process_groups.ranks import practice_process_groups
from labs_helpers.practice.process_groups.record import Called, Event, ProcessRun, mark
from labs_helpers.practice.process_groups.world import second_group

__all__ = ["Called", "Event", "PracticeGroup", "ProcessRun", "mark", "practice_process_groups", "second_group"]
