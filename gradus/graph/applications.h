/// Applications: tells which values are results of one application. An op with several results is several values, which
/// differ in the field `output` of the op alone and have the same operands.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/op.h"

namespace gradus {

/// Numbers applications in the order in which their first results come. `Operand`: a value's number or a node.
template <class Operand> class Applications {
 public:
  struct Found {
    int number;
    bool is_new;
  };
  /// The application of `op`, whichever result of it this is.
  Found find_or_add(const AnyOp& op, const std::vector<Operand>& operands) { return look_up(op, operands, false); }
  /// find_or_add() for graphs in which each result comes once: one that comes again belongs to another application of
  /// the same op to the same operands.
  Found find_or_add_result(const AnyOp& op, const std::vector<Operand>& operands) {
    return look_up(op, operands, true);
  }

 private:
  struct Application {
    int number;
    AnyOp first;
    std::vector<Operand> operands;
    std::vector<bool> has;  // by output
  };

  static std::uint64_t hash_of(Operand operand) {
    if constexpr (std::is_pointer_v<Operand>) return reinterpret_cast<std::uintptr_t>(operand);
    else return static_cast<std::uint64_t>(operand);
  }
  Found look_up(const AnyOp& op, const std::vector<Operand>& operands, bool once) {
    const AnyOp first = op.has_siblings() ? op.sibling(0) : op;
    const auto output = static_cast<std::size_t>(op.has_siblings() ? op.output() : 0);
    std::uint64_t hash = first.hash();
    for (const Operand operand : operands) hash = mix(hash, hash_of(operand));
    for (auto [it, last] = known_.equal_range(hash); it != last; ++it) {
      Application& application = it->second;
      if (application.first != first || application.operands != operands) continue;
      if (once && has(application, output)) continue;
      return {application.number, false};
    }
    Application& made = known_.emplace(hash, Application{count_, first, operands, {}})->second;
    if (once) has(made, output);
    return {count_++, true};
  }
  /// True if it had that output before.
  static bool has(Application& application, std::size_t output) {
    if (application.has.size() <= output) application.has.resize(output + 1);
    const bool before = application.has[output];
    application.has[output] = true;
    return before;
  }

  std::unordered_multimap<std::uint64_t, Application> known_;
  int count_ = 0;
};

}  // namespace gradus
