# SPDX-License-Identifier: MIT
"""mha.hf.heads and mha.hf.gates: what heads attend to, and models without some of them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("mha.hf")
hf.register()

pytestmark = pytest.mark.usefixtures("one_thread")

H, D = 4, 8


def build(name: str = "bert") -> Any:
    torch.manual_seed(11)
    sizes = {"vocab_size": 32, "pad_token_id": 0}
    if name == "bart":
        config: Any = transformers.BartConfig(
            **sizes, d_model=H * D, encoder_layers=1, decoder_layers=1, encoder_attention_heads=H,
            decoder_attention_heads=H, encoder_ffn_dim=16, decoder_ffn_dim=16,
            max_position_embeddings=32,
        )  # fmt: skip
        model: Any = transformers.BartModel(config)
    else:
        config = transformers.BertConfig(
            **sizes, hidden_size=H * D, num_hidden_layers=2, num_attention_heads=H,
            intermediate_size=16, max_position_embeddings=32,
        )  # fmt: skip
        model = transformers.BertModel(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    model.set_attn_implementation("mha")
    return model.eval()


def inputs() -> dict[str, Any]:
    ids = torch.randint(1, 32, (3, 9), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    mask[2, 8:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def expected(weights: Any, counts: Any) -> dict[str, Any]:
    """The same statistics from a matrix (B, H, L, S)."""
    rows, keys = torch.arange(weights.shape[2])[:, None], torch.arange(weights.shape[3])
    table = {
        "entropy": -torch.xlogy(weights, weights).sum(-1),
        "largest": weights.amax(-1),
        "distance": (weights * (rows - keys).abs()).sum(-1),
        "self": (weights * (keys == rows)).sum(-1),
        "previous": (weights * (keys == rows - 1)).sum(-1),
        "next": (weights * (keys == rows + 1)).sum(-1),
        "first": weights[..., 0],
    }
    return {name: value.transpose(1, 2)[counts].mean(0) for name, value in table.items()}


def test_heads_are_the_statistics_of_the_weights() -> None:
    model, given = build(), inputs()
    table = hf.heads(model, given)
    with torch.no_grad():
        attentions = model(**given, output_attentions=True).attentions
    assert table.layers == list(hf.layers(model)) and len(table.layers) == 2
    for layer, weights in enumerate(attentions):
        for name, value in expected(weights.double(), given["attention_mask"].bool()).items():
            assert (table[name][layer] - value).abs().max() < 1e-5, (layer, name)


def test_heads_of_an_encoder_and_a_decoder() -> None:
    model = build("bart")
    given = inputs() | {"decoder_input_ids": torch.randint(1, 32, (3, 9))}
    given["decoder_attention_mask"] = torch.ones(3, 9, dtype=torch.int64)
    given["decoder_attention_mask"][0, 4:] = 0
    table = hf.heads(model, given)
    with torch.no_grad():
        result = model(**given, output_attentions=True)
    parts = {
        "encoder.layers.0.self_attn": (result.encoder_attentions, "attention_mask"),
        "decoder.layers.0.self_attn": (result.decoder_attentions, "decoder_attention_mask"),
        "decoder.layers.0.encoder_attn": (result.cross_attentions, "decoder_attention_mask"),
    }
    assert table.layers == list(parts)
    for layer, (weights, name) in enumerate(parts.values()):
        value = expected(weights[0].double(), given[name].bool())["entropy"]
        assert (table["entropy"][layer] - value).abs().max() < 1e-5


def test_heads_leave_the_model_as_it_was() -> None:
    model, given = build(), inputs()
    with torch.no_grad():
        before = model(**given)[0]
        hf.heads(model, given)
        assert torch.equal(model(**given)[0], before)
        with pytest.raises(AttributeError):
            hf.heads(model, given | {"input_ids": "words"})
        assert torch.equal(model(**given)[0], before)


def test_heads_as_text_and_in_a_notebook() -> None:
    table = hf.heads(build(), inputs())
    lines = str(table).splitlines()
    assert len(lines) == 1 + 2 * H and lines[0].split()[:3] == ["layer", "head", "entropy"]
    assert lines[1].split()[:2] == ["encoder.layer.0.attention.self", "0"]
    assert float(lines[1].split()[2]) == pytest.approx(float(table["entropy"][0][0]), abs=1e-3)
    cells: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: cells.append(tag)  # type: ignore[method-assign]
    parser.feed(table._repr_html_())
    assert cells.count("tr") == len(lines) and cells.count("td") == 2 * H * 9


def without(model: Any, layer: int, heads: list[int]) -> Any:
    """The eager model with heads set to 0 before the output projection."""

    def close(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        states = args[0].clone()
        for head in heads:
            states[..., head * D : (head + 1) * D] = 0
        return (states, *args[1:])

    hook = model.encoder.layer[layer].attention.output.register_forward_pre_hook(close)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        result = model(**inputs())[0]
    hook.remove()
    model.set_attn_implementation("mha")
    return result


def test_gates_disable_heads() -> None:
    model, given = build(), inputs()
    counts = given["attention_mask"].bool()
    with torch.no_grad():
        before = model(**given)[0]
        with hf.gates(model, [(1, 0), ("encoder.layer.1.attention.self", 2)]):
            closed = model(**given)[0]
            with hf.gates(model, [(1, 0)], factor=1.0):
                inner = model(**given)[0]
            assert torch.equal(model(**given)[0], closed)
        after = model(**given)[0]
    assert torch.equal(before, after)
    assert (closed - without(model, 1, [0, 2]))[counts].abs().max() < 1e-5
    assert (inner - without(model, 1, [2]))[counts].abs().max() < 1e-5
    assert (closed - before)[counts].abs().max() > 1e-3


def test_gates_open_again_after_an_error() -> None:
    model, given = build(), inputs()
    with torch.no_grad():
        before = model(**given)[0]
        for _ in range(2):
            with pytest.raises(KeyError), hf.gates(model, [(0, 1)]):
                raise KeyError("something else")
            assert torch.equal(model(**given)[0], before)


def test_gates_and_gradients() -> None:
    model, given = build(), inputs()
    with hf.gates(model, [(0, head) for head in range(H)]):
        model(**given)[0].square().sum().backward()
    first, second = (layer.attention.self.value.weight.grad for layer in model.encoder.layer)
    assert first.abs().max() == 0 < second.abs().max()


def test_errors_say_what_to_do() -> None:
    model, given = build(), inputs()
    with pytest.raises(ValueError, match="no layer 2; layers are 0 to 1, or by name encoder"):
        with hf.gates(model, [(2, 0)]):
            pass
    with pytest.raises(ValueError, match="no head 4: BertSelfAttention has 4 heads"):
        with hf.gates(model, [(0, H)]):
            model(**given)
    with pytest.raises(TypeError, match=r"heads has 3; give pairs of a layer and a head"):
        with hf.gates(model, [3, 4]):
            pass
    with pytest.raises(TypeError, match="inputs is a Tensor; give what a tokenizer returns"):
        hf.heads(model, given["input_ids"])
    model.set_attn_implementation("sdpa")
    with pytest.raises(ValueError, match=r"BertModel runs on 'sdpa'.*set_attn_implementation"):
        hf.heads(model, given)
    with pytest.raises(ValueError, match="has no attention that mha can reach"):
        hf.heads(torch.nn.Linear(2, 2), {})
