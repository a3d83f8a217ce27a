/// Singular values: QR makes a square matrix of a tall one, reflections a bidiagonal one, and rotations the values.
#include "gradus/backend/cpu/kernels/singular_values.h"
#include <algorithm>
#include <numeric>
#include "gradus/backend/cpu/kernels/bidiagonal.h"

namespace gradus::library::factors {

template <class T>
SquareSingularValues<T>::SquareSingularValues(Room& shared, Room& own, std::int64_t n, bool vectors)
    : n_(n),
      width_(padded(n)),
      pitch_(pitch_for<T>(width_)),
      wants_vectors_(vectors),
      a_(shared.take<T>(n * pitch_)),
      left_v_(shared.take<T>(n * pitch_)),
      right_v_(shared.take<T>(n * pitch_)),
      x_(shared.take<T>(block_reflections * pitch_)),
      y_(shared.take<T>(block_reflections * pitch_)),
      left_taus_(shared.take<T>(n)),
      right_taus_(shared.take<T>(n)),
      of_first_(own.take<T>(block_reflections)),
      of_second_(own.take<T>(block_reflections)),
      d_(shared.take<double>(n)),
      e_(shared.take<double>(n)),
      order_(shared.take<std::int64_t>(n)),
      ended_(shared.take<std::int64_t>(1)),
      converged_(shared.take<std::int64_t>(1)),
      u_(vectors ? shared.take<T>(n * pitch_) : nullptr),
      v_(vectors ? shared.take<T>(n * pitch_) : nullptr),
      block_(own, n),
      left_rotations_(shared, vectors ? n : 0),
      right_rotations_(shared, vectors ? n : 0),
      multiply_(own, n) {}

/// from, from `start` on, less the rows by of_first_ and of_second_.
template <class T>
void SquareSingularValues<T>::subtract(T* from, std::int64_t start, const T* first_rows, const T* second_rows,
                                       std::int64_t first_count, std::int64_t second_count) {
  const auto& rows = row_functions<T>();
  for (std::int64_t p = 0; p < first_count; ++p) of_first_[p] = -of_first_[p];
  for (std::int64_t p = 0; p < second_count; ++p) of_second_[p] = -of_second_[p];
  rows.add_rows(first_rows + start, pitch_, first_count, of_first_, width_ - start, from + start);
  rows.add_rows(second_rows + start, pitch_, second_count, of_second_, width_ - start, from + start);
}
template <class T>
void SquareSingularValues<T>::find_products(const T* with, std::int64_t start, const T* first_rows,
                                            const T* second_rows, std::int64_t first_count, std::int64_t second_count) {
  const auto& rows = row_functions<T>();
  rows.dots(first_rows + start, pitch_, first_count, with + start, width_ - start, of_first_);
  rows.dots(second_rows + start, pitch_, second_count, with + start, width_ - start, of_second_);
}

/// Column i, of a panel that begins with `first`: d, v_i, and y_i, by which v_i changes the columns behind.
template <class T> void SquareSingularValues<T>::reduce_column(std::int64_t i, std::int64_t first) {
  const std::int64_t start = start_before(i), done = i - first;
  T *const v = at(left_v_, i), *const y = at(y_, done);
  const T *const left = at(left_v_, first), *const right = at(right_v_, first);
  std::fill_n(v, width_, T(0));
  for (std::int64_t r = i; r < n_; ++r) v[r] = *at(a_, r, i);
  for (std::int64_t p = 0; p < done; ++p) of_first_[p] = *at(y_, p, i), of_second_[p] = *at(right_v_, first + p, i);
  subtract(v, start, left, x_, done, done);
  std::fill(v + start, v + i, T(0));
  left_taus_[i] = reflect(v[i], v + i + 1, n_ - i - 1);
  d_[i] = static_cast<double>(v[i]);
  v[i] = 1;
  std::fill_n(y, width_, T(0));
  if (i + 1 == n_) return;
  const std::int64_t behind = start_before(i + 1);
  row_functions<T>().add_rows(at(a_, i, behind), pitch_, n_ - i, v + i, width_ - behind, y + behind);
  find_products(v, start, left, x_, done, done);
  subtract(y, behind, y_, right, done, done);
  std::fill(y + behind, y + i + 1, T(0));
  for (std::int64_t j = i + 1; j < n_; ++j) y[j] *= left_taus_[i];
}

/// Row i in the same way: e, u_i, and x_i, by which u_i changes the rows below.
template <class T> void SquareSingularValues<T>::reduce_row(std::int64_t i, std::int64_t first) {
  const std::int64_t done = i - first, behind = start_before(i + 1);
  T *const u = at(right_v_, i), *const x = at(x_, done);
  const T *const left = at(left_v_, first), *const right = at(right_v_, first);
  std::fill_n(u, width_, T(0));
  std::fill_n(x, width_, T(0));
  right_taus_[i] = 0;
  if (i + 1 == n_) return;
  std::copy_n(at(a_, i, behind), width_ - behind, u + behind);
  for (std::int64_t p = 0; p <= done; ++p) of_first_[p] = *at(left_v_, first + p, i);
  for (std::int64_t p = 0; p < done; ++p) of_second_[p] = *at(x_, p, i);
  subtract(u, behind, y_, right, done + 1, done);
  std::fill(u + behind, u + i + 1, T(0));
  right_taus_[i] = reflect(u[i + 1], u + i + 2, n_ - i - 2);
  e_[i] = static_cast<double>(u[i + 1]);
  u[i + 1] = 1;
  row_functions<T>().dots(at(a_, i + 1, behind), pitch_, n_ - i - 1, u + behind, width_ - behind, x + i + 1);
  find_products(u, behind, y_, right, done + 1, done);
  subtract(x, behind, left, x_, done + 1, done);
  std::fill(x + behind, x + i + 1, T(0));
  for (std::int64_t r = i + 1; r < n_; ++r) x[r] *= right_taus_[i];
}

template <class T> void SquareSingularValues<T>::reduce_panel(std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count; ++i) reduce_column(i, first), reduce_row(i, first);
  for (std::int64_t k = 0; k < count * pitch_; ++k) x_[k] = -x_[k], y_[k] = -y_[k];
}

/// Worker 0 does the rows and columns of a panel, each member its columns of the rest.
template <class T> void SquareSingularValues<T>::reduce(const Team& team) {
  for (std::int64_t first = 0; first < n_; first += block_reflections) {
    const std::int64_t count = std::min(block_reflections, n_ - first), behind = first + count, rest = n_ - behind;
    if (team.worker() == 0) reduce_panel(first, count);
    team.meet();
    if (rest == 0) return;
    Columns own = own_columns(team, rest);
    own.begin += behind, own.end += behind;
    multiply_.add(rest, own.count(), count, {at(left_v_, first, behind), 1, pitch_}, {y_ + own.begin, pitch_, 1},
                  at(a_, behind, own.begin), pitch_);
    multiply_.add(rest, own.count(), count, {x_ + behind, 1, pitch_}, {at(right_v_, first, own.begin), pitch_, 1},
                  at(a_, behind, own.begin), pitch_);
    team.meet();
  }
}

template <class T> bool SquareSingularValues<T>::run(const Team& team) {
  reduce(team);
  if (wants_vectors_) {
    const Columns own =
        n_ > block_reflections ? own_rows_to_form(team, n_, n_, width_) : Columns{team.worker() == 0 ? 0 : n_, n_};
    form_orthogonal(left_v_, pitch_, n_, width_, left_taus_, u_, pitch_, own, block_, multiply_);
    form_orthogonal(right_v_, pitch_, n_, width_, right_taus_, v_, pitch_, own, block_, multiply_);
  }
  team.meet();
  const auto close = [this] { left_rotations_.close(), right_rotations_.close(); };
  const Columns own = own_columns(team, width_);
  const auto apply = [&] { left_rotations_.apply(u_, pitch_, own), right_rotations_.apply(v_, pitch_, own); };
  const auto iterate = [&]<class Flush>(Flush flush) {
    auto* const left = wants_vectors_ ? &left_rotations_ : nullptr;
    auto* const right = wants_vectors_ ? &right_rotations_ : nullptr;
    *converged_ = n_ == 0 || BidiagonalQr<T, Flush>(d_, e_, n_, left, right, flush).run();
    if (*converged_ == 0) return;
    make_positive();
    order_by(d_, n_, false, order_);
  };
  iterate_together(team, ended_, iterate, close, apply);
  return *converged_ != 0;
}

template <class T> void SquareSingularValues<T>::make_positive() {
  for (std::int64_t i = 0; i < n_; ++i) {
    if (wants_vectors_ && d_[i] < 0)
      for (std::int64_t j = 0; j < width_; ++j) v_[i * pitch_ + j] = -v_[i * pitch_ + j];
    d_[i] = std::abs(d_[i]);
  }
}

template class SquareSingularValues<float>;
template class SquareSingularValues<double>;

namespace {

/// The order of rows, or columns, from the largest to the least, for matrices whose sizes differ by far: reflections
/// then keep what small ones say. Others keep their order.
template <class T> class GradedOrder {
 public:
  GradedOrder(Room& shared, std::int64_t n) : n_(n), sizes_(shared.take<T>(n)), order_(shared.take<std::int64_t>(n)) {}
  T* sizes() const { return sizes_; }
  void sort() {
    constexpr T far = 1000;
    T least = std::numeric_limits<T>::infinity(), most = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      most = std::max(most, sizes_[i]);
      if (sizes_[i] > 0) least = std::min(least, sizes_[i]);
    }
    is_sorted_ = most / far > least;
    if (is_sorted_) order_by(sizes_, n_, false, order_);
    else std::iota(order_, order_ + n_, 0);
  }
  std::int64_t operator[](std::int64_t i) const { return order_[i]; }
  /// Elements of each of k rows go back to where they came from.
  void undo(T* rows, std::int64_t pitch, std::int64_t k) const {
    for (std::int64_t r = 0; is_sorted_ && r < k; ++r) {
      T* const row = rows + r * pitch;
      std::copy_n(row, n_, sizes_);
      for (std::int64_t i = 0; i < n_; ++i) row[order_[i]] = sizes_[i];
    }
  }

 private:
  std::int64_t n_;
  T* sizes_;
  std::int64_t* order_;
  bool is_sorted_ = false;
};

/// Singular values of a matrix or of its transpose, whichever is tall. Worker 0 knows orders and powers, and brings
/// numbers to their places.
template <class T> class TallSingularValues {
 public:
  TallSingularValues(const MatrixSize& size, bool vectors, Room& shared, Room& own)
      : m_(size.m),
        n_(size.n),
        long_(std::max(m_, n_)),
        k_(size.least()),
        vectors_(vectors),
        row_order_(shared, m_),
        column_order_(shared, n_),
        core_(shared, own, k_, vectors),
        columns_(shared, is_square() ? 0 : long_, is_square() ? 0 : k_),
        q_(is_square() || !vectors ? nullptr : shared.take<T>(k_ * columns_.pitch())),
        rows_(is_square() || !vectors ? nullptr : shared.take<T>(k_ * columns_.pitch())),
        block_(own, is_square() ? 0 : long_),
        multiply_(own, is_square() ? 0 : long_) {}

  bool run(const T* a, const Team& team) {
    if (team.worker() == 0) bring_in(a);
    if (!is_square()) {
      columns_.factor(block_, multiply_, team);
      if (team.worker() == 0) columns_.write_upper(core_.row(0), k_, core_.pitch());
    }
    return core_.run(team);
  }
  void write(T* y, const Team& team) {
    T* const s = y + (vectors_ ? m_ * k_ : 0);
    for (std::int64_t i = 0; team.worker() == 0 && i < k_; ++i)
      s[i] = static_cast<T>(core_.value(i) / static_cast<double>(power_));
    if (!vectors_) return;
    T *const u = y, *const v = s + k_;
    const bool is_tall = m_ >= n_;
    const GradedOrder<T>&of_long = is_tall ? row_order_ : column_order_,
          &of_short = is_tall ? column_order_ : row_order_;
    if (!is_square()) write_long(of_long, is_tall ? u : v, team);
    if (team.worker() != 0) return;
    if (is_square()) write_short(&SquareSingularValues<T>::left, of_long, u);
    write_short(&SquareSingularValues<T>::right, of_short, is_tall ? v : u);
  }

 private:
  bool is_square() const { return m_ == n_; }
  void find_orders(const T* a) {
    std::fill_n(column_order_.sizes(), n_, T(0));
    for (std::int64_t i = 0; i < m_; ++i) {
      row_order_.sizes()[i] = largest_size(a + i * n_, n_);
      for (std::int64_t j = 0; j < n_; ++j)
        column_order_.sizes()[j] = std::max(column_order_.sizes()[j], std::abs(a[i * n_ + j]));
    }
    row_order_.sort(), column_order_.sort();
  }
  /// Element (i, j) goes to i * row + j * column.
  void copy_scaled(const T* a, T* to, std::int64_t row, std::int64_t column) const {
    for (std::int64_t i = 0; i < m_; ++i) {
      const T* const from = a + row_order_[i] * n_;
      for (std::int64_t j = 0; j < n_; ++j) to[i * row + j * column] = from[column_order_[j]] * power_;
    }
  }
  void bring_in(const T* a) {
    power_ = power_into_range(largest_size(a, m_ * n_));
    find_orders(a);
    clear(core_.row(0), k_, core_.width(), core_.pitch());
    if (is_square()) return copy_scaled(a, core_.row(0), core_.pitch(), 1);
    const std::int64_t pitch = columns_.pitch();
    clear(columns_.column(0), k_, columns_.width(), pitch);
    copy_scaled(a, columns_.column(0), m_ < n_ ? pitch : 1, m_ < n_ ? 1 : pitch);
  }
  /// Vectors of k_ elements.
  void write_short(const T* (SquareSingularValues<T>::*vectors)(std::int64_t) const, const GradedOrder<T>& order,
                   T* y) {
    bring_in_order(vectors);
    order.undo(core_.row(0), core_.pitch(), k_);
    transpose(core_.row(0), k_, k_, core_.pitch(), y, k_);
  }
  void bring_in_order(const T* (SquareSingularValues<T>::*vectors)(std::int64_t) const) {
    for (std::int64_t i = 0; i < k_; ++i) std::copy_n((core_.*vectors)(i), core_.width(), core_.row(i));
  }
  /// The vectors of long_ elements: Q times those of R.
  void write_long(const GradedOrder<T>& order, T* y, const Team& team) {
    const std::int64_t pitch = columns_.pitch();
    if (team.worker() == 0) bring_in_order(&SquareSingularValues<T>::left);
    if (const Columns of_q = columns_.own_rows_of_q(k_, team); of_q.count() > 0)
      columns_.form(q_, of_q, block_, multiply_);
    team.meet();
    const std::int64_t begin = k_ * team.worker() / team.size(), end = k_ * (team.worker() + 1) / team.size();
    T* const own = rows_ + begin * pitch;
    clear(own, end - begin, columns_.width(), pitch);
    multiply_.add(end - begin, long_, k_, {core_.row(begin), core_.pitch(), 1}, {q_, pitch, 1}, own, pitch);
    team.meet();
    if (team.worker() != 0) return;
    order.undo(rows_, pitch, k_);
    transpose(rows_, k_, long_, pitch, y, k_);
  }

  std::int64_t m_, n_, long_, k_;
  bool vectors_;
  T power_ = 1;
  GradedOrder<T> row_order_, column_order_;
  SquareSingularValues<T> core_;
  ColumnReflections<T> columns_;
  T *q_, *rows_;
  ReflectionBlock<T> block_;
  Multiplier<T> multiply_;
};

}  // namespace

template <class T> RoomBytes Decompositions<T>::room_for_svd(const MatrixSize& size, const Wanted& wanted) {
  return bytes_taken([&](Room& shared, Room& own) { TallSingularValues<T>(size, wanted.vectors, shared, own); });
}

template <class T>
void Decompositions<T>::svd(const MatrixSize& size, const Wanted& wanted, const T* a, T* y, Room shared, Room own,
                            const Team& team) {
  const auto [m, n] = size;
  TallSingularValues<T> values(size, wanted.vectors, shared, own);
  if (are_finite(a, m * n) && values.run(a, team)) return values.write(y, team);
  const std::int64_t k = size.least(), numbers = k + (wanted.vectors ? (m + n) * k : 0);
  fill_with_nan(y, numbers, team);
}

template RoomBytes Decompositions<float>::room_for_svd(const MatrixSize&, const Wanted&);
template RoomBytes Decompositions<double>::room_for_svd(const MatrixSize&, const Wanted&);
template void Decompositions<float>::svd(const MatrixSize&, const Wanted&, const float*, float*, Room, Room,
                                         const Team&);
template void Decompositions<double>::svd(const MatrixSize&, const Wanted&, const double*, double*, Room, Room,
                                          const Team&);

}  // namespace gradus::library::factors
