/// QR by reflections, in blocks of columns. Decisions 414 and 415 have the reasons.
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {
namespace {

template <class T> struct QrRoom {
  QrRoom(const MatrixSize& size, const Wanted& wanted, Room& shared, Room& own)
      : rows(wanted.full ? size.m : size.least()),
        columns(shared, size.m, size.n),
        q(shared.take<T>(rows * columns.pitch())),
        block(own, std::max(size.m, size.n)),
        multiply(own, std::max(size.m, size.n)) {}
  std::int64_t rows;  // of R
  ColumnReflections<T> columns;
  T* q;
  ReflectionBlock<T> block;
  Multiplier<T> multiply;
};

}  // namespace

template <class T> RoomBytes Decompositions<T>::room_for_qr(const MatrixSize& size, const Wanted& wanted) {
  return bytes_taken([&](Room& shared, Room& own) { QrRoom<T>(size, wanted, shared, own); });
}

template <class T>
void Decompositions<T>::qr(const MatrixSize& size, const Wanted& wanted, const T* a, T* y, Room shared, Room own,
                           const Team& team) {
  QrRoom<T> room(size, wanted, shared, own);
  const auto [m, n] = size;
  const ColumnReflections<T>& columns = room.columns;
  const std::int64_t pitch = columns.pitch();
  if (!are_finite(a, m * n)) return fill_with_nan(y, room.rows * (m + n), team);
  const Columns mine = own_columns(team, n);
  clear(columns.column(mine.begin), mine.count(), columns.width(), pitch);
  transpose(a + mine.begin, m, mine.count(), n, columns.column(mine.begin), pitch);
  columns.factor(room.block, room.multiply, team);
  const Columns of_q = columns.own_rows_of_q(room.rows, team);
  if (of_q.count() > 0) {
    columns.form(room.q, of_q, room.block, room.multiply);
    transpose(room.q + of_q.begin * pitch, of_q.count(), m, pitch, y + of_q.begin, room.rows);
  }
  if (team.worker() == team.size() - 1) columns.write_upper(y + m * room.rows, room.rows, n);
}

template RoomBytes Decompositions<float>::room_for_qr(const MatrixSize&, const Wanted&);
template RoomBytes Decompositions<double>::room_for_qr(const MatrixSize&, const Wanted&);
template void Decompositions<float>::qr(const MatrixSize&, const Wanted&, const float*, float*, Room, Room,
                                        const Team&);
template void Decompositions<double>::qr(const MatrixSize&, const Wanted&, const double*, double*, Room, Room,
                                         const Team&);

}  // namespace gradus::library::factors
