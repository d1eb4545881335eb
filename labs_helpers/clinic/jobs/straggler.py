"""A job with a straggler: one rank's batch is several times as large as the others', and they wait for it."""

from torch.utils.data import DataLoader

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class Straggler(Training):
    def make_loader(self):
        slow, few = self.random.randrange(self.group.size), self.random.choice([2, 4])
        data = self.data()
        batch = self.room * self.batch if self.group.rank == slow else few
        return DataLoader(data, batch, sampler=self.sampler(data), drop_last=True)


JOB = Job("straggler", Straggler, "make_loader", waits=0.45)
