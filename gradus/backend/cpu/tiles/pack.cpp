/// Packing. bf16 becomes pairs of k: where k is adjacent in memory, pairs exist already, as elements of 32 bits, but
/// for an odd last one; else rows of two k are woven. Without tiles of pairs they are taken apart, into f32.
#include "gradus/backend/cpu/tiles/pack.h"
#include <cstring>
#include "gradus/base/wide_vectors.h"

namespace gradus::cpu_backend {
namespace {

constexpr int of_pairs = 0;  // among the sizes of elements: 4 bytes

/// The last of an odd number of k: its partner is 0.
void write_single(const char* source, char* target) {
  std::uint16_t element;
  std::memcpy(&element, source, sizeof element);
  const std::uint32_t pair = element;
  std::memcpy(target, &pair, sizeof pair);
}

constexpr std::int64_t k_at_once = 128;  // that are woven before they are transposed

std::uint32_t pair_at(const char* source) {
  std::uint32_t pair;
  std::memcpy(&pair, source, sizeof pair);
  return pair;
}
/// Pairs as two floats each: the odd one to `odd`, the even one to `even`.
GRADUS_WIDE_VECTORS void split(const char* pairs, std::int64_t count, char* odd, char* even) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t pair = pair_at(pairs + 4 * i), upper = pair & 0xffff0000, lower = pair << 16;
    std::memcpy(odd + 4 * i, &upper, sizeof upper);
    std::memcpy(even + 4 * i, &lower, sizeof lower);
  }
}
/// The same, where the even one follows the odd one: together 64 bits; the odd one is the lower half.
GRADUS_WIDE_VECTORS void split(const char* pairs, std::int64_t count, char* __restrict target) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t pair = pair_at(pairs + 4 * i), floats = pair << 48 | (pair & 0xffff0000);
    std::memcpy(target + 8 * i, &floats, sizeof floats);
  }
}

}  // namespace

void Packer::pack_b(const char* source, std::int64_t columns, std::int64_t k, char* target) const {
  if (plan_.form == Form::pairs) return pair_b(source, b_apart(), columns, k, target, plan_.b_panel_bytes());
  if (plan_.form == Form::amx) {
    pair_b(source, b_apart(), columns, k, target, plan_.b_panel_bytes());
    return fill_up_b(columns, k, target);
  }
  if (plan_.form == Form::widened) {
    pair_b(source, b_apart(), columns, k, pairs_, plan_.pair_panel_bytes());
    const std::int64_t row = plan_.width * 4;
    for (std::int64_t panel = 0; panel * plan_.width < columns; ++panel)
      for (std::int64_t pair = 0; 2 * pair < k; ++pair) {
        char* const to = target + panel * plan_.b_panel_bytes() + 2 * pair * row;
        split(pairs_ + panel * plan_.pair_panel_bytes() + pair * row, plan_.width, to, to + row);
      }
    return;
  }
  const bool by_rows = p_.b_column == 1;
  const PackShape shape{.rows = k,
                        .columns = columns,
                        .source_row = (by_rows ? p_.b_row : p_.b_column) * plan_.size,
                        .target_row = plan_.width * plan_.size,
                        .panel = plan_.b_panel_bytes()};
  (by_rows ? plan_.table->copy : plan_.table->transpose)[plan_.size / 8][plan_.vectors - 1](source, target, &shape);
}

void Packer::pack_a(const char* source, std::int64_t rows, std::int64_t k, char* target) const {
  const std::int64_t pitch = plan_.a_pitch_bytes(), pair_pitch = plan_.pair_pitch_bytes();
  if (plan_.form == Form::pairs) return pair_a(source, a_apart(), rows, k, target, pitch);
  if (plan_.form == Form::amx) {
    pair_rows_of_a(source, a_apart(), rows, k, target);
    return fill_up_a(rows, k, target);
  }
  if (plan_.form == Form::widened) {
    pair_a(source, a_apart(), rows, k, pairs_, pair_pitch);
    if (plan_.a_by_rows())
      for (std::int64_t row = 0; row < rows; ++row) split(pairs_ + row * pair_pitch, (k + 1) / 2, target + row * pitch);
    else
      for (std::int64_t pair = 0; 2 * pair < k; ++pair)
        split(pairs_ + pair * pair_pitch, rows, target + 2 * pair * pitch, target + (2 * pair + 1) * pitch);
    return;
  }
  const bool by_rows = plan_.packed_a_by_rows();
  const int vectors = plan_.turn_a && !by_rows ? 1 : 2;
  const PackShape shape{.rows = by_rows ? rows : k,
                        .columns = by_rows ? k : rows,
                        .source_row = a_apart(),
                        .target_row = pitch,
                        .panel = vectors * plan_.lanes * plan_.size};
  (plan_.turn_a ? plan_.table->transpose : plan_.table->copy)[plan_.size / 8][vectors - 1](source, target, &shape);
}

void Packer::pair_b(const char* source, std::int64_t apart, std::int64_t columns, std::int64_t k, char* target,
                    std::int64_t panel) const {
  PackShape shape{.rows = k, .columns = columns, .source_row = apart, .target_row = plan_.width * 4, .panel = panel};
  if (p_.b_column == 1) return plan_.table->pair_rows[plan_.vectors - 1](source, target, &shape);
  shape.rows = k / 2;
  if (k > 1) plan_.table->transpose[of_pairs][plan_.vectors - 1](source, target, &shape);
  for (std::int64_t j = 0; k % 2 == 1 && j < columns; ++j)
    write_single(source + j * apart + (k - 1) * 2,
                 target + j / plan_.width * panel + k / 2 * shape.target_row + j % plan_.width * 4);
}

void Packer::pair_a(const char* source, std::int64_t apart, std::int64_t rows, std::int64_t k, char* target,
                    std::int64_t pitch) const {
  PackShape shape{.rows = k, .columns = rows, .source_row = apart, .target_row = pitch, .panel = 2 * plan_.lanes * 4};
  if (!plan_.a_by_rows()) return plan_.table->pair_rows[1](source, target, &shape);
  shape.rows = rows;
  shape.columns = k / 2;
  if (k > 1) plan_.table->copy[of_pairs][1](source, target, &shape);
  for (std::int64_t row = 0; k % 2 == 1 && row < rows; ++row)
    write_single(source + row * apart + (k - 1) * 2, target + row * pitch + k / 2 * 4);
}

void Packer::pair_rows_of_a(const char* source, std::int64_t apart, std::int64_t rows, std::int64_t k,
                            char* target) const {
  const std::int64_t pitch = plan_.a_pitch_bytes();
  if (plan_.a_by_rows()) return pair_a(source, apart, rows, k, target, pitch);
  // Pairs of k are woven along rows, then transposed, some at a time.
  constexpr std::int64_t row_bytes = AmxTiles::most * AmxTiles::rows * 4;
  alignas(64) char woven[k_at_once / 2 * row_bytes];
  for (std::int64_t step = 0; step < k; step += k_at_once) {
    const std::int64_t count = std::min(k_at_once, k - step);
    pair_a(source + step * apart, apart, rows, count, woven, row_bytes);
    const PackShape shape{.rows = rows,
                          .columns = (count + 1) / 2,
                          .source_row = row_bytes,
                          .target_row = pitch,
                          .panel = AmxTiles::row_bytes};
    plan_.table->transpose[of_pairs][0](woven, target + step / 2 * 4, &shape);
  }
}

void Packer::fill_up_a(std::int64_t rows, std::int64_t k, char* target) const {
  const std::int64_t pairs = (k + 1) / 2;
  for (std::int64_t row = 0; row < rows; ++row)
    std::memset(target + row * plan_.a_pitch_bytes() + pairs * 4, 0,
                static_cast<std::size_t>((plan_.steps(k) - pairs) * 4));
}

void Packer::fill_up_b(std::int64_t columns, std::int64_t k, char* target) const {
  const std::int64_t pairs = (k + 1) / 2, row = plan_.width * 4;
  for (std::int64_t panel = 0; panel * plan_.width < columns; ++panel)
    std::memset(target + panel * plan_.b_panel_bytes() + pairs * row, 0,
                static_cast<std::size_t>((plan_.steps(k) - pairs) * row));
}

}  // namespace gradus::cpu_backend
