/// The text of StableHLO: the same bytes at every run, nothing of the user's in it, faults of data also within loops
/// and branches.
#include <fstream>
#include <regex>
#include <sstream>
#include "gradus/backend/xla/stablehlo.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/control.h"
#include "tests/xla/on_plugin.h"
#include "tests/xla/plugin.h"

namespace gradus {
namespace {

using TextOnPlugin = testing_plugin::WithPlugin;

/// What no name may bring about: quotes, ends of lines, of comments and of modules.
const std::vector<std::string> hostile_names{
    "\"}) -> () // ", "a\nmodule {\n}",      "%arg0",    "*/ }",
    "\\\"",           std::string("\0x", 2), "\xff\xfe", "dense<0> : tensor<4xi64>  // fingerprint",
    "{value}"};

std::string code_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line, code;
  while (std::getline(lines, line))
    if (line.rfind("//", 0) != 0) code += line + "\n";
  return code;
}

struct Net {
  explicit Net(const std::string& name) : w(random::normal({4, 3}, {.seed = 3}), name), scope(name) {}
  Variable w;
  std::string scope;
  std::string text() {
    const auto step = function(
        [&](Tensor x, Tensor labels) {
          const NameScope inner(scope);
          GradientTape tape;
          Loss loss = Loss::mean(sparse_categorical_crossentropy(labels, matmul(x, w), from_logits));
          w.assign(w.value() - 0.1 * tape.gradient(loss, w));
          return loss;
        },
        {.name = scope});
    return step.stablehlo({{f32, {8, 4}}, {i32, {8}}});
  }
};

TEST(StableHloText, IsTheSameAtEveryRun) {
  const std::string first = Net("w").text();
  EXPECT_EQ(first, Net("w").text());
  EXPECT_NE(first.find("tf.aliasing_output"), std::string::npos) << first;
  EXPECT_NE(first.find("// %arg"), std::string::npos);
  EXPECT_NE(first.find("Variable w"), std::string::npos);
}

TEST(StableHloText, HoldsNothingOfTheUser) {
  const std::string plain = code_of(Net("w").text());
  for (const std::string& name : hostile_names) {
    const std::string hostile = Net(name).text();
    EXPECT_EQ(code_of(hostile), plain) << name;
    for (const char c : hostile) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << name;
  }
}

/// A line is made of the words of StableHLO, numbers, and names that the writer made.
TEST(StableHloText, ConsistsOfKnownTokens) {
  const std::string code = code_of(Net(hostile_names[0]).text());
  const std::regex token(
      R"((%(arg)?[0-9]+(#[0-9]+)?(:[0-9]+)?|"?stablehlo\.[a-z_0-9]+"?|@gradus|@main|\^bb0|#stablehlo[.<a-z_]*|-?[0-9]+|0x[0-9A-F]+|[a-zA-Z_0-9.]+|[-+*/=<>(){}\[\],:#"]|->|\s)+)");
  std::istringstream lines(code);
  std::string line;
  while (std::getline(lines, line)) EXPECT_TRUE(std::regex_match(line, token)) << line;
}

TEST(StableHloText, StatesThePrecisionOfEveryProduct) {
  const std::string code = code_of(Net("w").text());
  std::istringstream lines(code);
  std::string line;
  int products = 0;
  while (std::getline(lines, line))
    if (line.find("stablehlo.dot_general") != std::string::npos ||
        line.find("stablehlo.convolution") != std::string::npos) {
      ++products;
      EXPECT_NE(line.find("precision"), std::string::npos) << line;
    }
  EXPECT_GE(products, 2);
}

TEST(StableHloText, IsWrittenAsAWhole) {
  const auto path = std::filesystem::temp_directory_path() / "gradus_text_test.mlir";
  const auto step = function([](Tensor x) { return x + x; });
  step.export_stablehlo(path, {{f32, {3}}});
  std::ifstream file(path);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}), step.stablehlo({{f32, {3}}}));
  std::filesystem::remove(path);
  EXPECT_THROW(step.export_stablehlo("/nowhere/at/all.mlir", {{f32, {3}}}), Unavailable);
  EXPECT_THROW(step.stablehlo({{f32, {any_size}}}), InvalidArgument);
  EXPECT_THROW(step.stablehlo({{f32, {3}}, {f32, {3}}}), InvalidArgument);
}

TEST(StableHloText, RefusesByName) {
  const Graph graph = parse_graph("%0 = input : f32[3]\n%1 = from_shard{place=0} %0 : f32[3]\nreturn %1\n");
  try {
    xla::to_stablehlo(graph, {}, "tpu");
    FAIL();
  } catch (const Unavailable& error) {
    for (const char* const expected : {"from_shard", "f32", "tpu"})
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

// ---------------------------------------------------------------- faults

/// What a program throws here, and there.
std::string failure_of(const std::function<Tensor()>& run) {
  try {
    run().item();
  } catch (const OutOfRange& error) { return error.what(); }
  return "";
}

struct Faulty {
  const char* name;
  std::function<Tensor(Tensor table, Tensor indices)> f;
};

class FaultsOnPlugin : public testing_plugin::WithPlugin, public ::testing::WithParamInterface<Faulty> {};

TEST_P(FaultsOnPlugin, AreThoseOfTheProcessor) {
  const std::vector<std::int32_t> wrong{0, 2, 7, 1}, right{0, 2, 1, 1};
  const auto on = [&](const Device& device, const std::vector<std::int32_t>& indices) {
    const DeviceScope scope(device);
    const auto step =
        function([f = GetParam().f](Tensor table, Tensor places) { return reduce_sum(f(table, places)); });
    const Tensor table = random::normal({5, 3}, {.seed = 2}), places = from_values(indices, {4});
    return failure_of([&] { return step(table, places); });
  };
  const std::string here = on(cpu(0), wrong), there = on(device(), wrong);
  EXPECT_NE(here.find("7"), std::string::npos) << here;
  EXPECT_EQ(here.substr(0, there.size()), there);  // here it says the iteration, too
  EXPECT_FALSE(there.empty());
  EXPECT_EQ(on(device(), right), "");
}

const Faulty faulty[] = {
    {"Gather", [](Tensor table, Tensor places) { return gather(table, places); }},
    {"InABranch",
     [](Tensor table, Tensor places) {
       return cond(reduce_sum(places) > 0, [&] { return gather(table, places); }, [&] { return zeros({4, 3}); });
     }},
    {"InALoop",
     [](Tensor table, Tensor places) {
       return scan([&](Tensor sum, Tensor place) { return std::pair(sum + gather(table, place), sum); }, zeros({3}),
                   places)
           .first;
     }},
    {"Labels",
     [](Tensor table, Tensor places) {
       return sparse_categorical_crossentropy(places, gather(table, places * 0), from_logits);
     }},
};
INSTANTIATE_TEST_SUITE_P(Kinds, FaultsOnPlugin, ::testing::ValuesIn(faulty),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradus
