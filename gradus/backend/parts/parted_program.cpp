#include "gradus/backend/parts/parted_program.h"
#include <algorithm>
#include "gradus/backend/parts/shared_executables.h"

namespace gradus {

void PartedProgram::compile_parts_of(Partition& partition, CompileOptions options,
                                     const std::function<Device(int place)>& device_of, int last_exchange) {
  options_ = std::move(options);
  options_.replaces.clear();  // it names outputs of the whole: parts wait for steps that may fail
  options_.shards = nullptr;
  for (GraphPart& part : partition.parts(last_exchange)) {
    last_stage_ = part.key.stage;
    parts_.push_back({std::move(part), device_of(part.key.place)});
  }
  std::vector<PartOfProgram> all;
  for (const CompiledPart& part : parts_) all.push_back({&backend_of(part.device), &part.graph});
  const auto executables = compile_parts(all, options_);
  for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].executable = executables[p];
  for (int i = 0; i < graph_.size(); ++i) places_.push_back(partition[i].key.place);
  for (const int output : graph_.outputs) {
    sources_.push_back(partition.source_of(output));
    may_overwrite_.push_back(input_taken_by(sources_.back()));
  }
}

/// The input of the whole graph in whose place value `source` may be computed, or -1.
int PartedProgram::input_taken_by(int source) const {
  for (const CompiledPart& part : parts_) {
    const auto made = std::ranges::find(part.outputs, source);
    if (made == part.outputs.end()) continue;
    const int taken = part.executable->may_overwrite()[at(made - part.outputs.begin())];
    if (taken < 0) return -1;
    const auto input = std::ranges::find(graph_.inputs, part.inputs[at(taken)]);
    return input == graph_.inputs.end() ? -1 : static_cast<int>(input - graph_.inputs.begin());
  }
  return -1;
}

ExecutableReport PartedProgram::report(std::span<const std::int64_t> symbols) const {
  ExecutableReport all;
  int stage = 0;  // of the first kernels of parts side by side
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (p > 0 && parts_[p].key.stage != parts_[p - 1].key.stage) stage = all.stages();
    ExecutableReport part = parts_[p].executable->report(symbols);
    for (Kernel& kernel : part.kernels) kernel.device = parts_[p].device;
    all.add(std::move(part), stage);
  }
  return all;
}

std::int64_t PartedProgram::temporary_bytes(std::span<const std::int64_t> symbols) const {
  std::int64_t bytes = 0;
  for (const CompiledPart& part : parts_) bytes += part.executable->temporary_bytes(symbols);
  return bytes;
}

std::size_t PartedProgram::footprint() const {
  std::size_t bytes = 0;
  for (const CompiledPart& part : parts_) bytes += part.executable->footprint();
  return bytes;
}

// ---------------------------------------------------------------- the run

void PartsRun::run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs) {
  for (std::size_t k = 0; k < inputs.size(); ++k) values_[graph_.inputs[k]] = inputs[k];
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k]) given_.emplace(program_.sources_[k], outputs[k]);
  const std::span<const CompiledPart> parts = program_.parts_;
  std::size_t first = 0;
  for (int stage = 0; stage <= program_.last_stage_; ++stage) {
    std::size_t past = first;
    while (past < parts.size() && parts[past].key.stage == stage) ++past;
    run_stage(stage, parts.subspan(first, past - first));
    first = past;
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = output(k);
}

std::vector<LaneWork> PartsRun::work_of(std::span<const CompiledPart> parts) {
  std::vector<LaneWork> all;
  for (const CompiledPart& part : parts) all.push_back({part.device, [this, &part] { run_task({part, part.device}); }});
  return all;
}

void PartsRun::run_task(const Task& task) {
  const CompiledPart& part = task.part;
  std::vector<Ref<Buffer>> inputs, outputs;
  for (const int input : part.inputs) inputs.push_back(brought(input, task));
  for (const int output : part.outputs) {
    const auto memory = given_.find(output);
    outputs.push_back(memory == given_.end() ? Ref<Buffer>() : memory->second);
  }
  const auto executable = task.device.kind == part.device.kind
                              ? part.executable
                              : compile_once(backend_of(task.device), part.graph, program_.options_);
  executable->run(inputs, outputs, {.symbols = symbols_, .device = task.device, .listener = task.listener});
  executable->wait(outputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) keep(part.outputs[k], task, std::move(outputs[k]));
}

}  // namespace gradus
