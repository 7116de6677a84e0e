# SPDX-License-Identifier: MIT
"""A causal layer of PyTorch whose tokens are spread over the ranks of an MPI job.

    mpirun -n 3 python mpi_torch.py

Every rank has the weights and its own tokens of one sequence. Attention sees the tokens of all ranks; autograd
brings the gradients of keys and values back to the ranks that have them. Attention has the bits of one machine.
Gradients of weights are sums over tokens, which MPI_Allreduce adds here.
"""

from __future__ import annotations

import torch
from mpi4py import MPI
from torch import Tensor, nn

import mha.mpi

TOKENS, WIDTH, HEADS, STEPS = 96, 32, 4, 40


def heads_of(x: Tensor) -> list[Tensor]:
    """Queries, keys and values [batch, heads, tokens, width of a head]."""
    return [y.unflatten(2, (HEADS, -1)).transpose(1, 2) for y in x.chunk(3, dim=2)]


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)

    def forward(self, group: mha.mpi.Group, x: Tensor) -> Tensor:
        y = mha.mpi.torch_attention(group, *heads_of(self.project(x)), tokens=TOKENS, causal=True)
        return self.join(y.transpose(1, 2).flatten(2))


def add_up(comm: MPI.Comm, x: Tensor) -> None:
    """The sum over all ranks, in place."""
    comm.Allreduce(MPI.IN_PLACE, x.numpy(), op=MPI.SUM)


def train(comm: MPI.Comm, group: mha.mpi.Group) -> list[float]:
    """Learns the mean of all tokens up to each one: the loss of every step."""
    torch.manual_seed(1)  # the same weights and data on all ranks
    layer, data = Layer(), torch.randn(1, TOKENS, WIDTH)
    wanted = data.cumsum(1) / torch.arange(1, TOKENS + 1)[:, None]
    own = torch.from_numpy(group.rows(TOKENS))  # zig-zag: every rank has the same work
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        # This rank's share of the mean over all tokens.
        loss = (layer(group, data[:, own]) - wanted[:, own]).square().sum() / wanted.numel()
        loss.backward()
        for weight in layer.parameters():
            add_up(comm, weight.grad)
        optimizer.step()
        total = loss.detach().clone()
        add_up(comm, total)
        losses.append(float(total))
    return losses


def compare(group: mha.mpi.Group, alone: mha.mpi.Group) -> bool:
    """Whether this rank's rows have the bits of a call that has all tokens, forward and backward."""
    torch.manual_seed(2)
    whole = [torch.randn(1, HEADS, TOKENS, WIDTH // HEADS, requires_grad=True) for _ in range(3)]
    rows = group.rows(TOKENS)
    own = [x.detach()[:, :, rows].requires_grad_() for x in whole]
    results = []
    for ranks, tensors in ((alone, whole), (group, own)):
        o = mha.mpi.torch_attention(ranks, *tensors, tokens=TOKENS, causal=True)
        o.square().sum().backward()
        results.append([o.detach(), *(x.grad for x in tensors)])
    return all(torch.equal(a[:, :, rows], b) for a, b in zip(*results))


def main() -> None:
    comm = MPI.COMM_WORLD
    group, alone = mha.mpi.Group(comm), mha.mpi.Group(MPI.COMM_SELF)
    same = comm.allreduce(compare(group, alone), op=MPI.LAND)
    losses = train(comm, group)
    if group.rank == 0:
        print(f"{group.ranks} ranks, {len(group.rows(TOKENS))} of {TOKENS} tokens on rank 0")
        print("the bits of one machine" if same else "other bits than one machine")
        print(f"loss {losses[0]:.3f}, after {STEPS} steps {losses[-1]:.3f}")
    alone.free()
    group.free()


if __name__ == "__main__":
    main()
