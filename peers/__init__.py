# SPDX-License-Identifier: MIT
"""libmha and other implementations of attention, measured in one process.

cases.py       what is measured, and how much faster libmha has to be
inputs.py      the inputs, which are the same for every contender
contender.py   what a contender is; registry.py finds those that are installed
ours.py        libmha through its Python package
*_peer.py      one library each; *_layer.py its layers, *_model.py its whole models
model_files.py where the files of the models are
measure.py     compares results, then times in interleaved rounds
memory.py      high-water marks, each in its own process
report.py      text, Markdown and JSON; chart.py draws a chart
"""
