#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the SentencePiece tokenizer with the libraries sentencepiece and tokenizers.

    compare_sentencepiece.py PROGRAM [--lines N] [--seed N] [--text FILE]... [--tokenizer PROGRAM] [MODEL]...

PROGRAM is the test program sentencepiece_lines. Small models are trained here: unigram and BPE, with
and without bytes for unknown characters, with several rules of normalisation and with a user's own
symbols. Texts are generated: all planes of Unicode, invalid UTF-8, emoji, white space, code, words;
and lines of the given files. Ids, byte offsets, decoded texts and the texts of random ids must be
equal. MODEL may also be a tokenizer.bin of llama2.c beside a tokenizer.model.

With --tokenizer, the test program tokenize_lines, whole tokenizers are compared, too: Unigram as
tokenizer.json, and T5's and Marian's folders, which need the library transformers.
"""
import argparse
import io
import json
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


def read_tokens(data, count):
    """What tokenize_lines writes for so many texts: lists of (id, begin, end)."""
    at, lists = 0, []
    for _ in range(count):
        number = struct.unpack_from("<I", data, at)[0]
        lists.append([struct.unpack_from("<3I", data, at + 4 + 20 * n) for n in range(number)])
        at += 4 + 20 * number
    return lists


def unigram_json(proto, path):
    """A tokenizer.json with the pieces and rules of a SentencePiece model."""
    pieces = [(p.piece, p.score) for p in proto.pieces]
    whole = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 0, proto.trainer_spec.byte_fallback))
    rules = tokenizers.normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    spaces = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), "\u2581")
    whole.normalizer = tokenizers.normalizers.Sequence([rules, spaces])
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    whole.save(path)
    return whole


def marian_folder(folder, rng):
    """source.spm, target.spm and a vocab.json that lacks some pieces and has others."""
    texts = [" ".join(rng.choice(WORDS) for _ in range(10)) for _ in range(600)]
    pieces = set()
    for name, part in (("source", texts), ("target", texts[:400])):
        path = train(folder, name, part, model_type="unigram", vocab_size=400)
        os.rename(path, os.path.join(folder, name + ".spm"))
        library = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, name + ".spm"))
        pieces |= {library.id_to_piece(n) for n in range(library.get_piece_size())}
    kept = [piece for n, piece in enumerate(sorted(pieces - {"</s>", "<unk>", "<s>"})) if n % 17]
    kept = ["</s>", "<unk>"] + kept + [">>fr<<", "中", "<pad>"]
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as file:
        json.dump({piece: n for n, piece in enumerate(kept)}, file)


class Comparison:
    def __init__(self, program):
        self.program, self.passed, self.failed, self.skipped = program, 0, 0, 0
        self.tokenizer = None

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


    def tokens(self, name, path, records, wanted):
        """Whole tokenizers, with marks; `wanted` gives ids, or ids and offsets, of a text."""
        data = b"".join(struct.pack("<I", len(record)) + record for record in records)
        result = subprocess.run([self.tokenizer, path, "single", "m"], input=data, stdout=subprocess.PIPE, check=False)
        if result.returncode:
            print(f"{name}: status {result.returncode}")
            self.failed += 1
            return
        before = self.passed, self.failed
        for record, got in zip(records, read_tokens(result.stdout, len(records))):
            right = wanted(record.decode())
            self.check(name, record, got if right and isinstance(right[0], tuple) else [t[0] for t in got], right)
        print(f"{name}: {self.passed - before[0]} equal, {self.failed - before[1]} different")

    def json_files(self, folder, models, records):
        for name, path in models:
            proto = model_proto(path)
            if proto.trainer_spec.model_type != 1 or not proto.normalizer_spec.precompiled_charsmap:
                continue
            target = os.path.join(folder, name)
            os.mkdir(target)
            whole = unigram_json(proto, os.path.join(target, "tokenizer.json"))

            def wanted(text, whole=whole):
                at, encoding = offsets(text), whole.encode(text)
                return [(n, at[b], at[e]) for n, (b, e) in zip(encoding.ids, encoding.offsets)]
            self.tokens(name + " json", target, records, wanted)

    def folders(self, folder, rng, records):
        try:
            import transformers
        except ImportError as missing:
            print(f"T5 and Marian: {missing}")
            self.skipped += 2
            return
        transformers.logging.set_verbosity_error()
        t5, marian = os.path.join(folder, "t5"), os.path.join(folder, "marian")
        os.mkdir(t5)
        os.mkdir(marian)
        train(t5, "spiece", [" ".join(rng.choice(WORDS) for _ in range(10)) for _ in range(600)], model_type="unigram",
              vocab_size=400, bos_id=-1, pad_id=0, eos_id=1, unk_id=2)
        with open(os.path.join(t5, "tokenizer_config.json"), "w", encoding="utf-8") as file:
            json.dump({"extra_ids": 5, "tokenizer_class": "T5Tokenizer"}, file)
        whole = transformers.T5Tokenizer.from_pretrained(t5, extra_ids=5)
        # Words only: transformers applies the rules by grapheme clusters, SentencePiece does not.
        marked = [" ".join(rng.choice((rng.choice(WORDS), rng.choice(("<extra_id_0>", "<extra_id_4>", "<unk>", "</s>", ""))))
                           for _ in range(rng.randrange(10))).encode() for _ in records]
        self.tokens("T5", os.path.join(t5, "spiece.model"), marked, lambda text: whole(text)["input_ids"])
        marian_folder(marian, rng)
        paths = [os.path.join(marian, name) for name in ("source.spm", "target.spm", "vocab.json")]
        pair = transformers.MarianTokenizer(source_spm=paths[0], target_spm=paths[1], vocab=paths[2], source_lang="en",
                                            target_lang="fr")
        marked = [rng.choice((b"", b"", b">>fr<<", b">>de<< ")) + record for record in records]
        self.tokens("Marian's source", paths[0], marked, lambda text: pair(text)["input_ids"])
        self.tokens("Marian's target", paths[1], marked, lambda text: pair(text_target=text)["input_ids"])


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
    parser.add_argument("--tokenizer")
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
        if options.tokenizer:
            comparison.tokenizer = options.tokenizer
            records = [r for r in (any_text(rng, lines) for _ in range(count)) if is_utf8(r)]
            comparison.json_files(folder, models[:6], records)
            comparison.folders(folder, rng, records)
    print(f"{NAME}: {comparison.passed} passed, {comparison.failed} failed, {comparison.skipped} skipped")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
