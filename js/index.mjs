// SPDX-License-Identifier: MIT
// libmha: multi-head attention, exact and with the same bits as the command line with MHA_ISA=c.
export { attention } from './attention.mjs';
export { useModule } from './load.mjs';
export { Layer } from './layer.mjs';
export { Model } from './model.mjs';
export { MhaError } from './scope.mjs';
export { Tokenizer } from './tokenizer.mjs';
