/// The protocol of the coordinator of a training with parameter servers: words of step_desk.cpp and step_member.cpp.
#pragma once
#include <cstdint>

namespace gradus {

/// Every question begins with its kind, the seat (ranks, then servers) and the incarnation of its sender.
enum class StepQuestion : std::uint64_t {
  join,   // ranks, servers, version, fingerprint, host, process -> welcome: run, names
  take,   // how many steps it has scheduled -> step, or more: it has to schedule more first
  done,   // step, and its loss -> fine
  agree,  // number, value -> agreed: the values of all that are here
  round,  // from, to -> result: the loss of these steps, once they are done
  beat,   // the member's work -> fine, late
  fail,   // why -> fine
  leave,  // -> fine
};

/// Every answer begins with its kind; `failed` and `over` come in place of every other one.
enum class StepAnswer : std::uint64_t {
  wait,     // committed, members it waits for: ask again
  failed,   // why
  over,     // why
  fine,     // committed
  welcome,  // run, count, names
  step,     // committed, step, fingerprint
  more,     // committed
  agreed,   // committed, count, values
  result,   // committed, whether there is a loss, sum, weight
};

/// The loss of one step; `has_loss`: it gave one.
struct StepLoss {
  bool has_loss = false;
  double sum = 0, weight = 0;
};

}  // namespace gradus
