// SPDX-License-Identifier: MIT
// Programs under node get the environment of node, as any program of the system would.
Module.preRun = () => Object.assign(ENV, process.env);
