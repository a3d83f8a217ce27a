#include "gradus/data/explanation.h"
#include <algorithm>
#include <iomanip>
#include <ostream>
#include "gradus/base/error.h"
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

std::string fixed(double value, int digits) { return text(std::fixed, std::setprecision(digits), value); }

std::string line(std::string_view stage, const auto& elements, const std::string& each, const std::string& share) {
  return text(std::left, std::setw(40), stage.substr(0, 40), ' ', std::right, std::setw(12), elements, ' ',
              std::setw(12), each, ' ', std::setw(8), share, '\n');
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
  out << line("stage", "elements", "us/element", "share");
  for (const auto& stage : explanation.stages) {
    const std::string name = std::string(static_cast<std::size_t>(2 * stage.depth), ' ') + stage.stage;
    const double each = stage.elements > 0 ? stage.seconds * 1e6 / static_cast<double>(stage.elements) : 0;
    out << line(name, stage.elements, fixed(each, 3), fixed(all > 0 ? 100 * stage.seconds / all : 0, 1) + '%');
  }
  out << text(explanation.reads, " elements were read; readers waited ", fixed(explanation.readers_waited, 3),
              " s, background threads waited ", fixed(explanation.threads_waited, 3), " s: ");
  if (explanation.readers_waited == 0 && explanation.threads_waited == 0)
    return out << "nothing was made ahead; prefetch() would\n";
  if (explanation.threads_waited >= explanation.readers_waited) return out << "the reader is slower than the stages\n";
  return out << "the stages are slower than the reader, most of all " << (slowest ? slowest->stage : "none") << '\n';
}

}  // namespace gradus
