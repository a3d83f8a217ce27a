/// Vocabularies and tokenizers that are fields of a model are in its files: a model of another process has the same ids
/// for the same words.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "gradus/base/input_file.h"
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::saved_vocabularies_test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int64_t>;

constexpr std::string_view tokens = R"({"model": {"type": "WordLevel", "unk_token": "[UNK]",
    "vocab": {"[UNK]": 0, "cat": 1, "mat": 2}}, "pre_tokenizer": {"type": "Whitespace"}})";

struct Preprocessing {
  TextVectorization words{{.max_tokens = 20, .ngrams = 2, .output_sequence_length = 4}};
  std::vector<StringLookup> lists{StringLookup(), StringLookup({.output_mode = OutputMode::tf_idf})};
};
struct Net {
  Preprocessing made_of;
  std::shared_ptr<IntegerLookup> numbers = std::make_shared<IntegerLookup>(IntegerLookupOptions{.num_oov_indices = 2});
  Tokenizer tokenizer;
  Discretization bins{{.num_bins = 4}};
  Embedding embedding{2000, 3};
  Tensor operator()(Tensor x) const { return embedding(x) + cast(expand_dims(bins(x), -1), f32); }
};

const Tensor numbers = constant({7, 3, 9, 7, 100, 3, 7, -5});

void adapt_all(Model<Net>& model) {
  model->made_of.words.adapt(Strings{"The cat sat on the mat.", "a cat; a dog"});
  model->made_of.lists[0].adapt(Strings{"red", "blue", "red", "größe"});
  model->made_of.lists[1].adapt(Strings{"red", "blue", "red"});
  model->numbers->adapt(numbers);
  model->tokenizer = Tokenizer::from_json(tokens, "tokens");
  model->bins.adapt(numbers);
}
std::vector<Tensor> results(const Model<Net>& model) {
  return {model->made_of.words(Strings{"cat sat here", "a mat"}), model->made_of.lists[0](Strings{"größe", "red", "x"}),
          model->made_of.lists[1](Strings{"blue", "red", "x"}),   model->tokenizer(Strings{"a cat mat"}),
          (*model->numbers)(constant({7, 3, 8, 1000})),           model(constant({7, 3, 8, 1000}), inference)};
}
void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bitwise_equal(a[i], b[i])) << i;
}

struct Way {
  const char* name;
  void (*save)(const fs::path&, Module&);
  void (*load)(const fs::path&, Module&);
};
const Way ways[] = {
    {"safetensors", [](const fs::path& file, Module& model) { save_safetensors(file, model); },
     [](const fs::path& file, Module& model) { load_safetensors(file, model); }},
    {"npz", [](const fs::path& file, Module& model) { save_npz(file, model); },
     [](const fs::path& file, Module& model) { load_npz(file, model); }},
    {"checkpoint",
     [](const fs::path& file, Module& model) {
       Adam optimizer;
       Checkpoints({.directory = file}, model, optimizer).save(1);
     },
     [](const fs::path& file, Module& model) {
       Adam optimizer;
       Checkpoints({.directory = file}, model, optimizer).restore();
     }},
};

TEST(SavedVocabularies, AFreshModelHasTheSameIds) {
  const EmptyTestDirectory folder;
  Model<Net> model;
  adapt_all(model);
  const std::vector<Tensor> want = results(model);
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    way.save(folder.path() / way.name, model);
    Model<Net> fresh;
    fresh.build({i32, {any_size}});
    EXPECT_THROW(fresh->made_of.words(Strings{"cat"}), InvalidArgument);
    EXPECT_THROW(fresh->tokenizer.encode("cat"), InvalidArgument);
    way.load(folder.path() / way.name, fresh);
    expect_equal(results(fresh), want);
    EXPECT_EQ(fresh->numbers->get_vocabulary(), model->numbers->get_vocabulary());
    fresh->numbers->adapt(constant({1, 2, 2}));  // it may be adapted again
  }
}

TEST(SavedVocabularies, ModelsWithinModelsNameThem) {
  struct Outer {
    Model<Net> inner;
    Sequential rest{Model<Net>(), Dense(3)};
    Tensor operator()(Tensor x) const { return inner(x) + rest(x); }
  };
  const EmptyTestDirectory folder;
  Model<Outer> model;
  adapt_all(model->inner);
  model.build({i32, {any_size}});
  save_npz(folder.path() / "all.npz", model);
  std::vector<std::string> names;
  for (const auto& [name, value] : load_npz(folder.path() / "all.npz"))
    if (name.ends_with(".json")) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"inner/made_of/words/vocabulary.json", "inner/made_of/lists_0/vocabulary.json",
                                      "inner/made_of/lists_1/vocabulary.json", "inner/numbers/vocabulary.json",
                                      "inner/tokenizer/tokenizer.json"}));
}

/// A function that was compiled with another vocabulary is traced again.
TEST(SavedVocabularies, CompiledFunctionsSeeTheLoadedOne) {
  struct Numbers {
    IntegerLookup lookup;
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(expand_dims(cast(lookup(x), f32), -1)); }
  };
  const EmptyTestDirectory folder;
  const Tensor x = constant({5, 6, 7});
  Model<Numbers> model, other;
  model->lookup.set_vocabulary({5, 6, 7});
  other->lookup.set_vocabulary({7, 6, 5});
  other(x);
  const auto predicted = function([&](Tensor given) { return model(given, inference); });
  predicted(x);
  save_safetensors(folder.path() / "other", other);
  load_safetensors(folder.path() / "other", model);
  EXPECT_TRUE(bitwise_equal(predicted(x), other(x, inference)));
}

/// Sizes that follow from a vocabulary, or from the number of boundaries that the data has, are known before.
TEST(SavedVocabularies, AreLoadedBeforeAModelIsBuilt) {
  struct Numbers {
    IntegerLookup lookup{{.output_mode = OutputMode::one_hot}};
    Discretization bins{{.num_bins = 30, .output_mode = OutputMode::one_hot}};
    Dense dense{2}, of_bins{2};
    Tensor operator()(Tensor x) const { return dense(lookup(x)) + of_bins(bins(x)); }
  };
  const EmptyTestDirectory folder;
  Model<Numbers> model, unset;
  expect_error<InvalidArgument>([&] { unset.build({i32, {any_size}}); }, {"no vocabulary"});
  model->lookup.adapt(numbers);
  model->bins.adapt(constant({1, 2, 3, 4, 5}));
  const Tensor want = model(numbers);
  for (const Way& way : std::span(ways).first(2)) {
    const fs::path file = folder.path() / way.name;
    way.save(file, model);
    Model<Numbers> fresh;
    load_vocabularies(file, fresh);
    fresh.build({i32, {any_size}});
    way.load(file, fresh);
    EXPECT_TRUE(bitwise_equal(fresh(numbers), want));
    Sequential other{Dense(2)};
    expect_error<InvalidArgument>([&] { load_vocabularies(file, other); }, {"no vocabulary of"});
  }
}

using Change = std::function<void(NamedTensors&)>;
Tensor bytes_of_text(const std::string& text) {
  return from_values(std::vector<std::uint8_t>(text.begin(), text.end()), Shape{std::ssize(text)});
}
const std::string words = "made_of/words/vocabulary.json";
/// The array of `name` becomes `value`, or goes.
Change replaced(std::string name, std::optional<Tensor> value) {
  return [=](NamedTensors& arrays) {
    for (auto& [each, old] : arrays)
      if (each == name && value) old = *value;
    if (!value) std::erase_if(arrays, [&](const auto& each) { return each.first == name; });
  };
}

TEST(SavedVocabularies, DamagedOnesAreRefusedAndNothingChanges) {
  struct Case {
    const char* says;
    Change change;
  };
  Model<Net> model;
  adapt_all(model);
  std::string large = model->made_of.words.saved_text();  // with more terms than max_tokens
  constexpr std::string_view unknown = "\"[UNK]\"";
  std::string terms;
  for (int i = 0; i < 40; ++i) terms += ", \"w" + std::to_string(i) + '"';
  large.insert(large.find(unknown, large.find("\"vocabulary\"")) + unknown.size(), terms);
  const Case cases[] = {
      {"made_of/words/vocabulary.json", replaced(words, bytes_of_text("{\"class_name\": \"TextVec"))},
      {"its class_name is `StringLookup`", replaced(words, bytes_of_text(R"({"class_name": "StringLookup"})"))},
      {"expected a text as u8", replaced(words, zeros({3}))},
      {"max_tokens is 20", replaced(words, bytes_of_text(large))},
      {"max_tokens", replaced(words, bytes_of_text(R"({"class_name": "TextVectorization", "config": {"max_tokens": )"
                                                   R"(4611686018427387904, "vocabulary": ["", "[UNK]", "a"]}})"))},
      {"no `model`", replaced("tokenizer/tokenizer.json", bytes_of_text("{}"))},
  };
  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "model.npz";
  const std::vector<Tensor> before = results(model);
  save_npz(file, model);
  const NamedTensors arrays = load_npz(file);
  for (const Case& each : cases) {
    NamedTensors changed = arrays;
    for (auto& [name, value] : changed)
      if (name == "embedding/embeddings") value = zeros_like(value);
    each.change(changed);
    save_npz(file, changed);
    for (const bool strict : {true, false})
      expect_error<DataError>([&] { load_npz(file, model, {.strict = strict}); }, {each.says});
    expect_equal(results(model), before);
  }
}

/// Options of a file may ask for any amount of memory: they are compared before a layer is made of them.
TEST(SavedVocabularies, OptionsOfADamagedFileTakeNoMemory) {
  struct Net {
    StringLookup words;
    IntegerLookup numbers{{.max_tokens = 9, .output_mode = OutputMode::tf_idf, .pad_to_max_tokens = true}};
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "model.npz";
  Model<Net> model;
  model->words.set_vocabulary({"a", "b"});
  model->numbers.set_vocabulary({4, 5}, {0.5, 0.25});
  model.build({f32, {1, 2}});
  save_npz(file, model);
  const NamedTensors arrays = load_npz(file);
  const std::pair<std::string, std::string> cases[] = {
      {"words/vocabulary.json",
       R"({"class_name": "StringLookup", "config": {"num_oov_indices": 1073741824, "vocabulary": ["a"]}})"},
      {"numbers/vocabulary.json",
       R"({"class_name": "IntegerLookup", "config": {"output_mode": "tf_idf", "pad_to_max_tokens": true, )"
       R"("max_tokens": 2147483648, "vocabulary": [1], "idf_weights": [1]}})"}};
  for (const auto& [name, content] : cases) {
    NamedTensors changed = arrays;
    replaced(name, bytes_of_text(content))(changed);
    save_npz(file, changed);
    EXPECT_THROW(load_npz(file, model), InvalidArgument) << name;
  }
  const std::string large =
      R"({"class_name": "IntegerLookup", "config": {"output_mode": "tf_idf", "pad_to_max_tokens": )"
      R"(true, "max_tokens": 4611686018427387904, "vocabulary": [1], "idf_weights": [1]}})";
  std::ofstream(folder.path() / "numbers.json") << large;
  expect_error<DataError>([&] { IntegerLookup::load(folder.path() / "numbers.json"); }, {"max_tokens"});
}

/// A field of another name in the program would keep its own vocabulary beside the weights of the checkpoint.
TEST(SavedVocabularies, ACheckpointWithAVocabularyThatTheModelLacksIsRefused) {
  struct Saved {
    StringLookup words;
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  struct Other {
    StringLookup terms;
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  const EmptyTestDirectory folder;
  Model<Saved> saved;
  Model<Other> other;
  saved->words.set_vocabulary({"a", "b"});
  other->terms.set_vocabulary({"c"});
  saved.build({f32, {1, 2}});
  other.build({f32, {1, 2}});
  SGD optimizer({.learning_rate = 0.1});
  Checkpoints({.directory = folder.path()}, saved, optimizer).save(1);
  expect_error<InvalidArgument>([&] { Checkpoints({.directory = folder.path()}, other, optimizer).restore(); },
                                {"words/vocabulary.json", "does not have"});
  EXPECT_EQ(other->terms.get_vocabulary(false), (std::vector<std::string>{"c"}));
}

/// A Discretization has a text only if the data gave fewer boundaries than num_bins says.
TEST(SavedVocabularies, ADiscretizationLoadsInOneOrderWhateverItsData) {
  struct Net {
    Discretization bins{{.num_bins = 4, .output_mode = OutputMode::one_hot}};
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(bins(x)); }
  };
  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "model.npz";
  for (const Tensor& data : {random::stateless_normal({100}, constant({1, 2})), constant({1.0f, 1.0f, 2.0f})}) {
    Model<Net> saved, fresh;
    saved->bins.adapt(data);
    saved.build({f32, {2}});
    save_npz(file, saved);
    load_vocabularies(file, fresh);
    fresh.build({f32, {2}});
    load_npz(file, fresh);
    const Tensor x = constant({0.5f, 1.5f});
    EXPECT_TRUE(bitwise_equal(fresh(x, inference), saved(x, inference)));
  }
}

TEST(SavedVocabularies, OtherOptionsDoNotMatch) {
  struct Words {
    StringLookup words;
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  const EmptyTestDirectory folder;
  Model<Words> saved(Words{StringLookup({.num_oov_indices = 3, .vocabulary = {"a"}})}), model;
  saved.build({f32, {any_size, 2}});
  model.build({f32, {any_size, 2}});
  save_safetensors(folder.path() / "file", saved);
  expect_error<InvalidArgument>([&] { load_safetensors(folder.path() / "file", model); },
                                {"words/vocabulary.json: expected num_oov_indices 1, the file has 3"});
  const LoadedWeights told = load_safetensors(folder.path() / "file", model, {.strict = false});
  EXPECT_EQ(told.unlike.size(), 1u);
  EXPECT_EQ(told.loaded.size(), 2u);
  ways[2].save(folder.path() / "run", saved);
  expect_error<InvalidArgument>([&] { ways[2].load(folder.path() / "run", model); }, {"num_oov_indices"});
}

/// Files of versions that kept vocabularies beside the model.
TEST(SavedVocabularies, FilesWithoutOneLeaveTheModelsOwn) {
  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "model.npz";
  Model<Net> model;
  adapt_all(model);
  const std::vector<Tensor> before = results(model);
  save_npz(file, model);
  NamedTensors arrays = load_npz(file);
  std::erase_if(arrays, [](const auto& each) { return each.first.ends_with(".json"); });
  save_npz(file, arrays);
  EXPECT_TRUE(load_npz(file, model).is_complete());
  expect_equal(results(model), before);
}

/// Functions of one's own stay in the program, which has to have them.
TEST(SavedVocabularies, FunctionsOfOnesOwnAreTheProgramsPart) {
  struct Texts {
    TextVectorization words;
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  const auto reversed = [](std::string text) { return std::string(text.rbegin(), text.rend()); };
  const auto made = [&](bool has_function) {
    TextVectorizationOptions options;
    if (has_function) options.standardize_by = reversed;
    Model<Texts> model(Texts{TextVectorization(options)});
    model.build({f32, {any_size, 2}});
    return model;
  };
  const EmptyTestDirectory folder;
  Model<Texts> model = made(true), same = made(true), plain = made(false);
  model->words.set_vocabulary({"ab", "cd"});
  save_safetensors(folder.path() / "file", model);
  load_safetensors(folder.path() / "file", same);
  EXPECT_EQ(same->words(Strings{"dc ba"}).to_vector<std::int64_t>(), (Ids{2, 3}));
  expect_error<DataError>([&] { load_safetensors(folder.path() / "file", plain); }, {"standardize_by"});
}

TEST(SavedVocabularies, KerasFilesSayThatTheyHaveNoPlaceForThem) {
  struct Words {
    StringLookup words{{.vocabulary = {"a"}}};
    Dense dense{1};
    Tensor operator()(Tensor x) const { return dense(x); }
  };
  const EmptyTestDirectory folder;
  Model<Words> model;
  model.build({f32, {any_size, 2}});
  std::string said;
  const MessageSink before = set_notice_sink([&](std::string_view message) { said += message; });
  save_weights(folder.path() / "model.weights.h5", model);
  set_notice_sink(before);
  expect_says(said, "words/vocabulary.json");
}

}  // namespace
}  // namespace gradus::saved_vocabularies_test
