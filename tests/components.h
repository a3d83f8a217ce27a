/// Whether the components of several ranks can be used here: for tests that are skipped where they cannot.
#pragma once
#include <string>
#include "gradus/base/error.h"
#include "gradus/distribute/messages/rpc.h"
#include "gradus/distribute/messages/ucx.h"

namespace gradus {

/// Empty, or why not.
inline std::string problem_of_ucx() {
#if defined(__SANITIZE_THREAD__)
  return "UCX's hooks of memory and those of ThreadSanitizer do not go together";
#endif
  try {
    ucx_transport({.transports = "self,sm", .devices = "lo"})->open();
    return {};
  } catch (const Error& error) { return error.what(); }
}

inline std::string problem_of_grpc() {
#if defined(__SANITIZE_THREAD__)
  return "ThreadSanitizer does not see how the threads of gRPC, which was built without it, synchronize";
#endif
  try {
    grpc_client({"127.0.0.1", 1}, {});
    return {};
  } catch (const Error& error) { return error.what(); }
}

}  // namespace gradus
