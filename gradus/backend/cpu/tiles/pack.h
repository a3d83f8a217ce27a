/// Packing: copies of blocks of operands in the layout that tiles read.
#pragma once
#include "gradus/backend/cpu/tiles/plan.h"

namespace gradus::cpu_backend {

class Packer {
 public:
  /// `pairs`: plan.pairs_bytes() of scratch.
  Packer(const Plan& plan, char* pairs) : plan_(plan), p_(plan.product), pairs_(pairs) {}

  /// The k that begin at `source`, at most a plan's depth, for the given columns or rows; the layouts are the plan's.
  void pack_b(const char* source, std::int64_t columns, std::int64_t k, char* target) const;
  void pack_a(const char* source, std::int64_t rows, std::int64_t k, char* target) const;

 private:
  // bf16 as pairs; `apart`: bytes between the operand's adjacent lines.
  void pair_b(const char* source, std::int64_t apart, std::int64_t columns, std::int64_t k, char* target,
              std::int64_t panel) const;
  void pair_a(const char* source, std::int64_t apart, std::int64_t rows, std::int64_t k, char* target,
              std::int64_t pitch) const;
  std::int64_t b_apart() const { return (p_.b_column == 1 ? p_.b_row : p_.b_column) * plan_.element; }
  std::int64_t a_apart() const { return (plan_.a_by_rows() ? p_.a_row : p_.a_column) * plan_.element; }

  // For AMX: pairs of a are adjacent, and up to the end of a tile there are zeros.
  void pair_rows_of_a(const char* source, std::int64_t apart, std::int64_t rows, std::int64_t k, char* target) const;
  void fill_up_a(std::int64_t rows, std::int64_t k, char* target) const;
  void fill_up_b(std::int64_t columns, std::int64_t k, char* target) const;

  const Plan& plan_;
  const Product& p_;
  char* pairs_;
};

}  // namespace gradus::cpu_backend
