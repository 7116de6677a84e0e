#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the golden files of a layer's backward pass: what PyTorch's autograd says.

    make_layer_backward_goldens.py [FOLDER]     by default into layer_backward/ here

Made with torch 2.13.0 from the cases of make_layer_goldens.py, whose files these are like. They
have in addition

    d_output                            given: the gradient of the output
    d_NAME                              the answer: the gradient of query, key, value, in_weight,
                                        q_norm, add_mask, sinks, ... for every tensor of that name

An input that stands in for others (self-attention) has the gradient of all its uses. Results are
computed in float64 and stored as f32; the same computation in f32 must agree with them.
"""

import os
import sys

import numpy as np
import torch

from make_layer_goldens import FOLDER as BESIDE
from make_layer_goldens import Golden, full_mask, own_cases, same, torch_cases

FOLDER = os.path.join(BESIDE, "layer_backward")

# Rows without a key are NaN to PyTorch; the others differ from their neighbours in the weights that
# are returned, which no gradient knows of.
LEFT_OUT = ("torch_empty_row", "torch_self_per_head", "torch_no_weights", "torch_unbatched")


class LayerBackwardGolden(Golden):
    title = "mha-layer-backward-golden 1"
    learns = True

    def gradients(self, run, dtype):
        """Output and gradients by name, of the loss (output * d_output).sum()."""
        for leaf in self.leaves.values():
            leaf.grad = None
        output, _ = run(dtype)
        d_output = torch.from_numpy(self.arrays["d_output"].copy()).to(dtype)
        (output * d_output).sum().backward()
        answers = {"output": output}
        for name, leaf in self.leaves.items():
            if name == "add_mask":
                extents = self.arrays["add_mask"].shape
                answers["d_add_mask"] = full_mask(leaf.grad.clone(), *extents[:2])
            elif name != "frequencies":
                answers["d_" + name] = leaf.grad.clone()
        return answers

    def finish(self, run):
        output, _ = run(torch.float64)
        self.add("d_output", self.random.standard_normal(output.shape).astype(np.float32))
        wide, narrow = self.gradients(run, torch.float64), self.gradients(run, torch.float32)
        for name, answer in wide.items():
            size = max(1.0, answer.abs().max().item())
            same(answer / size, narrow[name] / size, f"{self.name}: {name}")
            self.answer(name, answer)
        return self


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    os.makedirs(folder, exist_ok=True)
    count = 0
    for cases in (torch_cases(LayerBackwardGolden), own_cases(LayerBackwardGolden)):
        for golden in cases:
            if golden.name not in LEFT_OUT:
                golden.write(folder)
                count += 1
    print(f"{count} golden files in {folder}")


if __name__ == "__main__":
    main()
