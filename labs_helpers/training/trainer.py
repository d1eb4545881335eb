"""One rank's part of the training: model, optimizer, steps, and conversion of its state to and from whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from labs_helpers.communication.gradient_average import MEGABYTE, GradientAverage
from labs_helpers.tensor_parallel import ParallelTransformer
from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy
from labs_helpers.tensor_parallel.data import split_data
from labs_helpers.tensor_parallel.sharded_gradients import clip_gradients, sum_partial_gradients
from labs_helpers.tensor_parallel.state import gather_state, slice_state
from labs_helpers.training.datasets import Array, Data
from labs_helpers.training.places import Place
from labs_helpers.training.settings import Settings
from labs_helpers.transformer import Transformer
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.train import adamw, learning_rate

MAX_NORM = 1.0
MOMENTS = ("exp_avg", "exp_avg_sq")  # AdamW's moments
PARTS = ("model", *MOMENTS)  # the parts of a checkpoint


def first_weights(settings: Settings) -> dict[str, Tensor]:
    """Draw the whole model's weights from the seed; they are the same on every rank of every layout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        full = Transformer(settings.config)
    return {name: tensor.to(getattr(torch, settings.dtype)) for name, tensor in full.state_dict().items()}


class Trainer:
    """One rank's model and optimizer in a mesh.

    step: the number of completed steps. sent: (bytes, messages) that left this rank in the last step, without the eight
    bytes of the gradient norm.
    """

    def __init__(self, settings: Settings, place: Place, data: Data) -> None:
        self.settings, self.place, self.data = settings, place, data
        self.tp, self.dp = place.mesh["tp"], place.mesh["dp"]
        weights = {name: tensor.to(place.device) for name, tensor in first_weights(settings).items()}
        self.model = ParallelTransformer.from_full(
            settings.config, weights, self.tp, sdpa, settings.scheme, settings.sequence_parallel
        )
        bucket_bytes = int(settings.bucket_mb * MEGABYTE)
        self.gradients = GradientAverage(self.model.parameters(), self.dp, bucket_bytes)
        self.optimizer = adamw(self.model, settings.lr)
        self.step = 0
        self.sent = (0, 0)

    def train_step(self) -> Tensor:
        """Run one step on this rank's part of the batch; return its mean loss, a tensor on the device."""
        settings, groups = self.settings, self.place.mesh.values()
        tokens, targets = self.mine(*self.data.batch(self.step))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, settings.steps, settings.lr)
        for each in groups:
            each.reset()
        self.optimizer.zero_grad(set_to_none=False)  # the gradients stay in their buckets
        loss = self.model.loss(tokens, targets)
        loss.backward()
        self.gradients.finish()
        if self.model.sequence_parallel:
            sum_partial_gradients(self.model, self.tp)
        self.sent = (sum(each.bytes_sent for each in groups), sum(each.messages_sent for each in groups))
        clip_gradients(self.model, self.tp, MAX_NORM)
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def wait_for_device(self) -> None:
        """Wait until a GPU has finished its work."""
        if self.place.device != "cpu":
            torch.cuda.synchronize()

    def mine(self, tokens: Array, targets: Array) -> tuple[Tensor, Tensor]:
        """Return this rank's part of a batch on its device."""
        x, y = split_data(tokens, targets, 1, self.dp.size, self.dp.rank)
        return torch.from_numpy(x).to(self.place.device), torch.from_numpy(y).to(self.place.device)

    def mean_losses(self, losses: list[Tensor]) -> list[float]:
        """Average the losses of `train_step` over the data-parallel ranks; every rank calls this."""
        return (self.dp.all_reduce(torch.stack(losses)) / self.dp.size).tolist() if losses else []

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return {"validation_loss": nats per token}, with "validation_accuracy" for labeled data.

        The accuracy is the share of sequences whose last target has the largest logit. Every rank calls this; each copy
        of the model validates on a part of the data.
        """
        tp, dp = self.tp, self.dp
        x, y = (torch.from_numpy(part).tensor_split(dp.size)[dp.rank] for part in self.data.validation)
        sequences_per_call = self.settings.batch // dp.size
        total = torch.zeros(3, dtype=torch.float64, device=self.place.device)  # of losses, right answers, sequences
        for tokens, targets in zip(x.split(sequences_per_call), y.split(sequences_per_call), strict=True):
            if len(tokens):
                tokens, targets = tokens.to(total.device), targets.to(total.device)
                logits = self.model(tokens)
                loss = vocabulary_parallel_cross_entropy(logits, targets, tp)
                right = (tp.all_gather(logits[:, -1], dim=-1).argmax(-1) == targets[:, -1]).sum()
                total += torch.stack([loss * len(tokens), right, torch.tensor(len(tokens), device=total.device)])
        loss_sum, right_sum, sequences = dp.all_reduce(total).tolist()
        accuracy = {"validation_accuracy": right_sum / sequences} if self.data.labelled else {}
        return {"validation_loss": loss_sum / sequences, **accuracy}

    def whole_state(self) -> dict[str, Array]:
        """Return the whole model's parameters and AdamW moments, by names such as "exp_avg/norm.weight".

        Only the first rank of `tp` gets them; the others get {}. The ranks of one model call this together; other
        copies need not wait.
        """
        whole: dict[str, Array] = {}
        for part in PARTS:
            full = gather_state(self.model, self._tensors(part), self.tp)
            if self.tp.rank == 0:
                whole |= {f"{part}/{name}": tensor.cpu().numpy() for name, tensor in full.items()}
        return whole

    def load_whole_state(self, step: int, names: Iterable[str], whole: Callable[[str], Array]) -> None:
        """Load a state after `step` steps. whole(name) returns that array of `whole_state`, and is called for all names
        in order, one part after the other."""
        for part in PARTS:
            mine = [name for name in names if name.startswith(f"{part}/")]
            full = {name.partition("/")[2]: torch.tensor(whole(name)) for name in mine}
            sliced = slice_state(self.model, full, self.tp)
            with torch.no_grad():
                for name, tensor in self._tensors(part).items():
                    tensor.copy_(sliced[name])
        for state in self.optimizer.state.values():
            state["step"] = torch.tensor(float(step))
        self.step = step

    def _tensors(self, part: str) -> dict[str, Tensor]:
        """Return this rank's tensors of a part by parameter name; create the moments if they do not exist yet."""
        parameters = dict(self.model.named_parameters())
        if part == "model":
            return {name: p.detach() for name, p in parameters.items()}
        for p in parameters.values():
            if not self.optimizer.state[p]:
                self.optimizer.state[p] = {
                    "step": torch.tensor(0.0),
                    **{name: torch.zeros_like(p.detach()) for name in MOMENTS},
                }
        return {name: self.optimizer.state[p][part] for name, p in parameters.items()}
