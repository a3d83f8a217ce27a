/// Any file either loads or gives one error that names the place and the reason.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <random>
#include "gradus/ops/elementwise.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"
#include "tests/onnx/sample_models.h"
#include "tests/test_directory.h"

namespace gradus::onnx::bad_input_test {
namespace {

namespace fs = std::filesystem;

ModelFile good() {
  return file_of(graph({node("Exp", {"x"}, {"e"}), node("Add", {"e", "w"}, {"y"})}, {port("x", f32, Shape{2})},
                       {port("y")}, {{"w", constant({1.0, 2.0})}}));
}

/// What is said about a model that was good before `spoil`.
std::string said_of(const std::function<void(ModelFile&)>& spoil) {
  ModelFile file = good();
  spoil(file);
  return complaint([&] { model_of(file)(constant({0.0, 0.0})); });
}

TEST(OnnxBadInput, GraphsThatCannotRun) {
  struct Case {
    const char* why;
    std::function<void(ModelFile&)> spoil;
  };
  const Case cases[] = {
      {"node `e` (Exp): input `y` is made by no node before it", [](ModelFile& f) { f.graph.nodes[0].inputs = {"y"}; }},
      {"input `nowhere`", [](ModelFile& f) { f.graph.nodes[1].inputs[1] = "nowhere"; }},
      {"output `e` is the name of another value", [](ModelFile& f) { f.graph.nodes[1].outputs = {"e"}; }},
      {"output `x` is the name of another value", [](ModelFile& f) { f.graph.nodes[0].outputs = {"x"}; }},
      {"two inputs are named `x`", [](ModelFile& f) { f.graph.inputs.push_back(port("x")); }},
      {"two initializers are named `w`", [](ModelFile& f) { f.graph.initializers.push_back({"w", constant(1.0)}); }},
      {"output `z` is made by no node", [](ModelFile& f) { f.graph.outputs = {port("z")}; }},
      {"input 1 is missing", [](ModelFile& f) { f.graph.nodes[1].inputs = {"e"}; }},
      {"imports no operator set of domain `far`", [](ModelFile& f) { f.graph.nodes[0].domain = "far"; }},
      {"operator set 99", [](ModelFile& f) { f.opsets[0].version = 99; }},
      {"op Exp-5", [](ModelFile& f) { f.opsets[0].version = 5; }},
      {"a node without an op", [](ModelFile& f) { f.graph.nodes[0].op = ""; }},
      {"there is no output 1", [](ModelFile& f) { f.graph.nodes[0].outputs = {"e", "more"}; }},
      {"node `y` (Add-14): ", [](ModelFile& f) { f.graph.initializers[0].value = constant({1.0, 2.0, 3.0}); }},
      {"attribute `to` is a float, it must be an int",
       [](ModelFile& f) { f.graph.nodes[0] = node("Cast", {"x"}, {"e"}, {number("to", 1)}); }},
      {"attribute `to` is missing", [](ModelFile& f) { f.graph.nodes[0] = node("Cast", {"x"}, {"e"}); }},
      {"element type 99 is none of ONNX",
       [](ModelFile& f) { f.graph.nodes[0] = node("Cast", {"x"}, {"e"}, {integer("to", 99)}); }},
      {"axis 7 does not exist",
       [](ModelFile& f) { f.graph.nodes[0] = node("Softmax", {"x"}, {"e"}, {integer("axis", 7)}); }},
      {"unknown attribute `colour`; Softmax has axis",
       [](ModelFile& f) { f.graph.nodes[0] = node("Softmax", {"x"}, {"e"}, {integer("colour", 7)}); }},
      {"node `e` (Erf): unknown attribute `axis`; Erf has none",
       [](ModelFile& f) { f.graph.nodes[0] = node("Erf", {"x"}, {"e"}, {integer("axis", 0)}); }},
      {"attribute `broadcast` is of opsets 1-6, but the model is of 21, where Add has none",
       [](ModelFile& f) { f.graph.nodes[1].attributes.push_back(integer("broadcast", 1)); }},
      {"attribute `round_mode` is of opsets 24-, but the model is of 21, where Cast has saturate to",
       [](ModelFile& f) {
         f.graph.nodes[0] = node("Cast", {"x"}, {"e"}, {integer("to", 11), integer("round_mode", 1)});
       }},
      {"attribute `saturate` is of opsets 19-, but the model is of 13, where Cast has to",
       [](ModelFile& f) {
         f.opsets[0].version = 13;
         f.graph.nodes[0] = node("Cast", {"x"}, {"e"}, {integer("to", 11), integer("saturate", 1)});
       }},
      {"two attributes are named `axis`",
       [](ModelFile& f) {
         f.graph.nodes[0] = node("Softmax", {"x"}, {"e"}, {integer("axis", 0), integer("axis", 0)});
       }},
  };
  EXPECT_EQ(said_of([](ModelFile&) {}), "");
  for (const Case& each : cases) {
    const std::string said = said_of(each.spoil);
    EXPECT_NE(said.find(each.why), std::string::npos) << each.why << " | " << said;
  }
}

FunctionDefinition calling(std::string name, const Words& callees) {
  FunctionDefinition f{
      .name = std::move(name), .domain = "own", .inputs = {"a"}, .outputs = {"b"}, .opsets = {{"", 21}, {"own", 1}}};
  std::string value = "a";
  for (std::size_t i = 0; i < callees.size(); ++i) {
    const std::string next = i + 1 == callees.size() ? "b" : text("t", i);
    f.body.nodes.push_back(node(callees[i], {value}, {next}, {}, callees[i] == "Exp" ? "" : "own"));
    value = next;
  }
  return f;
}

std::string said_of_functions(std::vector<FunctionDefinition> functions) {
  return said_of([&](ModelFile& file) {
    file.graph.nodes[0] = node(functions[0].name, {"x"}, {"e"}, {}, "own");
    for (FunctionDefinition& f : functions)
      file.functions.push_back(std::make_unique<FunctionDefinition>(std::move(f)));
  });
}

TEST(OnnxBadInput, FunctionsThatCallThemselves) {
  EXPECT_NE(said_of_functions({calling("F", {"F"})}).find("calls itself"), std::string::npos);
  EXPECT_NE(said_of_functions({calling("F", {"G"}), calling("G", {"H"}), calling("H", {"F"})}).find("calls itself"),
            std::string::npos);
  EXPECT_NE(said_of_functions({calling("F", {"Exp"}), calling("F", {"Exp"})}).find("two functions are named `F`"),
            std::string::npos);
}

TEST(OnnxBadInput, FunctionsThatCallTooDeep) {
  std::vector<FunctionDefinition> chain;
  for (int i = 0; i < 1000; ++i) chain.push_back(calling(text("F", i), {text("F", i + 1)}));
  chain.push_back(calling("F1000", {"Exp"}));
  EXPECT_NE(said_of_functions(std::move(chain)).find("more than 200 deep"), std::string::npos);
}

// Forty functions, each of which calls the next one twice.
TEST(OnnxBadInput, FunctionsThatMultiply) {
  std::vector<FunctionDefinition> chain;
  for (int i = 0; i < 40; ++i) chain.push_back(calling(text("F", i), {text("F", i + 1), text("F", i + 1)}));
  chain.push_back(calling("F40", {"Exp"}));
  EXPECT_NE(said_of_functions(std::move(chain)).find("make up more than"), std::string::npos);
}

/// What is said about a file whose bytes have `from` replaced by `to`, which is as long.
std::string said_of_bytes(const ModelFile& file, const std::string& from, const std::string& to) {
  std::string bytes = written(file, "good");
  const std::size_t place = bytes.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  bytes.replace(place, from.size(), to);
  return complaint([&] { parse(std::as_bytes(std::span(bytes)), "a/model.onnx"); });
}

TEST(OnnxBadInput, EveryMessageSaysTheFileAndThePlace) {
  const auto expect_starts = [](const std::string& said, const std::string& begin) {
    EXPECT_TRUE(said.starts_with("a/model.onnx: " + begin)) << said;
  };
  const std::string f32_type = "\x10\x01", string_type = "\x10\x08";  // field 2, data_type: float, string
  ModelFile file = good();
  const std::string dims = std::string("\x08\x02");  // field 1, dims: 2
  expect_starts(said_of_bytes(file, dims + f32_type, dims + string_type), "tensor `w`: type string");
  expect_starts(said_of_bytes(file, dims + f32_type, dims + "\x10\x63"), "tensor `w`: element type 99 is none of ONNX");
  expect_starts(said_of_bytes(file, "\x08\x01\x12", "\x08\x08\x12"), "`x`: type string");  // elem_type of the input
  Attribute value{.name = "value", .kind = Kind::tensor, .tensor = constant({1.0, 2.0})};
  file.graph.nodes[0] = node("Constant", {}, {"e"}, {value});
  const std::string in_node = "node `e` (Constant): attribute `value`: tensor ``: type string";
  ModelFile without = std::move(file);
  without.graph.initializers.clear();
  without.graph.nodes[1].inputs = {"e", "e"};
  expect_starts(said_of_bytes(without, dims + f32_type, dims + string_type), in_node);
  ModelFile nested = good();
  GraphDefinition body = graph({node("Constant", {}, {"c"}, {value})}, {}, {port("c")});
  nested.graph.initializers.clear();
  nested.graph.nodes = {node("If", {"x"}, {"y"}, {subgraph("then_branch", body), subgraph("else_branch", body)})};
  expect_starts(
      said_of_bytes(nested, dims + f32_type, dims + string_type),
      "node `y` (If): attribute `then_branch`: node `c` (Constant): attribute `value`: tensor ``: type string");
  ModelFile unknown = good();
  unknown.graph.nodes[0].op = "Foo";
  expect_starts(said_of_bytes(unknown, "Foo", "Foo"), "there is no op Foo-21 of node `e` (Foo)");
  unknown.opsets[0].version = 99;
  expect_starts(said_of_bytes(unknown, "Foo", "Foo"), "operator set 99");
  // While it runs, too.
  const std::string bytes = written(good(), "good");
  const Model model = parse(std::as_bytes(std::span(bytes)), "a/model.onnx");
  ModelFile misfit = good();
  misfit.graph.inputs[0].shape.reset();
  const std::string others = written(misfit, "good");
  expect_starts(complaint([&] { parse(std::as_bytes(std::span(others)), "a/model.onnx")(constant({1.0, 2.0, 3.0})); }),
                "node `y` (Add-14): ");
}

TEST(OnnxBadInput, SparseTensorsAreNamed) {
  std::string bytes = written(good(), "good");
  const std::string sparse = std::string("\x7a\x05\x0a\x03\x42\x01") + "s";  // field 15 of a graph: values named "s"
  const std::size_t graph_field = bytes.find('\x3a');                        // field 7 of a model
  ASSERT_NE(graph_field, std::string::npos);
  ASSERT_LT(static_cast<unsigned char>(bytes[graph_field + 1]), 0x78);  // its length in one byte
  bytes.insert(graph_field + 2, sparse);
  bytes[graph_field + 1] = static_cast<char>(bytes[graph_field + 1] + static_cast<char>(sparse.size()));
  EXPECT_EQ(complaint([&] { parse(std::as_bytes(std::span(bytes)), "a/model.onnx"); }),
            "a/model.onnx: graph `g`: initializer `s` is a sparse tensor");
}

TEST(OnnxBadInput, NamesCannotDriveATerminal) {
  const std::string evil = "a\x1b[2J\r\nAll is well\x07";
  const auto expect_tame = [&](ModelFile file) {
    const std::string bytes = written(file, "evil");
    const std::string said =
        complaint([&] { parse(std::as_bytes(std::span(bytes)), "a/model.onnx")(constant({1.0, 2.0})); });
    EXPECT_NE(said.find("a\\x1b[2J\\x0d\\x0aAll is well\\x07"), std::string::npos) << said;
    for (const char c : said) EXPECT_GE(static_cast<unsigned char>(c), ' ') << said;
  };
  for (const auto& spoil : std::vector<std::function<void(ModelFile&)>>{
           [&](ModelFile& f) { f.graph.nodes[0].op = evil; }, [&](ModelFile& f) { f.graph.nodes[0].domain = evil; },
           [&](ModelFile& f) { f.graph.nodes[0].name = evil, f.graph.nodes[0].inputs = {"nowhere"}; },
           [&](ModelFile& f) { f.graph.nodes[0].inputs = {evil}; },
           [&](ModelFile& f) { f.graph.nodes[0].attributes = {integer(evil, 1)}; },
           [&](ModelFile& f) { f.graph.outputs = {port(evil)}; },
           [&](ModelFile& f) { f.graph.inputs = {port(evil), port(evil)}; },
           [&](ModelFile& f) { f.graph.initializers = {{evil, constant(1.0)}, {evil, constant(1.0)}}; },
           [&](ModelFile& f) {
             f.graph.nodes[0] = node("Cast", {"x"}, {"e"}, {word("to", evil)}), f.graph.nodes[0].name = evil;
           }}) {
    ModelFile file = good();
    spoil(file);
    expect_tame(std::move(file));
  }
}

TEST(OnnxBadInput, GraphsAreNestedSixteenDeepAtMost) {
  const auto nested = [](int depth) {
    GraphDefinition inner = graph({node("Identity", {"c"}, {"v"})}, {}, {port("v")});
    for (int i = 0; i < depth; ++i)
      inner = graph(
          {node("If", {"c"}, {"v"}, {subgraph("then_branch", inner), subgraph("else_branch", graph({}, {}, {}))})}, {},
          {port("v")});
    inner.inputs = {port("c", boolean, Shape{})};
    return file_of(std::move(inner));
  };
  const auto said_of_depth = [&](int depth) {
    const std::string bytes = written(nested(depth), "nested");
    return complaint([&] { parse(std::as_bytes(std::span(bytes)), "a/model.onnx"); });
  };
  EXPECT_EQ(said_of_depth(16).find("nested more than"), std::string::npos) << said_of_depth(16);
  expect_says(said_of_depth(17), "graphs are nested more than 16 deep");
  expect_says(said_of_depth(60), "a/model.onnx: ");  // deeper than messages of protobuf go
}

TEST(OnnxBadInput, EveryTruncationIsAnError) {
  const std::string bytes = written(good(), "good");
  int loaded = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      parse(std::as_bytes(std::span(bytes).first(size)), "cut.onnx");
      ++loaded;  // a whole number of fields
    } catch (const Error& error) { EXPECT_NE(std::string(error.what()), ""); }
  }
  EXPECT_LT(loaded, 8);
}

/// A model with a bit of everything.
ModelFile rich() {
  GraphDefinition body =
      graph({node("Add", {"v", "v"}, {"twice"}), node("Identity", {"c"}, {"goes_on"})},
            {port("i", i64), port("c", boolean), port("v")}, {port("goes_on", boolean), port("twice")});
  ModelFile file =
      file_of(graph({node("Loop", {"m", "", "x"}, {"l"}, {subgraph("body", std::move(body))}),
                     node("F", {"l"}, {"f"}, {number("alpha", 2)}, "own"), node("Reshape", {"f", "shape"}, {"r"}),
                     node("ReduceSum", {"r"}, {"y"}, {integer("keepdims", 0)}),
                     node("Gradient", {"x"}, {"d"}, {words("xs", {"x"}), word("y", "y")}, "ai.onnx.preview.training")},
                    {port("x", f32, Shape{any_size, 2})}, {port("y"), port("d")},
                    {{"m", from_values(std::vector<std::int64_t>{3}, {})},
                     {"shape", from_values(std::vector<std::int64_t>{-1}, {1})},
                     {"w", constant({{1.0}})}}));
  file.functions.push_back(std::make_unique<FunctionDefinition>(calling("F", {"Exp"})));
  return file;
}

// Bytes that are changed, cut out, doubled: an error, or a model. The fuzz target does the same for longer.
TEST(OnnxBadInput, DamagedFilesAreErrors) {
  const std::string original = written(rich(), "rich");
  EXPECT_EQ(call(model_of(rich()), {constant({{0.0, 0.0}})})[1].shape(), (Shape{1, 2}));
  std::mt19937 engine(7);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine); };
  int loaded = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = original;
    for (std::size_t changes = 1 + below(3); changes-- > 0;) {
      const std::size_t at = below(bytes.size()), length = 1 + below(std::min<std::size_t>(16, bytes.size() - at));
      switch (below(4)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
        case 2: bytes.erase(at, std::min(length, bytes.size() - 1)); break;
        default: bytes.insert(below(bytes.size()), bytes.substr(at, length));
      }
    }
    try {
      parse(std::as_bytes(std::span(bytes)), "damaged.onnx");
      ++loaded;
    } catch (const Error&) {}
  }
  EXPECT_GT(loaded, 100);
}

/// A tensor message by hand: what no writer of ours gives.
std::string varint(int number, std::uint64_t value) {
  std::string out(1, static_cast<char>(number << 3));
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
std::string field(int number, const std::string& bytes) {
  std::string length = varint(0, bytes.size());
  length.front() = static_cast<char>(number << 3 | 2);
  return length + bytes;
}
std::string said_of_tensor(const std::string& message) {
  return complaint([&] { parse_tensor(std::as_bytes(std::span(message)), "t.pb"); });
}

TEST(OnnxBadInput, TensorsThatPromiseMoreThanThereIs) {
  constexpr int dims = 1, data_type = 2, floats = 4, raw = 9, external = 13, location = 14;
  const std::string f32_type = varint(data_type, 1);
  EXPECT_EQ(said_of_tensor(f32_type + varint(dims, 1) + field(raw, "abcd")), "");
  EXPECT_NE(said_of_tensor(f32_type + varint(dims, 2) + field(raw, "abcd")).find("raw_data has 4 bytes"),
            std::string::npos);
  EXPECT_NE(said_of_tensor(f32_type + varint(dims, 1) + field(floats, "")).find("0 elements are there"),
            std::string::npos);
  EXPECT_NE(said_of_tensor(f32_type + varint(dims, ~std::uint64_t{0}) + field(raw, "")).find("dimension of -1"),
            std::string::npos);
  const std::string huge = varint(dims, std::uint64_t{1} << 62) + varint(dims, std::uint64_t{1} << 40);
  EXPECT_NE(said_of_tensor(f32_type + huge + field(raw, "abcd")), "");
  const auto before = memory_use().peak_bytes;
  EXPECT_NE(said_of_tensor(f32_type + varint(dims, std::uint64_t{1} << 40) + field(floats, "abcd")), "");
  EXPECT_NE(said_of_tensor(f32_type + varint(dims, std::uint64_t{1} << 40) + varint(location, 1) +
                           field(external, field(1, "location") + field(2, "x"))),
            "");
  EXPECT_LE(memory_use().peak_bytes, before + 4096);
  std::string nine;
  for (int i = 0; i < 9; ++i) nine += varint(dims, 1);
  EXPECT_NE(said_of_tensor(f32_type + nine + field(raw, "abcd")).find("9 dimensions"), std::string::npos);
  EXPECT_EQ(said_of_tensor(varint(data_type, 8)), "t.pb: tensor ``: type string");
  EXPECT_EQ(said_of_tensor(varint(data_type, 17)), "t.pb: tensor ``: type f8_e4m3fn");
  EXPECT_NE(said_of_tensor(varint(data_type, 77)).find("none of ONNX"), std::string::npos);
}

/// A model whose initializer w lies outside, at the place that the entries name.
std::string with_external(const std::string& location, const std::string& offset = "0") {
  constexpr int dims = 1, data_type = 2, name = 8, external = 13, data_location = 14;
  const auto entry = [](const std::string& key, const std::string& value) {
    return field(external, field(1, key) + field(2, value));
  };
  const std::string tensor = varint(dims, 2) + varint(data_type, 1) + field(name, "w") + varint(data_location, 1) +
                             entry("location", location) + entry("offset", offset) + entry("length", "8");
  ModelFile file = good();
  file.graph.initializers.clear();
  file.graph.inputs.push_back(port("w"));
  const std::string rest = written(file, "m");
  // The initializer as a further part of the graph: messages that come twice are merged.
  return rest + field(7, field(5, tensor));
}

class OnnxExternal : public testing::Test {
 protected:
  OnnxExternal() {
    fs::create_directories(folder_ / "inner");
    const float values[] = {0, 10, 20};
    for (const fs::path& place : {folder_ / "data.bin", folder_ / "inner" / "data.bin", outside_})
      std::ofstream(place, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
    fs::create_symlink(outside_, folder_ / "link.bin");
    fs::create_directory_symlink(folder_.parent_path(), folder_ / "way");
  }

  std::string said(const std::string& bytes) {
    std::ofstream(folder_ / "m.onnx", std::ios::binary) << bytes;
    return complaint([&] { last_ = load(folder_ / "m.onnx")(constant({0.0, 0.0})); });
  }
  const EmptyTestDirectory around_;
  const fs::path folder_ = around_.path() / "model", outside_ = around_.path() / "gradus_outside.bin";
  Tensor last_;
};

TEST_F(OnnxExternal, WithinTheFolder) {
  EXPECT_EQ(said(with_external("data.bin", "4")), "");
  EXPECT_EQ(last_.to_vector<float>(), (std::vector<float>{11, 21}));
  EXPECT_EQ(said(with_external("inner/data.bin")), "");
}

TEST_F(OnnxExternal, NothingElse) {
  const std::pair<std::string, const char*> refused[] = {
      {with_external("../gradus_outside.bin"), "leads out"},
      {with_external("inner/../../gradus_outside.bin"), "leads out"},
      {with_external((folder_ / "data.bin").string()), "no file within"},
      {with_external("link.bin"), "is a link"},
      {with_external("way/gradus_outside.bin"), "is a link"},
      {with_external("inner"), "is no file"},
      {with_external("absent.bin"), "is not there"},
      {with_external(""), "no file within"},
      {with_external("data.bin", "8"), "12 bytes"},
      {with_external("data.bin", "-1"), "not a number"},
      {with_external("data.bin", "9223372036854775807"), "12 bytes"}};
  for (const auto& [bytes, why] : refused) {
    const std::string what = said(bytes);
    EXPECT_NE(what.find(why), std::string::npos) << why << " | " << what;
  }
}

}  // namespace
}  // namespace gradus::onnx::bad_input_test
