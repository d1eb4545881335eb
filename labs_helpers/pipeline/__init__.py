"""Pipeline parallelism: schedules as data, a validator, a simulator, and an executor (lab 10)."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.pipeline.executor import Pipeline
    from labs_helpers.pipeline.schedule import Action, Schedule
    from labs_helpers.pipeline.stages import TransformerStage

__all__ = ["Action", "Pipeline", "Schedule", "TransformerStage"]
__getattr__, __dir__ = lazily(
    __name__,
    {"Action": "schedule", "Pipeline": "executor", "Schedule": "schedule", "TransformerStage": "stages"},
)
