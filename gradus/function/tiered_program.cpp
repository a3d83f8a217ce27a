/// Which tier, and when.
#include "gradus/function/tiered_program.h"

namespace gradus {
namespace {

/// Compiling takes about 200 us a value, interpreting up to 2.5 ns an element where it has to go through memory (the
/// first step of mlp_tiny: 20 against 1 ms, of mlp_big: 66 against 320 ms). How often a loop runs is not known: it is
/// compiled.
bool is_interpreted_faster(const Graph& graph, std::span<const std::int64_t> symbols) {
  constexpr std::int64_t elements_per_value = 80000;
  std::int64_t elements = 0, values = 0;
  for (const Value& v : graph.values) {
    if (!v.op || v.op.is_view() || v.op.is_alias()) continue;
    if (v.op.is_control()) return false;
    elements += v.spec.shape.evaluated(symbols).size();
    ++values;
  }
  return elements < elements_per_value * values;
}

}  // namespace

TieredProgram::TieredProgram(Graph graph, CompileOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {
  if (options_.max_bytes > 0 || !is_interpreted_faster(graph_, options_.symbols)) {
    compile_now();
    return;
  }
  interpreted_ = compile(graph_, {.disable = options_.disable, .tier = Tier::interpreted});
}

std::shared_ptr<const Program> TieredProgram::next() {
  const auto known = [this] { return std::shared_ptr<const Program>(std::shared_ptr<void>(), ready_.load()); };
  if (ready_.load(std::memory_order_acquire)) [[likely]]
    return known();
  std::lock_guard lock(guard_);
  if (interpreted_) return std::exchange(interpreted_, nullptr);
  if (!compiled_) compile_later();
  return known();
}

const Program& TieredProgram::compiled() {
  std::lock_guard lock(guard_);
  if (!compiled_) compile_later();
  return *compiled_;
}

void TieredProgram::compile_now() {
  compiled_ = compile(graph_, options_);  // where that fails, the graph is still there
  graph_ = {};
  ready_.store(compiled_.get(), std::memory_order_release);
}

void TieredProgram::compile_later() {
  compile_now();
  later_seconds_.store(compiled_->compile_seconds(), std::memory_order_relaxed);
}

std::size_t TieredProgram::footprint() const {
  std::lock_guard lock(guard_);
  std::size_t bytes = sizeof *this + graph_.values.size() * (sizeof(Value) + 16);
  for (const auto& program : {compiled_, interpreted_})
    if (program) bytes += program->footprint();
  return bytes;
}

}  // namespace gradus
