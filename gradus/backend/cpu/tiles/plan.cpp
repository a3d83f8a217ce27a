/// How a product is cut.
#include "gradus/backend/cpu/tiles/plan.h"
#include <unistd.h>
#include "gradus/base/error.h"

namespace gradus::cpu_backend {
namespace {

std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
std::int64_t round_up(std::int64_t x, std::int64_t to) { return divide_up(x, to) * to; }

void check(const Product& p) {
  internal_check(p.dtype == f32 || p.dtype == f64 || (is_integer(p.dtype) && size_of(p.dtype) >= 4), "product of ",
                 p.dtype);
  internal_check(std::min({p.batch, p.m, p.n, p.k}) >= 0, "product of negative size");
  internal_check(std::min({p.a_row, p.a_column, p.a_batch, p.b_row, p.b_column, p.b_batch, p.c_row, p.c_batch}) >= 0,
                 "product with a negative stride");
  internal_check((p.a_row == 1 || p.a_column == 1) && (p.b_row == 1 || p.b_column == 1),
                 "product of an operand with neither adjacent rows nor adjacent columns");
}

/// Many matrices times one are a single tall one, if its rows follow each other. A single column is computed as a row
/// (c^T = b^T a^T), whose elements are neighbours.
Product simplify(Product p) {
  const bool rows_follow = p.a_batch == p.m * p.a_row && p.c_batch == p.m * p.c_row;
  if (p.batch > 1 && p.b_batch == 0 && rows_follow) p.m *= p.batch, p.batch = 1;
  if (p.n == 1 && p.m > 1 && p.c_row == 1) {
    std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_column, p.b_row);
    std::swap(p.a_batch, p.b_batch);
    p.c_row = p.n;
  }
  return p;
}

std::int64_t second_level_cache() {
  static const std::int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 512 << 10;
}

}  // namespace

Plan::Plan(const Product& given) : product(simplify(given)), swapped(given.n != product.n) {
  const Product& p = product;
  check(p);
  const bool avx512 = p.isa == Isa::avx512;
  const TileSizes& sizes = avx512 ? avx512_tiles : avx2_tiles;
  table = avx512 ? &gradus_tiles_avx512 : &gradus_tiles_avx2;
  size = size_of(p.dtype), lanes = sizes.vector_bytes / size;
  outer_batch = p.b_batch == 0 ? 1 : p.batch, inner_batch = p.b_batch == 0 ? p.batch : 1;
  vectors = p.n <= lanes ? 1 : 2, width = vectors * lanes;
  row_panels = divide_up(p.m, sizes.rows[vectors - 1]);
  // Three or five panels would be an uneven load for two threads.
  if (row_panels % 2 == 1 && row_panels > 1 && p.batch * row_panels * divide_up(p.n, width) < 8) ++row_panels;
  choose_packing();
  cut_columns();
}

void Plan::choose_packing() {
  const Product& p = product;
  // Lines a power of two apart fall into one set of the cache.
  const bool aliases = std::max(p.a_row, p.a_column) * size % 2048 == 0 && p.k > (p.a_row == 1 ? 128 : 256);
  pack_a = aliases && p.m > 4;
  // Rows adjacent: panels share cache lines, so several are packed at once.
  group = p.a_column == 1 ? 1 : std::max<std::int64_t>(1, 56 * row_panels / std::max<std::int64_t>(p.m, 1));
  const std::int64_t b_bytes = p.n * p.k * size, rows = p.m * inner_batch;
  pack_b = p.b_column != 1 || (b_bytes > 160 << 10 && rows > 64) || (b_bytes > 512 << 10 && rows > 16);
  streamed = !pack_a && !pack_b && b_bytes > 512 << 10;
  if (streamed) depth = std::min<std::int64_t>(p.k, 64);  // so many pages are within reach of the address cache
  else if ((!pack_a && !pack_b) || p.k <= 512) depth = p.k;
  else depth = round_up(divide_up(p.k, divide_up(p.k, 392)), 16);
}

void Plan::cut_columns() {
  const std::int64_t n = product.n, row_units = outer_batch * inner_batch * row_panels;
  column_blocks = 0;
  if (n == 0 || row_units == 0) return;
  std::int64_t most = width;
  if (pack_b) most = second_level_cache() / 8 * 5 / std::max<std::int64_t>(depth * size, 1) / width * width;
  else if (streamed) most = 512;
  const std::int64_t enough = round_up(divide_up(n, divide_up(32, row_units)), width);  // 32 units or more
  // Packing a again for every block has to be worth it, so has reading a few columns of every row of b.
  const std::int64_t least = pack_a || streamed ? 4 * width : width;
  block = std::max(std::min(most, enough), least);
  block = round_up(divide_up(n, divide_up(n, block)), width);  // of about equal width
  column_blocks = divide_up(n, block);
}

std::int64_t Plan::b_panel_bytes() const { return round_up(depth, 16) * size * width + 64; }

std::int64_t Plan::a_pitch_bytes() const { return (divide_up(depth * size, 64) | 1) * 64; }

std::int64_t Plan::packed_a_bytes() const {
  // Packing writes whole vectors and squares of them.
  return pack_a ? a_pitch_bytes() * round_up(std::min(group * rows(0), product.m), lanes) + 128 : 0;
}

}  // namespace gradus::cpu_backend
