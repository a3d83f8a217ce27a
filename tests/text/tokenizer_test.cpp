/// Ids, masks, types and decoded texts of small tokenizers of every kind are those of Hugging Face's library, whose
/// values reference/make_tokenizers.py stored.
#include "gradus/base/rooms.h"
#include "gradus/text/tokenizer.h"
#include <gtest/gtest.h>
#include "gradus/base/hash.h"
#include "gradus/base/input_file.h"
#include "gradus/formats/json.h"
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::tokenizer_test {
namespace {

const std::filesystem::path stored = GRADUS_TEXT_FOLDER;

const nlohmann::json& all_cases() {
  static const nlohmann::json cases = parse_json(read_text_file(stored / "cases.json"), "cases.json");
  return cases;
}

std::vector<std::string> names_of_tokenizers() {
  std::vector<std::string> names;
  for (const auto& [name, of_it] : all_cases().items()) names.push_back(name);
  return names;
}

Tokenizer tokenizer_named(const std::string& name) { return Tokenizer::from_file(stored / (name + ".json")); }

TextEncoding encoded(const Tokenizer& tokenizer, const nlohmann::json& c) {
  const auto text = c["text"].get<std::string>();
  const bool add = c["add"].get<bool>();
  const bool has_pair = c.contains("pair") && !c["pair"].is_null();
  return has_pair ? tokenizer.encode(text, c["pair"].get<std::string>(), add) : tokenizer.encode(text, add);
}

/// A number that the file leaves out is `usual` everywhere.
std::vector<std::int32_t> list_of(const nlohmann::json& c, const char* name, std::int32_t usual) {
  return c.contains(name) ? c[name].get<std::vector<std::int32_t>>()
                          : std::vector<std::int32_t>(c["ids"].size(), usual);
}

class Tokenizers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(OfEveryKind, Tokenizers, testing::ValuesIn(names_of_tokenizers()),
                         [](const auto& info) { return info.param; });

TEST_P(Tokenizers, GiveTheIdsOfTheLibrary) {
  const Tokenizer tokenizer = tokenizer_named(GetParam());
  EXPECT_EQ(tokenizer.get_vocab_size(), all_cases()[GetParam()]["size"].get<std::int64_t>());
  for (const nlohmann::json& c : all_cases()[GetParam()]["cases"]) {
    const TextEncoding made = encoded(tokenizer, c);
    EXPECT_EQ(made.ids, c["ids"].get<std::vector<std::int32_t>>()) << c["text"];
    EXPECT_EQ(made.type_ids, list_of(c, "types", 0)) << c["text"];
    EXPECT_EQ(made.special, list_of(c, "special", 0)) << c["text"];
    EXPECT_EQ(made.attention_mask, list_of(c, "mask", 1)) << c["text"];
    for (std::size_t i = 0; i < made.ids.size(); ++i) EXPECT_EQ(tokenizer.id_to_token(made.ids[i]), made.tokens[i]);
  }
}

TEST_P(Tokenizers, DecodeToTheTextsOfTheLibrary) {
  const Tokenizer tokenizer = tokenizer_named(GetParam());
  for (const nlohmann::json& c : all_cases()[GetParam()]["cases"]) {
    const auto ids = c["ids"].get<std::vector<std::int32_t>>();
    const auto decoded = (c.contains("decoded") ? c["decoded"] : c["text"]).get<std::string>();
    EXPECT_EQ(tokenizer.decode(ids), decoded) << c["text"];
    EXPECT_EQ(tokenizer.decode(ids, false), c.contains("all") ? c["all"].get<std::string>() : decoded) << c["text"];
  }
}

TEST_P(Tokenizers, RefuseWhatTheLibraryRefuses) {
  const Tokenizer tokenizer = tokenizer_named(GetParam());
  for (const nlohmann::json& c : all_cases()[GetParam()]["fails"])
    EXPECT_THROW(encoded(tokenizer, c), InvalidArgument) << c["text"];
}

TEST_P(Tokenizers, AreTheSameAfterTheyAreSaved) {
  const EmptyTestDirectory directory;
  const Tokenizer tokenizer = tokenizer_named(GetParam());
  tokenizer.save(directory.path() / "saved.json");
  const Tokenizer again = Tokenizer::from_file(directory.path() / "saved.json");
  const std::string text = "The mill";
  EXPECT_EQ(again.encode(text, "one two three four five six seven eight nine").ids,
            tokenizer.encode(text, "one two three four five six seven eight nine").ids);
}

TEST(Tokenizer, EncodesBatchesAsTensorsOfOneLength) {
  Tokenizer tokenizer = tokenizer_named("t5");
  const Strings texts{"The river rises.", "a"};
  const TokenTensors plain = tokenizer.encode_tensors(texts);
  const TextEncoding first = tokenizer.encode("The river rises."), second = tokenizer.encode("a");
  EXPECT_EQ(plain.ids.shape(), (Shape{2, first.size()}));
  tokenizer.enable_padding({.pad_to_multiple_of = 8, .direction = TokenSide::left, .pad_id = 7});
  const TokenTensors padded = tokenizer.encode_tensors(texts);
  EXPECT_EQ(padded.ids.shape()[1] % 8, 0);
  const auto ids = padded.ids.to_vector<std::int64_t>(), mask = padded.attention_mask.to_vector<std::int64_t>();
  EXPECT_EQ(ids.back(), second.ids.back());
  EXPECT_EQ(ids[static_cast<std::size_t>(padded.ids.shape()[1])], 7);
  EXPECT_EQ(mask[static_cast<std::size_t>(padded.ids.shape()[1])], 0);
  EXPECT_EQ(tokenizer.decode(plain.ids), (Strings{tokenizer.decode(first.ids), tokenizer.decode(second.ids)}));
}

TEST(Tokenizer, IsRefusedWithinATracedFunction) {
  const Tokenizer tokenizer = tokenizer_named("t5");
  const auto traced = function([&](Tensor x) { return x + cast(tokenizer("a b"), x.dtype())[0]; });
  expect_error<InvalidArgument>([&] { traced(constant(1.0F)); },
                                {"Tokenizer: it is called while a function is traced"});
}

TEST(Tokenizer, NamesTheByteThatIsNoUtf8) {
  const Tokenizer tokenizer = tokenizer_named("gpt2");
  for (const std::string bad : {"ab\xFF", "ab\xC3", "ab\xED\xA0\x80", "ab\xC0\x80", "ab\xF4\x90\x80\x80", "ab\x80"})
    expect_error<InvalidArgument>([&] { tokenizer.encode(bad); }, {"byte 2 of the text is no UTF-8"});
}

std::string with_part(const char* key, const std::string& part) {
  return std::string("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"},\"") + key +
         "\":" + part + "}";
}

TEST(Tokenizer, NamesWhatAFileHasThatIsNotSupported) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}, "model": {}})",
       "f.normalizer: the normalizer `Precompiled`"},
      {R"({"model": {"type": "Odd", "vocab": {}}})", "f.model: the model `Odd`"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})", "the token `b` of this merge"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["ab"]}})", "expected two tokens"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}})", "dropout"},
      {R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})", "the id -1"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 1, "b": 1}, "merges": []}})",
       "f.model.vocab.b: the id 1 is that of `a`"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", 1]], "unk_id": 1}})", "unk_id is 1"},
      {R"({"model": {"type": "Unigram", "vocab": [["a"]]}})", "f.model.vocab[0]: expected a token and its score"},
      {"[]", "no tokenizer.json"},
      {"{", "JSON"},
  };
  for (const auto& [json, message] : rows) expect_error<DataError>([&] { Tokenizer::from_json(json, "f"); }, {message});
  const std::tuple<const char*, const char*, const char*> parts[] = {
      {"pre_tokenizer", R"({"type": "UnicodeScripts"})", "the pre-tokenizer `UnicodeScripts`"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"})",
       "regular expression"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\bx"}, "behavior": "Isolated"})", "has \\b, which"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated"})",
       "the pattern is empty"},
      {"pre_tokenizer", R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Odd"})", "the behavior `Odd`"},
      {"decoder", R"({"type": "CTC"})", "the decoder `CTC`"},
      {"post_processor", R"({"type": "Odd"})", "the post-processor `Odd`"},
      {"truncation", R"({"max_length": 0})", "max_length"},
      {"padding", R"({"strategy": {"Fixed": 99999999999}})", "length"},
  };
  for (const auto& [key, part, message] : parts)
    expect_error<DataError>([&] { Tokenizer::from_json(with_part(key, part), "f"); }, {message});
}

TEST(Tokenizer, EndsAPatternThatWouldNotEnd) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      with_part("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated"})"), "f");
  EXPECT_THROW(tokenizer.encode(std::string(60, 'a') + "cb"), ResourceExhausted);
}

/// Files that are cut off or changed either work or are refused by an Error.
TEST_P(Tokenizers, SurviveDamagedFiles) {
  const std::string json = read_text_file(stored / (GetParam() + ".json"));
  std::uint64_t state = 1;
  for (int i = 0; i < 120; ++i) {
    std::string damaged = json;
    for (int change = 0; change < 1 + i % 3; ++change) {
      state = mix(state, static_cast<std::uint64_t>(i));
      damaged[state % damaged.size()] = "0{}[]\",:9a-"[(state >> 32) % 11];
    }
    if (i % 10 == 0) damaged.resize(state % damaged.size());
    try {
      const Tokenizer tokenizer = Tokenizer::from_json(damaged, "damaged");
      const TextEncoding made = tokenizer.encode("The river, Größe 春天 12 <s>");
      (void)tokenizer.decode(made.ids);
    } catch (const Error&) {}
  }
}

}  // namespace
}  // namespace gradus::tokenizer_test
