/// Training steps at sizes where passes act: without any one of them a step is another program with the same results.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <optional>
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/backend/cpu/codegen/lower.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/function/synchronize.h"
#include "gradus/function/trace.h"
#include "gradus/gradus.h"
#include "tests/threads.h"

namespace each_pass_test {
using namespace gradus;

using Names = std::vector<std::string>;
using Bytes = std::vector<std::byte>;

// ---------------------------------------------------------------- steps

/// A step as its trace has it, before any pass, and what it is run with.
struct Step {
  Graph graph;
  std::vector<Bytes> inputs;
};

Bytes bytes_of_buffer(const Buffer& buffer) {
  const auto* first = static_cast<const std::byte*>(buffer.host());
  return {first, first + buffer.bytes()};
}

/// `body` may assign variables. It runs twice before, so that all of them are there, with values of training.
template <class Body> Step traced(const Tensors& arguments, const Body& body) {
  for (int i = 0; i < 2; ++i) body(arguments);
  synchronize();
  std::vector<Spec> specs;
  for (const Tensor& argument : arguments) specs.push_back(argument.spec());
  std::optional<Trace> trace(std::in_place, specs);
  const TraceMemory& memory = trace->memory();
  std::vector<Ref<Node>> roots{body(trace->parameters()).node()};
  for (const auto& cell : trace->cells())
    if (cell->assigned) roots.push_back(cell->now.node());
  Flattened flat = flatten(roots, [&](const Node& node) { return node.trace != memory.id(); });
  Tensors bound;
  for (std::size_t k = 0; k < flat.inputs.size(); ++k) {
    const Source source = memory.source_of(*flat.inputs[k]);
    const auto index = static_cast<std::size_t>(source.index);
    switch (source.kind) {
      case Source::Kind::argument: bound.push_back(arguments[index]); break;
      case Source::Kind::call_key: bound.emplace_back(); break;
      case Source::Kind::cell: {
        const auto& cell = **std::ranges::find(trace->cells(), source.index, [](const auto& c) { return c->index; });
        bound.push_back(cell.cell->value);
        if (cell.assigned) flat.graph.dying.push_back(flat.graph.inputs[k]);
        break;
      }
      default: bound.emplace_back(flat.inputs[k]);
    }
  }
  trace.reset();
  Step step{std::move(flat.graph), {}};
  for (const Tensor& each : bound)
    step.inputs.push_back(bytes_of_buffer((each.defined() ? each : constant(std::int64_t{4321})).observed()));
  return step;
}

template <class Net, class Optimizing>
Step step_of(Net& model, Optimizing optimizer, const Tensor& x, const Tensor& y) {
  const SparseCategoricalCrossentropy loss_function(from_logits);
  return traced({x, y}, [&](In in) {
    GradientTape tape;
    const Loss loss = loss_function(in[1], model(in[0], training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss.value();
  });
}

Tensor labels(const Shape& shape) { return random::integers(shape, {.high = 3, .seed = 2}); }

Step dense_step() {
  Sequential model{Dense(512, gelu), Dense(512, tanh), Dropout(0.1), Dense(3)};
  return step_of(model, AdamW({.global_clipnorm = 1}), random::normal({64, 512}, {.seed = 1}), labels({64}));
}

struct Block {
  LayerNormalization before, between;
  MultiHeadAttention attention{4, 32, {.causal = true}};
  Dense up{1024, gelu}, down{128};
  Tensor operator()(const Tensor& x) const {
    const Tensor attended = x + attention(before(x));
    return attended + down(up(between(attended)));
  }
};
struct Transformer {
  const Tensor table = random::normal({50, 128}, {.seed = 3});
  std::array<Block, 2> blocks;
  Dense logits{3};
  Tensor operator()(const Tensor& x) const { return logits(blocks[1](blocks[0](gather(table, x) * 3))); }
};
Step transformer_step() {
  Model<Transformer> model;
  return step_of(model, Adam(), random::integers({8, 64}, {.high = 50, .seed = 1}), labels({8, 64}));
}

Step images_step() {
  Sequential model{RandomZoom(0.2),
                   Conv2D(64, 3, {.padding = Padding::same, .activation = relu}),
                   DepthwiseConv2D(3, {.padding = Padding::same, .use_bias = false}),
                   BatchNormalization(),
                   Conv2D(64, 3, {.padding = Padding::same, .activation = relu}),
                   MaxPooling2D(2),
                   Flatten(),
                   Dense(3)};
  return step_of(model, SGD({.momentum = 0.9}), random::normal({4, 14, 14, 3}, {.seed = 1}), labels({4}));
}

Step sequences_step() {
  Sequential model{LSTM(64), Dense(3)};
  return step_of(model, RMSprop(), random::normal({32, 12, 16}, {.seed = 1}), labels({32}));
}

Step deep_step() {
  Sequential model{Dense(64, gelu), Dense(64, tanh), Dense(64, gelu), Dense(64, tanh), Dense(64, gelu), Dense(3)};
  return step_of(model, SGD(), random::normal({256, 32}, {.seed = 1}), labels({256}));
}

struct Row {
  const char* name;
  Step (*step)();
  double budget;  // of the bytes that are needed without one; 0: none
  Names acting;   // some of the passes that make it another program; together the rows name all
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row rows[] = {
    {"dense",
     dense_step,
     0,
     {"fold", "simplify", "eliminate", "fuse", "rederive", "reuse", "concurrency", "share", "turns", "balance"}},
    {"transformer",
     transformer_step,
     0,
     {"eliminate", "attention", "lookups", "fuse", "rederive", "remake", "reuse", "concurrency", "share", "epilogues",
      "balance"}},
    {"images", images_step, 0, {"fuse", "share", "samples", "strips", "depthwise", "winograd", "balance"}},
    {"sequences", sequences_step, 0, {"hoist", "fuse", "residuals", "share", "epilogues", "rows"}},
    {"within_a_budget", deep_step, 0.6, {"fuse", "share", "recompute"}},
};

// ---------------------------------------------------------------- programs

/// The results of a run whose outputs may take the memory of inputs that die.
std::vector<Bytes> results_of(const CpuProgram& program, const Step& step) {
  std::vector<Ref<Buffer>> inputs, outputs(program.graph().outputs.size());
  for (const Bytes& bytes : step.inputs) {
    inputs.push_back(Buffer::allocate(static_cast<std::int64_t>(bytes.size())));
    std::memcpy(inputs.back()->data(), bytes.data(), bytes.size());
  }
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const int input = program.may_overwrite()[k]; input >= 0) outputs[k] = inputs[static_cast<std::size_t>(input)];
  program.run(inputs, outputs);
  std::vector<Bytes> results;
  for (const Ref<Buffer>& output : outputs) results.push_back(bytes_of_buffer(*output));
  return results;
}

/// All that can be seen of a program: its graph, its kernels with their bytes and places, its memory, and how its jobs
/// are divided.
std::string description(const CpuProgram& program, int threads) {
  std::ostringstream out;
  out << to_text(program.graph()) << program.report().arena_bytes << ' ' << program.report().temporary_bytes << ' '
      << program.report().recomputed_bytes << '\n';
  for (const Kernel& kernel : program.report().kernels) {
    for (const std::string& op : kernel.ops) out << op << ' ';
    out << kernel.name << ' ' << kernel.bytes_read << ' ' << kernel.bytes_written << ' ' << kernel.flops << ' '
        << kernel.stage << ' ' << kernel.divided << ' ' << kernel.bytes_alive << '\n';
  }
  const std::shared_ptr<const Binding> binding = program.bound_within({}, threads);
  for (const Job& job : binding->jobs)
    out << job.extent << ' ' << job.grain << ' ' << job.piece << ' ' << static_cast<int>(job.cut) << ' ' << job.in_turns
        << ' ' << job.team << ' ' << job.scratch_stride << '\n';
  return out.str();
}

double largest_difference(const std::vector<Bytes>& a, const std::vector<Bytes>& b, const Graph& graph) {
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (graph[graph.outputs[k]].spec.dtype != f32) continue;
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a[k].size(); i += sizeof(float)) {
      float x, y;
      std::memcpy(&x, &a[k][i], sizeof x), std::memcpy(&y, &b[k][i], sizeof y);
      difference = std::max<double>(difference, std::abs(x - y)), size = std::max<double>(size, std::abs(y));
    }
    most = std::max(most, size > 0 ? difference / size : difference);
  }
  return most;
}

class EachPass : public testing::TestWithParam<Row> {
 protected:
  std::shared_ptr<const CpuProgram> compiled(Names disable) const {
    return cpu_backend::compile(step_.graph, {.disable = std::move(disable), .max_bytes = budget_});
  }
  void expect_same(const CpuProgram& program, const std::string& way) const {
    const std::vector<Bytes> results = results_of(program, step_);
    ASSERT_EQ(results.size(), expected_.size());
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Spec& spec = program.graph()[program.graph().outputs[k]].spec;
      EXPECT_EQ(results[k], expected_[k]) << way << ": output " << k << ", " << spec;
    }
  }

  void SetUp() override {
    set_seed(1);
    step_ = GetParam().step();
    if (GetParam().budget > 0)
      budget_ =
          static_cast<std::int64_t>(static_cast<double>(compiled({})->report().temporary_bytes) * GetParam().budget);
    usual_ = compiled({});
    expected_ = results_of(*usual_, step_);
  }

  static constexpr int threads = 2;
  const Threads threads_{threads};
  const ThreadRatesScope rates_{ThreadRates()};  // which kernels are shared follows from them
  Step step_;
  std::int64_t budget_ = 0;
  std::shared_ptr<const CpuProgram> usual_;  // kept: kernels are shared with it
  std::vector<Bytes> expected_;
};

TEST_P(EachPass, ActsAndChangesNoBit) {
  const std::string usual = description(*usual_, threads);
  std::int64_t before = cpu_backend::kernels_generated();
  EXPECT_EQ(description(*compiled({}), threads), usual);
  EXPECT_EQ(cpu_backend::kernels_generated(), before) << "what is there already is shared";
  for (const std::string_view pass : pass_names()) {
    before = cpu_backend::kernels_generated();
    const std::shared_ptr<const CpuProgram> program = compiled({std::string(pass)});
    const bool generates = cpu_backend::kernels_generated() > before;
    const Names& acting = GetParam().acting;
    if (std::ranges::find(acting, pass) != acting.end()) {
      EXPECT_TRUE(pass == "share" ? generates : description(*program, threads) != usual) << pass << " does nothing";
    }
    if (pass != "winograd") expect_same(*program, text("without ", pass));
    else EXPECT_LT(largest_difference(results_of(*program, step_), expected_, program->graph()), 1e-4);
  }
}

TEST_P(EachPass, WithoutAnyAndInterpretedTheBitsAreTheSame) {
  Names all;
  for (const std::string_view pass : pass_names())
    if (pass != "winograd") all.emplace_back(pass);
  expect_same(*compiled(all), "without any");
  expect_same(*cpu_backend::compile(step_.graph, {.tier = Tier::interpreted}), "interpreted");
  for (const int number : {1, 3}) {
    const Threads other(number);
    expect_same(*usual_, text(number, " threads"));
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, EachPass, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(EachPassOfAll, ActsInSomeStep) {
  for (const std::string_view pass : pass_names())
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const Row& row) { return std::ranges::count(row.acting, pass) > 0; }))
        << pass;
}

}  // namespace each_pass_test
