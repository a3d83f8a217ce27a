#include "gradus/data/rethrow.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

template <class E> void rethrow_if(const std::exception& problem, const std::string& where) {
  if (dynamic_cast<const E*>(&problem)) throw E(text(where, ": ", problem.what()));
}

}  // namespace

void rethrow_in(const std::string& where) {
  try {
    throw;
  } catch (const std::exception& problem) {
    rethrow_if<InvalidArgument>(problem, where);
    rethrow_if<OutOfRange>(problem, where);
    rethrow_if<DataError>(problem, where);
    rethrow_if<ResourceExhausted>(problem, where);
    rethrow_if<Unavailable>(problem, where);
    rethrow_if<Diverged>(problem, where);
    rethrow_if<InternalError>(problem, where);
    if (!is_of_library(problem)) throw;
    throw Error(text(where, ": ", problem.what()));
  }
}

}  // namespace gradus
