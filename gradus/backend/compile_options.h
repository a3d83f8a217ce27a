/// Options of a compilation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "gradus/backend/matmul_precision.h"
#include "gradus/base/rooms.h"
#include "gradus/compiler/target_model.h"
#include "gradus/tensor/device.h"

namespace gradus {

namespace detail::inline rooms {
class ShardRun;
}  // namespace detail::inline rooms

/// interpreted: begins at once, op by op. compiled: code is generated first. Both give the same bits.
enum class Tier { interpreted, compiled };

struct CompileOptions {
  std::vector<std::string> disable = {};  // names of passes, kernel choices and executor switches (compiler/pipeline.h)
  Tier tier = Tier::compiled;
  /// Budget for temporaries when the graph's symbols have the values `symbols`; 0: none. For compiled programs.
  std::int64_t max_bytes = 0;
  std::vector<std::int64_t> symbols = {};
  TargetModel target = {};  // by which passes decide; a Backend takes its own
  bool keeps_code = false;  // for an object file (backend/object.h): its code is made for it alone
  bool profile = false;     // kernels() says how long they really take
  /// For a function's program, per output of the graph: the place among the inputs of the value that it replaces, as a
  /// Variable's; -1: it replaces none; -2: it replaces one that the program does not read.
  std::vector<int> replaces = {};
  std::optional<MatmulPrecision> matmul_precision = {};  // not given: keeps_all_bits() says it
  const ShardRun* shards = nullptr;   // that a program of shards is compiled for; it is read while compiling alone
  std::optional<Device> device = {};  // where the program will run, if that is known: a plugin's code is made at once
};

}  // namespace gradus
