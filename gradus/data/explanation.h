/// Report of the time that each stage of a pipeline takes.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace gradus {

namespace detail {
class Stage;
}  // namespace detail

/// Times of all passes so far over the stages of a dataset. Datasets that share stages share their times. Seconds are
/// summed over threads.
struct PipelineExplanation {
  /// Time of one stage.
  struct StageTime {
    std::string stage;          // name with arguments, such as "batch(32)"
    int depth = 0;              // 0: the last stage; its sources are one deeper
    std::int64_t elements = 0;  // elements that it made
    double seconds = 0;         // without the stages that it reads
  };
  std::vector<StageTime> stages;  // from the last one to the sources
  std::int64_t reads = 0;         // elements that readers took from the last stage
  double readers_waited = 0;      // seconds that readers waited for elements made ahead
  double threads_waited = 0;      // seconds that background threads waited for a reader to take an element

  /// Prints a table, and a line that says which side waits for the other.
  friend std::ostream& operator<<(std::ostream& out, const PipelineExplanation& explanation);
};

/// The times of `stage` and of all stages that it reads.
PipelineExplanation explanation_of(const detail::Stage& stage);

}  // namespace gradus
