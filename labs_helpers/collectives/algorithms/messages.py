"""The messages of the algorithms. All carry one tag, since MPI keeps the order between two ranks."""

TAG = 0x7C0  # below 32,767, the least upper bound that MPI promises; a lab's own messages have small tags


def exchange(comm, outgoing, dest: int, incoming, source: int) -> None:
    """Send one array while another arrives; neither waits for the other, whatever their sizes."""
    comm.Sendrecv(outgoing, dest, TAG, incoming, source, TAG)


def send(comm, outgoing, dest: int) -> None:
    comm.Send(outgoing, dest, TAG)


def receive(comm, incoming, source: int) -> None:
    comm.Recv(incoming, source, TAG)
