# SPDX-License-Identifier: MIT
"""libmha beside other implementations of attention, measured in one process.

cases.py       what is measured, and how much faster it has to be
inputs.py      the numbers every contender gets
contender.py   what a contender is; registry.py finds those that are here
ours.py        libmha through its Python package
*_peer.py      one library each
measure.py     compares results, then times in interleaved rounds
memory.py      high-water marks, each in a process of its own
report.py      text, Markdown and JSON; chart.py a picture
"""
