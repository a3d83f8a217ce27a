/// Mistakes: what each of them says.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <filesystem>
#include "gradus/data/files.h"
#include "gradus/formats/csv.h"
#include "gradus/formats/idx.h"
#include "gradus/formats/image.h"
#include "tests/data/readings.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::bad_input_test {
namespace {

struct Mistake {
  std::function<void()> make;
  std::string message;
};

TEST(BadInput, InvalidArguments) {
  const auto numbers = data::range(10);
  const Tensor ten = numbered_rows(10, 2), nine = numbered_rows(9, 2);
  const std::vector<Mistake> mistakes{
      {[&] { numbers.batch(0); }, "batch: size must be positive, got 0"},
      {[&] { numbers.batch(-3); }, "batch: size must be positive, got -3"},
      {[&] { numbers.shuffle(0); }, "shuffle: expected a buffer of 1 to 4294967296 elements, got 0"},
      {[&] { numbers.repeat().shuffle(); },
       "shuffle: this dataset has no end, so all of it cannot be permuted; shuffle before repeat(), or give a buffer "
       "size"},
      {[&] { numbers.repeat().batch(2).cache(); }, "cache: this dataset has no end; cache before repeat()"},
      {[&] { numbers.repeat(-2); }, "repeat: expected a number of rounds, or -1 for without end, got -2"},
      {[&] { numbers.repeat(std::int64_t{1} << 62); },
       "repeat: 4611686018427387904 rounds of 10 elements are more than 2^63 - 1"},
      {[&] { numbers.take(-1); }, "take: expected a number of elements, got -1"},
      {[&] { numbers.skip(-1); }, "skip: expected a number of elements, got -1"},
      {[&] { numbers.epoch(-1); }, "epoch: expected a number from 0 to 9007199254740992, got -1"},
      {[&] { numbers.from({.epoch = 0, .index = -1}); },
       "from: expected an epoch from 0 to 9007199254740992 and an index from 0, got epoch 0, index -1"},
      {[&] { numbers.prefetch(0); }, "prefetch: buffers must be positive or autotune, got 0"},
      {[&] { numbers.map([](Tensor x) { return x; }, {.num_parallel_calls = 0}); },
       "map: num_parallel_calls must be positive or autotune, got 0"},
      {[] { data::range(-1); }, "range: expected 0 to 2147483648 numbers, which are i32, got -1"},
      {[&] { data::from_tensor_slices(ten, nine); },
       "from_tensor_slices: tensor 1 has 9 rows, tensor 0 has 10: i32[9,2] and i32[10,2]"},
      {[&] { data::from_tensor_slices(ten, tensor_of_numbers({1}, {})); },
       "from_tensor_slices: tensor 1 is a scalar i32[]: it has no rows along axis 0"},
      {[&] { data::from_tensor_slices(Tensor()); },
       "this tensor is empty: it was default-constructed or moved from; assign a value before using it"},
  };
  for (const Mistake& mistake : mistakes) EXPECT_EQ(message_of<InvalidArgument>(mistake.make), mistake.message);
}

TEST(BadInput, OutOfRange) {
  const std::vector<Mistake> mistakes{
      {[] { data::range(0).first(); }, "first: this dataset has no elements"},
      {[] { data::range(5).skip(5).first(); }, "first: this dataset has no elements"},
      {[] { data::range(5).from({.epoch = 2, .index = 6}); }, "from: index 6 is past the 5 elements of epoch 2"},
      {[] { *data::range(0).begin(); },
       "the pass over this dataset has ended after 0 elements; compare the iterator with end(), or call begin() for "
       "the next pass"},
      {[] {
         auto next = data::range(1).prefetch().begin();
         ++next;
         ++next;
       },
       "the pass over this dataset has ended after 1 elements; compare the iterator with end(), or call begin() for "
       "the next pass"},
  };
  for (const Mistake& mistake : mistakes) EXPECT_EQ(message_of<OutOfRange>(mistake.make), mistake.message);
}

/// IDX files in a folder of their own.
class IdxData : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, std::vector<std::int64_t> dims) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(Shape(dims).size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    write_idx(folder_ / name, u8, dims, bytes.data());
    return folder_ / name;
  }
  const EmptyTestDirectory directory_;
  const std::filesystem::path& folder_ = directory_.path();
};

TEST_F(IdxData, ImagesAndLabels) {
  const auto dataset = data::from_idx(write("images", {6, 2, 3}), write("labels", {6}));
  EXPECT_EQ(dataset.cardinality(), 6);
  EXPECT_EQ(dataset.element_spec(), (std::array<Spec, 2>{Spec{u8, {2, 3}}, Spec{i32, {}}}));
  std::int32_t i = 0;
  for (auto [image, label] : dataset) {
    EXPECT_EQ(image.span<std::uint8_t>()[5], 6 * i + 5);
    EXPECT_EQ(label.item(), i++);
  }
}

TEST_F(IdxData, FilesThatDoNotFit) {
  const auto images = write("images", {6, 2, 3}), labels = write("labels", {5});
  EXPECT_EQ(message_of<DataError>([&] { data::from_idx(images, labels); }),
            text("from_idx: ", images.string(), " has 6 images, ", labels.string(), " has 5 labels"));
  EXPECT_EQ(message_of<DataError>([&] { data::from_idx(labels, images); }),
            text("from_idx: ", labels.string(),
                 ": expected images, such as u8[60000,28,28], found u8[5]; are images and labels exchanged?"));
  EXPECT_EQ(message_of<DataError>([&] { data::from_idx(images, images); }),
            text("from_idx: ", images.string(),
                 ": expected labels, integers in one dimension, found u8[6,2,3]; are images and labels exchanged?"));
}

/// Whoever opened a pipe that nobody writes would wait for ever; a device has no end.
TEST_F(IdxData, OnlyRegularFilesAreRead) {
  const std::filesystem::path pipe = folder_ / "pipe", zeros = "/dev/zero";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [file, kind] : {std::pair{pipe, "is a pipe"}, {zeros, "is a device"}, {folder_, "is a directory"}})
    for (const auto& read : std::vector<std::function<void()>>{
             [&] { data::from_idx(file, file); }, [&] { data::from_csv(file, {.label = "y"}); },
             [&] { data::from_npy(file); }, [&] { data::from_npz(file, "x"); }, [&] { data::from_text_lines(file); },
             [&] { data::from_tfrecord(file, "x", "y"); }, [&] { load_image(file, 3); },
             [&] { load_csv(file, {.label = "y"}); }})
      expect_says(error_of<Unavailable>(read), file.string() + ": " + kind + "; expected a regular file");
}

TEST_F(IdxData, FilesThatAreNotThere) {
  const auto images = write("images", {6, 2, 3});
  EXPECT_THROW(data::from_idx(images, folder_ / "none"), Unavailable);
  EXPECT_THROW(data::from_idx(folder_ / "none", images), Unavailable);
}

}  // namespace
}  // namespace gradus::bad_input_test
