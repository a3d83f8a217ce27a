/// QR by reflections, in blocks of columns.
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {
namespace {

template <class T> struct QrRoom {
  QrRoom(const MatrixSize& size, const Wanted& wanted, Room& own)
      : rows(wanted.full ? size.m : size.least()),
        columns(own, size.m, size.n),
        q(own.take<T>(rows * columns.pitch())),
        block(own, std::max(size.m, size.n)),
        multiply(own, std::max(size.m, size.n)) {}
  std::int64_t rows;  // of R
  ColumnReflections<T> columns;
  T* q;
  ReflectionBlock<T> block;
  Multiplier<T> multiply;
};

}  // namespace

template <class T> std::int64_t Decompositions<T>::room_for_qr(const MatrixSize& size, const Wanted& wanted) {
  return bytes_of_room([&](Room& own) { QrRoom<T>(size, wanted, own); });
}

template <class T>
void Decompositions<T>::qr(const MatrixSize& size, const Wanted& wanted, const T* a, T* y, Room own) {
  QrRoom<T> room(size, wanted, own);
  const auto [m, n] = size;
  const ColumnReflections<T>& columns = room.columns;
  if (!are_finite(a, m * n))
    return static_cast<void>(std::fill_n(y, room.rows * (m + n), std::numeric_limits<T>::quiet_NaN()));
  clear(columns.column(0), n, columns.width(), columns.pitch());
  transpose(a, m, n, n, columns.column(0), columns.pitch());
  columns.factor(room.block, room.multiply);
  columns.form(room.q, room.rows, room.block, room.multiply);
  transpose(room.q, room.rows, m, columns.pitch(), y, room.rows);
  columns.write_upper(y + m * room.rows, room.rows, n);
}

template std::int64_t Decompositions<float>::room_for_qr(const MatrixSize&, const Wanted&);
template std::int64_t Decompositions<double>::room_for_qr(const MatrixSize&, const Wanted&);
template void Decompositions<float>::qr(const MatrixSize&, const Wanted&, const float*, float*, Room);
template void Decompositions<double>::qr(const MatrixSize&, const Wanted&, const double*, double*, Room);

}  // namespace gradus::library::factors
