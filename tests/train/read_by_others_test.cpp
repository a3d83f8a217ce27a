/// Files for other programs. With GRADUS_WRITTEN they stay in that directory, beside what is expected of them, for
/// check_files.py; here their frames are checked.
#include <gtest/gtest.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include "gradus/formats/crc32c.h"
#include "gradus/formats/npz.h"
#include "gradus/formats/png_writer.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/train/fit.h"
#include "gradus/train/tensorboard.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::read_by_others_test {
namespace {

namespace fs = std::filesystem;

class ReadByOthers : public ::testing::Test {
 protected:
  ReadByOthers() : temporary_("read_by_others") {
    const char* kept = std::getenv("GRADUS_WRITTEN");
    directory = kept ? fs::path(kept) : temporary_.path();
    fs::create_directories(directory);
  }
  void expect_of(const std::string& name, const nlohmann::json& expected) const {
    std::ofstream(directory / (name + ".json")) << expected.dump(1);
  }
  fs::path directory;

 private:
  TestDirectory temporary_;
};

/// Numbers as JSON has them.
nlohmann::json listed(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

Tensor picture() { return reshape(cast(mod(range(5 * 7 * 3) * 37, 256), u8), {5, 7, 3}); }

/// The events of all files in `directory`, each record's checksums compared.
std::vector<std::string> records_in(const fs::path& directory) {
  std::vector<std::string> records;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(all));
    for (std::size_t at = 0; at < all.size();) {
      std::uint64_t length = 0;
      std::uint32_t sum = 0;
      std::memcpy(&length, all.data() + at, 8);
      std::memcpy(&sum, all.data() + at + 8, 4);
      EXPECT_EQ(sum, masked_crc32c(bytes.subspan(at, 8)));
      if (length > all.size() - at - 16) {
        ADD_FAILURE() << "a record is longer than its file";
        break;
      }
      std::memcpy(&sum, all.data() + at + 12 + length, 4);
      EXPECT_EQ(sum, masked_crc32c(bytes.subspan(at + 12, length)));
      records.push_back(all.substr(at + 12, length));
      at += 16 + length;
    }
  }
  return records;
}

TEST(Crc32c, IsThatOfCastagnoli) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits))), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST_F(ReadByOthers, EventsOfATraining) {
  set_seed(1);
  const Tensor x = random::normal({40, 3}, {.seed = 1});
  const auto data = data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).batch(8);
  Sequential model{Dense(6, relu, {.name = "hidden"}), Dense(1, linear, {.name = "out"})};
  Adam optimizer({.learning_rate = 0.01});
  const fs::path run = directory / "events";
  fs::remove_all(run);
  nlohmann::json kernels = nlohmann::json::array();
  TensorBoardOptions options{.histogram_freq = 2, .update_freq = 4};
  options.write = [&](SummaryWriter& writer, const EpochLog& log) {
    if (log.epoch == 1) writer.image("picture", log.epoch, picture());
    if (log.epoch == 1) writer.text("note", log.epoch, "*first* epoch");
    if (log.epoch % 2 == 0) kernels.push_back(listed(log.model.variables()["hidden/kernel"]));
  };
  const History history = fit(model, optimizer, MeanSquaredError(), data,
                              {.epochs = 4,
                               .metrics = {MeanAbsoluteError()},
                               .validation = data,
                               .callbacks = {tensorboard(run, options)},
                               .verbose = false});
  expect_of("events", {{"loss", history.loss},
                       {"validation_loss", history.validation_loss},
                       {"mean_absolute_error", history["mean_absolute_error"]},
                       {"validation_mean_absolute_error", history["validation_mean_absolute_error"]},
                       {"learning_rate", 0.01},
                       {"batch_steps", {4, 8, 12, 16, 20}},
                       {"kernels", kernels},
                       {"picture", listed(picture())}});
  // The version, the graph, 4 scalars an epoch, 4 histograms in two epochs, a picture, a text, 5 losses of steps.
  EXPECT_EQ(records_in(run / "train").size(), 2u + 4 * 4 + 2 * 4 + 1 + 1 + 5);
  EXPECT_EQ(records_in(run / "validation").size(), 1u + 4 * 2);
}

TEST_F(ReadByOthers, ArchivesOfArrays) {
  NamedTensors arrays;
  nlohmann::json expected;
  for (const DType t : {f64, f32, f16, i64, i32, i16, i8, u8, u16, u32, u64, boolean}) {
    const Tensor x = equal(mod(range(6), 2), 0);
    arrays.emplace_back(text("group/", t), reshape(t == boolean ? x : cast(range(6), t), {2, 3}));
  }
  arrays.emplace_back("scalar", constant(2.5));
  arrays.emplace_back("nothing", zeros({0, 4}, f64));
  save_npz(directory / "arrays.npz", arrays);
  for (const auto& [name, value] : arrays)
    expected[name] = {{"values", listed(value)},
                      {"shape", std::vector<std::int64_t>(value.shape().begin(), value.shape().end())}};
  expect_of("arrays", expected);
  const NamedTensors read = load_npz(directory / "arrays.npz");
  ASSERT_EQ(read.size(), arrays.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].first, arrays[i].first);
    EXPECT_TRUE(bitwise_equal(read[i].second, arrays[i].second)) << arrays[i].first;
  }
}

TEST_F(ReadByOthers, Pictures) {
  expect_of("pictures", {{"rgb", listed(picture())}});
  save_png(directory / "rgb.png", picture());
  save_png(directory / "grey.png", full({3, 4}, 200, u8));
  EXPECT_THROW(save_png(directory / "bad.png", zeros({3, 4, 3})), InvalidArgument);
  EXPECT_THROW(save_png(directory / "bad.png", full({3, 4, 5}, 1, u8)), InvalidArgument);
  EXPECT_THROW(save_png(directory / "bad.png", full({0, 4, 3}, 1, u8)), InvalidArgument);
  EXPECT_FALSE(fs::exists(directory / "bad.png"));
}

}  // namespace
}  // namespace gradus::read_by_others_test
