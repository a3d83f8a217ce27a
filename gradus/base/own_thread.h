/// Threads that the library starts for its own work.
#pragma once
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/rooms.h"

namespace gradus {

/// Starts a thread that receives no signals. ResourceExhausted, which names `purpose`, if the system cannot start one.
template <class Thread = std::thread, class Body> Thread own_thread(std::string_view purpose, Body body) {
  const NoSignals quiet;
  try {
    return Thread(std::move(body));
  } catch (const std::system_error& error) {
    throw ResourceExhausted(text("no thread can be started for ", purpose, ": ", error.what(),
                                 ", as limits such as ulimit -u and a container's pids.max make it"));
  }
}

}  // namespace gradus
