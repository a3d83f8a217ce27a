/// Strings, and data sets of them: every stage hands them on as they are, a map on the host makes numbers of them.
#include "gradus/base/rooms.h"
#include "gradus/data/strings.h"
#include <gtest/gtest.h>
#include "gradus/data/text_dataset.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/text/text_files.h"
#include "gradus/text/text_vectorization.h"
#include "gradus/text/unicode.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::strings_test {
namespace {

const Strings six{"one", "two words", "", "drei ö", "four\n", "five five five"};
Tensor six_labels() { return constant({0, 1, 2, 3, 4, 5}); }
TextDataset<1> six_with_labels() { return data::from_tensor_slices(six, six_labels()); }

std::vector<std::string> texts_of(const TextDataset<1>& data) {
  std::vector<std::string> all;
  for (const auto& [text, label] : data)
    for (const std::string& value : text.values()) all.push_back(value);
  return all;
}
std::vector<std::int32_t> labels_of(const TextDataset<1>& data) {
  std::vector<std::int32_t> all;
  for (const auto& [text, label] : data)
    for (const std::int32_t value : label.to_vector<std::int32_t>()) all.push_back(value);
  return all;
}

TEST(StringsOfTheHost, AreValuesWithAShape) {
  const Strings table({2, 2}, {"a", "b", "c", "d\""});
  EXPECT_EQ(table[-1], (Strings{"c", "d\""}));
  EXPECT_EQ(text(table), "[[\"a\", \"b\"], [\"c\", \"d\"\"]]");
  EXPECT_EQ(Strings("x").item(), "x");
  EXPECT_EQ(Strings("x").shape(), Shape());
  EXPECT_THROW((Strings({3}, {"a"})), InvalidArgument);
  EXPECT_THROW(table[2], OutOfRange);
  EXPECT_THROW(table.item(), InvalidArgument);
  EXPECT_THROW(Strings("x")[0], InvalidArgument);
  for (const Strings& strings : {table, Strings("x"), Strings(), Strings("")})
    EXPECT_EQ(unpacked(packed(strings)), strings);
}

TEST(StringsOfTheHost, ThatAreCutOffAreDataErrors) {
  const std::vector<std::uint8_t> bytes = packed(Strings{"ab", "c"}).to_vector<std::uint8_t>();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(unpacked(from_values(part, Shape{static_cast<std::int64_t>(size)})), DataError) << size;
  }
}

TEST(TextDatasets, KeepTextsAndLabelsTogetherInEveryStage) {
  const EmptyTestDirectory directory;
  const TextDataset<1> data = six_with_labels();
  const std::pair<const char*, TextDataset<1>> rows[] = {
      {"plain", data},
      {"shuffle", data.shuffle({.seed = 3})},
      {"buffer", data.shuffle(3, {.seed = 3})},
      {"cache", data.cache()},
      {"file", data.cache(directory.path() / "cache")},
      {"file again", data.cache(directory.path() / "cache")},
      {"prefetch", data.prefetch(2)},
      {"repeat", data.repeat(2).skip(3).take(6)},
      {"shard", data.shard(2, 1)},
      {"batch", data.batch(4)},
      {"batches", data.batch(2, {.drop_remainder = true}).batch(2)},
      {"from", data.from({.epoch = 0, .index = 4})},
  };
  for (const auto& [name, row] : rows) {
    const std::vector<std::string> texts = texts_of(row.epoch(0));
    const std::vector<std::int32_t> labels = labels_of(row.epoch(0));
    ASSERT_EQ(texts.size(), labels.size()) << name;
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(texts[i], six.values()[static_cast<std::size_t>(labels[i])]) << name;
  }
  EXPECT_EQ(texts_of(data), six.values());
  EXPECT_EQ(data.cardinality(), 6);
  EXPECT_EQ(texts_of(data.shard(2, 1)), (std::vector<std::string>{"two words", "drei ö", "five five five"}));
}

TEST(TextDatasets, BatchesHaveTheShapesThatTheyTell) {
  const TextDataset<1> batches = six_with_labels().batch(4);
  EXPECT_EQ(batches.text_shape(), (Shape{any_size}));
  EXPECT_EQ(std::get<0>(batches.first()).shape(), (Shape{4}));
  EXPECT_EQ(six_with_labels().batch(4, {.drop_remainder = true}).text_shape(), (Shape{4}));
  EXPECT_EQ(six_with_labels().batch(4, {.drop_remainder = true}).cardinality(), 1);
  EXPECT_EQ(batches.tensor_spec()[0], (Spec{i32, {any_size}}));
  const auto parts = data::from_tensor_slices(six).map(
      [](const Strings& s) { return Strings(std::vector<std::string>(s.item().size(), "x")); });
  expect_error<InvalidArgument>([&] { parts.batch(2).first(); }, {"batch: elements differ in size", "map"});
}

TEST(TextDatasets, AMapOnTheHostGivesTensorsOfKnownSizes) {
  TextVectorization vectorize({.output_sequence_length = 3});
  vectorize.adapt(six_with_labels());
  const Dataset<2> ids =
      six_with_labels().map([&](const Strings& text, Tensor label) { return std::pair{vectorize(text), label}; });
  EXPECT_EQ(ids.element_spec()[0], (Spec{i64, {3}}));
  EXPECT_EQ(ids.batch(6).first()[0].shape(), (Shape{6, 3}));
  const Dataset<1> of_batches =
      six_with_labels().batch(4).map([&](const Strings& text, Tensor) { return vectorize(text); });
  EXPECT_EQ(of_batches.element_spec()[0], (Spec{i64, {any_size, 3}}));
  EXPECT_EQ(of_batches.skip(1).first().shape(), (Shape{2, 3}));
  TextVectorization open;
  open.adapt(six);
  const Dataset<1> lengths = data::from_tensor_slices(six).map([&](const Strings& text) { return open(text); });
  EXPECT_EQ(lengths.element_spec()[0], (Spec{i64, {any_size}}));
  EXPECT_EQ(lengths.padded_batch(6).first().shape(), (Shape{6, 3}));
}

TEST(TextDatasets, MapsToTextAndFilters) {
  const TextDataset<1> changed =
      six_with_labels()
          .filter([](const Strings& text, Tensor) { return text.item().find('o') != std::string::npos; })
          .map([](const Strings& text, Tensor label) { return std::pair{Strings(text.item() + "!"), label * 2}; });
  EXPECT_EQ(texts_of(changed), (std::vector<std::string>{"one!", "two words!", "four\n!"}));
  EXPECT_EQ(labels_of(changed), (std::vector<std::int32_t>{0, 2, 8}));
  const TextDataset<2> beside = data::zip(six_with_labels(), data::range(4));
  EXPECT_EQ(std::get<2>(beside.skip(3).first()).item(), 3);
}

TEST(TextDatasets, ErrorsNameStageAndElement) {
  const auto fails_at = [](const Strings& text) {
    require(text.item() != "four\n", "this text is not wanted");
    return constant(1.0F);
  };
  const Dataset<1> data = data::from_tensor_slices(six).map(fails_at);
  expect_error<InvalidArgument>([&] { data.skip(4).first(); }, {"map, element 4", "this text is not wanted"});
  const auto late = data::from_tensor_slices(six).map(
      [](const Strings& text) { return constant(std::vector<float>(text.item() == "four\n" ? 2 : 1, 1.0F)); });
  expect_error<InvalidArgument>([&] { late.skip(4).first(); }, {"map, element 4", "TextMapOptions::specs"});
  const auto open = data::from_tensor_slices(six).map(
      [](const Strings& text) { return constant(std::vector<float>(text.item() == "four\n" ? 2 : 1, 1.0F)); },
      {.specs = {{f32, {any_size}}}});
  EXPECT_EQ(open.skip(4).first().shape(), (Shape{2}));
  EXPECT_THROW(data::from_tensor_slices(Strings("x")), InvalidArgument);
  EXPECT_THROW(data::from_tensor_slices(six, constant({1})), InvalidArgument);
  EXPECT_THROW(six_with_labels().batch(0), InvalidArgument);
  EXPECT_THROW(data::from_tensor_slices(Strings()).map(fails_at), InvalidArgument);
}

void write_text(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  AtomicFile out(file);
  out.write(text);
  out.commit();
}

TEST(TextFiles, AreReadByLines) {
  const EmptyTestDirectory directory;
  write_text(directory.path() / "a.txt", "one\ntwo ö\r\n\nlast");
  write_text(directory.path() / "b.txt", "more\n");
  const TextDataset<0> lines = data::text_lines(std::vector{directory.path() / "a.txt", directory.path() / "b.txt"});
  std::vector<std::string> all;
  for (const Strings& line : lines) all.push_back(line.item());
  EXPECT_EQ(all, (std::vector<std::string>{"one", "two ö", "", "last", "more"}));
  EXPECT_THROW(data::text_lines(directory.path() / "none.txt"), Unavailable);
}

TEST(TextFiles, HaveTheNumberOfTheirFolderAsLabel) {
  const EmptyTestDirectory directory;
  for (int i = 0; i < 10; ++i)
    write_text(directory.path() / (i % 2 ? "pos" : "neg") / text("n", i % 3) / text(i, ".txt"),
               text("text ", i % 2, " ö"));
  write_text(directory.path() / "pos" / ".hidden.txt", "no");
  write_text(directory.path() / "pos" / "other.md", "no");
  const TextDataset<1> all = data::text_dataset_from_directory(directory);
  EXPECT_EQ(std::get<0>(all.first()).shape(), (Shape{10}));
  for (const auto& [texts, labels] : all)
    for (std::int64_t i = 0; i < 10; ++i)
      EXPECT_EQ(texts[i].item(), text("text ", labels.to_vector<std::int32_t>()[static_cast<std::size_t>(i)], " ö"));
  const auto plain =
      data::text_dataset_from_directory(directory, {.batch_size = {}, .max_length = 8, .shuffle = false});
  EXPECT_EQ(labels_of(plain), (std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(texts_of(plain)[0], "text 0 ");  // the last character has two bytes
  std::vector<std::int32_t> counts;
  for (const data::Subset subset : {data::Subset::training, data::Subset::validation})
    counts.push_back(static_cast<std::int32_t>(
        labels_of(data::text_dataset_from_directory(directory, {.seed = 3, .validation_split = 0.3, .subset = subset}))
            .size()));
  EXPECT_EQ(counts, (std::vector<std::int32_t>{7, 3}));
  EXPECT_THROW(data::text_dataset_from_directory(directory, {.validation_split = 0.3}), InvalidArgument);
  EXPECT_THROW(
      data::text_dataset_from_directory(directory, {.validation_split = 0.3, .subset = data::Subset::training}),
      InvalidArgument);
  EXPECT_THROW(data::text_dataset_from_directory(directory.path() / "none"), Unavailable);
}

/// The published archive of IMDB: pos, neg and, in train, unsup; lists and bags of words beside the folders.
TEST(TextFiles, ReadThePublishedFoldersOfImdb) {
  const EmptyTestDirectory directory;
  const auto root = directory.path() / "aclImdb";
  write_text(root / "imdb.vocab", "the\nand\n");
  for (const char* part : {"train", "test"}) {
    write_text(root / part / "labeledBow.feat", "9 0:9 1:1\n");
    for (const char* kind : {"pos", "neg"}) {
      write_text(root / part / text("urls_", kind, ".txt"), "http://www.imdb.com/title/tt0000001/usercomments\n");
      for (int i = 0; i < 3; ++i)
        write_text(root / part / kind / text(i, '_', *kind == 'p' ? 9 : 2, ".txt"),
                   text(kind, " film.<br /><br />", i));
    }
  }
  write_text(root / "train" / "unsup" / "0_0.txt", "no label");
  for (const char* part : {"train", "test"}) {
    const auto reviews =
        data::text_dataset_from_directory(root / part, {.shuffle = false, .class_names = {"neg", "pos"}});
    EXPECT_EQ(labels_of(reviews), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(texts_of(reviews)[5], "pos film.<br /><br />2");
  }
  EXPECT_EQ(labels_of(data::text_dataset_from_directory(root / "train", {.shuffle = false})).back(), 2);
  expect_error<Unavailable>([&] { data::text_dataset_from_directory(root / "test", {.class_names = {"unsup"}}); },
                            {"`unsup`"});
}

TEST(Utf8, IsReadAsUnicodeRecommends) {
  EXPECT_EQ(unicode::decoded("aß€𝔘", "test"), U"aß€𝔘");
  EXPECT_EQ(unicode::encoded(U"aß€𝔘\U0010FFFF"), "aß€𝔘\xF4\x8F\xBF\xBF");
  const std::pair<std::string, std::string> rows[] = {{"a\xFF"
                                                       "b",
                                                       "a\uFFFD"
                                                       "b"},
                                                      {"\xE2\x82", "\uFFFD"},
                                                      {"\xE2\x82z", "\uFFFDz"},
                                                      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
                                                      {"\xC0\x80", "\uFFFD\uFFFD"},
                                                      {"\xF0\x9F\x8D", "\uFFFD"},
                                                      {"plain ö", "plain ö"}};
  for (const auto& [bytes, want] : rows) EXPECT_EQ(unicode::repaired(bytes), want);
}

}  // namespace
}  // namespace gradus::strings_test
