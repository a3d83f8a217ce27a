/// The text of StableHLO: the same bytes at every run, nothing of the user's in it, faults of data also within loops
/// and branches.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include "gradus/backend/xla/stablehlo.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/control.h"
#include "tests/errors.h"
#include "tests/xla/donated_variables.h"
#include "tests/xla/on_plugin.h"
#include "tests/xla/plugin.h"
#include "tests/xla/replicated_step.h"

namespace gradus::text_test {
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

/// Else the old values would be needed beside the new ones, and all states be copied.
TEST(StableHloText, WhatIsAssignedIsReadAsItWasChosen) {
  Sequential model{Dense(4)};
  model.build({f32, {8, 4}});
  Adam optimizer;
  optimizer.build(model.trainable_variables());
  const auto step = function([&](Tensor x, Tensor labels) {
    GradientTape tape;
    Loss loss = Loss::mean(sparse_categorical_crossentropy(labels, model(x, training), from_logits));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const std::string text = step.stablehlo({{f32, {8, 4}}, {i32, {8}}}), code = code_of(text);
  EXPECT_EQ(testing_plugin::expect_all_donated(text), 7);
  const std::regex choice(R"(stablehlo\.select %\d+, (%\d+), %arg\d+ : tensor<i1>)");
  int chosen = 0;
  for (std::sregex_iterator it(code.begin(), code.end(), choice), end; it != end; ++it, ++chosen) {
    const std::regex use((*it)[1].str() + "\\b");  // where it is made, and here
    EXPECT_EQ(std::distance(std::sregex_iterator(code.begin(), code.end(), use), std::sregex_iterator()), 2)
        << (*it)[1] << "\n"
        << code;
  }
  EXPECT_EQ(chosen, 8);  // two weights with two slots each, the count, and the fault state
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

/// The words `precision = [A, B]` of products and convolutions.
std::set<std::string> precisions_of(const std::string& code) {
  const std::regex stated(R"((DEFAULT|HIGHEST))");
  std::set<std::string> all;
  for (std::sregex_iterator it(code.begin(), code.end(), stated), end; it != end; ++it) all.insert((*it)[1]);
  return all;
}

/// A product, a convolution, products in a loop and in a branch, attention, and what another function multiplies, with
/// gradients.
std::string text_with(FunctionOptions options, FunctionOptions inner, DType t) {
  const auto squared = function([](Tensor x) { return matmul(x, x); }, std::move(inner));
  const auto step = function(
      [&](Tensor x, Tensor image) {
        GradientTape tape;
        tape.watch(x);
        const Tensor walked = scan([&](Tensor s, Tensor row) { return std::pair{matmul(s, x), row}; }, x, x).first;
        const Tensor chosen = cond(reduce_sum(x) > 0, [&] { return matmul(x, x); }, [&] { return x; });
        const Tensor wide = reshape(x, {1, 1, 4, 4});
        const Tensor seen = scaled_dot_product_attention(wide, wide, wide);
        const Tensor folded = conv2d(image, reshape(x, {2, 2, 1, 4}));
        const Tensor all = reduce_sum(squared(x) + walked + chosen) + reduce_sum(seen) + reduce_sum(folded);
        return tape.gradient(all, x);
      },
      std::move(options));
  return code_of(step.stablehlo({{t, {4, 4}}, {t, {1, 5, 5, 1}}}));
}

TEST(StableHloText, PrecisionIsThatOfTheOuterFunction) {
  using Words = std::set<std::string>;
  const FunctionOptions highest{.matmul_precision = MatmulPrecision::highest};
  EXPECT_EQ(precisions_of(text_with({}, highest, f32)), Words{"DEFAULT"});
  EXPECT_EQ(precisions_of(text_with(highest, {}, f32)), Words{"HIGHEST"});
  EXPECT_EQ(precisions_of(text_with({}, {}, f64)), Words{"HIGHEST"}) << "f64 asks by itself";
  setenv("GRADUS_MATMUL_PRECISION", "highest", 1);
  EXPECT_EQ(precisions_of(text_with({}, {}, f32)), Words{"HIGHEST"});
  EXPECT_EQ(precisions_of(text_with({.matmul_precision = MatmulPrecision::platform_default}, {}, f32)),
            Words{"DEFAULT"});
  setenv("GRADUS_MATMUL_PRECISION", "exact", 1);
  expect_error<InvalidArgument>([] { text_with({}, {}, f32); }, {"exact", "highest or default"});
  unsetenv("GRADUS_MATMUL_PRECISION");
}

/// Two functions of one graph, the first run of which the processor leaves to the device, are two programs there; parts
/// that are placed, too.
TEST_F(TextOnPlugin, OtherPrecisionsAreOtherPrograms) {
  const Tensor x = random::normal({96, 96}, {.seed = 4});
  for (const bool is_placed : {false, true}) {
    std::optional<DeviceScope> scope;
    if (!is_placed) scope.emplace(device());
    const auto step = [&](MatmulPrecision precision) {
      return function(
          [&, is_placed](Tensor y) {
            const Tensor there = is_placed ? y.to(device()) : y;
            return matmul(there, there) + (is_placed ? 3 : 2);
          },
          {.matmul_precision = precision});
    };
    const auto plain = step(MatmulPrecision::platform_default), exact = step(MatmulPrecision::highest);
    const auto again = step(MatmulPrecision::highest);
    const auto twice = [&](const auto& f) {
      f(x);
      const Tensor y = f(x);
      return y.to_vector<float>();
    };
    done();
    const std::vector<float> first = twice(plain);
    EXPECT_EQ(done().compilations, 1) << is_placed;
    const std::vector<float> second = twice(exact);
    EXPECT_EQ(done().compilations, 1) << is_placed;
    EXPECT_EQ(twice(again), second);
    EXPECT_EQ(done().compilations, 0) << is_placed;
    for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], second[i], 1e-3);
  }
}

TEST(MatmulPrecisionOption, ChangesNothingOnTheProcessor) {
  const Tensor x = random::normal({40, 40}, {.seed = 4});
  const auto product = [](Tensor y) { return matmul(y, y); };
  const Tensor plain = function(product)(x);
  for (const MatmulPrecision precision : {MatmulPrecision::platform_default, MatmulPrecision::highest})
    EXPECT_TRUE(bitwise_equal(function(product, {.matmul_precision = precision})(x), plain));
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

TEST(ReplicatedText, HasACollectiveForEachSum) {
  const auto count = [](const std::string& text, const std::string& what) {
    int found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  const std::string even = testing_plugin::replicated_step(4, 4).text;
  EXPECT_EQ(even, testing_plugin::replicated_step(4, 4).text);
  EXPECT_NE(even.find("mhlo.num_replicas = 4"), std::string::npos);
  EXPECT_EQ(count(even, "\"stablehlo.all_reduce\""), 5);
  EXPECT_EQ(count(even, "\"stablehlo.all_gather\""), 2) << "what is gathered, and states of faults";
  EXPECT_EQ(count(even, "stablehlo.case"), 0);
  for (int channel = 1; channel <= 7; ++channel)
    EXPECT_EQ(count(even, text("<handle = ", channel, ",")), 1) << "each exchange has its own";
  const std::string uneven = testing_plugin::replicated_step(4, 3).text;
  EXPECT_EQ(count(uneven, "stablehlo.case"), 1) << "a device has no rows";
  EXPECT_EQ(count(uneven, "\"stablehlo.all_reduce\""), 5) << "all take part";
  EXPECT_EQ(count(testing_plugin::replicated_step(1, 2).text, "stablehlo.all_"), 0);
}

/// A collective of constants counts for each replica, and one of a reshaped value is no other look at it.
TEST(ReplicatedText, NoPassLooksThroughASum) {
  const Graph graph = xla::prepared_for_stablehlo(parse_graph(R"(
%0 = input : f32[4]
%1 = constant{0x40400000} : f32[4]
%2 = all_reduce{narrow=false} %1 : f32[4]
%3 = reshape{shape=[1,4]} %0 : f32[1,4]
%4 = all_reduce{narrow=false} %3 : f32[1,4]
%5 = reshape{shape=[4]} %4 : f32[4]
return %2 %5
)"),
                                                  {});
  const std::string text = xla::to_stablehlo(graph, {.replicas = 2}, "x").text;
  const std::size_t first = text.find("\"stablehlo.all_reduce\"");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("\"stablehlo.all_reduce\"", first + 1), std::string::npos) << text;
}

}  // namespace
}  // namespace gradus::text_test
