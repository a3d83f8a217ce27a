/// Steps for machines of another architecture: their bits, run by qemu where it and a cross compiler are installed; and
/// targets that there are not.
#include <gtest/gtest.h>
#include <fstream>
#include <thread>
#include "gradus/backend/cpu/isa.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/model.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "tests/errors.h"
#include "tests/export/classifier.h"
#include "tests/export/loaded_object.h"
#include "tests/test_directory.h"

namespace gradus::targets_test {
namespace {

namespace fs = std::filesystem;
constexpr const char* arm = "aarch64-linux-gnu";

const ObjectTarget* target_named(const std::string& name) {
  static const std::vector<ObjectTarget> all = object_targets();
  const auto found = std::ranges::find(all, name, &ObjectTarget::name);
  return found == all.end() ? nullptr : &*found;
}

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// Why steps for ARM cannot be tried here; empty if they can.
std::string obstacle() {
  const ObjectTarget* const target = target_named(arm);
  if (!target) return "there is no such target";
  if (target->is_here) return "this machine is of that architecture";
  if (!target->problem.empty()) return target->problem;
  for (const char* program : {"aarch64-linux-gnu-gcc", "qemu-aarch64"})
    if (!runs(text(program, " --version"))) return text(program, " is not installed");
  return {};
}

/// A program in C for the step: it reads batches, and writes losses and the state behind them.
constexpr const char* program = R"(
#include <stdio.h>
#include <stdlib.h>
static struct step_state state;
int main(int count, char** words) {
  (void)count;
  FILE *in = fopen(words[1], "rb"), *out = fopen(words[2], "wb");
  if (!in || !out || step_supported() != 1) return 2;
  void *x = malloc(X_BYTES), *y = malloc(Y_BYTES);
  step_init(&state);
  while (fread(x, X_BYTES, 1, in) == 1 && fread(y, Y_BYTES, 1, in) == 1) {
    float loss = step(&state, x, y);
    fwrite(&loss, sizeof loss, 1, out);
  }
  fwrite(&state, sizeof state, 1, out);
  return fclose(out) != 0;
}
)";

void append(std::string& bytes, const Tensor& x) {
  bytes.append(reinterpret_cast<const char*>(x.observed().host()), static_cast<std::size_t>(bytes_of(x.spec())));
}

/// Trains `steps` steps by the library, and by an object for ARM that qemu runs: the same losses, and the same state.
template <class M>
void expect_same_training(M model, Optimizer optimizer, const Shape& input, std::int64_t classes, int steps) {
  const Threads one(1);
  const fs::path folder = export_folder();
  set_seed(3);
  model.build({f32, input});
  auto step = classifier_step(model, optimizer);
  const Spec labels{i32, {input[0]}};
  const ObjectFiles files = step.export_object(folder / "step", {{f32, input}, labels}, {.target = arm});
  std::string batches, losses;
  for (int k = 0; k < steps; ++k) {
    const auto seed = static_cast<std::uint64_t>(k);
    const Tensor x = random::normal(input, {.seed = seed}),
                 y = random::integers({input[0]}, {.high = classes, .seed = seed});
    append(batches, x), append(batches, cast(y, i32));
    const auto loss = static_cast<float>(step(x, y).item());
    losses.append(reinterpret_cast<const char*>(&loss), sizeof loss);
  }
  std::ofstream(folder / "batches") << batches;
  std::ofstream(folder / "main.c") << program;
  const std::string at = folder.string() + "/";
  ASSERT_TRUE(runs(text("aarch64-linux-gnu-gcc -std=c99 -O1 -static -DX_BYTES=", bytes_of({f32, input}),
                        " -DY_BYTES=", bytes_of(labels), " -include ", at, "step.h ", at, "main.c ", at, "step.o -o ",
                        at, "program")));
  ASSERT_TRUE(runs(text("qemu-aarch64 ", at, "program ", at, "batches ", at, "results")));
  const std::string results = read_text_file(folder / "results");
  const StateLayout layout = state_layout(read_text_file(files.header));
  ASSERT_EQ(std::ssize(results), std::ssize(losses) + layout.bytes);
  EXPECT_EQ(results.substr(0, losses.size()), losses);
  expect_fields_equal(layout, reinterpret_cast<const std::byte*>(results.data() + losses.size()),
                      model.variables() + optimizer.variables());
}

/// Skips a test.
#define NEEDS_ARM() \
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why

TEST(Targets, ADenseStepForArmHasTheBitsOfThisMachine) {
  NEEDS_ARM();
  expect_same_training(Sequential{Dense(32, relu), BatchNormalization(), Dropout(0.3), Dense(5)},
                       Adam({.learning_rate = 0.01, .global_clipnorm = 0.5}), {24, 17}, 5, 20);
}

TEST(Targets, AConvolutionalStepForArmHasTheBitsOfThisMachine) {
  NEEDS_ARM();
  expect_same_training(Sequential{Conv2D(16, 3, {.padding = Padding::same, .activation = relu}), DepthwiseConv2D(3),
                                  MaxPooling2D(2), Conv2D(24, 3, {.activation = gelu}), Flatten(), Dense(5)},
                       SGD({.learning_rate = 0.05, .momentum = 0.9}), {4, 14, 13, 8}, 5, 5);
}

TEST(Targets, ARecurrentStepOfNarrowFloatsForArmHasTheBitsOfThisMachine) {
  NEEDS_ARM();
  Sequential model{LSTM(20), LayerNormalization(), Dense(3)};
  model.set_policy(mixed_bfloat16);
  expect_same_training(std::move(model), RMSprop({.learning_rate = 0.01}), {6, 7, 5}, 3, 8);
}

/// The processor that this process computes with is no business of a compile for another one.
TEST(Targets, ACompileForAnotherProcessorIsSeenByItsThreadAlone) {
  using namespace cpu_backend;
  const Isa here = host_isa();
  const Isa foreign = is_own(Isa::neon) ? Isa::avx2 : Isa::neon;
  {
    const TargetScope scope(&processor_of(foreign));
    EXPECT_EQ(isa(), foreign);
    EXPECT_EQ(host_isa(), here);
    EXPECT_FALSE(has_pair_products() || prefers_near_panels() || uses_amx());
    std::thread([&] { EXPECT_EQ(isa(), here); }).join();
    {
      const TargetScope none(nullptr);
      EXPECT_EQ(isa(), foreign);
    }
    EXPECT_EQ(isa(), foreign);
  }
  EXPECT_EQ(isa(), here);
}

TEST(Targets, ComputingContinuesWhileAnotherThreadCompilesForAnotherProcessor) {
  NEEDS_ARM();
  const auto f = function([](Tensor x) { return tanh(matmul(x, x)) + 1; }, {.name = "f"});
  const Tensor x = random::normal({33, 33}, {.seed = 7});
  const Tensor want = f(x);
  std::thread other([&] {
    const auto g = function([](Tensor y) { return sigmoid(matmul(y, y)); }, {.name = "g"});
    for (int i = 0; i < 3; ++i) g.export_object(export_folder() / "g", {{f32, {40, 40}}}, {.target = arm});
  });
  for (std::int64_t n = 1; n < 12; ++n) {
    const auto h = function([](Tensor y) { return tanh(matmul(y, y)) + 1; }, {.name = "h"});
    EXPECT_TRUE(bitwise_equal(h(x), want));
  }
  other.join();
}

TEST(Targets, AreListed) {
  const std::vector<ObjectTarget> all = object_targets();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].is_here);
  EXPECT_EQ(all[0].name, cpu_backend::own_target);
  EXPECT_EQ(all[0].problem, "");
  EXPECT_FALSE(all[1].is_here);
  EXPECT_EQ(target_named("x86_64-linux-gnu")->instruction_sets, (std::vector<std::string>{"avx2", "avx512"}));
  EXPECT_EQ(target_named(arm)->instruction_sets, std::vector<std::string>{"neon"});
}

TEST(Targets, MistakesAreTold) {
  const auto folder = export_folder();
  const auto twice = function([](Tensor x) { return x * 2; }, {.name = "twice"});
  const auto says = [&](const ObjectOptions& options, const std::string& words) {
    const std::string problem = error_of([&] { twice.export_object(folder / "twice", {{f32, {2}}}, options); });
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
    EXPECT_TRUE(fs::is_empty(folder));
  };
  const std::string other = object_targets()[1].name;
  for (const char* unknown : {"riscv64-linux-gnu", "aarch64", "AARCH64-linux-gnu", "neon", " "})
    says({.target = unknown}, text("target (--target of gradus compile): expected "));
  says({.target = "riscv64-linux-gnu"}, "x86_64-linux-gnu");
  says({.target = "riscv64-linux-gnu"}, "given 'riscv64-linux-gnu'");
  says({.instruction_set = object_targets()[1].instruction_sets[0]},
       text(" is of ", other, ", and the object is for "));
  says({.instruction_set = "avx2", .target = arm},
       "avx2 is of x86_64-linux-gnu, and the object is for aarch64-linux-gnu");
  says({.instruction_set = "neon", .target = "x86_64-linux-gnu"}, "expected avx2 or avx512");
  says({.instruction_set = "avx512 with AMX"}, "instruction_set");
  if (const std::string problem = object_targets()[1].problem; !problem.empty())
    says({.target = other}, text("target (--target of gradus compile): ", problem));
}

/// Without the tools of the target there is an error that names them, and no file.
TEST(Targets, ToolsThatAreNotInstalledAreNamed) {
  if (target_named(arm)->is_here || target_named(arm)->problem.starts_with("this library")) GTEST_SKIP();
  const auto folder = export_folder();
  const auto twice = function([](Tensor x) { return x * 2; }, {.name = "twice"});
  const std::string before = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  const std::string problem = error_of([&] { twice.export_object(folder / "twice", {{f32, {2}}}, {.target = arm}); });
  setenv("PATH", before.c_str(), 1);
  EXPECT_NE(problem.find("the program aarch64-linux-gnu-ld is not installed; binutils for aarch64-linux-gnu"),
            std::string::npos)
      << problem;
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace gradus::targets_test
