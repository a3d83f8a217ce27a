/// Fuzz target: clusters of JSON, questions at the meeting's desk, and to rank 1 about commits. A cluster that is read
/// can be described; all else is an Error, and every question gets an answer.
#include <cstdint>
#include <cstdlib>
#include "gradus/base/error.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/commit_witness.h"
#include "gradus/distribute/meeting_desk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string written(reinterpret_cast<const char*>(data), size);
  for (const std::string_view source : {"GRADUS_CLUSTER", "TF_CONFIG", "SLURM_STEP_NODELIST"}) {
    try {
      const gradus::Cluster read = gradus::cluster_of([&](std::string_view name) {
        if (name == source) return written;
        if (source[0] != 'S') return std::string();
        return std::string(name == "SLURM_PROCID" ? "0" : name == "SLURM_STEP_NUM_TASKS" ? "2" : "");
      });
      if (read.describe().empty()) std::abort();
    } catch (const gradus::Error&) {}
  }
  gradus::MeetingDesk desk({.ranks = 2});
  bool is_held = true;
  desk.ask(1, written, [&](std::string_view) { is_held = false; });
  if (is_held) desk.left(1);  // a rank that has joined, and waits for another
  gradus::CommitWitness witness(3);
  bool is_answered = false;
  witness.ask(1, written, [&](std::string_view) { is_answered = true; });
  if (!is_answered) std::abort();
  try {
    gradus::CommitWitness::decided(written);
  } catch (const gradus::DataError&) {}
  return 0;
}
