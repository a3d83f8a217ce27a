/// Random names and random bits of constants: names change nothing but comments, and bits are those that come back.
#include <random>
#include <sstream>
#include "gradus/backend/xla/plugins.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/scope.h"
#include "tests/xla/on_plugin.h"
#include "tests/xla/plugin.h"

namespace gradus::text_fuzz_test {
namespace {

using Engine = std::mt19937_64;

/// Bytes of all values, more often than not those that end something.
std::string random_name(Engine& engine) {
  static const std::string ends("\n\r\"'\\{}()<>%@#/*:=\0\t\x1b\x7f", 23);
  static const char* const parts[] = {
      "//",     "*/",       "\n}",      "\nmodule {", "%arg0",  "\"stablehlo.add\"",
      "\u2028", "\xff\xfe", "\xc0\x80", "dense<0>",   "return", "; result 0 is its next value"};
  std::string name;
  for (auto left = 1 + engine() % 24; left > 0; --left) switch (engine() % 3) {
      case 0: name += ends[engine() % ends.size()]; break;
      case 1: name += parts[engine() % std::size(parts)]; break;
      default: name += static_cast<char>(engine() & 0xff);
    }
  return name;
}

struct Names {
  std::string variable, layer, function, state;
};

/// A step with a Variable that it assigns, one that it does not read before, a check of data, and a layer.
std::string text_with(const Names& names) {
  Variable w(fill({4, 3}, 0.25, f32), names.variable), last(fill({}, 0, f32), names.state);
  const auto step = function(
      [&](Tensor x, Tensor labels) {
        const NameScope inner(names.layer);
        GradientTape tape;
        Loss loss = Loss::mean(sparse_categorical_crossentropy(labels, matmul(x, w), from_logits));
        w.assign(w.value() - 0.1 * tape.gradient(loss, w));
        last.assign(loss.value());
        return loss;
      },
      {.name = names.function});
  return step.stablehlo({{f32, {8, 4}}, {i32, {8}}});
}

struct Lines {
  std::vector<std::string> comments, code;
};
Lines lines_of(const std::string& text) {
  Lines all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) (line.starts_with("//") ? all.comments : all.code).push_back(line);
  return all;
}

TEST(StableHloNames, ChangeNothingButComments) {
  Engine engine(20261127);
  const Lines plain = lines_of(text_with({"w", "layer", "step", "last"}));
  for (int i = 0; i < 300; ++i) {
    const Names names{random_name(engine), random_name(engine), random_name(engine), random_name(engine)};
    const std::string text = text_with(names);
    const Lines hostile = lines_of(text);
    ASSERT_EQ(hostile.code, plain.code) << i << "\n" << text;
    ASSERT_EQ(hostile.comments.size(), plain.comments.size()) << i << "\n" << text;
    for (const char c : text) ASSERT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) << i;
  }
}

using TextFuzz = testing_plugin::WithPlugin;

TEST_F(TextFuzz, ThePluginReadsAnyName) {
  Engine engine(4);
  xla::PluginDevice& there = xla::device_of_plugin(device());
  for (int i = 0; i < 6; ++i) {
    const std::string text = text_with({random_name(engine), random_name(engine), random_name(engine), "last"});
    EXPECT_NO_THROW(there.session.compile(text, there.alone.options)) << text;
  }
}

/// Random bits, often those of numbers that are none, of the largest and the smallest ones.
std::uint64_t random_bits(DType dtype, Engine& engine) {
  if (dtype == boolean) return engine() & 1;
  const int width = static_cast<int>(8 * size_of(dtype));
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
  switch (engine() % 4) {
    case 0: return engine() & mask;
    case 1: return (engine() % 4 == 0 ? engine() & engine() : ~(engine() & engine() & engine())) & mask;  // few, many
    case 2: return (std::uint64_t{1} << (engine() % static_cast<std::uint64_t>(width))) & mask;
    default: return (mask << (engine() % static_cast<std::uint64_t>(width))) & mask;  // infinities among them
  }
}

TEST_F(TextFuzz, BitsOfConstantsComeBack) {
  constexpr int constants = 48;
  for (const DType dtype : all_dtypes) {
    Engine engine(static_cast<std::uint64_t>(dtype) + 1);
    Graph graph;
    std::vector<std::uint64_t> bits;
    for (int i = 0; i < constants; ++i) {
      bits.push_back(random_bits(dtype, engine));
      Value v;
      v.spec = {dtype, i % 2 ? Shape{2} : Shape{}};
      v.is_constant = true;
      v.constant = bits.back();
      graph.values.push_back(v);
      graph.outputs.push_back(i);
    }
    const Tensors made = testing_plugin::computed_there(graph, {}, device());
    for (int i = 0; i < constants; ++i) {
      const Tensor& x = made[static_cast<std::size_t>(i)];
      for (std::int64_t k = 0; k < x.shape().size(); ++k) {
        std::uint64_t got = 0;
        const auto width = static_cast<std::size_t>(size_of(dtype));
        std::memcpy(&got, static_cast<const char*>(x.host()) + static_cast<std::size_t>(k) * width, width);
        EXPECT_EQ(got, bits[static_cast<std::size_t>(i)]) << dtype << " constant " << i << std::hex;
      }
    }
  }
}

}  // namespace
}  // namespace gradus::text_fuzz_test
