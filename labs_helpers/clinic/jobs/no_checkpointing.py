"""A job that does not fit: most of its memory holds activations, which checkpointing would compute again."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training
from labs_helpers.transformer.checkpointing import checkpoint_segments


class NoCheckpointing(Training):
    batch = (Training.room + 1) * Training.batch


def checkpointed(self):
    model = Training.make_model(self)
    checkpoint_segments(model, [1] * len(model.blocks))
    return model


JOB = Job("activations", NoCheckpointing, "make_model", checkpointed)
