/// Options of a compilation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "gradus/backend/matmul_precision.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// interpreted: begins at once, op by op. compiled: code is generated first. Both give the same bits.
enum class Tier { interpreted, compiled };

struct CompileOptions {
  std::vector<std::string> disable = {};  // names of passes, kernel choices and executor switches (compiler/pipeline.h)
  Tier tier = Tier::compiled;
  /// Budget for temporaries when the graph's symbols have the values `symbols`; 0: none. Of compiled programs.
  std::int64_t max_bytes = 0;
  std::vector<std::int64_t> symbols = {};
  TargetModel target = {};  // by which passes decide; a Backend takes its own
  bool keeps_code = false;  // for an object file (backend/object.h): its code is made for it alone
  bool profile = false;     // kernels() says how long they really take
  /// Of a function's program, per output of the graph: the place among the inputs of the value that it is the next one
  /// of, as of a Variable; -1: it is no next value; -2: it is one, but the program does not read the value before.
  std::vector<int> replaces = {};
  std::optional<MatmulPrecision> matmul_precision = {};  // not given: keeps_all_bits() says it
};

}  // namespace gradus
