/// Packing. bf16 becomes pairs of k: where k is adjacent in memory, they are there already, as elements of 32 bits, but
/// for an odd last one; else rows of two k are woven. Without tiles of pairs these are taken apart, into f32.
#include "gradus/backend/cpu/tiles/pack.h"
#include <bit>
#include <cstring>
#include <iterator>

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

/// The nearest bf16, as a float; numbers that would become infinite are cut off.
std::uint32_t nearest(std::uint32_t bits) {
  constexpr std::uint32_t exponent = 0x7f800000;
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return ((rounded & exponent) == exponent ? bits : rounded) & 0xffff0000;
}

/// A number as three of bf16: the nearest one, and the nearest ones to what is left.
struct Thirds {
  std::uint32_t first, second, third;
  explicit Thirds(float x) {
    first = nearest(std::bit_cast<std::uint32_t>(x));
    x -= std::bit_cast<float>(first);
    second = nearest(std::bit_cast<std::uint32_t>(x));
    x -= std::bit_cast<float>(second);
    third = nearest(std::bit_cast<std::uint32_t>(x));
  }
};
std::uint32_t word(std::uint32_t lower, std::uint32_t upper) { return lower >> 16 | upper; }

/// Planes of words, of which tiles sum the products of lower halves and those of upper halves apart: planes 1 and 2
/// give a1 b3 + a3 b1, planes 0 and 1 a1 b2 + a2 b1, planes 0 and 0 a1 b1 + a2 b2. Each is the same sum if a and b
/// change their parts.
using Words = std::uint32_t* const (&)[3];
[[gnu::target("avx2")]] void divide_a(const char* source, std::int64_t count, Words planes) {
  for (std::int64_t i = 0; i < count; ++i) {
    float x;
    std::memcpy(&x, source + 4 * i, sizeof x);
    const Thirds t(x);
    planes[0][i] = word(t.first, t.second), planes[1][i] = word(t.first, t.third);
  }
}
[[gnu::target("avx2")]] void divide_b(const char* source, std::int64_t count, Words planes) {
  for (std::int64_t i = 0; i < count; ++i) {
    float x;
    std::memcpy(&x, source + 4 * i, sizeof x);
    const Thirds t(x);
    planes[0][i] = word(t.first, t.second), planes[1][i] = word(t.second, t.first);
    planes[2][i] = word(t.third, t.first);
  }
}

/// Lines of words that have to be transposed.
struct Lines {
  static constexpr std::int64_t k = 64, most = AmxTiles::most * AmxTiles::rows;
  alignas(64) std::uint32_t planes[3][k * most];
};

std::uint32_t pair_at(const char* source) {
  std::uint32_t pair;
  std::memcpy(&pair, source, sizeof pair);
  return pair;
}
/// Pairs as two floats each: the odd one to `odd`, the even one to `even`.
[[gnu::target("avx2")]] void split(const char* pairs, std::int64_t count, char* odd, char* even) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t pair = pair_at(pairs + 4 * i), upper = pair & 0xffff0000, lower = pair << 16;
    std::memcpy(odd + 4 * i, &upper, sizeof upper);
    std::memcpy(even + 4 * i, &lower, sizeof lower);
  }
}
/// The same, where the even one follows the odd one: together 64 bits, of which the odd one is the lower half.
[[gnu::target("avx2")]] void split(const char* pairs, std::int64_t count, char* __restrict target) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t pair = pair_at(pairs + 4 * i), floats = pair << 48 | (pair & 0xffff0000);
    std::memcpy(target + 8 * i, &floats, sizeof floats);
  }
}

}  // namespace

void Packer::pack_b(const char* source, std::int64_t columns, std::int64_t k, char* target) const {
  if (plan_.form == Form::pairs) return pair_b(source, b_apart(), columns, k, target, plan_.b_panel_bytes());
  if (plan_.form == Form::thirds) return pack_thirds_of_b(source, columns, k, target);
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
  if (plan_.form == Form::thirds) return pack_thirds_of_a(source, rows, k, target);
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
  const std::int64_t words = plan_.words(k);
  for (std::int64_t row = 0; row < rows; ++row)
    std::memset(target + row * plan_.a_pitch_bytes() + words * 4, 0,
                static_cast<std::size_t>((plan_.steps(k) - words) * 4));
}

void Packer::fill_up_b(std::int64_t columns, std::int64_t k, char* target) const {
  const std::int64_t words = plan_.words(k), row = plan_.width * 4;
  for (std::int64_t panel = 0; panel * plan_.width < columns; ++panel)
    std::memset(target + panel * plan_.b_panel_bytes() + words * row, 0,
                static_cast<std::size_t>((plan_.steps(k) - words) * row));
}

void Packer::pack_thirds_of_b(const char* source, std::int64_t columns, std::int64_t k, char* target) const {
  for (std::int64_t j = 0; j < columns; j += plan_.width) {
    const std::int64_t width = std::min(plan_.width, columns - j), row = plan_.width * 4;
    const char* const from = source + j * p_.b_column * plan_.element;
    char* const panel = target + j / plan_.width * plan_.b_panel_bytes();
    const auto at = [&](int plane, std::int64_t step) { return panel + plane * plan_.b_plane_bytes() + step * row; };
    const auto words = [&](int plane, std::int64_t step) { return reinterpret_cast<std::uint32_t*>(at(plane, step)); };
    if (p_.b_column == 1)
      for (std::int64_t step = 0; step < k; ++step)
        divide_b(from + step * b_apart(), width, {words(0, step), words(1, step), words(2, step)});
    else
      for (std::int64_t step = 0; step < k; step += Lines::k) {
        Lines lines;
        const PackShape shape{.rows = std::min(Lines::k, k - step),
                              .columns = width,
                              .source_row = Lines::k * 4,
                              .target_row = row,
                              .panel = 0};
        for (std::int64_t i = 0; i < width; ++i) {
          std::uint32_t* const first = lines.planes[0] + i * Lines::k;
          divide_b(from + i * b_apart() + step * 4, shape.rows,
                   {first, first + std::size(lines.planes[0]), first + 2 * std::size(lines.planes[0])});
        }
        for (int plane = 0; plane < 3; ++plane)
          plan_.table->transpose[of_pairs][plan_.vectors - 1](lines.planes[plane], at(plane, step), &shape);
      }
    for (int plane = 0; plane < 3; ++plane) fill_up_b(width, k, at(plane, 0));
  }
}

void Packer::pack_thirds_of_a(const char* source, std::int64_t rows, std::int64_t k, char* target) const {
  const std::int64_t pitch = plan_.a_pitch_bytes();
  const auto at = [&](int plane, std::int64_t row) { return target + plane * plan_.a_plane_bytes() + row * pitch; };
  const auto words = [&](int plane, std::int64_t row) { return reinterpret_cast<std::uint32_t*>(at(plane, row)); };
  if (plan_.a_by_rows())
    for (std::int64_t row = 0; row < rows; ++row)
      divide_a(source + row * a_apart(), k, {words(0, row), words(1, row), nullptr});
  else
    for (std::int64_t step = 0; step < k; step += Lines::k) {
      Lines lines;
      const PackShape shape{.rows = rows,
                            .columns = std::min(Lines::k, k - step),
                            .source_row = Lines::most * 4,
                            .target_row = pitch,
                            .panel = AmxTiles::row_bytes};
      for (std::int64_t i = 0; i < shape.columns; ++i)
        divide_a(source + (step + i) * a_apart(), rows,
                 {lines.planes[0] + i * Lines::most, lines.planes[1] + i * Lines::most, nullptr});
      for (int plane = 0; plane < 2; ++plane)
        plan_.table->transpose[of_pairs][0](lines.planes[plane], at(plane, 0) + step * 4, &shape);
    }
  for (int plane = 0; plane < 2; ++plane) fill_up_a(rows, k, at(plane, 0));
}

}  // namespace gradus::cpu_backend
