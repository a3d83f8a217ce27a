#include "gradus/backend/matmul_precision.h"
#include <cstdlib>
#include <string_view>
#include "gradus/base/error.h"

namespace gradus {

bool keeps_all_bits(std::optional<MatmulPrecision> asked) {
  if (asked) return *asked == MatmulPrecision::highest;
  const char* const written = std::getenv("GRADUS_MATMUL_PRECISION");
  const std::string_view word = written ? written : "";
  require(word.empty() || word == "default" || word == "highest", "GRADUS_MATMUL_PRECISION: `", word,
          "`: expected highest or default");
  return word == "highest";
}

}  // namespace gradus
