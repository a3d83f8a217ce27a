/// Training steps as object files: the bits of the library's steps on one thread.
#include "tests/export/classifier.h"
#include "tests/export/loaded_object.h"
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <fstream>
#include "gradus/backend/cpu/processors.h"
#include "gradus/base/version.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/control.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/incomplete.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "tests/floating_point_states.h"

namespace gradus::training_test {
namespace {

/// Steps of both, on the same batches.
template <class M>
void expect_same_training(M model, Optimizer optimizer, const Shape& input, std::int64_t classes, int steps,
                          ObjectOptions options = {}) {
  const Threads one(1);
  set_seed(3);
  model.build({f32, input});
  auto step = classifier_step(model, optimizer);
  const Spec labels{i32, {input[0]}};
  const ObjectFiles files = step.export_object(export_folder() / "step", {{f32, input}, labels}, options);
  const LoadedObject object(files);
  ASSERT_TRUE(object.is_supported());
  for (int k = 0; k < steps; ++k) {
    const auto seed = static_cast<std::uint64_t>(k);
    const Tensor x = random::normal(input, {.seed = seed}),
                 y = random::integers({input[0]}, {.high = classes, .seed = seed});
    const float theirs = object.step(x.span<float>().data(), y.span<std::int32_t>().data());
    ASSERT_EQ(object.failure(), 0);
    const auto ours = static_cast<float>(step(x, y).item());
    ASSERT_EQ(ours, theirs) << "step " << k;
  }
  object.expect_equals(model.variables() + optimizer.variables());
}

TEST(Export, StepsOfDenseLayersHaveTheBitsOfTheLibrary) {
  expect_same_training(Sequential{Dense(32, relu), Dense(4)}, SGD({.learning_rate = 0.1, .momentum = 0.9}), {64, 16}, 4,
                       100);
}

TEST(Export, StepsForAvx2HaveTheSameBits) {
  if (!cpu_backend::is_own(cpu_backend::Isa::avx2)) GTEST_SKIP() << "this processor is of another architecture";
  expect_same_training(Sequential{Dense(32, relu), Dense(4)}, Adam({.learning_rate = 0.01}), {64, 16}, 4, 20,
                       {.instruction_set = "avx2"});
}

TEST(Export, StepsOfConvolutionsAndPoolingHaveTheBitsOfTheLibrary) {
  expect_same_training(Sequential{Conv2D(8, 3, {.activation = relu}), MaxPooling2D(2), BatchNormalization(),
                                  Conv2D(16, 3, {.strides = 2, .activation = relu}), Flatten(), Dense(5)},
                       Adam({.learning_rate = 0.01}), {8, 14, 14, 3}, 5, 100);
}

TEST(Export, StepsWithDropoutDrawTheNumbersOfTheLibrary) {
  expect_same_training(Sequential{Dense(32, relu), Dropout(0.5), Dense(4)}, SGD({.learning_rate = 0.1}), {16, 8}, 4,
                       100);
}

TEST(Export, StepsOfRecurrentLayersHaveTheBitsOfTheLibrary) {
  expect_same_training(Sequential{LSTM(16), Dense(3)}, Adam({.learning_rate = 0.01}), {8, 12, 5}, 3, 100);
}

TEST(Export, StepsOfAttentionHaveTheBitsOfTheLibrary) {
  expect_same_training(Model(AttentionClassifier()), Adam({.learning_rate = 0.01}), {4, 12, 6}, 3, 10);
}

TEST(Export, SchedulesAndClippingComeAlong) {
  expect_same_training(
      Sequential{Dense(16, tanh), Dense(4)},
      Adam({.learning_rate = CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 50}), .global_clipnorm = 0.5}),
      {16, 8}, 4, 100);
}

TEST(Export, MixedPrecisionAndItsLossScaleComeAlong) {
  Sequential model{Dense(16, relu), Dense(4)};
  model.set_policy(mixed_float16);
  expect_same_training(model, Adam({.learning_rate = 0.01}), {16, 8}, 4, 100);
}

TEST(Export, ABudgetOfBytesHoldsForObjects) {
  const auto export_with = [](std::size_t max_bytes) {
    const auto f = function([](Tensor x) { return reduce_sum(matmul(matmul(x, x), x)); }, {.max_bytes = max_bytes});
    f.export_object(export_folder() / "f", {{f32, {64, 64}}});
  };
  EXPECT_NO_THROW(export_with(std::size_t{1} << 20));
  EXPECT_THROW(export_with(std::size_t{1} << 10), ResourceExhausted);
}

TEST(Export, WrongLabelsChangeNothing) {
  const Threads one(1);
  Sequential model{Dense(8, relu), Dense(4)};
  model.build({f32, {4, 3}});
  SGD optimizer({.learning_rate = 0.1, .momentum = 0.9});
  const auto step = classifier_step(model, optimizer);
  const LoadedObject object(step.export_object(export_folder() / "step", {{f32, {4, 3}}, {i32, {4}}}));
  const std::vector<float> x(12, 0.5F);
  const std::vector<std::int32_t> right{0, 1, 2, 3}, wrong{0, 1, 4, 3};
  EXPECT_FALSE(std::isnan(object.step(x.data(), right.data())));
  const std::vector<std::byte> before(object.state(), object.state() + object.layout().bytes);
  EXPECT_TRUE(std::isnan(object.step(x.data(), wrong.data())));
  EXPECT_EQ(object.failure(), 1);
  for (const StateField& field : object.layout().fields)
    EXPECT_EQ(std::memcmp(before.data() + field.offset, object.state() + field.offset,
                          static_cast<std::size_t>(bytes_of(field.spec))),
              0)
        << field.name;
  EXPECT_FALSE(std::isnan(object.step(x.data(), right.data())));
  EXPECT_EQ(object.failure(), 0);
}

std::string problem_of(const auto& attempt) {
  try {
    attempt();
  } catch (const Error& error) { return error.what(); }
  return "";
}

TEST(Export, AStateThatAProgramHasWrittenComesBack) {
  const Threads one(1);
  const auto folder = export_folder();
  Sequential model{Dense(8, relu), Dropout(0.2), Dense(4)};
  model.build({f32, {4, 3}});
  Adam optimizer({.learning_rate = 0.1});
  const auto step = classifier_step(model, optimizer);
  const ObjectFiles files = step.export_object(folder / "step", {{f32, {4, 3}}, {i32, {4}}});
  const LoadedObject object(files);
  const std::vector<float> x(12, 0.5F);
  const std::vector<std::int32_t> y{0, 1, 2, 3};
  for (int k = 0; k < 5; ++k) object.step(x.data(), y.data());
  const auto write = [&](std::int64_t bytes) {
    AtomicFile file(folder / "state");
    file.write(std::span<const std::byte>(object.state(), static_cast<std::size_t>(bytes)));
    file.commit();
  };
  write(object.layout().bytes - 1);
  EXPECT_THROW(load_object_state(folder / "state", files.header, model.variables() + optimizer.variables()), DataError);
  write(object.layout().bytes);
  EXPECT_THROW(load_object_state(folder / "state", files.header, model.variables()), InvalidArgument);
  EXPECT_THROW(load_object_state(folder / "state", folder / "state", model.variables()), DataError);
  load_object_state(folder / "state", files.header, model.variables() + optimizer.variables());
  object.expect_equals(model.variables() + optimizer.variables());
  // Like a new process: an optimizer without a step has no slots before it is built, as the message says.
  const Sequential fresh = model;
  Adam its_optimizer({.learning_rate = 0.1});
  const auto load = [&] {
    load_object_state(folder / "state", files.header, fresh.variables() + its_optimizer.variables());
  };
  const std::string problem = problem_of(load);
  EXPECT_NE(problem.find("optimizer.build(model.trainable_variables())"), std::string::npos) << problem;
  its_optimizer.build(fresh.trainable_variables());
  load();
  object.expect_equals(fresh.variables() + its_optimizer.variables());
  const float theirs = object.step(x.data(), y.data());
  EXPECT_EQ(static_cast<float>(step(from_values(x, {4, 3}), from_values(y, {4})).item()), theirs);
}

/// Weights and large captured tensors are in a file, whose length the header says, and steps are the same.
TEST(Export, WeightsGoToAFileOfTheirOwn) {
  const Threads one(1);
  const auto folder = export_folder();
  const Tensor table = random::normal({1 << 12, 1 << 12}), small = ones({4});  // 64 MiB, and no more than a few bytes
  Sequential model{Dense(4, relu), Dropout(0.2), Dense(1)};
  model.build({f32, {2, 8}});
  Adam optimizer;
  const auto step = gradus::function([&](Tensor x, Tensor rows) {
    GradientTape tape;
    const Tensor looked_up = slice(gather(table, rows), {0, 0}, {2, 4}) + small;
    const Loss loss = Loss::mean(square(model(concat({x, looked_up}, 1), training)));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const std::vector<Spec> specs{{f32, {2, 4}}, {i32, {2}}};
  const ObjectFiles with = step.export_object(folder / "step", specs, {.weights = folder / "step.weights"});
  EXPECT_EQ(with.weights, folder / "step.weights");
  EXPECT_LT(std::filesystem::file_size(with.object), 8 << 20);
  const auto length = std::filesystem::file_size(with.weights);
  EXPECT_GT(length, 64 << 20);
  const std::string header = read_text_file(with.header);
  EXPECT_NE(header.find(text("step_weights_bytes = ", length, " }")), std::string::npos) << header;
  EXPECT_NE(header.find(text("step_numeric_contract = ", numeric_contract, " }")), std::string::npos) << header;
  EXPECT_EQ(header.find("step_init"), std::string::npos);
  const LoadedObject object(with);
  const std::vector<float> x(8, 0.5F);
  for (int k = 0; k < 5; ++k) {
    const std::vector<std::int32_t> rows{k, 4095 - k};
    const float theirs = object.step(x.data(), rows.data());
    EXPECT_EQ(static_cast<float>(step(from_values(x, {2, 4}), from_values(rows, {2})).item()), theirs);
  }
  object.expect_equals(model.variables() + optimizer.variables());
  EXPECT_EQ(object.layout().fields.size(), model.variables().size() + optimizer.variables().size());
}

TEST(Export, PredictionsAndSeveralResultsGoThroughPointers) {
  const Threads one(1);
  Sequential model{Dense(8, relu), Dense(4)};
  model.build({f32, {4, 3}});
  const auto predict = function(
      [&](Tensor x) {
        const Tensor logits = model(x);
        return std::tuple(softmax(logits), argmax(logits, 1), x);
      },
      {.name = "predict"});
  const LoadedObject object(predict.export_object(export_folder() / "predict", {{f32, {4, 3}}}));
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  std::vector<float> p(16), same(12);
  const auto [expected, classes, passed] = predict(x);
  std::vector<std::byte> indices(classes.bytes());
  object.call({object.state(), const_cast<float*>(x.span<float>().data()), p.data(), indices.data(), same.data()});
  EXPECT_EQ(p, expected.to_vector<float>());
  EXPECT_EQ(std::memcmp(indices.data(), classes.observed().host(), indices.size()), 0);
  EXPECT_EQ(same, x.to_vector<float>());
}

/// Rows longer than a run of the numeric contract, and running sums longer than a block.
TEST(Export, LongRowsAndRunningSumsHaveTheBitsOfTheLibrary) {
  const Threads one(1);
  const auto sums = function(
      [](Tensor x) {
        return std::tuple(reduce_mean(x, {.axis = {-1}}), reduce_variance(x, {.axis = {-1}}), cumsum(x, 1));
      },
      {.name = "sums"});
  const LoadedObject object(sums.export_object(export_folder() / "sums", {{f32, {2, 5001}}}));
  const Tensor x = random::normal({2, 5001}, {.seed = 1}) + 1000;
  std::vector<float> mean(2), variance(2), running(10002);
  const auto [means, variances, all] = sums(x);
  object.call(
      {object.state(), const_cast<float*>(x.span<float>().data()), mean.data(), variance.data(), running.data()});
  EXPECT_EQ(mean, means.to_vector<float>());
  EXPECT_EQ(variance, variances.to_vector<float>());
  EXPECT_EQ(running, all.to_vector<float>());
}

TEST(Export, VariablesThatTakeEachOthersValuesAreSwapped) {
  Variable a(constant({1.0F, 2.0F}), "a"), b(constant({3.0F, 4.0F}), "b");
  const auto swap = function([&](Tensor x) {
    const Tensor before = a.value();
    a.assign(b.value());
    b.assign(before);
    return reduce_sum(x) + reduce_sum(before);
  });
  const LoadedObject object(swap.export_object(export_folder() / "swap", {{f32, {1}}}));
  const float x[] = {1};
  EXPECT_EQ(object.step(x), 4);
  EXPECT_EQ(object.step(x), 8);
  EXPECT_EQ(object.step(x), 4);
  swap(constant({1.0F}));
  object.expect_equals(Variables{a, b});
}

/// The program's rounding, flushing and traps neither change a step nor are changed by it.
TEST(Export, StepsHaveTheSameBitsInEveryFloatingPointState) {
  const Threads one(1);
  const auto f = function([](Tensor x) {
    return std::tuple(x / 3, 1 / x, x * 1e-36, exp(x * 100), sqrt(x), matmul(x, x), tanh(x), x - 0.1);
  });
  const Tensor x = from_values(std::vector<float>{0, -1, 1e-3F, 50, 1e30F, -0.0F, 1e-40F, 0.3F, 7}, {3, 3});
  const LoadedObject object(f.export_object(export_folder() / "f", {x.spec()}));
  const auto results = [&] {
    std::array<std::array<float, 9>, 8> all{};
    std::vector<void*> pointers{object.state(), const_cast<void*>(x.observed().host())};
    for (auto& each : all) pointers.push_back(each.data());
    const std::uint64_t before = vector_controls();
    object.function<void (*)(void*)>("_init")(object.state());
    object.call(pointers);
    EXPECT_EQ(vector_controls(), before);
    return all;
  };
  const auto expected = results();
  const auto of_library = std::apply([](const auto&... y) { return std::array{y...}; }, f(x));
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(std::memcmp(of_library[k].observed().host(), expected[k].data(), sizeof expected[k]), 0) << k;
  for (const FloatingPointSetting& setting : floating_point_settings) {
    auto got = expected;
    {
      const SetFloatingPoint scope(setting);
      got = results();
    }
    EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << setting.name;
  }
}

TEST(Export, SeveralObjectsStandInOneProgram) {
  const auto folder = export_folder();
  const auto square = function([](Tensor x) { return reduce_sum(matmul(x, x)); });
  const ObjectFiles first = square.export_object(folder / "first", {{f32, {3, 3}}}),
                    second = square.export_object(folder / "second", {{f32, {3, 3}}});
  const std::string library = (folder / "both.so").string();
  const std::string link = "ld -shared --no-undefined -z noexecstack -o " + library + " " + first.object.string() +
                           " " + second.object.string() + " -lc";
  ASSERT_EQ(std::system(link.c_str()), 0);
  void* const both = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(both, nullptr) << dlerror();
  const float x[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (const std::string name : {"first", "second"}) {
    std::vector<std::byte> state(static_cast<std::size_t>(state_layout(read_text_file(folder / (name + ".h"))).bytes));
    reinterpret_cast<void (*)(void*)>(dlsym(both, (name + "_init").c_str()))(state.data());
    EXPECT_EQ(reinterpret_cast<float (*)(void*, const float*)>(dlsym(both, name.c_str()))(state.data(), x), 3);
  }
  dlclose(both);
}

// ---------------------------------------------------------------- mistakes

/// Names that only resemble words of C are valid.
TEST(Export, StemsThatAreFree) {
  const auto twice = function([](Tensor x) { return x * 2; });
  for (const char* stem :
       {"step", "train", "predict", "INTEGRATOR", "Int", "whiles", "step_t", "my_main", "PRIOR", "SCAN"}) {
    const auto folder = export_folder();
    const ObjectFiles files = twice.export_object(folder / stem, {{f32, {2}}});
    const std::string program = text("#include \"", stem, ".h\"\n");
    std::ofstream(folder / "c.c") << program;
    std::ofstream(folder / "c.cpp") << program;
    for (const char* source : {"c.c", "c.cpp"})
      EXPECT_EQ(std::system(text("cc -Wall -Wextra -Werror -fsyntax-only ", (folder / source).string()).c_str()), 0)
          << stem;
  }
}

TEST(Export, MistakesAreTold) {
  const auto folder = export_folder();
  const auto twice = function([](Tensor x) { return x * 2; }, {.name = "twice"});
  const auto says = [&](const auto& attempt, const std::string& words) {
    const std::string problem = problem_of(attempt);
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  };
  says([&] { twice.export_object(folder / "twice", {{f32, {any_size, 2}}}); }, "known sizes");
  says([&] { twice.export_object(folder / "twice"); }, "no spec is given, and the step takes 1 Tensor:");
  says([&] { twice.export_object(folder / "twice", {{f32, {2}}, {f32, {2}}}); },
       "2 specs are given, and the step takes 1 Tensor:");
  const auto several = function([](Tensor x, auto... more) { return (x + ... + more); });
  says([&] { several.export_object(folder / "several"); }, "the step takes 1 or 2 or 3 ");
  says([&] { twice.export_object(folder / "twice-fold", {{f32, {2}}}); }, "name in C");
  says([&] { twice.export_object(folder / "there" / "twice", {{f32, {2}}}); }, "cannot be written");
  says([&] { twice.export_object(folder / "twice", {{f32, {2}}}, {.instruction_set = "sse4"}); },
       text("instruction_set (--instruction-set of gradus compile): expected ",
            cpu_backend::is_own(cpu_backend::Isa::avx2) ? "avx2 or avx512" : "neon", ", given 'sse4'; leave it out"));
  for (const char* stem : {"int",     "while",   "_Bool",  "constexpr",  "class",    "co_await", "and",    "asm",
                           "linux",   "main",    "memcpy", "exit",       "read",     "sin",      "isnan",  "setjmp",
                           "NAN",     "EOF",     "errno",  "assert",     "INT8_MAX", "EINTR",    "SIGINT", "PRIu64",
                           "UINT8_C", "uint8_t", "size_t", "atomic_int", "FILE",     "_step",    "__step"})
    says([&] { twice.export_object(folder / stem, {{f32, {2}}}); },
         text("`", stem, "` has a meaning in C or C++ already"));
  const auto branches = function([](Tensor x) { return static_cast<bool>(reduce_sum(x) > 0) ? x : -x; });
  says([&] { branches.export_object(folder / "branches", {{f32, {2}}}); }, "C++ branch");
  const auto special = function([](Tensor x) { return igamma(x, x); });
  says([&] { special.export_object(folder / "special", {{f32, {2}}}); }, "igamma");
  const Tensor large = zeros({1 << 12, 1 << 13});
  const auto captures = function([&](Tensor x) { return reduce_sum(large) + x; });
  says([&] { captures.export_object(folder / "captures", {{f32, {1}}}); }, "--weights FILE");
  const auto looks_up = function([&](Tensor x) {
    const NameScope scope("words");
    return matmul(x, large);
  });
  says([&] { looks_up.export_object(folder / "looks_up", {{f32, {2, 1 << 12}}}); },
       "a captured tensor f32[4096,8192] of 134217728 bytes, read by matmul in words: ");
  says([&] { captures.export_object(folder / "captures", {{f32, {1}}}, {.weights = folder / "no" / "w"}); },
       "cannot be written");
}

TEST(Export, SpecsThatDoNotFitAreTold) {
  const auto folder = export_folder();
  const auto twice =
      function([](Tensor x) { return x * 2; }, {.name = "twice", .input_signature = {{f32, {any_size, 2}}}});
  Sequential model{Dense(4)};
  model.build({f32, {any_size, 3}});
  const auto predict = function([&](Tensor x) { return model(x); }, {.name = "predict"});
  const auto says = [&](const auto& function, const Spec& spec, const std::string& words) {
    const std::string problem = problem_of([&] { function.export_object(folder / "step", {spec}); });
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  };
  says(twice, {f32, {4, 3}}, "does not fit its input signature f32[?,2]");
  says(twice, {i32, {4, 2}}, "does not fit its input signature f32[?,2]");
  says(predict, {f32, {2, 5}}, "3");
  says(predict, {i32, {2, 3}}, "i32");
  EXPECT_NO_THROW(predict.export_object(folder / "step", {{f32, {2, 3}}}));
}

TEST(Export, ASignatureOfKnownSizesIsEnough) {
  const auto twice = function([](Tensor x) { return reduce_sum(x * 2); }, {.input_signature = {{f32, {2}}}});
  const LoadedObject object(twice.export_object(export_folder() / "twice"));
  const float x[] = {1, 2};
  EXPECT_EQ(object.step(x), 6);
}

TEST(Export, ControlFlowComesAlong) {
  const Threads one(1);
  const auto f = function([](Tensor x) {
    const Tensor grown =
        while_loop([](Tensor v) { return reduce_sum(v) < 100; }, [](Tensor v) { return v * 2 + 1; }, x);
    return reduce_sum(cond(reduce_sum(x) > 3, [&] { return grown * 3; }, [&] { return grown - 1; }));
  });
  const LoadedObject object(f.export_object(export_folder() / "f", {{f32, {3}}}));
  for (const float first : {0.25F, 1.5F, 7.0F}) {
    const float x[] = {first, 1, 0.5F};
    EXPECT_EQ(object.step(x), static_cast<float>(f(from_values(std::vector<float>(x, x + 3), {3})).item()));
  }
}

}  // namespace
}  // namespace gradus::training_test
