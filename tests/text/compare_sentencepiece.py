#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the SentencePiece tokenizer with the libraries sentencepiece and tokenizers.

    compare_sentencepiece.py PROGRAM [--lines N] [--seed N] [--text FILE]... [MODEL]...

PROGRAM is the test program sentencepiece_lines. Small models are trained here: unigram and BPE, with
and without bytes for unknown characters, with several rules of normalisation and with a user's own
symbols. Texts are generated: all planes of Unicode, invalid UTF-8, emoji, white space, code, words;
and lines of the given files. Ids, byte offsets, decoded texts and the texts of random ids must be
equal. MODEL may also be a tokenizer.bin of llama2.c beside a tokenizer.model.
"""
import argparse
import io
import os
import random
import struct
import subprocess
import sys
import tempfile

NAME = "compare_sentencepiece"

try:
    import sentencepiece
    import tokenizers
except ImportError as missing:
    print(f"{NAME}: {missing}: pip install sentencepiece tokenizers")
    print(f"{NAME}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

WORDS = """the of and to in is that it was for on are with as his they be at one have this from or had
by hot but some what there we can out other were all your when up use word how said an each she which
their time will way about many then them would write like so these her long make thing see him two has
look more day could go come did my sound no most number who over know water than call first people may
down side been now find any new work part take get place made live where after back little only round
man year came show every good me give our under name very through just form much great think say help
low line before turn cause same mean differ move right boy old too does tell sentence set three want
air well also play small end put home read hand port large spell add even land here must big high such
straße naïve façade œuvre niño år být μέγα слово человек мир עולם مرحبا 世界 你好 日本語 こんにちは 한국어
ไทย हिन्दी தமிழ் ünïcödé 123 4567 3.14 1,000 don't it's e-mail http://example.org foo_bar int main""".split()

ODD = ["\u2581", "\u2581\u2581", " \u2581", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\ufffd",
       "\u0000", "\u0001", "\u007f", "\u0085", "\u2028", "\t", "\n", "\r\n", "  ", "   ", "fi", "ﬁ", "①",
       "㍿", "ﷺ", "e\u0301", "é", "A\u030a", "Å", "Å", "가", "가", "क्षि", "👍🏽", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪",
       "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀", "ẞ", "ſ", "İ", "ı", "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<sep>", "<cls>",
       "<ctl>", "@@", "中", "㈱", "½", "…", "™", "℃", "ｱ", "ﾞ", "ガ", "Ａ", "！", "~", "〜", "～", "−"]

CODE = ["for (int i = 0; i < n; i++) {", "    return x*y;", "\tif a == b:", "}", "#include <stdio.h>",
        "<div class=\"a\">", "a->b[c]", "0x7f", "// comment", "print('hello')", "x = {1: [2, 3]}"]


def any_character(rng):
    kind = rng.random()
    if kind < 0.3:
        return chr(rng.randrange(0x20, 0x7f))
    if kind < 0.6:
        return chr(rng.randrange(0x80, 0x3000))
    if kind < 0.9:
        code = rng.randrange(0x3000, 0x10000)
        return chr(code) if not 0xd800 <= code < 0xe000 else "x"
    return chr(rng.randrange(0x10000, 0x110000))


def any_text(rng, lines):
    """One text, as bytes; not always UTF-8."""
    kind = rng.randrange(8)
    if lines and kind < 3:
        text = rng.choice(lines)
    elif kind < 3:
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(12)))
    elif kind == 3:
        text = "".join(any_character(rng) for _ in range(rng.randrange(20)))
    elif kind == 4:
        text = "".join(rng.choice((rng.choice(ODD), rng.choice(WORDS), " ")) for _ in range(rng.randrange(12)))
    elif kind == 5:
        text = rng.choice(CODE) + rng.choice(["", "\n", "  "]) + rng.choice(CODE)
    elif kind == 6:
        text = rng.choice(["a", " ", "ab", "\u2581", "世", "e\u0301"]) * rng.randrange(60)
    else:
        text = "".join(rng.choice((any_character(rng), rng.choice(WORDS), rng.choice(ODD), "  "))
                       for _ in range(rng.randrange(10)))
    data = text.encode()
    if rng.random() < 0.15 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2):]
    if rng.random() < 0.05:
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(30)))
    return data


def train(folder, name, texts, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, minloglevel=2,
                                             num_threads=1, hard_vocab_limit=False, **options)
    path = os.path.join(folder, name + ".model")
    with open(path, "wb") as file:
        file.write(out.getvalue())
    return path


def small_models(folder, rng, lines):
    texts = [rng.choice(lines) for _ in range(1500)] if lines else []
    texts += [" ".join(rng.choice(WORDS) for _ in range(10)) for _ in range(600)]
    texts += CODE * 3
    own = dict(user_defined_symbols=["<sep>", "@@", "ab c", "中文", "\u2581the"], control_symbols=["<ctl>"])
    kinds = [
        ("unigram", dict(model_type="unigram", vocab_size=600)),
        ("unigram_bytes", dict(model_type="unigram", vocab_size=900, byte_fallback=True)),
        ("unigram_own", dict(model_type="unigram", vocab_size=500, normalization_rule_name="nfkc", **own)),
        ("unigram_cf", dict(model_type="unigram", vocab_size=500, normalization_rule_name="nmt_nfkc_cf",
                            remove_extra_whitespaces=False)),
        ("unigram_suffix", dict(model_type="unigram", vocab_size=500, treat_whitespace_as_suffix=True)),
        ("unigram_bare", dict(model_type="unigram", vocab_size=500, normalization_rule_name="identity",
                              add_dummy_prefix=False)),
        ("bpe", dict(model_type="bpe", vocab_size=700)),
        ("bpe_bytes", dict(model_type="bpe", vocab_size=900, byte_fallback=True, split_digits=True,
                           normalization_rule_name="identity", remove_extra_whitespaces=False)),
        ("bpe_own", dict(model_type="bpe", vocab_size=600, normalization_rule_name="nfkc_cf", **own)),
        ("bpe_suffix", dict(model_type="bpe", vocab_size=600, treat_whitespace_as_suffix=True,
                            allow_whitespace_only_pieces=True)),
        ("bpe_bare", dict(model_type="bpe", vocab_size=600, add_dummy_prefix=False,
                          split_by_whitespace=False)),
    ]
    for name, options in kinds:
        yield name, train(folder, name, texts, **options)


class Comparison:
    def __init__(self, program):
        self.program, self.passed, self.failed = program, 0, 0

    def run(self, way, path, records):
        data = b"".join(struct.pack("<I", len(record)) + record for record in records)
        result = subprocess.run([self.program, way, path], input=data, stdout=subprocess.PIPE, check=False)
        lines = result.stdout.decode().split("\n")
        if result.returncode or len(lines) != len(records) + 1:
            print(f"{way} {path}: status {result.returncode}, {len(lines) - 1} of {len(records)} lines")
            self.failed += 1
            return [""] * len(records)
        return lines

    def check(self, what, record, got, wanted):
        if got == wanted:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"{what}: {record!r}\n    got    {got}\n    wanted {wanted}")

    def encodes(self, name, path, library, records):
        for record, line in zip(records, self.run("encode", path, records)):
            proto = library.encode(record, return_type="proto")
            wanted = " ".join(f"{p.id}:{p.begin}:{p.end}" for p in proto.pieces)
            wanted += " | " + library.decode([p.id for p in proto.pieces]).encode().hex()
            self.check(name, record, line, wanted)

    def decodes(self, name, path, library, rng, count):
        size = library.get_piece_size()
        lists = [[rng.randrange(min(size, rng.choice((270, size)))) for _ in range(rng.randrange(12))]
                 for _ in range(count)]
        records = [b"".join(struct.pack("<i", n) for n in ids) for ids in lists]
        for ids, line in zip(lists, self.run("decode", path, records)):
            self.check(name + " decode", ids, line, library.decode(ids).encode().hex())

    def unigram(self, name, path, library, records, bytes_too):
        pieces = [(library.id_to_piece(n), library.get_score(n)) for n in range(library.get_piece_size())]
        model = tokenizers.models.Unigram(pieces, library.unk_id(), bytes_too)
        whole = tokenizers.Tokenizer(model)
        records = [r for r in records if is_utf8(r) and r]
        for record, line in zip(records, self.run("unigram", path, records)):
            text = record.decode()
            at = offsets(text)
            encoding = whole.encode(text, add_special_tokens=False)
            wanted = " ".join(f"{n}:{at[b]}:{at[e]}" for n, (b, e) in zip(encoding.ids, encoding.offsets))
            self.check(name + " unigram", record, line, wanted)

    def rules(self, name, path, charsmap, records):
        rules = tokenizers.normalizers.Precompiled(charsmap)
        records = [r for r in records if is_utf8(r) and r]
        for record, line in zip(records, self.run("rules", path, records)):
            self.check(name + " rules", record, line, rules.normalize_str(record.decode()).encode().hex())


def offsets(text):
    """Where each character begins in the bytes, and where the last ends."""
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return at


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def model_proto(path):
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    return proto


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="append", default=[])
    options = parser.parse_intermixed_args()
    rng = random.Random(options.seed)
    lines = []
    for path in options.text:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines += [line.rstrip("\n") for line in file][:50000]
    comparison = Comparison(options.program)
    with tempfile.TemporaryDirectory() as folder:
        models = list(small_models(folder, rng, lines))
        models += [(os.path.basename(path), path) for path in options.models]
        count = max(1, options.lines // len(models))
        for name, path in models:
            records = [any_text(rng, lines) for _ in range(count)]
            reference = path if not path.endswith(".bin") else os.path.join(os.path.dirname(path), "tokenizer.model")
            library = sentencepiece.SentencePieceProcessor(model_file=reference)
            before = comparison.passed, comparison.failed
            comparison.encodes(name, path, library, records)
            comparison.decodes(name, path, library, rng, count // 10 + 1)
            if not path.endswith(".bin"):
                proto = model_proto(path)
                if proto.trainer_spec.model_type == 1:
                    comparison.unigram(name, path, library, records[:count // 2 + 1],
                                       proto.trainer_spec.byte_fallback)
                if proto.normalizer_spec.precompiled_charsmap:
                    comparison.rules(name, path, proto.normalizer_spec.precompiled_charsmap,
                                     records[:count // 2 + 1])
            print(f"{name}: {comparison.passed - before[0]} equal, {comparison.failed - before[1]} different")
    print(f"{NAME}: {comparison.passed} passed, {comparison.failed} failed, 0 skipped")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
