# SPDX-License-Identifier: MIT
"""mha.torch.MultiheadAttention against torch.nn.MultiheadAttention."""

import copy
import io
import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

import mha.torch  # noqa: E402

WIDTH, HEADS, BATCH, ROWS, KEYS = 24, 3, 2, 5, 7
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(autouse=True)
def _alone_and_strict():
    """One thread, since these tensors are tiny; and falling back to torch is an error."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mha.torch.FallbackWarning)
        yield
    torch.set_num_threads(threads)


def pair(**settings: object) -> tuple[nn.MultiheadAttention, mha.torch.MultiheadAttention]:
    """torch's module and ours with the same parameters, none of them zero."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, **settings)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.3)
    ours = mha.torch.MultiheadAttention(WIDTH, HEADS, **settings)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs.eval(), ours.eval()


def padding(kind: str) -> Tensor:
    hidden = torch.zeros(BATCH, KEYS, dtype=torch.bool)
    hidden[1, 4:] = True
    return hidden if kind == "bool" else torch.randn(BATCH, KEYS).masked_fill(hidden, -torch.inf)


def attn_mask(kind: str, axes: int) -> Tensor:
    shape = (ROWS, KEYS) if axes == 2 else (BATCH * HEADS, ROWS, KEYS)
    numbers = torch.randn(shape)
    if kind == "float":
        return numbers
    hidden = numbers > 0
    hidden[..., 0] = False
    return hidden


CAUSAL = torch.ones(ROWS, KEYS, dtype=torch.bool).triu(1)
MASKS = {
    "none": lambda: {},
    "padding": lambda: {"key_padding_mask": padding("bool")},
    "float padding": lambda: {"key_padding_mask": padding("float")},
    "2-D": lambda: {"attn_mask": attn_mask("bool", 2)},
    "2-D float": lambda: {"attn_mask": attn_mask("float", 2)},
    "3-D": lambda: {"attn_mask": attn_mask("bool", 3)},
    "3-D float": lambda: {"attn_mask": attn_mask("float", 3)},
    "both": lambda: {"attn_mask": attn_mask("bool", 3), "key_padding_mask": padding("bool")},
    "both float": lambda: {
        "attn_mask": attn_mask("float", 2),
        "key_padding_mask": padding("float"),
    },
    "causal": lambda: {"attn_mask": CAUSAL, "is_causal": True},
    "causal, padding": lambda: {
        "attn_mask": CAUSAL,
        "is_causal": True,
        "key_padding_mask": padding("bool"),
    },
}
SETTINGS = [
    dict(zip(("bias", "add_bias_kv", "add_zero_attn", "batch_first"), flags), **widths)
    for flags in itertools.product((True, False), repeat=4)
    for widths in ({}, {"kdim": 20, "vdim": 12})
]
WEIGHTS = ({"need_weights": False}, {}, {"average_attn_weights": False})


def inputs(settings: dict, batched: bool) -> list[Tensor]:
    widths = (WIDTH, settings.get("kdim", WIDTH), settings.get("vdim", WIDTH))
    shapes = [(n, w) for n, w in zip((ROWS, KEYS, KEYS), widths)]
    if batched:
        shapes = [(BATCH, n, w) if settings["batch_first"] else (n, BATCH, w) for n, w in shapes]
    return [torch.randn(shape) for shape in shapes]


def is_skipped(name: str, settings: dict, named: dict) -> bool:
    """torch masks its extra keys with the causal hint unless it needs the mask otherwise."""
    extra = settings["add_bias_kv"] or settings["add_zero_attn"]
    return name == "causal" and extra and named.get("need_weights") is False


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_all_arguments(settings: dict) -> None:
    theirs, ours = pair(**settings)
    for name, named, batched in itertools.product(MASKS, WEIGHTS, (True, False)):
        if is_skipped(name, settings, named):
            continue
        masks = MASKS[name]()
        if not batched and "key_padding_mask" in masks:
            masks["key_padding_mask"] = masks["key_padding_mask"][1]
        if not batched and masks.get("attn_mask", CAUSAL).dim() == 3:
            masks["attn_mask"] = masks["attn_mask"][:HEADS]
        tensors = inputs(settings, batched)
        right, right_weights = theirs(*tensors, **masks, **named)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                output, weights = ours(*tensors, **masks, **named)
            torch.testing.assert_close(output, right, **CLOSE, msg=f"{name} {named} {grad}")
            assert (weights is None) == (right_weights is None)
            if weights is not None:
                torch.testing.assert_close(weights, right_weights, **CLOSE)


@pytest.mark.parametrize("same", [1, 2, 3])
@pytest.mark.parametrize("batch_first", [True, False])
def test_inputs_that_are_one_tensor(same: int, batch_first: bool) -> None:
    """Self-attention, memory for cross-attention, three tensors: one product, two, three."""
    theirs, ours = pair(batch_first=batch_first)
    x, y, z = torch.randn(3, BATCH, BATCH, WIDTH).unbind()
    tensors = {1: (x, x, x), 2: (x, y, y), 3: (x, y, z)}[same]
    right = theirs(*tensors)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            for found, expected in zip(ours(*tensors), right):
                torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_first": True},
        {"batch_first": False, "kdim": 20, "vdim": 12},
        {"batch_first": True, "add_bias_kv": True, "add_zero_attn": True},
    ],
)
def test_training_step_gives_equal_gradients(settings: dict, name: str) -> None:
    theirs, ours = pair(**settings)
    masks = MASKS[name]()
    if settings.get("add_bias_kv"):
        masks.pop("is_causal", None)
    tensors = inputs(settings, batched=True)
    pulls = torch.randn(1), torch.randn(BATCH, ROWS, 1)
    found = []
    for module in (theirs, ours):
        leaves = [t.clone().requires_grad_() for t in tensors]
        module.train()
        output, weights = module(*leaves, **masks)
        (output.square().mean() + (weights.square() * pulls[1]).sum() * pulls[0]).backward()
        found.append([*(t.grad for t in leaves), *(p.grad for p in module.parameters())])
        torch.optim.SGD(module.parameters(), 0.1).step()
    for right, got in zip(*found):
        torch.testing.assert_close(got, right, **CLOSE)
    for right, got in zip(theirs.parameters(), ours.parameters()):
        torch.testing.assert_close(got, right, **CLOSE)


def test_training_without_weights_needs_no_matrix() -> None:
    """Outputs alone: the library's own backward pass, and the same gradients."""
    theirs, ours = pair(batch_first=True)
    x = torch.randn(BATCH, ROWS, WIDTH)
    for module in (theirs, ours):
        module.train()
        module(x, x, x, need_weights=False)[0].square().mean().backward()
    for right, got in zip(theirs.parameters(), ours.parameters()):
        torch.testing.assert_close(got.grad, right.grad, **CLOSE)


@pytest.mark.parametrize("settings", SETTINGS[::5])
def test_state_dict_goes_both_ways(settings: dict) -> None:
    theirs, ours = pair(**settings)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert str(ours).replace("(", "") == str(theirs).replace("(", "")


def test_initial_parameters_are_torchs() -> None:
    found = []
    for kind in (nn.MultiheadAttention, mha.torch.MultiheadAttention):
        torch.manual_seed(5)
        module = kind(WIDTH, HEADS, add_bias_kv=True)
        module._reset_parameters()
        found.append(list(module.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_row_without_keys_gives_zero_not_nan() -> None:
    _, ours = pair(batch_first=True)
    x = torch.randn(1, 3, WIDTH, requires_grad=True)
    hidden = torch.ones(1, 3, dtype=torch.bool)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            output, weights = ours(x, x, x, key_padding_mask=hidden)
        assert torch.equal(output, ours.out_proj.bias.expand(1, 3, -1)) and not weights.any()
    output, _ = ours(x, x, x, key_padding_mask=hidden)
    output.sum().backward()
    assert not x.grad.any()


def test_dropout_is_for_training() -> None:
    torch.manual_seed(0)
    module = mha.torch.MultiheadAttention(WIDTH, HEADS, dropout=0.5, batch_first=True)
    x = torch.randn(1, 4, WIDTH)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            module.train()
            assert not torch.equal(module(x, x, x)[0], module(x, x, x)[0])
            assert torch.equal(module(x, x, x)[1], module(x, x, x)[1])
            module.eval()
            assert torch.equal(module(x, x, x)[0], module(x, x, x)[0])


# ------------------------------------------------------------------- the packed copy -----


def is_fresh(module: mha.torch.MultiheadAttention) -> bool:
    """Whether inference agrees with the current parameters."""
    x = torch.randn(1, 4, WIDTH)
    with torch.no_grad():
        packed = module(x, x, x, need_weights=False)[0]
        module.pack = False
        plain = module(x, x, x, need_weights=False)[0]
        module.pack = True
    return torch.allclose(packed, plain, **CLOSE)


def _changes() -> dict:
    def step(module: nn.Module) -> None:
        x = torch.randn(1, 4, WIDTH)
        module(x, x, x)[0].square().sum().backward()
        torch.optim.SGD(module.parameters(), 1.0).step()

    def load(module: nn.Module) -> None:
        module.load_state_dict({k: v + 1 for k, v in module.state_dict().items()})

    def assign(module: nn.Module) -> None:
        state = {k: v + 1 for k, v in module.state_dict().items()}
        module.load_state_dict(state, assign=True)

    def in_place(module: nn.Module) -> None:
        with torch.no_grad():
            module.in_proj_weight[0, 0] += 10

    def data(module: nn.Module) -> None:
        module.in_proj_weight.data.mul_(0.5)

    def bias(module: nn.Module) -> None:
        module.out_proj.bias.data.add_(0.5)

    def other_memory(module: nn.Module) -> None:
        module.out_proj.weight.data = module.out_proj.weight.data * 2

    def other_parameter(module: nn.Module) -> None:
        module.out_proj.weight = nn.Parameter(module.out_proj.weight.detach() * 2)

    def other_type(module: nn.Module) -> None:
        module.double()
        module.in_proj_weight.data.mul_(2)
        module.float()

    return {f.__name__: f for f in locals().copy().values() if callable(f)}


@pytest.mark.parametrize("change", _changes())
def test_packed_weights_follow_the_parameters(change: str) -> None:
    _, module = pair(batch_first=True)
    assert is_fresh(module)
    _changes()[change](module)
    assert is_fresh(module)


def test_packed_weights_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = mha.Layer.from_torch
    monkeypatch.setattr(
        mha.Layer, "from_torch", lambda module: (made.append(module), real(module))[1]
    )
    _, module = pair(batch_first=True)
    x = torch.randn(1, 4, WIDTH)
    with torch.no_grad():
        for _ in range(3):
            module(x, x, x)
            module.train()
            module.eval()
    assert len(made) == 1
    module(x, x, x)
    assert len(made) == 1
    module.pack = False
    with torch.no_grad():
        copy.deepcopy(module)(x, x, x)
    assert len(made) == 1


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_copies(way: str) -> None:
    _, module = pair(batch_first=True)
    x = torch.randn(1, 4, WIDTH)
    with torch.no_grad():
        right = module(x, x, x)[0]
    if way == "deepcopy":
        twin = copy.deepcopy(module)
    else:
        file = io.BytesIO()
        torch.save(module, file)
        size = file.tell()
        assert size < 3 * sum(p.numel() * 4 for p in module.parameters())
        file.seek(0)
        twin = torch.load(file, weights_only=False)
    assert type(twin) is mha.torch.MultiheadAttention
    with torch.no_grad():
        assert torch.equal(twin(x, x, x)[0], right)
        twin.in_proj_weight.mul_(2)
        assert not torch.equal(twin(x, x, x)[0], right)
        assert torch.equal(module(x, x, x)[0], right)


def test_other_ways_to_infer() -> None:
    theirs, ours = pair(batch_first=True)
    x = torch.randn(2, 4, WIDTH)
    right = theirs(x, x, x)[0]
    with torch.inference_mode():
        torch.testing.assert_close(ours(x, x, x)[0], right, **CLOSE)
        born_here = mha.torch.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        born_here.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(born_here(x, x, x)[0], right, **CLOSE)
    ours.requires_grad_(False)
    torch.testing.assert_close(ours(x, x, x)[0], right, **CLOSE)
    transposed = x.transpose(1, 2).contiguous().transpose(1, 2)
    torch.testing.assert_close(ours(transposed, transposed, transposed)[0], right, **CLOSE)


@pytest.mark.parametrize("dtype, close", [(torch.float64, 1e-12), (torch.bfloat16, 5e-2)])
def test_other_types(dtype: torch.dtype, close: float) -> None:
    theirs, ours = pair(batch_first=True)
    theirs, ours = theirs.to(dtype), ours.to(dtype)
    x = torch.randn(2, 4, WIDTH, dtype=dtype)
    with torch.no_grad():
        for found, right in zip(ours(x, x, x), theirs(x, x, x)):
            torch.testing.assert_close(found, right, atol=close, rtol=close)


def test_autocast() -> None:
    theirs, ours = pair(batch_first=True)
    x = torch.randn(2, 4, WIDTH)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found, right = ours(x, x, x)[0], theirs(x, x, x)[0]
    assert found.dtype == right.dtype
    torch.testing.assert_close(found, right, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend: str) -> None:
    torch.compiler.reset()
    _, module = pair(batch_first=True)
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    x = torch.randn(BATCH, ROWS, WIDTH)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            for found, right in zip(compiled(x, x, x), module(x, x, x)):
                torch.testing.assert_close(found, right, **CLOSE)
    compiled(x, x, x)[0].sum().backward()
    assert module.in_proj_weight.grad is not None


def test_meta_device() -> None:
    module = mha.torch.MultiheadAttention(WIDTH, HEADS, batch_first=True, device="meta")
    x = torch.empty(2, 4, WIDTH, device="meta")
    output, weights = module(x, x, x)
    assert output.shape == x.shape and weights.shape == (2, 4, 4)


@pytest.mark.parametrize("rows, keys, batch", [(0, 3, 1), (3, 3, 0)])
def test_empty_inputs(rows: int, keys: int, batch: int) -> None:
    _, ours = pair(batch_first=True)
    query, key = torch.randn(batch, rows, WIDTH), torch.randn(batch, keys, WIDTH)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert ours(query, key, key)[0].shape == (batch, rows, WIDTH)


x, y = torch.zeros(BATCH, ROWS, WIDTH), torch.zeros(BATCH, KEYS, WIDTH)
WRONG = {
    "width": (torch.zeros(BATCH, ROWS, 8), y, y, {}),
    "batch": (x, y[:1], y[:1], {}),
    "values": (x, y, y[:, 1:], {}),
    "axes": (x, y[0], y[0], {}),
    "mask": (x, y, y, {"attn_mask": torch.zeros(ROWS, ROWS)}),
    "3-D mask": (x, y, y, {"attn_mask": torch.zeros(BATCH, ROWS, KEYS)}),
    "padding": (x, y, y, {"key_padding_mask": torch.zeros(BATCH, ROWS)}),
    "type of mask": (x, y, y, {"attn_mask": torch.zeros(ROWS, KEYS, dtype=torch.int32)}),
    "hint alone": (x, y, y, {"is_causal": True}),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", WRONG)
def test_errors_are_torchs(name: str, grad: bool) -> None:
    *tensors, named = WRONG[name]
    theirs, ours = pair(batch_first=True)
    with torch.set_grad_enabled(grad):
        with pytest.raises((RuntimeError, AssertionError, ValueError)):
            theirs(*tensors, **named)
        with pytest.raises((RuntimeError, AssertionError)):
            ours(*tensors, **named)


def test_nested_tensors_go_to_torch() -> None:
    theirs = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    ours = copy.deepcopy(theirs)
    mha.torch.replace(ours)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(3, 8)])
        warnings.simplefilter("default", mha.torch.FallbackWarning)
        with pytest.warns(mha.torch.FallbackWarning, match="nested"):
            found, _ = ours(nested, nested, nested, need_weights=False)
        right, _ = theirs(nested, nested, nested, need_weights=False)
    for got, expected in zip(found.unbind(), right.unbind(), strict=True):
        torch.testing.assert_close(got, expected)


def test_same_embed_dim_is_what_it_says() -> None:
    """Callers of multi_head_attention_forward() and PEFT read it."""
    assert mha.torch.MultiheadAttention(8, 2)._qkv_same_embed_dim
    assert not mha.torch.MultiheadAttention(8, 2, kdim=4)._qkv_same_embed_dim
    model = nn.MultiheadAttention(8, 2)
    for change in (mha.torch.replace, mha.torch.replace, mha.torch.restore):
        change(model)
        assert model._qkv_same_embed_dim
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("way", ["replaced", "made"])
def test_encoder_layers_do_not_bypass_the_module(way: str) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    calls = []
    with torch.no_grad():
        right = layer(x)
        if way == "replaced":
            mha.torch.replace(layer)
        else:
            made = mha.torch.MultiheadAttention(8, 2, batch_first=True).eval()
            made.load_state_dict(layer.self_attn.state_dict())
            layer.self_attn = made
        run = layer.self_attn._run
        layer.self_attn._run = lambda *args: calls.append(args) or run(*args)
        torch.testing.assert_close(layer(x), right)
    assert len(calls) == 1


def test_the_hint_alone_does_not_read_the_mask() -> None:
    """Not even its shape, as in torch."""
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    ours = copy.deepcopy(theirs)
    mha.torch.replace(ours)
    x, mask = torch.randn(2, 3, 8), torch.zeros(5, 5)
    right, found = (
        m(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0] for m in (theirs, ours)
    )
    torch.testing.assert_close(found, right)


def test_static_keys_and_values_are_passed_on() -> None:
    x, w, o, static = (torch.randn(*s) for s in ((4, 2, 8), (24, 8), (8, 8), (4, 5, 4)))
    given = (8, 2, w, None, None, None, False, 0.0, o, None)

    def call() -> torch.Tensor:
        more = {"static_k": static, "static_v": static}
        return torch.nn.functional.multi_head_attention_forward(x, x, x, *given, **more)[0]

    right = call()
    with mha.torch.sdpa(), pytest.warns(mha.torch.FallbackWarning, match="static_k"):
        found = call()
    assert torch.equal(found, right)


def test_a_padding_mask_of_another_shape_is_an_assertion_as_in_torch() -> None:
    x, mask = torch.randn(1, 3, 8), torch.zeros(1, 9, dtype=torch.bool)
    for kind in (nn.MultiheadAttention, mha.torch.MultiheadAttention):
        with pytest.raises(AssertionError):
            kind(8, 2, batch_first=True)(x, x, x, key_padding_mask=mask)


@pytest.mark.parametrize("training", [False, True])
def test_lora_after_replace(training: bool) -> None:
    peft = pytest.importorskip("peft")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.heads(x, x, x, need_weights=False)[0]

    theirs, x = Model(), torch.randn(2, 5, 16)
    ours = copy.deepcopy(theirs)
    mha.torch.replace(ours)
    config = peft.LoraConfig(r=2, target_modules=["heads"], init_lora_weights=False)
    found = []
    for model in (theirs, ours):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            wrapped = peft.get_peft_model(model, config).train(training)
        output = wrapped(x)
        output.square().sum().backward()
        grads = [p.grad for p in wrapped.parameters() if p.requires_grad]
        assert grads and all(grad is not None for grad in grads)
        found.append((output.detach(), *grads))
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------------------- replace -----


def encoder_and_decoder(**settings: object) -> nn.Transformer:
    torch.manual_seed(0)
    return nn.Transformer(WIDTH, 2, 2, 2, 32, dropout=0.0, **settings)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_replace_in_a_transformer(batch_first: bool, norm_first: bool) -> None:
    model = encoder_and_decoder(batch_first=batch_first, norm_first=norm_first)
    plain = copy.deepcopy(model)
    parameters = list(model.parameters())
    names = mha.torch.replace(model)
    assert len(names) == 6 and mha.torch.replace(model) == []
    assert all(a is b for a, b in zip(parameters, model.parameters()))
    plain.load_state_dict(model.state_dict(), strict=True)
    source, target = torch.randn(BATCH, BATCH, WIDTH), torch.randn(BATCH, BATCH, WIDTH)
    mask = nn.Transformer.generate_square_subsequent_mask(BATCH)
    hidden = torch.tensor([[False, False], [False, True]])
    named = {"tgt_mask": mask, "src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
    # torch writes 0 to padded rows of an encoder in inference; no other row attends to them.
    with torch.no_grad():
        model.eval(), plain.eval()
        found, right = (m(source, target, **named) for m in (model, plain))
    torch.testing.assert_close(found, right, **CLOSE)
    model.train(), plain.train()
    for m in (model, plain):
        m(source, target, **named).square().sum().backward()
    for mine, theirs in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, **CLOSE)


def test_replaced_modules_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's encoder layers would compute everything themselves, bypassing the module."""
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=True).eval()
    mha.torch.replace(layer)
    seen = []
    real = mha.torch.MultiheadAttention.forward
    monkeypatch.setattr(
        mha.torch.MultiheadAttention,
        "forward",
        lambda self, *args, **named: (seen.append(1), real(self, *args, **named))[1],
    )
    with torch.no_grad():
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)(torch.randn(1, 3, WIDTH))
    assert len(seen) == 2


def test_replace_leaves_subclasses_and_goes_back() -> None:
    class Own(nn.MultiheadAttention):
        pass

    model = nn.ModuleDict({"a": nn.MultiheadAttention(8, 2), "b": Own(8, 2)})
    assert mha.torch.replace(model) == ["a"]
    assert type(model["a"]) is mha.torch.MultiheadAttention and type(model["b"]) is Own
    assert mha.torch.restore(model) == ["a"]
    assert type(model["a"]) is nn.MultiheadAttention
    fresh = nn.MultiheadAttention(8, 2)
    assert model["a"].__dict__.keys() == fresh.__dict__.keys()
    x = torch.randn(3, 1, 8)
    assert model["a"](x, x, x)[0].shape == x.shape


def test_replace_and_restore_an_encoder_with_padding() -> None:
    """Nested tensors, to which torch's encoder converts padding, are off in between."""
    encoder = encoder_and_decoder(batch_first=True).encoder.eval()
    x, hidden = torch.randn(2, 4, WIDTH), torch.tensor([[False] * 4, [False] * 2 + [True] * 2])
    keys = encoder.__dict__.keys() | set()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*nested tensors")
        right = encoder(x, src_key_padding_mask=hidden)
        mha.torch.replace(encoder)
        found = encoder(x, src_key_padding_mask=hidden)
        mha.torch.restore(encoder)
        again = encoder(x, src_key_padding_mask=hidden)
    torch.testing.assert_close(found[~hidden], right[~hidden], **CLOSE)
    assert torch.equal(again, right) and encoder.__dict__.keys() == keys


def test_replace_the_model_itself() -> None:
    module = nn.MultiheadAttention(8, 2)
    assert mha.torch.replace(module) == [""]
    assert type(module) is mha.torch.MultiheadAttention
