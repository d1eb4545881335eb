"""Test a Communication on practice ranks: the message of a deadlock, and which ranks' messages meet."""

import pytest
import torch

from labs_helpers.communication.mesh import Mesh
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.practice.deadlock import Deadlock
from labs_helpers.practice.errors import RankFailed
from labs_helpers.practice.groups import practice_groups

ALONE = (
    lambda group: group.all_reduce(torch.ones(2)),
    lambda group: group.start_all_reduce(torch.ones(2)),
    lambda group: group.all_gather(torch.ones(2)),
    lambda group: group.reduce_scatter(torch.ones(2)),
    lambda group: group.broadcast(torch.ones(2)),
    lambda group: group.send(torch.ones(2), 1),
    lambda group: group.receive(torch.ones(2), 1),
    lambda group: Mesh(group, {"dp": 2}),
)


@pytest.mark.parametrize("call", ALONE)
def test_a_deadlock_names_the_line_that_called(call):
    def program(comm):
        if comm.rank == 0:
            call(PracticeCommunication(comm))

    with pytest.raises(Deadlock) as caught:
        practice_groups(program, 2)
    assert caught.value.ranks[0].place.startswith(f"<lambda>, line {call.__code__.co_firstlineno}: ")


def test_a_message_stays_in_its_group():
    """Rank 0 sends to rank 1 twice: along the mesh's axis, and before that among all, which rank 1 takes last."""

    def program(comm):
        world = PracticeCommunication(comm)
        group, x = Mesh(world, {"dp": 2, "tp": 2})["tp"], torch.zeros(())
        if comm.rank == 0:
            requests = [world.start_send(torch.tensor(1.0), 1), group.start_send(torch.tensor(2.0), 1)]
            assert [request.wait() for request in requests] == [None, None]
        elif comm.rank == 1:
            return [(one.receive(x, 0), x.item())[1] for one in (group, world)]

    assert practice_groups(program, 4).results[1] == [2, 1]


def test_messages_that_nobody_waits_for_are_told():
    def program(comm):
        group = PracticeCommunication(comm)
        request = group.start_receive(torch.ones(2), 1) if group.rank == 0 else group.start_send(torch.ones(2), 0)
        if group.rank == 1:
            request.wait()

    assert practice_groups(program, 2).never_waited == ["rank 0: Irecv from 1"]


REFUSED = (
    (lambda group: group.send(1, torch.ones(2)), "to is a Tensor, not a rank"),
    (lambda group: group.receive(torch.ones(2), None), "source is a NoneType, not a rank"),
    (lambda group: group.send(None, 1), "the message is a NoneType, not a Tensor"),
    (lambda group: group.receive(None, 1), "the tensor to fill is a NoneType, not a Tensor"),
)


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_arguments_of_another_type_are_refused(call, message):
    def program(comm):
        if comm.rank == 0:
            call(PracticeCommunication(comm))

    with pytest.raises(RankFailed, match=f"TypeError: {message}"):
        practice_groups(program, 2)


def test_a_rank_outside_of_the_communicator_is_refused():
    with pytest.raises(RankFailed, match="ValueError: dest is 2, but the ranks are 0 to 1"):
        practice_groups(lambda comm: comm.Isend(torch.ones(2).numpy(), 2), 2)
