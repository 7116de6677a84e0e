# SPDX-License-Identifier: MIT
"""The control of "mha train --pairs": a plain nn.Transformer of PyTorch, trained on the same pairs.

    python -m peers.control --like models/en-fr --pairs train.tsv --valid valid.tsv -o control

Sizes and tokenizer are those of a folder that "mha train" wrote; data, steps, batches, schedule,
optimizer, label smoothing, dropout and the moving average of the weights are those of its defaults.
What is left out is what PyTorch does not bring: merges that are dropped, and names and numbers that
are replaced. The result is a folder of the same form, so that "mha translate" searches with the same
beam in both, and "mha bleu" compares their translations.

A checkpoint beside the result is written every few minutes; a training that was stopped continues
from it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

Pair = tuple[list[int], list[int]]
IGNORED = -100  # a target that has no loss
VALIDATIONS = 100  # in a whole training


class Translator(nn.Module):
    """nn.Transformer in Marian's form: norms after each part, sines, one shared embedding."""

    def __init__(self, config: dict, dropout: float) -> None:
        super().__init__()
        width, heads = config["d_model"], config["encoder_attention_heads"]
        sizes = (width, heads, config["encoder_ffn_dim"], dropout)
        encoder = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        decoder = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        self.transformer = nn.Transformer(
            width,
            heads,
            custom_encoder=nn.TransformerEncoder(
                encoder, config["encoder_layers"], enable_nested_tensor=False
            ),
            custom_decoder=nn.TransformerDecoder(decoder, config["decoder_layers"]),
            batch_first=True,
        )
        self.embedding = nn.Embedding(config["vocab_size"], width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("sines", sines(config["max_position_embeddings"], width), False)
        for parameter in self.transformer.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def embed(self, ids: Tensor) -> Tensor:
        scale = math.sqrt(self.embedding.embedding_dim)
        return self.dropout(self.embedding(ids) * scale + self.sines[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor, padding: Tensor) -> Tensor:
        """Logits [B, L, words] of the token after each of `target`; `padding` is of the source."""
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=mask,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.T


def sines(positions: int, width: int) -> Tensor:
    """Marian's position codes: sines in the first half, cosines in the second."""
    angles = torch.arange(positions)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


# ---------------------------------------------------------------------- data


def read_pairs(path: Path, tokenizer: Tokenizer, end: int, longest: int) -> list[Pair]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    sides = [tokenizer.encode_batch([line[n] for line in lines]) for n in range(2)]
    pairs = []
    for source, target in zip(*([one.ids for one in side] for side in sides)):
        # The tokenizer may add the end mark by itself.
        pair = tuple(ids if ids[-1:] == [end] else ids + [end] for ids in (source, target))
        if max(map(len, pair)) <= longest:
            pairs.append(pair)
    return pairs


def cut(pairs: list[Pair], order: list[int], tokens: int) -> list[list[int]]:
    """Batches of at most `tokens` target tokens, of pairs of similar length."""
    order = sorted(order, key=lambda n: (len(pairs[n][1]), len(pairs[n][0])))
    batches: list[list[int]] = [[]]
    size = 0
    for n in order:
        size += len(pairs[n][1])
        if size > tokens and batches[-1]:
            batches.append([])
            size = len(pairs[n][1])
        batches[-1].append(n)
    return batches


def endless(pairs: list[Pair], tokens: int, seed: int) -> Iterator[list[int]]:
    for epoch in range(1 << 30):
        draw = random.Random(f"{seed} {epoch}")
        order = list(range(len(pairs)))
        draw.shuffle(order)
        batches = cut(pairs, order, tokens)
        draw.shuffle(batches)
        yield from batches


def padded(rows: list[list[int]], filler: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def loss_of(
    model: Translator, pairs: list[Pair], batch: list[int], begin: int, smoothing: float
) -> tuple[Tensor, int]:
    """The mean loss of a target token, and how many there are."""
    sources = [pairs[n][0] for n in batch]
    targets = [pairs[n][1] for n in batch]
    source = padded(sources, begin)
    lengths = torch.tensor([len(row) for row in sources])
    padding = torch.arange(source.shape[1]) >= lengths[:, None]
    read = padded([[begin, *row[:-1]] for row in targets], begin)
    logits = model(source, read, padding)
    wanted = padded(targets, IGNORED)
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, label_smoothing=smoothing
    )
    return loss, sum(map(len, targets))


# ------------------------------------------------------------------ training


def rate(step: int, options: argparse.Namespace) -> float:
    """The learning rate: linear warm-up, then half a cosine down to a hundredth."""
    if step < options.warm_up:
        return options.lr * (step + 1) / options.warm_up
    along = (step - options.warm_up) / max(1, options.steps - options.warm_up)
    return options.lr * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * along)))


def make_optimizer(model: Translator, options: argparse.Namespace) -> torch.optim.AdamW:
    matrices = [p for name, p in model.named_parameters() if p.dim() > 1 and "embedding" not in name]
    others = [p for name, p in model.named_parameters() if p.dim() <= 1 or "embedding" in name]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        lr=options.lr,
        betas=(0.9, 0.98),
        eps=1e-9,
    )


@torch.no_grad()
def follow(average: dict[str, Tensor], model: Translator, decay: float, step: int) -> None:
    """The moving average; early steps count more, so that the first weights are forgotten."""
    share = 1 - min(decay, step / (step + 9))
    for name, value in model.named_parameters():
        average[name].lerp_(value, share)


@torch.no_grad()
def validate(model: Translator, average: dict[str, Tensor], pairs: list[Pair], begin: int) -> float:
    kept = {name: value.clone() for name, value in model.named_parameters()}
    model.load_state_dict(average, strict=False)
    model.eval()
    total, count = 0.0, 0
    for batch in cut(pairs, list(range(len(pairs))), 4096):
        loss, tokens = loss_of(model, pairs, batch, begin, 0.0)
        total += loss.item() * tokens
        count += tokens
    model.load_state_dict(kept, strict=False)
    model.train()
    return total / count


def train(model: Translator, data: list[list[Pair]], begin: int, o: argparse.Namespace) -> dict:
    """Returns the averaged parameters."""
    optimizer = make_optimizer(model, o)
    average = {name: value.detach().clone() for name, value in model.named_parameters()}
    checkpoint = o.output.with_name(o.output.name + ".checkpoint.pt")
    first = 0
    if checkpoint.exists():
        kept = torch.load(checkpoint)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        average, first = kept["average"], kept["step"]
        torch.set_rng_state(kept["rng"])
    began = saved = time.monotonic()
    seen = 0
    for step, batch in enumerate(endless(data[0], o.batch_tokens, o.seed)):
        if step < first:
            continue
        if step == o.steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate(step, o)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=o.arithmetic == "native"):
            loss, tokens = loss_of(model, data[0], batch, begin, o.label_smoothing)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        follow(average, model, o.ema, step)
        seen += tokens
        done = step + 1
        if done % max(1, o.steps // VALIDATIONS) == 0 or done == o.steps:
            valid = validate(model, average, data[1], begin)
            speed = seen / (time.monotonic() - began)
            print(f"step {done}/{o.steps}  valid {valid:.4f}  {speed:.0f} target tokens/s", flush=True)
        if time.monotonic() - saved > 300:
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done,
                    "average": average, "rng": torch.get_rng_state()}  # fmt: skip
            torch.save(kept, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").rename(checkpoint)
            saved = time.monotonic()
    checkpoint.unlink(missing_ok=True)
    return average


# -------------------------------------------------------------------- result


def marian_names(average: dict[str, Tensor], width: int) -> dict[str, Tensor]:
    """The parameters by the names of Marian; the joined projections of PyTorch are separated."""
    parts = {
        "linear1": "fc1",
        "linear2": "fc2",
        "multihead_attn": "encoder_attn",
    }
    norms = {
        "encoder": {"norm1": "self_attn_layer_norm", "norm2": "final_layer_norm"},
        "decoder": {"norm1": "self_attn_layer_norm", "norm2": "encoder_attn_layer_norm",
                    "norm3": "final_layer_norm"},
    }  # fmt: skip
    named = {"model.shared.weight": average["embedding.weight"]}
    for name, value in average.items():
        if not name.startswith("transformer."):
            continue
        side, _, layer, part, *rest = name.removeprefix("transformer.").split(".")
        to = f"model.{side}.layers.{layer}.{norms[side].get(part) or parts.get(part, part)}"
        if rest[0].startswith("in_proj_"):
            for n, which in enumerate("qkv"):
                piece = value[n * width : (n + 1) * width].clone()
                named[f"{to}.{which}_proj.{rest[0].removeprefix('in_proj_')}"] = piece
        else:
            named[".".join([to, *rest])] = value
    words = average["embedding.weight"].shape[0]
    named["final_logits_bias"] = torch.zeros(1, words)
    return {name: value.contiguous() for name, value in named.items()}


def write(folder: Path, like: Path, average: dict[str, Tensor], config: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in like.glob("*.json"):
        shutil.copyfile(file, folder / file.name)
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": "float32"}, indent=1))
    tensors = marian_names(average, config["d_model"])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def main() -> None:
    parser = argparse.ArgumentParser(prog="peers.control", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--like", type=Path, required=True, help='a folder that "mha train --pairs" wrote')
    add("--pairs", type=Path, required=True, help="pairs for training: sentence, tab, translation")
    add("--valid", type=Path, required=True, help="pairs for validation")
    add("-o", "--output", type=Path, required=True, help="the folder to write")
    add("--steps", type=int, default=8000)
    add("--batch-tokens", type=int, default=2048)
    add("--lr", type=float, default=1e-3)
    add("--warm-up", type=int, default=1000)
    add("--dropout", type=float, default=0.15)
    add("--label-smoothing", type=float, default=0.1)
    add("--ema", type=float, default=0.998)
    add("--seed", type=int, default=1)
    add("--threads", type=int, default=torch.get_num_threads())
    add("--arithmetic", choices=["exact", "native"], default="exact", help="native: autocast to bf16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    config = json.loads((options.like / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(options.like / "tokenizer.json"))
    end, longest = config["eos_token_id"], config["max_position_embeddings"]
    data = [read_pairs(path, tokenizer, end, longest) for path in (options.pairs, options.valid)]
    model = Translator(config, options.dropout)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(data[0])} and {len(data[1])} pairs, {count} parameters", flush=True)
    average = train(model, data, config["decoder_start_token_id"], options)
    write(options.output, options.like, average, config)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
