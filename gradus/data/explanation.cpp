#include "gradus/data/explanation.h"
#include <algorithm>
#include <cstdio>
#include <ostream>
#include "gradus/data/stage.h"

namespace gradus {
namespace {

double seconds(const std::atomic<std::int64_t>& nanoseconds) {
  return static_cast<double>(nanoseconds.load(std::memory_order_relaxed)) * 1e-9;
}

void collect(const Stage& stage, int depth, std::vector<PipelineExplanation::StageTime>& out) {
  double own = seconds(stage.times().making);
  for (const Stage* source : stage.sources()) own -= seconds(source->times().making);
  out.push_back({stage.name(), depth, stage.times().elements.load(std::memory_order_relaxed), std::max(own, 0.0)});
  for (const Stage* source : stage.sources()) collect(*source, depth + 1, out);
}

std::string line(const char* format, auto... values) {
  char buffer[256];
  const int count = std::snprintf(buffer, sizeof buffer, format, values...);
  return std::string(buffer, static_cast<std::size_t>(std::clamp(count, 0, 255)));
}

}  // namespace

PipelineExplanation explanation_of(const Stage& stage) {
  PipelineExplanation explanation;
  collect(stage, 0, explanation.stages);
  explanation.reads = stage.times().reads.load(std::memory_order_relaxed);
  explanation.readers_waited = seconds(stage.times().readers_waited);
  explanation.threads_waited = seconds(stage.times().threads_waited);
  return explanation;
}

std::ostream& operator<<(std::ostream& out, const PipelineExplanation& explanation) {
  double all = 0;
  const PipelineExplanation::StageTime* slowest = nullptr;
  for (const auto& stage : explanation.stages) {
    all += stage.seconds;
    if (!slowest || stage.seconds > slowest->seconds) slowest = &stage;
  }
  out << line("%-40s %12s %12s %8s\n", "stage", "elements", "us/element", "share");
  for (const auto& stage : explanation.stages) {
    const std::string name = std::string(static_cast<std::size_t>(2 * stage.depth), ' ') + stage.stage;
    const double each = stage.elements > 0 ? stage.seconds * 1e6 / static_cast<double>(stage.elements) : 0;
    out << line("%-40s %12lld %12.3f %7.1f%%\n", name.substr(0, 40).c_str(), static_cast<long long>(stage.elements),
                each, all > 0 ? 100 * stage.seconds / all : 0.0);
  }
  out << line("%lld elements were read; readers waited %.3f s, background threads waited %.3f s: ",
              static_cast<long long>(explanation.reads), explanation.readers_waited, explanation.threads_waited);
  if (explanation.readers_waited == 0 && explanation.threads_waited == 0)
    return out << "nothing was made ahead; prefetch() would\n";
  if (explanation.threads_waited >= explanation.readers_waited) return out << "the reader is slower than the stages\n";
  return out << "the stages are slower than the reader, most of all " << (slowest ? slowest->stage : "none") << '\n';
}

}  // namespace gradus
