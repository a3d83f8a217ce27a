/// Datasets of files.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "gradus/base/thread_pool.h"
#include "gradus/data/files.h"
#include "gradus/formats/npy.h"
#include "gradus/formats/npz.h"
#include "gradus/formats/png_writer.h"
#include "gradus/formats/tfrecord.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/data/readings.h"
#include "tests/test_directory.h"
#include "tests/threads.h"

namespace gradus::files_test {
namespace {

class Files : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& contents) {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
    return folder_ / name;
  }
  const EmptyTestDirectory directory_;
  const std::filesystem::path& folder_ = directory_.path();
};

std::string text_of(const Tensor& x) {
  const auto bytes = x.span<std::uint8_t>();
  return {bytes.begin(), bytes.end()};
}

TEST_F(Files, Csv) {
  const auto table = data::from_csv(write("t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,0\n"), {.label = "y"});
  EXPECT_EQ(table.cardinality(), 3);
  EXPECT_EQ(table.element_spec(), (std::array<Spec, 2>{Spec{f32, {2}}, Spec{i32, {}}}));
  const auto [x, y] = table.skip(1).batch(2).first();
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(y.to_vector<std::int32_t>(), (Numbers{1, 0}));
  const auto bad = write("bad.csv", "a,b,y\n1,two,0\n");
  EXPECT_EQ(message_of<DataError>([&] { data::from_csv(bad, {.label = "y"}); }),
            text("from_csv: ", bad.string(),
                 ":2: column `b`: expected a number, found \"two\"; if the column is of words, name it in "
                 "`categories`"));
}

TEST_F(Files, NpyAndNpz) {
  save_npy(folder_ / "x.npy", numbered_rows(4, 2));
  save_npy(folder_ / "y.npy", numbered_rows(4, 1));
  EXPECT_EQ(data::from_npy(folder_ / "x.npy", folder_ / "y.npy").cardinality(), 4);
  save_npz(folder_ / "both.npz", {{"x", numbered_rows(4, 2)}, {"y", numbered_rows(4, 1)}});
  const auto [x, y] = data::from_npz(folder_ / "both.npz", "x", "y").batch(4).first();
  EXPECT_TRUE(bitwise_equal(x, numbered_rows(4, 2)) && bitwise_equal(y, numbered_rows(4, 1)));
  EXPECT_EQ(message_of<DataError>([&] { data::from_npz(folder_ / "both.npz", "z"); }),
            text("from_npz: ", (folder_ / "both.npz").string(), ": there is no array `z`; did you mean `x`?"));
}

TEST_F(Files, TextLines) {
  const auto lines = data::from_text_lines(write("t.txt", "one\n\r\nthree\r\nlast"));
  EXPECT_EQ(lines.cardinality(), 4);
  std::vector<std::string> seen;
  for (auto line : lines.prefetch()) seen.push_back(text_of(line));
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "", "three", "last"}));
  EXPECT_EQ(lines.padded_batch(4).first().shape(), (Shape{4, 5}));
  EXPECT_EQ(data::from_text_lines(write("empty", "")).cardinality(), 0);
  EXPECT_EQ(data::from_text_lines(write("ends", "a\n")).cardinality(), 1);
  EXPECT_THROW(data::from_text_lines(folder_ / "none"), Unavailable);
}

std::string record(std::int64_t label, std::int64_t width) {
  return example_of(
      {{"x", full({width}, static_cast<double>(label))}, {"y", full({1}, static_cast<double>(label), i64)}});
}

TEST_F(Files, Tfrecord) {
  const auto file = folder_ / "data.tfrecord";
  std::vector<std::string> records;
  for (int i = 0; i < 20; ++i) records.push_back(record(i, 3));
  write_tfrecord(file, records);
  const auto dataset = data::from_tfrecord(file, "x", "y");
  EXPECT_EQ(dataset.element_spec(), (std::array<Spec, 2>{Spec{f32, {3}}, Spec{i32, {}}}));
  std::int32_t i = 0;
  for (auto [x, y] : dataset.prefetch()) {
    EXPECT_EQ(x.span<float>()[2], static_cast<float>(i));
    EXPECT_EQ(y.item(), i++);
  }
  EXPECT_EQ(i, 20);
  records.push_back(record(7, 5));
  write_tfrecord(file, records);
  EXPECT_EQ(data::from_tfrecord(file, "x", "y").element_spec()[0], (Spec{f32, {any_size}}));
  EXPECT_EQ(message_of<DataError>([&] { data::from_tfrecord(file, "z", "y"); }),
            text("from_tfrecord: ", file.string(), ": record 0 (byte 0): there is no feature `z`; did you mean `x`?"));
  write_tfrecord(file, {});
  EXPECT_THROW(data::from_tfrecord(file, "x", "y"), DataError);
  const std::vector<std::string> wide{example_of({{"x", full({1}, 1)}, {"y", full({1}, 3e9, i64)}})};
  write_tfrecord(file, wide);
  EXPECT_THROW(data::from_tfrecord(file, "x", "y"), DataError);
}

class Images : public Files {
 protected:
  void SetUp() override {
    Files::SetUp();
    for (int i = 0; i < 12; ++i) {
      const auto folder = folder_ / (i % 3 == 0 ? "zebra" : "ant");
      std::filesystem::create_directories(folder);
      save_png(folder / (std::to_string(100 + i) + ".png"), full({4 + i, 6, 3}, 10 * i, u8));
    }
    write(".hidden", "x");
  }
};

TEST_F(Images, ByFolder) {
  const auto dataset = data::images_from_directory(folder_, {.height = 5, .width = 4});
  EXPECT_EQ(data::class_names(folder_), (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(dataset.cardinality(), 12);
  Numbers values, labels;
  for (auto [image, label] : dataset) {
    EXPECT_EQ(image.spec(), (Spec{u8, {5, 4, 3}}));
    values.push_back(image.span<std::uint8_t>()[59]);
    labels.push_back(static_cast<std::int32_t>(label.item()));
  }
  EXPECT_EQ(values, (Numbers{10, 20, 40, 50, 70, 80, 100, 110, 0, 30, 60, 90}));
  EXPECT_EQ(labels, (Numbers{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST_F(Images, TheSameWithAnyNumberOfThreads) {
  const auto read = [&](MapOptions options, int threads) {
    const Threads scope(threads);
    const auto dataset = data::images_from_directory(
        folder_, {.height = 7, .width = 7, .num_parallel_calls = options.num_parallel_calls});
    std::vector<std::uint8_t> all;
    for (auto [image, label] : dataset.shuffle({.seed = 1}).batch(5).prefetch())
      for (const std::uint8_t value : image.span<std::uint8_t>()) all.push_back(value);
    return all;
  };
  const auto expected = read({.num_parallel_calls = 1}, 1);
  for (const int threads : {1, 2, 3})
    for (const int calls : {1, 3, autotune}) EXPECT_EQ(read({.num_parallel_calls = calls}, threads), expected);
}

TEST_F(Images, ABrokenFileIsToldOnceWithItsName) {
  const auto broken = write("ant/105.png", "\x89PNG no more");
  const auto images = data::images_from_directory(folder_, {.height = 5, .width = 4});
  for (const auto& dataset : {images, images.prefetch()}) {
    auto next = dataset.begin();
    for (int i = 0; i < 3; ++i) ++next;
    const std::string message = message_of<DataError>([&] { *next; });
    EXPECT_TRUE(message.starts_with(text("images_from_directory, element 3: ", broken.string(), ": "))) << message;
    EXPECT_TRUE(next == dataset.end());
  }
  EXPECT_THROW(images.batch(12).first(), DataError);
}

/// A file that is moved keeps its name, size and time, and here its number, too.
TEST_F(Images, ACacheOfOtherClassesIsStale) {
  const auto cached = [&] {
    return data::images_from_directory(folder_, {.height = 5, .width = 4}).cache(folder_ / "images.cache");
  };
  for ([[maybe_unused]] auto element : cached()) {}
  for ([[maybe_unused]] auto element : cached()) {}
  std::filesystem::rename(folder_ / "ant/111.png", folder_ / "zebra/099.png");
  EXPECT_THROW(cached(), DataError) << "another name";
  std::filesystem::rename(folder_ / "zebra/099.png", folder_ / "ant/111.png");
  for ([[maybe_unused]] auto element : cached()) {}
  for (const char* name : {"100", "103", "106", "109"})
    std::filesystem::rename(folder_ / text("zebra/", name, ".png"), folder_ / text("zebra/2", name, ".png"));
  std::filesystem::remove(folder_ / "images.cache");
  for ([[maybe_unused]] auto element : cached()) {}
  std::filesystem::rename(folder_ / "ant/111.png", folder_ / "zebra/111.png");
  EXPECT_THROW(cached(), DataError) << "the same files in the same order";
}

TEST_F(Images, Mistakes) {
  EXPECT_THROW(data::images_from_directory(folder_ / "none", {.height = 1, .width = 1}), Unavailable);
  EXPECT_THROW(data::images_from_directory(folder_ / "ant", {.height = 1, .width = 1}), Unavailable);
  EXPECT_THROW(data::images_from_directory(folder_, {.height = 0, .width = 1}), InvalidArgument);
  EXPECT_THROW(data::images_from_directory(folder_, {.height = 1, .width = 1, .channels = 2}), InvalidArgument);
}

}  // namespace
}  // namespace gradus::files_test
