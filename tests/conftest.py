"""Choose Triton's interpreter or compiler before any test imports Triton, and configure Hypothesis for busy
machines."""

from importlib.util import find_spec

from labs_helpers.measure.machine import prepare_triton
from labs_helpers.measure.quick_interpreter import quicken

if prepare_triton():
    quicken()

if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    # The same examples in every run; Hypothesis itself would fail one that takes longer than 200 ms.
    settings.register_profile("course", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("course")
