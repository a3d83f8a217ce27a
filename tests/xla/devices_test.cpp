/// Several devices of one plugin, and the whole of a training on one: data, fit, checkpoints, code on disk.
#include <filesystem>
#include <map>
#include "gradus/base/input_file.h"
#include "tests/halves_on_devices.h"
#include "tests/test_directory.h"
#include "tests/xla/plugin.h"

namespace gradus::devices_test {
namespace {

using PluginDevices = testing_plugin::WithPlugin;

Tensor numbers(const Shape& shape, int seed = 1) { return random::normal(shape, {.seed = seed}); }

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  EXPECT_EQ(x.size(), y.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    most = std::max(most, static_cast<double>(std::abs(x[i] - y[i])));
  return most;
}

TEST_F(PluginDevices, TensorsMoveBetweenThem) {
  const Tensor x = numbers({5, 3});
  const Tensor y = x.to(device(1)).to(device(3)).to(device(0));
  EXPECT_EQ(y.device(), device(0));
  EXPECT_TRUE(bitwise_equal(y.to(cpu(0)), x));
  for (const DType dtype : all_dtypes) {
    const Tensor z = cast(x, dtype);
    EXPECT_TRUE(bitwise_equal(z.to(device(2)).to(device(1)).to(cpu(0)), z)) << dtype;
  }
  EXPECT_EQ(zeros({0, 4}, f32).to(device(1)).to(device(2)).to_vector<float>().size(), 0U);
  EXPECT_THROW(x.to({DeviceKind::plugin, 62}), Unavailable);
}

TEST_F(PluginDevices, GradientsCross) {
  const Tensor x = numbers({6});
  const auto f = [&](const Tensor& v) { return reduce_sum(square((exp(v).to(device(1)) * 3).to(device(2)) + 1)); };
  const auto plain = [](const Tensor& v) { return reduce_sum(square(exp(v) * 3 + 1)); };
  EXPECT_LT(largest_difference(gradient(f, x), gradient(plain, x)), 1e-2);
  EXPECT_EQ(gradient(f, x).device(), cpu(0));
}

std::vector<double> losses_on(Device a, Device b) {
  std::vector<double> all;
  for (const Tensor& loss : losses_of_halves(a, b)) all.push_back(loss.item());
  return all;
}

TEST_F(PluginDevices, AModelMayBeOnTwo) {
  const std::vector<double> here = losses_on(cpu(0), cpu(0));
  for (const auto& [a, b] : {std::pair{device(1), device(2)}, {cpu(0), device(3)}, {device(2), cpu(0)}}) {
    const std::vector<double> there = losses_on(a, b);
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5 * here[i]) << a << ' ' << b;
  }
}

/// Which of four numbers is the largest.
struct Toy {
  Tensor x = numbers({300, 4}), y = argmax(x);
  Dataset<2> training = data::from_tensor_slices(x, y).shuffle({.seed = 3}).batch(32).prefetch();
  SparseCategoricalCrossentropy loss{from_logits};
  static Sequential model() {
    set_seed(5);
    Sequential made{Dense(16, relu), Dense(4)};
    made.build({f32, {any_size, 4}});
    return made;
  }
};

/// In its lifetime new tensors are on `device`, in all threads.
class Everywhere {
 public:
  explicit Everywhere(const Device& device) { set_default_device(device); }
  ~Everywhere() { set_default_device(cpu(0)); }
};

struct Fitted {
  History history;
  Evaluation evaluation;
  std::vector<float> predicted;
};
Fitted fitted(const std::filesystem::path& checkpoints = {}) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer({.learning_rate = 0.02});
  Fitted all;
  all.history = fit(model, optimizer, toy.loss, toy.training,
                    {.epochs = 4, .metrics = {SparseCategoricalAccuracy()}, .verbose = false});
  all.evaluation = evaluate(model, toy.loss, toy.training, {.metrics = {SparseCategoricalAccuracy()}});
  all.predicted = predict(model, toy.x).to_vector<float>();
  if (!checkpoints.empty()) Checkpoints({.directory = checkpoints}, model, optimizer).save(7);
  return all;
}
std::vector<float> predicted_by(const std::filesystem::path& checkpoints) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer({.learning_rate = 0.02});
  EXPECT_EQ(Checkpoints({.directory = checkpoints}, model, optimizer).restore()->step, 7);
  return predict(model, toy.x).to_vector<float>();
}

TEST_F(PluginDevices, FitEvaluatePredictAndCheckpointsAreAsOnTheProcessor) {
  const EmptyTestDirectory folder;
  const Fitted here = fitted(folder.path() / "here");
  Fitted there;
  std::vector<float> here_there;
  {
    const Everywhere scope(device(1));
    done();
    there = fitted(folder.path() / "there");
    EXPECT_GT(done().runs, 40);
    here_there = predicted_by(folder.path() / "here");
  }
  for (std::size_t i = 0; i < here.history.loss.size(); ++i)
    EXPECT_NEAR(there.history.loss[i], here.history.loss[i], 1e-4 * here.history.loss[i]) << i;
  EXPECT_NEAR(there.evaluation.loss, here.evaluation.loss, 1e-4);
  const std::vector<float> there_here = predicted_by(folder.path() / "there");
  ASSERT_EQ(there.predicted.size(), here.predicted.size());
  for (std::size_t i = 0; i < here.predicted.size(); ++i) {
    EXPECT_NEAR(here_there[i], here.predicted[i], 1e-4) << i;
    EXPECT_NEAR(there_here[i], there.predicted[i], 1e-4) << i;
  }
}

std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      all[std::filesystem::relative(entry.path(), folder).string()] = read_text_file(entry.path());
  return all;
}

TEST_F(PluginDevices, CheckpointsAreTheSameFiles) {
  const EmptyTestDirectory folder;
  fitted(folder.path() / "here");
  {
    const Everywhere scope(device(1));
    Sequential model = Toy::model();
    Adam optimizer({.learning_rate = 0.02});
    done();
    ASSERT_EQ(Checkpoints({.directory = folder.path() / "here"}, model, optimizer).restore()->step, 7);
    for (const Variable& w : model.variables()) EXPECT_EQ(Tensor(w.value() + 0).device(), device(1));
    Checkpoints({.directory = folder.path() / "there"}, model, optimizer).save(7);
  }
  const auto here = files_of(folder.path() / "here"), there = files_of(folder.path() / "there");
  ASSERT_FALSE(here.empty());
  ASSERT_EQ(there.size(), here.size());
  for (const auto& [name, bytes] : here) {
    ASSERT_TRUE(there.contains(name)) << name;
    EXPECT_TRUE(there.at(name) == bytes) << name << " of " << bytes.size() << " bytes";
  }
}

TEST_F(PluginDevices, PrefetchBringsBatchesAhead) {
  const Everywhere scope(device(2));
  const Toy toy;
  done();
  std::int64_t batches = 0;
  for (const auto& [x, y] : toy.training) {
    EXPECT_NE(Tensor(x).observed().device_memory(), nullptr);
    EXPECT_EQ(Tensor(y).device(), device(2));
    ++batches;
  }
  const Done all = done();
  EXPECT_EQ(all.uploads, 2 * batches);
  EXPECT_EQ(all.waits, 0);
}

TEST_F(PluginDevices, MirroredReplicasAddUpAsThoseOfTheProcessor) {
  const auto trained = [](std::vector<Device> devices) {
    const Toy toy;
    Sequential model = Toy::model();
    SGD optimizer({.learning_rate = 0.1});
    const MirroredStrategy strategy({.devices = std::move(devices), .micro_shards = 4});
    return fit(model, optimizer, toy.loss, toy.training, {.epochs = 2, .strategy = strategy, .verbose = false}).loss;
  };
  const auto here = trained({cpu(0), cpu(1)}), there = trained({device(0), device(3)});
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4 * here[i]);
}

TEST_F(PluginDevices, CodeIsKeptInAFolderThatIsAskedFor) {
  const EmptyTestDirectory folder;
  setenv("GRADUS_XLA_CACHE", folder.path().c_str(), 1);
  const auto computed = [](const Device& on) {
    const DeviceScope scope(on);
    return function([](Tensor x) { return cumsum(sin(x) * 3) + 2; })(numbers({7, 3})).to_vector<float>();
  };
  // A second plugin of the same kind knows nothing of the first one's code in memory.
  const std::filesystem::path copy = folder.path() / "copy.so";
  std::filesystem::copy_file(testing_plugin::file(), copy);
  const Device other = load_plugin(copy.string(), "copy").front();
  done();
  const std::vector<float> first = computed(device());
  EXPECT_EQ(done().compilations, 1);
  EXPECT_EQ(computed(device()), first);
  EXPECT_EQ(done().compilations, 0) << "by text";
  std::filesystem::path kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".xla") kept = entry.path();
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(computed(other), first);
  EXPECT_EQ(done().compilations, 0) << "by the file";
  unsetenv("GRADUS_XLA_CACHE");
}

}  // namespace
}  // namespace gradus::devices_test
