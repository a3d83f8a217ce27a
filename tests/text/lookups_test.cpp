/// Layers of text and categories give what Keras 3 gives, whose values reference/make_keras_values.py stored.
#include <gtest/gtest.h>
#include "gradus/base/input_file.h"
#include "gradus/data/text_dataset.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/json.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/function/function.h"
#include "gradus/nn/category_encoding.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/text/lookup.h"
#include "gradus/text/string_hashes.h"
#include "gradus/text/text_vectorization.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/model.h"
#include "gradus/train/keras_files.h"
#include "gradus/train/weights.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::lookups_test {
namespace {

using Json = nlohmann::json;

const Json& keras_rows() {
  static const Json rows =
      parse_json(read_text_file(std::filesystem::path(GRADUS_TEXT_FOLDER) / "keras_values.json"), "rows");
  return rows;
}

const Strings adapted_texts{
    "The cat sat on the mat.", "the dog; the DOG, the d.o.g!", "A cat and a dog", "  spaces\tand\nlines  ", "",
    "Größe ÉCOLE mat",         "don't stop-me (now)",          "mat mat mat sat"};
const Strings adapted_words{"red", "blue", "red", "green", "blue", "red", "yellow", "azure"};
const std::vector<std::int64_t> adapted_numbers{7, 3, 7, 100, 3, 7, -5, 12, 12};

template <class T> std::optional<T> option(const Json& o, const char* key) {
  return o.contains(key) && !o[key].is_null() ? std::optional(o[key].get<T>()) : std::nullopt;
}
OutputMode mode_of(const Json& o, const char* otherwise) {
  return output_mode_of(option<std::string>(o, "output_mode").value_or(otherwise), "test");
}

Shape shape_of(const Json& nested) {
  Shape shape;
  for (const Json* at = &nested; at->is_array(); at = &(*at)[0]) shape.push_back(static_cast<std::int64_t>(at->size()));
  return shape;
}
template <class T> void flatten_into(std::vector<T>& out, const Json& nested) {
  if (!nested.is_array()) return out.push_back(nested.get<T>());
  for (const Json& each : nested) flatten_into(out, each);
}
template <class T> std::vector<T> flat(const Json& nested) {
  std::vector<T> out;
  flatten_into(out, nested);
  return out;
}
Strings strings_of(const Json& nested) { return {shape_of(nested), flat<std::string>(nested)}; }
template <class T> Tensor tensor_in(const Json& nested) { return from_values(flat<T>(nested), shape_of(nested)); }

void expect_row(const Json& row, const Tensor& made) {
  const std::string name = row["name"];
  EXPECT_EQ(made.shape(), Shape(std::span<const std::int64_t>(row["shape"].get<std::vector<std::int64_t>>()))) << name;
  const auto values = cast(made, f64).to_vector<double>();
  const auto want = row["values"].get<std::vector<double>>();
  ASSERT_EQ(values.size(), want.size()) << name;
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], 1e-6 * std::abs(want[i])) << name << " element " << i;
}

StringLookupOptions string_options(const Json& o) {
  return {.max_tokens = option<std::int64_t>(o, "max_tokens"),
          .num_oov_indices = option<std::int64_t>(o, "num_oov_indices").value_or(1),
          .mask_token = option<std::string>(o, "mask_token"),
          .output_mode = mode_of(o, "int")};
}
IntegerLookupOptions integer_options(const Json& o) {
  return {.max_tokens = option<std::int64_t>(o, "max_tokens"),
          .num_oov_indices = option<std::int64_t>(o, "num_oov_indices").value_or(1),
          .mask_token = option<std::int64_t>(o, "mask_token"),
          .output_mode = mode_of(o, "int")};
}

TextVectorizationOptions text_options(const Json& o) {
  TextVectorizationOptions made{
      .max_tokens = option<std::int64_t>(o, "max_tokens"),
      .output_mode = mode_of(o, "int"),
      .output_sequence_length = option<std::int64_t>(o, "output_sequence_length"),
      .pad_to_max_tokens = option<bool>(o, "pad_to_max_tokens").value_or(false),
      .vocabulary = option<std::vector<std::string>>(o, "vocabulary").value_or(std::vector<std::string>()),
      .idf_weights = option<std::vector<double>>(o, "idf_weights").value_or(std::vector<double>())};
  if (o.contains("standardize"))
    made.standardize = o["standardize"].is_null()    ? Standardize::none
                       : o["standardize"] == "lower" ? Standardize::lower
                                                     : Standardize::strip_punctuation;
  if (o.contains("split")) made.split = Split::character;
  if (o.contains("ngrams"))
    made.ngrams = o["ngrams"].is_array() ? NgramWidths(o["ngrams"].get<std::vector<std::int64_t>>())
                                         : NgramWidths(o["ngrams"].get<int>());
  return made;
}

/// Rows whose names begin so.
template <class F> void for_rows(std::string_view kind, const F& f) {
  int rows = 0;
  for (const Json& row : keras_rows())
    if (row["name"].get<std::string>().starts_with(std::string(kind) + '/')) f(row), ++rows;
  EXPECT_GT(rows, 0) << kind;
}

TEST(Lookups, TextVectorizationIsKeras) {
  const EmptyTestDirectory directory;
  for_rows("TextVectorization", [&](const Json& row) {
    TextVectorization layer(text_options(row["options"]));
    if (!row["options"].contains("vocabulary")) layer.adapt(adapted_texts);
    EXPECT_EQ(layer.get_vocabulary(), row["vocabulary"].get<std::vector<std::string>>()) << row["name"];
    expect_row(row, layer(strings_of(row["inputs"])));
    layer.save(directory.path() / "layer.json");
    expect_row(row, TextVectorization::load(directory.path() / "layer.json")(strings_of(row["inputs"])));
  });
}

TEST(Lookups, StringLookupIsKeras) {
  const EmptyTestDirectory directory;
  for_rows("StringLookup", [&](const Json& row) {
    StringLookup layer(string_options(row["options"]));
    layer.adapt(adapted_words);
    EXPECT_EQ(layer.get_vocabulary(), row["vocabulary"].get<std::vector<std::string>>()) << row["name"];
    expect_row(row, layer(strings_of(row["inputs"])));
    layer.save(directory.path() / "layer.json");
    expect_row(row, StringLookup::load(directory.path() / "layer.json")(strings_of(row["inputs"])));
  });
}

TEST(Lookups, IntegerLookupIsKeras) {
  const EmptyTestDirectory directory;
  for_rows("IntegerLookup", [&](const Json& row) {
    IntegerLookup layer(integer_options(row["options"]));
    layer.adapt(from_values(adapted_numbers, Shape{std::ssize(adapted_numbers)}));
    EXPECT_EQ(layer.get_vocabulary(), row["vocabulary"].get<std::vector<std::int64_t>>()) << row["name"];
    const Tensor x = tensor_in<std::int64_t>(row["inputs"]);
    expect_row(row, layer(x));
    expect_row(row, function([&](Tensor y) { return layer(y); })(x));
    expect_row(row, vmap([&](In y) { return Tensors{layer(y[0])}; }, Tensors{x}, x.shape()[0])[0]);
    layer.save(directory.path() / "layer.json");
    expect_row(row, IntegerLookup::load(directory.path() / "layer.json")(x));
  });
}

TEST(Lookups, HashingIsKeras) {
  for_rows("Hashing", [](const Json& row) {
    const Json& o = row["options"];
    HashingOptions options{.mask_value = option<std::string>(o, "mask_value")};
    if (o.contains("salt"))
      options.salt = o["salt"].is_array() ? o["salt"].get<std::array<std::uint64_t, 2>>()
                                          : std::array{o["salt"].get<std::uint64_t>(), o["salt"].get<std::uint64_t>()};
    expect_row(row, Hashing(o["num_bins"], options)(strings_of(row["inputs"])));
  });
  for_rows("HashingIntegers", [](const Json& row) {
    expect_row(row, Hashing(row["options"]["num_bins"])(tensor_in<std::int64_t>(row["inputs"])));
  });
}

TEST(Lookups, CategoryEncodingIsKeras) {
  for_rows("CategoryEncoding", [](const Json& row) {
    const CategoryEncoding layer(row["options"]["num_tokens"], {.output_mode = mode_of(row["options"], "multi_hot")});
    const Tensor x = tensor_in<std::int32_t>(row["inputs"]);
    expect_row(row, layer(x));
    expect_row(row, function([&](Tensor y) { return layer(y); })(x));
  });
  const CategoryEncoding layer(4, {.output_mode = OutputMode::count});
  const Tensor sums = layer(constant({{0, 1}, {0, 0}}), constant({{0.5, 0.25}, {0.5, 0.25}}));
  EXPECT_EQ(sums.to_vector<float>(), (std::vector<float>{0.5, 0.25, 0, 0, 0.75, 0, 0, 0}));
}

TEST(Lookups, DiscretizationIsKeras) {
  for_rows("Discretization", [](const Json& row) {
    Discretization layer({.bin_boundaries = row["options"]["bin_boundaries"].get<std::vector<double>>(),
                          .output_mode = mode_of(row["options"], "int")});
    const Tensor x = tensor_in<float>(row["inputs"]);
    expect_row(row, layer(x));
    expect_row(row, function([&](Tensor y) { return layer(y); })(x));
  });
  for_rows("DiscretizationAdapted", [](const Json& row) {
    const Json& o = row["options"];
    Discretization layer({.num_bins = o["num_bins"].get<std::int64_t>(), .epsilon = o["epsilon"].get<double>()});
    layer.adapt(tensor_in<float>(o["data"]));
    const auto found = layer.variables()[0].value().to_vector<float>();
    const auto want = row["vocabulary"].get<std::vector<double>>();
    ASSERT_EQ(found.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-4) << row["name"];
    expect_row(row, layer(tensor_in<float>(row["inputs"])));
  });
}

TEST(Lookups, BoundariesAreSavedWithAModel) {
  const EmptyTestDirectory directory;
  const Tensor x = constant({{1.0F}, {2.0F}, {3.0F}, {4.0F}, {5.0F}, {6.0F}, {7.0F}, {8.0F}});
  Discretization layer({.num_bins = 4});
  layer.adapt(x);
  Sequential model{std::move(layer)}, other{Discretization({.num_bins = 4})};
  const std::vector<std::int64_t> bins = model(x).to_vector<std::int64_t>();
  EXPECT_EQ(bins.front(), 0);
  EXPECT_EQ(bins.back(), 3);
  save_safetensors(directory.path() / "model.safetensors", model);
  other.build({f32, {any_size, 1}});
  load_safetensors(directory.path() / "model.safetensors", other);
  EXPECT_EQ(other(x).to_vector<std::int64_t>(), bins);
}

TEST(Lookups, ACategoryEncodingIsALayerOfKerasFiles) {
  const EmptyTestDirectory directory;
  Sequential model{CategoryEncoding(4, {.output_mode = OutputMode::count}), Dense(2)};
  const Tensor x = constant({{0, 1}, {3, 3}});
  model.build({i32, {any_size, 2}});
  save_model(directory.path() / "model.keras", model);
  EXPECT_EQ(load_model(directory.path() / "model.keras")(x).to_vector<float>(), model(x).to_vector<float>());
}

TEST(Lookups, InvertedLookupsGiveTheTerms) {
  const StringLookup words({.mask_token = "", .vocabulary = {"red", "blue"}, .invert = true});
  EXPECT_EQ(words(constant({0, 1, 2, 3, 9})), (Strings{"", "[UNK]", "red", "blue", "[UNK]"}));
  const IntegerLookup numbers({.vocabulary = {70, 80}, .invert = true});
  EXPECT_EQ(numbers(constant({0, 1, 2, 3, -1})).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{-1, 70, 80, -1, -1}));
}

TEST(Lookups, AVocabularyIsAFileOfLines) {
  const EmptyTestDirectory directory;
  const StringLookup saved({.mask_token = "", .vocabulary = {"red", "blau ö", "x"}});
  saved.save_vocabulary(directory.path() / "vocabulary.txt");
  StringLookup read({.mask_token = ""});
  read.load_vocabulary(directory.path() / "vocabulary.txt");
  EXPECT_EQ(read.get_vocabulary(), saved.get_vocabulary());
  EXPECT_EQ(read(Strings{"x", "", "y"}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{4, 0, 1}));
}

TEST(Lookups, RefuseWhatDoesNotGoTogether) {
  EXPECT_THROW(StringLookup({.max_tokens = 1}), InvalidArgument);
  EXPECT_THROW(StringLookup({.num_oov_indices = -1}), InvalidArgument);
  EXPECT_THROW(StringLookup({.pad_to_max_tokens = true}), InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a", "a"}}), InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a\xFF"}}), InvalidArgument);
  EXPECT_THROW(StringLookup({.mask_token = "m", .vocabulary = {"a", "m"}}), InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a"}, .output_mode = OutputMode::tf_idf}), InvalidArgument);
  EXPECT_THROW(StringLookup({.max_tokens = 3, .vocabulary = {"a", "b", "c"}}), InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a"}, .invert = true, .output_mode = OutputMode::count}), InvalidArgument);
  EXPECT_THROW(StringLookup({.vocabulary = {"a"}}).adapt(Strings{"b"}), InvalidArgument);
  EXPECT_THROW(StringLookup()(Strings{"b"}), InvalidArgument);
  EXPECT_THROW(StringLookup({.num_oov_indices = 0, .vocabulary = {"a"}})(Strings{"b"}), OutOfRange);
  EXPECT_THROW(IntegerLookup({.num_oov_indices = 0, .vocabulary = {1}})(constant({2})).to_vector<std::int64_t>(),
               OutOfRange);
  EXPECT_THROW(IntegerLookup({.vocabulary = {1}})(constant({2.0})), InvalidArgument);
  EXPECT_THROW(TextVectorization({.output_mode = OutputMode::one_hot}), InvalidArgument);
  EXPECT_THROW(TextVectorization({.output_mode = OutputMode::count, .output_sequence_length = 3}), InvalidArgument);
  EXPECT_THROW(TextVectorization({.ngrams = {0}}), InvalidArgument);
  EXPECT_THROW(TextVectorization({.vocabulary = {"a"}})(Strings{"a\xFF"}), InvalidArgument);
  EXPECT_THROW(Hashing(0), InvalidArgument);
  EXPECT_THROW(CategoryEncoding(0), InvalidArgument);
  EXPECT_THROW(Discretization({}), InvalidArgument);
  EXPECT_THROW(Discretization({.bin_boundaries = {2, 1}}), InvalidArgument);
  EXPECT_THROW(Discretization({.num_bins = 3})(constant({1.0})), InvalidArgument);
}

TEST(Lookups, OfStringsAreRefusedWithinATracedFunction) {
  const TextVectorization vectorize({.vocabulary = {"a"}});
  const auto traced = function([&](Tensor x) { return x + cast(vectorize("a")[0], f32); });
  expect_error<InvalidArgument>([&] { traced(constant(1.0F)); }, {"look strings up in the map of a data set"});
}

TEST(Lookups, OfADamagedFileAreDataErrors) {
  const EmptyTestDirectory directory;
  StringLookup({.vocabulary = {"a", "b"}}).save(directory.path() / "layer.json");
  expect_error<DataError>([&] { TextVectorization::load(directory.path() / "layer.json"); },
                          {"its class_name is `StringLookup`"});
  const std::string json = read_text_file(directory.path() / "layer.json");
  for (std::size_t i = 0; i < json.size(); i += 3) {
    std::string damaged = json;
    damaged[i] = '7';
    AtomicFile file(directory.path() / "damaged.json");
    file.write(damaged);
    file.commit();
    try {
      (void)StringLookup::load(directory.path() / "damaged.json");
    } catch (const DataError&) {}
  }
}

}  // namespace
}  // namespace gradus::lookups_test
