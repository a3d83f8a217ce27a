/// Several steps in one object: they have one state, and the bits of the library's steps.
#include <gtest/gtest.h>
#include <fstream>
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "tests/export/loaded_object.h"

namespace gradus::together_test {
namespace {

/// A classifier of four classes, its training step, what it predicts of one row, and a count of its runs.
struct Network {
  Sequential model{Dense(32, relu), Dropout(0.2), Dense(4)};
  Adam optimizer{{.learning_rate = 0.01}};
  Network() {
    set_seed(5);
    model.build({f32, {any_size, 16}});
  }
  auto train() {
    return function([this](Tensor x, Tensor y) {
      GradientTape tape;
      Loss loss = Loss::mean(sparse_categorical_crossentropy(y, model(x, training), from_logits));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
      return loss;
    });
  }
  auto predict() {
    return function([this](Tensor x) { return model(x, inference); });
  }
};
const std::vector<Spec> batch{{f32, {8, 16}}, {i32, {8}}};
const std::vector<Spec> row{{f32, {1, 16}}};

std::string problem_of(const auto& attempt) {
  try {
    attempt();
  } catch (const Error& error) { return error.what(); }
  return "nothing was thrown";
}

TEST(ExportTogether, StepsShareOneState) {
  const Threads one(1);
  Network net;
  const auto train = net.train();
  const auto predict = net.predict();
  const ObjectFiles files =
      export_objects(export_folder() / "net", {{"train", train, batch}, {"predict", predict, row}});
  const LoadedObject object(files);
  ASSERT_TRUE(object.is_supported());
  EXPECT_EQ(object.function<void*>(), nullptr);
  const auto train_c = object.function<float (*)(void*, const float*, const std::int32_t*)>("_train");
  const auto predict_c = object.function<void (*)(void*, const float*, float*)>("_predict");
  for (int k = 0; k < 20; ++k) {
    const auto seed = static_cast<std::uint64_t>(k);
    const Tensor x = random::normal({8, 16}, {.seed = seed}), y = random::integers({8}, {.high = 4, .seed = seed}),
                 one_row = x.rows(0, 1);
    ASSERT_EQ(train_c(object.state(), x.span<float>().data(), y.span<std::int32_t>().data()),
              static_cast<float>(train(x, y).item()));
    float scores[4];
    predict_c(object.state(), one_row.span<float>().data(), scores);
    const Tensor expected = predict(one_row);
    ASSERT_EQ(std::memcmp(scores, expected.span<float>().data(), sizeof scores), 0) << "step " << k;
  }
  object.expect_equals(net.model.variables() + net.optimizer.variables());
}

/// Code that both reach is in the object once.
TEST(ExportTogether, OneObjectIsSmallerThanTwo) {
  Network net;
  const auto train = net.train();
  const auto predict = net.predict();
  const auto folder = export_folder();
  const auto code = [](const ObjectFiles& files) { return object::code_bytes(read_text_file(files.object)); };
  const std::int64_t both = code(export_objects(folder / "net", {{"train", train, batch}, {"predict", predict, row}})),
                     first = code(train.export_object(folder / "learn", batch)),
                     second = code(predict.export_object(folder / "tell", row));
  EXPECT_LT(both, first + second - 10'000);
}

TEST(ExportTogether, WeightsGoToOneFile) {
  const Threads one(1);
  const Tensor table = random::normal({64, 32}, {.seed = 1});  // captured by both: once in the file
  Variable scale(full({32}, 2), "scale");
  const auto up = function([&](Tensor x) {
    scale.assign(scale.value() * 2);
    return matmul(x, table) * scale.value();
  });
  const auto sum = function([&](Tensor x) { return reduce_sum(matmul(x, table) * scale.value()); });
  const auto folder = export_folder();
  const std::vector<Spec> specs{{f32, {1, 64}}};
  const ObjectFiles files =
      export_objects(folder / "both", {{"up", up, specs}, {"sum", sum, specs}}, {.weights = folder / "both.weights"});
  EXPECT_LT(std::filesystem::file_size(files.weights), 64 * 32 * 4 + 2048);
  const LoadedObject object(files);
  const Tensor x = random::normal({1, 64}, {.seed = 2});
  float scaled[32];
  object.function<void (*)(void*, const float*, float*)>("_up")(object.state(), x.span<float>().data(), scaled);
  const Tensor expected = up(x);
  EXPECT_EQ(std::memcmp(scaled, expected.span<float>().data(), sizeof scaled), 0);
  EXPECT_EQ(object.function<float (*)(void*, const float*)>("_sum")(object.state(), x.span<float>().data()),
            static_cast<float>(sum(x).item()));
}

/// The text of `failure` names the step.
TEST(ExportTogether, ChecksOfEachStepHaveNumbersOfTheirOwn) {
  const auto pick = function([](Tensor x, Tensor i) { return reduce_sum(gather(x, i)); });
  const auto last = function([](Tensor x, Tensor i) { return reduce_sum(gather(x, i) * 2); });
  const std::vector<Spec> specs{{f32, {4}}, {i32, {2}}};
  const ObjectFiles files = export_objects(export_folder() / "both", {{"pick", pick, specs}, {"last", last, specs}});
  const LoadedObject object(files);
  const float x[] = {1, 2, 3, 4};
  const std::int32_t right[] = {0, 3}, wrong[] = {0, 4};
  using Pick = float (*)(void*, const float*, const std::int32_t*);
  const auto run = [&](const char* name, const std::int32_t* i) {
    return object.function<Pick>(name)(object.state(), x, i);
  };
  EXPECT_EQ(run("_pick", right), 5);
  EXPECT_TRUE(std::isnan(run("_pick", wrong)));
  EXPECT_EQ(object.failure(), 1);
  EXPECT_TRUE(std::isnan(run("_last", wrong)));
  EXPECT_EQ(object.failure(), 2);
  EXPECT_EQ(run("_last", right), 10);
  EXPECT_EQ(object.failure(), 0);
  const std::string header = read_text_file(files.header);
  EXPECT_NE(header.find("   1: pick: "), std::string::npos) << header;
  EXPECT_NE(header.find("   2: last: "), std::string::npos) << header;
}

TEST(ExportTogether, TheHeaderIsPlainC) {
  Network net;
  const auto train = net.train();
  const auto predict = net.predict();
  const auto folder = export_folder();
  export_objects(folder / "net", {{"train", train, batch}, {"predict", predict, row}});
  std::ofstream(folder / "c.c") << R"(#include "net.h"
int use(struct net_state* state, const float* x, const int32_t* y, float* scores);
int use(struct net_state* state, const float* x, const int32_t* y, float* scores) {
  net_init(state);
  net_predict(state, x, scores);
  return net_supported() && net_train(state, x, y) > 0 && state->dense_kernel[0] != 0;
}
)";
  for (const char* way : {"cc -std=c99", "c++ -x c++"})
    EXPECT_EQ(
        std::system(text(way, " -Wall -Wextra -pedantic -Werror -fsyntax-only ", (folder / "c.c").string()).c_str()),
        0);
}

TEST(ExportTogether, MistakesAreTold) {
  const auto folder = export_folder();
  const auto twice = function([](Tensor x) { return x * 2; });
  const std::vector<Spec> specs{{f32, {2}}};
  const auto says = [&](const std::vector<ExportedStep>& steps, const std::string& words) {
    const std::string problem = problem_of([&] { export_objects(folder / "net", steps); });
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  };
  says({}, "no step is given");
  says({{"", twice, specs}}, "of letters, digits and _");
  says({{"a-b", twice, specs}}, "`a-b` ends the name of a function in C");
  says({{"init", twice, specs}}, "net_init is what every object declares already");
  says({{"a", twice, specs}, {"a", twice, specs}}, "two steps have the name `a`");
  says({{"a", twice, specs}, {"b", twice}}, "no spec is given");
  says({{"a", twice, specs}, {"b", twice, {{f32, {any_size}}}}}, "known sizes");
}

}  // namespace
}  // namespace gradus::together_test
