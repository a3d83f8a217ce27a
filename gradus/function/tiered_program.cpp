/// Chooses the tier of each run.
#include "gradus/function/tiered_program.h"
#include <algorithm>
#include <utility>
#include "gradus/backend/compile.h"
#include "gradus/backend/tiers.h"
#include "gradus/base/clock.h"

namespace gradus {

namespace {

thread_local bool are_tiers_patient = false;

}  // namespace

PatientTiers::PatientTiers() : outer_(std::exchange(are_tiers_patient, true)) {}
PatientTiers::~PatientTiers() { are_tiers_patient = outer_; }

TieredProgram::TieredProgram(Graph graph, CompileOptions options)
    : graph_(std::move(graph)), options_(std::move(options)) {
  const bool is_compiled_now = options_.max_bytes > 0 || !is_interpreted_sooner(graph_, options_);
  if (is_compiled_now) compile_now();
  options_.shards = nullptr;  // they end with the call; a program of shards has been compiled for them
  if (is_compiled_now) return;
  if (are_tiers_patient) patience_ = runs_before_code(graph_, options_.symbols);
  interpreted_ = compile(
      graph_, {.disable = options_.disable, .tier = Tier::interpreted, .matmul_precision = options_.matmul_precision});
}

std::shared_ptr<const Executable> TieredProgram::next() {
  const auto known = [this] { return std::shared_ptr<const Executable>(std::shared_ptr<void>(), ready_.load()); };
  if (ready_.load(std::memory_order_acquire)) [[likely]]
    return known();
  std::lock_guard lock(guard_);
  if (interpreted_) return --patience_ > 0 ? interpreted_ : std::exchange(interpreted_, nullptr);
  if (!compiled_) compile_later();
  return known();
}

const Executable& TieredProgram::compiled() {
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
  const double start = steady_seconds();
  compile_now();
  later_seconds_.store(steady_seconds() - start, std::memory_order_relaxed);
}

std::size_t TieredProgram::footprint() const {
  std::lock_guard lock(guard_);
  std::size_t bytes = sizeof *this + graph_.values.size() * (sizeof(Value) + 16);
  for (const auto& program : {compiled_, interpreted_})
    if (program) bytes += program->footprint();
  return bytes;
}

}  // namespace gradus
