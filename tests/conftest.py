"""Before any test imports Triton: interpreter or compiler, as this machine has it."""

from labs_helpers.measure.machine import prepare_triton
from labs_helpers.measure.quick_interpreter import quicken

if prepare_triton():
    quicken()
