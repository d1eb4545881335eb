"""Lab 11, exercise 8: the smallest change to three sick jobs."""

import torch

from labs_helpers.transformer.train import next_token_loss


def cures():
    """Return three cured methods of `Training`: (loss, log, average_gradients).

    Each needs a small change. It has to do what it is for, and no other method changes. The three
    belong to three different jobs.

    loss(self, x, y): returns the loss, and appends the mean entropy of the predictions to the list
    self.entropies, a tensor of one element per step. It leaks memory, but reads no value from the
    device; afterwards it still reads none, and a step leaves only this one number alive.

    log(self, loss): appends the losses of all steps to the list self.curve, as floats in order. It
    reads a value in every step; afterwards it reads once per self.log_every steps. When
    self.steps, which counts from 1 here, is a multiple of self.log_every, the curve is complete.
    The job creates self.entropies, self.curve and self.pending, an empty list for your use.

    average_gradients(self): replaces each gradient by its mean over the ranks. self.gradients()
    returns them. It starts a collective per gradient, and waits for it; afterwards it starts one.
    self.group.start_mean(a, b, c).wait() averages several tensors.
    """

    def loss(self, x, y):
        logits = self.forward(x)
        probabilities = logits.softmax(-1)
        entropy = -(probabilities * probabilities.log()).sum(-1).mean()
        ### BEGIN SOLUTION
        entropy = entropy.detach()
        ### END SOLUTION
        self.entropies.append(entropy)
        return next_token_loss(logits, y)

    def log(self, loss):
        ### BEGIN SOLUTION
        self.pending.append(loss.detach())
        if self.steps % self.log_every == 0:
            self.curve += torch.stack(self.pending).tolist()
            self.pending.clear()
        ### END SOLUTION

    def average_gradients(self):
        ### BEGIN SOLUTION
        self.group.start_mean(*self.gradients()).wait()
        ### END SOLUTION

    return loss, log, average_gradients
