# SPDX-License-Identifier: MIT
"""Small models of transformers with random weights: on "mha" they give what they give on "eager".

Rows of padding tokens are not compared: they have no meaning, and eager's result for them (a mean
over masked keys) is as good as our 0.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("mha.hf")
hf.register()

pytestmark = pytest.mark.usefixtures("one_thread")

VOCABULARY = 64
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 63,
}
GROUPED = COMMON | {"num_key_value_heads": 2, "head_dim": 8}
ENCODER_DECODER = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 63,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
    "pad_token_id": 0,
    "eos_token_id": 63,
    "decoder_start_token_id": 0,
}
TWO_KINDS = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}

# family: classes of model and configuration, and what the configuration says
TEXT = {
    "bert": ("BertModel", "BertConfig", COMMON),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        COMMON | {"cls_token_id": 1, "sep_token_id": 2, "local_attention": 8},
    ),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", COMMON),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED | {"sliding_window": 4}),
    "gemma2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        GROUPED | TWO_KINDS | {"attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 8},
    ),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", GROUPED | TWO_KINDS),
    "gpt-oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        GROUPED | TWO_KINDS | {"num_local_experts": 2, "num_experts_per_tok": 1},
    ),
    "llama4": (
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        GROUPED
        | {
            "intermediate_size_mlp": 48,
            "num_local_experts": 2,
            "attention_chunk_size": 4,
            "layer_types": ["chunked_attention", "full_attention"],
        },
    ),
    "bart": ("BartForConditionalGeneration", "BartConfig", ENCODER_DECODER),
    "marian": ("MarianMTModel", "MarianConfig", ENCODER_DECODER),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5),
}
DECODERS = ["gpt2", "llama", "mistral", "gemma2", "gemma3", "gpt-oss", "llama4"]
TRANSLATORS = ["bart", "marian", "t5"]


def build(family: str) -> Any:
    """The model with eager attention, and weights so large that attention is far from uniform."""
    model_class, config_class, settings = TEXT[family]
    torch.manual_seed(7)
    config = getattr(transformers, config_class)(**settings, attn_implementation="eager")
    model = getattr(transformers, model_class)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
            elif name.endswith("sinks"):
                parameter.normal_(0, 1)
    return model


def inputs_of(model: Any, padding: str) -> dict[str, Any]:
    """3 sentences of 11 tokens, the second and third shorter where there is padding."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, VOCABULARY - 1, (3, 11), generator=generator)
    mask = torch.ones_like(ids)
    for row, short in ((1, 3), (2, 7)):
        if padding == "right":
            mask[row, -short:] = 0
        if padding == "left":
            mask[row, :short] = 0
    inputs = {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(3, VOCABULARY - 1, (3, 6), generator=generator)
    return inputs


def counts_of(model: Any, inputs: dict[str, Any]) -> Any:
    """Which rows of the output belong to tokens: (B, L)."""
    if model.config.is_encoder_decoder:
        return torch.ones_like(inputs["decoder_input_ids"], dtype=torch.bool)
    return inputs["attention_mask"].bool()


def run(model: Any, implementation: str, call: Callable[[], Any]) -> Any:
    model.set_attn_implementation(implementation)
    return call()


def on_both(model: Any, call: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of a call with eager and with mha."""
    return run(model, "eager", call), run(model, "mha", call)


def assert_close(actual: Any, expected: Any, bound: float = 2e-5) -> None:
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    assert torch.isfinite(actual).all()
    largest = max(1.0, expected.abs().max().item())
    assert (actual - expected).abs().max().item() <= bound * largest


@pytest.mark.parametrize("padding", ["no", "right", "left"])
@pytest.mark.parametrize("family", TEXT)
def test_outputs_and_attentions_are_those_of_eager(family: str, padding: str) -> None:
    model = build(family)
    inputs = inputs_of(model, padding)
    counts = counts_of(model, inputs)
    with torch.no_grad():
        eager, ours = on_both(model, lambda: model(**inputs, output_attentions=True))
        plain = model(**inputs)
    assert_close(ours[0][counts], eager[0][counts])
    assert torch.equal(plain[0][counts], ours[0][counts])
    pairs = {name: counts for name in ("attentions", "decoder_attentions", "cross_attentions")}
    pairs["encoder_attentions"] = inputs["attention_mask"].bool()
    for name, rows in pairs.items():
        assert plain.get(name) is None
        assert (eager.get(name) is None) == (ours.get(name) is None)
        for a, b in zip(eager.get(name) or (), ours.get(name) or (), strict=True):
            assert_close(b.transpose(1, 2)[rows], a.transpose(1, 2)[rows])


@pytest.mark.parametrize("family", ["bert", "llama", "gemma2", "gpt-oss", "t5"])
def test_bfloat16_is_as_near_to_float32_as_eager(family: str) -> None:
    model = build(family)
    inputs = inputs_of(model, "right")
    counts = counts_of(model, inputs)
    with torch.no_grad():
        exact = run(model, "eager", lambda: model(**inputs)[0])[counts]
        eager, ours = on_both(model.bfloat16(), lambda: model(**inputs)[0][counts])
    assert ours.dtype == torch.bfloat16
    error = (ours.float() - exact).abs().mean()
    assert error <= 1.25 * (eager.float() - exact).abs().mean() + 1e-6
    assert error < 0.05 * exact.abs().mean()


def test_float16() -> None:
    model = build("bert").half()
    inputs = inputs_of(model, "right")
    with torch.no_grad():
        eager, ours = on_both(model, lambda: model(**inputs, output_attentions=True))
    assert_close(
        ours[0][inputs["attention_mask"].bool()], eager[0][inputs["attention_mask"].bool()], 1e-2
    )
    assert ours.attentions[0].dtype == torch.float16


def test_inference_mode_and_autocast() -> None:
    model = build("llama")
    inputs = inputs_of(model, "left")
    counts = counts_of(model, inputs)
    model.set_attn_implementation("mha")
    with torch.no_grad():
        plain = model(**inputs)[0]
    with torch.inference_mode():
        assert torch.equal(model(**inputs)[0], plain)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        eager, ours = on_both(model, lambda: model(**inputs)[0])
    assert ours.dtype == eager.dtype
    assert_close(ours[counts], eager[counts], 2e-2)


def generate(model: Any, inputs: dict[str, Any], **settings: Any) -> Any:
    kept = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    return model.generate(**kept, max_new_tokens=9, min_new_tokens=9, do_sample=False, **settings)


@pytest.mark.parametrize("padding", ["no", "left"])
@pytest.mark.parametrize("family", DECODERS + TRANSLATORS)
def test_generate_gives_the_tokens_of_eager(family: str, padding: str) -> None:
    model = build(family)
    inputs = inputs_of(model, padding)
    eager, ours = on_both(model, lambda: generate(model, inputs))
    assert torch.equal(ours, eager)


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2", "gpt-oss", "t5"])
def test_generate_with_a_static_cache(family: str) -> None:
    model = build(family)
    inputs = inputs_of(model, "left")
    settings = {"cache_implementation": "static", "disable_compile": True}
    eager = run(model, "eager", lambda: generate(model, inputs))
    ours = run(model, "mha", lambda: generate(model, inputs, **settings))
    assert torch.equal(ours, eager)


def test_generate_with_beams_and_attentions() -> None:
    model = build("bart")
    inputs = inputs_of(model, "left")
    settings = {"num_beams": 3, "output_attentions": True, "return_dict_in_generate": True}
    eager, ours = on_both(model, lambda: generate(model, inputs, **settings))
    assert torch.equal(ours.sequences, eager.sequences)
    for a, b in zip(eager.cross_attentions, ours.cross_attentions, strict=True):
        assert_close(b[-1], a[-1])


def gradients(model: Any, inputs: dict[str, Any], counts: Any) -> dict[str, Any]:
    model.zero_grad()
    output = model(**inputs)[0][counts]
    (output * torch.linspace(-1, 1, output.numel()).view_as(output)).sum().backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", TEXT)
def test_a_training_step_has_the_gradients_of_eager(family: str) -> None:
    model = build(family)
    inputs = inputs_of(model, "right")
    counts = counts_of(model, inputs)
    eager, ours = on_both(model, lambda: gradients(model, inputs, counts))
    assert eager.keys() == ours.keys()
    for name, gradient in eager.items():
        assert_close(ours[name], gradient, 1e-4)


def test_a_training_step_with_checkpoints() -> None:
    model = build("mistral")
    inputs = inputs_of(model, "left") | {"use_cache": False}
    counts = counts_of(model, inputs)
    model.set_attn_implementation("mha")
    expected = gradients(model, inputs, counts)
    model.train()
    model.gradient_checkpointing_enable()
    for name, gradient in gradients(model, inputs, counts).items():
        assert_close(gradient, expected[name], 1e-6)


def test_gradients_flow_through_attentions() -> None:
    model = build("bert")
    inputs = inputs_of(model, "no")

    def step() -> Any:
        model.zero_grad()
        model(**inputs, output_attentions=True).attentions[1].square().sum().backward()
        return model.encoder.layer[0].attention.self.query.weight.grad.clone()

    eager, ours = on_both(model, step)
    assert eager.abs().max() > 0
    assert_close(ours, eager, 1e-4)


def test_dropout_applies_in_training_only() -> None:
    model = build("bert")
    inputs = inputs_of(model, "no")
    model.set_attn_implementation("mha")
    for module in hf.layers(model).values():
        module.dropout.p = 0.5
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) and module.p != 0.5:
            module.p = 0.0

    def step(seed: int) -> Any:
        torch.manual_seed(seed)
        with torch.no_grad():
            return model(**inputs)[0]

    still = step(1)
    assert torch.equal(still, step(2))
    model.train()
    assert torch.equal(step(1), step(1))
    assert not torch.allclose(step(1), step(2)) and not torch.allclose(step(1), still)


def test_vit() -> None:
    torch.manual_seed(7)
    settings = {
        name: COMMON[name] for name in COMMON if name.startswith(("hidden", "num", "inter"))
    }
    config = transformers.ViTConfig(**settings, image_size=16, patch_size=4)
    model = transformers.ViTModel(config).eval()
    pixels = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        eager, ours = on_both(model, lambda: model(pixels, output_attentions=True))
    assert_close(ours[0], eager[0])
    assert_close(ours.attentions[1], eager.attentions[1])


def test_packed_sequences_by_position() -> None:
    model = build("llama")
    ids = inputs_of(model, "no")["input_ids"][:1]
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 4]])
    with torch.no_grad():
        call = lambda: model(input_ids=ids, position_ids=positions, use_cache=False)[0]  # noqa: E731
        eager, ours = on_both(model, call)
        alone = model(input_ids=ids[:, 4:6]).logits
    assert_close(ours, eager)
    assert_close(ours[:, 4:6], alone)


def test_packed_sequences_by_their_starts() -> None:
    torch.manual_seed(5)
    query, key, value = torch.randn(3, 1, 4, 11, 8)
    starts = torch.tensor([0, 4, 6, 11], dtype=torch.int32)
    layer = torch.nn.Identity()
    together, _ = hf.attention(
        layer, query, key, value, None, cu_seq_lens_q=starts, cu_seq_lens_k=starts
    )
    for a, b in ((0, 4), (4, 6), (6, 11)):
        parts = (tensor[:, :, a:b] for tensor in (query, key, value))
        assert_close(together[:, a:b], hf.attention(layer, *parts, None)[0])
    with pytest.raises(ValueError, match="must be equal in a causal layer"):
        hf.attention(
            layer, query, key, value, None, cu_seq_lens_q=starts, cu_seq_lens_k=starts[[0, 3]]
        )


def test_a_mask_of_the_user() -> None:
    model = build("llama")
    inputs = inputs_of(model, "no")
    band = torch.ones(11, 11).tril().triu(-2).bool()
    added = torch.where(band, 0.0, torch.finfo(torch.float32).min)
    added = added.expand(3, 1, 11, 11)
    with torch.no_grad():
        eager = run(model, "eager", lambda: model(inputs["input_ids"], attention_mask=added)[0])
        for mask in (added, band.expand(3, 1, 11, 11)):
            ours = run(model, "mha", lambda m=mask: model(inputs["input_ids"], attention_mask=m)[0])
            assert_close(ours, eager)


ALONE = {
    "bloom": ("BloomModel", "BloomConfig", COMMON, 0),
    "mpnet": ("MPNetModel", "MPNetConfig", COMMON, 0),
    "splinter": ("SplinterModel", "SplinterConfig", COMMON, 2),
    "bigbird": (
        "BigBirdPegasusModel",
        "BigBirdPegasusConfig",
        ENCODER_DECODER | {"attention_type": "original_full"},
        4,
    ),
}


@pytest.mark.parametrize("family", ALONE)
def test_models_with_attention_of_their_own_are_as_right_as_ever(family: str) -> None:
    """They warn when they are loaded, or, if some of their layers run on mha, when they run."""
    model_class, config_class, settings, on_mha = ALONE[family]
    with torch.no_grad(), pytest.warns(UserWarning, match="attention of (its|their) own"):
        eager, ours = (
            getattr(transformers, model_class)(
                getattr(transformers, config_class)(**settings, attn_implementation=implementation)
            ).eval()
            for implementation in ("eager", "mha")
        )
        ours.load_state_dict(eager.state_dict())
        for padding in ("no", "left"):
            inputs = inputs_of(eager, padding)
            counts = counts_of(eager, inputs)
            assert_close(ours(**inputs)[0][counts], eager(**inputs)[0][counts])
    assert len(hf.layers(ours)) == on_mha
    if family == "splinter":  # it has only masks of its own
        assert hf.require(ours) is ours
    else:
        with pytest.raises(ValueError, match="does not reach"):
            hf.require(ours)


# Models that knew only the names of their own implementations, and raised KeyError: 'mha'.
CLOSED = {
    "falcon": ("FalconModel", "FalconConfig", {"hidden_size": 32, "num_hidden_layers": 2}),
    "gpt-j": ("GPTJModel", "GPTJConfig", {"n_embd": 32, "n_layer": 2, "rotary_dim": 4}),
    "gpt-neo": (
        "GPTNeoModel",
        "GPTNeoConfig",
        {"hidden_size": 32, "num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    ),
}


@pytest.mark.parametrize("family", CLOSED)
def test_models_that_know_no_other_implementation_warn(family: str) -> None:
    model_class, config_class, settings = CLOSED[family]
    heads = {"gpt-j": "n_head", "gpt-neo": "num_heads"}.get(family, "num_attention_heads")
    config = getattr(transformers, config_class)(**settings, **{heads: 4}, vocab_size=50)
    ids = torch.arange(10).reshape(2, 5)
    torch.manual_seed(0)
    plain = getattr(transformers, model_class)(config).eval()
    with torch.no_grad():
        right = plain(ids)[0]
        with pytest.warns(UserWarning, match="attention of its own"):
            plain.set_attn_implementation("mha")
        assert torch.equal(plain(ids)[0], right)
        with pytest.warns(UserWarning, match="attention of its own"):
            hf.accelerate(plain)
    config._attn_implementation = "mha"
    with pytest.warns(UserWarning, match="attention of its own"):
        loaded = getattr(transformers, model_class)(config)
    for model in (plain, loaded):
        with pytest.raises(ValueError, match=r"does not reach \(h\.0\..*, h\.1\."):
            hf.require(model)


def test_require() -> None:
    settings = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.BertConfig(**settings, intermediate_size=32, vocab_size=50)
    model = transformers.BertModel(config)
    with pytest.raises(ValueError, match="encoder.layer.0.attention.self and 1 other.*'sdpa'"):
        hf.require(model)
    model.set_attn_implementation("mha")
    assert hf.require(model) is model
    with pytest.raises(ValueError, match="does not reach"):
        hf.require(torch.nn.Linear(2, 2))


def test_the_example_draws_heads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "hf_attentions.py"))
    example["main"](str(tmp_path / "heads.svg"))
    assert "tokens of eager attention: True" in capsys.readouterr().out
    assert (tmp_path / "heads.svg").read_text().startswith("<svg")


def test_compiled() -> None:
    model = build("llama")
    model.set_attn_implementation("mha")
    inputs = inputs_of(model, "left") | {"use_cache": False}
    compiled = torch.compile(model, backend="eager")
    counts = inputs["attention_mask"].bool()
    with torch.no_grad():
        assert_close(compiled(**inputs)[0][counts], model(**inputs)[0][counts])


def test_what_mha_does_not_have_is_refused() -> None:
    query = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="Identity chooses keys by indices=.*eager"):
        hf.attention(torch.nn.Identity(), query, query, query, None, indices=torch.zeros(1))
