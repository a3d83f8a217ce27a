/// RunContext: the conditions of one run of an Executable, beside its inputs and outputs. No other state of the thread
/// that compiles or runs it decides on a result: an executable asks it for its team and the log of a profile alone.
#pragma once
#include <cstdint>
#include <span>
#include "gradus/base/rooms.h"
#include "gradus/tensor/device.h"

namespace gradus {

class RunListener;
namespace detail::inline rooms {
class ShardRun;
}  // namespace detail::inline rooms

struct RunContext {
  std::span<const std::int64_t> symbols = {};  // the values of the graph's symbols
  Device device = {};                          // of the kind that the program was compiled for: where inputs are
  ShardRun* shards = nullptr;                  // of the batch that a program of shards runs on
  RunListener* listener = nullptr;             // receives outputs as they become complete; null: there is none
};

}  // namespace gradus
