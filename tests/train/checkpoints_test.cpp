/// Checkpoints: what comes back, what is kept, and that what is not whole is never taken.
#include "gradus/train/checkpoints.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <zlib.h>
#include "gradus/base/input_file.h"
#include "gradus/base/version.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/failing_calls.h"

namespace gradus::checkpoints_test {
namespace {

namespace fs = std::filesystem;

/// The files without the lock of the writer.
std::vector<fs::path> files_in(const fs::path& directory, const std::string& ending) {
  std::vector<fs::path> files;
  if (fs::exists(directory))
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().filename().string().ends_with(ending) && entry.path().filename() != ".writer")
        files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(Checkpoints, AllOfItComesBack) {
  const TestDirectory directory("checkpoints_all");
  Numbered saved, loaded;
  saved.set(7);
  loaded.set(1);
  saved.optimizer.variables()[0].assign(full({}, 42, i64));
  set_seed(3);
  next_seed();
  const std::uint64_t state = random_state();
  Checkpoints(in_shards(directory), saved.model, saved.optimizer).save(42, {.epoch = 3, .index = 5});
  EXPECT_GT(files_in(directory, ".safetensors").size(), 2u) << "several shards";
  set_seed(9);
  const auto restored = Checkpoints(in_shards(directory), loaded.model, loaded.optimizer).restore();
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->step, 42);
  EXPECT_EQ(restored->position, (Position{.epoch = 3, .index = 5}));
  EXPECT_EQ(loaded.value(), 7);
  EXPECT_EQ(loaded.optimizer.iterations(), 42);
  EXPECT_EQ(random_state(), state);
}

/// Removes the contract from the list of the only checkpoint, as version 1 wrote it.
void make_of_version_1(const fs::path& directory) {
  const fs::path file = files_in(directory, ".json").at(0);
  std::string list = read_text_file(file);
  const std::string line = text(" \"numeric_contract\": ", numeric_contract, ",\n");
  const std::size_t at = list.find(line);
  ASSERT_NE(at, std::string::npos) << list;
  list.erase(at, line.size());
  const std::size_t body = list.find('\n') + 1;
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(list.data() + body), list.size() - body);
  std::ofstream(file) << "gradus checkpoint 1 crc32 " << sum << '\n' << list.substr(body);
}

TEST(Checkpoints, OfAnotherNumericContractSaySoInOneLine) {
  const TestDirectory directory("checkpoints_contract");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  checkpoints.save(7);
  testing::internal::CaptureStderr();
  EXPECT_EQ(checkpoints.restore()->step, 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  make_of_version_1(directory);
  testing::internal::CaptureStderr();
  EXPECT_EQ(checkpoints.restore()->step, 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            text("gradus: ", directory.path().string(),
                 ": this training has the bits of version 1 of the numeric contract, and goes on by version ",
                 numeric_contract, "\n"));
  checkpoints.save(8);
  testing::internal::CaptureStderr();
  EXPECT_EQ(checkpoints.restore()->step, 8);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Checkpoints, NothingIsAnAnswer) {
  const TestDirectory directory("checkpoints_nothing");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  EXPECT_FALSE(checkpoints.restore().has_value());
  EXPECT_FALSE(fs::exists(directory.path())) << "looking makes no directory";
  fs::create_directories(directory.path());
  std::ofstream(directory.path() / "notes.txt") << "not mine";
  std::ofstream(directory.path() / "checkpoint-000001-step-1.0.safetensors") << "half";
  EXPECT_FALSE(checkpoints.restore().has_value());
  checkpoints.save(1);
  EXPECT_TRUE(fs::exists(directory.path() / "notes.txt"));
  EXPECT_TRUE(checkpoints.restore().has_value());
}

TEST(Checkpoints, KeepsTheNewest) {
  const TestDirectory directory("checkpoints_keep");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  for (const std::int64_t step : {10, 20, 5, 15}) {  // the newest is the last that was saved
    numbered.set(static_cast<double>(step));
    checkpoints.save(step);
  }
  const auto lists = files_in(directory, ".json");
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[1].filename(), "checkpoint-000004-step-15.json");
  for (const fs::path& shard : files_in(directory, ".safetensors"))
    EXPECT_TRUE(shard.filename().string().starts_with("checkpoint-000003") ||
                shard.filename().string().starts_with("checkpoint-000004"))
        << shard;
  EXPECT_EQ(checkpoints.restore()->step, 15);
  Checkpoints all({.directory = directory, .max_to_keep = 0}, numbered.model, numbered.optimizer);
  for (int i = 0; i < 5; ++i) all.save(i);
  EXPECT_EQ(files_in(directory, ".json").size(), 7u);
}

TEST(Checkpoints, InTheBackgroundAreTheValuesOfThatMoment) {
  const TestDirectory directory("checkpoints_background");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  for (int i = 1; i <= 10; ++i) {
    numbered.set(i);
    checkpoints.save_in_background(i);
    for (Variable& variable : numbered.model.variables()) variable.assign_add(ones(variable.shape()));
    EXPECT_EQ(numbered.model.variables()[1].value().to_vector<float>()[0], i + 1);
    checkpoints.wait();
    EXPECT_EQ(checkpoints.restore()->step, i);
    EXPECT_EQ(numbered.value(), i);
  }
}

/// One byte of any file changed, or any file cut off or gone: that checkpoint is passed over, the one before is taken.
TEST(Checkpoints, DamageIsFound) {
  const TestDirectory directory("checkpoints_damage");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  numbered.set(1);
  checkpoints.save(1);
  numbered.set(2);
  checkpoints.save(2);
  std::uint64_t random = 1;
  for (const std::string ending : {".json", ".safetensors"})
    for (const fs::path& file : files_in(directory, ending)) {
      if (!file.filename().string().starts_with("checkpoint-000002")) continue;
      std::ifstream in(file, std::ios::binary);
      const std::string good(std::istreambuf_iterator<char>(in), {});
      for (int i = 0; i < 12; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const std::size_t place = random % good.size();
        std::string bad = good;
        if (i < 8) bad[place] = static_cast<char>(bad[place] ^ 1 << (random >> 40) % 8);
        else if (i < 11) bad.resize(place);
        if (i < 11) std::ofstream(file, std::ios::binary) << bad;
        else fs::remove(file);
        const auto restored = checkpoints.restore();
        ASSERT_TRUE(restored.has_value());
        // A changed blank of a header changes nothing.
        EXPECT_EQ(numbered.value(), static_cast<double>(restored->step)) << file << " byte " << place;
        if (ending == ".json" || i >= 8) { EXPECT_EQ(restored->step, 1) << file << " byte " << place; }
      }
      std::ofstream(file, std::ios::binary) << good;
    }
  EXPECT_EQ(checkpoints.restore()->step, 2);
}

/// A list or a file of arrays that is there and cannot be read: a directory, a pipe that nobody writes, a device
/// without an end, what gives an error of input and output. The checkpoint before is taken, and the file is named.
TEST(Checkpoints, WhatCannotBeReadIsPassedOver) {
  const TestDirectory directory("checkpoints_unreadable");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  for (int step : {1, 2}) {
    numbered.set(step);
    checkpoints.save(step);
  }
  const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>> kinds{
      {"is a directory", [](const fs::path& file) { fs::create_directory(file); }},
      {"is a pipe", [](const fs::path& file) { ASSERT_EQ(mkfifo(file.c_str(), 0600), 0); }},
      {"is a device", [](const fs::path& file) { fs::create_symlink("/dev/zero", file); }},
      {"Input/output error", [](const fs::path& file) { fs::create_symlink("/proc/self/mem", file); }},
      {"No such file", [](const fs::path& file) { fs::create_symlink("nowhere", file); }}};
  for (const std::string ending : {".json", ".safetensors"})
    for (const fs::path& file : files_in(directory, ending)) {
      if (!file.filename().string().starts_with("checkpoint-000002")) continue;
      const fs::path aside = directory.path() / "aside";
      for (const auto& [why, put] : kinds) {
        fs::rename(file, aside);
        put(file);
        testing::internal::CaptureStderr();
        const auto restored = checkpoints.restore();
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(restored && restored->step == 1 && numbered.value() == 1) << file << ' ' << why;
        expect_says(said, "this checkpoint is passed over: " + file.string() + ": ");
        expect_says(said, why);
        fs::remove_all(file);
        fs::rename(aside, file);
      }
    }
  EXPECT_EQ(checkpoints.restore()->step, 2);
}

TEST(Checkpoints, OfAnotherModelChangeNothing) {
  const TestDirectory directory("checkpoints_other");
  Numbered numbered;
  Checkpoints(in_shards(directory), numbered.model, numbered.optimizer).save(1);
  const auto refused = [&](Module& model, Optimizer& optimizer) {
    const Tensor before = model.variables()[0];
    const std::string message =
        error_of<InvalidArgument>([&] { Checkpoints(in_shards(directory), model, optimizer).restore(); });
    EXPECT_TRUE(bitwise_equal(before, model.variables()[0].value()));
    return message;
  };
  Adam adam, other_adam;
  SGD sgd;
  Sequential wider{Dense(65, relu), Dense(8), Dense(1)};
  wider.build({f32, {any_size, 32}});
  expect_says(refused(wider, adam), "f32 (32, 65)");
  Sequential deeper{Dense(64, relu), Dense(8), Dense(1), Dense(1)};
  deeper.build({f32, {any_size, 32}});
  expect_says(refused(deeper, other_adam), "dense_3");
  expect_says(refused(numbered.model, sgd), "the program has optimizer SGD, the checkpoint Adam; go on with Adam");
  Sequential unbuilt{Dense(1)};
  expect_says(error_of<InvalidArgument>([&] { Checkpoints(in_shards(directory), unbuilt, sgd).restore(); }), "built");
  expect_says(error_of<InvalidArgument>([&] { Checkpoints(in_shards(directory), unbuilt, sgd).save(1); }), "built");
}

TEST(Checkpoints, RefuseBadOptions) {
  Numbered n;
  const auto with = [&](CheckpointOptions options) {
    return error_of<InvalidArgument>([&] { Checkpoints(std::move(options), n.model, n.optimizer); });
  };
  expect_says(with({}), "directory");
  expect_says(with({.directory = "x", .max_to_keep = -1}), "max_to_keep");
  expect_says(with({.directory = "x", .every_steps = -1}), "every_steps");
  expect_says(with({.directory = "x", .max_shard_bytes = 0}), "max_shard_bytes");
  const TestDirectory directory("checkpoints_bad");
  expect_says(error_of<InvalidArgument>([&] { Checkpoints({directory}, n.model, n.optimizer).save(-1); }), "step");
  fs::create_directories(directory.path());
  std::ofstream(directory.path() / "file") << 1;
  expect_says(error_of<Unavailable>([&] { Checkpoints({directory.path() / "file"}, n.model, n.optimizer).save(1); }),
              "file");
}

/// Each write, fsync and rename of a saving fails once, for each kind of reason.
TEST(Checkpoints, EveryCallMayFail) {
  using Kind = FailingCalls::Kind;
  const TestDirectory directory("checkpoints_calls");
  Numbered numbered, loaded;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  std::int64_t step = 1;
  numbered.set(1);
  checkpoints.save(step);
  for (const Kind kind : {Kind::write, Kind::fsync, Kind::rename}) {
    int calls = 1;
    for (int number = 0; number < calls; ++number) {
      numbered.set(static_cast<double>(step + 1));
      std::string message;
      {
        const FailingCalls failing({.kind = kind, .number = number, .reason = number % 2 ? EIO : ENOSPC});
        message = error_of<Error>([&] { checkpoints.save(step + 1); });
      }
      expect_says(message, directory.path().string());
      EXPECT_EQ(files_in(directory, ".part").size(), 0u);
      const auto restored = Checkpoints(in_shards(directory), loaded.model, loaded.optimizer).restore();
      ASSERT_TRUE(restored.has_value());
      EXPECT_EQ(restored->step, step);
      EXPECT_EQ(loaded.value(), static_cast<double>(step));
      const FailingCalls counting({});
      checkpoints.save(++step);  // the next attempt succeeds
      calls = FailingCalls::calls(kind);
    }
    EXPECT_GT(calls, 4);
  }
}

TEST(Checkpoints, OnAFullDisk) {
  const TestDirectory directory("checkpoints_full");
  Numbered numbered, loaded;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  numbered.set(1);
  checkpoints.save(1);
  numbered.set(2);
  for (std::int64_t free = 0;; free = free * 5 / 4 + 100) {
    ASSERT_LT(free, 1 << 20) << "it never succeeded";
    try {
      const FailingCalls full({.free_bytes = free});
      checkpoints.save_in_background(2);
      checkpoints.wait();
      break;
    } catch (const ResourceExhausted&) {}
    EXPECT_EQ(Checkpoints(in_shards(directory), loaded.model, loaded.optimizer).restore()->step, 1);
    EXPECT_EQ(loaded.value(), 1);
    EXPECT_EQ(files_in(directory, "").size(),
              files_in(directory, ".json").size() + files_in(directory, ".safetensors").size());
    EXPECT_EQ(files_in(directory, ".json").size(), 1u);
  }
  EXPECT_EQ(checkpoints.restore()->step, 2);
}

TEST(Checkpoints, WhatFailsInTheBackgroundIsSaidOnce) {
  const TestDirectory directory("checkpoints_failing_background");
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  {
    const FailingCalls failing({.kind = FailingCalls::Kind::rename, .number = 0, .reason = EIO});
    checkpoints.save_in_background(1);
    expect_says(error_of<Unavailable>([&] { checkpoints.save_in_background(2); }), "cannot be put in place");
  }
  checkpoints.save_in_background(3);
  checkpoints.wait();
  EXPECT_EQ(checkpoints.restore()->step, 3);
}

/// However many arrays and files a checkpoint has.
TEST(Checkpoints, WhatFailsIsSaidInOneLine) {
  const TestDirectory directory("checkpoints_one_line");
  const auto lines_of = [&](const std::function<void()>& work) {
    testing::internal::CaptureStderr();
    {
      const FailingCalls full({.free_bytes = 1000});
      work();
    }
    const std::string said = testing::internal::GetCapturedStderr();
    return std::count(said.begin(), said.end(), '\n');
  };
  Numbered numbered;
  std::string message;
  const auto thrown = lines_of([&] {
    message = error_of<ResourceExhausted>([&] {
      const Tensor x = zeros({8, 32});
      fit(numbered.model, numbered.optimizer, MeanSquaredError(), data::from_tensor_slices(x, zeros({8, 1})).batch(2),
          {.epochs = 3, .checkpoints = in_shards(directory), .verbose = false});
    });
  });
  EXPECT_EQ(thrown, 0) << "who throws does not print";
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  const auto printed = lines_of([&] {  // nobody waits
    Checkpoints(in_shards(directory), numbered.model, numbered.optimizer).save_in_background(1);
  });
  EXPECT_EQ(printed, 1);
}

}  // namespace
}  // namespace gradus::checkpoints_test
