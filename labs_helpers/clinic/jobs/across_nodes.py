"""A job whose tensor-parallel pairs lie across nodes: the axis that sends most bytes uses the slow link."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.two_nodes import OnTwoNodes


class AcrossNodes(OnTwoNodes):
    placement = "across"


JOB = Job("across nodes", AcrossNodes, "placement", OnTwoNodes.placement)
