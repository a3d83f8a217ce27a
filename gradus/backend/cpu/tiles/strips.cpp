/// Products of strips by tiles: rows are cut into panels of about equal height, and nothing else is done.
#include "gradus/backend/cpu/tiles/strips.h"
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {
namespace {

const TileSizes& sizes_of(Isa isa) { return processor_of(isa).tiles; }

}  // namespace

StripTiles::StripTiles(const Strips& s)
    : table_(*tiles_of(s.isa)),
      tiles_(table_.tiles[TileTable::kind_of(s.dtype)]),
      lanes_(sizes_of(s.isa).vector_bytes / size_of(s.dtype)),
      heights_{sizes_of(s.isa).rows[0], sizes_of(s.isa).rows[1]} {
  const std::int64_t size = size_of(s.dtype);
  shape_ = {.k = s.k,
            .a_row = s.a_row * size,
            .a_step = s.a_step * size,
            .b_step = s.b_step * size,
            .c_row = s.c_row * size,
            .b_ahead = s.b_step * size * steps_ahead,
            .next = 0,
            .runs = std::ssize(s.runs),
            .places = s.runs.data()};
}

std::int64_t StripTiles::width(DType dtype, std::int64_t columns, Isa isa) {
  const std::int64_t lanes = sizes_of(isa).vector_bytes / size_of(dtype);
  return columns <= lanes ? lanes : 2 * lanes;
}

void StripTiles::multiply(const void* a, const void* b, void* c, std::int64_t rows, std::int64_t columns,
                          bool resume) const {
  const int wide = columns > lanes_;
  const std::int64_t panels = divide_up(rows, heights_[wide]), height = rows / panels, taller = rows % panels;
  auto* from = static_cast<const char*>(a);
  auto* to = static_cast<char*>(c);
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t count = height + (panel < taller ? 1 : 0);
    tiles_[wide][count - 1](from, b, to, &shape_, columns, resume);
    from += count * shape_.a_row;
    to += count * shape_.c_row;
  }
}

void pack_panels(DType dtype, const void* b, std::int64_t rows, std::int64_t columns, std::int64_t row,
                 std::int64_t width, std::int64_t panel, void* target, Isa isa) {
  const std::int64_t size = size_of(dtype), lanes = sizes_of(isa).vector_bytes / size;
  const PackShape shape{
      .rows = rows, .columns = columns, .source_row = row * size, .target_row = width * size, .panel = panel};
  tiles_of(isa)->copy[size / 8][width / lanes - 1](b, target, &shape);
}

void transpose(DType dtype, const void* b, std::int64_t rows, std::int64_t columns, std::int64_t row,
               std::int64_t pitch, void* target, Isa isa) {
  const std::int64_t size = size_of(dtype);
  const PackShape shape{.rows = columns,
                        .columns = rows,
                        .source_row = row * size,
                        .target_row = pitch * size,
                        .panel = 2 * sizes_of(isa).vector_bytes};
  tiles_of(isa)->transpose[size / 8][1](b, target, &shape);
}

}  // namespace gradus::cpu_backend
