/// Where the time of a pipeline goes.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace gradus {

class Stage;

/// Of all passes so far over the stages of a dataset; datasets that share stages share their times. Seconds are summed
/// over threads.
struct PipelineExplanation {
  struct StageTime {
    std::string stage;
    int depth = 0;  // 0: the last stage; its sources lie one deeper
    std::int64_t elements = 0;
    double seconds = 0;  // without the stages that it reads
  };
  std::vector<StageTime> stages;  // from the last one to the sources
  std::int64_t reads = 0;         // elements that readers asked of the last stage
  double readers_waited = 0;      // for elements that are made ahead
  double threads_waited = 0;      // background threads, until a reader takes an element

  /// A table, and a line that says who waits for whom.
  friend std::ostream& operator<<(std::ostream& out, const PipelineExplanation& explanation);
};

PipelineExplanation explanation_of(const Stage& stage);

}  // namespace gradus
