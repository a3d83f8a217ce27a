"""Small tokenizers of every kind, trained on sentences of several scripts, and what Hugging Face's library makes of texts
with them: <name>.json and cases.json, which tokenizer_test.cpp reads. Run with `pip install tokenizers==0.23.3`:

    python3 make_tokenizers.py
"""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent

CORPUS = [
    "The river rises in spring, and the mill turns from morning to night.",
    "Nobody had told the children that the bridge was closed; they walked back in the rain.",
    "She'll say it's fine, but they've never agreed and I'd rather wait. Don't you think we're late?",
    "Der Müller öffnet früh die Türen, und über den Äckern liegt weißer Nebel.",
    "Größere Straßen führen nach Süden; kleine Wege enden am Fluß.",
    "Le garçon a mangé des crêpes près de l'église, où sa sœur l'attendait déjà.",
    "El niño pequeño soñó con un pingüino que cantaba en el jardín.",
    "Река разливается весной, и мельница работает до самой ночи.",
    "Дети шли домой под дождём, а старый мост был закрыт.",
    "Ο μύλος γυρίζει από το πρωί ως το βράδυ και το ποτάμι φουσκώνει.",
    "النهر يرتفع في الربيع والطاحونة تدور حتى الليل",
    "הנהר עולה באביב והטחנה מסתובבת עד הלילה",
    "नदी वसंत में चढ़ती है और चक्की रात तक चलती है।",
    "春天河水上涨，磨坊从早到晚转动。孩子们冒着雨走回家。",
    "春になると川の水が増えて、水車は朝から晩まで回ります。",
    "봄이 되면 강물이 불어나고 물레방아는 밤까지 돕니다.",
    "แม่น้ำขึ้นในฤดูใบไม้ผลิและโรงสีหมุนจนถึงกลางคืน",
    "Mùa xuân nước sông dâng cao, cối xay quay từ sáng đến tối.",
    "Kış bitince İstanbul'da ırmaklar yükselir, değirmen çalışır.",
    "In 2019 there were 1,204 mills; by 2024 only 37 of them (3.1 %) still ran.",
    "def mill(turns=3):\n    return [t ** 2 for t in range(turns)]  # squares",
    "Bring bread 🍞, cheese 🧀 and two bottles 🍾🍾 to the mill 👩‍🌾!",
] * 3

TEXTS = [
    "", " ", "a", "The river rises.", "  two  spaces and\ta tab\n\nand lines  ", "I'LL say it's SHE'S they'd we've don't",
    "Größe über Straße, ÄÖÜ", "cafe\u0301 and café, e\u0301\u0302", "Река и мост, ДЁГТЬ", "Ο μύλος ΣΑΣ", "İstanbul ısı",
    "النهر يرتفع", "הנהר", "नदी वसंत में", "春天河水，mill走回家。", "川の水ガがｶﾞ", "강물이 불어나고 각", "แม่น้ำขึ้น",
    "nước sông", "ﬁne ﬂour ① ½ x² Ⅷ １２３ ａｂｃ", "👩‍🌾 🍞🧀 ❤️", "3.1 % of 1,204 = 37; 2024-05-06",
    "def f(x):\n    return x**2 # ok\r\n", "unknown ꙮ ௵ 𝔘𝔫𝔦 𐍈 chars", "a\u00a0b\u2003c\u3000d\u0085e\u200bf\u00adg",
    "ctrl\u0001\u0000\u007f end \ufffd", "Ⓐⓑ a_b c‿d snake_case", "[MASK] x [MASK]y <s> mill</s> <mill> mills mill",
    "!!!??? ... --- «quotes» „unten“ 'a' \"b\"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\u0627\u0644\u0652 \u05d1\u05bc",
    "end of text   ", "\n", "The <|end|>\n<|end|> river", "mill mill-mill millmill",
]
PAIRS = [("The river rises.", "Der Müller öffnet früh."), ("", "a b"), ("春天河水上涨", ""), ("one two three four five six seven", "eight nine ten")]

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")


def trained(model, trainer, normalizer=None, pre=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    if decoder:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def bpe(size=420, special=(), **options):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, **options)


def word_piece(size=460, special=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), **options):
    return trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(special), show_progress=False, **options)


def unigram(size=420, special=("<pad>", "</s>", "<unk>"), **options):
    return trainers.UnigramTrainer(vocab_size=size, special_tokens=list(special), unk_token="<unk>", show_progress=False,
                                   **options)


def gpt2():
    made = trained(models.BPE(), bpe(special=["<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   pre=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel())
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return made


def gpt4():
    made = trained(models.BPE(ignore_merges=True), bpe(special=["<|begin|>", "<|end|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   pre=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), "isolated"),
                                                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                   decoder=decoders.ByteLevel())
    made.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|>:1 $B:1",
                                      special_tokens=[("<|begin|>", made.token_to_id("<|begin|>"))])])
    return made


def roberta():
    made = trained(models.BPE(), bpe(special=["<s>", "</s>", "<mask>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                   pre=pre_tokenizers.ByteLevel(add_prefix_space=True), decoder=decoders.ByteLevel())
    made.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    made.enable_padding(pad_id=2, pad_token="<mask>", length=12, direction="left")
    return made


def bert():
    made = trained(models.WordPiece(unk_token="[UNK]"), word_piece(), normalizers.BertNormalizer(),
                   pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_truncation(16)
    made.enable_padding(pad_to_multiple_of=4)
    return made


def bert_cased():
    made = trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30), word_piece(),
                   normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False, clean_text=True, strip_accents=True),
                   pre_tokenizers.Whitespace(), decoders.WordPiece(cleanup=False))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made.enable_truncation(9, strategy="longest_first", direction="left")
    return made


def t5():
    made = trained(models.Unigram(), unigram(),
                   normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]),
                   pre_tokenizers.Metaspace(), decoders.Metaspace())
    made.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return made


def llama():
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    made = trained(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"), bpe(640, special, limit_alphabet=60),
                   normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]))
    # The bytes were no special tokens of the model: they are part of its vocabulary alone.
    data = json.loads(made.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["content"].startswith("<0x")]
    made = Tokenizer.from_str(json.dumps(data))
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return made


def gpt1():
    made = trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), bpe(special=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=70),
                   normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.NFC()]),
                   pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
                   decoders.BPEDecoder())
    return made


def xlnet():
    data = json.loads(trained(models.Unigram(), unigram(), normalizers.NFKD(),
                              pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="first"),
                                                       pre_tokenizers.Digits(individual_digits=True)]),
                              decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])).to_str())
    data["model"]["vocab"] += [[f"<0x{byte:02X}>", -12.5] for byte in range(256)]
    data["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(data))


def pieces():
    """Ways to split that the others leave out, and the prefix of pieces within a word."""
    return trained(models.BPE(unk_token="?", continuing_subword_prefix="@@"), bpe(special=["?"], continuing_subword_prefix="@@", limit_alphabet=50),
                   normalizers.NFC(),
                   pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.Split(" ", "merged_with_previous"),
                                            pre_tokenizers.Split(Regex(r"[.,;!?]+"), "contiguous"),
                                            pre_tokenizers.Split(Regex(r"\w+"), "removed", invert=True),
                                            pre_tokenizers.Split("l", "merged_with_next"),
                                            pre_tokenizers.CharDelimiterSplit("_"), pre_tokenizers.Punctuation("removed")]))


def words():
    made = trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=150, special_tokens=["<unk>"], show_progress=False),
                   normalizers.Lowercase(), pre_tokenizers.Whitespace())
    made.enable_truncation(6, strategy="only_second")
    return made


def added():
    made = trained(models.WordPiece(unk_token="[UNK]"), word_piece(),
                   normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()]), pre_tokenizers.Metaspace(prepend_scheme="first"))
    made.add_special_tokens([AddedToken("[MASK]", lstrip=True), AddedToken("<s>", rstrip=True), "<mill>"])
    made.add_tokens([AddedToken("mill", single_word=True), AddedToken("MILLS", normalized=True), AddedToken("river r"),
                     AddedToken("x²", normalized=False), AddedToken("<mill", normalized=False)])
    return made


def case_of(tokenizer, text, pair, special):
    """What follows from the rest is left out: masks of ones, types and special marks of zeros, a text that comes back."""
    made = tokenizer.encode(text, pair, add_special_tokens=special)
    case = {"text": text, "pair": pair, "add": special, "ids": made.ids, "decoded": tokenizer.decode(made.ids),
            "all": tokenizer.decode(made.ids, skip_special_tokens=False)}
    for name, values, usual in (("types", made.type_ids, 0), ("special", made.special_tokens_mask, 0), ("mask", made.attention_mask, 1)):
        if any(value != usual for value in values):
            case[name] = values
    if case["all"] == case["decoded"]:
        del case["all"]
    if pair is None:
        del case["pair"]
        if case["decoded"] == text:
            del case["decoded"]
    return case


def cases_of(tokenizer):
    cases, fails = [], []
    for text, pair in [(text, None) for text in TEXTS + CORPUS[:22:2]] + PAIRS:
        for special in (True, False) if len(cases) < 12 or pair is not None else (True,):
            try:
                cases.append(case_of(tokenizer, text, pair, special))
            except Exception as error:  # what the library refuses
                fails.append({"text": text, "pair": pair, "add": special, "error": str(error)})
    return {"cases": cases, "fails": fails}


def main():
    cases = {}
    for make in (gpt2, gpt4, roberta, bert, bert_cased, t5, llama, gpt1, xlnet, pieces, words, added):
        name = make.__name__
        made = make()
        data = json.loads(made.to_str())
        (HERE / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        made = Tokenizer.from_file(str(HERE / f"{name}.json"))
        cases[name] = cases_of(made) | {"size": made.get_vocab_size(True)}
        print(name, made.get_vocab_size(), len(cases[name]["cases"]), len(cases[name]["fails"]))
    (HERE / "cases.json").write_text(json.dumps(cases, ensure_ascii=True, separators=(",", ":")).replace('{"text"', '\n{"text"') + "\n")


main()
