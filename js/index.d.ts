// SPDX-License-Identifier: MIT
type Numbers = Float32Array | readonly number[];

/** An error of the library. `code` is the name of its status, such as "MHA_ERR_SHAPE". */
export class MhaError extends Error {
    readonly status: number;
    readonly code: string;
}

/** A mask or bias over (b, h, i, j); axes before the last may be 1 or left out. Default: [L, S]. */
export interface Broadcast<Data> { data: Data; shape?: readonly number[] }

export interface Options {
    causal?: boolean;
    /** Keys before and after the position of a query; null: open. */
    window?: readonly [number | null, number | null];
    /** Where query 0 is among the keys; required for causal and window if L and S differ. */
    position?: 'top-left' | 'bottom-right' | number;
    /** Default: 1 / sqrt(D). */
    scale?: number;
    softcap?: number;
    /** Not 0: attend. */
    mask?: Uint8Array | Broadcast<Uint8Array>;
    /** Added to the scores; -Infinity masks. */
    bias?: Float32Array | Broadcast<Float32Array>;
    /** [B]: keys past these lengths are masked. */
    keyLengths?: readonly number[];
    /** [H]: a factor for the output of each head. */
    gates?: Numbers;
    returnLse?: boolean;
    returnWeights?: boolean;
}

export interface Result {
    output: Float32Array;
    /** [B, H, L], if requested. */
    lse?: Float32Array;
    /** [B, H, L, S], if requested. */
    weights?: Float32Array;
}

/** B: 1, G: H, S: L and Dv: D if they are left out. */
export interface Shape { B?: number; H: number; G?: number; L: number; S?: number; D: number; Dv?: number }

/** softmax(q k^T * scale) v. q is [B, H, L, D], k [B, G, S, D], v [B, G, S, Dv]; or, with the layout
 * "blhd", heads are side by side in each row. */
export function attention(q: Numbers, k: Numbers, v: Numbers, shape: Shape,
                          options?: Options & { layout?: 'bhld' | 'blhd' }): Promise<Result>;

/** Everything with memory of its own: freed by free(), or some time after it is no longer in use. */
declare class Owned {
    free(): void;
    [Symbol.dispose](): void;
}

export interface LayerConfig {
    E: number; H: number; G?: number; D?: number; keyWidth?: number; valueWidth?: number;
    stored?: 'f32' | 'f16' | 'bf16' | 'i8';
    rope?: { pairs: 'halves' | 'neighbours'; base?: number };
}

/** Matrices are [outputs, inputs], as PyTorch's Linear has them. */
export interface LayerWeights {
    q: Numbers; k: Numbers; v: Numbers; o: Numbers;
    qBias?: Numbers; kBias?: Numbers; vBias?: Numbers; oBias?: Numbers;
}

export class Layer extends Owned {
    private constructor();
    static create(config: LayerConfig, weights: LayerWeights): Promise<Layer>;
    readonly config: Readonly<Required<Omit<LayerConfig, 'stored' | 'rope'>>>;
    /** Y [B, L, E] of X [B, L, E]; with options.key, [B, S, keyWidth], cross-attention. */
    run(query: Numbers, shape: { B?: number; L: number; S?: number },
        options?: Options & { key?: Numbers; value?: Numbers }): Result;
}

/** A path of node, a URL of a folder or file, or the files themselves by name. */
export type Source = string | URL | Record<string, Uint8Array | ArrayBuffer | string>;

export interface Token {
    id: number; segment: number;
    /** Its place in the string. A mark that was added has begin = end. */
    begin: number; end: number;
    piece: string; special: boolean; unknown: boolean; continues: boolean;
}

export class Tokenizer extends Owned {
    private constructor();
    static open(source: Source): Promise<Tokenizer>;
    readonly size: number;
    readonly kind: string;
    encode(text: string, options?: { pair?: string; marks?: boolean; plain?: boolean }):
        { ids: Int32Array; tokens: Token[] };
    decode(ids: Int32Array | readonly number[], options?: { skipMarks?: boolean }): string;
    piece(id: number): string | null;
    find(piece: string): number;
}

export type Attention = 'encoder' | 'decoder' | 'cross';

/** Factors of heads, [layers][H] for each kind of attention. */
export type Gates = Partial<Record<Attention, Numbers>>;

export interface ModelInfo {
    family: string;
    kind: 'encoder' | 'decoder' | 'encoder-decoder' | 'image-encoder';
    layers: Record<Attention, number>;
    width: number; inner: number; heads: number; keyHeads: number; headWidth: number;
    vocabulary: number; positions: number; hasLogits: boolean; labels: number;
    memoryBytes: number; parameters: number;
}

export interface Generation {
    text: string; ids: Int32Array; ended: boolean; logProbability: number; confidence: number;
}

export interface GenerateOptions {
    most?: number; beams?: number; lengthPenalty?: number;
    temperature?: number; topK?: number; topP?: number; minP?: number; repetitionPenalty?: number;
    seed?: number; stops?: readonly string[]; gates?: Gates;
}

export class Model extends Owned {
    private constructor();
    static open(source: Source, options?: {
        storage?: 'file' | 'f32' | 'f16' | 'bf16' | 'i8' | 'q8' | 'q4' }): Promise<Model>;
    readonly info: Readonly<ModelInfo>;
    readonly tokenizer: Tokenizer | null;
    /** For the texts that an encoder-decoder writes. */
    readonly targetTokenizer: Tokenizer | null;
    describe(): string;
    heads(kind: Attention, layer: number): number;
    encode(texts: string | readonly string[], options?: {
        pooling?: 'model' | 'mean' | 'first' | 'last' | 'max'; normalize?: boolean; longest?: number;
        gates?: Gates }): Float32Array[];
    run(input: { ids?: Int32Array | readonly number[]; sourceIds?: Int32Array | readonly number[];
                 segments?: Int32Array | readonly number[] },
        want?: { hidden?: boolean; logits?: boolean; sourceHidden?: boolean; labels?: boolean;
                 weights?: { kind: Attention; layer: number }; gates?: Gates }):
        { hidden?: Float32Array; logits?: Float32Array; sourceHidden?: Float32Array;
          labels?: Float32Array; weights?: Float32Array; weightsShape?: [number, number, number] };
    generate(texts: string | readonly string[], options?: GenerateOptions): Generation[];
}

/** The bytes (or compiled module) of "libmha" or "libmha_model", instead of the file of the package:
 * for pages that have them inside. */
export function useModule(name: 'libmha' | 'libmha_model',
                          source: BufferSource | WebAssembly.Module | URL): void;
