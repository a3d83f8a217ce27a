/// Data sets in the formats in which they were published: files as those that can be downloaded, with fewer examples.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "gradus/data/files.h"
#include "gradus/data/published.h"
#include "gradus/formats/idx.h"
#include "gradus/formats/npy.h"
#include "gradus/formats/npz.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "tests/data/readings.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::published_test {
namespace {

class Published : public testing::Test {
 protected:
  void write(const std::filesystem::path& name, const std::string& contents) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }
  /// n images whose first pixel is their number, and labels number % 10.
  static Tensor images(std::int64_t n) { return cast(numbered_images(n), u8); }
  static Tensor numbered_images(std::int64_t n) {
    Numbers numbers(static_cast<std::size_t>(n * 28 * 28));
    for (std::int64_t i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i * 28 * 28)] = static_cast<std::int32_t>(i);
    return tensor_of_numbers(numbers, {n, 28, 28});
  }
  static Tensor labels(std::int64_t n) {
    return cast(mod(tensor_of_numbers(counted(static_cast<int>(n)), {n}), 10), u8);
  }
  void write_mnist() {
    save_idx(folder_ / "train-images-idx3-ubyte", images(12));
    save_idx(folder_ / "train-labels-idx1-ubyte", labels(12));
    save_idx(folder_ / "t10k-images-idx3-ubyte", images(3));
    save_idx(folder_ / "t10k-labels-idx1-ubyte", labels(3));
  }
  const EmptyTestDirectory directory_;
  const std::filesystem::path& folder_ = directory_.path();
};

void expect_digits(const Dataset<2>& digits, std::int64_t n) {
  EXPECT_EQ(digits.cardinality(), n);
  EXPECT_EQ(digits.element_spec(), (std::array<Spec, 2>{Spec{u8, {28, 28}}, Spec{i32, {}}}));
  std::int64_t i = 0;
  for (auto [image, label] : digits) {
    EXPECT_EQ(image.span<std::uint8_t>()[0], i);
    EXPECT_EQ(label.item(), i++ % 10);
  }
}

TEST_F(Published, MnistFromIdxFiles) {
  write_mnist();
  for (const auto& [train, test] : {data::mnist(folder_), data::fashion_mnist(folder_)}) {
    expect_digits(train, 12);
    expect_digits(test, 3);
  }
}

TEST_F(Published, MnistFromKerassArchive) {
  save_npz(folder_ / "mnist.npz",
           {{"x_train", images(12)}, {"y_train", labels(12)}, {"x_test", images(3)}, {"y_test", labels(3)}});
  const auto [train, test] = data::mnist(folder_);
  expect_digits(train, 12);
  expect_digits(test, 3);
  save_npz(folder_ / "fashion_mnist.npz", {{"x_train", images(1)}});
  expect_error<DataError>([&] { data::fashion_mnist(folder_); }, {"fashion_mnist.npz: there is no array `y_train`"});
}

TEST_F(Published, MnistThatIsNone) {
  expect_error<Unavailable>([&] { data::mnist(folder_); },
                            {"mnist: ", "holds neither train-images-idx3-ubyte nor mnist.npz"});
  write_mnist();
  save_idx(folder_ / "train-labels-idx1-ubyte", labels(11));
  expect_error<DataError>([&] { data::mnist(folder_); }, {"12 images and 11 labels"});
  save_idx(folder_ / "train-labels-idx1-ubyte", full({12}, 10, u8));
  expect_error<DataError>([&] { data::mnist(folder_); }, {"label 0 is 10, but there are 10 classes"});
  save_idx(folder_ / "train-images-idx3-ubyte", full({12, 32, 32}, 0, u8));
  expect_error<DataError>([&] { data::mnist(folder_); }, {"expected images u8[n,28,28], found u8[12,32,32]"});
}

TEST_F(Published, ArraysThatAreMappedIntoMemory) {
  save_npy(folder_ / "x.npy", numbered_rows(50, 3));
  save_npy(folder_ / "y.npy", numbered_rows(50, 1));
  const auto rows_of = [](const Dataset<2>& dataset) {
    return read_all(dataset.shuffle({.seed = 1}).map([](Tensor x, Tensor y) { return x * 2 + y; }).batch(8));
  };
  EXPECT_EQ(rows_of(data::from_tensor_slices(map_npy(folder_ / "x.npy"), map_npy(folder_ / "y.npy"))),
            rows_of(data::from_npy(folder_ / "x.npy", folder_ / "y.npy")));
}

/// A record: labels, then red, green and blue planes, whose pixel p is (p + shift) % 256, (p + shift + 1) % 256 ...
std::string cifar_record(const std::string& labels, int shift) {
  std::string record = labels;
  for (int colour = 0; colour < 3; ++colour)
    for (int pixel = 0; pixel < 1024; ++pixel) record += static_cast<char>(pixel + shift + colour);
  return record;
}

void expect_image(const Tensor& image, int shift) {
  ASSERT_EQ(image.spec(), (Spec{u8, {32, 32, 3}}));
  const auto bytes = image.span<std::uint8_t>();
  for (int pixel = 0; pixel < 1024; ++pixel)
    for (int colour = 0; colour < 3; ++colour)
      ASSERT_EQ(bytes[static_cast<std::size_t>(pixel * 3 + colour)], (pixel + shift + colour) % 256) << pixel;
}

TEST_F(Published, Cifar10) {
  const std::filesystem::path inner = "cifar-10-batches-bin";
  for (int i = 1; i <= 5; ++i)
    write(inner / text("data_batch_", i, ".bin"),
          cifar_record(std::string(1, static_cast<char>(i)), i) + cifar_record(std::string(1, '\0'), 10 * i));
  write(inner / "test_batch.bin", cifar_record("\x09", 7));
  for (const auto& folder : {folder_, folder_ / inner}) {
    const auto [train, test] = data::cifar10(folder);
    EXPECT_EQ(train.cardinality(), 10);
    EXPECT_EQ(test.cardinality(), 1);
    int i = 0;
    for (auto [image, label] : train) {
      const int file = i / 2 + 1;
      expect_image(image, i % 2 ? 10 * file : file);
      EXPECT_EQ(label.item(), i % 2 ? 0 : file);
      ++i;
    }
    expect_image(test.first()[0], 7);
    EXPECT_EQ(test.first()[1].item(), 9);
  }
  write(inner / "data_batch_3.bin", cifar_record("\x03", 3) + "more");
  expect_error<DataError>([&] { data::cifar10(folder_); },
                          {"data_batch_3.bin: 3077 bytes are no whole records of 3073 bytes"});
  write(inner / "data_batch_3.bin", cifar_record("\x01", 3) + cifar_record("\x0a", 3));
  expect_error<DataError>([&] { data::cifar10(folder_); },
                          {"data_batch_3.bin: byte 3073: the label is 10, but there are 10 classes"});
  std::filesystem::remove(folder_ / inner / "data_batch_3.bin");
  expect_error<Unavailable>([&] { data::cifar10(folder_); },
                            {"holds neither data_batch_3.bin nor cifar-10-batches-bin/data_batch_3.bin"});
}

TEST_F(Published, Cifar100) {
  write("train.bin", cifar_record("\x13\x63", 1) + cifar_record("\x02\x05", 2));
  write("test.bin", cifar_record("\x01\x04", 3));
  const auto labels_of = [](const Dataset<2>& dataset) {
    return values(dataset.map([](Tensor, Tensor label) { return label; }));
  };
  EXPECT_EQ(labels_of(data::cifar100(folder_).train), (Numbers{99, 5}));
  EXPECT_EQ(labels_of(data::cifar100(folder_, data::Cifar100Labels::coarse).train), (Numbers{19, 2}));
  EXPECT_EQ(labels_of(data::cifar100(folder_).test), (Numbers{4}));
  expect_image(data::cifar100(folder_).test.first()[0], 3);
}

}  // namespace
}  // namespace gradus::published_test
