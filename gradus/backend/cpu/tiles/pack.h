/// Blocks of operands as tiles read them.
#pragma once
#include "gradus/backend/cpu/tiles/plan.h"

namespace gradus::cpu_backend {

class Packer {
 public:
  /// `pairs`: plan.pairs_bytes() of scratch.
  Packer(const Plan& plan, char* pairs) : plan_(plan), p_(plan.product), pairs_(pairs) {}

  /// The k that begin at `source`, at most a plan's depth, and so many columns or rows; the layouts are the plan's.
  void pack_b(const char* source, std::int64_t columns, std::int64_t k, char* target) const;
  void pack_a(const char* source, std::int64_t rows, std::int64_t k, char* target) const;

 private:
  void pair_b(const char* source, std::int64_t columns, std::int64_t k, char* target, std::int64_t panel) const;
  void pair_a(const char* source, std::int64_t rows, std::int64_t k, char* target, std::int64_t pitch) const;
  void pack_amx_a(const char* source, std::int64_t rows, std::int64_t k, char* target, std::int64_t pitch) const;

  const Plan& plan_;
  const Product& p_;
  char* pairs_;
};

}  // namespace gradus::cpu_backend
