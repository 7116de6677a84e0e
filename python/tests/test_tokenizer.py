# SPDX-License-Identifier: MIT
"""mha.Tokenizer: small vocabularies that the tests write, and hostile arguments."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mha

if not hasattr(mha._core, "Tokenizer"):
    pytest.skip("built without libmha_model", allow_module_level=True)

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat un ##happy ##ness é a dog".split()


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("wordpiece") / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return mha.Tokenizer.open(path)


@pytest.fixture(scope="module")
def bytes_bpe(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Byte-level BPE in the form of the library "tokenizers": every byte, and "th"."""
    letters = [chr(n) for n in range(33, 127)] + [chr(n) for n in range(161, 173)]
    letters += [chr(n) for n in range(174, 256)]
    letters += [chr(256 + n) for n in range(256 - len(letters))]
    words = [*letters, "th", "Ġth", "<|im_start|>", "<|im_end|>"]
    special = [
        {
            "id": words.index(w),
            "content": w,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for w in words[-2:]
    ]
    tree = {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {word: n for n, word in enumerate(words)},
            "merges": ["t h", "Ġ th"],
        },
    }
    folder = tmp_path_factory.mktemp("bpe")
    (folder / "tokenizer.json").write_text(json.dumps(tree), encoding="utf-8")
    return mha.Tokenizer.open(folder)


def test_encode_and_decode(wordpiece: Any) -> None:
    ids = wordpiece.encode("The cat sat")
    assert [wordpiece.piece(id) for id in ids] == ["[CLS]", "the", "cat", "sat", "[SEP]"]
    assert wordpiece.encode("the cat", marks=False) == [5, 6]
    assert wordpiece.decode(ids, skip_marks=True) == "the cat sat"
    assert "[CLS]" in wordpiece.decode(ids)
    assert wordpiece.decode([]) == "" and wordpiece.encode("", marks=False) == []


def test_tokens_have_places_of_characters(wordpiece: Any) -> None:
    text = "É the unhappyness"
    tokens = wordpiece.tokens(text)
    words = [(text[t.begin : t.end], t.piece) for t in tokens if not t.special]
    assert words[1:] == [("the", "the"), ("un", "un"), ("happy", "##happy"), ("ness", "##ness")]
    assert words[0][0] == "É"
    assert [t.continues for t in tokens[1:-1]] == [False, False, False, True, True]
    assert tokens[0].begin == tokens[0].end and tokens[0].id == 2


def test_pairs(wordpiece: Any) -> None:
    tokens = wordpiece.tokens("the cat", pair="a dog")
    assert [t.piece for t in tokens] == "[CLS] the cat [SEP] a dog [SEP]".split()
    assert [t.segment for t in tokens] == [0, 0, 0, 0, 1, 1, 1]
    dog = tokens[5]
    assert "a dog"[dog.begin : dog.end] == "dog"
    assert wordpiece.encode("the cat", pair="a dog") == [t.id for t in tokens]


def test_the_vocabulary(wordpiece: Any) -> None:
    assert wordpiece.size == len(wordpiece) == len(WORDS) and wordpiece.kind == "WordPiece"
    assert wordpiece.find("##ness") == 10 and wordpiece.find("nothing") is None
    assert wordpiece.find("the\0") is None
    assert wordpiece.marks["class"] == 2 and "turn_end" not in wordpiece.marks
    assert wordpiece.is_mark(3) and not wordpiece.is_mark(5)
    assert repr(wordpiece) == "<mha.Tokenizer: WordPiece, 14 ids>"


def test_a_character_of_several_tokens(bytes_bpe: Any) -> None:
    text = "x😀th"
    tokens = bytes_bpe.tokens(text)
    assert [(t.begin, t.end) for t in tokens] == [(0, 1), *[(1, 2)] * 4, (2, 4)]
    assert bytes_bpe.decode([t.id for t in tokens]) == text
    assert bytes_bpe.decode([tokens[1].id]) == "\ufffd"


def test_marks_in_a_text_can_be_plain(bytes_bpe: Any) -> None:
    mark = bytes_bpe.find("<|im_end|>")
    assert bytes_bpe.encode("<|im_end|>") == [mark]
    assert mark not in bytes_bpe.encode("<|im_end|>", plain=True)


def test_chat(bytes_bpe: Any, wordpiece: Any) -> None:
    text = bytes_bpe.chat([{"role": "user", "content": "Hi"}, ("assistant", "Yes")], reply=False)
    assert "<|im_start|>user\nHi<|im_end|>" in text and text.rstrip().endswith("<|im_end|>")
    assert bytes_bpe.chat([("user", "Hi")]).endswith("<|im_start|>assistant\n")
    with pytest.raises(mha.Error):
        wordpiece.chat([("user", "Hi")])
    for wrong in ("Hi", {"role": "user"}, ("user", "a", "b")):
        with pytest.raises(TypeError):
            bytes_bpe.chat([wrong])
    with pytest.raises(TypeError):
        bytes_bpe.chat([{"role": "user", "content": 3}])


@pytest.mark.parametrize("ids", [[14], [-1], [2**40], [0, 99]])
def test_ids_that_do_not_exist(wordpiece: Any, ids: list[int]) -> None:
    with pytest.raises(mha.Error, match="0 to 13"):
        wordpiece.decode(ids)
    with pytest.raises(mha.Error, match="0 to 13"):
        wordpiece.piece(ids[-1])


def test_wrong_kinds(wordpiece: Any) -> None:
    for wrong in (None, b"cat", 3, ["cat"]):
        with pytest.raises(TypeError):
            wordpiece.encode(wrong)
    with pytest.raises(TypeError):
        wordpiece.encode("cat", pair=3)
    with pytest.raises((TypeError, mha.Error)):
        wordpiece.decode(["cat"])
    with pytest.raises(UnicodeEncodeError):
        wordpiece.encode("\ud800")
    with pytest.raises(TypeError):
        mha.Tokenizer()


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(mha.Error, match="nothing"):
        mha.Tokenizer.open(tmp_path / "nothing.json")
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(mha.Error):
        mha.Tokenizer.open(tmp_path)
    with pytest.raises((TypeError, ValueError)):
        mha.Tokenizer.open("a\0b")


def test_threads_share_a_tokenizer(wordpiece: Any) -> None:
    texts = ["the cat sat " * n for n in range(64)]
    alone = [wordpiece.encode(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wordpiece.encode, texts)) == alone


def test_the_library_tokenizers_agrees(bytes_bpe: Any, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    words = sorted(letters) + ["th", "Ġth"]
    model = tokenizers.models.BPE(
        {word: n for n, word in enumerate(words)}, [("t", "h"), ("Ġ", "th")]
    )
    theirs = tokenizers.Tokenizer(model)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = mha.Tokenizer.open(tmp_path)
    for text in ("the other  thing, é 😀!", " th\n\tth's 123", ""):
        assert ours.encode(text) == theirs.encode(text).ids
